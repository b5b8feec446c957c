//! When a schedule runs next, and what a person wrote for it.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil};
use windlass_core::id::{ScheduleId, TaskId};
use windlass_core::schedule::{
    DueRun, Missed, Rhythm, Schedule, ScheduleAction, TimeoutAction, time_zone,
};

fn at(text: &str) -> Timestamp {
    text.parse().expect("a schedule in a test")
}

fn schedule(rhythm: Rhythm, zone: &str, missed_runs: Missed) -> Schedule {
    Schedule {
        id: ScheduleId::derived("test", "schedule"),
        action: ScheduleAction::Check,
        task_id: None,
        session_id: None,
        user_id: None,
        goal: None,
        workspace: None,
        check_prompt: Some("is it green?".to_owned()),
        rhythm,
        time_zone: zone.to_owned(),
        timeout_at: None,
        timeout_action: None,
        missed_runs,
        created_at: at("2026-03-27T10:00:00Z"),
    }
}

/// The next runs after an instant, as a person would write them.
fn runs(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let mut after = at(after);
    let mut found = Vec::new();
    while let Some(next) = schedule.next(after).filter(|_| found.len() < count) {
        after = next.timestamp();
        found.push(next.strftime("%F %H:%M %Z").to_string());
    }
    found
}

fn cron(line: &str) -> Rhythm {
    Rhythm::Cron { cron: line.to_owned() }
}

/// MS-183: a schedule keeps the clock of its zone, whatever the offset is that day.
#[test]
fn a_cron_line_keeps_the_clock_of_its_zone() {
    let weekdays = schedule(cron("30 9 * * 1-5"), "Europe/Berlin", Missed::Skip);
    assert_eq!(
        runs(&weekdays, "2026-03-27T12:00:00Z", 2),
        ["2026-03-30 09:30 CEST", "2026-03-31 09:30 CEST"]
    );
}

/// A cron time inside the spring gap is left out that day; a daily time is the moment after the gap.
#[test]
fn cron_skips_a_time_that_does_not_exist_and_daily_shifts_it() {
    let line = schedule(cron("30 2 * * *"), "Europe/Berlin", Missed::Skip);
    assert_eq!(
        runs(&line, "2026-03-28T12:00:00Z", 2),
        ["2026-03-30 02:30 CEST", "2026-03-31 02:30 CEST"]
    );
    let time = civil::time(2, 30, 0, 0);
    let daily = schedule(Rhythm::Daily { daily_at: time }, "Europe/Berlin", Missed::Skip);
    assert_eq!(
        runs(&daily, "2026-03-28T12:00:00Z", 2),
        ["2026-03-29 03:30 CEST", "2026-03-30 02:30 CEST"]
    );
    assert_eq!(
        runs(&daily, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25 02:30 CEST", "2026-10-26 02:30 CET"]
    );
}

/// MS-184, MS-185: a date and a time of day are themselves, not instants.
#[test]
fn a_single_run_is_on_its_date_by_its_clock() {
    let rhythm = Rhythm::Once { date: civil::date(2026, 12, 24), time: civil::time(18, 0, 0, 0) };
    let once = schedule(rhythm, "America/New_York", Missed::Skip);
    assert_eq!(runs(&once, "2026-11-15T00:00:00Z", 3), ["2026-12-24 18:00 EST"]);
    let json = serde_json::to_value(&once).unwrap();
    assert_eq!((&json["date"], &json["time"]), (&"2026-12-24".into(), &"18:00:00".into()));
}

/// ES-285: the JSON of a monitor's schedule.
#[test]
fn a_monitors_schedule_has_the_fields_of_the_ledger() {
    let mut monitor = schedule(Rhythm::Every { interval_seconds: 60 }, "UTC", Missed::RunOnce);
    monitor.task_id = Some(TaskId::derived("test", "task"));
    monitor.timeout_at = Some(at("2026-11-16T00:00:00Z"));
    monitor.timeout_action = Some(TimeoutAction::Fail);
    let json = serde_json::to_value(&monitor).unwrap();
    for field in ["task_id", "interval_seconds", "check_prompt", "timeout_at", "timeout_action"] {
        assert!(!json[field].is_null(), "{field}: {json}");
    }
    assert_eq!(json["timeout_at"], "2026-11-16T00:00:00Z");
    assert_eq!(serde_json::from_value::<Schedule>(json).unwrap(), monitor);
}

#[test]
fn an_interval_is_counted_from_when_the_schedule_was_made() {
    let every = schedule(Rhythm::Every { interval_seconds: 600 }, "UTC", Missed::RunOnce);
    assert_eq!(
        runs(&every, "2026-03-27T10:00:00Z", 2),
        ["2026-03-27 10:10 UTC", "2026-03-27 10:20 UTC"]
    );
    assert_eq!(runs(&every, "2026-03-27T10:14:59Z", 1), ["2026-03-27 10:20 UTC"]);
}

#[test]
fn missed_runs_are_skipped_or_replaced_by_one() {
    let every = |missed| schedule(Rhythm::Every { interval_seconds: 600 }, "UTC", missed);
    let (due, now) = (at("2026-03-27T10:10:00Z"), at("2026-03-27T10:45:00Z"));
    let next = Some("2026-03-27T10:50:00+00:00[UTC]".to_owned());
    let shown = |run: DueRun| (run.runs, run.missed, run.next.map(|next| next.to_string()));
    assert_eq!(shown(every(Missed::RunOnce).due_run(due, now)), (true, 3, next.clone()));
    assert_eq!(shown(every(Missed::Skip).due_run(due, now)), (false, 4, next));
    let on_time = every(Missed::Skip).due_run(due, at("2026-03-27T10:10:01Z"));
    assert_eq!((on_time.runs, on_time.missed), (true, 0));
    let last_is_on_time = every(Missed::Skip).due_run(due, at("2026-03-27T10:40:05Z"));
    assert_eq!((last_is_on_time.runs, last_is_on_time.missed), (true, 3));
}

#[test]
fn a_rhythm_that_cannot_be_kept_says_why() {
    let wrong = |rhythm: Rhythm| rhythm.check(&TimeZone::UTC).unwrap_err().to_string();
    assert!(wrong(cron("61 * * * *")).contains("61 * * * *"));
    assert!(wrong(cron("* * *")).contains("five fields"));
    assert!(wrong(Rhythm::Every { interval_seconds: 0 }).contains("at least 1 s"));
    assert!(time_zone("Mars/Olympus").unwrap_err().to_string().contains("Mars/Olympus"));
}

proptest::proptest! {
    #[test]
    fn reading_a_cron_line_never_panics(line in ".*", second in 0_i64..4_000_000_000) {
        let after = Timestamp::from_second(second).unwrap();
        if let Some(next) = cron(&line).next(after, after, &TimeZone::UTC) {
            proptest::prop_assert!(next.timestamp() > after);
        }
    }

    /// However late and seldom the clock is looked at, every run is one that ran or one that was missed.
    #[test]
    fn no_run_is_lost_or_counted_twice(
        interval in 1_u64..5_000, policy in 0..2, gaps in proptest::collection::vec(1_i64..20_000, 1..30),
    ) {
        let missed_runs = [Missed::Skip, Missed::RunOnce][policy as usize];
        let every = schedule(Rhythm::Every { interval_seconds: interval }, "UTC", missed_runs);
        let (mut now, mut counted) = (every.created_at, 0);
        let mut due = every.next(now).unwrap().timestamp();
        for gap in gaps {
            now += SignedDuration::from_secs(gap);
            if due <= now {
                let run = every.due_run(due, now);
                counted += u64::from(run.missed) + u64::from(run.runs);
                due = run.next.unwrap().timestamp();
                proptest::prop_assert!(due > now);
            }
        }
        let passed = now.duration_since(every.created_at).as_secs() as u64;
        // A gap that holds more runs than are counted is not one of these.
        if interval > 20 {
            proptest::prop_assert_eq!(counted, passed / interval);
        }
    }

    #[test]
    fn the_next_run_of_an_interval_is_later_and_within_it(
        interval in 1_u64..100_000, from in 0_i64..2_000_000_000, later in 0_i64..1_000_000,
    ) {
        let made = Timestamp::from_second(from).unwrap();
        let after = Timestamp::from_second(from + later).unwrap();
        let next = Rhythm::Every { interval_seconds: interval }.next(made, after, &TimeZone::UTC);
        let gap = next.unwrap().timestamp().duration_since(after).as_secs();
        proptest::prop_assert!(0 < gap && gap <= interval as i64);
    }
}
