//! The task that is killed at every point, and what its end must look like.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use windlass_store::{CommitPhase, Options, Store};
use windlass_testkit::ModelServer;

use crate::machine::{Crash, Machine, Power};
use crate::play::{Order, Play, differs, points};

/// Commands that have an effect, each counted by a line in a file of its own. A file `hold-N` makes
/// the N-th stop in the middle: it reports that on one pipe and waits on another.
pub const COMMANDS: usize = 2;

/// Plan, reads, writes, edits, memos, commands, a question, injections and a final reply.
const SCRIPT: &str = "
replies:
  - update_plan: {steps: [{id: '1', description: begin, status: in_progress}]}
    usage: {input: 100, output: 10}
  - bash: cat notes.txt
    usage: {input: 100, output: 10}
  - bash: >-
      echo once >> effect-1; if [ -e hold-1 ]; then echo > reached; cat go; fi;
      if [ -e hold-1 ]; then echo late >> late; fi
    usage: {input: 100, output: 10}
  - bash: {command: 'echo up; sleep 600', background: true}
    usage: {input: 100, output: 10}
  - calls:
      - read: notes.txt
      - glob: '*.txt'
    usage: {input: 100, output: 10}
  - write: {path: src/new.txt, content: 'first line'}
    usage: {input: 100, output: 10}
  - calls:
      - edit: {path: notes.txt, old_string: old, new_string: new}
      - read: notes.txt
    usage: {input: 100, output: 10}
  - save_memo: {filename: log.md, content: 'once ', append: true}
    usage: {input: 100, output: 10}
  - calls:
      - ask_user: {question: which colour?}
      - save_memo: {filename: log.md, content: 'twice ', append: true}
    usage: {input: 100, output: 10}
  - write: {path: output/report.md, content: 'painted'}
    usage: {input: 100, output: 10}
  - bash: >-
      echo once >> effect-2; if [ -e hold-2 ]; then echo > reached; cat go; fi;
      if [ -e hold-2 ]; then echo late >> late; fi
    usage: {input: 100, output: 10}
  - publish_deliverable: {filepath: output/report.md, description: the report, type: report}
    usage: {input: 100, output: 10}
  - update_plan: {steps: [{id: '1', description: begin, status: done}]}
    usage: {input: 100, output: 10}
  - say: All done.
    usage: {input: 100, output: 10}
";

const RUN: Order<'_> = Order { goal: "paint the door", args: &["run", "paint the door", "--json"] };

/// What a run came to.
pub struct Outcome {
    /// Commits of each process, in order.
    pub per_process: Vec<u64>,
    pub commits: u64,
    result: Value,
    files: BTreeMap<String, String>,
    conversation: Vec<String>,
    /// How often each command's effect happened.
    effects: Vec<usize>,
    /// How often the agent read that its background command has ended.
    losses: usize,
}

/// What the agent reads of a background command that ended: with a killed process, or with its segment.
const ENDS: [&str; 2] = ["The sandbox was restarted", "has ended: stopped because the task waits"];

/// Plays the whole scenario, killed at one point or at none.
pub fn play(crash: Option<(Crash, Power)>) -> Outcome {
    let mut play = prepared(crash);
    let result = play.run(&RUN, answer);
    outcome(play, &result)
}

/// Plays the whole scenario, killed while its n-th command runs.
pub fn play_killed_during(command: usize) -> Outcome {
    let mut play = prepared(None);
    let workspace = play.machine.workspace();
    let hold = workspace.join(format!("hold-{command}"));
    std::fs::write(&hold, "").unwrap();
    for pipe in ["reached", "go"] {
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, workspace.join(pipe), mode).unwrap();
    }
    let mut args = vec!["run".to_owned(), RUN.goal.to_owned()];
    loop {
        let mut child = play.machine.start(&args);
        if play.machine.reaches(&workspace.join("reached"), &mut child) {
            child.kill().unwrap();
            child.wait().unwrap();
            break;
        }
        // The question came first: answer it, and hold the command after it.
        let task = play.task(RUN.goal).expect("a blocked task exists");
        answer(&mut play, &task);
        args = vec!["resume".to_owned(), task];
    }
    for name in ["reached", "go"] {
        std::fs::remove_file(workspace.join(name)).unwrap();
    }
    std::fs::remove_file(hold).unwrap();
    let task = play.task(RUN.goal).expect("the task was begun");
    let ran = play.step(&["resume", &task, "--json"]);
    let result = play.run_to_end(ran, &RUN, answer);
    outcome(play, &result)
}

fn prepared(crash: Option<(Crash, Power)>) -> Play {
    let machine = Machine::talking_to(ModelServer::start(SCRIPT));
    std::fs::write(machine.workspace().join("notes.txt"), "an old note\n").unwrap();
    Play::new(machine, crash)
}

/// A person who sends a message and then answers.
fn answer(play: &mut Play, task: &str) {
    send(play, task);
    play.answer(task, "blue");
}

/// Sends a message exactly once. If the sender was killed, it is sent again only if it was not stored.
fn send(play: &mut Play, task: &str) {
    let words = "and be quick";
    while play.step(&["send", task, words]).code.is_none() {
        let store = Store::open(play.machine.data(), Options::default()).unwrap();
        let waiting = store.mailbox().pending(task.parse().unwrap()).unwrap();
        if waiting.iter().any(|one| one.content == words) {
            return;
        }
    }
}

fn outcome(play: Play, result: &Value) -> Outcome {
    let requests = play.machine.server.requests();
    let messages = requests.last().unwrap().messages();
    let (losses, conversation): (Vec<_>, Vec<_>) = messages
        .into_iter()
        .map(|message| masked(&message.raw))
        .partition(|message| ENDS.iter().any(|end| message.contains(end)));
    let mut files = files(&play.machine.workspace());
    let mut counted = |name: String| files.remove(&name).map_or(0, |text| text.lines().count());
    let effects = (1..=COMMANDS).map(|n| counted(format!("effect-{n}"))).collect();
    Outcome {
        effects,
        losses: losses.len(),
        commits: play.per_process.iter().sum(),
        per_process: play.per_process,
        result: comparable(result),
        files,
        conversation,
    }
}

impl Outcome {
    /// Before and after every commit of every process, each also with a power failure.
    pub fn crash_points(&self) -> Vec<(Crash, Power)> {
        let moment = |power| [CommitPhase::Before, CommitPhase::After].map(|phase| (phase, power));
        points(&self.per_process, [Power::Stays, Power::Fails].map(moment).as_flattened())
    }

    pub fn same_as(&self, unbroken: &Self) -> Result<(), String> {
        if self.result != unbroken.result {
            return differs("the result", &self.result, &unbroken.result);
        }
        if self.files != unbroken.files {
            return differs("the workspace", &self.files, &unbroken.files);
        }
        if self.conversation.len() != unbroken.conversation.len() {
            return differs("the conversation", &self.conversation, &unbroken.conversation);
        }
        let mut unknown = 0;
        for (this, that) in self.conversation.iter().zip(&unbroken.conversation) {
            match this.contains("UNKNOWN OUTCOME") {
                true => unknown += 1,
                false if this != that => return differs("a message", this, that),
                false => {}
            }
        }
        // If nobody knows whether a background command started, it is reported only as an unknown outcome.
        if self.losses != 1 && (self.losses, unknown) != (0, 1) {
            return differs(
                "how often the end of the background command was reported",
                &self.losses,
                &1,
            );
        }
        let missing = self.effects.iter().filter(|&&times| times == 0).count();
        if self.effects.iter().any(|&times| times > 1) || missing > unknown || unknown > 1 {
            return differs("what the commands did", &self.effects, &unbroken.effects);
        }
        Ok(())
    }
}

/// A message without what is different in every run: ids, and files that hold a command up.
pub fn masked(message: &str) -> String {
    let message = match message.split_once("- Top of the tree: ") {
        Some((before, listed)) => {
            before.to_owned() + listed.split_once("\\n").map_or("", |(_, rest)| rest)
        }
        None => message.to_owned(),
    };
    // Ids of calls and tasks, and the names of throwaway directories.
    ["call_", "task_", "/.tmp"].iter().fold(message, |message, mark| {
        let mut text = String::new();
        let mut rest = message.as_str();
        while let Some(at) = rest.find(mark) {
            let (before, after) = rest.split_at(at + mark.len());
            text.push_str(before);
            let varies = |c: char| match *mark {
                "/.tmp" => c.is_ascii_alphanumeric(),
                _ => c.is_ascii_digit() || c.is_ascii_uppercase(),
            };
            rest = after.trim_start_matches(varies);
        }
        text + rest
    })
}

/// The result without what is different in every run.
pub fn comparable(result: &Value) -> Value {
    // Paths of memos hold the id of the task.
    let mut result: Value = serde_json::from_str(&masked(&result.to_string())).unwrap();
    for key in ["task_id", "session_id", "command_id", "evidence_refs"] {
        result[key] = Value::Null;
    }
    result["usage"]["duration_ms"] = Value::Null;
    result
}

/// Every file of the workspace but the trace, with its content.
pub fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let parts = name.split('/').map(|part| match part.starts_with("task_") {
                // Every run has an id of its own.
                true => "TASK",
                false => part,
            });
            let name = parts.collect::<Vec<_>>().join("/");
            if name.ends_with("/trace") {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else {
                found.insert(name, std::fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    found
}
