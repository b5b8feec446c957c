//! The tools through the registry, on real directories: arguments in, outcome and files out.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

mod arriving_rules;
mod bench;
mod bound_files;
mod browser;
mod checkpoint;
mod shell;
mod edit;
mod escape;
mod find;
mod guarded;
mod notes;
mod output;
mod publish;
mod ledger;
mod read;
mod registry;
mod rule_guard;
mod skills;
mod mcp;
mod mcp_trouble;
mod web;
mod working_tree;
mod workspace;
mod write;
