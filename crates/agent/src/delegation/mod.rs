//! Sub-agents: started side by side, each a task of its own in the journal, their results in call order.
//!
//! Invariants:
//! - A sub-agent is journaled with the call that asks for it, before it exists. After a crash the call
//!   waits for that one again. Its task is made at most once.
//! - Never more than its parent: the parent's model or one that a person has configured, the same workspace and
//!   sandbox, the parent's axes, and none of the rules that a person gave the parent (MS-217).
//! - Results are journaled when all calls of a batch have one: in the order of the reply (ES-232).

mod child_result;
mod run_children;
pub mod tree;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_core::axes::{Axes, ModelMode};
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::ending::Ending;
use windlass_core::event::{Event, SubAgentSpawn, TaskCreated, ToolCall};
use windlass_core::id::{CommandId, TaskId};
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::state::{OpenCall, TaskState};
use windlass_core::status::StatusReason;
use windlass_core::text::one_line;
use windlass_core::tool_name;
use windlass_skills::{Viewer, fork};
use windlass_store::Level;
use windlass_tools::SpawnArguments;
use windlass_tools::workspace::Purpose;

use self::run_children::ChildState;
use self::tree::Tree;
use crate::calls::{Spawn, result};
use crate::interrupt::TimeLimit;
use crate::journal::{Flushed, Journal};
use crate::{Error, ModelParts, Parts, prompt};

/// How wide a label is; longer ones are cut.
const LABEL: usize = 60;

/// Runs the sub-agents of one agent.
pub(crate) struct Delegation {
    /// What sub-agents are made from.
    parts: Parts,
    tree: Arc<Tree>,
    /// The limit of the agent that waits for them.
    time_limit: TimeLimit,
}

/// One sub-agent of a batch.
struct Child {
    open: OpenCall,
    spawn: SubAgentSpawn,
    /// Why it was never started.
    refused: Option<Outcome>,
}

/// How far the sub-agents of a batch have come.
pub(crate) enum DelegationProgress {
    /// All calls have their results.
    Finished,
    /// One of them cannot continue now; how the segment ends, unless the loop finds that itself.
    Unfinished(Option<Ending>),
}

impl Delegation {
    /// Runs sub-agents made from these parts, in this tree.
    pub fn new(parts: Parts, tree: Arc<Tree>) -> Self {
        let time_limit = TimeLimit(parts.settings.timeout);
        Self { parts, tree, time_limit }
    }

    /// What an allowed `spawn_agent` call starts: the call with its recovery, and the sub-agent.
    pub fn plan(
        &self,
        task: &Journal,
        mut call: ToolCall,
    ) -> Result<(ToolCall, SubAgentSpawn), Outcome> {
        let given: SpawnArguments = serde_json::from_value(call.arguments.clone())
            .map_err(|error| Outcome::error(format!("The arguments do not fit: {error}.")))?;
        let (state, settings) = (task.state(), &self.parts.settings);
        let timeout = given.timeout_seconds.map_or(settings.sub_agent_timeout, Duration::from_secs);
        let skills = self.parts.world.skills.current();
        let model_mode = given.model.map(ModelMode::from);
        let model = match model_mode {
            Some(mode) => self.other_model(state, mode)?.model,
            None => self.parts.model.clone(),
        };
        let spawn = SubAgentSpawn {
            call: call.call,
            task_id: TaskId::new(task.now()),
            label: one_line(given.label.as_deref().unwrap_or(&given.task), LABEL),
            task: fork(&given.task, &skills, Viewer::of(&state.axes)).unwrap_or(given.task),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            model: model.name().to_string(),
            model_mode,
            axes: Axes { model_mode: model_mode.unwrap_or(state.axes.model_mode), ..state.axes },
            role: state.role,
            depth: state.created.depth + 1,
            write_output_to: given.write_output_to.map(|path| self.decided_path(path)),
        };
        call.recovery = Recovery::Reattach { id: spawn.task_id.to_string() };
        Ok((call, spawn))
    }

    /// Where a path leads now, as the gate has decided about it: a link that is put there later leads nowhere else.
    fn decided_path(&self, path: String) -> String {
        let found = self.parts.world.workspace.write_target(&path, Purpose::Agent);
        found.map_or(path, |file| file.path)
    }

    /// The model of another mode, for a sub-agent (ES-235). One without a price would escape the budget.
    fn other_model(&self, state: &TaskState, mode: ModelMode) -> Result<ModelParts, Outcome> {
        let refused = |why: String| Outcome::failure(format!("{why} Leave `model` out."));
        let models = self.parts.models.as_ref();
        let models = models.ok_or_else(|| refused("there is no other model here.".to_owned()))?;
        let found = models.source.open_mode(state, mode);
        let found = found.map_err(|error| {
            refused(format!("the {mode} model cannot be used: {}.", error.message))
        })?;
        let has_budget = self.parts.settings.budget.cost_usd.is_some();
        match has_budget && found.price.is_none() {
            true => Err(refused(format!(
                "the {mode} model has no price, and the task has a cost budget."
            ))),
            false => Ok(found),
        }
    }

    /// Starts or resumes sub-agents and waits for all of them. `skills` are those that bind them.
    pub async fn run(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        spawns: Vec<Spawn>,
        skills: &[String],
    ) -> Result<DelegationProgress, Error> {
        let (children, started) = self.admit(spawns);
        let flushed = task.commit(started, Level::Synced).await?;
        self.create(&flushed, &children).await?;
        // A pause parks sub-agents as the end of the process does: at their next boundary.
        let halt = stop.child_token();
        let (states, interrupt) =
            self.run_children(&flushed, stop, &halt, &children, skills).await?;
        if let Some(ending) =
            interrupt.and_then(|interrupt| self.time_limit.segment_ending(interrupt))
        {
            return Ok(DelegationProgress::Unfinished(Some(ending)));
        }
        if let Some(ending) = unfinished_ending(&states) {
            return Ok(DelegationProgress::Unfinished(Some(ending)));
        }
        if states.iter().any(|state| matches!(state, ChildState::Paused)) {
            // The loop finds a pause that reached only them in the mailbox.
            let shutdown = Ending::paused(StatusReason::Shutdown);
            return Ok(DelegationProgress::Unfinished(stop.is_cancelled().then_some(shutdown)));
        }
        if let Some(ending) = paused_ending(&children, &states) {
            return Ok(DelegationProgress::Unfinished(Some(ending)));
        }
        let mut ended = states.into_iter().filter_map(|state| match state {
            ChildState::Ended(state) => Some(state),
            ChildState::Blocked { .. }
            | ChildState::Held { .. }
            | ChildState::OverBudget
            | ChildState::Waiting(..)
            | ChildState::Paused => None,
        });
        let mut events = Vec::new();
        for Child { open, spawn, refused } in children {
            if let Some(outcome) = refused {
                events.extend(result(&open, outcome, 0));
            } else if let Some(state) = ended.next() {
                events.extend(self.result(&open, &spawn, &state, task.state())?);
            }
        }
        task.commit(events, Level::Written).await?;
        Ok(DelegationProgress::Finished)
    }

    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Which of the sub-agents may start, and the events that start them.
    fn admit(&self, spawns: Vec<Spawn>) -> (Vec<Child>, Vec<Event>) {
        let (mut children, mut started) = (Vec::new(), Vec::new());
        for Spawn { open, check, call, spawn } in spawns {
            let mut refused = None;
            if let Some(check) = check {
                started.push(Event::RiskCheck(check));
                if self.tree.admit() {
                    started.push(Event::ToolCall(call));
                    started.push(Event::SubAgentSpawn(spawn.clone()));
                } else {
                    let limit = self.tree.limits().max_agents;
                    refused = Some(Outcome::failure(prompt::too_many_agents(limit)));
                }
            }
            children.push(Child { open, spawn, refused });
        }
        (children, started)
    }

    async fn create(&self, task: &Flushed<'_>, children: &[Child]) -> Result<(), Error> {
        for child in children.iter().filter(|child| child.refused.is_none()) {
            self.tree.create(child_created(task.state(), child)).await?;
        }
        Ok(())
    }
}

/// How a segment ends whose sub-agents cannot continue.
fn unfinished_ending(states: &[ChildState]) -> Option<Ending> {
    if states.iter().any(|state| matches!(state, ChildState::OverBudget)) {
        return Some(Ending::OverBudget);
    }
    if states.iter().any(|state| matches!(state, ChildState::Blocked { .. })) {
        return Some(Ending::Blocked);
    }
    let waits = states.iter().filter_map(|state| match state {
        ChildState::Waiting(reason, until) => Some((*until, *reason)),
        ChildState::Ended(_)
        | ChildState::Blocked { .. }
        | ChildState::Held { .. }
        | ChildState::OverBudget
        | ChildState::Paused => None,
    });
    let (until, reason) = waits.max_by_key(|(until, _)| *until)?;
    let detail = match reason {
        StatusReason::RateLimited => "the model server of a sub-agent asked to wait",
        StatusReason::ModelOutage => "the model server of a sub-agent does not answer",
        StatusReason::User
        | StatusReason::Finished
        | StatusReason::Question
        | StatusReason::Budget
        | StatusReason::Timeout
        | StatusReason::Deadline
        | StatusReason::Error
        | StatusReason::Dependency
        | StatusReason::Schedule
        | StatusReason::MergeConflict
        | StatusReason::AwaitingMessage
        | StatusReason::ContextFull
        | StatusReason::DiskFull
        | StatusReason::Shutdown => "a sub-agent cannot continue",
    };
    Some(Ending::Waiting { reason, until, detail: detail.to_owned() })
}

/// How a segment ends in which nothing is left but sub-agents that a person has paused.
fn paused_ending(children: &[Child], states: &[ChildState]) -> Option<Ending> {
    let live = children.iter().filter(|child| child.refused.is_none());
    let held = live.zip(states).filter(|(_, state)| matches!(state, ChildState::Held { .. }));
    let labels: Vec<_> = held.map(|(child, _)| format!("`{}`", child.spawn.label)).collect();
    let detail = match labels.as_slice() {
        [] => return None,
        [one] => format!("sub-agent {one} is paused"),
        several => format!("sub-agents {} are paused", several.join(", ")),
    };
    Some(Ending::Paused { reason: StatusReason::User, detail: Some(detail) })
}

fn child_created(parent: &TaskState, child: &Child) -> TaskCreated {
    let spawn = &child.spawn;
    let before = &parent.created;
    let command = TaskCommand {
        command_id: CommandId::derived(&spawn.call.to_string(), tool_name::SPAWN_AGENT),
        session_id: parent.command().session_id,
        task_id: spawn.task_id,
        goal: spawn.task.clone(),
        constraints: Vec::new(),
        execution_config: ExecutionConfig { role: spawn.role, ..ExecutionConfig::default() },
        resume_context: None,
    };
    TaskCreated {
        parent: Some(parent.id()),
        root: before.root,
        depth: spawn.depth,
        site: before.site.clone(),
        user_id: before.user_id.clone(),
        outage: before.outage,
        // It may use no more than the task above it.
        plan: before.plan.clone(),
        ..TaskCreated::new(command, spawn.axes, before.workspace.clone(), before.driver)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn blocked() -> ChildState {
        ChildState::Blocked { on: Vec::new() }
    }

    #[test]
    fn a_budget_comes_before_a_question_and_a_question_before_a_wait() {
        let wait = || ChildState::Waiting(StatusReason::RateLimited, Timestamp::UNIX_EPOCH);
        let ending = unfinished_ending(&[wait(), blocked(), ChildState::OverBudget]);
        assert!(matches!(ending, Some(Ending::OverBudget)), "{ending:?}");
        assert!(matches!(unfinished_ending(&[wait(), blocked()]), Some(Ending::Blocked)));
        assert!(unfinished_ending(&[ChildState::Paused]).is_none());
    }

    #[test]
    fn of_several_waits_the_longest_counts() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let states = [
            ChildState::Waiting(StatusReason::ModelOutage, at(20)),
            ChildState::Waiting(StatusReason::RateLimited, at(10)),
        ];
        match unfinished_ending(&states) {
            Some(Ending::Waiting { reason: StatusReason::ModelOutage, until, .. }) => {
                assert_eq!(until, at(20));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sub_agent_belongs_to_the_session_of_its_parent() {
        let parent = crate::testing::state("goal");
        let (open, spawn) =
            (crate::testing::open_call("spawn_agent", "{}"), crate::testing::spawn());
        let created = child_created(&parent, &Child { open, spawn: spawn.clone(), refused: None });
        assert_eq!(created.parent, Some(parent.id()));
        assert_eq!(created.command.session_id, parent.command().session_id);
        assert_eq!((created.depth, created.command.goal), (spawn.depth, spawn.task));
    }
}
