//! What a person reads before they decide, and how they answer.

use windlass_testkit::{Answer, ModelServer};

use crate::program::Program;
use crate::terminal::{Terminal, remains};

/// A push, and beside it what an escape sequence would hide on a terminal.
const HIDDEN: &str = r#"replies: [{bash: "git push origin main '\e]0;'; rm victim; : '\a'"}, {write: {path: "notes\u009d/deploy\u009c.md", content: x}}]"#;

#[test]
fn a_question_shows_what_a_terminal_would_hide() {
    let program = Program::playing(HIDDEN);
    let ran = program.windlass(&["run", "publish"]).expect(3);
    let inbox = program.windlass(&["inbox"]).expect(0);
    for seen in [&ran.stderr, &inbox.stdout] {
        assert!(seen.contains(r"git push origin main '\x1b]0;'; rm victim; : '\x07'"), "{seen}");
    }
    let answer = ["answer", &program.task(), "deny", "--resume"];
    let ran = program.windlass(&answer);
    assert!(ran.stderr.contains(r"notes\u{9D}/deploy\u{9C}.md"), "{ran:?}");
}

#[test]
fn json_on_a_terminal_holds_no_character_that_it_obeys() {
    let program = Program::with(ModelServer::start(r#"replies: [{say: "a\u009b2Jb\u202e"}]"#));
    program.windlass(&["run", "x"]).expect(0);
    let task = program.task();
    for command in [["events", &task, "--json"].as_slice(), &["trace", &task], &["result", &task]] {
        let shown = program.windlass(command).expect(0).stdout;
        assert!(shown.contains(r"a\u009b2Jb\u202e"), "{command:?}: {shown}");
        assert!(!shown.contains(['\u{9b}', '\u{202e}']), "{command:?}: {shown}");
    }
    let said = program.windlass(&["result", &task]).expect(0).stdout;
    let result: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(result["final_message"], "a\u{9b}2Jb\u{202e}");
}

fn on_terminal(program: &Program, args: &[&str], columns: u16) -> Terminal {
    let mut command = program.command(args);
    command.env("TERM", "xterm-256color");
    Terminal::start(command, columns)
}

fn removing() -> Program {
    let program = Program::playing("replies: [{bash: rm old.txt}, {say: done}]");
    std::fs::write(program.workspace().join("old.txt"), "x").unwrap();
    program
}

#[test]
fn an_answer_is_edited_with_the_usual_keys() {
    let program = removing();
    let mut terminal = on_terminal(&program, &["run", "tidy"], 80);
    terminal.until("> ");
    terminal.types("alow\u{1b}[D\u{1b}[D\u{1b}[Dl\u{1b}[F!\u{7f}\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(remains(&written).contains("\n> allow\n"), "{}", remains(&written));
    assert!(!program.workspace().join("old.txt").exists(), "{written}");
}

#[test]
fn no_with_a_word_denies_and_tells_the_agent() {
    let program = removing();
    let mut terminal = on_terminal(&program, &["run", "tidy"], 80);
    terminal.until("> ");
    terminal.types("maybe\n");
    terminal.until_after(
        "`maybe` is not an answer; choose one of: Allow, Deny (numbers work too)",
        "> ",
    );
    terminal.types("no, move it aside instead\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(program.workspace().join("old.txt").exists(), "{written}");
    let sent = program.last_message_sent();
    assert!(sent.contains("the user denied it: move it aside instead"), "{sent}");
    assert!(!written.contains("q_"), "nobody needs the question's id: {written}");
}

#[test]
fn a_second_answer_hears_what_the_first_was() {
    let program = removing();
    let asked = program.windlass(&["run", "tidy"]).expect(3).stderr;
    assert!(asked.contains("\nAnswer with: windlass answer q_"), "{asked}");
    assert!(asked.ends_with(" Allow --resume\n         or: Deny\n"), "{asked}");
    let task = program.task();
    let first = program.windlass(&["answer", &task, "Y"]).expect(0).stderr;
    let resume =
        format!("answered\nThe task is not running; continue it with: windlass resume {task}\n");
    assert_eq!(first, resume);
    let second = program.windlass(&["answer", &task, "no"]).expect(2).stderr;
    assert!(second.contains("already answered ") && second.contains("s ago: Allow\n"), "{second}");
    program.windlass(&["resume", &task]).expect(0);
    assert!(!program.workspace().join("old.txt").exists());
}

/// The last lines of a long command are as visible as the first.
#[test]
fn a_long_command_is_shown_whole() {
    let mut lines: Vec<String> = (0..25).map(|number| format!("echo {number}")).collect();
    lines.extend(["rm -r src".to_owned(), "echo 1. Allow".to_owned()]);
    let command = serde_json::to_string(&lines.join("\n")).unwrap();
    let program = Program::playing(&format!("replies: [{{bash: {command}}}]"));
    let ran = program.windlass(&["run", "tidy"]).expect(3);
    let inbox = program.windlass(&["inbox"]).expect(0);
    let page = program.windlass(&["show", &program.task()]).expect(0);
    for seen in [&ran.stderr, &inbox.stdout, &page.stdout] {
        let first = "question: Run this command? It removes files.\n  ! rm -r src: removes files\n  │ $ echo 0\n";
        assert!(seen.contains(first), "{seen}");
        assert!(seen.contains("\n  │ echo 19\n  │ echo 20\n"), "{seen}");
        assert!(seen.contains("\n  │ rm -r src\n  │ echo 1. Allow\n  1. Allow\n"), "{seen}");
        assert!(!seen.contains("more line"), "{seen}");
    }
}

/// On a terminal a long line is broken so that none of it looks like another line or like an option.
#[test]
fn a_long_line_of_a_command_keeps_its_bar() {
    let program = Program::playing(&format!(
        "replies: [{{bash: \"rm old.txt; echo {} 1. Allow\"}}]",
        "x".repeat(50)
    ));
    let mut terminal = on_terminal(&program, &["run", "tidy"], 60);
    terminal.until("> ");
    terminal.types("\u{4}");
    let written = remains(&terminal.end().0);
    let bars: Vec<_> = written.lines().filter(|line| line.starts_with("  │ $ rm")).collect();
    assert_eq!(bars.len(), 1, "{written}");
    assert!(written.contains("\n  ┊ "), "{written}");
    assert!(written.lines().all(|line| line.chars().count() <= 100), "{written}");
}

/// The diff is the question: both sides, nothing else of the arguments.
#[test]
fn a_change_of_a_file_is_asked_about_as_its_diff() {
    let program = Program::playing(
        "replies: [{read: a.txt}, {edit: {path: a.txt, old_string: two, new_string: zwei}}, \
         {write: {path: a.txt, content: \"eins\\nzwei\\n\"}}, {say: done}]",
    );
    std::fs::write(program.workspace().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let ran = program.windlass(&["run", "translate", "--control", "manual"]).expect(3);
    let edit =
        "\n  │ a.txt\n  │ @@ -1,3 +1,3 @@\n  │  one\n  │ -two\n  │ +zwei\n  │  three\n  1. Allow\n";
    assert!(ran.stderr.contains(edit), "{}", ran.stderr);
    assert!(!ran.stderr.contains("old_string"), "{}", ran.stderr);
    let ran = program.windlass(&["answer", &program.task(), "y", "--resume"]).expect(3);
    let write = "\n  │ a.txt\n  │ @@ -1,3 +1,2 @@\n  │ -one\n  │ +eins\n  │  zwei\n  │ -three\n  1. Allow\n";
    assert!(ran.stderr.contains(write), "{}", ran.stderr);
}

#[test]
fn a_sub_agents_question_names_its_label() {
    let program = Program::with(ModelServer::start_empty());
    program.server.answer_with(|request| {
        let spawn = "calls: [{spawn_agent: {task: look into it, label: source}}]";
        let is_child = request.json().to_string().contains("look into it");
        Some(Answer::script(match is_child {
            false => spawn,
            true => "ask_user: {question: which file?}",
        }))
    });
    let asked = program.windlass(&["run", "delegate"]).expect(3).stderr;
    assert!(asked.contains("\nsub-agent `source` of task_"), "{asked}");
    let inbox = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains("ago by sub-agent `source` of task_"), "{inbox}");
}

#[test]
fn a_person_who_looks_elsewhere_is_notified_as_they_configured() {
    let output_with = |setting: &str| {
        let program = removing();
        let directory = program.data.path().join(".config/windlass");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("config.toml"), setting).unwrap();
        let mut terminal = on_terminal(&program, &["run", "tidy"], 80);
        terminal.until("> ");
        terminal.types("y\n");
        terminal.end().0
    };
    assert!(!output_with("").contains('\u{7}'));
    assert_eq!(output_with("[ui]\nnotify = \"bell\"\n").matches('\u{7}').count(), 2);
    let output = output_with("[ui]\nnotify = \"osc9\"\n");
    assert!(output.contains("\u{1b}]9;windlass: a question waits\u{7}"), "{output:?}");
    assert!(output.contains("\u{1b}]9;windlass: the task is done\u{7}"), "{output:?}");
}
