//! Requests that are sent twice, as a client does whose connection broke before the answer came.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use windlass_core::id::{
    CommitmentId, InjectionId, IssueId, PlanId, QuestionId, ScheduleId, SessionId, TaskId,
};

use windlass_testkit::Stage;

use crate::plans;
use crate::world::{World, answer, options, problem};

/// Signing in and out: a link works once by design, and what it signs in with is kept nowhere to be answered again.
/// Rendering changes nothing.
const WITHOUT_KEY: [&str; 4] =
    ["/v1/login", "/v1/logout", "/v1/login-links", "/v1/workflows/render"];

/// Every change that the description has takes a key, and refuses one that stands for another request.
#[tokio::test]
async fn every_change_knows_the_key_of_its_sender() {
    let world = World::new().await;
    let taken = world.post("/v1/context", &json!({ "text": "the sky is blue" }));
    assert_eq!(answer(taken.header("idempotency-key", "taken")).await.0, 201);
    let (_, session) = answer(world.post("/v1/sessions", &json!({}))).await;
    let session = session["session_id"].as_str().unwrap();
    let (_, api) = answer(world.get("/openapi.json")).await;
    let mut changes = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if method == "get" || WITHOUT_KEY.contains(&path.as_str()) {
                continue;
            }
            let parameters = operation["parameters"].as_array();
            let is_named = |one: &Value| one["name"] == "idempotency-key" && one["in"] == "header";
            let is_documented = parameters.is_some_and(|all| all.iter().any(is_named));
            assert!(is_documented, "{method} {path} does not describe its key");
            let address = concrete(path, session, &world);
            let sent: Method = method.to_uppercase().parse().unwrap();
            let request = world.by(&world.token(), sent, &address);
            let request = request.header("idempotency-key", "taken");
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let request = match schema {
                Value::Null => request,
                schema => request.json(&least(&api, schema)),
            };
            let refused = problem(request).await;
            assert_eq!(refused, (422, "key-reused".to_owned()), "{method} {path}");
            changes += 1;
        }
    }
    assert!(changes > 35, "{changes}");
}

/// The path of an operation, with ids that could be.
fn concrete(path: &str, session: &str, world: &World) -> String {
    let now = world.coordinator().now();
    let part = |part: &str| match part {
        "{session_id}" => session.to_owned(),
        "{task_id}" => TaskId::new(now).to_string(),
        "{plan_id}" => PlanId::new(now).to_string(),
        "{issue_id}" => IssueId::new(now).to_string(),
        "{message_id}" => InjectionId::new(now).to_string(),
        "{question_id}" => QuestionId::new(now).to_string(),
        "{schedule_id}" => ScheduleId::new(now).to_string(),
        "{commitment_id}" => CommitmentId::new(now).to_string(),
        "{number}" => "1".to_owned(),
        other => {
            assert!(!other.starts_with('{'), "give this test a value for `{other}` of {path}");
            other.to_owned()
        }
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The least that a schema of the description allows.
pub fn least(api: &Value, schema: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return least(api, api.pointer(name.trim_start_matches('#')).unwrap());
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let fields = parts.iter().map(|part| least(api, part));
        let fields = fields.filter_map(|part| part.as_object().cloned()).flatten();
        return Value::Object(fields.collect());
    }
    if let Some(first) = schema["oneOf"].as_array().and_then(|all| all.last()) {
        return least(api, first);
    }
    if let Some(word) = schema["enum"].as_array().and_then(|all| all.first()) {
        return word.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!("x"),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("array") if schema["minItems"].as_u64().unwrap_or(0) > 0 => {
            json!([least(api, &schema["items"])])
        }
        Some("array") => json!([]),
        _ => {
            let needed = schema["required"].as_array().into_iter().flatten();
            let needed = needed.filter_map(Value::as_str);
            let field = |name: &str| (name.to_owned(), least(api, &schema["properties"][name]));
            Value::Object(needed.map(field).collect())
        }
    }
}

/// Sends a request twice with one key; both answers are the same, and the request is a good one.
async fn twice(key: &str, request: impl Fn() -> RequestBuilder) -> Value {
    let send = || request().header("idempotency-key", key);
    let (status, first) = answer(send()).await;
    assert!((200..300).contains(&status), "{key}: {first}");
    assert_eq!(answer(send()).await, (status, first.clone()), "{key}");
    first
}

/// What has no id of the sender's is answered again as it was, though the thing has moved on since.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_change_is_answered_as_the_first_was() {
    let world = World::new().await;
    let post = |path: &str, body: Value| world.post(path, &body);
    let delete = |path: &str| world.by(&world.token(), Method::DELETE, path);

    let schedule = json!({ "action": "start", "goal": "look", "interval_seconds": 3600 });
    let (_, schedule) = answer(post("/v1/schedules", schedule)).await;
    let schedule = format!("/v1/schedules/{}", schedule["schedule_id"].as_str().unwrap());
    let change = |verb: &str| post(&format!("{schedule}/{verb}"), json!({}));
    let paused = twice("pause", || change("pause")).await;
    twice("resume", || change("resume")).await;
    assert_eq!(answer(change("pause").header("idempotency-key", "pause")).await, (200, paused));
    assert_ne!(
        answer(world.get(&schedule)).await.1["state"],
        "paused",
        "a repetition does nothing"
    );
    twice("remove", || delete(&schedule)).await;

    let (_, promised) = answer(post("/v1/commitments", json!({ "title": "use JWT" }))).await;
    let promised = format!("/v1/commitments/{}", promised["commitment_id"].as_str().unwrap());
    for verb in ["claim", "release"] {
        twice(verb, || post(&format!("{promised}/{verb}"), json!({ "reason": "so" }))).await;
    }

    let task = world.submit("work").await;
    let (_, view) = answer(world.get(&format!("/v1/tasks/{task}"))).await;
    let queue = format!("/v1/sessions/{}/queue", view["session_id"].as_str().unwrap());
    for (key, method, place, body) in [
        ("send", Method::POST, "/send", json!({})),
        ("edit", Method::PATCH, "", json!({ "text": "changed" })),
        ("drop", Method::DELETE, "", Value::Null),
    ] {
        let (_, queued) = answer(post(&queue, json!({ "text": key }))).await;
        let path = format!("{queue}/{}{place}", queued["message_id"].as_str().unwrap());
        let change = || world.by(&world.token(), method.clone(), &path);
        twice(key, || if body.is_null() { change() } else { change().json(&body) }).await;
    }
}

/// A client that gives up waiting and asks again has two requests under way.
#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_time_have_one_effect_and_one_answer() {
    let world = World::new().await;
    let (_, promised) = answer(world.post("/v1/commitments", &json!({ "title": "once" }))).await;
    let claim = format!("/v1/commitments/{}/claim", promised["commitment_id"].as_str().unwrap());
    let send = || answer(world.post(&claim, &json!({})).header("idempotency-key", "claim"));
    let answers = futures_util::future::join_all((0..16).map(|_| send())).await;
    assert_eq!(answers[0].0, 200, "{}", answers[0].1);
    assert!(answers.iter().all(|one| *one == answers[0]), "{answers:?}");
}

/// Plan activation and snapshots among them.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_changes_of_a_plan_are_answered_as_the_first() {
    let world = World::new().await;
    let directory = tempfile::tempdir().unwrap();
    let session: SessionId = plans::session_with_plan(&world, directory.path()).await;
    let post = |path: &str, body: Value| world.post(path, &body);
    let wanted = json!({ "session_id": session });
    let made = twice("activate", || post("/v1/plans", wanted.clone())).await;
    let plan = format!("/v1/plans/{}", made["plan_id"].as_str().unwrap());
    let left = json!({ "task": "t01", "failingTests": [], "techDebt": [], "openDecisions": [], "nextTaskIntent": "go" });
    twice("snapshot", || post(&format!("{plan}/snapshot"), left.clone())).await;
    // What somebody saved since is not saved over.
    let later = json!({ "task": "t01", "failingTests": [], "techDebt": [], "openDecisions": [], "nextTaskIntent": "later" });
    assert_eq!(answer(post(&format!("{plan}/snapshot"), later)).await.0, 201);
    let again = post(&format!("{plan}/snapshot"), left).header("idempotency-key", "snapshot");
    assert_eq!(answer(again).await.1["nextTaskIntent"], "go");
    let (_, kept) = answer(world.get(&format!("{plan}/snapshot?task=t02"))).await;
    assert_eq!(kept["nextTaskIntent"], "later");

    let issue = json!({ "severity": "high", "description": "typecheck fails" });
    let (_, issue) = answer(post(&format!("{plan}/issues"), issue)).await;
    let resolve = format!("/v1/issues/{}/resolve", issue["id"].as_str().unwrap());
    twice("resolve", || post(&resolve, json!({ "resolution": "fixed" }))).await;
    twice("run", || post(&format!("{plan}/run"), json!({}))).await;
}

/// A slash command has its effect once: what was begun since then is not ended, chosen or rated again.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_slash_command_changes_nothing_more() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: hello}, {say: again}]"), options())
            .await;
    world.serve_tasks();
    let (_, session) = answer(world.post("/v1/sessions", &json!({}))).await;
    let path = format!("/v1/sessions/{}", session["session_id"].as_str().unwrap());
    let run = |line: &str| world.post(&format!("{path}/commands"), &json!({ "line": line }));
    let talk = |text: &'static str| {
        let (world, path) = (&world, &path);
        async move {
            let said = world.post(&format!("{path}/messages"), &json!({ "text": text }));
            let task = answer(said).await.1["task_id"].as_str().unwrap().to_owned();
            let waits = || async {
                let (_, view) = answer(world.get(&format!("/v1/tasks/{task}"))).await;
                view["status_reason"] == "awaiting_message"
            };
            while !waits().await {
                tokio::task::yield_now().await;
            }
            task
        }
    };
    let conversation = || async { answer(world.get(&path)).await.1["conversation"].clone() };
    talk("hi").await;
    let mode = twice("mode", || run("/mode plan")).await;
    twice("model", || run("/model default")).await;
    twice("rate", || run("/rate 4 good")).await;
    let cleared = twice("clear", || run("/clear")).await;
    let second = talk("hi again").await;
    for (key, line, first) in [("clear", "/clear", &cleared), ("mode", "/mode plan", &mode)] {
        let again = answer(run(line).header("idempotency-key", key)).await;
        assert_eq!(again, (200, first.clone()), "{line}");
    }
    assert_eq!(conversation().await, json!(second), "the second conversation continues");
    let stopped = twice("stop", || run("/stop")).await;
    let third = talk("once more").await;
    assert_eq!(answer(run("/stop").header("idempotency-key", "stop")).await, (200, stopped));
    assert_eq!(conversation().await, json!(third), "what began since is not stopped");
    world.stop().await;
}
