//! A short remark in the bottom line, for a few seconds.

use std::time::Duration;

use crate::Moment;

/// How long a notice is shown.
const SHOWN: Duration = Duration::from_secs(4);

/// What is remarked now.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Notice {
    said: Option<(String, Moment)>,
}

impl Notice {
    pub fn text(&self) -> Option<&str> {
        self.said.as_ref().map(|(text, _)| text.as_str())
    }

    /// An error may come with a hint on a line of its own; the bottom line is one row.
    pub(super) fn say(&mut self, text: impl Into<String>, now: Moment) {
        let text = text.into();
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        self.said = Some((lines.join("; "), now + SHOWN));
    }

    pub(super) fn clear(&mut self) {
        self.said = None;
    }

    /// When it disappears.
    pub(super) fn until(&self) -> Option<Moment> {
        self.said.as_ref().map(|(_, until)| *until)
    }

    pub(super) fn expire(&mut self, now: Moment) {
        self.said.take_if(|(_, until)| *until <= now);
    }
}
