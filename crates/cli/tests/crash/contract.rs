//! A completion contract and the ledger, killed at every commit: verified, sent back, verified, reviewed, done.

use serde_json::Value;
use windlass_store::{CommitPhase, CommitmentFilter, Options, Store};
use windlass_testkit::ModelServer;

use crate::machine::{Crash, Machine, Power, Ran};

const SCRIPT: &str = "
replies:
  - commit: {title: paint the door}
  - capture: {type: note, content: the door is raw}
  - write: {path: door.txt, content: red}
  - say: painted
  - read: {path: door.txt}
  - write: {path: door.txt, content: blue}
  - say: painted blue
";

const CONTRACT: &str = r#"{
  "required_files": ["door.txt"],
  "checks": { "colour": "grep -q blue door.txt || { echo not blue; exit 1; }", "size": "test -s door.txt" },
  "audit": "person"
}"#;

/// What a run came to.
#[derive(PartialEq, Debug)]
pub struct Outcome {
    contract: Value,
    file: String,
    /// What the agent read of the first failure.
    told: bool,
    commitments: usize,
    /// Commits of each process, in order.
    per_process: Vec<u64>,
}

impl Outcome {
    pub fn crash_points(&self) -> Vec<(Crash, Power)> {
        let mut points = Vec::new();
        for (process, &commits) in self.per_process.iter().enumerate() {
            for commit in 1..=commits {
                for phase in [CommitPhase::Before, CommitPhase::After] {
                    points.push((Crash { process, commit, phase }, Power::Fails));
                }
            }
        }
        points
    }

    pub fn same_as(&self, unbroken: &Self) -> Result<(), String> {
        let same = self.contract == unbroken.contract
            && self.file == unbroken.file
            && self.told == unbroken.told
            && self.commitments == unbroken.commitments;
        match same {
            true => Ok(()),
            false => Err(format!("{self:?}\nin place of\n{unbroken:?}")),
        }
    }
}

struct Play {
    machine: Machine,
    crash: Option<(Crash, Power)>,
    per_process: Vec<u64>,
}

/// Plays the scenario, killed at one point or at none.
pub fn play(crash: Option<(Crash, Power)>) -> Outcome {
    let machine = Machine::talking_to(ModelServer::start(SCRIPT));
    let directory = machine.workspace().join(".windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("completion.json"), CONTRACT).unwrap();
    let mut play = Play { machine, crash, per_process: Vec::new() };
    play.machine.windlass(&["trust", "--yes"], None);
    play.per_process.push(0);
    play.work();
    play.outcome()
}

impl Play {
    fn step(&mut self, args: &[&str]) -> Ran {
        let ran = self.machine.windlass(args, self.crash);
        self.per_process.push(ran.commits);
        ran
    }

    fn task(&mut self) -> Option<String> {
        let listed = self.machine.windlass(&["tasks", "--json"], None);
        self.per_process.push(0);
        let first = listed.stdout.lines().next()?;
        let task: Value = serde_json::from_str(first).unwrap();
        Some(task["task_id"].as_str().unwrap().to_owned())
    }

    /// Runs until the task is done; the review is approved.
    fn work(&mut self) {
        let mut ran = self.step(&["run", "paint the door", "-q"]);
        for _ in 0..30 {
            let Some(task) = self.task() else {
                ran = self.step(&["run", "paint the door", "-q"]);
                continue;
            };
            match ran.code {
                Some(0) => return,
                Some(2) if ran.stderr.contains("is already done") => return,
                Some(3) => {
                    while self.step(&["answer", &task, "approve"]).code.is_none() {}
                    ran = self.step(&["resume", &task, "-q"]);
                }
                None => ran = self.step(&["resume", &task, "-q"]),
                Some(code) => panic!("unexpected exit {code}: {}", ran.stderr),
            }
        }
        panic!("the task does not end");
    }

    fn outcome(self) -> Outcome {
        let store = Store::open(self.machine.data(), Options::default()).unwrap();
        assert_eq!(store.projections().verify().unwrap(), [], "the journal implies all of it");
        let rows = store.tasks().list(&windlass_store::Filter::default()).unwrap();
        let result = rows[0].result.as_ref().and_then(|result| result.contract.clone());
        let mut contract = serde_json::to_value(result).unwrap();
        // The calls of other tasks have other ids.
        for check in contract["checks"].as_array_mut().into_iter().flatten() {
            check.as_object_mut().unwrap().remove("call");
        }
        let requests = self.machine.server.requests();
        let told = requests.iter().any(|request| request.json().to_string().contains("not blue"));
        let file = std::fs::read_to_string(self.machine.workspace().join("door.txt"));
        Outcome {
            contract,
            file: file.unwrap_or_default(),
            told,
            commitments: store.commitments().list(&CommitmentFilter::default()).unwrap().len(),
            per_process: self.per_process,
        }
    }
}
