//! Going over the files below a directory, as ripgrep would, without leaving the workspace.
//!
//! Invariants:
//! - Like the walk of a path, it opens one name at a time and follows no link, so it cannot be led out;
//!   the `ignore` crate's own walker goes by paths and could be. Its rules are used, its walking is not.
//! - The order is by name, so that the same files give the same text.
//! - `.git` and our own data are never entered. What is ignored or hidden is entered when asked for, or
//!   when the scan starts there.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use windlass_core::layout::IGNORE_FILE;
use windlass_core::policy::files;

use super::walk::{Parents, Root, Spot, open_beneath};
use super::{Error, OpenFile, Workspace, read_bounded};

/// Entries looked at in one scan; about as many as the largest repositories have.
const MAX_ENTRIES: usize = 500_000;
/// How deep directories may nest; each level holds a descriptor.
const MAX_DEPTH: usize = 128;
/// An ignore file is a page of patterns.
const MAX_RULES_BYTES: u64 = 1 << 20;
/// The files with ignore rules. Later lines win, so the file that should win comes last.
const RULES: [&str; 3] = [".git/info/exclude", ".gitignore", ".ignore"];

/// What a scan shows besides plain files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanFilter {
    /// Names that begin with a dot.
    pub hidden: bool,
    /// What `.gitignore`, `.ignore` or `.git/info/exclude` leave out.
    pub ignored: bool,
}

/// Tells a scan to end: whoever waited for it has gone.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the scan at its next step.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One file or link on the way.
pub struct ScanEntry<'a> {
    /// Its path as an agent writes it.
    pub path: &'a str,
    /// Its path below where the scan started.
    pub below: &'a str,
    /// Its path below the top of its tree.
    inner: &'a str,
    workspace: &'a Workspace,
    directory: &'a OwnedFd,
    name: &'a str,
    file_type: FileType,
    place: Root,
}

impl ScanEntry<'_> {
    /// Its path below the top of its tree.
    pub fn inner(&self) -> &str {
        self.inner
    }

    /// Whether it is a regular file, which can be opened.
    pub fn is_file(&self) -> bool {
        self.file_type == FileType::RegularFile
    }

    /// Whether it holds secrets. A scan that starts at such a file was allowed to see it.
    pub fn is_secret(&self) -> bool {
        let workspace = self.workspace;
        let full = match self.place {
            Root::Workspace => workspace.real.join(self.inner).display().to_string(),
            Root::Added(_) => self.path.to_owned(),
            Root::Skills | Root::Trace => return false,
        };
        files::is_secret(&full)
    }

    pub fn open(&self) -> Result<OpenFile, Error> {
        let at = (self.directory.as_fd(), self.name);
        super::content::open_name(at, self.file_type, self.path.to_owned(), self.place)
    }
}

/// How a scan went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanOutcome {
    /// Directories that could not be read, and names that are not UTF-8.
    pub unreadable: usize,
    /// Whether it gave up at its own limits before it had seen everything.
    pub gave_up: bool,
}

impl Workspace {
    /// Shows `each` every file at or below `start` until it breaks off.
    pub fn scan(
        &self,
        start: &str,
        shown: ScanFilter,
        stop: &Stop,
        each: &mut dyn FnMut(&ScanEntry<'_>) -> ControlFlow<()>,
    ) -> Result<ScanOutcome, Error> {
        let spot = self.walk(start, Parents::MustExist)?;
        let path = spot.path();
        let Some(file_type) = spot.file_type else {
            return Err(Error::NotFound { path });
        };
        if file_type != FileType::Directory {
            let Spot { directory, name, place, .. } = &spot;
            let below = name.as_str();
            let inner = spot.parts().join("/");
            let path = path.as_str();
            let _ = each(&ScanEntry {
                path,
                below,
                inner: &inner,
                workspace: self,
                directory,
                name,
                file_type,
                place: *place,
            });
            return Ok(ScanOutcome::default());
        }
        let mut scan = Scan {
            workspace: self,
            place: spot.place,
            shown,
            stop,
            each,
            seen: 0,
            rules: Vec::new(),
            done: ScanOutcome::default(),
        };
        let directory =
            open_directory(&spot.directory, &spot.name).map_err(|errno| Error::at(&path, errno))?;
        let path = if path == "." { String::new() } else { path };
        let inner = spot.parts().join("/");
        scan.take_rules_above(&inner);
        let here = Here { path: path.trim_end_matches('/'), inner: &inner, below: "" };
        let _ = scan.directory(&directory, here, MAX_DEPTH);
        Ok(scan.done)
    }
}

/// The paths of one directory of a scan.
#[derive(Clone, Copy)]
struct Here<'p> {
    /// As an agent writes it; empty where names need nothing before them.
    path: &'p str,
    /// Below the top of its tree.
    inner: &'p str,
    /// Below where the scan started.
    below: &'p str,
}

fn open_directory(parent: &OwnedFd, name: &str) -> Result<OwnedFd, rustix::io::Errno> {
    open_beneath(parent, name, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
}

/// A scan under way.
struct Scan<'a> {
    workspace: &'a Workspace,
    place: Root,
    shown: ScanFilter,
    stop: &'a Stop,
    each: &'a mut dyn FnMut(&ScanEntry<'_>) -> ControlFlow<()>,
    seen: usize,
    /// The ignore rules in force, each with its directory, outermost first.
    rules: Vec<(String, Gitignore)>,
    done: ScanOutcome,
}

impl Scan<'_> {
    fn directory(&mut self, handle: &OwnedFd, here: Here<'_>, depth: usize) -> ControlFlow<()> {
        let Some(names) = self.names(handle) else {
            self.done.unreadable += 1;
            return ControlFlow::Continue(());
        };
        let rules = self.rules.len();
        if names.iter().any(|(name, _)| RULES.iter().any(|file| file.starts_with(name))) {
            self.take_rules_of(here.inner);
        }
        for (name, kind) in names {
            if self.stop.is_stopped() || self.seen >= MAX_ENTRIES {
                self.done.gave_up = true;
                return ControlFlow::Break(());
            }
            self.seen += 1;
            self.entry(handle, &name, kind, here, depth)?;
        }
        self.rules.truncate(rules);
        ControlFlow::Continue(())
    }

    fn entry(
        &mut self,
        handle: &OwnedFd,
        name: &str,
        kind: FileType,
        here: Here<'_>,
        depth: usize,
    ) -> ControlFlow<()> {
        let (path, below) = (join(here.path, name), join(here.below, name));
        let inner = join(here.inner, name);
        let is_directory = kind == FileType::Directory;
        let is_hidden = matches!(self.place, Root::Added(_))
            && self.workspace.hidden_places().refuse_full(&path).is_err();
        if is_hidden || self.is_left_out(name, &inner, is_directory) {
            return ControlFlow::Continue(());
        }
        if !is_directory {
            return (self.each)(&ScanEntry {
                path: &path,
                below: &below,
                inner: &inner,
                workspace: self.workspace,
                directory: handle,
                name,
                file_type: kind,
                place: self.place,
            });
        }
        if depth == 0 {
            self.done.gave_up = true;
            return ControlFlow::Continue(());
        }
        match open_directory(handle, name) {
            Ok(next) => {
                self.directory(&next, Here { path: &path, inner: &inner, below: &below }, depth - 1)
            }
            Err(_) => {
                self.done.unreadable += 1;
                ControlFlow::Continue(())
            }
        }
    }

    /// The names in a directory and what they are, in order; `None` when it cannot be read.
    fn names(&mut self, here: &OwnedFd) -> Option<Vec<(String, FileType)>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(here).ok()? {
            // Bounded before it is sorted: a directory may hold more than a scan looks at.
            if names.len() > MAX_ENTRIES {
                break;
            }
            let entry = entry.ok()?;
            let Ok(name) = entry.file_name().to_str() else {
                self.done.unreadable += 1;
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(here, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                known => known,
            };
            names.push((name.to_owned(), kind));
        }
        names.sort_by(|(left, _), (right, _)| left.cmp(right));
        Some(names)
    }

    fn is_left_out(&self, name: &str, path: &str, is_directory: bool) -> bool {
        if name.eq_ignore_ascii_case(".git") || (name.starts_with('.') && !self.shown.hidden) {
            return true;
        }
        if self.place != Root::Workspace {
            return false;
        }
        let parts: Vec<_> = path.split('/').collect();
        self.workspace.hidden_places().refuse(&parts, path).is_err()
            || (!self.shown.ignored && self.is_ignored(path, is_directory))
    }

    fn is_ignored(&self, path: &str, is_directory: bool) -> bool {
        for (directory, rules) in self.rules.iter().rev() {
            let below = match directory.as_str() {
                "" => Some(path),
                directory => path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(below) = below else { continue };
            match rules.matched(below, is_directory) {
                ignore::Match::None => {}
                ignore::Match::Ignore(_) => return true,
                ignore::Match::Whitelist(_) => return false,
            }
        }
        false
    }

    /// The rules of the directories above the one the scan starts in.
    fn take_rules_above(&mut self, path: &str) {
        if self.place != Root::Workspace || path.is_empty() {
            return;
        }
        self.take_rules_of("");
        for (end, _) in path.match_indices('/') {
            self.take_rules_of(&path[..end]);
        }
    }

    fn take_rules_of(&mut self, directory: &str) {
        if self.place != Root::Workspace || self.shown.ignored {
            return;
        }
        let mut rules = GitignoreBuilder::new("");
        for file in RULES {
            if file.starts_with(".git/") && !directory.is_empty() {
                continue;
            }
            let path = join(directory, file);
            if path == IGNORE_FILE.0 {
                // It is for git. An agent that looks among the files of tasks means them.
                continue;
            }
            let path = self.workspace.layout().relative(&path);
            let Ok(opened) = self.workspace.read(&path) else { continue };
            let Ok(content) = read_bounded(opened, MAX_RULES_BYTES) else { continue };
            for line in String::from_utf8_lossy(&content).lines() {
                // A line that is not a pattern ignores nothing, as in git.
                let _ = rules.add_line(None, line);
            }
        }
        if let Ok(rules) = rules.build()
            && !rules.is_empty()
        {
            self.rules.push((directory.to_owned(), rules));
        }
    }
}
