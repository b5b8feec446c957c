//! What is written, kept in files so that a crash loses nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use windlass_core::id::SessionId;

use crate::app::{App, Saved};
use crate::history::History;
use crate::host::Options;
use crate::state_files::StateFiles;

/// Drafts are written when nothing was typed for so long.
const PAUSE: Duration = Duration::from_millis(150);

/// The drafts of this terminal.
pub(super) struct Drafts {
    files: StateFiles,
    /// The directory's own name for them, for a conversation that has none yet.
    directory: String,
    saved: Saved,
    save_by: Option<Instant>,
    /// Whether the last try to keep them failed; said once.
    is_failing: bool,
}

impl Drafts {
    pub fn open(options: &Options) -> std::io::Result<Self> {
        Ok(Self {
            files: StateFiles::open(&options.state)?,
            directory: options.workspace.display().to_string(),
            saved: Saved::default(),
            save_by: None,
            is_failing: false,
        })
    }

    pub fn log(&self) -> PathBuf {
        self.files.log()
    }

    pub fn history(&self) -> History {
        self.files.history()
    }

    /// A file for the person's editor.
    pub fn edit_file(&self) -> PathBuf {
        self.files.edit_file()
    }

    /// What was written before in a conversation, or else in this directory.
    pub fn load(&mut self, session: SessionId) -> Saved {
        let of_session = self.files.drafts(&session.to_string());
        let is_new = of_session.is_empty();
        self.saved = if is_new { self.files.drafts(&self.directory) } else { of_session };
        self.saved.clone()
    }

    pub fn save_soon(&mut self) {
        self.save_by.get_or_insert(Instant::now() + PAUSE);
    }

    /// When they are to be written.
    pub fn wake(&self) -> Option<Instant> {
        self.save_by
    }

    pub fn save_when_due(&mut self, app: &App, session: SessionId) -> Option<String> {
        self.save_by.take_if(|by| *by <= Instant::now())?;
        self.save(app, session)
    }

    /// Writes them; says why they could not be kept, the first time.
    pub fn save(&mut self, app: &App, session: SessionId) -> Option<String> {
        let saved = Saved::of(app);
        if saved == self.saved && !self.is_failing {
            return None;
        }
        let kept = self
            .files
            .save(&session.to_string(), &saved)
            .and_then(|()| self.files.save(&self.directory, &Saved::for_directory(app)));
        self.saved = saved;
        let was_failing = std::mem::replace(&mut self.is_failing, kept.is_err());
        let error = kept.err().filter(|_| !was_failing)?;
        tracing::warn!(%error, "the draft could not be kept");
        Some(format!("your draft cannot be saved: {error}"))
    }

    pub fn remember(&self, text: &str) {
        if let Err(error) = self.files.remember(text) {
            tracing::warn!(%error, "the message could not be kept in the history");
        }
    }

    /// Writes a text for the editor.
    pub fn write_edit_file(&self, text: &str) -> std::io::Result<PathBuf> {
        let path = self.edit_file();
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Reads what the editor has left, where it ended well.
    pub fn take_edit_file(&self, path: &Path, is_written: bool) -> Option<String> {
        let text = is_written.then(|| std::fs::read_to_string(path).ok()).flatten();
        let _ = std::fs::remove_file(path);
        text
    }
}
