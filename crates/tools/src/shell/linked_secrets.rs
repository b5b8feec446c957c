//! Links to files with secrets among the files that a command names: `cat notes` is judged by its text, and `notes` may
//! be a link to a private key.
//!
//! By the words of the command, from each directory that it names. What a program finds by itself, and a tree that it
//! searches following links, is not looked at.

use std::collections::BTreeSet;
use std::path::Path;

use windlass_core::policy::CommandAnalysis;
use windlass_core::policy::pattern::glob;
use windlass_shell::{Context, names_secret};

use crate::named_files;
use crate::workspace::Workspace;

/// How many words of a command are looked at; one that names more files is not read by anybody.
const MAX_WORDS: usize = 200;
/// How many directories among them are places where a name may be meant.
const MAX_DIRECTORIES: usize = 16;
/// How many entries of directories globs are compared with.
const MAX_ENTRIES: usize = 5_000;

/// The links that lead to secrets, by absolute path as the command sees them.
pub(super) fn find(
    workspace: &Workspace,
    command: &str,
    analysis: &CommandAnalysis,
    context: &Context,
) -> Vec<String> {
    let mut words: BTreeSet<&str> = named_files::words(command).collect();
    // With what variables and quotes stand for.
    words.extend(
        analysis.flat().into_iter().flat_map(|one| one.words.iter().flatten()).map(|word| &**word),
    );
    let words: Vec<&str> =
        words.into_iter().filter(|word| !word.is_empty()).take(MAX_WORDS).collect();
    let mut names = Names { workspace, context, left: MAX_ENTRIES, found: BTreeSet::new() };
    for directory in names.directories(&words) {
        for word in &words {
            names.look(&directory, word);
        }
    }
    names.found.into_iter().collect()
}

struct Names<'a> {
    workspace: &'a Workspace,
    context: &'a Context,
    /// Entries that may still be compared with globs.
    left: usize,
    found: BTreeSet<String>,
}

impl Names<'_> {
    /// Where the command may be: where it starts, and in what it names from there.
    fn directories(&self, words: &[&str]) -> Vec<String> {
        let mut all = vec![self.context.directory.clone()];
        let mut next = 0;
        while let Some(from) = all.get(next).cloned() {
            next += 1;
            for word in words {
                let directory = absolute(&from, word);
                if all.len() < MAX_DIRECTORIES
                    && !all.contains(&directory)
                    && self.workspace.host_path(&directory).is_some_and(|path| path.is_dir())
                {
                    all.push(directory);
                }
            }
        }
        all
    }

    /// Looks at what a word means in a directory.
    fn look(&mut self, directory: &str, word: &str) {
        // `--file=name` and `@name`
        let name = word.rsplit(['=', '@']).next().unwrap_or(word);
        let path = absolute(directory, name);
        match name.contains(['*', '?', '[']) {
            true => self.look_at_glob(&path),
            false => self.look_at(path),
        }
    }

    fn look_at(&mut self, path: String) {
        let target = self.workspace.behind_links(&path);
        if target.is_some_and(|target| names_secret(self.context, &target)) {
            self.found.insert(path);
        }
    }

    /// The same for all that a glob stands for, part by part.
    fn look_at_glob(&mut self, path: &str) {
        let mut paths = vec![String::new()];
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for above in &paths {
                if !part.contains(['*', '?', '[']) {
                    next.push(format!("{above}/{part}"));
                    continue;
                }
                let Some(directory) = self.workspace.host_path(above) else { continue };
                for name in names_in(&directory).take(self.left) {
                    self.left -= 1;
                    if part.contains('[') || glob(part, &name) {
                        next.push(format!("{above}/{name}"));
                    }
                }
            }
            paths = next;
        }
        paths.into_iter().for_each(|path| self.look_at(path));
    }
}

fn names_in(directory: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// A path from a directory, without `.` and `..`, as a command is read.
fn absolute(directory: &str, path: &str) -> String {
    let joined = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{directory}/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
