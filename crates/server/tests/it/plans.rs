//! Plans over HTTP: activated, worked through by the service, their issues, decisions and snapshots.

use serde_json::{Value, json};
use windlass_coordinator::NewSession;
use windlass_core::axes::{Axes, Surface};
use windlass_core::id::SessionId;
use windlass_testkit::Stage;

use crate::world::{World, answer, options, problem};

/// A directory with a plan of two tasks, and the session that is in it.
async fn session_with_plan(world: &World, directory: &std::path::Path) -> SessionId {
    let plan = json!({"id": "demo", "phases": [{"title": "Only", "tasks": [
        {"bestPatternPrompt": "Use /x"}, {"bestPatternPrompt": "Use /x", "dependsOn": ["t01"]}]}]});
    std::fs::write(directory.join("plan.json"), plan.to_string()).unwrap();
    let session = SessionId::new(world.coordinator().now());
    let workspace = Some(directory.display().to_string());
    let new = NewSession::new(Axes::interactive(Surface::Web), "ada", workspace);
    world.coordinator().session(session).begin(new).await.unwrap();
    session
}

async fn activated(world: &World, directory: &std::path::Path) -> String {
    let session = session_with_plan(world, directory).await;
    let (status, body) = answer(world.post("/v1/plans", &json!({"session_id": session}))).await;
    assert_eq!(status, 201, "{body}");
    body["plan_id"].as_str().unwrap().to_owned()
}

/// MS-131: the service honours what the tasks of a plan wait for.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_activated_and_worked_through_over_http() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await;
    world.serve_tasks();
    let directory = tempfile::tempdir().unwrap();
    let plan = activated(&world, directory.path()).await;
    let (_, before) = answer(world.get(&format!("/v1/plans/{plan}"))).await;
    assert_eq!((&before["state"], &before["total"]), (&json!("waiting"), &json!(2)));
    assert_eq!(before["phases"][0]["tasks"][1]["waits_for"], json!(["t01"]));
    let (status, _) = answer(world.post(&format!("/v1/plans/{plan}/run"), &json!({}))).await;
    assert_eq!(status, 200);
    let done = loop {
        let (_, now) = answer(world.get(&format!("/v1/plans/{plan}"))).await;
        match now["state"].as_str() {
            Some("done") => break now,
            Some("failed" | "blocked") => panic!("{now}"),
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(done["phases"][0]["tasks"][1]["status"], "done");
    let (_, listed) = answer(world.get("/v1/plans")).await;
    assert_eq!(listed["plans"][0]["plan_id"], Value::from(plan));
    world.stop().await;
}

/// PL-025, PL-029, PL-031: what is refused on the command line is refused here, and leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn issues_decisions_and_snapshots_are_kept_or_refused_over_http() {
    let world = World::new().await;
    let directory = tempfile::tempdir().unwrap();
    let plan = activated(&world, directory.path()).await;
    let at = |part: &str| format!("/v1/plans/{plan}/{part}");
    for (part, body) in [
        ("issues", json!({"description": "x"})),
        ("issues", json!({"severity": null, "description": "x"})),
        ("issues", json!({"severity": "huge", "description": "x"})),
        ("issues", json!({"severity": "low", "description": " "})),
        ("decisions", json!({"title": "t", "reasoning": "", "alternatives": ["a"]})),
        ("decisions", json!({"title": "t", "reasoning": "r", "alternatives": []})),
        (
            "snapshot",
            json!({"task": "t01", "failingTests": [], "techDebt": [], "openDecisions": []}),
        ),
    ] {
        let (status, _) = problem(world.post(&at(part), &body)).await;
        assert_eq!(status, 422, "{part} {body}");
    }
    assert_eq!(answer(world.get(&at("issues"))).await.1["issues"], json!([]));
    assert_eq!(answer(world.get(&at("decisions"))).await.1["decisions"], json!([]));
    let issue = json!({"severity": "high", "description": "typecheck fails", "task": "t02", "owner": "intel"});
    let (status, logged) = answer(world.post(&at("issues"), &issue)).await;
    assert_eq!((status, &logged["taskId"]), (201, &json!("t02")));
    let found = answer(world.get(&at("issues?severity=high&owner=intel"))).await.1;
    assert_eq!(found["issues"].as_array().unwrap().len(), 1);
    let id = logged["id"].as_str().unwrap();
    let resolve = world.post(&format!("/v1/issues/{id}/resolve"), &json!({"resolution": "fixed"}));
    assert_eq!(answer(resolve).await.1["resolution"], "fixed");
    let snapshot = json!({"task": "t01", "failingTests": [], "techDebt": [], "openDecisions": ["x"], "nextTaskIntent": "go"});
    assert_eq!(answer(world.post(&at("snapshot"), &snapshot)).await.0, 201);
    let loaded = answer(world.get(&at("snapshot?task=t02"))).await.1;
    assert_eq!((&loaded["task"], &loaded["nextTaskIntent"]), (&json!("t01"), &json!("go")));
    let unknown = world.get("/v1/plans/plan_00000000000000000000000000");
    assert_eq!(problem(unknown).await, (404, "unknown-plan".to_owned()));
}
