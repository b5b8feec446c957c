//! The task that is killed at every point, and what its end must look like.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use windlass_store::{Options, Phase, Store};

use crate::machine::{Crash, Machine, Power, Ran};

/// Plan, reads, writes, edits, memos, a question, injections and a final reply.
pub const SCRIPT: &str = "
replies:
  - update_plan: {steps: [{id: '1', description: begin, status: in_progress}]}
  - calls:
      - read: notes.txt
      - glob: '*.txt'
  - write: {path: src/new.txt, content: 'first line'}
  - calls:
      - edit: {path: notes.txt, old_string: old, new_string: new}
      - read: notes.txt
  - save_memo: {filename: log.md, content: 'once ', append: true}
  - calls:
      - ask_user: {question: which colour?}
      - save_memo: {filename: log.md, content: 'twice ', append: true}
  - write: {path: output/report.md, content: 'painted'}
  - publish_deliverable: {filepath: output/report.md, description: the report, type: report}
  - update_plan: {steps: [{id: '1', description: begin, status: done}]}
  - say: All done.
";

/// A run is given up after this many command lines: something does not end.
const MAX_COMMANDS: usize = 20;

/// What a run came to.
pub struct Outcome {
    /// Commits of each process, in order.
    pub per_process: Vec<u64>,
    pub commits: u64,
    result: Value,
    files: BTreeMap<String, String>,
    conversation: Vec<String>,
}

impl Machine {
    /// Plays the whole scenario, killed at one point or at none.
    pub fn play(mut self, crash: Option<(Crash, Power)>) -> Outcome {
        std::fs::write(self.workspace().join("notes.txt"), "an old note\n").unwrap();
        let mut per_process = Vec::new();
        let mut ran = self.step(&["run", "paint the door", "--json"], crash, &mut per_process);
        for _ in 0..MAX_COMMANDS {
            match ran.code {
                Some(0) => {
                    let last: Value =
                        serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
                    return self.outcome(&last["data"], per_process);
                }
                Some(2) if ran.stderr.contains("is done") => {
                    // It was killed with its last words on its lips: the result is there.
                    let task = self.task(&mut per_process).expect("a finished task exists");
                    let result = self.step(&["result", &task], None, &mut per_process);
                    return self
                        .outcome(&serde_json::from_str(&result.stdout).unwrap(), per_process);
                }
                Some(3) => {
                    let task = self.task(&mut per_process).expect("a blocked task exists");
                    self.send(&task, crash, &mut per_process);
                    // One that died was perhaps heard; to answer twice does no harm.
                    while self
                        .step(&["answer", &task, "blue"], crash, &mut per_process)
                        .code
                        .is_none()
                    {}
                    ran = self.step(&["resume", &task, "--json"], crash, &mut per_process);
                }
                None => {
                    ran = match self.task(&mut per_process) {
                        Some(task) => {
                            self.step(&["resume", &task, "--json"], crash, &mut per_process)
                        }
                        None => {
                            self.step(&["run", "paint the door", "--json"], crash, &mut per_process)
                        }
                    };
                }
                Some(code) => panic!("unexpected exit {code}: {}\n{}", ran.stdout, ran.stderr),
            }
        }
        panic!("the task does not come to an end");
    }

    fn step(
        &mut self,
        args: &[&str],
        crash: Option<(Crash, Power)>,
        per_process: &mut Vec<u64>,
    ) -> Ran {
        let ran = self.windlass(args, crash);
        per_process.push(ran.commits);
        ran
    }

    fn task(&mut self, per_process: &mut Vec<u64>) -> Option<String> {
        let listed = self.step(&["tasks", "--json"], None, per_process);
        let first = listed.stdout.lines().next()?.to_owned();
        let task: Value = serde_json::from_str(&first).unwrap();
        Some(task["task_id"].as_str().unwrap().to_owned())
    }

    /// Sends a message exactly once: one whose sender died is sent again only if it is not there.
    fn send(&mut self, task: &str, crash: Option<(Crash, Power)>, per_process: &mut Vec<u64>) {
        let words = "and be quick";
        while self.step(&["send", task, words], crash, per_process).code.is_none() {
            let store = Store::open(self.data(), Options::default()).unwrap();
            let waiting = store.pending_injections(task.parse().unwrap()).unwrap();
            if waiting.iter().any(|one| one.content == words) {
                return;
            }
        }
    }

    fn outcome(self, result: &Value, per_process: Vec<u64>) -> Outcome {
        let requests = self.server.requests();
        let conversation = requests.last().unwrap().messages();
        Outcome {
            commits: per_process.iter().sum(),
            per_process,
            result: comparable(result),
            files: files(&self.workspace()),
            conversation: conversation.into_iter().map(|message| message.raw).collect(),
        }
    }
}

impl Outcome {
    /// Before and after every commit of every process.
    pub fn crash_points(&self) -> Vec<Crash> {
        let processes = self.per_process.iter().enumerate();
        processes
            .flat_map(|(process, &commits)| {
                (1..=commits).flat_map(move |commit| {
                    [Phase::Before, Phase::After].map(|phase| Crash { process, commit, phase })
                })
            })
            .collect()
    }

    pub fn same_as(&self, unbroken: &Self) -> Result<(), String> {
        let differs = |what: &str, this: &dyn std::fmt::Debug, that: &dyn std::fmt::Debug| {
            Err(format!("{what} differs:\n  {this:?}\ninstead of\n  {that:?}"))
        };
        if self.result != unbroken.result {
            return differs("the result", &self.result, &unbroken.result);
        }
        if self.files != unbroken.files {
            return differs("the workspace", &self.files, &unbroken.files);
        }
        if self.conversation != unbroken.conversation {
            return differs("the conversation", &self.conversation, &unbroken.conversation);
        }
        Ok(())
    }
}

/// The result without what is different in every run.
fn comparable(result: &Value) -> Value {
    let mut result = result.clone();
    for key in ["task_id", "session_id", "command_id", "evidence_refs"] {
        result[key] = Value::Null;
    }
    result["usage"]["duration_ms"] = Value::Null;
    result
}

/// Every file of the workspace but the trace, with its content.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if name == ".trace" {
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
