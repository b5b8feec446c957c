//! What pages say, as the server draws them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_server::{About, Options, Setting};
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

/// A default says in words what holds; what a person has set is shown as it is.
#[tokio::test]
async fn code_in_the_default_of_a_setting_is_shown_as_code() {
    let setting = |value: &str, source: &str| Setting {
        key: "models.fast".to_owned(),
        value: value.to_owned(),
        source: source.to_owned(),
    };
    let settings = [setting("as `models.smart`", "default"), setting("a`b`c", "user")];
    let about = About { settings: settings.into(), ..options().about };
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let world = World::with(stage, Options { about, ..options() }).await;
    let drawn = page(&world, "/settings").await;
    assert!(drawn.contains("as <code>models.smart</code>"), "{drawn}");
    assert!(drawn.contains(">a`b`c<"), "{drawn}");
}

/// A policy by its directives, each with its sources.
fn directives(policy: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    policy
        .split(';')
        .filter_map(|one| {
            let mut words = one.split_whitespace();
            Some((words.next()?, words.filter(|source| *source != "'none'").collect()))
        })
        .collect()
}

/// What the documentation says a page may do; no page has an exception.
#[tokio::test(flavor = "multi_thread")]
async fn every_page_has_the_documented_policy() {
    let documented = include_str!("../../../../docs/web.md");
    let policy = documented.split("Browsers enforce this policy:").nth(1).unwrap();
    let policy = directives(policy.split("```").nth(1).unwrap());
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await;
    world.serve_tasks();
    let (_, made) = answer(world.post("/v1/tasks", &json!({ "goal": "say it" }))).await;
    let (task, session) = (text(&made, "task_id"), text(&made, "session_id"));
    let lists = ["/", "/inbox", "/tasks", "/schedules", "/workflows", "/plans", "/commitments"];
    let more = ["/skills", "/cost", "/health", "/settings", "/login", "/nothing"];
    let mut paths: Vec<String> = lists.iter().chain(&more).map(|&path| path.to_owned()).collect();
    paths.push(format!("/sessions/{session}"));
    let tabs = ["timeline", "events", "changes", "outputs", "result"];
    paths.extend(tabs.iter().map(|tab| format!("/tasks/{task}/{tab}")));
    for path in paths {
        let response = world.get(&path).header("accept", "text/html").send().await.unwrap();
        let media = response.headers()["content-type"].to_str().unwrap();
        assert!(media.starts_with("text/html"), "{path}: {media}");
        let policies: Vec<_> =
            response.headers().get_all("content-security-policy").iter().collect();
        let [sent] = policies.as_slice() else { panic!("{path}: {policies:?}") };
        let sent = directives(sent.to_str().unwrap());
        for (name, sources) in &policy {
            // The login page may do less.
            let is_strict = sent.get(name).is_some_and(|sent| sent.is_subset(sources));
            assert!(is_strict, "{path}: {name}: {sent:?}");
        }
        assert_eq!(sent.len(), policy.len(), "{path}: {sent:?}");
    }
    world.stop().await;
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

/// An address that leads to nothing does not look as if nothing waited.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_nothing_counts_the_open_questions_too() {
    let script = "goal: unused\nreplies: [{ask_user: {question: 'go on?'}}]";
    let mut world = World::with(Stage::set(script), options()).await;
    world.serve_tasks();
    world.submit("ask").await;
    while answer(world.get("/v1/questions")).await.1["questions"] == json!([]) {
        tokio::task::yield_now().await;
    }
    for path in ["/nothing", "/tasks/task_01M7V3RN0TFMTTPN4DG665QTNB", "/workflows/x"] {
        let asked = world.get(path).header("accept", "text/html");
        let (status, drawn) = answer(asked).await;
        let drawn = drawn.as_str().unwrap();
        assert!(status == 404 && drawn.contains("data-count=\"1\""), "{path}: {drawn}");
        assert!(drawn.contains("<title>Not found"), "{path}: {drawn}");
    }
    world.stop().await;
}
