//! Runs of workflows, as their tasks' journals have them: a projection.

use jiff::Timestamp;
use rusqlite::Connection;
use windlass_core::event::{Event, Record, WorkflowPart};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;

use crate::error::Fault;
use crate::row::{Columns, instant};
use crate::words::TODO;
use crate::{Error, ListPlace, Tasks};

/// One run of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRunRow {
    pub task: TaskId,
    pub workflow: String,
    pub status: TaskStatus,
    /// The step that began last.
    pub step: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Tasks<'_> {
    /// Runs of workflows, the newest first.
    pub fn workflow_runs(self, limit: u32) -> Result<Vec<WorkflowRunRow>, Error> {
        self.workflow_runs_after(None, None, limit)
    }

    /// The same, beginning after a place in that order: one user's, or everybody's.
    pub fn workflow_runs_after(
        self,
        user: Option<&str>,
        place: Option<ListPlace>,
        limit: u32,
    ) -> Result<Vec<WorkflowRunRow>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM workflow_runs
                 WHERE (?1 IS NULL OR created_at < ?1 OR (created_at = ?1 AND id > ?2))
                   AND (?4 IS NULL OR EXISTS (
                       SELECT 1 FROM tasks JOIN sessions ON sessions.id = tasks.session_id
                       WHERE tasks.id = workflow_runs.id AND sessions.user_id = ?4))
                 ORDER BY created_at DESC, id LIMIT ?3",
            )?;
            let at = place.map(|place| instant(place.created_at));
            let id = place.map(|place| place.id.to_string());
            let mut rows = statement.query((at, id, limit, user))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "workflow_runs", row };
                found.push(WorkflowRunRow {
                    task: of.text("id")?,
                    workflow: of.raw("workflow")?,
                    status: of.text("status")?,
                    step: of.raw("step")?,
                    created_at: of.text("created_at")?,
                    updated_at: of.text("updated_at")?,
                });
            }
            Ok(found)
        })
    }
}

/// Applies an event of a task to its run, if it is one.
pub(crate) fn apply(tx: &Connection, record: &Record) -> Result<(), Fault> {
    let (task, at) = (record.task.to_string(), instant(record.at));
    match &record.event {
        Event::TaskCreated(created) => {
            if let Some(WorkflowPart::Run(source)) = created.workflow.as_deref() {
                tx.prepare_cached(&format!(
                    "INSERT INTO workflow_runs (id, workflow, task_id, status,
                                                   created_at, updated_at)
                     VALUES (?1, ?2, ?1, '{TODO}', ?3, ?3)"
                ))?
                .execute((task, &source.name, at))?;
            }
        }
        Event::StatusChanged(moved) => {
            tx.prepare_cached(
                "UPDATE workflow_runs SET status = ?2, updated_at = ?3 WHERE id = ?1",
            )?
            .execute((task, moved.to.as_str(), at))?;
        }
        Event::WorkflowStepStarted(started) => {
            tx.prepare_cached("UPDATE workflow_runs SET step = ?2, updated_at = ?3 WHERE id = ?1")?
                .execute((task, &started.step, at))?;
        }
        // No column is derived from the other kinds.
        _ => {}
    }
    Ok(())
}
