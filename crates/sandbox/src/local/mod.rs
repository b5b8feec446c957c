//! The local sandbox: kernel namespaces with a root of their own, or Landlock alone where those are refused.
//!
//! Invariants:
//! - What is arranged is learnt by arranging it, never assumed from a version or a setting; once under
//!   the same circumstances.
//! - The weaker footing is only taken when the kernel refuses the stronger, and is said.

pub mod environment;
mod granted;
mod shown;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown, lchown};
use std::path::{Path, PathBuf};

use crate::channel::Refused;
use crate::network::Network;
use crate::process::{self, Helper, Lazy};
use crate::seam::{BoxFuture, Command, Footing, Kind, Sandbox};
use crate::{Error, Running};
use windlass_helper::protocol::{Bind, Isolation, NetworkMode, Ready, Setup};

pub use shown::TOOLCHAINS;

use granted::Granted;

/// Where the agent finds its workspace.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Directories every workspace has from the first effect on (ES-038, ES-039).
const WORKSPACE_DIRECTORIES: [&str; 2] = [".scratch", "output"];

/// What a local sandbox is made from; every value comes from configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Windlass's data directory: holds the helper, and is hidden from commands.
    pub data: PathBuf,
    /// The workspace on the host.
    pub workspace: PathBuf,
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
    /// Shown read-only at `/workspace/.trace`.
    pub trace: Option<PathBuf>,
    /// What commands may reach.
    pub network: Network,
    /// What commands may use.
    pub limits: Limits,
    /// Whether to ask the kernel for namespaces at all.
    pub namespaces: Namespaces,
}

/// What commands may use, all together where the kernel lets us count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of the whole task with a control group, of each process without.
    pub memory_bytes: u64,
    /// Processes at once.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// The largest single file.
    pub file_bytes: u64,
    /// All temporary directories together; they live in memory.
    pub scratch_bytes: u64,
}

impl Limits {
    /// Enough for the builds and tests of large projects, too little to take a machine down.
    pub const DEFAULT: Self = Self {
        memory_bytes: 4 << 30,
        processes: 2048,
        open_files: 65_536,
        file_bytes: 16 << 30,
        scratch_bytes: 1 << 30,
    };
}

/// Whether namespaces are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Taken where the kernel grants them.
    WhereGranted,
    /// Not asked for: Landlock alone.
    Avoided,
}

/// The local sandbox of one task.
#[derive(Debug)]
pub struct Local {
    config: Config,
    program: PathBuf,
    isolation: Isolation,
    footing: Footing,
    environment: Vec<(String, String)>,
    /// Home and temporary directory without namespaces; removed with the sandbox.
    scratch: Option<PathBuf>,
    granted: Granted,
    helper: Lazy,
}

impl Local {
    /// Finds out what this machine grants and prepares the sandbox. Nothing runs in it yet.
    pub async fn open(mut config: Config) -> Result<Self, Error> {
        let canonical = |path: &Path| {
            fs::canonicalize(path).map_err(|source| Error::Path { path: path.to_owned(), source })
        };
        config.workspace = canonical(&config.workspace)?;
        fs::create_dir_all(&config.data)
            .map_err(|source| Error::Path { path: config.data.clone(), source })?;
        config.data = canonical(&config.data)?;
        config.home = fs::canonicalize(&config.home).unwrap_or(config.home);
        let program = process::install(&config.data)?;
        let environment = environment::allowed(&config.environment, &config.environment_names);
        let granted = Granted::here(&config.data, network_mode(&config.network));
        let mut local = Self {
            footing: Footing {
                kind: Kind::Local,
                workspace: WORKSPACE.into(),
                memory_bytes: None,
                facts: Vec::new(),
                warnings: Vec::new(),
            },
            config,
            program,
            isolation: Isolation::Namespaces,
            environment,
            scratch: None,
            granted,
            helper: Lazy::default(),
        };
        local.find_footing().await?;
        Ok(local)
    }

    /// Makes the sandbox once, as it will be made for the first command, and tears it down again; unless
    /// it is known what comes of that.
    async fn find_footing(&mut self) -> Result<(), Error> {
        let mut namespaces = "they are not to be used".to_owned();
        if self.config.namespaces == Namespaces::WhereGranted {
            if let Some(ready) = self.granted.recall() {
                // What is wrong with this very workspace is still said now.
                self.setup()?;
                self.describe(&ready, None);
                return Ok(());
            }
            match self.attempt().await {
                Ok(ready) => {
                    self.granted.remember(&ready);
                    self.describe(&ready, None);
                    return Ok(());
                }
                Err(Refused::Failed { stage, source }) if is_refusal(&source) => {
                    namespaces = format!("{stage}: {source}");
                }
                Err(refused) => return Err(error_of(refused)),
            }
        }
        self.isolation = Isolation::Landlock;
        self.scratch = Some(self.make_scratch()?);
        match self.attempt().await {
            Ok(ready) => {
                self.describe(&ready, Some(&namespaces));
                Ok(())
            }
            Err(Refused::Failed { stage, source }) if is_refusal(&source) => {
                let landlock = format!("{stage}: {source}");
                Err(Error::NoIsolation { namespaces, landlock })
            }
            Err(refused) => Err(error_of(refused)),
        }
    }

    async fn attempt(&self) -> Result<Ready, Refused> {
        let helper = self.make().await?;
        let ready = helper.ready().clone();
        helper.stop().await;
        Ok(ready)
    }

    /// The footing was said already: a sandbox that cannot be made as it was said is not made weaker.
    async fn make_for_commands(&self) -> Result<Helper, Error> {
        self.make().await.map_err(|refused| {
            self.granted.forget();
            error_of(refused)
        })
    }

    async fn make(&self) -> Result<Helper, Refused> {
        let setup = self.setup().map_err(Refused::Broken)?;
        let egress = match &self.config.network {
            Network::Restricted(egress) => Some(egress.clone()),
            Network::None | Network::Open => None,
        };
        Helper::start(&self.program, setup, egress).await
    }

    fn setup(&self) -> Result<Setup, Error> {
        let config = &self.config;
        let owner = self.owner()?;
        prepare_workspace(&config.workspace, config.trace.is_some(), owner)?;
        self.refuse_what_cannot_be_hidden()?;
        let mut binds = Vec::new();
        let mut hidden = vec![config.data.clone()];
        hidden.extend(config.hidden.iter().cloned());
        for shown in shown::read_only(&config.home, &config.read_only) {
            if self.isolation == Isolation::Landlock {
                // Landlock allows and cannot take back: what is hidden is left out of what is allowed.
                let parts = shown.without_hidden();
                binds.extend(parts.iter().map(|source| bind(source, source)));
                continue;
            }
            hidden.extend(shown.hidden);
            binds.push(bind(&shown.source, &shown.target));
            binds.extend(
                shown
                    .caches
                    .iter()
                    .map(|(source, target)| Bind { layered: true, ..bind(source, target) }),
            );
        }
        for (source, target) in [(&config.skills, "/skills"), (&config.trace, "/workspace/.trace")]
        {
            if let Some(source) = source {
                let found = fs::canonicalize(source)
                    .map_err(|error| Error::Path { path: source.clone(), source: error })?;
                binds.push(bind(&found, Path::new(target)));
            }
        }
        let home = match &self.scratch {
            Some(scratch) => scratch,
            None => &config.home,
        };
        Ok(Setup {
            isolation: self.isolation,
            network: network_mode(&config.network),
            uid: owner.0,
            gid: owner.1,
            workspace: text(&config.workspace),
            home: text(home),
            binds,
            hidden: hidden.iter().map(|path| text(&self.as_seen(path))).collect(),
            memory_bytes: config.limits.memory_bytes,
            processes: config.limits.processes,
            open_files: config.limits.open_files,
            file_bytes: config.limits.file_bytes,
            scratch_bytes: config.limits.scratch_bytes,
            control_group: process::uniquely("task"),
        })
    }

    /// Whom commands run as: the workspace's owner when we may choose, else ourselves.
    fn owner(&self) -> Result<(u32, u32), Error> {
        let own = rustix::process::geteuid();
        if !own.is_root() {
            return Ok((own.as_raw(), rustix::process::getegid().as_raw()));
        }
        let path = &self.config.workspace;
        let found =
            fs::metadata(path).map_err(|source| Error::Path { path: path.clone(), source })?;
        Ok((found.uid(), found.gid()))
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

    /// A home for commands that see the real root, in the one place everyone can reach.
    fn make_scratch(&self) -> Result<PathBuf, Error> {
        let owner = self.owner()?;
        let path = Path::new("/tmp").join(process::uniquely("windlass"));
        let make = || -> io::Result<()> {
            // One left over by a process of the same number is not ours to trust.
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
                Path::new(WORKSPACE).join(below)
            }
            _ => path.to_owned(),
        }
    }

    fn describe(&mut self, ready: &Ready, namespaces_refused: Option<&str>) {
        let footing = &mut self.footing;
        let mut fact = |text: &str| footing.facts.push(text.to_owned());
        match namespaces_refused {
            None => {
                fact("commands run in their own user, process, mount and ipc namespaces");
                fact("the system is read-only, the home directory is empty but for toolchains");
            }
            Some(_) => {
                fact("files are guarded by Landlock; commands see the real root and its processes");
                footing.workspace = self.config.workspace.clone();
            }
        }
        if ready.landlock > 0 {
            footing.facts.push(format!("Landlock version {} is enforced", ready.landlock));
        }
        if ready.filtered {
            footing.facts.push("system calls are filtered".to_owned());
        }
        footing.facts.push(match &self.config.network {
            Network::Restricted(_) => "the network is reached through windlass's proxy only".into(),
            Network::None => "there is no network".to_owned(),
            Network::Open => "the network is the host's".to_owned(),
        });
        let limits = &self.config.limits;
        let mebibytes = limits.memory_bytes >> 20;
        if ready.memory_bounded {
            footing.memory_bytes = Some(limits.memory_bytes);
            footing.facts.push(format!("the task's memory is bounded to {mebibytes} MiB"));
        } else {
            footing.warnings.push(format!(
                "no control group is available: memory is bounded per process only ({mebibytes} MiB)"
            ));
        }
        if ready.processes_bounded {
            footing.facts.push(format!("at most {} processes run at once", limits.processes));
        }
        if let Some(reason) = namespaces_refused {
            footing.warnings.push(format!(
                "weaker isolation: namespaces are not available ({reason}); Landlock alone guards files"
            ));
            if matches!(self.config.network, Network::Restricted(_)) && ready.landlock < 4 {
                footing.warnings.push("Landlock is too old for the proxy: no network".to_owned());
            }
        } else if ready.landlock == 0 {
            footing.warnings.push("Landlock is not available; mounts alone guard files".to_owned());
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
                // The real home is not at `$HOME`, so tools are told where their parts are.
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

/// Makes the directories every workspace has; `.trace` as the place where the trace will be shown.
pub(crate) fn prepare_workspace(
    workspace: &Path,
    traced: bool,
    (uid, gid): (u32, u32),
) -> Result<(), Error> {
    for name in WORKSPACE_DIRECTORIES.into_iter().chain(traced.then_some(".trace")) {
        let path = workspace.join(name);
        let made = match fs::create_dir(&path) {
            Ok(()) => lchown(&path, Some(uid), Some(gid)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        made.map_err(|source| Error::Path { path, source })?;
    }
    Ok(())
}

pub(crate) fn network_mode(network: &Network) -> NetworkMode {
    match network {
        Network::Restricted(_) => NetworkMode::Proxy,
        Network::None => NetworkMode::Nothing,
        Network::Open => NetworkMode::Everything,
    }
}

impl Sandbox for Local {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Running, Error>> {
        Box::pin(self.helper.start(
            command,
            || self.make_for_commands(),
            |ready, command| {
                let own = self.own_environment(ready);
                environment::joined(&self.environment, &own, &command.env)
            },
        ))
    }

    fn footing(&self) -> Footing {
        self.footing.clone()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.helper.stop())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            // Nothing of value is in it, and a command that still dies keeps its handles.
            let _ = fs::remove_dir_all(scratch);
        }
    }
}

/// Whether this is the kernel saying no, rather than something being wrong with what was asked.
fn is_refusal(error: &io::Error) -> bool {
    const EUSERS: i32 = 87;
    const ENOSPC: i32 = 28;
    const EINVAL: i32 = 22;
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
        || matches!(error.raw_os_error(), Some(EUSERS | ENOSPC | EINVAL))
}

fn error_of(refused: Refused) -> Error {
    match refused {
        Refused::Failed { stage, source } => Error::Setup { stage, source },
        Refused::Broken(error) => error,
    }
}

fn bind(source: &Path, target: &Path) -> Bind {
    Bind { source: text(source), target: text(target), layered: false }
}

/// The helper's words are texts; a path that is none could not be named by an agent either.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
