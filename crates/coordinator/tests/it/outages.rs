//! Tasks whose model server is gone: parked with the reason and resumed automatically, or failed, as
//! `models.outage` says.

use windlass_coordinator::SubmitOptions;
use windlass_core::command::{ExecutionConfig, Outage, ResultStatus, TaskResult};
use windlass_core::error::ErrorType;
use windlass_core::id::TaskId;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::OutStream;
use windlass_testkit::Answer;

use crate::world::{World, command};

/// The first attempt and its quick retries (ES-374).
const ATTEMPTS: usize = 4;

fn parking() -> SubmitOptions {
    SubmitOptions { outage: Outage::Park, ..SubmitOptions::default() }
}

async fn submitted(world: &World, options: SubmitOptions) -> TaskId {
    world.task_in(world.session, "work", options).await.unwrap()
}

fn gone(world: &World, answer: &dyn Fn() -> Answer) {
    for _ in 0..ATTEMPTS {
        world.stage.server.next(answer());
    }
}

fn standing(world: &World, task: TaskId) -> (TaskStatus, StatusReason) {
    let row = world.store().tasks().get(task).unwrap().unwrap();
    (row.status, row.reason)
}

/// Moves the clock to where the parked task is tried again.
fn wait_for_next_try(world: &World, task: TaskId) -> i64 {
    let (row, now) = (world.store().tasks().get(task).unwrap().unwrap(), world.coordinator().now());
    let until = row.next_action_at.expect("it resumes automatically").timestamp();
    assert!(world.coordinator().queue().ready().unwrap().is_empty(), "never too early");
    world.stage.set_clock(until);
    assert_eq!(world.coordinator().queue().ready().unwrap(), [task]);
    until.duration_since(now).as_secs()
}

fn failure(result: TaskResult) -> ErrorType {
    assert_eq!(result.status, ResultStatus::Failed);
    result.error_details.unwrap().error_type
}

#[tokio::test]
async fn a_task_is_parked_while_its_model_is_gone() {
    let cut = || Answer::script("say: never finished").cut_after(1);
    let outages: [&dyn Fn() -> Answer; 4] =
        [&|| Answer::error(500, "broken"), &|| Answer::error(529, "full"), &Answer::close, &cut];
    for outage in outages {
        let world = World::routed("replies: [{bash: echo one >> done.txt}, {say: done}]", "unused");
        let task = submitted(&world, parking()).await;
        world.stage.server.next(Answer::script("bash: echo one >> done.txt"));
        gone(&world, outage);
        assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
        assert_eq!(standing(&world, task), (TaskStatus::Paused, StatusReason::ModelOutage));
        let row = world.store().tasks().get(task).unwrap().unwrap();
        assert!(row.detail.unwrap().contains("model"), "the reason is shown");
        let sent = world.store().bus().outbox().pending(10).unwrap();
        assert!(sent.iter().all(|one| one.stream != OutStream::TaskResult), "no result yet");
        assert!((5..=8).contains(&wait_for_next_try(&world, task)));
        assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
        let file = std::path::Path::new(&row.workspace).join("done.txt");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "one\n", "nothing runs twice");
        assert_eq!(world.store().projections().verify().unwrap(), []);
    }
}

/// ES-374, ES-383: a command fails as its contract says, unless it asks to be parked.
#[tokio::test]
async fn a_task_command_fails_in_an_outage_unless_it_asks_to_park() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let failing = submitted(&world, SubmitOptions::default()).await;
    gone(&world, &|| Answer::error(500, "broken"));
    assert_eq!(failure(world.drive(failing).await), ErrorType::ModelUnreachable);

    let mut asking = command(world.session, "work");
    asking.execution_config = ExecutionConfig { outage: Some(Outage::Park), ..Default::default() };
    let tasks = world.coordinator().tasks();
    let task = tasks.submit_command(asking, SubmitOptions::default()).await.unwrap().task;
    gone(&world, &|| Answer::error(500, "broken"));
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    assert_eq!(standing(&world, task), (TaskStatus::Paused, StatusReason::ModelOutage));
}

#[tokio::test]
async fn a_task_from_a_chat_is_parked_in_an_outage() {
    let route = r#"{"decision":"new_task","goal":"work"}"#;
    let world = World::routed("replies: [{say: done}]", route);
    world.say("please work").await.unwrap();
    let task = world.coordinator().queue().ready().unwrap()[0];
    gone(&world, &|| Answer::error(500, "broken"));
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
}

#[tokio::test]
async fn what_waiting_does_not_cure_fails_at_once() {
    for status in [400, 401, 403, 404] {
        let world = World::routed("replies: [{say: done}]", "unused");
        let task = submitted(&world, parking()).await;
        world.stage.server.next(Answer::error(status, "no"));
        assert_eq!(world.drive(task).await.status, ResultStatus::Failed, "{status}");
        assert_eq!(world.stage.server.request_count(), 1, "{status}");
    }
}

/// The page of a network that wants a sign-in, or a proxy without its server: the model itself is still there.
#[tokio::test]
async fn a_server_that_answered_before_is_waited_for_whatever_answers_now() {
    let page = |status| Answer::status(status, "text/html", "<html>sign in</html>");
    for status in [200, 302, 404, 425] {
        let world = World::routed("replies: [{bash: echo one}, {say: done}]", "unused");
        let task = submitted(&world, parking()).await;
        world.stage.server.next(Answer::script("bash: echo one"));
        world.stage.server.next(page(status));
        assert_eq!(world.drive(task).await.status, ResultStatus::Paused, "{status}");
        assert_eq!(standing(&world, task), (TaskStatus::Paused, StatusReason::ModelOutage));
        wait_for_next_try(&world, task);
        assert_eq!(world.drive(task).await.status, ResultStatus::Completed, "{status}");
    }
    for status in [200, 302, 404, 425] {
        let world = World::routed("replies: [{say: done}]", "unused");
        let task = submitted(&world, parking()).await;
        world.stage.server.next(page(status));
        assert_eq!(world.drive(task).await.status, ResultStatus::Failed, "{status}");
    }
}

#[tokio::test]
async fn a_busy_server_that_names_no_time_is_asked_later() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let task = submitted(&world, parking()).await;
    gone(&world, &|| Answer::error(429, "slow down"));
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    wait_for_next_try(&world, task);
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
}

#[tokio::test]
async fn pauses_grow_until_the_model_answers() {
    let world = World::routed("replies: [{bash: echo one}, {say: done}]", "unused");
    let task = submitted(&world, parking()).await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        gone(&world, &|| Answer::error(500, "broken"));
        assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
        waits.push(wait_for_next_try(&world, task));
    }
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
    world.stage.server.next(Answer::script("bash: echo one"));
    gone(&world, &|| Answer::error(500, "broken"));
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    assert!(wait_for_next_try(&world, task) <= 8, "a reply begins a new count");
}

/// The whole tree waits with a sub-agent, and asks nobody meanwhile.
#[tokio::test]
async fn an_outage_of_a_sub_agent_parks_the_tree() {
    let replies = "
match:
  - task: look around
    replies: [{say: seen}]
replies:
  - spawn_agent: {task: look around}
  - say: done
";
    let world = World::routed(replies, "unused");
    let task = submitted(&world, parking()).await;
    world.stage.server.next(Answer::script("spawn_agent: {task: look around}"));
    gone(&world, &|| Answer::error(500, "broken"));
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    assert_eq!(standing(&world, task), (TaskStatus::Paused, StatusReason::ModelOutage));
    wait_for_next_try(&world, task);
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
}
