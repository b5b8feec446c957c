//! Read connections: each is borrowed for one query and does not block the writer.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::Error;
use crate::error::Fault;
use crate::schema;

/// Connections kept open between queries; more are opened when more are wanted at once.
const MAX_IDLE: usize = 4;

/// The read connections of one process.
pub(crate) struct Readers {
    path: PathBuf,
    mode: ReadMode,
    idle: Mutex<Vec<Connection>>,
}

/// How a database is opened for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Beside writers, with whom it shares a lock file.
    Shared,
    /// Without a right to write anything.
    ReadOnly,
    /// The same, where not even the lock file can be made: nobody writes.
    Immutable,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, mode: ReadMode::Shared, idle: Mutex::new(Vec::new()) }
    }

    /// Readers of a database that cannot be written.
    pub(crate) fn of_read_only(path: PathBuf) -> Result<Self, Error> {
        let has_wal = || {
            let wal = schema::sibling_file(&path, "-wal");
            std::fs::metadata(wal).is_ok_and(|wal| wal.len() > 0)
        };
        let mut refused = None;
        for mode in [ReadMode::ReadOnly, ReadMode::Immutable] {
            // What is only in the WAL would be missing.
            if mode == ReadMode::Immutable && has_wal() {
                break;
            }
            match schema::open_reader(&path, mode).and_then(|found| schema::check(&found, &path)) {
                Ok(()) => return Ok(Self { path, mode, idle: Mutex::new(Vec::new()) }),
                Err(error) => refused = Some(error),
            }
        }
        Err(match refused {
            Some(Error::Database { .. }) | None => Error::read_only(&path),
            Some(error) => error,
        })
    }

    /// Runs `query` in one read transaction, so that all it sees is of one moment.
    pub(crate) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let failed = |error| Error::sqlite(&self.path, error);
        let reader = self.take()?;
        let transaction = reader.unchecked_transaction().map_err(failed)?;
        let answer = query(&transaction).map_err(|fault| fault.at(&self.path))?;
        transaction.finish().map_err(failed)?;
        Ok(answer)
    }

    /// Runs a `query` of a single statement.
    pub(crate) fn read_one<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        query(&*self.take()?).map_err(|fault| fault.at(&self.path))
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> Result<Connection, Error> {
        schema::open_reader(&self.path, self.mode)
    }

    fn take(&self) -> Result<PooledConnection<'_>, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        Ok(PooledConnection { connection: Some(connection), home: self })
    }
}

struct PooledConnection<'a> {
    connection: Option<Connection>,
    home: &'a Readers,
}

impl Deref for PooledConnection<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a connection is taken out only on drop")
    }
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        let mut idle = self.home.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.extend(self.connection.take());
        }
    }
}
