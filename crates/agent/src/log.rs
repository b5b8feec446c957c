//! One log line per event that operators look for (ES-339…350). What is logged was committed.

use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::outcome::CallEnding;
use windlass_core::policy::{Decision, Risk};
use windlass_core::state::TaskState;
use windlass_core::text::one_line;

/// How much of an error's text is in a line.
const ERROR_WIDTH: usize = 200;

/// Logs an event of a task, given the state it led to.
pub fn line(task_id: TaskId, event: &Event, state: &TaskState) {
    match event {
        Event::AgentStart(start) => {
            tracing::info!(%task_id, goal = start.goal, model = start.model, "Task started");
        }
        Event::ToolResult(result) => {
            let (tool_name, duration_ms) = (&result.tool, result.duration_ms);
            match result.outcome.ending {
                CallEnding::Ok => {
                    tracing::debug!(%task_id, tool_name, duration_ms, "Tool executed")
                }
                CallEnding::Error
                | CallEnding::Denied
                | CallEnding::Cancelled
                | CallEnding::Unknown => {
                    let error = one_line(result.outcome.display_text(), ERROR_WIDTH);
                    tracing::warn!(%task_id, tool_name, error, "Tool failed");
                }
            }
        }
        Event::RiskCheck(check) => {
            let (tool_name, risk_level) = (&check.tool, check.risk);
            match check.decision {
                Decision::Deny => tracing::warn!(%task_id, tool_name, %risk_level, "Risk denied"),
                // The question is logged by the surface that shows it.
                Decision::Ask => {}
                // Reading is not worth a line (ES-250, ES-251).
                Decision::Allow if risk_level == Risk::Low => {}
                Decision::Allow => {
                    tracing::info!(%task_id, tool_name, %risk_level, "Risk allowed");
                }
            }
        }
        Event::InjectionReceived(injection) => {
            let injection_type = injection.injection_type;
            tracing::info!(%task_id, %injection_type, "Injection received");
        }
        Event::CompactionStart(start) if start.flushed => {
            let files_written = state.working_memory().memos.len();
            tracing::info!(%task_id, files_written, "Memory flush");
        }
        Event::CompactionEnd(end) => {
            let (tokens_before, tokens_after) = (end.tokens_before, end.tokens_after);
            tracing::info!(%task_id, tokens_before, tokens_after, "Compaction triggered");
        }
        Event::SubAgentSpawn(spawn) => {
            let (label, sub_agent_id) = (&spawn.label, spawn.task_id);
            tracing::info!(%task_id, label, %sub_agent_id, "Sub-agent spawned");
        }
        Event::SubAgentComplete(complete) => {
            let (label, status, duration_ms) =
                (&complete.label, complete.status, complete.duration_ms);
            tracing::info!(%task_id, label, %status, duration_ms, "Sub-agent completed");
        }
        Event::DoomLoopDetected(detected) => {
            tracing::warn!(%task_id, pattern = detected.pattern, "Doom loop detected");
        }
        Event::AgentEnd(result) => match &result.error_details {
            Some(error) => {
                // The text of a log line is its field `message`, so the error's message is in it.
                let (error_type, message) = (error.error_type, &error.message);
                tracing::error!(%task_id, %error_type, "Task failed: {message}");
            }
            None => {
                let (status, usage) = (result.status, &result.usage);
                let (iterations, duration_ms) = (usage.iterations, usage.duration_ms);
                tracing::info!(%task_id, %status, iterations, duration_ms, "Task completed");
            }
        },
        _ => {}
    }
}
