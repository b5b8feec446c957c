//! Events as a list and as a stream.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_testkit::{Answer, Gate, Stage};

use crate::world::{World, answer, options};

/// A stream of events, read one by one.
struct Stream {
    response: reqwest::Response,
    text: String,
    /// What was shown before it was journaled.
    previews: Vec<Value>,
}

impl Stream {
    async fn open(world: &World, path: &str, last: Option<i64>) -> Self {
        let mut request = world.get(path).header("accept", "text/event-stream");
        request = request.timeout(std::time::Duration::from_secs(300));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self { response, text: String::new(), previews: Vec::new() }
    }

    /// The next event that is committed: its id and what it says.
    async fn next(&mut self) -> (i64, Value) {
        self.try_next().await.expect("the stream continues")
    }

    /// The same; `None` when the stream has ended, as that of a reader who was too slow does.
    async fn try_next(&mut self) -> Option<(i64, Value)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let prefix = format!("{name}: ");
                    block.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
                };
                let (id, data, event) = (field("id"), field("data"), field("event"));
                self.text = rest.to_owned();
                let Some(data) = data else { continue };
                let data = serde_json::from_str(&data).unwrap();
                match (id, event.as_deref()) {
                    (Some(id), None) => return Some((id.parse().unwrap(), data)),
                    (None, Some("preview")) => self.previews.push(data),
                    (None, Some("heartbeat") | None) => {}
                    other => panic!("{other:?}"),
                }
            }
            let chunk = self.response.chunk().await.ok()??;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_and_a_list_have_the_same_events() {
    let script = "goal: unused\nreplies: [{bash: echo one}, {bash: echo two}, {say: done}]";
    let mut world = World::with(Stage::set(script), options()).await;
    world.serve_tasks();
    let task = world.submit("count").await;
    let path = format!("/v1/tasks/{task}/events");
    let mut stream = Stream::open(&world, &path, None).await;
    let mut heard = Vec::new();
    while heard.last().is_none_or(|(_, event): &(i64, Value)| event["event_type"] != "agent_end") {
        heard.push(stream.next().await);
    }
    let mut listed: Vec<(i64, Value)> = Vec::new();
    loop {
        let after = listed.last().map_or(0, |(id, _)| *id);
        let (status, page) = answer(world.get(&format!("{path}?after={after}&limit=3"))).await;
        assert_eq!(status, 200, "{page}");
        let events = page["events"].as_array().unwrap().clone();
        assert!(events.len() <= 3);
        listed.extend(events.into_iter().map(|one| (one["id"].as_i64().unwrap(), one)));
        assert_eq!(page["next"].as_i64(), listed.last().map(|(id, _)| *id));
        if page["has_more"] == json!(false) {
            break;
        }
    }
    assert_eq!(heard, listed[..heard.len()]);
    // A page that is full with the last event says that it is the last.
    let (_, whole) = answer(world.get(&format!("{path}?limit={}", listed.len()))).await;
    assert_eq!(whole["events"].as_array().unwrap().len(), listed.len());
    assert_eq!(whole["has_more"], false);
    let seqs: Vec<_> = listed.iter().map(|(_, event)| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    // Whoever was interrupted anywhere continues with the next one.
    for (at, (id, _)) in heard.iter().enumerate().take(heard.len() - 1) {
        let mut again = Stream::open(&world, &path, Some(*id)).await;
        assert_eq!(again.next().await, heard[at + 1]);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_falls_behind_misses_nothing() {
    const TASKS: usize = 320;
    let mut world = World::new().await;
    let (_, first) = answer(world.post("/v1/tasks", &json!({ "goal": "0" }))).await;
    let session = first["session_id"].as_str().unwrap().to_owned();
    let mut slow = Stream::open(&world, "/v1/events", Some(0)).await;
    let mut quick = Stream::open(&world, &format!("/v1/events?session={session}"), Some(0)).await;
    let mut seen_quickly = BTreeSet::new();
    let long = "x".repeat(20_000);
    for number in 1..TASKS {
        let goal = json!({ "goal": format!("{number} {long}"), "session_id": session });
        assert_eq!(answer(world.post("/v1/tasks", &goal)).await.0, 201);
        seen_quickly.insert(quick.next().await.0);
    }
    while seen_quickly.len() < TASKS {
        seen_quickly.insert(quick.next().await.0);
    }
    let mut seen = Vec::new();
    let mut last = 0;
    while seen.len() < TASKS {
        // Whoever reads nothing for long is dropped, and continues where it was.
        let Some((id, event)) = slow.try_next().await else {
            slow = Stream::open(&world, "/v1/events", Some(last)).await;
            continue;
        };
        last = id;
        if event["event_type"] == "task_created" {
            seen.push(id);
        }
    }
    assert!(seen.is_sorted() && seen.iter().collect::<BTreeSet<_>>().len() == TASKS);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_misses_nothing_after_a_time_without_readers() {
    let mut world = World::new().await;
    let (_, first) = answer(world.post("/v1/tasks", &json!({ "goal": "first" }))).await;
    let (session, mut last) = (first["session_id"].clone(), 0);
    let submit = async |goal: String| {
        let body = json!({ "goal": goal, "session_id": session });
        assert_eq!(answer(world.post("/v1/tasks", &body)).await.0, 201);
    };
    let mut stream = Stream::open(&world, "/v1/events", Some(0)).await;
    while stream.next().await.1["event_type"] != "task_created" {}
    drop(stream);
    // Each round has its own reader. What comes between two rounds nobody hears.
    for round in 0..20 {
        submit(format!("unheard {round}")).await;
        let mut stream = Stream::open(&world, "/v1/events", Some(last)).await;
        submit(format!("heard {round}")).await;
        let mut goals = Vec::new();
        while goals.len() < 2 {
            let (id, event) = stream.next().await;
            assert!(id > last, "{id} after {last}");
            last = id;
            if event["event_type"] == "task_created" && event["data"]["command"]["goal"] != "first"
            {
                goals.push(event["data"]["command"]["goal"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(goals, [format!("unheard {round}"), format!("heard {round}")]);
    }
    world.stop().await;
}

/// WF-007: what is coming is shown, marked as a preview, and without an id to continue after.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_shown_while_it_is_written() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await;
    let gate = Gate::new();
    world.stage.server.next(Answer::script("say: hello there").gated(0, &gate));
    world.serve_tasks();
    let task = world.submit("talk").await;
    let mut stream = Stream::open(&world, &format!("/v1/tasks/{task}/events"), None).await;
    while stream.next().await.1["event_type"] != "llm_request" {}
    assert!(stream.previews.is_empty(), "{:?}", stream.previews);
    gate.open();
    while stream.next().await.1["event_type"] != "llm_response" {}
    let texts = stream.previews.iter().filter(|one| one["kind"] == "text");
    let text: String = texts.map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(text, "hello there");
    world.stop().await;
}
