//! `log_issue`: an issue that the task leaves open.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_core::id::IssueId;
use windlass_core::outcome::Outcome;
use windlass_core::planning::Severity;
use windlass_core::policy::{Class, Risk};
use windlass_store::NewIssue;
use windlass_tools::{Call, Category, Prepared, Tool, ToolContext};

use super::{PlanLog, not_written, note};

pub(super) struct LogIssue(pub PlanLog);

#[derive(Deserialize)]
struct Arguments {
    severity: Severity,
    description: String,
    owner: Option<String>,
}

impl Tool for LogIssue {
    fn name(&self) -> &str {
        "log_issue"
    }

    fn description(&self) -> &str {
        include_str!("descriptions/log_issue.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
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
                let issue = NewIssue {
                    id: IssueId::derived(&call.id.to_string(), "issue"),
                    project: log.project_name(),
                    plan: Some(log.place.name.clone()),
                    task: Some(log.place.key.clone()),
                    severity: given.severity,
                    owner: given.owner.or(log.place.agent.clone()),
                    description: given.description,
                };
                note("logs an issue", move || append(log, issue).boxed())
            });
        Box::pin(std::future::ready(prepared))
    }
}

async fn append(log: PlanLog, issue: NewIssue) -> Outcome {
    match log.store.planning().log_issue((log.now)(), issue).await {
        Ok(issue) => Outcome::ok(format!("Logged {} ({}).", issue.id, issue.severity)),
        Err(error) => not_written(&error),
    }
}
