//! Driving a task: own it, fold its journal, give it an agent, and run it until its segment ends.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use windlass_agent::{Agent, History, Journal, MemorySource, Parts, Preview, Tree};
use windlass_core::axes::Axes;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Driver, WorkflowPart, WorkflowSource};
use windlass_core::id::TaskId;
use windlass_core::layout::Site;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_model::Model;
use windlass_plan::Capabilities;
use windlass_store::{Owner, RuntimeRow};
use windlass_workflow::RunnerPlace;
use windlass_workflow::runner::Runner;

use crate::deadlines::Deadlines;
use crate::health::{Admission, Check, FixReport, RepairPolicy};
use crate::skill_proposals::SkillPolicy;
use crate::task_leases::StoppedTask;
use crate::workplaces::Workplaces;
use crate::{Activity, Coordinator, Error, Tasks};

/// A future of an object-safe trait.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes agents; the wiring at the top implements it, because it alone knows every part.
pub trait AgentFactory: Send + Sync {
    /// The parts of an agent for this task, or why there can be no agent.
    fn make<'a>(
        &'a self,
        task: &'a TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> BoxFuture<'a, Result<Parts, ErrorDetails>>;

    /// What belongs to the workspace of a task that starts in this directory; without more, a directory of the
    /// task's own.
    fn site(&self, _directory: &Path) -> Site {
        Site::default()
    }

    /// The text that an agent reads in place of a text that calls a skill by `/name`; `None` for any other text.
    fn expand(
        &self,
        _directory: Option<&str>,
        _axes: &Axes,
        _text: &str,
    ) -> Result<Option<ExpandedSkill>, ErrorDetails> {
        Ok(None)
    }

    /// The skills that a person may call by `/name` in a directory.
    fn skill_commands(&self, _directory: Option<&str>) -> Result<Vec<SkillCommand>, ErrorDetails> {
        Ok(Vec::new())
    }

    /// The full name of a model that a person names, or why it cannot be used.
    fn check_model(&self, _directory: Option<&str>, name: &str) -> Result<String, ErrorDetails> {
        Ok(name.to_owned())
    }

    /// What a plan may load in a directory.
    fn capabilities(&self, _directory: &Path) -> Result<Capabilities, ErrorDetails> {
        Ok(Capabilities::default())
    }

    /// Whether a person has approved a file of a project as it is now (§15.13).
    fn is_trusted(&self, _directory: &Path, _path: &Path, _text: &str) -> bool {
        false
    }

    /// Checks of what work in a directory needs besides the data.
    fn checks<'a>(&'a self, _directory: &'a Path) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// The cheap checks, which run before each dispatch.
    fn dispatch_checks(&self, _directory: &Path) -> Vec<Check> {
        Vec::new()
    }

    /// Repairs what the checks find, if that needs no model.
    fn fix<'a>(&'a self, _directory: &'a Path) -> BoxFuture<'a, Vec<FixReport>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// What happens when a dispatch is not safe in a directory.
    fn repair_policy(&self, _directory: &Path) -> RepairPolicy {
        RepairPolicy::Ask
    }

    /// Whether a person has approved the commands of a project's workflow file, as it is now.
    fn is_workflow_approved(&self, _directory: &Path, _file: &Path) -> bool {
        false
    }

    /// Whether a person has approved the commands of a workflow, as a run has them.
    fn is_source_approved(&self, _directory: &Path, _source: &WorkflowSource) -> bool {
        false
    }

    /// Remembers that a person has approved the commands of a workflow.
    fn approve_workflow(
        &self,
        _directory: &Path,
        _source: &WorkflowSource,
    ) -> Result<(), ErrorDetails> {
        Ok(())
    }

    /// What a task in a directory may cost if nobody sets a budget, in dollars.
    fn default_budget(&self, _directory: &Path) -> Option<f64> {
        None
    }

    /// The runners that a person has configured for work in a directory, by name.
    fn runners(&self, _directory: &Path) -> Vec<String> {
        Vec::new()
    }

    /// Why a runner cannot work in a directory: its name is unknown, or its program is not there.
    fn check_runner<'a>(
        &'a self,
        directory: &'a Path,
        name: &'a str,
    ) -> BoxFuture<'a, Result<(), ErrorDetails>> {
        Box::pin(std::future::ready(self.runner(directory, name, None).map(drop)))
    }

    /// Another program that works on the steps of workflows; `command` where the workflow brings it.
    fn runner(
        &self,
        _directory: &Path,
        name: &str,
        _command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        let message = format!("there is no runner `{name}`");
        Err(ErrorDetails::new(ErrorType::InvalidCommand, message))
    }

    /// Where such a program works.
    fn runner_place<'a>(
        &'a self,
        _task: &'a TaskState,
    ) -> BoxFuture<'a, Result<RunnerPlace, ErrorDetails>> {
        let error = ErrorDetails::new(ErrorType::SandboxUnavailable, "there is no sandbox");
        Box::pin(std::future::ready(Err(error)))
    }

    /// Whether tasks of a directory that repeat each other lead to proposed skills.
    fn skill_policy(&self, _directory: &Path) -> SkillPolicy {
        SkillPolicy::Propose
    }

    /// The model that answers reasoning prompts in a directory, where the user wants one to (MS-227).
    fn reasoning_model(&self, _directory: &Path) -> Result<Option<Arc<dyn Model>>, ErrorDetails> {
        Ok(None)
    }

    /// The model that routes messages; without one the fallback decides.
    fn router(&self) -> BoxFuture<'_, Result<Arc<dyn Model>, ErrorDetails>> {
        let error = ErrorDetails::new(ErrorType::ModelUnavailable, "there is no router");
        Box::pin(std::future::ready(Err(error)))
    }
}

/// A skill that a person may call by `/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCommand {
    pub name: String,
    pub description: String,
}

/// The skill that a text called for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedSkill {
    /// As the goal of a task: the agent follows it itself.
    pub goal: String,
    /// As a message to an agent at work, which lets a sub-agent follow a skill that forks.
    pub message: String,
}

/// Whether there is no space left for the journal.
fn is_full(error: &windlass_agent::Error) -> bool {
    matches!(error, windlass_agent::Error::Store(windlass_store::Error::Full { .. }))
}

impl Tasks<'_> {
    /// Runs the tree that a task belongs to here, until the segment of its root ends. Fails if somebody
    /// else drives it.
    pub async fn drive(self, task: TaskId, stop: &CancellationToken) -> Result<TaskResult, Error> {
        let owner = self.coordinator.store.owners().own(task).await?;
        let result = Drive::of(self.coordinator).run(owner, stop).await?;
        if result.status != ResultStatus::Paused || stop.is_cancelled() {
            return Ok(result);
        }
        // An agent that has repaired what the health check found continues with its goal.
        match self.state(result.task_id)?.before_repair {
            Some(_) => {
                let owner = self.coordinator.store.owners().own(task).await?;
                Drive::of(self.coordinator).run(owner, stop).await
            }
            None => Ok(result),
        }
    }
}

/// One run of a tree in this process.
#[derive(Clone, Copy)]
pub(crate) struct Drive<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl<'a> Drive<'a> {
    pub(crate) const fn of(coordinator: &'a Coordinator) -> Self {
        Self { coordinator }
    }

    /// Runs a task whose owner of this epoch has stopped. The old owner can no longer append, and its commands have
    /// ended: it has sent no heartbeat for longer than a lease.
    pub(crate) async fn take_over(
        self,
        stopped: StoppedTask,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        let StoppedTask { task, epoch } = stopped;
        tracing::warn!(task_id = %task, "its process gives no sign of life; taking it over");
        let owner = self.coordinator.store.owners().take_over_from(task, epoch).await?;
        self.run(owner, stop).await
    }

    async fn run(self, owner: Owner, stop: &CancellationToken) -> Result<TaskResult, Error> {
        let task = owner.root();
        let mut history = History::read(&self.coordinator.store, task)?;
        self.check_startable(history.state())?;
        self.coordinator.plans().brief(history.state()).await?;
        let admitted = self.coordinator.health().admit(&owner, history.state()).await?;
        if admitted == Admission::Changed {
            history = History::read(&self.coordinator.store, task)?;
        }
        let state = history.state().clone();
        self.coordinator.queue().mark_claimed(&state).await?;
        if state.created.driver == Driver::Service {
            // Before the agent is made, which may take long: from here on this process sends heartbeats.
            self.show_runtime(task, None, None).await?;
        }
        if let Some(WorkflowPart::Run(source)) = state.created.workflow.as_deref() {
            return self.drive_run(owner, &state, source.clone(), stop).await;
        }
        Workplaces::of(self.coordinator).restore(Path::new(&state.created.workspace))?;
        let Coordinator { store, clock, agents, previews, .. } = self.coordinator;
        let parts = agents
            .make(&state, previews.clone())
            .await
            .map_err(|details| Error::Equipment { task, details: Box::new(details) })?;
        let model = parts.model.clone();
        // If memories are kept elsewhere, or switched off, nothing is kept here.
        let remembers = matches!(parts.memory, Some(MemorySource::Embedded(_)));
        let (agents, budget) = (parts.settings.sub_agents, parts.settings.budget);
        let tree = Tree::open(owner, store, clock.clone(), agents, budget, &state)?;
        let stream = tree.stream(task)?;
        let current_model = Some(model.name().to_string());
        let mut journal = Journal::open(stream, history, model, clock.clone())?;
        let mut agent = Agent::new(parts, Arc::new(tree));
        self.show_runtime(task, current_model, None).await?;
        self.coordinator.queue().mark_dispatched(&state).await?;
        // It does not matter if nobody listens.
        let _ = self.coordinator.activity.send(Activity::Started {
            task,
            goal: state.created.title(),
            is_resumed: state.attempts.started,
        });
        let evicted = self.coordinator.stalls.register(task);
        // A stalled loop whose task was failed from outside is not waited for.
        let result = tokio::select! {
            result = agent.run(&mut journal, stop) => Some(result),
            () = evicted.token.cancelled() => None,
            () = Deadlines::of(self.coordinator).watch(&state) => None,
        };
        agent.close().await;
        let Some(result) = result else {
            return Err(windlass_store::Error::Superseded { task }.into());
        };
        if result.as_ref().is_err_and(is_full) {
            // Its lock is free then.
            drop((agent, journal));
            self.park_on_full_disk(task).await;
        }
        self.hide_runtime(task).await;
        let result = result?;
        self.coordinator.queue().finish_segment(&state, &result).await?;
        let _ = self.coordinator.activity.send(Activity::Ended(Box::new(result.clone())));
        if remembers && let Err(error) = self.coordinator.memories().add_task(&state, &result).await
        {
            tracing::warn!(%task, %error, "the task was not remembered");
        }
        let gathered = self.coordinator.skill_proposals().add_task(&state, result.status).await;
        if let Err(error) = gathered {
            tracing::warn!(%task, %error, "what the task has in common with others was not gathered");
        }
        self.clean_outputs().await;
        Ok(result)
    }

    /// Shows how a task runs here.
    pub(crate) async fn show_runtime(
        self,
        task: TaskId,
        current_model: Option<String>,
        worktree_path: Option<String>,
    ) -> Result<(), Error> {
        let runtime = RuntimeRow {
            process_pid: std::process::id(),
            worktree_path,
            current_model,
            context_usage_percent: None,
            last_heartbeat_at: self.coordinator.now(),
        };
        Ok(self.coordinator.store.owners().runtime().set(task, runtime).await?)
    }

    /// A row that is left over names a process that has ended or another task; the next start replaces it.
    pub(crate) async fn hide_runtime(self, task: TaskId) {
        let cleared =
            self.coordinator.store.owners().runtime().clear(task, std::process::id()).await;
        if let Err(error) = cleared {
            tracing::warn!(%task, %error, "how the task ran is still shown");
        }
    }

    /// Says why a task does not run. One that a person has just submitted, and that has not begun, is taken back: the
    /// person sees the error.
    async fn park_on_full_disk(self, task: TaskId) {
        let parked = async {
            let owner = self.coordinator.store.owners().own(task).await?;
            let state = self.coordinator.tasks().state(task)?;
            let detail = Some("no space is left on the disk of its journal".to_owned());
            let is_unbegun = state.status == TaskStatus::Todo;
            let ending = match state.created.driver {
                Driver::Foreground if is_unbegun => Ending::Cancelled(detail),
                Driver::Foreground | Driver::Service => {
                    Ending::Paused { reason: StatusReason::DiskFull, detail }
                }
            };
            self.coordinator.control().conclude(&owner, &state, &ending).await
        };
        if let Err(error) = parked.await {
            tracing::error!(%task, %error, "the disk is full, and the task could not be parked");
        }
    }

    /// Outputs are kept for a while (AX-080). A failure is logged and delays nothing.
    pub(crate) async fn clean_outputs(self) {
        let now = self.coordinator.now();
        let cleaned =
            self.coordinator.store.blocking(move |store| store.outputs().clean_when_due(now)).await;
        if let Err(error) = cleaned {
            tracing::warn!(%error, "Old outputs could not be removed");
        }
        if let Err(error) = self.coordinator.storage().retention().forget_browsing() {
            tracing::warn!(%error, "What browsers showed could not be removed");
        }
        if let Err(error) = self.coordinator.storage().retention().remove_when_due().await {
            tracing::warn!(%error, "Old tasks could not be removed");
        }
    }

    fn check_startable(self, state: &TaskState) -> Result<(), Error> {
        let task = state.id();
        if state.status.is_terminal() {
            return Err(Error::Ended { task, status: state.status });
        }
        let blockers = self.coordinator.store.tasks().open_blockers(task)?;
        if !blockers.is_empty() {
            return Err(Error::Dependencies { task, blockers });
        }
        Ok(())
    }
}
