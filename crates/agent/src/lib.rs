//! One task's loop: ask the model, run what it asks for, journal both, repeat.

mod run;
mod ending;
mod calls;
mod bound;
mod hooks;
mod spawn;
pub mod tree;
pub mod budget;
mod spend;
mod memory;
pub mod journal;
mod place;
mod context;
mod compaction;
pub mod trace;
mod log;
pub mod spans;
mod interrupt;
mod prompt;
pub mod report;

pub use compaction::Summarizer;
pub use hooks::Trusted;
pub use journal::Journal;
pub use memory::Memory;
pub use run::{Agent, Error, Preview, Settings};
pub use tree::Tree;
