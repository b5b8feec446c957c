//! Files with rules for agents around a command that nobody approved as changing them: what they were before, and
//! put back after it.
//!
//! Invariants:
//! - Whatever way a command takes, by a link, a loop or a program, the rules after it are those from before it.
//! - Nothing is lost: what a file was changed to is kept among the task's own files. A person may have made the
//!   change meanwhile, and no file system says who did.
//! - However much a command makes, all of it goes: a new directory is moved away whole, and the rest in rounds.
//! - What was approved stays: what a file tool writes and what an approved command changes is taken over by every
//!   guard of the same workspace in this process.
//! - What was before is on disk while a command runs, so that whoever continues a task after a kill puts it back.
//! - Through the directory's own handle, one name at a time, following no link.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use windlass_core::id::CallId;
use windlass_core::layout::{Own, TASKS_DIRECTORY};
use windlass_core::shown::shown_line;
use windlass_core::text::plural;

use super::protect::Purpose;
use super::rules::RuleFiles;
use super::walk::{Parents, open_beneath};
use super::write::give_to_owner_of;
use super::{Workspace, content_hash, repository, rule_record};

/// How many files with rules are looked at; a project has a few.
const MAX_FILES: usize = 2000;
/// How deep: `.claude/skills/x/scripts/run.sh`.
const MAX_DEPTH: usize = 8;
/// The most that is kept of all of them.
const MAX_BYTES: u64 = 16 << 20;
/// How often it is looked again where there was more than a look takes in.
const MAX_ROUNDS: usize = 200;
/// How many files are named; a person reads them.
const MAX_NAMED: usize = 20;

/// Directories among those of rules that hold none: the files of tasks, and whole copies of a project.
const NO_RULES: [&str; 3] = [TASKS_DIRECTORY, ".windlass/worktrees", ".claude/worktrees"];

/// The guards of this process that are at work.
static GUARDS: Mutex<Vec<Live>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Live {
    top: PathBuf,
    before: Arc<Mutex<Snapshot>>,
    record: PathBuf,
}

impl Live {
    fn update(&self, change: impl FnOnce(&mut Snapshot)) {
        let mut before = lock(&self.before);
        change(&mut before);
        rule_record::write(&self.record, &before);
    }
}

/// What is at one path.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Kept {
    File {
        content: Arc<[u8]>,
        mode: u32,
    },
    Link(Vec<u8>),
    Directory,
    /// What cannot be kept: a large file, or something that is not a file.
    Other,
}

/// The files with rules as they are at one moment, by their paths below the top.
#[derive(Clone, Default)]
pub(super) struct Snapshot {
    pub files: BTreeMap<String, Kept>,
    /// What links among them lead to. A link that a command makes does not turn what it leads to into a rule.
    pub linked: Vec<String>,
    /// Whether there were more than could be looked at.
    pub gave_up: bool,
}

/// What was before a command, for as long as it runs.
pub(crate) struct RuleGuard {
    workspace: Arc<Workspace>,
    before: Arc<Mutex<Snapshot>>,
    record: PathBuf,
}

impl RuleGuard {
    /// Remembers the rules as they are now, in this file too.
    pub fn new(workspace: Arc<Workspace>, record: PathBuf) -> Self {
        let before = workspace.rule_files().snapshot();
        rule_record::write(&record, &before);
        Self::with(workspace, before, record)
    }

    /// What a process that was killed remembered in this file.
    pub fn recall(workspace: Arc<Workspace>, record: PathBuf) -> Option<Self> {
        let before = rule_record::read(&record)?;
        Some(Self::with(workspace, before, record))
    }

    fn with(workspace: Arc<Workspace>, before: Snapshot, record: PathBuf) -> Self {
        let before = Arc::new(Mutex::new(before));
        let (top, live) = (workspace.real.clone(), Arc::clone(&before));
        lock(&GUARDS).push(Live { top, before: live, record: record.clone() });
        Self { workspace, before, record }
    }

    /// Puts back what is different by now. What to say of it, if anything was.
    pub fn put_back(self, call: CallId) -> Option<String> {
        let note = self.restore(call);
        self.forget();
        note
    }

    /// Nothing is to be put back after a kill any more.
    fn forget(&self) {
        let _ = std::fs::remove_file(&self.record);
    }

    fn restore(&self, call: CallId) -> Option<String> {
        let mut lines = Vec::new();
        let mut is_whole = false;
        for _ in 0..MAX_ROUNDS {
            let (found, saw_all) = self.restore_once(call);
            let is_done = saw_all || found.is_empty();
            lines.extend(found);
            is_whole = saw_all;
            if is_done {
                break;
            }
        }
        if lines.is_empty() && is_whole {
            return None;
        }
        let more = lines.len().saturating_sub(MAX_NAMED);
        lines.truncate(MAX_NAMED);
        if more > 0 {
            lines.push(format!("- and {}", plural(more, "other")));
        }
        if !is_whole {
            lines.push("- There are more than could be looked at.".to_owned());
        }
        Some(format!("{}\n{}", NOTE, lines.join("\n")))
    }

    /// Puts back what one look finds to be different. A line for each, and whether the look took in everything.
    fn restore_once(&self, call: CallId) -> (Vec<String>, bool) {
        let rules = self.workspace.rule_files();
        let before = lock(&self.before).clone();
        let now = rules.snapshot_after(&before);
        let is_gone = |(path, was): &(&String, &Kept)| {
            let can_come_back = matches!(was, Kept::File { .. } | Kept::Link(_));
            !now.gave_up && can_come_back && !now.files.contains_key(*path)
        };
        // What a first look gave up on is not known to be new.
        let is_changed = |(path, kept): &(&String, &Kept)| match before.files.get(*path) {
            Some(Kept::Other) => false,
            Some(was) => was != *kept,
            None => !before.gave_up,
        };
        let changed = now.files.iter().filter(is_changed);
        let gone = before.files.iter().filter(is_gone);
        let different: BTreeSet<&String> = changed.chain(gone).map(|(path, _)| path).collect();
        let mut removals = Vec::new();
        // What is in the way of a directory goes first.
        for path in different.iter().rev() {
            let removed = match now.files.get(*path) {
                Some(kept) => rules.retry_reopened(path, || rules.take_away(call, path, kept)),
                None => Ok(None),
            };
            removals.push((*path, removed));
        }
        let mut lines = Vec::new();
        for (path, removed) in removals.into_iter().rev() {
            let was = before.files.get(path);
            let restored = removed.and_then(|copy| {
                was.map_or(Ok(()), |kept| rules.retry_reopened(path, || rules.write(path, kept)))?;
                Ok(copy)
            });
            self.tell_others(path, now.files.get(path), was);
            lines.push(line(path, restored));
        }
        (lines, !now.gave_up)
    }

    /// A guard that began after the change must not take it for what was before.
    fn tell_others(&self, path: &str, bad: Option<&Kept>, was: Option<&Kept>) {
        for live in self.workspace.rule_files().guards() {
            live.update(|before| {
                if before.files.get(path) == bad {
                    if bad == Some(&Kept::Directory) {
                        before.forget_below(path);
                    }
                    before.set(path, was.cloned());
                }
            });
        }
    }
}

impl Drop for RuleGuard {
    fn drop(&mut self) {
        lock(&GUARDS).retain(|live| !Arc::ptr_eq(&live.before, &self.before));
        repository::remove_planted(&self.workspace.real);
    }
}

/// What the model and the person read first.
const NOTE: &str = "Files that say what an agent may do were changed while this command ran, and nobody had \
    approved that. They were put back as they were. Tell the user what you want to change in them, or use `edit` or \
    `write` for it: that asks them.";

fn line(path: &str, restored: Result<Option<String>, Errno>) -> String {
    let path = shown_line(path);
    match restored {
        Ok(Some(copy)) => {
            format!("- `{path}`; what it was changed to is kept in `{}`", shown_line(&copy))
        }
        Ok(None) => format!("- `{path}`"),
        Err(errno) => format!("- `{path}` could not be put back ({errno})"),
    }
}

impl Snapshot {
    fn set(&mut self, path: &str, kept: Option<Kept>) {
        match kept {
            Some(kept) => drop(self.files.insert(path.to_owned(), kept)),
            None => drop(self.files.remove(path)),
        }
    }

    fn forget_below(&mut self, path: &str) {
        let below = format!("{path}/");
        self.files.retain(|path, _| !path.starts_with(&below));
    }
}

impl<'w> RuleFiles<'w> {
    /// Takes over the rules as they are now: what changed them was approved.
    pub(crate) fn accept_all(self) {
        repository::remove_planted(&self.workspace.real);
        let guards = self.guards();
        if guards.is_empty() {
            return;
        }
        let now = self.snapshot();
        for live in guards {
            live.update(|before| before.clone_from(&now));
        }
    }

    /// The same for one file that a tool has written.
    pub(super) fn accept(self, inner: &str) {
        let guards = self.guards();
        if guards.is_empty() {
            return;
        }
        let now = self.snapshot();
        let above = inner.match_indices('/').map(|(end, _)| &inner[..end]);
        let accepted: Vec<_> = above.chain([inner]).collect();
        for live in guards {
            live.update(|before| {
                for path in &accepted {
                    before.set(path, now.files.get(*path).cloned());
                }
            });
        }
    }

    fn guards(self) -> Vec<Live> {
        lock(&GUARDS).iter().filter(|live| live.top == self.workspace.real).cloned().collect()
    }

    fn snapshot(self) -> Snapshot {
        self.look(self.linked(), None)
    }

    /// How it is after what was before. Directories that were not there are not looked into.
    fn snapshot_after(self, before: &Snapshot) -> Snapshot {
        self.look(before.linked.clone(), Some(before))
    }

    fn look(self, linked: Vec<String>, before: Option<&Snapshot>) -> Snapshot {
        let mut snapshot = Snapshot { linked, ..Snapshot::default() };
        let most = MAX_FILES + before.map_or(0, |before| before.files.len());
        let (mut seen, mut bytes) = (0, 0);
        let linked = snapshot.linked.clone().into_iter();
        let mut open: Vec<(String, usize)> = self.names().chain(linked).map(|n| (n, 0)).collect();
        while let Some((path, depth)) = open.pop() {
            let Ok((parent, name)) = self.parent(&path) else { continue };
            let Some(file_type) = type_of(&parent, &name) else { continue };
            if file_type != FileType::Directory {
                let kept = read(&parent, &name, file_type, MAX_BYTES - bytes);
                if let Some(Kept::File { content, .. }) = &kept {
                    bytes += content.len() as u64;
                }
                snapshot.set(&path, Some(kept.unwrap_or(Kept::Other)));
                continue;
            }
            if depth >= MAX_DEPTH || self.is_left_out(&path, depth) {
                continue;
            }
            let names = names_in(&parent, &name, most);
            let was = before.map(|before| (before.files.get(&path), before.gave_up));
            let is_entered = match was {
                None | Some((Some(Kept::Directory), _) | (None, true)) => true,
                // The directories of the top are made as soon as anything is put there, also by us.
                Some((None, false)) => depth == 0,
                Some((Some(Kept::File { .. } | Kept::Link(_) | Kept::Other), _)) => false,
            };
            let is_new_top = depth == 0 && matches!(was, Some((None, _)));
            if !is_new_top && (is_entered || !names.is_empty()) {
                snapshot.set(&path, Some(Kept::Directory));
            }
            for below in names.into_iter().filter(|_| is_entered) {
                seen += 1;
                if seen > most {
                    snapshot.gave_up = true;
                    break;
                }
                open.push((format!("{path}/{below}"), depth + 1));
            }
        }
        snapshot
    }

    /// The files of tasks, our own data, and whole copies of a project are not rules.
    fn is_left_out(self, path: &str, depth: usize) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        // Deeper, `worktrees` is a name like any other: that of a skill, for example.
        let is_kept = || {
            let is_at = |kept: &&str| path.strip_suffix(*kept).is_some_and(is_directory_prefix);
            NO_RULES.iter().any(is_at)
        };
        (depth == 1 && is_kept()) || self.workspace.hidden_places().refuse(&parts, path).is_err()
    }

    /// The directory that a path is in, and its name there.
    fn parent(self, inner: &str) -> Result<(Parent<'w>, String), Errno> {
        let mut parts: Vec<&str> = inner.split('/').collect();
        let name = parts.pop().unwrap_or_default().to_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut here = Parent::Top(&self.workspace.root);
        for part in parts {
            here = Parent::Below(open_beneath(&here, part, flags)?);
        }
        Ok((here, name))
    }

    /// Does this again where a command has closed the directory, or what is to be moved, to writing.
    fn retry_reopened<T>(
        self,
        inner: &str,
        act: impl Fn() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let done = act();
        if !matches!(done, Err(Errno::ACCESS)) {
            return done;
        }
        let (parent, name) = self.parent(inner)?;
        for name in [".", name.as_str()] {
            let opened = open_beneath(&parent, name, OFlags::RDONLY | OFlags::DIRECTORY);
            // What is not a directory stays as it is.
            let Ok(opened) = opened else { continue };
            let mode = rustix::fs::fstat(&opened)?.st_mode & 0o777;
            rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode | 0o700))?;
        }
        act()
    }

    /// Removes what is at a path. Where it is kept, as an agent writes it.
    fn take_away(self, call: CallId, inner: &str, kept: &Kept) -> Result<Option<String>, Errno> {
        let (parent, name) = self.parent(inner)?;
        if *kept == Kept::Directory {
            return self.move_away(call, inner, (&parent, &name)).map(Some);
        }
        let copy = self.keep_copy(call, inner, kept);
        rustix::fs::unlinkat(&parent, name.as_str(), AtFlags::empty())?;
        Ok(copy)
    }

    /// Moves a directory among the task's own files, however much is in it.
    fn move_away(
        self,
        call: CallId,
        inner: &str,
        (parent, name): (&Parent<'_>, &str),
    ) -> Result<String, Errno> {
        let scratch = self.workspace.layout().path(Own::Scratch);
        let hash = content_hash(format!("{call} {inner}").as_bytes());
        let kept = format!("{scratch}/changed-{}-{}", &hash[..8], inner.replace('/', "-"));
        let spot = self.workspace.walk(&kept, Parents::Create(Purpose::Harness));
        let spot = spot.map_err(|_| Errno::IO)?;
        rustix::fs::renameat(parent, name, &spot.directory, spot.name.as_str())?;
        Ok(kept)
    }

    fn write(self, inner: &str, kept: &Kept) -> Result<(), Errno> {
        for (end, _) in inner.match_indices('/') {
            let (parent, name) = self.parent(&inner[..end])?;
            match rustix::fs::mkdirat(&parent, name.as_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) => give_to_owner_of(&parent, &name),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        let (parent, name) = self.parent(inner)?;
        // An empty directory in its place is removed.
        let _ = rustix::fs::unlinkat(&parent, name.as_str(), AtFlags::REMOVEDIR);
        match kept {
            Kept::Other => return Ok(()),
            Kept::Directory => {
                match rustix::fs::mkdirat(&parent, name.as_str(), Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
            }
            Kept::Link(target) => {
                rustix::fs::symlinkat(target.as_slice(), &parent, name.as_str())?;
            }
            Kept::File { content, mode } => {
                let flags = OFlags::WRONLY
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(*mode);
                let file = rustix::fs::openat(&parent, name.as_str(), flags, mode)?;
                rustix::fs::fchmod(&file, mode)?;
                let written = File::from(file).write_all(content);
                written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            }
        }
        give_to_owner_of(&parent, &name);
        Ok(())
    }

    /// Keeps what a file was changed to among the task's own files; where, as an agent writes it.
    fn keep_copy(self, call: CallId, inner: &str, kept: &Kept) -> Option<String> {
        let Kept::File { content, .. } = kept else { return None };
        let hash = content_hash(content);
        let scratch = self.workspace.layout().path(Own::Scratch);
        let name = format!("{scratch}/changed-{}-{}", &hash[..8], inner.replace('/', "-"));
        self.workspace.keep(call, &name, &mut &content[..]).ok().map(|()| name)
    }
}

/// A directory that rule files are in. Most are in the top, which is open already: opening it again for each name would
/// wake everybody who watches it.
enum Parent<'w> {
    Top(&'w OwnedFd),
    Below(OwnedFd),
}

impl AsFd for Parent<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Top(top) => top.as_fd(),
            Self::Below(opened) => opened.as_fd(),
        }
    }
}

/// Whether a text is what stands before a path below some directory: nothing, or a directory with its slash.
fn is_directory_prefix(text: &str) -> bool {
    text.is_empty() || text.ends_with('/')
}

fn type_of(parent: &impl AsFd, name: &str) -> Option<FileType> {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// What is at a name; `None` for what is too large, cannot be read or is not a file.
fn read(parent: &impl AsFd, name: &str, file_type: FileType, limit: u64) -> Option<Kept> {
    if file_type == FileType::Symlink {
        let target = rustix::fs::readlinkat(parent, name, Vec::new()).ok()?;
        return Some(Kept::Link(target.into_bytes()));
    }
    if file_type != FileType::RegularFile {
        return None;
    }
    let file = open_beneath(parent, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
    let file = File::from(file.ok()?);
    let stat = rustix::fs::fstat(&file).ok()?;
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content).ok()?;
    let fits = content.len() as u64 <= limit;
    fits.then(|| Kept::File { content: content.into(), mode: stat.st_mode & 0o777 })
}

fn names_in(parent: &impl AsFd, name: &str, most: usize) -> Vec<String> {
    let directory = open_beneath(parent, name, OFlags::RDONLY | OFlags::DIRECTORY);
    let entries = directory.ok().and_then(|directory| Dir::read_from(directory).ok());
    let names = entries.into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| name != "." && name != "..").take(most + 1).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
