use jiff::Timestamp;
use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::event::{Driver, TaskCreated};
use windlass_core::id::{CommandId, SessionId};
use windlass_core::message::Usage;
use windlass_core::outcome::Outcome;
use windlass_core::policy::denial::Denial;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn progress() -> Progress {
    let task_id = TaskId::new(NOW);
    let command = TaskCommand {
        command_id: CommandId::new(NOW),
        session_id: SessionId::new(NOW),
        task_id,
        goal: "x".to_owned(),
        constraints: Vec::new(),
        execution_config: ExecutionConfig::default(),
        resume_context: None,
    };
    let created = TaskCreated {
        command,
        parent: None,
        root: task_id,
        depth: 0,
        axes: Axes::headless(),
        workspace: "/w".to_owned(),
        site: windlass_core::layout::Site::default(),
        driver: Driver::Foreground,
        dependency_blockers: Vec::new(),
        max_retries: 3,
        cost_budget: None,
        user_id: None,
        deadline: None,
        outage: None,
        continues: None,
    };
    let state = TaskState::begin(NOW, &Event::TaskCreated(Box::new(created))).unwrap();
    Progress::new(task_id, &state, Paint::default())
}

fn spawn(label: &str) -> SubAgentSpawn {
    SubAgentSpawn {
        call: CallId::new(NOW),
        task_id: TaskId::new(NOW),
        label: label.to_owned(),
        task: "publish it".to_owned(),
        timeout_ms: 1000,
        model: "m".to_owned(),
        axes: Axes::headless(),
        depth: 1,
        write_output_to: None,
    }
}

fn reply(call: CallId) -> Event {
    let request = ToolRequest {
        id: call,
        provider_id: "1".to_owned(),
        name: "bash".to_owned(),
        arguments: r#"{"command": "git push"}"#.to_owned(),
    };
    Event::LlmResponse(LlmResponse {
        text: String::new(),
        calls: vec![request],
        finish: Finish::ToolCalls,
        usage: Usage::default(),
        model: "m".to_owned(),
        latency_ms: 1,
        segment_ms: None,
    })
}

fn denied(call: CallId) -> Event {
    let denial = Denial {
        tool: "bash".to_owned(),
        reason: "it reaches the network".to_owned(),
        suggestions: Vec::new(),
        can_retry: false,
    };
    let outcome = Outcome::denied(denial);
    Event::ToolResult(ToolResult {
        call,
        tool: "bash".to_owned(),
        outcome,
        duration_ms: 0,
        segment_ms: None,
    })
}

fn lines(progress: &mut Progress, task: TaskId, event: Event) -> Vec<String> {
    progress.lines(&Record { pos: 1, task, seq: 1, at: NOW, iteration: 1, event }, 80)
}

#[test]
fn a_denied_call_of_a_sub_agent_is_shown_with_its_reason() {
    let (mut progress, spawn, call) = (progress(), spawn("publisher"), CallId::new(NOW));
    let (root, sub_agent) = (progress.task, spawn.task_id);
    lines(&mut progress, root, Event::SubAgentSpawn(spawn));
    assert!(lines(&mut progress, sub_agent, reply(call)).is_empty());
    let shown = ["  publisher: ✗ $ git push", "    denied: it reaches the network"];
    assert_eq!(lines(&mut progress, sub_agent, denied(call)), shown);
}

/// Its request was journaled before this run, so only the tool is known.
#[test]
fn a_call_that_is_denied_in_a_later_run_is_shown_by_its_tool() {
    let (mut progress, call) = (progress(), CallId::new(NOW));
    let shown = ["  sub-agent: ✗ bash", "    denied: it reaches the network"];
    assert_eq!(lines(&mut progress, TaskId::new(NOW), denied(call)), shown);
}
