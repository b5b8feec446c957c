//! Completion contracts: finished work is verified without a model, and judged where that is asked for.

use windlass_core::command::TaskResult;
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;
use windlass_testkit::Stage;

fn statuses(stage: &Stage, task: TaskId) -> Vec<TaskStatus> {
    let journal = stage.store.journal().of(task).unwrap();
    let moved = journal.iter().filter_map(|record| match &record.event {
        Event::StatusChanged(moved) => Some(moved.to),
        _ => None,
    });
    moved.collect()
}

fn result(stage: &Stage, task: TaskId) -> TaskResult {
    stage.store.tasks().get(task).unwrap().unwrap().result.unwrap()
}

/// AX-008, AX-010: three checks of which one fails at first; its output is read, fixed, and then judged.
#[tokio::test]
async fn a_failed_check_goes_back_and_the_fixed_work_is_reviewed() {
    let script = "
        goal: make it
        contract:
          name: door
          required_files: [door.txt]
          checks: {colour: 'grep blue door.txt || { echo the door is not blue; exit 3; }', size: 'test -s door.txt'}
          audit: person
        replies:
          - write: {path: door.txt, content: red}
          - say: painted
          - read: {path: door.txt}
          - write: {path: door.txt, content: blue}
          - say: painted blue
        then: [{answer: Approve}]
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    use TaskStatus::*;
    assert_eq!(
        statuses(&stage, task),
        [Running, Verifying, Running, Verifying, Reviewing, Running, Done],
        "{}",
        stage.journal(task)
    );
    let sent_text = stage.server.requests()[2].json().to_string();
    assert!(
        sent_text.contains("the door is not blue") && sent_text.contains("exited with 3"),
        "{sent_text}"
    );
    assert!(!sent_text.contains("size:"), "what passed is not mentioned: {sent_text}");
    let contract = result(&stage, task).contract.unwrap();
    assert!(contract.passed && contract.attempts == 2, "{contract:?}");
    let names: Vec<_> = contract.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["file door.txt", "colour", "size"]);
    assert!(contract.review.unwrap().approved);
    // Each command passed the gate: decided, classed, started, ended.
    let journal = stage.store.journal().of(task).unwrap();
    let kinds: Vec<_> = journal.iter().map(|record| record.event.kind()).collect();
    let from = kinds.iter().position(|kind| *kind == "verification_started").unwrap();
    assert_eq!(
        kinds[from..from + 5],
        ["verification_started", "risk_check", "tool_call", "tool_result", "risk_check"]
    );
}

/// A rejection goes back to the agent with its words.
#[tokio::test]
async fn rejected_work_goes_back_to_the_agent() {
    let script = "
        goal: make it
        contract: {audit: person}
        replies: [{say: done}, {say: done better}]
        then: [{answer: 'Reject: it squeaks'}, {answer: Approve}]
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let sent_text = stage.server.requests()[1].json().to_string();
    assert!(sent_text.contains("it squeaks"), "{sent_text}");
    assert_eq!(*statuses(&stage, task).last().unwrap(), TaskStatus::Done);
    assert_eq!(result(&stage, task).final_message.as_deref(), Some("done better"));
}

/// Commands of a file that nobody has approved run only after one question, which shows all of them.
#[tokio::test]
async fn unapproved_checks_are_asked_about_once_and_all_together() {
    let script = "
        goal: make it
        approved: false
        contract: {checks: {one: touch one.txt, two: touch two.txt}}
        replies: [{say: done}]
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    assert!(!stage.workspace().join("one.txt").exists());
    let open = stage.coordinator.inbox().open().unwrap();
    assert_eq!(open.len(), 1);
    let question = &open[0].row.question;
    let context = question.context.as_deref().unwrap();
    assert!(context.contains("touch one.txt") && context.contains("touch two.txt"), "{context}");
    stage.coordinator.inbox().answer(question.id, "Allow", "ada").await.unwrap();
    stage.drive(task).await;
    assert!(
        stage.workspace().join("one.txt").exists() && stage.workspace().join("two.txt").exists()
    );
    assert_eq!(*statuses(&stage, task).last().unwrap(), TaskStatus::Done);
}

/// Without its checks the work is judged by a person.
#[tokio::test]
async fn denied_checks_do_not_run_and_a_person_judges() {
    let script = "
        goal: make it
        approved: false
        contract: {checks: {one: touch one.txt}}
        replies: [{say: done}]
        then: [{answer: Deny}, {answer: Approve}]
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    assert!(!stage.workspace().join("one.txt").exists());
    assert!(statuses(&stage, task).contains(&TaskStatus::Reviewing), "{}", stage.journal(task));
    assert_eq!(*statuses(&stage, task).last().unwrap(), TaskStatus::Done);
}

/// An approval never covers what every profile denies.
#[tokio::test]
async fn a_catastrophic_check_is_denied_and_fails() {
    let script = "
        goal: make it
        contract: {checks: {clean: 'sudo rm -rf /'}}
        replies: [{say: done}, {ask_user: {question: what now?}}]
    ";
    let stage = Stage::set(script);
    stage.play().await;
    let sent_text = stage.server.requests()[1].json().to_string();
    assert!(sent_text.contains("clean") && sent_text.contains("DENIED"), "{sent_text}");
}

/// AX-011: no commitment, no evidence, not handed in: each is said.
#[tokio::test]
async fn commitments_that_the_contract_wants_are_asked_for() {
    let script = "
        goal: make it
        contract: {commitments: {min_count: 1, require_closed: true, require_evidence: true}}
        replies:
          - say: done
          - commit: {title: make it}
          - say: promised
          - ask_user: {question: enough?}
    ";
    let stage = Stage::set(script);
    stage.play().await;
    let requests = stage.server.requests();
    let sent_text = |at: usize| requests[at].json().to_string();
    assert!(sent_text(1).contains("there must be at least 1 of this work"), "{}", sent_text(1));
    assert!(
        sent_text(3).contains("has no evidence") && sent_text(3).contains("must be submitted"),
        "{}",
        sent_text(3)
    );
}

/// AX-012: the limit of the contract wins.
#[tokio::test]
async fn the_limit_of_rounds_is_that_of_the_contract() {
    let script = "
        goal: make it
        limits: {max_iterations: 50}
        contract: {max_iterations: 2, required_files: [never.txt]}
        replies: [{glob: '*'}, {glob: '*.a'}, {glob: '*.b'}, {glob: '*.c'}, {say: done}]
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let error = result(&stage, task).error_details.unwrap();
    assert!(error.message.contains("its limit of 2 steps"), "{}", error.message);
}

/// An agent that never meets its contract is stopped.
#[tokio::test]
async fn a_contract_that_is_never_met_fails_the_task() {
    let says = "{say: done}, ".repeat(12);
    let script =
        format!("goal: make it\ncontract: {{required_files: [never.txt]}}\nreplies: [{says}]");
    let stage = Stage::set(&script);
    let task = stage.play().await;
    let error = result(&stage, task).error_details.unwrap();
    assert!(
        error.message.contains("still not met after 10 attempts: file never.txt"),
        "{}",
        error.message
    );
}

/// An auditor is started by policy, and its verdict counts.
#[tokio::test]
async fn an_auditor_rejects_and_then_approves() {
    let script = "
        goal: make it
        contract: {audit: auditor, required_files: [door.txt]}
        match:
          - task: painted blue
            replies:
              - approve: {commitment: task, reason: blue it is}
              - say: approved
          - task: Review the finished work
            replies:
              - bash: touch sneaked.txt
              - reject: {commitment: task, reason: the door is red}
              - say: rejected
        replies:
          - write: {path: door.txt, content: red}
          - say: painted
          - read: {path: door.txt}
          - write: {path: door.txt, content: blue}
          - say: painted blue
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    assert!(!stage.workspace().join("sneaked.txt").exists());
    let review = result(&stage, task).contract.and_then(|contract| contract.review);
    assert_eq!(
        review.map(|review| (review.approved, review.reason)),
        Some((true, "blue it is".to_owned())),
        "{}",
        stage.journal(task)
    );
    let sent_text = stage.server.requests();
    let sent_text = sent_text.iter().map(|request| request.json().to_string());
    assert!(
        sent_text
            .into_iter()
            .any(|request| request.contains("rejected it") && request.contains("the door is red"))
    );
}

/// Talk and read-only work have nothing to verify.
#[tokio::test]
async fn a_review_is_not_verified() {
    let script = "
        goal: look
        mode: review
        contract: {checks: {one: touch one.txt}}
        replies: [{say: seen}]
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    assert!(!statuses(&stage, task).contains(&TaskStatus::Verifying));
}
