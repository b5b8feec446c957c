//! How the interactive terminal is opened: with options, and for a screen reader.

use crate::interactive::{ESCAPE, Screen, interactive, prepared};
use crate::program::Program;

/// The model that plays the script, by its name.
const MODEL: &str = "test/model";

fn open(program: &Program, args: &[&str], shows: &str) -> Screen {
    let mut screen = Screen::start(interactive(program, args), 100, 24);
    screen.until(shows);
    screen
}

#[test]
fn options_without_a_command_open_the_conversation_with_them() {
    let program = prepared("replies: [{say: An answer.}]");
    let elsewhere = program.data.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let directory = elsewhere.display().to_string();
    let options = ["--mode", "plan", "--control", "assisted", "--permission-profile", "restricted"];
    let more = ["--model-mode", "deep", "--workspace", &directory];
    let shown = "windlass plan | assisted | restricted | deep";
    let mut screen = open(&program, &[&options[..], &more].concat(), shown);
    screen.until("elsewhere");
    screen.says("hello");
    screen.until("An answer.");
    screen.leave();
    // It is the last conversation of that directory, and of no other.
    let mut screen = open(&program, &["--continue", "--workspace", &directory], shown);
    screen.until("An answer.");
    screen.leave();
    let refused = on_terminal(&program, &["--continue"]);
    assert_eq!(refused.1, 2, "{}", refused.0);
    assert!(refused.0.contains("there is no conversation of this directory"), "{}", refused.0);
}

#[test]
fn a_conversation_is_continued_with_other_options() {
    let program = prepared("replies: [{say: An answer.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("hello");
    screen.until("An answer.");
    screen.leave();
    let shown = "windlass build | manual | normal | fast";
    let options = ["--continue", "--mode", "build", "--model-mode", "fast"];
    let mut screen = open(&program, &options, shown);
    screen.until("An answer.");
    screen.leave();
    // Kept, as a command would keep it.
    open(&program, &["--continue"], shown).leave();
    let (said, code) = on_terminal(&program, &["--continue", "--budget", "2"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`--add-dir` and `--budget` are for a new conversation"), "{said}");
}

#[test]
fn a_model_without_a_command_is_the_model_of_the_conversation() {
    let program = prepared("replies: [{say: An answer.}]");
    let script = program.workspace().join("other.yaml");
    std::fs::write(&script, "replies: [{say: From the other model.}]").unwrap();
    let model = format!("script:{}", script.display());
    let mut screen = open(&program, &["--model", &model], "windlass chat | manual");
    screen.says("hello");
    screen.until("From the other model.");
    screen.leave();
    let shown = program.windlass(&["mode", "--json"]).expect(0);
    assert!(shown.stdout.contains("workMode"), "{shown:?}");
}

#[test]
fn wrong_options_are_refused_before_anything_is_drawn() {
    let program = prepared("replies: []");
    let cases: &[(&[&str], &str)] = &[
        (&["--model", "nobody/nothing"], "nobody"),
        (&["--model", "script:none.yaml"], "none.yaml"),
        (&["--mode", "sleep"], "chat"),
        (&["--control", "wild"], "autonomous"),
        (&["--permission-profile", "unrestricted"], "unrestricted"),
        (&["--workspace", "/nowhere"], "/nowhere"),
        (&["--budget", "-1"], "--budget"),
        (&["--session", "none"], "there is no session `none`"),
        (&["--model", MODEL, "tasks"], "as `windlass tasks --model`"),
        (&["--continue", "inbox"], "`--continue` before a command"),
    ];
    for (args, said) in cases {
        let (all, code) = on_terminal(&program, args);
        assert_eq!(code, 2, "{args:?}: {all}");
        assert!(all.contains(said), "{args:?}: {all}");
        assert!(!all.contains("windlass chat |"), "{args:?} was opened: {all}");
    }
}

/// MS-192: `-p` after options is a run with them.
#[test]
fn print_after_options_is_a_run_with_them() {
    let program = prepared("replies: [{say: From the server.}]");
    let script = program.workspace().join("other.yaml");
    std::fs::write(&script, "replies: [{say: From the other model.}]").unwrap();
    let model = format!("script:{}", script.display());
    let ran = program.windlass(&["--model", &model, "-p", "hello"]).expect(0);
    assert_eq!(ran.stdout.trim(), "From the other model.", "{ran:?}");
    let ran = program.windlass(&["--mode=chat", "-p", "hello"]).expect(0);
    assert_eq!(ran.stdout.trim(), "From the server.", "{ran:?}");
}

fn on_terminal(program: &Program, args: &[&str]) -> (String, i32) {
    Screen::start(interactive(program, args), 100, 24).end()
}

/// Everything is said in lines of words: nothing is drawn, and nothing of what was said is written again.
#[test]
fn a_screen_reader_is_told_everything_in_plain_lines() {
    let program = prepared(
        "
replies:
  - say: Hello, I am **ready**.
  - bash: rm notes.txt
  - say: The note is gone.
",
    );
    let mut command = interactive(&program, &[]);
    command.env("WINDLASS_SCREEN_READER", "true");
    let mut screen = Screen::start(command, 80, 24);
    screen.until("mode: chat, manual, profile normal, model smart");
    screen.says("hello");
    screen.until("agent: Hello, I am **ready**.");
    screen.until("the agent waits for you");
    screen.types("\u{1b}m");
    screen.until("mode: plan, manual");
    screen.says("/mode chat");
    screen.wait_for("chat again", |all| all.matches("mode: chat, manual").count() == 2);
    screen.says("remove the note");
    screen.until("question: ");
    screen.until("1. Allow");
    screen.until("keys count now");
    screen.types("1");
    screen.until("answered: Allow");
    screen.until("agent: The note is gone.");
    screen.wait_for("the agent waits twice", |all| {
        all.matches("the agent waits for you").count() >= 2
    });
    let written = screen.written();
    assert_eq!(written.matches("agent: Hello, I am").count(), 1, "{written:?}");
    let drawn = "❯•─│┊·→↳✓✗⠋⠙⠹⠸‖▸";
    assert!(!written.contains(|char| drawn.contains(char)), "{written:?}");
    screen.types("/tasks");
    screen.until("message: /tasks");
    screen.types("\r");
    screen.until("selected: ");
    screen.types(ESCAPE);
    screen.until_gone("selected: ");
    screen.types("\u{3}");
    screen.until("press Ctrl+C again to leave");
    screen.types("\u{3}");
    let (all, code) = screen.end();
    assert_eq!(code, 0, "{all}");
    assert!(!program.workspace().join("notes.txt").exists());
}

/// Its font has few signs besides letters, and what a page covers does not come back by itself.
#[test]
fn the_console_of_linux_gets_plain_signs() {
    let program = prepared("replies: [{say: '**Größe** → 3 – so ✓'}]");
    let mut command = interactive(&program, &[]);
    command.env("TERM", "linux");
    let mut screen = Screen::start(command, 80, 24);
    screen.until("windlass chat | manual | normal | smart ---");
    screen.says("wie groß?");
    screen.until("Größe > 3 - so +");
    screen.until("waiting for you");
    screen.types("/tasks");
    screen.until("> /tasks");
    screen.types("\r");
    screen.until("Enter watch");
    screen.types("q");
    screen.until_gone("Enter watch");
    screen.wait_for_shown("the conversation again", |shown| {
        shown.contains("> wie groß?") && shown.contains("Größe > 3 - so +")
    });
    let is_shown = |char: char| char.is_ascii() || "öß".contains(char);
    let written = screen.written();
    assert!(written.chars().all(is_shown), "{written:?}");
    assert!(!written.contains("\u{1b}]8;"), "{written:?}");
    screen.leave();
}
