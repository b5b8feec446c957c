//! The local sandbox: kernel namespaces with a root of their own, or Landlock alone where those are refused.
//!
//! Invariants:
//! - What the kernel allows is found by trying it, never assumed from a version or a setting. The result is
//!   remembered for as long as the circumstances are the same.
//! - The weaker isolation is only used when the kernel refuses the stronger, and the report says so.

mod capability_cache;
mod credentials;
mod read_only_mounts;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::api::{BoxFuture, Command, IsolationReport, Sandbox, SandboxKind};
use crate::channel::SetupFailure;
use crate::helper::{self, Helper, LazyHelper};
use crate::host_sockets::{HostSockets, VisibleDirectory};
use crate::limits::ResourceLimits;
use crate::network::Network;
use crate::workspace::{self, HomeFiles, canonical};
use crate::{Error, Running, environment};
use windlass_core::layout::{AddedDirectory, Layout};
use windlass_helper::protocol::{Access, Bind, Isolation, Ready, Setup};

pub use read_only_mounts::TOOLCHAINS;

use capability_cache::CapabilityCache;
use read_only_mounts::ReadOnlyMount;

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
        fs::create_dir_all(&config.data)
            .map_err(|source| Error::Path { path: config.data.clone(), source })?;
        config.data = canonical(&config.data)?;
        config.home = fs::canonicalize(&config.home).unwrap_or(config.home);
        let program = helper::install(&config.data)?;
        let environment = environment::allowed(&config.environment, &config.environment_names);
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
                self.setup().await?;
                self.describe(&ready, None);
                return Ok(());
            }
            // The first tasks of a burst would all try it; one does, and the others know.
            static ATTEMPT: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
            let attempt = ATTEMPT.lock().await;
            if let Some(ready) = self.capabilities.recall() {
                drop(attempt);
                self.setup().await?;
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
        self.make().await.map_err(|refused| {
            self.capabilities.forget();
            refused.into()
        })
    }

    async fn make(&self) -> Result<Helper, SetupFailure> {
        let mut setup = self.setup().await.map_err(SetupFailure::Broken)?;
        setup.files = self.config.home_files.below(&setup.home);
        let (egress, lease) = (self.config.network.egress(), self.config.limits.lease);
        Helper::start(&self.program, setup, egress, lease).await
    }

    async fn setup(&self) -> Result<Setup, Error> {
        let config = &self.config;
        let owner = workspace::owner(&config.workspace)?;
        workspace::prepare(&config.workspace, &config.layout, owner)?;
        self.refuse_what_cannot_be_hidden()?;
        let mut binds = Vec::new();
        let mut hidden = vec![config.data.clone()];
        hidden.extend(config.hidden.iter().cloned());
        for shown in self.read_only_mounts().await {
            if self.isolation == Isolation::Landlock {
                // Landlock allows and cannot take back: what is hidden is left out of what is allowed.
                let parts = shown.without_hidden();
                binds.extend(parts.iter().map(|source| bind(source, source)));
                continue;
            }
            // A workspace inside a toolchain directory is not part of the toolchain.
            let secrets = shown.hidden.into_iter();
            hidden.extend(secrets.filter(|path| !path.starts_with(&config.workspace)));
            binds.push(bind(&shown.source, &shown.target));
            binds.extend(
                shown.caches.iter().map(|(source, target)| Bind {
                    access: Access::Layered,
                    ..bind(source, target)
                }),
            );
        }
        let trace = workspace::trace_place(&config.workspace, &config.layout)?;
        let trace = trace.map(|place| self.as_seen(&place));
        let shown = [(&config.skills, Some(PathBuf::from("/skills"))), (&config.trace, trace)];
        for (source, target) in shown {
            if let (Some(source), Some(target)) = (source, target) {
                binds.push(bind(&canonical(source)?, &target));
            }
        }
        for other in workspace::other_tasks(&config.workspace, &config.layout) {
            binds.push(bind(&other, &self.as_seen(&other)));
        }
        let added = match self.isolation {
            Isolation::Landlock => workspace::without_nested(&config.added),
            Isolation::Namespaces | Isolation::Host | Isolation::Container => config.added.clone(),
        };
        for added in &added {
            let path = canonical(Path::new(&added.path))?;
            let access = if added.writable { Access::Writable } else { Access::ReadOnly };
            binds.push(Bind { access, ..bind(&path, &path) });
        }
        let sockets = self.all_host_sockets(&binds);
        let home = match &self.scratch {
            Some(scratch) => scratch,
            None => &config.home,
        };
        let (_, alias) = workspace::place_inside(&config.workspace, &config.layout);
        let alias = alias.filter(|_| self.isolation == Isolation::Namespaces);
        Ok(Setup {
            isolation: self.isolation,
            network: config.network.mode(),
            uid: owner.0,
            gid: owner.1,
            workspace: text(&config.workspace),
            workspace_at: text(&self.as_seen(&config.workspace)),
            workspace_alias: alias.unwrap_or_default().to_owned(),
            home: text(home),
            binds,
            files: Vec::new(),
            hidden: hidden
                .iter()
                .map(|path| text(&self.as_seen(path)))
                .chain(sockets.iter().map(|path| text(path)))
                .collect(),
            memory_bytes: config.limits.memory_bytes,
            processes: config.limits.processes,
            open_files: config.limits.open_files,
            file_bytes: config.limits.file_bytes,
            scratch_bytes: config.limits.scratch_bytes,
            control_group: helper::unique_name("task"),
            dumpable: environment::is_dumpable(&config.environment),
        })
    }

    /// What of the home directory is shown. The first search of large toolchains takes seconds: whoever waits for
    /// it can still be interrupted.
    async fn read_only_mounts(&self) -> Vec<ReadOnlyMount> {
        let (home, list) = (self.config.home.clone(), self.config.read_only.clone());
        let data = self.config.data.clone();
        let search = move || read_only_mounts::find(&home, &list, &data);
        // A search that panics shows nothing.
        tokio::task::spawn_blocking(search).await.unwrap_or_default()
    }

    /// Landlock alone cannot hide a part of the workspace.
    fn refuse_what_cannot_be_hidden(&self) -> Result<(), Error> {
        let config = &self.config;
        let inside = |path: &&PathBuf| path.starts_with(&config.workspace);
        match config.hidden.iter().chain([&config.data]).find(inside) {
            Some(path) if self.isolation == Isolation::Landlock => Err(Error::Setup {
                stage: format!("hide `{}` inside the workspace by Landlock alone", path.display()),
                source: io::ErrorKind::Unsupported.into(),
            }),
            Some(_) | None => Ok(()),
        }
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

    /// All sockets of the host's processes in what this sandbox shows. Later looks find those that were added.
    fn all_host_sockets(&self, binds: &[Bind]) -> Vec<PathBuf> {
        if self.isolation != Isolation::Namespaces {
            return Vec::new();
        }
        let config = &self.config;
        let workspace = VisibleDirectory {
            source: config.workspace.clone(),
            target: self.as_seen(&config.workspace),
        };
        let others = binds.iter().map(|bind| VisibleDirectory {
            source: PathBuf::from(&bind.source),
            target: PathBuf::from(&bind.target),
        });
        let listed: Vec<PathBuf> =
            config.read_only.iter().map(|path| config.home.join(path)).collect();
        let mut sockets = HostSockets::new(others.chain([workspace]).collect(), &listed);
        let found = sockets.find_new();
        *self.host_sockets.lock().unwrap_or_else(PoisonError::into_inner) = Some(sockets);
        found
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

    fn describe(&mut self, ready: &Ready, namespaces_refused: Option<&str>) {
        let report = &mut self.report;
        let mut fact = |text: &str| report.facts.push(text.to_owned());
        match namespaces_refused {
            None => {
                fact("commands run in their own user, process, mount and ipc namespaces");
                fact("the system is read-only, the home directory is empty except for toolchains");
                fact(match self.config.network {
                    Network::Open => {
                        "sockets of other processes are hidden if they are there before the first command"
                    }
                    Network::Restricted(_) | Network::None => {
                        "sockets of other processes are hidden; one that appears while a command runs is hidden from the next"
                    }
                });
            }
            Some(_) => {
                fact("files are guarded by Landlock; commands see the real root and its processes");
                report.workspace = self.config.workspace.clone();
                report.has_own_sockets = false;
            }
        }
        if ready.landlock > 0 {
            report.facts.push(format!("Landlock version {} is enforced", ready.landlock));
        }
        if ready.filtered {
            report.facts.push("system calls are filtered".to_owned());
        }
        report.facts.push(match &self.config.network {
            Network::Restricted(_) => "the network is reached through windlass's proxy only".into(),
            Network::None => "there is no network".to_owned(),
            Network::Open => "the network is the host's".to_owned(),
        });
        let limits = &self.config.limits;
        let mebibytes = limits.memory_bytes >> 20;
        if ready.memory_bounded {
            report.memory_bytes = Some(limits.memory_bytes);
            report.facts.push(format!("the task's memory is bounded to {mebibytes} MiB"));
        } else {
            report.warnings.push(format!(
                "no control group is available: memory is bounded per process only ({mebibytes} MiB), \
                 and memory files (`memfd_create`) are refused"
            ));
        }
        if ready.processes_bounded {
            report.facts.push(format!("at most {} processes run at once", limits.processes));
        }
        if ready.runs_as_root {
            let hidden = match namespaces_refused {
                None => "are hidden in /etc, /opt and /usr/local only",
                Some(_) => "can be read in the system's directories",
            };
            report.warnings.push(format!(
                "the owner of the workspace is root, and here commands must run as root, without rights: files \
                 that only root may read {hidden}"
            ));
        }
        if let Some(reason) = namespaces_refused {
            report.warnings.push(format!(
                "weaker isolation: namespaces are not available ({reason}); Landlock alone guards files"
            ));
            report.warnings.push(
                "Landlock alone: commands see the names and arguments of this machine's processes, and can change the \
                 priority and the processors of this user's"
                    .to_owned(),
            );
            report.warnings.push(
                "Landlock alone: commands see whether files outside exist, how large they are and when they change, \
                 not what they hold"
                    .to_owned(),
            );
            if ready.landlock < 6 {
                report.warnings.push(format!(
                    "Landlock version {} alone: commands can signal this user's processes",
                    ready.landlock
                ));
            }
            report.warnings.push(
                "Landlock alone: shared memory (`/dev/shm`, System V), local sockets, listening sockets and \
                 changes of owners or attributes are refused, so programs that need them fail"
                    .to_owned(),
            );
            if matches!(self.config.network, Network::Restricted(_)) && ready.landlock < 4 {
                report.warnings.push("Landlock is too old for the proxy: no network".to_owned());
            }
        } else if ready.landlock == 0 {
            report.warnings.push("Landlock is not available; mounts alone guard files".to_owned());
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

fn bind(source: &Path, target: &Path) -> Bind {
    Bind { source: text(source), target: text(target), access: Access::ReadOnly }
}

/// The protocol carries texts. A path that is not one could not be named by an agent either.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
