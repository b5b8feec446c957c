//! A git worktree beside its repository.

use crate::machine::{
    again_as_user, by_hand, commit_all, machine, results_of, run_in, status, write,
};

const SCRIPT: &str = "
replies:
  - {turn: 0, bash: 'git branch --show-current && git log --oneline | wc -l'}
  - {turn: 1, write: {path: notes/plan.md, content: 'one step'}}
  - {turn: 2, bash: 'git add -A && git commit -qm \"Plan it\" && git log --oneline | wc -l'}
  - {turn: 3, write: {path: notes/draft.md, content: 'half a step'}}
  - {turn: 4, bash: 'git stash -qu && git stash pop -q && git status --short'}
  - {turn: 5, say: Planned.}
  - {turn: 6, bash: 'git add -A && git commit -qm \"Keep the draft\"'}
  - {turn: 7, say: The draft is kept.}
";

#[test]
fn a_day_in_a_git_worktree() {
    let program = machine(SCRIPT);
    let main = program.workspace().join("main");
    write(&main, "README.md", "hello\n");
    commit_all(&program, &main);
    by_hand(&program, &main, "git worktree add -q -b feature ../feature");
    let tree = program.workspace().join("feature");

    let ran = run_in(&program, &tree, &["run", "plan it", "--json"]).expect(0);
    let results = results_of(&ran);
    assert_eq!(results[0], "feature\n1\n");
    assert!(results[4].ends_with("?? notes/draft.md\n"), "{}", results[4]);
    assert_eq!(
        by_hand(&program, &main, "git log --format='%an %s' feature"),
        "Ada L Plan it\nAda L start\n"
    );
    assert_eq!(status(&program, &tree), "?? notes/draft.md\n");
    assert_eq!(status(&program, &main), "");

    let goal = ["run", "--continue", "keep the draft", "-p"];
    assert_eq!(run_in(&program, &tree, &goal).expect(0).stdout, "The draft is kept.\n");
    assert_eq!(status(&program, &tree), "");
    by_hand(&program, &main, "git fsck --strict && git worktree list");
    again_as_user(concat!(module_path!(), "::a_day_in_a_git_worktree"));
}
