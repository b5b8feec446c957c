//! What pages say, as the server draws them.

use serde_json::{Value, json};
use windlass_testkit::Stage;

use crate::world::{World, answer, options};

async fn page(world: &World, path: &str) -> String {
    let (status, drawn) = answer(world.get(path)).await;
    assert_eq!(status, 200, "{path}: {drawn}");
    drawn.as_str().unwrap().to_owned()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_an_ended_task_never_started_is_not_said_to_wait() {
    let script = "
goal: unused
replies:
  - calls:
      - ask_user: {question: 'go on?'}
      - bash: echo two
";
    let mut world = World::with(Stage::set(script), options()).await;
    world.serve_tasks();
    let (_, made) = answer(world.post("/v1/tasks", &json!({ "goal": "count" }))).await;
    let session = format!("/sessions/{}", text(&made, "session_id"));
    while answer(world.get("/v1/questions")).await.1["questions"] == json!([]) {
        tokio::task::yield_now().await;
    }
    assert!(page(&world, &session).await.contains("<span>waiting</span>"));
    let task = format!("/v1/tasks/{}", text(&made, "task_id"));
    assert_eq!(answer(world.post(&format!("{task}/cancel"), &json!({}))).await.0, 202);
    while answer(world.get(&task)).await.1["status"] != "cancelled" {
        tokio::task::yield_now().await;
    }
    let drawn = page(&world, &session).await;
    assert!(drawn.contains("<span>not started</span>"), "{drawn}");
    assert!(!drawn.contains("<span>waiting</span>"), "{drawn}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_is_shown_as_it_stands_while_its_task_waits() {
    let script = "
goal: unused
replies:
  - calls:
      - spawn_agent: {task: look at the pages, label: asks}
      - spawn_agent: {task: read the tests, label: reads}
match:
  - task: look at the pages
    replies: [{ask_user: {question: May I?}}]
  - task: read the tests
    replies: [{say: read}]
";
    let mut world = World::with(Stage::set(script), options()).await;
    world.serve_tasks();
    let (_, made) = answer(world.post("/v1/tasks", &json!({ "goal": "compare" }))).await;
    let parent = text(&made, "task_id");
    let of = |filter: &str| format!("/v1/tasks?parent={parent}&{filter}");
    loop {
        let main = answer(world.get(&format!("/v1/tasks/{parent}"))).await.1;
        let (_, done) = answer(world.get(&of("status=done"))).await;
        if main["status"] == "blocked" && done["tasks"].as_array().unwrap().len() == 1 {
            break;
        }
        assert_ne!(main["status"], "failed", "{main}");
        tokio::task::yield_now().await;
    }
    let drawn = page(&world, &format!("/sessions/{}", text(&made, "session_id"))).await;
    for (standing, label) in [("Waiting for you", "asks"), ("Done", "reads")] {
        let said = format!(
            "{standing}: </span></span><span class=\"line\">sub-agent <strong>{label}</strong>"
        );
        assert!(drawn.contains(&said), "{said}: {drawn}");
    }
    // Nothing has failed: both come to their results when the task is resumed.
    let drawn = page(&world, &format!("/tasks/{parent}")).await;
    assert!(drawn.contains("start sub-agent reads"), "{drawn}");
    assert!(!drawn.contains(">failed<"), "{drawn}");
    world.stop().await;
}

#[tokio::test]
async fn a_commitment_without_evidence_says_so() {
    let world = World::new().await;
    let (_, made) = answer(world.post("/v1/commitments", &json!({ "title": "use JWT" }))).await;
    let path = format!("/commitments/{}", text(&made, "commitment_id"));
    assert!(page(&world, &path).await.contains("None yet."));
    let note = json!({ "type": "note", "content": "auth.rs" });
    answer(world.post(&format!("/v1{path}/claim"), &json!({}))).await;
    let (status, added) = answer(world.post(&format!("/v1{path}/evidence"), &note)).await;
    assert_eq!(status, 201, "{added}");
    assert!(!page(&world, &path).await.contains("None yet."));
}

#[tokio::test]
async fn a_session_of_many_tasks_says_that_it_names_the_newest() {
    let world = World::new().await;
    let (_, made) = answer(world.post("/v1/tasks", &json!({ "goal": "the first" }))).await;
    let session = text(&made, "session_id");
    let more = json!({ "goal": "another", "session_id": session });
    for count in 1..=20 {
        let drawn = page(&world, &format!("/sessions/{session}")).await;
        assert!(!drawn.contains("The newest 20 are shown."), "{count}");
        assert_eq!(answer(world.post("/v1/tasks", &more)).await.0, 201);
    }
    let drawn = page(&world, &format!("/sessions/{session}")).await;
    assert!(drawn.contains("The newest 20 are shown."), "{drawn}");
}
