//! Tasks that continue an ended one (docs/decisions/0012).

use windlass_coordinator::{Error, FollowUp};
use windlass_core::axes::WorkMode;
use windlass_core::injection::Control;
use windlass_core::status::TaskStatus;
use windlass_testkit::{Stage, assert_extends};

#[tokio::test]
async fn a_follow_up_extends_the_last_request_byte_for_byte() {
    let stage = Stage::set(
        "
        goal: look
        replies:
          - bash: echo one
          - say: seen
          - say: seen again
        ",
    );
    let first = stage.submit().await;
    stage.drive(first).await;
    let wanted = FollowUp {
        constraints: vec!["be brief".to_owned()],
        ..FollowUp::message("look again", "ada")
    };
    let next = stage.coordinator.tasks().follow_up(first, wanted).await.unwrap().task;
    let result = stage.drive(next).await;
    assert_eq!(result.final_message.as_deref(), Some("seen again"));
    let requests = stage.server.requests();
    assert_extends(&requests[1].body, &requests[2].body);
    let said =
        requests[2].json()["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(said, "User says: look again\n\nConstraints:\n\n- be brief");
    assert_eq!(requests[1].json()["tools"], requests[2].json()["tools"]);
    // The task before stays as it was.
    let state = stage.coordinator.tasks().state(first).unwrap();
    assert_eq!(state.status, TaskStatus::Done);
    let state = stage.coordinator.tasks().state(next).unwrap();
    assert_eq!(state.created.continues.unwrap().task, first);
}

/// Servers insist on a result for each call.
#[tokio::test]
async fn a_call_that_never_ran_is_said_not_to_have_run() {
    let stage = Stage::set(
        "
        goal: tidy
        replies:
          - bash: rm old.txt
          - say: left as it is
        ",
    );
    let first = stage.submit().await;
    stage.drive(first).await;
    let cancel = Control::Cancel { reason: None };
    stage.coordinator.control().steer(first, cancel, "ada").await.unwrap();
    let wanted = FollowUp::message("leave it", "ada");
    let next = stage.coordinator.tasks().follow_up(first, wanted).await.unwrap().task;
    stage.drive(next).await;
    let sent = stage.server.requests()[1].json();
    let messages = sent["messages"].as_array().unwrap();
    let last: Vec<_> =
        messages.iter().rev().take(2).map(|one| one["content"].to_string()).collect();
    assert_eq!(last[0], "\"User says: leave it\"");
    assert!(last[1].contains("Not run: the task ended before this call started."), "{last:?}");
}

#[tokio::test]
async fn only_an_ended_task_takes_a_follow_up() {
    let stage = Stage::set("{goal: ask, replies: [{ask_user: {question: sure?}}]}");
    let task = stage.submit().await;
    stage.drive(task).await;
    let refused = stage.coordinator.tasks().follow_up(task, FollowUp::message("go", "ada")).await;
    assert!(matches!(refused, Err(Error::NotEnded { .. })), "{refused:?}");
}

/// A chain of follow-ups keeps what people said, also after a compaction.
#[tokio::test]
async fn what_was_said_in_a_follow_up_outlives_a_compaction() {
    let stage = Stage::set(
        "
        goal: begin
        replies:
          - say: begun
          - say: noted
          - say: thanks
        ",
    );
    let mut task = stage.submit().await;
    stage.drive(task).await;
    for text in ["always use tabs", "go on"] {
        let wanted = FollowUp::message(text, "ada");
        task = stage.coordinator.tasks().follow_up(task, wanted).await.unwrap().task;
        stage.drive(task).await;
    }
    let records = stage.store.journal().of(task).unwrap();
    let said = records.iter().find_map(|record| match &record.event {
        windlass_core::event::Event::AgentStart(start) => Some(start.said.clone()),
        _ => None,
    });
    assert_eq!(said.unwrap(), ["User says: always use tabs", "User says: go on"]);
}

/// WF-018: the ended task had the rule, the session no longer has.
#[tokio::test]
async fn a_rule_revoked_after_a_task_does_not_hold_in_its_follow_up() {
    let stage = Stage::set(
        "
        goal: build
        profile: normal
        replies:
          - bash: make a
          - say: built
          - bash: make a
        then: [{answer: Allow All}]
        ",
    );
    let task = stage.play().await;
    let session = stage.coordinator.tasks().state(task).unwrap().command().session_id;
    let session = stage.coordinator.session(session);
    let rules = session.state().unwrap().rules;
    assert!(session.revoke(&rules[0], "ada").await.unwrap());
    let wanted = FollowUp::message("build again", "ada");
    let next = stage.coordinator.tasks().follow_up(task, wanted).await.unwrap().task;
    stage.drive(next).await;
    assert!(stage.journal(next).contains("bash build ask"), "{}", stage.journal(next));
}

/// Planning in a session in which a person has allowed writing.
#[tokio::test]
async fn a_permission_of_the_task_before_does_not_count_in_plan_mode() {
    let stage = Stage::set(
        "
        goal: build
        profile: normal
        control: manual
        replies:
          - write: {path: first.txt, content: x}
          - say: built
          - write: {path: made.txt, content: x}
          - say: plan
        then: [{answer: Allow All}]
        ",
    );
    let task = stage.play().await;
    let state = stage.coordinator.tasks().state(task).unwrap();
    assert_eq!(state.allow_rules.len(), 1, "{}", stage.journal(task));
    let axes = Some(state.axes.in_mode(WorkMode::Plan));
    let wanted = FollowUp { axes, ..FollowUp::message("plan the rest", "ada") };
    let next = stage.coordinator.tasks().follow_up(task, wanted).await.unwrap().task;
    stage.drive(next).await;
    assert!(!stage.workspace().join("made.txt").exists());
    assert!(stage.journal(next).contains("write edit deny"), "{}", stage.journal(next));
}
