//! The sandbox through its public interface, with real processes, as root and as an ordinary user.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panic and print what they measure"
)]

mod support;
mod commands;
mod isolation;
mod confinement;
mod landlock;
mod refused;
mod capability_cache;
mod trees;
mod cancels;
mod owner;
mod places;
mod network;
mod toolchains;

/// What the tests that other binaries share run in here.
const SANDBOX: support::Tested = support::Tested::Local;
