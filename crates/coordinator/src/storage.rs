//! Where the data is, and whether it is sound.

use std::path::PathBuf;

use windlass_core::id::TaskId;
use windlass_store::Difference;

use crate::{Coordinator, Error, Retention};

/// Where the data is, and whether it is sound.
#[derive(Clone, Copy)]
pub struct Storage<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl<'a> Storage<'a> {
    /// What is kept, and for how long.
    pub fn retention(self) -> Retention<'a> {
        Retention { coordinator: self.coordinator }
    }

    /// Where the tables disagree with the journal; nothing, if all is well.
    pub fn verify(self) -> Result<Vec<Difference>, Error> {
        Ok(self.coordinator.store.projections().verify()?)
    }

    /// Adds keys that nothing here may hold, each with its name.
    pub fn hide_secrets<'s>(self, named: impl IntoIterator<Item = (&'s str, &'s str)>) {
        self.coordinator.store.secrets().hide(named);
    }

    /// The database's file.
    pub fn database(self) -> PathBuf {
        self.coordinator.store.dir().database()
    }

    /// The file with the token that programs sign in with.
    pub fn token_file(self) -> PathBuf {
        self.coordinator.store.dir().token()
    }

    /// The file that says where the HTTP server of this data directory listens, while it does.
    pub fn address_file(self) -> PathBuf {
        self.coordinator.store.dir().root().join("server.url")
    }

    /// The directory of login links that were not used yet.
    pub fn login_directory(self) -> PathBuf {
        self.coordinator.store.dir().root().join("logins")
    }

    /// The file that says who sent requests to the HTTP server.
    pub fn access_log_file(self) -> PathBuf {
        self.coordinator.store.dir().root().join("access.log")
    }

    /// Whether the database answers, and has room for more.
    pub fn check(self) -> Result<(), Error> {
        let store = &self.coordinator.store;
        store.journal().end()?;
        match store.tasks().retention().has_room() {
            true => Ok(()),
            false => Err(windlass_store::Error::Full { path: self.database() }.into()),
        }
    }

    /// The directory with what people have begun to write on the page.
    pub fn drafts_directory(self) -> PathBuf {
        self.coordinator.store.dir().root().join("drafts")
    }

    /// The file with the browsers that were signed out before their cookies ended.
    pub fn signed_out_file(self) -> PathBuf {
        self.coordinator.store.dir().root().join("signed-out")
    }

    /// The directory with the messages that wait in sessions.
    pub fn queue_directory(self) -> PathBuf {
        self.coordinator.store.dir().root().join("queue")
    }

    /// The directory with the traces of a tree of agents.
    pub fn trace_directory(self, root: TaskId) -> PathBuf {
        self.coordinator.store.dir().traces().join(root.to_string())
    }

    /// The trace of a task.
    pub fn trace_file(self, task: TaskId) -> Result<PathBuf, Error> {
        let root = self.coordinator.tasks().root(task)?;
        Ok(self.trace_directory(root).join(format!("{task}.jsonl")))
    }
}
