//! An event that is damaged on the disk is named where it stands, and hides nothing else.

use rusqlite::Connection;
use serde_json::{Value, json};
use windlass_testkit::Stage;

use crate::world::{World, answer, options};

const SCRIPT: &str = "
goal: unused
replies:
  - bash: echo the first output
  - write: {path: notes.md, content: what I noted}
  - publish_deliverable: {filepath: notes.md, description: My notes, type: report}
  - say: the final answer
  - bash: echo the second output
  - say: the second answer
";

async fn text(world: &World, path: &str) -> String {
    let response = world.get(path).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.text().await.unwrap()
}

/// Waits until a task is done; returns the events of its journal.
async fn until_done(world: &World, task: &str) -> Vec<Value> {
    let path = format!("/v1/tasks/{task}/events?limit=1000");
    loop {
        let (_, listed) = answer(world.get(&path)).await;
        let events = listed["events"].as_array().unwrap();
        if events.iter().any(|event| event["event_type"] == "agent_end") {
            return events.clone();
        }
        tokio::task::yield_now().await;
    }
}

/// Changes the first event of a kind on the disk; returns its place among the events of its task.
fn damage(world: &World, events: &[Value], kind: &str) -> u64 {
    let event = events.iter().find(|event| event["event_type"] == kind).unwrap();
    let database = Connection::open(world.coordinator().storage().database()).unwrap();
    let change = "UPDATE journal SET body = '{}' WHERE pos = ?1";
    assert_eq!(database.execute(change, [event["id"].as_i64().unwrap()]).unwrap(), 1);
    event["seq"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_name_a_damaged_event_and_show_everything_else() {
    let mut world = World::with(Stage::set(SCRIPT), options()).await;
    world.serve_tasks();
    let (_, made) = answer(world.post("/v1/tasks", &json!({ "goal": "write notes" }))).await;
    let task = made["task_id"].as_str().unwrap();
    let session = format!("/sessions/{}", made["session_id"].as_str().unwrap());
    let events = until_done(&world, task).await;
    let seq = damage(&world, &events, "tool_result");
    let named = format!("Event {seq} is damaged: it does not match its checksum");
    let tab = |name: &str| format!("/tasks/{task}/{name}");
    for (path, shown) in [
        (session.clone(), "the final answer"),
        (tab("timeline"), "echo the first output"),
        (tab("events"), "agent_end"),
        (tab("changes"), "what I noted"),
        (tab("outputs"), "echo the first output"),
        (tab("result"), "the final answer"),
        (tab("result"), "My notes"),
    ] {
        let page = text(&world, &path).await;
        assert!(page.contains(shown), "{path}: {page}");
        assert!(page.contains(&named), "{path}: {page}");
    }
    // What the result of the first command was is not known, and nothing else is said of it.
    assert!(text(&world, &tab("timeline")).await.contains("end not known"));
    let page = text(&world, &session).await;
    assert!(page.contains("<span>end not known</span>"), "{page}");
    assert!(!page.contains("not finished"), "{page}");
    let page = text(&world, &tab("events")).await;
    let place = |seq: u64| page.find(&format!("id=\"e{seq}\"")).unwrap();
    assert!(place(seq - 1) < place(seq) && place(seq) < place(seq + 1), "{page}");
    assert!(page[place(seq)..place(seq + 1)].contains(&named), "{page}");
    for path in ["/", "/tasks", "/cost", "/v1/tasks", "/v1/cost"] {
        text(&world, path).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_and_traces_name_a_damaged_event_and_contain_the_rest() {
    let mut world = World::with(Stage::set(SCRIPT), options()).await;
    world.serve_tasks();
    let (_, made) = answer(world.post("/v1/tasks", &json!({ "goal": "write notes" }))).await;
    let first = made["task_id"].as_str().unwrap().to_owned();
    let mut all = until_done(&world, &first).await.len();
    let more = world.post(&format!("/v1/tasks/{first}/follow-ups"), &json!({ "text": "again" }));
    let second = answer(more).await.1["task_id"].as_str().unwrap().to_owned();
    let events = until_done(&world, &second).await;
    all += events.len();
    let seq = damage(&world, &events, "tool_result");
    let lines = |text: String| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let session = made["session_id"].as_str().unwrap();
    let exported = lines(text(&world, &format!("/v1/sessions/{session}/export")).await);
    assert_eq!(exported.len(), all);
    let damaged: Vec<_> = exported.iter().filter(|line| line["event_type"] == "damaged").collect();
    let data = json!({
        "first_seq": seq, "last_seq": seq, "problem": "it does not match its checksum",
    });
    let expected = json!({
        "task_id": second, "timestamp": null, "iteration": null, "event_type": "damaged", "data": data,
    });
    assert_eq!(damaged, [&expected]);
    assert_eq!(exported.last().unwrap()["event_type"], "agent_end");
    let trace = lines(text(&world, &format!("/v1/tasks/{second}/trace")).await);
    assert_eq!(trace.len(), events.len());
    assert_eq!(trace[usize::try_from(seq).unwrap() - 1]["data"], data);
    world.stop().await;
}
