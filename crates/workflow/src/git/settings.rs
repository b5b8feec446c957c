//! Commands that a repository's own settings name. Git runs them when it fills, merges or fetches, outside of any
//! sandbox, and whoever has packed the repository may have written them.
//!
//! Invariant: a person's own settings, and those of the machine, are theirs and not looked at.

use std::path::PathBuf;

use windlass_core::event::WorkflowSource;

use super::{Git, Result};

/// Settings that name a command which git runs when it fills a worktree, commits or merges: sections and their settings. A
/// section may have a name in between (`filter.NAME.clean`). Hooks, file monitors, pagers, editors and programs that show
/// changes are not here, because ours never runs them.
const FOR_FILES: [(&str, &[&str]); 3] =
    [("filter", &["clean", "smudge", "process"]), ("merge", &["driver"]), ("gpg", &["program"])];

/// The same for what git runs to fetch.
const FOR_FETCHING: [(&str, &[&str]); 5] = [
    ("core", &["sshcommand", "gitproxy", "askpass", "alternaterefscommand"]),
    ("credential", &["helper"]),
    ("remote", &["uploadpack"]),
    ("protocol", &["allow"]),
    ("submodule", &["update"]),
];

/// The scopes of settings that are in the repository.
const OWN_SCOPES: [&str; 2] = ["local", "worktree"];

/// Settings of a repository that have git run commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where they are. What they include counts as theirs.
    pub path: PathBuf,
    /// A line `key = value` for each.
    pub text: String,
}

impl Settings {
    /// The same as what may be approved, for a run of a workflow.
    pub fn source(&self, run: &WorkflowSource) -> WorkflowSource {
        let (path, text) = (self.path.display().to_string(), self.text.clone());
        WorkflowSource { path, text, ..run.clone() }
    }
}

impl Git {
    /// The repository's own settings that have git run commands; `None` where nothing does. `is_fetching` says whether
    /// it is to fetch, too.
    pub fn commanding_settings(&self, is_fetching: bool) -> Result<Option<Settings>> {
        let text = self.run_in(&self.top, None, ["config", "--list", "--show-scope", "-z"])?;
        let mut words = text.split('\0');
        let mut own = Vec::new();
        while let (Some(scope), Some(setting)) = (words.next(), words.next()) {
            let (key, value) = setting.split_once('\n').unwrap_or((setting, ""));
            if OWN_SCOPES.contains(&scope) {
                own.push((key, value));
            }
        }
        // Of a part of a repository, git fetches the rest whenever it needs it.
        let is_partial = |(key, _): &(&str, &str)| {
            key.ends_with(".promisor") || *key == "extensions.partialclone"
        };
        let fetches =
            is_fetching || self.top.join(".gitmodules").is_file() || own.iter().any(is_partial);
        let is_for_files = |(key, value): &(&str, &str)| names(&FOR_FILES, key, value);
        let is_for_fetching = |(key, value): &(&str, &str)| names(&FOR_FETCHING, key, value);
        let runs = own.iter().any(is_for_files) || fetches && own.iter().any(is_for_fetching);
        // All of them are shown and approved at once, whatever the next run needs.
        let all = own.iter().filter(|one| is_for_files(one) || is_for_fetching(one));
        let lines: Vec<_> = all.map(|(key, value)| format!("{key} = {value}")).collect();
        let settings = Settings { path: self.common.join("config"), text: lines.join("\n") };
        Ok(runs.then_some(settings))
    }
}

/// Whether a setting is one of these and says something. Git prints sections and settings in small letters.
fn names(table: &[(&str, &[&str])], key: &str, value: &str) -> bool {
    let (Some((section, _)), Some((_, setting))) = (key.split_once('.'), key.rsplit_once('.'))
    else {
        return false;
    };
    let is_named =
        table.iter().any(|(name, settings)| *name == section && settings.contains(&setting));
    is_named
        && match (section, setting) {
            // A submodule may be updated by a command; other words are ways of git's own.
            ("submodule", _) => value.starts_with('!'),
            // Some protocols are commands.
            ("protocol", _) => value != "never",
            _ => !value.trim().is_empty(),
        }
}
