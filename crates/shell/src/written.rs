//! Files that a text writes before it may run them.

use std::collections::BTreeMap;

use super::syntax::Append;

/// What a written file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Known(String),
    Unknown,
}

/// The files written so far, by absolute path.
#[derive(Default)]
pub(super) struct WrittenFiles(BTreeMap<String, Contents>);

impl WrittenFiles {
    /// Remembers that a file is written, with text that is not known unless it was before.
    pub(super) fn mark(&mut self, path: String) {
        self.0.entry(path).or_insert(Contents::Unknown);
    }

    /// Remembers what a command writes into a file.
    pub(super) fn write(&mut self, path: String, append: Append, text: Option<&str>) {
        let new = match (append, self.0.remove(&path), text) {
            (Append::No, _, Some(text)) => Contents::Known(text.to_owned()),
            (Append::Yes, Some(Contents::Known(old)), Some(text)) => {
                Contents::Known(format!("{old}\n{text}"))
            }
            (Append::No, _, None) | (Append::Yes, ..) => Contents::Unknown,
        };
        self.0.insert(path, new);
    }

    /// What the first of these files holds that was written.
    pub(super) fn find(&self, paths: &[Option<String>]) -> Option<&Contents> {
        paths.iter().flatten().find_map(|path| self.0.get(path))
    }
}
