//! Snapshots: what one task leaves for the next, saved by it, by a command, or for it when a conversation is cleared.

use std::path::Path;

use serde_json::{Map, Value, json};
use windlass_core::plan::StepStatus;
use windlass_core::state::TaskState;
use windlass_plan::{Snapshot, snapshot_file};

use super::{NO_PLAN, Notes, Plans};
use crate::Error;

/// A snapshot, and where it is.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    pub snapshot: Snapshot,
    /// Below the project.
    pub path: String,
}

impl Notes<'_> {
    fn plan_key(&self) -> &str {
        self.plan.as_ref().map_or(NO_PLAN, |plan| plan.name.as_str())
    }

    /// Saves a snapshot of a task; every field must be there (PL-031, PL-047, PL-048).
    pub async fn save_snapshot(
        &self,
        task: &str,
        fields: &Map<String, Value>,
    ) -> Result<SnapshotFile, Error> {
        let snapshot = Snapshot::from_fields(self.plan_key(), task, self.coordinator.now(), fields);
        let snapshot = snapshot.map_err(|error| {
            let path = snapshot_file::path(&self.project, self.plan_key(), task)
                .unwrap_or_else(|_| self.project.clone());
            Error::Snapshot(snapshot_file::Error::Invalid { path, error })
        })?;
        self.write(snapshot).await
    }

    /// Reads the snapshot of a task, else what the tasks before it left; without a task, the one saved last.
    /// A file without one of the fields is refused (PL-032).
    pub fn load_snapshot(&self, task: Option<&str>) -> Result<Option<Snapshot>, Error> {
        let planning = self.coordinator.store.planning();
        let task = match task {
            Some(task) => Some(task.to_owned()),
            None => planning.last_snapshot(&self.project_name(), self.plan_key())?,
        };
        let Some(task) = task else { return Ok(None) };
        match snapshot_file::load(&self.project, self.plan_key(), &task)? {
            Some(own) => Ok(Some(own)),
            None => Ok(self.snapshots_before(&task)?.pop()),
        }
    }

    /// What the tasks that a task depends on left, oldest first.
    pub(super) fn snapshots_before(&self, task: &str) -> Result<Vec<Snapshot>, Error> {
        let Some(plan) = &self.plan else { return Ok(Vec::new()) };
        let tasks = super::run::tasks_of(plan)?;
        let before = tasks.iter().find(|one| one.id == task).map(|one| one.depends_on.as_slice());
        let mut found = Vec::new();
        for name in before.unwrap_or_default() {
            found.extend(snapshot_file::load(&self.project, &plan.name, name)?);
        }
        found.sort_by_key(|snapshot| snapshot.timestamp);
        Ok(found)
    }

    /// Saves a snapshot of what a task's state says, unless the task has saved one itself (PL-033, PL-062).
    pub(super) async fn save_if_missing(
        &self,
        task: &str,
        state: &TaskState,
    ) -> Result<Option<SnapshotFile>, Error> {
        let own = snapshot_file::load(&self.project, self.plan_key(), task)?;
        if own.is_some_and(|own| own.timestamp >= state.created_at) {
            return Ok(None);
        }
        let now = self.coordinator.now();
        let snapshot = Snapshot::from_fields(self.plan_key(), task, now, &fields_of(state));
        let path = self.project.clone();
        let snapshot = snapshot
            .map_err(|error| Error::Snapshot(snapshot_file::Error::Invalid { path, error }))?;
        self.write(snapshot).await.map(Some)
    }

    async fn write(&self, snapshot: Snapshot) -> Result<SnapshotFile, Error> {
        let store = &self.coordinator.store;
        let path = snapshot_file::save(store, &self.project, &snapshot).await?;
        Ok(SnapshotFile { snapshot, path })
    }
}

impl Plans<'_> {
    /// Before a conversation is cleared in a project with an active plan: the state of its task (C-24).
    pub(crate) async fn save_before_clear(
        self,
        directory: &Path,
        state: &TaskState,
    ) -> Result<Option<SnapshotFile>, Error> {
        let Some(plan) = self.active(directory)? else { return Ok(None) };
        let key = match &state.created.plan {
            Some(own) => own.key.clone(),
            None => self.current_task(&plan)?.unwrap_or_else(|| "conversation".to_owned()),
        };
        self.notes_of(plan).save_if_missing(&key, state).await
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
