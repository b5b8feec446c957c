//! The sandbox through its public interface, in containers of a real engine: the suite of the local sandbox, and
//! what only containers have. `scripts/test` provides the engine; without it every test here fails.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panic and print what they measure"
)]

#[path = "../it/support.rs"]
mod support;
#[path = "../it/commands.rs"]
mod commands;
#[path = "../it/isolation.rs"]
mod isolation;
#[path = "../it/confinement.rs"]
mod confinement;
#[path = "../it/trees.rs"]
mod trees;
#[path = "../it/cancels.rs"]
mod cancels;
#[path = "../it/network.rs"]
mod network;
mod lifecycle;
mod away;

/// What the shared tests run in here.
const SANDBOX: support::Tested = support::Tested::Docker;
