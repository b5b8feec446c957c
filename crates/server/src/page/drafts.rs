//! Drafts and open panels of people, kept on the server so that they follow a person from desk to phone.
//!
//! A draft is a small file in the data directory, by the session and a hash of who writes.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use windlass_core::id::{SessionId, TaskId};

/// Bytes of a draft; more is refused.
pub const MAX_BYTES: usize = 256 * 1024;
/// Drafts of one person that are kept; the oldest go.
const MAX_DRAFTS: usize = 500;

/// What the name of a panel begins with.
const PANEL: &str = "panel-";
/// What the name of comments on a task's changes begins with.
const REVIEW: &str = "review-";

/// What a draft is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A session that does not exist yet.
    NewSession,
    Session(SessionId),
    /// Not words: whether the reader has opened what is beside a session, on a narrow screen.
    Panel(SessionId),
    /// Comments on what a task has changed, as the script of the page writes them.
    Review(TaskId),
}

impl Purpose {
    /// What an address names; `None` for nothing that has drafts.
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "new" => Some(Self::NewSession),
            other => match (other.strip_prefix(PANEL), other.strip_prefix(REVIEW)) {
                (Some(id), _) => id.parse().ok().map(Self::Panel),
                (_, Some(id)) => id.parse().ok().map(Self::Review),
                (None, None) => other.parse().ok().map(Self::Session),
            },
        }
    }
}

/// The drafts of everybody.
#[derive(Clone, Debug)]
pub struct Drafts(PathBuf);

impl Drafts {
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// What somebody has begun to write; empty for nothing.
    pub fn read(&self, user: &str, purpose: Purpose) -> String {
        fs::read_to_string(self.path(user, purpose)).unwrap_or_default()
    }

    /// Keeps what somebody has begun to write; an empty text is not kept.
    pub fn write(&self, user: &str, purpose: Purpose, text: &str) -> io::Result<()> {
        let path = self.path(user, purpose);
        if text.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        // Written beside and renamed, so that a reader finds the old text or the new one.
        let part = path.with_extension("part");
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&part, &path)?;
        self.remove_oldest(user)
    }

    fn remove_oldest(&self, user: &str) -> io::Result<()> {
        let age = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
        let end = name_end(user);
        let entries = fs::read_dir(&self.0)?.flatten().map(|entry| entry.path());
        let entries = entries.filter(|path| path.to_string_lossy().ends_with(&end));
        let mut files: Vec<_> = entries.map(|path| (age(&path), path)).collect();
        files.sort();
        let many = files.len().saturating_sub(MAX_DRAFTS);
        files.iter().take(many).try_for_each(|(_, path)| fs::remove_file(path))
    }

    fn path(&self, user: &str, purpose: Purpose) -> PathBuf {
        let name = match purpose {
            Purpose::NewSession => "new".to_owned(),
            Purpose::Session(id) => id.to_string(),
            Purpose::Panel(id) => format!("{PANEL}{id}"),
            Purpose::Review(id) => format!("{REVIEW}{id}"),
        };
        self.0.join(name + &name_end(user))
    }
}

/// What the names of a person's drafts end in.
fn name_end(user: &str) -> String {
    let mut hasher = DefaultHasher::new();
    user.hash(&mut hasher);
    format!("_{:016x}.txt", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_its_writers_own_until_it_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(directory.path().join("drafts"));
        let session = Purpose::Session(SessionId::derived("a", "b"));
        drafts.write("ada", session, "half a sen").unwrap();
        assert_eq!(drafts.read("ada", session), "half a sen");
        assert_eq!(drafts.read("bob", session), "");
        assert_eq!(drafts.read("ada", Purpose::NewSession), "");
        drafts.write("ada", session, "").unwrap();
        drafts.write("ada", session, "").unwrap();
        assert_eq!(drafts.read("ada", session), "");
    }

    #[test]
    fn the_oldest_drafts_of_their_writer_go() {
        let directory = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(directory.path().to_owned());
        drafts.write("bob", Purpose::NewSession, "bob's").unwrap();
        for number in 0..MAX_DRAFTS + 3 {
            let session = SessionId::derived(&number.to_string(), "session");
            drafts.write("ada", Purpose::Session(session), "x").unwrap();
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), MAX_DRAFTS + 1);
        assert_eq!(drafts.read("bob", Purpose::NewSession), "bob's");
    }
}
