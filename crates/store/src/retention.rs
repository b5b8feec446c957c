//! Removing finished tasks, and giving their space back (§15.28).
//!
//! Invariants:
//! - A tree of tasks goes as a whole, and only when all of it has ended.
//! - What somebody may still need stays: unfinished work, what it waits for, open commitments, results that are not
//!   published yet. What a task has published stays as a row of its own.
//! - The projections are a fold of what is left of the journal, before and after.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use windlass_core::event::Driver;
use windlass_core::id::{SessionId, TaskId};

use crate::error::Fault;
use crate::journal::chain::{COLUMNS, Chain, StoredRow};
use crate::row::{self, Columns, task_ids};
use crate::words::{COMMITMENT_APPROVED, ENDED, LIVE, SCHEDULE_ENDED};
use crate::{Error, Level, Store, Tasks, contents, projections, schema};

/// Why a finished task stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// A task below it has not ended.
    UnfinishedBelow,
    /// An unfinished task waits for it.
    NeededBy(TaskId),
    /// Work that it has promised is not closed.
    OpenCommitment,
    /// Its result is not published yet.
    Unpublished,
    /// A schedule looks after it.
    Scheduled,
    /// Its work is in a git worktree that may not be merged.
    Worktree,
    /// A process works with it right now.
    Driven,
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnfinishedBelow => f.write_str("a task below it has not ended"),
            Self::NeededBy(task) => write!(f, "`{task}` waits for it"),
            Self::OpenCommitment => f.write_str("it has an open commitment"),
            Self::Unpublished => f.write_str("its result is not published yet"),
            Self::Scheduled => f.write_str("a schedule looks after it"),
            Self::Worktree => f.write_str("its work is in a git worktree"),
            Self::Driven => f.write_str("a process works with it"),
        }
    }
}

/// A finished task with all tasks below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedTree {
    pub root: TaskId,
    pub goal: String,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The directory it worked in.
    pub workspace: PathBuf,
    pub driver: Driver,
    /// The files that it has published, as it named them.
    pub published: Vec<String>,
}

/// What would go, and what would stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionPlan {
    /// Finished before the time that was asked for, the oldest first.
    pub going: Vec<FinishedTree>,
    /// As old, and kept for a reason.
    pub staying: Vec<(TaskId, KeepReason)>,
    /// Tasks that finished too recently to be removed.
    pub recent: u64,
    /// Tasks that have not finished.
    pub unfinished: u64,
}

/// What was removed from the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    pub tasks: u64,
    pub events: u64,
    /// Commands whose output may also be in a file.
    pub commands: Vec<String>,
}

/// What of finished tasks can be removed.
#[derive(Clone, Copy)]
pub struct Retention<'a> {
    pub(crate) store: &'a Store,
}

impl<'a> Tasks<'a> {
    /// What of finished tasks can be removed.
    pub fn retention(self) -> Retention<'a> {
        Retention { store: self.store }
    }
}

impl Retention<'_> {
    /// How long finished tasks are kept; forever if not set.
    pub fn keep_time(self) -> Option<SignedDuration> {
        self.store.inner.keep_tasks
    }

    /// What would go of the tasks that ended before `before`.
    pub fn plan(self, before: Timestamp) -> Result<RetentionPlan, Error> {
        let mut plan = self.store.read(|tx| plan(tx, before))?;
        let (mut going, mut driven) = (Vec::new(), Vec::new());
        for tree in std::mem::take(&mut plan.going) {
            match self.store.owners().driving_process(tree.root)? {
                None => going.push(tree),
                Some(_) => driven.push((tree.root, KeepReason::Driven)),
            }
        }
        plan.going = going;
        plan.staying.extend(driven);
        Ok(plan)
    }

    /// Removes these trees, in one transaction; what is gone, or no longer finished, is passed over.
    pub async fn remove(self, roots: Vec<TaskId>) -> Result<PruneReport, Error> {
        self.store.write(Level::Synced, move |tx| remove(tx, &roots)).await
    }

    /// Gives free pages back to the disk. A database that was made before that was possible is rewritten once.
    pub async fn compact(self) -> Result<(), Error> {
        self.store.write(Level::Written, |tx| contents::sweep(tx).map(drop)).await?;
        let Some(writer) = &self.store.inner.writer else {
            return Err(Error::read_only(&self.store.dir().database()));
        };
        writer.compact().await
    }

    /// The directories below `parent` that are named after tasks which do not exist.
    pub fn orphans(self, parent: PathBuf) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let task = name.to_str().and_then(|name| name.parse::<TaskId>().ok());
            if let Some(task) = task
                && self.store.tasks().get(task)?.is_none()
            {
                found.push(entry.path());
            }
        }
        Ok(found)
    }
}

fn plan(tx: &Connection, before: Timestamp) -> Result<RetentionPlan, Fault> {
    let count = |condition: &str| -> Result<u64, Fault> {
        let sql = format!("SELECT count(*) FROM tasks WHERE parent_id IS NULL AND {condition}");
        Ok(tx.query_row(&sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
    };
    let mut plan =
        RetentionPlan { unfinished: count(&format!("NOT {ENDED}"))?, ..RetentionPlan::default() };
    let ended = count(&ENDED.to_string())?;
    let sql = format!(
        "SELECT * FROM tasks WHERE parent_id IS NULL AND {ENDED} AND completed_at < ?1
         ORDER BY completed_at, id"
    );
    let mut statement = tx.prepare(&sql)?;
    let mut rows = statement.query([row::instant(before)])?;
    while let Some(row) = rows.next()? {
        let of = Columns { table: "tasks", row };
        let root: TaskId = of.text("id")?;
        match reason_to_keep(tx, root)? {
            Some(kept) => plan.staying.push((root, kept)),
            None => plan.going.push(FinishedTree {
                root,
                goal: of.raw("goal")?,
                ended_at: of.text("completed_at")?,
                workspace: PathBuf::from(of.raw::<String>("workspace")?),
                driver: of.text("driver")?,
                published: published_files(tx, root)?,
            }),
        }
    }
    plan.recent = ended.saturating_sub((plan.going.len() + plan.staying.len()) as u64);
    Ok(plan)
}

fn reason_to_keep(tx: &Connection, root: TaskId) -> Result<Option<KeepReason>, Fault> {
    let id = root.to_string();
    let holds = |sql: &str| -> Result<bool, Fault> {
        Ok(tx.prepare_cached(sql)?.query_row([&id], |row| row.get(0))?)
    };
    if holds(&format!(
        "SELECT EXISTS (SELECT 1 FROM tasks WHERE root_id = ?1
                        AND {LIVE})"
    ))? {
        return Ok(Some(KeepReason::UnfinishedBelow));
    }
    let dependents = task_ids(
        tx,
        &format!(
            "SELECT other.id FROM tasks JOIN task_blockers ON task_blockers.blocker = tasks.id
             JOIN tasks AS other ON other.id = task_blockers.task_id
         WHERE tasks.root_id = ?1 AND other.{LIVE}
         LIMIT 1"
        ),
        [&id],
    )?;
    if let Some(task) = dependents.first() {
        return Ok(Some(KeepReason::NeededBy(*task)));
    }
    for (kept, sql) in [
        (
            KeepReason::OpenCommitment,
            format!(
                "SELECT EXISTS (SELECT 1 FROM commitments
                         JOIN tasks ON tasks.id = commitments.task_id
                     WHERE tasks.root_id = ?1 AND state <> '{COMMITMENT_APPROVED}')"
            )
            .as_str(),
        ),
        (
            KeepReason::Unpublished,
            "SELECT EXISTS (SELECT 1 FROM outbox JOIN tasks ON tasks.command_id = outbox.command_id
                 WHERE tasks.root_id = ?1)",
        ),
        (
            KeepReason::Scheduled,
            format!(
                "SELECT EXISTS (SELECT 1 FROM schedules JOIN tasks ON tasks.id = schedules.task_id
                     WHERE tasks.root_id = ?1 AND schedules.state <> '{SCHEDULE_ENDED}')"
            )
            .as_str(),
        ),
        (
            KeepReason::Worktree,
            "SELECT EXISTS (SELECT 1 FROM task_runtime JOIN tasks ON tasks.id = task_runtime.task_id
                 WHERE tasks.root_id = ?1 AND worktree_path IS NOT NULL)",
        ),
    ] {
        if holds(sql)? {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

fn published_files(tx: &Connection, root: TaskId) -> Result<Vec<String>, Fault> {
    let mut statement = tx.prepare_cached(
        "SELECT filepath FROM deliverables JOIN tasks ON tasks.id = deliverables.task_id
         WHERE tasks.root_id = ?1 ORDER BY filepath",
    )?;
    let found = statement.query_map([root.to_string()], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Tables of rows that belong to a task, and go with it.
const OF_TASK: [&str; 13] = [
    "task_transitions",
    "questions",
    "deliverables",
    "injections",
    "task_runtime",
    "intent_claims",
    "task_scheduler",
    "task_blockers",
    "plan_tasks",
    "task_flags",
    "spawn_logs",
    "workflow_runs",
    "skill_evidence",
];

fn remove(tx: &Connection, roots: &[TaskId]) -> Result<PruneReport, Fault> {
    tx.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS going (id TEXT PRIMARY KEY, session_id TEXT) WITHOUT ROWID;
         DELETE FROM going;",
    )?;
    for root in roots {
        if reason_to_keep(tx, *root)?.is_none() {
            tx.prepare_cached(
                "INSERT OR IGNORE INTO going SELECT id, session_id FROM tasks WHERE root_id = ?1",
            )?
            .execute([root.to_string()])?;
        }
    }
    let mut pruned = PruneReport { commands: commands(tx)?, ..PruneReport::default() };
    // For people and programs that read the database: what was published outlives its task.
    tx.execute(
        "INSERT OR REPLACE INTO kept_deliverables
             SELECT task_id, tasks.goal, tasks.workspace, filepath, description, type, content,
                    size_bytes, published_at
             FROM deliverables JOIN tasks ON tasks.id = deliverables.task_id
             WHERE task_id IN (SELECT id FROM going)",
        [],
    )?;
    // Other changes of axes belong to the session's own stream, and stay with it.
    tx.execute(
        "DELETE FROM mode_transitions WHERE id IN
             (SELECT pos FROM events WHERE stream IN (SELECT id FROM going))",
        [],
    )?;
    let events = "DELETE FROM journal WHERE stream IN
         (SELECT streams.id FROM streams JOIN going ON going.id = streams.name)";
    pruned.events = tx.execute(events, [])? as u64;
    tx.execute("DELETE FROM streams WHERE name IN (SELECT id FROM going)", [])?;
    for table in OF_TASK {
        let sql = format!("DELETE FROM {table} WHERE task_id IN (SELECT id FROM going)");
        tx.execute(&sql, [])?;
    }
    let tasks = "DELETE FROM tasks WHERE id IN (SELECT id FROM going)";
    pruned.tasks = tx.execute(tasks, [])? as u64;
    refold_sessions(tx)?;
    tx.execute_batch("DELETE FROM going")?;
    Ok(pruned)
}

/// The commands whose outputs go.
fn commands(tx: &Connection) -> Result<Vec<String>, Fault> {
    let mut statement = tx.prepare(
        "SELECT DISTINCT command_id FROM spawn_logs WHERE task_id IN (SELECT id FROM going)",
    )?;
    let found = statement.query_map([], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Makes the rows of sessions a fold of what is left of them; a session without tasks goes.
fn refold_sessions(tx: &Connection) -> Result<(), Fault> {
    let mut statement = tx.prepare("SELECT DISTINCT session_id FROM going")?;
    let sessions: BTreeSet<String> =
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for session in sessions {
        let session: SessionId = row::parse("sessions", &session)?;
        let id = session.to_string();
        let left = task_ids(tx, "SELECT id FROM tasks WHERE session_id = ?1", [&id])?;
        if left.is_empty() {
            for sql in [
                "DELETE FROM journal WHERE stream = (SELECT id FROM streams WHERE name = ?1)",
                "DELETE FROM streams WHERE name = ?1",
                "DELETE FROM mode_transitions WHERE session_id = ?1",
                "DELETE FROM ratings WHERE session_id = ?1",
                "DELETE FROM sessions WHERE id = ?1",
            ] {
                tx.prepare_cached(sql)?.execute([&id])?;
            }
            continue;
        }
        refold_session(tx, &id)?;
    }
    Ok(())
}

fn refold_session(tx: &Connection, session: &str) -> Result<(), Fault> {
    let scratch = schema::open_scratch()?;
    let sql = format!(
        "SELECT {COLUMNS} FROM events
         WHERE stream IN (SELECT id FROM tasks WHERE session_id = ?1) OR stream = ?1 ORDER BY pos"
    );
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let stored = StoredRow::read(row)?;
        if let Some(of) = stored.session() {
            let end = Chain { seq: stored.seq, hash: stored.hash };
            projections::apply_session(&scratch, &stored.session_record(of)?)?;
            projections::set_session_tail(&scratch, session, end)?;
            continue;
        }
        if let Some(task) = stored.task()
            && projections::is_projected(&stored.kind)
        {
            let record = StoredRow { content: None, ..stored }.record(tx, task)?;
            projections::apply(&scratch, &record)?;
        }
    }
    let mut statement = scratch.prepare("SELECT * FROM sessions WHERE id = ?1")?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let values: Vec<rusqlite::types::Value> = statement.query_row([session], |row| {
        (0..names.len()).map(|index| row.get(index)).collect::<rusqlite::Result<_>>()
    })?;
    let marks: Vec<String> = (1..=names.len()).map(|number| format!("?{number}")).collect();
    let set: Vec<String> =
        names.iter().zip(&marks).map(|(name, mark)| format!("{name} = {mark}")).collect();
    let sql = format!("UPDATE sessions SET {} WHERE id = ?1", set.join(", "));
    tx.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values))?;
    Ok(())
}
