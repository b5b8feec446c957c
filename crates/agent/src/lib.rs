//! One task's loop: ask the model, run what it asks for, journal both, repeat.

pub mod run;
mod ending;
pub mod calls;
mod bound;
pub mod hooks;
pub mod spawn;
pub mod tree;
pub mod budget;
mod spend;
pub mod memory;
pub mod journal;
mod place;
pub mod context;
pub mod compaction;
pub mod trace;
pub mod log;
pub mod spans;
pub mod interrupt;
pub mod prompt;
pub mod report;

pub use compaction::Summarizer;
pub use hooks::Trusted;
pub use journal::Journal;
pub use memory::Memory;
pub use run::{Agent, Error, Preview, Settings};
pub use tree::Tree;
