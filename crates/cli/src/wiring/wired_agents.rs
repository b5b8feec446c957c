//! What an agent gets to work with: its model, tools, workspace, sandbox and limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::broadcast;
use windlass_agent::{Memory, Parts, Preview, Settings, Summarizer, budget, tree};
use windlass_coordinator::{AgentFactory, BoxFuture, standing_rules};
use windlass_core::axes::{ModelMode, RunControl};
use windlass_core::command::CompactionOverrides;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::guard::Thresholds;
use windlass_core::id::TaskId;
use windlass_core::layout::{Layout, Site};
use windlass_core::policy::Pattern;
use windlass_core::state::TaskState;
use windlass_core::text::BYTES_PER_TOKEN;
use windlass_model::{ContextService, Embeddings, Model, Recorder};
use windlass_skills::SkillRegistry;
use windlass_store::Store;
use windlass_tools::shell::Limits;
use windlass_tools::workspace::{Places, Workspace};
use windlass_tools::{Notices, Registry, Shell, ToolContext};

use super::place::{self, Placed};
use super::{Environment, Project, gate, mcp, models, sandbox, web};
use crate::config::types::Origin;
use crate::config::{Config, ModelChoice};
use crate::failure::Failure;
use windlass_core::event::Driver;

/// One result fills at most this part of the window (`docs/design.md` §6).
const MAX_WINDOW_SHARE: u64 = 4;

/// Gives agents what they work with.
pub(super) struct WiredAgents {
    environment: Environment,
    store: Store,
    /// What was loaded at the start, where this process works in one directory.
    project: Option<Arc<Project>>,
}

impl WiredAgents {
    pub(super) fn new(
        environment: Environment,
        store: Store,
        project: Option<Arc<Project>>,
    ) -> Self {
        Self { environment, store, project }
    }

    /// What the directory of a task brings: as it was loaded at the start, else as it is now.
    fn project(&self, directory: &Path) -> Result<Arc<Project>, Failure> {
        match &self.project {
            Some(project) if project.is_at(directory) => Ok(Arc::clone(project)),
            _ => Ok(Arc::new(Project::load(self.environment.clone(), directory)?)),
        }
    }

    async fn agent(
        &self,
        task: &TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> Result<Parts, ErrorDetails> {
        let directory = Path::new(&task.created.workspace);
        let project = self.project(directory).map_err(misconfigured)?;
        let config = project
            .config()
            .for_task(&task.execution_config())
            .map_err(|errors| misconfigured(errors.into()))?;
        self.store.hide_secrets(config.secrets());
        let choice = config.models.for_mode(task.axes.model_mode).cloned();
        let choice = choice.map_err(|errors| misconfigured(errors.into()))?;
        let model = self.recorded(project.model(&choice)?, task.attempts.started)?;
        let summarizer = summarizer(&project, &config, &choice)?;
        let skills = project.skills()?.clone();
        let shown = skills.shown().map(Path::to_owned);
        let (root, placed) = (task.created.root, Placed::of_task(&task.created));
        let traces = self.traces(root)?;
        // What a person runs may be stopped and continued; what a service runs, another process takes over.
        let lease = match task.created.driver {
            Driver::Foreground => None,
            Driver::Service => Some(config.coordinator.task_lease_ms),
        };
        let environment = &self.environment;
        let opened =
            sandbox::open_for_task(environment, &config, &placed, root, shown, lease).await?;
        let isolation = opened.sandbox.isolation();
        let layout = placed.layout.clone().seen_at(isolation.workspace.display().to_string());
        let workspace = self.workspace(&placed, layout.clone(), traces, &skills)?;
        workspace.link_trace(task.id());
        let rules = self.store.standing_rules().all().map_err(|error| unequipped(&error))?;
        let standing = standing_rules::rules_in(&rules, &placed.top);
        let settings = settings(&config, &choice, task, &opened, standing);
        let sandbox = opened.sandbox;
        let limits = Limits {
            default_timeout: config.agent.bash_timeout_seconds,
            max_timeout: config.agent.bash_max_timeout_seconds,
            shown_bytes: shown_bytes(settings.tool_output_max_tokens),
        };
        let notices = Notices::default();
        let mut registry = registry(&config);
        let found = project.servers()?.found(&self.environment, Some(root));
        if !found.definitions.is_empty() || !found.notices.is_empty() {
            let host =
                mcp::host(&self.environment, &config, &placed.top, &sandbox, notices.clone());
            mcp::equip(&mut registry, found, &host.map_err(|error| unequipped(&error))?).await;
        }
        let gate = gate::context(&self.environment, &config, &isolation, &layout, &placed.added);
        let (store, clock) = (self.store.clone(), Arc::new(Timestamp::now));
        let world = ToolContext {
            workspace: Arc::new(workspace),
            skills,
            notices,
            embeddings: embeddings(&config)?,
            shell: Arc::new(Shell::new(sandbox, store, task.id(), clock, limits, gate)),
        };
        let registry = Arc::new(registry);
        let memory = Some(memory(&config, &self.store)?);
        let trusted = super::skills::approved(self.environment.data.clone(), directory);
        Ok(Parts { model, summarizer, registry, world, settings, memory, trusted, previews })
    }

    /// The model that routes messages: its own, else the fast one.
    fn routing_model(&self) -> Result<Arc<dyn Model>, ErrorDetails> {
        let config = self.environment.config(Path::new(".")).map_err(misconfigured)?;
        let choice = match &config.coordinator.router_model {
            Some(choice) => choice,
            None => config
                .models
                .for_mode(ModelMode::Fast)
                .map_err(|errors| misconfigured(errors.into()))?,
        };
        models::open(&config, choice)
    }

    /// The model, its replies written down where that was asked for. A run that was interrupted by a
    /// question continues its recording.
    fn recorded(
        &self,
        model: Arc<dyn Model>,
        resumed: bool,
    ) -> Result<Arc<dyn Model>, ErrorDetails> {
        let Some(path) = &self.environment.record else { return Ok(model) };
        let recorder = match resumed {
            true => Recorder::append(model, path),
            false => Recorder::create(model, path),
        };
        let recorder = recorder.map_err(|error| {
            let message = format!("`{}` cannot be written: {error}", path.display());
            ErrorDetails::new(ErrorType::InvalidCommand, message)
                .with_hint("name another file with `--record FILE`")
        })?;
        Ok(Arc::new(recorder))
    }

    /// Where the traces of a tree are; made before a sandbox shows it.
    fn traces(&self, root: TaskId) -> Result<PathBuf, ErrorDetails> {
        let traces = self.store.dir().traces().join(root.to_string());
        std::fs::create_dir_all(&traces)
            .map_err(|error| ErrorDetails::new(ErrorType::Workspace, error.to_string()))?;
        Ok(traces)
    }

    fn workspace(
        &self,
        placed: &Placed,
        layout: Layout,
        traces: PathBuf,
        skills: &SkillRegistry,
    ) -> Result<Workspace, ErrorDetails> {
        let places = Places {
            layout,
            added: placed.added.clone(),
            skills: skills.shown().map(Path::to_owned),
            trace: Some(traces),
            hidden: place::hidden(&self.environment),
        };
        Workspace::open(&placed.top, places)
            .map_err(|error| ErrorDetails::new(ErrorType::Workspace, error.to_string()))
    }
}

impl AgentFactory for WiredAgents {
    fn make<'a>(
        &'a self,
        task: &'a TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> BoxFuture<'a, Result<Parts, ErrorDetails>> {
        Box::pin(self.agent(task, previews))
    }

    fn site(&self, directory: &Path) -> Site {
        place::site(&self.environment, directory)
    }

    fn router(&self) -> BoxFuture<'_, Result<Arc<dyn Model>, ErrorDetails>> {
        Box::pin(std::future::ready(self.routing_model()))
    }
}

/// Who tells how near texts are in meaning, where that is configured.
fn embeddings(config: &Config) -> Result<Option<Embeddings>, ErrorDetails> {
    let models = &config.models;
    let Some(base) = &models.embeddings_api_base else { return Ok(None) };
    let key = models.embeddings_api_key.clone();
    Embeddings::new(base.expose().as_ref(), key, &models.embeddings_model)
        .map(Some)
        .map_err(|error| ErrorDetails::new(ErrorType::InvalidCommand, error.to_string()))
}

/// Where memories come from: a Context Service where one is named, else our own store.
fn memory(config: &Config, store: &Store) -> Result<Memory, ErrorDetails> {
    let Some(base) = &config.coordinator.context_service_url else {
        return Ok(Memory::Embedded(store.clone()));
    };
    let service = ContextService::new(base.expose().as_ref()).map_err(|error| {
        ErrorDetails::new(ErrorType::ContextServiceUnavailable, error.to_string())
    })?;
    Ok(Memory::Service(service))
}

/// Who summarizes: the model named for it, else the fast one, else the agent's own (ES-169).
fn summarizer(
    project: &Project,
    config: &Config,
    own: &ModelChoice,
) -> Result<Summarizer, ErrorDetails> {
    let named = config.compaction.summarization_model.as_ref();
    // A fast model that merely follows the everyday one was not chosen by anybody.
    let fast =
        config.models.fast.as_ref().filter(|fast| Some(*fast) != config.models.smart.as_ref());
    let choice = named.or(fast).unwrap_or(own);
    // `--context-window` speaks of the agent's own model.
    let other = config.facts(choice).context_window.filter(|_| choice != own);
    Ok(Summarizer {
        model: project.model(choice)?,
        window: other.unwrap_or_else(|| config.context_window(choice)),
        price: models::price(config, choice),
    })
}

fn settings(
    config: &Config,
    choice: &ModelChoice,
    task: &TaskState,
    opened: &sandbox::Opened,
    standing: Vec<Pattern>,
) -> Settings {
    let isolation = opened.sandbox.isolation();
    let kind = isolation.kind.to_string();
    let origin = match task.created.driver {
        Driver::Foreground => Origin::Person,
        Driver::Service => Origin::Command,
    };
    let compaction = &config.compaction;
    let window = config.context_window(choice);
    Settings {
        max_iterations: config.agent.max_iterations,
        timeout: config.agent.timeout_seconds.limit(origin),
        outage: config.models.outage.unwrap_or_else(|| task.created.outage_by_origin()),
        tool_output_max_tokens: config.agent.tool_output_max_tokens.min(window / MAX_WINDOW_SHARE),
        compaction: CompactionOverrides {
            context_window_tokens: Some(window),
            response_reserve_tokens: Some(compaction.response_reserve_tokens),
            compaction_trigger_ratio: Some(compaction.trigger_ratio),
            memory_flush_enabled: Some(compaction.memory_flush_enabled),
            memory_flush_soft_threshold_tokens: Some(compaction.memory_flush_soft_threshold_tokens),
            max_summary_tokens: Some(compaction.max_summary_tokens),
            preserve_recent_turns: Some(compaction.preserve_recent_turns),
        },
        guard: Thresholds {
            max_identical_calls: config.agent.max_identical_calls as usize,
            max_consecutive_failures: config.agent.max_consecutive_failures as usize,
            pattern_window: config.agent.pattern_window as usize,
        },
        compact_at_plan_step: compaction.at_plan_step,
        rules: gate::given_rules(config, standing),
        bound_by: Vec::new(),
        // A default choice is shown with its reason.
        container: match &opened.why {
            Some(why) => format!("{kind} ({why})"),
            None => kind,
        },
        footing: isolation.warnings.join(" "),
        instructions: crate::instructions::load(
            Path::new(&task.created.workspace),
            Path::new(task.created.boundary()),
        ),
        sub_agent_timeout: config.subagents.default_timeout_seconds,
        sub_agents: tree::Limits {
            max_depth: config.subagents.max_depth,
            max_agents: config.subagents.max_agents,
        },
        budget: budget::Limits {
            cost_usd: task.created.cost_budget.or(config.agent.budget_usd),
            tokens: config.agent.budget_tokens,
            turns: config.agent.budget_turns,
            seconds: seconds(config, task.axes.run_control),
        },
        price: models::price(config, choice),
    }
}

/// How long a task may work: its budget, and for autonomous work the limit of that (MS-207).
fn seconds(config: &Config, control: RunControl) -> Option<u64> {
    let alone = match control {
        RunControl::Autonomous => Some(config.agent.autonomous_max_hours.as_secs()),
        RunControl::Manual | RunControl::Assisted => None,
    };
    config.agent.budget_seconds.into_iter().chain(alone).min()
}

/// Our own tools, then those that the configuration adds.
fn registry(config: &Config) -> Registry {
    let mut registry = Registry::builtin();
    let (tools, missing) = web::tools(config);
    tools.into_iter().for_each(|tool| registry.add_own(tool));
    missing.iter().for_each(|why| tracing::info!("{why}"));
    registry
}

fn unequipped(error: &dyn std::error::Error) -> ErrorDetails {
    ErrorDetails::new(ErrorType::Internal, error.to_string())
}

/// As many bytes as the model may see at all.
fn shown_bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}

fn misconfigured(failure: Failure) -> ErrorDetails {
    let details = ErrorDetails::new(ErrorType::InvalidCommand, failure.error.to_string());
    details.with_hint(failure.hint.unwrap_or_else(|| "see `windlass config`".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    /// MS-207, MS-048: the nearest limit counts, and only autonomous work has the second.
    #[test]
    fn autonomous_work_is_bounded_in_time() {
        let config = |variables: &[(&str, &str)]| {
            let env = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let sources =
                Sources { user: None, project: None, env: env.collect(), flags: Vec::new() };
            Config::load(&sources).unwrap()
        };
        let usual = config(&[]);
        assert_eq!(seconds(&usual, RunControl::Autonomous), Some(8 * 3600));
        assert_eq!(seconds(&usual, RunControl::Assisted), None);
        let longer = config(&[("AGENT_AUTONOMOUS_MAX_HOURS", "100")]);
        assert_eq!(seconds(&longer, RunControl::Autonomous), Some(360_000));
        let budget = config(&[("AGENT_BUDGET_SECONDS", "60")]);
        assert_eq!(seconds(&budget, RunControl::Autonomous), Some(60));
        assert_eq!(seconds(&budget, RunControl::Manual), Some(60));
    }
}
