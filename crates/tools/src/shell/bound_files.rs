//! The files that an approval of a command holds for beside the scripts that it runs: what its words name, what its
//! programs read by themselves, and what those files name in turn.
//!
//! Followed by words, not by meaning: a file too many means one more question at worst, when it changes while a
//! person decides. What a program computes or finds by its search path is not followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_core::layout::WORKSPACE;
use windlass_core::policy::pattern::glob;
use windlass_core::policy::{ArrivalSource, Class, CommandAnalysis, GitSource, ShellCommand};
use windlass_core::question::BoundFile;

use crate::named_files;
use crate::workspace::{ScanFilter, Stop, Workspace, content_hash};

/// How many files an approval holds for; a command that means more is not read by anybody.
const MAX_FILES: usize = 200;
/// A larger file is data, not what is run.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// The largest text in which names of other files are looked for.
const MAX_FOLLOWED_BYTES: usize = 256 << 10;
/// How many words of one text are looked at.
const MAX_WORDS: usize = 500;
/// How far files that name files are followed.
const MAX_DEPTH: usize = 2;

/// What git runs or obeys by itself in a repository.
const RUN_BY_GIT: &[&str] = &[
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/hooks/prepare-commit-msg",
    ".git/hooks/commit-msg",
    ".git/hooks/post-commit",
    ".git/hooks/pre-push",
    ".git/hooks/pre-merge-commit",
    ".git/hooks/post-merge",
    ".git/hooks/post-checkout",
    ".git/hooks/pre-rebase",
];

/// The files that the meaning of a command depends on, as they are now.
pub(super) fn of(
    workspace: &Workspace,
    command: &str,
    directory: &Path,
    analysis: &CommandAnalysis,
) -> Vec<BoundFile> {
    let class = analysis.assessment.class;
    // What only changes files in the workspace runs none of them, and only what it names counts.
    let runs_nothing = matches!(class, Class::Read | Class::Note | Class::Edit);
    let most_depth = if runs_nothing { 0 } else { MAX_DEPTH };
    let mut files = NamedFiles { workspace, found: BTreeMap::new(), most_depth };
    for arrival in &analysis.arrivals {
        match &arrival.source {
            ArrivalSource::Archive(path) | ArrivalSource::Patch(path) => {
                files.add(Path::new(path), 0);
            }
            ArrivalSource::Git(source) => {
                for name in names_of_commits(source) {
                    files.add_or_note(&Path::new(WORKSPACE).join(".git").join(name));
                }
            }
            ArrivalSource::Tree(_)
            | ArrivalSource::Glob(_)
            | ArrivalSource::Pipe
            | ArrivalSource::Computed => {}
        }
    }
    if class == Class::Edit {
        files.words(command, &[directory.to_owned()], 0);
    }
    if !runs_nothing {
        for script in &analysis.scripts {
            files.follow(Path::new(&script.path), directory, 0);
        }
        if named_files::words(command).any(|word| word == "git") {
            for name in RUN_BY_GIT {
                files.add_or_note(&Path::new(WORKSPACE).join(name));
            }
        }
        files.words(command, &[directory.to_owned()], 0);
    }
    files.found.into_iter().map(|(path, hash)| BoundFile { path, hash }).collect()
}

/// Whether a command may use files that nobody can name beforehand: it runs the project's code, builds, publishes,
/// removes whole directories, or cannot be read.
pub(super) fn may_use_others(analysis: &CommandAnalysis) -> bool {
    let is_bound = |command: &&ShellCommand| match command.assessment.class {
        Class::Read | Class::Note | Class::Ledger | Class::Edit => true,
        Class::Delegate
        | Class::LocalCommand
        | Class::Test
        | Class::Build
        | Class::Publish
        | Class::Production
        | Class::Destructive
        | Class::Opaque
        | Class::Catastrophic => removes_named_files(command),
    };
    let all = analysis.flat();
    // What could not be parsed has no commands.
    if all.is_empty() { analysis.assessment.class > Class::Edit } else { !all.iter().all(is_bound) }
}

/// `rm a b`: these files and no others.
fn removes_named_files(command: &ShellCommand) -> bool {
    let is_plain = |word: &Option<String>| {
        word.as_ref().is_some_and(|word| {
            let is_recursive = word.starts_with('-') && word.contains(['r', 'R', 'd']);
            !is_recursive && !word.contains(['*', '?', '['])
        })
    };
    matches!(command.program(), "rm" | "grm" | "unlink") && command.words.iter().all(is_plain)
}

/// Where git keeps which commits the names of a source mean.
fn names_of_commits(source: &GitSource) -> Vec<String> {
    let names = match source {
        GitSource::Commit(name) | GitSource::Merge(name) | GitSource::Base(name) => vec![name],
        GitSource::Changes(names) => names.iter().collect(),
        GitSource::Files { commit, .. } => commit.iter().collect(),
        GitSource::Stash(_) => return vec!["refs/stash".to_owned(), "logs/refs/stash".to_owned()],
        GitSource::Submodules | GitSource::History | GitSource::Unseen => return Vec::new(),
    };
    // `topic~2` and `main..topic` mean what `topic` and `main` mean.
    let parts = names
        .iter()
        .flat_map(|name| name.split(['~', '^', '@', ':']))
        .flat_map(|name| name.split(".."));
    let places =
        ["", "refs/", "refs/heads/", "refs/tags/", "refs/remotes/", "refs/remotes/origin/"];
    let below = |name: &str| places.map(|place| format!("{place}{name}"));
    let kept =
        parts.filter(|name| !name.is_empty() && !name.starts_with(['/', '.'])).flat_map(below);
    kept.chain(["HEAD", "packed-refs"].map(str::to_owned)).collect()
}

struct NamedFiles<'w> {
    workspace: &'w Workspace,
    found: BTreeMap<String, Option<String>>,
    /// How far files that name files are followed.
    most_depth: usize,
}

impl NamedFiles<'_> {
    /// Every file that words of a text name, from each of these directories.
    fn words(&mut self, text: &str, directories: &[PathBuf], depth: usize) {
        for word in named_files::words(text).take(MAX_WORDS) {
            for directory in directories {
                if word.contains(['*', '?']) {
                    self.matching(&directory.join(word), directory, depth);
                    continue;
                }
                // A name in the command itself may be of a file that somebody makes until then.
                let is_path = word.contains(['.', '/']) && !word.starts_with('-');
                if depth == 0 && is_path {
                    self.note_absent(&directory.join(word));
                }
                // A variable before it leaves `/x` of `$DIR/x`.
                let below = word.trim_start_matches('/');
                let named = named_files::candidates(below).into_iter().chain([word.to_owned()]);
                let read = named_files::manifests(word).map(str::to_owned);
                for path in named.chain(read) {
                    self.follow(&directory.join(path), directory, depth);
                }
            }
        }
    }

    /// The files of a directory that a glob stands for.
    fn matching(&mut self, pattern: &Path, directory: &Path, depth: usize) {
        let (Some(parent), Some(name)) = (pattern.parent(), pattern.file_name()) else { return };
        let (Some(start), Some(name)) = (parent.to_str(), name.to_str()) else { return };
        let (mut paths, mut seen) = (Vec::new(), 0);
        let all = ScanFilter { hidden: true, ignored: true };
        let _ = self.workspace.scan(start, all, &Stop::default(), &mut |entry| {
            seen += 1;
            if glob(name, entry.below) && !entry.below.contains('/') {
                paths.push(parent.join(entry.below));
            }
            match seen < 10 * MAX_FILES {
                true => std::ops::ControlFlow::Continue(()),
                false => std::ops::ControlFlow::Break(()),
            }
        });
        for path in paths {
            self.follow(&path, directory, depth);
        }
    }

    /// Adds a file and what it names, from where it lies and from where the command works.
    fn follow(&mut self, path: &Path, directory: &Path, depth: usize) {
        if let Some(text) = self.add(path, depth) {
            let own = path.parent().unwrap_or(directory).to_owned();
            let mut directories = vec![own, directory.to_owned()];
            directories.dedup();
            self.words(&text, &directories, depth + 1);
        }
    }

    /// Adds a file that there is; hands back its text, where that is to be followed.
    fn add(&mut self, path: &Path, depth: usize) -> Option<String> {
        let name = path.to_str()?.to_owned();
        if self.found.len() >= MAX_FILES || self.found.get(&name).is_some_and(Option::is_some) {
            return None;
        }
        let bytes = self.workspace.read_all(&name, MAX_FILE_BYTES).ok()?;
        self.found.insert(name, Some(content_hash(&bytes)));
        let is_followed = depth < self.most_depth && bytes.len() <= MAX_FOLLOWED_BYTES;
        String::from_utf8(bytes).ok().filter(|_| is_followed)
    }

    /// Adds a file, whether it is there or not.
    fn add_or_note(&mut self, path: &Path) {
        self.note_absent(path);
        self.add(path, MAX_DEPTH);
    }

    fn note_absent(&mut self, path: &Path) {
        let is_absent = |name: &&str| matches!(self.workspace.hash(name), Ok(None));
        if let Some(name) = path.to_str().filter(is_absent)
            && self.found.len() < MAX_FILES
        {
            self.found.insert(name.to_owned(), None);
        }
    }
}
