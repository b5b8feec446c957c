//! Memories: what is worth knowing beyond one task, found by ranked full-text search.

use jiff::Timestamp;
use windlass_core::id::{SessionId, TaskId};

use crate::row::{self, Columns};
use crate::search::any_of;
use crate::{Error, Level, Store};

/// One memory's text; longer texts belong into files.
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
        self.store
            .write(Level::Synced, move |tx| {
                tx.prepare_cached(
                    "INSERT INTO memories (task_id, session_id, text, tags, created_at, project)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute((
                    memory.task.map(|id| id.to_string()),
                    memory.session.map(|id| id.to_string()),
                    memory.text,
                    memory.tags.join(" "),
                    row::instant(at),
                    memory.project,
                ))?;
                // The trigger that feeds the index inserts too, but restores this when it ends.
                Ok(tx.last_insert_rowid())
            })
            .await
    }

    /// The memories that fit `query` best, at most `limit`: those of a project and those of all, or every one. Any text
    /// is a legal query.
    pub fn search(
        self,
        query: &str,
        project: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Memory>, Error> {
        let words = query.split(|letter: char| !letter.is_alphanumeric());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).take(MAX_WORDS).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id, memories.text AS text, task_id, created_at, -bm25(memories_fts) AS score
                 FROM memories_fts JOIN memories ON memories.id = memories_fts.rowid
                 WHERE memories_fts MATCH ?1 AND (?3 IS NULL OR project IS NULL OR project = ?3)
                 ORDER BY score DESC, id DESC LIMIT ?2",
            )?;
            let mut rows = statement.query((any_of(&words), limit, project))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "memories", row };
                found.push(Memory {
                    id: of.raw("id")?,
                    text: of.raw("text")?,
                    task: of.maybe("task_id")?,
                    created_at: of.text("created_at")?,
                    score: of.raw("score")?,
                });
            }
            Ok(found)
        })
    }
}
