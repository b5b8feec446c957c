//! What comes with a message and what leaves with a session: pictures, names of files, the export, the checks.

use serde_json::{Value, json};
use windlass_server::Access;
use windlass_testkit::Stage;

use crate::world::{World, account, answer, options, problem};

/// A red dot.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test]
async fn a_picture_is_attached_checked_and_shown_to_whoever_may_see_it() {
    let accounts = vec![account("bob", Access::Operator)];
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let world = World::with(stage, windlass_server::Options { accounts, ..options() }).await;
    let goal = |data: &str| {
        let picture = json!({ "name": "dot.png", "data": data });
        world.post("/v1/tasks", &json!({ "goal": "look", "pictures": [picture] }))
    };
    let (status, made) = answer(goal(PICTURE)).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/v1/tasks/{}", made["task_id"].as_str().unwrap());
    let (_, events) = answer(world.get(&format!("{path}/events"))).await;
    let hash = events["events"][0]["data"]["pictures"][0]["hash"].as_str().unwrap().to_owned();
    let shown = world.get(&format!("{path}/pictures/{hash}")).send().await.unwrap();
    assert_eq!(shown.headers()["content-type"], "image/png");
    assert!(shown.bytes().await.unwrap().starts_with(b"\x89PNG"));
    let other = "0".repeat(64);
    for hash in [&other, "x", "..%2ftoken"] {
        let got = problem(world.get(&format!("{path}/pictures/{hash}"))).await;
        assert_eq!(got, (404, "unknown-picture".to_owned()), "{hash}");
    }
    let by_bob = world.by("bob-token", reqwest::Method::GET, &format!("{path}/pictures/{hash}"));
    assert_eq!(problem(by_bob).await, (404, "unknown-task".to_owned()));
    assert_eq!(problem(goal("not base64!")).await, (422, "bad-fields".to_owned()));
    assert_eq!(problem(goal("bm8gcGljdHVyZQ==")).await, (422, "bad-picture".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_found_by_name_and_a_session_is_exported() {
    let mut world = World::new().await;
    world.serve_tasks();
    let directory = tempfile::tempdir().unwrap();
    for name in ["parser.rs", "notes.md", "secret.log", ".gitignore"] {
        std::fs::write(directory.path().join(name), "*.log\n").unwrap();
    }
    let wanted = json!({ "goal": "work", "workspace": directory.path() });
    let (status, made) = answer(world.post("/v1/tasks", &wanted)).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap());
    let files = |q: &'static str| answer(world.get(&format!("{path}/files?q={q}")));
    assert_eq!(files("pars").await.1["files"], json!(["parser.rs"]));
    assert_eq!(files("secret").await.1["files"], json!([]), "git ignores it");
    let task = made["task_id"].as_str().unwrap().to_owned();
    while answer(world.get(&format!("/v1/tasks/{task}"))).await.1["status"] != "done" {
        tokio::task::yield_now().await;
    }
    let exported = world.get(&format!("{path}/export")).send().await.unwrap();
    let name = exported.headers()["content-disposition"].to_str().unwrap().to_owned();
    assert!(name.starts_with("attachment; filename=\"ses_"), "{name}");
    let text = exported.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["task_id"] == task.as_str()), "{text}");
    assert_eq!(lines[0]["event_type"], "task_created");
    assert!(lines.iter().any(|line| line["event_type"] == "agent_end"), "{text}");
    world.stop().await;
}

#[tokio::test]
async fn the_checks_are_for_admins() {
    let accounts = vec![account("bob", Access::Operator)];
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let world = World::with(stage, windlass_server::Options { accounts, ..options() }).await;
    let (status, report) = answer(world.get("/v1/doctor")).await;
    assert_eq!(status, 200, "{report}");
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["check"] == "store"), "{report}");
    let again = answer(world.get("/v1/doctor")).await.1;
    assert_eq!(
        again["checked_at"], report["checked_at"],
        "checks that are recent do not run again"
    );
    let by_bob = world.by("bob-token", reqwest::Method::GET, "/v1/doctor");
    assert_eq!(problem(by_bob).await, (403, "not-allowed".to_owned()));
    let odd = problem(world.get("/v1/doctor?max_age_seconds=1")).await;
    assert_eq!(odd, (400, "bad-request".to_owned()));
}
