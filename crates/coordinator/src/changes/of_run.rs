//! What a workflow run has changed, as git has it: scripts and other programs change files too, and no call of ours
//! says which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windlass_core::event::{Event, MergeState, Record, TaskCreated, WorkflowPart, WorktreeChanged};
use windlass_core::id::TaskId;
use windlass_workflow::RunState;
use windlass_workflow::changes::{self, FileChange};
use windlass_workflow::git::{Git, GitError};

use super::{Changes, compare, is_own_file};
use crate::Error;
use crate::views::{ChangedFile, FileDiff};

impl Changes<'_> {
    /// Whether git says what a task has changed, whoever did it: that of a run whose steps work in worktrees.
    pub fn are_known_to_git(self, task: TaskId) -> Result<bool, Error> {
        Ok(self.of_run(task)?.is_some())
    }

    /// What a run has brought to other branches; where nothing is merged yet, what is in its worktree. `None` where the
    /// task is not a run, or git does not know.
    pub(super) fn of_run(self, task: TaskId) -> Result<Option<Vec<FileDiff>>, Error> {
        let Some(row) = self.coordinator.tasks().get(task)? else { return Ok(None) };
        // Of a long task only the first event is read to see this. One that is damaged says nothing.
        let made = self.coordinator.store.journal().created(task).ok().flatten();
        let is_run =
            |made: TaskCreated| matches!(made.workflow.as_deref(), Some(WorkflowPart::Run(_)));
        if made.is_some_and(|made| !is_run(made)) {
            return Ok(None);
        }
        let records = self.coordinator.journals().readable(task)?;
        let state = RunState::fold(records.iter().map(|record| &record.event));
        if state.worktrees.is_empty() {
            return Ok(None);
        }
        let found = Git::open(Path::new(&row.workspace)).and_then(|git| {
            let merged = merged_commits(&records, &state);
            match (merged.is_empty(), state.worktrees.get("")) {
                (false, _) => of_merges(&git, &merged).map(Some),
                (true, Some(tree)) => of_worktree(&git, tree),
                (true, None) => Ok(None),
            }
        });
        // Commits and worktrees may be gone since.
        Ok(found.unwrap_or_else(|error| {
            tracing::debug!(%error, %task, "git cannot say what a run has changed");
            None
        }))
    }
}

/// The commits of a target before and after each merge, in their order; merges that follow each other are one. What came
/// together in a worktree of the run itself reaches the target later.
fn merged_commits(records: &[Record], state: &RunState) -> Vec<(String, String)> {
    let own: BTreeSet<_> = state.worktrees.values().map(|tree| tree.branch.as_str()).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    for record in records {
        let Event::MergeChanged(merge) = &record.event else { continue };
        if merge.state != MergeState::Merged || own.contains(merge.target.as_str()) {
            continue;
        }
        match found.last_mut().filter(|(_, new)| *new == merge.old) {
            Some((_, new)) => new.clone_from(&merge.new),
            None => found.push((merge.old.clone(), merge.new.clone())),
        }
    }
    found.retain(|(old, new)| !new.is_empty() && old != new);
    found
}

fn of_merges(git: &Git, merged: &[(String, String)]) -> Result<Vec<FileDiff>, GitError> {
    let mut found: BTreeMap<String, FileDiff> = BTreeMap::new();
    for (old, new) in merged {
        for change in changes::between(git, old, new)?.into_iter().map(file_diff) {
            match found.get_mut(&change.file.path) {
                Some(before) => append(before, change),
                None => drop(found.insert(change.file.path.clone(), change)),
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Adds a later change of a file, between which and the first one others may have changed it.
fn append(before: &mut FileDiff, later: FileDiff) {
    // The same change has reached another branch.
    if before.diff == later.diff {
        return;
    }
    let lines = before.file.lines.zip(later.file.lines);
    before.file.lines = lines.map(|(one, two)| (one.0 + two.0, one.1 + two.1));
    before.diff = before.diff.take().zip(later.diff).map(|(one, two)| one + &two);
}

/// What is in a worktree, committed or not; of one that is gone, what its branch has.
fn of_worktree(git: &Git, tree: &WorktreeChanged) -> Result<Option<Vec<FileDiff>>, GitError> {
    if tree.base.is_empty() {
        // A command has made it.
        return Ok(None);
    }
    let path = Path::new(&tree.path);
    if !path.exists() {
        let Some(head) = git.commit(&format!("refs/heads/{}", tree.branch))? else {
            return Ok(None);
        };
        let found = changes::between(git, &tree.base, &head)?;
        return Ok(Some(found.into_iter().map(file_diff).collect()));
    }
    let (changed, new) = changes::since(git, path, &tree.base)?;
    let new = new.into_iter().filter(|file| !is_own_file(&file.path));
    let new = new.map(|file| compare(file.path, true, file.text.map(|text| (String::new(), text))));
    let mut found: Vec<_> = changed.into_iter().map(file_diff).chain(new).collect();
    found.sort_by(|one, other| one.file.path.cmp(&other.file.path));
    Ok(Some(found))
}

fn file_diff(change: FileChange) -> FileDiff {
    let FileChange { path, is_new, lines, diff } = change;
    FileDiff { file: ChangedFile { path, is_new, lines }, diff }
}
