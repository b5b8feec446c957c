//! A command that the person runs with `!`, while it runs.

use std::time::Duration;

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCommand {
    pub command: String,
    /// How long it runs.
    pub time: Duration,
    /// The last line that it has printed.
    pub last_line: Option<String>,
    /// Whether the person has cancelled it.
    pub is_stopping: bool,
}
