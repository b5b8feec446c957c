//! Schedules by a set clock: checks, messages, starts; monitors that end well and that do not.

use jiff::SignedDuration;
use windlass_coordinator::trigger::{Due, ScheduledTrigger};
use windlass_coordinator::{CoordinatorLimits, TriggerOutcome};
use windlass_core::command::ResultStatus;
use windlass_core::event::Event;
use windlass_core::id::{ScheduleId, TaskId};
use windlass_core::schedule::{
    Missed, Rhythm, Schedule, ScheduleAction, ScheduleState, SchedulerStatus, TimeoutAction,
};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Filter;

use crate::world::{START, World, at};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn schedule(world: &World, action: ScheduleAction, rhythm: Rhythm) -> Schedule {
    let created_at = world.coordinator().now();
    Schedule {
        id: ScheduleId::new(created_at),
        action,
        task_id: None,
        session_id: None,
        user_id: None,
        goal: None,
        workspace: None,
        check_prompt: None,
        rhythm,
        time_zone: "UTC".to_owned(),
        timeout_at: None,
        timeout_action: None,
        missed_runs: Missed::RunOnce,
        created_at,
    }
}

fn monitor(world: &World, task: TaskId) -> Schedule {
    let every = Rhythm::Every { interval_seconds: 60 };
    Schedule {
        task_id: Some(task),
        check_prompt: Some("is the build green?".to_owned()),
        ..schedule(world, ScheduleAction::Check, every)
    }
}

async fn tick(world: &World) -> Vec<TriggerOutcome> {
    let ticked = world.coordinator().schedules().timer().tick().await.unwrap();
    ticked.done.into_iter().map(|(_, handled)| handled.unwrap()).collect()
}

fn row(world: &World, task: TaskId) -> windlass_store::TaskRow {
    world.store().tasks().get(task).unwrap().unwrap()
}

/// ES-282, ES-283, ES-284, ES-285, ES-287, MS-136, MS-139: parked between checks at no cost; it looks by
/// its own commands, and ends when the agent says so.
#[tokio::test]
async fn a_monitor_is_parked_between_checks_and_ends_on_its_condition() {
    let replies = "
replies:
  - update_plan: {steps: [{id: '1', description: wait for the build, status: in_progress}]}
  - say: nothing to do yet
  - bash: cat build.txt || echo red
  - say: still red
  - say: |-
      MONITORING COMPLETE
      the build is green
";
    let world = World::routed(replies, "never asked");
    let task = world.task("tell me when the build is green").await;
    let monitor = monitor(&world, task);
    world.coordinator().schedules().add(monitor.clone()).await.unwrap();

    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    let parked = row(&world, task);
    assert_eq!((parked.status, parked.reason), (TaskStatus::Paused, StatusReason::Schedule));
    // What it watches for is its plan; the status is one that other tasks have too.
    let plans = world.journal(task).into_iter().filter_map(|record| match record.event {
        Event::PlanUpdated(plan) => Some(plan.steps[0].description.clone()),
        _ => None,
    });
    assert_eq!(plans.collect::<Vec<_>>(), ["wait for the build"]);
    assert!(world.sent()[1].contains("wait for the build"), "the agent sees its plan again");
    let plan = std::path::Path::new(&parked.workspace).join(".plan.md");
    let plan = std::fs::read_to_string(plan).unwrap();
    assert!(plan.contains("wait for the build"), "{plan}");
    let next = parked.next_action_at.unwrap();
    assert_eq!(next.to_string(), "2026-11-15T08:01:00+00:00[UTC]");
    let queued = world.store().scheduler().get(task).unwrap().unwrap();
    assert_eq!((queued.status, queued.due_at), (SchedulerStatus::Queued, Some(next.timestamp())));
    assert!(tick(&world).await.is_empty(), "nothing is due, nothing happens");
    assert!(world.coordinator().queue().ready().unwrap().is_empty());
    let asked = world.stage.server.request_count();

    world.stage.advance(MINUTE);
    assert_eq!(tick(&world).await, [TriggerOutcome::Injected { task }]);
    assert!(tick(&world).await.is_empty(), "a run is one run");
    assert_eq!(world.coordinator().queue().ready().unwrap(), [task]);
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    assert_eq!(
        world.stage.server.request_count(),
        asked + 2,
        "a check costs what it takes to look"
    );
    assert!(world.sent().last().unwrap().contains("Scheduled check: is the build green?"));

    world.stage.advance(MINUTE);
    tick(&world).await;
    let result = world.drive(task).await;
    assert_eq!(result.status, ResultStatus::Completed);
    assert!(result.final_message.unwrap().contains("the build is green"));
    let ended = world.store().schedules().get(monitor.id).unwrap().unwrap();
    assert_eq!((ended.state, ended.runs), (ScheduleState::Ended, 2));
    let consumed = world.store().scheduler().get(task).unwrap().unwrap();
    assert_eq!(consumed.status, SchedulerStatus::Consumed);
    assert_eq!(world.routings(), 0, "no trigger but a message asks the router");
    assert_eq!(world.store().projections().verify().unwrap(), [], "the journal implies all of it");
}

/// ES-056, ES-286: patience ends at `timeout_at`, by its action, driven or not.
#[tokio::test]
async fn a_monitor_whose_condition_never_holds_times_out() {
    for (action, status) in
        [(TimeoutAction::Fail, TaskStatus::Failed), (TimeoutAction::Complete, TaskStatus::Done)]
    {
        let world = World::routed("replies: [{say: waiting}, {say: still waiting}]", "never asked");
        let task = world.task("wait").await;
        let mut monitor = monitor(&world, task);
        monitor.timeout_at = Some(at("2026-11-15T08:01:30Z"));
        monitor.timeout_action = Some(action);
        world.coordinator().schedules().add(monitor.clone()).await.unwrap();
        world.drive(task).await;
        world.stage.advance(MINUTE);
        tick(&world).await;
        world.drive(task).await;
        world.stage.advance(MINUTE);
        let handled = tick(&world).await;
        assert!(matches!(handled[..], [TriggerOutcome::Steered { .. }]), "{handled:?}");
        assert_eq!(row(&world, task).status, status, "{action}");
        let ended = world.store().schedules().get(monitor.id).unwrap().unwrap();
        assert_eq!(ended.ended_reason.as_deref(), Some("its task has ended"));
        assert!(tick(&world).await.is_empty());
    }
}

/// ES-056, ES-099, MS-194: a cron schedule starts tasks automatically, at its time by its zone.
#[tokio::test]
async fn a_cron_schedule_starts_a_task_at_its_time() {
    let world = World::routed("replies: [{say: reported}]", "never asked");
    let cron = Rhythm::Cron { cron: "30 9 * * *".to_owned() };
    let mut daily = schedule(&world, ScheduleAction::Start, cron);
    daily.goal = Some("write the daily report".to_owned());
    daily.time_zone = "Europe/Berlin".to_owned();
    let first = world.coordinator().schedules().add(daily.clone()).await.unwrap().unwrap();
    assert_eq!(first.to_string(), "2026-11-15T09:30:00+01:00[Europe/Berlin]");
    let next = world.coordinator().schedules().timer().tick().await.unwrap().next;
    assert_eq!(next, Some(at("2026-11-15T08:30:00Z")), "the loop sleeps until then");
    world.stage.set_clock(at("2026-11-15T08:30:00Z"));
    let handled = tick(&world).await;
    let [TriggerOutcome::Started { task, .. }] = handled[..] else { panic!("{handled:?}") };
    let started = row(&world, task);
    assert_eq!(started.goal, "write the daily report");
    let queued = world.store().scheduler().get(task).unwrap().unwrap();
    assert_eq!(queued.status, SchedulerStatus::Due);
    assert!(world.coordinator().queue().claim(task, "worker-1").await.unwrap());
    assert!(!world.coordinator().queue().claim(task, "worker-2").await.unwrap());
    world.stage.set_clock(at("2026-11-16T08:30:00Z"));
    let handled = tick(&world).await;
    assert!(
        matches!(&handled[..], [TriggerOutcome::Nothing { reason }] if reason.contains("still lives"))
    );
    world.drive(task).await;
    let over = world.store().scheduler().get(task).unwrap().unwrap();
    assert_eq!(over.status, SchedulerStatus::Consumed, "whoever has the lock runs it");
    world.stage.set_clock(at("2026-11-17T08:30:00Z"));
    assert!(matches!(tick(&world).await[..], [TriggerOutcome::Started { .. }]));
    assert_eq!(world.store().tasks().list(&Filter::default()).unwrap().len(), 2);
}

/// MS-207: a schedule starts a limited number of tasks in a period, and a person is notified once.
#[tokio::test]
async fn a_schedule_starts_no_more_tasks_than_autonomous_work_may() {
    let world = World::routed("replies: [{say: reported}]", "never asked");
    let limits = CoordinatorLimits { autonomous_tasks: 2, ..CoordinatorLimits::default() };
    let coordinator = world.coordinator().clone().with_limits(limits);
    let every = Rhythm::Every { interval_seconds: 3600 };
    let mut hourly = schedule(&world, ScheduleAction::Start, every);
    hourly.goal = Some("write the report".to_owned());
    coordinator.schedules().add(hourly.clone()).await.unwrap();
    let mut started = Vec::new();
    for _hour in 1..=12 {
        world.stage.advance(MINUTE * 60);
        for (_, handled) in coordinator.schedules().timer().tick().await.unwrap().done {
            if let TriggerOutcome::Started { task, .. } = handled.unwrap() {
                started.push(row(&world, task).created_at.to_string());
                world.drive(task).await;
            }
        }
    }
    let hours = ["09", "10", "17", "18"].map(|hour| format!("2026-11-15T{hour}:00:00Z"));
    assert_eq!(started, hours, "two within eight hours");
    let row = world.store().schedules().get(hourly.id).unwrap().unwrap();
    assert_eq!((row.runs, row.missed), (4, 8));
    let replies = world.replies();
    let notices: Vec<_> =
        replies.iter().filter(|reply| reply.contains("autonomous_max_tasks")).collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].contains("the next may start at 2026-11-15T17:00:00Z"), "{notices:?}");
}

/// Runs that were missed while no service ran are skipped, or replaced by one run.
#[tokio::test]
async fn missed_runs_follow_the_policy() {
    for (missed, expected) in [(Missed::Skip, 0), (Missed::RunOnce, 1)] {
        let world = World::routed("replies: [{say: waiting}]", "never asked");
        let task = world.task("wait").await;
        let mut every = monitor(&world, task);
        every.rhythm = Rhythm::Every { interval_seconds: 600 };
        every.missed_runs = missed;
        world.coordinator().schedules().add(every.clone()).await.unwrap();
        world.drive(task).await;
        world.stage.advance(SignedDuration::from_mins(35));
        tick(&world).await;
        let row = world.store().schedules().get(every.id).unwrap().unwrap();
        assert_eq!((row.runs, row.missed), (expected, 3 - expected), "{missed}");
        assert_eq!(row.next_at.unwrap().timestamp(), at("2026-11-15T08:40:00Z"));
    }
}

/// A message goes to its task; a paused schedule says nothing; a removed one lets its task end.
#[tokio::test]
async fn a_schedule_is_paused_resumed_and_removed() {
    let world = World::routed("replies: [{say: waiting}, {say: done}]", "never asked");
    let task = world.task("wait").await;
    let every = Rhythm::Every { interval_seconds: 60 };
    let mut message = schedule(&world, ScheduleAction::Message, every);
    (message.task_id, message.check_prompt) = (Some(task), Some("drink water".to_owned()));
    world.coordinator().schedules().add(message.clone()).await.unwrap();
    world.stage.advance(MINUTE);
    tick(&world).await;
    assert_eq!(world.injected(task), ["drink water"]);
    world.coordinator().schedules().pause(message.id).await.unwrap();
    world.stage.advance(MINUTE);
    assert!(tick(&world).await.is_empty());
    world.coordinator().schedules().resume(message.id).await.unwrap();
    world.stage.advance(MINUTE);
    assert_eq!(tick(&world).await, [TriggerOutcome::Injected { task }]);
    world.coordinator().schedules().remove(message.id).await.unwrap();
    assert!(world.coordinator().schedules().remove(message.id).await.is_err());

    let check = monitor(&world, task);
    world.coordinator().schedules().add(check.clone()).await.unwrap();
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    world.coordinator().schedules().remove(check.id).await.unwrap();
    world.coordinator().messages().send(task, "that is all", "ada").await.unwrap();
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
    assert_eq!(row(&world, task).next_action_at, None);
}

/// ES-099: another scheduler's trigger names the task and what to check.
#[tokio::test]
async fn a_trigger_of_another_scheduler_injects_its_prompt() {
    let world = World::routed("replies: [{say: looked}]", "never asked");
    let task = world.task("wait").await;
    let trigger = ScheduledTrigger {
        request_id: Some("other-1".to_owned()),
        trigger_type: Due::Cron,
        schedule_id: None,
        task_id: Some(task),
        check_prompt: Some("is it there?".to_owned()),
        due_at: None,
    };
    for _ in 0..2 {
        world.coordinator().triggers().scheduled_trigger(trigger.clone()).await.unwrap();
    }
    world.drive(task).await;
    assert_eq!(world.sent()[0].matches("Scheduled check: is it there?").count(), 1);
    let nothing = ScheduledTrigger { task_id: None, ..trigger };
    let refused = world.coordinator().triggers().scheduled_trigger(nothing).await.unwrap_err();
    assert!(!refused.is_transient(), "{refused}");
}

/// A task that a person has parked does not get the same check again and again.
#[tokio::test]
async fn checks_do_not_pile_up_in_front_of_a_parked_task() {
    let world = World::routed("replies: [{say: waiting}, {say: still waiting}]", "never asked");
    let task = world.task("wait").await;
    world.coordinator().schedules().add(monitor(&world, task)).await.unwrap();
    world.drive(task).await;
    let pause = windlass_core::injection::Control::Pause;
    world.coordinator().control().steer(task, pause, "ada").await.unwrap();
    for _ in 0..5 {
        world.stage.advance(MINUTE);
        tick(&world).await;
    }
    assert_eq!(world.store().mailbox().pending(task).unwrap().len(), 1);
}

/// MS-181, MS-188: schedules, leases, journals, sessions and background tasks each keep time by its type.
#[tokio::test]
async fn times_are_kept_by_their_types() {
    let world = World::routed("replies: [{say: waiting}]", "never asked");
    let task = world.task("wait").await;
    let monitor = monitor(&world, task);
    world.coordinator().schedules().add(monitor.clone()).await.unwrap();
    world.drive(task).await;
    let store = world.store();
    let next: jiff::Zoned = store.schedules().get(monitor.id).unwrap().unwrap().next_at.unwrap();
    assert_eq!(next.time_zone().iana_name(), Some("UTC"));
    let until: jiff::Timestamp = at("2026-11-15T08:00:30Z");
    store.sessions().leases().take(world.session, "a", at(START), until).await.unwrap();
    assert_eq!(store.sessions().leases().holder(world.session).unwrap().unwrap().1, until);
    assert!(world.journal(task).iter().all(|record| record.at >= at(START)));
    let row = row(&world, task);
    assert_eq!((row.created_at, row.next_action_at.unwrap()), (at(START), next));
    let scheduled = store.scheduler().get(task).unwrap().unwrap();
    assert_eq!(scheduled.due_at, Some(at("2026-11-15T08:01:00Z")));
}

/// The driver loop sleeps until something is due, and wakes for what is added meanwhile.
#[tokio::test]
async fn the_timer_runs_in_a_loop() {
    let world = World::routed("replies: [{say: waiting}]", "never asked");
    let task = world.task("wait").await;
    let mut now = monitor(&world, task);
    now.created_at = at(START) - MINUTE;
    let stop = tokio_util::sync::CancellationToken::new();
    let coordinator = world.coordinator().clone();
    let mut following = world.store().mailbox().changes();
    let see = async {
        coordinator.schedules().add(now.clone()).await.unwrap();
        world.stage.advance(MINUTE);
        coordinator.queue().wake();
        while world.store().schedules().get(now.id).unwrap().unwrap().runs == 0 {
            following.mark_seen();
            tokio::select! {
                changed = following.changed() => changed.unwrap(),
                () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
            }
        }
        stop.cancel();
    };
    tokio::join!(coordinator.schedules().timer().run(&stop), see);
    assert_eq!(world.injected(task).len(), 2);
}
