//! The program as a user meets it: command lines, exit codes, files, events.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod program;
mod terminal;
mod layers;
mod spans;
mod spine;
mod bad_input;
mod own_memory;
mod owners;
mod long_agents;
mod long_watched;
mod long_compaction;
mod long_summaries;
mod long_memory;
mod long_refused;
mod long_flush;
mod skills;
mod growing;
mod web;
mod browsing;
mod mcp;
mod gate;
mod permissions;
mod asking;
mod trusting;
mod litellm;
mod wires;
mod providers;
mod screen;
mod replies;
mod follow_ups;
mod full_disk;
mod piped_input;
mod pictures;
mod first_message;
mod watching;
mod retrying;
mod runners;
mod help;
mod looking;
mod words;
mod workflows;
mod cut_outputs;
mod setup;
mod demo;
mod instructions;
mod log_lines;
mod secrets;
mod clock;
mod places;
mod prune;
mod chat;
mod session_story;
mod axes;
mod requirements;
mod interactive;
mod terminal_faults;
mod in_tmux;
mod planning;
mod plans;
mod plan_runs;
mod commitments;
mod faults;

/// Where the tests that other binaries share run their tasks.
const SANDBOX: program::Tested = program::Tested::Local;
