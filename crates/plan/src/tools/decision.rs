//! `log_decision`: a choice that the task made, why, and what else there was.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_core::id::DecisionId;
use windlass_core::outcome::Outcome;
use windlass_store::NewDecision;
use windlass_tools::Call;

use super::{Note, NoteKind, PlanLog, arguments, not_written};

/// A decision that a call logs.
pub(super) struct DecisionNote(NewDecision);

#[derive(Deserialize)]
struct Arguments {
    title: String,
    reasoning: String,
    alternatives: Vec<String>,
}

impl Note for DecisionNote {
    const TOOL: &'static str = "log_decision";
    const DESCRIPTION: &'static str = include_str!("descriptions/log_decision.md");
    const REASON: &'static str = "logs a decision";
    const KIND: NoteKind = NoteKind::Log;

    fn parameters() -> Value {
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

    fn read(log: &PlanLog, call: Call) -> Result<Self, Outcome> {
        let id = DecisionId::derived(&call.id.to_string(), "decision");
        let arguments: Arguments = arguments(call)?;
        Ok(Self(NewDecision {
            id,
            project: log.project_name(),
            plan: Some(log.place.name.clone()),
            task: Some(log.place.key.clone()),
            title: arguments.title,
            reasoning: arguments.reasoning,
            alternatives: arguments.alternatives,
        }))
    }

    async fn write(self, log: PlanLog) -> Outcome {
        match log.store.planning().log_decision((log.now)(), self.0).await {
            Ok(decision) => Outcome::ok(format!("Logged {}: {}.", decision.id, decision.title)),
            Err(error) => not_written(&error),
        }
    }
}
