//! Tasks over HTTP: handed in, repeated, listed, steered.

use reqwest::Method;
use serde_json::{Value, json};
use windlass_testkit::Stage;

use crate::world::{World, answer, options, problem};

#[tokio::test]
async fn a_repeated_request_starts_nothing() {
    let world = World::new().await;
    let post = |goal: &str| {
        world.post("/v1/tasks", &json!({ "goal": goal })).header("idempotency-key", "k1")
    };
    let (status, first) = answer(post("once")).await;
    assert_eq!((status, &first["new"]), (201, &json!(true)));
    let (status, second) = answer(post("once")).await;
    assert_eq!((status, &second["new"]), (200, &json!(false)));
    assert_eq!(first["task_id"], second["task_id"]);
    assert_eq!(problem(post("other")).await, (422, "key-reused".to_owned()));
    for bad in [String::new(), "k".repeat(201)] {
        let odd = world.post("/v1/tasks", &json!({ "goal": "x" })).header("idempotency-key", bad);
        assert_eq!(problem(odd).await.0, 400);
    }
    let (_, all) = answer(world.get("/v1/tasks")).await;
    assert_eq!(all["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let world = World::new().await;
    let (_, first) = answer(world.post("/v1/tasks", &json!({ "goal": "goal 0" }))).await;
    let mut made = vec![first["task_id"].clone()];
    for number in 1..7 {
        let goal = json!({ "goal": format!("goal {number}"), "session_id": first["session_id"] });
        made.push(answer(world.post("/v1/tasks", &goal)).await.1["task_id"].clone());
    }
    let mut path = "/v1/tasks?limit=3".to_owned();
    let mut pages: Vec<Vec<Value>> = Vec::new();
    loop {
        let (_, page) = answer(world.get(&path)).await;
        let tasks = page["tasks"].as_array().unwrap();
        pages.push(tasks.iter().map(|task| task["task_id"].clone()).collect());
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/tasks?limit=3&cursor={next}");
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    made.sort_by_key(ToString::to_string);
    let mut listed = pages.concat();
    listed.sort_by_key(ToString::to_string);
    assert_eq!(listed, made);
    let (_, found) = answer(world.get("/v1/tasks?q=GOAL%205&status=todo,running&live=true")).await;
    assert_eq!(found["tasks"].as_array().unwrap().len(), 1, "{found}");
}

#[tokio::test]
async fn an_unchanged_task_is_not_sent_again() {
    let world = World::new().await;
    let task = world.submit("look").await;
    let path = format!("/v1/tasks/{task}");
    let response = world.get(&path).send().await.unwrap();
    let tag = response.headers()["etag"].clone();
    // The compressed answer has the same tag, so it is a weak one.
    let text = tag.to_str().unwrap();
    let mark = text.strip_prefix("W/").unwrap();
    for known in [text, mark, "*", &format!("\"other\", {text}")] {
        let request = world.get(&path).header("if-none-match", known);
        assert_eq!(request.send().await.unwrap().status(), 304, "{known}");
    }
    let again = world.get(&path).header("if-none-match", &tag).send().await.unwrap();
    assert_eq!(again.status(), 304);
    assert_eq!(answer(world.post(&format!("{path}/cancel"), &json!(null))).await.0, 202);
    let changed = world.get(&path).header("if-none-match", &tag);
    let (status, body) = answer(changed).await;
    assert_eq!((status, &body["status"]), (200, &json!("cancelled")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_once_and_the_task_continues() {
    let script = "goal: unused\nreplies: [{ask_user: {question: which?, options: [left, right]}}, {say: done}]";
    let mut world = World::with(Stage::set(script), options()).await;
    world.serve_tasks();
    let task = world.submit("choose").await;
    let mut events = 0;
    let asked = loop {
        let (_, list) = answer(world.get("/v1/questions")).await;
        if let Some(one) = list["questions"].as_array().unwrap().first() {
            break one.clone();
        }
        let (_, page) = answer(world.get(&format!("/v1/tasks/{task}/events"))).await;
        events = events.max(page["events"].as_array().unwrap().len());
        tokio::task::yield_now().await;
    };
    assert_eq!(
        (&asked["kind"], &asked["options"]),
        (&json!("ask_user"), &json!(["left", "right"]))
    );
    let path = format!("/v1/questions/{}", asked["question_id"].as_str().unwrap());
    let say = |text: &str| world.post(&format!("{path}/answer"), &json!({ "answer": text }));
    // By its number and with a key, so that the sender may repeat it.
    let keyed = || say("1").header("idempotency-key", "answer");
    let (status, first) = answer(keyed()).await;
    assert_eq!((status, &first["task_id"]), (202, &json!(task)));
    assert_eq!(answer(keyed()).await, (202, first));
    assert_eq!(problem(say("right")).await, (409, "already-answered".to_owned()));
    let (_, known) = answer(world.get(&path)).await;
    assert_eq!((&known["state"], &known["answered_by"]), (&json!("answered"), &json!("ada")));
    assert_eq!(known["answer"], "left");
    loop {
        let (_, view) = answer(world.get(&format!("/v1/tasks/{task}"))).await;
        if view["status"] == "done" {
            break;
        }
        tokio::task::yield_now().await;
    }
    // Also when the task has continued and ended.
    assert_eq!(answer(keyed()).await.0, 202);
    let late =
        problem(world.by(&world.token(), Method::POST, &format!("/v1/tasks/{task}/pause"))).await;
    assert_eq!(late, (409, "task-ended".to_owned()));
    let more = world.post(&format!("/v1/tasks/{task}/follow-ups"), &json!({ "text": "more" }));
    assert_eq!(answer(more).await.0, 201);
    world.stop().await;
}

/// Pages show the newest, say that there are others, and lead to them; a search finds what the list does not have.
#[tokio::test]
async fn long_lists_of_pages_say_what_they_leave_out() {
    let world = World::new().await;
    for number in 0..103 {
        let goal = if number == 0 { "the very first".to_owned() } else { format!("goal {number}") };
        let task = world.submit(&goal).await;
        // A user has only so many sessions at work.
        let cancel = world.post(&format!("/v1/tasks/{task}/cancel"), &json!({}));
        assert_eq!(answer(cancel).await.0, 202);
    }
    let page = async |path: &str| {
        let (status, body) = answer(world.get(path)).await;
        assert_eq!(status, 200, "{path}");
        body.as_str().unwrap().replace("&amp;", "&")
    };
    let more = |body: &str| {
        let mut links = body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        links.find(|link| link.contains("after=")).map(str::to_owned)
    };
    let tasks = page("/tasks").await;
    assert!(tasks.contains("3 older tasks: not shown here"), "{tasks}");
    assert!(!tasks.contains("the very first"));
    let rest = page(&more(&tasks).unwrap()).await;
    assert!(
        rest.contains("the very first") && rest.contains("Newer tasks are not shown"),
        "{rest}"
    );
    assert_eq!(more(&rest), None);
    assert!(page("/tasks?q=VERY+FIRST").await.contains("the very first"));
    assert!(page("/tasks?show=done&q=VERY+FIRST").await.contains("No such tasks"));

    let mut sessions = page("/").await;
    for _ in 0..2 {
        assert!(!sessions.contains("the very first"));
        assert!(sessions.contains("There are older sessions"), "{sessions}");
        sessions = page(&more(&sessions).unwrap()).await;
    }
    assert!(sessions.contains("the very first") && more(&sessions).is_none(), "{sessions}");
}
