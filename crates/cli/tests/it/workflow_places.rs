//! Where steps of workflows work: with a part of the files, in a warm worktree, with a shared cache, in a workspace that
//! commands make; and what is handed to others at the end.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::program::{Program, Ran};
use crate::workflows::{here, put, repository, run, status, steps, worktree};

const FILE: &str = ".windlass/workflows/w.yaml";

/// A repository whose workflow has these keys for its worktree, approved.
fn with_worktree(keys: &str, steps: &str) -> Program {
    let program = repository(steps);
    put(&program, "docs/guide.txt", "guide\n");
    put(&program, "src/main.txt", "main\n");
    put(&program, ".gitignore", "build/\n");
    put(&program, FILE, &format!("worktree: {{{keys}}}\nsteps:{steps}"));
    here(&program, "git add -A && git commit -qm directories");
    program.windlass(&["trust", "--yes"]).expect(0);
    program
}

const WRITES: &str = "
  - {name: work, type: script, command: 'ls; cat build/log; echo new > src/new.txt'}
  - {name: land, type: merge}
";

fn run_w(program: &Program) -> Ran {
    program.windlass(&["workflow", "run", "w", "--permission-profile", "trusted"])
}

fn output(program: &Program, step: usize) -> String {
    status(program)["steps"][step]["output"]["output"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_in_a_sparse_worktree_leaves_the_rest_alone() {
    let program = with_worktree("sparse: [src]", WRITES);
    run_w(&program).expect(0);
    let seen = output(&program, 0);
    assert!(seen.contains("src") && !seen.contains("docs"), "{seen}");
    assert_eq!(
        here(&program, "cat docs/guide.txt src/new.txt && git status --porcelain"),
        "guide\nnew\n"
    );
    assert_eq!(status(&program)["worktrees"][0]["sparse"], json!(["src"]));
    let shown = program.windlass(&["workflow", "status", "w"]).expect(0).stdout;
    assert!(shown.contains("worktree removed, only src: "), "{shown}");
}

/// What git ignores stays for the next run, in the same place; commits of the one before do not.
#[test]
fn runs_take_turns_in_a_warm_worktree() {
    let program =
        with_worktree("reuse: 1, setup: 'mkdir -p build && echo up >> build/log'", WRITES);
    run_w(&program).expect(0);
    let first = worktree(&program);
    assert_eq!(status(&program)["worktrees"][0]["state"], "released");
    assert!(first.ends_with("w-warm-1") && first.join("build/log").exists(), "{first:?}");
    here(&program, "git rm -q src/new.txt && git commit -qm again");
    run_w(&program).expect(0);
    assert_eq!(worktree(&program), first);
    assert!(output(&program, 0).ends_with("up\nup"), "{}", output(&program, 0));
    assert_eq!(
        here(&program, "git worktree list | wc -l && git branch --list 'windlass/*'"),
        "2\n"
    );
    let pruned = program.windlass(&["workflow", "prune"]).expect(0).stdout;
    assert!(pruned.contains("it stays warm for the next run"), "{pruned}");
    assert!(pruned.contains("0 worktrees removed, 1 kept") && first.exists(), "{pruned}");
}

/// A run that is blocked has its warm worktree to itself; the next one makes another.
#[test]
fn a_warm_worktree_in_use_is_not_shared() {
    let asks = "
  - {name: work, type: script, command: 'echo precious > new.txt'}
  - {name: wait, type: ask, question: Ready?}
";
    let program = with_worktree("reuse: 1", asks);
    run_w(&program).expect(3);
    let first = worktree(&program);
    run_w(&program).expect(3);
    assert_ne!(worktree(&program), first);
    assert_eq!(std::fs::read_to_string(first.join("new.txt")).unwrap(), "precious\n");
}

/// Commands of every run find the same directory by its variable; it is in no worktree.
#[test]
fn worktrees_share_a_build_cache() {
    let steps = "
  - {name: fill, type: script, command: sh ./build.sh}
";
    let program = with_worktree("cache: {MY_CACHE: target}", steps);
    put(&program, "build.sh", "echo built >> \"$MY_CACHE/log\"; cat \"$MY_CACHE/log\"\n");
    here(&program, "git add -A && git commit -qm build");
    program.windlass(&["trust", "--yes"]).expect(0);
    run_w(&program).expect(0);
    run_w(&program).expect(0);
    assert_eq!(output(&program, 0), "built\nbuilt");
}

fn workspace_file(remove: &str) -> String {
    format!(
        "worktree:\n  create: 'cp {{{{.worktree.source}}}}/a.txt {{{{.worktree.path}}}}/'\n  remove: '{remove}'\nsteps:\n  - {{name: work, type: script, command: 'cat a.txt && pwd && echo done > out.txt'}}\n"
    )
}

/// Another version control system, as far as it matters here: commands bring the files and take them back.
fn without_git(remove: &str) -> Program {
    let program = Program::playing("replies: []");
    put(&program, "a.txt", "one\n");
    // As scripts of a project find it: by the variable.
    put(&program, "empty.sh", "find \"$WINDLASS_WORKSPACE\" -mindepth 1 -delete\n");
    put(&program, FILE, &workspace_file(remove));
    program
}

const TAKES_BACK: &str = "cp {{.worktree.path}}/out.txt {{.worktree.source}}/ && sh ./empty.sh";

/// They are commands of the project: nothing runs before a person has read them all.
#[test]
fn commands_make_workspaces_in_place_of_git() {
    let program = without_git(TAKES_BACK);
    program.windlass(&["workflow", "run", "w"]).expect(3);
    assert_eq!(status(&program)["worktrees"], json!([]), "nothing has run");
    let asked = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(asked.contains("worktree create") && asked.contains("worktree remove"), "{asked}");
    program.windlass(&["answer", &run(&program), "Approve", "--resume"]).expect(0);
    let place = worktree(&program);
    assert_eq!(output(&program, 0), format!("one\n{}", place.display()));
    assert_eq!(program.file("out.txt"), "done\n");
    assert!(!place.exists());
    assert_eq!(status(&program)["worktrees"][0]["kind"], "command");
}

/// Only its own command knows what would be lost: where that fails, the workspace stays.
#[test]
fn a_workspace_stays_where_its_removal_fails() {
    let program = without_git("echo it has changes; exit 1");
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let tree = &status(&program)["worktrees"][0];
    assert_eq!((&tree["state"], &tree["standing"]), (&json!("kept"), &json!("left_over")));
    assert_eq!(tree["detail"], "the `remove` command: exit code 1: it has changes");
    assert!(worktree(&program).join("out.txt").exists());
}

/// `gh` cannot reach its server from here: a script in its place prints what it would, and writes down how it was called.
/// Everything else is real: the gate, git, the remote.
fn with_gh(program: &Program) -> (PathBuf, String) {
    let bin = program.data.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let calls = bin.join("calls");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> {0}\ncase \"$2\" in\nview) test -s {0}.open && cat {0}.open ;;\ncreate) echo https://example.com/pull/7 | tee {0}.open ;;\nesac\n",
        calls.display()
    );
    std::fs::write(bin.join("gh"), script).unwrap();
    std::fs::set_permissions(bin.join("gh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    (calls, format!("{}:{path}", bin.display()))
}

/// WF-006: what the project says to agents is in the worktree too, as it was committed.
#[test]
fn instructions_in_a_worktree_guide_its_agent() {
    let steps = "
  - {name: look, type: script, command: ls}
  - {name: login, type: agent, spell: login}
";
    let program = with_worktree("base: head", steps);
    put(&program, "AGENTS.md", "Paint every door green.\n");
    here(&program, "git add -A && git commit -qm rules");
    put(&program, "AGENTS.md", "Paint every door red.\n");
    run_w(&program).expect(0);
    let sent = program.server.requests()[0].json().to_string();
    assert!(sent.contains("Paint every door green."), "{sent}");
}

const DRAFT: &str = "
  - {name: work, type: script, command: 'echo new > new.txt'}
  - {name: draft, type: pull_request, title: 'Add {{.bead.title}}', body: \"It's new\", output: link}
  - {name: say, type: script, command: 'echo {{.link}}'}
";

fn on_host(program: &Program, path: &str, args: &[&str]) -> Ran {
    program
        .command(&[args, &["--sandbox", "host"]].concat())
        .env("PATH", path)
        .output()
        .unwrap()
        .into()
}

#[test]
fn a_draft_pull_request_is_opened_and_its_link_kept() {
    let program = with_worktree("base: head", DRAFT);
    let (calls, path) = with_gh(&program);
    here(&program, "git init -q --bare .git/remote && git remote add origin .git/remote");
    let remote = program.workspace().join(".git/remote");
    here(&program, &format!("git remote set-url origin {}", remote.display()));
    on_host(&program, &path, &["workflow", "run", "w", "the door"]).expect(3);
    let asked = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(
        asked.contains("git push --quiet origin") && asked.contains("gh pr create --draft"),
        "{asked}"
    );
    assert!(!calls.exists(), "nothing is published before a person has said yes");
    let run = run(&program);
    program.windlass(&["answer", &run, "Allow"]).expect(0);
    on_host(&program, &path, &["workflow", "resume", "w"]).expect(0);

    assert_eq!(steps(&program), ["work succeeded", "draft succeeded", "say succeeded"]);
    let link = "https://example.com/pull/7";
    let view = status(&program);
    assert_eq!(view["pull_requests"], json!([link]));
    assert_eq!(view["steps"][1]["output"]["url"], link);
    assert_eq!(output(&program, 2), link);
    let shown = program.windlass(&["workflow", "status", "w"]).expect(0).stdout;
    assert!(shown.contains(&format!("pull request: {link}")), "{shown}");
    let branch = view["worktrees"][0]["branch"].as_str().unwrap();
    let pushed = here(&program, &format!("git -C .git/remote log -1 --format=%s {branch}"));
    assert_eq!(pushed, "the door\n");
    let called = std::fs::read_to_string(calls).unwrap();
    let create = format!(
        "pr create --draft --head {branch} --base main --title Add the door --body It's new"
    );
    assert!(called.contains(&create), "{called}");
    assert_eq!(view["worktrees"][0]["state"], "removed", "the remote has everything");
}

#[test]
fn a_program_for_pull_requests_that_is_missing_is_named() {
    let draft = "
  - {name: work, type: script, command: 'echo new > new.txt'}
  - {name: draft, type: pull_request, command: 'no-such-forge open'}
";
    let program = with_worktree("base: head", draft);
    here(&program, "git init -q --bare .git/remote");
    let remote = program.workspace().join(".git/remote");
    here(&program, &format!("git remote add origin {}", remote.display()));
    let path = std::env::var("PATH").unwrap();
    let args = ["workflow", "run", "w", "--permission-profile", "trusted"];
    on_host(&program, &path, &args).expect(3);
    let run = run(&program);
    program.windlass(&["answer", &run, "Allow"]).expect(0);
    on_host(&program, &path, &["workflow", "resume", "w"]).expect(1);
    let view: Value = status(&program);
    assert_eq!(
        view["steps"][1]["error"],
        "`no-such-forge` is not installed where the step runs; install it, or name another program with `command`"
    );
    assert_eq!(view["status"], "blocked");
}

/// What a person checks out while a run works is neither where its work goes nor what it is made from.
#[test]
fn work_goes_to_the_branch_of_the_start() {
    const WAIT: &str = "{name: wait, type: ask, question: 'Go on?', options: ['yes']}";
    let one_after_the_other =
        format!("\n  - {{name: work, type: script, command: 'echo x > x.txt'}}\n  - {WAIT}\n");
    let side_by_side = format!(
        "
  - name: both
    type: parallel
    steps:
      - {{name: work, type: script, command: 'echo x > x.txt'}}
      - {WAIT}
"
    );
    for steps in [one_after_the_other, side_by_side] {
        let program = repository(&format!("{steps}  - {{name: land, type: merge}}\n"));
        program.windlass(&["trust", "--yes"]).expect(0);
        run_w(&program).expect(3);
        here(
            &program,
            "git checkout -qb other && echo y > theirs.txt && git add -A && git commit -qm theirs",
        );
        program.windlass(&["answer", &run(&program), "yes", "--resume"]).expect(0);
        let files = here(&program, "git ls-tree --name-only main");
        assert!(files.contains("x.txt") && !files.contains("theirs.txt"), "{steps}\n{files}");
        let files = here(&program, "git ls-tree --name-only other && git status --porcelain");
        assert!(files.contains("theirs.txt") && !files.contains("x.txt"), "{steps}\n{files}");
    }
}

/// Somebody has deleted the worktree of a run: what was committed comes back, and what is lost is said.
#[test]
fn a_worktree_that_was_deleted_is_named() {
    let program = repository(
        "
  - {name: work, type: script, command: 'echo x > x.txt'}
  - {name: wait, type: ask, question: 'Go on?', options: ['yes']}
  - {name: land, type: merge}
",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    run_w(&program).expect(3);
    std::fs::remove_dir_all(worktree(&program)).unwrap();
    let ran = program.windlass(&["answer", &run(&program), "yes", "--resume"]).expect(0);
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(shown.contains("its directory was gone: it was made again from its branch"), "{shown}");
}
