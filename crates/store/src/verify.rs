//! Proving that a store is sound: its pages, the checksums of its journal, and that the kept projections equal the
//! rebuilt ones.
//!
//! What is wrong with one task is named, and the rest is still checked.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, Rows};
use windlass_core::text::with_causes;

use crate::error::Fault;
use crate::rebuild::{self, Projections};
use crate::{Error, contents, journal, projections, ready_index, row, schema};

/// Differences that are reported; more would say nothing new.
const MAX_DIFFERENCES: usize = 100;

/// One place where the store is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Difference {
    /// A part of the file cannot be read.
    Pages { problem: String },
    /// An event is not what was written, or is missing; the rest of its stream is not looked at.
    Event { stream: String, problem: String },
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
            Self::Pages { problem } => write!(f, "the file is damaged: {problem}"),
            Self::Event { problem, .. } => f.write_str(problem),
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

impl Projections<'_> {
    /// Looks through the file for pages that cannot be read, for at most `limit`; what is wrong is the error. Call it
    /// through [`Store::blocking`].
    pub fn check_pages(self, limit: Duration) -> Result<(), Error> {
        let ends = Instant::now() + limit;
        let database = self.store.dir().database();
        let mut connection = self.store.inner.readers.connect()?;
        connection
            .progress_handler(10_000, Some(move || Instant::now() >= ends))
            .map_err(|error| Error::sqlite(&database, error))?;
        match page_problems(&connection) {
            Ok(problems) => match problems.into_iter().next() {
                Some(problem) => Err(schema::corrupt(database, problem)),
                None => Ok(()),
            },
            // Its time is up, and nothing was found so far.
            Err(Fault::Sql(error)) if is_interrupted(&error) => Ok(()),
            Err(fault) => Err(fault.at(&database)),
        }
    }
}

impl Projections<'_> {
    /// Checks pages, checksums and projections; empty when all is well. Writes nothing. It replays the whole
    /// journal into a scratch copy: call it through [`Store::blocking`].
    pub fn verify(self) -> Result<Vec<Difference>, Error> {
        self.store.read(|tx| {
            let mut found: Vec<_> = match page_problems(tx) {
                Ok(problems) => {
                    problems.into_iter().map(|problem| Difference::Pages { problem }).collect()
                }
                Err(Fault::Sql(error)) => {
                    vec![Difference::Pages { problem: error.to_string() }]
                }
                Err(fault) => return Err(fault),
            };
            match tables(tx, &mut found) {
                // The pass over all events ended at a page: the tasks are looked at one by one.
                Err(Fault::Sql(_)) if !found.is_empty() => task_by_task(tx, &mut found)?,
                checked => checked?,
            }
            found.truncate(MAX_DIFFERENCES);
            Ok(found)
        })
    }
}

fn is_interrupted(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted)
}

/// What SQLite finds wrong with the file, in its words, with the name of the table.
fn page_problems(tx: &Connection) -> Result<Vec<String>, Fault> {
    let mut statement = tx.prepare("PRAGMA quick_check(20)")?;
    let lines = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let mut problems = Vec::new();
    for line in lines.iter().flat_map(|line| line.lines()).filter(|line| *line != "ok") {
        let root = line.strip_prefix("Tree ").and_then(|rest| rest.split(' ').next());
        let name: Option<String> = root.and_then(|root| {
            let sql = "SELECT type || ' `' || name || '`' FROM sqlite_schema WHERE rootpage = ?1";
            tx.query_row(sql, [root.parse::<i64>().ok()?], |row| row.get(0)).ok()
        });
        problems.push(match name {
            Some(name) => format!("{name}: {line}"),
            None => line.to_owned(),
        });
    }
    Ok(problems)
}

/// Replays the journal into a scratch copy and compares.
fn tables(tx: &Connection, found: &mut Vec<Difference>) -> Result<(), Fault> {
    let scratch = schema::open_scratch()?;
    scratch.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")?;
    let mut damaged: HashSet<String> = HashSet::new();
    rebuild::replay(tx, &scratch, |stream, fault| {
        let stream = String::from_utf8_lossy(stream).into_owned();
        found.push(damage(&stream, &fault));
        damaged.insert(stream);
        Ok(())
    })?;
    for fault in rebuild::cut_streams(tx)? {
        let Fault::Store(Error::DamagedEvent { stream, .. }) = &fault else { continue };
        if damaged.insert(stream.clone()) {
            found.push(damage(stream, &fault));
        }
    }
    for fault in contents::damaged_events(tx)? {
        if let Fault::Store(Error::DamagedEvent { stream, .. }) = &fault {
            found.push(damage(stream, &fault));
        }
    }
    for table in projections::TABLES {
        compare(table, tx, &scratch, &damaged, found)?;
        if found.len() >= MAX_DIFFERENCES {
            return Ok(());
        }
    }
    found.extend(ready_index::differences(tx)?);
    Ok(())
}

/// Reads every task's journal by itself, and names those that cannot be read.
fn task_by_task(tx: &Connection, found: &mut Vec<Difference>) -> Result<(), Fault> {
    for task in row::task_ids(tx, "SELECT id FROM tasks ORDER BY id", [])? {
        if let Err(fault) = journal::all_records(tx, task) {
            found.push(damage(&task.to_string(), &fault));
        }
    }
    Ok(())
}

fn damage(stream: &str, fault: &Fault) -> Difference {
    let problem = match fault {
        Fault::Store(error @ Error::DamagedEvent { .. }) => error.to_string(),
        Fault::Store(error) => format!("task `{stream}`: {}", with_causes(error)),
        Fault::Sql(error) => format!("task `{stream}` cannot be read: {error}"),
    };
    Difference::Event { stream: stream.to_owned(), problem }
}

/// A row of a projection: its key, and its columns without what is not projected.
struct ProjectedRow {
    key: Vec<Value>,
    columns: Vec<(String, Value)>,
}

impl ProjectedRow {
    fn next(rows: &mut Rows<'_>, names: &[String], keys: usize) -> rusqlite::Result<Option<Self>> {
        let Some(row) = rows.next()? else { return Ok(None) };
        let (mut key, mut columns) = (Vec::new(), Vec::new());
        for (index, name) in names.iter().enumerate() {
            let value: Value = row.get(index)?;
            if index < keys {
                key.push(value.clone());
            }
            if name != "epoch" {
                columns.push((name.clone(), value));
            }
        }
        Ok(Some(Self { key, columns }))
    }

    fn name(&self) -> String {
        self.key.iter().map(plain).collect::<Vec<_>>().join(" ")
    }

    /// Whether it is a row of one of these tasks.
    fn is_of(&self, tasks: &HashSet<String>) -> bool {
        self.columns
            .iter()
            .filter(|(name, _)| matches!(name.as_str(), "id" | "task_id" | "active_task_id"))
            .any(|(_, value)| matches!(value, Value::Text(text) if tasks.contains(text)))
    }
}

/// Walks through both copies of a table in the order of their keys.
fn compare(
    table: &'static str,
    kept: &Connection,
    rebuilt: &Connection,
    damaged: &HashSet<String>,
    found: &mut Vec<Difference>,
) -> Result<(), Fault> {
    let keys = if matches!(table, "deliverables" | "task_blockers") { 2 } else { 1 };
    let order = if keys == 2 { "1, 2" } else { "1" };
    let sql = format!("SELECT * FROM {table} ORDER BY {order}");
    let (mut kept, mut rebuilt) = (kept.prepare(&sql)?, rebuilt.prepare(&sql)?);
    let names: Vec<String> = kept.column_names().map(str::to_owned).collect();
    let (mut kept, mut rebuilt) = (kept.query([])?, rebuilt.query([])?);
    let mut held = ProjectedRow::next(&mut kept, &names, keys)?;
    let mut implied = ProjectedRow::next(&mut rebuilt, &names, keys)?;
    while found.len() < MAX_DIFFERENCES {
        let order = match (&held, &implied) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(held), Some(implied)) => by_key(&held.key, &implied.key),
        };
        let is_sound = |row: &&ProjectedRow| !row.is_of(damaged);
        match order {
            Ordering::Less => {
                let surplus = held.as_ref().filter(is_sound).map(ProjectedRow::name);
                found.extend(surplus.map(|key| Difference::Surplus { table, key }));
            }
            Ordering::Greater => {
                let missing = implied.as_ref().filter(is_sound).map(ProjectedRow::name);
                found.extend(missing.map(|key| Difference::Missing { table, key }));
            }
            Ordering::Equal => {
                if let (Some(held), Some(implied)) =
                    (held.as_ref().filter(is_sound), implied.as_ref().filter(is_sound))
                {
                    values(table, held, implied, found);
                }
            }
        }
        if order != Ordering::Greater {
            held = ProjectedRow::next(&mut kept, &names, keys)?;
        }
        if order != Ordering::Less {
            implied = ProjectedRow::next(&mut rebuilt, &names, keys)?;
        }
    }
    Ok(())
}

fn values(
    table: &'static str,
    held: &ProjectedRow,
    implied: &ProjectedRow,
    found: &mut Vec<Difference>,
) {
    for ((column, kept), (_, rebuilt)) in held.columns.iter().zip(&implied.columns) {
        if kept != rebuilt {
            let (kept, rebuilt) = (quoted(kept), quoted(rebuilt));
            let (key, column) = (held.name(), column.clone());
            found.push(Difference::Value { table, key, column, kept, rebuilt });
        }
    }
}

/// The order that SQLite sorts keys in: numbers before texts.
fn by_key(one: &[Value], other: &[Value]) -> Ordering {
    let pairs = one.iter().zip(other);
    let order = pairs.map(|(one, other)| match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => one.cmp(other),
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        (Value::Integer(_), _) => Ordering::Less,
        (_, Value::Integer(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    });
    order.fold(Ordering::Equal, Ordering::then)
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => windlass_core::hash::hex(bytes),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Null => plain(value),
        _ => format!("`{}`", plain(value)),
    }
}
