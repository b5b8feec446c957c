//! Writing a file so that there is the old content or the new, whole and on the disk, and nothing else.
//!
//! Invariants:
//! - Never in place: the new content goes to a temporary file beside the target, is synced, and takes the
//!   target's name. A file that is hard-linked from elsewhere keeps its old content there, so a link to
//!   a file outside cannot be used to change it.
//! - Durable before it is reported: file and directory are synced before `replace` returns.
//! - The temporary name comes from the call, so what a crash leaves behind is found and removed.
//! - Agents of this process take turns at a file: between the last look at it and the rename nobody else of ours
//!   writes it, so an edit that is reported as made is in the file.
//! - What is written on behalf of the harness lands among the task's own files, wherever links lead that an agent left
//!   there: nobody is asked about it.
//! - For other programs there is a gap there that no file system closes: their write to a file that exists is lost in
//!   those moments. A file that they make is not.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read, Write as _};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use windlass_core::id::CallId;
use windlass_core::outcome::FileChange;

use super::protect::{self, Purpose};
use super::walk::{Parents, Root, Spot};
use super::{Error, Workspace};

/// One lock for many files: two that share one merely wait for each other.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// A whole new content for one file.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    /// The call that makes it; names the temporary file.
    pub call: CallId,
    /// Where: the path that `write_target` gave, links resolved.
    pub path: &'a str,
    /// Hash of the content that is expected there; `None` for no file.
    pub before: Option<&'a str>,
    /// The new content.
    pub content: &'a [u8],
    /// On whose behalf.
    pub purpose: Purpose,
}

/// Whether a change that was under way at a crash has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeState {
    /// The file is as after the change.
    Applied,
    /// The file is as before the change.
    NotApplied,
    /// The file is something else: both, and then another change, or neither.
    Unknown,
}

impl Workspace {
    /// Replaces a file's whole content, or makes the file and the directories above it.
    pub fn replace(&self, new: Replacement<'_>) -> Result<(), Error> {
        let mut spot = self.walk(new.path, Parents::Create(new.purpose))?;
        self.refuse_writing(&spot, new.purpose)?;
        // Decided for one file, and a link has since been put into its path.
        if new.purpose != Purpose::Harness && spot.path() != new.path {
            return Err(Error::Changed { path: new.path.to_owned() });
        }
        let _turn = turn_at(&spot)?;
        let old = stat_file(&spot)?;
        // Somebody may have made the file while this one waited for its turn.
        spot.file_type = old.as_ref().map(|old| FileType::from_raw_mode(old.st_mode));
        if spot.hash()?.as_deref() != new.before {
            return Err(Error::Changed { path: spot.path() });
        }
        let temporary = temporary_name(new.call);
        let written = write_beside(&spot, &temporary, old.as_ref(), new.content);
        match &written {
            Ok(()) if spot.place == Root::Workspace => {
                self.rule_files().accept(&spot.parts().join("/"))
            }
            Ok(()) => {}
            Err(_) => {
                let name = temporary.as_str();
                let _ = rustix::fs::unlinkat(&spot.directory, name, AtFlags::empty());
            }
        }
        written
    }

    /// Puts a stream into a file of the harness's own. Not synced: such files can be made again.
    pub fn keep(&self, call: CallId, path: &str, content: &mut dyn Read) -> Result<(), Error> {
        let spot = self.walk(path, Parents::Create(Purpose::Harness))?;
        self.refuse_writing(&spot, Purpose::Harness)?;
        stat_file(&spot)?;
        let failed = |errno| Error::at(&spot.path(), errno);
        let temporary = temporary_name(call);
        let mut file = File::from(create_new(&spot, &temporary).map_err(failed)?);
        let kept = std::io::copy(content, &mut file)
            .map_err(|source| Error::Io { path: spot.path(), source })
            .and_then(|_| {
                give_to_owner_of(&spot.directory, &temporary);
                let name = spot.name.as_str();
                rustix::fs::renameat(&spot.directory, temporary.as_str(), &spot.directory, name)
                    .map_err(failed)
            });
        if kept.is_err() {
            let _ = rustix::fs::unlinkat(&spot.directory, temporary.as_str(), AtFlags::empty());
        }
        kept
    }

    /// Finds out whether a change that a crash interrupted has happened, and removes its leftovers.
    pub fn recover(&self, call: CallId, change: &FileChange) -> Result<ChangeState, Error> {
        let now = match self.walk(&change.path, Parents::MustExist) {
            Ok(spot) => {
                let temporary = temporary_name(call);
                match rustix::fs::unlinkat(&spot.directory, temporary.as_str(), AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(Error::at(&spot.path(), errno)),
                }
                spot.hash()?
            }
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(if now.as_ref() == Some(&change.after) {
            ChangeState::Applied
        } else if now == change.before {
            ChangeState::NotApplied
        } else {
            ChangeState::Unknown
        })
    }

    /// Refuses a spot that `purpose` may not write.
    pub(super) fn refuse_writing(&self, spot: &Spot, purpose: Purpose) -> Result<(), Error> {
        if purpose == Purpose::Harness {
            protect::refuse_elsewhere(spot, &self.places.layout)?;
        }
        self.refuse_writing_to(spot.place, &spot.parts(), purpose, &spot.path())
    }
}

/// The metadata of the regular file at a spot; `None` if there is no file.
fn stat_file(spot: &Spot) -> Result<Option<Stat>, Error> {
    match rustix::fs::statat(&spot.directory, spot.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            match super::content::special(FileType::from_raw_mode(stat.st_mode), &spot.path()) {
                Some(error) => Err(error),
                None => Ok(Some(stat)),
            }
        }
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(Error::at(&spot.path(), errno)),
    }
}

/// Writes the content into a file beside it, which then takes its name.
fn write_beside(
    spot: &Spot,
    temporary: &str,
    old: Option<&Stat>,
    content: &[u8],
) -> Result<(), Error> {
    let failed = |errno| Error::at(&spot.path(), errno);
    let file = File::from(create_new(spot, temporary).map_err(failed)?);
    (&file).write_all(content).map_err(|source| Error::Io { path: spot.path(), source })?;
    match old {
        Some(old) => keep_mode_and_owner(&file, old).map_err(failed)?,
        None => give_to_owner_of(&spot.directory, temporary),
    }
    rustix::fs::fsync(&file).map_err(failed)?;
    match take_name(spot, temporary, old.is_none()) {
        Err(Errno::EXIST) => return Err(Error::Changed { path: spot.path() }),
        taken => taken.map_err(failed)?,
    }
    sync_directory(&spot.directory);
    Ok(())
}

/// Gives a temporary file the name it was made for. A new file takes the place of no other, whoever has made that one, where
/// the file system knows such a rename.
fn take_name(spot: &Spot, temporary: &str, is_new: bool) -> Result<(), Errno> {
    let (directory, name) = (&spot.directory, spot.name.as_str());
    if is_new {
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(directory, temporary, directory, name, flags) {
            Err(Errno::INVAL | Errno::NOSYS) => {}
            taken => return taken,
        }
    }
    rustix::fs::renameat(directory, temporary, directory, name)
}

/// Waits until nobody else of this process writes the file at a spot.
fn turn_at(spot: &Spot) -> Result<MutexGuard<'static, ()>, Error> {
    let directory = rustix::fs::fstat(&spot.directory).map_err(|e| Error::at(&spot.path(), e))?;
    let mut hasher = DefaultHasher::new();
    (directory.st_dev, directory.st_ino, &spot.name).hash(&mut hasher);
    let lock = &TURNS[(hasher.finish() % TURNS.len() as u64) as usize];
    Ok(lock.lock().unwrap_or_else(PoisonError::into_inner))
}

fn temporary_name(call: CallId) -> String {
    format!(".windlass-{call}.tmp")
}

fn create_new(spot: &Spot, name: &str) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || rustix::fs::openat(&spot.directory, name, flags, Mode::from_raw_mode(0o666));
    match create() {
        // Left by a crash of this very call; nobody else has this name.
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(&spot.directory, name, AtFlags::empty())?;
            create()
        }
        other => other,
    }
}

/// An edited script stays executable and whoever owned it still does; set-id bits are dropped.
fn keep_mode_and_owner(file: &File, old: &Stat) -> Result<(), Errno> {
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        rustix::fs::fchown(file, Some(uid), Some(gid))?;
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(old.st_mode & 0o777))
}

/// What root makes in somebody's directory is theirs, as the agent's commands run as them. Without
/// root it is ours already; a file system that refuses is left alone.
pub(super) fn give_to_owner_of(directory: &impl AsFd, name: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    if let Ok(stat) = rustix::fs::statat(directory, ".", AtFlags::SYMLINK_NOFOLLOW) {
        let owner = (Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)));
        let _ = rustix::fs::chownat(directory, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW);
    }
}

/// Makes a new name durable. A directory that may be searched but not read cannot be synced; the file
/// itself is on the disk by then.
pub(super) fn sync_directory(directory: &impl AsFd) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(directory) = rustix::fs::openat(directory, ".", flags, Mode::empty()) {
        let _ = rustix::fs::fsync(&directory);
    }
}
