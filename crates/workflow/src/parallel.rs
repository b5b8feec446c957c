//! Workflows that are made for one run: a list of tasks by several workers, and one prompt by several runners.
//!
//! Both are ordinary workflows, so that they are journaled, resumed, answered and merged as any other.

use serde_json::{Value, json};
use windlass_core::event::WorkflowSource;

use crate::definition::MAX_STEPS;
pub use crate::definition::MAX_WORKERS;

/// The name of a run of workers, in lists and views.
pub const WORKERS: &str = "parallel";
/// The name of a run in which several runners try the same.
pub const TRIES: &str = "tries";
/// The step that holds the workers or the tries.
pub const SIDE_BY_SIDE: &str = "work";
/// The step that asks which try is taken.
pub const PICK: &str = "pick";
/// The answer that takes none.
pub const NONE: &str = "none";

/// A list of tasks for several workers.
#[derive(Clone, Debug)]
pub struct WorkerList {
    /// What is to be done, a prompt each.
    pub tasks: Vec<String>,
    /// How many work at once.
    pub workers: u32,
    pub runner: String,
    /// Commands that must succeed on what is merged.
    pub gates: Vec<String>,
    /// Whether what they did is merged; else their worktrees are kept.
    pub merge: bool,
}

/// One prompt for several runners.
#[derive(Clone, Debug)]
pub struct Attempts {
    pub prompt: String,
    pub runners: Vec<String>,
    /// Commands whose results are shown beside each try.
    pub checks: Vec<String>,
}

/// Why no run can be made of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("there is no task")]
    NoTask,
    #[error("{0} tasks are more than a run takes; at most {most}", most = MAX_STEPS / 2)]
    TooMany(usize),
    #[error("task {0} is empty")]
    Empty(usize),
    #[error("{0} workers are not possible; allowed: 1 to {MAX_WORKERS}")]
    Workers(u32),
    #[error("one runner alone cannot be compared; name at least two")]
    OneRunner,
}

impl WorkerList {
    /// The workflow of these tasks.
    pub fn source(&self) -> Result<WorkflowSource, Unusable> {
        check_tasks(&self.tasks)?;
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return Err(Unusable::Workers(self.workers));
        }
        let worker = |(at, task): (usize, &String)| {
            json!({
                "name": format!("worker_{}", at + 1), "type": "agent", "runner": self.runner,
                "on_fail": "fail_at_end", "spell": literal(task),
            })
        };
        // What the others did is merged before the run fails because of one. What cannot be joined waits for a person.
        let side_by_side = json!({
            "name": SIDE_BY_SIDE, "type": "parallel", "workers": self.workers, "join": self.merge,
            "steps": self.tasks.iter().enumerate().map(worker).collect::<Vec<_>>(),
        });
        let mut steps = vec![side_by_side];
        if self.merge {
            steps.push(
                json!({"name": "merge", "type": "merge", "gates": self.gates, "strategy": "merge"}),
            );
        }
        let title = format!("{} tasks, {} workers", self.tasks.len(), self.workers);
        Ok(source(WORKERS, &title, &self.runner, !self.merge, steps))
    }
}

impl Attempts {
    /// The workflow of these tries.
    pub fn source(&self) -> Result<WorkflowSource, Unusable> {
        check_tasks(std::slice::from_ref(&self.prompt))?;
        if self.runners.len() < 2 {
            return Err(Unusable::OneRunner);
        }
        let names = self.names();
        let one = |(name, runner): (&String, &String)| {
            let mut steps = vec![json!({
                "name": format!("{name}_work"), "type": "agent", "runner": runner,
                "on_fail": "continue", "spell": literal(&self.prompt),
            })];
            steps.extend(self.checks.iter().enumerate().map(|(at, command)| {
                json!({
                    "name": format!("{name}_check_{}", at + 1), "type": "script", "rerun": true,
                    "on_fail": "continue", "command": escaped(command),
                })
            }));
            // One round: steps in order, in the worktree of the try. It fails with its agent, after the checks.
            let until = format!("{{{{.{name}_work.success}}}}");
            json!({
                "name": name, "type": "loop", "max": 1, "until": until, "on_fail": "continue",
                "steps": steps,
            })
        };
        let tries: Vec<Value> = names.iter().zip(&self.runners).map(one).collect();
        let steps = vec![
            json!({
                "name": SIDE_BY_SIDE, "type": "parallel", "tries": true, "on_fail": "continue", "steps": tries,
            }),
            json!({
                "name": PICK, "type": "ask", "options": [NONE], "from": SIDE_BY_SIDE,
                "on_fail": "fail_at_end", "question": "Which result is taken?",
            }),
            json!({
                "name": "merge", "type": "merge", "needs": [PICK], "from": format!("{{{{.{PICK}.answer}}}}"),
                "when": format!("{{{{ne .{PICK}.answer \"{NONE}\"}}}}"),
            }),
        ];
        Ok(source(TRIES, &self.prompt, &self.runners[0], true, steps))
    }

    /// A name for each try: its runner's, with a number where one runner tries several times.
    pub fn names(&self) -> Vec<String> {
        let plain = |runner: &String| -> String {
            runner
                .chars()
                .map(|char| if char.is_ascii_alphanumeric() { char } else { '_' })
                .collect()
        };
        let mut names: Vec<String> = Vec::new();
        for runner in &self.runners {
            let name = plain(runner);
            let numbered = (1..).map(|number| match number {
                1 => name.clone(),
                number => format!("{name}_{number}"),
            });
            names.extend(numbered.into_iter().find(|name| !names.contains(name)));
        }
        names
    }
}

fn check_tasks(tasks: &[String]) -> Result<(), Unusable> {
    if tasks.is_empty() {
        return Err(Unusable::NoTask);
    }
    if tasks.len() > MAX_STEPS / 2 {
        return Err(Unusable::TooMany(tasks.len()));
    }
    match tasks.iter().position(|task| task.trim().is_empty()) {
        Some(at) => Err(Unusable::Empty(at + 1)),
        None => Ok(()),
    }
}

/// A workflow as a file would have it: JSON is YAML. The runner resolves conflicts.
fn source(name: &str, title: &str, runner: &str, keep: bool, steps: Vec<Value>) -> WorkflowSource {
    let file = json!({
        "name": name, "runner": runner, "worktree": {"keep": keep}, "steps": steps,
    });
    WorkflowSource {
        name: name.to_owned(),
        path: format!("windlass {name}"),
        text: file.to_string(),
        title: title.to_owned(),
        ..WorkflowSource::default()
    }
}

/// A prompt that is said as it is: a line break makes it a text and not the name of a spell.
fn literal(text: &str) -> String {
    format!("{}\n", escaped(text.trim_end()))
}

/// A text in which templates find nothing to fill in.
fn escaped(text: &str) -> String {
    text.replace("{{", "{{\"{{\"}}")
}
