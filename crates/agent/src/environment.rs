//! What an agent reads about where it works, in its first message. It differs from day to day and from task to task;
//! in the system prompt it would keep providers from using their caches.
//!
//! Invariant: bounded, and one line for each name that a file or a branch has, whatever is in it.

use std::fmt::Write as _;
use std::path::Path;

use jiff::tz::TimeZone;
use windlass_core::layout::Layout;
use windlass_core::shown::shown_line;
use windlass_core::text::one_line;
use windlass_tools::workspace::git_status::{self, GitStatus};

use crate::journal::Journal;
use crate::prompt;

/// Names of the top of the tree that are listed.
const MAX_NAMES: usize = 60;
/// Changed files that are listed.
const MAX_CHANGES: usize = 20;
/// How long a name may be, in characters.
const MAX_NAME: usize = 120;
/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// What is known of the place before a task begins.
#[derive(Clone, Debug)]
pub struct TaskEnvironment {
    /// The person's time zone.
    pub time_zone: TimeZone,
    /// Which system commands see, in words.
    pub system: String,
    pub shell: String,
    /// What commands reach on the network, in words.
    pub network: String,
    /// Compilers, interpreters and the like that commands find, or what is known of them instead.
    pub toolchains: String,
    /// What bounds the work, one phrase each.
    pub limits: Vec<String>,
    /// Where programs of the host are found, for asking git.
    pub search_path: String,
}

impl TaskEnvironment {
    /// The environment of a task that begins now, as its first message describes it.
    pub(crate) async fn describe(
        &self,
        task: &Journal,
        layout: &Layout,
        container: &str,
    ) -> String {
        let created = &task.state().created;
        let git = git_status::status(Path::new(created.boundary()), &self.search_path).await;
        let date = task.now().to_zoned(self.time_zone.clone());
        let place = match (layout.top(), layout.start()) {
            (top, start) if top == start => format!("`{}`", shown_line(top)),
            (top, start) => {
                format!("`{}`, and you start in `{}`", shown_line(top), shown_line(&start))
            }
        };
        let zone = self.time_zone.iana_name().unwrap_or("local time");
        let lines = [
            ("Date", format!("{} ({zone})", date.strftime("%Y-%m-%d, %A"))),
            ("System", format!("{}; shell: {}", self.system, self.shell)),
            ("Workspace", place),
            ("Sandbox", format!("{}; network: {}", sandbox(container), self.network)),
            ("Toolchains", self.toolchains.clone()),
            ("Limits", self.limits.join("; ")),
            ("Git", git.map_or_else(|| "not a repository".to_owned(), |git| repository(&git))),
            ("Top of the tree", tree(Path::new(&created.workspace))),
        ];
        let mut text = String::new();
        for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = writeln!(text, "- {name}: {value}");
        }
        prompt::environment(text.trim_end())
    }
}

/// The kind of the sandbox, without why it was chosen.
fn sandbox(container: &str) -> &str {
    container.split(' ').next().unwrap_or_default()
}

fn repository(git: &GitStatus) -> String {
    let head = name(&git.head);
    let Some(changes) = &git.changes else { return format!("`{head}`") };
    let mut text = match changes.len() {
        0 => format!("`{head}`, nothing changed"),
        1 => format!("`{head}`, 1 changed or new file:"),
        many => format!("`{head}`, {many} changed or new files:"),
    };
    for change in changes.iter().take(MAX_CHANGES) {
        let _ = write!(text, "\n  {}", name(change));
    }
    if changes.len() > MAX_CHANGES {
        let _ = write!(text, "\n  … and {} more", changes.len() - MAX_CHANGES);
    }
    text
}

/// The names at the top of a directory; directories end with a slash, and hidden files are left out.
fn tree(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let own = entry.file_name();
            let own = own.to_string_lossy();
            let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
            (!own.starts_with('.')).then(|| format!("{}{slash}", name(&own)))
        })
        .collect();
    names.sort();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let mut text = names.join(" ");
    if more > 0 {
        let _ = write!(text, " … and {more} more");
    }
    text
}

fn name(text: &str) -> String {
    one_line(&shown_line(text), MAX_NAME)
}
