//! Several processes and one task: one drives it, the others say which one.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::{Program, Ran};

/// Two `resume`s at once.
#[test]
fn of_two_resumes_one_drives_and_the_other_names_it() {
    let gate = Gate::new();
    let server = ModelServer::start("replies: [{ask_user: {question: sure?}}, {say: done}]");
    let program = Program::with(server);
    program.windlass(&["run", "ask", "--json"]).expect(3);
    let task = program.task();
    program.windlass(&["answer", &task, "yes"]).expect(0);
    program.server.next(Answer::script("say: done").gated(0, &gate));
    let first = program.start(&["resume", &task, "--json"]);
    gate.reached_blocking();

    let second = program.windlass(&["resume", &task]).expect(2);
    assert!(second.stderr.contains(&format!("is running in process {}", first.id())), "{second:?}");
    assert!(second.stderr.contains("hint:"), "{second:?}");
    gate.open();
    let first: Ran = first.wait_with_output().unwrap().into();
    first.expect(0);
}

/// §15.14: a second live task in one directory is refused unless it is shared.
#[test]
fn a_second_task_in_a_directory_is_refused_unless_shared() {
    let gate = Gate::new();
    let server = ModelServer::start("replies: [{say: done}]");
    server.next(Answer::script("say: first").gated(0, &gate));
    let program = Program::with(server);
    let first = program.start(&["run", "one", "--json"]);
    gate.reached_blocking();
    let refused = program.windlass(&["run", "two"]).expect(2);
    assert!(refused.stderr.contains("already works in"), "{refused:?}");
    assert!(refused.stderr.contains("--share"), "{refused:?}");
    program.windlass(&["run", "two", "--share"]).expect(0);
    gate.open();
    let first: Ran = first.wait_with_output().unwrap().into();
    first.expect(0);
}

/// §15.5: running with a free lock shows as interrupted.
#[test]
fn a_killed_task_shows_as_interrupted_and_can_be_resumed() {
    let gate = Gate::new();
    let server = ModelServer::start("replies: [{say: done}]");
    server.next(Answer::script("say: never").gated(0, &gate));
    let program = Program::with(server);
    let mut child = program.start(&["run", "work", "--json"]);
    gate.reached_blocking();
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = program.windlass(&["tasks"]).expect(0);
    assert!(listed.stdout.contains("interrupted"), "{listed:?}");
    let ran = program.windlass(&["resume", &program.task(), "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "done");
}

/// Exit 130: the first Ctrl-C pauses, and the task can be resumed (ES-110).
#[test]
fn ctrl_c_pauses_and_says_how_to_resume() {
    let gate = Gate::new();
    let server = ModelServer::start("replies: [{say: done}]");
    server.next(Answer::script("say: never").gated(0, &gate));
    let program = Program::with(server);
    let child = program.start(&["run", "work"]);
    gate.reached_blocking();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ran: Ran = child.wait_with_output().unwrap().into();
    let ran = ran.expect(130);
    assert!(ran.stderr.contains("windlass resume task_"), "{ran:?}");
    program.windlass(&["resume", &program.task(), "--json"]).expect(0);
}

/// MS-124: a command left running is listed with its task while somebody drives it.
#[test]
fn background_commands_are_listed_with_their_task() {
    let server = ModelServer::start("replies: [{bash: {command: sleep 600, background: true}}]");
    let gate = Gate::new();
    let program = Program::with(server);
    program.server.answer_with(move |request| {
        (request.replies == 1).then(|| Answer::script("say: done").gated(0, &gate))
    });
    let mut child = program.start(&["run", "wait", "--json"]);
    program.server.requests_reach_blocking(2);
    let listed = program.windlass(&["tasks"]).expect(0);
    assert!(listed.stdout.contains("\nBackground commands\n  task_"), "{listed:?}");
    assert!(listed.stdout.contains("sleep 600"), "{listed:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = program.windlass(&["tasks"]).expect(0);
    assert!(!listed.stdout.contains("Background"), "they end with the task: {listed:?}");
}

/// ES-018: `answer --resume` for a task that another process drives says that the task continues there.
#[test]
fn an_answer_with_resume_to_a_task_that_is_driven_is_enough() {
    let program = Program::playing(
        "
replies:
  - calls:
      - spawn_agent: {task: 'ask about the COLOUR'}
      - spawn_agent: {task: 'take LONG'}
    task: paint it
  - {say: painted, task: paint it}
  - {turn: 0, task: COLOUR, ask_user: {question: which colour?}}
  - {turn: 1, task: COLOUR, say: it is blue}
  - {turn: 0, task: LONG, bash: 'until test -e go; do sleep 0.02; done'}
  - {turn: 1, task: LONG, say: took long}
",
    );
    let first = program.start(&["run", "paint it", "--json"]);
    let question = loop {
        let open = program.windlass(&["inbox", "--json"]).json_lines();
        if let Some(row) = open.first() {
            break row["question"]["id"].as_str().unwrap().to_owned();
        }
    };
    let answered = program.windlass(&["answer", &question, "blue", "--resume"]).expect(0);
    let notice = format!("process {} continues the task", first.id());
    assert!(answered.stderr.contains(&notice), "{answered:?}");
    std::fs::write(program.workspace().join("go"), "").unwrap();
    let first: Ran = first.wait_with_output().unwrap().into();
    first.expect(0);
}

/// ES-110, §15.7: when the terminal closes or the machine shuts down, a run is parked at its next boundary. The
/// running call keeps its result.
#[test]
fn a_run_whose_terminal_ends_is_parked_with_its_results() {
    for signal in [Signal::HUP, Signal::TERM] {
        let step =
            "echo begun > begun; until test -e go; do sleep 0.02; done; echo once >> done.txt";
        let program = Program::playing(&format!("replies: [{{bash: '{step}'}}, {{say: done}}]"));
        // Whoever runs the tests may ignore hangups.
        let mut run = by(&program, "env", &["--default-signal=HUP"]);
        run.args(["run", "work", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = run.spawn().unwrap();
        while !program.workspace().join("begun").exists() {
            std::thread::yield_now();
        }
        kill_process(Pid::from_raw(run.id() as i32).unwrap(), signal).unwrap();
        let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("pausing")), "{signal:?}");
        std::fs::write(program.workspace().join("go"), "").unwrap();
        let ran: Ran = run.wait_with_output().unwrap().into();
        assert_eq!(ran.expect(130).result()["status"], "PAUSED");
        let resumed = program.windlass(&["resume", &program.task(), "--json"]).expect(0);
        assert!(!resumed.stdout.contains("UNKNOWN OUTCOME"), "{}", resumed.stdout);
        assert_eq!(program.file("done.txt"), "once\n", "{signal:?}");
    }
}

/// `nohup windlass run …` outlives its terminal.
#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let step = "echo begun > begun; until test -e go; do sleep 0.02; done";
    let program = Program::playing(&format!("replies: [{{bash: '{step}'}}, {{say: done}}]"));
    let mut run = by(&program, "sh", &["-c", "trap '' HUP; exec \"$0\" run work"]);
    let mut run = run.spawn().unwrap();
    while !program.workspace().join("begun").exists() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::HUP).unwrap();
    std::fs::write(program.workspace().join("go"), "").unwrap();
    assert!(run.wait().unwrap().success());
}

/// Our program, started by another that takes its place.
fn by(program: &Program, other: &str, args: &[&str]) -> Command {
    let windlass = program.command(&[]);
    let mut command = Command::new(other);
    command.args(args).arg(windlass.get_program());
    command.current_dir(program.workspace()).env_clear().stdin(Stdio::null());
    command.envs(windlass.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}
