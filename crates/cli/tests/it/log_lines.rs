//! Log lines on stderr, by the names and fields that the ledger gives them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::program::Program;

/// The log lines of one run with these words, as JSON.
fn lines(program: &Program, code: i32) -> Vec<Value> {
    let mut command = program.command(&["run", "work", "--quiet", "--log-format", "json"]);
    let output = command.env("RUST_LOG", "windlass_agent=debug").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn line<'a>(lines: &'a [Value], message: &str) -> &'a Value {
    let found = lines.iter().find(|line| line["fields"]["message"] == message);
    found.unwrap_or_else(|| panic!("no `{message}` in {lines:#?}"))
}

fn assert_line(lines: &[Value], level: &str, message: &str, fields: &[&str]) {
    let line = line(lines, message);
    assert_eq!(line["level"], level, "{line}");
    let said = line["fields"].as_object().unwrap().keys().filter(|field| *field != "message");
    let (said, wanted) = (said.collect::<BTreeSet<_>>(), fields.iter().collect::<BTreeSet<_>>());
    assert!(said.iter().eq(&wanted), "`{message}` has {wanted:?} and nothing else: {line}");
    assert!(fields.iter().all(|field| !line["fields"][field].is_null()), "{line}");
}

/// ES-250, ES-251, ES-339, ES-340, ES-341, ES-349
#[test]
fn a_run_that_works_logs_its_start_its_tools_and_its_end() {
    let program = Program::playing(
        "replies: [{glob: '*'}, {read: nowhere.txt}, {write: {path: a, content: b}}, {say: done}]",
    );
    let lines = lines(&program, 0);
    let task = program.task();
    assert_line(&lines, "INFO", "Task started", &["task_id", "goal", "model"]);
    let started = &line(&lines, "Task started")["fields"];
    assert_eq!((&started["task_id"], &started["goal"]), (&task.into(), &"work".into()));
    assert_eq!(started["model"], "litellm/gpt-4o");
    assert_line(&lines, "DEBUG", "Tool executed", &["task_id", "tool_name", "duration_ms"]);
    assert_eq!(line(&lines, "Tool executed")["fields"]["tool_name"], "glob");
    assert_line(&lines, "WARN", "Tool failed", &["task_id", "tool_name", "error"]);
    let error = line(&lines, "Tool failed")["fields"]["error"].as_str().unwrap();
    assert!(error.contains("nowhere.txt"), "{error}");
    // What is of medium risk is allowed with a line, what is of low risk without.
    assert_line(&lines, "INFO", "Risk allowed", &["task_id", "tool_name", "risk_level"]);
    let allowed: Vec<_> =
        lines.iter().filter(|line| line["fields"]["message"] == "Risk allowed").collect();
    assert_eq!(allowed.len(), 1, "{allowed:?}");
    let allowed = &allowed[0]["fields"];
    assert_eq!(
        (&allowed["tool_name"], &allowed["risk_level"]),
        (&"write".into(), &"MEDIUM".into())
    );
    let end = ["task_id", "status", "iterations", "duration_ms"];
    assert_line(&lines, "INFO", "Task completed", &end);
    let ended = &line(&lines, "Task completed")["fields"];
    assert_eq!((&ended["status"], &ended["iterations"]), (&"COMPLETED".into(), &3.into()));
}

/// ES-347, ES-350
#[test]
fn a_run_that_repeats_itself_logs_that_and_its_failure() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.answer_with(|_| Some(windlass_testkit::Answer::script("glob: '*.none'")));
    let lines = lines(&program, 1);
    assert_line(&lines, "WARN", "Doom loop detected", &["task_id", "pattern"]);
    let pattern = line(&lines, "Doom loop detected")["fields"]["pattern"].as_str().unwrap();
    assert!(pattern.contains("`glob`"), "{pattern}");
    // A line's own words are its field `message`, so the message of the error stands in them.
    let failed = &lines.iter().find(|line| line["level"] == "ERROR").unwrap()["fields"];
    assert_eq!(failed["error_type"], "doom_loop", "{failed}");
    assert_eq!(failed["task_id"], program.task(), "{failed}");
    let result = program.windlass(&["result", &program.task()]).expect(0).stdout;
    let result: Value = serde_json::from_str(&result).unwrap();
    let message = result["error_details"]["message"].as_str().unwrap();
    assert_eq!(failed["message"], format!("Task failed: {message}"));
}

#[test]
fn nothing_is_logged_unless_asked_for() {
    let program = Program::playing("replies: [{say: done}]");
    assert_eq!(program.windlass(&["run", "work", "--quiet"]).expect(0).stderr, "");
}

#[test]
fn a_wish_for_log_lines_that_cannot_be_read_is_said() {
    let program = Program::playing("replies: [{say: done}]");
    let mut command = program.command(&["run", "work", "--quiet"]);
    let ran: crate::program::Ran = command.env("RUST_LOG", "a=b=c").output().unwrap().into();
    let said = ran.expect(0).stderr;
    assert!(said.starts_with("warning: no log lines, `RUST_LOG` cannot be read"), "{said}");
}

/// ES-346, ES-348: messages taken in and calls refused are logged.
#[test]
fn messages_and_refusals_are_logged() {
    let program =
        Program::playing("replies: [{ask_user: {question: sure?}}, {bash: sudo ls}, {say: ok}]");
    program.windlass(&["run", "x", "--json"]).expect(3);
    let task = program.task();
    program.windlass(&["answer", &task, "yes"]).expect(0);
    let mut command = program.command(&["--log-format", "json", "resume", &task, "--quiet"]);
    let ran = command.env("RUST_LOG", "info").output().unwrap();
    let text = String::from_utf8_lossy(&ran.stderr);
    let parsed = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let lines: Vec<Value> = parsed.collect();
    assert_line(&lines, "INFO", "Injection received", &["task_id", "injection_type"]);
    let injected = &line(&lines, "Injection received")["fields"];
    assert_eq!(injected["injection_type"], "hitl_response");
    assert_line(&lines, "WARN", "Risk denied", &["task_id", "tool_name", "risk_level"]);
    let denied = &line(&lines, "Risk denied")["fields"];
    assert_eq!((&denied["tool_name"], &denied["risk_level"]), (&"bash".into(), &"CRITICAL".into()));
}

/// ES-336, ES-337, ES-338: what was repeated, decided and said is counted.
#[test]
fn metrics_count_loops_decisions_and_messages() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.answer_with(|_| Some(windlass_testkit::Answer::script("glob: '*.none'")));
    program.windlass(&["run", "loop", "-q"]).expect(1);
    program
        .server
        .answer_with(|_| Some(windlass_testkit::Answer::script("ask_user: {question: sure?}")));
    program.windlass(&["run", "ask", "-q"]).expect(3);
    let state = program.windlass(&["sessions", "--json"]).expect(0).json_lines().remove(0);
    let talk = r#"say: '{"decision":"small_talk","response":"Hello."}'"#;
    program.server.answer_with(move |_| Some(windlass_testkit::Answer::script(talk)));
    program.windlass(&["send", state["session_id"].as_str().unwrap(), "hello"]).expect(0);
    program.windlass(&["answer", &program.task(), "yes", "--resume", "-q"]).expect(0);
    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    for wanted in [
        "agent_doom_loop_detected 3\n",
        "coordinator_routing_decisions{decision_type=\"small_talk\"} 1\n",
        "coordinator_injections{injection_type=\"hitl_response\"} 1\n",
    ] {
        assert!(metrics.contains(wanted), "{wanted} in\n{metrics}");
    }
}

/// ES-324…328, ES-334, ES-335: the journal adds up to metrics with these names and labels.
#[test]
fn metrics_have_the_names_and_labels_of_the_ledger() {
    let program = Program::playing("replies: [{bash: exit 3}, {glob: '*'}, {say: ok}]");
    program.windlass(&["run", "x", "--json"]).expect(0);
    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    let used = &program.windlass(&["show", &program.task(), "--json"]).expect(0).json_lines()[0];
    let tokens = |name: &str| used["usage"][name].as_u64().unwrap();
    for wanted in [
        "agent_loop_iterations{status=\"COMPLETED\"} 2\n",
        "agent_loop_duration_ms_count{status=\"COMPLETED\"} 1",
        "agent_tool_calls{tool_name=\"glob\",risk_level=\"LOW\"} 1",
        "agent_tool_duration_ms_count{tool_name=\"bash\"} 1",
        "agent_tool_errors{tool_name=\"bash\",error_type=\"error\"} 1",
        "agent_llm_latency_ms_count{model=\"gpt-4o\"} 3\n",
        &format!("agent_llm_tokens{{direction=\"input\"}} {}\n", tokens("input_tokens")),
        &format!("agent_llm_tokens{{direction=\"output\"}} {}\n", tokens("output_tokens")),
        "# TYPE agent_loop_iterations counter\n",
        "# TYPE agent_loop_duration_ms histogram\n",
        "# TYPE agent_tool_calls counter\n",
        "# TYPE agent_tool_duration_ms histogram\n",
        "# TYPE agent_tool_errors counter\n",
        "# TYPE agent_llm_latency_ms histogram\n",
        "# TYPE agent_llm_tokens counter\n",
    ] {
        assert!(metrics.contains(wanted), "{wanted} in\n{metrics}");
    }
}

/// A model may make up a new name in every turn.
#[test]
fn tools_that_do_not_exist_are_counted_together() {
    let program = Program::playing(
        "replies: [{\"one\\x1b[31m\": {}}, {two: {}}, {glob: {pattern: 1}}, {say: ok}]",
    );
    program.windlass(&["run", "x", "-q"]).expect(0);
    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    let errors = |tool: &str| {
        let start = format!("agent_tool_errors{{tool_name=\"{tool}\"");
        metrics.lines().find(|line| line.starts_with(&start)).map(str::to_owned)
    };
    assert!(errors("unknown").is_some_and(|line| line.ends_with("} 2")), "{metrics}");
    assert!(errors("glob").is_some_and(|line| line.ends_with("} 1")), "{metrics}");
    assert!(!metrics.contains("two") && !metrics.contains('\u{1b}'), "{metrics}");
}
