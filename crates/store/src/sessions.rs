//! Reading sessions (ES-077).

use jiff::Timestamp;
use rusqlite::{Connection, Row, Rows};
use serde::Serialize;
use windlass_core::axes::Axes;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::session::{Scope, Source};

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::words::OF_SERVICE;
use crate::{Error, Store, tasks};

/// A conversation and its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Identifies the session.
    pub id: SessionId,
    /// The user it belongs to, when that is known.
    pub user_id: Option<String>,
    /// The axes in force; later tasks start with them.
    pub axes: Axes,
    /// Whether a person stays in it.
    pub interactive: bool,
    /// The directory that its tasks work in, where that is a person's own.
    pub workspace: Option<String>,
    /// The model that a person has named.
    pub model: Option<String>,
    /// The task that the next message continues.
    pub conversation: Option<TaskId>,
    /// Its tasks without a parent, oldest first.
    pub tasks: Vec<TaskId>,
    /// The task that a message goes to; the newest, while it has not ended.
    pub active_task_id: Option<TaskId>,
    /// Whether a person has put it away.
    pub is_archived: bool,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Which sessions a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter<'a> {
    /// Those whose last task works in this directory; `None`: in any.
    pub workspace: Option<&'a str>,
    /// Those that were put away, instead of the others.
    pub archived: bool,
}

/// Where a list of sessions is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionPlace {
    pub updated_at: Timestamp,
    pub id: SessionId,
}

/// One change of a session's axes (MS-061).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeTransition {
    /// When it took effect.
    pub timestamp: Timestamp,
    pub from: Axes,
    pub to: Axes,
    pub reason: String,
    pub scope: Scope,
    pub source: Source,
    pub session_id: SessionId,
    /// The task at whose boundary it took effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}

/// Conversations and their tasks.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub(crate) store: &'a Store,
}

impl Sessions<'_> {
    /// The session with this id.
    pub fn get(self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.store.read(|tx| find(tx, id))
    }

    /// The changes of a session's axes, oldest first (MS-061).
    pub fn transitions(self, session: SessionId) -> Result<Vec<ModeTransition>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM mode_transitions WHERE session_id = ?1 ORDER BY id",
            )?;
            let mut rows = statement.query([session.to_string()])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(transition(&Columns { table: "mode_transitions", row })?);
            }
            Ok(found)
        })
    }

    /// The newest session in which a person worked in this directory, of those that they have not put away.
    pub fn newest_in(self, workspace: &str) -> Result<Option<SessionRow>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM sessions WHERE interactive AND workspace = ?1 AND NOT archived
                 ORDER BY updated_at DESC, id DESC LIMIT 1",
            )?;
            let mut rows = statement.query([workspace])?;
            rows.next()?.map(|row| session_row(tx, row)).transpose()
        })
    }

    /// Those that pass a filter and have a task, the last used first, at most `limit`. The query filters, so that no
    /// number of sessions elsewhere takes their place.
    pub fn list(self, filter: &SessionFilter<'_>, limit: u32) -> Result<Vec<SessionRow>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT sessions.* FROM sessions JOIN tasks ON tasks.id =
                     (SELECT id FROM tasks WHERE session_id = sessions.id AND parent_id IS NULL
                      ORDER BY created_at DESC, id DESC LIMIT 1)
                 WHERE sessions.archived = ?1 AND (?2 IS NULL OR tasks.workspace = ?2)
                 ORDER BY sessions.updated_at DESC, sessions.id DESC LIMIT ?3",
            )?;
            session_rows(tx, statement.query((filter.archived, filter.workspace, limit))?)
        })
    }

    /// The newest sessions, at most `limit`.
    pub fn newest(self, limit: u32) -> Result<Vec<SessionRow>, Error> {
        self.newest_after(None, None, limit)
    }

    /// The same, beginning after a place in that order: one user's, or everybody's.
    pub fn newest_after(
        self,
        user: Option<&str>,
        place: Option<SessionPlace>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM sessions
                 WHERE (?1 IS NULL OR updated_at < ?1 OR (updated_at = ?1 AND id > ?2))
                   AND (?4 IS NULL OR user_id = ?4)
                 ORDER BY updated_at DESC, id LIMIT ?3",
            )?;
            let at = place.map(|place| row::instant(place.updated_at));
            let id = place.map(|place| place.id.to_string());
            session_rows(tx, statement.query((at, id, limit, user))?)
        })
    }

    /// How many other sessions of a user have live tasks of the service, if this one has no live task; 0 if it
    /// has some.
    pub fn count_other_live(self, user: &str, session: SessionId) -> Result<usize, Error> {
        self.store.read(|tx| {
            let count: i64 = tx
                .prepare_cached(&format!(
                    "WITH live AS (
                         SELECT DISTINCT session_id FROM tasks
                         WHERE {OF_SERVICE})
                     SELECT count(*) FROM live JOIN sessions ON sessions.id = live.session_id
                     WHERE sessions.user_id = ?1
                       AND NOT EXISTS (SELECT 1 FROM live WHERE session_id = ?2)"
                ))?
                .query_row((user, session.to_string()), |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }
}

const ROOT_TASKS: &str =
    "SELECT id FROM tasks WHERE session_id = ?1 AND parent_id IS NULL ORDER BY created_at, id";

pub(crate) fn find(tx: &Connection, id: SessionId) -> Result<Option<SessionRow>, Fault> {
    let mut statement = tx.prepare_cached("SELECT * FROM sessions WHERE id = ?1")?;
    let mut rows = statement.query([id.to_string()])?;
    rows.next()?.map(|row| session_row(tx, row)).transpose()
}

fn transition(of: &Columns<'_, '_>) -> Result<ModeTransition, Fault> {
    let axes = |column| -> Result<Axes, Fault> {
        let text: String = of.raw(column)?;
        serde_json::from_str(&text)
            .map_err(|_| Error::Malformed { table: "mode_transitions", value: text }.into())
    };
    Ok(ModeTransition {
        timestamp: of.text("timestamp")?,
        from: axes("from_axes")?,
        to: axes("to_axes")?,
        reason: of.raw::<Option<String>>("reason")?.unwrap_or_default(),
        scope: of.text("scope")?,
        source: of.text("source")?,
        session_id: of.text("session_id")?,
        task_id: of.optional("task_id")?,
    })
}

fn session_rows(tx: &Connection, mut rows: Rows<'_>) -> Result<Vec<SessionRow>, Fault> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(session_row(tx, row)?);
    }
    Ok(found)
}

fn session_row(tx: &Connection, row: &Row<'_>) -> Result<SessionRow, Fault> {
    let of = Columns { table: "sessions", row };
    let id: SessionId = of.text("id")?;
    Ok(SessionRow {
        user_id: of.raw("user_id")?,
        axes: tasks::axes(&of)?,
        interactive: of.raw("interactive")?,
        workspace: of.raw("workspace")?,
        model: of.raw("model")?,
        conversation: of.optional("conversation")?,
        tasks: row::task_ids(tx, ROOT_TASKS, [id.to_string()])?,
        active_task_id: of.optional("active_task_id")?,
        is_archived: of.raw("archived")?,
        created_at: of.text("created_at")?,
        updated_at: of.text("updated_at")?,
        id,
    })
}
