//! One scenario on one machine: command lines in order, of which one may be killed, until a task has ended.

use std::fmt::Debug;

use serde_json::Value;
use windlass_store::CommitPhase;

use crate::machine::{Crash, Machine, Power, Ran};

/// A run fails after this many command lines, because then something does not end.
const MAX_COMMANDS: usize = 30;

pub struct Play {
    pub machine: Machine,
    /// Where the run is killed, if it is.
    pub crash: Option<(Crash, Power)>,
    /// Commits of each process, in order.
    pub per_process: Vec<u64>,
}

/// The command line that makes a task.
pub struct Order<'a> {
    pub goal: &'a str,
    pub args: &'a [&'a str],
}

impl Play {
    pub fn new(machine: Machine, crash: Option<(Crash, Power)>) -> Self {
        Self { machine, crash, per_process: Vec::new() }
    }

    /// A command line that may be killed.
    pub fn step(&mut self, args: &[&str]) -> Ran {
        let ran = self.machine.windlass(args, self.crash);
        self.per_process.push(ran.commits);
        ran
    }

    /// One that is not.
    pub fn look(&mut self, args: &[&str]) -> Ran {
        let ran = self.machine.windlass(args, None);
        self.per_process.push(0);
        ran
    }

    /// Answers what a task asks. A killed `answer` may have been stored; a second one is refused, and the first counts.
    pub fn answer(&mut self, task: &str, answer: &str) {
        while self.step(&["answer", task, answer]).code.is_none() {}
    }

    /// The newest task with this goal.
    pub fn task(&mut self, goal: &str) -> Option<String> {
        let listed = self.look(&["tasks", "--json"]).stdout;
        let mut tasks = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let task = tasks.find(|task| task["goal"] == goal)?;
        Some(task["task_id"].as_str().unwrap().to_owned())
    }

    /// Makes a task and runs it to its end; its result.
    pub fn run(&mut self, order: &Order<'_>, answer: impl FnMut(&mut Self, &str)) -> Value {
        let ran = self.step(order.args);
        self.run_to_end(ran, order, answer)
    }

    /// Resumes what was killed and answers what is asked, until the task is done; its result.
    pub fn run_to_end(
        &mut self,
        mut ran: Ran,
        order: &Order<'_>,
        mut answer: impl FnMut(&mut Self, &str),
    ) -> Value {
        for _ in 0..MAX_COMMANDS {
            let task = match ran.code {
                Some(0) => {
                    let last = ran.stdout.lines().last().unwrap();
                    return serde_json::from_str::<Value>(last).unwrap()["data"].take();
                }
                // It was killed right after its last commit: the result is already stored.
                Some(2) if ran.stderr.contains("is already done") => {
                    let task = self.task(order.goal).expect("a finished task exists");
                    let result = self.look(&["result", &task]).stdout;
                    return serde_json::from_str(&result).unwrap();
                }
                Some(3) => {
                    let task = self.task(order.goal).expect("a blocked task exists");
                    answer(self, &task);
                    Some(task)
                }
                None => self.task(order.goal),
                Some(code) => panic!("unexpected exit {code}: {}\n{}", ran.stdout, ran.stderr),
            };
            ran = match task {
                Some(task) => self.step(&["resume", &task, "--json"]),
                None => self.step(order.args),
            };
        }
        panic!("the task does not come to an end: {}", ran.stderr);
    }
}

/// Every commit of every process, as moments to die at.
pub fn points(per_process: &[u64], moments: &[(CommitPhase, Power)]) -> Vec<(Crash, Power)> {
    let mut points = Vec::new();
    for (process, &commits) in per_process.iter().enumerate() {
        for commit in 1..=commits {
            let at = |&(phase, power)| (Crash { process, commit, phase }, power);
            points.extend(moments.iter().map(at));
        }
    }
    points
}

/// Says what of a run is not as in the unbroken one.
pub fn differs(what: &str, this: &dyn Debug, that: &dyn Debug) -> Result<(), String> {
    Err(format!("{what} differs:\n  {this:?}\ninstead of\n  {that:?}"))
}
