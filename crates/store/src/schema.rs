//! Opening connections, and the numbered migrations that only go forward.
//!
//! Invariants:
//! - `user_version` is the number of the last migration, set in that migration's own transaction.
//! - A database of a later program, or of another program, is refused before anything is changed.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::Fault;
use crate::reader::ReadMode;
use crate::{DataDir, Error, Options, ready_index};

/// Migrations in order; the first is number 1. The statements of a published one are never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_journal.sql"),
    include_str!("migrations/0002_routing.sql"),
    include_str!("migrations/0003_bus.sql"),
    include_str!("migrations/0004_outputs.sql"),
    include_str!("migrations/0005_standing_rules.sql"),
    include_str!("migrations/0006_ready.sql"),
    include_str!("migrations/0007_integrity.sql"),
    include_str!("migrations/0008_sessions.sql"),
    include_str!("migrations/0009_memories.sql"),
    include_str!("migrations/0010_claims.sql"),
    include_str!("migrations/0011_repair_questions.sql"),
    include_str!("migrations/0012_skill_proposals.sql"),
    include_str!("migrations/0013_plans.sql"),
    include_str!("migrations/0014_commitments.sql"),
    include_str!("migrations/0015_streams.sql"),
    include_str!("migrations/0016_archived.sql"),
];

/// The newest database that this program reads.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// `WIND`: distinguishes our databases from those of other programs.
const APPLICATION_ID: i32 = 0x5749_4E44;

/// How long one process waits for another's transaction, which takes milliseconds.
pub const BUSY_WAIT: Duration = Duration::from_secs(10);

/// Switching to WAL is refused without waiting while another process opens the same new database.
const WAL_ATTEMPTS: u32 = 200;
const WAL_PAUSE: Duration = Duration::from_millis(10);

/// Prepared statements kept per connection; there are fewer than this in the crate.
const STATEMENTS: usize = 128;

/// Opens the database for writing, making or migrating it first.
pub(crate) fn open_writer(dir: &DataDir, options: &Options) -> Result<Connection, Error> {
    let path = &dir.database();
    // Looked at in this order: another process may just be making a new one.
    let was_made = dir.creation_mark().exists();
    if was_made && fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return Err(Error::Emptied { path: path.to_owned() });
    }
    make_private(path)?;
    open_companions(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = open(path, flags, BUSY_WAIT)?;
    prepare(&mut connection, path).map_err(|fault| fault.at(path))?;
    check_heads(&connection, path)?;
    if !was_made {
        // Only of use when the database is emptied one day.
        let _ = fs::write(dir.creation_mark(), MADE);
    }
    let failed = |error| Error::sqlite(path, error);
    if let Some(pages) = options.max_pages {
        connection.pragma_update(None, "max_page_count", pages).map_err(failed)?;
    }
    connection.busy_timeout(options.busy_wait).map_err(failed)?;
    Ok(connection)
}

/// What the mark says to whoever finds it.
const MADE: &str = "windlass has made the database beside this file.\n";

/// Opens the database, which exists and is migrated, for reading only.
pub(crate) fn open_reader(path: &Path, mode: ReadMode) -> Result<Connection, Error> {
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match mode {
        ReadMode::Shared => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            open(path, flags, BUSY_WAIT)?
        }
        ReadMode::ReadOnly => open(path, read_only, BUSY_WAIT)?,
        ReadMode::Immutable => {
            let name = path.to_string_lossy();
            let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let uri = format!("file:{name}?immutable=1");
            open(Path::new(&uri), read_only | OpenFlags::SQLITE_OPEN_URI, BUSY_WAIT)?
        }
    };
    connection.pragma_update(None, "query_only", true).map_err(|e| Error::sqlite(path, e))?;
    Ok(connection)
}

/// Whether a database that cannot be migrated is one of ours, whole and of this version.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), Error> {
    let failed = |error| Error::sqlite(path, error);
    let found = version(connection).map_err(failed)?;
    let application: i32 =
        connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(failed)?;
    let path = path.to_owned();
    if application != APPLICATION_ID {
        return Err(Error::NotADatabase { path });
    }
    match found.cmp(&SCHEMA_VERSION) {
        std::cmp::Ordering::Less => Err(Error::read_only(&path)),
        std::cmp::Ordering::Equal => check_heads(connection, &path),
        std::cmp::Ordering::Greater => Err(Error::Newer { path, found, known: SCHEMA_VERSION }),
    }
}

/// Reads the beginning of every table and index: damage there would let nothing be done, and is cheap to find. The
/// whole file is checked by `doctor`, and beside its work by a service.
fn check_heads(connection: &Connection, path: &Path) -> Result<(), Error> {
    let failed = |error| Error::sqlite(path, error);
    let mut statement = connection
        .prepare(
            "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
             WHERE rootpage > 0 AND type IN ('table', 'index') AND tbl_name NOT LIKE 'memories_fts%'",
        )
        .map_err(failed)?;
    let heads = statement
        .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
        .and_then(|rows| rows.collect::<rusqlite::Result<Vec<[String; 4]>>>())
        .map_err(failed)?;
    for [kind, name, table, sql] in heads {
        let sql = match kind.as_str() {
            "table" => format!("SELECT 1 FROM \"{name}\" NOT INDEXED LIMIT 1"),
            _ => {
                let condition = sql.rfind(" WHERE ").or_else(|| sql.rfind("\n    WHERE "));
                let condition = condition.map_or("", |at| &sql[at..]);
                format!("SELECT 1 FROM \"{table}\" INDEXED BY \"{name}\" {condition} LIMIT 1")
            }
        };
        match connection.prepare(&sql).and_then(|mut head| head.query([])?.next().map(drop)) {
            Ok(()) => {}
            Err(error) if Error::is_damage(&error) => {
                return Err(corrupt(path.to_owned(), format!("{kind} `{name}`")));
            }
            // An index that cannot be used for this question.
            Err(_) => {}
        }
    }
    Ok(())
}

/// The error for a database of which this part is damaged.
pub(crate) fn corrupt(path: PathBuf, part: String) -> Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    let source = rusqlite::Error::SqliteFailure(code, Some(part));
    Error::Corrupt { path, source: source.into() }
}

/// A file that SQLite keeps beside the database.
pub(crate) fn sibling_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// An empty database with the same tables that is gone when dropped.
pub(crate) fn open_scratch() -> rusqlite::Result<Connection> {
    let connection = Connection::open("")?;
    for migration in MIGRATIONS {
        connection.execute_batch(migration)?;
    }
    keep_statements(&connection)?;
    Ok(connection)
}

/// Makes an empty file that only its owner can read, if it is missing; SQLite gives its companions
/// the same mode.
fn make_private(path: &Path) -> Result<(), Error> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            Err(Error::Full { path: path.to_owned() })
        }
        Err(error) => Err(Error::file(path, error)),
    }
}

/// Makes what SQLite keeps beside the database as writable as the database is. A process that read it while it was
/// read-only has left these files read-only too, and SQLite then writes to neither.
fn open_companions(path: &Path) {
    let Ok(database) = fs::metadata(path) else { return };
    for companion in ["-shm", "-wal"].map(|suffix| sibling_file(path, suffix)) {
        let is_closed = |found: &fs::Metadata| found.permissions().readonly();
        if !database.permissions().readonly()
            && fs::metadata(&companion).is_ok_and(|f| is_closed(&f))
        {
            // Where that is refused, the error that follows names the file.
            let _ = fs::set_permissions(&companion, database.permissions());
        }
    }
}

/// Statements are prepared once. A plan that depended on the values of parameters would be made again whenever they
/// are bound.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn open(path: &Path, flags: OpenFlags, busy_wait: Duration) -> Result<Connection, Error> {
    let failed = |error| Error::sqlite(path, error);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(busy_wait).map_err(failed)?;
    keep_statements(&connection).map_err(failed)?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, path: &Path) -> Result<(), Fault> {
    if connection.is_readonly("main")? {
        return Err(Error::read_only(path).into());
    }
    let found = version(connection)?;
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(Error::NotADatabase { path: path.to_owned() }.into());
    }
    if found > SCHEMA_VERSION {
        let path = path.to_owned();
        return Err(Error::Newer { path, found, known: SCHEMA_VERSION }.into());
    }
    if tables == 0 {
        // So that the space of removed tasks can be given back without writing the whole file again.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    use_wal(connection)?;
    if found < SCHEMA_VERSION {
        migrate(connection)?;
    }
    Ok(())
}

/// The tables, indexes, triggers and views of a database by name: kind, table and statement.
pub(crate) type Objects = BTreeMap<String, (String, String, String)>;

/// What a database has, without what SQLite makes for itself.
pub(crate) fn objects(connection: &Connection) -> rusqlite::Result<Objects> {
    let mut statement = connection.prepare(
        "SELECT name, type, tbl_name, sql FROM sqlite_schema
         WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'",
    )?;
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))))?;
    rows.collect()
}

/// What this program's migrations make.
pub(crate) fn objects_of_this_program(path: &Path) -> Result<Objects, Error> {
    let made = || -> rusqlite::Result<Objects> {
        let fresh = Connection::open_in_memory()?;
        MIGRATIONS.iter().try_for_each(|migration| fresh.execute_batch(migration))?;
        objects(&fresh)
    };
    made().map_err(|error| Error::sqlite(path, error))
}

pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let mut attempt = 0;
    loop {
        let mode =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        attempt += 1;
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Err(error) if attempt >= WAL_ATTEMPTS => return Err(error),
            Ok(_) if attempt >= WAL_ATTEMPTS => {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    Some("the database does not switch to WAL".to_owned()),
                ));
            }
            Err(error) if !is_busy(&error) => return Err(error),
            Ok(_) | Err(_) => thread::sleep(WAL_PAUSE),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

fn migrate(connection: &mut Connection) -> Result<(), Fault> {
    // No task may be acknowledged in a schema that a power loss takes back.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again: another process may have been faster.
    let from = version(&transaction)? as usize;
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(from) {
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", index as u32 + 1)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    if from > 0 {
        // SQL adds the columns; the rule that fills them is not SQL.
        ready_index::refresh_all(&transaction)?;
    }
    Ok(transaction.commit()?)
}
