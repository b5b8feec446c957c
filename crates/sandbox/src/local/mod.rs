//! The local sandbox: kernel namespaces with a root of their own, or Landlock alone where those are refused.
//!
//! Invariants:
//! - What the kernel allows is found by trying it, never assumed from a version or a setting. The result is
//!   remembered for as long as the circumstances are the same.
//! - The weaker isolation is only used when the kernel refuses the stronger, and the report says so.

mod capability_cache;
mod credentials;
mod read_only_mounts;
mod setup;
mod report;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::api::{BoxFuture, Command, IsolationReport, Sandbox, SandboxKind};
use crate::channel::SetupFailure;
use crate::helper::{self, Helper, LazyHelper};
use crate::host_sockets::HostSockets;
use crate::limits::ResourceLimits;
use crate::network::Network;
use crate::workspace::{self, HomeFiles, canonical};
use crate::{Error, Running, environment};
use windlass_core::layout::{AddedDirectory, Layout};
use windlass_helper::protocol::{Isolation, Ready};

pub use read_only_mounts::TOOLCHAINS;

use capability_cache::CapabilityCache;

/// What a local sandbox is made from; every value comes from configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Windlass's data directory: holds the helper, and is hidden from commands.
    pub data: PathBuf,
    /// The workspace on the host.
    pub workspace: PathBuf,
    /// Where the files of the task are in it, and so where it is shown: a person's directory at its own path.
    pub layout: Layout,
    /// What lies outside the workspace and is shown at its own path.
    pub added: Vec<AddedDirectory>,
    /// Files that the empty home directory has from the start.
    pub home_files: HomeFiles,
    /// The user's home directory; commands get an empty one at the same path.
    pub home: PathBuf,
    /// Windlass's own environment, of which commands get what is allowed.
    pub environment: Vec<(String, String)>,
    /// Names allowed beside the usual ones.
    pub environment_names: Vec<String>,
    /// Shown read-only if they exist: absolute, or relative to `home` ([`TOOLCHAINS`] by default). Files
    /// that look like credentials stay hidden.
    pub read_only: Vec<PathBuf>,
    /// Hidden wherever they would be seen.
    pub hidden: Vec<PathBuf>,
    /// Shown read-only at `/skills`.
    pub skills: Option<PathBuf>,
    /// Shown read-only among the files of the task.
    pub trace: Option<PathBuf>,
    /// What commands may reach.
    pub network: Network,
    /// What commands may use.
    pub limits: ResourceLimits,
    /// Whether to ask the kernel for namespaces at all.
    pub namespaces: Namespaces,
}

/// Whether namespaces are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Used where the kernel allows them.
    IfAvailable,
    /// Not asked for; Landlock alone guards files.
    Off,
}

/// The local sandbox of one task.
#[derive(Debug)]
pub struct Local {
    config: Config,
    program: PathBuf,
    isolation: Isolation,
    report: IsolationReport,
    environment: Vec<(String, String)>,
    /// Home and temporary directory without namespaces; removed with the sandbox.
    scratch: Option<PathBuf>,
    capabilities: CapabilityCache,
    helper: LazyHelper,
    host_sockets: Mutex<Option<HostSockets>>,
}

impl Local {
    /// Finds out what this machine allows and prepares the sandbox. Nothing runs in it yet.
    pub async fn open(mut config: Config) -> Result<Self, Error> {
        config.workspace = canonical(&config.workspace)?;
        if !config.data.is_dir() {
            // To make what is there would lock the directory above it, for all tasks that start.
            fs::create_dir_all(&config.data)
                .map_err(|source| Error::Path { path: config.data.clone(), source })?;
        }
        config.data = canonical(&config.data)?;
        config.home = fs::canonicalize(&config.home).unwrap_or(config.home);
        let program = helper::install(&config.data)?;
        let environment =
            environment::allowed_variables(&config.environment, &config.environment_names);
        let capabilities =
            CapabilityCache::open(&config.data, &config.workspace, config.network.mode());
        let (workspace, _) = workspace::place_inside(&config.workspace, &config.layout);
        let mut local = Self {
            report: IsolationReport {
                kind: SandboxKind::Local,
                workspace,
                memory_bytes: None,
                has_own_sockets: true,
                facts: Vec::new(),
                warnings: Vec::new(),
            },
            config,
            program,
            isolation: Isolation::Namespaces,
            environment,
            scratch: None,
            capabilities,
            helper: LazyHelper::default(),
            host_sockets: Mutex::new(None),
        };
        local.find_isolation().await?;
        Ok(local)
    }

    /// Makes the sandbox once, as for the first command, and removes it again; unless the result is known from
    /// an earlier time.
    async fn find_isolation(&mut self) -> Result<(), Error> {
        let mut namespaces = "they are switched off".to_owned();
        if self.config.namespaces == Namespaces::IfAvailable {
            if let Some(ready) = self.capabilities.recall() {
                // A problem with this very workspace is still reported now.
                self.prepare()?;
                self.describe(&ready, None);
                return Ok(());
            }
            // The first tasks of a burst would all try it; one does, and the others know.
            static ATTEMPT: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
            let attempt = ATTEMPT.lock().await;
            if let Some(ready) = self.capabilities.recall() {
                drop(attempt);
                self.prepare()?;
                self.describe(&ready, None);
                return Ok(());
            }
            match self.attempt().await {
                Ok(ready) => {
                    self.capabilities.remember(&ready);
                    self.describe(&ready, None);
                    return Ok(());
                }
                Err(SetupFailure::Failed { stage, source }) if is_refusal(&source) => {
                    namespaces = format!("{stage}: {source}");
                }
                Err(refused) => return Err(refused.into()),
            }
        }
        self.isolation = Isolation::Landlock;
        self.scratch = Some(self.make_scratch()?);
        match self.attempt().await {
            Ok(ready) => {
                self.describe(&ready, Some(&namespaces));
                Ok(())
            }
            Err(SetupFailure::Failed { stage, source }) if is_refusal(&source) => {
                let landlock = format!("{stage}: {source}");
                Err(Error::NoIsolation { namespaces, landlock })
            }
            Err(refused) => Err(refused.into()),
        }
    }

    async fn attempt(&self) -> Result<Ready, SetupFailure> {
        let helper = self.make().await?;
        let ready = helper.ready().clone();
        helper.stop().await;
        Ok(ready)
    }

    /// The report was shown already, so a sandbox that cannot be made as reported is not made weaker.
    async fn make_for_commands(&self) -> Result<Helper, Error> {
        let owner = workspace::owner(&self.config.workspace)?;
        workspace::make_own_task_directory(&self.config.workspace, &self.config.layout, owner)?;
        self.make().await.map_err(|refused| {
            self.capabilities.forget();
            refused.into()
        })
    }

    async fn make(&self) -> Result<Helper, SetupFailure> {
        let mut setup = self.setup().await.map_err(SetupFailure::Broken)?;
        setup.files = self.config.home_files.in_home(&setup.home);
        let (egress, lease) = (self.config.network.egress(), self.config.limits.lease);
        Helper::start(&self.program, setup, egress, lease).await
    }

    /// Sockets of the host's processes where commands see them. With the host's network, those that commands make cannot
    /// be told apart from others, so only what is there before the first command is covered.
    fn new_host_sockets(&self) -> Vec<String> {
        if self.isolation != Isolation::Namespaces || matches!(self.config.network, Network::Open) {
            return Vec::new();
        }
        let mut sockets = self.host_sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sockets.as_mut().map(HostSockets::find_new).unwrap_or_default();
        found.iter().map(|path| text(path)).collect()
    }

    /// A home for commands that see the real root, in the one place everyone can reach.
    fn make_scratch(&self) -> Result<PathBuf, Error> {
        let owner = workspace::owner(&self.config.workspace)?;
        let path = Path::new("/tmp").join(helper::unique_name("windlass"));
        let make = || -> io::Result<()> {
            // One that a process of the same number left is not to be trusted.
            let _ = fs::remove_dir_all(&path);
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            chown(&path, Some(owner.0), Some(owner.1))
        };
        make().map_err(|source| Error::Path { path: path.clone(), source })?;
        Ok(path)
    }

    /// A host path as commands would name it.
    fn as_seen(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.config.workspace) {
            Ok(below) if self.isolation == Isolation::Namespaces => {
                workspace::place_inside(&self.config.workspace, &self.config.layout).0.join(below)
            }
            _ => path.to_owned(),
        }
    }

    /// What the sandbox itself adds to the environment.
    fn own_environment(&self, ready: &Ready) -> Vec<(String, String)> {
        let mut own = vec![("SHELL".to_owned(), ready.shell.clone())];
        match &self.scratch {
            None => own.push(("HOME".to_owned(), text(&self.config.home))),
            Some(scratch) => {
                own.push(("HOME".to_owned(), text(scratch)));
                own.push(("TMPDIR".to_owned(), text(scratch)));
                // The real home is not at `$HOME`, so tools need to know where their parts are.
                for (name, part) in
                    [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")]
                {
                    let known = self.environment.iter().any(|(known, _)| known == name);
                    if !known && self.config.read_only.iter().any(|shown| shown == Path::new(part))
                    {
                        own.push((name.to_owned(), text(&self.config.home.join(part))));
                    }
                }
            }
        }
        if self.config.read_only.iter().any(|shown| shown == Path::new(".npm")) {
            // A shown cache is read-only, and npm stops where it cannot write to its cache.
            let home = self.scratch.as_ref().unwrap_or(&self.config.home);
            own.push(("npm_config_cache".to_owned(), text(&home.join(".cache/npm"))));
        }
        own.extend(environment::proxies(ready.proxy_port));
        own
    }
}

impl Sandbox for Local {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Running, Error>> {
        Box::pin(self.helper.start(
            command,
            || self.make_for_commands(),
            |ready, command| {
                let own = self.own_environment(ready);
                environment::join(&self.environment, &own, &command.env)
            },
            || self.new_host_sockets(),
        ))
    }

    fn isolation(&self) -> IsolationReport {
        self.report.clone()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.helper.stop())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            // Nothing of value is in it.
            let _ = fs::remove_dir_all(scratch);
        }
    }
}

/// Whether the kernel refused, rather than something being wrong with what was asked.
fn is_refusal(error: &io::Error) -> bool {
    const EUSERS: i32 = 87;
    const ENOSPC: i32 = 28;
    const EINVAL: i32 = 22;
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
        || matches!(error.raw_os_error(), Some(EUSERS | ENOSPC | EINVAL))
}

/// The protocol carries texts. A path that is not one could not be named by an agent either.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
