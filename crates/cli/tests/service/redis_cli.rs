//! A plain Redis client: `redis-cli` and nothing else, as `docs/bus.md` documents it.

use windlass_core::status::TaskStatus;
use windlass_store::OutStream;
use windlass_testkit::ModelServer;

use crate::world::{On, World};

/// ES-042, ES-214, ES-402, ES-403, ES-095, ES-098, ES-292, ES-298, ES-300, ES-302, ES-386, ES-387, ES-388, ES-389
#[tokio::test(flavor = "multi_thread")]
async fn a_plain_client_submits_answers_and_reads_the_result() {
    let script =
        "replies: [{ask_user: {question: which colour?, options: [red, blue]}}, {say: done}]";
    let world = World::new(On::Redis, ModelServer::start(script));
    let redis = world.redis.as_ref().unwrap();
    let _serve = world.start(&["serve"]);
    let submission = world.submission("paint it");
    let body = submission.json.to_string();
    redis.cli(&["XADD", "task-command", "*", "data", &body]);

    let asked = world.until_published(OutStream::HitlRequest, submission.task).await;
    assert_eq!(asked["question"], "which colour?");
    assert_eq!(asked["options"], serde_json::json!(["red", "blue"]));
    assert_eq!(asked["command_id"], submission.command.to_string());
    let blocked = world.until_published(OutStream::TaskResult, submission.task).await;
    assert_eq!(blocked["status"], "BLOCKED_USER");
    assert_eq!(blocked["hitl_request"]["request_id"], asked["request_id"]);

    let answer = serde_json::json!({ "request_id": asked["request_id"], "response": "blue" });
    redis.cli(&["XADD", "hitl-response-received", "*", "data", &answer.to_string()]);
    world.until_status(submission.task, TaskStatus::Done).await;
    let both = || {
        let all = world.published(OutStream::TaskResult);
        (all.len() == 2).then_some(all)
    };
    let results = world.until_seen("both results are published", both).await;
    // By the names of the contract: what a client reads that knows nothing of us.
    for (stream, count) in [("task-result", 2), ("hitl-request-command", 1)] {
        assert_eq!(redis.cli(&["XLEN", stream]), count.to_string(), "{stream}");
    }
    assert_ne!(redis.cli(&["XLEN", "user-message-command"]), "0");
    let fields = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    let always = "command_id cost_usd deliverables evidence_refs";
    let ending = "session_id status task_id usage";
    assert_eq!(fields(&results[0]), format!("{always} hitl_request {ending}"));
    assert_eq!(fields(&results[1]), format!("{always} final_message {ending}"));
    assert_eq!(results[1]["status"], "COMPLETED");
    assert_eq!(results[1]["hitl_request"], serde_json::Value::Null);
    // What was dealt with is acknowledged and gone.
    assert_eq!(redis.cli(&["XLEN", "task-command"]), "0");
    assert_eq!(redis.cli(&["XPENDING", "task-command", "windlass"]).lines().next(), Some("0"));
    let last = world.model.requests().last().unwrap().json()["messages"].to_string();
    assert!(last.contains("User responded to your question: blue"), "{last}");
}
