//! Spans of a run, with the names that OpenTelemetry has for generative AI (ES-323).
//!
//! They cost nothing where nobody collects them. What was said and done is in the trace, not here: a span
//! holds times, names and numbers.

use tracing::Span;
use tracing::field::Empty;
use windlass_core::id::{CallId, TaskId};

/// What a collector of these spans asks for.
pub const TARGET: &str = "windlass::spans";

/// One segment of a task.
pub(crate) fn agent(task: TaskId, model: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = %task,
        gen_ai.request.model = model,
        windlass.status = Empty,
    )
}

/// One request to the model.
pub(crate) fn chat(task: TaskId, model: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "chat",
        gen_ai.operation.name = "chat",
        gen_ai.conversation.id = %task,
        gen_ai.request.model = model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
    )
}

/// One call of a tool.
pub(crate) fn tool(name: &str, call: CallId) -> Span {
    tracing::info_span!(
        target: TARGET,
        "execute_tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = %call,
    )
}
