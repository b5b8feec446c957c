//! What a project tells agents: `AGENTS.md`, or `CLAUDE.md` where a directory has no such file.
//!
//! Invariants:
//! - Files are joined from the repository's root down to the working directory, so that the nearest
//!   is read last and wins.
//! - At most [`MAX_BYTES`] in all; the nearest are kept whole, and what is left out is said.
//! - A file that leads out of the repository is not read: an untrusted project must not choose which of
//!   the user's files a model sees.
//! - Hidden characters are marked: a model reads nothing that a person who reads the file does not see.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use windlass_core::model_text::neutralize;
use windlass_core::shown::shown_path;
use windlass_core::text::prefix;
use windlass_skills::regular;

/// As much as agents of other makers read, and little of any context window.
pub const MAX_BYTES: usize = 32 * 1024;

/// In each directory the first of these that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The instructions for work in a directory of a workspace; `None` where nobody wrote any.
pub fn load(workspace: &Path, top: &Path) -> Option<String> {
    let workspace = workspace.canonicalize().ok()?;
    let root = top.canonicalize().ok()?;
    let mut room = MAX_BYTES;
    let mut parts = Vec::new();
    for directory in workspace.ancestors().take_while(|directory| directory.starts_with(&root)) {
        let Some((path, text)) = nearest(directory, &root) else { continue };
        let name = shown_path(path.strip_prefix(&root).unwrap_or(&path));
        let kept = prefix(text.trim_end(), room);
        let cut = kept.len() < text.trim_end().len();
        room -= kept.len();
        let notice = match (cut, kept.is_empty()) {
            (true, true) => "\n[left out: instructions are limited to 32 KiB]".to_owned(),
            (true, false) => "\n[cut: instructions are limited to 32 KiB]".to_owned(),
            (false, _) => String::new(),
        };
        parts.push(format!("## {name}\n\n{kept}{notice}"));
    }
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn nearest(directory: &Path, root: &Path) -> Option<(PathBuf, String)> {
    NAMES.iter().find_map(|name| {
        let path = directory.join(name);
        let real = path.canonicalize().ok().filter(|real| real.starts_with(root))?;
        let mut bytes = Vec::new();
        // One byte more than fits, so that a cut is noticed.
        let most = MAX_BYTES as u64 + 1;
        regular::open(&real).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        let text = neutralize(&String::from_utf8_lossy(&bytes));
        (!text.trim().is_empty()).then_some((path, text))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use windlass_tools::workspace::repository::boundary;

    use super::*;

    fn loaded(directory: &Path) -> Option<String> {
        load(directory, &boundary(&directory.canonicalize().unwrap(), None))
    }

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn hidden_characters_of_instructions_are_marked() {
        let hidden = "use\u{200b} tabs\u{202e}\u{e0041} \u{1b}[2J\u{9b}\n";
        let project = project(&[("AGENTS.md", hidden)]);
        let marked = "## AGENTS.md\n\nuse\\u{200B} tabs\\u{202E}\\u{E0041} ␛[2J\u{fffd}";
        assert_eq!(loaded(project.path()).unwrap(), marked);
    }

    #[test]
    fn files_are_joined_from_the_repository_to_the_working_directory() {
        let project = project(&[
            (".git/HEAD", ""),
            ("AGENTS.md", "use tabs\n"),
            ("CLAUDE.md", "not read beside AGENTS.md"),
            ("web/CLAUDE.md", "use spaces here\n"),
            ("web/app/notes.txt", ""),
        ]);
        assert_eq!(
            loaded(&project.path().join("web/app")).unwrap(),
            "## AGENTS.md\n\nuse tabs\n\n## web/CLAUDE.md\n\nuse spaces here"
        );
        assert_eq!(loaded(project.path()).unwrap(), "## AGENTS.md\n\nuse tabs");
    }

    #[test]
    fn without_a_repository_only_the_working_directory_counts() {
        let project = project(&[("AGENTS.md", "outer"), ("inner/file", "")]);
        assert_eq!(loaded(&project.path().join("inner")), None);
    }

    #[test]
    fn what_is_too_long_is_cut_from_afar_and_said() {
        let far = "far ".repeat(MAX_BYTES / 8);
        let near = "near".repeat(MAX_BYTES / 5);
        let project = project(&[
            (".git/HEAD", ""),
            ("AGENTS.md", far.as_str()),
            ("a/AGENTS.md", near.as_str()),
        ]);
        let text = loaded(&project.path().join("a")).unwrap();
        assert!(text.len() < MAX_BYTES + 200, "{}", text.len());
        assert!(text.ends_with(&near), "the nearest is whole");
        assert!(text.contains("[cut: instructions are limited to 32 KiB]\n\n## a/AGENTS.md"));
    }

    #[test]
    fn a_link_out_of_the_repository_is_not_followed() {
        let elsewhere = project(&[("secret", "the key")]);
        let project = project(&[(".git/HEAD", ""), ("CLAUDE.md", "hello")]);
        let link = project.path().join("AGENTS.md");
        std::os::unix::fs::symlink(elsewhere.path().join("secret"), link).unwrap();
        assert_eq!(loaded(project.path()).unwrap(), "## CLAUDE.md\n\nhello");
    }
}
