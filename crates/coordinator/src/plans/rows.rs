//! Issues and decisions: rows that whoever works on a plan leaves for the others (PL-011…013).

use std::path::Path;

use windlass_core::id::{DecisionId, IssueId};
use windlass_core::planning::{Resolution, Severity};
use windlass_store::{Decision, Issue, NewDecision, NewIssue, PlanningFilter};

use super::Plans;
use crate::Error;

/// An issue to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueDraft {
    pub task: Option<String>,
    pub severity: Severity,
    pub owner: Option<String>,
    pub description: String,
}

/// A decision to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionDraft {
    pub task: Option<String>,
    pub title: String,
    pub reasoning: String,
    pub alternatives: Vec<String>,
}

impl Plans<'_> {
    /// Logs an issue of the active plan, or of none (PL-023).
    pub async fn log_issue(self, directory: &Path, draft: IssueDraft) -> Result<Issue, Error> {
        let description = needed("description", &draft.description)?;
        let now = self.coordinator.now();
        let issue = NewIssue {
            id: IssueId::new(now),
            project: self.project(directory).display().to_string(),
            plan: self.active(directory)?.map(|plan| plan.name),
            task: given("task", draft.task)?,
            severity: draft.severity,
            owner: given("owner", draft.owner)?,
            description,
        };
        Ok(self.coordinator.store.planning().log_issue(now, issue).await?)
    }

    /// Issues of a project, oldest first (PL-026, PL-044).
    pub fn issues(self, filter: &PlanningFilter) -> Result<Vec<Issue>, Error> {
        Ok(self.coordinator.store.planning().issues(filter)?)
    }

    /// Says what became of an issue (PL-071); the first resolution counts.
    pub async fn resolve_issue(self, named: &str, to: Resolution) -> Result<Issue, Error> {
        let planning = self.coordinator.store.planning();
        let issue = planning.find_issue(named)?;
        if !planning.resolve_issue(self.coordinator.now(), issue.id, to).await? {
            let resolution = issue.resolution.unwrap_or(to);
            return Err(Error::IssueResolved { issue: issue.id, resolution });
        }
        Ok(planning.find_issue(&issue.id.to_string())?)
    }

    /// Logs a decision of the active plan, or of none (PL-027…029).
    pub async fn log_decision(
        self,
        directory: &Path,
        draft: DecisionDraft,
    ) -> Result<Decision, Error> {
        let alternatives: Vec<String> = draft
            .alternatives
            .iter()
            .map(|one| one.trim().to_owned())
            .filter(|one| !one.is_empty())
            .collect();
        if alternatives.is_empty() {
            return Err(Error::MissingField { field: "alternatives" });
        }
        let now = self.coordinator.now();
        let decision = NewDecision {
            id: DecisionId::new(now),
            project: self.project(directory).display().to_string(),
            plan: self.active(directory)?.map(|plan| plan.name),
            task: given("task", draft.task)?,
            title: needed("title", &draft.title)?,
            reasoning: needed("reasoning", &draft.reasoning)?,
            alternatives,
        };
        Ok(self.coordinator.store.planning().log_decision(now, decision).await?)
    }

    /// Decisions of a project, oldest first.
    pub fn decisions(self, filter: &PlanningFilter) -> Result<Vec<Decision>, Error> {
        Ok(self.coordinator.store.planning().decisions(filter)?)
    }
}

fn needed(field: &'static str, text: &str) -> Result<String, Error> {
    match text.trim() {
        "" => Err(Error::MissingField { field }),
        text => Ok(text.to_owned()),
    }
}

/// What need not be given must not be empty where it is.
fn given(field: &'static str, text: Option<String>) -> Result<Option<String>, Error> {
    text.map(|text| needed(field, &text)).transpose()
}
