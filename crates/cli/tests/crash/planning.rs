//! A plan that is proposed, accepted and carried out, killed before and after every commit of it.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_store::{CommitPhase, Options, Store};
use windlass_testkit::ModelServer;

use crate::machine::{Crash, Machine, Power};
use crate::play::{Order, Play, differs, points};
use crate::scenario::{comparable, files, masked};

const SCRIPT: &str = "
replies:
  - read: notes.txt
    usage: {input: 100, output: 10}
  - say: Paint the door blue.
    usage: {input: 100, output: 10}
  - bash: echo once >> effect
    usage: {input: 100, output: 10}
  - say: All done.
    usage: {input: 100, output: 10}
";

const RUN: Order<'_> =
    Order { goal: "paint the door", args: &["run", "paint the door", "--mode", "plan", "--json"] };

/// What a run came to.
pub struct Outcome {
    /// Commits of each process, in order.
    per_process: Vec<u64>,
    result: Value,
    files: BTreeMap<String, String>,
    conversation: Vec<String>,
    /// `from → to` of every change of the task's axes, and every row of the session's changes.
    changes: Vec<String>,
    /// How often a plan was accepted, and what the acceptance was bound to.
    accepted: Vec<String>,
    /// How often the command took effect.
    effects: usize,
}

/// Plays it whole, killed at one point or at none.
pub fn play(crash: Option<(Crash, Power)>) -> Outcome {
    let machine = Machine::talking_to(ModelServer::start(SCRIPT));
    std::fs::write(machine.workspace().join("notes.txt"), "a note\n").unwrap();
    let mut play = Play::new(machine, crash);
    let result = play.run(&RUN, |play, task| play.answer(task, "Accept and run autonomously"));
    outcome(play, &result)
}

fn outcome(mut play: Play, result: &Value) -> Outcome {
    let task = play.task(RUN.goal).expect("a task");
    let events = play.look(&["events", &task, "--json"]).stdout;
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &'static str| events.iter().filter(move |event| event["event_type"] == kind);
    let change = |event: &Value| format!("{} → {}", event["data"]["from"], event["data"]["to"]);
    let bound = |event: &Value| {
        let accepted = &event["data"];
        format!("{} {} {}", accepted["text"], accepted["digest"], accepted["axes"])
    };
    let mut changes: Vec<String> = of("mode_changed").map(change).collect();
    let store = Store::open(play.machine.data(), Options::default()).unwrap();
    let session = store.sessions().newest(1).unwrap()[0].id;
    let rows = store.sessions().transitions(session).unwrap();
    changes.extend(rows.iter().map(|row| format!("{} {} {}", row.scope, row.source, row.to)));
    assert_eq!(store.projections().verify().unwrap(), [], "the journal implies all of it");
    let requests = play.machine.server.requests();
    let messages = requests.last().unwrap().messages();
    let mut files = files(&play.machine.workspace());
    Outcome {
        per_process: play.per_process,
        result: comparable(result),
        effects: files.remove("effect").map_or(0, |text| text.lines().count()),
        files,
        conversation: messages.into_iter().map(|message| masked(&message.raw)).collect(),
        changes,
        accepted: of("plan_accepted").map(bound).collect(),
    }
}

impl Outcome {
    /// Before and after every commit of every process; after each also with a power failure.
    pub fn crash_points(&self) -> Vec<(Crash, Power)> {
        points(
            &self.per_process,
            &[
                (CommitPhase::Before, Power::Stays),
                (CommitPhase::After, Power::Stays),
                (CommitPhase::After, Power::Fails),
            ],
        )
    }

    /// One plan was accepted, once, and carried out, once.
    pub fn is_whole(&self) -> bool {
        self.accepted.len() == 1 && self.effects == 1
    }

    pub fn same_as(&self, unbroken: &Self) -> Result<(), String> {
        if self.result != unbroken.result {
            return differs("the result", &self.result, &unbroken.result);
        }
        if self.changes != unbroken.changes || self.accepted != unbroken.accepted {
            let accepted = (&self.changes, &self.accepted);
            return differs(
                "what was accepted",
                &accepted,
                &(&unbroken.changes, &unbroken.accepted),
            );
        }
        if self.files != unbroken.files {
            return differs("the workspace", &self.files, &unbroken.files);
        }
        let mut unknown = 0;
        let pairs = self.conversation.iter().zip(&unbroken.conversation);
        for (this, that) in pairs {
            match this.contains("UNKNOWN OUTCOME") {
                true => unknown += 1,
                false if this != that => return differs("a message", this, that),
                false => {}
            }
        }
        // Nobody knows whether a call that was under way took effect; it is not repeated.
        let may_miss = usize::from(unknown == 1);
        if self.conversation.len() != unbroken.conversation.len()
            || self.effects > 1
            || self.effects + may_miss < 1
        {
            return differs("what was done", &self.conversation, &unbroken.conversation);
        }
        Ok(())
    }
}
