//! Sessions over HTTP: begun, spoken to, steered by the same commands as everywhere.

use reqwest::Method;
use serde_json::{Value, json};
use windlass_coordinator::slash::TABLE;
use windlass_testkit::Stage;

use crate::world::{World, answer, options, problem};

/// MS-175: the commands are those of every other surface.
#[tokio::test]
async fn the_commands_are_those_of_every_surface() {
    let world = World::new().await;
    let (_, list) = answer(world.get("/v1/commands")).await;
    let names: Vec<_> =
        list["commands"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    let table: Vec<_> = TABLE.iter().map(|command| json!(command.name)).collect();
    assert_eq!(names, table.iter().collect::<Vec<_>>());
}

/// MS-009, MS-174: the surface is that of the entry, and no product is a root of commands.
#[tokio::test]
async fn a_session_begins_careful_and_its_axes_change() {
    let world = World::new().await;
    let begin = || world.post("/v1/sessions", &json!({})).header("idempotency-key", "s1");
    let (status, session) = answer(begin()).await;
    assert_eq!(status, 201, "{session}");
    assert_eq!(answer(begin()).await.1["session_id"], session["session_id"]);
    let axes = |view: &Value| {
        let axes = &view["axes"];
        ["workMode", "runControl", "permissionProfile", "modelMode", "surface"]
            .map(|axis| axes[axis].as_str().unwrap().to_owned())
    };
    assert_eq!(axes(&session), ["chat", "manual", "normal", "smart", "rpc"]);
    let path = format!("/v1/sessions/{}", session["session_id"].as_str().unwrap());
    let wish = json!({ "axes": { "workMode": "build" }, "reason": "time to build" });
    let patch = world.by(&world.token(), Method::PATCH, &format!("{path}/axes")).json(&wish);
    let (status, changed) = answer(patch).await;
    assert_eq!((status, &changed["to"]["workMode"]), (200, &json!("build")), "{changed}");
    let run = |line: &str| world.post(&format!("{path}/commands"), &json!({ "line": line }));
    let (status, reply) = answer(run("/control autonomous")).await;
    assert_eq!((status, &reply["command"]), (200, &json!("control")), "{reply}");
    let (_, now) = answer(world.get(&path)).await;
    assert_eq!(axes(&now), ["build", "autonomous", "normal", "smart", "rpc"]);
    // What is wrong changes nothing and says what is allowed.
    for prefix in ["/sf", "/windlass mode chat"] {
        assert_eq!(problem(run(prefix)).await, (404, "unknown-command".to_owned()));
    }
    assert_eq!(problem(run("/mode dance")).await.0, 422);
    let dance = json!({ "axes": { "workMode": "dance" } });
    let patch = world.by(&world.token(), Method::PATCH, &format!("{path}/axes")).json(&dance);
    assert_eq!(problem(patch).await, (422, "bad-fields".to_owned()));
    assert_eq!(axes(&answer(world.get(&path)).await.1), axes(&now));
    let nobodys = format!("/v1/sessions/{}x", session["session_id"].as_str().unwrap());
    assert_eq!(problem(world.get(&nobodys)).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_begins_a_conversation_and_the_next_continues_it() {
    let script = "goal: unused\nreplies: [{say: hello}, {say: again}]";
    let mut world = World::with(Stage::set(script), options()).await;
    world.serve_tasks();
    let (_, session) = answer(world.post("/v1/sessions", &json!({}))).await;
    let path = format!("/v1/sessions/{}", session["session_id"].as_str().unwrap());
    let say = |text: &str| world.post(&format!("{path}/messages"), &json!({ "text": text }));
    let (status, first) = answer(say("hi")).await;
    assert_eq!((status, &first["outcome"]), (202, &json!("begun")), "{first}");
    let task = first["task_id"].as_str().unwrap().to_owned();
    let waits = || async {
        let (_, view) = answer(world.get(&format!("/v1/tasks/{task}"))).await;
        view["status_reason"] == "awaiting_message"
    };
    while !waits().await {
        tokio::task::yield_now().await;
    }
    let (_, second) = answer(say("and now?")).await;
    assert_eq!(
        (&second["outcome"], second["task_id"].as_str()),
        (&json!("delivered"), Some(&*task))
    );
    world.stop().await;
}

/// Sessions are listed page by page, each once.
#[tokio::test]
async fn sessions_are_listed_page_by_page() {
    let world = World::new().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        let (_, session) = answer(world.post("/v1/sessions", &json!({}))).await;
        made.push(session["session_id"].as_str().unwrap().to_owned());
    }
    made.reverse();
    let (mut seen, mut path) = (Vec::new(), "/v1/sessions?limit=2".to_owned());
    loop {
        let (status, page) = answer(world.get(&path)).await;
        assert_eq!(status, 200, "{page}");
        let entries = page["sessions"].as_array().unwrap();
        assert!(entries.len() <= 2, "{page}");
        seen.extend(entries.iter().map(|one| one["session_id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/sessions?limit=2&cursor={next}"),
            None => break,
        }
    }
    seen.sort();
    made.sort();
    assert_eq!(seen, made);
    assert_eq!(problem(world.get("/v1/sessions?cursor=x")).await, (400, "bad-request".to_owned()));
}

/// A message that waits is changed, moved and removed; one that was sent can no longer be.
#[tokio::test]
async fn a_queue_is_changed_until_its_messages_are_sent() {
    let world = World::new().await;
    let task = world.submit("work").await;
    let (_, view) = answer(world.get(&format!("/v1/tasks/{task}"))).await;
    let path = format!("/v1/sessions/{}/queue", view["session_id"].as_str().unwrap());
    let add =
        |text: &str| world.post(&path, &json!({ "text": text })).header("idempotency-key", text);
    let mut ids = Vec::new();
    for text in ["one", "two", "three", "three"] {
        let (status, queued) = answer(add(text)).await;
        assert_eq!(status, 201, "{queued}");
        ids.push(queued["message_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids[2], ids[3], "a repeated request queues nothing");
    let by = |method: Method, id: &str| world.by(&world.token(), method, &format!("{path}/{id}"));
    let moved = by(Method::PATCH, &ids[2]).json(&json!({ "place": 1, "text": "3" }));
    assert_eq!(answer(moved).await.0, 200);
    assert_eq!(by(Method::DELETE, &ids[0]).send().await.unwrap().status(), 204);
    let gone = by(Method::DELETE, &ids[0]);
    assert_eq!(problem(gone).await, (409, "message-gone".to_owned()));
    let (_, queue) = answer(world.get(&path)).await;
    let texts = queue["messages"].as_array().unwrap().iter().map(|one| one["text"].as_str());
    assert_eq!(texts.collect::<Vec<_>>(), [Some("3"), Some("two")]);
    let (status, sent) = answer(world.post(&format!("{path}/{}/send", ids[1]), &json!({}))).await;
    assert_eq!((status, &sent["outcome"]), (202, &json!("delivered")), "{sent}");
    let late = by(Method::PATCH, &ids[1]).json(&json!({ "text": "too late" }));
    assert_eq!(problem(late).await, (409, "message-gone".to_owned()));
    assert_eq!(problem(world.post(&path, &json!({ "text": " " }))).await.0, 422);
}

/// The same key again has no further effect, whatever the request is.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_has_no_further_effect() {
    let mut world = World::new().await;
    world.serve_tasks();
    let task = world.submit("work").await;
    let is_done =
        || async { answer(world.get(&format!("/v1/tasks/{task}"))).await.1["status"] == "done" };
    while !is_done().await {
        tokio::task::yield_now().await;
    }
    let twice = |path: String, body: Value, id: &'static str| {
        let world = &world;
        async move {
            let send = || world.post(&path, &body).header("idempotency-key", format!("k{path}"));
            let (status, first) = answer(send()).await;
            assert!((200..300).contains(&status), "{path}: {first}");
            let (_, second) = answer(send()).await;
            assert_eq!(first[id], second[id], "{path}");
            assert!(!first[id].is_null(), "{path}: {first}");
            let other = json!({ "text": "another", "goal": "another" });
            let other = world.post(&path, &other).header("idempotency-key", format!("k{path}"));
            assert_eq!(problem(other).await.0, 422, "{path}");
        }
    };
    let follow_up = format!("/v1/tasks/{task}/follow-ups");
    twice(follow_up, json!({ "text": "more" }), "task_id").await;
    let schedule = json!({ "action": "start", "goal": "look", "interval_seconds": 3600 });
    twice("/v1/schedules".to_owned(), schedule, "schedule_id").await;
    twice("/v1/context".to_owned(), json!({ "text": "the sky is blue" }), "id").await;
    let (_, list) = answer(world.get("/v1/schedules")).await;
    assert_eq!(list["schedules"].as_array().unwrap().len(), 1, "{list}");
    world.stop().await;
}

/// What the agent has made is there for the next message, whether a person chose the directory or not.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_message_of_a_session_is_worked_on_in_the_same_directory() {
    let script = "
goal: unused
replies:
  - write: {path: made.txt, content: once}
  - say: made it
  - bash: cat made.txt
  - say: read it
  - bash: cat made.txt
  - say: read it again
match:
  - when: afresh
    bash: cat made.txt
";
    let chosen = tempfile::tempdir().unwrap();
    for workspace in [json!(chosen.path().canonicalize().unwrap()), Value::Null] {
        let mut world = World::with(Stage::set(script), options()).await;
        world.serve_tasks();
        let ended = async |task: &Value| {
            let path = format!("/v1/tasks/{}", task["task_id"].as_str().unwrap());
            loop {
                let (_, view) = answer(world.get(&path)).await;
                if let Some("done" | "failed") = view["status"].as_str() {
                    return view;
                }
                tokio::task::yield_now().await;
            }
        };
        let goal = json!({ "goal": "make it", "workspace": workspace });
        let (_, made) = answer(world.post("/v1/tasks", &goal)).await;
        let first = ended(&made).await;
        assert!(workspace.is_null() || first["workspace"] == workspace, "{first}");
        let session = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap());
        for text in ["read it", "and again"] {
            let say = world.post(&format!("{session}/messages"), &json!({ "text": text }));
            let next = ended(&answer(say).await.1).await;
            assert_eq!(next["workspace"], first["workspace"], "{text}");
            assert_eq!(next["status"], "done", "{text}: {next}");
        }
        // Files stay when a conversation is ended.
        answer(world.post(&format!("{session}/clear"), &json!({}))).await;
        let say = world.post(&format!("{session}/messages"), &json!({ "text": "afresh" }));
        assert_eq!(ended(&answer(say).await.1).await["workspace"], first["workspace"]);
        world.stop().await;
    }
}
