//! A goal goes in, a journaled loop runs, deliverables come out.

use std::process::Stdio;

use serde_json::Value;

use crate::program::Program;

const WORK: &str = "
replies:
  - update_plan: {steps: [{id: '1', description: look, status: in_progress}]}
  - read: notes.txt
  - write: {path: output/report.md, content: 'all is well'}
  - save_memo: {filename: findings.md, content: the notes are short}
  - publish_deliverable: {filepath: output/report.md, description: the report, type: report}
  - update_plan: {steps: [{id: '1', description: look, status: done}]}
  - say: Done, see the report.
";

fn prepared(script: &str) -> Program {
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("notes.txt"), "a short note\n").unwrap();
    program
}

/// ES-001, ES-006, ES-020, ES-013, ES-031, ES-112…115, ES-118, ES-226, ES-298…305, ES-307…313, ES-321, ES-103
#[test]
fn a_goal_is_worked_on_and_its_deliverables_come_back() {
    let program = prepared(WORK);
    let ran = program.windlass(&["run", "check the notes", "--json"]).expect(0);

    let kinds = ran.kinds();
    assert_eq!(
        kinds[..8].join(" "),
        "status_changed agent_start llm_request llm_response risk_check tool_call tool_result \
         plan_updated"
    );
    assert_eq!(kinds.last().unwrap(), "agent_end");
    let result = ran.result();
    assert_eq!(result["status"], "COMPLETED");
    assert_eq!(result["final_message"], "Done, see the report.");
    assert_eq!(result["deliverables"][0]["filepath"], "output/report.md");
    assert_eq!(result["deliverables"][0]["content"], "all is well");
    assert_eq!(result["usage"]["iterations"], 6);
    assert_eq!(result["usage"]["tool_calls"], 6);
    let usage = &result["usage"];
    let sum = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"].as_u64().unwrap(), sum);
    assert!(result.get("hitl_request").is_none());
    let start = &ran.json_lines()[1]["data"];
    for field in ["task_id", "goal", "context", "container", "tools", "risk_policy", "model"] {
        assert!(!start[field].is_null(), "agent_start says {field}: {start}");
    }
    assert!(start["max_iterations"].is_u64() && start.get("timeout_ms").is_some(), "{start}");
    assert!(start["compaction_config"].is_object(), "{start}");
}

/// ES-011, ES-025, ES-036…039, ES-044, ES-048, ES-145, ES-173, ES-322
#[test]
fn plan_memo_output_and_trace_are_where_they_belong() {
    let program = prepared(WORK);
    let ran = program.windlass(&["run", "check the notes", "--json"]).expect(0);

    assert!(program.file(".plan.md").starts_with("# Execution Plan"));
    assert!(program.file(".plan.md").contains("- [x] **1**: look"));
    assert_eq!(program.file(".plan.md").matches("**1**").count(), 1, "the last call's, whole");
    assert_eq!(program.file(".memo/findings.md"), "the notes are short");
    assert_eq!(program.file("output/report.md"), "all is well");
    let task = ran.result()["task_id"].as_str().unwrap().to_owned();
    let trace = program.file(&format!(".trace/{task}.jsonl"));
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event_type"], "task_created");
    assert_eq!(lines.last().unwrap()["event_type"], "agent_end");
    for line in &lines {
        let keys: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["data", "event_type", "iteration", "timestamp"]);
    }
    assert_eq!(trace.lines().count(), ran.stdout.lines().count() + 1, "all but the creation");
}

/// ES-123, ES-132, ES-133: one system message, one task message with goal and constraints.
#[test]
fn the_first_request_holds_the_system_prompt_and_the_task() {
    let program = prepared("replies: [{say: hello}]");
    let run = ["run", "greet me", "--constraint", "be brief", "--json"];
    program.windlass(&run).expect(0);
    let body = program.server.requests()[0].json();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["role"], "system");
    assert_eq!(messages[1]["role"], "user");
    insta::assert_snapshot!(messages[1]["content"].as_str().unwrap(), @r"
    # Goal

    greet me

    # Constraints

    - be brief
    ");
}

/// ES-124…130, ES-290, ES-405…415: every section is there, tools and rules rendered from what is in force.
#[test]
fn the_system_prompt_has_every_section() {
    let program = prepared("replies: [{say: hello}]");
    program.windlass(&["run", "greet me", "--json"]).expect(0);
    let body = program.server.requests()[0].json();
    let system = body["messages"][0]["content"].as_str().unwrap();
    let headings: Vec<_> = system.lines().filter(|line| line.starts_with("# ")).collect();
    insta::assert_snapshot!(headings.join("\n"));
    for words in ["`Event received:`", "condition you were waiting for", "acknowledge it"] {
        assert!(system.contains(words), "what to do about events: {words}");
    }
    for tool in body["tools"].as_array().unwrap() {
        let name = tool["function"]["name"].as_str().unwrap();
        assert!(system.contains(&format!("- `{name}`: ")), "{name} is described");
    }
}

/// Invariant 4, Must show 2: append-only context over 200 turns, also across a crash and `resume`.
#[test]
fn append_only_context_holds_for_two_hundred_turns_and_across_a_kill() {
    let mut script = String::from("replies:\n");
    for turn in 0..200 {
        script += &format!("  - save_memo: {{filename: note-{turn}.md, content: turn {turn}}}\n");
    }
    script += "  - say: that is all\n";
    let program = Program::playing(&script);
    let mut child =
        program.command(&["run", "take notes", "--quiet"]).stderr(Stdio::null()).spawn().unwrap();
    program.server.requests_reach_blocking(90);
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = program.windlass(&["resume", &program.task(), "--json"]).expect(0);
    assert_eq!(ran.result()["usage"]["iterations"], 200);

    let requests = program.server.requests();
    assert!(requests.len() >= 201, "{}", requests.len());
    let (tools, system) =
        (requests[0].json()["tools"].clone(), requests[0].json()["messages"][0].clone());
    for pair in requests.windows(2) {
        // The request that the kill cut off is sent again as it was.
        if pair[0].body != pair[1].body {
            pair[1].assert_extends(&pair[0]);
        }
        assert_eq!(pair[1].json()["tools"], tools);
        assert_eq!(pair[1].json()["messages"][0], system);
    }
}

/// Must show 4; ES-107, ES-213, ES-215, ES-216, ES-073, ES-300
#[test]
fn a_question_parks_the_task_and_an_answer_from_another_process_continues_it() {
    let program = prepared(
        "
replies:
  - calls:
      - ask_user: {question: which colour?, options: [red, blue], context: for the door}
      - read: notes.txt
  - say: painted
",
    );
    let ran = program.windlass(&["run", "paint the door", "--json"]).expect(3);
    let result = ran.result();
    assert_eq!(result["status"], "BLOCKED_USER");
    assert_eq!(result["hitl_request"]["question"], "which colour?");
    assert_eq!(result["hitl_request"]["options"], serde_json::json!(["red", "blue"]));
    assert_eq!(result["hitl_request"]["context"], "for the door");

    let task = program.task();
    let again = program.windlass(&["resume", &task]).expect(3);
    assert!(again.stderr.contains("which colour?"), "{again:?}");
    assert!(again.stderr.contains("windlass answer q_"), "{again:?}");

    let inbox = program.windlass(&["inbox", "--json"]).expect(0);
    let question = inbox.json_lines()[0]["question"]["id"].as_str().unwrap().to_owned();
    let answered = program.windlass(&["answer", &question, "blue"]).expect(0);
    assert!(answered.stderr.contains(&format!("windlass resume {task}")), "{answered:?}");
    let second = program.windlass(&["answer", &question, "red"]).expect(2);
    assert!(second.stderr.contains("answered by `ada`"), "{second:?}");
    assert!(second.stderr.contains("blue"), "{second:?}");

    let ran = program.windlass(&["resume", &task, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "painted");
    let body = program.server.requests().last().unwrap().json();
    let messages = body["messages"].as_array().unwrap();
    let tail: Vec<_> = messages[3..].iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(tail[0], "The user has responded. The response follows as a message.");
    assert!(tail[1].contains("a short note"), "the rest of the reply ran after the answer");
    assert_eq!(tail[2], "User responded to your question: blue");
    assert_eq!(program.windlass(&["inbox", "--json"]).stdout, "");
}

/// Must show 4; ES-049, ES-052, ES-119, ES-289
#[test]
fn a_message_to_a_running_task_is_seen_within_a_turn() {
    let server = windlass_testkit::ModelServer::start(
        "replies: [{read: notes.txt}, {read: notes.txt}, {say: understood}]",
    );
    let gate = windlass_testkit::Gate::new();
    let first = windlass_testkit::Answer::script("read: notes.txt").gated(0, &gate);
    server.next(first);
    let program = Program::with(server);
    std::fs::write(program.workspace().join("notes.txt"), "x").unwrap();
    let child = program.start(&["run", "look", "--json"]);
    gate.reached_blocking();
    program.windlass(&["send", &program.task(), "use tabs"]).expect(0);
    gate.open();
    let ran: crate::program::Ran = child.wait_with_output().unwrap().into();
    ran.expect(0);
    let second = program.server.requests()[1].json();
    let messages = second["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"], "User says: use tabs");
    assert_eq!(messages.last().unwrap()["role"], "user");
}

/// ES-055, ES-086, ES-109, ES-016
#[test]
fn a_cancel_from_another_process_ends_a_task_in_the_middle_of_a_reply() {
    let server = windlass_testkit::ModelServer::start_empty();
    let gate = windlass_testkit::Gate::new();
    server.next(windlass_testkit::Answer::script("say: never heard").gated(0, &gate));
    let program = Program::with(server);
    let child = program.start(&["run", "wait", "--json"]);
    gate.reached_blocking();
    program.windlass(&["cancel", &program.task(), "--reason", "changed my mind"]).expect(0);
    let ran: crate::program::Ran = child.wait_with_output().unwrap().into();
    let ran = ran.expect(5);
    assert_eq!(ran.result()["status"], "CANCELLED");
    let task = program.task();
    let refused = program.windlass(&["resume", &task]).expect(2);
    assert!(refused.stderr.contains("is cancelled"), "{refused:?}");
}

/// ES-055, ES-075, ES-083, ES-087, ES-088, ES-110
#[test]
fn a_task_that_nobody_drives_is_paused_and_cancelled_at_once() {
    let program = prepared("replies: [{ask_user: {question: sure?}}, {say: ok}]");
    program.windlass(&["run", "ask", "--json"]).expect(3);
    let task = program.task();
    let paused = program.windlass(&["pause", &task]).expect(0);
    assert!(paused.stderr.contains("is paused"), "{paused:?}");
    let cancelled = program.windlass(&["cancel", &task]).expect(0);
    assert!(cancelled.stderr.contains("is cancelled"), "{cancelled:?}");
}

/// ES-104, ES-122, ES-372
#[test]
fn an_agent_that_never_stops_fails_at_its_limit() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.answer_with(|request| {
        let call = format!("glob: '*{}'", request.replies);
        Some(windlass_testkit::Answer::script(&call))
    });
    let ran = program.windlass(&["run", "go on", "--max-iterations", "7", "--json"]).expect(1);
    let result = ran.result();
    assert_eq!(result["status"], "FAILED");
    assert_eq!(result["error_details"]["error_type"], "max_iterations_exceeded");
    assert_eq!(result["usage"]["iterations"], 7);
}

/// ES-105, ES-111
#[test]
fn a_task_that_runs_out_of_time_fails_with_timeout() {
    let server = windlass_testkit::ModelServer::start_empty();
    let gate = windlass_testkit::Gate::new();
    server.next(windlass_testkit::Answer::script("say: too late").gated(0, &gate));
    let program = Program::with(server);
    let ran = program.windlass(&["run", "hurry", "--timeout", "1", "--json"]).expect(1);
    assert_eq!(ran.result()["error_details"]["error_type"], "timeout");
    gate.open();
}

/// ES-208, ES-264, ES-267…269, ES-320
#[test]
fn an_agent_that_repeats_itself_is_told_and_then_given_up() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.answer_with(|_| Some(windlass_testkit::Answer::script("glob: '*.none'")));
    let ran = program.windlass(&["run", "loop", "--json"]).expect(1);
    let result = ran.result();
    assert_eq!(result["error_details"]["error_type"], "doom_loop");
    assert!(result["error_details"]["diagnostic"].as_str().unwrap().contains("`glob`"));
    assert_eq!(ran.kinds().iter().filter(|kind| *kind == "doom_loop_detected").count(), 3);
    let sent = program.server.requests()[3].json();
    let last = sent["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        last["content"],
        "You appear to be repeating the same action. Reconsider your approach."
    );
}

/// ES-024, ES-026, ES-030, ES-373: a tool's failure goes back to the model, the task goes on.
#[test]
fn a_failing_tool_is_shown_to_the_model_and_the_task_goes_on() {
    let program = prepared("replies: [{read: nowhere.txt}, {say: it is not there}]");
    let ran = program.windlass(&["run", "read it", "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "it is not there");
    assert_eq!(program.server.request_count(), 2);
    assert!(program.last_message_sent().contains("nowhere.txt"));
}

/// ES-113: an injection that arrives with the final reply is drained before finishing (O-24).
#[test]
fn a_message_that_arrives_with_the_final_reply_is_answered() {
    let server = windlass_testkit::ModelServer::start("replies: [{say: one}, {say: two}]");
    let gate = windlass_testkit::Gate::new();
    server.next(windlass_testkit::Answer::script("say: one").gated(0, &gate));
    let program = Program::with(server);
    let child = program.start(&["run", "talk", "--json"]);
    gate.reached_blocking();
    program.windlass(&["send", &program.task(), "wait, one more thing"]).expect(0);
    gate.open();
    let ran: crate::program::Ran = child.wait_with_output().unwrap().into();
    assert_eq!(ran.expect(0).result()["final_message"], "two");
}

/// A live run is recorded and played back without the server.
#[test]
fn a_recorded_run_plays_back() {
    let program = prepared(WORK);
    program.windlass(&["run", "check the notes", "--record", "tape.yaml", "--json"]).expect(0);
    // What the first run left would have to be read before it is replaced.
    std::fs::remove_dir_all(program.workspace().join("output")).unwrap();
    let asked = program.server.request_count();
    let again = ["run", "check the notes", "--model", "script:tape.yaml", "--json"];
    let ran = program.windlass(&again).expect(0);
    assert_eq!(ran.result()["final_message"], "Done, see the report.");
    assert_eq!(program.server.request_count(), asked, "nobody was asked");
}

/// The same task through both dialects gives the same events (Anthropic native and OpenAI's).
#[test]
fn both_dialects_give_the_same_events() {
    let told = |model: &str| {
        let program = prepared(WORK);
        let ran = program
            .command(&["run", "check the notes", "--model", model, "--json"])
            .env("ANTHROPIC_BASE_URL", program.server.base())
            .env("OPENAI_BASE_URL", program.server.base())
            .output()
            .unwrap();
        let ran: crate::program::Ran = ran.into();
        let ran = ran.expect(0);
        let texts = ran.json_lines().into_iter().map(|event| match event["event_type"].as_str() {
            Some(kind @ "tool_result") => format!("{kind} {}", event["data"]["text"]),
            Some(kind @ "tool_call") => format!("{kind} {}", event["data"]["arguments"]),
            Some(kind @ "llm_response") => format!("{kind} {}", event["data"]["text"]),
            Some(kind) => kind.to_owned(),
            None => panic!("{event}"),
        });
        texts.collect::<Vec<_>>()
    };
    assert_eq!(told("anthropic/claude-test"), told("openai/gpt-test"));
}

/// ES-264, ES-265: when the guard speaks is a setting.
#[test]
fn the_doom_loop_guard_speaks_when_the_settings_say() {
    let calls_before = |variable: &str, script: fn(usize) -> String| {
        let program = Program::with(windlass_testkit::ModelServer::start_empty());
        program.server.answer_with(move |request| {
            Some(windlass_testkit::Answer::script(&script(request.replies)))
        });
        let mut command = program.command(&["run", "loop", "--json"]);
        let ran: crate::program::Ran = command.env(variable, "9").output().unwrap().into();
        let kinds = ran.expect(1).kinds();
        let before = kinds.iter().take_while(|kind| *kind != "doom_loop_detected");
        before.filter(|kind| *kind == "tool_result").count()
    };
    let same = |_| "glob: '*.none'".to_owned();
    assert_eq!(calls_before("AGENT_MAX_IDENTICAL_CALLS", same), 9);
    let failing = |number| format!("read: nowhere-{number}.txt");
    assert_eq!(calls_before("AGENT_MAX_CONSECUTIVE_FAILURES", failing), 9);
}
