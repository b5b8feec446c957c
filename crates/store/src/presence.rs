//! Whether a service runs on this data directory: each one holds a shared kernel lock on one file, which ends
//! with it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

use crate::{Error, Owners};

/// Held by a service while it runs.
#[derive(Debug)]
pub struct ServicePresence {
    _file: File,
}

impl Owners<'_> {
    /// Says that a service runs, until the result is dropped.
    pub fn announce_service(self) -> Result<ServicePresence, Error> {
        let path = self.service_lock();
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| Error::file(&path, error))?;
        // Nobody holds it exclusively for longer than a look.
        flock(&file, FlockOperation::LockShared)
            .map_err(|error| Error::file(&path, error.into()))?;
        Ok(ServicePresence { _file: file })
    }

    /// Whether a service or a worker runs on this data directory, on this machine.
    pub fn has_service(self) -> Result<bool, Error> {
        let path = self.service_lock();
        let file = match OpenOptions::new().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::file(&path, error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(Error::file(&path, error.into())),
        }
    }

    fn service_lock(self) -> PathBuf {
        self.store.dir().locks().join("service.lock")
    }
}
