//! From configuration to the place where effects happen.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::id::TaskId;
use windlass_core::text::with_causes;
use windlass_sandbox::docker::{self, ENGINE_PATIENCE, Engine};
use windlass_sandbox::local::{self, Namespaces};
use windlass_sandbox::network::{AddressRules, ConnectionAttempt, Egress, HostRules};
use windlass_sandbox::{
    Docker, Error, HomeFiles, Host, Local, Network, ResourceLimits, Sandbox, Unavailable,
};

use super::Environment;
use super::place::{self, TaskDirectories};
use crate::config::Config;
use crate::config::types::{Network as NetworkSetting, SandboxMode};

/// A sandbox, and why it is this one where it was chosen automatically.
pub struct OpenSandbox {
    /// The sandbox: prepared, nothing started in it yet.
    pub sandbox: Arc<dyn Sandbox>,
    /// Why it is of this kind; `None` where a person said so.
    pub why: Option<String>,
}

/// Opens the sandbox that flags and configuration choose for work in a directory, without skills in it.
pub async fn open(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
    root: TaskId,
) -> Result<Arc<dyn Sandbox>, ErrorDetails> {
    let placed = TaskDirectories::of_directory(environment, workspace, root);
    open_with(environment, config, &placed, root, None).await.map(|opened| opened.sandbox)
}

/// Opens that sandbox with these skills in it, and says why it is of its kind.
pub async fn open_with(
    environment: &Environment,
    config: &Config,
    placed: &TaskDirectories,
    root: TaskId,
    skills: Option<PathBuf>,
) -> Result<OpenSandbox, ErrorDetails> {
    let reach = Vec::new();
    SandboxRequest { environment, config, placed, root, skills, lease: None, reach }.open().await
}

/// Opens the sandbox of a task that another program works on; it reaches these servers beside what all may reach.
pub async fn open_for_runner(
    environment: &Environment,
    config: &Config,
    placed: &TaskDirectories,
    root: TaskId,
    lease: Option<Duration>,
    reach: Vec<String>,
) -> Result<Arc<dyn Sandbox>, ErrorDetails> {
    let place = SandboxRequest { environment, config, placed, root, skills: None, lease, reach };
    place.open().await.map(|opened| opened.sandbox)
}

/// Opens the sandbox of a task, whose commands run on for a `lease` without a heartbeat from us. If the container cannot be started, the task must begin and then fail (ES-380,
/// ES-385). So this returns a sandbox that reports the failure on first use.
pub async fn open_for_task(
    environment: &Environment,
    config: &Config,
    placed: &TaskDirectories,
    root: TaskId,
    skills: Option<PathBuf>,
    lease: Option<Duration>,
) -> Result<OpenSandbox, ErrorDetails> {
    let chosen = environment.sandbox.or(config.sandbox.mode);
    let reach = Vec::new();
    match (SandboxRequest { environment, config, placed, root, skills, lease, reach }).open().await
    {
        Err(details) if chosen == Some(SandboxMode::Docker) => {
            let sandbox = Unavailable::new(placed.top.clone(), details.message);
            Ok(OpenSandbox { sandbox: Arc::new(sandbox), why: None })
        }
        outcome => outcome,
    }
}

/// The container engine of this environment, if one answers.
pub async fn engine(environment: &Environment) -> Result<Engine, Error> {
    Engine::find(&variables(environment), &home(environment)).await
}

struct SandboxRequest<'a> {
    environment: &'a Environment,
    config: &'a Config,
    placed: &'a TaskDirectories,
    root: TaskId,
    skills: Option<PathBuf>,
    lease: Option<Duration>,
    /// Servers that a person has named, as `HOST:PORT`.
    reach: Vec<String>,
}

impl SandboxRequest<'_> {
    /// The sandbox that flags and configuration choose.
    async fn open(&self) -> Result<OpenSandbox, ErrorDetails> {
        let chosen = |sandbox| OpenSandbox { sandbox, why: None };
        match self.environment.sandbox.or(self.config.sandbox.mode) {
            Some(SandboxMode::Host) => self.host().map(chosen),
            Some(SandboxMode::Local) => self.local().await.map(chosen).map_err(unavailable),
            Some(SandboxMode::Docker) => {
                let engine = engine(self.environment).await.map_err(unavailable)?;
                self.docker(engine).await.map(chosen).map_err(unavailable)
            }
            None => self.best().await,
        }
    }

    /// Containers where an engine has the image, else the local sandbox (`docs/design.md` §10).
    async fn best(&self) -> Result<OpenSandbox, ErrorDetails> {
        let image = &self.config.sandbox.image;
        let why = match engine(self.environment).await {
            Ok(engine) => match engine.image(image).await {
                Ok(Some(_)) => {
                    let why = format!("the engine at {} has `{image}`", engine.name());
                    let sandbox = self.docker(engine).await.map_err(unavailable)?;
                    return Ok(OpenSandbox { sandbox, why: Some(why) });
                }
                Ok(None) => format!("the container engine has no `{image}`"),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        match self.local().await {
            Ok(sandbox) => Ok(OpenSandbox { sandbox, why: Some(why) }),
            Err(error) => Err(unavailable(error).with_diagnostic(why)),
        }
    }

    fn host(&self) -> Result<Arc<dyn Sandbox>, ErrorDetails> {
        let variables = self.variables();
        let data = self.environment.data.clone();
        let host = Host::new(data, self.placed.top.clone(), &variables, &place::key_names());
        Ok(Arc::new(host.map_err(unavailable)?.with_lease(self.lease)))
    }

    async fn local(&self) -> Result<Arc<dyn Sandbox>, Error> {
        let below_home = |path: &String| path.strip_prefix("~/").unwrap_or(path).into();
        let local = Local::open(local::Config {
            data: self.environment.data.clone(),
            workspace: self.placed.top.clone(),
            layout: self.placed.layout.clone(),
            added: self.placed.shown_directories(),
            home_files: self.home_files(),
            environment: self.variables(),
            environment_names: self.placed.variables.keys().cloned().collect(),
            read_only: self.config.sandbox.read_only.iter().map(below_home).collect(),
            home: home(self.environment),
            hidden: place::hidden_paths(self.environment),
            skills: self.skills.clone(),
            trace: Some(self.trace()),
            network: network(self.config, self.root, self.reach.clone()),
            limits: self.limits(),
            namespaces: Namespaces::IfAvailable,
        });
        Ok(Arc::new(local.await?))
    }

    async fn docker(&self, engine: Engine) -> Result<Arc<dyn Sandbox>, Error> {
        let docker = Docker::open(
            engine,
            docker::Config {
                data: self.environment.data.clone(),
                workspace: self.placed.top.clone(),
                layout: self.placed.layout.clone(),
                added: self.placed.shown_directories(),
                home_files: self.home_files(),
                task: self.root.to_string(),
                image: self.config.sandbox.image.clone(),
                environment: self.variables(),
                environment_names: self.placed.variables.keys().cloned().collect(),
                hidden: place::hidden_paths(self.environment),
                skills: self.skills.clone(),
                trace: Some(self.trace()),
                network: network(self.config, self.root, self.reach.clone()),
                limits: self.limits(),
                nano_cpus: (self.config.sandbox.cpu * 1e9) as u64,
                engine_patience: ENGINE_PATIENCE,
            },
        );
        Ok(Arc::new(docker.await?))
    }

    /// The environment that is filtered for commands; what a workflow sets counts more than what the person has set.
    fn variables(&self) -> Vec<(String, String)> {
        let set = &self.placed.variables;
        let own =
            variables(self.environment).into_iter().filter(|(name, _)| !set.contains_key(name));
        own.chain(set.clone()).collect()
    }

    fn home_files(&self) -> HomeFiles {
        let (environment, top) = (self.environment.clone(), self.placed.top.clone());
        HomeFiles::new(move || place::git_files(&environment, &top))
    }

    fn trace(&self) -> PathBuf {
        self.environment.data.join("traces").join(self.root.to_string())
    }

    fn limits(&self) -> ResourceLimits {
        ResourceLimits {
            memory_bytes: self.config.sandbox.memory.0,
            processes: self.config.sandbox.pids_limit,
            lease: self.lease,
            ..ResourceLimits::DEFAULT
        }
    }
}

fn variables(environment: &Environment) -> Vec<(String, String)> {
    environment.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn home(environment: &Environment) -> PathBuf {
    environment.variables.get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

fn network(config: &Config, task: TaskId, endpoints: Vec<String>) -> Network {
    let settings = &config.sandbox;
    match settings.network {
        NetworkSetting::None => Network::None,
        NetworkSetting::Open => Network::Open,
        NetworkSetting::Restricted => {
            Network::Restricted(Egress { endpoints, ..egress(config, task) })
        }
    }
}

/// What a task's commands and its browser may reach by windlass's proxy.
pub fn egress(config: &Config, task: TaskId) -> Egress {
    let settings = &config.sandbox;
    let ranges = settings.allow_addresses.iter();
    Egress {
        addresses: AddressRules { allowed: ranges.filter_map(|one| one.parse().ok()).collect() },
        hosts: match settings.allow_hosts.as_slice() {
            [] => HostRules::Any,
            hosts => HostRules::Only(hosts.to_vec()),
        },
        endpoints: Vec::new(),
        observer: Arc::new(move |connection: &ConnectionAttempt| {
            tracing::info!(task_id = %task, ?connection, "Connection from the sandbox");
        }),
    }
}

/// What a person can do about a sandbox that does not start.
pub fn remedy(error: &Error) -> Remedy {
    match error {
        Error::ImageMissing { .. } => Remedy::GetImage,
        Error::Unreachable { .. } => Remedy::StartEngine,
        Error::Engine { .. } | Error::NoContainer { .. } => Remedy::CheckSandbox,
        Error::DiskFull { .. } => Remedy::FreeEngineDisk,
        Error::ContainerOutOfMemory { .. } => Remedy::RaiseSandboxMemory,
        // Isolation is not what fails: the host sandbox cannot use the path either.
        Error::Path { .. } => Remedy::RepairPath,
        Error::Install { .. }
        | Error::Spawn { .. }
        | Error::Setup { .. }
        | Error::NoIsolation { .. }
        | Error::Protocol { .. }
        | Error::Start { .. }
        | Error::TooLong { .. }
        | Error::TooMany { .. }
        | Error::Lost => Remedy::UseHostSandbox,
    }
}

/// What is wrong with a path that the sandbox needs, named by the part of it that is wrong.
fn path_problem(error: &Error) -> Option<String> {
    let Error::Path { path, source } = error else { return None };
    match source.kind() {
        io::ErrorKind::NotFound => {
            Some(format!("directory `{}` does not exist any more", path.display()))
        }
        io::ErrorKind::NotADirectory => {
            let part = path.ancestors().find(|part| part.exists()).unwrap_or(path);
            Some(format!("`{}` is not a directory", part.display()))
        }
        _ => None,
    }
}

fn unavailable(error: Error) -> ErrorDetails {
    let message = path_problem(&error).unwrap_or_else(|| with_causes(&error));
    let details = ErrorDetails::new(ErrorType::SandboxUnavailable, message);
    details.with_remedy(remedy(&error))
}
