//! Puts the parts together: which store, which models, what an agent gets to work with.

pub mod browser;
pub mod contract;
mod equipment;
pub mod gate;
pub mod health;
pub mod http;
mod kept;
pub mod mcp;
pub mod models;
pub mod place;
mod plans;
pub mod project;
mod runners;
pub mod sandbox;
mod settings;
pub mod skills;
mod task_environment;
mod task_models;
pub mod telemetry;
pub mod trust;
pub mod web;
mod wired_agents;
pub mod workflows;
mod worktrees;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use jiff::SignedDuration;
use tokio::runtime::Runtime;
use windlass_coordinator::{Coordinator, CoordinatorLimits, SystemClock};
use windlass_core::axes::Axes;
use windlass_model::{LONGEST_RETRY_AFTER, PROVIDERS};
use windlass_store::Store;

use crate::config::types::Keep;
use crate::config::{self, Config, Flag};
use crate::failure::Failure;
use crate::show;
use kept::Kept;
pub use plans::files as plan_files;
pub use project::Project;
use wired_agents::WiredAgents;

/// What the program was started with: environment variables, flags that are settings, its data directory.
#[derive(Clone)]
pub struct Environment {
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// The flags that are settings.
    pub flags: Vec<Flag>,
    /// Where everything is kept.
    pub data: PathBuf,
    /// The sandbox that a flag names.
    pub sandbox: Option<config::types::SandboxMode>,
    /// The only places to look for skills, where an eval says so.
    pub skill_directories: Option<Vec<(PathBuf, windlass_skills::Scope)>>,
    /// The file that `--record` writes the model's replies to.
    pub record: Option<PathBuf>,
    /// How long outputs are kept, where the user's file says so.
    pub keep_outputs: Option<SignedDuration>,
    /// How long finished tasks are kept, where the user's file says so.
    pub keep_tasks: Option<SignedDuration>,
    /// What starts of tasks have in common.
    pub kept: Kept,
}

impl Environment {
    /// Reads the environment variables and finds the data directory. `data` is the `--data` flag.
    pub fn new(data: Option<PathBuf>) -> Result<Self, Failure> {
        let variables = config::read::environment();
        show::keys::hide(keys_in(&variables));
        let store = match (config::read::store(&variables), &data) {
            (Ok(store), _) => store,
            // The file does not choose the directory, so its errors are reported where its other settings
            // matter.
            (Err(_), Some(_)) => None,
            (Err(errors), None) => return Err(errors.into()),
        };
        let configured = store.as_ref().and_then(|store| store.data_dir.as_deref());
        let data = match (data, configured) {
            (Some(data), _) => data,
            (None, Some(data)) => expand_home(data, &variables),
            (None, None) => data_directory(&variables)?,
        };
        Ok(Self {
            keep_tasks: store.as_ref().and_then(|store| match store.keep_days {
                Keep::Forever => None,
                Keep::For(age) => age.try_into().ok(),
            }),
            keep_outputs: store.and_then(|store| store.outputs_keep_days.try_into().ok()),
            variables,
            flags: Vec::new(),
            data,
            sandbox: None,
            record: None,
            skill_directories: None,
            kept: Kept::default(),
        })
    }

    /// The configuration for work in a directory.
    pub fn config(&self, workspace: &Path) -> Result<Config, Failure> {
        let trust = |file: &config::File| trust::of(&self.data, workspace, file);
        let config =
            config::read::load(workspace, self.variables.clone(), self.flags.clone(), &trust)?;
        let keys = [config.secrets(), mcp::keys(self, &config)].concat();
        show::keys::hide(pairs(&keys));
        Ok(config)
    }

    /// Where programs are looked for.
    pub fn search_path(&self) -> &str {
        self.variables.get("PATH").map(String::as_str).unwrap_or_default()
    }

    /// The user's name, as others see who answered.
    pub fn user(&self) -> String {
        ["USER", "LOGNAME"]
            .iter()
            .find_map(|name| self.variables.get(*name).filter(|value| !value.is_empty()).cloned())
            .unwrap_or_else(|| "user".to_owned())
    }
}

/// A path as people write it in a file: `~/` is the home directory.
fn expand_home(path: &str, variables: &BTreeMap<String, String>) -> PathBuf {
    match (path.strip_prefix("~/"), variables.get("HOME")) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => PathBuf::from(path),
    }
}

fn data_directory(variables: &BTreeMap<String, String>) -> Result<PathBuf, Failure> {
    let variable = |name| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative one is ignored, as its specification says: it would be another directory in each working directory.
    variable("XDG_DATA_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("windlass"))
        .ok_or_else(|| {
            Failure::usage("there is no home directory to keep data in", "add `--data DIR`")
        })
}

/// The control plane over the data directory.
pub fn coordinator(
    environment: &Environment,
    options: windlass_store::Options,
) -> Result<Coordinator, Failure> {
    coordinator_at(environment, options, None)
}

/// The same for a run: its tasks work with what was loaded for this project at the start.
pub fn coordinator_for_run(
    environment: &Environment,
    options: windlass_store::Options,
    project: Arc<Project>,
) -> Result<Coordinator, Failure> {
    coordinator_at(environment, options, Some(project))
}

fn coordinator_at(
    environment: &Environment,
    options: windlass_store::Options,
    project: Option<Arc<Project>>,
) -> Result<Coordinator, Failure> {
    let keep_outputs = environment.keep_outputs.unwrap_or(options.keep_outputs);
    let keep_tasks = environment.keep_tasks;
    let options = windlass_store::Options { keep_outputs, keep_tasks, ..options };
    let store = Store::open(&environment.data, options)?;
    store.secrets().hide(keys_in(&environment.variables));
    if let Some(project) = &project {
        hide_keys(environment, project.config(), &|named| store.secrets().hide(named));
    }
    let wired_agents = WiredAgents::new(environment.clone(), store.clone(), project);
    Ok(Coordinator::new(store, Arc::new(wired_agents), Arc::new(SystemClock::default())))
}

/// Adds keys, each with its name, to those that a store hides.
type HideKeys<'h> = dyn Fn(Vec<(&str, &str)>) + 'h;

/// Hides the keys of a configuration, of the servers that it names, and the one that programs sign in with here.
pub fn hide_keys(environment: &Environment, config: &Config, hide: &HideKeys<'_>) {
    let mut keys = config.secrets();
    keys.extend(mcp::keys(environment, config));
    let token = std::fs::read_to_string(environment.data.join("token")).unwrap_or_default();
    keys.push(("windlass_token".to_owned(), token.trim().to_owned()));
    hide(pairs(&keys).collect());
}

/// Hides keys in what is kept and in what is printed.
fn hide_everywhere(store: &Store, keys: &[(String, String)]) {
    store.secrets().hide(pairs(keys));
    show::keys::hide(pairs(keys));
}

/// Keys with their names, as they are hidden.
pub fn pairs(keys: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    keys.iter().map(|(name, key)| (name.as_str(), key.as_str()))
}

/// The keys in the environment, which are known before any configuration is read.
fn keys_in(variables: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let names = PROVIDERS.iter().map(|provider| provider.key_env);
    names.filter_map(|name| Some((name, variables.get(name)?.as_str())))
}

/// The limits that the configuration sets for a service.
pub fn limits(config: &Config) -> CoordinatorLimits {
    let set = &config.coordinator;
    // What may rightly be silent: the longest command and a model that thinks, or one that is asked as often
    // as may be and stalls each time.
    let (models, command) = (&config.models, config.agent.bash_max_timeout_seconds);
    let asked_again = (models.stall_seconds + LONGEST_RETRY_AFTER) * models.max_retries;
    let silent = (command + models.stall_seconds).max(models.stall_seconds + asked_again);
    CoordinatorLimits {
        tasks_per_session: set.max_concurrent_tasks as usize,
        sessions_per_user: set.max_sessions as usize,
        waiting_tasks: set.max_waiting_tasks as usize,
        session_lease: set.session_lease_ttl_ms,
        task_lease: set.task_lease_ms,
        // A lease that ends while a message is being routed would let another in.
        router: set.router_timeout_seconds.min(set.session_lease_ttl_ms * 2 / 3),
        hang: set.hang_seconds.max(silent),
        retries: config.agent.max_retries,
        autonomous_tasks: config.agent.autonomous_max_tasks as usize,
        autonomous_time: config.agent.autonomous_max_hours,
        profile: config.policy.profile.unwrap_or(Axes::headless().permission_profile),
        unrestricted: config.policy.allow_unrestricted,
    }
}

/// What a runtime is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One task, or one question: a single thread does it all, and nothing is handed from one to another.
    One,
    /// As many tasks as the machine carries.
    Many,
}

/// The runtime that everything runs on.
pub fn runtime(load: Load) -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if load == Load::One {
        builder.worker_threads(1);
    }
    Ok(builder.enable_all().build().context("the async runtime does not start")?)
}
