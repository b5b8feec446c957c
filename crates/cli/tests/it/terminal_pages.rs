//! Pages of the interactive terminal that show what happens while they are open, and what slash commands say there.

use crate::interactive::{Screen, interactive, prepared};

const AUTONOMOUS: &[&str] =
    &["--mode", "build", "--control", "autonomous", "--permission-profile", "trusted"];

fn open(script: &str) -> (crate::program::Program, Screen) {
    let program = prepared(script);
    let mut screen = Screen::start(interactive(&program, AUTONOMOUS), 80, 24);
    screen.until("windlass build | autonomous");
    (program, screen)
}

/// What is added to the conversation is added to its open pages too.
#[test]
fn transcript_and_changes_grow_while_they_are_open() {
    let (program, mut screen) = open(
        "
replies:
  - bash: 'until [ -e go ]; do sleep 0.1; done'
  - write: {path: made.txt, content: \"made by the agent\\n\"}
  - bash: 'until [ -e on ]; do sleep 0.1; done'
  - say: All of it is done.
",
    );
    let message: Vec<String> = (1..=40).map(|number| format!("point {number}")).collect();
    screen.types(&format!("\u{1b}[200~{}\u{1b}[201~", message.join("\n")));
    screen.until("[pasted text 1: 40 lines]");
    screen.types("\r");
    screen.until("… 25 more lines; /transcript has all");
    screen.until("until [ -e go ]");
    screen.types("\u{1b}g");
    screen.until("no file was changed");
    std::fs::write(program.workspace().join("go"), "").unwrap();
    screen.until("+made by the agent");
    assert!(screen.parser.screen().alternate_screen());
    screen.types("q");
    screen.until_gone("changes of this turn");
    screen.types("\u{14}");
    screen.until("u unfolds");
    std::fs::write(program.workspace().join("on"), "").unwrap();
    screen.wait_for_shown("the reply on the page", |shown| {
        shown.contains("All of it is done.") && shown.contains("u unfolds")
    });
    screen.types("g");
    screen.wait_for_shown("its beginning", |shown| shown.contains("  … 25 more lines"));
    screen.types("u");
    screen.wait_for_shown("the whole message", |shown| shown.contains("  point 12\n"));
    screen.types("q");
    screen.until_gone("u folds");
    screen.leave();
}

/// MS-226
#[test]
fn sub_agents_are_listed_below_the_task_that_started_them() {
    let (_program, mut screen) = open(
        "
match:
  - task: the left half
    replies: [{say: Left.}]
  - task: the right half
    replies: [{say: Right.}]
replies:
  - calls:
      - spawn_agent: {task: look at the left half, label: left}
      - spawn_agent: {task: look at the right half, label: right}
  - say: Both are seen.
",
    );
    screen.says("look at everything");
    screen.until("Both are seen.");
    screen.until("waiting for you");
    screen.says("/tasks");
    screen.until("Enter watch");
    let shown = screen.parser.screen().contents();
    let place = |words: &str| shown.lines().position(|row| row.contains(words)).unwrap();
    let [above, left, right] = ["look at everything", "  look at the left", "  look at the right"]
        .map(|words| place(words.trim_start()));
    assert!(above < left && left < right, "{shown}");
    screen.types("q");
    screen.until_gone("Enter watch");
    // On their own page they are called as in the conversation.
    screen.says("/agents");
    screen.until("m steer");
    let shown = screen.parser.screen().contents();
    for words in ["left: look at the left half", "right: look at the right half"] {
        assert!(shown.contains(words), "{shown}");
    }
    screen.types("q");
    screen.until_gone("m steer");
    screen.leave();
}

/// While a step runs it is said when it will hold, and then that it does.
#[test]
fn a_change_of_the_mode_is_said_once_and_when_it_holds() {
    let program = prepared(
        "
replies:
  - say: Ready.
  - bash: 'until [ -e go ]; do sleep 0.1; done'
  - say: Done.
",
    );
    let mut screen = Screen::open(&program, &[]);
    screen.types("\u{1b}p");
    screen.until("mode: chat | manual | trusted | smart");
    screen.says("hello");
    screen.until("Ready.");
    screen.until("waiting for you");
    screen.types("\u{1b}s");
    screen.until("mode: chat | assisted | trusted | smart");
    screen.says("work");
    screen.until("until [ -e go ]");
    screen.says("/permission-profile normal");
    screen.until("mode: chat | assisted | normal | smart, when the running step has ended");
    std::fs::write(program.workspace().join("go"), "").unwrap();
    screen.until("mode: trusted → normal");
    screen.until("Done.");
    let (all, _) = screen.leave();
    assert_eq!(all.matches("mode: ").count(), 4, "{all}");
}

/// What a command reports is seen where it changes the mode too, and a mistake is seen with what was typed.
#[test]
fn a_command_is_seen_with_what_it_reports() {
    let program = prepared("replies: [{say: Repaired.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("/mode nonsense");
    screen.until("  `nonsense` is not a work mode; allowed: chat, plan,");
    screen.says("/repair");
    screen.until("Nothing could be fixed without a model.");
    screen.until("windlass repair | manual");
    let (all, _) = screen.leave();
    assert!(all.contains("/mode nonsense\n"), "{all}");
    assert!(all.contains("/repair\n"), "{all}");
}

/// What waits does not begin again what a person has stopped.
#[test]
fn stopped_work_holds_what_was_queued() {
    let (_program, mut screen) = open(
        "
replies:
  - bash: sleep 600
  - say: Never said.
",
    );
    screen.says("work");
    screen.until("$ sleep 600");
    screen.until("Enter queues");
    screen.says("and then this");
    screen.until("queued: and then this");
    screen.says("/stop");
    screen.until("cancelled");
    screen.until("the queue is on hold");
    screen.types("\u{1b}q");
    screen.until("x remove");
    screen.types("x");
    screen.until_gone("and then this");
    screen.leave();
}
