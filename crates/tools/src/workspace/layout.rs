//! The files of ours in a workspace: made when they are needed, and through the directory's own handle, so that a
//! link that lies in their place leads nowhere.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use windlass_core::id::TaskId;
use windlass_core::layout::{IGNORE_FILE, LayoutKind, Own, TASKS_DIRECTORY};

use super::protect::Purpose;
use super::walk::{Parents, open_beneath};
use super::write::give_to_owner_of;
use super::{Error, OpenError, Workspace};

/// The files of ours in a workspace.
#[derive(Clone, Copy)]
pub struct OwnFiles<'a> {
    pub(super) workspace: &'a Workspace,
}

impl OwnFiles<'_> {
    /// Makes the directories that a service workspace has from the start (ES-173).
    pub(super) fn lay_out(self, given: &Path) -> Result<(), OpenError> {
        let path = || given.to_owned();
        for own in self.workspace.places.layout.initial_directories() {
            let name = self.workspace.places.layout.inner(*own);
            // A sandbox has made it already. A link to a directory is the user's choice; writes through it still cannot
            // leave.
            if self.is_directory(&name) {
                continue;
            }
            match rustix::fs::mkdirat(
                &self.workspace.root,
                name.as_str(),
                Mode::from_raw_mode(0o777),
            ) {
                Ok(()) => give_to_owner_of(&self.workspace.root, &name),
                Err(Errno::EXIST) => {}
                Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                    return Err(OpenError::NotWritable { path: path(), source: errno.into() });
                }
                Err(errno) => return Err(OpenError::Io { path: path(), source: errno.into() }),
            }
            if !self.is_directory(&name) {
                return Err(OpenError::InTheWay { path: path(), name });
            }
        }
        Ok(())
    }

    fn is_directory(self, name: &str) -> bool {
        let stat = rustix::fs::statat(&self.workspace.root, name, AtFlags::empty());
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    /// Lets a person find the trace of a task in its workspace (ES-322). The trace itself is out of the agent's
    /// reach; where the link cannot be made, nothing is lost. A person's directory gets it with the first
    /// file of the task's own.
    pub fn link_trace(self, task: TaskId) {
        if self.workspace.places.layout.kind() == LayoutKind::Service {
            let _ = self.link_trace_in(
                &self.workspace.root,
                &self.workspace.places.layout.inner(Own::Trace),
                task,
            );
        }
    }

    fn link_trace_in(self, parent: &impl AsFd, name: &str, task: TaskId) -> Result<(), Errno> {
        let Some(traces) = &self.workspace.places.trace else { return Ok(()) };
        make_directory(parent, name)?;
        let directory = open_directory(parent, name)?;
        let file = format!("{task}.jsonl");
        match rustix::fs::symlinkat(traces.join(&file), &directory, file.as_str()) {
            Ok(()) => give_to_owner_of(&directory, &file),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Makes the directory of this task's files for a command that names it.
    pub fn prepare_task_directory_for(self, command: &str) {
        let (Some(task), Some(directory)) =
            (self.workspace.places.layout.task(), self.workspace.places.layout.task_directory())
        else {
            return;
        };
        if command.contains(&task.to_string()) {
            // What cannot be made, the command reports.
            let _ =
                self.workspace.walk(&format!("{directory}/x"), Parents::Create(Purpose::Harness));
        }
    }

    /// Makes a directory of the harness's own.
    pub fn prepare_directory(self, path: &str) -> Result<(), Error> {
        let inside = format!("{path}/x");
        let spot = self.workspace.walk(&inside, Parents::Create(Purpose::Harness))?;
        self.workspace.refuse_writing(&spot, Purpose::Harness)
    }

    /// Completes the directory of this task's files after a command or its sandbox made it: git must not see it.
    pub fn complete_task_directory(self) {
        if self.workspace.places.layout.kind() == LayoutKind::Service {
            return;
        }
        let Ok(mut here) = self.workspace.root.try_clone() else { return };
        for name in TASKS_DIRECTORY.split('/') {
            match open_directory(&here, name) {
                Ok(next) => here = next,
                Err(_) => return,
            }
        }
        self.ignore_tasks(&here);
        // A sandbox makes the directory itself, empty, before its first command.
        if let Some(task) = self.workspace.places.layout.task()
            && let Ok(own) = open_directory(&here, &task.to_string())
        {
            self.furnish(&here, &own);
        }
    }

    /// What a new directory of a task gets: its neighbours are ignored by git, and it links to the trace.
    pub(super) fn furnish(self, tasks: &impl AsFd, task_directory: &impl AsFd) {
        self.ignore_tasks(tasks);
        if let Some(task) = self.workspace.places.layout.task() {
            let trace = self.workspace.places.layout.inner(Own::Trace);
            let name = trace.rsplit('/').next().unwrap_or(&trace);
            // Nobody could act on a failure here, and none does harm.
            let _ = self.link_trace_in(task_directory, name, task);
        }
    }

    fn ignore_tasks(self, tasks: &impl AsFd) {
        let (path, content) = IGNORE_FILE;
        let name = path.rsplit('/').next().unwrap_or(path);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // One that is there stays as it is.
        if let Ok(file) = rustix::fs::openat(tasks, name, flags, Mode::from_raw_mode(0o666)) {
            let _ = rustix::io::write(&file, content.as_bytes());
            give_to_owner_of(tasks, name);
        }
    }
}

fn make_directory(parent: &impl AsFd, name: &str) -> Result<(), Errno> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => give_to_owner_of(parent, name),
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    Ok(())
}

fn open_directory(parent: &impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    open_beneath(parent, name, OFlags::PATH | OFlags::DIRECTORY)
}
