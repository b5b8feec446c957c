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
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::new(Vec::new()) }
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

    fn take(&self) -> Result<Reader<'_>, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_reader(&self.path)?,
        };
        Ok(Reader { connection: Some(connection), home: self })
    }
}

struct Reader<'a> {
    connection: Option<Connection>,
    home: &'a Readers,
}

impl Deref for Reader<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a connection is taken out only on drop")
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut idle = self.home.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.extend(self.connection.take());
        }
    }
}
