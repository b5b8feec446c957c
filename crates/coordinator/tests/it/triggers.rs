//! The other triggers: answers, events, control, results.

use windlass_coordinator::trigger::{
    ExternalEventReceived, HitlResponseReceived, TaskAction, TaskControlReceived, Trigger,
    TriggerStream,
};
use windlass_coordinator::{Error, TriggerOutcome};
use windlass_core::command::ResultStatus;
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::status::TaskStatus;

use crate::world::World;

const ASKING: &str = "replies: [{ask_user: {question: which colour?}}, {say: painted}]";

fn control(task: TaskId, action: TaskAction, id: &str) -> TaskControlReceived {
    TaskControlReceived {
        command_id: Some(id.to_owned()),
        task_id: task,
        action,
        reason: None,
        user_id: Some("ada".to_owned()),
        session_id: None,
    }
}

fn answer(question: QuestionId, response: &str) -> HitlResponseReceived {
    HitlResponseReceived {
        request_id: question,
        response: response.to_owned(),
        user_id: Some("ada".to_owned()),
        task_id: None,
        session_id: None,
    }
}

fn event(task: TaskId, payload: serde_json::Value) -> ExternalEventReceived {
    let (request_id, task_id) = (Some("event-1".to_owned()), Some(task));
    ExternalEventReceived { request_id, task_id, session_id: None, source: None, payload }
}

/// ES-018, ES-053, ES-073, ES-098: an answer reaches the agent that asked. A second, different answer
/// is refused; the same answer again has no effect.
#[tokio::test]
async fn an_answer_reaches_the_task_that_asked_and_counts_once() {
    let world = World::routed(ASKING, "never asked");
    let task = world.task("paint").await;
    let question = world.drive(task).await.hitl_request.unwrap().request_id;
    assert!(world.coordinator().queue().ready().unwrap().is_empty(), "it waits for a person");
    let coordinator = world.coordinator();
    for _ in 0..2 {
        let handled =
            coordinator.triggers().hitl_response_received(answer(question, "blue")).await.unwrap();
        assert_eq!(handled, TriggerOutcome::Injected { task });
    }
    let second =
        coordinator.triggers().hitl_response_received(answer(question, "red")).await.unwrap_err();
    assert!(second.to_string().contains("blue"), "{second}");
    assert_eq!(coordinator.queue().ready().unwrap(), [task]);
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
    assert!(world.sent()[1].contains("User responded to your question: blue"));
    assert_eq!(world.routings(), 0);
}

/// ES-017, ES-054, ES-074, ES-100, ES-136, ES-288…291: every event is passed on as it is; the prompt says
/// what to make of it.
#[tokio::test]
async fn an_event_is_injected_whatever_it_says() {
    let world = World::routed("replies: [{say: noted}]", "never asked");
    let task = world.task("watch the weather").await;
    let rain = event(task, serde_json::json!({"weather": "rain"}));
    for _ in 0..2 {
        world.coordinator().triggers().external_event_received(rain.clone()).await.unwrap();
    }
    assert_eq!(world.injected(task), [r#"{"weather":"rain"}"#], "delivered twice, queued once");
    let mut active = event(task, "lightning".into());
    (active.task_id, active.session_id) = (None, Some(world.session));
    active.request_id = None;
    world.coordinator().triggers().external_event_received(active).await.unwrap();
    world.drive(task).await;
    let sent = &world.sent()[0];
    assert!(sent.contains(r#"Event received: {\"weather\":\"rain\"}"#), "{sent}");
    assert!(sent.contains("Event received: lightning"), "{sent}");
    for words in ["Consider whether", "a condition you were waiting for", "acknowledge it"] {
        assert!(sent.contains(words), "{words}: {sent}");
    }
    assert_eq!(world.routings(), 0);
}

/// ES-292: an event for nobody, and one for nothing that is active, are refused for good.
#[tokio::test]
async fn an_invalid_trigger_is_refused_for_good() {
    let world = World::routed("replies: []", "never asked");
    let task = world.task("wait").await;
    let mut nobody = event(task, 1.into());
    nobody.task_id = None;
    let refused =
        world.coordinator().triggers().external_event_received(nobody.clone()).await.unwrap_err();
    assert!(matches!(refused, Error::BadTrigger { .. }) && !refused.is_transient(), "{refused}");
    nobody.session_id =
        Some(windlass_core::id::SessionId::new(crate::world::at("2026-01-01T00:00:00Z")));
    let refused = world.coordinator().triggers().external_event_received(nobody).await.unwrap_err();
    assert!(matches!(refused, Error::NothingActive { .. }), "{refused}");
    let steer = control(task, TaskAction::Steer, "s1");
    let refused = world.coordinator().triggers().task_control_received(steer).await.unwrap_err();
    assert!(refused.to_string().contains("what to tell the task"), "{refused}");
}

/// ES-055, ES-075, ES-083, ES-086…089, ES-101: pause, resume, cancel; an ended task stays ended.
#[tokio::test]
async fn control_pauses_resumes_and_cancels() {
    let world = World::routed("replies: [{say: done}]", "never asked");
    let coordinator = world.coordinator();
    let task = world.task("work").await;
    coordinator
        .triggers()
        .task_control_received(control(task, TaskAction::Pause, "c1"))
        .await
        .unwrap();
    assert_eq!(world.status(task), TaskStatus::Paused);
    assert!(coordinator.queue().ready().unwrap().is_empty());
    coordinator
        .triggers()
        .task_control_received(control(task, TaskAction::Resume, "c2"))
        .await
        .unwrap();
    assert_eq!(coordinator.queue().ready().unwrap(), [task]);
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
    assert!(world.sent()[0].contains("Task resumed by user"));
    let ended = coordinator
        .triggers()
        .task_control_received(control(task, TaskAction::Resume, "c3"))
        .await
        .unwrap_err();
    assert!(ended.to_string().contains("done"), "{ended}");
    let other = world.task("other").await;
    coordinator
        .triggers()
        .task_control_received(control(other, TaskAction::Pause, "c4"))
        .await
        .unwrap();
    for _ in 0..2 {
        let cancel = control(other, TaskAction::Cancel, "c5");
        coordinator.triggers().task_control_received(cancel).await.unwrap();
    }
    assert_eq!(world.status(other), TaskStatus::Cancelled);
}

/// ES-016, ES-086: a signal from elsewhere ends what runs; the loop only observes it.
#[tokio::test]
async fn a_cancel_ends_a_running_command() {
    let world = World::routed("replies: [{bash: sleep 600}, {say: done}]", "never asked");
    let task = world.task("sleep").await;
    let coordinator = world.coordinator().clone();
    let mut following = coordinator.feed().follow(task, 0);
    let cancel = async {
        loop {
            let windlass_coordinator::Update::Event(record) = following.next().await.unwrap()
            else {
                continue;
            };
            if record.event.kind() == "tool_call" {
                break;
            }
        }
        coordinator
            .triggers()
            .task_control_received(control(task, TaskAction::Cancel, "c1"))
            .await
            .unwrap()
    };
    let (result, handled) = tokio::join!(world.drive(task), cancel);
    assert_eq!(result.status, ResultStatus::Cancelled);
    assert!(matches!(handled, TriggerOutcome::Steered { .. }));
}

/// ES-085, MS-132: a retry of a failed task, once per command.
#[tokio::test]
async fn a_retry_that_comes_again_retries_once() {
    let world = World::routed("replies: [{say: done}]", "never asked");
    let task = world.task("work").await;
    world.stage.server.next(windlass_testkit::Answer::error(401, "no"));
    assert_eq!(world.drive(task).await.status, ResultStatus::Failed);
    for _ in 0..2 {
        let retry = control(task, TaskAction::Retry, "r1");
        world.coordinator().triggers().task_control_received(retry).await.unwrap();
    }
    let row = world.store().tasks().get(task).unwrap().unwrap();
    assert_eq!((row.status, row.retry_count), (TaskStatus::Retrying, 1));
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
}

/// ES-084, ES-097, ES-102: a result is taken for what it is, and the same method serves every delivery.
#[tokio::test]
async fn a_result_is_handled_by_its_own_method() {
    let world = World::routed("replies: [{say: done}]", "never asked");
    let task = world.task("work").await;
    let result = world.drive(task).await;
    let json = serde_json::to_string(&result).unwrap();
    let trigger = Trigger::read(TriggerStream::TaskResultReceived, &json).unwrap();
    for _ in 0..2 {
        let handled = world.coordinator().triggers().handle(trigger.clone()).await.unwrap();
        assert!(matches!(handled, TriggerOutcome::Nothing { .. }), "{handled:?}");
    }
    let entries = world.coordinator().sessions().view(world.session).unwrap().tasks;
    assert_eq!(entries[0].status.as_str(), "COMPLETED");
}
