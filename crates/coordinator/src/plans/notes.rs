//! Issues and decisions: rows that whoever works on a plan leaves for the others (PL-011…013).

use std::path::{Path, PathBuf};

use windlass_core::id::{DecisionId, IssueId};
use windlass_core::planning::{Resolution, Severity};
use windlass_store::{Decision, Issue, NewDecision, NewIssue, PlanRow, PlanningFilter};

use super::Plans;
use crate::{Coordinator, Error};

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

/// Issues, decisions and snapshots of a project: what is kept of the work on a plan.
#[derive(Clone)]
pub struct Notes<'a> {
    pub(super) coordinator: &'a Coordinator,
    pub(super) project: PathBuf,
    /// The plan that is worked on; without one they are the project's alone.
    pub(super) plan: Option<PlanRow>,
}

impl<'a> Plans<'a> {
    /// What is kept of the work in a directory, on its active plan.
    pub fn notes(self, directory: &Path) -> Result<Notes<'a>, Error> {
        let plan = self.active(directory)?;
        Ok(Notes { coordinator: self.coordinator, project: self.project(directory), plan })
    }

    /// What is kept of the work on a plan.
    pub fn notes_of(self, plan: PlanRow) -> Notes<'a> {
        let project = PathBuf::from(&plan.project);
        Notes { coordinator: self.coordinator, project, plan: Some(plan) }
    }

    /// An issue of any project, by its id.
    pub fn issue(self, id: IssueId) -> Result<Issue, Error> {
        Ok(self.coordinator.store.planning().find_issue(&id.to_string())?)
    }
}

impl Notes<'_> {
    /// All issues, or all decisions, of the project; a caller narrows it.
    pub fn filter(&self) -> PlanningFilter {
        PlanningFilter { project: self.project_name(), ..PlanningFilter::default() }
    }

    pub(super) fn project_name(&self) -> String {
        self.project.display().to_string()
    }

    fn plan_name(&self) -> Option<String> {
        self.plan.as_ref().map(|plan| plan.name.clone())
    }

    /// Logs an issue of the plan, or of none (PL-023).
    pub async fn log_issue(&self, draft: IssueDraft) -> Result<Issue, Error> {
        let description = require_text("description", &draft.description)?;
        let now = self.coordinator.now();
        let issue = NewIssue {
            id: IssueId::new(now),
            project: self.project_name(),
            plan: self.plan_name(),
            task: check_optional_text("task", draft.task)?,
            severity: draft.severity,
            owner: check_optional_text("owner", draft.owner)?,
            description,
        };
        Ok(self.coordinator.store.planning().log_issue(now, issue).await?)
    }

    /// Issues, oldest first (PL-026, PL-044).
    pub fn issues(&self, filter: &PlanningFilter) -> Result<Vec<Issue>, Error> {
        Ok(self.coordinator.store.planning().issues(filter)?)
    }

    /// An issue of the project, by its id or a unique part of it. An issue of another project cannot be named here.
    pub fn find_issue(&self, named: &str) -> Result<Issue, Error> {
        let issue = self.coordinator.store.planning().find_issue(named)?;
        match issue.project == self.project_name() {
            true => Ok(issue),
            false => Err(windlass_store::Error::UnknownIssue(named.to_owned()).into()),
        }
    }

    /// Says what became of an issue (PL-071); the first resolution counts.
    pub async fn resolve_issue(&self, named: &str, to: Resolution) -> Result<Issue, Error> {
        let planning = self.coordinator.store.planning();
        let issue = self.find_issue(named)?;
        if !planning.resolve_issue(self.coordinator.now(), issue.id, to).await? {
            let resolution = issue.resolution.unwrap_or(to);
            return Err(Error::IssueResolved { issue: issue.id, resolution });
        }
        Ok(planning.find_issue(&issue.id.to_string())?)
    }

    /// Logs a decision of the plan, or of none (PL-027…029).
    pub async fn log_decision(&self, draft: DecisionDraft) -> Result<Decision, Error> {
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
            project: self.project_name(),
            plan: self.plan_name(),
            task: check_optional_text("task", draft.task)?,
            title: require_text("title", &draft.title)?,
            reasoning: require_text("reasoning", &draft.reasoning)?,
            alternatives,
        };
        Ok(self.coordinator.store.planning().log_decision(now, decision).await?)
    }

    /// Decisions, oldest first.
    pub fn decisions(&self, filter: &PlanningFilter) -> Result<Vec<Decision>, Error> {
        Ok(self.coordinator.store.planning().decisions(filter)?)
    }
}

fn require_text(field: &'static str, text: &str) -> Result<String, Error> {
    match text.trim() {
        "" => Err(Error::MissingField { field }),
        text => Ok(text.to_owned()),
    }
}

/// What need not be given must not be empty where it is.
fn check_optional_text(field: &'static str, text: Option<String>) -> Result<Option<String>, Error> {
    text.map(|text| require_text(field, &text)).transpose()
}
