//! The interactive terminal: a conversation inline in the terminal's own scrollback, and pages over it.
//!
//! A pure model ([`app`]: inputs in, effects out), pure views ([`view`]: state in, rows out), a thin writer
//! ([`screen`]) and one loop around them that talks to the terminal and to the coordinator.

pub mod keys;
pub mod keymap;
pub mod text;
pub mod composer;
pub mod history;
pub mod completion;
pub mod queue;
pub mod dialog;
pub mod mode_line;
pub mod story;
pub mod transcript;
pub mod overlay;
pub mod app;
pub mod view;
pub mod screen;
pub mod replies;
pub mod state_files;
pub mod terminal;
pub mod host;
mod ui;

pub use ui::{ExitReport, Failed, run};

/// Time since the terminal was opened.
pub type Moment = std::time::Duration;
