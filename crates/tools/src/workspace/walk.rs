//! Turns a path that an agent wrote into an open directory and one name in it.
//!
//! Invariants:
//! - Every step opens one name in a directory that is already open, and follows no link; links are read
//!   and walked here. `..` goes back to the directory we came from, not to where the kernel has it. So
//!   nothing that is renamed or swapped for a link meanwhile can lead out (raced in a test).
//! - The path reported is the path that was walked, links resolved. Protection is judged by it, which
//!   is why the walk is ours: neither `openat2` nor `cap-std` tells where it arrived.
//! - Mounts are not followed: what is mounted in a workspace is not part of it.
//! - Magic links (`/proc/self/root`, `/proc/*/fd`) read as absolute targets, and those lead out.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use windlass_core::layout::{Own, TASKS_DIRECTORY, WORKSPACE};

use super::protect::{self, Purpose};
use super::{Error, Workspace};

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;
/// The longest path; as the kernel has it.
const MAX_PATH_BYTES: usize = 4096;
/// The longest name; as every usual file system has it.
const MAX_NAME_BYTES: usize = 255;

/// The tree that a path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The workspace itself.
    Workspace,
    /// The merged skills, read-only.
    Skills,
    /// The task's traces, read-only.
    Trace,
    /// A directory that a person added, by its number.
    Added(usize),
}

/// What to do about directories that are not there.
#[derive(Clone, Copy)]
pub(super) enum Parents {
    MustExist,
    /// Resolve as if they existed, to learn where a write would arrive.
    Imagine,
    Create(Purpose),
}

/// Where a walk arrived: a name, which may or may not exist, in an open directory.
pub(crate) struct Spot {
    pub place: Root,
    /// An `O_PATH` handle.
    pub directory: OwnedFd,
    /// One name, not a link at the time of the check; `.` for the top of a tree.
    pub name: String,
    /// What is there; `None` when nothing is.
    pub file_type: Option<FileType>,
    parts: Vec<String>,
    shown: String,
}

impl Spot {
    /// The walked path as an agent writes it: relative in the workspace, in full elsewhere.
    pub fn path(&self) -> String {
        self.shown.clone()
    }

    /// The names walked, below the top of the tree.
    pub fn parts(&self) -> Vec<&str> {
        self.parts.iter().map(String::as_str).collect()
    }
}

/// A walk under way.
struct Walk<'a> {
    workspace: &'a Workspace,
    asked: &'a str,
    place: Root,
    top: OwnedFd,
    /// The directories below the top, each with its name.
    trail: Vec<(String, OwnedFd)>,
    /// Directories further down that do not exist.
    imagined: Vec<String>,
    /// Names still to take, last first.
    pending: Vec<String>,
    links: usize,
}

impl Workspace {
    /// A walked path as an agent writes it.
    fn shown_path(&self, place: Root, parts: &[String]) -> String {
        let below = parts.join("/");
        match place {
            Root::Workspace => self.places.layout.relative(&below),
            Root::Skills => format!("/skills/{below}"),
            Root::Trace => format!("{}/{below}", self.places.layout.path(Own::Trace)),
            Root::Added(number) => {
                let top = self.places.added.get(number).map_or("", |added| added.path.as_str());
                if below.is_empty() { top.to_owned() } else { format!("{top}/{below}") }
            }
        }
    }

    fn outside(&self, path: &str) -> Error {
        let layout = &self.places.layout;
        let (path, top) = (path.to_owned(), layout.top().to_owned());
        Error::Outside { path, top, start: layout.start() }
    }

    /// Walks `path` up to its last name.
    pub(super) fn walk(&self, path: &str, parents: Parents) -> Result<Spot, Error> {
        check_text(path)?;
        let (place, below) = self.enter(path, path)?;
        let mut walk = Walk {
            workspace: self,
            asked: path,
            place,
            top: self.open_tree(place, path)?,
            trail: Vec::new(),
            imagined: Vec::new(),
            pending: Vec::new(),
            links: 0,
        };
        walk.take(&below);
        walk.run(parents)
    }

    /// The tree that a path is in and what is below its top. A relative one begins where the agent started.
    fn enter(&self, path: &str, asked: &str) -> Result<(Root, String), Error> {
        if !path.starts_with('/') {
            let start = self.places.layout.start_directory();
            return Ok((Root::Workspace, format!("{start}/{path}")));
        }
        let below = |top: &str| {
            let rest = path.strip_prefix(top.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        let added = self.places.added.iter().enumerate();
        let added = added.map(|(number, added)| (added.path.as_str(), Root::Added(number)));
        let names = self.names.iter().map(|name| (name.as_str(), Root::Workspace));
        let found = added
            .chain(names)
            .chain([(WORKSPACE, Root::Workspace), ("/skills", Root::Skills)])
            .filter_map(|(top, place)| Some((top.len(), place, below(top)?)))
            // Of one inside another the inner; of equal ones the first.
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        found.map(|(_, place, rest)| (place, rest)).ok_or_else(|| self.outside(asked))
    }

    fn open_tree(&self, place: Root, asked: &str) -> Result<OwnedFd, Error> {
        let missing = || Error::NotFound { path: asked.to_owned() };
        // The read-only places are opened again each time: skills are swapped as a whole directory.
        let open = |path: &Path| {
            rustix::fs::open(
                path,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
        };
        match place {
            Root::Workspace => {
                self.root.try_clone().map_err(|source| Error::Io { path: asked.to_owned(), source })
            }
            Root::Skills => {
                open(self.places.skills.as_deref().ok_or_else(missing)?).map_err(|_| missing())
            }
            Root::Trace => {
                open(self.places.trace.as_deref().ok_or_else(missing)?).map_err(|_| missing())
            }
            Root::Added(number) => {
                let added = self.places.added.get(number).ok_or_else(missing)?;
                open(Path::new(&added.path)).map_err(|_| missing())
            }
        }
    }
}

impl Walk<'_> {
    fn run(mut self, parents: Parents) -> Result<Spot, Error> {
        while let Some(name) = self.pending.pop() {
            if name == ".." {
                self.back()?;
                continue;
            }
            if !self.imagined.is_empty() {
                self.imagined.push(name);
                continue;
            }
            if let Some(names) = self.names_to_traces(&name) {
                self.pending.truncate(self.pending.len() - names);
                self.jump(Root::Trace)?;
                continue;
            }
            match rustix::fs::statat(self.here(), name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Symlink => self.follow(&name)?,
                    kind if self.pending.is_empty() => return self.arrive(name, Some(kind)),
                    _ => self.step(name)?,
                },
                Err(Errno::NOENT) if self.pending.is_empty() => return self.arrive(name, None),
                Err(Errno::NOENT) => self.pass_missing(name, parents)?,
                Err(errno) => return Err(Error::at(&self.at(&name), errno)),
            }
        }
        match self.imagined.pop() {
            Some(name) => self.arrive(name, None),
            None => self.arrive_at_directory(),
        }
    }

    fn back(&mut self) -> Result<(), Error> {
        if self.imagined.pop().is_none() && self.trail.pop().is_none() {
            // From the top of a read-only tree too: it has no parent an agent could see.
            return Err(self.workspace.outside(self.asked));
        }
        Ok(())
    }

    fn here(&self) -> impl AsFd + '_ {
        self.trail.last().map_or(&self.top, |(_, directory)| directory)
    }

    /// How many of the pending names lead on to the traces, where `name` is on the way there. They are found
    /// whether the directories above them exist or not.
    fn names_to_traces(&self, name: &str) -> Option<usize> {
        self.workspace.places.trace.as_ref()?;
        if self.place != Root::Workspace {
            return None;
        }
        let traces = self.workspace.places.layout.inner(Own::Trace);
        let trail = self.trail.iter().map(|(part, _)| part.as_str());
        let mut names = trail.chain([name]).chain(self.pending.iter().rev().map(String::as_str));
        let leads = traces
            .split('/')
            .all(|part| names.next().is_some_and(|name| name.eq_ignore_ascii_case(part)));
        leads.then(|| traces.split('/').count().saturating_sub(self.trail.len() + 1))
    }

    /// The walked path of `name` here.
    fn at(&self, name: &str) -> String {
        let mut parts: Vec<_> = self.trail.iter().map(|(part, _)| part.clone()).collect();
        parts.push(name.to_owned());
        self.workspace.shown_path(self.place, &parts)
    }

    fn take(&mut self, path: &str) {
        // Components drops `.` and doubled slashes.
        let names = Path::new(path).components().rev().filter_map(|part| match part {
            Component::Normal(name) => name.to_str().map(ToOwned::to_owned),
            Component::ParentDir => Some("..".to_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.pending.extend(names);
    }

    fn jump(&mut self, place: Root) -> Result<(), Error> {
        self.top = self.workspace.open_tree(place, self.asked)?;
        self.place = place;
        self.trail.clear();
        Ok(())
    }

    fn follow(&mut self, name: &str) -> Result<(), Error> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Error::TooManyLinks { path: self.asked.to_owned() });
        }
        let target = match rustix::fs::readlinkat(self.here(), name, Vec::new()) {
            Ok(target) => target,
            Err(Errno::INVAL) => return Err(Error::Changed { path: self.at(name) }),
            Err(errno) => return Err(Error::at(&self.at(name), errno)),
        };
        let target = target.into_string().map_err(|_| Error::BadPath {
            path: self.at(name),
            why: "it is a link whose target is not UTF-8",
        })?;
        if target.starts_with('/') {
            // A link made in the sandbox names things as the agent sees them.
            let (place, below) = self.workspace.enter(&target, self.asked)?;
            self.jump(place)?;
            self.take(&below);
        } else {
            self.take(&target);
        }
        Ok(())
    }

    fn step(&mut self, name: String) -> Result<(), Error> {
        let next = open_beneath(&self.here(), &name, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|errno| Error::at(&self.at(&name), errno))?;
        self.trail.push((name, next));
        Ok(())
    }

    fn pass_missing(&mut self, name: String, parents: Parents) -> Result<(), Error> {
        match parents {
            Parents::MustExist => Err(Error::NotFound { path: self.at(&name) }),
            Parents::Imagine => {
                self.imagined.push(name);
                Ok(())
            }
            Parents::Create(purpose) => self.create(name, purpose),
        }
    }

    fn create(&mut self, name: String, purpose: Purpose) -> Result<(), Error> {
        let parts: Vec<_> =
            self.trail.iter().map(|(part, _)| part.as_str()).chain([&*name]).collect();
        self.workspace.refuse_writing_to(self.place, &parts, purpose, self.asked)?;
        let is_task_directory = self.workspace.is_task_directory(self.place, &parts);
        match rustix::fs::mkdirat(self.here(), name.as_str(), Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                super::write::give_to_owner_of(&self.here(), &name);
                super::write::sync_directory(&self.here());
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::at(&self.at(&name), errno)),
        }
        self.step(name)?;
        if is_task_directory {
            let tasks = self.trail.iter().rev().nth(1).map_or(&self.top, |(_, tasks)| tasks);
            self.workspace.own_files().furnish(tasks, &self.here());
        }
        Ok(())
    }

    fn arrive(self, name: String, file_type: Option<FileType>) -> Result<Spot, Error> {
        let Self { place, top, mut trail, imagined, asked, workspace, .. } = self;
        let mut parts: Vec<_> = trail.iter().map(|(part, _)| part.clone()).collect();
        parts.extend(imagined);
        parts.push(name.clone());
        let directory = trail.pop().map_or(top, |(_, directory)| directory);
        let shown = workspace.shown_path(place, &parts);
        let spot = Spot { place, directory, name, file_type, parts, shown };
        match place {
            Root::Workspace => workspace.hidden_places().refuse_on_the_way(&spot.parts(), asked)?,
            Root::Added(_) => workspace.hidden_places().refuse_full(&spot.shown)?,
            Root::Skills | Root::Trace => {}
        }
        Ok(spot)
    }

    /// The path ended in `..`, or is the top of a tree.
    fn arrive_at_directory(mut self) -> Result<Spot, Error> {
        let kind = Some(FileType::Directory);
        match self.trail.pop() {
            Some((name, _)) => self.arrive(name, kind),
            None => Ok(Spot {
                place: self.place,
                directory: self.top,
                name: ".".to_owned(),
                file_type: kind,
                parts: Vec::new(),
                shown: self.workspace.shown_path(self.place, &[]),
            }),
        }
    }
}

impl Workspace {
    /// Refuses a place that `purpose` may not write.
    pub(super) fn refuse_writing_to(
        &self,
        place: Root,
        parts: &[&str],
        purpose: Purpose,
        asked: &str,
    ) -> Result<(), Error> {
        let read_only = || {
            let why = "it is read-only; write in the workspace";
            Err(Error::Protected { path: asked.to_owned(), why })
        };
        match place {
            Root::Workspace => {
                protect::writable(parts, purpose, &self.places.layout)?;
                self.hidden_places().refuse(parts, asked)
            }
            Root::Added(number) => match self.places.added.get(number) {
                Some(added) if added.writable => protect::refuse_git(parts, || asked.to_owned()),
                Some(_) | None => read_only(),
            },
            Root::Skills | Root::Trace => read_only(),
        }
    }

    /// Whether this is the directory of this task's own files in a person's workspace.
    fn is_task_directory(&self, place: Root, parts: &[&str]) -> bool {
        let Some(task) = self.places.layout.task() else { return false };
        place == Root::Workspace
            && parts.join("/").eq_ignore_ascii_case(&format!("{TASKS_DIRECTORY}/{task}"))
    }
}

/// Opens one name in a directory, and neither follows a link nor leaves the file system it is on.
pub(super) fn open_beneath(
    directory: &impl AsFd,
    name: &str,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // `.` is the directory itself, which is open already.
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_XDEV
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve) {
        // An old kernel, or a filter that does not know the call: the device tells of most mounts.
        Err(Errno::NOSYS | Errno::PERM) => {
            let opened = rustix::fs::openat(directory, name, flags, Mode::empty())?;
            let (here, there) = (rustix::fs::fstat(directory)?, rustix::fs::fstat(&opened)?);
            if here.st_dev == there.st_dev { Ok(opened) } else { Err(Errno::XDEV) }
        }
        other => other,
    }
}

fn check_text(path: &str) -> Result<(), Error> {
    let bad = |why| {
        let path = windlass_core::text::prefix(path, 80).replace('\0', "\u{fffd}");
        Err(Error::BadPath { path, why })
    };
    if path.is_empty() {
        return bad("it is empty");
    }
    if path.contains('\0') {
        return bad("it contains a NUL character");
    }
    if path.len() > MAX_PATH_BYTES {
        return bad("it is longer than 4096 bytes");
    }
    if path.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return bad("a name in it is longer than 255 bytes");
    }
    Ok(())
}
