//! The web page in a real Chromium, served by the real binary, with a scripted model.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

#[allow(dead_code, reason = "other binaries use the rest")]
#[path = "../it/program.rs"]
mod program;
mod desk;
mod signing_in;
mod watching;
mod keyboard;
mod composing;
mod answering;
mod steering;
mod roles;
mod connections;
mod hostile;
mod planning;
mod workflows;
mod proposals;
mod plans;
mod trouble;
mod pages;

/// Where this binary's tasks run.
const SANDBOX: program::Tested = program::Tested::Local;
