//! Why a task stands where it stands: what `/forensics` and `windlass forensics` show.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::text::one_line;

use super::Block;
use crate::{Coordinator, Error};

/// Events that are shown, the newest.
const LOG_EVENTS: usize = 30;
/// Characters of an event or a goal in a row.
const WIDTH: usize = 80;

/// The newest events of a task, a row each.
pub(super) fn log(coordinator: &Coordinator, task: TaskId) -> Result<Vec<Block>, Error> {
    let records = coordinator.tasks().journal(task)?;
    let from = records.len().saturating_sub(LOG_EVENTS);
    let row = |record: &Record| {
        let about = about(&record.event).unwrap_or_default();
        vec![clock(record.at), record.event.kind().to_owned(), one_line(&about, WIDTH)]
    };
    let rows = records[from..].iter().map(row).collect();
    Ok(vec![Block::heading(task.to_string()), Block::table(&["TIME", "EVENT", "WHAT"], &[], rows)])
}

/// Everything about a task that explains its state, then its newest events.
pub fn forensics(coordinator: &Coordinator, task: TaskId) -> Result<Vec<Block>, Error> {
    let details = coordinator.tasks().details(task)?;
    let (state, row) = (&details.state, &details.view.row);
    let mut fields = vec![
        ("task", task.to_string()),
        ("goal", one_line(&row.goal, WIDTH)),
        ("status", format!("{} ({})", row.status, row.reason)),
        ("axes", state.axes.to_string()),
        ("model", state.attempts.model.clone().unwrap_or_else(|| "none yet".to_owned())),
        ("turns", row.turns.to_string()),
        ("calls", state.spending.usage.tool_calls.to_string()),
        ("refused calls", details.refused_calls.to_string()),
        ("compactions", state.spending.usage.compactions.to_string()),
        ("retries", state.attempts.retries.to_string()),
        (
            "driven by",
            details
                .view
                .driven_by
                .map_or_else(|| "nobody".to_owned(), |pid| format!("process {pid}")),
        ),
    ];
    fields.extend(row.detail.clone().map(|detail| ("why", detail)));
    if let Some(error) = &state.error {
        fields.push(("error", format!("{}: {}", error.error_type, error.message)));
        fields.extend(error.diagnostic.clone().map(|text| ("diagnostic", text)));
    }
    let asked = details.view.questions.iter().map(|row| ("asks", row.question.question.clone()));
    fields.extend(asked);
    let mut blocks = vec![Block::fields(fields)];
    blocks.extend(log(coordinator, task)?);
    Ok(blocks)
}

fn clock(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// What is worth reading of an event, in a row of a list.
fn about(event: &Event) -> Option<String> {
    Some(match event {
        Event::TaskCreated(created) => created.command.goal.clone(),
        Event::StatusChanged(moved) => format!("{} → {} ({})", moved.from, moved.to, moved.reason),
        Event::AgentStart(start) => start.model.clone(),
        Event::AgentEnd(result) => result.status.to_string(),
        Event::ModeChanged(changed) => {
            format!("{} → {}: {}", changed.from, changed.to, changed.reason)
        }
        Event::PromptChanged(changed) => changed.axes.to_string(),
        Event::LlmResponse(response) => response.text.clone(),
        Event::ReasoningDropped(dropped) => dropped.reason.clone(),
        Event::RiskCheck(check) => format!("{} {}: {}", check.tool, check.decision, check.reason),
        Event::ToolCall(call) => format!("{} {}", call.tool, call.arguments),
        Event::ToolResult(result) => format!("{} {}", result.tool, result.outcome.ending),
        Event::DoomLoopDetected(detected) => detected.pattern.clone(),
        Event::InjectionReceived(injection) => injection.content.clone(),
        Event::QuestionAsked(question) => question.question.clone(),
        Event::QuestionAnswered(answered) => answered.answer.text.clone(),
        Event::QuestionClosed(closed) => closed.reason.clone(),
        Event::PlanAccepted(accepted) => format!("by {}", accepted.by),
        Event::VerificationStarted(started) => format!("attempt {}", started.attempt),
        Event::VerificationEnded(ended) => match ended.passed {
            true => "met".to_owned(),
            false => "not met".to_owned(),
        },
        Event::ReviewStarted(started) => started.task_id.to_string(),
        Event::PlanUpdated(plan) => format!("{} of {} steps done", plan.done(), plan.steps.len()),
        Event::DeliverablePublished(file) => file.filepath.clone(),
        Event::IntentClaimed(claimed) => claimed.claim.to_string(),
        Event::CheckpointMade(made) => made.checkpoint_ref.clone(),
        Event::SandboxLost(lost) => lost.reason.clone(),
        Event::SubAgentSpawn(spawn) => spawn.task.clone(),
        Event::SubAgentComplete(done) => done.status.to_string(),
        Event::CommandExited(exited) => format!("{}: {}", exited.command, exited.exit),
        Event::SandboxStarted(started) => started.kind.clone(),
        Event::SandboxEnded(ended) => ended.kind.clone(),
        Event::WorkflowStepStarted(_)
        | Event::WorkflowStepEnded(_)
        | Event::WorktreeChanged(_)
        | Event::MergeChanged(_)
        | Event::RunnerReported(_) => return event.workflow_words(),
        Event::LlmRequest(_)
        | Event::MemoryFlush(_)
        | Event::CompactionStart(_)
        | Event::CompactionProgress(_)
        | Event::CompactionEnd(_)
        | Event::BudgetHit(_) => return None,
    })
}
