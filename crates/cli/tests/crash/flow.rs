//! A workflow of five steps, with a loop and a script that fails, killed before and after every commit, and around every
//! git command that changes the repository.
//!
//! Every command of it leaves a line in a file that is merged in the end, so a step that ran twice or not at all shows.
//! Where the program does not know whether a command ended, it asks; the person looks into the worktree and says so.

use std::path::PathBuf;

use serde_json::Value;
use windlass_store::{CommitPhase, Options, Store};
use windlass_testkit::{ModelServer, by_hand};

use crate::git::{Kill, KillMoment, Unbroken, install_git};
use crate::machine::{Machine, Power};
use crate::play::Play;

const SCRIPT: &str = r#"
replies:
  - {turn: 0, task: Write the page, write: {path: page.txt, content: page}}
  - turn: 1
    task: Write the page
    say: |
      ```json
      {"success": true, "summary": "written"}
      ```
"#;

const WORKFLOW: &str = "
worktree: {setup: 'echo up > setup.txt'}
steps:
  - {name: first, type: script, command: 'echo first >> log.txt && git add -A && git commit -qm first'}
  - name: page
    type: agent
    spell: |
      Write the page.
      Nothing else.
  - name: fix
    type: loop
    max: 3
    until: .test.success
    steps:
      - {name: test, type: script, command: 'echo test-{{.loop.round}} >> log.txt; test -e fixed.txt', on_fail: continue}
      - {name: repair, type: script, command: 'echo repair >> log.txt; echo fixed > fixed.txt', when: .test.failed}
  - {name: check, type: script, command: 'if test -e allowed.txt; then echo check-2; else echo check-1; fi >> log.txt; test -e allowed.txt'}
  - {name: land, type: merge, strategy: merge, gates: ['test -s log.txt'], message: Land it}
";

/// A run fails after this many command lines, because then something does not end.
const MAX_COMMANDS: usize = 20;

/// What a run came to.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// Every file of the target, with its content.
    tree: String,
    /// What was committed to it, in order.
    commits: String,
    /// Branches, worktrees, what is not committed in the checkout, and directories that are left.
    left: String,
    /// How the steps ended.
    steps: Vec<String>,
}

/// Plays it unbroken.
pub fn unbroken() -> Unbroken<Outcome> {
    Unbroken::play(prepared(None), finish)
}

/// Before and after every commit, the latter with a power failure; and around every git command that changes something.
pub fn points(unbroken: &Unbroken<Outcome>) -> Vec<Kill> {
    unbroken.points(
        &[(CommitPhase::Before, Power::Stays), (CommitPhase::After, Power::Fails)],
        &[KillMoment::Before, KillMoment::During, KillMoment::After],
    )
}

/// Plays it killed at one point; what is different from the unbroken run.
pub fn play(kill: Kill, unbroken: &Unbroken<Outcome>) -> Result<(), String> {
    unbroken.compare(kill, &finish(&mut prepared(Some(kill))))
}

fn prepared(kill: Option<Kill>) -> Play {
    let machine = Machine::talking_to(ModelServer::start(SCRIPT));
    let top = machine.workspace();
    std::fs::create_dir_all(top.join(".windlass/workflows")).unwrap();
    std::fs::write(top.join(".windlass/workflows/w.yaml"), WORKFLOW).unwrap();
    by_hand(&top, "git init -q -b main; git config user.name Ada; git config user.email a@b.c");
    by_hand(&top, "git add -A; git commit -qm start");
    let crash = install_git(&machine, kill);
    let mut play = Play::new(machine, crash);
    play.look(&["trust", "--yes"]);
    play
}

fn status(play: &mut Play) -> Option<Value> {
    let shown = play.look(&["workflow", "status", "w", "--json"]);
    (shown.code == Some(0)).then(|| serde_json::from_str(&shown.stdout).unwrap())
}

/// Runs until everything is done: resumes what was killed, answers what is asked, and puts right what failed.
fn work(play: &mut Play) {
    let mut ran = play.step(&["workflow", "run", "w", "-q"]);
    for _ in 0..MAX_COMMANDS {
        let Some(view) = status(play) else {
            ran = play.step(&["workflow", "run", "w", "-q"]);
            continue;
        };
        match ran.code {
            Some(0) => return,
            Some(2) if ran.stderr.contains("is already done") => return,
            Some(1) => {
                assert!(ran.stderr.contains("step `check`"), "{}", ran.stderr);
                allow(&view);
            }
            Some(3) => answer(play, &view),
            // Killed after it had stopped: the person reads that in its status.
            None if view["status"] == "blocked" && view["reason"] == "error" => allow(&view),
            None => {}
            Some(code) => panic!("unexpected exit {code}: {}", ran.stderr),
        }
        ran = play.step(&["workflow", "resume", "w", "-q"]);
    }
    panic!("the workflow does not come to an end: {}", ran.stderr);
}

/// Looks whether the command that was interrupted has done its work, and says so.
fn answer(play: &mut Play, view: &Value) {
    let run = view["run"].as_str().unwrap().to_owned();
    let asked = play.look(&["inbox", "--json"]).stdout;
    let Some(question) = asked.lines().next() else { return };
    let question: Value = serde_json::from_str(question).unwrap();
    let text = question["question"]["question"].as_str().unwrap_or_default();
    let step = text.split('`').nth(1).unwrap_or_default().to_owned();
    assert!(text.contains("was interrupted"), "{question}");
    let tree = worktree(view);
    let is_there = |name: &str| tree.join(name).exists();
    let (line, succeeded) = match step.as_str() {
        "first" => ("first".to_owned(), true),
        "check" if is_there("allowed.txt") => ("check-2".to_owned(), true),
        "check" => ("check-1".to_owned(), false),
        step if step.ends_with("repair") => ("repair".to_owned(), true),
        step => (format!("test-{}", &step[4..5]), is_there("fixed.txt")),
    };
    let log = std::fs::read_to_string(tree.join("log.txt")).unwrap_or_default();
    let answer = match (log.lines().any(|one| one == line), succeeded) {
        (false, _) => "Run it again",
        (true, true) => "It succeeded",
        (true, false) => "It failed",
    };
    if step == "first" && answer == "It succeeded" {
        by_hand(&tree, "git add -A; git diff --cached --quiet || git commit -qm first");
    }
    if step.ends_with("repair") && answer == "It succeeded" {
        by_hand(&tree, "echo fixed > fixed.txt");
    }
    play.answer(&run, answer);
}

fn finish(play: &mut Play) -> Outcome {
    work(play);
    let view = status(play).expect("a run");
    let steps = view["steps"].as_array().unwrap().clone();
    let ends: std::collections::BTreeMap<&str, String> = steps
        .iter()
        .map(|step| (step["step"].as_str().unwrap(), step["status"].to_string()))
        .collect();
    let store = Store::open(play.machine.data(), Options::default()).unwrap();
    assert_eq!(store.projections().verify().unwrap(), [], "the journal implies all of it");
    let top = play.machine.workspace();
    let worktrees = play.machine.data().with_file_name("data-worktrees");
    let left = by_hand(
        &top,
        &format!(
            "git for-each-ref refs/heads --format='%(refname)'; git worktree list | wc -l; \
             git status --porcelain; ls .git | grep -E '^index.lock|^MERGE' || true; \
             find {} -mindepth 2",
            worktrees.display()
        ),
    );
    Outcome {
        tree: by_hand(
            &top,
            "git ls-tree -r --name-only main | while read -r f; do echo \"== $f\"; git show main:$f; done",
        ),
        // Sorted: commits of one second stand in no order of their own.
        commits: by_hand(&top, "git log --format=%s main | sort"),
        left,
        steps: ends.into_iter().map(|(step, status)| format!("{step} {status}")).collect(),
    }
}

fn worktree(view: &Value) -> PathBuf {
    PathBuf::from(view["worktrees"][0]["path"].as_str().unwrap())
}

/// Puts right what the step `check` fails for.
fn allow(view: &Value) {
    std::fs::write(worktree(view).join("allowed.txt"), "yes\n").unwrap();
}
