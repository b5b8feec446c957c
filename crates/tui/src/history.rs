//! Messages that were sent before: kept in a file, gone through with the arrow keys, searched with Ctrl+R.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use crate::composer::Draft;

/// Messages that are kept.
const MOST: usize = 1000;
/// Bytes of them that are kept; the newest is, however long it is.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What was sent or put away, the newest last.
#[derive(Clone, Debug, Default)]
pub struct History {
    sent: Vec<String>,
    bytes: usize,
    /// What is not in the file yet.
    unkept: Vec<String>,
    /// Where the arrow keys are, and what was written before they were used.
    browsing: Option<(usize, Draft)>,
}

impl History {
    pub fn of(sent: Vec<String>) -> Self {
        let bytes = sent.iter().map(String::len).sum();
        let mut history = Self { sent, bytes, ..Self::default() };
        history.drop_oldest();
        history
    }

    /// Reads the file; one that cannot be read is an empty history.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<String>(line).ok());
        let mut sent: Vec<String> = lines.collect();
        sent.dedup();
        Self::of(sent)
    }

    /// Adds what was sent or put away, unless it is the same as the last.
    pub fn push(&mut self, text: &str) {
        if text.trim().is_empty() || self.sent.last().is_some_and(|last| last == text) {
            return;
        }
        self.bytes += text.len();
        self.sent.push(text.to_owned());
        self.unkept.push(text.to_owned());
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        while self.sent.len() > MOST || (self.bytes > MAX_BYTES && self.sent.len() > 1) {
            self.bytes -= self.sent.remove(0).len();
        }
    }

    /// What is to be added to the file.
    pub fn take_unkept(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unkept)
    }

    /// The message before the one that is shown; `draft` is what is written now.
    pub fn older(&mut self, draft: &Draft) -> Option<Draft> {
        let (at, first) = match self.browsing.take() {
            Some((at, first)) => (at.checked_sub(1), first),
            None => (self.sent.len().checked_sub(1), draft.clone()),
        };
        let found = at.and_then(|at| self.sent.get(at).map(|text| (at, Draft::of(text))));
        match found {
            Some((at, text)) => {
                self.browsing = Some((at, first));
                Some(text)
            }
            None => {
                // The oldest one is shown already.
                self.browsing = (!self.sent.is_empty()).then_some((0, first));
                None
            }
        }
    }

    /// The message after the one that is shown, at last what was written before.
    pub fn newer(&mut self) -> Option<Draft> {
        let (at, first) = self.browsing.take()?;
        match self.sent.get(at + 1) {
            Some(text) => {
                let text = Draft::of(text);
                self.browsing = Some((at + 1, first));
                Some(text)
            }
            None => Some(first),
        }
    }

    /// What is shown is now one's own; returns what was written before the arrow keys were used.
    pub fn stop_browsing(&mut self) -> Option<Draft> {
        self.browsing.take().map(|(_, first)| first)
    }

    /// What was written before the arrow keys were used.
    pub fn first(&self) -> Option<&Draft> {
        self.browsing.as_ref().map(|(_, first)| first)
    }

    /// The newest message with these words, skipping so many.
    pub fn search(&self, words: &str, skip: usize) -> Option<&str> {
        let words = words.to_lowercase();
        let mut seen: Vec<&str> = Vec::new();
        for text in self.sent.iter().rev() {
            if text.to_lowercase().contains(&words) && !seen.contains(&text.as_str()) {
                seen.push(text);
                if seen.len() > skip {
                    return Some(text);
                }
            }
        }
        None
    }
}

/// Adds a message to the file.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    let line = serde_json::to_string(text).map_err(io::Error::other)?;
    let mut file = File::options().create(true).append(true).open(path)?;
    writeln!(file, "{line}")
}
