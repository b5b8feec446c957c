//! The nouns and the pure rules of Windlass. No I/O, no async: data in, data out.

pub mod id;
pub mod axes;
pub mod status;
pub mod message;
pub mod command;
pub mod tool_name;
pub mod outcome;
pub mod plan;
pub mod schedule;
pub mod question;
pub mod injection;
pub mod trigger;
pub mod error;
pub mod compaction;
pub mod layout;
pub mod event;
pub mod compaction_state;
pub mod spending;
pub mod state;
pub mod ending;
pub mod readiness;
pub mod guard;
pub mod policy;
pub mod text;
pub mod shown;
pub mod secrets;
