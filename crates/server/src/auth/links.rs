//! Login links: each has a code that works once, for a short time. An open link is a file in the data directory that
//! is named by the hash of its code, so that any process of the owner can make one, with no server to ask. Whoever
//! removes the file has used the link: only one can.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::token::{self, TokenHash};

/// How long a link works.
pub const LINK_SECONDS: i64 = 10 * 60;

/// Links of one user that may be open at once. Nobody keeps another from signing in.
const MAX_LINKS: usize = 20;

/// The open links of a data directory.
pub struct Links {
    directory: PathBuf,
}

impl Links {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// A new code for a user. A user with too many open ones gets [`io::ErrorKind::QuotaExceeded`].
    pub fn make(&self, user: &str, now: Timestamp) -> io::Result<String> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        if self.remove_old(user, now)? >= MAX_LINKS {
            let full = format!("`{user}` has {MAX_LINKS} open login links; one ends in minutes");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, full));
        }
        let code = token::random()?;
        let until = now.as_second() + LINK_SECONDS;
        let path = self.directory.join(TokenHash::of(&code).to_string());
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(format!("{until} {user}").as_bytes())?;
        Ok(code)
    }

    /// The user of a code, which is used up.
    pub fn take(&self, code: &str, now: Timestamp) -> Option<String> {
        // A name of our own making: nothing of what was sent is in the path.
        let path = self.directory.join(TokenHash::of(code).to_string());
        let (until, user) = read(&path)?;
        fs::remove_file(&path).ok()?;
        (until > now.as_second()).then_some(user)
    }

    /// Removes what nobody can use any more; returns how many a user has left.
    fn remove_old(&self, user: &str, now: Timestamp) -> io::Result<usize> {
        let mut left = 0;
        for entry in fs::read_dir(&self.directory)?.flatten() {
            match read(&entry.path()) {
                Some((until, of)) if until > now.as_second() => left += usize::from(of == user),
                // One that is being written has no text yet; it is not removed by a neighbour in a hurry.
                None if is_empty(&entry.path()) => {}
                Some(_) | None => drop(fs::remove_file(entry.path())),
            }
        }
        Ok(left)
    }
}

fn read(path: &Path) -> Option<(i64, String)> {
    let text = fs::read_to_string(path).ok()?;
    let (until, user) = text.split_once(' ')?;
    Some((until.parse().ok()?, user.to_owned()))
}

fn is_empty(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_link_works_once_and_for_ten_minutes() {
        let directory = tempfile::tempdir().unwrap();
        let links = || Links::new(directory.path().join("logins"));
        let code = links().make("ada lovelace", at(0)).unwrap();
        assert_eq!(links().take("0000", at(1)), None);
        assert_eq!(links().take("../token", at(1)), None);
        assert_eq!(links().take(&code, at(1)).as_deref(), Some("ada lovelace"));
        assert_eq!(links().take(&code, at(1)), None);
        let late = links().make("ada", at(0)).unwrap();
        assert_eq!(links().take(&late, at(LINK_SECONDS)), None);
    }

    #[test]
    fn links_that_nobody_used_do_not_pile_up() {
        let directory = tempfile::tempdir().unwrap();
        let links = Links::new(directory.path().to_owned());
        for _ in 0..MAX_LINKS {
            links.make("ada", at(0)).unwrap();
        }
        let full = links.make("ada", at(1)).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::QuotaExceeded);
        links.make("bob", at(1)).unwrap();
        links.make("ada", at(LINK_SECONDS + 1)).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
