//! One task's loop: ask the model, run what it asks for, journal both, repeat.

mod run;
mod start;
mod start_approval;
mod epoch;
mod ask;
mod model_wait;
mod calls;
pub mod claims;
mod gate;
mod billing;
mod compaction;
mod delegation;
mod segment_end;
mod plan_review;
mod executor;
mod commitments;
mod verify;
mod review;
mod conclude;
mod parts;
mod error;
pub mod clock;
pub mod journal;
mod conversation;
mod history;
mod context;
mod interrupt;
mod notices;
mod sandbox_events;
mod memory;
mod environment;
mod prompt;
mod report;
pub mod trace;
mod log;
pub mod spans;
#[cfg(test)]
mod testing;

pub use billing::budget;
pub use clock::{Clock, SystemClock};
pub use commitments::held_for as commitments_held;
pub use compaction::Summarizer;
pub use conclude::conclude;
pub use delegation::tree;
pub use environment::TaskEnvironment;
pub use error::Error;
pub use gate::HookTrust;
pub use history::History;
pub use journal::Journal;
pub use memory::MemorySource;
pub use parts::{
    ContractInForce, ModelParts, ModelSource, ModelWish, OpenModel, Parts, Preview, PreviewContent,
    Settings,
};
pub use report::model_error;
pub use run::Agent;
pub use tree::{ProgramCredit, Tree};
