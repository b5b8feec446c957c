//! Where an agent's own files are: the one place that knows their names.
//!
//! There are two layouts. A *service* workspace belongs to its task, so the files lie at its top (ES-035…039). A
//! *personal* one is somebody's own directory: everything of ours is in `.windlass/tasks/<id>/` there, and the
//! agent starts where the person was, which may be below the top.
//!
//! Invariant: a text that is the same for all tasks (a prompt, a tool's description) never holds a task's id. It
//! would defeat the caches of providers. Such texts use [`Layout::name_of`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::string_enum;

/// Where a service workspace and a container have the workspace. In a sandbox that keeps real paths it is an alias.
pub const WORKSPACE: &str = "/workspace";

/// What of a project belongs to windlass: its configuration, its skills, and the directories of tasks.
pub const PROJECT_DIRECTORY: &str = ".windlass";

/// Where a person's directory has the files of tasks.
pub const TASKS_DIRECTORY: &str = ".windlass/tasks";

/// Keeps the files of tasks out of `git status`. It lies beside them, so that a project's own ignore file stays as
/// it is.
pub const IGNORE_FILE: (&str, &str) = (".windlass/tasks/.gitignore", "*\n");

string_enum! {
    /// Which layout a workspace has.
    LayoutKind ("layout") {
        /// The workspace is the task's own.
        Service = "service",
        /// The workspace is a person's directory.
        Personal = "personal",
    }
}

impl Default for LayoutKind {
    /// As tasks had it before there were two.
    fn default() -> Self {
        Self::Service
    }
}

/// Where a task works, beyond the directory it starts in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Which layout it has.
    #[serde(default)]
    pub layout: LayoutKind,
    /// The top of the workspace on the host; without, the directory that the task starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
    /// Directories that a person added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<AddedDirectory>,
    /// Variables that every command of the task finds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

impl Site {
    /// Whether it says nothing, as in the journals of older tasks.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A directory outside the workspace that a person added to it. It has the same path everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedDirectory {
    pub path: String,
    pub writable: bool,
}

/// A file or directory that an agent has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// The working plan, written by `update_plan` alone (ES-036).
    Plan,
    /// The plan that a person is asked to accept, and may edit.
    Proposal,
    /// Durable notes (ES-037).
    Memo,
    /// Temporary notes and whole outputs (ES-038).
    Scratch,
    /// The record of the run, read-only (ES-322).
    Trace,
    /// Deliverables for the user (ES-039).
    Output,
}

/// Where one task's files are, as one reader sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    kind: Scheme,
    /// The workspace's top.
    top: String,
    /// Where the agent starts, below the top; empty for the top itself.
    below: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scheme {
    Service,
    Personal {
        /// Which of the directories of tasks is its own.
        task: TaskId,
    },
}

impl Layout {
    /// A workspace that is the task's own.
    pub fn service() -> Self {
        Self { kind: Scheme::Service, top: WORKSPACE.to_owned(), below: String::new() }
    }

    /// A person's directory. The agents of one tree share the files of its root task.
    pub fn personal(root: TaskId, boundary: &str, directory: &str) -> Self {
        let below = directory.strip_prefix(boundary.trim_end_matches('/')).unwrap_or_default();
        let below = below.trim_matches('/').to_owned();
        Self { kind: Scheme::Personal { task: root }, top: boundary.to_owned(), below }
    }

    /// The same files, seen where the workspace is at another place.
    #[must_use]
    pub fn seen_at(self, top: impl Into<String>) -> Self {
        Self { top: top.into(), ..self }
    }

    /// Which of the two it is.
    pub fn kind(&self) -> LayoutKind {
        match self.kind {
            Scheme::Service => LayoutKind::Service,
            Scheme::Personal { .. } => LayoutKind::Personal,
        }
    }

    /// The workspace's top.
    pub fn top(&self) -> &str {
        &self.top
    }

    /// Where the agent starts, below the top; empty for the top itself.
    pub fn start_directory(&self) -> &str {
        &self.below
    }

    /// Where the agent starts, and what its paths are relative to.
    pub fn start(&self) -> String {
        join(&self.top, &self.below)
    }

    /// The name of an own file below the top.
    pub fn inner(&self, own: Own) -> String {
        match &self.kind {
            Scheme::Service => service_name(own).to_owned(),
            Scheme::Personal { task } => format!("{TASKS_DIRECTORY}/{task}/{}", personal_name(own)),
        }
    }

    /// The same as an agent writes it: relative to where it starts.
    pub fn path(&self, own: Own) -> String {
        self.relative(&self.inner(own))
    }

    /// The same in full.
    pub fn absolute(&self, own: Own) -> String {
        join(&self.top, &self.inner(own))
    }

    /// How a text that is the same for all tasks names it.
    pub fn name_of(&self, own: Own) -> String {
        let slash = if matches!(own, Own::Plan | Own::Proposal) { "" } else { "/" };
        match self.kind {
            Scheme::Service => format!("`{}{slash}`", service_name(own)),
            Scheme::Personal { .. } => {
                format!("`{}{slash}` in your task directory", personal_name(own))
            }
        }
    }

    /// The directory of the task's own files as an agent writes it, where it has one.
    pub fn task_directory(&self) -> Option<String> {
        match &self.kind {
            Scheme::Service => None,
            Scheme::Personal { task } => Some(self.relative(&format!("{TASKS_DIRECTORY}/{task}"))),
        }
    }

    /// The task whose directory in a person's workspace it is.
    pub fn task(&self) -> Option<TaskId> {
        match self.kind {
            Scheme::Service => None,
            Scheme::Personal { task } => Some(task),
        }
    }

    /// The directories that a workspace has from the start.
    pub fn initial_directories(&self) -> &'static [Own] {
        match self.kind {
            Scheme::Service => &[Own::Memo, Own::Scratch, Own::Output],
            Scheme::Personal { .. } => &[],
        }
    }

    /// A path below the top as an agent writes it: relative to where it starts.
    pub fn relative(&self, inner: &str) -> String {
        let mut here = self.below.split('/').filter(|part| !part.is_empty()).peekable();
        let mut there = inner.split('/').filter(|part| !part.is_empty()).peekable();
        while here.peek().is_some() && here.peek() == there.peek() {
            here.next();
            there.next();
        }
        let parts: Vec<_> = here.map(|_| "..").chain(there).collect();
        if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
    }

    /// A path that an agent wrote, in full.
    pub fn in_full(&self, path: &str) -> String {
        let path = match path.strip_prefix(WORKSPACE) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => join(&self.top, rest),
            _ if path.starts_with('/') => path.to_owned(),
            _ => join(&self.start(), path),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }

    /// The address of a file for programs that open such addresses.
    pub fn uri(&self, path: &str) -> String {
        file_uri(&self.in_full(path))
    }

    /// A text with the names of own files in place of `{{memo}}` and the like.
    pub fn fill(&self, text: &str) -> String {
        if !text.contains("{{") {
            return text.to_owned();
        }
        OWN.iter()
            .fold(text.to_owned(), |text, (mark, own)| text.replace(mark, &self.name_of(*own)))
    }

    /// Whose a path below the top is, where it lies among the files of tasks.
    pub fn ownership(&self, inner: &[&str]) -> Ownership {
        let is = |part: &str, name: &str| part.eq_ignore_ascii_case(name);
        let tasks: Vec<&str> = TASKS_DIRECTORY.split('/').collect();
        let among = inner.len() >= tasks.len()
            && inner.iter().zip(&tasks).all(|(part, name)| is(part, name));
        let below = match &self.kind {
            Scheme::Service => inner,
            Scheme::Personal { task } => match inner.get(tasks.len()) {
                Some(name) if among && is(name, &task.to_string()) => &inner[tasks.len() + 1..],
                Some(_) if among => return Ownership::OtherTask,
                // The directory of all tasks is made with the first of them.
                Some(_) | None => return Ownership::Nobody,
            },
        };
        let name = |own: Own| match self.kind {
            Scheme::Service => service_name(own),
            Scheme::Personal { .. } => personal_name(own),
        };
        match below.first() {
            Some(first) => match OWN.iter().find(|(_, own)| is(first, name(*own))) {
                Some((_, own)) => Ownership::This { own: *own, depth: below.len() - 1 },
                None if self.kind() == LayoutKind::Service => Ownership::Nobody,
                None => Ownership::TaskDirectory,
            },
            None if self.kind() == LayoutKind::Service => Ownership::Nobody,
            None => Ownership::TaskDirectory,
        }
    }
}

/// Whose a path of a workspace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// A file of the project.
    Nobody,
    /// One of this task's own files, and how many names it is below that.
    This { own: Own, depth: usize },
    /// Else in this task's directory.
    TaskDirectory,
    /// The files of another task.
    OtherTask,
}

/// The marks in texts that stand for own files.
const OWN: [(&str, Own); 6] = [
    ("{{plan}}", Own::Plan),
    ("{{proposal}}", Own::Proposal),
    ("{{memo}}", Own::Memo),
    ("{{scratch}}", Own::Scratch),
    ("{{trace}}", Own::Trace),
    ("{{output}}", Own::Output),
];

const fn service_name(own: Own) -> &'static str {
    match own {
        Own::Plan => ".plan.md",
        Own::Proposal => ".proposal.md",
        Own::Memo => ".memo",
        Own::Scratch => ".scratch",
        Own::Trace => ".trace",
        Own::Output => "output",
    }
}

const fn personal_name(own: Own) -> &'static str {
    match own {
        Own::Plan => "plan.md",
        Own::Proposal => "proposal.md",
        Own::Memo => "memo",
        Own::Scratch => "scratch",
        Own::Trace => "trace",
        Own::Output => "output",
    }
}

fn join(top: &str, below: &str) -> String {
    let below = below.trim_start_matches('/');
    if below.is_empty() {
        return top.to_owned();
    }
    format!("{}/{below}", top.trim_end_matches('/'))
}

/// The address of a file by its absolute path.
pub fn file_uri(path: &str) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskId {
        TaskId::derived("test", "task")
    }

    #[test]
    fn a_personal_layout_is_seen_from_where_the_agent_starts() {
        let layout = Layout::personal(task(), "/home/u/repo", "/home/u/repo/src/lib");
        assert_eq!(layout.start(), "/home/u/repo/src/lib");
        assert_eq!(layout.relative("AGENTS.md"), "../../AGENTS.md");
        assert_eq!(layout.relative("src/lib/a.rs"), "a.rs");
        assert_eq!(layout.relative("src/lib"), ".");
        assert_eq!(layout.relative("src/main.rs"), "../main.rs");
        let own = format!("../../.windlass/tasks/{}", task());
        assert_eq!(layout.path(Own::Memo), format!("{own}/memo"));
        assert_eq!(
            layout.absolute(Own::Plan),
            format!("/home/u/repo/.windlass/tasks/{}/plan.md", task())
        );
    }

    #[test]
    fn paths_are_completed_from_both_spellings() {
        let layout = Layout::personal(task(), "/home/u/my repo", "/home/u/my repo/src");
        assert_eq!(layout.in_full("a.rs"), "/home/u/my repo/src/a.rs");
        assert_eq!(layout.in_full("../b"), "/home/u/my repo/b");
        assert_eq!(layout.in_full("/workspace/b"), "/home/u/my repo/b");
        assert_eq!(layout.in_full("/workspaces/b"), "/workspaces/b");
        assert_eq!(layout.uri("a.rs"), "file:///home/u/my%20repo/src/a.rs");
        assert_eq!(Layout::service().uri("a.rs"), "file:///workspace/a.rs");
    }

    /// The journals of older tasks say nothing of a site: their files are where they were.
    #[test]
    fn a_task_of_an_older_journal_keeps_its_layout() {
        let site: Site = serde_json::from_str("{}").unwrap();
        assert!(site.is_default());
        assert_eq!((site.layout, site.boundary), (LayoutKind::Service, None));
    }

    #[test]
    fn a_text_for_all_tasks_names_no_task() {
        let personal = Layout::personal(task(), "/p", "/p");
        assert_eq!(personal.fill("into {{memo}}."), "into `memo/` in your task directory.");
        assert_eq!(Layout::service().fill("into {{memo}}."), "into `.memo/`.");
    }

    #[test]
    fn whose_a_file_is_follows_from_its_path() {
        let personal = Layout::personal(task(), "/p", "/p");
        let id = task().to_string();
        let whose = |path: &str| personal.ownership(&path.split('/').collect::<Vec<_>>());
        assert_eq!(whose("src/a.rs"), Ownership::Nobody);
        assert_eq!(whose(".windlass/config.toml"), Ownership::Nobody);
        assert_eq!(whose(".windlass/tasks"), Ownership::Nobody);
        assert_eq!(whose(".windlass/tasks/task_other/memo/a"), Ownership::OtherTask);
        assert_eq!(whose(".windlass/tasks/.gitignore"), Ownership::OtherTask);
        let memo = Ownership::This { own: Own::Memo, depth: 1 };
        assert_eq!(whose(&format!(".windlass/tasks/{id}/memo/a")), memo);
        assert_eq!(whose(&format!(".Windlass/Tasks/{id}/MEMO/a")), memo);
        let plan = Ownership::This { own: Own::Plan, depth: 0 };
        assert_eq!(Layout::service().ownership(&[".plan.md"]), plan);
        assert_eq!(Layout::service().ownership(&["src"]), Ownership::Nobody);
    }
}
