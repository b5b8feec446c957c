//! `windlass serve`, alone.

use rustix::process::Signal;
use windlass_coordinator::bus::InStream;
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::OutStream;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::world::{On, Process, World};

const WORK: &str = "replies: [{bash: echo one >> notes.txt}, {say: done}]";

/// ES-292, ES-386, ES-387: a command on the stream becomes a task, and its result is published.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_on_the_bus_is_run_and_its_result_published() {
    for on in [On::Embedded, On::Redis] {
        let world = World::new(on, ModelServer::start(WORK));
        let serve = world.start(&["serve"]);
        let submission = world.submit("write a note").await;
        world.until_status(submission.task, TaskStatus::Done).await;
        let result = world.until_published(OutStream::TaskResult, submission.task).await;
        assert_eq!(result["status"], "COMPLETED", "{on:?}");
        assert_eq!(result["final_message"], "done");
        assert_eq!(result["command_id"], submission.command.to_string());
        assert_eq!(result["session_id"], submission.session.to_string());
        let notes = world.workspace(submission.task).join("notes.txt");
        assert_eq!(std::fs::read_to_string(notes).unwrap(), "one\n");
        assert!(serve.stop().success());
    }
}

/// AX-114: a goal from the bus that calls a skill is its instructions; one that names no skill is what it says.
#[tokio::test(flavor = "multi_thread")]
async fn a_goal_from_the_bus_that_calls_a_skill_is_expanded() {
    for on in [On::Embedded, On::Redis] {
        let world = World::new(on, ModelServer::start("match: [{say: done}]"));
        let skill = world.home().join(".windlass/skills/deploy");
        std::fs::create_dir_all(&skill).unwrap();
        let text = "---\nname: deploy\ndescription: Ship it.\n---\nShip to $ARGUMENTS.\n";
        std::fs::write(skill.join("SKILL.md"), text).unwrap();
        let _serve = world.start(&["serve"]);
        let task = world.submit("/deploy staging").await.task;
        world.until_status(task, TaskStatus::Done).await;
        let sent = world.model.requests().last().unwrap().json().to_string();
        assert!(sent.contains("Ship to staging.") && !sent.contains("/deploy staging"), "{sent}");
        let task = world.submit("/etc/hosts is wrong").await.task;
        world.until_status(task, TaskStatus::Done).await;
        let sent = world.model.requests().last().unwrap().json().to_string();
        assert!(sent.contains("/etc/hosts is wrong"), "{sent}");
    }
}

/// A goal from the command line, left to the service; a second one of the same session.
#[tokio::test(flavor = "multi_thread")]
async fn a_goal_that_is_left_to_the_service_is_run_by_it() {
    let world = World::new(On::Embedded, ModelServer::start_empty());
    let work = |_: &windlass_testkit::Request| Some(Answer::script("say: done"));
    world.model.answer_with(work);
    let run = |args: &[&str]| {
        let ran = world.command(args).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    let task: TaskId = run(&["run", "write a note", "--detach", "--quiet"]).parse().unwrap();
    let session = world.task(task).unwrap().session_id.to_string();
    let second = run(&["run", "another", "--detach", "--session", &session, "--json"]);
    let second: serde_json::Value = serde_json::from_str(&second).unwrap();
    assert_eq!(second["session_id"], session);
    assert_eq!(world.task(task).unwrap().status, TaskStatus::Todo, "nobody serves yet");
    let _serve = world.start(&["serve"]);
    world.until_status(task, TaskStatus::Done).await;
    world
        .until_status(second["task_id"].as_str().unwrap().parse().unwrap(), TaskStatus::Done)
        .await;
    let ran = world.command(&["run", "x", "--detach", "--session", "nope"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("windlass sessions"), "{ran:?}");
}

/// O-32: a command that comes again starts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_command_is_one_task() {
    let world = World::new(On::Embedded, ModelServer::start(WORK));
    let _serve = world.start(&["serve"]);
    let submission = world.submit("write a note").await;
    world.send(InStream::TaskCommand, &submission.json).await;
    world.until_status(submission.task, TaskStatus::Done).await;
    let second = world.submit("another").await;
    world.until_status(second.task, TaskStatus::Done).await;
    let tasks = world.store.tasks().list(&windlass_store::Filter::default()).unwrap();
    assert_eq!(tasks.len(), 2);
    let notes = world.workspace(submission.task).join("notes.txt");
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "one\n");
}

/// ES-292: a command that cannot be read is a failed result with the reason, and nothing else happens.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_makes_no_sense_is_refused_with_the_reason() {
    let world = World::new(On::Embedded, ModelServer::start(WORK));
    let _serve = world.start(&["serve"]);
    let mut submission = world.submission("write a note");
    submission.json.as_object_mut().unwrap().remove("goal");
    world.send(InStream::TaskCommand, &submission.json).await;
    let result = world.until_published(OutStream::TaskResult, submission.task).await;
    assert_eq!(result["status"], "FAILED");
    assert_eq!(result["error_details"]["error_type"], "invalid_command");
    assert_eq!(result["error_details"]["retryable"], false);
    assert!(result["error_details"]["message"].as_str().unwrap().contains("goal"));
    assert!(world.task(submission.task).is_none());
}

/// A stopped service parks its tasks at a turn boundary and says so. The next service resumes them.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_service_parks_tasks_that_the_next_resumes() {
    let world = World::new(On::Embedded, ModelServer::start(WORK));
    let gate = Gate::new();
    world.model.next(Answer::script("say: never").gated(0, &gate));
    let serve = world.start(&["serve"]);
    let submission = world.submit("write a note").await;
    world.model.requests_reach(1).await;
    serve.signal(Signal::TERM);
    serve.until_says("stopping");
    serve.until_says("stopped");
    let row = world.task(submission.task).unwrap();
    assert_eq!((row.status, row.reason), (TaskStatus::Paused, StatusReason::Shutdown));
    assert!(world.published(OutStream::TaskResult).is_empty(), "it is not paused, only waiting");

    let _next = world.start(&["serve"]);
    world.until_status(submission.task, TaskStatus::Done).await;
    let notes = world.workspace(submission.task).join("notes.txt");
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "one\n");
}

/// A call that does not end holds a stop up; a second signal ends at once, and the call is not run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once_and_nothing_is_done_twice() {
    let script = "replies: [{bash: echo one >> notes.txt; sleep 600}, {say: done}]";
    let world = World::new(On::Embedded, ModelServer::start(script));
    let serve = world.start(&["serve"]);
    let task = world.submit("write a note").await.task;
    let notes = world.workspace(task).join("notes.txt");
    while std::fs::read_to_string(&notes).ok().as_deref() != Some("one\n") {
        tokio::task::yield_now().await;
    }
    serve.signal(Signal::TERM);
    serve.until_says("stopping");
    serve.signal(Signal::TERM);
    serve.until_says("stopped at once");
    assert_eq!(serve.ended().code(), Some(130));
    let _next = world.start(&["serve"]);
    world.until_status(task, TaskStatus::Done).await;
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one\n");
}

/// §15.5: the next service resumes what a killed service ran.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_killed_service_resume_at_the_next_start() {
    let world = World::new(On::Embedded, ModelServer::start(WORK));
    let gate = Gate::new();
    world.model.next(Answer::script("say: never").gated(0, &gate));
    let serve = world.start(&["serve"]);
    let submission = world.submit("write a note").await;
    world.model.requests_reach(1).await;
    serve.kill();
    let row = world.task(submission.task).unwrap();
    assert_eq!(row.status, TaskStatus::Running);
    let _next = world.start(&["serve"]);
    world.until_status(submission.task, TaskStatus::Done).await;
    let began =
        |record: &windlass_core::event::Record| matches!(record.event, Event::AgentStart(_));
    assert_eq!(world.journal(submission.task).iter().filter(|one| began(one)).count(), 2);
}

/// A task that cannot be given what it needs fails with the reason, and its result says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_model_does_not_exist_fails_with_the_reason() {
    let world = World::new(On::Embedded, ModelServer::start(WORK));
    let _serve = world.start(&["serve"]);
    let mut submission = world.submission("write a note");
    submission.json["execution_config"] = serde_json::json!({ "model": "nobody/nothing" });
    world.send(InStream::TaskCommand, &submission.json).await;
    world.until_status(submission.task, TaskStatus::Failed).await;
    let result = world.until_published(OutStream::TaskResult, submission.task).await;
    assert_eq!(result["status"], "FAILED");
    assert!(result["error_details"]["message"].as_str().unwrap().contains("nobody"), "{result}");
}

/// ES-090: a session runs as many tasks at once as its limit allows. The next one waits in the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_fourth_task_of_a_session_waits_for_a_place() {
    let world = World::new(On::Embedded, ModelServer::start("replies: [{say: done}]"));
    let gate = Gate::new();
    for _ in 0..3 {
        world.model.next(Answer::script("say: done").gated(0, &gate));
    }
    let _serve = world.start(&["serve"]);
    let first = world.submission("one");
    let mut all = vec![first.task];
    world.send(InStream::TaskCommand, &first.json).await;
    for goal in ["two", "three", "four"] {
        let mut next = world.submission(goal);
        next.json["session_id"] = first.json["session_id"].clone();
        world.send(InStream::TaskCommand, &next.json).await;
        all.push(next.task);
    }
    world.model.requests_reach(3).await;
    world.until("the fourth is known", || world.task(all[3])).await;
    assert_eq!(world.task(all[3]).unwrap().status, TaskStatus::Todo);
    gate.open();
    for task in all {
        world.until_status(task, TaskStatus::Done).await;
    }
}

/// The queue of tasks to start is bounded. The sender of one task too many reads that it may try again.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_too_many_is_refused_and_may_be_sent_again() {
    let world = World::new(On::Embedded, ModelServer::start("replies: [{say: done}]"));
    let gate = Gate::new();
    world.model.next(Answer::script("say: done").gated(0, &gate));
    let limited = |args: &[&str]| {
        let mut command = world.command(args);
        let limits = ["COORDINATOR_MAX_CONCURRENT_TASKS", "COORDINATOR_MAX_WAITING_TASKS"];
        command.envs(limits.map(|limit| (limit, "1")));
        command
    };
    let _serve = Process::start(limited(&["serve"]));
    let running = world.submit("one").await;
    world.model.requests_reach(1).await;
    let of_session = |goal: &str| {
        let mut next = world.submission(goal);
        next.json["session_id"] = running.json["session_id"].clone();
        next
    };
    let waiting = of_session("two");
    world.send(InStream::TaskCommand, &waiting.json).await;
    world.until("the second is known", || world.task(waiting.task)).await;

    let refused = of_session("three");
    world.send(InStream::TaskCommand, &refused.json).await;
    let result = world.until_published(OutStream::TaskResult, refused.task).await;
    let error = &result["error_details"];
    assert_eq!((&error["error_type"], &error["retryable"]), (&"overloaded".into(), &true.into()));
    assert_eq!(error["message"], "1 task is already waiting to start");
    assert!(world.task(refused.task).is_none());
    let ran = limited(&["run", "four", "--detach"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("coordinator.max_waiting_tasks"), "{said}");

    gate.open();
    world.until_status(waiting.task, TaskStatus::Done).await;
    world.send(InStream::TaskCommand, &refused.json).await;
    world.until_status(refused.task, TaskStatus::Done).await;
}
