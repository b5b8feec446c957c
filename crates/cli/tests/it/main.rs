//! The program as a user meets it: command lines, exit codes, files, events.

mod long_compaction;
mod program;
mod layers;
mod spine;
mod bad_input;
mod owners;
