//! Driving a run: the engine works on it, and our own loop on its steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_agent::{Agent, Error as AgentError, History, Journal, Tree, budget, tree};
use windlass_core::command::TaskResult;
use windlass_core::ending::Ending;
use windlass_core::error::ErrorDetails;
use windlass_core::event::WorkflowSource;
use windlass_core::id::TaskId;
use windlass_core::layout::Site;
use windlass_core::state::TaskState;
use windlass_store::Owner;
use windlass_workflow::runner::Runner;
use windlass_workflow::{BoxFuture, Engine, Host, RunnerPlace};

use crate::drive::Drive;
use crate::{Activity, Coordinator, Error};

/// How deep the agents of a step may nest, and how many tasks a run may have.
const TREE: tree::AgentLimits = tree::AgentLimits { max_depth: 2, max_agents: 500 };

/// How long the steps of a run that is evicted have to end: a program has ten seconds after its signal.
const EVICTION: Duration = Duration::from_secs(30);

/// What the engine needs of us.
struct EngineHost<'a> {
    coordinator: &'a Coordinator,
    tree: Arc<Tree>,
    directory: PathBuf,
}

impl Drive<'_> {
    /// Works on a run until its segment ends.
    pub(crate) async fn drive_run(
        self,
        owner: Owner,
        state: &TaskState,
        source: WorkflowSource,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        let Coordinator { store, clock, .. } = self.coordinator;
        let task = state.id();
        let usual = || self.coordinator.agents.default_budget(Path::new(&state.created.workspace));
        let cost_usd = state.created.cost_budget.or_else(usual);
        let budget = budget::SpendingLimits { cost_usd, ..Default::default() };
        let tree = Arc::new(Tree::open(owner, store, clock.clone(), TREE, budget, state)?);
        self.show_runtime(task, None, None).await?;
        self.coordinator.queue().mark_dispatched(state).await?;
        let _ = self.coordinator.activity.send(Activity::Started {
            task,
            goal: state.command().goal.clone(),
            is_resumed: state.attempts.started,
        });
        let host = EngineHost {
            coordinator: self.coordinator,
            tree: tree.clone(),
            directory: PathBuf::from(&state.created.workspace),
        };
        // A run that was failed from outside is left where it stalled, and what works for it is ended.
        let (evicted, halt) = (self.coordinator.stalls.register(task), stop.child_token());
        let result = loop {
            let stream = tree.stream(task)?;
            let state = History::read(store, task)?.into_state();
            let mut engine = Engine::open(&host, tree.clone(), stream, state, source.clone())
                .map_err(workflow_error)?;
            let concluded = {
                let running = engine.run(&halt);
                tokio::pin!(running);
                tokio::select! {
                    concluded = &mut running => concluded.map_err(workflow_error)?,
                    () = evicted.token.cancelled() => {
                        halt.cancel();
                        let _ = tokio::time::timeout(EVICTION, running).await;
                        return Err(windlass_store::Error::Superseded { task }.into());
                    }
                    never = self.coordinator.parallel().send_heartbeats() => match never {},
                }
            };
            match engine.end(concluded).await {
                // An answer came between the last look into the mailbox and the end.
                Err(windlass_workflow::Error::Agent(AgentError::Store(
                    windlass_store::Error::MailPending(_),
                ))) => {}
                ended => break ended.map_err(workflow_error)?,
            }
        };
        self.hide_runtime(task).await;
        self.coordinator.queue().finish_segment(state, &result).await?;
        let _ = self.coordinator.activity.send(Activity::Ended(Box::new(result.clone())));
        self.clean_outputs().await;
        Ok(result)
    }
}

/// Where worktrees are: beside our data, which no agent sees, and never in a directory that somebody cleans.
pub fn worktrees_beside(data: &Path) -> PathBuf {
    sibling_directory(data, "worktrees")
}

fn sibling_directory(data: &Path, what: &str) -> PathBuf {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    data.with_file_name(format!("{name}-{what}"))
}

fn workflow_error(error: windlass_workflow::Error) -> Error {
    match error {
        windlass_workflow::Error::Agent(error) => Error::Agent(error),
        other @ windlass_workflow::Error::Source { .. } => Error::Workflow(other.to_string()),
    }
}

impl Host for EngineHost<'_> {
    fn drive<'a>(
        &'a self,
        task: TaskId,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<TaskState, AgentError>> {
        Box::pin(self.drive_step(task, stop))
    }

    fn site(&self, directory: &Path) -> Site {
        self.coordinator.agents.site(directory)
    }

    fn worktrees(&self) -> PathBuf {
        worktrees_beside(self.coordinator.store.dir().root())
    }

    fn caches(&self) -> PathBuf {
        sibling_directory(self.coordinator.store.dir().root(), "caches")
    }

    fn is_approved(&self, source: &WorkflowSource) -> bool {
        self.coordinator.agents.is_source_approved(&self.directory, source)
    }

    fn approve(&self, source: &WorkflowSource) -> Result<(), ErrorDetails> {
        self.coordinator.agents.approve_workflow(&self.directory, source)
    }

    fn runner(
        &self,
        directory: &Path,
        name: &str,
        command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        self.coordinator.agents.runner(directory, name, command)
    }

    fn sandbox<'a>(
        &'a self,
        task: &'a TaskState,
    ) -> BoxFuture<'a, Result<RunnerPlace, ErrorDetails>> {
        self.coordinator.agents.runner_place(task)
    }
}

impl EngineHost<'_> {
    /// Our own loop on the task of a step.
    async fn drive_step(
        &self,
        task: TaskId,
        stop: &CancellationToken,
    ) -> Result<TaskState, AgentError> {
        let Coordinator { store, clock, agents, previews, .. } = self.coordinator;
        let history = History::read(store, task)?;
        let state = history.state().clone();
        let parts = match agents.make(&state, previews.clone()).await {
            Ok(parts) => parts,
            Err(details) => {
                let mut stream = self.tree.stream(task)?;
                self.tree.end_segment(&mut stream, &state, &Ending::Failed(details), None).await?;
                return Ok(History::read(store, task)?.into_state());
            }
        };
        let model = parts.model.clone();
        let shown = Drive::of(self.coordinator).show_runtime(
            task,
            Some(model.name().to_string()),
            Some(state.created.workspace.clone()),
        );
        // That it is not shown holds up nothing.
        let _ = shown.await;
        let mut journal = Journal::open(self.tree.stream(task)?, history, model, clock.clone())?;
        let mut agent = Agent::new(parts, self.tree.clone());
        let ran = agent.run(&mut journal, stop).await;
        agent.close().await;
        Drive::of(self.coordinator).hide_runtime(task).await;
        ran?;
        Ok(journal.state().clone())
    }
}
