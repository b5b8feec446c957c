//! Tasks with their sub-agents below them.

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::id::TaskId;

use super::TaskView;

/// A task and its depth below one that is listed.
#[derive(Clone, Debug)]
pub struct TaskLine {
    pub task: TaskView,
    pub depth: usize,
}

/// Sub-agents right below the task that started them, the oldest first. `tasks` has the newest first.
pub fn in_families(tasks: Vec<TaskView>) -> Vec<TaskLine> {
    let ids: BTreeSet<TaskId> = tasks.iter().map(|task| task.row.id).collect();
    let (children, roots): (Vec<_>, Vec<_>) = tasks
        .into_iter()
        .partition(|task| task.row.parent_id.is_some_and(|parent| ids.contains(&parent)));
    let mut by_parent: BTreeMap<TaskId, Vec<TaskView>> = BTreeMap::new();
    for child in children {
        let parent = child.row.parent_id.unwrap_or(child.row.id);
        by_parent.entry(parent).or_default().push(child);
    }
    let mut open: Vec<_> =
        roots.into_iter().rev().map(|task| TaskLine { task, depth: 0 }).collect();
    let mut listed = Vec::new();
    while let Some(next) = open.pop() {
        let (id, depth) = (next.task.row.id, next.depth + 1);
        // The newest comes first in the list, so the oldest is the last to be pushed.
        let below = by_parent.remove(&id).unwrap_or_default();
        open.extend(below.into_iter().map(|task| TaskLine { task, depth }));
        listed.push(next);
    }
    listed
}
