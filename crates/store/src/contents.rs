//! Long parts of events that many events share, kept once by the hash of their content (§15.28).
//!
//! The system prompt and the tools of an epoch are four fifths of a small task's journal, and the same in every
//! task. Their event keeps the hash of a list of parts; whoever reads the event sees it whole.
//!
//! Invariants:
//! - A content never changes: its key is the hash of its bytes, which is checked when it is read.
//! - A section of a prompt is a part of its own, so that what differs between tasks does not repeat the rest.

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};
use windlass_core::message::Prelude;

use crate::error::Fault;
use crate::journal::chain::{self, Hash, StoredRow};
use crate::row;

/// A part shorter than this is kept in the list itself: a row of its own would be longer.
const INLINE_BYTES: usize = 256;

/// What is wrong with an event whose prompt cannot be put together.
const DAMAGED_PROMPT: &str = "its prompt is missing or damaged";

/// What a prelude is put together from.
#[derive(Serialize, Deserialize)]
struct Parts {
    system: Vec<StoredText>,
    tools: StoredText,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredText {
    /// The text itself.
    Text(String),
    /// The hash of a content, in hexadecimal digits.
    Kept(String),
}

/// Keeps a prelude; returns the hash that names it.
pub(crate) fn keep(tx: &Connection, prelude: &Prelude) -> Result<Hash, Fault> {
    let system: Result<_, Fault> =
        sections(&prelude.system).into_iter().map(|section| part(tx, section)).collect();
    let parts = Parts { system: system?, tools: part(tx, &row::json(&prelude.tools))? };
    insert(tx, &row::json(&parts))
}

/// The body of an event with its prelude in it, as every reader knows it.
pub(crate) fn expand(
    tx: &Connection,
    stored: &StoredRow,
    mut body: String,
    hash: Hash,
) -> Result<String, Fault> {
    let missing = || stored.damaged(DAMAGED_PROMPT);
    let parts: Parts =
        serde_json::from_str(&get(tx, hash)?.ok_or_else(missing)?).map_err(|_| missing())?;
    let text = |part: StoredText| match part {
        StoredText::Text(text) => Ok(text),
        StoredText::Kept(hex) => {
            let hash = u128::from_str_radix(&hex, 16).map_err(|_| missing())?;
            get(tx, hash.to_be_bytes())?.ok_or_else(missing)
        }
    };
    let system: String = parts.system.into_iter().map(text).collect::<Result<_, Fault>>()?;
    let tools = text(parts.tools)?;
    if body.pop() != Some('}') {
        return Err(stored.damaged("it cannot be read"));
    }
    body.push_str(&format!(r#","prelude":{{"system":{},"tools":{tools}}}}}"#, row::json(&system)));
    Ok(body)
}

/// The first event of each content that is missing or damaged.
pub(crate) fn damaged_events(tx: &Connection) -> Result<Vec<Fault>, Fault> {
    let mut statement = tx.prepare(
        "SELECT journal.content, streams.name, journal.seq, min(journal.pos)
         FROM journal JOIN streams ON streams.id = journal.stream
         WHERE journal.content IS NOT NULL GROUP BY journal.content",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if !is_whole(tx, row.get(0)?)? {
            let (stream, seq): (String, i64) = (row.get(1)?, row.get(2)?);
            let seq = u64::try_from(seq).unwrap_or_default();
            found.push(chain::damaged(stream.as_bytes(), seq, row.get(3)?, DAMAGED_PROMPT));
        }
    }
    Ok(found)
}

/// Whether a list of parts and all that it names can be read.
fn is_whole(tx: &Connection, hash: Hash) -> Result<bool, Fault> {
    let list = get(tx, hash)?.and_then(|list| serde_json::from_str::<Parts>(&list).ok());
    let Some(Parts { system, tools }) = list else { return Ok(false) };
    for part in system.into_iter().chain([tools]) {
        if let StoredText::Kept(hex) = part {
            let hash = u128::from_str_radix(&hex, 16).map(u128::to_be_bytes);
            let Ok(hash) = hash else { return Ok(false) };
            if get(tx, hash)?.is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Removes what no event names; returns how many contents that were.
pub(crate) fn sweep(tx: &Connection) -> Result<usize, Fault> {
    let mut used: Vec<Hash> = Vec::new();
    let mut statement =
        tx.prepare("SELECT DISTINCT content FROM journal WHERE content IS NOT NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let hash: Hash = row.get(0)?;
        used.push(hash);
        let Some(list) = get(tx, hash)? else { continue };
        let Ok(parts) = serde_json::from_str::<Parts>(&list) else { continue };
        for part in parts.system.into_iter().chain([parts.tools]) {
            if let StoredText::Kept(hex) = part {
                used.extend(u128::from_str_radix(&hex, 16).map(u128::to_be_bytes));
            }
        }
    }
    let used: std::collections::HashSet<Hash> = used.into_iter().collect();
    let mut statement = tx.prepare("SELECT hash FROM contents")?;
    let all = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<Hash>, _>>()?;
    let mut removed = 0;
    for hash in all.into_iter().filter(|hash| !used.contains(hash)) {
        removed += tx.prepare_cached("DELETE FROM contents WHERE hash = ?1")?.execute([hash])?;
    }
    Ok(removed)
}

/// A text in pieces that begin with a heading.
fn sections(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices("\n#") {
        found.push(&text[from..=at]);
        from = at + 1;
    }
    found.push(&text[from..]);
    found
}

fn part(tx: &Connection, text: &str) -> Result<StoredText, Fault> {
    if text.len() < INLINE_BYTES {
        return Ok(StoredText::Text(text.to_owned()));
    }
    let hash = insert(tx, text)?;
    Ok(StoredText::Kept(format!("{:032x}", u128::from_be_bytes(hash))))
}

fn insert(tx: &Connection, text: &str) -> Result<Hash, Fault> {
    let hash = chain::hash(text.as_bytes());
    tx.prepare_cached("INSERT INTO contents (hash, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((hash, text))?;
    Ok(hash)
}

/// A content; `None` if it is missing, or is not what its hash says.
fn get(tx: &Connection, hash: Hash) -> Result<Option<String>, Fault> {
    let found: Option<Vec<u8>> = tx
        .prepare_cached("SELECT CAST(body AS BLOB) FROM contents WHERE hash = ?1")?
        .query_row([hash], |row| row.get(0))
        .optional()?;
    let found = found.filter(|body| chain::hash(body) == hash);
    Ok(found.and_then(|body| String::from_utf8(body).ok()))
}
