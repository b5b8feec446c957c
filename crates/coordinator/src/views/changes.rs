//! Files that a task has changed, as surfaces show them.

/// A file that was changed, and by how much.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ChangedFile {
    /// Relative to the workspace.
    pub path: String,
    /// Whether there was no such file before.
    pub is_new: bool,
    /// Lines that came and lines that went; `None` where a version is not text, too large, or no longer kept.
    pub lines: Option<(usize, usize)>,
}

/// A file that was changed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub file: ChangedFile,
    /// A unified diff; `None` as above.
    pub diff: Option<String>,
}
