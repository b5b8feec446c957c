//! A workflow of five steps, with a loop and a script that fails, killed before and after every commit, and around every
//! git command that changes the repository.
//!
//! Every command of it leaves a line in a file that is merged in the end, so a step that ran twice or not at all shows.
//! Where the program does not know whether a command ended, it asks; the person looks into the worktree and says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use windlass_store::{CommitPhase, Options, Store};
use windlass_testkit::ModelServer;

use crate::machine::{Crash, Machine, Power, Ran};

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

/// Takes the place of git: at one chosen command that changes something it kills the program that started it, and goes
/// on or dies with it. `kill-at` holds the number of the command and the manner.
const GIT: &str = r#"#!/bin/sh
here=$(dirname "$0")
case " $* " in
  *" worktree add "*|*" worktree remove "*|*" worktree prune "*|*" reset "*|*" add --all "*|*" commit "*|\
  *" commit-tree "*|*" notes "*|*" update-ref "*|*" merge --quiet "*|*" merge-tree "*|\
  *" checkout --quiet --detach "*|*" symbolic-ref HEAD "*|*" clean --quiet "*) ;;
  *) exec REAL "$@" ;;
esac
count=$(($(cat "$here/count" 2>/dev/null || echo 0) + 1))
echo "$count" > "$here/count"
read -r at manner < "$here/kill-at" 2>/dev/null || at=0
[ "$count" = "$at" ] || exec REAL "$@"
rm "$here/kill-at"
# A job in the background would lose the lock that it has as its input.
exec 3<&0
case "$manner" in
  before) kill -9 $PPID; exec REAL "$@" ;;
  during) REAL "$@" <&3 & kill -9 $PPID; kill -9 $!; wait ;;
  after) REAL "$@" <&3; kill -9 $PPID ;;
esac
"#;

/// A run fails after this many command lines, because then something does not end.
const MAX_COMMANDS: usize = 20;

/// When the program dies around a git command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillMoment {
    /// Git works on without it.
    Before,
    /// Both die.
    During,
    /// Git has ended.
    After,
}

/// Where a run is killed.
#[derive(Clone, Copy, Debug)]
pub enum Kill {
    Commit(Crash, Power),
    Git(usize, KillMoment),
}

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

/// An unbroken run, and how often it can be killed.
pub struct Unbroken {
    pub outcome: Outcome,
    per_process: Vec<u64>,
    git_commands: usize,
}

impl Unbroken {
    /// Before and after every commit, the latter with a power failure; and around every git command that changes
    /// something.
    pub fn points(&self) -> Vec<Kill> {
        let mut points = Vec::new();
        for (process, &commits) in self.per_process.iter().enumerate() {
            for commit in 1..=commits {
                let at = |phase| Crash { process, commit, phase };
                points.push(Kill::Commit(at(CommitPhase::Before), Power::Stays));
                points.push(Kill::Commit(at(CommitPhase::After), Power::Fails));
            }
        }
        for number in 1..=self.git_commands {
            let manners = [KillMoment::Before, KillMoment::During, KillMoment::After];
            points.extend(manners.map(|manner| Kill::Git(number, manner)));
        }
        points
    }

    pub fn describe(&self) -> String {
        let commits: u64 = self.per_process.iter().sum();
        format!("{commits} commits and {} git commands of a workflow", self.git_commands)
    }
}

/// Plays it unbroken.
pub fn unbroken() -> Unbroken {
    let mut play = Play::new(None);
    play.work();
    let count = std::fs::read_to_string(play.machine.bin().join("count")).unwrap();
    Unbroken {
        git_commands: count.trim().parse().unwrap(),
        per_process: std::mem::take(&mut play.per_process),
        outcome: play.outcome(),
    }
}

/// Plays it killed at one point; what is different from the unbroken run.
pub fn play(kill: Kill, unbroken: &Unbroken) -> Result<(), String> {
    let mut play = Play::new(Some(kill));
    play.work();
    let outcome = play.outcome();
    match outcome == unbroken.outcome {
        true => Ok(()),
        false => Err(format!(
            "workflow killed at {kill:?}: {outcome:#?}\nin place of\n{:#?}",
            unbroken.outcome
        )),
    }
}

struct Play {
    machine: Machine,
    crash: Option<(Crash, Power)>,
    per_process: Vec<u64>,
}

impl Play {
    fn new(kill: Option<Kill>) -> Self {
        let machine = Machine::talking_to(ModelServer::start(SCRIPT));
        let top = machine.workspace();
        std::fs::create_dir_all(top.join(".windlass/workflows")).unwrap();
        std::fs::write(top.join(".windlass/workflows/w.yaml"), WORKFLOW).unwrap();
        by_hand(&top, "git init -q -b main; git config user.name Ada; git config user.email a@b.c");
        by_hand(&top, "git add -A; git commit -qm start");
        let crash = install_git(&machine, kill);
        let mut play = Self { machine, crash, per_process: Vec::new() };
        play.look(&["trust", "--yes"]);
        play
    }

    /// A command line that may be killed.
    fn step(&mut self, args: &[&str]) -> Ran {
        let ran = self.machine.windlass(args, self.crash);
        self.per_process.push(ran.commits);
        ran
    }

    /// One that is not.
    fn look(&mut self, args: &[&str]) -> Ran {
        let ran = self.machine.windlass(args, None);
        self.per_process.push(0);
        ran
    }

    fn status(&mut self) -> Option<Value> {
        let shown = self.look(&["workflow", "status", "w", "--json"]);
        (shown.code == Some(0)).then(|| serde_json::from_str(&shown.stdout).unwrap())
    }

    /// Runs until everything is done: resumes what was killed, answers what is asked, and puts right what failed.
    fn work(&mut self) {
        let mut ran = self.step(&["workflow", "run", "w", "-q"]);
        for _ in 0..MAX_COMMANDS {
            let Some(view) = self.status() else {
                ran = self.step(&["workflow", "run", "w", "-q"]);
                continue;
            };
            match ran.code {
                Some(0) => return,
                Some(2) if ran.stderr.contains("is already done") => return,
                Some(1) => {
                    assert!(ran.stderr.contains("step `check`"), "{}", ran.stderr);
                    allow(&view);
                }
                Some(3) => self.answer(&view),
                // Killed after it had stopped: the person reads that in its status.
                None if view["status"] == "blocked" && view["reason"] == "error" => allow(&view),
                None => {}
                Some(code) => panic!("unexpected exit {code}: {}", ran.stderr),
            }
            ran = self.step(&["workflow", "resume", "w", "-q"]);
        }
        panic!("the workflow does not come to an end: {}", ran.stderr);
    }

    /// Looks whether the command that was interrupted has done its work, and says so.
    fn answer(&mut self, view: &Value) {
        let run = view["run"].as_str().unwrap().to_owned();
        let asked = self.look(&["inbox", "--json"]).stdout;
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
        // A killed `answer` may have been stored; a second one is refused, and the first counts.
        while self.step(&["answer", &run, answer]).code.is_none() {}
    }

    fn outcome(mut self) -> Outcome {
        let view = self.status().expect("a run");
        let steps = view["steps"].as_array().unwrap().clone();
        let ends: std::collections::BTreeMap<&str, String> = steps
            .iter()
            .map(|step| (step["step"].as_str().unwrap(), step["status"].to_string()))
            .collect();
        let store = Store::open(self.machine.data(), Options::default()).unwrap();
        assert_eq!(store.projections().verify().unwrap(), [], "the journal implies all of it");
        let top = self.machine.workspace();
        let worktrees = self.machine.data().with_file_name("data-worktrees");
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
}

/// Puts the git that kills in the place of the machine's; the commit to kill at, where it is one.
pub fn install_git(machine: &Machine, kill: Option<Kill>) -> Option<(Crash, Power)> {
    let bin = machine.bin();
    std::fs::create_dir(&bin).unwrap();
    let real = by_hand(&bin, "command -v git");
    std::fs::write(bin.join("git"), GIT.replace("REAL", real.trim())).unwrap();
    by_hand(&bin, "chmod +x git");
    match kill? {
        Kill::Commit(crash, power) => Some((crash, power)),
        Kill::Git(number, moment) => {
            let moment = format!("{moment:?}").to_lowercase();
            std::fs::write(bin.join("kill-at"), format!("{number} {moment}\n")).unwrap();
            None
        }
    }
}

fn worktree(view: &Value) -> PathBuf {
    PathBuf::from(view["worktrees"][0]["path"].as_str().unwrap())
}

/// Puts right what the step `check` fails for.
fn allow(view: &Value) {
    std::fs::write(worktree(view).join("allowed.txt"), "yes\n").unwrap();
}

/// What a person does with the real git.
pub fn by_hand(directory: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
