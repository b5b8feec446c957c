//! What tasks have changed in files, from the journal's hashes and the versions that are kept of each file: there what
//! commands change is not known. Of a workflow run git knows it, whoever has changed it.

mod of_run;

use std::collections::BTreeMap;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};
use windlass_core::event::Event;
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::{Fact, FileChange, Recovery};
use windlass_store::Filter;

use crate::tasks::Parents;
use crate::views::{ChangedFile, FileDiff};
use crate::{Coordinator, Error};

/// Lines around a change in its diff.
const DIFF_CONTEXT: usize = 3;
/// How long finding a small diff of one file may take before a coarse one does.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// What tasks have changed in files.
#[derive(Clone, Copy)]
pub struct Changes<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// The versions of a file before the first change and after the last.
struct Versions {
    before: Option<String>,
    after: String,
}

impl Changes<'_> {
    /// The files that a task and the agents below it have changed, by path, and how many lines came and went.
    pub fn files(self, task: TaskId) -> Result<Vec<ChangedFile>, Error> {
        Ok(self.of(task)?.into_iter().map(|diff| diff.file).collect())
    }

    /// What they have changed, by path. Of a run whose steps work in a repository, what git has.
    pub fn of(self, task: TaskId) -> Result<Vec<FileDiff>, Error> {
        match self.of_run(task)? {
            // Git has the files as they are.
            Some(found) => Ok(found.into_iter().map(|file| self.without_keys(file)).collect()),
            None => self.of_calls(task),
        }
    }

    fn without_keys(self, file: FileDiff) -> FileDiff {
        let secrets = self.coordinator.store.secrets().known();
        let diff = file.diff.map(|diff| secrets.redact(&diff).into_owned());
        FileDiff { diff, ..file }
    }

    /// What their `edit` and `write` calls have changed, by path.
    fn of_calls(self, task: TaskId) -> Result<Vec<FileDiff>, Error> {
        let versions = self.versions(task)?;
        let changed =
            versions.into_iter().filter(|(_, one)| one.before.as_ref() != Some(&one.after));
        changed.map(|(path, versions)| self.diff(path, &versions)).collect()
    }

    fn diff(self, path: String, versions: &Versions) -> Result<FileDiff, Error> {
        let is_new = versions.before.is_none();
        let before = match &versions.before {
            Some(hash) => self.text(hash)?,
            None => Some(String::new()),
        };
        let texts = before.zip(self.text(&versions.after)?);
        Ok(compare(path, is_new, texts))
    }

    /// The text of a version, where it is kept and is text.
    fn text(self, hash: &str) -> Result<Option<String>, Error> {
        let content = self.coordinator.store.outputs().content(hash)?;
        Ok(content.and_then(|content| String::from_utf8(content).ok()))
    }

    fn versions(self, task: TaskId) -> Result<BTreeMap<String, Versions>, Error> {
        let mut changes = Vec::new();
        for task in self.coordinator.tasks().at_or_below(task)? {
            let mut started: BTreeMap<CallId, FileChange> = BTreeMap::new();
            for record in self.coordinator.journals().readable(task)? {
                match record.event {
                    Event::ToolCall(call) => {
                        if let Recovery::Verify { change, .. } = call.recovery {
                            started.insert(call.call, change);
                        }
                    }
                    Event::ToolResult(result) => {
                        let change = started.remove(&result.call);
                        let is_change = |fact: &Fact| matches!(fact, Fact::FileChanged { .. });
                        if result.outcome.facts.iter().any(is_change) {
                            changes.extend(change.map(|change| (record.pos, change)));
                        }
                    }
                    _ => {}
                }
            }
        }
        changes.sort_by_key(|(pos, _)| *pos);
        let mut versions = BTreeMap::new();
        for (_, change) in changes.into_iter().filter(|(_, change)| !is_own_file(&change.path)) {
            let FileChange { path, before, after } = change;
            let entry =
                versions.entry(path).or_insert_with(|| Versions { before, after: after.clone() });
            entry.after = after;
        }
        Ok(versions)
    }
}

/// The difference of two texts; without them only that the file has changed.
fn compare(path: String, is_new: bool, texts: Option<(String, String)>) -> FileDiff {
    let Some((before, after)) = texts else {
        return FileDiff { file: ChangedFile { path, is_new, lines: None }, diff: None };
    };
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(&before, &after);
    let count = |tag: ChangeTag| diff.iter_all_changes().filter(|one| one.tag() == tag).count();
    let lines = Some((count(ChangeTag::Insert), count(ChangeTag::Delete)));
    let old = if is_new { "/dev/null".to_owned() } else { format!("a/{path}") };
    let mut unified = diff.unified_diff();
    let text = unified.context_radius(DIFF_CONTEXT).header(&old, &format!("b/{path}")).to_string();
    FileDiff { file: ChangedFile { path, is_new, lines }, diff: Some(text) }
}

/// Whether a file is the agent's own: its plan, its notes, what it keeps for itself.
pub fn is_own_file(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    matches!(first, ".plan.md" | ".memo" | ".scratch" | ".trace" | ".windlass")
}

impl crate::Tasks<'_> {
    /// A task and every agent below it, the task first.
    pub(crate) fn at_or_below(self, task: TaskId) -> Result<Vec<TaskId>, Error> {
        let (mut parents, root) = (Parents::default(), self.root(task)?);
        let rows = self.rows(&Filter { root: Some(root), ..Filter::default() })?;
        let mut found = vec![task];
        for row in rows.iter().rev().filter(|row| row.id != task) {
            if parents.is_at_or_below(self.coordinator, row.id, task)? {
                found.push(row.id);
            }
        }
        Ok(found)
    }
}
