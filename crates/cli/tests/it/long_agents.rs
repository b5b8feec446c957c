//! Sub-agents through the real program.

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::{Program, Ran};

const THREE: &str = "
replies:
  - calls:
      - spawn_agent: {task: 'count the APPLES', label: apples, write_output_to: output/apples.md}
      - spawn_agent: {task: 'count the PEARS', label: pears}
      - spawn_agent: {task: 'count the PLUMS', label: plums}
    task: count the fruit
  - {say: 'Counted it all.', task: count the fruit}
  - {turn: 0, task: APPLES, write: {path: apples.txt, content: three}, usage: {input: 1000, output: 170}}
  - {turn: 1, task: APPLES, say: There are 3 apples., usage: {input: 1000, output: 170}}
  - {turn: 0, task: PEARS, bash: echo pears >> pears.txt}
  - {turn: 1, task: PEARS, say: There are 4 pears.}
  - {turn: 0, task: PLUMS, read: fruit.txt}
  - {turn: 1, task: PLUMS, say: There are 5 plums., expect: fruit}
";

pub fn machine(script: &str) -> Program {
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("fruit.txt"), "fruit\n").unwrap();
    program
}

pub fn of_kind(ran: &Ran, kind: &str) -> Vec<Value> {
    let all = ran.json_lines();
    let wanted = all.into_iter().filter(|event| event["event_type"] == kind);
    wanted.map(|event| event["data"].clone()).collect()
}

/// What the model was asked about a task, in order.
fn requests_about(program: &Program, word: &str) -> Vec<Value> {
    let about = |body: &Value| task_message(body).contains(word);
    program.server.requests().iter().map(|request| request.json()).filter(about).collect()
}

/// The task message in one of an agent's requests.
pub fn task_message(request: &Value) -> String {
    request["messages"][1]["content"].as_str().unwrap_or_default().to_owned()
}

/// ES-034, ES-217, ES-218, ES-219, ES-221, ES-222, ES-231, ES-232, ES-235, ES-236, ES-238, ES-239, ES-240, ES-243, ES-317, ES-318,
/// ES-332, ES-333, ES-344, ES-345
#[test]
fn three_sub_agents_of_one_reply_come_back_in_call_order() {
    let program = machine(THREE);
    let mut command = program.command(&["run", "count the fruit", "--json"]);
    let ran = command.env("RUST_LOG", "windlass_agent=info").output().unwrap();
    let ran = Ran::from(ran).expect(0);

    let last = requests_about(&program, "count the fruit").pop().unwrap();
    let messages = last["messages"].as_array().unwrap();
    let results: Vec<_> = messages
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].as_str().unwrap())
        .collect();
    let place = program.seen_workspace();
    // How long one took depends on the machine, and the first makes the sandbox.
    let words = results[0].strip_prefix("Sub-agent \"apples\" completed in ").unwrap();
    let (seconds, words) = words.split_once("s (").unwrap();
    assert!(seconds.parse::<u32>().is_ok(), "{seconds}");
    assert_eq!(
        words,
        format!(
            "2,340 tokens).\n\nResult:\nThere are 3 apples.\n\n\
             Output written to: {place}/output/apples.md"
        )
    );
    assert!(results[1].starts_with("Sub-agent \"pears\" completed in "), "{}", results[1]);
    assert!(results[1].ends_with(" tokens).\n\nResult:\nThere are 4 pears."), "{}", results[1]);
    assert!(results[2].ends_with("Result:\nThere are 5 plums."), "{}", results[2]);
    assert_eq!(program.file("output/apples.md"), "There are 3 apples.");
    assert_eq!(program.file("pears.txt"), "pears\n");

    let child = requests_about(&program, "APPLES").remove(0);
    assert_eq!(child["messages"].as_array().unwrap().len(), 2, "a context of its own");
    let system = child["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("You are a sub-agent"), "{system}");
    let headings: Vec<_> = system.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    let minimal = [
        "Agent Identity",
        "Tools",
        "File System",
        "Context Management",
        "Safety",
        "On Permission Denials",
    ];
    assert_eq!(headings, minimal, "the prompt is the minimal one");
    assert!(!child.to_string().contains("count the fruit"), "nothing of its parent's: {child}");

    let spawned = of_kind(&ran, "sub_agent_spawn");
    let labels: Vec<_> = spawned.iter().map(|spawn| spawn["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["apples", "pears", "plums"]);
    assert_eq!(
        (&spawned[0]["task"], &spawned[0]["timeout_ms"]),
        (&"count the APPLES".into(), &300_000.into())
    );
    assert_eq!(spawned[0]["model"], "litellm/gpt-4o");
    assert_eq!(spawned[0]["write_output_to"], "output/apples.md");
    assert!(spawned[1].get("write_output_to").is_none(), "{}", spawned[1]);
    let kinds = ran.kinds();
    let latest = |kind: &str| kinds.iter().rposition(|one| one == kind).unwrap();
    assert!(latest("sub_agent_complete") < latest("llm_request"), "the parent waits: {kinds:?}");
    let done = of_kind(&ran, "sub_agent_complete");
    assert_eq!(done.len(), 3);
    let apples = done.iter().find(|one| one["label"] == "apples").unwrap();
    assert_eq!(
        (&apples["status"], &apples["output"]),
        (&"completed".into(), &"There are 3 apples.".into())
    );
    assert!(apples["duration_ms"].is_u64() && apples.get("error").is_none(), "{apples}");
    assert_eq!(apples["files_changed"][0], "apples.txt");
    assert_eq!(apples["usage"]["total_tokens"], 2_340);
    assert_eq!(ran.result()["usage"]["sub_agents_spawned"], 3);

    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    assert!(metrics.contains("agent_subagent_spawned 3"), "{metrics}");
    assert!(
        metrics.contains("agent_subagent_duration_ms_count{status=\"completed\"} 3"),
        "{metrics}"
    );
    for (message, fields) in [
        ("Sub-agent spawned", ["task_id", "label", "sub_agent_id"].as_slice()),
        ("Sub-agent completed", ["task_id", "label", "status", "duration_ms"].as_slice()),
    ] {
        let line = ran.stderr.lines().find(|line| line.contains(message)).expect(message);
        assert!(fields.iter().all(|field| line.contains(&format!("{field}="))), "{line}");
        assert!(line.contains("INFO"), "{line}");
    }
    let tools = last["tools"].as_array().unwrap();
    let spawn = tools.iter().find(|tool| tool["function"]["name"] == "spawn_agent").unwrap();
    let description = spawn["function"]["description"].as_str().unwrap();
    for words in [
        "a context of its own",
        "long research",
        "in parallel",
        "deep focus",
        "shares your workspace",
        "comes back as text",
    ] {
        assert!(description.contains(words), "{words} in {description}");
    }
    let schema = &spawn["function"]["parameters"];
    let properties: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["label", "model", "task", "timeout_seconds", "write_output_to"]);
    assert_eq!(schema["required"], serde_json::json!(["task"]));
}

/// ES-235: a sub-agent may have another of the configured models, which is recorded; no other can be named.
#[test]
fn a_sub_agent_may_have_another_configured_model() {
    let script = "
match:
  - task: count quickly
    replies: [{spawn_agent: {task: count below, model: deep}}, {say: three}]
  - task: count below
    replies: [{say: one}]
replies:
  - spawn_agent: {task: count quickly, model: fast}
  - spawn_agent: {task: count quickly, model: gpt-9}
  - say: counted
";
    let program = machine(script);
    for (mode, name) in [("fast", "quick"), ("deep", "thinker")] {
        program.windlass(&["config", "set", &format!("models.{mode}"), name]).expect(0);
    }
    let ran = program.windlass(&["run", "count", "--json"]).expect(0);
    let spawned = of_kind(&ran, "sub_agent_spawn");
    assert_eq!(spawned[0]["model"], "litellm/quick", "{spawned:?}");
    assert_eq!((&spawned[0]["model_mode"], spawned.len()), (&"fast".into(), 1));
    let models: Vec<_> = program
        .server
        .requests()
        .iter()
        .map(|request| request.json()["model"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(models, ["gpt-4o", "quick", "thinker", "quick", "gpt-4o", "gpt-4o"]);
    assert!(program.last_message_sent().contains("deep"), "the models that there are, named");
}

/// ES-009, ES-047: a sub-agent is started where a call asks for it, and nowhere else.
#[test]
fn nobody_but_the_agent_starts_a_sub_agent() {
    let program = machine("replies: [{read: fruit.txt}, {bash: echo x}, {say: alone}]");
    let ran = program.windlass(&["run", "work alone", "--json"]).expect(0);
    assert!(of_kind(&ran, "sub_agent_spawn").is_empty());
    assert_eq!(ran.result()["usage"]["sub_agents_spawned"], 0);
    assert_eq!(program.windlass(&["tasks", "--all", "--json"]).json_lines().len(), 1);

    let program = machine(THREE);
    let ran = program.windlass(&["run", "count the fruit", "--json"]).expect(0);
    let calls = of_kind(&ran, "tool_call");
    let asked: Vec<_> = calls.iter().filter(|call| call["tool"] == "spawn_agent").collect();
    for spawned in of_kind(&ran, "sub_agent_spawn") {
        assert!(asked.iter().any(|call| call["call"] == spawned["call"]), "{spawned}");
    }
}

/// ES-241, ES-365: the third level is not offered the tool, and a forged call of it is refused.
#[test]
fn agents_nest_as_deep_as_is_allowed_and_no_deeper() {
    let program = machine(
        "
replies:
  - {spawn_agent: {task: LEVEL-ONE}, task: go down}
  - {say: done, task: go down}
  - {turn: 0, task: LEVEL-ONE, spawn_agent: {task: LEVEL-TWO}}
  - {turn: 1, task: LEVEL-ONE, say: one}
  - {turn: 0, task: LEVEL-TWO, spawn_agent: {task: LEVEL-THREE}}
  - {turn: 1, task: LEVEL-TWO, say: two, expect: nested deeper}
",
    );
    program.windlass(&["run", "go down", "--json"]).expect(0);
    let offered = |word: &str| {
        let request = requests_about(&program, word).remove(0);
        let tools = request["tools"].as_array().unwrap().clone();
        tools.iter().any(|tool| tool["function"]["name"] == "spawn_agent")
    };
    assert!(offered("go down") && offered("LEVEL-ONE"));
    assert!(!offered("LEVEL-TWO"));
    assert!(requests_about(&program, "LEVEL-THREE").is_empty());
}

/// Their requests overlap.
#[test]
fn sub_agents_of_one_reply_ask_the_model_at_once() {
    let program = machine(THREE);
    let gate = Gate::new();
    let held = gate.clone();
    program.server.answer_with(move |request| {
        let text = task_message(&request.json());
        let child = ["APPLES", "PEARS", "PLUMS"].iter().any(|word| text.contains(word));
        (child && request.replies == 1).then(|| Answer::script("say: counted").gated(0, &held))
    });
    let child = program.start(&["run", "count the fruit", "--json"]);
    // The parent's first request, and two of each sub-agent: the second ones are all held.
    program.server.requests_reach_blocking(7);
    assert_eq!(program.server.most_at_once(), 3);
    gate.open();
    Ran::from(child.wait_with_output().unwrap()).expect(0);
}

/// ES-220, ES-237: a sub-agent that takes too long comes back as timed out, and the parent continues.
#[test]
fn a_sub_agent_that_takes_too_long_is_ended() {
    let program = machine(
        "
replies:
  - {spawn_agent: {task: 'sleep LONG', label: sleeper, timeout_seconds: 1}, task: be patient}
  - {say: gave up on it, task: be patient, expect: 'Sub-agent \"sleeper\" timeout in'}
  - {turn: 0, task: LONG, bash: sleep 60}
",
    );
    let ran = program.windlass(&["run", "be patient", "--json"]).expect(0);
    assert_eq!(of_kind(&ran, "sub_agent_complete")[0]["status"], "timeout");
}

/// A question of a sub-agent blocks the tree, stands in the same inbox, and its answer resumes the tree.
#[test]
fn a_sub_agents_question_blocks_the_tree_and_its_answer_resumes_it() {
    let program = machine(
        "
replies:
  - calls:
      - spawn_agent: {task: 'ask about the COLOUR', label: asker}
      - spawn_agent: {task: 'write the SIZE', label: writer}
    task: paint it
  - {say: painted, task: paint it, expect: [it is blue, it is big]}
  - {turn: 0, task: COLOUR, ask_user: {question: which colour?}}
  - {turn: 1, task: COLOUR, say: it is blue, expect: blue}
  - {turn: 0, task: SIZE, bash: echo once >> size.txt}
  - {turn: 1, task: SIZE, say: it is big}
",
    );
    let ran = program.windlass(&["run", "paint it", "--json"]).expect(3);
    assert_eq!(ran.result()["status"], "BLOCKED_USER");
    assert_eq!(ran.result()["hitl_request"]["question"], "which colour?");
    let question = ran.result()["hitl_request"]["request_id"].as_str().unwrap().to_owned();
    let child = program.windlass(&["inbox", "--json"]).json_lines().remove(0);
    let child = child["task_id"].as_str().unwrap().to_owned();
    // ES-242
    let refused = program.windlass(&["send", &child, "hello"]).expect(2);
    assert!(refused.stderr.contains("takes no messages"), "{}", refused.stderr);
    program.windlass(&["answer", &question, "blue"]).expect(0);
    let ran = program.windlass(&["resume", &child, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "painted");
    assert_eq!(program.file("size.txt"), "once\n");
}

/// A person who knows only the task that they started finds and answers what agents below it ask.
#[test]
fn what_sub_agents_ask_is_found_at_the_task_above_them() {
    let program = machine(
        "
replies:
  - calls:
      - spawn_agent: {task: 'ask about the COLOUR', label: asker}
      - spawn_agent: {task: 'ask about the SIZE', label: writer}
    task: paint it
  - {say: painted, task: paint it}
  - {turn: 0, task: COLOUR, ask_user: {question: which colour?}}
  - {turn: 1, task: COLOUR, say: it is blue, expect: blue}
  - {turn: 0, task: SIZE, ask_user: {question: which size?}}
  - {turn: 1, task: SIZE, say: it is big}
",
    );
    let ran = program.windlass(&["run", "paint it"]).expect(3);
    assert!(ran.stderr.contains("sub-agent `asker` of task_"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("1 more question to answer: see `windlass inbox`"),
        "{}",
        ran.stderr
    );
    let rows = program.windlass(&["tasks", "--json"]).json_lines();
    let root = rows.iter().find(|row| row["parent_id"].is_null()).unwrap();
    let id = root["task_id"].as_str().unwrap();
    assert_eq!(root["next_action"], "answer");
    let page = program.windlass(&["show", id]).expect(0).stdout;
    assert!(
        page.contains("question: which size?") && page.contains("windlass answer q_"),
        "{page}"
    );
    let inbox = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains(&format!("sub-agent `writer` of {id}")), "{inbox}");
    let several = program.windlass(&["answer", id, "blue"]).expect(2);
    assert!(several.stderr.contains("has 2 open questions"), "{}", several.stderr);
    let size = program.windlass(&["inbox", "--json"]).json_lines().into_iter();
    let size = size.map(|row| row["question"].clone()).find(|one| one["question"] == "which size?");
    program.windlass(&["answer", size.unwrap()["id"].as_str().unwrap(), "big"]).expect(0);
    program.windlass(&["answer", id, "blue", "--resume"]).expect(0);
}

/// A sub-agent that waits for a person continues after the answer while the others work, at any depth.
/// Nobody has to resume anything.
#[test]
fn an_answered_sub_agent_continues_while_its_siblings_run() {
    let program = machine(
        "
replies:
  - calls:
      - spawn_agent: {task: 'ask about the COLOUR', label: asker}
      - spawn_agent: {task: 'have it MEASURED', label: manager}
      - spawn_agent: {task: 'take LONG', label: slow}
    task: paint it
  - {say: painted, task: paint it, expect: [it is blue, two metres it is, took long]}
  - {turn: 0, task: COLOUR, ask_user: {question: which colour?}}
  - {turn: 1, task: COLOUR, say: it is blue, expect: blue}
  - {turn: 0, task: MEASURED, spawn_agent: {task: 'ask for the LENGTH', label: ruler}}
  - {turn: 1, task: MEASURED, say: two metres it is, expect: 2 m}
  - {turn: 0, task: LENGTH, ask_user: {question: how long?}}
  - {turn: 1, task: LENGTH, say: 2 m, expect: 2 m}
",
    );
    let gate = Gate::new();
    let held = gate.clone();
    program.server.answer_with(move |request| {
        let text = task_message(&request.json());
        text.contains("LONG").then(|| Answer::script("say: took long").gated(0, &held))
    });
    let child = program.start(&["run", "paint it", "--json"]);
    let asked = || program.windlass(&["inbox", "--json"]).json_lines();
    wait_for(|| asked().len() == 2);
    for row in asked() {
        let question = &row["question"];
        let text = if question["question"] == "how long?" { "2 m" } else { "blue" };
        program.windlass(&["answer", question["id"].as_str().unwrap(), text]).expect(0);
    }
    // Five first requests, and the second requests of the three agents that an answer lets continue.
    program.server.requests_reach_blocking(8);
    gate.open();
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(ran.result()["final_message"], "painted");
    assert_eq!(of_kind(&ran, "agent_start").len(), 1, "the parent was never parked");
}

/// ES-233, ES-234
#[test]
fn cancelling_a_task_cancels_its_tree_a_sub_agent_only_itself() {
    let script = "
replies:
  - calls:
      - spawn_agent: {task: 'wait FIRST', label: first}
      - spawn_agent: {task: 'wait SECOND', label: second}
    task: wait for both
  - {say: done, task: wait for both, expect: ['Sub-agent \"first\" failed', 'it was cancelled: too slow', 'Sub-agent \"second\" completed']}
  - {turn: 0, task: FIRST, bash: 'echo > first; sleep 600'}
  - {turn: 0, task: SECOND, say: quick}
";
    let program = machine(script);
    let child = program.start(&["run", "wait for both", "--json"]);
    wait_for(|| program.workspace().join("first").exists());
    let tasks = program.windlass(&["tasks", "--json"]).json_lines();
    let first = tasks.iter().find(|task| task["goal"] == "wait FIRST").unwrap();
    let first = first["task_id"].as_str().unwrap();
    program.windlass(&["cancel", first, "--reason", "too slow"]).expect(0);
    Ran::from(child.wait_with_output().unwrap()).expect(0);

    let program = machine(script);
    let child = program.start(&["run", "wait for both", "--json"]);
    wait_for(|| program.workspace().join("first").exists());
    let tasks = program.windlass(&["tasks", "--json"]).json_lines();
    let root = tasks.iter().find(|task| task["goal"] == "wait for both").unwrap();
    program.windlass(&["cancel", root["task_id"].as_str().unwrap()]).expect(0);
    Ran::from(child.wait_with_output().unwrap()).expect(5);
    let tasks = program.windlass(&["tasks", "--json"]).json_lines();
    let status = |goal: &str| {
        let task = tasks.iter().find(|task| task["goal"] == goal).unwrap();
        task["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status("wait FIRST"), "cancelled");
    assert_eq!(status("wait for both"), "cancelled");
}

/// Polls for something that another process does; gives up loudly.
fn wait_for(mut there: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it did not happen");
}

/// Limits stop a runaway, and the diagnostic says what it did.
#[test]
fn a_runaway_that_spawns_agents_in_a_loop_stops_at_the_limits() {
    let program = Program::with(ModelServer::start_empty());
    program.server.answer_with(|request| {
        let text = task_message(&request.json());
        Some(match text.contains("spawn for ever") {
            true => {
                let task = format!("task: 'piece {}'", request.replies);
                Answer::script(&format!("spawn_agent: {{{task}}}"))
            }
            false => Answer::script("say: did it"),
        })
    });
    let ran = program.windlass(&["run", "spawn for ever", "--json"]).expect(1);
    assert_eq!(of_kind(&ran, "sub_agent_spawn").len(), 32);
    let error = &ran.result()["error_details"];
    assert_eq!(error["error_type"], "doom_loop");
    assert!(error["diagnostic"].as_str().unwrap().contains("failed calls in a row"), "{error}");
    let body = ran.stdout;
    assert!(body.contains("may start 32 sub-agents in all"));
}

/// The guard sees through sub-agents: times and tokens of their results differ, their words do not.
#[test]
fn spawning_the_same_sub_agent_again_and_again_is_a_loop() {
    let program = Program::with(ModelServer::start_empty());
    program.server.answer_with(|request| {
        let text = task_message(&request.json());
        let tokens = 1_000 + program_wide_counter();
        Some(match text.contains("go round") {
            true => Answer::script("spawn_agent: {task: look again}"),
            false => {
                Answer::script(&format!("say: nothing\nusage: {{input: {tokens}, output: 1}}"))
            }
        })
    });
    let ran = program.windlass(&["run", "go round", "--json"]).expect(1);
    assert_eq!(ran.result()["error_details"]["error_type"], "doom_loop");
    assert_eq!(of_kind(&ran, "sub_agent_spawn").len(), 6);
}

fn program_wide_counter() -> usize {
    static COUNTER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// MS-217: a sub-agent has its parent's profile, and writing its output passes the same gate.
#[test]
fn a_sub_agent_may_do_no_more_than_its_parent() {
    let program = machine(
        "
replies:
  - {spawn_agent: {task: 'write OUT', write_output_to: out.md}, task: stay inside}
  - {spawn_agent: {task: 'write OUT'}, task: stay inside, expect: DENIED}
  - {say: done, task: stay inside, expect: I could not}
  - {turn: 0, task: OUT, bash: echo x > out.md}
  - {turn: 1, task: OUT, say: I could not, expect: DENIED}
",
    );
    let args = ["run", "stay inside", "--json", "--permission-profile", "restricted"];
    let ran = program.windlass(&args).expect(0);
    let spawned = of_kind(&ran, "sub_agent_spawn");
    assert_eq!(spawned.len(), 1);
    assert_eq!(spawned[0]["axes"]["permissionProfile"], "restricted");
    assert!(!program.workspace().join("out.md").exists());
}

/// What a person pauses stays paused. The other sub-agents end, and the task above them is parked until the person
/// resumes the one that waits.
#[test]
fn a_sub_agent_that_a_person_paused_waits_for_them() {
    for resumes_child in [false, true] {
        let program = machine(THREE);
        let (child, pears, gate) = at_the_pears(&program);
        program.windlass(&["pause", &pears]).expect(0);
        gate.open();
        let ran = Ran::from(child.wait_with_output().unwrap()).expect(4);
        assert_eq!(ran.result()["status"], "PAUSED");
        let tasks = program.windlass(&["tasks", "--all", "--json"]).json_lines();
        let status = |goal: &str| {
            let task = tasks.iter().find(|task| task["goal"] == goal).unwrap();
            task["status"].as_str().unwrap().to_owned()
        };
        assert_eq!(status("count the PEARS"), "paused");
        assert_eq!(status("count the PLUMS"), "done");
        let root = tasks.iter().find(|task| task["goal"] == "count the fruit").unwrap();
        let root = root["task_id"].as_str().unwrap().to_owned();
        let resumed = if resumes_child { &pears } else { &root };
        let ran = program.windlass(&["resume", resumed, "--json"]).expect(0);
        assert_eq!(ran.result()["final_message"], "Counted it all.");
        assert_eq!(program.file("pears.txt"), "pears\n", "nothing happened twice");
    }
}

/// A person's words to a sub-agent reach it in its next request, and no other agent.
#[test]
fn a_running_sub_agent_is_steered_by_itself() {
    let program = machine(THREE);
    let (child, pears, gate) = at_the_pears(&program);
    let sent = program.windlass(&["steer", &pears, "only the green ones", "--sub-agent"]).expect(0);
    assert!(sent.stderr.contains("reads it after its current step"), "{sent:?}");
    gate.open();
    Ran::from(child.wait_with_output().unwrap()).expect(0);
    let about = |word: &str| requests_about(&program, word).pop().unwrap().to_string();
    assert!(about("PEARS").contains("User says: only the green ones"), "{}", about("PEARS"));
    assert!(!about("PLUMS").contains("green") && !about("APPLES").contains("green"));
}

/// A run whose sub-agent for pears waits for its last reply; its id, and what lets it have the reply.
fn at_the_pears(program: &Program) -> (std::process::Child, String, Gate) {
    let gate = Gate::new();
    let held = gate.clone();
    program.server.answer_with(move |request| {
        let text = task_message(&request.json());
        let is_pears = text.contains("PEARS") && request.replies >= 1;
        let said = Answer::script("say: There are 4 pears.");
        is_pears.then(|| if request.replies == 1 { said.gated(0, &held) } else { said })
    });
    let child = program.start(&["run", "count the fruit", "--json"]);
    gate.reached_blocking();
    let tasks = program.windlass(&["tasks", "--all", "--json"]).json_lines();
    let pears = tasks.iter().find(|task| task["goal"] == "count the PEARS").unwrap();
    let pears = pears["task_id"].as_str().unwrap().to_owned();
    (child, pears, gate)
}

/// A pause parks the whole tree, and a resume continues all of it.
#[test]
fn pausing_a_task_parks_its_sub_agents() {
    let program = machine(THREE);
    let gate = Gate::new();
    let held = gate.clone();
    program.server.answer_with(move |request| {
        let text = task_message(&request.json());
        (text.contains("PEARS") && request.replies == 1)
            .then(|| Answer::script("say: There are 4 pears.").gated(0, &held))
    });
    let child = program.start(&["run", "count the fruit", "--json"]);
    gate.reached_blocking();
    let tasks = program.windlass(&["tasks", "--json"]).json_lines();
    let root = tasks.iter().find(|task| task["goal"] == "count the fruit").unwrap();
    let root = root["task_id"].as_str().unwrap().to_owned();
    program.windlass(&["pause", &root]).expect(0);
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(4);
    assert_eq!(ran.result()["status"], "PAUSED");
    gate.open();
    let ran = program.windlass(&["resume", &root, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "Counted it all.");
    assert_eq!(program.file("pears.txt"), "pears\n", "nothing happened twice");
}
