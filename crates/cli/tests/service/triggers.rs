//! Triggers, injections and control flags, as they arrive on either bus while a task runs.

use jiff::Timestamp;
use serde_json::json;
use windlass_coordinator::bus::{Flag, InStream};
use windlass_core::event::{Event, Record};
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::status::TaskStatus;
use windlass_store::OutStream;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::world::{On, Process, Submission, World};

/// A task that waits for its first reply, which comes when the gate opens.
async fn held(on: On) -> (World, Process, Submission, Gate) {
    let world = World::new(on, ModelServer::start("replies: [{bash: \"true\"}, {say: done}]"));
    let gate = Gate::new();
    world.model.next(Answer::script("bash: \"true\"").gated(0, &gate));
    let serve = world.start(&["serve"]);
    let submission = world.submit("wait").await;
    gate.reached().await;
    (world, serve, submission, gate)
}

/// The injections that a task has received, in order.
fn injections(world: &World, task: TaskId) -> Vec<String> {
    let content = |record: Record| match record.event {
        Event::InjectionReceived(injection) => Some(injection.content),
        _ => None,
    };
    world.journal(task).into_iter().filter_map(content).collect()
}

/// ES-100, ES-102: an event reaches its task, once, though it is delivered twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_external_event_reaches_its_task_once() {
    for on in [On::Embedded, On::Redis] {
        let (world, _serve, submission, gate) = held(on).await;
        let event =
            json!({ "request_id": "build-7", "task_id": submission.task, "payload": "green" });
        world.send(InStream::ExternalEvent, &event).await;
        world.send(InStream::ExternalEvent, &event).await;
        let waits = || world.store.mailbox().has_mail(submission.task).unwrap().then_some(());
        world.until("mail waits", waits).await;
        gate.open();
        world.until_status(submission.task, TaskStatus::Done).await;
        assert_eq!(injections(&world, submission.task), ["green"], "{on:?}");
    }
}

/// ES-101, ES-391: pause, resume and cancel from the stream; the key says the same.
#[tokio::test(flavor = "multi_thread")]
async fn control_from_the_stream_pauses_resumes_and_cancels() {
    for on in [On::Embedded, On::Redis] {
        let (world, _serve, submission, gate) = held(on).await;
        let task = submission.task;
        let control = |action: &str| json!({ "task_id": task, "action": action });
        world.send(InStream::TaskControl, &control("pause")).await;
        world
            .until("a pause waits", || world.store.mailbox().has_mail(task).unwrap().then_some(()))
            .await;
        gate.open();
        world.until_status(task, TaskStatus::Paused).await;
        let paused = world.until_published(OutStream::TaskResult, task).await;
        assert_eq!(paused["status"], "PAUSED");
        world.send(InStream::TaskControl, &control("resume")).await;
        world.until_status(task, TaskStatus::Done).await;
        assert!(world.bus().flags(&[task]).await.unwrap().is_empty(), "{on:?}");

        let other = world.submission("wait");
        let gate = Gate::new();
        world.model.next(Answer::script("say: never").gated(0, &gate));
        world.send(InStream::TaskCommand, &other.json).await;
        gate.reached().await;
        let cancel = json!({ "task_id": other.task, "action": "cancel", "reason": "enough" });
        world.send(InStream::TaskControl, &cancel).await;
        let row = world.until_status(other.task, TaskStatus::Cancelled).await;
        assert_eq!(row.detail.as_deref(), Some("enough"));
    }
}

/// ES-016, ES-391: a flag that another process sets stops the loop.
#[tokio::test(flavor = "multi_thread")]
async fn a_flag_set_by_another_process_stops_the_loop() {
    for on in [On::Embedded, On::Redis] {
        let (world, _serve, submission, _gate) = held(on).await;
        world.bus().set_flag(submission.task, Some(Flag::Cancelled)).await.unwrap();
        world.until_status(submission.task, TaskStatus::Cancelled).await;

        let (world, _serve, submission, gate) = held(on).await;
        let task = submission.task;
        world.bus().set_flag(task, Some(Flag::Paused)).await.unwrap();
        world
            .until("a pause waits", || world.store.mailbox().has_mail(task).unwrap().then_some(()))
            .await;
        gate.open();
        world.until_status(task, TaskStatus::Paused).await;
        world.bus().set_flag(task, Some(Flag::Running)).await.unwrap();
        world.until_status(task, TaskStatus::Done).await;
    }
}

/// ES-095, ES-096, ES-097, ES-099, ES-102: each trigger is taken from the stream of its name, has its effect,
/// and is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn every_trigger_stream_is_read_and_acknowledged() {
    for on in [On::Embedded, On::Redis] {
        let (world, _serve, submission, gate) = held(on).await;
        let task = submission.task;
        let check =
            json!({ "trigger_type": "cron", "task_id": task, "check_prompt": "is it green?" });
        world.send(InStream::Scheduled, &check).await;
        world
            .until("a check waits", || world.store.mailbox().has_mail(task).unwrap().then_some(()))
            .await;
        gate.open();
        world.until_status(task, TaskStatus::Done).await;
        assert!(
            injections(&world, task).iter().any(|words| words.contains("is it green?")),
            "{on:?}"
        );

        let result = world.until_published(OutStream::TaskResult, task).await;
        world.send(InStream::TaskResult, &result).await;
        let session = windlass_core::id::SessionId::new(Timestamp::now());
        let hello =
            json!({ "session_id": session, "user_id": "ada", "message": "build me a boat" });
        world.send(InStream::UserMessage, &hello).await;
        let of_session = || windlass_store::Filter {
            session: Some(session),
            ..windlass_store::Filter::default()
        };
        let routed = || world.store.tasks().list(&of_session()).unwrap().into_iter().next();
        let routed = world.until("a task is made of the message", routed).await;
        assert!(routed.goal.contains("build me a boat"), "{}", routed.goal);
        // Acknowledged, so nobody can claim it any more.
        let reader = windlass_coordinator::bus::Subscription {
            streams: InStream::ALL.to_vec(),
            consumer: "another".to_owned(),
            limit: 10,
        };
        let bus = world.bus();
        while !bus.claim(&reader, std::time::Duration::ZERO).await.unwrap().is_empty() {}
    }
}

/// Tasks continue while Redis does not answer. Their messages are published when it answers again.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_continues_through_a_partition_and_publishes_afterwards() {
    let (world, _serve, submission, gate) = held(On::Redis).await;
    let redis = world.redis.as_ref().unwrap();
    redis.freeze();
    gate.open();
    world.until_status(submission.task, TaskStatus::Done).await;
    redis.thaw();
    let result = world.until_published(OutStream::TaskResult, submission.task).await;
    assert_eq!(result["status"], "COMPLETED");
    let second = world.submit("again").await;
    world.until_status(second.task, TaskStatus::Done).await;
}

/// ES-070, ES-136, ES-137, ES-138, ES-390: pushed into the list, drained in order by the loop, each once.
#[tokio::test(flavor = "multi_thread")]
async fn injections_of_the_list_are_drained_in_order_and_once() {
    let (world, _serve, submission, gate) = held(On::Redis).await;
    let task = submission.task;
    let list = format!("injection:{task}");
    let redis = world.redis.as_ref().unwrap();
    let (bus, one) = (world.bus(), Injection::message(InjectionId::new(Timestamp::now()), "one"));
    bus.push(task, &one).await.unwrap();
    bus.push(task, &one).await.unwrap();
    let two = json!({
        "id": InjectionId::new(Timestamp::now()), "injection_type": "external_event", "content": "two",
    });
    redis.cli(&["RPUSH", &list, &two.to_string()]);
    redis.cli(&["RPUSH", &list, "nonsense"]);
    let drained = || (redis.cli(&["LLEN", &list]) == "0").then_some(());
    world.until_seen("the list is drained", drained).await;
    gate.open();
    world.until_status(task, TaskStatus::Done).await;
    assert_eq!(injections(&world, task), ["one", "two"]);
    let messages = world.published(OutStream::UserMessage);
    let refused = |one: &serde_json::Value| {
        one["message"].as_str().is_some_and(|words| words.contains("injection was refused"))
    };
    assert!(messages.iter().any(refused), "{messages:?}");
}

/// The sender of a message to an ended task gets a refusal, and nothing stays in the list.
#[tokio::test(flavor = "multi_thread")]
async fn an_injection_for_a_task_that_has_ended_is_refused() {
    let world = World::new(On::Redis, ModelServer::start("replies: [{say: done}]"));
    let _serve = world.start(&["serve"]);
    let task = world.submit("wait").await.task;
    world.until_status(task, TaskStatus::Done).await;
    let late = Injection::message(InjectionId::new(Timestamp::now()), "too late");
    world.bus().push(task, &late).await.unwrap();
    let list = format!("injection:{task}");
    let redis = world.redis.as_ref().unwrap();
    let drained = || (redis.cli(&["LLEN", &list]) == "0").then_some(());
    world.until_seen("the list is drained", drained).await;
    let refused = || {
        let messages = world.published(OutStream::UserMessage);
        messages
            .into_iter()
            .find(|one| one["message"].as_str().is_some_and(|it| it.contains("refused")))
    };
    let refusal = world.until_seen("the sender gets a refusal", refused).await;
    assert!(refusal["message"].as_str().unwrap().contains("done"), "{refusal}");
}

/// ES-098: a second answer is refused, and its sender gets a message.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_is_refused() {
    let script = "replies: [{ask_user: {question: sure?}}, {say: done}]";
    let world = World::new(On::Embedded, ModelServer::start(script));
    let _serve = world.start(&["serve"]);
    let submission = world.submit("ask").await;
    let asked = world.until_published(OutStream::HitlRequest, submission.task).await;
    for response in ["yes", "yes", "no"] {
        let answer = json!({
            "request_id": asked["request_id"], "response": response, "task_id": submission.task,
        });
        world.send(InStream::HitlResponse, &answer).await;
    }
    world.until_status(submission.task, TaskStatus::Done).await;
    let answers = world.journal(submission.task).into_iter().filter(|record| {
        matches!(&record.event, Event::QuestionAnswered(answered) if answered.answer.text == "yes")
    });
    assert_eq!(answers.count(), 1);
    let refused = || {
        let messages = world.published(OutStream::UserMessage);
        messages
            .into_iter()
            .find(|one| one["message"].as_str().is_some_and(|it| it.contains("refused")))
    };
    let refused = world.until("the second sender gets a refusal", refused).await;
    assert_eq!(refused["task_id"], submission.task.to_string());
}
