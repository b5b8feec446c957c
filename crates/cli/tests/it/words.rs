//! What people read: lists, pages and settings say what is, in words that fit.

use crate::program::{Program, Ran};
use crate::terminal::{Terminal, remains};

const PUSH: &str = "replies: [{bash: git push origin main}, {say: pushed}]";

/// What a command prints on a terminal of this width.
fn on_a_terminal(program: &Program, args: &[&str], columns: u16) -> String {
    let mut command = program.command(args);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    remains(&Terminal::start(command, columns).end().0)
}

#[test]
fn a_result_is_text_on_a_terminal_and_json_in_a_pipe() {
    let program = Program::playing("replies: [{say: '**all** done'}]");
    program.windlass(&["run", "greet", "-q"]).expect(0);
    let piped = program.windlass(&["result", &program.task()]).expect(0).stdout;
    let result: serde_json::Value = serde_json::from_str(&piped).unwrap();
    assert_eq!(result["final_message"], "**all** done");
    let page = on_a_terminal(&program, &["result", &program.task()], 80);
    assert!(page.starts_with("all done\n\nstatus       done"), "{page}");
    let json = on_a_terminal(&program, &["result", &program.task(), "--json"], 80);
    assert!(json.starts_with('{'), "{json}");
}

#[test]
fn a_question_names_its_command_wherever_it_is_listed() {
    let program = Program::playing(PUSH);
    program.windlass(&["run", "publish", "-q"]).expect(3);
    let listed = program.windlass(&["tasks"]).expect(0).stdout;
    assert!(listed.contains("\nQuestions\n"), "{listed}");
    assert!(listed.contains("$ git push origin main"), "{listed}");
    let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(page.contains("status     blocked (waiting for your answer)"), "{page}");
    assert!(page.contains("$ git push origin main"), "{page}");
}

#[test]
fn a_task_that_is_answered_and_not_resumed_says_so() {
    let program = Program::playing(PUSH);
    program.windlass(&["run", "publish", "-q"]).expect(3);
    program.windlass(&["answer", &program.task(), "Deny"]).expect(0);
    let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(page.contains("status     blocked (answered; resume to continue)"), "{page}");
    let listed = program.windlass(&["tasks"]).expect(0).stdout;
    assert!(listed.contains(" answered ") && listed.contains(" resume "), "{listed}");
    let counts = program.windlass(&["status", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!((&counts["resumable"], &counts["questions"]), (&1.into(), &0.into()));
}

/// MS-207: a task stands in one place.
#[test]
fn status_counts_every_task_once() {
    let program = Program::playing(PUSH);
    program.windlass(&["run", "publish", "-q"]).expect(3);
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().to_str().unwrap();
    program.windlass(&["run", "later", "--detach", "-q", "--workspace", place]).expect(0);
    let page = program.windlass(&["status"]).expect(0).stdout;
    let open = "tasks      2 open: 1 waiting to start, 1 waiting for an answer\n";
    assert!(page.starts_with(open), "{page}");
    assert!(page.contains("questions  1 (`windlass inbox`)"), "{page}");
}

#[test]
fn sub_agents_are_listed_below_the_task_that_started_them() {
    let script = "
replies:
  - {turn: 0, task: first, spawn_agent: {task: look AROUND}}
  - {turn: 1, task: first, say: done}
  - {turn: 0, task: AROUND, say: seen}
  - {turn: 0, task: second, say: done}
";
    let program = Program::playing(script);
    program.windlass(&["run", "first", "-q"]).expect(0);
    program.windlass(&["run", "second", "-q"]).expect(0);
    let listed = program.windlass(&["tasks"]).expect(0).stdout;
    let lines: Vec<_> = listed.lines().collect();
    assert!(lines[1].ends_with(" second") && lines[2].ends_with(" first"), "{listed}");
    assert!(lines[3].starts_with("  task_") && lines[3].contains("AROUND"), "{listed}");
}

#[test]
fn tasks_of_a_directory_are_listed_by_here() {
    let program = Program::playing("replies: [{say: done}]");
    program.windlass(&["run", "here", "-q"]).expect(0);
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().to_str().unwrap();
    program.windlass(&["run", "there", "-q", "--workspace", place]).expect(0);
    let listed = program.windlass(&["tasks", "--here", "--json"]).expect(0).json_lines();
    let goals: Vec<_> = listed.iter().map(|task| task["goal"].as_str().unwrap()).collect();
    assert_eq!(goals, ["here"]);
    assert!(program.windlass(&["tasks"]).expect(0).stdout.contains(" DIRECTORY "));
}

#[test]
fn lists_and_pages_fit_a_narrow_terminal() {
    let program = Program::playing(PUSH);
    program.windlass(&["run", &"a long goal ".repeat(10), "-q"]).expect(3);
    let task = program.task();
    for args in [
        &["tasks"][..],
        &["show", &task],
        &["sessions"],
        &["cost"],
        &["config"],
        &["status"],
        &["doctor", "--sandbox", "host"],
    ] {
        let shown = on_a_terminal(&program, args, 60);
        // A path cannot be broken, and a command that holds an id is not, so that it can be copied.
        let is_word = |line: &str| line.trim_start().split(' ').any(|word| word.len() > 25);
        let is_long = |line: &&str| line.chars().count() > 60 && !is_word(line);
        assert_eq!(shown.lines().find(is_long), None, "{args:?}:\n{shown}");
    }
}

#[test]
fn refused_calls_are_counted_as_such() {
    let script = "replies: [{bash: sudo ls}, {nonsense: {}}, {bash: 'true'}, {say: done}]";
    let program = Program::playing(script);
    program.windlass(&["run", "try", "-q", "--sandbox", "host"]).expect(0);
    let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(page.contains("3 steps, 3 calls (2 refused), "), "{page}");
}

#[test]
fn exec_runs_words_as_they_are_and_exits_like_the_command() {
    let program = Program::playing("replies: [{say: done}]");
    let exec = |args: &[&str]| {
        let args: Vec<_> = ["exec", "--sandbox", "host"].iter().chain(args).copied().collect();
        program.windlass(&args)
    };
    assert_eq!(exec(&["echo", "a  b", "$HOME", "it's"]).expect(0).stdout, "a  b $HOME it's\n");
    assert_eq!(exec(&["--", "ls", "-d", "/"]).expect(0).stdout, "/\n");
    assert_eq!(exec(&["echo one; exit 3"]).expect(3).stdout, "one\n");
    exec(&["kill -TERM $$"]).expect(143);
    exec(&[]).expect(2);
}

#[test]
fn outputs_takes_the_end_of_an_id() {
    let program = Program::playing("replies: [{bash: echo found}, {say: done}]");
    program.windlass(&["run", "look", "-q", "--sandbox", "host"]).expect(0);
    let logged = program.windlass(&["logs", &program.task(), "--json"]).expect(0).json_lines();
    let id = logged[0]["call"].as_str().unwrap();
    let end = id[id.len() - 7..].to_lowercase();
    assert_eq!(program.windlass(&["outputs", &end]).expect(0).stdout, "found\n");
}

#[test]
fn a_setting_is_changed_from_the_command_line() {
    let program = Program::playing("replies: [{say: done}]");
    let path = program.windlass(&["config", "path"]).expect(0).stdout;
    let path = std::path::Path::new(path.trim_end());
    assert!(path.ends_with(".config/windlass/config.toml"), "{path:?}");
    program.windlass(&["config", "set", "agent.max_iterations", "50"]).expect(0);
    let commented = format!("# kept\n{}", std::fs::read_to_string(path).unwrap());
    std::fs::write(path, commented).unwrap();
    program.windlass(&["config", "set", "policy.profile", "normal"]).expect(0);
    let text = std::fs::read_to_string(path).unwrap();
    let wanted = "# kept\n[agent]\nmax_iterations = 50\n\n[policy]\nprofile = \"normal\"\n";
    assert_eq!(text, wanted);
    let refused = program.windlass(&["config", "set", "agent.max_iterations", "none"]).expect(2);
    assert!(refused.stderr.contains("allowed: a whole number"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}

#[test]
fn a_removed_setting_that_a_variable_still_sets_is_named() {
    let program = Program::playing("replies: [{say: done}]");
    program.windlass(&["config", "set", "agent.max_iterations", "50"]).expect(0);
    let mut unset = program.command(&["config", "unset", "agent.max_iterations"]);
    let ran: Ran = unset.env("AGENT_MAX_ITERATIONS", "7").output().unwrap().into();
    let said = &ran.expect(0).stderr;
    assert!(said.contains("it is `200` now"), "{said}");
    assert!(said.contains("here environment AGENT_MAX_ITERATIONS wins, with 7"), "{said}");
}

#[test]
fn doctor_continues_where_the_configuration_is_broken() {
    let program = Program::playing("replies: [{say: done}]");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), "[agent\n").unwrap();
    let checks = program.windlass(&["doctor", "--json"]).expect(1).json_lines();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let named =
        checks.iter().map(|check| [text(&check["check"]), text(&check["status"])].join(" "));
    let found: Vec<_> = named.filter(|check| !check.ends_with(" ok")).collect();
    let expected =
        ["config wrong", "model skipped", "sandbox skipped", "web skipped", "mcp skipped"];
    assert_eq!(found, expected, "{checks:?}");
    let page = program.windlass(&["doctor"]).expect(1).stdout;
    assert!(page.contains("hint: correct the file, or move it away"), "{page}");
    assert!(page.contains("skipped  sandbox"), "{page}");
    let failed = program.windlass(&["run", "greet"]).expect(2).stderr;
    assert!(failed.contains("config.toml:1: not valid TOML"), "{failed}");
    assert!(failed.contains("hint: correct the file"), "{failed}");
}

#[test]
fn models_are_tested_without_retries() {
    let program = Program::playing("replies: [{say: pong}]");
    let mut command = program.command(&["models", "--test"]);
    // Nothing listens there.
    command.env("LITELLM_API_BASE", "http://127.0.0.1:9");
    let ran: Ran = command.output().unwrap().into();
    let page = ran.expect(1).stdout;
    assert!(page.contains("refuses connections") && !page.contains("attempts"), "{page}");
}

/// A retry that cannot work without a change is not offered as if it could.
#[test]
fn what_comes_before_a_retry_is_said_first() {
    let server = windlass_testkit::ModelServer::start_empty();
    server.answer_with(|_| Some(windlass_testkit::Answer::error(401, "who are you?")));
    let program = Program::with(server);
    let failed = program.windlass(&["run", "greet"]).expect(1).stderr;
    assert!(failed.contains("after that, try again with: windlass retry"), "{failed}");
}

/// Somebody who has only the program cannot look into our documentation.
#[test]
fn a_script_that_cannot_be_read_says_how_one_is_written() {
    let program = Program::playing("replies: [{say: done}]");
    std::fs::write(program.workspace().join("bad.yaml"), "say: hello").unwrap();
    let refused = program.windlass(&["run", "greet", "--model", "script:bad.yaml"]).expect(2);
    assert!(refused.stderr.contains("replies:\n    - bash: ls"), "{refused:?}");
}

/// ES-078: what was cut at a deadline does not look finished.
#[test]
fn a_partial_result_says_so_and_has_its_own_exit_code() {
    let program = Program::playing("replies: [{bash: sleep 30}, {say: done}]");
    let run = ["run", "work", "--sandbox", "host", "--deadline", "2s"];
    let run: Vec<_> =
        run.iter().chain(&["--deadline-action", "complete_partial"]).copied().collect();
    let ran = program.windlass(&run).expect(7);
    assert!(ran.stderr.contains("deadline passed: this is a partial result"), "{ran:?}");
    let result = program.windlass(&["result", &program.task()]).expect(0).stdout;
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!((&result["status"], &result["partial"]), (&"COMPLETED".into(), &true.into()));
    let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(page.contains("status     done (deadline passed: a partial result)"), "{page}");
}

/// §15.9: an end belongs to a start.
#[test]
fn resuming_a_task_that_is_still_blocked_adds_nothing() {
    let program = Program::playing(PUSH);
    program.windlass(&["run", "publish", "-q"]).expect(3);
    let before = program.windlass(&["trace", &program.task()]).expect(0).stdout;
    let again = program.windlass(&["resume", &program.task(), "--json"]).expect(3);
    assert_eq!(again.result()["status"], "BLOCKED_USER");
    assert_eq!(program.windlass(&["trace", &program.task()]).expect(0).stdout, before);
}
