//! A task's events, a line each, in words a person reads; `--json` and `trace` have everything.

use jiff::tz::TimeZone;
use windlass_core::event::{
    Event, LlmResponse, Record, StatusChanged, ToolCall, VerificationEnded,
};
use windlass_core::outcome::CallEnding;
use windlass_core::reasoning::Reasoning;
use windlass_core::shown::shown;
use windlass_core::text::one_line;

use crate::numbers::{count, plural, tokens};
use crate::tool_lines;

/// Columns before the words: number, time, kind.
const BEFORE: usize = 38;
/// Fewer than this say nothing.
const LEAST: usize = 30;
/// From here on there is room for a call's id beside its words; `windlass logs` names it too.
const ROOM_FOR_ID: usize = 60;

/// One line for an event: its number, when it was, its kind and what it says.
pub fn line(record: &Record, zone: &TimeZone, width: usize) -> String {
    let at = record.at.to_zoned(zone.clone()).strftime("%H:%M:%S");
    let room = width.saturating_sub(BEFORE).max(LEAST);
    let (kind, said) = (record.event.kind(), words(&record.event, room));
    format!("{:>5}  {at}  {kind:<20} {said}", record.seq).trim_end().to_owned()
}

/// What an event says, in one line of at most `room` characters.
pub fn words(event: &Event, room: usize) -> String {
    let said = match event {
        Event::ToolCall(call) => call_line(call, room),
        event => shown(summary(event).unwrap_or_else(|| event.parts().1).trim_end()),
    };
    one_line(&said, room)
}

/// A call, and its id where there is room: it is what `windlass outputs` takes, so it is there whole or not
/// at all.
fn call_line(call: &ToolCall, room: usize) -> String {
    if room < ROOM_FOR_ID {
        return tool_lines::call(&call.tool, &call.arguments, room);
    }
    let id = call.call.to_string();
    let room = room - id.len() - 2;
    format!("{}  {id}", tool_lines::call(&call.tool, &call.arguments, room))
}

/// What an event says; none where its data says it best.
fn summary(event: &Event) -> Option<String> {
    Some(match event {
        Event::TaskCreated(created) => created.command.goal.clone(),
        Event::StatusChanged(moved) => status(moved),
        Event::AgentStart(start) => format!("{} · {}", start.model, start.container),
        Event::LlmRequest(request) => {
            let tokens = count(request.estimated_tokens);
            format!("{}, about {tokens} tokens", plural(request.messages as u64, "message"))
        }
        Event::LlmResponse(response) => reply(response),
        Event::ReasoningDropped(dropped) => dropped.reason.clone(),
        Event::RiskCheck(check) => {
            // A tool may have the name of its class.
            let class = check.class.to_string();
            let class = if class == check.tool { String::new() } else { format!("{class}, ") };
            format!("{} {}: {class}{}: {}", check.decision, check.tool, check.risk, check.reason)
        }
        Event::ToolResult(result) => {
            let ending = match (result.outcome.exit_code, result.outcome.ending) {
                (Some(code), _) => format!("exit {code}"),
                (None, CallEnding::Ok) => "ok".to_owned(),
                (None, ending) => ending.to_string(),
            };
            // The first line of what a call printed says enough; its own name stands in front.
            let text = tool_lines::failure(&result.outcome);
            let said = text.strip_prefix(result.tool.as_str()).unwrap_or(&text).trim_start();
            let ms = result.duration_ms;
            match said {
                "" => format!("{} {ending} in {ms} ms", result.tool),
                said => format!("{} {ending} in {ms} ms: {said}", result.tool),
            }
        }
        Event::InjectionReceived(injection) => {
            let by = if injection.by.is_empty() { "" } else { " by " };
            format!("{}{by}{}: {}", injection.injection_type, injection.by, injection.content)
        }
        Event::QuestionAsked(question) => format!("{} ({})", question.question, question.id),
        Event::QuestionAnswered(answered) => {
            format!("{} ({})", answered.answer.text, answered.question)
        }
        Event::QuestionClosed(closed) => format!("{} ({})", closed.reason, closed.question),
        Event::PlanUpdated(plan) => format!("{} of {} steps done", plan.done(), plan.steps.len()),
        Event::DeliverablePublished(file) => format!("{}: {}", file.filepath, file.description),
        Event::IntentClaimed(claimed) => format!("will edit {}", claimed.claim),
        Event::CheckpointMade(made) => made.checkpoint_ref.clone(),
        Event::DoomLoopDetected(detected) => detected.pattern.clone(),
        Event::CommandExited(exited) => format!("{}: {}", exited.command, exited.exit),
        Event::SandboxStarted(started) => format!("{}: {}", started.kind, started.isolation),
        Event::SandboxLost(lost) => lost.reason.clone(),
        Event::SandboxEnded(ended) => ended.kind.clone(),
        Event::SubAgentSpawn(spawn) => format!("{} ({})", spawn.label, spawn.task_id),
        Event::SubAgentComplete(done) => {
            let said = done.error.as_deref().filter(|_| done.output.is_empty());
            format!("{} {}: {}", done.label, done.status, said.unwrap_or(&done.output))
        }
        Event::CompactionEnd(end) => format!(
            "{} summarized, {} kept, {} → {} tokens",
            plural(end.summarized_turns, "turn"),
            end.kept_turns,
            end.tokens_before,
            end.tokens_after
        ),
        Event::PlanAccepted(accepted) => {
            format!("{} accepted by {}", accepted.path, accepted.by)
        }
        Event::VerificationStarted(started) => {
            format!("attempt {}, {}", started.attempt, plural(started.checks.len(), "command"))
        }
        Event::VerificationEnded(ended) => verification(ended),
        Event::ReviewStarted(started) => format!("auditor {}", started.task_id),
        Event::ModeChanged(changed) => {
            let role = changed.role.map(|role| format!(" ({role})")).unwrap_or_default();
            format!("{} → {}{role}: {}", changed.from, changed.to, changed.reason)
        }
        Event::PromptChanged(changed) => format!("{}, {}", changed.axes, changed.model),
        Event::AgentEnd(result) => {
            let why = result.error_details.as_ref().map(|error| format!(": {}", error.message));
            let partial = if result.partial { " (partial)" } else { "" };
            format!("{}{partial}{}", result.status, why.unwrap_or_default())
        }
        Event::WorkflowStepStarted(_)
        | Event::WorkflowStepEnded(_)
        | Event::WorktreeChanged(_)
        | Event::MergeChanged(_)
        | Event::RunnerReported(_) => return event.workflow_words(),
        Event::ToolCall(_)
        | Event::CompactionStart(_)
        | Event::CompactionProgress(_)
        | Event::MemoryFlush(_)
        | Event::BudgetHit(_) => return None,
    })
}

/// What a completion contract came to: what is not met, by name.
pub fn verification(ended: &VerificationEnded) -> String {
    let unmet = ended.results.iter().filter(|result| !result.passed);
    let unmet: Vec<_> = unmet.map(|result| format!("{}: {}", result.name, result.detail)).collect();
    match unmet.is_empty() {
        true => format!("{} met", plural(ended.results.len(), "requirement")),
        false => format!("not met: {}", unmet.join("; ")),
    }
}

fn status(moved: &StatusChanged) -> String {
    let why = moved.detail.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} → {} ({}){why}", moved.from, moved.to, moved.reason)
}

fn reply(response: &LlmResponse) -> String {
    let calls: Vec<_> = response.calls.iter().map(|call| call.name.as_str()).collect();
    let calls = if calls.is_empty() { String::new() } else { format!("[{}] ", calls.join(", ")) };
    let used = tokens(response.usage.input_tokens + response.usage.output_tokens);
    let thought = response.reasoning.as_ref().map(Reasoning::text).unwrap_or_default();
    // What it thinks stands for a text where there is none.
    let text = match (response.text.trim(), thought.trim()) {
        ("", "") => String::new(),
        ("", thought) => format!(": (thinks) {thought}"),
        (text, _) => format!(": {text}"),
    };
    format!("{calls}{used}{text}")
}
