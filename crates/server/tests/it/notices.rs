//! A word to a person who has no page in sight, at a receiver that is real.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass_coordinator::SubmitOptions;
use windlass_core::command::TaskCommand;
use windlass_core::event::Deadline;
use windlass_core::id::SessionId;
use windlass_core::schedule::DeadlineAction;
use windlass_server::{Notify, Options};
use windlass_testkit::{Answer, Stage};

use crate::workflows::repository;
use crate::world::{World, account, answer, options};

const ASKS: &str = "goal: unused\nreplies: [{ask_user: {question: 'which secret?', options: [left, right]}}, {say: done}]";

/// A program that takes notices, as ntfy does.
struct Receiver {
    url: String,
    notices: mpsc::UnboundedReceiver<(HeaderMap, String)>,
    /// How many of the next ones fail.
    failures: Arc<AtomicUsize>,
}

type Inbox = (mpsc::UnboundedSender<(HeaderMap, String)>, Arc<AtomicUsize>);

async fn take(
    State((inbox, failures)): State<Inbox>,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let less = |left: usize| left.checked_sub(1);
    if failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let _ = inbox.send((headers, body));
    StatusCode::OK
}

impl Receiver {
    async fn start(jobs: &mut tokio::task::JoinSet<()>) -> Self {
        let (sender, notices) = mpsc::unbounded_channel();
        let failures = Arc::new(AtomicUsize::new(0));
        let app = Router::new().route("/topic", post(take)).with_state((sender, failures.clone()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/topic", listener.local_addr().unwrap());
        jobs.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, notices, failures }
    }

    fn options(&self, after: Duration) -> Options {
        let notify = Notify {
            url: self.url.parse().unwrap(),
            token: Some("the-token".to_owned()),
            after,
            page: Some("https://desk.example/agents/".parse().unwrap()),
        };
        Options { notify: Some(notify), ..options() }
    }

    async fn next(&mut self) -> (HeaderMap, String) {
        tokio::time::timeout(Duration::from_secs(60), self.notices.recv()).await.unwrap().unwrap()
    }
}

/// The questions, when this many are open.
async fn asked(world: &World, count: usize) -> Value {
    loop {
        let (_, mut list) = answer(world.get("/v1/questions")).await;
        if list["questions"].as_array().unwrap().len() == count {
            return list["questions"].take();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_stays_open_is_told_once_and_names_the_task() {
    let mut jobs = tokio::task::JoinSet::new();
    let mut receiver = Receiver::start(&mut jobs).await;
    receiver.failures.store(1, Ordering::SeqCst);
    let options = receiver.options(Duration::from_millis(200));
    let mut world = World::with(Stage::set(ASKS), options).await;
    world.serve_tasks();
    world.submit("choose a side").await;
    // The first attempt fails, the next one is taken.
    let (headers, text) = receiver.next().await;
    assert_eq!(text, "choose a side: asks you something");
    assert_eq!(headers["title"], "Windlass waits for you");
    assert_eq!(headers["click"], "https://desk.example/agents/inbox");
    assert_eq!(headers["authorization"], "Bearer the-token");
    // A server that is started again says once what is still open.
    world.stop().await;
    let stage = world.stage;
    let again = World::with(stage, receiver.options(Duration::from_millis(200))).await;
    assert_eq!(receiver.next().await.1, "choose a side: asks you something");
    assert!(receiver.notices.try_recv().is_err());
    drop(again);
    jobs.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sub_agent_asks_is_told_like_a_question_of_its_task() {
    let mut jobs = tokio::task::JoinSet::new();
    let mut receiver = Receiver::start(&mut jobs).await;
    let script = "
goal: unused
replies: [{spawn_agent: {task: look closer, label: looker}}, {say: done}]
match:
  - task: look closer
    replies: [{ask_user: {question: which?}}]
";
    let world = world_in_sight(script, receiver.options(Duration::ZERO)).await;
    world.submit("tidy up").await;
    asked(&world, 1).await;
    look_away(&world);
    let notice = receiver.next().await.1;
    assert!(notice.ends_with(": asks you something"), "{notice}");
    jobs.shutdown().await;
}

/// A world whose owner has a page in sight until its clock is set again, however long the test takes.
async fn world_in_sight(script: &str, options: Options) -> World {
    let stage = Stage::set(script);
    stage.set_clock(jiff::Timestamp::now());
    let mut world = World::with(stage, options).await;
    world.serve_tasks();
    assert_eq!(see(&world, &world.token()).await, 204);
    world
}

/// The owner's page is out of sight.
fn look_away(world: &World) {
    world.stage.advance(jiff::SignedDuration::from_secs(31));
}

/// A page of somebody is in sight.
async fn see(world: &World, token: &str) -> u16 {
    let seen = world.by(token, Method::PUT, "/seen").header("x-windlass", "1");
    answer(seen.json(&json!({}))).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_in_time_is_not_told() {
    let mut jobs = tokio::task::JoinSet::new();
    let mut receiver = Receiver::start(&mut jobs).await;
    let script = "goal: unused\nreplies: [{ask_user: {question: which?, options: [left, right]}}, {say: done}, {ask_user: {question: when?, options: [now, never]}}, {say: done}]";
    let world = world_in_sight(script, receiver.options(Duration::ZERO)).await;
    world.submit("the first").await;
    let question = asked(&world, 1).await[0]["question_id"].as_str().unwrap().to_owned();
    let said = json!({ "answer": "left" });
    let (status, _) = answer(world.post(&format!("/v1/questions/{question}/answer"), &said)).await;
    assert_eq!(status, 202);
    asked(&world, 0).await;
    world.submit("the second").await;
    asked(&world, 1).await;
    look_away(&world);
    assert_eq!(receiver.next().await.1, "the second: asks you something");
    jobs.shutdown().await;
}

/// Only the proof of a visible page of the owner holds a notice back. What it held back is said when it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_sight_holds_a_notice_back_and_nothing_else_does() {
    let mut jobs = tokio::task::JoinSet::new();
    let mut receiver = Receiver::start(&mut jobs).await;
    let accounts = vec![account("eve", windlass_server::Access::Viewer)];
    let options = Options { accounts, ..receiver.options(Duration::ZERO) };
    let script = "goal: unused\nreplies: [{ask_user: {question: 1?}}, {ask_user: {question: 2?}}, {ask_user: {question: 3?}}]";
    let world = world_in_sight(script, options).await;
    world.submit("the first").await;
    asked(&world, 1).await;
    world.submit("the second").await;
    asked(&world, 2).await;
    assert!(receiver.notices.try_recv().is_err(), "the first was due before the second was asked");
    // Somebody else's page, a stream and a program prove nothing.
    look_away(&world);
    let status = see(&world, "eve-token").await;
    assert!(matches!(status, 204 | 403), "{status}");
    let stream = world.get("/v1/events").header("accept", "text/event-stream").send().await;
    assert_eq!(stream.unwrap().status(), 200);
    let notice = receiver.next().await.1;
    let both = notice == "the first: asks you something, and 1 more";
    assert!(both || notice == "the first: asks you something", "{notice}");
    if !both {
        assert_eq!(receiver.next().await.1, "the second: asks you something");
    }
    world.submit("the third").await;
    assert_eq!(receiver.next().await.1, "the third: asks you something");
    jobs.shutdown().await;
}

/// A notice names a task that has failed, and no task that a person has stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_is_announced_and_a_cancelled_one_is_not() {
    let mut jobs = tokio::task::JoinSet::new();
    let mut receiver = Receiver::start(&mut jobs).await;
    let world = world_in_sight(ASKS, receiver.options(Duration::ZERO)).await;
    let cancelled = world.submit("not needed any more").await;
    let open = asked(&world, 1).await;
    let question = format!("/v1/questions/{}", open[0]["question_id"].as_str().unwrap());
    let cancel = world.post(&format!("/v1/tasks/{cancelled}/cancel"), &json!({}));
    assert!(answer(cancel).await.0 < 300);
    asked(&world, 0).await;
    let (_, question) = answer(world.get(&question)).await;
    assert_eq!(question["state"], "closed", "{question}");
    world.stage.server.next(Answer::error(400, "no such model"));
    let failed = format!("/v1/tasks/{}", world.submit("cannot be done").await);
    while answer(world.get(&failed)).await.1["status"] != "failed" {
        tokio::task::yield_now().await;
    }
    look_away(&world);
    assert_eq!(receiver.next().await.1, "cannot be done: failed");
    jobs.shutdown().await;
}

/// A notice names a task that waits for a person, whether its workflow or its deadline has stopped it.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_stuck_is_told() {
    let mut jobs = tokio::task::JoinSet::new();
    let mut receiver = Receiver::start(&mut jobs).await;
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let mut world = World::with(stage, receiver.options(Duration::from_millis(100))).await;
    world.serve_tasks();
    // The agent of this workflow ends without the block that it owes.
    let repository = repository();
    let file = repository.path().join(".windlass/workflows/think.yaml");
    std::fs::write(file, "steps:\n  - {name: think, type: agent, spell: \"Think.\\nHard.\"}\n")
        .unwrap();
    let wanted = json!({ "workflow": "think", "title": "think", "directory": repository.path() });
    let (status, made) = answer(world.post("/v1/workflows/runs", &wanted)).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(receiver.next().await.1, "workflow think: think: is stuck and needs you");

    // A request with a time that is over is refused; a task may still reach the service too late.
    let (tasks, now) = (world.coordinator().tasks(), jiff::Timestamp::now());
    let deadline = Deadline {
        at: now - jiff::SignedDuration::from_secs(1),
        action: DeadlineAction::PauseAndNotify,
    };
    let options = SubmitOptions { deadline: Some(deadline), ..tasks.default_options() };
    let command = TaskCommand::new(now, SessionId::new(now), "be quick");
    tasks.submit_command(command, options).await.unwrap();
    assert_eq!(receiver.next().await.1, "be quick: is stuck and needs you");
    jobs.shutdown().await;
}
