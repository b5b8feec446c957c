//! Sub-agents: started side by side, each a task of its own in the journal, their results in call order.
//!
//! Invariants:
//! - A sub-agent is journaled with the call that asks for it, before it exists; after a crash the call
//!   goes on waiting for that one. Its task is made at most once.
//! - Never more than its parent: same model, workspace and sandbox, the parent's axes, no rules that a
//!   person gave the parent (MS-217).
//! - Results are journaled when all calls of a batch have one: in the order of the reply (ES-232).

mod attend;

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::event::{
    Event, RiskCheck, SubAgentComplete, SubAgentSpawn, SubAgentStatus, TaskCreated, ToolCall,
};
use windlass_core::id::{CommandId, TaskId};
use windlass_core::outcome::{Fact, Outcome, Recovery};
use windlass_core::state::{OpenCall, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::text::one_line;
use windlass_skills::{Viewer, fork};
use windlass_store::Level;
use windlass_tools::registry::reachable_under;
use windlass_tools::workspace::{Purpose, Replacement, content_hash};
use windlass_tools::{Kind, Spawned, Tool, output};

use self::attend::Stand;
use crate::calls::{Plan, result};
use crate::ending::Ending;
use crate::journal::Journal;
use crate::tree::Tree;
use crate::{Agent, Error};

/// The tool that this module carries out.
pub(crate) const SPAWN_AGENT: &str = "spawn_agent";
/// How wide a label is; longer ones are cut.
const LABEL: usize = 60;

/// One sub-agent of a batch.
struct Member {
    open: OpenCall,
    spawn: SubAgentSpawn,
    /// Why it was never started.
    refused: Option<Outcome>,
}

impl Agent {
    /// Whether this agent may start others (ES-241, O-16).
    pub(crate) fn may_spawn(&self, state: &TaskState) -> bool {
        state.created.depth < self.tree.limits().max_depth
    }

    /// Which tools this agent is shown.
    pub(crate) fn offered(&self, state: &TaskState) -> impl Fn(&dyn Tool) -> bool + use<> {
        let (reachable, spawns) =
            (reachable_under(state.axes.permission_profile), self.may_spawn(state));
        move |tool| reachable(tool) && (spawns || tool.kind() != Kind::SubAgent)
    }

    /// What an allowed `spawn_agent` call would start.
    pub(crate) fn plan_spawn(&self, task: &Journal, check: RiskCheck, mut call: ToolCall) -> Plan {
        let given: Spawned = match serde_json::from_value(call.arguments.clone()) {
            Ok(given) => given,
            Err(error) => {
                let outcome = Outcome::error(format!("The arguments do not fit: {error}."));
                return Plan::Settled { check: Some(check), outcome };
            }
        };
        let state = task.state();
        let timeout = given
            .timeout_seconds
            .map_or(self.parts.settings.sub_agent_timeout, Duration::from_secs);
        let spawn = SubAgentSpawn {
            call: call.call,
            task_id: TaskId::new(task.now()),
            label: one_line(given.label.as_deref().unwrap_or(&given.task), LABEL),
            task: fork(&given.task, &self.parts.world.skills.current(), Viewer::of(&state.axes))
                .unwrap_or(given.task),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            model: self.parts.model.name().to_string(),
            axes: state.axes,
            depth: state.created.depth + 1,
            write_output_to: given.write_output_to,
        };
        call.recovery = Recovery::Reattach { id: spawn.task_id.to_string() };
        Plan::Spawn { check: Some(check), call, spawn }
    }

    /// Starts or goes on with sub-agents and waits for all of them.
    pub(crate) async fn run_spawns(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        batch: Vec<(OpenCall, Plan)>,
    ) -> Result<Option<Ending>, Error> {
        let tree = self.tree.clone();
        let members = self.start_members(task, &tree, batch).await?;
        for member in members.iter().filter(|member| member.refused.is_none()) {
            tree.create(created(task.state(), member)).await?;
        }
        // A pause parks sub-agents as the end of the process does: at their next boundary.
        let halt = stop.child_token();
        let (stands, timed_out) = self.attend(task, stop, &halt, &tree, &members).await?;
        if timed_out {
            return Ok(Some(Ending::Failed(self.timed_out())));
        }
        if stands.iter().any(|stand| matches!(stand, Stand::OverBudget)) {
            return Ok(Some(Ending::OverBudget));
        }
        if stands.iter().any(|stand| matches!(stand, Stand::Blocked { .. })) {
            return Ok(Some(Ending::Blocked));
        }
        let held = stands.iter().filter_map(|stand| match stand {
            Stand::Held(until) => Some(*until),
            Stand::Ended | Stand::Blocked { .. } | Stand::OverBudget | Stand::Paused => None,
        });
        if let Some(until) = held.max() {
            let why = format!("the model of a sub-agent asks to wait; it goes on at {until}");
            return Ok(Some(Ending::Held(until, why)));
        }
        if stands.iter().any(|stand| matches!(stand, Stand::Paused)) {
            // A pause that reached only them is found in the mailbox by the loop.
            return Ok(stop.is_cancelled().then_some(Ending::Paused(StatusReason::Shutdown)));
        }
        let mut events = Vec::new();
        for member in members {
            events.extend(self.ended(&tree, member)?);
        }
        task.commit(events, Level::Written).await?;
        Ok(None)
    }

    async fn start_members(
        &self,
        task: &mut Journal,
        tree: &Tree,
        batch: Vec<(OpenCall, Plan)>,
    ) -> Result<Vec<Member>, Error> {
        let (mut started, mut members) = (Vec::new(), Vec::new());
        for (open, plan) in batch {
            let Plan::Spawn { check, call, spawn } = plan else { continue };
            let refused = (check.is_some() && !tree.admit()).then(|| {
                let most = tree.limits().max_agents;
                Outcome::failure(format!(
                    "this task may start {most} sub-agents in all and has started them \
                     (`subagents.max_agents`). The sub-agent was not started. Do the work yourself."
                ))
            });
            if let Some(check) = check {
                started.push(Event::RiskCheck(check));
                if refused.is_none() {
                    started.push(Event::ToolCall(call));
                    started.push(Event::SubAgentSpawn(spawn.clone()));
                }
            }
            members.push(Member { open, spawn, refused });
        }
        task.commit(started, Level::Synced).await?;
        Ok(members)
    }

    /// What a sub-agent that has ended hands back: the event, and the result of its call.
    fn ended(&self, tree: &Tree, member: Member) -> Result<Vec<Event>, Error> {
        let Member { open, spawn, refused } = member;
        if let Some(outcome) = refused {
            return Ok(result(&open, outcome, 0));
        }
        let child = spawn.task_id;
        let state = tree.state(child)?;
        let why = tree.store().tasks().get(child)?.and_then(|row| row.detail);
        let complete = complete(&spawn, &state, why);
        let mut outcome = match complete.status {
            SubAgentStatus::Completed => Outcome::ok(""),
            SubAgentStatus::Failed | SubAgentStatus::Timeout => Outcome::error(""),
        };
        let written = spawn.write_output_to.as_deref().filter(|_| !complete.output.is_empty());
        let note = match written.map(|path| (path, self.write_output(&open, path, &complete))) {
            None => String::new(),
            Some((path, Ok(fact))) => {
                outcome = outcome.with(fact);
                format!("\n\nOutput written to: {}", shown(path))
            }
            Some((path, Err(error))) => format!("\n\nOutput not written to {path}: {error}"),
        };
        let (id, limit) = (open.request.id, self.parts.settings.tool_output_max_tokens);
        let said = complete.error.as_deref().filter(|_| complete.output.is_empty());
        let text = said.unwrap_or(&complete.output).to_owned();
        let (text, truncated) = output::fit(text, id, limit, &self.parts.world.workspace);
        // The headline has times and tokens, which differ although nothing else does.
        let body = format!("Result:\n{text}{note}");
        outcome.fingerprint = Some(content_hash(body.as_bytes()));
        outcome.text = format!("{}\n\n{body}", headline(&complete));
        outcome.truncated = truncated;
        let duration_ms = complete.duration_ms;
        let event = Event::SubAgentComplete(Box::new(complete));
        Ok(std::iter::once(event).chain(result(&open, outcome, duration_ms)).collect())
    }

    fn write_output(
        &self,
        open: &OpenCall,
        path: &str,
        complete: &SubAgentComplete,
    ) -> Result<Fact, windlass_tools::workspace::Error> {
        let workspace = &self.parts.world.workspace;
        let current = workspace.look(path, Purpose::Agent)?;
        let content = complete.output.as_bytes();
        let hash = content_hash(content);
        if current.hash.as_deref() != Some(&hash) {
            workspace.replace(Replacement {
                call: open.request.id,
                path: &current.path,
                before: current.hash.as_deref(),
                content,
                purpose: Purpose::Agent,
            })?;
        }
        Ok(Fact::FileChanged { path: current.path, hash, diff: None })
    }
}

fn created(parent: &TaskState, member: &Member) -> TaskCreated {
    let spawn = &member.spawn;
    TaskCreated {
        command: TaskCommand {
            command_id: CommandId::derived(&spawn.call.to_string(), SPAWN_AGENT),
            session_id: parent.command().session_id,
            task_id: spawn.task_id,
            goal: spawn.task.clone(),
            constraints: Vec::new(),
            execution_config: ExecutionConfig::default(),
            resume_context: None,
        },
        parent: Some(parent.id()),
        root: parent.created.root,
        depth: spawn.depth,
        axes: spawn.axes,
        workspace: parent.created.workspace.clone(),
        driver: parent.created.driver,
        dependency_blockers: Vec::new(),
        max_retries: 0,
        cost_budget: None,
        user_id: None,
        deadline: None,
    }
}

/// What became of a sub-agent, and in whose words it was ended, if somebody's.
fn complete(spawn: &SubAgentSpawn, state: &TaskState, why: Option<String>) -> SubAgentComplete {
    let status = match (state.status, state.reason) {
        (TaskStatus::Done, _) => SubAgentStatus::Completed,
        (_, StatusReason::Timeout) => SubAgentStatus::Timeout,
        _ => SubAgentStatus::Failed,
    };
    let error = match status {
        SubAgentStatus::Completed => None,
        SubAgentStatus::Failed | SubAgentStatus::Timeout => Some(match &state.error {
            Some(error) => error.message.clone(),
            None => match why {
                Some(why) => format!("it was cancelled: {why}"),
                None => "it was cancelled".to_owned(),
            },
        }),
    };
    SubAgentComplete {
        call: spawn.call,
        task_id: spawn.task_id,
        label: spawn.label.clone(),
        status,
        output: state.final_text.clone().unwrap_or_default(),
        usage: state.usage,
        cost_usd: state.known_cost(),
        duration_ms: state.usage.duration_ms,
        files_changed: state.changed_files.iter().cloned().collect(),
        error,
    }
}

/// The first line of a result (ES-243).
fn headline(complete: &SubAgentComplete) -> String {
    let (label, status) = (&complete.label, complete.status);
    let seconds = (complete.duration_ms + 500) / 1_000;
    let tokens = grouped(complete.usage.total_tokens);
    format!("Sub-agent \"{label}\" {status} in {seconds}s ({tokens} tokens).")
}

/// A number with a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn shown(path: &str) -> String {
    let path = path.trim_start_matches("./");
    if path.starts_with('/') { path.to_owned() } else { format!("/workspace/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-243
    #[test]
    fn tokens_are_grouped_by_thousands() {
        let texts = [0, 999, 1_000, 2_340, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "2,340", "1,234,567"]);
    }
}
