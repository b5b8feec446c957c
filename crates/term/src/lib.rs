//! Rendering for terminals, shared by the plain output of `cli` and the interactive terminal: text in,
//! lines out. Nothing here prints or waits.
//!
//! Invariants:
//! - Text that comes from a model, a tool or a file becomes part of a line only through [`strip_controls`] or
//!   core's `shown`, so that only windlass itself controls the terminal.
//! - What a person decides by, and every name, passes `shown`, which drops nothing.

mod strip_controls;
pub mod columns;
pub mod link;
mod line_editor;
pub mod style;
pub mod wrap;
mod table;
pub mod markdown;
pub mod diff;
pub mod numbers;
mod detail;
pub mod tool_lines;
pub mod reasoning;
pub mod question;
pub mod event_lines;
pub mod usage_line;
pub mod progress;

pub use detail::Detail;
pub use line_editor::{EditOutcome, LineEditor};
pub use progress::Progress;
pub use strip_controls::strip_controls;
pub use style::{Paint, TerminalStyle};
pub use table::Table;
pub use usage_line::{StatusPart, UsageLine};
