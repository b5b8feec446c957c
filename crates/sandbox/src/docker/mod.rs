//! The docker sandbox: a container per task, with the same helper in it as everywhere else.
//!
//! The container's main process only keeps it open. A second one, the helper, is started in it with its
//! streams attached, and starts commands at the cost of a process.
//!
//! Invariants:
//! - A container belongs to one task of one data directory, by its labels. Before the first command of a
//!   task, whatever an earlier process left of it is removed.
//! - When the connection breaks, whatever the cause, everything in the container ends: its helper sees the end
//!   of its input, and the next helper kills what an earlier one left.
//! - A container that is gone is made again on the same workspace, and an event says so.

mod address;
mod engine;
mod exec_fallback;
mod image;
mod lifecycle;
mod orphans;
mod spec;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::api::{
    BoxFuture, Command, FatalCause, IsolationReport, Sandbox, SandboxEvent, SandboxKind,
};
use crate::channel::Channel;
use crate::host_sockets::HostSockets;
use crate::limits::ResourceLimits;
use crate::network::Network;
use crate::workspace::{self, HomeFiles, canonical};
use crate::{Error, Running, environment, helper};
use windlass_core::layout::{AddedDirectory, Layout, WORKSPACE};
use windlass_core::text::with_causes;

pub use engine::{Engine, Image};
use exec_fallback::ExecFallback;
pub use image::{Build, DOCKERFILE};
use orphans::ContainerClaim;
pub use orphans::{orphans, remove_orphans};
use spec::HOME;

/// How often a command whose start was never acknowledged is started again on a new link.
const STARTS: usize = 3;

/// For an engine that restarts (seconds) or is upgraded (a minute).
pub const ENGINE_PATIENCE: Duration = Duration::from_secs(90);

/// Events that nobody fetches are not collected for ever.
const MAX_EVENTS: usize = 64;

/// What a task's container is made from; every value comes from configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Windlass's data directory: holds the helper, and is hidden from commands.
    pub data: PathBuf,
    /// The workspace on the host.
    pub workspace: PathBuf,
    /// Where the files of the task are in it.
    pub layout: Layout,
    /// What lies outside the workspace and is shown at its own path.
    pub added: Vec<AddedDirectory>,
    /// Files that the empty home directory has from the start.
    pub home_files: HomeFiles,
    /// The task, as labels name it.
    pub task: String,
    /// What the container is made from; anything that has `sh`.
    pub image: String,
    /// Windlass's own environment, of which commands get what is allowed.
    pub environment: Vec<(String, String)>,
    /// Names allowed beside the usual ones.
    pub environment_names: Vec<String>,
    /// Hidden where they lie in the workspace.
    pub hidden: Vec<PathBuf>,
    /// Shown read-only at `/skills`.
    pub skills: Option<PathBuf>,
    /// Shown read-only among the files of the task.
    pub trace: Option<PathBuf>,
    /// What commands may reach.
    pub network: Network,
    /// What commands may use, all together.
    pub limits: ResourceLimits,
    /// Processor time, in billionths of a processor.
    pub nano_cpus: u64,
    /// How long an engine that went away in the middle of a task is waited for.
    pub engine_patience: Duration,
}

/// The container of one task.
#[derive(Debug)]
pub struct Docker {
    config: Config,
    engine: Engine,
    image: Image,
    program: PathBuf,
    owner: (u32, u32),
    identity: String,
    environment: Vec<(String, String)>,
    isolation: IsolationReport,
    /// Whether the helper turned out not to run in this image.
    helper_fails: AtomicBool,
    events: Mutex<Vec<SandboxEvent>>,
    state: tokio::sync::Mutex<State>,
    _claim: Arc<ContainerClaim>,
}

#[derive(Debug, Default)]
struct State {
    container: Option<String>,
    link: Option<Link>,
    /// What the container hides of other processes.
    sockets: Option<HostSockets>,
    /// Whether there are sockets that it does not hide.
    has_new_sockets: bool,
}

/// The way commands are started.
#[derive(Debug)]
enum Link {
    Helper(Channel),
    Exec(ExecFallback),
}

impl Docker {
    /// Prepares a task's container, and ends what an earlier process left of the task. Nothing runs yet.
    pub async fn open(engine: Engine, mut config: Config) -> Result<Self, Error> {
        fs::create_dir_all(&config.data)
            .map_err(|source| Error::Path { path: config.data.clone(), source })?;
        for path in [&mut config.workspace, &mut config.data]
            .into_iter()
            .chain(config.skills.as_mut())
            .chain(config.trace.as_mut())
        {
            *path = canonical(path)?;
        }
        let program = helper::install(&config.data)?;
        let identity = identity(&config.data)?;
        let image = engine.image(&config.image).await?;
        let image = image.ok_or_else(|| Error::ImageMissing { image: config.image.clone() })?;
        let claim = ContainerClaim::take(&config.data, &config.task)?;
        orphans::remove_stale(&engine, &config.data, &identity, &config.task).await?;
        let owner = workspace::owner(&config.workspace)?;
        workspace::prepare(&config.workspace, &config.layout, owner)?;
        refuse_links(&config)?;
        Ok(Self {
            environment: environment::for_container(
                &config.environment,
                &config.environment_names,
                &image.env,
            ),
            isolation: isolation_report(&engine, &config, owner),
            image,
            program,
            owner,
            identity,
            engine,
            config,
            _claim: claim,
            helper_fails: AtomicBool::new(false),
            events: Mutex::default(),
            state: tokio::sync::Mutex::default(),
        })
    }

    /// The container's id, once there is one.
    pub async fn container(&self) -> Option<String> {
        self.state.lock().await.container.clone()
    }

    async fn start_command(&self, command: Command) -> Result<Running, Error> {
        for _ in 1..STARTS {
            match self.try_start(command.clone()).await {
                // The helper never said that it started: it is started again, on another link.
                Err(Error::Lost) => {}
                outcome => return self.record_fatal_error(outcome),
            }
        }
        let last = self.try_start(command).await;
        self.record_fatal_error(last)
    }

    /// An error that another command would meet as well becomes an event, too.
    fn record_fatal_error(&self, outcome: Result<Running, Error>) -> Result<Running, Error> {
        if let Err(error) = &outcome
            && let Some(cause) = fatal(error)
        {
            self.record(SandboxEvent::Failed { cause, why: with_causes(&error) });
        }
        outcome
    }

    async fn try_start(&self, command: Command) -> Result<Running, Error> {
        let (starter, env) = {
            let mut state = self.state.lock().await;
            self.hide_new_sockets(&mut state).await;
            match self.ensure_link(&mut state).await? {
                Link::Helper(channel) => {
                    let mut own = self.own_environment(&channel.ready.shell);
                    own.extend(environment::proxies(channel.ready.proxy_port));
                    (channel.starter(), environment::join(&self.environment, &own, &command.env))
                }
                Link::Exec(fallback) => {
                    let own = self.own_environment("/bin/sh");
                    let env = environment::join(&self.environment, &own, &command.env);
                    return Ok(fallback.start(command, env));
                }
            }
        };
        starter.start(command, env, Vec::new()).await
    }

    fn own_environment(&self, shell: &str) -> Vec<(String, String)> {
        [("HOME", HOME), ("USER", "agent"), ("LOGNAME", "agent"), ("SHELL", shell)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    fn record(&self, event: SandboxEvent) {
        let mut all = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if all.len() < MAX_EVENTS {
            all.push(event);
        }
    }
}

impl Sandbox for Docker {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Running, Error>> {
        Box::pin(self.start_command(command))
    }

    fn isolation(&self) -> IsolationReport {
        let mut report = self.isolation.clone();
        if self.helper_fails.load(Ordering::Relaxed) {
            report.warnings.push(exec_fallback::WARNING.to_owned());
        }
        report
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.clean_up())
    }

    fn drain_events(&self) -> Vec<SandboxEvent> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Whether a task has to end for it. Only what a container can come to.
fn fatal(error: &Error) -> Option<FatalCause> {
    match error {
        Error::ContainerOutOfMemory { .. } => Some(FatalCause::Memory),
        Error::Unreachable { .. }
        | Error::NoContainer { .. }
        | Error::ImageMissing { .. }
        | Error::DiskFull { .. } => Some(FatalCause::Engine),
        Error::Install { .. }
        | Error::Spawn { .. }
        | Error::Path { .. }
        | Error::Setup { .. }
        | Error::NoIsolation { .. }
        | Error::Protocol { .. }
        | Error::Start { .. }
        | Error::TooLong { .. }
        | Error::TooMany { .. }
        | Error::Engine { .. }
        | Error::Lost => None,
    }
}

fn isolation_report(engine: &Engine, config: &Config, owner: (u32, u32)) -> IsolationReport {
    let about = &engine.about;
    let mut facts = vec![
        format!(
            "commands run in a container of `{}` (engine {} at {})",
            config.image,
            about.version,
            engine.name()
        ),
        "its root is read-only, all capabilities are dropped, privileges cannot be gained".into(),
        "sockets of other processes are hidden; one that appears later is hidden by a new container, which the next \
         command gets that starts while nothing else runs"
            .into(),
    ];
    let mut warnings = Vec::new();
    facts.push(match &config.network {
        Network::Restricted(_) => "the network is reached through windlass's proxy only".into(),
        Network::None => "there is no network".to_owned(),
        Network::Open => "the network is the engine's bridge".to_owned(),
    });
    let limits = &config.limits;
    let mebibytes = limits.memory_bytes >> 20;
    for (bounded, text) in [
        (about.memory, format!("the task's memory is bounded to {mebibytes} MiB, without swap")),
        (about.processes, format!("at most {} processes run at once", limits.processes)),
        (about.cpus, format!("at most {} processors are used", config.nano_cpus as f64 / 1e9)),
    ] {
        match bounded {
            true => facts.push(text),
            false => warnings.push(format!("this engine cannot guarantee that {text}")),
        }
    }
    if about.labels_files {
        warnings
            .push("SELinux does not separate this container: the workspace has no label".into());
    }
    if !about.rootless && owner.0 == 0 {
        warnings.push(
            "the workspace is root's, so commands run as root of the container, without capabilities"
                .to_owned(),
        );
    }
    let memory_bytes = about.memory.then_some(limits.memory_bytes);
    IsolationReport {
        kind: SandboxKind::Docker,
        workspace: WORKSPACE.into(),
        memory_bytes,
        has_own_sockets: true,
        facts,
        warnings,
    }
}

/// A data directory as labels name it: two that have the same path at different times or in different
/// containers are not the same.
fn identity(data: &Path) -> Result<String, Error> {
    let found =
        fs::metadata(data).map_err(|source| Error::Path { path: data.to_owned(), source })?;
    Ok(format!("{}:{}:{}", engine::text(data)?, found.dev(), found.ino()))
}

/// The engine would follow a link at a place where something is to be shown or hidden.
fn refuse_links(config: &Config) -> Result<(), Error> {
    workspace::trace_place(&config.workspace, &config.layout)?;
    for path in config.hidden.iter().cloned() {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        if is_link && path.starts_with(&config.workspace) {
            let source = std::io::ErrorKind::InvalidFilename.into();
            return Err(Error::Path { path, source });
        }
    }
    Ok(())
}
