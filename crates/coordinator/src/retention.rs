//! Removing finished tasks with everything of theirs: journal, trace, the service's workspace, outputs, pictures.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use windlass_core::id::TaskId;
use windlass_store::{FinishedTree, KeepReason, RetentionPlan};

use crate::{Coordinator, Error};

/// Trees removed in one transaction, so that others do not wait for long.
const BATCH: usize = 100;

/// How often the configured age is applied, by whichever process comes first.
const PRUNE_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// When that was last done: the time of this file in the data directory.
const PRUNED_MARK: &str = ".pruned";

/// What of finished tasks is kept.
#[derive(Clone, Copy)]
pub struct Retention<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalReport {
    pub tasks: u64,
    pub events: u64,
    /// What the disk has got back.
    pub bytes: u64,
    /// What was published, and stays.
    pub published: Vec<PathBuf>,
}

impl Retention<'_> {
    /// How long finished tasks are kept; forever if not set.
    pub fn keep_time(self) -> Option<SignedDuration> {
        self.coordinator.store.tasks().retention().keep_time()
    }

    /// The size of the database.
    pub fn database_bytes(self) -> u64 {
        size(&self.coordinator.store.dir().database())
    }

    /// What would go of the tasks that ended longer ago than `age`, and what would stay.
    pub fn plan(self, age: SignedDuration) -> Result<RetentionPlan, Error> {
        let before = self.coordinator.now().checked_sub(age).unwrap_or(Timestamp::MIN);
        let mut plan = self.coordinator.store.tasks().retention().plan(before)?;
        let runs = self.coordinator.store.tasks().workflow_runs(u32::MAX)?;
        let runs: BTreeSet<TaskId> = runs.into_iter().map(|run| run.task).collect();
        for tree in std::mem::take(&mut plan.going) {
            // A linked worktree has a file in place of the directory.
            let is_worktree = tree.workspace.join(".git").is_file();
            let workflows = self.coordinator.workflows();
            match is_worktree || (runs.contains(&tree.root) && workflows.has_worktree(tree.root)?) {
                true => plan.staying.push((tree.root, KeepReason::Worktree)),
                false => plan.going.push(tree),
            }
        }
        Ok(plan)
    }

    /// Removes what the plan says.
    pub async fn remove(self, plan: &RetentionPlan) -> Result<RemovalReport, Error> {
        let store = &self.coordinator.store;
        let before = self.database_bytes();
        let mut removed = RemovalReport::default();
        if plan.going.is_empty() {
            return Ok(removed);
        }
        // They count on when their events are gone.
        self.coordinator.costs().keep_sums().await?;
        for trees in plan.going.chunks(BATCH) {
            let roots: Vec<TaskId> = trees.iter().map(|tree| tree.root).collect();
            let pruned = store.tasks().retention().remove(roots).await?;
            removed.tasks += pruned.tasks;
            removed.events += pruned.events;
            for tree in trees {
                // One that was resumed meanwhile keeps its files.
                if store.tasks().get(tree.root)?.is_none() {
                    self.remove_files(tree, &mut removed);
                }
            }
            for (command, end) in pruned
                .commands
                .iter()
                .flat_map(|command| [(command, "stdout"), (command, "stderr")])
            {
                let file = store.dir().outputs().join(format!("{command}_{end}.txt"));
                let bytes = size(&file);
                if fs::remove_file(file).is_ok() {
                    removed.bytes += bytes;
                }
            }
        }
        store.tasks().retention().compact().await?;
        removed.bytes += before.saturating_sub(self.database_bytes());
        removed.bytes += store.pictures().sweep(self.coordinator.now())?;
        Ok(removed)
    }

    /// Removes what is older than the configuration says, unless that was done less than a day ago.
    pub(crate) async fn remove_when_due(self) -> Result<(), Error> {
        let Some(age) = self.keep_time() else { return Ok(()) };
        let mark = self.coordinator.store.dir().root().join(PRUNED_MARK);
        let now = self.coordinator.now();
        let last = fs::metadata(&mark).and_then(|found| found.modified()).ok();
        let last = last.and_then(|last| Timestamp::try_from(last).ok());
        if last.is_some_and(|last| now.duration_since(last) < PRUNE_EVERY) {
            return Ok(());
        }
        fs::write(&mark, "").map_err(|source| windlass_store::Error::File {
            path: mark.clone(),
            source: source.into(),
        })?;
        let plan = self.plan(age)?;
        let removed = self.remove(&plan).await?;
        tracing::info!(tasks = removed.tasks, bytes = removed.bytes, "old tasks removed");
        Ok(())
    }

    /// Removes what the browsers of tasks that have ended would have been started again with: it holds cookies.
    pub(crate) fn forget_browsing(self) -> Result<(), Error> {
        let directory = self.coordinator.store.dir().browser_directory();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let Some(task) = name.and_then(|name| name.parse::<TaskId>().ok()) else { continue };
            let row = self.coordinator.store.tasks().get(task)?;
            if row.is_none_or(|row| row.status.is_terminal()) {
                // The next look removes what this one could not.
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// Removes a tree's trace and, where the service made it, its workspace, but for what was published.
    fn remove_files(self, tree: &FinishedTree, removed: &mut RemovalReport) {
        let dir = self.coordinator.store.dir();
        removed.bytes += remove_all(&dir.traces().join(tree.root.to_string()), &[]);
        if tree.workspace.starts_with(dir.workspaces()) && tree.workspace != dir.workspaces() {
            let published: Vec<PathBuf> =
                tree.published.iter().map(|file| place(&tree.workspace, file)).collect();
            removed.bytes += remove_all(&tree.workspace, &published);
            removed.published.extend(published.into_iter().filter(|file| file.exists()));
        }
    }
}

/// Where a published file is on the host; agents name it as they see it.
fn place(workspace: &Path, file: &str) -> PathBuf {
    workspace.join(file.strip_prefix("/workspace/").unwrap_or(file))
}

fn size(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |found| found.len())
}

/// What one may do with one's own directory.
const OWNER_RIGHTS: u32 = 0o700;

/// Removes a directory but for some files and what they are in; returns how many bytes that were. Links are removed,
/// never followed.
fn remove_all(path: &Path, keep: &[PathBuf]) -> u64 {
    if keep.iter().any(|kept| kept == path) {
        return 0;
    }
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    if !found.is_dir() {
        return if fs::remove_file(path).is_ok() { found.len() } else { 0 };
    }
    // An agent may have closed its own directory, and nothing can be removed from a closed one.
    if found.mode() & OWNER_RIGHTS != OWNER_RIGHTS {
        let _ = fs::set_permissions(path, Permissions::from_mode(found.mode() | OWNER_RIGHTS));
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        bytes += remove_all(&entry.path(), keep);
    }
    // Fails where something stays, which is meant.
    let _ = fs::remove_dir(path);
    bytes
}
