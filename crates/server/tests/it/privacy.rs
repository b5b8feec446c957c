//! What pages show to whom.

use reqwest::Method;
use serde_json::{Value, json};
use windlass_server::{About, Access, Options, Setting};
use windlass_testkit::Stage;

use crate::world::{World, account, answer, options};

/// A word that only what is bob's has.
const HIS: &str = "bobs-own";

/// A word that nobody is to see.
const SECRET: &str = "topic-4711";

/// A world in which bob, an operator, has something on every page.
async fn world() -> (World, Vec<String>) {
    let accounts = vec![
        account("bob", Access::Operator),
        account("eve", Access::Operator),
        account("vic", Access::Viewer),
    ];
    let notify_url = Setting {
        key: "server.notify_url".to_owned(),
        value: format!("https://ntfy.example/{SECRET}"),
        source: "user".to_owned(),
    };
    let about = About { settings: [notify_url].into(), ..options().about };
    let stage = Stage::set("goal: unused\nreplies: [{ask_user: {question: bobs-own question?}}]");
    let mut world = World::with(stage, Options { accounts, about, ..options() }).await;
    world.serve_tasks();
    let post = |path: &str, body: Value| world.by("bob-token", Method::POST, path).json(&body);
    let (_, task) = answer(post("/v1/tasks", json!({ "goal": HIS }))).await;
    let schedule = json!({ "action": "start", "goal": HIS, "interval_seconds": 3600 });
    assert_eq!(answer(post("/v1/schedules", schedule)).await.0, 201);
    let (_, promised) = answer(post("/v1/commitments", json!({ "title": HIS }))).await;
    let id = |from: &Value, name: &str| from[name].as_str().unwrap().to_owned();
    let (task, session, promised) =
        (id(&task, "task_id"), id(&task, "session_id"), id(&promised, "commitment_id"));
    while answer(world.get("/v1/questions")).await.1["questions"] == json!([]) {
        tokio::task::yield_now().await;
    }
    let lists = ["/", "/inbox", "/tasks", "/cost", "/schedules", "/commitments"];
    let more = ["/workflows", "/plans", "/skills", "/health", "/settings"];
    let tabs = ["timeline", "events", "changes", "outputs", "result"];
    let mut pages: Vec<String> = lists.iter().chain(&more).map(|&page| page.to_owned()).collect();
    pages.extend(tabs.iter().map(|tab| format!("/tasks/{task}/{tab}")));
    pages.extend([format!("/sessions/{session}"), format!("/commitments/{promised}")]);
    (world, pages)
}

/// Every page by everybody: an operator finds nothing of another's on any, a viewer no secret, and both no sum of all.
#[tokio::test(flavor = "multi_thread")]
async fn pages_show_nothing_of_others_and_no_secret() {
    let (mut world, pages) = world().await;
    let owner = world.token();
    for page in &pages {
        for (token, sees) in
            [("bob-token", true), ("vic-token", true), ("eve-token", false), (&owner, true)]
        {
            let (status, body) = answer(world.by(token, Method::GET, page)).await;
            let text = body.as_str().unwrap();
            assert!(!text.contains(SECRET), "{token} {page}");
            let is_his = page.matches('/').count() > 1;
            assert_eq!(status, if is_his && !sees { 404 } else { 200 }, "{token} {page}");
            assert!(sees || !text.contains(HIS), "{token} {page}: {text}");
        }
    }
    for page in ["/", "/inbox", "/tasks", "/cost", "/schedules", "/commitments"] {
        let (_, body) = answer(world.by("bob-token", Method::GET, page)).await;
        assert!(body.as_str().unwrap().contains(HIS), "{page}: {body}");
    }
    // The sums of the page are those that the API gives them.
    let sums = "of prompts from the cache";
    for (token, sees) in [("bob-token", false), ("eve-token", false), ("vic-token", true)] {
        let (_, body) = answer(world.by(token, Method::GET, "/cost")).await;
        assert_eq!(body.as_str().unwrap().contains(sums), sees, "{token}: {body}");
        let status = answer(world.by(token, Method::GET, "/v1/cost")).await.0;
        assert_eq!(status, if sees { 200 } else { 403 }, "{token}");
    }
    world.stop().await;
}

/// The last answers of an operator are their own, however many others have answered since.
#[tokio::test(flavor = "multi_thread")]
async fn answers_of_others_do_not_displace_own_ones() {
    let accounts = vec![account("bob", Access::Operator), account("eve", Access::Operator)];
    let script = "goal: unused\nreplies: [{ask_user: {question: which way?}}, {say: done}]";
    let mut world = World::with(Stage::set(script), Options { accounts, ..options() }).await;
    world.serve_tasks();
    for turn in 0..11 {
        let token = if turn == 0 { "bob-token" } else { "eve-token" };
        let post = |path: &str, body: Value| world.by(token, Method::POST, path).json(&body);
        assert_eq!(answer(post("/v1/tasks", json!({ "goal": "ask" }))).await.0, 201);
        let question = loop {
            let (_, list) = answer(world.by(token, Method::GET, "/v1/questions")).await;
            match list["questions"][0]["question_id"].as_str() {
                Some(id) => break id.to_owned(),
                None => tokio::task::yield_now().await,
            }
        };
        let said = if turn == 0 { "by the river" } else { "by the road" };
        let path = format!("/v1/questions/{question}/answer");
        assert_eq!(answer(post(&path, json!({ "answer": said }))).await.0, 202);
        while answer(world.get("/v1/tasks?live=true")).await.1["tasks"] != json!([]) {
            tokio::task::yield_now().await;
        }
    }
    let inbox = answer(world.by("bob-token", Method::GET, "/inbox")).await.1.to_string();
    assert!(inbox.contains("by the river") && !inbox.contains("by the road"), "{inbox}");
    let inbox = answer(world.get("/inbox")).await.1.to_string();
    assert_eq!(inbox.matches("by the road").count(), 10, "the last ten of everybody's: {inbox}");
    world.stop().await;
}
