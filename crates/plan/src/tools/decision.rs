//! `log_decision`: a choice that the task made, why, and what else there was.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_core::id::DecisionId;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_store::NewDecision;
use windlass_tools::{Call, Category, Prepared, Tool, ToolContext};

use super::{PlanLog, not_written, note};

pub(super) struct LogDecision(pub PlanLog);

#[derive(Deserialize)]
struct Arguments {
    title: String,
    reasoning: String,
    alternatives: Vec<String>,
}

impl Tool for LogDecision {
    fn name(&self) -> &str {
        "log_decision"
    }

    fn description(&self) -> &str {
        include_str!("descriptions/log_decision.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "title": { "type": "string", "minLength": 1, "description": "What was decided." },
                "reasoning": { "type": "string", "minLength": 1, "description": "Why." },
                "alternatives": {
                    "type": "array",
                    "items": { "type": "string", "minLength": 1 },
                    "minItems": 1,
                    "description": "What else was possible.",
                },
            },
            "required": ["title", "reasoning", "alternatives"],
            "additionalProperties": false,
        })
    }

    fn category(&self) -> Category {
        Category::ContextEngineering
    }

    fn min_class(&self) -> (Class, Risk) {
        (Class::Note, Risk::Low)
    }

    fn is_always_allowed(&self) -> bool {
        true
    }

    fn prepare(&self, _: &ToolContext, call: Call) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let log = self.0.clone();
        let prepared = serde_json::from_value(call.arguments)
            .map_err(|error| Outcome::error(format!("The arguments do not fit: {error}.")))
            .map(|given: Arguments| {
                let decision = NewDecision {
                    id: DecisionId::derived(&call.id.to_string(), "decision"),
                    project: log.project_name(),
                    plan: Some(log.place.name.clone()),
                    task: Some(log.place.key.clone()),
                    title: given.title,
                    reasoning: given.reasoning,
                    alternatives: given.alternatives,
                };
                note("logs a decision", move || append(log, decision).boxed())
            });
        Box::pin(std::future::ready(prepared))
    }
}

async fn append(log: PlanLog, decision: NewDecision) -> Outcome {
    match log.store.planning().log_decision((log.now)(), decision).await {
        Ok(decision) => Outcome::ok(format!("Logged {}: {}.", decision.id, decision.title)),
        Err(error) => not_written(&error),
    }
}
