//! A mode that changes at every point at which the program may be killed: at once, at the end of a unit, for one
//! unit alone.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_core::session::SessionEvent;
use windlass_store::{CommitPhase, Options, Store};
use windlass_testkit::ModelServer;

use crate::machine::{Crash, Machine, Power, Ran};

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

/// What a run came to.
#[derive(PartialEq, Debug)]
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
        let same = self.changes == unbroken.changes
            && self.prompts == unbroken.prompts
            && self.file == unbroken.file;
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
    let mut play = Play { machine, crash, per_process: Vec::new() };
    let task = play.begin();
    for (words, reason) in CHANGES {
        play.change(words, reason);
    }
    while play.step(&["answer", &task, "blue"]).code.is_none() {}
    play.finish(&["resume", &task, "-q"], &task);
    play.follow_up(&task);
    play.outcome()
}

impl Play {
    fn step(&mut self, args: &[&str]) -> Ran {
        let ran = self.machine.windlass(args, self.crash);
        self.per_process.push(ran.commits);
        ran
    }

    fn store(&self) -> Store {
        Store::open(self.machine.data(), Options::default()).unwrap()
    }

    fn tasks(&mut self) -> Vec<String> {
        let listed = self.machine.windlass(&["tasks", "--json"], None);
        self.per_process.push(0);
        let id = |line: &str| {
            let task: Value = serde_json::from_str(line).unwrap();
            task["task_id"].as_str().unwrap().to_owned()
        };
        listed.stdout.lines().map(id).collect()
    }

    /// A task that waits for an answer.
    fn begin(&mut self) -> String {
        let mut ran = self.step(&["run", "paint", "-q", "--mode", "build"]);
        for _ in 0..20 {
            if ran.code == Some(3) {
                return self.tasks().remove(0);
            }
            ran = match self.tasks().first().cloned() {
                Some(task) => self.step(&["resume", &task, "-q"]),
                None => self.step(&["run", "paint", "-q", "--mode", "build"]),
            };
        }
        panic!("the task does not ask: {:?} {}", ran.code, ran.stderr);
    }

    /// Changes the mode once: a killed process may have stored it.
    fn change(&mut self, words: &[&str], reason: &str) {
        let args: Vec<&str> = ["mode", "set"].iter().chain(words).copied().collect();
        while self.step(&args).code.is_none() {
            if self.is_stored(reason) {
                return;
            }
        }
    }

    fn is_stored(&self, reason: &str) -> bool {
        let store = self.store();
        let session = store.sessions().newest(1).unwrap()[0].id;
        store.sessions().journal(session).unwrap().iter().any(|record| match &record.event {
            SessionEvent::ModeChanged(changed) => changed.reason == reason,
            SessionEvent::ModeRequested(request) => request.reason == reason,
            _ => false,
        })
    }

    /// Runs a command again until the task is done; what it asks is allowed.
    fn finish(&mut self, args: &[&str], task: &str) {
        let mut ran = self.step(args);
        for _ in 0..20 {
            match ran.code {
                Some(0) => return,
                Some(2) if ran.stderr.contains("is already done") => return,
                Some(3) => {
                    while self.step(&["answer", task, "Allow"]).code.is_none() {}
                    ran = self.step(&["resume", task, "-q"]);
                }
                None => ran = self.step(&["resume", task, "-q"]),
                Some(code) => panic!("unexpected exit {code}: {}", ran.stderr),
            }
        }
        panic!("the task does not end");
    }

    /// The second unit: a follow-up in the same session.
    fn follow_up(&mut self, task: &str) {
        let ran = self.step(&["send", task, "more", "-q"]);
        if ran.code == Some(0) {
            return;
        }
        let tasks = self.tasks();
        match tasks.iter().find(|one| *one != task).cloned() {
            Some(second) => self.finish(&["resume", &second, "-q"], &second),
            None => self.follow_up(task),
        }
    }

    fn outcome(self) -> Outcome {
        let store = self.store();
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
        let requests = self.machine.server.requests();
        let prompts = requests.iter().map(|request| prompt(&request.json().to_string())).collect();
        let file = std::fs::read_to_string(self.machine.workspace().join("made.txt"));
        Outcome { changes, prompts, file: file.unwrap_or_default(), per_process: self.per_process }
    }
}
