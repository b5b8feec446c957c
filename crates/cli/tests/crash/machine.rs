//! One throwaway machine: directories, a model server, and the program that may be killed on it.

use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;
use windlass_cli::Hooks;
use windlass_store::{CommitPhase, CommitPoint, Options};
use windlass_testkit::ModelServer;

/// Set: this process is `windlass`. Its value is the point to die at, or empty.
pub const CHILD: &str = "WINDLASS_CRASH";
/// A file that the program appends one line a commit to: `number synced_bytes`.
const LOG: &str = "WINDLASS_CRASH_LOG";

/// A moment to die at: the n-th commit of the n-th process of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    pub process: usize,
    pub commit: u64,
    pub phase: CommitPhase,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} commit {} of process {}", self.phase, self.commit, self.process)
    }
}

/// Whether what was not synced survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    Stays,
    Fails,
}

/// How one command line ended.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub commits: u64,
}

pub struct Machine {
    pub server: ModelServer,
    root: TempDir,
    started: usize,
}

impl Machine {
    pub fn talking_to(server: ModelServer) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("workspace")).unwrap();
        Self { server, root, started: 0 }
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// Programs here come before those of the machine.
    pub fn bin(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    /// Starts the program and leaves it running.
    pub fn start(&mut self, args: &[String]) -> Child {
        self.started += 1;
        let log = self.root.path().join("commits-of-a-held-run");
        let mut command = self.command(&log, "");
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Waits until a held command says that it is under way, or until the program has ended.
    pub fn reaches(&self, pipe: &Path, child: &mut Child) -> bool {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(pipe, flags, Mode::empty()).unwrap();
        loop {
            let mut wait = [PollFd::new(&pipe, PollFlags::IN)];
            let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            if rustix::event::poll(&mut wait, Some(&timeout)).unwrap() > 0
                && wait[0].revents().contains(PollFlags::IN)
            {
                return true;
            }
            if child.try_wait().unwrap().is_some() {
                return false;
            }
        }
    }

    fn command(&self, log: &Path, point: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let path =
            format!("{}:{}", self.bin().display(), std::env::var("PATH").unwrap_or_default());
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.root.path())
            .env("USER", "ada")
            .env("WINDLASS_DATA", self.data())
            .env("LITELLM_API_BASE", self.server.base())
            .env("LITELLM_MODEL", "gpt-4o")
            .env("CONTAINER_MODE", "local")
            // A machine with Chromium offers one tool more.
            .env("WINDLASS_BROWSER", "off")
            .env(CHILD, point)
            .env(LOG, log)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end, or to its death.
    pub fn windlass(&mut self, args: &[&str], crash: Option<(Crash, Power)>) -> Ran {
        let log = self.root.path().join(format!("commits-{}", self.started));
        let crash = crash.filter(|(crash, _)| crash.process == self.started);
        self.started += 1;
        let point = crash
            .map_or_else(String::new, |(crash, _)| format!("{}:{:?}", crash.commit, crash.phase));
        let output = self.command(&log, &point).args(args).output().unwrap();
        let commits = Commits::read(&log);
        if matches!(crash, Some((_, Power::Fails))) && output.status.code().is_none() {
            self.lose_what_was_not_synced(&commits);
        }
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            commits: commits.count,
        }
    }

    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// A power failure: the log keeps what the last synced commit made sure of, and nothing more.
    fn lose_what_was_not_synced(&self, commits: &Commits) {
        let Some(length) = commits.synced_bytes else { return };
        let log = self.data().join("windlass.db-wal");
        if let Ok(file) = OpenOptions::new().write(true).open(&log) {
            let now = file.metadata().unwrap().len();
            file.set_len(length.min(now)).unwrap();
        }
        // The shared index is rebuilt from the log; a machine that lost power has none.
        let _ = std::fs::remove_file(self.data().join("windlass.db-shm"));
    }
}

/// What a process wrote about its commits.
struct Commits {
    count: u64,
    synced_bytes: Option<u64>,
}

impl Commits {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut commits = Self { count: 0, synced_bytes: None };
        for line in text.lines() {
            let mut words = line.split(' ');
            commits.count = words.next().unwrap().parse().unwrap();
            commits.synced_bytes = Some(words.next().unwrap().parse().unwrap());
        }
        commits
    }
}

/// The other side: the program, with a hook around every commit.
pub fn be_windlass() -> ExitCode {
    let point = std::env::var(CHILD).unwrap_or_default();
    let log = std::env::var_os(LOG).expect("the log is named");
    let mut log = OpenOptions::new().create(true).append(true).open(log).expect("the log opens");
    let log = std::sync::Mutex::new(move |line: String| log.write_all(line.as_bytes()));
    let on_commit = move |at: CommitPoint| {
        let dies = point == format!("{}:{:?}", at.number, at.phase);
        if dies && at.phase == CommitPhase::Before {
            die();
        }
        if at.phase == CommitPhase::After {
            let line = format!("{} {}\n", at.number, at.synced_bytes);
            (log.lock().unwrap())(line).expect("the log is written");
        }
        if dies {
            die();
        }
    };
    let store = Options { on_commit: Some(Arc::new(on_commit)), ..Options::default() };
    let args: Vec<OsString> = std::env::args_os().collect();
    windlass_cli::run(args, Hooks { store })
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}
