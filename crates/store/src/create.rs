//! Creating tasks: the first event of a stream, synced before anybody gets its id.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use windlass_core::event::{Event, TaskCreated};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;

use crate::error::Fault;
use crate::journal::{self, Tail};
use crate::{Error, Level, Store, Tasks, projections, ready_index, row, session_stream};

/// What became of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// The task exists now.
    New(TaskId),
    /// The same command had created this task before.
    Already(TaskId),
}

impl Creation {
    /// The task of the submission.
    pub const fn task(self) -> TaskId {
        match self {
            Self::New(task) | Self::Already(task) => task,
        }
    }
}

impl Tasks<'_> {
    /// Creates a task and, when it is missing, its session; synced. A repeated `command_id` creates
    /// nothing and names the task that it created first.
    pub async fn create(self, at: Timestamp, created: TaskCreated) -> Result<Creation, Error> {
        let task = created.command.task_id;
        if created.parent.is_some() || created.root != task {
            return Err(Error::WrongTree { task, root: created.root });
        }
        let created = without_keys(self.store, created);
        self.store.write(Level::Synced, move |tx| create(tx, at, created)).await
    }
}

/// A goal may quote a key; what is journaled must not.
fn without_keys(store: &Store, created: TaskCreated) -> TaskCreated {
    match store.secrets().known().redact_event(Event::TaskCreated(Box::new(created.clone()))) {
        Event::TaskCreated(clean) => *clean,
        _ => created,
    }
}

pub(crate) fn create(
    tx: &Connection,
    at: Timestamp,
    created: TaskCreated,
) -> Result<Creation, Fault> {
    let task = created.command.task_id;
    let existing: Option<String> = tx
        .prepare_cached("SELECT id FROM tasks WHERE command_id = ?1")?
        .query_row([created.command.command_id.to_string()], |row| row.get(0))
        .optional()?;
    if let Some(existing) = existing {
        return Ok(Creation::Already(row::parse("tasks", &existing)?));
    }
    let exists: bool = tx
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1)")?
        .query_row([task.to_string()], |row| row.get(0))?;
    if exists {
        return Err(Error::TaskExists(task).into());
    }
    let root = created.root;
    let event = Event::TaskCreated(Box::new(created));
    let mut tail = Tail::default();
    let record = journal::append(tx, task, at, event, &mut tail)?;
    projections::update_tail(tx, &record, &tail)?;
    session_stream::follow_creation(tx, &record)?;
    ready_index::follow(tx, root, task, TaskStatus::Todo, &[record])?;
    Ok(Creation::New(task))
}
