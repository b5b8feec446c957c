//! Workflows with the other kinds of workspaces, killed as the long one is: two runs take turns in a warm worktree, the
//! first opens a pull request and the second merges; a third works in a workspace that commands make and remove.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_store::CommitPhase;
use windlass_testkit::ModelServer;

use crate::flow::{Kill, KillMoment, by_hand, install_git};
use crate::machine::{Crash, Machine, Power, Ran};

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

pub struct Unbroken {
    outcome: Outcome,
    per_process: Vec<u64>,
    git_commands: usize,
}

impl Unbroken {
    /// Before every commit; and around every git command that changes something.
    pub fn points(&self) -> Vec<Kill> {
        let mut points = Vec::new();
        for (process, &commits) in self.per_process.iter().enumerate() {
            for commit in 1..=commits {
                let crash = Crash { process, commit, phase: CommitPhase::Before };
                points.push(Kill::Commit(crash, Power::Stays));
            }
        }
        for number in 1..=self.git_commands {
            let moments = [KillMoment::During, KillMoment::After];
            points.extend(moments.map(|moment| Kill::Git(number, moment)));
        }
        points
    }
}

/// Plays them unbroken.
pub fn unbroken() -> Unbroken {
    let mut play = Play::new(None);
    let ends = play.work();
    let count = std::fs::read_to_string(play.machine.bin().join("count")).unwrap();
    Unbroken {
        git_commands: count.trim().parse().unwrap(),
        per_process: std::mem::take(&mut play.per_process),
        outcome: play.outcome(ends),
    }
}

/// Plays them killed at one point; what is different from the unbroken runs.
pub fn play(kill: Kill, unbroken: &Unbroken) -> Result<(), String> {
    let mut play = Play::new(Some(kill));
    let ends = play.work();
    let outcome = play.outcome(ends);
    match outcome == unbroken.outcome {
        true => Ok(()),
        false => Err(format!(
            "workspaces killed at {kill:?}: {outcome:#?}\nin place of\n{:#?}",
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

    /// Runs all of them to their ends; how each ended.
    fn work(&mut self) -> Vec<String> {
        RUNS.map(|(workflow, title)| self.run(workflow, title)).to_vec()
    }

    /// The last run of a workflow, if it is the one that is wanted.
    fn status(&mut self, workflow: &str, title: &str) -> Option<Value> {
        let shown = self.look(&["workflow", "status", workflow, "--json"]);
        let view: Value =
            (shown.code == Some(0)).then(|| serde_json::from_str(&shown.stdout))?.unwrap();
        (view["title"] == title).then_some(view)
    }

    fn run(&mut self, workflow: &str, title: &str) -> String {
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
        let mut ran = self.step(&begin);
        for _ in 0..MAX_COMMANDS {
            let Some(view) = self.status(workflow, title) else {
                ran = self.step(&begin);
                continue;
            };
            if view["status"] == "done" {
                return ends(&view);
            }
            assert!(!matches!(ran.code, Some(1)), "{}", ran.stderr);
            if ran.code == Some(3) {
                let run = view["run"].as_str().unwrap().to_owned();
                let asked = self.look(&["inbox", "--json"]).stdout;
                assert!(
                    asked.is_empty() || asked.contains("git push"),
                    "only publishing is asked about: {asked}"
                );
                // A killed `answer` may have been stored; a second one is refused, and the first counts.
                while self.step(&["answer", &run, "Allow"]).code.is_none() {}
            }
            ran = self.step(&["workflow", "resume", workflow, "-q", "--sandbox", "host"]);
        }
        panic!("`{title}` does not come to an end: {}", ran.stderr);
    }

    fn outcome(self, ends: Vec<String>) -> Outcome {
        let top = self.machine.workspace();
        let worktrees = self.machine.data().with_file_name("data-worktrees");
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
            opened: std::fs::read_to_string(self.machine.bin().join("opened")).unwrap_or_default(),
            ends,
        }
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
