//! Skills as a running task meets them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::{Program, Ran};

/// How long a test may wait for anything before it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A task that runs, whose model waits at every turn and whose log is read as it comes.
struct Running {
    program: Program,
    child: Child,
    log: Receiver<String>,
    seen: String,
}

impl Running {
    fn start(program: Program) -> Self {
        let mut command = program.command(&["run", "work", "--json"]);
        command.env("RUST_LOG", "windlass_skills=info");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (send, log) = channel();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Self { program, child, log, seen: String::new() }
    }

    /// Reads the log up to a line that holds this.
    fn logs(&mut self, wanted: &str) {
        loop {
            let line = self.log.recv_timeout(PATIENCE);
            let line =
                line.unwrap_or_else(|_| panic!("never `{wanted}` in the log:\n{}", self.seen));
            self.seen += &format!("{line}\n");
            if line.contains(wanted) {
                return;
            }
        }
    }

    fn put(&self, body: &str) {
        let path = self.program.workspace().join(".windlass/skills/deploy/SKILL.md");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body).unwrap();
    }

    fn end(self) -> (Program, Ran) {
        let ran: Ran = self.child.wait_with_output().unwrap().into();
        (self.program, ran.expect(0))
    }
}

fn contents(request: &windlass_testkit::Request) -> Vec<String> {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

fn skill(body: &str) -> String {
    format!("---\nname: deploy\ndescription: Ship it\n---\n{body}\n")
}

/// Must show 1; AX-003, AX-018, AX-045, AX-046, AX-048, AX-089…092, AX-113, ES-008, ES-131
#[test]
fn a_running_task_sees_a_skill_appear_change_break_mend_and_go_within_a_turn() {
    let server = ModelServer::start_empty();
    let gates: Vec<_> = (0..6).map(|_| Gate::new()).collect();
    for gate in &gates[..5] {
        server.next(Answer::script("read_skill: {name: deploy}").gated(0, gate));
    }
    server.next(Answer::script("say: done").gated(0, &gates[5]));
    let mut task = Running::start(Program::with(server));
    let mut turn = gates.iter();
    let mut next = || {
        let gate = turn.next().unwrap();
        gate.reached_blocking();
        gate
    };

    let gate = next();
    task.put(&skill("Version one."));
    task.logs("Detected change: ");
    task.logs("Reloaded skill: deploy");
    gate.open();

    let gate = next();
    task.put(&skill("Version two."));
    task.logs("Reloaded skill: deploy");
    gate.open();

    let gate = next();
    task.put("---\nname: deploy\ndescription: [\n---\nVersion three.\n");
    task.logs(".windlass/skills/deploy/SKILL.md:");
    gate.open();

    let gate = next();
    task.put(&skill("Version four."));
    task.logs("Reloaded skill: deploy");
    gate.open();

    let gate = next();
    std::fs::remove_dir_all(task.program.workspace().join(".windlass/skills/deploy")).unwrap();
    task.logs("Unloaded skill: deploy");
    gate.open();
    next().open();
    let (program, _) = task.end();

    let requests = program.server.requests();
    let sent: Vec<_> = requests.iter().map(contents).collect();
    // Nothing was sent twice, and the prefix stays as it was, byte for byte.
    for pair in requests.windows(2) {
        pair[1].assert_extends(&pair[0]);
        assert_eq!(pair[0].json()["messages"][0], pair[1].json()["messages"][0]);
    }
    let last = |turn: usize| sent[turn].last().unwrap().as_str();
    let read = |turn: usize| sent[turn].iter().rev().find(|text| text.contains("Version")).unwrap();
    assert!(last(1).contains("- new: `deploy`: Ship it"), "{}", last(1));
    assert!(sent[1].iter().any(|text| text.contains("Version one.")), "read in the same turn");
    assert!(last(2).contains("- changed: `deploy`"), "{}", last(2));
    assert!(read(2).contains("Version two."), "{}", read(2));
    // Broken: no news, and what is read is the last good version.
    assert!(last(3).contains("Version two."), "{}", last(3));
    assert!(last(4).contains("- changed: `deploy`"), "{}", last(4));
    assert!(read(4).contains("Version four."), "{}", read(4));
    assert!(last(5).contains("- gone: `deploy`"), "{}", last(5));
    let answered = &sent[5][sent[5].len() - 2];
    assert!(answered.contains("there is no skill `deploy`"), "{answered}");
}
