//! A goal goes in, a journaled loop runs, deliverables come out.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::Program;

const WORK: &str = "
replies:
  - update_plan: {steps: [{id: '1', description: look, status: in_progress}]}
  - read: notes.txt
  - calls:
      - write: {path: output/report.md, content: 'all is well'}
      - write: {path: output/draft.md, content: 'nobody is to see this'}
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

/// The names of an object's fields.
fn fields(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect()
}

/// ES-001, ES-006, ES-020, ES-013, ES-103, ES-112, ES-113, ES-226, ES-298, ES-301, ES-303, ES-304, ES-305
#[test]
fn a_goal_is_worked_on_and_its_deliverables_come_back() {
    let program = prepared(WORK);
    let ran = program.windlass(&["run", "check the notes", "--json"]).expect(0);

    let result = ran.result();
    let expected = "command_id cost_usd deliverables evidence_refs final_message session_id status \
                    task_id usage working_memory";
    assert_eq!(fields(&result).join(" "), expected);
    assert_eq!(result["status"], "COMPLETED");
    assert_eq!(result["final_message"], "Done, see the report.");
    let deliverables = json!([{
        "filepath": "output/report.md", "description": "the report", "type": "report",
        "content": "all is well", "size_bytes": 11,
    }]);
    assert_eq!(result["deliverables"], deliverables, "what was published, and nothing else");
    let (place, task) = (program.real_workspace(), result["task_id"].as_str().unwrap());
    let data = program.data_directory().canonicalize().unwrap().display().to_string();
    let path = format!("{data}/traces/{task}/{task}.jsonl");
    assert!(std::fs::read_to_string(&path).unwrap().contains("agent_start"), "it can be opened");
    let trace = format!("file://{path}");
    let evidence = json!([
        {"ref_id": "trace", "type": "log", "uri": trace, "description": "every event of this task"},
        {
            "ref_id": "deliverable-1", "type": "file", "description": "the report",
            "uri": format!("file://{place}/output/report.md"),
        },
    ]);
    assert_eq!(result["evidence_refs"], evidence);
    let usage = &result["usage"];
    let expected = "compactions duration_ms input_tokens iterations output_tokens sub_agents_spawned \
                    tool_calls total_tokens";
    assert_eq!(fields(usage).join(" "), expected);
    assert_eq!((&usage["iterations"], &usage["tool_calls"]), (&6.into(), &7.into()));
    assert_eq!((&usage["compactions"], &usage["sub_agents_spawned"]), (&0.into(), &0.into()));
    let sum = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert!(sum > 0, "{usage}");
    assert_eq!(usage["total_tokens"].as_u64().unwrap(), sum);

    let start = &ran.json_lines()[1]["data"];
    assert_eq!(
        (&start["task_id"], &start["goal"]),
        (&result["task_id"], &"check the notes".into())
    );
    assert_eq!(
        (&start["model"], &start["risk_policy"]),
        (&"litellm/gpt-4o".into(), &"trusted".into())
    );
    assert_eq!((&start["max_iterations"], &start["timeout_ms"]), (&200.into(), &Value::Null));
    assert!(start["context"].to_string().contains("check the notes"), "{start}");
    assert!(!start["container"].as_str().unwrap().is_empty(), "{start}");
    let names = program.server.requests()[0].json()["tools"].clone();
    let names = names.as_array().unwrap().iter().map(|tool| tool["function"]["name"].clone());
    assert_eq!(start["tools"], names.collect::<Value>(), "the tools that the model is offered");
    assert_eq!(start["compaction_config"]["compaction_trigger_ratio"], 0.85, "{start}");
}

/// ES-031, ES-115, ES-118, ES-307, ES-308, ES-309, ES-310, ES-311, ES-312, ES-319, ES-321: events
/// are reported in the order in which they happen, each call after its own check.
#[test]
fn every_step_of_a_run_is_reported_in_order() {
    let program = prepared(WORK);
    let ran = program.windlass(&["run", "check the notes", "--json"]).expect(0);
    let step = "llm_request llm_response risk_check tool_call tool_result";
    let expected = [
        "status_changed agent_start",
        step,
        "plan_updated",
        step,
        step,
        "risk_check tool_call tool_result",
        step,
        step,
        "deliverable_published",
        step,
        "plan_updated llm_request llm_response status_changed agent_end",
    ];
    assert_eq!(ran.kinds().join(" "), expected.join(" "));
    let lines = ran.json_lines();
    let calls: Vec<_> = lines.iter().filter(|line| !line["data"]["call"].is_null()).collect();
    assert_eq!(calls.len(), 3 * 7);
    for one in calls.chunks(3) {
        let kinds = [0, 1, 2].map(|place| one[place]["event_type"].as_str().unwrap());
        assert_eq!(kinds, ["risk_check", "tool_call", "tool_result"]);
        assert_eq!(one[0]["data"]["call"], one[1]["data"]["call"]);
        assert_eq!(one[1]["data"]["call"], one[2]["data"]["call"]);
    }
}

/// ES-011, ES-025, ES-036…039, ES-145, ES-173, ES-307, ES-322
#[test]
fn plan_memo_output_and_trace_are_where_they_belong() {
    let program = prepared(WORK);
    let ran = program.windlass(&["run", "check the notes", "--json"]).expect(0);

    let plan = program.own_file("plan.md");
    assert!(plan.starts_with("# Execution Plan") && plan.contains("- [x] **1**: look"), "{plan}");
    assert_eq!(plan.matches("**1**").count(), 1, "the last call's, whole");
    assert_eq!(program.own_file("memo/findings.md"), "the notes are short");
    assert_eq!(program.file("output/report.md"), "all is well");
    let task = ran.result()["task_id"].as_str().unwrap().to_owned();
    let trace = program.own_file(&format!("trace/{task}.jsonl"));
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event_type"], "task_created");
    assert_eq!(lines.last().unwrap()["event_type"], "agent_end");
    for line in &lines {
        let keys: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["data", "event_type", "iteration", "timestamp"]);
        line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    }
    let iterations: Vec<_> = lines.iter().map(|line| line["iteration"].as_u64().unwrap()).collect();
    assert!(iterations.is_sorted(), "{iterations:?}");
    assert_eq!(iterations.first(), Some(&0));
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
    let first = messages[1]["content"].as_str().unwrap().replace(&program.task(), "TASK");
    let (first, _) = first.split_once("\n# Environment\n").unwrap();
    insta::assert_snapshot!(first, @r"
    # Goal

    greet me

    # Constraints

    - be brief

    # Your task directory

    `.windlass/tasks/TASK`
    ");
    program.windlass(&["run", "greet me", "--json"]).expect(0);
    let body = program.server.requests()[1].json();
    let second = body["messages"][1]["content"].as_str().unwrap();
    assert!(second.starts_with("# Goal\n\ngreet me\n\n# Your task directory\n"), "{second}");
}

/// ES-124…130, ES-290, ES-405…411, ES-413…415: every section is there with what it has to say; tools and
/// workspace are rendered from what is in force.
#[test]
fn the_system_prompt_has_every_section() {
    let program = prepared("replies: [{say: hello}]");
    program.windlass(&["run", "greet me", "--json"]).expect(0);
    let body = program.server.requests()[0].json();
    let system = body["messages"][0]["content"].as_str().unwrap();
    let headings: Vec<_> = system.lines().filter(|line| line.starts_with("# ")).collect();
    insta::assert_snapshot!(headings.join("\n"));
    // As one line: where a line ends is not what is said.
    let section = |heading: &str| {
        let (_, rest) = system.split_once(&format!("# {heading}\n")).expect(heading);
        let section = rest.split("\n# ").next().unwrap();
        section.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (heading, words) in [
        (
            "Agent Identity",
            &["autonomous agent", "given a goal, not a list of steps", "on your own"][..],
        ),
        (
            "Planning",
            &[
                "plan with `update_plan`, before any other work",
                "when a step is finished",
                "something you learn changes what has to be done",
            ],
        ),
        (
            "File System",
            &[
                "The workspace is `/",
                "intermediate results and rough notes into `scratch/`",
                "results that the user should get",
                "decisions and their reasons with `save_memo`",
                "`plan.md` in your task directory is your plan, written by `update_plan` alone",
            ],
        ),
        (
            "Context Management",
            &[
                "I may summarize older messages",
                "Important information should be saved to \
            `memo/` in your task directory",
                "Your plan, your memos and every file in the workspace stay",
                "`search_memo`, by \
            reading files, or by searching the workspace with `grep`",
            ],
        ),
        (
            "Sub-Agents",
            &[
                "`spawn_agent`",
                "long research",
                "starts without your conversation",
                "shares your workspace",
            ],
        ),
        (
            "Events from outside",
            &[
                "`Event received:`",
                "Consider whether it matters for your goal",
                "If it meets a condition you were waiting for, continue",
                "acknowledge it in a few words and continue",
            ],
        ),
        (
            "Deliverables",
            &["registered with `publish_deliverable`", "Only registered files are handed over"],
        ),
        ("Safety", &["permission profile `trusted`", "run control `autonomous`"]),
        (
            "Completion",
            &[
                "every step is done or skipped",
                "every deliverable with `publish_deliverable`",
                "final summary as a message without any tool call",
                "say what went wrong and what you tried",
                "ask with `ask_user`; do not guess",
            ],
        ),
    ] {
        for words in words {
            assert!(section(heading).contains(words), "{words}: {}", section(heading));
        }
    }
    for tool in body["tools"].as_array().unwrap() {
        let name = tool["function"]["name"].as_str().unwrap();
        assert!(section("Tools").contains(&format!("`{name}`")), "{name} is named");
    }
    // A tool that is not offered is not spoken of either.
    program.windlass(&["run", "greet", "--permission-profile", "restricted", "--json"]).expect(0);
    let body = program.server.requests()[1].json();
    let restricted = body["messages"][0]["content"].as_str().unwrap();
    let names = |prompt: &str| {
        let line = prompt.lines().find(|line| line.starts_with("Your tools, "));
        line.unwrap().to_owned()
    };
    assert!(names(system).contains("`edit`") && !names(restricted).contains("`edit`"));
}

/// Invariant 4: append-only context over 200 turns, also across a crash and `resume`.
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

/// ES-107, ES-213, ES-215, ES-216, ES-073, ES-299, ES-300, ES-302
#[test]
fn an_answer_from_another_process_continues_a_parked_task() {
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
    let asked = &result["hitl_request"];
    assert_eq!(fields(asked), ["context", "options", "question", "request_id"]);
    assert_eq!(asked["question"], "which colour?");
    assert_eq!(asked["options"], json!(["red", "blue"]));
    assert_eq!(asked["context"], "for the door");

    let task = program.task();
    let again = program.windlass(&["resume", &task]).expect(3);
    assert!(again.stderr.contains("which colour?"), "{again:?}");
    assert!(again.stderr.contains("windlass answer q_"), "{again:?}");

    let inbox = program.windlass(&["inbox", "--json"]).expect(0);
    let question = inbox.json_lines()[0]["question"]["id"].as_str().unwrap().to_owned();
    assert_eq!(asked["request_id"], question.as_str());
    let answered = program.windlass(&["answer", &question, "blue"]).expect(0);
    assert!(answered.stderr.contains(&format!("windlass resume {task}")), "{answered:?}");
    let second = program.windlass(&["answer", &question, "red"]).expect(2);
    assert!(second.stderr.contains("already answered"), "{second:?}");
    assert!(second.stderr.contains("blue"), "{second:?}");

    let ran = program.windlass(&["resume", &task, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "painted");
    assert!(ran.result().get("hitl_request").is_none(), "nothing is asked any more");
    let body = program.server.requests().last().unwrap().json();
    let messages = body["messages"].as_array().unwrap();
    let tail: Vec<_> = messages[3..].iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(tail[0], "The user has responded. The response follows as a message.");
    assert!(tail[1].contains("a short note"), "the rest of the reply ran after the answer");
    assert_eq!(tail[2], "User responded to your question: blue");
    assert_eq!(program.windlass(&["inbox", "--json"]).stdout, "");
}

/// ES-049, ES-052, ES-119, ES-289, ES-313
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
    let ran = ran.expect(0);
    let kinds = ran.kinds();
    let received = kinds.iter().position(|kind| kind == "injection_received").unwrap();
    let asked = kinds[received..].iter().filter(|kind| *kind == "llm_request").count();
    assert_eq!(asked, 2, "before the model is asked again: {kinds:?}");
    let second = program.server.requests()[1].json();
    let messages = second["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"], "User says: use tabs");
    assert_eq!(messages.last().unwrap()["role"], "user");
    assert_eq!(messages[messages.len() - 2]["role"], "tool");
}

/// ES-055, ES-086, ES-109, ES-016
#[test]
fn a_cancel_ends_a_task_in_the_middle_of_a_reply() {
    let server = windlass_testkit::ModelServer::start_empty();
    let gate = windlass_testkit::Gate::new();
    server.next(windlass_testkit::Answer::script("say: never read").gated(0, &gate));
    let program = Program::with(server);
    let child = program.start(&["run", "wait", "--json"]);
    gate.reached_blocking();
    program.windlass(&["cancel", &program.task(), "--reason", "changed my mind"]).expect(0);
    let ran: crate::program::Ran = child.wait_with_output().unwrap().into();
    let ran = ran.expect(5);
    assert_eq!(ran.result()["status"], "CANCELLED");
    let task = program.task();
    let refused = program.windlass(&["resume", &task]).expect(2);
    assert!(refused.stderr.contains("is already cancelled"), "{refused:?}");
}

/// ES-055, ES-083, ES-088, ES-110
#[test]
fn a_task_that_nobody_drives_is_paused_and_cancelled_at_once() {
    let program = prepared("replies: [{ask_user: {question: sure?}}, {say: ok}]");
    program.windlass(&["run", "ask", "--json"]).expect(3);
    let task = program.task();
    let status = || program.windlass(&["tasks", "--json"]).json_lines().remove(0)["status"].clone();
    let paused = program.windlass(&["pause", &task]).expect(0);
    assert!(paused.stderr.contains("is paused"), "{paused:?}");
    assert_eq!(status(), "paused");
    let cancelled = program.windlass(&["cancel", &task]).expect(0);
    assert!(cancelled.stderr.contains("is cancelled"), "{cancelled:?}");
    assert_eq!(status(), "cancelled");
}

/// ES-055, ES-075, ES-083, ES-087, ES-110: a task that is paused in the middle of its work resumes with its state.
#[test]
fn a_paused_task_continues_where_it_stopped() {
    let server = windlass_testkit::ModelServer::start("replies: [{read: notes.txt}, {say: done}]");
    let gate = windlass_testkit::Gate::new();
    server.next(windlass_testkit::Answer::script("read: notes.txt").gated(0, &gate));
    let program = Program::with(server);
    std::fs::write(program.workspace().join("notes.txt"), "a short note").unwrap();
    let child = program.start(&["run", "look", "--json"]);
    gate.reached_blocking();
    let task = program.task();
    program.windlass(&["pause", &task]).expect(0);
    gate.open();
    let ran: crate::program::Ran = child.wait_with_output().unwrap().into();
    let result = ran.expect(4).result();
    assert_eq!(result["status"], "PAUSED");
    assert!(result.get("hitl_request").is_none() && result.get("error_details").is_none());
    let ran = program.windlass(&["resume", &task, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "done");
    let body = program.server.requests().last().unwrap().json();
    let messages = body["messages"].as_array().unwrap();
    let texts: Vec<_> = messages.iter().filter_map(|m| m["content"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("a short note")), "its work is kept: {texts:?}");
    assert_eq!(texts.last(), Some(&"Task resumed by user"), "{texts:?}");
}

/// ES-104, ES-122, ES-372
#[test]
fn an_agent_that_never_stops_fails_at_its_limit() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.answer_with(|request| {
        let call = format!("glob: '*{}'", request.replies);
        Some(windlass_testkit::Answer::script(&call))
    });
    for (args, limit) in [(&["--max-iterations", "7"][..], 7), (&[], 200)] {
        let before = program.server.request_count();
        let ran = program.windlass(&[&["run", "go on", "--json"], args].concat()).expect(1);
        let result = ran.result();
        assert_eq!(result["status"], "FAILED");
        let error = &result["error_details"];
        assert_eq!(error["error_type"], "max_iterations_exceeded");
        assert_eq!((&error["category"], &error["retryable"]), (&"agent".into(), &false.into()));
        assert!(error["message"].as_str().unwrap().contains(&limit.to_string()), "{error}");
        assert_eq!(result["usage"]["iterations"], limit);
        // One reply more could have been the final one, which does not count.
        assert_eq!(program.server.request_count() - before, limit + 1, "and nobody is asked again");
    }
}

/// ES-105, ES-111
#[test]
fn a_task_that_runs_out_of_time_fails_with_timeout() {
    let server = windlass_testkit::ModelServer::start_empty();
    let gate = windlass_testkit::Gate::new();
    server.next(windlass_testkit::Answer::script("say: too late").gated(0, &gate));
    let program = Program::with(server);
    let ran = program.windlass(&["run", "hurry", "--timeout", "1", "--json"]).expect(1);
    assert_eq!(ran.result()["status"], "FAILED");
    assert_eq!(ran.result()["error_details"]["error_type"], "timeout");
    gate.open();
}

/// ES-208, ES-264, ES-267…269, ES-320
#[test]
fn an_agent_that_repeats_itself_is_nudged_and_then_failed() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.answer_with(|_| Some(windlass_testkit::Answer::script("glob: '*.none'")));
    let ran = program.windlass(&["run", "loop", "--json"]).expect(1);
    let result = ran.result();
    assert_eq!(result["error_details"]["error_type"], "doom_loop");
    assert!(result["error_details"]["diagnostic"].as_str().unwrap().contains("`glob`"));
    assert_eq!(ran.kinds().iter().filter(|kind| *kind == "doom_loop_detected").count(), 3);
    assert_eq!(result["status"], "FAILED");
    let nudge = |request: usize| {
        let sent = program.server.requests()[request].json();
        let last = sent["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["role"], "user");
        last["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(nudge(3), "You appear to be repeating the same action. Reconsider your approach.");
    assert_eq!(nudge(4), "Stop and re-read your plan. What should you do differently?");
    assert_eq!(nudge(5), "Stop and re-read your plan. What should you do differently?");
    assert_eq!(program.server.request_count(), 6, "after three interventions it is given up");
}

/// ES-024, ES-026, ES-030, ES-373: a tool's failure goes back to the model, and the task continues.
#[test]
fn a_failing_tool_does_not_end_the_task() {
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

/// The same task on both wires gives the same events (Anthropic native and OpenAI's).
#[test]
fn both_wires_give_the_same_events() {
    let events = |model: &str| {
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
        texts.map(|text| text.replace(&program.task(), "TASK")).collect::<Vec<_>>()
    };
    assert_eq!(events("anthropic/claude-test"), events("openai/gpt-test"));
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
