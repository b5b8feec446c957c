//! What a running task looks like right now (MS-140). Ephemeral: gone when the task is not driven, and
//! not part of the journal.

use jiff::Timestamp;
use rusqlite::Connection;
use windlass_core::id::TaskId;

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::words::OF_SERVICE;
use crate::{Error, Level, Owners, Store};

/// How a running task runs: its process, model and context.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeRow {
    /// The process that drives it.
    pub process_pid: u32,
    /// Its own git worktree, where a workflow or a parallel worker gave it one.
    pub worktree_path: Option<String>,
    /// The model it talks to right now.
    pub current_model: Option<String>,
    /// How full its context is.
    pub context_usage_percent: Option<f64>,
    /// When its process last reported.
    pub last_heartbeat_at: Timestamp,
}

/// The last heartbeat of the process that drives a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    pub task: TaskId,
    /// How many owners the task has had.
    pub epoch: u64,
    pub process_pid: u32,
    pub last_heartbeat_at: Timestamp,
}

/// How driven tasks run right now.
#[derive(Clone, Copy)]
pub struct Runtime<'a> {
    store: &'a Store,
}

impl<'a> Owners<'a> {
    /// How driven tasks run right now.
    pub fn runtime(self) -> Runtime<'a> {
        Runtime { store: self.store }
    }
}

impl Runtime<'_> {
    /// Writes how a task runs, replacing what was written before.
    pub async fn set(self, task: TaskId, runtime: RuntimeRow) -> Result<(), Error> {
        self.store.tasks().root_of(task)?;
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(
                    "INSERT OR REPLACE INTO task_runtime (task_id, process_pid, worktree_path,
                     current_model, context_usage_percent, last_heartbeat_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute((
                    task.to_string(),
                    runtime.process_pid,
                    runtime.worktree_path,
                    runtime.current_model,
                    runtime.context_usage_percent,
                    row::instant(runtime.last_heartbeat_at),
                ))?;
                Ok(())
            })
            .await
    }

    /// Reports that tasks still run in this process, in one transaction; returns those that do not, because
    /// another process has them or none.
    pub async fn heartbeats(
        self,
        tasks: Vec<TaskId>,
        pid: u32,
        at: Timestamp,
    ) -> Result<Vec<TaskId>, Error> {
        self.store
            .write(Level::Written, move |tx| {
                let mut beat = tx.prepare_cached(
                    "UPDATE task_runtime SET last_heartbeat_at = ?3
                     WHERE task_id = ?1 AND process_pid = ?2",
                )?;
                let mut lost = Vec::new();
                for task in tasks {
                    if beat.execute((task.to_string(), pid, row::instant(at)))? == 0 {
                        lost.push(task);
                    }
                }
                Ok(lost)
            })
            .await
    }

    /// Says that every worker of a process is alive (MS-144).
    pub async fn beat_workers(self, pid: u32, at: Timestamp) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(
                    "UPDATE task_runtime SET last_heartbeat_at = ?2
                     WHERE process_pid = ?1 AND worktree_path IS NOT NULL",
                )?
                .execute((pid, row::instant(at)))?;
                Ok(())
            })
            .await
    }

    /// Everybody who works in a worktree of their own, the oldest task first.
    pub fn workers(self) -> Result<Vec<(TaskId, RuntimeRow)>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM task_runtime WHERE worktree_path IS NOT NULL ORDER BY task_id",
            )?;
            let mut rows = statement.query([])?;
            let mut workers = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "task_runtime", row };
                workers.push((of.text("task_id")?, runtime_row(&of)?));
            }
            Ok(workers)
        })
    }

    /// The heartbeats of every task that a service should be driving.
    pub fn pulses(self) -> Result<Vec<Pulse>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(&format!(
                "SELECT tasks.id AS id, tasks.epoch AS epoch, process_pid, last_heartbeat_at
                 FROM task_runtime CROSS JOIN tasks ON tasks.id = task_runtime.task_id
                 WHERE {OF_SERVICE}"
            ))?;
            let mut rows = statement.query([])?;
            let mut pulses = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "task_runtime", row };
                pulses.push(Pulse {
                    task: of.text("id")?,
                    epoch: of.raw::<i64>("epoch")?.unsigned_abs(),
                    process_pid: of.raw("process_pid")?,
                    last_heartbeat_at: of.text("last_heartbeat_at")?,
                });
            }
            Ok(pulses)
        })
    }

    /// Writes how full a task's context is; nothing happens for a task that does not run.
    pub async fn set_context_usage(self, task: TaskId, percent: f64) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(
                    "UPDATE task_runtime SET context_usage_percent = ?2 WHERE task_id = ?1",
                )?
                .execute((task.to_string(), percent))?;
                Ok(())
            })
            .await
    }

    /// Removes the row of a task that this process no longer runs; an append that ends the task does so too.
    pub async fn clear(self, task: TaskId, pid: u32) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(
                    "DELETE FROM task_runtime WHERE task_id = ?1 AND process_pid = ?2",
                )?
                .execute((task.to_string(), pid))?;
                Ok(())
            })
            .await
    }

    /// How a task runs, if it does.
    pub fn get(self, task: TaskId) -> Result<Option<RuntimeRow>, Error> {
        self.store.read(|tx| {
            let mut statement =
                tx.prepare_cached("SELECT * FROM task_runtime WHERE task_id = ?1")?;
            let mut rows = statement.query([task.to_string()])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let of = Columns { table: "task_runtime", row };
            runtime_row(&of).map(Some)
        })
    }
}

fn runtime_row(of: &Columns<'_, '_>) -> Result<RuntimeRow, Fault> {
    Ok(RuntimeRow {
        process_pid: of.raw("process_pid")?,
        worktree_path: of.raw("worktree_path")?,
        current_model: of.raw("current_model")?,
        context_usage_percent: of.raw("context_usage_percent")?,
        last_heartbeat_at: of.text("last_heartbeat_at")?,
    })
}

pub(crate) fn clear(tx: &Connection, task: TaskId) -> Result<(), Fault> {
    tx.prepare_cached("DELETE FROM task_runtime WHERE task_id = ?1")?
        .execute([task.to_string()])?;
    Ok(())
}
