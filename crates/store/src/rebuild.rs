//! Rebuilding projections from the journal, and proving that the kept ones equal the rebuilt ones.
//!
//! Only tables that are a fold of the journal are touched ([`projections::TABLES`]). The mailbox, the outbox,
//! runtime rows, outputs, memories and who owns what are not, and stay (§15.2).

use std::collections::BTreeMap;
use std::fmt;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::error::Fault;
use crate::{Error, Level, Store, journal, projections, ready_index, schema};

/// Records replayed at a time, so that memory does not grow with the journal.
const PAGE: usize = 256;

/// Differences that are reported; more would say nothing new.
const MAX_DIFFERENCES: usize = 100;

/// One place where a projection and the journal disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Difference {
    /// The journal implies a row that is not there.
    Missing { table: &'static str, key: String },
    /// A row is there that the journal does not imply.
    Surplus { table: &'static str, key: String },
    /// A row holds another value than the journal implies.
    Value { table: &'static str, key: String, column: String, kept: String, rebuilt: String },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { table, key } => write!(f, "`{table}` does not have `{key}`"),
            Self::Surplus { table, key } => {
                write!(f, "`{table}` has `{key}`, which is not in the journal")
            }
            Self::Value { table, key, column, kept, rebuilt } => {
                write!(f, "`{table}` `{key}` has `{column}` {kept}, and the journal says {rebuilt}")
            }
        }
    }
}

/// The tables that are folds of the journal.
#[derive(Clone, Copy)]
pub struct Projections<'a> {
    pub(crate) store: &'a Store,
}

impl Projections<'_> {
    /// Empties the projections and replays the whole journal into them, in one transaction. Returns
    /// how many events that were.
    pub async fn rebuild(self) -> Result<u64, Error> {
        self.store
            .write(Level::Synced, |tx| {
                // Rows that stay refer to rows that come back.
                tx.pragma_update(None, "defer_foreign_keys", true)?;
                let epochs = epochs(tx)?;
                for table in projections::TABLES.iter().rev() {
                    tx.execute(&format!("DELETE FROM {table}"), [])?;
                }
                let events = replay(tx, tx)?;
                let mut restore = tx.prepare("UPDATE tasks SET epoch = ?2 WHERE id = ?1")?;
                for (task, epoch) in epochs {
                    restore.execute((task, epoch))?;
                }
                ready_index::refresh_all(tx)?;
                Ok(events)
            })
            .await
    }

    /// Replays the whole journal into a scratch copy and compares; empty when they agree. Writes
    /// nothing, and takes as long as a rebuild: call it through [`Store::blocking`].
    pub fn verify(self) -> Result<Vec<Difference>, Error> {
        self.store.read(|tx| {
            let scratch = schema::open_scratch()?;
            replay(tx, &scratch)?;
            let mut differences = Vec::new();
            for table in projections::TABLES {
                compare(table, &rows(tx, table)?, &rows(&scratch, table)?, &mut differences);
            }
            differences.extend(ready_index::differences(tx)?);
            differences.truncate(MAX_DIFFERENCES);
            Ok(differences)
        })
    }
}

fn epochs(tx: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    tx.prepare("SELECT id, epoch FROM tasks")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn replay(from: &Connection, into: &Connection) -> Result<u64, Fault> {
    let (mut pos, mut events) = (0, 0);
    loop {
        let page = journal::since(from, pos, PAGE)?;
        let Some(last) = page.last() else { return Ok(events) };
        pos = last.pos;
        events += page.len() as u64;
        for record in &page {
            projections::apply(into, record)?;
            projections::update_tail(into, record)?;
        }
    }
}

type Columns = BTreeMap<String, Value>;

/// A projection by key, without what is not projected.
fn rows(tx: &Connection, table: &str) -> rusqlite::Result<BTreeMap<String, Columns>> {
    let mut statement = tx.prepare(&format!("SELECT * FROM {table}"))?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let keys = if matches!(table, "deliverables" | "task_blockers") { 2 } else { 1 };
    let mut found = BTreeMap::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::new();
        let mut key = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let value: Value = row.get(index)?;
            if index < keys {
                key.push(plain(&value));
            }
            if name != "epoch" {
                columns.insert(name.clone(), value);
            }
        }
        found.insert(key.join(" "), columns);
    }
    Ok(found)
}

fn compare(
    table: &'static str,
    kept: &BTreeMap<String, Columns>,
    rebuilt: &BTreeMap<String, Columns>,
    differences: &mut Vec<Difference>,
) {
    for (key, implied) in rebuilt {
        let key = key.clone();
        let Some(held) = kept.get(&key) else {
            differences.push(Difference::Missing { table, key });
            continue;
        };
        for (column, rebuilt) in implied {
            let kept = held.get(column).unwrap_or(&Value::Null);
            if kept != rebuilt {
                let (kept, rebuilt) = (quoted(kept), quoted(rebuilt));
                let (key, column) = (key.clone(), column.clone());
                differences.push(Difference::Value { table, key, column, kept, rebuilt });
            }
        }
    }
    for key in kept.keys().filter(|key| !rebuilt.contains_key(*key)) {
        differences.push(Difference::Surplus { table, key: key.clone() });
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Null => plain(value),
        _ => format!("`{}`", plain(value)),
    }
}
