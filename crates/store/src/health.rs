//! What may be wrong with a data directory besides its journal, and what can be put right without knowing why.
//!
//! Invariants:
//! - Looking changes nothing.
//! - Only what can be made again is removed: locks nobody holds, projections and indexes, and files of tasks that do
//!   not exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::Connection;
use rustix::fs::statvfs;
use windlass_core::id::TaskId;

use crate::error::Fault;
use crate::lock::Lock;
use crate::{Error, Level, Store, projections, schema};

/// A lock file that belongs to no task or container is one of these, and stays for good.
const PERMANENT_LOCKS: [&str; 1] = ["service.lock"];

/// The soundness of a data directory.
#[derive(Clone, Copy)]
pub struct Health<'a> {
    pub(crate) store: &'a Store,
}

/// One table, index, trigger or view of the database that is not as the migrations make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaDrift {
    /// `table`, `index`, `trigger` or `view`.
    pub kind: String,
    pub name: String,
    pub problem: DriftKind,
    /// Whether it can be made again from the journal alone.
    pub is_derived: bool,
}

/// How a part of the schema differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftKind {
    Missing,
    Changed,
    /// No migration makes it.
    Unknown,
}

impl Health<'_> {
    /// The processes that work on this data directory, by the locks that they hold.
    pub fn processes(self) -> Result<Vec<u32>, Error> {
        let mut pids = Vec::new();
        for path in entries(&self.store.dir().locks())? {
            let holder = Lock::holder(&path).map_err(|source| Error::file(&path, source))?;
            // Whoever has only just taken a lock has not signed it yet.
            pids.extend(holder.filter(|pid| *pid != 0));
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Lock files that no process holds. A process that was killed leaves one.
    pub fn stale_locks(self) -> Result<Vec<PathBuf>, Error> {
        let mut stale = Vec::new();
        for path in entries(&self.store.dir().locks())? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if PERMANENT_LOCKS.contains(&&*name) {
                continue;
            }
            let holder = Lock::holder(&path).map_err(|source| Error::file(&path, source))?;
            if holder.is_none() {
                stale.push(path);
            }
        }
        Ok(stale)
    }

    /// Removes them; returns how many. One that a process has taken meanwhile stays.
    pub fn remove_stale_locks(self) -> Result<usize, Error> {
        let stale = self.stale_locks()?;
        // The lock is taken first, so that nobody else can hold what is removed with it.
        Ok(stale.iter().filter(|path| Lock::take(path).is_ok()).count())
    }

    /// Where the schema is not as this program makes it.
    pub fn schema_drift(self) -> Result<Vec<SchemaDrift>, Error> {
        let wanted = schema::objects_of_this_program(&self.store.dir().database())?;
        let found = self.store.read(|tx| schema::objects(tx).map_err(Into::into))?;
        Ok(drift(&wanted, &found))
    }

    /// Makes missing indexes, triggers, views and projections again; returns how many. Projections are empty then, until they
    /// are rebuilt.
    pub async fn restore_schema(self) -> Result<usize, Error> {
        let wanted = schema::objects_of_this_program(&self.store.dir().database())?;
        self.store
            .write(Level::Synced, move |tx| {
                let drifts = drift(&wanted, &schema::objects(tx)?);
                tx.pragma_update(None, "defer_foreign_keys", true)?;
                let mut restored = 0;
                for one in drifts.iter().filter(|one| one.is_derived) {
                    restore(tx, one, &wanted)?;
                    restored += 1;
                }
                // What belongs to a table that was made again was dropped with it.
                for one in drift(&wanted, &schema::objects(tx)?) {
                    if one.is_derived && one.problem == DriftKind::Missing {
                        restore(tx, &one, &wanted)?;
                    }
                }
                // The writer rolls back a transaction that changed no row, and creating a table changes none.
                tx.execute_batch(
                    "CREATE TEMP TABLE restored (row); INSERT INTO restored VALUES (1);
                     DROP TABLE restored;",
                )?;
                Ok(restored)
            })
            .await
    }

    /// The version of the database on the disk; a later program may have migrated it while this one runs.
    pub fn schema_version(self) -> Result<u32, Error> {
        self.store.inner.readers.read_one(|connection| Ok(schema::version(connection)?))
    }

    /// Directories of workspaces and traces whose task does not exist.
    pub fn orphaned_directories(self) -> Result<Vec<PathBuf>, Error> {
        let dir = self.store.dir();
        let mut orphans = Vec::new();
        for path in [dir.workspaces(), dir.traces()].iter().map(|path| entries(path)) {
            for path in path? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let Ok(task) = name.parse::<TaskId>() else { continue };
                if self.store.tasks().get(task)?.is_none() {
                    orphans.push(path);
                }
            }
        }
        Ok(orphans)
    }

    /// Removes traces whose task does not exist, and workspaces of such tasks that hold nothing; returns how many. What a
    /// workspace holds may be the only copy of somebody's work.
    pub fn remove_orphaned_directories(self) -> Result<usize, Error> {
        let traces = self.store.dir().traces();
        let remove = |path: &PathBuf| match path.starts_with(&traces) {
            true => fs::remove_dir_all(path).is_ok(),
            false => fs::remove_dir(path).is_ok(),
        };
        Ok(self.orphaned_directories()?.iter().filter(|path| remove(path)).count())
    }

    /// Removes outputs that are older than they are kept; returns how many files.
    pub fn remove_old_outputs(self, now: Timestamp) -> Result<u64, Error> {
        Ok(self.store.outputs().clean(now)?.files)
    }

    /// Bytes that are free on the disk of the data directory.
    pub fn free_bytes(self) -> u64 {
        let disk = statvfs(self.store.dir().root()).ok();
        disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

impl Store {
    /// What may be wrong besides the journal.
    pub fn health(&self) -> Health<'_> {
        Health { store: self }
    }
}

fn restore(tx: &Connection, one: &SchemaDrift, wanted: &schema::Objects) -> Result<(), Fault> {
    if one.problem == DriftKind::Changed {
        tx.execute_batch(&format!("DROP {} \"{}\"", one.kind, one.name))?;
    }
    if let Some((_, _, sql)) = wanted.get(&one.name) {
        tx.execute_batch(sql)?;
    }
    Ok(())
}

/// What is different, by name. Projections, and what belongs to a table, can be made again.
fn drift(wanted: &schema::Objects, found: &schema::Objects) -> Vec<SchemaDrift> {
    let is_derived =
        |kind: &str, table: &str| kind != "table" || projections::TABLES.contains(&table);
    let mut drifts = BTreeMap::new();
    for (name, (kind, table, sql)) in wanted {
        let problem = match found.get(name) {
            None => DriftKind::Missing,
            Some((_, _, there)) if !is_same(sql, there) => DriftKind::Changed,
            Some(_) => continue,
        };
        let is_derived = is_derived(kind, table);
        let (kind, name) = (kind.clone(), name.clone());
        drifts.insert(name.clone(), SchemaDrift { kind, name, problem, is_derived });
    }
    for (name, (kind, _, _)) in found.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
        let (kind, name) = (kind.clone(), name.clone());
        let problem = DriftKind::Unknown;
        drifts.insert(name.clone(), SchemaDrift { kind, name, problem, is_derived: false });
    }
    drifts.into_values().collect()
}

/// White space makes no difference: SQLite keeps a statement as it was written.
fn is_same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file(directory, error)),
    };
    let mut paths: Vec<_> =
        listed.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    Ok(paths)
}
