//! Questions, messages and signals, as the loop meets them.

use windlass_core::command::ResultStatus;
use windlass_core::injection::{Control, Injection};
use windlass_core::message::Message;
use windlass_core::status::TaskStatus;
use windlass_testkit::Stage;

const ASKING: &str = "
    goal: paint
    replies:
      - ask_user: {question: which colour?}
      - say: painted
";

/// ES-018, ES-053, ES-213, ES-215, ES-216
#[tokio::test]
async fn an_answer_reaches_the_blocked_agent_as_a_message() {
    let stage = Stage::set(ASKING);
    let task = stage.submit().await;
    let blocked = stage.drive(task).await;
    assert_eq!(blocked.status, ResultStatus::BlockedUser);
    let question = blocked.hitl_request.unwrap().request_id;
    stage.coordinator.inbox().answer(question, "blue", "ada").await.unwrap();
    assert_eq!(stage.drive(task).await.status, ResultStatus::Completed);
    let sent = stage.server.requests()[1].json().to_string();
    assert!(sent.contains("User responded to your question: blue"), "{sent}");
}

/// ES-018, ES-053: nobody has to resume a task that was answered before it had stopped.
#[tokio::test]
async fn an_answer_during_parking_lets_the_task_continue() {
    let stage = Stage::set(ASKING);
    let task = stage.submit().await;
    // Its last look into the mailbox is over when it asks how much time it has used.
    stage.answer_meanwhile(TaskStatus::Running, "blue");
    assert_eq!(stage.drive(task).await.status, ResultStatus::Completed);
    let sent = stage.server.requests()[1].json().to_string();
    assert!(sent.contains("User responded to your question: blue"), "{sent}");
}

/// ES-232: the same where a sub-agent has asked, and waits already.
#[tokio::test]
async fn an_answer_to_a_sub_agent_during_parking_lets_its_parent_continue() {
    let stage = Stage::set(
        "
        goal: paint both
        match:
          - task: paint the left
            replies:
              - ask_user: {question: which colour?}
              - say: left is blue
        replies:
          - spawn_agent: {task: paint the left}
          - say: painted
    ",
    );
    let task = stage.submit().await;
    stage.answer_meanwhile(TaskStatus::Blocked, "blue");
    assert_eq!(stage.drive(task).await.status, ResultStatus::Completed);
    let sent = stage.server.requests().last().unwrap().json().to_string();
    assert!(sent.contains("left is blue"), "{sent}");
}

/// ES-135, ES-297: an earlier conversation continues with what arrived since.
#[tokio::test]
async fn a_task_with_an_earlier_conversation_begins_with_it() {
    let stage = Stage::set("goal: paint\nreplies: [{say: painted}]");
    let id = windlass_core::id::InjectionId::new(jiff::Timestamp::UNIX_EPOCH);
    let resumed = windlass_core::command::ResumeContext {
        previous_messages: vec![Message::user("paint the door"), Message::user("make it red")],
        injection: Injection::message(id, "the door is open now"),
    };
    let mut draft = stage.draft();
    draft.resume_context = Some(resumed);
    let task = stage.coordinator.tasks().submit(draft).await.unwrap();
    assert_eq!(stage.drive(task).await.status, ResultStatus::Completed);
    let sent = stage.server.requests()[0].json();
    let texts: Vec<_> = sent["messages"].as_array().unwrap()[1..]
        .iter()
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["paint the door", "make it red", "User says: the door is open now"]);
}

/// ES-108: cancel comes before pause.
#[tokio::test]
async fn of_a_pause_and_a_cancel_the_cancel_counts() {
    let stage = Stage::set(ASKING);
    let task = stage.submit().await;
    let id = |n: i64| windlass_core::id::InjectionId::new(jiff::Timestamp::from_second(n).unwrap());
    for (n, control) in [(1, Control::Cancel { reason: None }), (2, Control::Pause)] {
        let injection = windlass_core::injection::Injection::control(id(n), control);
        stage.coordinator.messages().inject(task, injection).await.unwrap();
    }
    assert_eq!(stage.drive(task).await.status, ResultStatus::Cancelled);
    assert_eq!(stage.server.request_count(), 0);
}

/// A person interrupts a call that would not end: its output so far is its result, the calls after it do not run, and
/// the next message is what the agent reads next.
#[tokio::test]
async fn an_interrupted_call_keeps_its_output_and_the_task_waits() {
    let stage = Stage::set(
        "
        goal: build
        replies:
          - calls: [{bash: 'echo half done; sleep 600'}, {bash: touch second}]
          - say: stopped
    ",
    );
    let task = stage.submit().await;
    let interrupt = stage.interrupt_when_it_prints(task);
    let (interrupted, ()) = tokio::join!(stage.drive(task), interrupt);
    assert_eq!(interrupted.status, ResultStatus::Paused);
    let journal = stage.journal(task);
    assert_eq!(journal.matches("tool_call").count(), 1, "the second never began:\n{journal}");
    stage.coordinator.messages().send(task, "leave it", "ada").await.unwrap();
    stage.coordinator.control().resume(task, "ada").await.unwrap();
    assert_eq!(stage.drive(task).await.status, ResultStatus::Completed);
    let sent = stage.server.requests()[1].json().to_string();
    for words in ["half done", "interrupted by the person", "Not run: interrupted", "leave it"] {
        assert!(sent.contains(words), "`{words}`: {sent}");
    }
}

/// Sub-agents are ended with the call that started them.
#[tokio::test]
async fn an_interrupt_ends_sub_agents_at_work() {
    let stage = Stage::set(
        "
        goal: build both
        match:
          - task: build the left
            replies: [{bash: 'echo begun; sleep 600'}]
        replies:
          - spawn_agent: {task: build the left}
          - say: stopped
    ",
    );
    let task = stage.submit().await;
    let interrupt = stage.interrupt_when_it_prints(task);
    let (interrupted, ()) = tokio::join!(stage.drive(task), interrupt);
    assert_eq!(interrupted.status, ResultStatus::Paused);
    stage.coordinator.control().resume(task, "ada").await.unwrap();
    assert_eq!(stage.drive(task).await.status, ResultStatus::Completed);
    let sent = stage.server.requests().last().unwrap().json().to_string();
    assert!(sent.contains("it was cancelled: interrupted by the person"), "{sent}");
}

/// ES-003, ES-017, ES-054, ES-291: every event is passed on, whatever it says; the agent decides.
#[tokio::test]
async fn an_external_event_becomes_a_message_and_changes_no_status() {
    let stage = Stage::set("goal: wait\nreplies: [{say: noted}]");
    let task = stage.submit().await;
    stage.coordinator.messages().event(task, r#"{"weather":"rain"}"#, "sensor").await.unwrap();
    assert_eq!(stage.drive(task).await.status, ResultStatus::Completed);
    let sent = stage.server.requests()[0].json();
    let last = sent["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["content"], r#"Event received: {"weather":"rain"}"#);
}
