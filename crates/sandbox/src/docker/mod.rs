//! The docker sandbox: a container per task, with the same helper in it as everywhere else.
//!
//! The container's main process only holds it open. A second one, the helper, is started in it with its
//! streams attached, and starts commands at the cost of a process.
//!
//! Invariants:
//! - A container belongs to one task of one data directory, by its labels. Before the first command of a
//!   task, whatever an earlier process left of it is removed.
//! - When the link breaks, by whatever cause, everything in the container ends: its helper hears the end of
//!   its input, and the next helper ends what an earlier one left.
//! - A container that is gone is made anew on the same workspace, and that is told.

mod address;
mod engine;
mod image;
mod lifecycle;
mod orphans;
mod plain;
mod spec;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::channel::Channel;
use crate::local::{Limits, WORKSPACE, environment, prepare_workspace};
use crate::network::Network;
use crate::process;
use crate::seam::{BoxFuture, Command, Fatal, Footing, Kind, News, Sandbox};
use crate::{Error, Running};

pub use engine::{Engine, Image};
pub use image::{Build, DOCKERFILE};
use orphans::Claim;
pub use orphans::remove_orphans;
use plain::Plain;
use spec::HOME;

/// How often a command whose start was never acknowledged is started again on a new link.
const STARTS: usize = 3;

/// For an engine that restarts (seconds) or is upgraded (a minute).
pub const ENGINE_PATIENCE: Duration = Duration::from_secs(90);

/// News that nobody fetches are not collected for ever.
const MAX_NEWS: usize = 64;

/// What a task's container is made from; every value comes from configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Windlass's data directory: holds the helper, and is hidden from commands.
    pub data: PathBuf,
    /// The workspace on the host.
    pub workspace: PathBuf,
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
    /// Shown read-only at `/workspace/.trace`.
    pub trace: Option<PathBuf>,
    /// What commands may reach.
    pub network: Network,
    /// What commands may use, all together.
    pub limits: Limits,
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
    footing: Footing,
    /// Whether the helper turned out not to run here.
    plainly: AtomicBool,
    news: Mutex<Vec<News>>,
    state: tokio::sync::Mutex<State>,
    _claim: Arc<Claim>,
}

#[derive(Debug, Default)]
struct State {
    container: Option<String>,
    link: Option<Link>,
}

/// The way commands are started.
#[derive(Debug)]
enum Link {
    Helper(Channel),
    Plain(Plain),
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
        let program = process::install(&config.data)?;
        let identity = identity(&config.data)?;
        let image = engine.image(&config.image).await?;
        let image = image.ok_or_else(|| Error::ImageMissing { image: config.image.clone() })?;
        let claim = Claim::take(&config.data, &config.task)?;
        orphans::make_way(&engine, &config.data, &identity, &config.task).await?;
        let owner = owner(&config.workspace)?;
        prepare_workspace(&config.workspace, config.trace.is_some(), owner)?;
        refuse_links(&config)?;
        Ok(Self {
            environment: environment::for_container(
                &config.environment,
                &config.environment_names,
                &image.env,
            ),
            footing: footing(&engine, &config, owner),
            image,
            program,
            owner,
            identity,
            engine,
            config,
            _claim: claim,
            plainly: AtomicBool::new(false),
            news: Mutex::default(),
            state: tokio::sync::Mutex::default(),
        })
    }

    /// The container's id, once there is one.
    pub async fn container(&self) -> Option<String> {
        self.state.lock().await.container.clone()
    }

    async fn begin(&self, command: Command) -> Result<Running, Error> {
        for _ in 1..STARTS {
            match self.begin_once(command.clone()).await {
                // The helper never said that it started: it is started again, on another link.
                Err(Error::Lost) => {}
                outcome => return self.telling_what_is_fatal(outcome),
            }
        }
        let last = self.begin_once(command).await;
        self.telling_what_is_fatal(last)
    }

    /// Errors that another command would meet as well are told as news, too.
    fn telling_what_is_fatal(&self, outcome: Result<Running, Error>) -> Result<Running, Error> {
        if let Err(error) = &outcome
            && let Some(cause) = fatal(error)
        {
            self.tell(News::Failed { cause, why: error.chain() });
        }
        outcome
    }

    async fn begin_once(&self, command: Command) -> Result<Running, Error> {
        let (starter, env) = {
            let mut state = self.state.lock().await;
            match self.linked(&mut state).await? {
                Link::Helper(channel) => {
                    let mut own = self.own_environment(&channel.ready.shell);
                    own.extend(environment::proxies(channel.ready.proxy_port));
                    (channel.starter(), environment::joined(&self.environment, &own, &command.env))
                }
                Link::Plain(plain) => {
                    let own = self.own_environment("/bin/sh");
                    let env = environment::joined(&self.environment, &own, &command.env);
                    return Ok(plain.start(command, env));
                }
            }
        };
        starter.start(command, env).await
    }

    fn own_environment(&self, shell: &str) -> Vec<(String, String)> {
        [("HOME", HOME), ("USER", "agent"), ("LOGNAME", "agent"), ("SHELL", shell)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    fn tell(&self, news: News) {
        let mut all = self.news.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if all.len() < MAX_NEWS {
            all.push(news);
        }
    }
}

impl Sandbox for Docker {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Running, Error>> {
        Box::pin(self.begin(command))
    }

    fn footing(&self) -> Footing {
        let mut footing = self.footing.clone();
        if self.plainly.load(Ordering::Relaxed) {
            footing.warnings.push(plain::WARNING.to_owned());
        }
        footing
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.clean_up())
    }

    fn take_news(&self) -> Vec<News> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Whether a task has to end for it. Only what a container can come to.
fn fatal(error: &Error) -> Option<Fatal> {
    match error {
        Error::ContainerOutOfMemory { .. } => Some(Fatal::Memory),
        Error::Unreachable { .. }
        | Error::NoContainer { .. }
        | Error::ImageMissing { .. }
        | Error::DiskFull { .. } => Some(Fatal::Engine),
        _ => None,
    }
}

fn footing(engine: &Engine, config: &Config, owner: (u32, u32)) -> Footing {
    let about = &engine.about;
    let mut facts = vec![
        format!(
            "commands run in a container of `{}` (engine {} at {})",
            config.image,
            about.version,
            engine.name()
        ),
        "its root is read-only, all capabilities are dropped, privileges cannot be gained".into(),
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
            false => warnings.push(format!("this engine cannot see to it that {text}")),
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
    Footing { kind: Kind::Docker, workspace: WORKSPACE.into(), memory_bytes, facts, warnings }
}

fn canonical(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(|source| Error::Path { path: path.to_owned(), source })
}

/// A data directory as labels name it: two that have the same path at different times or in different
/// containers are not the same.
fn identity(data: &Path) -> Result<String, Error> {
    let found =
        fs::metadata(data).map_err(|source| Error::Path { path: data.to_owned(), source })?;
    Ok(format!("{}:{}:{}", engine::text(data)?, found.dev(), found.ino()))
}

/// Whom commands run as: the workspace's owner when we may choose, else ourselves.
fn owner(workspace: &Path) -> Result<(u32, u32), Error> {
    let own = rustix::process::geteuid();
    if !own.is_root() {
        return Ok((own.as_raw(), rustix::process::getegid().as_raw()));
    }
    let path = || workspace.to_owned();
    let found = fs::metadata(workspace).map_err(|source| Error::Path { path: path(), source })?;
    Ok((found.uid(), found.gid()))
}

/// The engine would follow a link that stands where something is to be shown or hidden.
fn refuse_links(config: &Config) -> Result<(), Error> {
    let trace = config.trace.is_some().then(|| config.workspace.join(".trace"));
    for path in trace.into_iter().chain(config.hidden.iter().cloned()) {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        if is_link && path.starts_with(&config.workspace) {
            let source = std::io::ErrorKind::InvalidFilename.into();
            return Err(Error::Path { path, source });
        }
    }
    Ok(())
}
