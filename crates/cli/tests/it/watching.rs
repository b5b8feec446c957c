//! Watching a task: what a running command prints, the reply as it is written, what is typed meanwhile, the
//! same from another terminal, and what was changed.

use std::io::Write as _;
use std::path::PathBuf;

use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::{Program, Ran};
use crate::terminal::{Terminal, remains};

fn on_terminal(program: &Program, args: &[&str], columns: u16) -> Terminal {
    let mut command = program.command(args);
    command.env("TERM", "xterm-256color");
    Terminal::start(command, columns)
}

/// A pipe in the workspace that a command can wait for.
fn pipe(program: &Program) -> PathBuf {
    let path = program.workspace().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

/// Lets the command that reads the pipe continue.
fn release(pipe: &PathBuf) {
    std::fs::OpenOptions::new().write(true).open(pipe).unwrap().write_all(b"go\n").unwrap();
}

const WAITS: &str = r#"
replies:
  - bash: "echo compiling; printf 'second\\033[2Jline\\n'; cat pipe"
  - say: all built
"#;

#[test]
fn a_running_command_shows_its_last_lines_live() {
    let program = Program::playing(WAITS);
    let pipe = pipe(&program);
    let mut terminal = on_terminal(&program, &["run", "build", "--sandbox", "host"], 90);
    terminal.until("secondline");
    release(&pipe);
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    let shown = remains(&written);
    assert_eq!(shown.matches("compiling").count(), 2, "in the command and below it:\n{shown}");
    assert!(!shown.contains("exit 0"), "{shown}");
    assert!(!written.contains("\u{1b}[2Jline"), "{written:?}");
}

#[test]
fn what_is_typed_during_a_run_is_a_message_to_the_task() {
    let program = Program::playing(WAITS);
    let pipe = pipe(&program);
    let mut terminal = on_terminal(&program, &["run", "build", "--sandbox", "host"], 90);
    terminal.until("secondline");
    terminal.types("use tabz\u{7f}s");
    terminal.until("> use tabs");
    terminal.types("\n");
    terminal.until("→ use tabs");
    release(&pipe);
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert_eq!(program.last_message_sent(), "User says: use tabs");
    let shown = remains(&written);
    assert!(shown.contains("← use tabs") && !shown.contains("> use tabs"), "{shown}");
}

#[test]
fn a_reply_is_rendered_while_it_is_written() {
    let gate = Gate::new();
    let server = ModelServer::start("replies: []");
    let text = |text: &str| {
        let delta = serde_json::json!({"content": text});
        serde_json::json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
    };
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.to_owned();
    let events =
        [text("# Title\n\nIt is **bold** now.\n\n"), text("The end."), end, "[DONE]".to_owned()];
    server.next(Answer::events(events).gated(1, &gate));
    let program = Program::with(server);
    let mut terminal = on_terminal(&program, &["run", "say it"], 90);
    gate.reached_blocking();
    terminal.until("bold");
    gate.open();
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(!written.contains("**bold") && !written.contains("# Title"), "{written:?}");
    let shown = remains(&written);
    assert_eq!(shown.matches("bold").count(), 1, "the preview is gone:\n{shown}");
}

#[test]
fn a_narrow_terminal_keeps_what_is_happening() {
    let program = Program::playing(WAITS);
    let pipe = pipe(&program);
    let mut terminal = on_terminal(&program, &["run", "build", "--sandbox", "host"], 40);
    terminal.until("secondline");
    terminal.until("$ echo compi");
    terminal.until("… · 0:0");
    release(&pipe);
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
}

#[test]
fn attach_shows_a_task_that_runs_elsewhere_and_steers_it() {
    let program = Program::playing(WAITS);
    let pipe = pipe(&program);
    let mut elsewhere = program.start(&["run", "build", "--sandbox", "host"]);
    program.server.requests_reach_blocking(1);
    let task = program.task();
    let mut terminal = on_terminal(&program, &["attach", &task], 90);
    terminal.until("$ echo compiling");
    terminal.types("use tabs\n");
    terminal.until("→ use tabs");
    terminal.types("\u{3}");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("detached; it continues"), "{written}");
    let mut terminal = on_terminal(&program, &["attach", &task], 90);
    terminal.until("$ echo compiling");
    release(&pipe);
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(remains(&written).contains("all built"), "{written}");
    assert!(elsewhere.wait().unwrap().success());
    assert_eq!(program.last_message_sent(), "User says: use tabs");
}

#[test]
fn a_question_can_be_answered_where_one_is_attached() {
    let program = Program::playing(
        "replies: [{ask_user: {question: which colour?, options: [red, blue]}}, {say: painted}]",
    );
    let mut first = on_terminal(&program, &["run", "paint"], 90);
    first.until("> ");
    let mut second = on_terminal(&program, &["attach", &program.task()], 90);
    second.until("which colour?");
    second.until("> ");
    second.types("2\n");
    let (written, code) = second.end();
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("painted"), "{written}");
    assert_eq!(first.end().1, 0);
}

/// A pipe cannot answer: it gets the question, how it is answered, and the exit code of `run`.
#[test]
fn attach_in_a_pipe_ends_at_a_question() {
    let program =
        Program::playing("replies: [{ask_user: {question: which colour?, options: [red, blue]}}]");
    program.windlass(&["run", "paint"]).expect(3);
    let attached = program.windlass(&["attach", &program.task()]).expect(3);
    assert!(attached.stderr.contains("which colour?\n  1. red\n"), "{attached:?}");
    assert!(attached.stderr.contains("windlass answer q_"), "{attached:?}");
    let json = program.windlass(&["attach", &program.task(), "--json"]).expect(3);
    assert_eq!(json.result()["status"], "BLOCKED_USER");
    let last = program.windlass(&["attach"]).expect(3);
    assert!(last.stderr.starts_with("the last task of this directory: task_"), "{last:?}");
    assert!(last.stderr.contains("which colour?"), "{last:?}");
}

/// A task whose process was killed with a command running.
fn killed() -> Program {
    let program = Program::playing(WAITS);
    pipe(&program);
    let mut run = program.start(&["run", "build", "--sandbox", "host"]);
    until_called(&program);
    run.kill().unwrap();
    run.wait().unwrap();
    program
}

/// Waits until the task's first call is journaled.
fn until_called(program: &Program) {
    program.server.requests_reach_blocking(1);
    let task = program.task();
    while !program.windlass(&["events", &task]).expect(0).stdout.contains("tool_call") {}
}

#[test]
fn attach_says_that_nobody_works_on_a_killed_task() {
    let program = killed();
    let task = program.task();
    let resume = format!("nobody works on it; resume it with: windlass resume {task}");
    let attached = program.windlass(&["attach", &task]).expect(4);
    assert!(attached.stderr.contains(&resume), "{attached:?}");
    let (written, code) = on_terminal(&program, &["attach", &task], 120).end();
    assert_eq!(code, 4, "{written}");
    assert!(written.contains("nobody works on it; resume it with"), "{written}");
    let mut follow = program.start(&["events", &task, "--follow"]);
    let mut said = std::io::BufReader::new(follow.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line.trim(), resume);
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn attach_notices_that_the_process_of_a_task_is_killed() {
    let program = Program::playing(WAITS);
    pipe(&program);
    let mut run = program.start(&["run", "build", "--sandbox", "host"]);
    until_called(&program);
    let mut terminal = on_terminal(&program, &["attach", &program.task()], 120);
    terminal.until("$ echo compiling");
    run.kill().unwrap();
    run.wait().unwrap();
    let (written, code) = terminal.end();
    assert_eq!(code, 4, "{written}");
    assert!(written.contains("nobody works on it; resume it with"), "{written}");
}

#[test]
fn attach_says_that_no_service_runs() {
    let program = Program::playing(WAITS);
    program.windlass(&["run", "build", "--detach"]).expect(0);
    let attached = program.windlass(&["attach", &program.task()]).expect(4);
    assert!(attached.stderr.contains("start one with: windlass serve"), "{attached:?}");
}

/// Edits a file twice, writes over another and makes a third.
const CHANGES: &str = r#"
replies:
  - read: notes.txt
  - edit: {path: notes.txt, old_string: short, new_string: long}
  - edit: {path: notes.txt, old_string: note, new_string: story}
  - write: {path: new.txt, content: "fresh\n"}
  - say: changed
"#;

fn changed() -> (Program, Ran) {
    let program = Program::playing(CHANGES);
    std::fs::write(program.workspace().join("notes.txt"), "a short note\nkept\n").unwrap();
    let ran = program.windlass(&["run", "change them"]).expect(0);
    (program, ran)
}

#[test]
fn diff_shows_what_a_task_has_changed() {
    let (program, ran) = changed();
    assert!(ran.stderr.contains("2 files changed; see: windlass diff task_"), "{ran:?}");
    // The file is gone meanwhile; its versions are kept.
    std::fs::remove_file(program.workspace().join("new.txt")).unwrap();
    let diff = program.windlass(&["diff"]).expect(0).stdout;
    insta::assert_snapshot!(diff, @r"
    --- /dev/null
    +++ b/new.txt
    @@ -0,0 +1 @@
    +fresh
    --- a/notes.txt
    +++ b/notes.txt
    @@ -1,2 +1,2 @@
    -a short note
    +a long story
     kept
    ");
    let stat = program.windlass(&["diff", &program.task(), "--stat"]).expect(0).stdout;
    insta::assert_snapshot!(stat, @r"
      new.txt +1 -0 (new)
      notes.txt +1 -1
    2 files changed
    ");
}

/// The same number wherever it is shown, with what sub-agents cost.
#[test]
fn cost_includes_sub_agents_everywhere() {
    let program = Program::playing(
        r#"
replies:
  - spawn_agent: {task: look, label: eye}
  - say: seen
  - say: done
"#,
    );
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let prices = "[models.\"litellm/gpt-4o\"]\ninput = 100.0\noutput = 100.0\n";
    std::fs::write(directory.join("config.toml"), prices).unwrap();
    let ran = program.windlass(&["run", "look"]).expect(0);
    let tasks = program.windlass(&["tasks", "--all", "--json"]).json_lines();
    let task = tasks.into_iter().find(|task| task["parent_id"].is_null()).unwrap();
    let id = task["task_id"].as_str().unwrap();
    let cost = task["cost_usd"].as_f64().unwrap();
    let costs = program.windlass(&["cost", id, "--json"]).json_lines().remove(0);
    let by_task = costs["tasks"].as_object().unwrap();
    assert!(by_task.len() > 1, "{costs}");
    let close = |other: &serde_json::Value| (other.as_f64().unwrap() - cost).abs() < 1e-9;
    assert!(close(&costs["total"]["cost_usd"]), "{cost} {costs}");
    let page = program.windlass(&["show", id, "--json"]).json_lines().remove(0);
    assert!(close(&page["cost_usd"]), "{cost} {page}");
    let result = program.windlass(&["result", id]).expect(0).stdout;
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert!(close(&result["cost_usd"]), "{cost} {result}");
    let footer = format!(" · ${cost:.4}");
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.ends_with(&footer) || last.ends_with(&format!(" · ${cost:.2}")), "{last} {cost}");
}

/// What a command prints is shown where somebody watches from elsewhere, while it runs.
#[test]
fn attach_shows_what_a_running_command_prints() {
    let script = "replies: [{bash: 'until [ -e stop ]; do echo com\"\"piling; sleep 0.1; done'}, {say: all built}]";
    let program = Program::playing(script);
    let mut run = program.start(&["run", "build", "--sandbox", "host", "-q"]);
    while program.windlass(&["tasks", "--json"]).expect(0).stdout.is_empty() {}
    let mut terminal = on_terminal(&program, &["attach", &program.task()], 90);
    terminal.until("compiling");
    std::fs::write(program.workspace().join("stop"), "").unwrap();
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(remains(&written).contains("all built"), "{written}");
    assert!(run.wait().unwrap().success());
    let left = std::fs::read_dir(program.data_directory().join("live")).unwrap().count();
    assert_eq!(left, 0, "nothing is left of it");
}
