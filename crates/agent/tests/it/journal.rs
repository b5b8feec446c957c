//! What is journaled, in which order, and what the model sees of it.

use windlass_testkit::{Stage, play};

/// ES-031, ES-114, ES-115, ES-118, ES-205, ES-373
#[tokio::test]
async fn a_failing_tool_is_shown_to_the_model() {
    let script = "
        goal: fix the build
        replies:
          - bash: echo no such name; exit 101
          - say: renamed it
    ";
    insta::assert_snapshot!(play(script).await, @r#"
    1 status_changed     todo → running (user)
    2 agent_start        fix the build
    3 llm_response       bash: {"command":"echo no such name; exit 101"}
    4 risk_check         bash read allow
    5 tool_call          bash
    6 tool_result        error: no such name…
    7 llm_response       say: renamed it
    8 status_changed     running → done (finished)
    9 agent_end          COMPLETED
    "#);
}

/// ES-002, ES-004, ES-014, ES-021, ES-024, ES-026, ES-027, ES-397, ES-417: one conversation, no other calls.
#[tokio::test]
async fn one_task_is_one_conversation_and_nobody_else_asks_the_model() {
    let stage = Stage::set(
        "
        goal: look around
        replies:
          - glob: '*'
          - save_memo: {filename: a.md, content: seen}
          - say: all seen
        ",
    );
    stage.run().await;
    let requests = stage.server.requests();
    assert_eq!(requests.len(), 3, "one request a reply, none before and none after");
    for (earlier, later) in requests.iter().zip(&requests[1..]) {
        later.assert_extends(earlier);
    }
}

/// ES-106, ES-121, ES-210: rounds and calls are counted apart, and each call is recorded with its result.
#[tokio::test]
async fn rounds_and_calls_are_counted_apart() {
    let stage = Stage::set(
        "
        goal: look twice
        replies:
          - calls:
              - glob: '*.a'
              - glob: '*.b'
          - glob: '*.c'
          - say: done
        ",
    );
    let task = stage.submit().await;
    let result = stage.drive(task).await;
    assert_eq!((result.usage.iterations, result.usage.tool_calls), (2, 3));
    let kinds = |kind: &str| {
        let journal = stage.store.journal().of(task).unwrap();
        journal.iter().filter(|record| record.event.kind() == kind).count()
    };
    assert_eq!((kinds("tool_call"), kinds("tool_result")), (3, 3));
    let json = serde_json::to_value(&result).unwrap();
    for field in ["task_id", "status", "deliverables", "evidence_refs", "final_message", "usage"] {
        assert!(json.get(field).is_some(), "{field}: {json}");
    }
    assert!(json.get("error_details").is_none(), "{json}");
}

/// ES-115: calls that change things run in the order of the reply, each with its own result.
#[tokio::test]
async fn calls_of_one_reply_run_in_their_order() {
    let script = "
        goal: three steps
        replies:
          - calls:
              - bash: echo one > log
              - bash: echo two >> log
              - bash: cat log
          - say: done
    ";
    let journal = play(script).await;
    let results: Vec<_> = journal.lines().filter(|line| line.contains("tool_result")).collect();
    assert_eq!(results.len(), 3, "{journal}");
    assert!(results[2].contains("ok: one…"), "{journal}");
    let steps = journal.lines().filter_map(|line| line.split_whitespace().nth(1));
    let steps: Vec<_> =
        steps.filter(|kind| ["risk_check", "tool_call", "tool_result"].contains(kind)).collect();
    assert_eq!(steps, ["risk_check", "tool_call", "tool_result"].repeat(3), "{journal}");
}

/// ES-044, ES-140: the plan never gates the work; what it says is in the context and in the file.
#[tokio::test]
async fn a_plan_is_a_note_and_gates_nothing() {
    let stage = Stage::set(
        "
        goal: plan and ignore it
        replies:
          - update_plan: {steps: [{id: a, description: first, status: blocked}]}
          - say: did something else
        ",
    );
    let task = stage.submit().await;
    let result = stage.drive(task).await;
    assert_eq!(result.status.to_string(), "COMPLETED");
    let file = std::fs::read_to_string(stage.workspace().join(".plan.md")).unwrap();
    let sent = stage.server.requests()[1].json();
    let expected = format!("Plan updated (0/1 done).\n\n{file}");
    let last = sent["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], expected, "the result holds the file, word for word");
}

/// ES-045, ES-306: what another process reads of a parked task is all that it needs to continue it.
#[tokio::test]
async fn a_conversation_is_kept_whole() {
    let stage = Stage::set(
        "
        goal: paint
        replies:
          - write: {path: output/a.md, content: half of it}
          - update_plan: {steps: [{id: a, description: first, status: in_progress}]}
          - publish_deliverable: {filepath: output/a.md, description: what there is, type: report}
          - ask_user: {question: which colour?}
          - say: painted
        ",
    );
    let task = stage.submit().await;
    let question = stage.drive(task).await.hitl_request.unwrap().request_id;
    let root = stage.store.dir().root().to_owned();
    let other = windlass_store::Store::open(&root, windlass_store::Options::default()).unwrap();
    let records = other.journal().of(task).unwrap();
    let events = records.iter().map(|record| (record.at, &record.event));
    let state = windlass_core::state::TaskState::fold(events).unwrap().unwrap();
    assert_eq!(
        (state.id(), state.spending.usage.iterations, state.spending.usage.compactions),
        (task, 3, 0)
    );
    assert_eq!(state.plan.as_ref().unwrap().steps[0].description, "first");
    assert_eq!(state.files.deliverables.keys().collect::<Vec<_>>(), ["output/a.md"]);
    assert!(state.sub_agents.is_empty() && state.attempts.started);
    assert!(other.tasks().get(task).unwrap().unwrap().started_at.is_some());

    stage.coordinator.inbox().answer(question, "blue", "ada").await.unwrap();
    assert_eq!(stage.drive(task).await.final_message.unwrap(), "painted");
    let requests = stage.server.requests();
    requests[4].assert_extends(&requests[3]);
}

/// ES-113: nothing is started that no call asked for.
#[tokio::test]
async fn a_reply_without_calls_ends_the_task() {
    insta::assert_snapshot!(play("goal: say hello\nreplies: [{say: hello}]").await, @"
    1 status_changed     todo → running (user)
    2 agent_start        say hello
    3 llm_response       say: hello
    4 status_changed     running → done (finished)
    5 agent_end          COMPLETED
    ");
}
