//! The journal of a run: what its task and its steps are, and the one way to change them.

use std::sync::{Arc, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use windlass_core::command::TaskResult;
use windlass_core::event::{AgentStart, Event, Record, StatusChanged};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::Question;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Level, Stream};

use super::Error;
use crate::state::{QuestionProgress, RunState};

/// Steps work side by side, and each journals what it does. What is written is written by a job of its own: a step
/// that the engine does not look at for a moment must not hold up the others.
pub(super) struct RunJournal {
    id: TaskId,
    inner: Arc<Inner>,
}

struct Inner {
    stream: Mutex<Stream>,
    known: std::sync::Mutex<Known>,
}

struct Known {
    task: TaskState,
    run: RunState,
}

impl RunJournal {
    pub(super) fn open(stream: Stream, task: TaskState) -> Result<Self, Error> {
        let records = stream.journal()?;
        let run = RunState::fold(records.iter().map(|record| &record.event));
        let id = task.id();
        let known = std::sync::Mutex::new(Known { task, run });
        Ok(Self { id, inner: Arc::new(Inner { stream: Mutex::new(stream), known }) })
    }

    pub(super) fn id(&self) -> TaskId {
        self.id
    }

    /// Journals what happened, synced: whatever follows may be seen outside.
    pub(super) async fn commit(&self, at: Timestamp, events: Vec<Event>) -> Result<(), Error> {
        let inner = self.inner.clone();
        on_its_own(async move {
            let mut stream = inner.stream.lock().await;
            let secrets = stream.store().secrets().known();
            let events = events.into_iter().map(|event| secrets.redact_event(event)).collect();
            let records = stream.append(at, events, Level::Synced).await?;
            inner.known().apply(&records)
        })
        .await
    }

    /// Takes over what waits in the mailbox.
    pub(super) async fn drain(&self, at: Timestamp) -> Result<(), Error> {
        let inner = self.inner.clone();
        on_its_own(async move {
            let mut stream = inner.stream.lock().await;
            let records = stream.drain(at).await?;
            inner.known().apply(&records)
        })
        .await
    }

    /// Looks at what is known.
    pub(super) async fn read<T>(&self, look: impl FnOnce(&TaskState, &RunState) -> T) -> T {
        let known = self.inner.known();
        look(&known.task, &known.run)
    }

    /// What a person answered to a question; `None` while nobody has.
    pub(super) async fn answer_to(&self, question: QuestionId) -> Option<String> {
        self.read(|_, run| match run.asked(question) {
            QuestionProgress::Answered(answer) => Some(answer.text.clone()),
            QuestionProgress::No | QuestionProgress::Open => None,
        })
        .await
    }

    /// Asks a person, once.
    pub(super) async fn ask(&self, at: Timestamp, question: Question) -> Result<(), Error> {
        let id = question.id;
        match self.read(|_, run| run.asked(id) == QuestionProgress::No).await {
            true => self.commit(at, vec![Event::QuestionAsked(question)]).await,
            false => Ok(()),
        }
    }

    /// Begins a segment.
    pub(super) async fn begin(&self, at: Timestamp, workflow: &str) -> Result<(), Error> {
        let (status, start) = self.read(|task, _| (task.status, start(task, workflow))).await;
        let moved = StatusChanged::new(status, TaskStatus::Running, StatusReason::User);
        let moved = (status != TaskStatus::Running).then_some(Event::StatusChanged(moved));
        self.commit(at, moved.into_iter().chain([Event::AgentStart(Box::new(start))]).collect())
            .await
    }
}

/// A run has no model and no tools of its own.
fn start(task: &TaskState, workflow: &str) -> AgentStart {
    AgentStart {
        task_id: task.id(),
        goal: task.command().goal.clone(),
        model: format!("workflow {workflow}"),
        container: "worktrees".to_owned(),
        sandbox_gaps: String::new(),
        tools: Vec::new(),
        risk_policy: task.axes.permission_profile.to_string(),
        axes: Some(task.axes),
        role: None,
        max_iterations: 0,
        timeout_ms: None,
        compaction_config: serde_json::Value::Null,
        guard: None,
        prelude: None,
        skills: Default::default(),
        context: Vec::new(),
        said: Vec::new(),
        followed_skills: Vec::new(),
    }
}

/// Does something that does not wait for its caller to be looked at. A panic in it is the caller's.
async fn on_its_own<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let mut job = JoinSet::new();
    job.spawn(work);
    match job.join_next().await.transpose() {
        Ok(Some(done)) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Nobody cancels it: the set is ours.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn apply(&mut self, records: &[Record]) -> Result<(), Error> {
        let task = self.task.id();
        for record in records {
            self.task
                .apply(record.at, &record.event)
                .map_err(|source| windlass_agent::Error::Corrupt { task, source })?;
            self.run.apply(&record.event);
        }
        Ok(())
    }
}

impl RunJournal {
    /// Ends a segment.
    pub(super) async fn end(
        &self,
        tree: &windlass_agent::Tree,
        ending: &windlass_core::ending::Ending,
        message: Option<String>,
    ) -> Result<TaskResult, Error> {
        let mut stream = self.inner.stream.lock().await;
        let task = self.inner.known().task.clone();
        Ok(tree.end_segment(&mut stream, &task, ending, message).await?)
    }
}
