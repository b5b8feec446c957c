//! `save_snapshot`: what the task leaves for the next one (PL-062).

use serde_json::{Value, json};
use windlass_core::outcome::Outcome;
use windlass_tools::Call;

use super::{Note, NoteKind, PlanLog};
use crate::Snapshot;
use crate::snapshot_file;

/// The snapshot that a call saves.
pub(super) struct SnapshotNote(Snapshot);

impl Note for SnapshotNote {
    const TOOL: &'static str = "save_snapshot";
    const DESCRIPTION: &'static str = include_str!("descriptions/save_snapshot.md");
    const REASON: &'static str = "saves the snapshot of the task";
    const KIND: NoteKind = NoteKind::Memory;

    fn parameters() -> Value {
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

    fn read(log: &PlanLog, call: Call) -> Result<Self, Outcome> {
        let fields = call.arguments.as_object().cloned().unwrap_or_default();
        let (plan, task) = (&log.place.name, &log.place.key);
        Snapshot::from_fields(plan, task, (log.now)(), &fields)
            .map(Self)
            .map_err(|error| Outcome::error(format!("It is not a snapshot: {error}.")))
    }

    async fn write(self, log: PlanLog) -> Outcome {
        match snapshot_file::save(&log.store, &log.project, &self.0).await {
            Ok(path) => Outcome::ok(format!("Saved `{path}`. /clear is now safe.")),
            Err(error) => Outcome::failure(format!("The snapshot was not saved: {error}.")),
        }
    }
}
