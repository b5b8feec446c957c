//! Small values for the tests of this crate.

use jiff::Timestamp;
use windlass_core::axes::Axes;
use windlass_core::command::TaskCommand;
use windlass_core::event::{Driver, Event, RiskCheck, SubAgentSpawn, TaskCreated};
use windlass_core::id::{CallId, SessionId, TaskId};
use windlass_core::message::ToolRequest;
use windlass_core::policy::{Class, Decision, Risk};
use windlass_core::state::{OpenCall, Stage, TaskState};

/// The state of a task that was just created.
pub fn state(goal: &str) -> TaskState {
    let now = Timestamp::UNIX_EPOCH;
    let command = TaskCommand::new(now, SessionId::new(now), goal);
    let created = TaskCreated::new(command, Axes::headless(), "/workspace", Driver::Foreground);
    TaskState::begin(now, &Event::TaskCreated(Box::new(created))).unwrap()
}

/// A call that nothing has happened to.
pub fn open_call(tool: &str, arguments: &str) -> OpenCall {
    let request = ToolRequest {
        id: CallId::new(Timestamp::UNIX_EPOCH),
        provider_id: "call_1".to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_owned(),
    };
    OpenCall { request, stage: Stage::Waiting }
}

/// A call that is allowed.
pub fn risk_check(tool: &str) -> RiskCheck {
    RiskCheck {
        call: CallId::new(Timestamp::UNIX_EPOCH),
        tool: tool.to_owned(),
        class: Class::Read,
        risk: Risk::Low,
        decision: Decision::Allow,
        reason: String::new(),
        axes: Axes::headless(),
    }
}

/// A sub-agent that is about to start.
pub fn spawn() -> SubAgentSpawn {
    SubAgentSpawn {
        call: CallId::new(Timestamp::UNIX_EPOCH),
        task_id: TaskId::new(Timestamp::UNIX_EPOCH),
        label: "paint".to_owned(),
        task: "paint the door".to_owned(),
        timeout_ms: 1_000,
        model: "scripted".to_owned(),
        model_mode: None,
        axes: Axes::headless(),
        role: None,
        depth: 1,
        write_output_to: None,
    }
}
