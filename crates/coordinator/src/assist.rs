//! Reasoning assist: prepares the prompt for a hard decision from what a task's journal knows (MS-201).
//!
//! Invariant: no model is asked unless the user's configuration lets the fast one answer (MS-227, O-13).

use std::path::Path;

use serde::Serialize;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::message::{Message, Prelude};
use windlass_core::plan::WorkingPlan;
use windlass_core::state::TaskState;
use windlass_core::text::one_line;
use windlass_model::Options;

use crate::{Coordinator, Error};

const PROMPT: &str = include_str!("prompts/reasoning.md");

/// Calls that the prompt names, the newest.
const MAX_CALLS: usize = 12;
/// Characters of a call or a result.
const WIDTH: usize = 160;
/// Tokens of an answer.
const MAX_OUTPUT_TOKENS: u32 = 2_000;

/// Prepares reasoning prompts.
#[derive(Clone, Copy)]
pub struct Assist<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// A prepared prompt, and what the fast model said to it, where it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assistance {
    pub task_id: TaskId,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Assist<'_> {
    /// The prompt for the next decision of a task. Nothing is asked.
    pub fn prompt(self, task: TaskId) -> Result<String, Error> {
        let state = self.coordinator.tasks().state(task)?;
        Ok(fill(&state, &self.coordinator.journals().of(task)?))
    }

    /// The same, answered by the fast model where the user's configuration says so.
    pub async fn assist(self, task: TaskId) -> Result<Assistance, Error> {
        let prompt = self.prompt(task)?;
        let state = self.coordinator.tasks().state(task)?;
        let directory = Path::new(&state.created.workspace);
        let unusable = |details| Error::Unusable { details: Box::new(details) };
        let model = self.coordinator.agents.reasoning_model(directory).map_err(unusable)?;
        let mut assistance = Assistance { task_id: task, prompt, model: None, answer: None };
        if let Some(model) = model {
            let prelude = Prelude { system: String::new(), tools: Vec::new() };
            let mut transcript = model.transcript(&prelude);
            transcript.push(&Message::user(assistance.prompt.clone()));
            let max_output_tokens = Some(MAX_OUTPUT_TOKENS);
            let options = Options { temperature: None, max_output_tokens, schema: None };
            let reply = model.reply(&transcript, &options, &mut |_| {}).await;
            let reply = reply.map_err(|error| unusable(windlass_agent::model_error(&error)))?;
            assistance.model = Some(model.name().to_string());
            let secrets = self.coordinator.store.secrets().known();
            assistance.answer = Some(secrets.redact(&reply.text).into_owned());
        }
        Ok(assistance)
    }
}

fn fill(state: &TaskState, journal: &[Record]) -> String {
    let plan = state.plan.as_ref().map(WorkingPlan::markdown);
    let calls = calls(journal);
    let values = [
        ("goal", state.command().goal.trim().to_owned()),
        ("state", format!("{} ({}), {}", state.status, state.reason, state.axes)),
        ("plan", plan.unwrap_or_else(|| "There is none.".to_owned())),
        ("calls", if calls.is_empty() { "Nothing yet.".to_owned() } else { calls }),
    ];
    // One pass over the template: a value that looks like a place is left as it is.
    let mut text = String::new();
    let mut rest = PROMPT;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        text.push_str(before);
        let value = values.iter().find(|(key, _)| *key == name);
        text.push_str(value.map_or("", |(_, value)| value.trim_end()));
        rest = tail;
    }
    text + rest
}

/// The last calls and their outcomes, oldest first.
fn calls(journal: &[Record]) -> String {
    let lines = journal.iter().filter_map(|record| match &record.event {
        Event::ToolCall(call) => Some(format!("- {} {}", call.tool, call.arguments)),
        Event::ToolResult(result) => {
            Some(format!("  {}: {}", result.outcome.ending, result.outcome.display_text()))
        }
        _ => None,
    });
    let lines: Vec<_> = lines.map(|line| one_line(&line, WIDTH)).collect();
    lines[lines.len().saturating_sub(2 * MAX_CALLS)..].join("\n")
}
