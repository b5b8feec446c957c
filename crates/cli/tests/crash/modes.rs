//! A mode that changes at every point at which the program may be killed: at once, at the end of a unit, for one
//! unit alone.

use std::collections::BTreeSet;

use windlass_core::session::SessionEvent;
use windlass_store::{CommitPhase, Options, Store};
use windlass_testkit::ModelServer;

use crate::machine::{Crash, Machine, Power};
use crate::play::{Order, Play, differs, points};

/// A question, at which the mode is changed, and two units after it.
const SCRIPT: &str = "
replies:
  - ask_user: {question: which colour?}
  - write: {path: made.txt, content: blue}
  - say: first
  - say: second
";

/// Changes of the mode, in their order: their words, and the reason that the journal has.
const CHANGES: [(&[&str], &str); 3] = [
    (&["--control", "manual"], "/mode --control manual"),
    (
        &["--permission-profile", "normal", "--scope", "after-current-unit"],
        "/mode --permission-profile normal --scope after-current-unit",
    ),
    (
        &["--model-mode", "fast", "--scope", "for-next-unit"],
        "/mode --model-mode fast --scope for-next-unit",
    ),
];

const RUN: Order<'_> =
    Order { goal: "paint", args: &["run", "paint", "--json", "--mode", "build"] };

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// Every change: scope, source, axes.
    changes: Vec<String>,
    /// The permission profile and the run control in the prompt of each request of the work.
    prompts: BTreeSet<String>,
    file: String,
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
        let same = self.changes == unbroken.changes
            && self.prompts == unbroken.prompts
            && self.file == unbroken.file;
        match same {
            true => Ok(()),
            false => differs("the end", self, unbroken),
        }
    }
}

/// Plays the scenario, killed at one point or at none. What the task asks after the first answer is allowed.
pub fn play(crash: Option<(Crash, Power)>) -> Outcome {
    let machine = Machine::talking_to(ModelServer::start(SCRIPT));
    let mut play = Play::new(machine, crash);
    let task = begin(&mut play);
    for (words, reason) in CHANGES {
        change(&mut play, words, reason);
    }
    play.answer(&task, "blue");
    let allow = |play: &mut Play, task: &str| play.answer(task, "Allow");
    let ran = play.step(&["resume", &task, "--json"]);
    play.run_to_end(ran, &RUN, allow);
    // The second unit: a follow-up in the same session.
    let follow_up = Order { goal: "more", args: &["send", &task, "more", "--json"] };
    play.run(&follow_up, allow);
    outcome(play)
}

fn store(play: &Play) -> Store {
    Store::open(play.machine.data(), Options::default()).unwrap()
}

/// A task that waits for an answer.
fn begin(play: &mut Play) -> String {
    let mut ran = play.step(RUN.args);
    loop {
        let task = play.task(RUN.goal);
        ran = match (ran.code, task) {
            (Some(3), Some(task)) => return task,
            (None, Some(task)) => play.step(&["resume", &task, "--json"]),
            (None, None) => play.step(RUN.args),
            (code, _) => panic!("the task does not ask: {code:?} {}", ran.stderr),
        };
    }
}

/// Changes the mode once: a killed process may have stored it.
fn change(play: &mut Play, words: &[&str], reason: &str) {
    let args: Vec<&str> = ["mode", "set"].iter().chain(words).copied().collect();
    while play.step(&args).code.is_none() {
        if is_stored(play, reason) {
            return;
        }
    }
}

fn is_stored(play: &Play, reason: &str) -> bool {
    let store = store(play);
    let session = store.sessions().newest(1).unwrap()[0].id;
    store.sessions().journal(session).unwrap().iter().any(|record| match &record.event {
        SessionEvent::ModeChanged(changed) => changed.reason == reason,
        SessionEvent::ModeRequested(request) => request.reason == reason,
        _ => false,
    })
}

fn outcome(play: Play) -> Outcome {
    let store = store(&play);
    let session = store.sessions().newest(1).unwrap()[0].id;
    let changes = store.sessions().transitions(session).unwrap();
    let changes =
        changes.iter().map(|one| format!("{} {} {}", one.scope, one.source, one.to)).collect();
    assert_eq!(store.projections().verify().unwrap(), [], "the journal implies all of it");
    let prompt = |text: &str| {
        let profile = ["`trusted`", "`normal`"].iter().find(|word| text.contains(**word));
        let control = text.contains("Run control is manual");
        format!("{profile:?} manual {control}")
    };
    let requests = play.machine.server.requests();
    let prompts = requests.iter().map(|request| prompt(&request.json().to_string())).collect();
    let file = std::fs::read_to_string(play.machine.workspace().join("made.txt"));
    Outcome { changes, prompts, file: file.unwrap_or_default(), per_process: play.per_process }
}
