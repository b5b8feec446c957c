//! `save_snapshot`: what the task leaves for the next one (PL-062).

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_tools::{Call, Category, Prepared, Tool, ToolContext};

use super::{PlanLog, note};
use crate::Snapshot;
use crate::snapshot_file;

pub(super) struct SaveSnapshot(pub PlanLog);

impl Tool for SaveSnapshot {
    fn name(&self) -> &str {
        "save_snapshot"
    }

    fn description(&self) -> &str {
        include_str!("descriptions/save_snapshot.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        let text = json!({ "type": "string", "minLength": 1 });
        let object = |names: [&str; 3]| {
            let [first, second, third] = names;
            json!({
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { first: text.clone(), second: text.clone(), third: text.clone() },
                    "required": names,
                    "additionalProperties": false,
                },
            })
        };
        json!({
            "type": "object",
            "properties": {
                "failingTests": object(["file", "testName", "error"]),
                "techDebt": object(["file", "what", "whyDeferred"]),
                "openDecisions": { "type": "array", "items": text.clone() },
                "nextTaskIntent": text,
            },
            "required": ["failingTests", "techDebt", "openDecisions", "nextTaskIntent"],
            "additionalProperties": false,
        })
    }

    fn category(&self) -> Category {
        Category::ContextEngineering
    }

    fn min_class(&self) -> (Class, Risk) {
        (Class::Note, Risk::Low)
    }

    fn is_note(&self) -> bool {
        true
    }

    fn prepare(&self, _: &ToolContext, call: Call) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let log = self.0.clone();
        let prepared = snapshot(&log, &call.arguments).map(|snapshot| {
            note("saves the snapshot of the task", move || save(log, snapshot).boxed())
        });
        Box::pin(std::future::ready(prepared))
    }
}

fn snapshot(log: &PlanLog, arguments: &Value) -> Result<Snapshot, Outcome> {
    let fields = arguments.as_object().cloned().unwrap_or_default();
    let (plan, task) = (&log.place.name, &log.place.key);
    Snapshot::from_fields(plan, task, (log.now)(), &fields)
        .map_err(|error| Outcome::error(format!("It is no snapshot: {error}.")))
}

async fn save(log: PlanLog, snapshot: Snapshot) -> Outcome {
    match snapshot_file::save(&log.store, &log.project, &snapshot).await {
        Ok(path) => Outcome::ok(format!("Saved `{path}`. /clear is now safe.")),
        Err(error) => Outcome::failure(format!("The snapshot was not saved: {error}.")),
    }
}
