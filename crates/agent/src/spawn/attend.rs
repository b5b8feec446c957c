//! Attending to sub-agents: they run side by side, and one that waits for a person goes on as soon as it
//! is answered, while the others work.
//!
//! Invariants:
//! - All segments of all members are awaited here: when this returns, none of them runs.
//! - A member that blocks is run again only when something waits for it that its segment will take.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::state::Next;
use windlass_core::status::{StatusReason, TaskStatus};

use super::Member;
use crate::calls::interrupting;
use crate::history::History;
use crate::interrupt::{Interrupt, Watch};
use crate::journal::Journal;
use crate::tree::Tree;
use crate::{Agent, Error};

/// Where a sub-agent stands when its segment is over.
pub(super) enum Stand {
    Ended,
    /// It waits for a person. Mail for one of these lets it go on.
    Blocked {
        on: Vec<TaskId>,
    },
    /// The tree's budget is used up.
    OverBudget,
    /// Its model's server wants to be left alone until then.
    Held(Timestamp),
    /// It was parked with the process.
    Paused,
}

impl Agent {
    /// Runs all members; a cancel or the time limit of the parent ends them, and they are awaited.
    pub(super) async fn attend(
        &self,
        task: &Journal,
        stop: &CancellationToken,
        halt: &CancellationToken,
        tree: &Arc<Tree>,
        members: &[Member],
    ) -> Result<(Vec<Stand>, bool), Error> {
        let watch = Watch::over(task, self.parts.settings.timeout, stop);
        let live: Vec<_> = members.iter().filter(|member| member.refused.is_none()).collect();
        let bound_by = self.followed_skills(task.state());
        let running = self.run_members(tree, &live, &bound_by, halt);
        tokio::pin!(running);
        let mut timed_out = false;
        let stands = tokio::select! {
            stands = &mut running => stands,
            found = interrupting(&watch) => {
                let why = match found? {
                    Interrupt::Timeout => {
                        timed_out = true;
                        "the agent above it ran out of time"
                    }
                    Interrupt::Cancel | Interrupt::Shutdown => "the agent above it was cancelled",
                };
                for member in &live {
                    self.cancel(task, member.spawn.task_id, why).await?;
                }
                running.await
            }
            paused = watch.paused() => {
                paused?;
                halt.cancel();
                running.await
            }
        };
        Ok((stands?, timed_out))
    }

    async fn cancel(&self, task: &Journal, child: TaskId, why: &str) -> Result<(), Error> {
        let id = InjectionId::new(task.now());
        let control = Control::Cancel { reason: Some(why.to_owned()) };
        match task
            .store()
            .mailbox()
            .inject(child, Injection::control(id, control), task.now())
            .await
        {
            // It has just ended by itself.
            Ok(_) | Err(windlass_store::Error::TaskEnded { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs members until none of them has anything left to do; where each stands, in their order.
    async fn run_members(
        &self,
        tree: &Arc<Tree>,
        members: &[&Member],
        bound_by: &[String],
        halt: &CancellationToken,
    ) -> Result<Vec<Stand>, Error> {
        let run = |place: usize| async move {
            (place, self.run_member(tree, members[place], bound_by, halt).await)
        };
        let mut mail = tree.store().mailbox().changes();
        let mut stands: Vec<_> = members.iter().map(|_| None).collect();
        let mut running: FuturesUnordered<_> = (0..members.len()).map(run).collect();
        while !running.is_empty() {
            tokio::select! {
                Some((place, stand)) = running.next() => stands[place] = Some(stand),
                changed = mail.changed() => changed?,
            }
            for (place, stand) in stands.iter_mut().enumerate() {
                if let Some(Ok(Stand::Blocked { on })) = stand
                    && !halt.is_cancelled()
                    && has_mail(tree, on)?
                {
                    *stand = None;
                    running.push(run(place));
                }
            }
        }
        // One that cannot go on does not break off the others: all have come to rest here.
        stands.into_iter().flatten().collect()
    }

    /// One sub-agent, until its segment ends.
    async fn run_member(
        &self,
        tree: &Arc<Tree>,
        member: &Member,
        bound_by: &[String],
        halt: &CancellationToken,
    ) -> Result<Stand, Error> {
        let child = member.spawn.task_id;
        let stream = tree.stream(child)?;
        let history = History::read(tree.store(), child)?;
        let model = self.parts.model.clone();
        let mut journal = Journal::open(stream, history, model, tree.clock())?;
        if !journal.state().status.is_terminal() {
            let parts = self.parts.for_child(&member.spawn, bound_by.to_vec());
            let agent = Self::new(parts, tree.clone());
            // Boxed: an agent's run contains its sub-agents' runs.
            let ran = Box::pin(agent.run(&mut journal, halt)).await;
            agent.parts.world.shell.end_background().await;
            ran?;
        }
        let state = journal.state();
        Ok(match (state.status, state.reason) {
            (TaskStatus::Blocked, StatusReason::Budget) => Stand::OverBudget,
            (TaskStatus::Blocked, _) => {
                let mut on = vec![child];
                // Without a question of its own it waits for those below it, and takes their mail to them.
                if !matches!(state.next(), Next::Wait(_)) {
                    on.extend(tree.below(child)?.into_iter().map(|row| row.id));
                }
                Stand::Blocked { on }
            }
            (TaskStatus::Paused, StatusReason::RateLimited) => {
                Stand::Held(state.until.unwrap_or_else(|| journal.now()))
            }
            (status, _) if status.is_terminal() => Stand::Ended,
            _ => Stand::Paused,
        })
    }
}

fn has_mail(tree: &Tree, tasks: &[TaskId]) -> Result<bool, Error> {
    for task in tasks {
        if tree.store().mailbox().has_mail(*task)? {
            return Ok(true);
        }
    }
    Ok(false)
}
