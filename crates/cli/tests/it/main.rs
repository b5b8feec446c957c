//! The program as a user meets it: command lines, exit codes, files, events.

mod long_agents;
mod long_compaction;
mod program;
mod terminal;
mod layers;
mod spine;
mod bad_input;
mod owners;
mod gate;
mod screen;
mod help;
mod looking;
mod setup;
mod demo;
mod instructions;
