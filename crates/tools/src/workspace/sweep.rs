//! What has changed below a workspace and the directories added to it since a moment, by the time that their file
//! systems keep.
//!
//! Invariants:
//! - The time is the one of a change of status, which no program sets as it likes.
//! - A change counts also where the clock of the file system has not moved since the mark: it moves in steps of some
//!   milliseconds.
//! - Like a scan it opens one name at a time and follows no link. Unlike a scan it sees what git ignores, and of
//!   `.git` what decides about a command: refs, configuration, hooks.
//! - Bounded in entries and in time; it says when it has not seen everything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use windlass_core::layout::{IGNORE_FILE, Ownership};

use super::Workspace;
use super::walk::{Parents, Root, open_beneath};

/// Entries that are looked at; about as many as the largest repositories have.
const MAX_ENTRIES: usize = 500_000;
/// A person waits meanwhile.
const MAX_TIME: Duration = Duration::from_secs(3);
/// How long the next step of a file system's clock is awaited. Most take 1 to 10 ms; where one takes longer, what was
/// changed shortly before the mark counts too, and a person is asked once more than needed.
const MAX_STEP: Duration = Duration::from_millis(30);
/// How often it is looked whether the clock has moved.
const STEP_POLL: Duration = Duration::from_micros(500);
/// How deep directories may nest; each level holds a descriptor.
const MAX_DEPTH: usize = 128;
/// How many changes are named; a person reads them.
const MAX_NAMED: usize = 8;
/// The file that tells the time where files without a name are not known.
const MARK: &str = ".windlass-time.tmp";
/// What git itself keeps up to date while somebody only looks.
const KEPT_BY_GIT: &[&str] = &["objects", "logs", "index", "index.lock"];

/// What was found to be different.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Paths in full; a directory, with a slash at its end, where something in it is gone.
    pub changed: Vec<String>,
    /// How many more there are.
    pub more: usize,
    /// Whether it gave up before it had seen everything.
    pub gave_up: bool,
}

/// What changes below a workspace.
#[derive(Clone, Copy)]
pub struct Changes<'w> {
    workspace: &'w Workspace,
}

impl Workspace {
    /// What changes in it and in the directories added to it.
    pub fn changes(&self) -> Changes<'_> {
        Changes { workspace: self }
    }
}

impl Changes<'_> {
    /// A time by the file system of each tree whose files an agent may change, at which everything that changes from now on
    /// has changed, or later.
    pub fn marks(self) -> BTreeMap<String, i64> {
        let trees = self.trees().into_iter();
        trees.filter_map(|(top, handle)| Some((top, next_time_of(&handle)?))).collect()
    }

    /// What has changed since these times, beside the task's own files and those that `is_known`.
    pub fn since(self, marks: &BTreeMap<String, i64>, is_known: &dyn Fn(&str) -> bool) -> Sweep {
        let ends = Instant::now() + MAX_TIME;
        let mut found = Sweep::default();
        let mut seen = 0;
        for (top, handle) in self.trees() {
            // Where nothing can be made, nothing is changed by what works here.
            let Some(&mark) = marks.get(&top) else { continue };
            // A clock that was set back says nothing.
            found.gave_up |= time_of(&handle).is_some_and(|now| now < mark);
            let workspace = self.workspace;
            let is_main = top == workspace.layout().top();
            let mut search =
                Search { workspace, top: &top, is_main, mark, ends, is_known, seen, found };
            let _ = search.directory(&handle, "", MAX_DEPTH);
            (found, seen) = (search.found, search.seen);
        }
        found
    }

    /// The workspace and the directories added to it, each with its path in full.
    fn trees(self) -> Vec<(String, OwnedFd)> {
        let workspace = self.workspace;
        let added = workspace.places.added.iter().map(|added| added.path.clone());
        let tops = std::iter::once(workspace.layout().top().to_owned()).chain(added);
        let open = |top: String| {
            let spot = workspace.walk(&top, Parents::MustExist).ok()?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let handle = open_beneath(&spot.directory, &spot.name, flags).ok()?;
            matches!(spot.place, Root::Workspace | Root::Added(_)).then_some((top, handle))
        };
        tops.filter_map(open).collect()
    }
}

/// The time that a file gets that is made now. It has no name where the file system knows such files, and loses its name
/// at once elsewhere.
fn time_of(directory: &OwnedFd) -> Option<i64> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let made = rustix::fs::openat(directory, ".", flags | OFlags::TMPFILE, mode).or_else(|_| {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let made = rustix::fs::openat(directory, MARK, flags, mode)?;
        rustix::fs::unlinkat(directory, MARK, AtFlags::empty()).map(|()| made)
    });
    made.and_then(rustix::fs::fstat).ok().map(|stat| changed_at(&stat))
}

/// The time at the beginning of a step of the clock: what was changed before has an earlier one, and what is changed
/// from now on has this one or a later one.
fn next_time_of(directory: &OwnedFd) -> Option<i64> {
    let (first, ends) = (time_of(directory)?, Instant::now() + MAX_STEP);
    let mut now = first;
    while now == first && Instant::now() < ends {
        std::thread::sleep(STEP_POLL);
        now = time_of(directory)?;
    }
    Some(now)
}

/// When a file was last changed, in nanoseconds.
fn changed_at(stat: &Stat) -> i64 {
    let nanos = i64::try_from(stat.st_ctime_nsec).unwrap_or_default();
    stat.st_ctime.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// One tree that is gone over.
struct Search<'a> {
    workspace: &'a Workspace,
    top: &'a str,
    is_main: bool,
    mark: i64,
    ends: Instant,
    is_known: &'a dyn Fn(&str) -> bool,
    seen: usize,
    found: Sweep,
}

impl Search<'_> {
    /// Looks at what is in a directory. Whether any name in it has changed since the mark.
    fn directory(&mut self, handle: &OwnedFd, inner: &str, depth: usize) -> ControlFlow<(), bool> {
        let Ok(entries) = Dir::read_from(handle) else { return ControlFlow::Continue(true) };
        let mut any_newer = false;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_ENTRIES || Instant::now() > self.ends {
                self.found.gave_up = true;
                return ControlFlow::Break(());
            }
            // What is gone by now leaves its directory changed.
            let Ok(stat) = rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let is_newer = changed_at(&stat) >= self.mark;
            any_newer |= is_newer;
            let name = name.to_string_lossy();
            let path = if inner.is_empty() { name.into_owned() } else { format!("{inner}/{name}") };
            if self.is_left_out(&path) {
                continue;
            }
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                if is_newer {
                    self.note(&path);
                }
                continue;
            }
            let name = path.rsplit('/').next().unwrap_or(&path);
            let Ok(next) = open_beneath(handle, name, OFlags::RDONLY | OFlags::DIRECTORY) else {
                continue;
            };
            if depth == 0 {
                self.found.gave_up = true;
                continue;
            }
            // A change of what is in it is named by that.
            let is_named = self.directory(&next, &path, depth - 1)?;
            if is_newer && !is_named {
                self.note(&format!("{path}/"));
            }
        }
        ControlFlow::Continue(any_newer)
    }

    fn note(&mut self, inner: &str) {
        let path = format!("{}/{inner}", self.top.trim_end_matches('/'));
        if (self.is_known)(&path) {
            return;
        }
        match self.found.changed.len() < MAX_NAMED {
            true => self.found.changed.push(path),
            false => self.found.more += 1,
        }
    }

    fn is_left_out(&self, inner: &str) -> bool {
        let parts: Vec<&str> = inner.split('/').collect();
        let by_git = parts.iter().position(|part| *part == ".git").is_some_and(|at| {
            let below = &parts[at + 1..];
            let name = below.last().copied().unwrap_or_default();
            !below.contains(&"refs") && KEPT_BY_GIT.contains(&name)
        });
        if by_git {
            return true;
        }
        if !self.is_main {
            let path = format!("{}/{inner}", self.top);
            return self.workspace.hidden_places().refuse_full(&path).is_err();
        }
        let owner = self.workspace.layout().ownership(&parts);
        matches!(owner, Ownership::This { .. } | Ownership::TaskDirectory)
            || inner == IGNORE_FILE.0
            || self.workspace.hidden_places().refuse(&parts, inner).is_err()
    }
}
