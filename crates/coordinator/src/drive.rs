//! Driving a task: own it, fold its journal, give it an agent, and run it until its segment ends.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use windlass_agent::{Agent, History, Journal, Parts, Preview, Tree};
use windlass_core::command::TaskResult;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::Driver;
use windlass_core::id::TaskId;
use windlass_core::layout::Site;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_model::Model;
use windlass_store::{Owner, RuntimeRow};

use crate::task_leases::Stopped;
use crate::{Activity, Coordinator, Error, Tasks};

/// A future behind the object-safe seam.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes agents; the wiring at the top implements it, because it alone knows every part.
pub trait AgentFactory: Send + Sync {
    /// The parts of an agent for this task, or why there is none.
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

    /// The model that routes messages; without one the fallback decides.
    fn router(&self) -> BoxFuture<'_, Result<Arc<dyn Model>, ErrorDetails>> {
        let error = ErrorDetails::new(ErrorType::ModelUnavailable, "there is no router");
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Whether there is no space left for the journal.
fn is_full(error: &windlass_agent::Error) -> bool {
    matches!(error, windlass_agent::Error::Store(windlass_store::Error::Full { .. }))
}

impl Tasks<'_> {
    /// Runs the tree that a task belongs to here, until the segment of its root ends. Fails if somebody
    /// else drives it.
    pub async fn drive(self, task: TaskId, stop: &CancellationToken) -> Result<TaskResult, Error> {
        let owner = self.coordinator.store.own(task).await?;
        self.drive_owned(owner, stop).await
    }

    /// Runs a task whose owner of this epoch has stopped. That one cannot append any more, and its commands have
    /// ended: it has given no sign of life for longer than a lease.
    pub(crate) async fn drive_stopped(
        self,
        stopped: Stopped,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        let Stopped { task, epoch } = stopped;
        tracing::warn!(task_id = %task, "its process gives no sign of life; taking it over");
        let owner = self.coordinator.store.take_over_from(task, epoch).await?;
        self.drive_owned(owner, stop).await
    }

    async fn drive_owned(
        self,
        owner: Owner,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        let task = owner.root();
        let history = History::read(&self.coordinator.store, task)?;
        let state = history.state().clone();
        self.check_startable(&state)?;
        self.coordinator.queue().mark_claimed(&state).await?;
        if state.created.driver == Driver::Service {
            // Before the agent is made, which may take long: from here on this process gives signs of life.
            self.show_runtime(task, None).await?;
        }
        let Coordinator { store, clock, agents, previews, .. } = self.coordinator;
        let parts = agents
            .make(&state, previews.clone())
            .await
            .map_err(|details| Error::Equipment { task, details: Box::new(details) })?;
        let model = parts.model.clone();
        let (agents, budget) = (parts.settings.sub_agents, parts.settings.budget);
        let tree = Tree::open(owner, store, clock.clone(), agents, budget, &state)?;
        let stream = tree.stream(task)?;
        let current_model = Some(model.name().to_string());
        let mut journal = Journal::open(stream, history, model, clock.clone())?;
        let agent = Agent::new(parts, Arc::new(tree));
        self.show_runtime(task, current_model).await?;
        self.coordinator.queue().mark_dispatched(&state).await?;
        // Nobody listening is fine.
        let _ = self.coordinator.activity.send(Activity::Started {
            task,
            goal: state.command().goal.clone(),
            is_resumed: state.attempts.started,
        });
        let evicted = self.coordinator.stalls.register(task);
        // A loop that was failed from outside is left where it stalled.
        let result = tokio::select! {
            result = agent.run(&mut journal, stop) => Some(result),
            () = evicted.token.cancelled() => None,
            () = self.coordinator.deadlines().watch(&state) => None,
        };
        agent.close().await;
        let Some(result) = result else {
            return Err(windlass_store::Error::Superseded { task }.into());
        };
        self.coordinator.store.runtime().clear(task, std::process::id()).await?;
        let result = match result {
            Err(error) if is_full(&error) => {
                // Its lock is free then.
                drop((agent, journal));
                self.park_on_full_disk(task).await;
                return Err(error.into());
            }
            result => result?,
        };
        self.coordinator.queue().finish_segment(&state, &result).await?;
        let _ = self.coordinator.activity.send(Activity::Ended(Box::new(result.clone())));
        self.clean_outputs().await;
        Ok(result)
    }

    /// Shows how a task runs here.
    async fn show_runtime(self, task: TaskId, current_model: Option<String>) -> Result<(), Error> {
        let runtime = RuntimeRow {
            process_pid: std::process::id(),
            worktree_path: None,
            current_model,
            context_usage_percent: None,
            last_heartbeat_at: self.coordinator.now(),
        };
        Ok(self.coordinator.store.runtime().set(task, runtime).await?)
    }

    /// Says why a task does not run. One that a person has just handed in, and that has not begun, is taken back: the
    /// person sees the error.
    async fn park_on_full_disk(self, task: TaskId) {
        let parked = async {
            let owner = self.coordinator.store.own(task).await?;
            let state = self.state(task)?;
            let detail = Some("no space is left on the disk of its journal".to_owned());
            let is_unbegun = state.status == TaskStatus::Todo;
            let ending = match state.created.driver {
                Driver::Foreground if is_unbegun => Ending::Cancelled(detail),
                Driver::Foreground | Driver::Service => {
                    Ending::Paused { reason: StatusReason::DiskFull, detail }
                }
            };
            self.coordinator.conclude(&owner, &state, &ending).await
        };
        if let Err(error) = parked.await {
            tracing::error!(%task, %error, "the disk is full, and the task could not be parked");
        }
    }

    /// Outputs are kept for a while (AX-080). A failure is logged, and holds up nothing.
    async fn clean_outputs(self) {
        let now = self.coordinator.now();
        let cleaned =
            self.coordinator.store.blocking(move |store| store.outputs().clean_when_due(now)).await;
        if let Err(error) = cleaned {
            tracing::warn!(%error, "Old outputs could not be removed");
        }
        if let Err(error) = self.coordinator.retention().remove_when_due().await {
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
