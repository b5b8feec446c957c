//! Files with rules for agents, as they lie from the top of a workspace to where an agent starts, and what links among
//! them lead to.

use std::fs;

use windlass_core::layout::WORKSPACE;
use windlass_core::policy::files;

use super::Workspace;
use super::walk::{Parents, Root};

/// How many files in directories of rules are looked at for links.
const MAX_ENTRIES: usize = 500;
/// How deep: `.claude/skills/x/SKILL.md`.
const MAX_DEPTH: usize = 3;

/// The rule files of one workspace.
#[derive(Clone, Copy)]
pub struct RuleFiles<'w> {
    pub(super) workspace: &'w Workspace,
}

impl RuleFiles<'_> {
    /// Whether a file at a path would be a rule for agents that start where this one did.
    pub fn includes(self, path: &str) -> bool {
        let Ok(spot) = self.workspace.walk(path, Parents::Imagine) else { return false };
        let (parts, above) = (spot.parts(), self.start());
        let is_named = (0..=above.len()).any(|depth| {
            parts.len() > depth
                && parts[..depth] == above[..depth]
                && files::is_rule_in(&parts[depth..].join("/"))
        });
        spot.place == Root::Workspace && (is_named || self.is_linked(&parts.join("/")))
    }

    /// Whether a link among the rule files leads to this path below the top, or to a directory above it.
    pub fn is_linked(self, inner: &str) -> bool {
        let leads_to = |target: &String| {
            inner
                .strip_prefix(&**target)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.linked().iter().any(leads_to)
    }

    /// What links among the rule files lead to, by paths below the top: `AGENTS.md` may be a link to `docs/rules.md`.
    pub fn linked(self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open: Vec<(String, usize)> = self.names().map(|name| (name, 0)).collect();
        let mut seen = 0;
        while let Some((name, depth)) = open.pop() {
            let path = self.workspace.real.join(&name);
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            if about.is_symlink() {
                let spot = self.workspace.walk(&format!("{WORKSPACE}/{name}"), Parents::Imagine);
                let inside = spot.ok().filter(|spot| spot.place == Root::Workspace);
                found.extend(inside.map(|spot| spot.parts().join("/")));
            } else if about.is_dir() && depth < MAX_DEPTH && !name.ends_with(".windlass/tasks") {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                for entry in entries.take(MAX_ENTRIES.saturating_sub(seen)) {
                    seen += 1;
                    let below = entry.file_name();
                    open.extend(below.to_str().map(|below| (format!("{name}/{below}"), depth + 1)));
                }
            }
        }
        found
    }

    /// Those that exist, by their paths below the top.
    pub fn existing(self) -> Vec<String> {
        self.names().filter(|name| self.exists(&format!("{WORKSPACE}/{name}"))).collect()
    }

    /// The names that rule files have, by their paths below the top.
    pub(super) fn names(self) -> impl Iterator<Item = String> {
        let mut directories = vec![String::new()];
        for part in self.start() {
            let above = directories.last().map_or("", String::as_str);
            directories.push(format!("{above}{part}/"));
        }
        directories
            .into_iter()
            .flat_map(|above| files::rule_names().map(move |name| format!("{above}{name}")))
    }

    fn exists(self, path: &str) -> bool {
        let spot = self.workspace.walk(path, Parents::MustExist);
        spot.is_ok_and(|spot| spot.file_type.is_some())
    }

    /// The directories from the top to where the agent starts.
    fn start(&self) -> Vec<&str> {
        let below = self.workspace.places.layout.start_directory();
        below.split('/').filter(|part| !part.is_empty()).collect()
    }
}
