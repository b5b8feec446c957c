//! What surfaces show of tasks: what comes next, who asks, what can be resumed.

use jiff::SignedDuration;
use windlass_coordinator::views::{NextAction, Totals};
use windlass_core::error::Remedy;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_testkit::Answer;

use crate::world::World;

fn next_action(world: &World, task: TaskId) -> NextAction {
    world.coordinator().tasks().details(task).unwrap().view.next_action()
}

/// A tree whose sub-agent asks.
const SUB_AGENT_ASKS: &str = "
match:
  - task: choose a colour
    replies: [{ask_user: {question: which colour?}}, {say: blue}]
replies:
  - spawn_agent: {task: choose a colour}
  - say: done
";

/// MS-125, MS-128
#[tokio::test]
async fn a_question_of_a_sub_agent_shows_in_every_task_above() {
    let world = World::routed(SUB_AGENT_ASKS, "unused");
    let task = world.task("paint").await;
    world.drive(task).await;
    let open = world.coordinator().inbox().open_in_tree(task).unwrap();
    let [asked] = open.as_slice() else { panic!("{open:?}") };
    assert_ne!(asked.row.task, task);
    assert_eq!(asked.sub_agent().unwrap().root_id, task);
    let answer = NextAction::Answer { question: asked.row.question.id };
    assert_eq!(next_action(&world, task), answer);
    assert_eq!(next_action(&world, asked.row.task), answer);
    assert_eq!(world.coordinator().inbox().find(&task.to_string()).unwrap(), asked.row.question.id);
    assert_eq!(Totals::read(world.coordinator()).unwrap().questions, 1);
}

/// WF-018: what a sub-agent may do is its own, and its question says so.
#[tokio::test]
async fn allow_all_for_a_sub_agent_holds_for_it_alone() {
    let replies = "
match:
  - task: publish it
    replies: [{bash: git push}, {say: published}]
replies:
  - spawn_agent: {task: publish it}
  - say: done
";
    let world = World::routed(replies, "unused");
    let task = world.task("publish").await;
    world.drive(task).await;
    let inbox = world.coordinator().inbox();
    let open = inbox.open_in_tree(task).unwrap();
    let [asked] = open.as_slice() else { panic!("{open:?}") };
    let offered = asked.row.question.allow_all_description().unwrap();
    assert!(offered.contains("for this sub-agent or step only"), "{offered}");
    inbox.answer(asked.row.question.id, "Allow All", "ada").await.unwrap();
    assert!(world.coordinator().session(world.session).state().unwrap().rules.is_empty());
}

/// MS-125
#[tokio::test]
async fn only_a_paused_task_waits_for_a_person() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let limited = world.task("first").await;
    world.stage.server.next(Answer::error(429, "busy").header("retry-after", "7200"));
    world.drive(limited).await;
    let paused = world.task("second").await;
    world.coordinator().control().steer(paused, Control::Pause, "ada").await.unwrap();

    let NextAction::WaitForModel { at } = next_action(&world, limited) else { panic!() };
    let wait = at.timestamp().duration_since(world.coordinator().now());
    assert!(wait > SignedDuration::from_hours(1), "{wait}");
    assert_eq!(next_action(&world, paused), NextAction::Resume);
    let is_resumable =
        |task| world.coordinator().tasks().details(task).unwrap().view.is_resumable();
    assert!(is_resumable(paused) && !is_resumable(limited));
}

#[tokio::test]
async fn a_failed_task_can_be_retried_after_its_remedy() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let task = world.task("work").await;
    assert_eq!(next_action(&world, task), NextAction::WaitForService);
    world.stage.server.next(Answer::error(401, "who are you?"));
    world.drive(task).await;
    let remedy = Some(Remedy::SetModelKey);
    assert_eq!(next_action(&world, task), NextAction::Retry { remedy });
    world.coordinator().tasks().retry(task).await.unwrap();
    assert_eq!(next_action(&world, task), NextAction::Resume);
    world.drive(task).await;
    assert_eq!(next_action(&world, task), NextAction::Nothing);
}

/// MS-131
#[tokio::test]
async fn a_task_waits_only_for_tasks_that_are_not_done() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let (first, second) = (world.task("first").await, world.task("second").await);
    let mut draft = world.stage.draft();
    draft.dependency_blockers = vec![first, second];
    let task = world.coordinator().tasks().submit(draft).await.unwrap();
    assert_eq!(next_action(&world, task), NextAction::WaitForTasks { count: 2 });
    world.drive(first).await;
    assert_eq!(next_action(&world, task), NextAction::WaitForTasks { count: 1 });
    world.drive(second).await;
    let next = next_action(&world, task);
    assert!(!matches!(next, NextAction::WaitForTasks { .. }), "{next:?}");
}
