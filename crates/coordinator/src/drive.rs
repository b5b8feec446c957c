//! Driving a task: own it, fold its journal, give it an agent, and run it until its segment ends.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use windlass_agent::{Agent, History, Journal, Parts, Preview, Tree, report, tree};
use windlass_core::command::TaskResult;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Event, StatusChanged};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::schedule::Expiry;
use windlass_core::state::{Signal, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_model::Model;
use windlass_store::{Level, RuntimeRow};

use crate::{Coordinator, Error};

/// A future behind the object-safe seam.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Says what an agent gets to work with; the wiring at the top implements it.
pub trait Equip: Send + Sync {
    /// The parts of an agent for this task, or why there is none.
    fn equip<'a>(
        &'a self,
        task: &'a TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> BoxFuture<'a, Result<Parts, ErrorDetails>>;

    /// The model that routes messages; without one the fallback decides.
    fn router(&self) -> BoxFuture<'_, Result<Arc<dyn Model>, ErrorDetails>> {
        let error = ErrorDetails::new(ErrorType::ModelUnavailable, "there is no router");
        Box::pin(std::future::ready(Err(error)))
    }
}

impl Coordinator {
    /// Runs the tree that a task belongs to here, until the segment of its root ends. Fails if somebody
    /// else drives it.
    pub async fn drive(&self, task: TaskId, stop: &CancellationToken) -> Result<TaskResult, Error> {
        let owner = self.store.own(task).await?;
        let task = owner.root();
        let history = History::read(&self.store, task)?;
        let state = history.state().clone();
        self.check_startable(&state)?;
        self.taken(&state).await?;
        let parts = self
            .equip
            .equip(&state, self.previews.clone())
            .await
            .map_err(|details| Error::Equipment { task, details: Box::new(details) })?;
        let model = parts.model.clone();
        let (agents, budget) = (parts.settings.sub_agents, parts.settings.budget);
        let tree = Tree::open(owner, &self.store, self.clock.clone(), agents, budget, &state)?;
        let stream = tree.stream(task)?;
        let current_model = Some(model.name().to_string());
        let mut journal = Journal::open(stream, history, model, self.clock.clone())?;
        let agent = Agent::new(parts, Arc::new(tree));
        let runtime = RuntimeRow {
            process_pid: std::process::id(),
            worktree_path: None,
            current_model,
            context_usage_percent: None,
            last_heartbeat_at: self.now(),
        };
        self.store.runtime().set(task, runtime).await?;
        self.begun(&state).await?;
        let evicted = self.watched(task);
        // A loop that was given up from outside is left where it hangs.
        let result = tokio::select! {
            result = agent.run(&mut journal, stop) => Some(result),
            () = evicted.token.cancelled() => None,
            () = self.mind_deadline(&state) => None,
        };
        agent.close().await;
        let Some(result) = result else {
            return Err(windlass_store::Error::Superseded { task }.into());
        };
        self.store.runtime().clear(task).await?;
        let result = result?;
        self.segment_over(&state, &result).await?;
        self.tidy().await;
        Ok(result)
    }

    /// Outputs are kept for a while (AX-080). One that cannot be removed is told of, and holds up nothing.
    async fn tidy(&self) {
        let now = self.now();
        let cleaned = self.store.blocking(move |store| store.outputs().clean_when_due(now)).await;
        if let Err(error) = cleaned {
            tracing::warn!(%error, "Old outputs could not be removed");
        }
    }

    /// Carries out the signals of a task that nobody drives; returns the status it then has.
    pub(crate) async fn settle(&self, task: TaskId) -> Result<TaskStatus, Error> {
        let owner = self.store.own(task).await?;
        let mut stream = owner.stream(task)?;
        stream.drain(self.now()).await?;
        let state = self.state(task)?;
        let (to, reason, detail, error) = match &state.signal {
            Some(Signal::Cancel(why)) => {
                (TaskStatus::Cancelled, StatusReason::User, why.clone(), None)
            }
            Some(Signal::Pause) => (TaskStatus::Paused, StatusReason::User, None, None),
            Some(Signal::Expired(action, why)) => {
                let reason = StatusReason::Deadline;
                match action {
                    Expiry::Pause => (TaskStatus::Paused, reason, Some(why.clone()), None),
                    Expiry::Complete if state.started => {
                        (TaskStatus::Done, reason, Some(why.clone()), None)
                    }
                    // One that has never begun has nothing to be done with.
                    Expiry::Fail | Expiry::Complete => {
                        let error = ErrorDetails::new(ErrorType::Deadline, why);
                        (TaskStatus::Failed, reason, Some(why.clone()), Some(error))
                    }
                }
            }
            None => return Ok(state.status),
        };
        // A pause by a person holds also what would have gone on by itself.
        if state.status == to && state.reason == reason {
            return Ok(to);
        }
        let moved = StatusChanged {
            detail,
            error: error.clone(),
            ..StatusChanged::new(state.status, to, reason)
        };
        let mut events = vec![Event::StatusChanged(moved)];
        if to.is_terminal() {
            let result = report::result_of(&state, self.now(), to, reason, error);
            events.push(Event::AgentEnd(Box::new(result)));
        }
        stream.append(self.now(), events, Level::Synced).await?;
        drop(stream);
        if to.is_terminal() {
            let why = format!("the agent above it is {to}");
            tree::cancel_below(&owner, &self.store, self.now(), task, &why).await?;
            self.after_the_end(task).await?;
        }
        Ok(to)
    }

    /// Makes a failed task ready to run again (`failed → retrying`, under its limit).
    pub async fn retry(&self, task: TaskId) -> Result<(), Error> {
        let owner = self.store.own(task).await?;
        let state = self.state(task)?;
        let (status, times) = (state.status, state.retries);
        match status {
            TaskStatus::Failed if times < state.created.max_retries => {}
            TaskStatus::Failed => return Err(Error::TriedEnough { task, times }),
            TaskStatus::Done | TaskStatus::Cancelled => return Err(Error::Ended { task, status }),
            TaskStatus::Todo
            | TaskStatus::Running
            | TaskStatus::Verifying
            | TaskStatus::Reviewing
            | TaskStatus::Blocked
            | TaskStatus::Paused
            | TaskStatus::Retrying => return Err(Error::NotFailed { task, status }),
        }
        let moved = StatusChanged::new(status, TaskStatus::Retrying, StatusReason::User);
        owner.append(self.now(), vec![Event::StatusChanged(moved)], Level::Synced).await?;
        Ok(())
    }

    /// The task that a person talks to: itself, or the one at the top of its tree.
    pub fn root(&self, task: TaskId) -> Result<TaskId, Error> {
        Ok(self.store.tasks().get(task)?.map_or(task, |row| row.root_id))
    }

    /// The conversation that a task belongs to.
    pub(crate) fn session_of(&self, task: TaskId) -> Result<SessionId, Error> {
        let row = self.store.tasks().get(task)?;
        let unknown = || windlass_store::Error::UnknownTask(task.to_string());
        Ok(row.ok_or_else(unknown)?.session_id)
    }

    /// A task's state, as its journal says.
    pub fn state(&self, task: TaskId) -> Result<TaskState, Error> {
        Ok(History::read(&self.store, task)?.into_state())
    }

    fn check_startable(&self, state: &TaskState) -> Result<(), Error> {
        let task = state.id();
        if state.status.is_terminal() {
            return Err(Error::Ended { task, status: state.status });
        }
        let blockers = self.store.tasks().open_blockers(task)?;
        if !blockers.is_empty() {
            return Err(Error::Dependencies { task, blockers });
        }
        Ok(())
    }
}
