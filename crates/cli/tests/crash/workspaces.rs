//! Workflows with the other kinds of workspaces, killed as the long one is: two runs take turns in a warm worktree, the
//! first opens a pull request and the second merges; a third works in a workspace that commands make and remove.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_store::CommitPhase;
use windlass_testkit::{ModelServer, by_hand};

use crate::git::{Kill, KillMoment, Unbroken, install_git};
use crate::machine::{Machine, Power};
use crate::play::Play;

const WARM: &str = "
worktree: {reuse: 1, setup: 'mkdir -p build; echo up > build/log'}
steps:
  - {name: work, type: script, command: 'echo {{.bead.title}} > {{.bead.title}}.txt', rerun: true}
  - {name: draft, type: pull_request, when: 'eq .bead.title \"first\"'}
  - {name: land, type: merge, when: 'eq .bead.title \"second\"'}
";

const MADE: &str = "
worktree:
  create: 'cp {{.worktree.source}}/start.txt {{.worktree.path}}/'
  remove: sh ./take-back.sh
steps:
  - {name: work, type: script, command: 'cat start.txt > out.txt', rerun: true}
";

/// A command that was interrupted is repeated: the files may be back already.
const TAKE_BACK: &str = "\
test ! -e $WINDLASS_WORKSPACE/out.txt || cp $WINDLASS_WORKSPACE/out.txt made/
find $WINDLASS_WORKSPACE -mindepth 1 -delete
";

/// Takes the place of `gh`, whose server cannot be reached from here. What it opens stays open.
const GH: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$2" in
  view) cat "$here/opened" 2>/dev/null ;;
  create) echo https://example.com/pull/7 | tee -a "$here/opened" ;;
esac
"#;

/// The runs, one after the other: the workflow, and what it is started for.
const RUNS: [(&str, &str); 3] = [("warm", "first"), ("warm", "second"), ("made", "third")];

/// A run fails after this many command lines, because then something does not end.
const MAX_COMMANDS: usize = 20;

/// What the runs came to.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    tree: String,
    /// Branches here and at the remote, worktrees, what is not committed, directories that are left.
    left: String,
    /// Every line is a pull request that was opened.
    opened: String,
    /// How the steps and worktrees of each run ended.
    ends: Vec<String>,
}

/// Plays them unbroken.
pub fn unbroken() -> Unbroken<Outcome> {
    Unbroken::play(prepared(None), finish)
}

/// Before every commit; and around every git command that changes something.
pub fn points(unbroken: &Unbroken<Outcome>) -> Vec<Kill> {
    unbroken
        .points(&[(CommitPhase::Before, Power::Stays)], &[KillMoment::During, KillMoment::After])
}

/// Plays them killed at one point; what is different from the unbroken runs.
pub fn play(kill: Kill, unbroken: &Unbroken<Outcome>) -> Result<(), String> {
    unbroken.compare(kill, &finish(&mut prepared(Some(kill))))
}

fn prepared(kill: Option<Kill>) -> Play {
    let machine = Machine::talking_to(ModelServer::start("replies: []"));
    let top = machine.workspace();
    let files = top.join(".windlass/workflows");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("warm.yaml"), WARM).unwrap();
    std::fs::write(files.join("made.yaml"), MADE).unwrap();
    std::fs::write(top.join(".gitignore"), "build/\nmade/\n").unwrap();
    std::fs::write(top.join("start.txt"), "start\n").unwrap();
    std::fs::write(top.join("take-back.sh"), TAKE_BACK).unwrap();
    std::fs::create_dir(top.join("made")).unwrap();
    by_hand(&top, "git init -q -b main; git config user.name Ada; git config user.email a@b.c");
    by_hand(&top, "git add -A; git commit -qm start; git init -q --bare ../origin");
    by_hand(&top, "git remote add origin $(cd ../origin; pwd)");
    let crash = install_git(&machine, kill);
    std::fs::write(machine.bin().join("gh"), GH).unwrap();
    by_hand(&machine.bin(), "chmod +x gh");
    let mut play = Play::new(machine, crash);
    play.look(&["trust", "--yes"]);
    play
}

/// The last run of a workflow, if it is the one that is wanted.
fn status(play: &mut Play, workflow: &str, title: &str) -> Option<Value> {
    let shown = play.look(&["workflow", "status", workflow, "--json"]);
    let view: Value =
        (shown.code == Some(0)).then(|| serde_json::from_str(&shown.stdout))?.unwrap();
    (view["title"] == title).then_some(view)
}

/// Runs one of them to its end; how it ended.
fn run(play: &mut Play, workflow: &str, title: &str) -> String {
    // Pull requests are opened outside of a sandbox here: `gh` and the remote are not in it.
    let begin = [
        "workflow",
        "run",
        workflow,
        title,
        "-q",
        "--permission-profile",
        "trusted",
        "--sandbox",
        "host",
    ];
    let mut ran = play.step(&begin);
    for _ in 0..MAX_COMMANDS {
        let Some(view) = status(play, workflow, title) else {
            ran = play.step(&begin);
            continue;
        };
        if view["status"] == "done" {
            return ends(&view);
        }
        assert!(!matches!(ran.code, Some(1)), "{}", ran.stderr);
        if ran.code == Some(3) {
            let run = view["run"].as_str().unwrap().to_owned();
            let asked = play.look(&["inbox", "--json"]).stdout;
            assert!(
                asked.is_empty() || asked.contains("git push"),
                "only publishing is asked about: {asked}"
            );
            play.answer(&run, "Allow");
        }
        ran = play.step(&["workflow", "resume", workflow, "-q", "--sandbox", "host"]);
    }
    panic!("`{title}` does not come to an end: {}", ran.stderr);
}

/// Runs all of them to their ends.
fn finish(play: &mut Play) -> Outcome {
    let ends = RUNS.map(|(workflow, title)| run(play, workflow, title)).to_vec();
    let top = play.machine.workspace();
    let worktrees = play.machine.data().with_file_name("data-worktrees");
    let left = by_hand(
        &top,
        &format!(
            "git for-each-ref refs/heads --format='%(refname)'; git worktree list | wc -l; \
             git status --porcelain; find .git -name '*.lock' ! -name 'windlass*'; \
             git -C ../origin for-each-ref | wc -l; \
             cd {}; find . -mindepth 2 -maxdepth 3 ! -name .git | sed 's/-[0-9a-f]*\\///' | sort",
            worktrees.display()
        ),
    );
    Outcome {
        tree: by_hand(
            &top,
            "git ls-tree -r --name-only main; cat second.txt made/out.txt; \
             git -C ../origin log --all --format=%s | sort; git log --format=%s main | sort",
        ),
        left,
        opened: std::fs::read_to_string(play.machine.bin().join("opened")).unwrap_or_default(),
        ends,
    }
}

/// How the last attempt at each step ended, and the worktrees of a run.
fn ends(view: &Value) -> String {
    let steps: BTreeMap<String, String> = view["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["step"].to_string(), step["status"].to_string()))
        .collect();
    let trees: Vec<_> = view["worktrees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tree| format!("{} {}", tree["kind"], tree["state"]))
        .collect();
    format!("{steps:?} {trees:?} {}", view["pull_requests"])
}
