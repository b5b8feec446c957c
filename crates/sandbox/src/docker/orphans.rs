//! Containers that outlived their process: found by label, and removed.
//!
//! Invariants:
//! - Only containers of this very data directory are touched.
//! - One whose task somebody drives is left alone; who that is, the caller knows.

use std::path::Path;

use super::engine::Engine;
use super::spec::{LABEL_DATA, LABEL_TASK};
use super::{canonical, identity};
use crate::Error;

/// Removes the containers of this data directory whose task, by `has_owner`, nobody drives. Returns how many.
pub async fn remove_orphans(
    engine: &Engine,
    data: &Path,
    has_owner: impl Fn(&str) -> bool,
) -> Result<usize, Error> {
    let identity = identity(&canonical(data)?)?;
    let found = engine.labelled(&[format!("{LABEL_DATA}={identity}")], LABEL_TASK).await?;
    let mut removed = 0;
    for (id, task) in found {
        if !has_owner(&task) {
            engine.remove(&id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Ends what an earlier process left of a task; its commands die before anyone goes on (`DESIGN.md` §15.7).
pub(super) async fn remove_of_task(
    engine: &Engine,
    identity: &str,
    task: &str,
) -> Result<(), Error> {
    let labels = [format!("{LABEL_DATA}={identity}"), format!("{LABEL_TASK}={task}")];
    for (id, _) in engine.labelled(&labels, LABEL_TASK).await? {
        engine.remove(&id).await?;
    }
    Ok(())
}
