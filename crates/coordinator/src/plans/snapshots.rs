//! Snapshots: what one task leaves for the next, saved by it, by a command, or for it when a conversation is cleared.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use windlass_core::plan::StepStatus;
use windlass_core::state::TaskState;
use windlass_plan::{Snapshot, snapshot_file};
use windlass_store::PlanRow;

use super::{NO_PLAN, Plans};
use crate::Error;

/// A snapshot, and where it is.
#[derive(Clone, Debug)]
pub struct Saved {
    pub snapshot: Snapshot,
    /// Below the project.
    pub path: String,
}

impl Plans<'_> {
    /// Saves a snapshot of a task; every field must be there (PL-031, PL-047, PL-048).
    pub async fn save_snapshot(
        self,
        directory: &Path,
        task: &str,
        fields: &Map<String, Value>,
    ) -> Result<Saved, Error> {
        let plan = self.active(directory)?.map_or_else(|| NO_PLAN.to_owned(), |plan| plan.name);
        let snapshot = Snapshot::from_fields(&plan, task, self.coordinator.now(), fields);
        let project = self.project(directory);
        let snapshot = snapshot.map_err(|error| {
            let path =
                snapshot_file::path(&project, &plan, task).unwrap_or_else(|_| project.clone());
            Error::Snapshot(snapshot_file::Error::Invalid { path, error })
        })?;
        self.write(&project, snapshot).await
    }

    /// Reads the snapshot of a task, else what the tasks before it left; without a task, the one saved last.
    /// A file without one of the fields is refused (PL-032).
    pub fn load_snapshot(
        self,
        directory: &Path,
        task: Option<&str>,
    ) -> Result<Option<Snapshot>, Error> {
        let active = self.active(directory)?;
        let plan = active.as_ref().map_or(NO_PLAN, |plan| plan.name.as_str());
        let project = self.project(directory);
        let last = || -> Result<Option<String>, Error> {
            let project = project.display().to_string();
            Ok(self.coordinator.store.planning().last_snapshot(&project, plan)?)
        };
        let Some(task) = task.map(str::to_owned).map_or_else(last, |task| Ok(Some(task)))? else {
            return Ok(None);
        };
        if let Some(own) = snapshot_file::load(&project, plan, &task)? {
            return Ok(Some(own));
        }
        let before = active.map(|plan| self.snapshots_before(&plan, &task)).transpose()?;
        Ok(before.unwrap_or_default().pop())
    }

    /// What the tasks that a task depends on left, oldest first.
    pub(super) fn snapshots_before(
        self,
        plan: &PlanRow,
        task: &str,
    ) -> Result<Vec<Snapshot>, Error> {
        let tasks = super::run::tasks_of(plan)?;
        let before = tasks.iter().find(|one| one.id == task).map(|one| one.depends_on.as_slice());
        let project = PathBuf::from(&plan.project);
        let mut found = Vec::new();
        for name in before.unwrap_or_default() {
            found.extend(snapshot_file::load(&project, &plan.name, name)?);
        }
        found.sort_by_key(|snapshot| snapshot.timestamp);
        Ok(found)
    }

    /// Saves a snapshot of what a task's state says, unless the task has saved one itself (PL-033, PL-062).
    pub(crate) async fn save_if_missing(
        self,
        project: &Path,
        plan: &str,
        task: &str,
        state: &TaskState,
    ) -> Result<Option<Saved>, Error> {
        let own = snapshot_file::load(project, plan, task)?;
        if own.is_some_and(|own| own.timestamp >= state.created_at) {
            return Ok(None);
        }
        let snapshot = Snapshot::from_fields(plan, task, self.coordinator.now(), &fields_of(state));
        let path = project.to_owned();
        let snapshot = snapshot
            .map_err(|error| Error::Snapshot(snapshot_file::Error::Invalid { path, error }))?;
        self.write(project, snapshot).await.map(Some)
    }

    /// Before a conversation is cleared in a project with an active plan: what its task stands at (C-24).
    pub(crate) async fn save_before_clear(
        self,
        directory: &Path,
        state: &TaskState,
    ) -> Result<Option<Saved>, Error> {
        let Some(plan) = self.active(directory)? else { return Ok(None) };
        let key = match &state.created.plan {
            Some(own) => own.key.clone(),
            None => self.current_task(&plan)?.unwrap_or_else(|| "conversation".to_owned()),
        };
        self.save_if_missing(Path::new(&plan.project), &plan.name, &key, state).await
    }

    async fn write(self, project: &Path, snapshot: Snapshot) -> Result<Saved, Error> {
        let path = snapshot_file::save(&self.coordinator.store, project, &snapshot).await?;
        Ok(Saved { snapshot, path })
    }
}

/// What a state says of itself, in the fields of a snapshot.
fn fields_of(state: &TaskState) -> Map<String, Value> {
    let steps = state.plan.as_ref().map(|plan| plan.steps.as_slice()).unwrap_or_default();
    let open = |status| {
        matches!(status, StepStatus::Pending | StepStatus::InProgress | StepStatus::Blocked)
    };
    let left: Vec<&str> = steps
        .iter()
        .filter(|step| open(step.status) && !matches!(step.id.as_str(), "0" | "99"))
        .map(|step| step.description.as_str())
        .collect();
    let decisions: Vec<&str> =
        state.open_questions.iter().map(|question| question.question.as_str()).collect();
    let said = state.last_reply.final_text.as_deref().unwrap_or_default().trim();
    let intent = match (state.status.is_terminal(), left.is_empty(), said.is_empty()) {
        (true, _, false) => format!("The task before this one ended with: {said}"),
        (_, false, _) => left.join("; "),
        (_, true, _) => format!("Continue: {}", state.command().goal.trim()),
    };
    let fields = json!({
        "failingTests": [],
        "techDebt": [],
        "openDecisions": decisions,
        "nextTaskIntent": intent,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
