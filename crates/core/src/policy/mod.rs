//! The one gate: a pure function that decides every tool call: allow, ask or deny.
//!
//! Invariants:
//! - Total: every class under every profile has an answer written down; there is no default arm.
//! - Deciding changes nothing: the caller journals the verdict and acts on it.

pub mod class;
pub mod pattern;
pub mod command;
pub mod decide;

pub use class::{Assessment, Class, Risk};
pub use decide::{Decision, Rules, Verdict, decide};
