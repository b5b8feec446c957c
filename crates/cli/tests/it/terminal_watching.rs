//! The interactive terminal and work that another process drives: what is not committed yet is seen all the same.

use std::fs;

use windlass_testkit::{Answer, Gate, ModelServer};

use crate::interactive::{ESCAPE, Screen, interactive};
use crate::program::Program;
use crate::terminal::Terminal;

/// Prints a line again and again until the file `go` exists. The line is not in the command's own text.
const BUILD: &str = "bash: 'until [ -e go ]; do echo com\"\"piling; sleep 0.1; done'";

/// A model that runs the command, then begins a reply and ends it when the gate opens.
fn building(gate: &Gate) -> Program {
    let server = ModelServer::start("replies: []");
    server.next(Answer::script(BUILD));
    let text = |text: &str| {
        let delta = serde_json::json!({"content": text});
        serde_json::json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
    };
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.to_owned();
    let events = [text("Half of it "), text("and the rest."), end, "[DONE]".to_owned()];
    server.next(Answer::events(events).gated(1, gate));
    Program::with(server)
}

fn release(program: &Program) {
    fs::write(program.workspace().join("go"), "").unwrap();
}

/// Both are sent to whoever watches, and nothing is left of it in the data directory.
fn is_watched_live(program: &Program, screen: &mut Screen, gate: &Gate) {
    screen.wait_for_shown("the line of the running command", |shown| {
        shown.lines().any(|line| line.trim() == "compiling")
    });
    release(program);
    screen.until("┊ Half of it");
    gate.open();
    screen.until("Half of it and the rest.");
    screen.until("waiting for you");
}

#[test]
fn a_task_of_a_service_is_watched_live() {
    let gate = Gate::new();
    let program = building(&gate);
    let mut serve = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    program.windlass(&["run", "build", "--detach"]).expect(0);
    program.server.requests_reach_blocking(1);
    let mut screen = Screen::open(&program, &[]);
    screen.says("/tasks");
    screen.until("Enter watch");
    screen.types("\r");
    is_watched_live(&program, &mut screen, &gate);
    screen.leave();
    serve.kill().unwrap();
    serve.wait().unwrap();
}

/// The second terminal and `attach` see what the first one drives.
#[test]
fn what_a_terminal_drives_is_watched_live_elsewhere() {
    let gate = Gate::new();
    let program = building(&gate);
    let args = ["--control", "autonomous", "--mode", "build", "--sandbox", "host"];
    let mut first = Screen::start(interactive(&program, &args), 80, 24);
    first.until("windlass build | autonomous");
    first.says("begin");
    first.until("compiling");
    let mut second = Screen::start(interactive(&program, &["--continue"]), 80, 24);
    second.until("windlass build | autonomous");
    let mut attached = program.command(&["attach", &program.task()]);
    attached.env("TERM", "xterm-256color");
    let mut attached = Terminal::start(attached, 90);
    attached.until("compiling");
    is_watched_live(&program, &mut second, &gate);
    second.leave();
    attached.until("and the rest.");
    attached.types("\u{3}");
    attached.end();
    first.leave();
}

/// What was read of it stays and is marked; the agent continues without it.
#[test]
fn an_interrupted_reply_stays_on_the_screen() {
    let gate = Gate::new();
    let program = building(&gate);
    program.server.next(Answer::script("say: Continued."));
    release(&program);
    let mut screen = Screen::open(&program, &[]);
    screen.says("build");
    screen.until("┊ Half of it");
    screen.types(ESCAPE);
    screen.until("not finished; the agent does not remember this reply");
    screen.until("interrupted; its work is kept");
    screen.until("waiting for you");
    gate.open();
    screen.says("and then?");
    screen.until("Continued.");
    let (all, _) = screen.leave();
    assert_eq!(all.matches("Half of it").count(), 1, "{all}");
    assert!(!all.contains("and the rest"), "{all}");
    let last = program.server.requests().last().unwrap().json().to_string();
    assert!(!last.contains("Half of it"), "{last}");
}

/// What happens in the conversation meanwhile does not take it away.
#[test]
fn a_question_of_another_task_says_who_asks_and_is_answered_here() {
    let program = Program::playing(
        "
match:
  - task: tidy the shop
    replies: [{bash: rm notes.txt}, {say: It is tidy.}]
  - task: hello
    replies: [{say: Hello.}, {say: Here again.}]
",
    );
    let note = program.workspace().join("notes.txt");
    fs::write(&note, "a note\n").unwrap();
    let mut serve = program.start(&["serve", "--listen", "127.0.0.1:0"]);
    let manual = ["--control", "manual", "--permission-profile", "normal"];
    program.windlass(&[&["run", "tidy the shop", "--detach"], &manual[..]].concat()).expect(0);
    let mut screen = Screen::open(&program, &["--share"]);
    screen.says("hello");
    screen.until("Hello.");
    screen.says("/inbox");
    screen.until("Run this command?");
    screen.types("\r");
    screen.until("another task asks: tidy the shop");
    screen.says("and you?");
    screen.until("Here again.");
    screen.until("waiting for you");
    screen.wait_for_shown("the question and its keys", |shown| {
        shown.contains("another task asks: tidy the shop") && shown.contains("press a number")
    });
    screen.types("1");
    screen.until("answered; the other task continues");
    screen.until_gone("another task asks");
    screen.says("/tasks");
    screen.wait_for_shown("the end of the task", |shown| {
        shown.lines().any(|line| line.contains("done") && line.contains("tidy the shop"))
    });
    assert!(!note.exists());
    screen.types(ESCAPE);
    screen.until_gone("Enter watch");
    screen.leave();
    serve.kill().unwrap();
    serve.wait().unwrap();
}
