//! Loops that stall are ended from outside (ES-033): a tree of agents that is driven and has journaled nothing
//! for too long is failed, and its loop, if it is one of ours, is evicted.
//!
//! Invariants:
//! - Every event counts as progress; a living process alone does not.
//! - A run of a workflow is not silent while a person is asked: its programs wait for the answer. Nor while a command of it
//!   has time left that its file gives it.
//! - Silence is what was observed while this process ran, not what the calendar says: a machine that slept for
//!   a night has observed nothing, and fails no task when it wakes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::WorkflowPart;
use windlass_core::id::TaskId;
use windlass_store::Filter;

use crate::{Coordinator, Error, Timer};

/// The most that the time between two observations counts; they are closer together than that.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// What this process drives and has observed.
#[derive(Clone, Default)]
pub(crate) struct StallMonitor(Arc<Mutex<Observations>>);

#[derive(Default)]
struct Observations {
    /// The loops of this process that can be evicted.
    loops: HashMap<TaskId, CancellationToken>,
    /// How many events each driven tree had, and for how long it has had no more.
    silent: HashMap<TaskId, (u64, Duration)>,
    /// The running time of the last observation.
    last: Option<Duration>,
}

/// A loop that can be evicted while this lives.
pub(crate) struct Evictable {
    pub(crate) token: CancellationToken,
    task: TaskId,
    monitor: StallMonitor,
}

impl Drop for Evictable {
    fn drop(&mut self) {
        self.monitor.lock().loops.remove(&self.task);
    }
}

impl StallMonitor {
    /// Makes a loop of this process one that can be evicted.
    pub(crate) fn register(&self, task: TaskId) -> Evictable {
        let token = CancellationToken::new();
        self.lock().loops.insert(task, token.clone());
        Evictable { token, task, monitor: self.clone() }
    }

    /// Whether a loop of this process works on the task. Its row of runtime was written before.
    pub(crate) fn is_registered(&self, task: TaskId) -> bool {
        self.lock().loops.contains_key(&task)
    }

    /// Leaves a loop of this process where it stalled.
    pub(crate) fn evict(&self, task: TaskId) {
        if let Some(ours) = self.lock().loops.get(&task) {
            ours.cancel();
        }
    }

    /// Counts events; returns the trees that have been silent for the limit, and for how long each has been.
    fn observe(
        &self,
        now: Duration,
        pulses: &[(TaskId, u64)],
        limit: Duration,
    ) -> Vec<(TaskId, Duration)> {
        let mut observed = self.lock();
        let last = observed.last.replace(now);
        let passed = last.map_or(Duration::ZERO, |last| now.saturating_sub(last));
        let passed = passed.min(LONGEST_INTERVAL);
        let driven: HashSet<_> = pulses.iter().map(|(task, _)| *task).collect();
        observed.silent.retain(|task, _| driven.contains(task));
        let mut stalled = Vec::new();
        for (task, pulse) in pulses {
            let entry = observed.silent.entry(*task);
            let (known, silence) = entry.or_insert((*pulse, Duration::ZERO));
            if *known == *pulse {
                *silence = silence.saturating_add(passed);
            } else {
                (*known, *silence) = (*pulse, Duration::ZERO);
            }
            if *silence >= limit {
                stalled.push((*task, *silence));
            }
        }
        stalled
    }

    fn lock(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer<'_> {
    /// Fails what is driven and has journaled nothing for too long (ES-033).
    pub(crate) async fn fail_stalled(self) -> Result<Vec<TaskId>, Error> {
        let coordinator = self.coordinator;
        let pulses = coordinator.store.scheduler().progress()?;
        let mut stalled = Vec::new();
        for (task, silence) in coordinator.stalls.observe(
            coordinator.clock.running_time(),
            &pulses,
            coordinator.limits.hang,
        ) {
            // A task that nobody drives is resumed, not failed.
            let is_driven = coordinator.tasks().driving_process(task)?.is_some();
            if is_driven && longest_silence(coordinator, task)?.is_some_and(|most| silence >= most)
            {
                fail_stalled_task(coordinator, task).await?;
                stalled.push(task);
            }
        }
        Ok(stalled)
    }
}

/// How long a driven tree may be silent; `None` where it may be as long as a person needs.
fn longest_silence(coordinator: &Coordinator, task: TaskId) -> Result<Option<Duration>, Error> {
    let limit = coordinator.limits.hang;
    if coordinator.tasks().state(task)?.created.workflow.is_none() {
        return Ok(Some(limit));
    }
    if !coordinator.inbox().open_in_tree(task)?.is_empty() {
        return Ok(None);
    }
    let rows = coordinator.store.tasks().list(&Filter { root: Some(task), ..Filter::default() })?;
    let mut command = 0;
    for row in rows.into_iter().filter(|row| !row.status.is_terminal()) {
        if let Some(WorkflowPart::Script(script)) =
            coordinator.tasks().state(row.id)?.created.workflow.as_deref()
        {
            command = command.max(script.timeout_seconds.unwrap_or_default());
        }
    }
    Ok(Some(limit.saturating_add(Duration::from_secs(command))))
}

async fn fail_stalled_task(coordinator: &Coordinator, task: TaskId) -> Result<(), Error> {
    let silent = coordinator.limits.hang.as_secs();
    tracing::warn!(task_id = %task, silent, "task stalled; failing it");
    let owner = coordinator.store.owners().take_over(task).await?;
    coordinator.stalls.evict(task);
    let state = coordinator.tasks().state(task)?;
    let message = format!("the agent gave no sign of life for {silent} s");
    let error = ErrorDetails::new(ErrorType::Hung, message).with_remedy(Remedy::ReadEvents);
    coordinator.control().conclude(&owner, &state, &Ending::Failed(error)).await.map(drop)
}
