//! What git puts into its work tree: files by name, patches, and what other commits hold.

use super::unnamed::note_unknown_names;
use super::{note, note_archive};
use crate::invocation::{Invocation, Style};
use crate::paths;
use crate::state::{Arg, UNKNOWN};
use crate::walk::Walk;
use windlass_core::policy::{ArrivalSource, GitSource};

/// Options before the subcommand whose value is a word of its own.
const GLOBAL_VALUES: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"];

/// Options after the subcommand whose value is a word of its own.
const VALUES: &str = "-b -B --orphan -m --message -F -s --strategy -X --strategy-option --onto -x --exec \
    --conflict --pathspec-from-file --prefix -P --mainline --source --cleanup --date --author --recurse-submodules \
    --index-output --depth --reference --jobs -j --whitespace --directory";

/// What earlier commands of the same text did to what names of commits mean.
#[derive(Debug, Default)]
pub(crate) struct EarlierGit {
    /// Commits were fetched, or a name or the index was set to something else.
    moved: bool,
    /// The files as they are were committed.
    committed: bool,
    /// The changes as they are were put aside.
    stashed: bool,
}

impl EarlierGit {
    /// Another repository or work tree is meant from here on.
    pub(crate) fn mark_moved(&mut self) {
        self.moved = true;
    }
}

/// A git command after its global options.
struct GitCall<'a> {
    directory: String,
    /// Whether it names a repository or a work tree of its own.
    is_elsewhere: bool,
    subcommand: &'a str,
    args: &'a [Arg],
    call: Invocation<'a>,
}

impl<'a> GitCall<'a> {
    fn new(args: &'a [Arg]) -> Option<Self> {
        let (mut directory, mut work_tree, mut is_elsewhere) = (".".to_owned(), None, false);
        let mut at = 0;
        while let Some(text) = args.get(at).map(|arg| &*arg.text).filter(|it| it.starts_with('-')) {
            let (name, glued) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
            let is_pair = glued.is_none() && GLOBAL_VALUES.contains(&name);
            let value = glued.or_else(|| args.get(at + 1).map(|arg| &*arg.text));
            match (name, value) {
                ("-C", Some(value)) => directory = paths::join(&directory, value),
                ("--work-tree", Some(value)) => work_tree = Some(value),
                _ => {}
            }
            is_elsewhere |= matches!(name, "--git-dir" | "--work-tree" | "--bare");
            at += if is_pair { 2 } else { 1 };
        }
        let subcommand = args.get(at)?.known()?;
        let args = args.get(at + 1..).unwrap_or_default();
        let values = match subcommand {
            "switch" => format!("{VALUES} -c -C"),
            "config" => "-f --file".to_owned(),
            "restore" => format!("{VALUES} -s"),
            _ => VALUES.to_owned(),
        };
        let directory = work_tree.map_or(directory.clone(), |tree| paths::join(&directory, tree));
        let call = Invocation::new("git", args, &values, Style::Bundled);
        Some(Self { directory, is_elsewhere, subcommand, args, call })
    }

    /// The operands, `None` where one is only known when it runs.
    fn operands(&self, skip: usize) -> Option<Vec<String>> {
        let operands = self.call.operands.iter().skip(skip);
        operands.map(|arg| arg.known().map(str::to_owned)).collect()
    }

    fn operand(&self, at: usize) -> Option<&str> {
        self.call.operands.get(at).map(|arg| &*arg.text)
    }

    /// The names before `--`, and the paths after it.
    fn parts(&self) -> (Vec<&Arg>, Option<Vec<&Arg>>) {
        let operands = self.call.operands.clone();
        match self.args.iter().position(|arg| arg.text == "--") {
            Some(at) => {
                let after = self.args.len() - at - 1;
                let before = operands.len().saturating_sub(after);
                (operands[..before].to_vec(), Some(operands[before..].to_vec()))
            }
            None => (operands, None),
        }
    }
}

/// Notes what arrives, and hands back the names that the text says.
pub(super) fn by_git(walk: &mut Walk<'_>, args: &[Arg]) -> Vec<String> {
    let Some(git) = GitCall::new(args) else { return Vec::new() };
    let names = named_files(walk, &git);
    for source in sources(walk, &git) {
        let is_sure = !walk.findings.git.moved && !git.is_elsewhere;
        let source = if is_sure && is_known(&source) { source } else { GitSource::Unseen };
        note(walk, |_| ArrivalSource::Git(source.clone()), ".", &git.directory);
    }
    remember(walk, &git);
    names
}

/// `gh pr checkout 12`: a branch is fetched and checked out; and other things that a code host sends.
pub(super) fn by_code_host(walk: &mut Walk<'_>, args: &[Arg]) -> Vec<String> {
    let values = "-R --repo -b --branch -D --dir -n --name -p --pattern";
    let call = Invocation::new("gh", args, values, Style::Bundled);
    let into = call.values("-D|--dir").next().unwrap_or(".").to_owned();
    match (call.word(0), call.word(1)) {
        (Some("pr" | "mr"), Some("checkout" | "co")) => {
            note(walk, |_| ArrivalSource::Git(GitSource::Unseen), ".", ".");
        }
        (Some("run" | "release"), Some("download")) => note_unknown_names(walk, &into),
        (Some("repo" | "gist"), Some("clone")) if call.word(3).is_some_and(is_here) => {
            note_unknown_names(walk, ".");
        }
        _ => {}
    }
    let is_clone = call.word(1) == Some("clone");
    call.word(3).filter(|_| is_clone).map(str::to_owned).into_iter().chain([into]).collect()
}

/// The files that a command names itself, and patches.
fn named_files(walk: &mut Walk<'_>, git: &GitCall<'_>) -> Vec<String> {
    let at = |path: &str| paths::join(&git.directory, path);
    let operands = |skip| git.call.operands.iter().skip(skip).map(|arg| at(&arg.text)).collect();
    match git.subcommand {
        "apply" | "am"
            if !git.call.has("--check|--stat|--numstat|--abort|--show-current-patch") =>
        {
            let files: Vec<String> = operands(0);
            for file in &files {
                note_archive(walk, ArrivalSource::Patch, Some(file), &git.directory);
            }
            if files.is_empty() {
                note_archive(walk, ArrivalSource::Patch, None, &git.directory);
            }
            // `--directory=.claude` puts a directory before every name.
            git.call.values("--directory").map(at).chain([git.directory.clone()]).collect()
        }
        "mv" => operands(0),
        "rm" if !git.call.has("--cached|-n|--dry-run") => operands(0),
        "config" => git.call.values("-f|--file").map(at).collect(),
        "submodule" if git.operand(0) == Some("add") => operands(1),
        "subtree" => git.call.values("-P|--prefix").map(at).collect(),
        "format-patch" => {
            let call = Invocation::new("git", git.args, "-o --output-directory", Style::Bundled);
            call.values("-o|--output-directory").map(at).collect()
        }
        "checkout-index" => git.call.values("--prefix").map(at).collect(),
        // `git checkout topic AGENTS.md`: the first word may be a name of a commit as well.
        "checkout" => operands(0),
        "restore" if changes_files(git) => operands(0),
        _ => Vec::new(),
    }
}

/// Where the files come from that a command puts into the work tree under names that it does not say.
fn sources(walk: &Walk<'_>, git: &GitCall<'_>) -> Vec<GitSource> {
    let call = &git.call;
    let is_over = call.has("--abort|--continue|--quit|--skip|--show-current-patch|--edit-todo");
    let all = || git.operands(0).unwrap_or_else(|| vec![UNKNOWN.to_string()]);
    let head = || "HEAD".to_owned();
    match git.subcommand {
        "checkout" => checkout(walk, git),
        "switch" => match call.operands.first() {
            Some(commit) => vec![commit_or_files(walk, &commit.text)],
            None if call.has("-c|-C|--create|--force-create|--detach|-d") => Vec::new(),
            None => vec![GitSource::Unseen],
        },
        "restore" => {
            let from = call.values("-s|--source").next().map(str::to_owned);
            match changes_files(git) {
                true => vec![files(walk, git, from, &call.operands)],
                false => Vec::new(),
            }
        }
        "reset" if call.has("--hard|--merge|--keep") => {
            let commit = git.operand(0).map_or_else(head, str::to_owned);
            vec![GitSource::Files { commit: Some(commit), paths: Vec::new() }]
        }
        "read-tree" if call.has("-u|-m|--reset") => {
            let files = |commit| GitSource::Files { commit: Some(commit), paths: Vec::new() };
            all().into_iter().map(files).collect()
        }
        "checkout-index" => {
            vec![GitSource::Files { commit: None, paths: Vec::new() }]
        }
        "merge" if is_over => Vec::new(),
        "merge" if call.values("-s|--strategy|-X|--strategy-option").any(is_shifting) => {
            vec![GitSource::Unseen]
        }
        "merge" if call.operands.is_empty() => vec![GitSource::Unseen],
        "merge" => all().into_iter().map(GitSource::Merge).collect(),
        "rebase" if is_over => Vec::new(),
        "rebase" => {
            let base = call.values("--onto").next().or(git.operand(0)).map(str::to_owned);
            let branch = git.operand(1).map(|branch| GitSource::Commit(branch.to_owned()));
            let base = match base {
                Some(base) => GitSource::Base(base),
                None if call.has("--root") => return Vec::new(),
                None => GitSource::Unseen,
            };
            [base].into_iter().chain(branch).collect()
        }
        "cherry-pick" | "revert" if is_over || call.operands.is_empty() => Vec::new(),
        "cherry-pick" | "revert" => vec![GitSource::Changes(all())],
        "stash" => stash(walk, git),
        "submodule" if git.operand(0) == Some("update") => vec![GitSource::Submodules],
        "bisect"
            if matches!(
                git.operand(0),
                Some("start" | "good" | "bad" | "old" | "new" | "skip" | "run" | "next" | "replay")
            ) =>
        {
            vec![GitSource::History]
        }
        "sparse-checkout" if matches!(git.operand(0), Some("set" | "add" | "disable")) => {
            vec![GitSource::Unseen]
        }
        "pull" if !call.has("--help|--dry-run") => vec![GitSource::Unseen],
        // Into a new directory below nothing arrives that an agent obeys.
        "clone" if git.operand(1).is_some_and(is_here) => vec![GitSource::Unseen],
        "svn" if matches!(git.operand(0), Some("rebase")) => vec![GitSource::Unseen],
        _ => Vec::new(),
    }
}

/// `git restore --staged` changes the index alone.
fn changes_files(git: &GitCall<'_>) -> bool {
    !git.call.has("-S|--staged") || git.call.has("-W|--worktree")
}

/// `git checkout` moves to a commit, or takes files from one or from the index.
fn checkout(walk: &Walk<'_>, git: &GitCall<'_>) -> Vec<GitSource> {
    let (before, after) = git.parts();
    let is_new = git.call.has("-b|-B|--orphan");
    match (&before[..], after) {
        ([], None) => Vec::new(),
        ([], Some(paths)) => vec![files(walk, git, None, &paths)],
        ([commit, ..], Some(paths)) if !paths.is_empty() => {
            vec![files(walk, git, Some(commit.text.clone()), &paths)]
        }
        ([commit], _) => {
            let mut sources = vec![commit_or_files(walk, &commit.text)];
            // Where no commit has that name it is a path.
            if !is_new && (commit.glob || commit.text.contains(['.', '/', '*', ':'])) {
                sources.push(files(walk, git, None, &before));
            }
            sources
        }
        ([commit, paths @ ..], _) => {
            let of_commit = files(walk, git, Some(commit.text.clone()), paths);
            vec![of_commit, files(walk, git, None, &before)]
        }
    }
}

/// After a commit of the same text the files as they are count, not the commit from before.
fn commit_or_files(walk: &Walk<'_>, commit: &str) -> GitSource {
    let commit = if commit == "-" { "@{-1}" } else { commit }.to_owned();
    match walk.findings.git.committed {
        true => GitSource::Files { commit: Some(commit), paths: Vec::new() },
        false => GitSource::Commit(commit),
    }
}

fn files(
    walk: &Walk<'_>,
    git: &GitCall<'_>,
    commit: Option<String>,
    operands: &[&Arg],
) -> GitSource {
    let is_listed = git.call.has("--pathspec-from-file");
    let plain = |arg: &&&Arg| !arg.glob && !arg.text.contains(['*', '?', '[', ':', UNKNOWN]);
    let is_plain = !is_listed && operands.iter().all(|arg| plain(&arg));
    let resolve = |arg: &&Arg| walk.paths().resolve(&paths::join(&git.directory, &arg.text));
    let resolved = operands.iter().flat_map(resolve).collect::<Option<Vec<String>>>();
    let paths = resolved.filter(|_| is_plain).unwrap_or_default();
    GitSource::Files { commit, paths }
}

fn stash(walk: &Walk<'_>, git: &GitCall<'_>) -> Vec<GitSource> {
    let stash_name = |name: Option<&str>| match name {
        None => "stash@{0}".to_owned(),
        Some(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => format!("stash@{{{name}}}"),
        Some(name) => name.to_owned(),
    };
    match git.operand(0) {
        None | Some("push" | "save") => {
            vec![GitSource::Files { commit: Some("HEAD".to_owned()), paths: Vec::new() }]
        }
        // What was put aside by this text is what there is now, and was looked at when it was put aside.
        Some("pop" | "apply") if walk.findings.git.stashed && git.operand(1).is_none() => {
            Vec::new()
        }
        Some("pop" | "apply") => vec![GitSource::Stash(stash_name(git.operand(1)))],
        Some("branch") => vec![GitSource::Stash(stash_name(git.operand(2)))],
        Some(_) => Vec::new(),
    }
}

/// A strategy that puts files of a commit into another directory.
fn is_shifting(strategy: &str) -> bool {
    strategy.contains("subtree")
}

fn is_here(directory: &str) -> bool {
    directory.split('/').all(|part| matches!(part, "" | "." | "..")) || directory.contains(UNKNOWN)
}

/// Whether all names of a source are known before it runs.
fn is_known(source: &GitSource) -> bool {
    let is_known = |name: &String| !name.contains(UNKNOWN) && !name.starts_with('-');
    match source {
        GitSource::Commit(name)
        | GitSource::Merge(name)
        | GitSource::Base(name)
        | GitSource::Stash(name) => is_known(name),
        GitSource::Changes(names) => names.iter().all(is_known),
        GitSource::Files { commit, .. } => commit.as_ref().is_none_or(is_known),
        GitSource::Submodules | GitSource::History | GitSource::Unseen => true,
    }
}

/// What a later command of the same text must know.
fn remember(walk: &mut Walk<'_>, git: &GitCall<'_>) {
    let earlier = &mut walk.findings.git;
    let call = &git.call;
    match git.subcommand {
        "fetch" | "pull" | "update-ref" | "symbolic-ref" | "update-index" | "read-tree"
        | "bundle" | "fast-import" | "replace" | "unpack-objects" | "index-pack" | "svn" | "p4"
        | "init" | "clone" | "am" | "filter-branch" | "filter-repo" | "config" => {
            earlier.moved = true
        }
        "remote" => earlier.moved |= git.operand(0) == Some("update"),
        "branch" | "tag" => earlier.moved |= call.has("-f|--force|-M|-C|-m|--move|-u"),
        "checkout" => earlier.moved |= call.has("-B"),
        "switch" => earlier.moved |= call.has("-C|--force-create"),
        "reset" => earlier.moved |= git.operand(0).is_some_and(|commit| commit != "HEAD"),
        "apply" => earlier.moved |= call.has("--index|--cached|-3|--3way"),
        "add" | "rm" | "mv" | "commit" => earlier.committed = true,
        "stash" => match git.operand(0) {
            None | Some("push" | "save") => earlier.stashed = true,
            Some("store") => earlier.moved = true,
            Some(_) => {}
        },
        _ => {}
    }
}
