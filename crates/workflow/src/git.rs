//! Git, by its own program. The one module that starts it.
//!
//! Invariants:
//! - Nothing of the repository runs: no hooks, no file monitor, no automatic maintenance. Commands of its settings for
//!   its files ([`Git::commanding_settings`]) run only in a repository whose person has approved them.
//! - Git is given the directories that it works with. What an agent wrote into the `.git` of its worktree is not believed.
//! - No git goes into a repository inside a checkout by itself: its settings would name commands. Whoever looks at
//!   changes says so, for settings of the checkout count more than a general one.
//! - Whoever changes refs or worktrees holds the [`Lock`], and so does every git that it starts: after a crash the next
//!   owner waits until the last of them has ended. A new worktree is filled under a lock of its own, so that many are
//!   filled at once.

mod question;
mod settings;
mod stale_lock;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use windlass_skills::regular;

use crate::worktree::registration;

pub use settings::Settings;
pub(crate) use stale_lock::Remains;

/// How long somebody may hold the lock of a repository before that is an error. Git calls take seconds.
const LOCK_WAIT: Duration = Duration::from_secs(120);
/// The lock, in the common git directory.
const LOCK_FILE: &str = "windlass.lock";
/// How often a held lock is tried again.
const LOCK_POLL: Duration = Duration::from_millis(20);
/// How much a killed git may have left in the way of one command: locks of the index, of the head, of its branch, of
/// what all refs share.
const MAX_LEFTOVERS: usize = 8;
/// How much of git's words an error repeats.
const ERROR_BYTES: usize = 2000;
/// The file in which a worktree names its place is one path.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// The settings of a repository that has none.
const EMPTY_SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";

/// What went wrong with git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed")]
    Missing,
    #[error("`{0}` is not in a git repository")]
    NoRepository(String),
    #[error("`git {command}` failed: {said}")]
    Failed { command: String, code: Option<i32>, said: String, printed: String },
    #[error("another process holds `{0}`")]
    Locked(String),
    #[error("`{path}`: {source}")]
    File { path: String, source: io::Error },
    /// Somebody has left conflicts there.
    #[error("`{tree}` has conflicts that are not resolved: {files}")]
    Unresolved { tree: String, files: String },
    /// Another run works in the worktree that was to be used.
    #[error("another run works in `{0}`")]
    Occupied(String),
    /// What it found is not as a workflow needs it.
    #[error("{0}")]
    Unusable(String),
}

impl GitError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.display().to_string(), source }
    }

    /// The exit code of a git that ran.
    pub fn code(&self) -> Option<i32> {
        let Self::Failed { code, .. } = self else { return None };
        *code
    }
}

type Result<T> = std::result::Result<T, GitError>;

/// A repository whose git commands are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Git {
    /// What all worktrees share.
    common: PathBuf,
    /// The directory that the person works in.
    top: PathBuf,
    /// Whether git does not know who the person is.
    is_anonymous: bool,
}

/// The right to change refs and worktrees of a repository.
pub struct Lock {
    file: File,
}

/// Where a git command works.
#[derive(Clone, Copy)]
enum At<'a> {
    /// On refs and objects alone.
    Common,
    /// In a checkout, with its own git directory.
    Tree { own: &'a Path, tree: &'a Path },
    /// In a checkout of another repository.
    Other { own: &'a Path, tree: &'a Path },
}

impl Git {
    /// The repository that a directory is in.
    pub fn open(directory: &Path) -> Result<Self> {
        if !directory.is_dir() {
            let gone = io::Error::from(io::ErrorKind::NotADirectory);
            let missing = std::fs::metadata(directory).err().unwrap_or(gone);
            return Err(GitError::file(directory, missing));
        }
        let none = || GitError::NoRepository(directory.display().to_string());
        question::check_files(directory)?;
        let ask = |question: &[&str]| question::ask(directory, question);
        let common = ask(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        let common = common.ok_or_else(none)?;
        let common = common.canonicalize().map_err(|error| GitError::file(&common, error))?;
        if ask(&["rev-parse", "--is-bare-repository"])?.as_deref() == Some(Path::new("true")) {
            let path = directory.display();
            let reason = format!("`{path}` is a bare repository; start in a checkout of it");
            return Err(GitError::Unusable(reason));
        }
        let top = ask(&["rev-parse", "--show-toplevel"])?.unwrap_or_else(|| directory.to_owned());
        let is_anonymous = ask(&["config", "--get", "user.email"])?.is_none();
        Ok(Self { common, top, is_anonymous })
    }

    pub fn common(&self) -> &Path {
        &self.common
    }

    /// The checkout that the person works in.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Waits for the right to change the repository.
    pub fn lock(&self) -> Result<Lock> {
        wait_for(&self.common.join(LOCK_FILE))
    }

    /// Waits for the right to fill a worktree that git knows.
    pub(crate) fn lock_tree(&self, tree: &Path) -> Result<Lock> {
        wait_for(&self.own_directory(tree)?.join(LOCK_FILE))
    }

    /// A lock of another name, unless somebody holds it: merges wait for each other longer than git calls do.
    pub fn try_lock(&self, name: &str) -> Result<Option<Lock>> {
        try_lock(&self.common.join(name))
    }

    /// Whether git has an entry for a worktree at this place, whether or not it is there.
    pub(crate) fn is_registered(&self, tree: &Path) -> Result<bool> {
        let real = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
        Ok(self.entries()?.iter().any(|(_, path)| *path == real || path == tree))
    }

    /// Runs git on refs and objects; returns what it printed.
    pub fn run<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Result<String> {
        self.git(At::Common, None, args)
    }

    /// The same while holding the lock.
    pub fn run_locked<I: AsRef<OsStr>>(
        &self,
        lock: &Lock,
        args: impl IntoIterator<Item = I>,
    ) -> Result<String> {
        self.git(At::Common, Some(lock), args)
    }

    /// Runs git in one of the repository's checkouts.
    pub fn run_in<I: AsRef<OsStr>>(
        &self,
        tree: &Path,
        lock: Option<&Lock>,
        args: impl IntoIterator<Item = I>,
    ) -> Result<String> {
        let own = self.own_directory(tree)?;
        self.git(At::Tree { own: &own, tree }, lock, args)
    }

    /// Runs git on a repository that an agent may have written: on its objects, refs and index, without its settings.
    pub(crate) fn run_without_settings<I: AsRef<OsStr>>(
        &self,
        own: &Path,
        tree: &Path,
        args: impl IntoIterator<Item = I>,
    ) -> Result<String> {
        let failed = |error| GitError::file(own, error);
        let copy = tempfile::tempdir().map_err(failed)?;
        let head = regular::read_text(&own.join("HEAD"), MAX_POINTER_BYTES);
        let head = head.map_err(|error| GitError::Unusable(error.to_string()))?;
        std::fs::write(copy.path().join("HEAD"), head).map_err(failed)?;
        std::fs::write(copy.path().join("config"), EMPTY_SETTINGS).map_err(failed)?;
        for name in ["objects", "refs", "packed-refs", "shallow", "index"] {
            std::os::unix::fs::symlink(own.join(name), copy.path().join(name)).map_err(failed)?;
        }
        self.git(At::Other { own: copy.path(), tree }, None, args)
    }

    /// Whether git answers yes: exit code 0, and not 1.
    pub fn asks<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Result<bool> {
        match self.run(args) {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(1) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The commit that a name stands for; `None` where there is no such name.
    pub fn commit(&self, name: &str) -> Result<Option<String>> {
        let wanted = format!("{name}^{{commit}}");
        match self.run(["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]) {
            Ok(id) => Ok(Some(id.trim().to_owned())),
            Err(error) if error.code() == Some(1) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The branch that is checked out in a tree; `None` for a detached head.
    pub fn branch_in(&self, tree: &Path) -> Result<Option<String>> {
        match self.run_in(tree, None, ["symbolic-ref", "--quiet", "HEAD"]) {
            Ok(name) => Ok(name.trim().strip_prefix("refs/heads/").map(str::to_owned)),
            Err(error) if error.code() == Some(1) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The git directory of a checkout, as the repository itself has it.
    pub fn own_directory(&self, tree: &Path) -> Result<PathBuf> {
        let real = tree.canonicalize().map_err(|error| GitError::file(tree, error))?;
        for (own, path) in self.entries()? {
            if path == real {
                return Ok(own);
            }
        }
        let main = self.common.parent().map(Path::to_owned);
        match main.is_some_and(|main| main == real) || self.top == real || self.top == tree {
            true => Ok(self.common.clone()),
            false => Err(GitError::Unusable(format!(
                "`{}` is not a worktree of the repository",
                tree.display()
            ))),
        }
    }

    /// Every checkout: its git directory, and where it is.
    pub(crate) fn checkouts(&self) -> Result<Vec<(PathBuf, PathBuf)>> {
        let main = self.common.parent().map(|tree| (self.common.clone(), tree.to_owned()));
        Ok(self.entries()?.into_iter().chain(main).collect())
    }

    /// Every linked worktree: its git directory, and where it is.
    fn entries(&self) -> Result<Vec<(PathBuf, PathBuf)>> {
        let directory = self.common.join("worktrees");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let own = entry.path();
            let Ok(pointer) = regular::read_text(&own.join("gitdir"), MAX_POINTER_BYTES) else {
                continue;
            };
            let pointer = own.join(pointer.trim_end());
            let Some(tree) = pointer.parent() else { continue };
            let tree = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
            found.push((own, tree));
        }
        Ok(found)
    }

    fn git<I: AsRef<OsStr>>(
        &self,
        at: At<'_>,
        lock: Option<&Lock>,
        args: impl IntoIterator<Item = I>,
    ) -> Result<String> {
        let mut command = command();
        let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        match at {
            At::Common => command.env("GIT_DIR", &self.common).current_dir(&self.common),
            At::Tree { own, tree } | At::Other { own, tree } => {
                command.env("GIT_DIR", own).env("GIT_WORK_TREE", tree).current_dir(tree)
            }
        };
        if let At::Common | At::Tree { .. } = at {
            // A file in its own directory would say where settings are.
            command.env("GIT_COMMON_DIR", &self.common);
        }
        // The lock is open in it as long as it lives.
        command.stdin(match lock.map(|lock| lock.file.try_clone()) {
            Some(Ok(file)) => Stdio::from(file),
            Some(Err(error)) => return Err(GitError::file(&self.common, error)),
            None => Stdio::null(),
        });
        if self.is_anonymous {
            // A repository whose person has no name yet can still be committed to.
            for role in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{role}_NAME"), "windlass");
                command.env(format!("GIT_{role}_EMAIL"), "windlass@localhost");
            }
        }
        command.args(&args);
        let mut output = self.output(&mut command)?;
        for _ in 0..MAX_LEFTOVERS {
            if output.status.success() || !self.clear_leftover(lock, &output.stderr) {
                break;
            }
            output = self.output(&mut command)?;
        }
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        // A setting for one call is not what it does.
        let is_setting = args.first().is_some_and(|first| first == "-c");
        let words = args.iter().skip(if is_setting { 2 } else { 0 });
        let words: Vec<_> = words.take(2).map(|arg| arg.to_string_lossy()).collect();
        let said = [&output.stderr, &output.stdout]
            .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
        let said = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        Err(GitError::Failed {
            command: words.join(" "),
            code: output.status.code(),
            said: windlass_core::text::prefix(&said, ERROR_BYTES).to_owned(),
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }

    /// Whether something that a killed git has left was in the way, and is not any more.
    fn clear_leftover(&self, lock: Option<&Lock>, said: &[u8]) -> bool {
        let said = String::from_utf8_lossy(said);
        match (lock, stale_lock::named_in(&said)) {
            (Some(_), Some(file)) => self.clear_stale_lock(&file),
            (None, Some(_)) => false,
            (_, None) => registration::discard_broken(self, &said),
        }
    }

    fn output(&self, command: &mut Command) -> Result<Output> {
        let directory = command.get_current_dir().unwrap_or(&self.common).to_owned();
        command.output().map_err(|error| not_started(&directory, error))
    }
}

/// Why a git could not be started in a directory. One that is gone looks as if git were.
fn not_started(directory: &Path, error: io::Error) -> GitError {
    match error.kind() {
        io::ErrorKind::NotFound if directory.is_dir() => GitError::Missing,
        _ => GitError::file(directory, error),
    }
}

fn wait_for(path: &Path) -> Result<Lock> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(lock) = try_lock(path)? {
            return Ok(lock);
        }
        if waited > LOCK_WAIT {
            return Err(GitError::Locked(path.display().to_string()));
        }
        std::thread::sleep(LOCK_POLL);
        waited += LOCK_POLL;
    }
}

fn try_lock(path: &Path) -> Result<Option<Lock>> {
    let failed = |error: rustix::io::Errno| GitError::file(path, error.into());
    // An agent can write beside it: a link that it left is not followed.
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)).map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock { file: File::from(file) })),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Variables of git that stay: where the person's own configuration is.
const OWN_VARIABLES: [&str; 3] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/// Git without anything that the environment or the repository would have it run.
fn command() -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        let is_own = OWN_VARIABLES.iter().any(|own| name == *own);
        if name.to_string_lossy().starts_with("GIT_") && !is_own {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", "true");
    // Who only looks does not lock the index of a checkout, neither in the way of a person nor beyond its own death.
    command.env("GIT_OPTIONAL_LOCKS", "0");
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.quotePath=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "submodule.recurse=false",
        "commit.gpgSign=false",
        "advice.detachedHead=false",
        "rerere.enabled=false",
    ] {
        command.args(["-c", setting]);
    }
    command
}
