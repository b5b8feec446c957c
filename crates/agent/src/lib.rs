//! One task's loop: ask the model, run what it asks for, journal both, repeat.

mod run;
mod parts;
mod error;
mod history;
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
pub use error::Error;
pub use history::History;
pub use hooks::Trusted;
pub use journal::Journal;
pub use memory::Memory;
pub use parts::{Parts, Preview, Settings};
pub use run::Agent;
pub use tree::Tree;
