//! What a person sees of a run, on a terminal and in a pipe.

use crate::program::Program;
use crate::terminal::{Terminal, remains};

/// Plans, works, fails, changes a file and says so in markdown.
const WORK: &str = r##"
replies:
  - text: I look **first**.
    calls:
      - update_plan: {steps: [{id: '1', description: look, status: in_progress}, {id: '2', description: fix, status: pending}]}
      - read: notes.txt
      - read: nowhere.txt
  - edit: {path: notes.txt, old_string: short, new_string: long}
  - bash: printf 'one\ntwo\033[31m\n'; exit 3
  - update_plan: {steps: [{id: '1', description: look, status: done}, {id: '2', description: fix, status: in_progress}]}
  - say: "# Done\n\nIt is **long** now, see `notes.txt`.\n\n- one\n- two\n"
"##;

fn prepared(script: &str) -> Program {
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("notes.txt"), "a short note\n").unwrap();
    program
}

fn on_terminal(program: &Program, args: &[&str]) -> Terminal {
    let mut command = program.command(args);
    command.env("TERM", "xterm-256color");
    Terminal::start(command, 90)
}

/// Masks what varies: times, ids, and the sandbox of this machine.
fn masked(program: &Program, text: &str) -> String {
    let text = text.replace(&program.task(), "TASK");
    let lines = text.lines().map(|line| match line.split_once("done in ") {
        Some((before, after)) => {
            let rest = after.split_once(' ').map_or("", |(_, rest)| rest);
            // The number of tokens, and so the cost, depends on every tool's description.
            let rest = rest.split(" · ").map(|part| match part {
                tokens if tokens.ends_with(" tokens") => "N tokens",
                cost if cost.starts_with('$') => "$N",
                other => other,
            });
            let rest = rest.collect::<Vec<_>>().join(" · ");
            format!("{before}done in TIME {rest}")
        }
        None => line.to_owned(),
    });
    let lines = lines.filter(|line| {
        // The warning that the host isolates nothing is the same everywhere.
        let said = line.starts_with("sandbox: no isolation");
        said || !(line.starts_with("sandbox ") || line.starts_with("sandbox: "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_terminal_shows_what_happens_and_a_rendered_reply() {
    let program = prepared(WORK);
    let (written, code) =
        on_terminal(&program, &["run", "fix the note", "--sandbox", "host"]).end();
    assert_eq!(code, 0, "{written}");
    insta::assert_snapshot!(masked(&program, &remains(&written)));
    assert!(written.contains("\u{1b}[32m+a long note"), "changes are coloured: {written:?}");
    assert!(written.contains("context "), "the gauge is drawn: {written:?}");
    assert!(written.contains("plan 0/2"), "{written:?}");
}

#[test]
fn a_pipe_gets_plain_lines_and_the_reply_as_it_is() {
    let program = prepared(WORK);
    let ran = program.windlass(&["run", "fix the note", "--sandbox", "host"]).expect(0);
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\r'), "{:?}", ran.stderr);
    insta::assert_snapshot!(masked(&program, &ran.stderr));
    insta::assert_snapshot!(ran.stdout, @r"
    # Done

    It is **long** now, see `notes.txt`.

    - one
    - two
    ");
}

#[test]
fn no_color_and_a_dumb_terminal_are_honoured() {
    let program = prepared(WORK);
    let args = ["run", "fix the note", "--share", "--sandbox", "host"];
    let mut command = program.command(&args);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let (written, _) = Terminal::start(command, 90).end();
    let without_redraws = written.replace("\r\u{1b}[2K", "").replace("\u{1b}[1A\u{1b}[2K", "");
    assert!(!without_redraws.contains('\u{1b}'), "{without_redraws:?}");

    let program = prepared(WORK);
    let mut command = program.command(&args);
    command.env("TERM", "dumb");
    let (written, _) = Terminal::start(command, 90).end();
    assert!(!written.contains('\u{1b}'), "{written:?}");
}

#[test]
fn what_agents_and_tools_say_cannot_control_the_terminal() {
    let program = prepared(
        r#"
replies:
  - text: "before \e]0;owned\a\e[2Jafter"
    calls: [{bash: "printf '\\033]0;owned\\007\\033[2Jprinted\\n'"}]
  - say: "all \e[?1049hdone\u202e"
"#,
    );
    let (written, code) = on_terminal(&program, &["run", "attack", "--sandbox", "host"]).end();
    assert_eq!(code, 0, "{written}");
    for attack in ["\u{1b}]", "\u{1b}[2J", "\u{1b}[?1049h", "\u{202e}", "\u{7}"] {
        assert!(!written.contains(attack), "{written:?}");
    }
    assert!(written.contains("before after") && written.contains("printed"), "{written:?}");
    let ran = program.windlass(&["run", "attack", "--sandbox", "host"]).expect(0);
    assert_eq!(ran.stdout, "all done\n");
}

/// ES-107, ES-213: on a terminal a question is asked and answered in the same process.
#[test]
fn a_question_is_asked_inline_and_the_task_continues() {
    let program = prepared(
        "replies: [{ask_user: {question: which colour?, options: [red, blue], context: for the door}}, {say: painted}]",
    );
    let mut terminal = on_terminal(&program, &["run", "paint"]);
    terminal.until("> ");
    terminal.types("2\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    insta::assert_snapshot!(masked(&program, &remains(&written)));
    assert_eq!(program.last_message_sent(), "User responded to your question: blue");
}

/// A run keeps what it loaded at its start, also while a question waits.
#[test]
fn files_that_change_during_a_run_count_from_the_next() {
    let program = prepared("replies: []");
    let config = program.workspace().join(".windlass/config.toml");
    let script = program.data.path().join("r.yaml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[agent]\nmax_iterations = 7\n").unwrap();
    std::fs::write(&script, "replies: [{ask_user: {question: which colour?}}, {say: painted}]")
        .unwrap();
    let model = format!("script:{}", script.display());
    let mut terminal = on_terminal(&program, &["run", "paint", "--model", &model]);
    terminal.until("> ");
    std::fs::write(&config, "not a setting").unwrap();
    std::fs::remove_file(&script).unwrap();
    terminal.types("blue\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("painted"), "{written}");
    let next = program.windlass(&["run", "paint"]).expect(2);
    assert!(next.stderr.contains(".windlass/config.toml"), "{next:?}");
}

/// ES-018, ES-213: a terminal that shows a question continues when it is answered from elsewhere. What is
/// typed later answers the next question.
#[test]
fn an_answer_from_elsewhere_is_seen_by_the_terminal_that_asks() {
    let program = prepared(
        "replies: [{ask_user: {question: which colour?}}, {ask_user: {question: which door?}}, {say: painted}]",
    );
    let mut terminal = on_terminal(&program, &["run", "paint"]);
    terminal.until("> ");
    let answered = program.windlass(&["answer", &program.task(), "blue"]).expect(0);
    assert!(!answered.stderr.contains("is not running"), "{answered:?}");
    terminal.until("answered by ada: blue");
    terminal.until_after("which door?", "> ");
    terminal.types("the left one\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert_eq!(program.last_message_sent(), "User responded to your question: the left one");
}

/// A terminal whose question is answered by a process that also takes the task over follows it to its end.
#[test]
fn a_terminal_follows_a_task_that_its_answer_took_away() {
    let program = prepared("replies: [{ask_user: {question: which colour?}}, {say: painted}]");
    let mut terminal = on_terminal(&program, &["run", "paint"]);
    terminal.until("> ");
    program.windlass(&["answer", &program.task(), "blue", "--resume"]).expect(0);
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(!written.contains("error:"), "{written}");
}

/// ES-109: a terminal that shows a question of a task that somebody cancels ends with it, and nobody is asked
/// any more.
#[test]
fn a_question_of_a_cancelled_task_is_nobodys_any_more() {
    let program = prepared("replies: [{ask_user: {question: which colour?}}, {say: painted}]");
    let mut terminal = on_terminal(&program, &["run", "paint"]);
    terminal.until("> ");
    program.windlass(&["cancel", &program.task()]).expect(0);
    let (written, code) = terminal.end();
    assert_eq!(code, 5, "{written}");
    let inbox = program.windlass(&["inbox"]).expect(0);
    assert_eq!((inbox.stdout.as_str(), inbox.stderr.as_str()), ("", "nothing waits for you\n"));
    let row = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!((&row["next_action"], &row["questions"]), (&"".into(), &serde_json::json!([])));
}

#[test]
fn leaving_a_question_leaves_the_task_blocked_and_says_how_to_answer() {
    for leave in ["\u{3}", "\u{4}"] {
        let program = prepared("replies: [{ask_user: {question: sure?}}, {say: done}]");
        let mut terminal = on_terminal(&program, &["run", "ask"]);
        terminal.until("> ");
        terminal.types(leave);
        let (written, code) = terminal.end();
        assert_eq!(code, 3, "{written}");
        assert!(written.contains("Answer with: windlass answer q_"), "{written}");
        program.windlass(&["answer", &program.task(), "yes", "--resume", "-p"]).expect(0);
    }
}

/// ES-110: the first Ctrl-C pauses, and the program says how to resume.
#[test]
fn ctrl_c_on_a_terminal_pauses() {
    let gate = windlass_testkit::Gate::new();
    let server = windlass_testkit::ModelServer::start("replies: [{say: done}]");
    server.next(windlass_testkit::Answer::script("say: never").gated(0, &gate));
    let program = Program::with(server);
    let mut terminal = on_terminal(&program, &["run", "work"]);
    gate.reached_blocking();
    terminal.types("\u{3}");
    let (written, code) = terminal.end();
    assert_eq!(code, 130, "{written}");
    assert!(written.contains("paused; resume with: windlass resume task_"), "{written}");
}

/// MS-192
#[test]
fn print_gives_the_answer_and_nothing_else() {
    let program = prepared("replies: [{read: notes.txt}, {say: pong}]");
    let ran = program.windlass(&["--print", "ping"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("pong\n", ""));
    let ran = program.windlass(&["run", "-p", "ping"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("pong\n", ""));
}

/// ES-378: a wait for the model is shown, with its reason.
#[test]
fn a_wait_for_the_model_is_shown() {
    let program = prepared("replies: [{say: done}]");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), "[models]\nbackoff_base_ms = 1\n").unwrap();
    let overloaded = r#"{"error":{"message":"come back later"}}"#;
    program.server.next(windlass_testkit::Answer::status(503, "application/json", overloaded));
    let ran = program.windlass(&["run", "work"]).expect(0);
    assert!(ran.stderr.contains("come back later"), "{ran:?}");
    assert!(ran.stderr.contains("trying again in 0.0 s"), "{ran:?}");
}

/// ES-378: a task is parked during a long wait. Other processes see that, and any of them may end it earlier.
#[test]
fn a_long_wait_for_the_model_can_be_ended_from_elsewhere() {
    let program = Program::playing("replies: [{say: done}]");
    let busy = windlass_testkit::Answer::error(429, "slow down").header("retry-after", "7200");
    program.server.next(busy);
    let mut terminal = on_terminal(&program, &["run", "work"]);
    terminal.until("waiting until ");
    terminal.until("Ctrl-C leaves it paused");
    let row = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!((&row["status"], &row["status_reason"]), (&"paused".into(), &"rate_limited".into()));
    let next = row["next_action"].as_str().unwrap();
    assert!(next.starts_with("waiting until 2"), "{next}");
    program.windlass(&["resume", &program.task()]).expect(0);
    let (written, _) = terminal.end();
    let endings = ["another process continues it", "is done now"];
    assert!(endings.iter().any(|ending| written.contains(ending)), "{written}");
}

/// A program whose model server breaks this many connections first, with this in its `[models]`.
fn with_broken_model(connections: usize, settings: &str) -> Program {
    let program = Program::playing("replies: [{say: done}]");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let quick = format!("[models]\nbackoff_base_ms = 1\nmax_retries = 1\n{settings}");
    std::fs::write(directory.join("config.toml"), quick).unwrap();
    for _ in 0..connections {
        program.server.next(windlass_testkit::Answer::close());
    }
    program
}

/// A model that is gone is waited for: the person sees until when, and the run continues by itself.
#[test]
fn a_run_waits_while_its_model_is_gone() {
    let program = with_broken_model(2, "");
    let mut terminal = on_terminal(&program, &["run", "work"]);
    terminal.until("waiting until ");
    terminal.until("Ctrl-C leaves it paused");
    let row = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!((&row["status"], &row["status_reason"]), (&"paused".into(), &"model_outage".into()));
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
}

/// `models.outage` decides: with `fail` a run ends after the retries.
#[test]
fn an_outage_fails_a_run_where_that_is_chosen() {
    let program = with_broken_model(2, "outage = \"fail\"\n");
    let failed = program.windlass(&["run", "work"]).expect(1);
    assert!(failed.stderr.contains("windlass retry"), "{}", failed.stderr);
    assert_eq!(program.server.request_count(), 2);
}

/// `events --follow | head -1` ends with its reader, even if the task does nothing.
#[test]
fn following_ends_with_its_reader() {
    use std::io::BufRead as _;
    let program = Program::playing("replies: [{ask_user: {question: which colour?}}]");
    program.windlass(&["run", "paint"]).expect(3);
    let mut following = program.start(&["events", "--follow", &program.task()]);
    let mut shown = std::io::BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(shown.next().unwrap().unwrap().contains("task_created"));
    drop(shown);
    assert!(following.wait().unwrap().success());
}

/// MS-047: under assisted control a person reads why the task paused, and both ways to continue.
#[test]
fn a_unit_that_waits_to_be_looked_at_says_so() {
    let program = Program::playing("replies: [{say: done}, {say: more}]");
    let ran = program.windlass(&["run", "work", "--control", "assisted"]).expect(4);
    let notice =
        "paused: it waits for you to look at what it did; resume with: windlass resume task_";
    assert!(ran.stderr.contains(notice), "{}", ran.stderr);
    assert!(ran.stderr.contains("or ask for more first: windlass send task_"), "{}", ran.stderr);
}

/// AX-065: a person sees what was refused, and why.
#[test]
fn a_refused_call_is_shown_with_its_reason() {
    let program = prepared("replies: [{bash: sudo ls}, {bash: rm notes.txt}, {say: done}]");
    let ran = program.windlass(&["run", "tidy"]).expect(3);
    assert!(ran.stderr.contains("✗ $ sudo ls\n  denied: "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("DENIED"), "{}", ran.stderr);
    let answer = ["answer", &program.task(), "not now", "--resume"];
    let refused = program.windlass(&answer).expect(2);
    assert!(refused.stderr.contains("`not now` is not an answer; choose one of: Allow, Deny\n"));
    let ran = program.windlass(&["answer", &program.task(), "no, keep it", "--resume"]).expect(0);
    assert!(
        ran.stderr.contains("✗ $ rm notes.txt\n  denied: the user denied it: keep it"),
        "{}",
        ran.stderr
    );
}

/// A run that is interrupted by a question is recorded completely.
#[test]
fn a_recording_continues_after_a_question() {
    let program =
        prepared("replies: [{read: notes.txt}, {ask_user: {question: sure?}}, {say: painted}]");
    let mut terminal = on_terminal(&program, &["run", "paint", "--record", "tape.yaml"]);
    terminal.until("> ");
    terminal.types("yes\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    let asked = program.server.request_count();
    let again = ["run", "paint", "--model", "script:tape.yaml", "--json"];
    program.windlass(&again).expect(3);
    let ran = program.windlass(&["answer", &program.task(), "yes", "--resume", "-p"]).expect(0);
    assert_eq!((ran.stdout.as_str(), program.server.request_count()), ("painted\n", asked));
}

/// A failed run says how to retry, even where nothing else is printed.
#[test]
fn a_failed_run_names_the_command_that_tries_again() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    let refusal = r#"{"error":{"message":"wrong key","type":"authentication_error"}}"#;
    let answer = windlass_testkit::Answer::status(401, "application/json", refusal);
    program.server.answer_with(move |_| Some(answer.clone()));
    let ran = program.windlass(&["run", "work", "-p"]).expect(1);
    let command = format!("try again with: windlass retry {}", program.task());
    assert!(ran.stderr.contains("failed: ") && ran.stderr.contains(&command), "{ran:?}");
}

#[test]
fn a_failed_run_is_retried_as_often_as_is_set() {
    let program = Program::playing("replies: []");
    let mut command = program.command(&["run", "work", "-q"]);
    let first: crate::program::Ran = command.env("AGENT_MAX_RETRIES", "1").output().unwrap().into();
    assert!(first.expect(1).stderr.contains("try again with"));
    let second = program.windlass(&["retry", &program.task(), "-q"]).expect(1);
    assert!(second.stderr.contains("it has no retries left"), "{second:?}");
    program.windlass(&["retry", &program.task(), "-q"]).expect(2);
}

/// When an interrupted task continues with a call, the call is shown although no event repeats it.
#[test]
fn a_resumed_call_is_shown_while_it_runs() {
    let wait = "echo on; until test -e go; do sleep 0.02; done";
    let program = prepared(&format!("replies: [{{bash: '{wait}'}}, {{say: done}}]"));
    let mut first = on_terminal(&program, &["run", "wait", "--sandbox", "host"]);
    first.until("$ echo on");
    let task = program.task();
    first.types("\u{3}");
    first.until("press Ctrl-C again");
    first.types("\u{3}");
    assert_eq!(first.end().1, 130);
    let mut second = on_terminal(&program, &["resume", &task, "--sandbox", "host"]);
    second.until("$ echo on; until");
    std::fs::write(program.workspace().join("go"), "").unwrap();
    assert_eq!(second.end().1, 0);
}

/// Keys pressed while the agent works must not allow what nobody has read yet.
#[test]
fn what_is_typed_before_a_question_does_not_answer_it() {
    let server = windlass_testkit::ModelServer::start("replies: [{say: never}, {say: left alone}]");
    let gate = windlass_testkit::Gate::new();
    let push = windlass_testkit::Answer::script("bash: git push origin main").gated(0, &gate);
    server.next(push);
    let program = Program::with(server);
    let mut terminal = on_terminal(&program, &["run", "publish"]);
    gate.reached_blocking();
    terminal.types("1\n");
    // It is a message to the task.
    terminal.until("→ 1");
    gate.open();
    terminal.until("2. Deny");
    terminal.until("> ");
    terminal.types("2\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    let sent = program.server.requests().last().unwrap().json().to_string();
    assert!(sent.contains("User says: 1") && sent.contains("DENIED"), "{sent}");
}

#[test]
fn a_small_budget_is_shown_with_enough_digits() {
    let program = prepared(
        "replies: [{read: notes.txt, usage: {input: 100, output: 20, cost: 0.0005}}, {say: done}]",
    );
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let price = "[models.'gpt-4o']\ninput = 2.5\noutput = 10\n";
    std::fs::write(directory.join("config.toml"), price).unwrap();
    let ran = program.windlass(&["run", "look", "--budget", "0.0001"]).expect(6);
    assert!(ran.stderr.contains("! cost budget: $0.0005 of $0.0001 used"), "{ran:?}");
    assert!(ran.stderr.contains("used up: $0.0005 of $0.0001. Raise it"), "{ran:?}");
}
