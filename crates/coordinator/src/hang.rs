//! Loops that hang, ended from outside (ES-033): a tree of agents that is driven and of which nothing is
//! heard for too long is failed, and its loop, if it is one of ours, let go of.
//!
//! Invariants:
//! - Every event is a sign of life; that the driving process lives is none.
//! - Silence is what was watched, not what the clock says: a machine that slept for a night has watched
//!   nothing, and gives up on nobody when it wakes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use windlass_agent::{report, tree};
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{Event, StatusChanged};
use windlass_core::id::TaskId;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Level;

use crate::{Coordinator, Error};

/// The most that the time between two looks counts as watched; looks are closer together than that.
const LONGEST_LOOK: SignedDuration = SignedDuration::from_secs(60);

/// What this process drives and has seen.
#[derive(Default)]
pub(crate) struct Wards {
    /// The loops of this process that can be given up.
    loops: HashMap<TaskId, CancellationToken>,
    /// How many events each driven tree had, and for how long it has had no more.
    silent: HashMap<TaskId, (u64, SignedDuration)>,
    looked_at: Option<Timestamp>,
}

pub(crate) type Watched = Arc<Mutex<Wards>>;

/// A loop that can be given up while this lives.
pub(crate) struct Evictable {
    pub(crate) token: CancellationToken,
    task: TaskId,
    all: Watched,
}

impl Drop for Evictable {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).loops.remove(&self.task);
    }
}

impl Wards {
    /// Takes a look; returns the trees that have been silent for the limit.
    fn look(
        &mut self,
        now: Timestamp,
        pulses: &[(TaskId, u64)],
        limit: SignedDuration,
    ) -> Vec<TaskId> {
        let passed = self.looked_at.map_or(SignedDuration::ZERO, |last| now.duration_since(last));
        let passed = passed.clamp(SignedDuration::ZERO, LONGEST_LOOK);
        self.looked_at = Some(now);
        let driven: HashSet<_> = pulses.iter().map(|(task, _)| *task).collect();
        self.silent.retain(|task, _| driven.contains(task));
        let mut hung = Vec::new();
        for (task, pulse) in pulses {
            let (known, silence) =
                self.silent.entry(*task).or_insert((*pulse, SignedDuration::ZERO));
            if *known == *pulse {
                *silence = silence.saturating_add(passed);
            } else {
                (*known, *silence) = (*pulse, SignedDuration::ZERO);
            }
            if *silence >= limit {
                hung.push(*task);
            }
        }
        hung
    }
}

impl Coordinator {
    /// Ends what is driven and has given no sign of life for too long (ES-033).
    pub(crate) async fn give_up_on_hung(&self) -> Result<Vec<TaskId>, Error> {
        let limit = SignedDuration::try_from(self.limits.hang).unwrap_or(SignedDuration::MAX);
        let pulses = self.store.scheduler().pulses()?;
        let silent = {
            let mut wards = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            wards.look(self.now(), &pulses, limit)
        };
        let mut hung = Vec::new();
        for task in silent {
            // One that nobody drives is resumed, not given up.
            if self.store.driving_process(task)?.is_some() {
                self.give_up(task).await?;
                hung.push(task);
            }
        }
        Ok(hung)
    }

    async fn give_up(&self, task: TaskId) -> Result<(), Error> {
        let silent = self.limits.hang.as_secs();
        tracing::warn!(task_id = %task, silent, "task hangs; given up");
        let owner = self.store.take_over(task).await?;
        self.let_go(task);
        let state = self.state(task)?;
        if state.status.is_terminal() {
            return Ok(());
        }
        let message = format!("the agent gave no sign of life for {silent} s");
        let error = ErrorDetails::new(ErrorType::Hung, message).with_remedy(Remedy::ReadEvents);
        let (to, reason) = (TaskStatus::Failed, StatusReason::Timeout);
        let moved = StatusChanged {
            detail: Some(error.message.clone()),
            error: Some(error.clone()),
            ..StatusChanged::new(state.status, to, reason)
        };
        let result = report::result_of(&state, self.now(), to, reason, Some(error));
        let events = vec![Event::StatusChanged(moved), Event::AgentEnd(Box::new(result))];
        owner.append(self.now(), events, Level::Synced).await?;
        let why = "the agent above it hung";
        tree::cancel_below(&owner, &self.store, self.now(), task, why).await?;
        self.after_the_end(task).await
    }

    /// Leaves a loop of this process where it hangs.
    fn let_go(&self, task: TaskId) {
        let wards = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ours) = wards.loops.get(&task) {
            ours.cancel();
        }
    }

    /// Makes a loop of this process one that can be given up.
    pub(crate) fn watched(&self, task: TaskId) -> Evictable {
        let token = CancellationToken::new();
        let mut all = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        all.loops.insert(task, token.clone());
        drop(all);
        Evictable { token, task, all: self.watched.clone() }
    }
}
