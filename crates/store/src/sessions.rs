//! Reading sessions (ES-077).

use jiff::Timestamp;
use rusqlite::{Connection, Row};
use windlass_core::axes::Axes;
use windlass_core::id::{SessionId, TaskId};

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::{Error, Store};

/// A conversation and its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Identifies the session.
    pub id: SessionId,
    /// The user it belongs to, when that is known.
    pub user_id: Option<String>,
    /// The axes it began with.
    pub axes: Axes,
    /// Its tasks without a parent, oldest first.
    pub tasks: Vec<TaskId>,
    /// The task that a message goes to; the newest, while it has not ended.
    pub active_task_id: Option<TaskId>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Conversations and their tasks.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub(crate) store: &'a Store,
}

impl Sessions<'_> {
    /// The session with this id.
    pub fn get(self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached("SELECT * FROM sessions WHERE id = ?1")?;
            let mut rows = statement.query([id.to_string()])?;
            rows.next()?.map(|row| session_row(tx, row)).transpose()
        })
    }

    /// The newest sessions, at most `limit`.
    pub fn newest(self, limit: u32) -> Result<Vec<SessionRow>, Error> {
        self.store.read(|tx| {
            let mut statement =
                tx.prepare_cached("SELECT * FROM sessions ORDER BY updated_at DESC, id LIMIT ?1")?;
            let mut rows = statement.query([limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(session_row(tx, row)?);
            }
            Ok(found)
        })
    }

    /// How many other sessions of a user have live tasks of the service, when this one has none; 0 when it
    /// has some.
    pub fn count_other_live(self, user: &str, session: SessionId) -> Result<usize, Error> {
        self.store.read(|tx| {
            let count: i64 = tx
                .prepare_cached(
                    "WITH live AS (
                         SELECT DISTINCT session_id FROM tasks
                         WHERE driver = 'service' AND parent_id IS NULL
                           AND status NOT IN ('done', 'failed', 'cancelled'))
                     SELECT count(*) FROM live JOIN sessions ON sessions.id = live.session_id
                     WHERE sessions.user_id = ?1
                       AND NOT EXISTS (SELECT 1 FROM live WHERE session_id = ?2)",
                )?
                .query_row((user, session.to_string()), |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }
}

const ROOT_TASKS: &str =
    "SELECT id FROM tasks WHERE session_id = ?1 AND parent_id IS NULL ORDER BY created_at, id";

fn session_row(tx: &Connection, row: &Row<'_>) -> Result<SessionRow, Fault> {
    let of = Columns { table: "sessions", row };
    let id: SessionId = of.text("id")?;
    Ok(SessionRow {
        user_id: of.raw("user_id")?,
        axes: Axes {
            work_mode: of.text("work_mode")?,
            run_control: of.text("run_control")?,
            permission_profile: of.text("permission_profile")?,
            model_mode: of.text("model_mode")?,
            surface: of.text("surface")?,
        },
        tasks: row::task_ids(tx, ROOT_TASKS, [id.to_string()])?,
        active_task_id: of.maybe("active_task_id")?,
        created_at: of.text("created_at")?,
        updated_at: of.text("updated_at")?,
        id,
    })
}
