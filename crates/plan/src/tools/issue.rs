//! `log_issue`: an issue that the task leaves open.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_core::id::IssueId;
use windlass_core::outcome::Outcome;
use windlass_core::planning::Severity;
use windlass_store::NewIssue;
use windlass_tools::Call;

use super::{Note, NoteKind, PlanLog, arguments, not_written};

/// An issue that a call logs.
pub(super) struct IssueNote(NewIssue);

#[derive(Deserialize)]
struct Arguments {
    severity: Severity,
    description: String,
    owner: Option<String>,
}

impl Note for IssueNote {
    const TOOL: &'static str = "log_issue";
    const DESCRIPTION: &'static str = include_str!("descriptions/log_issue.md");
    const REASON: &'static str = "logs an issue";
    const KIND: NoteKind = NoteKind::Log;

    fn parameters() -> Value {
        let severities: Vec<_> = Severity::ALL.iter().map(|one| one.as_str()).collect();
        json!({
            "type": "object",
            "properties": {
                "severity": { "type": "string", "enum": severities },
                "description": { "type": "string", "minLength": 1, "description": "What is wrong, and where." },
                "owner": { "type": "string", "description": "The team or the person that should look at it." },
            },
            "required": ["severity", "description"],
            "additionalProperties": false,
        })
    }

    fn read(log: &PlanLog, call: Call) -> Result<Self, Outcome> {
        let id = IssueId::derived(&call.id.to_string(), "issue");
        let arguments: Arguments = arguments(call)?;
        Ok(Self(NewIssue {
            id,
            project: log.project_name(),
            plan: Some(log.place.name.clone()),
            task: Some(log.place.key.clone()),
            severity: arguments.severity,
            owner: arguments.owner.or(log.place.agent.clone()),
            description: arguments.description,
        }))
    }

    async fn write(self, log: PlanLog) -> Outcome {
        match log.store.planning().log_issue((log.now)(), self.0).await {
            Ok(issue) => Outcome::ok(format!("Logged {} ({}).", issue.id, issue.severity)),
            Err(error) => not_written(&error),
        }
    }
}
