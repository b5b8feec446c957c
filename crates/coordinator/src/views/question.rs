//! One question of the inbox.

use serde_json::Value;
use windlass_core::event::WorkflowPart;
use windlass_core::id::TaskId;
use windlass_core::outcome::Recovery;
use windlass_core::state::{Stage, TaskState};
use windlass_store::{QuestionRow, TaskRow};

/// A question, and the task that asks it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// What is asked.
    pub row: QuestionRow,
    pub asker: Option<TaskRow>,
    /// What a sub-agent that asks is called.
    pub label: Option<String>,
    /// The call that waits for the answer.
    pub call: Option<AskedCall>,
}

/// A call that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedCall {
    pub tool: String,
    pub arguments: Value,
}

impl OpenQuestion {
    /// The sub-agent that asks, where it is not the task that a person has started.
    pub fn sub_agent(&self) -> Option<&TaskRow> {
        self.asker.as_ref().filter(|task| task.parent_id.is_some())
    }
}

impl AskedCall {
    /// The call of a task that waits for its question.
    pub(crate) fn of(state: &TaskState, row: &QuestionRow) -> Option<Self> {
        let call = row.question.call?;
        let open = state.last_reply.open_calls.iter().find(|open| open.request.id == call)?;
        let arguments = serde_json::from_str(&open.request.arguments).ok()?;
        Some(Self { tool: open.request.name.clone(), arguments })
    }
}

/// The step of a workflow that a task works on: its goal is a prompt that begins as all of them do.
pub(crate) fn step_of(task: &TaskState) -> Option<&str> {
    let path = match task.created.workflow.as_deref()? {
        WorkflowPart::Agent { step, .. } | WorkflowPart::Program { step, .. } => step,
        WorkflowPart::Script(script) => &script.step,
        WorkflowPart::Run(_) => return None,
    };
    // The agent that resolves the conflicts of a merge works for that step.
    Some(path.split(".conflict.").next().unwrap_or(path))
}

/// What the sub-agent `child` of this task is called.
pub(crate) fn label(parent: &TaskState, child: TaskId) -> Option<String> {
    let child = child.to_string();
    let calls = parent.last_reply.open_calls.iter().filter_map(|open| match &open.stage {
        Stage::Started(call) => Some(call),
        Stage::Waiting | Stage::Asked(_) | Stage::Answered(..) => None,
    });
    let mut spawns =
        calls.filter(|call| matches!(&call.recovery, Recovery::Reattach { id } if *id == child));
    spawns.next()?.arguments.get("label")?.as_str().map(str::to_owned)
}
