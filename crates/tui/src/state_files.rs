//! What is kept between two runs: drafts by conversation, and the history of messages.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::app::Saved;
use crate::history::History;

/// Where it is kept.
#[derive(Clone, Debug)]
pub struct StateFiles {
    directory: PathBuf,
}

impl StateFiles {
    /// Makes the directory, readable by its owner alone: drafts are private.
    pub fn open(directory: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory.join("drafts"))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// What libraries print while the terminal is open.
    pub fn log(&self) -> PathBuf {
        self.directory.join("terminal.log")
    }

    pub fn history(&self) -> History {
        History::read(&self.directory.join("history.jsonl"))
    }

    pub fn remember(&self, text: &str) -> io::Result<()> {
        crate::history::append(&self.directory.join("history.jsonl"), text)
    }

    /// The drafts under a name; what cannot be read is none.
    pub fn drafts(&self, name: &str) -> Saved {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes drafts in one step: half a draft would be none.
    pub fn save(&self, name: &str, saved: &Saved) -> io::Result<()> {
        let path = self.path(name);
        if saved.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = std::fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(saved).map_err(io::Error::other)?)?;
        std::fs::rename(&new, &path)
    }

    /// A file for the person's editor.
    pub fn edit_file(&self) -> PathBuf {
        self.directory.join(format!("message-{}.md", std::process::id()))
    }

    fn path(&self, name: &str) -> PathBuf {
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
            .collect();
        // A long path keeps its end, which says most.
        let plain = windlass_core::text::suffix(&plain, 180);
        self.directory.join("drafts").join(format!("{plain}.json"))
    }
}
