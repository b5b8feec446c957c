//! What windlass and the helper say to each other.
//!
//! The helper itself is the program of this package (`main.rs`). `sandbox` uses this library for its own end
//! of the connection, and embeds the program.

pub mod protocol;
pub mod wire;
