//! Log lines on stderr, by the names and fields that the ledger gives them.

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
    for field in fields {
        assert!(!line["fields"][field].is_null(), "`{message}` has `{field}`: {line}");
    }
}

/// ES-339, ES-340, ES-341, ES-349
#[test]
fn a_run_that_works_logs_its_start_its_tools_and_its_end() {
    let program = Program::playing("replies: [{glob: '*'}, {read: nowhere.txt}, {say: done}]");
    let lines = lines(&program, 0);
    assert_line(&lines, "INFO", "Task started", &["task_id", "goal", "model"]);
    assert_line(&lines, "DEBUG", "Tool executed", &["tool_name", "duration_ms"]);
    assert_line(&lines, "WARN", "Tool failed", &["tool_name", "error"]);
    let end = ["task_id", "status", "iterations", "duration_ms"];
    assert_line(&lines, "INFO", "Task completed", &end);
}

/// ES-347, ES-350
#[test]
fn a_run_that_repeats_itself_logs_that_and_its_failure() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.answer_with(|_| Some(windlass_testkit::Answer::script("glob: '*.none'")));
    let lines = lines(&program, 1);
    assert_line(&lines, "WARN", "Doom loop detected", &["task_id", "pattern"]);
    // In JSON the field `message` takes the place of the line's own words, "Task failed".
    let failed = lines.iter().find(|line| line["level"] == "ERROR").unwrap();
    assert_eq!(failed["fields"]["error_type"], "doom_loop", "{failed}");
    assert!(failed["fields"]["task_id"].is_string() && failed["fields"]["message"].is_string());
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
    assert_line(&lines, "WARN", "Risk denied", &["task_id", "tool_name", "risk_level"]);
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
    for wanted in [
        "agent_loop_iterations{task_id=\"",
        "agent_loop_duration_ms_count{status=\"COMPLETED\"} 1",
        "agent_tool_calls{tool_name=\"glob\",risk_level=\"LOW\"} 1",
        "agent_tool_duration_ms_count{tool_name=\"bash\"} 1",
        "agent_tool_errors{tool_name=\"bash\",error_type=\"error\"} 1",
        "agent_llm_latency_ms_count{model=",
        "agent_llm_tokens{direction=\"input\"} ",
        "agent_llm_tokens{direction=\"output\"} ",
    ] {
        assert!(metrics.contains(wanted), "{wanted} in\n{metrics}");
    }
}

/// ES-323: spans of a run go to a collector, where the environment names one; nowhere by default.
#[test]
fn spans_reach_a_collector_that_the_environment_names() {
    let program = Program::playing("replies: [{glob: '*'}, {say: done}]");
    let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = collector.local_addr().unwrap();
    let received = std::thread::spawn(move || one_request(&collector));
    let mut command = program.command(&["run", "work", "--quiet"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let request = received.join().unwrap();
    let text = String::from_utf8_lossy(&request);
    assert!(text.starts_with("POST /v1/traces"), "{text}");
    let task = program.task();
    for wanted in [
        "invoke_agent",
        "chat",
        "execute_tool",
        "gen_ai.operation.name",
        "gen_ai.usage.input_tokens",
        "gen_ai.tool.name",
        "glob",
        "windlass",
        "COMPLETED",
        &task,
    ] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
}

/// Spans are for looking on.
#[test]
fn a_collector_that_is_gone_does_not_cost_the_task() {
    let program = Program::playing("replies: [{say: done}]");
    let mut command = program.command(&["run", "work", "--quiet"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Takes one whole HTTP request and answers it.
fn one_request(listener: &std::net::TcpListener) -> Vec<u8> {
    use std::io::{Read as _, Write as _};
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).unwrap();
        request.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let whole = text.find("\r\n\r\n").is_some_and(|end| {
            let length = text.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            // Lossy text is no shorter than the bytes it stands for.
            let head = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(end) + 4;
            length.is_some_and(|length: usize| request.len() >= head + length)
        });
        if whole || count == 0 {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    request
}
