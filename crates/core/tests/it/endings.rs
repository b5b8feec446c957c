//! Which events end a segment, for every ending and every state.

use jiff::Timestamp;
use windlass_core::axes::Axes;
use windlass_core::command::TaskCommand;
use windlass_core::ending::{Ending, transition};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{BudgetKind, Driver, Event, StatusChanged, TaskCreated};
use windlass_core::id::SessionId;
use windlass_core::schedule::Expiry;
use windlass_core::state::{Signal, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn state(status: TaskStatus, reason: StatusReason) -> TaskState {
    let command = TaskCommand::new(NOW, SessionId::new(NOW), "x");
    let created = TaskCreated {
        max_retries: 3,
        ..TaskCreated::new(command, Axes::headless(), "/w", Driver::Service)
    };
    let mut state =
        TaskState::begin(NOW, &Event::TaskCreated(Box::new(created))).expect("a task begins");
    (state.status, state.reason) = (status, reason);
    state.attempts.started = status != TaskStatus::Todo;
    state
}

fn running() -> TaskState {
    state(TaskStatus::Running, StatusReason::User)
}

fn endings() -> Vec<Ending> {
    let failed = |kind| Ending::Failed(ErrorDetails::new(kind, "it broke"));
    let mut all = vec![
        Ending::Done,
        Ending::Blocked,
        Ending::OverBudget,
        Ending::Partial("out of time".to_owned()),
        Ending::Waiting {
            reason: StatusReason::RateLimited,
            until: NOW,
            detail: "come back later".to_owned(),
        },
        Ending::Cancelled(Some("not needed".to_owned())),
        Ending::paused(StatusReason::User),
        Ending::paused(StatusReason::Schedule),
    ];
    all.extend([ErrorType::Timeout, ErrorType::Deadline, ErrorType::Hung].map(failed));
    all.push(failed(ErrorType::DoomLoop));
    all
}

fn shown(events: &[Event]) -> String {
    let one = |event: &Event| match event {
        Event::StatusChanged(change) => {
            let StatusChanged { from, to, reason, detail, error, until, axes: _ } = change;
            let error = error.as_ref().map_or("-", |error| error.error_type.as_str());
            let until = if until.is_some() { "until" } else { "-" };
            format!("{from} to {to} {reason} {} {error} {until}", detail.as_deref().unwrap_or("-"))
        }
        other => panic!("{other:?}"),
    };
    events.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn each_ending_leaves_a_running_task_in_its_status() {
    let table: Vec<_> =
        endings().iter().map(|ending| shown(&transition(&running(), ending))).collect();
    insta::assert_snapshot!(table.join("\n"), @"
    running to done finished - - -
    running to blocked question - - -
    running to blocked budget - - -
    running to done deadline out of time - -
    running to paused rate_limited come back later - until
    running to cancelled user not needed - -
    running to paused user - - -
    running to paused schedule - - -
    running to failed timeout it broke timeout -
    running to failed deadline it broke deadline -
    running to failed timeout it broke hung -
    running to failed error it broke doom_loop -
    ");
}

#[test]
fn only_legal_moves_are_made_from_any_status() {
    for &status in TaskStatus::ALL {
        for ending in endings() {
            for event in transition(&state(status, StatusReason::Shutdown), &ending) {
                let Event::StatusChanged(change) = event else { panic!("{event:?}") };
                assert_eq!(change.from, status);
                assert_eq!(change.from.check_move(change.to), Ok(()), "{ending:?}");
            }
        }
    }
}

#[test]
fn an_ended_task_stays_as_it_is() {
    for status in [TaskStatus::Done, TaskStatus::Failed, TaskStatus::Cancelled] {
        for ending in endings() {
            assert_eq!(transition(&state(status, StatusReason::User), &ending), [], "{ending:?}");
        }
    }
}

#[test]
fn a_task_that_is_parked_for_this_reason_stays_as_it_is() {
    let blocked = state(TaskStatus::Blocked, StatusReason::Question);
    assert_eq!(transition(&blocked, &Ending::Blocked), []);
    assert_eq!(transition(&blocked, &Ending::OverBudget), [], "it has one status at a time");
    let paused = state(TaskStatus::Paused, StatusReason::User);
    assert_eq!(transition(&paused, &Ending::paused(StatusReason::User)), []);
}

#[test]
fn a_pause_by_a_person_replaces_one_that_would_end_automatically() {
    let limited = state(TaskStatus::Paused, StatusReason::RateLimited);
    let events = transition(&limited, &Ending::paused(StatusReason::User));
    assert_eq!(shown(&events), "paused to paused user - - -");
}

#[test]
fn a_question_about_the_budget_blocks_for_the_budget() {
    let mut state = running();
    state.spending.hit = Some(BudgetKind::ALL[0]);
    assert_eq!(Ending::Blocked.status_change(&state).reason, StatusReason::Budget);
}

/// ES-078
#[test]
fn time_that_is_up_ends_a_task_as_its_owner_wanted() {
    let expired = |state: &TaskState| {
        let each = Expiry::ALL.iter().map(|action| {
            let ending = Ending::expired(state, *action, "too late");
            format!("{action}: {}", shown(&transition(state, &ending)))
        });
        each.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(expired(&running()), @"
    fail: running to failed deadline too late deadline -
    complete: running to done deadline too late - -
    pause: running to paused deadline too late - -
    ");
    insta::assert_snapshot!(expired(&state(TaskStatus::Todo, StatusReason::User)), @"
    fail: todo to failed deadline too late deadline -
    complete: todo to failed deadline too late deadline -
    pause: todo to paused deadline too late - -
    ");
    insta::assert_snapshot!(expired(&state(TaskStatus::Retrying, StatusReason::User)), @"
    fail: retrying to failed deadline too late deadline -
    complete: retrying to failed deadline too late deadline -
    pause: retrying to paused deadline too late - -
    ");
}

#[test]
fn a_signal_asks_for_its_ending() {
    let mut state = running();
    assert_eq!(Ending::from_signal(&state), None);
    for (signal, ending) in [
        (Signal::Cancel(None), Ending::Cancelled(None)),
        (Signal::Pause, Ending::paused(StatusReason::User)),
        (Signal::Interrupt, Ending::paused(StatusReason::User)),
        (Signal::Expired(Expiry::Complete, "late".into()), Ending::Partial("late".into())),
    ] {
        state.signal = Some(signal);
        assert_eq!(Ending::from_signal(&state), Some(ending));
    }
}
