//! A completion contract and the ledger, killed at every commit: verified, sent back, verified, reviewed, done.

use serde_json::Value;
use windlass_store::{CommitPhase, CommitmentFilter, Options, Store};
use windlass_testkit::ModelServer;

use crate::machine::{Crash, Machine, Power};
use crate::play::{Order, Play, differs, points};

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

const RUN: Order<'_> = Order { goal: "paint the door", args: &["run", "paint the door", "--json"] };

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    contract: Value,
    file: String,
    /// Whether the agent read why the first check failed.
    has_read_failure: bool,
    commitments: usize,
    /// Commits of each process, in order.
    per_process: Vec<u64>,
}

impl Outcome {
    pub fn crash_points(&self) -> Vec<(Crash, Power)> {
        points(
            &self.per_process,
            &[(CommitPhase::Before, Power::Fails), (CommitPhase::After, Power::Fails)],
        )
    }

    pub fn same_as(&self, unbroken: &Self) -> Result<(), String> {
        let same = self.contract == unbroken.contract
            && self.file == unbroken.file
            && self.has_read_failure == unbroken.has_read_failure
            && self.commitments == unbroken.commitments;
        match same {
            true => Ok(()),
            false => differs("the end", self, unbroken),
        }
    }
}

/// Plays the scenario, killed at one point or at none. The review is approved.
pub fn play(crash: Option<(Crash, Power)>) -> Outcome {
    let machine = Machine::talking_to(ModelServer::start(SCRIPT));
    let directory = machine.workspace().join(".windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("completion.json"), CONTRACT).unwrap();
    let mut play = Play::new(machine, crash);
    play.look(&["trust", "--yes"]);
    play.run(&RUN, |play, task| play.answer(task, "approve"));
    outcome(play)
}

fn outcome(play: Play) -> Outcome {
    let store = Store::open(play.machine.data(), Options::default()).unwrap();
    assert_eq!(store.projections().verify().unwrap(), [], "the journal implies all of it");
    let rows = store.tasks().list(&windlass_store::Filter::default()).unwrap();
    let result = rows[0].result.as_ref().and_then(|result| result.contract.clone());
    let mut contract = serde_json::to_value(result).unwrap();
    // The calls of other tasks have other ids.
    for check in contract["checks"].as_array_mut().into_iter().flatten() {
        check.as_object_mut().unwrap().remove("call");
    }
    let requests = play.machine.server.requests();
    let has_read_failure =
        requests.iter().any(|request| request.json().to_string().contains("not blue"));
    let file = std::fs::read_to_string(play.machine.workspace().join("door.txt"));
    Outcome {
        contract,
        file: file.unwrap_or_default(),
        has_read_failure,
        commitments: store.commitments().list(&CommitmentFilter::default()).unwrap().len(),
        per_process: play.per_process,
    }
}
