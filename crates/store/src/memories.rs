//! Memories: what is worth knowing beyond one task, found by ranked full-text search.

use jiff::Timestamp;
use windlass_core::id::{SessionId, TaskId};

use crate::row::{self, Columns};
use crate::search::any_of;
use crate::{Error, Level, Store};

/// One memory's text; longer texts belong in files.
const MAX_MEMORY_BYTES: usize = 64 * 1024;

/// Words of a query that count; the rest of a very long one is left out.
const MAX_WORDS: usize = 64;

/// A memory to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    /// What is worth knowing.
    pub text: String,
    /// Words it should also be found by.
    pub tags: Vec<String>,
    /// The task it comes from.
    pub task: Option<TaskId>,
    /// The session it comes from.
    pub session: Option<SessionId>,
    /// The directory that it belongs to; it belongs to all without one.
    pub project: Option<String>,
}

/// A memory that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Identifies the memory.
    pub id: i64,
    /// What it says.
    pub text: String,
    /// The task it comes from.
    pub task: Option<TaskId>,
    /// When it was kept.
    pub created_at: Timestamp,
    /// How well it fits; larger is better, and only comparable within one search.
    pub score: f64,
}

/// For whom memories are looked for. What is `None` leaves none out.
struct Readers<'a> {
    project: Option<&'a str>,
    user: Option<&'a str>,
    session: Option<SessionId>,
}

/// What is worth knowing beyond one task.
#[derive(Clone, Copy)]
pub struct Memories<'a> {
    pub(crate) store: &'a Store,
}

impl Memories<'_> {
    /// Adds a memory and returns its id.
    pub async fn add(self, at: Timestamp, memory: NewMemory) -> Result<i64, Error> {
        let bytes = memory.text.len();
        if bytes > MAX_MEMORY_BYTES {
            return Err(Error::MessageTooLarge { bytes, limit: MAX_MEMORY_BYTES });
        }
        let secrets = self.store.secrets();
        let (text, tags) = (secrets.clean(&memory.text), secrets.clean(&memory.tags.join(" ")));
        self.store
            .write(Level::Synced, move |tx| {
                tx.prepare_cached(
                    "INSERT INTO memories (task_id, session_id, text, tags, created_at, project)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute((
                    memory.task.map(|id| id.to_string()),
                    memory.session.map(|id| id.to_string()),
                    text,
                    tags,
                    row::instant(at),
                    memory.project,
                ))?;
                // The trigger that feeds the index inserts too, but restores this when it ends.
                Ok(tx.last_insert_rowid())
            })
            .await
    }

    /// The memories that fit `query` best, at most `limit`: those of a project and those of all, or every one; of a
    /// user's tasks and of no task, or of everybody's. Any text is a legal query.
    pub fn search(
        self,
        query: &str,
        project: Option<&str>,
        user: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Memory>, Error> {
        self.find(query, Readers { project, user, session: None }, limit)
    }

    /// As `search`, for a task of a session in a project. What belongs to all projects and comes from a task is for
    /// the user of that task alone.
    pub fn recall(
        self,
        query: &str,
        project: &str,
        session: SessionId,
        limit: u32,
    ) -> Result<Vec<Memory>, Error> {
        let readers = Readers { project: Some(project), user: None, session: Some(session) };
        self.find(query, readers, limit)
    }

    fn find(self, query: &str, readers: Readers<'_>, limit: u32) -> Result<Vec<Memory>, Error> {
        let Readers { project, user, session } = readers;
        let words = query.split(|letter: char| !letter.is_alphanumeric());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).take(MAX_WORDS).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id, memories.text AS text, task_id, created_at, -bm25(memories_fts) AS score
                 FROM memories_fts JOIN memories ON memories.id = memories_fts.rowid
                 WHERE memories_fts MATCH ?1 AND (?3 IS NULL OR project = ?3 OR (project IS NULL AND (
                       ?4 IS NULL OR task_id IS NULL OR
                       (SELECT user_id FROM sessions WHERE id = memories.session_id)
                       IS (SELECT user_id FROM sessions WHERE id = ?4))))
                 AND (?5 IS NULL OR task_id IS NULL OR
                       (SELECT user_id FROM sessions WHERE id = memories.session_id) = ?5)
                 ORDER BY score DESC, id DESC LIMIT ?2",
            )?;
            let session = session.map(|id| id.to_string());
            let mut rows = statement.query((any_of(&words), limit, project, session, user))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "memories", row };
                found.push(Memory {
                    id: of.raw("id")?,
                    text: of.raw("text")?,
                    task: of.optional("task_id")?,
                    created_at: of.text("created_at")?,
                    score: of.raw("score")?,
                });
            }
            Ok(found)
        })
    }
}
