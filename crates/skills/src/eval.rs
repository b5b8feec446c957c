//! Skill evals: the cases on disk and the copy that an agent works on (MS-168…171).
//!
//! Invariant: a staged workspace holds what `work/` holds and nothing else; neither `hidden/` nor the
//! grader nor the task's text is where the agent could find it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windlass_core::model_text::neutralize;

use crate::{Problem, Scope, regular};

/// How much one case may bring along.
const MAX_WORK_BYTES: u64 = 256 << 20;
/// How many files, directories and links one case may bring along.
const MAX_WORK_FILES: usize = 10_000;
/// The longest task.
const MAX_TASK_BYTES: u64 = 1 << 20;

/// One exam question of a skill: `evals/<case>/{task.md,grader*,hidden/,work/}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its directory's name.
    pub name: String,
    /// What the agent is asked to do.
    pub task: String,
    /// Decides by its exit code: 0 is a pass.
    pub grader: PathBuf,
    /// What the workspace begins with.
    pub work: Option<PathBuf>,
    /// Reference answers, for the grader alone.
    pub hidden: Option<PathBuf>,
}

impl Case {
    /// Copies `work/` into an empty directory.
    pub fn stage(&self, workspace: &Path) -> io::Result<()> {
        fs::create_dir_all(workspace)?;
        let mut room = Room { bytes: MAX_WORK_BYTES, files: MAX_WORK_FILES };
        match &self.work {
            Some(work) => copy(work, workspace, &mut room),
            None => Ok(()),
        }
    }

    /// Copies what the grader needs into a directory: itself, and `hidden/`.
    pub fn stage_grader(&self, room: &Path) -> io::Result<()> {
        fs::create_dir_all(room)?;
        if let Some(name) = self.grader.file_name() {
            fs::copy(&self.grader, room.join(name))?;
        }
        let Some(hidden) = &self.hidden else { return Ok(()) };
        let to = room.join("hidden");
        fs::create_dir_all(&to)?;
        copy(hidden, &to, &mut Room { bytes: MAX_WORK_BYTES, files: MAX_WORK_FILES })
    }

    /// The program that grades, and its arguments (O-47), where `stage_grader` has put it: run directly where it
    /// is executable, else by what its extension says.
    pub fn grader_command(&self, room: &Path) -> Vec<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let executable = fs::metadata(&self.grader)
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
        let extension = self.grader.extension().and_then(|ext| ext.to_str()).unwrap_or_default();
        let by = match extension {
            "js" | "mjs" | "cjs" => Some("node"),
            _ if executable => None,
            "py" => Some("python3"),
            _ => Some("sh"),
        };
        let grader = room.join(self.grader.file_name().unwrap_or_default());
        by.map(PathBuf::from).into_iter().chain([grader]).collect()
    }
}

/// Every case in the folder of a skill, by name, and what is not a case.
pub fn cases(folder: &Path, scope: Scope) -> (Vec<Case>, Vec<Problem>) {
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    let entries = fs::read_dir(folder.join("evals")).into_iter().flatten().flatten();
    let mut directories: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    directories.sort();
    for directory in directories {
        let found = match scope {
            Scope::Project => check_links(folder, &directory),
            Scope::User | Scope::Builtin => Ok(()),
        };
        match found.and_then(|()| case(&directory)) {
            Ok(case) => cases.push(case),
            Err(reason) => problems.push(Problem { path: directory, line: None, reason }),
        }
    }
    (cases, problems)
}

/// Everything of a project's case lies in its skill's folder: an agent works with it, and whoever wrote the project must
/// not choose which other files of this machine that agent sees.
fn check_links(folder: &Path, directory: &Path) -> Result<(), String> {
    let inner = ["", "task.md", "work", "hidden"].map(|name| directory.join(name));
    match inner.iter().find(|path| regular::lies_in(folder, path).is_ok_and(|is_own| !is_own)) {
        Some(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Err(format!("`{name}` is a link that leads out of the skill's folder"))
        }
        None => Ok(()),
    }
}

fn case(directory: &Path) -> Result<Case, String> {
    let name =
        directory.file_name().and_then(|name| name.to_str()).ok_or("has no readable name")?;
    let task = directory.join("task.md");
    match fs::metadata(&task) {
        Ok(metadata) if metadata.len() > MAX_TASK_BYTES => {
            return Err("`task.md` is too long".into());
        }
        Ok(_) => {}
        Err(_) => return Err("has no `task.md`".into()),
    }
    let text =
        regular::read_text(&task, MAX_TASK_BYTES).map_err(|error| format!("`task.md`: {error}"))?;
    if text.trim().is_empty() {
        return Err("`task.md` is empty".into());
    }
    let directory_of = |name: &str| Some(directory.join(name)).filter(|path| path.is_dir());
    Ok(Case {
        name: name.to_owned(),
        task: neutralize(text.trim()),
        grader: grader(directory).ok_or("has no `grader` (any file whose name begins so)")?,
        work: directory_of("work"),
        hidden: directory_of("hidden"),
    })
}

fn grader(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let is_grader = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        // Not a link: it could lead to any file of this machine.
        stem == Some("grader") && fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
    };
    entries.filter(is_grader).min()
}

struct Room {
    bytes: u64,
    files: usize,
}

fn copy(from: &Path, to: &Path, room: &mut Room) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            room.take(0)?;
            fs::create_dir_all(&target)?;
            copy(&source, &target, room)?;
        } else if metadata.is_symlink() {
            room.take(0)?;
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if metadata.is_file() {
            room.take(metadata.len())?;
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

impl Room {
    fn take(&mut self, bytes: u64) -> io::Result<()> {
        let too_much = || {
            let limit = MAX_WORK_BYTES >> 20;
            io::Error::other(format!(
                "`work/` holds more than {MAX_WORK_FILES} files or {limit} MiB"
            ))
        };
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_much)?;
        self.files = self.files.checked_sub(1).ok_or_else(too_much)?;
        Ok(())
    }
}
