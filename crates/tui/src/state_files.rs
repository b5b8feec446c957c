//! What is kept between two runs: drafts by conversation, and the history of messages.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::app::SavedDrafts;
use crate::history::History;

/// Terminals that are open in one directory and have a draft of their own each.
const MOST_TERMINALS: usize = 16;

/// A place for the drafts of one terminal. While it is held no other terminal takes it.
#[derive(Debug, Default)]
pub struct Claim {
    pub name: String,
    /// The file that is locked, and where it is.
    lock: Option<(File, PathBuf)>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Where there are drafts, the file stays beside them.
        if let Some((_, path)) =
            self.lock.take_if(|(_, path)| !path.with_extension("json").exists())
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

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

    /// A place for the drafts of a terminal in a directory or a conversation: one where a terminal that has gone has
    /// left some, else the first that is free.
    pub fn claim(&self, owner: &str) -> Claim {
        let mut free = None;
        for number in 0..MOST_TERMINALS {
            let name = match number {
                0 => owner.to_owned(),
                // No path of a directory has this in it.
                number => format!("{owner}//{number}"),
            };
            let path = self.path(&name);
            let place = path.with_extension("lock");
            let Ok(lock) = File::options().create(true).append(true).open(&place) else { continue };
            if lock.try_lock().is_err() {
                continue;
            }
            let claim = Claim { name, lock: Some((lock, place)) };
            if path.exists() {
                return claim;
            }
            free.get_or_insert(claim);
        }
        free.unwrap_or_else(|| Claim { name: owner.to_owned(), lock: None })
    }

    /// The drafts under a name; what cannot be read is none.
    pub fn drafts(&self, name: &str) -> SavedDrafts {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes drafts in one step: half a draft would be none.
    pub fn save(&self, name: &str, saved: &SavedDrafts) -> io::Result<()> {
        let path = self.path(name);
        if saved.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(saved).map_err(io::Error::other)?)?;
        std::fs::rename(&new, &path)
    }

    /// A file for the person's editor.
    pub fn edit_file(&self) -> PathBuf {
        self.directory.join(format!("message-{}.md", std::process::id()))
    }

    fn path(&self, name: &str) -> PathBuf {
        let mut plain = String::new();
        for char in name.chars() {
            match char {
                '/' => plain.push('-'),
                '_' => plain.push('_'),
                char if char.is_ascii_alphanumeric() => plain.push(char),
                // `/shop-old` is not `/shop/old`.
                char => plain += &format!("~{:x}~", u32::from(char)),
            }
        }
        // A long path keeps its end, which says most.
        let plain = windlass_core::text::suffix(&plain, 180);
        self.directory.join("drafts").join(format!("{plain}.json"))
    }
}
