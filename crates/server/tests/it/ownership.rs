//! What one operator's requests find of another's, and of the server's machine: nothing.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use windlass_core::id::SessionId;
use windlass_server::{Access, Options};
use windlass_testkit::Stage;

use crate::plans;
use crate::repeating::least;
use crate::world::{World, account, answer, options, problem};

/// A word that only what is bob's has.
const HIS: &str = "bobs-own";

const SCRIPT: &str = "
goal: unused
replies:
  - bash: seq 1 20000; echo bobs-own
  - ask_user: {question: bobs-own question?}
";

async fn world(script: &str) -> World {
    let accounts = vec![account("bob", Access::Operator), account("eve", Access::Operator)];
    World::with(Stage::set(script), Options { accounts, ..options() }).await
}

fn post(world: &World, user: &str, path: &str, body: &Value) -> RequestBuilder {
    world.by(&format!("{user}-token"), Method::POST, path).json(body)
}

fn text(value: &Value, name: &str) -> String {
    let text = value[name].as_str();
    text.unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}

/// A script is a file of the server's machine, and a file that is none is not shown by the reason.
#[tokio::test]
async fn only_an_admin_names_a_script_as_model() {
    let world = world("goal: unused\nreplies: [{say: done}]").await;
    let token = world.coordinator().storage().token_file();
    let model = format!("script:{}", token.display());
    let refused = (403, "not-allowed".to_owned());
    let (_, session) = answer(post(&world, "bob", "/v1/sessions", &json!({}))).await;
    let command = format!("/v1/sessions/{}/commands", text(&session, "session_id"));
    for (path, body) in [
        ("/v1/tasks", json!({ "goal": "x", "model": model })),
        ("/v1/tasks", json!({ "goal": "x", "model": format!(" {model}") })),
        ("/v1/workflows/runs", json!({ "workflow": "w", "directory": "/", "model": model })),
        ("/v1/parallel", json!({ "tasks": ["x"], "directory": "/", "model": model })),
        (
            "/v1/parallel/tries",
            json!({ "prompt": "x", "runners": ["windlass", "codex"], "directory": "/", "model": model }),
        ),
        (&command, json!({ "line": format!("/model {model}") })),
    ] {
        let (status, problem) = answer(post(&world, "bob", path, &body)).await;
        assert_eq!(status, 403, "{path}: {problem}");
        assert!(text(&problem, "detail").contains("script"), "{path}: {problem}");
        assert_eq!(self::problem(post(&world, "bob", path, &body)).await, refused, "{path}");
    }
    let own = json!({ "goal": "x", "model": model });
    assert_eq!(answer(world.post("/v1/tasks", &own)).await.0, 201, "an admin may");
}

/// Bob's things, by the names that the description has for their ids.
async fn his_things(world: &World, directory: &std::path::Path) -> Vec<(&'static str, String)> {
    let made = |path: String, body: Value| async move {
        let (status, made) = answer(post(world, "bob", &path, &body)).await;
        assert!((200..300).contains(&status), "{path}: {made}");
        made
    };
    let task = made("/v1/tasks".to_owned(), json!({ "goal": HIS })).await;
    let (task, session) = (text(&task, "task_id"), text(&task, "session_id"));
    let question = loop {
        let (_, open) = answer(world.get("/v1/questions")).await;
        match open["questions"].as_array().unwrap().first() {
            Some(question) => break text(question, "question_id"),
            None => tokio::task::yield_now().await,
        }
    };
    let (_, outputs) = answer(world.get(&format!("/v1/tasks/{task}/outputs"))).await;
    let schedule = json!({ "action": "start", "goal": HIS, "interval_seconds": 3600 });
    let schedule = made("/v1/schedules".to_owned(), schedule).await;
    let promised = made("/v1/commitments".to_owned(), json!({ "title": HIS })).await;
    let promised = text(&promised, "commitment_id");
    made(format!("/v1/commitments/{promised}/claim"), json!({})).await;
    let evidence = json!({ "type": "note", "content": HIS, "description": HIS });
    let evidence = made(format!("/v1/commitments/{promised}/evidence"), evidence).await;
    let place: SessionId = plans::session_of(world, "bob", directory).await;
    let plan = made("/v1/plans".to_owned(), json!({ "session_id": place })).await;
    let plan = text(&plan, "plan_id");
    let issue = json!({ "severity": "low", "description": HIS });
    let issue = made(format!("/v1/plans/{plan}/issues"), issue).await;
    let message = made(format!("/v1/sessions/{session}/queue"), json!({ "text": HIS })).await;
    vec![
        ("run_id", task.clone()),
        ("tree", task.clone()),
        ("parent", task.clone()),
        ("task_id", task),
        ("session", session.clone()),
        ("session_id", session),
        ("question_id", question),
        ("call_id", text(&outputs["outputs"][0], "call_id")),
        ("schedule_id", text(&schedule, "schedule_id")),
        ("commitment_id", promised),
        ("evidence_id", text(&evidence, "evidence_id")),
        ("plan_id", plan),
        ("issue_id", text(&issue, "id")),
        ("message_id", text(&message, "message_id")),
        ("hash", "0".repeat(64)),
    ]
}

/// Every id that a path, a query or a body of the description has, sent by somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn anothers_ids_lead_nowhere_on_any_route() {
    let mut world = world(SCRIPT).await;
    world.serve_tasks();
    let directory = tempfile::tempdir().unwrap();
    let things = his_things(&world, directory.path()).await;
    let (_, api) = answer(world.get("/openapi.json")).await;
    let mut checked = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let sent = Sent { api: &api, things: &things, path, operation };
            let send: Method = method.to_uppercase().parse().unwrap();
            let body = sent.body();
            let names_his = body.is_some() || sent.has_path_id();
            for address in sent.addresses(names_his) {
                let request = world.by("eve-token", send.clone(), &address);
                let request = match body.clone().or(sent.least_body()) {
                    Some(body) => request.json(&body),
                    None => request,
                };
                let (status, seen) = answer(request).await;
                assert!(!seen.to_string().contains(HIS), "{method} {address}: {seen}");
                let is_empty = !names_his && status == 200;
                assert!(status == 404 || is_empty, "{method} {address} {body:?}: {status} {seen}");
                checked += 1;
            }
        }
    }
    assert!(checked > 55, "{checked}");
    world.stop().await;
}

/// An operation of the description, and what is to be sent to it.
struct Sent<'a> {
    api: &'a Value,
    things: &'a [(&'static str, String)],
    path: &'a str,
    operation: &'a Value,
}

impl Sent<'_> {
    fn id(&self, name: &str) -> Option<&str> {
        self.things.iter().find(|(known, _)| *known == name).map(|(_, id)| id.as_str())
    }

    fn has_path_id(&self) -> bool {
        self.path.contains('{') && !self.path.contains("{number}")
    }

    fn schema(&self) -> &Value {
        &self.operation["requestBody"]["content"]["application/json"]["schema"]
    }

    fn least_body(&self) -> Option<Value> {
        (!self.schema().is_null()).then(|| least(self.api, self.schema()))
    }

    /// A body with bob's ids; `None` where it has no place for one.
    fn body(&self) -> Option<Value> {
        let fields = ["task_id", "session_id"];
        let taken: Vec<_> =
            fields.into_iter().filter(|name| has_field(self.api, self.schema(), name)).collect();
        let mut body = self.least_body().filter(|_| !taken.is_empty())?;
        for name in taken {
            body[name] = json!(self.id(name).unwrap());
        }
        Some(body)
    }

    /// Where it is sent: once for each of bob's ids that the query has a place for, or once.
    fn addresses(&self, names_his: bool) -> Vec<String> {
        let mut path = self.path.to_owned();
        for (name, id) in self.things {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        assert!(!path.replace("{number}", "").contains('{'), "give this test a value for {path}");
        let parameters = self.operation["parameters"].as_array().into_iter().flatten();
        let query: Vec<_> = parameters.filter(|one| one["in"] == "query").collect();
        let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
        let needed = query.iter().filter(|one| one["required"] == true);
        let needed: Vec<_> = needed.map(|one| format!("{}={HIS}", name(one))).collect();
        let ids = query.iter().filter_map(|one| Some((name(one), self.id(&name(one))?)));
        let mut all: Vec<_> =
            ids.map(|(name, id)| format!("{path}?{}&{name}={id}", needed.join("&"))).collect();
        if names_his && all.is_empty() {
            all.push(format!("{path}?{}", needed.join("&")));
        }
        all
    }
}

/// Whether a body may have a field.
fn has_field(api: &Value, schema: &Value, field: &str) -> bool {
    let target = schema["$ref"].as_str().and_then(|name| api.pointer(name.trim_start_matches('#')));
    let parts = schema["allOf"].as_array().into_iter().flatten();
    schema["properties"].get(field).is_some()
        || target.is_some_and(|target| has_field(api, target, field))
        || parts.into_iter().any(|part| has_field(api, part, field))
}

/// A draft is for a session or a task that its writer may see.
#[tokio::test]
async fn drafts_are_kept_for_own_sessions_and_tasks() {
    let world = world("goal: unused\nreplies: [{say: done}]").await;
    let (_, task) = answer(post(&world, "bob", "/v1/tasks", &json!({ "goal": HIS }))).await;
    let (task, session) = (text(&task, "task_id"), text(&task, "session_id"));
    for purpose in [session.clone(), format!("panel-{session}"), format!("review-{task}")] {
        let keep = |user: &str| {
            let path = format!("/drafts/{purpose}");
            let request = world.by(&format!("{user}-token"), Method::PUT, &path);
            request.json(&json!({ "text": "half a sentence" }))
        };
        assert_eq!(answer(keep("bob")).await.0, 204, "{purpose}");
        assert_eq!(problem(keep("eve")).await.0, 404, "{purpose}");
    }
}

/// A cursor names a place in a list, and so a thing in it.
#[tokio::test]
async fn pages_of_lists_and_their_cursors_name_only_own_things() {
    let world = world("goal: unused\nreplies: [{say: done}]").await;
    let begin = |user: &'static str| {
        let world = &world;
        async move { text(&answer(post(world, user, "/v1/sessions", &json!({}))).await.1, "session_id") }
    };
    let mut own = vec![begin("bob").await, begin("bob").await];
    for _ in 0..3 {
        begin("eve").await;
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/sessions?limit=1".to_owned());
    loop {
        let (_, page) = answer(world.by("bob-token", Method::GET, &path)).await;
        let listed = page["sessions"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "{page}");
        seen.push(text(&listed[0], "session_id"));
        let Some(next) = page["next"].as_str() else { break };
        assert!(own.iter().any(|id| next.contains(id)), "{page}");
        path = format!("/v1/sessions?limit=1&cursor={next}");
    }
    own.sort();
    seen.sort();
    assert_eq!(seen, own);
}

/// Each entry of a list that is long comes once, page by page, and another user's in none.
#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_continued_by_their_cursors() {
    let mut world = world(
        "goal: unused\nreplies: [{bash: echo 1}, {bash: echo 2}, {bash: echo 3}, {say: done}]",
    )
    .await;
    world.serve_tasks();
    for user in ["bob", "eve", "bob", "eve", "bob"] {
        let schedule = json!({ "action": "start", "goal": user, "interval_seconds": 3600 });
        assert_eq!(answer(post(&world, user, "/v1/schedules", &schedule)).await.0, 201);
        assert_eq!(
            answer(post(&world, user, "/v1/commitments", &json!({ "title": user }))).await.0,
            201
        );
    }
    let (_, task) = answer(post(&world, "bob", "/v1/tasks", &json!({ "goal": "count" }))).await;
    let task = text(&task, "task_id");
    while answer(world.get(&format!("/v1/tasks/{task}"))).await.1["status"] != "done" {
        tokio::task::yield_now().await;
    }
    for (path, list, id) in [
        ("/v1/schedules".to_owned(), "schedules", "schedule_id"),
        ("/v1/commitments".to_owned(), "commitments", "commitment_id"),
        (format!("/v1/tasks/{task}/outputs"), "outputs", "call_id"),
    ] {
        let get =
            |query: String| answer(world.by("bob-token", Method::GET, &format!("{path}?{query}")));
        let ids = |page: &Value| -> Vec<String> {
            page[list].as_array().unwrap().iter().map(|one| text(one, id)).collect()
        };
        let whole = ids(&get(String::new()).await.1);
        assert_eq!(whole.len(), 3, "{path}");
        let (_, first) = get("limit=2".to_owned()).await;
        let next = text(&first, "next");
        let (_, last) = get(format!("limit=2&cursor={next}")).await;
        assert_eq!([ids(&first), ids(&last)].concat(), whole, "{path}");
        assert_eq!(last["next"], Value::Null, "{path}");
        assert_eq!(get("limit=0".to_owned()).await.0, 400, "{path}");
        assert_eq!(get("cursor=x".to_owned()).await.0, 400, "{path}");
    }
    world.stop().await;
}

/// ES-019: what an operator adds is read by the tasks of that operator, so it names a task of theirs.
#[tokio::test]
async fn a_memory_of_an_operator_names_a_task_of_theirs() {
    let world = world("goal: unused\nreplies: [{say: done}]").await;
    let start = |user| {
        let world = &world;
        async move {
            text(
                &answer(post(world, user, "/v1/tasks", &json!({ "goal": "x" }))).await.1,
                "task_id",
            )
        }
    };
    let (bobs, eves) = (start("bob").await, start("eve").await);
    let add = |task: Option<&str>| {
        post(&world, "bob", "/v1/context", &json!({ "text": "trust nobody", "task_id": task }))
    };
    assert_eq!(problem(add(None)).await, (422, "bad-fields".to_owned()));
    assert_eq!(problem(add(Some(&eves))).await, (404, "unknown-task".to_owned()));
    assert_eq!(answer(add(Some(&bobs))).await.0, 201);
    let everybodys = json!({ "text": "the office is closed on Friday" });
    assert_eq!(answer(world.post("/v1/context", &everybodys)).await.0, 201);
    // What is another's takes no place of what is one's own.
    for _ in 0..3 {
        let of_eve = json!({ "text": "trust nobody, trust nobody", "task_id": eves });
        assert_eq!(answer(post(&world, "eve", "/v1/context", &of_eve)).await.0, 201);
    }
    let found = |query: &str| {
        let path = format!("/v1/context?query={query}&limit=1");
        answer(world.by("bob-token", Method::GET, &path))
    };
    let texts = async |query| found(query).await.1["memories"][0]["text"].clone();
    assert_eq!(texts("trust").await, "trust nobody");
    assert_eq!(texts("office").await, everybodys["text"]);
}
