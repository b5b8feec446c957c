//! Where effects happen. Windlass starts one helper per task; the helper enters a sandbox once and then
//! starts, watches and ends commands in it at the cost of a process spawn.
//!
//! - [`Sandbox`] is the seam the tools use; [`Docker`], [`Local`] and [`Host`] stand behind it.
//! - [`Running`] is a command that was started: its output in written order, its end, the way to end it.
//! - [`network`] holds the rules for what may be reached, as pure functions.

mod seam;
mod running;
mod error;
pub mod network;
mod proxy;
pub mod docker;
pub mod local;
mod host;
mod process;
mod channel;

pub use docker::Docker;
pub use error::Error;
pub use host::Host;
pub use local::Local;
pub use network::{Connection, Egress, Network};
pub use running::{Input, Killer, Running};
pub use seam::{
    BoxFuture, Chunk, Command, Ended, Exit, Fatal, Footing, KILL_GRACE, Kind, News, Sandbox, Stdin,
    Stream,
};
