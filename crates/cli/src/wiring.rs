//! Puts the parts together: which store, which models, what an agent gets to work with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;
use windlass_agent::{Agent, Preview, Settings};
use windlass_coordinator::{Coordinator, Equip, Equipment};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::state::TaskState;
use windlass_model::{ModelName, Models};
use windlass_skills::Skills;
use windlass_store::Store;
use windlass_tools::workspace::{Places, Workspace};
use windlass_tools::{Registry, World};

use crate::failure::Failure;

/// The runtime that everything runs on.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    Ok(runtime.context("the async runtime does not start")?)
}

/// Sends log lines to stderr, those that `RUST_LOG` asks for.
pub fn log_to_stderr(format: &str) {
    use tracing_subscriber::EnvFilter;
    let Ok(filter) = EnvFilter::try_from_default_env() else { return };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second subscriber in one process (a test) is no reason to stop.
    let _ = match format {
        "json" => lines.json().try_init(),
        _ => lines.try_init(),
    };
}

/// The user's name, as others see who answered.
pub fn user() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_else(|| "user".to_owned())
}

/// The model that is used where nothing else is said.
pub fn default_model() -> Option<String> {
    let name = std::env::var("LITELLM_MODEL").ok().filter(|name| !name.is_empty())?;
    Some(if name.contains(['/', ':']) { name } else { format!("litellm/{name}") })
}

/// Refuses a model that could never answer, before a task is made for it.
pub fn check_model(name: &str) -> Result<(), Failure> {
    open_model(&models(), name).map(drop).map_err(|details| {
        Failure::usage(&details.message, details.hint.clone().unwrap_or_default())
    })
}

/// The control plane over the data directory.
pub fn coordinator(
    data: Option<&Path>,
    options: windlass_store::Options,
) -> Result<Coordinator, Failure> {
    let directory = match data {
        Some(directory) => directory.to_owned(),
        None => data_directory()?,
    };
    let store = Store::open(&directory, options)?;
    let workbench = Workbench { models: models(), store: store.clone() };
    Ok(Coordinator::new(store, Arc::new(workbench), Arc::new(Timestamp::now)))
}

fn data_directory() -> Result<PathBuf, Failure> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("XDG_DATA_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("windlass"))
        .ok_or_else(|| {
            Failure::usage("there is no home directory to keep data in", "add `--data DIR`")
        })
}

fn models() -> Models {
    use windlass_model::{Dialect, Provider, Settings};
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut providers = std::collections::BTreeMap::new();
    let mut add = |name: &str, dialect, base: Option<String>, key: Option<String>| {
        if let Some(base) = base {
            let key = key.map(Into::into);
            providers.insert(name.to_owned(), Provider { dialect, base, key });
        }
    };
    add("litellm", Dialect::OpenAi, variable("LITELLM_API_BASE"), variable("LITELLM_API_KEY"));
    Models::new(Settings { providers, ..Settings::default() })
}

fn open_model(models: &Models, name: &str) -> Result<Arc<dyn windlass_model::Model>, ErrorDetails> {
    let refused = |message: String| {
        ErrorDetails::new(ErrorType::ModelUnavailable, message)
            .hinted("set LITELLM_API_BASE and LITELLM_MODEL, or add `--model provider/model`")
    };
    let name: ModelName = name.parse().map_err(|error| refused(format!("{error}")))?;
    models.open(&name).map_err(|error| refused(error.to_string()))
}

/// Lets a person find the trace in the workspace (ES-322). The trace itself is out of the agent's
/// reach; where the link cannot be made, nothing is lost.
fn link_trace(workspace: &Path, traces: &Path, task: &TaskState) {
    let name = format!("{}.jsonl", task.id());
    let target = traces.join(task.created.root.to_string()).join(&name);
    let shown = workspace.join(".trace");
    let _ = std::fs::create_dir(&shown);
    let _ = std::os::unix::fs::symlink(target, shown.join(name));
}

/// Gives agents what they work with.
struct Workbench {
    models: Models,
    store: Store,
}

impl Equip for Workbench {
    fn equip(
        &self,
        task: &TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> Result<Equipment, ErrorDetails> {
        let config = &task.command().execution_config;
        let model = open_model(&self.models, config.model.as_deref().unwrap_or("litellm/gpt-4o"))?;
        let directory = Path::new(&task.created.workspace);
        let dir = self.store.dir();
        let places = Places {
            skills: None,
            trace: Some(dir.traces().join(task.created.root.to_string())),
            data: Some(dir.root().to_owned()),
        };
        let workspace = Workspace::open(directory, places)
            .map_err(|error| ErrorDetails::new(ErrorType::Workspace, error.to_string()))?;
        link_trace(directory, &dir.traces(), task);
        let world = World { workspace: Arc::new(workspace), skills: Arc::new(Skills::empty()) };
        let settings = Settings {
            max_iterations: config.max_iterations.unwrap_or(200),
            timeout: config.timeout_seconds.map(Duration::from_secs),
            tool_output_max_tokens: 8000,
            compaction: config.compaction.clone().unwrap_or_default(),
            container: "none".to_owned(),
            workspace: "/workspace".to_owned(),
            instructions: None,
            memories: Vec::new(),
        };
        let registry = Arc::new(Registry::builtin());
        Ok(Equipment { agent: Agent { model, registry, world, settings, previews } })
    }
}
