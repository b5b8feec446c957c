//! Spans of a run, by the semantic conventions that OpenTelemetry has for generative AI (ES-323).
//!
//! They cost nothing where nobody collects them. What was said and done is in the trace, not here: a span
//! holds times, names and numbers. Fields that begin with `otel.` become the span's name, kind and status.

use tracing::Span;
use tracing::field::Empty;
use windlass_core::error::ErrorType;
use windlass_core::event::LlmResponse;
use windlass_core::id::{CallId, TaskId};
use windlass_core::message::Finish;
use windlass_core::outcome::{CallEnding, Outcome};
use windlass_model::ModelName;

/// What a collector of these spans asks for.
pub const TARGET: &str = "windlass::spans";

/// Why the model stopped. The conventions want a list; who exports spans makes it one.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// One segment of a task.
pub(crate) fn agent(task: TaskId, model: &ModelName) -> Span {
    tracing::info_span!(
        target: TARGET,
        "invoke_agent",
        otel.name = "invoke_agent windlass",
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = model.provider(),
        gen_ai.agent.name = "windlass",
        gen_ai.conversation.id = %task,
        gen_ai.request.model = model.model(),
        windlass.status = Empty,
    )
}

/// One request to the model.
pub(crate) fn chat(task: TaskId, model: &ModelName) -> Span {
    tracing::info_span!(
        target: TARGET,
        "chat",
        otel.name = %format_args!("chat {}", model.model()),
        otel.kind = "client",
        otel.status_code = Empty,
        otel.status_description = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.provider(),
        gen_ai.conversation.id = %task,
        gen_ai.request.model = model.model(),
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
    )
}

/// What the model's reply says about itself.
pub(crate) fn record_reply(span: &Span, response: &LlmResponse) {
    let reason = match response.finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    };
    span.record("gen_ai.response.model", response.model.as_str());
    span.record(FINISH_REASONS, reason);
    span.record("gen_ai.usage.input_tokens", response.usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", response.usage.output_tokens);
}

/// There is no reply.
pub(crate) fn record_failure(span: &Span, error: ErrorType, message: &str) {
    record_error(span, error.as_str(), message);
}

/// One call of a tool.
pub(crate) fn tool(name: &str, call: CallId) -> Span {
    tracing::info_span!(
        target: TARGET,
        "execute_tool",
        otel.name = %format_args!("execute_tool {name}"),
        otel.kind = "internal",
        otel.status_code = Empty,
        otel.status_description = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = %call,
        "gen_ai.tool.type" = "function",
        "error.type" = Empty,
    )
}

/// The outcome of a call. Its words stay out: they are what the agent read.
pub(crate) fn record_outcome(span: &Span, outcome: &Outcome) {
    match outcome.ending {
        CallEnding::Ok => {}
        ending => record_error(span, ending.as_str(), ""),
    }
}

fn record_error(span: &Span, kind: &str, message: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", message);
}
