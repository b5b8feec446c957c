//! Where effects happen. Windlass starts one helper per task; the helper enters a sandbox once and then
//! starts, watches and ends commands in it at the cost of a process spawn.
//!
//! - [`Sandbox`] is the interface that the tools use; [`Docker`], [`Local`] and [`Host`] implement it.
//! - [`Running`] is a command that was started: its output in written order, its end, the way to end it.
//! - [`network`] has the rules for what commands may reach, as pure functions.

mod api;
mod running;
mod error;
pub mod network;
mod proxy;
pub mod docker;
pub mod local;
mod host;
mod unavailable;
mod environment;
mod host_sockets;
mod limits;
mod workspace;
mod helper;
mod channel;

pub use api::{
    BoxFuture, Chunk, Command, CommandEnd, Exit, FatalCause, IsolationReport, KILL_GRACE, Sandbox,
    SandboxEvent, SandboxKind, Stdin, Stream,
};
pub use channel::MAX_SCRIPT_BYTES;
pub use docker::Docker;
pub use error::Error;
pub use helper::{helper_problem, reinstall_helper};
pub use host::Host;
pub use limits::ResourceLimits;
pub use local::Local;
pub use network::{ConnectionAttempt, Egress, Network};
pub use proxy::LoopbackProxy;
pub use running::{Input, KillHandle, Running};
pub use unavailable::Unavailable;
pub use workspace::HomeFiles;
