//! What is written, kept in files so that a crash loses nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use windlass_core::id::SessionId;

use crate::app::{App, SavedDrafts};
use crate::composer::Draft;
use crate::history::History;
use crate::host::Options;
use crate::state_files::{Claim, StateFiles};

/// Drafts are written when nothing was typed for so long.
const PAUSE: Duration = Duration::from_millis(150);

/// The drafts of this terminal.
pub(super) struct Drafts {
    files: StateFiles,
    /// The place for those of the directory, for a conversation that has none yet.
    directory: Claim,
    /// The place for those of the conversation: a second terminal on it has another one.
    session: Claim,
    saved: SavedDrafts,
    save_by: Option<Instant>,
    /// Whether the last try to keep them failed; said once.
    is_failing: bool,
}

impl Drafts {
    pub fn open(options: &Options) -> std::io::Result<Self> {
        let files = StateFiles::open(&options.state)?;
        Ok(Self {
            directory: files.claim(&options.workspace.display().to_string()),
            session: Claim::default(),
            files,
            saved: SavedDrafts::default(),
            save_by: None,
            is_failing: false,
        })
    }

    /// The drafts are those of another directory now.
    pub fn enter(&mut self, directory: &Path) {
        self.directory = Claim::default();
        self.directory = self.files.claim(&directory.display().to_string());
    }

    /// Keeps a message for its conversation, which is not shown any more.
    pub fn put_back(&self, session: SessionId, draft: Draft) {
        let mut saved = self.files.drafts(&session.to_string());
        saved.put_back(draft);
        if let Err(error) = self.files.save(&session.to_string(), &saved) {
            tracing::warn!(%error, "the message could not be kept");
        }
    }

    /// A message of a conversation that is not shown any more has arrived.
    pub fn arrived(&self, session: SessionId) {
        let mut saved = self.files.drafts(&session.to_string());
        saved.arrived();
        if let Err(error) = self.files.save(&session.to_string(), &saved) {
            tracing::warn!(%error, "the drafts could not be kept");
        }
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
    pub fn load(&mut self, session: SessionId) -> SavedDrafts {
        // Given up first, so that it can be had again.
        self.session = Claim::default();
        self.session = self.files.claim(&session.to_string());
        let of_session = self.files.drafts(&self.session.name);
        let is_new = of_session.is_empty();
        self.saved = if is_new { self.files.drafts(&self.directory.name) } else { of_session };
        self.saved.clone()
    }

    pub fn save_soon(&mut self) {
        self.save_by.get_or_insert(Instant::now() + PAUSE);
    }

    /// When they are to be written.
    pub fn wake(&self) -> Option<Instant> {
        self.save_by
    }

    pub fn save_when_due(&mut self, app: &App) -> Option<String> {
        self.save_by.take_if(|by| *by <= Instant::now())?;
        self.save(app)
    }

    /// Writes them; says why they could not be kept, the first time.
    pub fn save(&mut self, app: &App) -> Option<String> {
        let saved = SavedDrafts::of(app);
        if saved == self.saved && !self.is_failing {
            return None;
        }
        let kept = self
            .files
            .save(&self.session.name, &saved)
            .and_then(|()| self.files.save(&self.directory.name, &SavedDrafts::for_directory(app)));
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

    /// Reads what the editor has left.
    pub fn take_edit_file(&self, path: &Path) -> Option<String> {
        let text = std::fs::read_to_string(path).ok();
        let _ = std::fs::remove_file(path);
        text
    }
}
