//! Where a measurement happens: throwaway directories, and the programs that are measured.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::server::Server;

/// A data directory, a workspace, and the floor's files. Gone when dropped.
pub struct BenchDir {
    top: TempDir,
}

/// A program that was started, and when.
pub struct Started {
    pub child: Child,
    /// The moment before it was started.
    pub at: Instant,
}

impl BenchDir {
    /// Makes the directories.
    pub fn new() -> Result<Self> {
        let top = tempfile::Builder::new().prefix("windlass-bench-").tempdir()?;
        let place = Self { top };
        std::fs::create_dir(place.workspace())?;
        std::fs::write(place.workspace().join("notes.txt"), "a short note\n")?;
        Ok(place)
    }

    /// The workspace of both sides.
    pub fn workspace(&self) -> PathBuf {
        self.path("work")
    }

    /// Windlass's data directory.
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// The bodies that windlass sent.
    pub fn bodies(&self) -> PathBuf {
        self.path("bodies")
    }

    /// A path in the place.
    pub fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// Starts windlass on a task, with the sandbox that it takes by default.
    pub fn windlass(&self, server: &Server) -> Result<Started> {
        let mut command = Command::new(program("windlass")?);
        command
            .args(["run", "measure", "--quiet", "--max-iterations", "100000", "--workspace"])
            .arg(self.workspace())
            .env_clear()
            .envs(environment(server, self))
            .env("WINDLASS_DATA", self.data());
        start(command)
    }

    /// Starts the floor with this many tasks.
    pub fn floor(&self, server: &Server, command: &str, tasks: usize) -> Result<Started> {
        let mut floor = Command::new(program("floor")?);
        floor.arg(server.address()).arg(self.bodies()).arg(command).arg(self.workspace());
        floor.arg(self.path("floor")).arg(tasks.to_string());
        // What a command finds in a sandbox, as far as it makes a difference to a shell.
        let path = std::env::var("PATH").unwrap_or_default();
        floor.env_clear().env("PATH", path).env("LC_CTYPE", "C.UTF-8");
        floor.env("HOME", self.path("home")).env("SHELL", "/bin/bash");
        start(floor)
    }
}

/// What windlass finds in its environment: a model to ask, and no one's settings.
pub fn environment(server: &Server, place: &BenchDir) -> Vec<(String, String)> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    vec![
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ("HOME".to_owned(), text(place.path("home"))),
        ("LITELLM_API_BASE".to_owned(), server.base()),
        ("LITELLM_MODEL".to_owned(), "scripted".to_owned()),
        // Not an engine that this machine may have: containers are measured separately.
        ("CONTAINER_MODE".to_owned(), "local".to_owned()),
        // Memory is read from outside, which windlass's processes forbid otherwise.
        ("WINDLASS_DUMPABLE".to_owned(), "1".to_owned()),
    ]
}

impl Started {
    /// Waits for its end, which must be a good one.
    pub fn finish(mut self) -> Result<()> {
        let ended = self.child.wait()?;
        ensure!(ended.success(), "it ended with {ended}");
        Ok(())
    }
}

/// Starts a program that says nothing unless it fails.
pub fn start(mut command: Command) -> Result<Started> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let at = Instant::now();
    let child = command.spawn().with_context(|| format!("{command:?} does not start"))?;
    Ok(Started { child, at })
}

/// A program built beside this one.
pub fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.parent().unwrap_or(Path::new("/")).join(name);
    ensure!(path.exists(), "`{}` is missing; use `scripts/bench`, which builds it", path.display());
    Ok(path)
}
