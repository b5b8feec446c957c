//! The helper as a process: installed in the data directory, started with a socket, waited for.
//!
//! Invariants:
//! - The file's name holds its content's hash, and it appears whole or not at all, so a newer windlass and
//!   an older one share a data directory without harm.
//! - The helper inherits nothing: no environment, no descriptors but its socket.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::timeout;

use crate::channel::{Channel, SetupFailure, Starter};
use crate::network::Egress;
use crate::{Command, Error, Running};
use windlass_helper::protocol::{Ready, Setup};

/// The helper's program, compiled by the build script.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/helper"));

/// Distinguishes helpers of different content.
pub(crate) const HASH: &str = env!("WINDLASS_HELPER_HASH");

/// How long a helper may take to end everything once its connection is closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Puts the helper into the data directory, once per content; returns its whole path, as it is started in another
/// directory.
pub(crate) fn install(data: &Path) -> Result<PathBuf, Error> {
    let data = std::path::absolute(data)
        .map_err(|source| Error::Path { path: data.to_owned(), source })?;
    let directory = data.join("helper");
    let path = directory.join(format!("helper-{HASH}"));
    let whole = || fs::metadata(&path).is_ok_and(|found| found.len() == PROGRAM.len() as u64);
    if whole() {
        return Ok(path);
    }
    let write = || -> io::Result<()> {
        fs::create_dir_all(&directory)?;
        let unique = unique_name("new");
        let new = directory.join(&unique);
        let mut file = File::options().create_new(true).write(true).mode(0o755).open(&new)?;
        file.write_all(PROGRAM)?;
        drop(file);
        fs::rename(&new, &path)
    };
    write().map_err(|source| Error::Install { path: path.clone(), source })?;
    Ok(path)
}

/// What is wrong with the helper in a data directory. One that was never needed is not there, and nothing is wrong.
pub fn helper_problem(data: &Path) -> Option<String> {
    let directory = data.join("helper");
    let path = directory.join(format!("helper-{HASH}"));
    let is_used = fs::read_dir(&directory).is_ok_and(|mut files| files.next().is_some());
    match fs::read(&path) {
        Ok(found) if found == PROGRAM => None,
        Ok(_) => Some(format!("{} is not the helper of this program", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            is_used.then(|| format!("{} is missing", path.display()))
        }
        Err(error) => Some(format!("{} cannot be read: {error}", path.display())),
    }
}

/// Writes the helper of this program again.
pub fn reinstall_helper(data: &Path) -> Result<PathBuf, Error> {
    let path = data.join("helper").join(format!("helper-{HASH}"));
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::Install { path, source: error })
        }
        Ok(()) | Err(_) => install(data),
    }
}

/// A name that no other process uses, and that this one uses once.
pub(crate) fn unique_name(what: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{what}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A helper that runs, with the channel to it.
#[derive(Debug)]
pub(crate) struct Helper {
    channel: Channel,
    child: Child,
}

impl Helper {
    /// Starts the helper and has it make the sandbox.
    pub(crate) async fn start(
        program: &Path,
        setup: Setup,
        egress: Option<Egress>,
        lease: Option<Duration>,
    ) -> Result<Self, SetupFailure> {
        let failed =
            |source| SetupFailure::Broken(Error::Spawn { path: program.to_owned(), source });
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let theirs: OwnedFd = theirs.into_std().map_err(failed)?.into();
        let theirs = File::from(theirs);
        rustix::io::ioctl_fionbio(&theirs, false).map_err(|error| failed(error.into()))?;
        let mut command = tokio::process::Command::new(program);
        command
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs.try_clone().map_err(failed)?))
            .stdout(Stdio::from(theirs))
            .stderr(Stdio::null());
        let mut child = spawn(&mut command).await.map_err(failed)?;
        // The command keeps its copies of the helper's end until it is dropped.
        drop(command);
        let (from, to) = ours.into_split();
        match Channel::open(from, to, setup, egress, lease).await {
            Ok(channel) => Ok(Self { channel, child }),
            Err(refused) => {
                let _ = timeout(SHUTDOWN_TIMEOUT, child.wait()).await;
                Err(refused)
            }
        }
    }

    pub(crate) fn ready(&self) -> &Ready {
        &self.channel.ready
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.channel.is_open()
    }

    pub(crate) fn starter(&self) -> Starter {
        self.channel.starter()
    }

    /// Closes the connection and waits until the helper, and everything it started, is gone.
    pub(crate) async fn stop(mut self) {
        self.channel.close().await;
        // Only a process the kernel itself cannot end makes this time out.
        let _ = timeout(SHUTDOWN_TIMEOUT, self.child.wait()).await;
    }
}

/// A program just written is busy for as long as some other child, between its own fork and its new
/// program, holds the descriptor it was written by. That passes at once.
async fn spawn(command: &mut tokio::process::Command) -> io::Result<Child> {
    for _ in 0..100 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            outcome => return outcome,
        }
    }
    command.spawn()
}

/// A helper that is started when first needed, and again when it was lost.
#[derive(Debug, Default)]
pub(crate) struct LazyHelper {
    helper: tokio::sync::Mutex<Option<Helper>>,
}

impl LazyHelper {
    /// Starts a command, after `make` if no helper is alive. `env` is built from what the helper arranged; `hidden` are
    /// sockets to cover first.
    pub(crate) async fn start<F>(
        &self,
        command: Command,
        make: impl FnOnce() -> F,
        env: impl FnOnce(&Ready, &Command) -> Vec<String>,
        hidden: impl FnOnce() -> Vec<String>,
    ) -> Result<Running, Error>
    where
        F: Future<Output = Result<Helper, Error>>,
    {
        let (starter, env, hidden) = {
            let mut slot = self.helper.lock().await;
            if let Some(lost) = slot.take_if(|helper| !helper.is_alive()) {
                lost.stop().await;
            }
            let helper = match slot.take() {
                Some(helper) => slot.insert(helper),
                None => slot.insert(make().await?),
            };
            (helper.starter(), env(helper.ready(), &command), hidden())
        };
        starter.start(command, env, hidden).await
    }

    pub(crate) async fn stop(&self) {
        if let Some(helper) = self.helper.lock().await.take() {
            helper.stop().await;
        }
    }
}
