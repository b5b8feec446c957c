//! What a repository's own settings would have git run.

use std::path::Path;

use windlass_workflow::definition::Strategy;
use windlass_workflow::git::{Git, GitError};
use windlass_workflow::merge::{self, MergePreview, MergeRequest};
use windlass_workflow::worktree;

use crate::repository::{Repository, by_hand};

fn lines(repository: &Repository, is_fetching: bool) -> Vec<String> {
    let settings = repository.git().commanding_settings(is_fetching).unwrap();
    settings.map_or_else(Vec::new, |found| found.text.lines().map(str::to_owned).collect())
}

#[test]
fn settings_that_run_commands_are_named() {
    let repository = Repository::new();
    repository.by_hand(
        "git config core.fsmonitor x && git config core.hooksPath x && git config alias.st '!x'
         git config diff.x.textconv x && git config core.editor x && git config core.pager x
         git config submodule.lib.update rebase && git config filter.lfs.required true",
    );
    assert_eq!(lines(&repository, true), Vec::<String>::new(), "these are never run");
    repository.by_hand("git config core.sshCommand 'ssh -i key'");
    assert_eq!(lines(&repository, false), Vec::<String>::new(), "nothing is fetched");
    assert_eq!(lines(&repository, true), ["core.sshcommand = ssh -i key"]);
    repository.by_hand("git config filter.Crypt.smudge 'crypt %f' && git config merge.m.driver m");
    let both =
        ["core.sshcommand = ssh -i key", "filter.Crypt.smudge = crypt %f", "merge.m.driver = m"];
    assert_eq!(lines(&repository, false), both, "all are approved at once");
    repository.by_hand("git config --unset merge.m.driver && git config --unset core.sshCommand");
    repository.by_hand("git config --remove-section filter.Crypt");
    repository.write(".git/more", "[filter \"x\"]\n\tclean = x\n");
    repository.by_hand("git config include.path more");
    assert_eq!(lines(&repository, false), ["filter.x.clean = x"], "what is included counts");
}

/// In a part of a repository git fetches whenever it needs something.
#[test]
fn commands_that_fetch_count_where_git_fetches_by_itself() {
    let repository = Repository::new();
    repository.by_hand("git config remote.origin.uploadpack evil");
    assert_eq!(lines(&repository, false), Vec::<String>::new());
    repository.by_hand("git config remote.origin.promisor true");
    assert_eq!(lines(&repository, false), ["remote.origin.uploadpack = evil"]);
}

/// They would also hide what has changed: both versions may look the same to a person.
#[test]
fn what_shows_files_to_people_neither_runs_nor_counts() {
    let repository = Repository::new();
    let marker = tempfile::tempdir().unwrap();
    let ran = marker.path().join("ran");
    repository.write(".gitattributes", "*.txt diff=show\n");
    repository.by_hand("git add -A && git commit -qm attributes");
    repository.by_hand(&format!(
        "git config diff.show.textconv 'touch {0}; echo same #' && git config diff.external 'touch {0} #'",
        ran.display()
    ));
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    by_hand(path, "echo other > a.txt");
    assert!(worktree::commit_all(&git, path, "other").unwrap());
    let request = MergeRequest {
        branch: &tree.branch,
        tree: path,
        target: "main",
        strategy: Strategy::Rebase,
        message: "m",
    };
    let patch = |text: &str| {
        by_hand(path, &format!("echo {text} > a.txt && git commit -qam {text}"));
        match merge::compute(&git, &request).unwrap() {
            MergePreview::Clean(computed) => merge::patch(&git, &computed).unwrap(),
            found => panic!("{found:?}"),
        }
    };
    assert_ne!(patch("first"), patch("second"));
    assert!(!ran.exists(), "a program that shows files has run");
}

#[test]
fn a_directory_that_is_gone_is_named() {
    let repository = Repository::new();
    let git = repository.git();
    let gone = repository.top().join("gone");
    let error = Git::open(&gone).unwrap_err();
    assert!(matches!(&error, GitError::File { .. }), "{error}");
    assert!(error.to_string().contains("/repo/gone`: No such file or directory"), "{error}");
    std::fs::remove_dir_all(repository.top()).unwrap();
    let error = git.run(["status"]).unwrap_err();
    assert!(matches!(&error, GitError::File { .. }), "{error}");
}

/// A name may hold every byte but a slash.
#[test]
fn a_repository_of_any_name_is_opened() {
    let repository = Repository::new();
    let odd = repository.top().join("-a b\nc");
    std::fs::create_dir(&odd).unwrap();
    by_hand(
        &odd,
        "git init -q -b main && git -c user.name=A -c user.email=a@b commit -q --allow-empty -m start",
    );
    let git = Git::open(&odd).unwrap();
    assert_eq!(git.top(), odd);
    assert_eq!(git.branch_in(git.top()).unwrap().as_deref(), Some("main"));
}

/// Git itself would wait for a writer without an end.
#[test]
fn a_pipe_in_place_of_gits_own_file_is_named_at_once() {
    for name in ["HEAD", "config"] {
        let repository = Repository::new();
        repository.by_hand(&format!("rm .git/{name} && mkfifo .git/{name}"));
        let refused = Git::open(&repository.top()).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("not a regular file"), "{refused}");
    }
}
