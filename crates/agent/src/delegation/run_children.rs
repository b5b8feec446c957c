//! Running sub-agents side by side: one that waits for a person resumes as soon as it is answered, while
//! the others work.
//!
//! Invariants:
//! - All segments of all children are awaited here: when this returns, none of them runs.
//! - A child that blocks is run again only when mail waits that its segment will take.
//! - A child that a person has paused is run again only when they resume or end it.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::readiness::MailKind;
use windlass_core::state::{Next, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};

use super::{Child, Delegation, Tree};
use crate::history::History;
use crate::interrupt::Interrupt;
use crate::journal::{Flushed, Journal};
use crate::{Agent, Error, prompt};

/// The state of a sub-agent when its segment has ended.
pub(super) enum ChildState {
    Ended(Box<TaskState>),
    /// It waits for a person. Mail for one of these tasks lets it resume.
    Blocked {
        on: Vec<TaskId>,
    },
    /// A person has paused it, or one below it. A decision about one of these tasks lets it resume.
    Held {
        on: Vec<TaskId>,
    },
    /// The tree's budget is used up.
    OverBudget,
    /// Something keeps it from working until then.
    Waiting(StatusReason, Timestamp),
    /// It was parked with the process.
    Paused,
}

impl Delegation {
    /// Runs all children; a cancel or the time limit of the parent ends them, and they are awaited.
    pub(super) async fn run_children(
        &self,
        task: &Flushed<'_>,
        stop: &CancellationToken,
        halt: &CancellationToken,
        children: &[Child],
        skills: &[String],
    ) -> Result<(Vec<ChildState>, Option<Interrupt>), Error> {
        let watch = self.time_limit.watch(task, stop);
        let live: Vec<_> = children.iter().filter(|child| child.refused.is_none()).collect();
        let running = self.run_all(&live, skills, halt);
        tokio::pin!(running);
        let mut interrupt = None;
        let states = tokio::select! {
            states = &mut running => states,
            found = watch.wait_for_end_of_calls() => {
                let found = found?;
                interrupt = Some(found);
                let why = match found {
                    Interrupt::Timeout => "the agent above it ran out of time",
                    Interrupt::Person => prompt::INTERRUPTED.trim_end(),
                    Interrupt::Cancel | Interrupt::Shutdown | Interrupt::Change => {
                        "the agent above it was cancelled"
                    }
                };
                for child in &live {
                    cancel(task, child.spawn.task_id, why).await?;
                }
                running.await
            }
            paused = watch.wait_for_pause() => {
                paused?;
                halt.cancel();
                running.await
            }
        };
        Ok((states?, interrupt))
    }

    /// Runs children until none of them has anything left to do; the state of each, in their order.
    async fn run_all(
        &self,
        children: &[&Child],
        skills: &[String],
        halt: &CancellationToken,
    ) -> Result<Vec<ChildState>, Error> {
        let run = |place: usize| async move {
            (place, self.run_child(children[place], skills, halt).await)
        };
        let mut mail = self.tree.store().mailbox().changes();
        let mut states: Vec<_> = children.iter().map(|_| None).collect();
        let mut running: FuturesUnordered<_> = (0..children.len()).map(run).collect();
        while !running.is_empty() {
            tokio::select! {
                Some((place, state)) = running.next() => states[place] = Some(state),
                changed = mail.changed() => changed?,
            }
            for (place, state) in states.iter_mut().enumerate() {
                let can_resume = match state {
                    Some(Ok(ChildState::Blocked { on })) => has_mail(&self.tree, on)?,
                    Some(Ok(ChildState::Held { on })) => has_decision(&self.tree, on)?,
                    Some(_) | None => false,
                };
                if can_resume && !halt.is_cancelled() {
                    *state = None;
                    running.push(run(place));
                }
            }
        }
        // An error of one child does not interrupt the others: all have ended their segments here.
        states.into_iter().flatten().collect()
    }

    /// One sub-agent, until its segment ends.
    async fn run_child(
        &self,
        child: &Child,
        skills: &[String],
        halt: &CancellationToken,
    ) -> Result<ChildState, Error> {
        let (tree, id) = (&self.tree, child.spawn.task_id);
        let (stream, history) = (tree.stream(id)?, History::read(tree.store(), id)?);
        if history.state().status.is_terminal() {
            return Ok(ChildState::Ended(Box::new(history.into_state())));
        }
        if is_held(history.state()) {
            let on = self.with_descendants(id)?;
            if !has_decision(tree, &on)? {
                return Ok(ChildState::Held { on });
            }
        }
        let parts = self.parts.for_child(&child.spawn, skills.to_vec());
        let parts = match child.spawn.model_mode.and(parts.models.clone()) {
            // What can no longer be opened is replaced by its parent's, as if the call had named none.
            Some(models) => match models.source.open(history.state()) {
                Ok(found) => parts.with_model(found, models.made_for),
                Err(error) => {
                    tracing::warn!(task_id = %id, error = error.message, "The model of a sub-agent is gone");
                    parts
                }
            },
            None => parts,
        };
        let mut journal = Journal::open(stream, history, parts.model.clone(), tree.clock())?;
        let shell = parts.world.shell.clone();
        let mut agent = Agent::new(parts, tree.clone());
        // Boxed: an agent's run contains its sub-agents' runs.
        let ran = Box::pin(agent.run(&mut journal, halt)).await;
        shell.end_background().await;
        ran?;
        let state = journal.state();
        Ok(match (state.status, state.reason) {
            (TaskStatus::Blocked, StatusReason::Budget) => ChildState::OverBudget,
            (TaskStatus::Blocked, _) => {
                // Without a question of its own it waits for those below it, and takes their mail to them.
                let on = match state.next() {
                    Next::Wait(_) => vec![id],
                    Next::AskModel
                    | Next::Compact
                    | Next::RunCalls
                    | Next::StartPlan
                    | Next::Finish(_) => self.with_descendants(id)?,
                };
                ChildState::Blocked { on }
            }
            _ if is_held(state) => ChildState::Held { on: self.with_descendants(id)? },
            (TaskStatus::Paused, reason) if reason.resumes_at_a_time() => {
                ChildState::Waiting(reason, state.until.unwrap_or_else(|| journal.now()))
            }
            (TaskStatus::Done | TaskStatus::Failed | TaskStatus::Cancelled, _) => {
                ChildState::Ended(Box::new(state.clone()))
            }
            (
                TaskStatus::Todo
                | TaskStatus::Running
                | TaskStatus::Verifying
                | TaskStatus::Reviewing
                | TaskStatus::Paused
                | TaskStatus::Retrying,
                _,
            ) => ChildState::Paused,
        })
    }

    fn with_descendants(&self, task: TaskId) -> Result<Vec<TaskId>, Error> {
        let below = self.tree.live_descendants(task)?.into_iter().map(|row| row.id);
        Ok(std::iter::once(task).chain(below).collect())
    }
}

/// Whether a person or its deadline has paused it, and not the end of the process.
fn is_held(state: &TaskState) -> bool {
    let by_signal = matches!(state.reason, StatusReason::User | StatusReason::Deadline);
    state.status == TaskStatus::Paused && by_signal
}

async fn cancel(task: &Journal, child: TaskId, why: &str) -> Result<(), Error> {
    let id = InjectionId::new(task.now());
    let control = Control::Cancel { reason: Some(why.to_owned()) };
    let injection = Injection::control(id, control);
    match task.store().mailbox().inject(child, injection, task.now()).await {
        // It has just ended.
        Ok(_) | Err(windlass_store::Error::TaskEnded { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a person has resumed or ended one of them since it was paused.
fn has_decision(tree: &Tree, tasks: &[TaskId]) -> Result<bool, Error> {
    for task in tasks {
        let waiting = tree.store().mailbox().pending(*task)?;
        if waiting.iter().any(|mail| MailKind::from(mail) == MailKind::Decision) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_mail(tree: &Tree, tasks: &[TaskId]) -> Result<bool, Error> {
    for task in tasks {
        if tree.store().mailbox().has_mail(*task)? {
            return Ok(true);
        }
    }
    Ok(false)
}
