//! What one task's agent gets to work with: its models, tools, workspace, sandbox and limits, put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::broadcast;
use windlass_agent::{MemorySource, Parts, Preview, Settings};
use windlass_coordinator::standing_rules;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Driver, ScriptWork, WorkflowPart};
use windlass_core::id::TaskId;
use windlass_core::layout::Layout;
use windlass_core::state::TaskState;
use windlass_core::text::BYTES_PER_TOKEN;
use windlass_model::{ContextService, Embeddings};
use windlass_sandbox::Sandbox;
use windlass_skills::SkillRegistry;
use windlass_store::Store;
use windlass_tools::shell::CommandLimits;
use windlass_tools::workspace::{Places, Workspace};
use windlass_tools::{Ledger, Notices, Registry, Shell, ToolContext};

use super::place::{self, TaskDirectories};
use super::runners::Program;
use super::sandbox::OpenSandbox;
use super::task_models::TaskModels;
use super::wired_agents::misconfigured;
use super::worktrees::OwnWorktree;
use super::{
    Environment, Project, browser, gate, hide_everywhere, mcp, plans, sandbox, settings,
    task_environment, web, workflows,
};
use crate::config::{Config, ModelChoice};

/// What is known of a task before its parts are made.
pub(super) struct Equipment<'a> {
    environment: &'a Environment,
    store: &'a Store,
    task: &'a TaskState,
    project: Arc<Project>,
    config: Config,
    placed: TaskDirectories,
    /// The task that its sandbox belongs to.
    root: TaskId,
}

impl<'a> Equipment<'a> {
    pub(super) fn new(
        environment: &'a Environment,
        store: &'a Store,
        project: Arc<Project>,
        task: &'a TaskState,
    ) -> Result<Self, ErrorDetails> {
        let config = project.config().for_task(&task.execution_config());
        let config = config.map_err(|errors| misconfigured(errors.into()))?;
        super::hide_keys(environment, &config, &|named| store.secrets().hide(named));
        let (root, mut placed) =
            (workflows::sandbox_of(task), TaskDirectories::of_task(&task.created));
        if let Some(WorkflowPart::Script(ScriptWork { program: Some(program), .. })) =
            task.created.workflow.as_deref()
        {
            // Its credentials, as the person's own configuration names them; never journaled.
            let program = Program::of(&config, program)?;
            hide_everywhere(store, &program.keys(environment));
            placed.variables.extend(program.environment(environment));
        }
        Ok(Self { environment, store, task, project, config, placed, root })
    }

    pub(super) async fn parts(
        self,
        previews: broadcast::Sender<Preview>,
    ) -> Result<Parts, ErrorDetails> {
        let (environment, config, store) = (self.environment, &self.config, self.store);
        let record = environment.record.as_deref();
        let models = TaskModels::open(self.task, &self.project, config, record)?;
        let skills = self.skills()?;
        let traces = self.traces()?;
        let opened = self.open_sandbox(&skills).await?;
        let isolation = opened.sandbox.isolation();
        let layout = self.placed.layout.clone().seen_at(isolation.workspace.display().to_string());
        let workspace = self.workspace(layout.clone(), traces, &skills)?;
        workspace.own_files().link_trace(self.task.id());
        let settings = self.settings(&models.choice.model, &opened)?;
        let gate = gate::context(environment, config, &isolation, &layout, &self.placed.added);
        let notices = Notices::default();
        let registry = self.registry(&opened.sandbox, &notices).await?;
        let limits = self.shell_limits(&settings);
        let clock = Arc::new(Timestamp::now);
        let (id, ledger) = (self.task.id(), Ledger { store: store.clone(), clock: clock.clone() });
        let world = ToolContext {
            workspace: Arc::new(workspace),
            skills,
            notices,
            embeddings: embeddings(config)?,
            pictures: store.pictures(),
            ledger,
            shell: Arc::new(Shell::new(opened.sandbox, store.clone(), id, clock, limits, gate)),
        };
        let memory = match workflows::script(self.task) {
            Some(_) => None,
            None => memory(config, store, &models.choice.model)?,
        };
        let trusted = super::skills::approval_fn(environment.data.clone(), self.directory());
        Ok(Parts {
            model: models.model,
            summarizer: models.summarizer,
            registry: Arc::new(registry),
            world,
            settings,
            memory,
            trusted,
            previews,
            models: models.source,
        })
    }

    fn directory(&self) -> &Path {
        Path::new(&self.task.created.workspace)
    }

    fn skills(&self) -> Result<SkillRegistry, ErrorDetails> {
        let plan = self.task.created.plan.as_deref();
        match plan.and_then(|plan| plan.skills.as_deref()) {
            // Exactly those that the plan names, also among the files that its commands see (PL-020).
            Some(only) => plans::skills(self.environment, self.directory(), only),
            None => self.project.skills().cloned(),
        }
    }

    async fn open_sandbox(&self, skills: &SkillRegistry) -> Result<OpenSandbox, ErrorDetails> {
        // What a person runs may be stopped and continued; what a service runs, another process takes over.
        let lease = match self.task.created.driver {
            Driver::Foreground => None,
            Driver::Service => Some(self.config.coordinator.task_lease_ms),
        };
        let shown = skills.shown().map(Path::to_owned);
        let (environment, config) = (self.environment, &self.config);
        sandbox::open_for_task(environment, config, &self.placed, self.root, shown, lease).await
    }

    /// Where the traces of a tree are; made before a sandbox shows it.
    fn traces(&self) -> Result<PathBuf, ErrorDetails> {
        let traces = self.store.dir().traces().join(self.root.to_string());
        std::fs::create_dir_all(&traces)
            .map_err(|error| ErrorDetails::new(ErrorType::Workspace, error.to_string()))?;
        Ok(traces)
    }

    fn workspace(
        &self,
        layout: Layout,
        traces: PathBuf,
        skills: &SkillRegistry,
    ) -> Result<Workspace, ErrorDetails> {
        let places = Places {
            layout,
            added: self.placed.added.clone(),
            skills: skills.shown().map(Path::to_owned),
            trace: Some(traces),
            hidden: place::hidden_paths(self.environment),
        };
        Workspace::open(&self.placed.top, places)
            .map_err(|error| ErrorDetails::new(ErrorType::Workspace, error.to_string()))
    }

    fn settings(
        &self,
        model: &ModelChoice,
        opened: &OpenSandbox,
    ) -> Result<Settings, ErrorDetails> {
        let rules = self.store.standing_rules().all().map_err(|error| internal_error(&error))?;
        let standing = standing_rules::rules_in(&rules, &self.home()?);
        let mut settings = settings::of_task(&self.config, model, self.task, opened, standing);
        settings.contract = settings::contract(self.task, &self.project);
        settings.shows_ledger = self.shows_ledger(&settings)?;
        let isolation = opened.sandbox.isolation();
        let place = task_environment::of(self.environment, &self.config, &isolation, &settings);
        settings.environment = Some(place);
        Ok(settings)
    }

    /// The directory whose standing rules hold for the task: in a worktree of a run, that of the run.
    fn home(&self) -> Result<PathBuf, ErrorDetails> {
        let top = &self.placed.top;
        if OwnWorktree::containing(&self.environment.data, top).is_none() {
            return Ok(top.clone());
        }
        let run = self.store.tasks().get(self.task.created.root);
        let run = run.map_err(|error| internal_error(&error))?;
        Ok(run.map_or_else(|| top.clone(), |run| PathBuf::from(run.workspace)))
    }

    /// Agents read of commitments where there are some, or where the contract wants some.
    fn shows_ledger(&self, settings: &Settings) -> Result<bool, ErrorDetails> {
        let contract = settings.contract.as_ref();
        let is_wanted = contract.is_some_and(|active| active.contract.commitments.is_some());
        let ledger = self.store.commitments();
        let there_are = || ledger.has_unfinished(&self.placed.top.display().to_string());
        Ok(is_wanted || there_are().map_err(|error| internal_error(&error))?)
    }

    fn shell_limits(&self, settings: &Settings) -> CommandLimits {
        let agent = &self.config.agent;
        let script = workflows::script(self.task);
        CommandLimits {
            default_timeout: agent.bash_timeout_seconds,
            max_timeout: workflows::timeout(script).max(agent.bash_max_timeout_seconds),
            shown_bytes: shown_bytes(settings.tool_output_max_tokens),
        }
    }

    /// Our own tools, then those that the configuration, the plan and MCP servers add.
    async fn registry(
        &self,
        sandbox: &Arc<dyn Sandbox>,
        notices: &Notices,
    ) -> Result<Registry, ErrorDetails> {
        let (environment, config, top) = (self.environment, &self.config, &self.placed.top);
        let mut registry = Registry::builtin();
        let (tools, missing) = web::tools(config);
        tools.into_iter().for_each(|tool| registry.add_own(tool));
        missing.iter().for_each(|why| tracing::info!("{why}"));
        let place = (top.as_path(), self.root);
        match browser::tool(environment, config, sandbox, place, self.store) {
            Ok(browser) => registry.add_own(Arc::new(browser)),
            Err(why) => tracing::info!("{why}"),
        }
        let mut found = self.project.servers()?.startable(environment, Some(self.root));
        hide_everywhere(self.store, &found.keys());
        if let Some(plan) = self.task.created.plan.as_deref() {
            plans::narrow(&mut found, plan);
            let tools = plans::tools(self.store, &self.task.created, plan);
            tools.into_iter().for_each(|tool| registry.add_own(tool));
        }
        if !found.definitions.is_empty() || !found.notices.is_empty() {
            let host = mcp::host(environment, config, top, sandbox, notices.clone());
            mcp::equip(&mut registry, found, &host.map_err(|error| internal_error(&error))?).await;
        }
        Ok(registry)
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
fn memory(
    config: &Config,
    store: &Store,
    model: &ModelChoice,
) -> Result<Option<MemorySource>, ErrorDetails> {
    let Some(base) = &config.coordinator.context_service_url else {
        return Ok(config.has_memories(model).then(|| MemorySource::Embedded(store.clone())));
    };
    let service = ContextService::new(base.expose().as_ref()).map_err(|error| {
        ErrorDetails::new(ErrorType::ContextServiceUnavailable, error.to_string())
    })?;
    Ok(Some(MemorySource::Service(service)))
}

fn internal_error(error: &dyn std::error::Error) -> ErrorDetails {
    ErrorDetails::new(ErrorType::Internal, error.to_string())
}

/// As many bytes as the model may see at all.
fn shown_bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}
