//! Which process owns a container, and what happens to containers that outlived their process.
//!
//! Invariants:
//! - A process that has a container for a task holds the kernel's lock on a file for it, which dies with it.
//! - Only containers of this very data directory are touched, and of those only the ones that no process claims.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{FlockOperation, flock};

use super::engine::Engine;
use super::identity;
use super::spec::{LABEL_DATA, LABEL_TASK};
use crate::Error;
use crate::workspace::canonical;

/// The right to a task's container, for as long as it lives.
#[derive(Debug)]
pub(super) struct ContainerClaim {
    path: PathBuf,
    _file: File,
}

impl ContainerClaim {
    /// Claims a task's container. One process may do so several times: what it does to it is one thing.
    pub(super) fn take(data: &Path, task: &str) -> Result<Arc<Self>, Error> {
        static HELD: Mutex<Option<HashMap<PathBuf, Weak<ContainerClaim>>>> = Mutex::new(None);
        let path = path(data, task);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.get_or_insert_default();
        held.retain(|_, claim| claim.strong_count() > 0);
        if let Some(claim) = held.get(&path).and_then(Weak::upgrade) {
            return Ok(claim);
        }
        let lock = || -> io::Result<File> {
            fs::create_dir_all(path.parent().unwrap_or(data))?;
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(file)
        };
        let file = lock().map_err(|source| Error::Setup {
            stage: format!("claim the container of `{task}`"),
            source,
        })?;
        let claim = Arc::new(Self { path: path.clone(), _file: file });
        held.insert(path, Arc::downgrade(&claim));
        Ok(claim)
    }
}

impl Drop for ContainerClaim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn path(data: &Path, task: &str) -> PathBuf {
    // A label may hold anything; a file's name may not.
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    let name: String = task.chars().map(plain).collect();
    data.join("locks").join(format!("{name}.container"))
}

fn is_claimed(data: &Path, task: &str) -> bool {
    // A lock that cannot be tested may be somebody's.
    match File::options().write(true).open(path(data, task)) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// The containers of this data directory that no process claims.
pub async fn orphans(engine: &Engine, data: &Path) -> Result<Vec<String>, Error> {
    let data = canonical(data)?;
    let identity = identity(&data)?;
    let all = containers(engine, &identity).await?;
    Ok(all.into_iter().filter(|(_, task)| !is_claimed(&data, task)).map(|(id, _)| id).collect())
}

/// Removes them. Returns how many.
pub async fn remove_orphans(engine: &Engine, data: &Path) -> Result<usize, Error> {
    let orphans = orphans(engine, data).await?;
    for id in &orphans {
        engine.remove(id).await?;
    }
    Ok(orphans.len())
}

/// Removes what an earlier process left of a task, so that its commands die before the task resumes (`docs/design.md` §15.7).
/// What is left of other tasks is removed on the way.
pub(super) async fn remove_stale(
    engine: &Engine,
    data: &Path,
    identity: &str,
    own: &str,
) -> Result<(), Error> {
    for (id, task) in containers(engine, identity).await? {
        if task == own {
            engine.remove(&id).await?;
        } else if !is_claimed(data, &task) {
            // It has ended already, or soon will: no reason not to start.
            let _ = engine.remove(&id).await;
        }
    }
    Ok(())
}

async fn containers(engine: &Engine, identity: &str) -> Result<Vec<(String, String)>, Error> {
    engine.labelled(&[format!("{LABEL_DATA}={identity}")], LABEL_TASK).await
}
