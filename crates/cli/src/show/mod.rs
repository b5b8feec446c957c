//! What a person reads: progress and notes on stderr, results on stdout.
//!
//! Invariant: text that comes from a model, a tool or a file is made [`plain`] before it is shown, so
//! that nothing but windlass itself ever controls the terminal.

mod plain;
mod look;
mod markdown;
mod words;
mod meter;
mod screen;
mod table;
pub mod pages;

use std::io::{self, Write as _};

pub use look::{Look, Paint};
pub use markdown::render as markdown;
pub use meter::Gauge;
pub use plain::plain;
pub use screen::Screen;
pub use table::Table;

use crate::failure::Failure;

/// Prints a result. A reader that has gone away is no error of ours.
pub fn out(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints a remark.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints an error with its causes and what to do next.
pub fn error(failure: &Failure) {
    let paint = Look::here().notes;
    note(&format!("{} {}", paint.red("error:"), plain(&failure.error.to_string())));
    for cause in failure.error.chain().skip(1) {
        note(&format!("  caused by: {}", plain(&cause.to_string())));
    }
    if let Some(hint) = failure.hint.as_ref().filter(|hint| !hint.is_empty()) {
        note(&format!("\n{} {}", paint.bold("hint:"), plain(hint)));
    }
}
