//! The one gate: a pure function that decides every tool call: allow, ask or deny.
//!
//! Invariants:
//! - Total: every class under every profile has an answer written down; there is no default arm.
//! - Deciding changes nothing: the caller journals the verdict and acts on it.

pub mod class;
pub mod decide;
pub mod pattern;
pub mod command;
pub mod allow;
pub mod denial;
pub mod explain;

pub use allow::{AllowRule, Approval, DenyRule};
pub use class::{Assessment, Class, Risk};
pub use command::{Context, Reading, read, read_bytes};
pub use decide::{Decision, Layer, Rules, Verdict, decide};
pub use denial::Denial;
pub use explain::Explanation;
pub use pattern::Pattern;
