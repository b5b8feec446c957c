//! What an agent gets to work with: its model, tools, workspace, sandbox and limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::broadcast;
use windlass_agent::{
    ContractInForce, Memory, ModelParts, ModelSource, ModelWish, OpenModel, Parts, Preview,
    Settings, Summarizer, budget, tree,
};
use windlass_coordinator::health::{Check, Fixed, RepairPolicy};
use windlass_coordinator::plans::Capabilities;
use windlass_coordinator::skill_proposals::SkillPolicy;
use windlass_coordinator::{AgentFactory, BoxFuture, ExpandedSkill, SkillCommand, standing_rules};
use windlass_core::axes::{Axes, ModelMode, RunControl};
use windlass_core::command::{CompactionOverrides, ExecutionConfig};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::guard::Thresholds;
use windlass_core::id::TaskId;
use windlass_core::layout::{Layout, Site};
use windlass_core::policy::Pattern;
use windlass_core::state::TaskState;
use windlass_core::text::BYTES_PER_TOKEN;
use windlass_model::{ContextService, Embeddings, Model, Recorder};
use windlass_skills::{SkillRegistry, Skills, Viewer};
use windlass_store::Store;
use windlass_tools::shell::Limits;
use windlass_tools::workspace::{Places, Workspace};
use windlass_tools::{Ledger, Notices, Registry, Shell, ToolContext};
use windlass_workflow::RunnerPlace;
use windlass_workflow::runner::Runner;

use super::place::{self, Placed};
use super::trust;
use super::worktrees::OwnWorktree;
use super::{
    Environment, Project, browser, gate, health, mcp, models, plans, sandbox, surroundings, web,
    workflows,
};
use crate::config::types::Origin;
use crate::config::{Chosen, Config, File, ModelChoice, Trust};
use crate::failure::Failure;
use windlass_core::event::{Driver, WorkflowSource};

/// One result fills at most this part of the window (`docs/design.md` §6).
const MAX_WINDOW_SHARE: u64 = 4;

/// Gives agents what they work with.
pub(super) struct WiredAgents {
    pub(super) environment: Environment,
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
    pub(super) fn project(&self, directory: &Path) -> Result<Arc<Project>, Failure> {
        match &self.project {
            Some(project) if project.is_at(directory) => Ok(Arc::clone(project)),
            _ => Ok(Arc::new(Project::load(self.environment.clone(), directory)?)),
        }
    }

    /// The directory whose standing rules hold for a task: in a worktree of a run, that of the run.
    fn home(&self, task: &TaskState, top: &Path) -> Result<PathBuf, ErrorDetails> {
        if OwnWorktree::around(&self.environment.data, top).is_none() {
            return Ok(top.to_owned());
        }
        let run = self.store.tasks().get(task.created.root).map_err(|error| unequipped(&error))?;
        Ok(run.map_or_else(|| top.to_owned(), |run| PathBuf::from(run.workspace)))
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
        self.store.secrets().hide(config.secrets());
        let script = workflows::script(task);
        let choice = match &script {
            Some(_) => workflows::no_choice(),
            None => config
                .models
                .for_mode(task.axes.model_mode)
                .map_err(|errors| misconfigured(errors.into()))?,
        };
        let record = self.environment.record.as_deref();
        let (model, summarizer) = match &script {
            Some(script) => workflows::models(script),
            None => (
                recorded(record, project.model(&choice)?, task.attempts.started)?,
                summarizer(&project, &config, &choice)?,
            ),
        };
        let plan = task.created.plan.as_deref();
        let skills = match plan.and_then(|plan| plan.skills.as_deref()) {
            // Exactly those that the plan names, also among the files that its commands see (PL-020).
            Some(only) => plans::skills(&self.environment, directory, only)?,
            None => project.skills()?.clone(),
        };
        let shown = skills.shown().map(Path::to_owned);
        let (root, placed) = (workflows::sandbox_of(task), Placed::of_task(&task.created));
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
        workspace.own_files().link_trace(task.id());
        let rules = self.store.standing_rules().all().map_err(|error| unequipped(&error))?;
        let standing = standing_rules::rules_in(&rules, &self.home(task, &placed.top)?);
        let mut settings = settings(&config, &choice.model, task, &opened, standing);
        settings.contract = contract(task, &project);
        settings.shows_ledger = self.shows_ledger(&settings, &placed.top)?;
        settings.surroundings =
            Some(surroundings::of(&self.environment, &config, &isolation, &settings));
        let sandbox = opened.sandbox;
        let limits = Limits {
            default_timeout: config.agent.bash_timeout_seconds,
            max_timeout: workflows::timeout(script).max(config.agent.bash_max_timeout_seconds),
            shown_bytes: shown_bytes(settings.tool_output_max_tokens),
        };
        let notices = Notices::default();
        let mut registry = registry(&config);
        let place = (placed.top.as_path(), root);
        match browser::tool(environment, &config, &sandbox, place, &self.store) {
            Ok(browser) => registry.add_own(Arc::new(browser)),
            Err(why) => tracing::info!("{why}"),
        }
        let mut found = project.servers()?.found(&self.environment, Some(root));
        if let Some(plan) = plan {
            plans::narrow(&mut found, plan);
            plans::tools(&self.store, &task.created, plan)
                .into_iter()
                .for_each(|tool| registry.add_own(tool));
        }
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
            pictures: self.store.pictures(),
            ledger: Ledger { store: self.store.clone(), clock: Arc::new(Timestamp::now) },
            shell: Arc::new(Shell::new(sandbox, store, task.id(), clock, limits, gate)),
        };
        let registry = Arc::new(registry);
        let memory = match script {
            Some(_) => None,
            None => memory(&config, &self.store)?,
        };
        let trusted = super::skills::approved(self.environment.data.clone(), directory);
        let source = Models { project, record: self.environment.record.clone() };
        let source = ModelSource { made_for: ModelWish::of(task), source: Arc::new(source) };
        let models = script.is_none().then_some(source);
        Ok(Parts {
            model,
            summarizer,
            registry,
            world,
            settings,
            memory,
            trusted,
            previews,
            models,
        })
    }

    /// Agents read of commitments where there are some, or where the contract wants some.
    fn shows_ledger(&self, settings: &Settings, project: &Path) -> Result<bool, ErrorDetails> {
        let contract = settings.contract.as_ref();
        let is_wanted = contract.is_some_and(|active| active.contract.commitments.is_some());
        let ledger = self.store.commitments();
        let there_are = || ledger.has_unfinished(&project.display().to_string());
        Ok(is_wanted || there_are().map_err(|error| unequipped(&error))?)
    }

    /// The model that routes messages: its own, else the fast one.
    fn routing_model(&self) -> Result<Arc<dyn Model>, ErrorDetails> {
        let config = self.environment.config(Path::new(".")).map_err(misconfigured)?;
        let choice = match &config.coordinator.router_model {
            Some(choice) => Chosen::from(choice.clone()),
            None => config
                .models
                .for_mode(ModelMode::Fast)
                .map_err(|errors| misconfigured(errors.into()))?,
        };
        models::open(&config, &choice)
    }

    /// The skills of a directory as they are now.
    fn skills(&self, directory: Option<&str>) -> Skills {
        super::skills::now(&self.environment, Path::new(directory.unwrap_or("/")))
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

    fn expand(
        &self,
        directory: Option<&str>,
        axes: &Axes,
        text: &str,
    ) -> Result<Option<ExpandedSkill>, ErrorDetails> {
        if !text.trim_start().starts_with('/') {
            return Ok(None);
        }
        let skills = self.skills(directory);
        let invoked = windlass_skills::invoke(text, &skills, Viewer::of(axes)).transpose();
        let expanded = |found: windlass_skills::Invocation| ExpandedSkill {
            goal: found.text,
            message: found.message,
        };
        invoked.map(|found| found.map(expanded)).map_err(|error| {
            let hint = "`windlass skills list` shows what each skill needs";
            ErrorDetails::new(ErrorType::InvalidCommand, error.to_string()).with_hint(hint)
        })
    }

    fn skill_commands(&self, directory: Option<&str>) -> Result<Vec<SkillCommand>, ErrorDetails> {
        let skills = self.skills(directory);
        let callable = skills.list().filter(|skill| skill.meta.user_invocable);
        let command = |skill: &windlass_skills::Skill| SkillCommand {
            name: skill.meta.name.clone(),
            description: skill.meta.description.clone(),
        };
        Ok(callable.map(command).collect())
    }

    fn check_model(&self, directory: Option<&str>, name: &str) -> Result<String, ErrorDetails> {
        let project = self.project(Path::new(directory.unwrap_or("/"))).map_err(misconfigured)?;
        let wishes = ExecutionConfig { model: Some(name.to_owned()), ..Default::default() };
        let refused = |errors: crate::config::ConfigErrors| misconfigured(errors.into());
        let config = project.config().for_task(&wishes).map_err(refused)?;
        let choice = config.models.for_mode(ModelMode::Smart).map_err(refused)?;
        project.model(&choice)?;
        Ok(choice.model.to_string())
    }

    fn capabilities(&self, directory: &Path) -> Result<Capabilities, ErrorDetails> {
        let project = self.project(directory).map_err(misconfigured)?;
        plans::capabilities(&self.environment, &project)
    }

    fn is_trusted(&self, directory: &Path, path: &Path, text: &str) -> bool {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        trust::of(&self.environment.data, directory, &file) == Trust::Approved
    }

    fn checks<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(health::checks(&self.environment, directory))
    }

    fn dispatch_checks(&self, directory: &Path) -> Vec<Check> {
        health::dispatch_checks(directory)
    }

    fn fix<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Vec<Fixed>> {
        Box::pin(health::fix(&self.environment, directory))
    }

    fn repair_policy(&self, directory: &Path) -> RepairPolicy {
        health::repair_policy(&self.environment, directory)
    }

    fn is_workflow_approved(&self, directory: &Path, file: &Path) -> bool {
        workflows::is_approved(&self.environment, directory, file)
    }

    fn approve_workflow(
        &self,
        directory: &Path,
        source: &WorkflowSource,
    ) -> Result<(), ErrorDetails> {
        workflows::approve(&self.environment, directory, source)
    }

    fn skill_policy(&self, directory: &Path) -> SkillPolicy {
        let config = self.environment.config(directory);
        config.map_or(SkillPolicy::Propose, |config| config.policy.skill_proposals)
    }

    fn reasoning_model(&self, directory: &Path) -> Result<Option<Arc<dyn Model>>, ErrorDetails> {
        let project = self.project(directory).map_err(misconfigured)?;
        if !project.config().agent.reasoning_assist {
            return Ok(None);
        }
        let choice = project.config().models.for_mode(ModelMode::Fast);
        project.model(&choice.map_err(|errors| misconfigured(errors.into()))?).map(Some)
    }

    fn runner(
        &self,
        directory: &Path,
        name: &str,
        command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        self.runner_in(directory, name, command)
    }

    fn runner_place<'a>(
        &'a self,
        task: &'a TaskState,
    ) -> BoxFuture<'a, Result<RunnerPlace, ErrorDetails>> {
        Box::pin(self.place_for_runner(task))
    }

    fn router(&self) -> BoxFuture<'_, Result<Arc<dyn Model>, ErrorDetails>> {
        Box::pin(std::future::ready(self.routing_model()))
    }
}

/// The model, its replies written down where that was asked for. A run that was interrupted by a question
/// continues its recording.
fn recorded(
    path: Option<&Path>,
    model: Arc<dyn Model>,
    resumed: bool,
) -> Result<Arc<dyn Model>, ErrorDetails> {
    let Some(path) = path else { return Ok(model) };
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

/// Opens the model that a task wants while it is worked on.
struct Models {
    project: Arc<Project>,
    record: Option<PathBuf>,
}

impl OpenModel for Models {
    fn open(&self, task: &TaskState) -> Result<ModelParts, ErrorDetails> {
        self.open_for(&task.execution_config(), task.axes.model_mode)
    }

    fn open_mode(&self, task: &TaskState, mode: ModelMode) -> Result<ModelParts, ErrorDetails> {
        let wishes = ExecutionConfig { model: None, effort: None, ..task.execution_config() };
        self.open_for(&wishes, mode)
    }
}

impl Models {
    fn open_for(
        &self,
        wishes: &ExecutionConfig,
        mode: ModelMode,
    ) -> Result<ModelParts, ErrorDetails> {
        let refused = |errors: crate::config::ConfigErrors| misconfigured(errors.into());
        let config = self.project.config().for_task(wishes).map_err(refused)?;
        let choice = config.models.for_mode(mode).map_err(refused)?;
        Ok(ModelParts {
            model: recorded(self.record.as_deref(), self.project.model(&choice)?, true)?,
            summarizer: summarizer(&self.project, &config, &choice)?,
            compaction: compaction(&config, &choice.model),
            tool_output_max_tokens: output_tokens(&config, &choice.model),
            price: models::price(&config, &choice.model),
        })
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

/// Where memories come from: a Context Service where one is named, else our own store, unless that is switched off.
fn memory(config: &Config, store: &Store) -> Result<Option<Memory>, ErrorDetails> {
    let Some(base) = &config.coordinator.context_service_url else {
        return Ok(config.agent.memories.then(|| Memory::Embedded(store.clone())));
    };
    let service = ContextService::new(base.expose().as_ref()).map_err(|error| {
        ErrorDetails::new(ErrorType::ContextServiceUnavailable, error.to_string())
    })?;
    Ok(Some(Memory::Service(service)))
}

/// Who summarizes: the model named for it, else the fast one, else the agent's own (ES-169).
fn summarizer(
    project: &Project,
    config: &Config,
    own: &Chosen,
) -> Result<Summarizer, ErrorDetails> {
    let named = config.compaction.summarization_model.clone().map(Chosen::from);
    // A fast model that merely follows the everyday one was not chosen by anybody.
    let fast =
        config.models.fast.as_ref().filter(|&fast| Some(fast) != config.models.smart.as_ref());
    let fast =
        fast.and_then(|fast| Some(Chosen { model: fast.model.clone()?, effort: fast.effort }));
    let chosen = named.or(fast).unwrap_or_else(|| own.clone());
    // `--context-window` speaks of the agent's own model.
    let other = config.facts(&chosen.model).context_window.filter(|_| chosen.model != own.model);
    Ok(Summarizer {
        model: project.model(&chosen)?,
        window: other.unwrap_or_else(|| config.context_window(&chosen.model)),
        price: models::price(config, &chosen.model),
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
    Settings {
        max_iterations: config.agent.max_iterations,
        timeout: config.agent.timeout_seconds.limit(origin),
        outage: config.models.outage.unwrap_or_else(|| task.created.outage_by_origin()),
        tool_output_max_tokens: output_tokens(config, choice),
        compaction: compaction(config, choice),
        guard: Thresholds {
            max_identical_calls: config.agent.max_identical_calls as usize,
            max_consecutive_failures: config.agent.max_consecutive_failures as usize,
            pattern_window: config.agent.pattern_window as usize,
        },
        compact_at_plan_step: config.compaction.at_plan_step,
        rules: gate::given_rules(config, standing),
        bound_by: Vec::new(),
        shows_ledger: false,
        contract: None,
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
        surroundings: None,
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

/// What must hold before a task is done: what it brings itself, else the contract of its project.
fn contract(task: &TaskState, project: &Project) -> Option<Arc<ContractInForce>> {
    let given = task.command().execution_config.contract.as_deref();
    let own = given.map(|given| {
        let (contract, approved) = (given.contract.clone(), given.approved);
        Arc::new(ContractInForce {
            contract,
            source: "the task's own contract".to_owned(),
            approved,
        })
    });
    own.or_else(|| project.contract().cloned())
}

/// Compaction as it is configured, for the window of a model.
fn compaction(config: &Config, choice: &ModelChoice) -> CompactionOverrides {
    let compaction = &config.compaction;
    CompactionOverrides {
        context_window_tokens: Some(config.context_window(choice)),
        response_reserve_tokens: Some(compaction.response_reserve_tokens),
        compaction_trigger_ratio: Some(compaction.trigger_ratio),
        memory_flush_enabled: Some(compaction.memory_flush_enabled),
        memory_flush_soft_threshold_tokens: Some(compaction.memory_flush_soft_threshold_tokens),
        max_summary_tokens: Some(compaction.max_summary_tokens),
        preserve_recent_turns: Some(compaction.preserve_recent_turns),
    }
}

/// The largest result of a call in the window of a model.
fn output_tokens(config: &Config, choice: &ModelChoice) -> u64 {
    let window = config.context_window(choice);
    config.agent.tool_output_max_tokens.min(window / MAX_WINDOW_SHARE)
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

pub(super) fn misconfigured(failure: Failure) -> ErrorDetails {
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
