//! When something happens automatically: deadlines, and schedules with their runs. Times are typed by what
//! they mean: instants, zoned times, dates, times of day, durations (MS-183…188).

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned, civil};
use serde::{Deserialize, Serialize};

use crate::id::{ScheduleId, SessionId, TaskId};
use crate::string_enum;

/// The shortest interval of a schedule; what must be quicker than that is a command that polls.
pub const MIN_INTERVAL: u64 = 1;

/// A run that is later than this was missed: nobody was there to start it.
pub const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// How a final reply begins that ends a task which a schedule watches; any other parks it until the
/// schedule fires again. A monitor that continues by mistake is seen; one that stops by mistake is not.
pub const MONITORING_COMPLETE: &str = "MONITORING COMPLETE";

string_enum! {
    /// What happens when a task's deadline passes (ES-079…081).
    DeadlineAction ("deadline action") {
        Fail = "fail",
        /// It ends with what it has.
        CompletePartial = "complete_partial",
        /// It is parked and a person is notified.
        PauseAndNotify = "pause_and_notify",
    }
}

string_enum! {
    /// What happens when a monitor has waited long enough (ES-286).
    TimeoutAction ("timeout action") {
        /// The task ends with what it has.
        Complete = "complete",
        /// The task fails.
        Fail = "fail",
    }
}

string_enum! {
    /// How a task ends, or is parked, when its time is up.
    Expiry ("expiry") {
        Fail = "fail",
        /// It ends with what it has.
        Complete = "complete",
        /// It is parked.
        Pause = "pause",
    }
}

impl From<DeadlineAction> for Expiry {
    fn from(action: DeadlineAction) -> Self {
        match action {
            DeadlineAction::Fail => Self::Fail,
            DeadlineAction::CompletePartial => Self::Complete,
            DeadlineAction::PauseAndNotify => Self::Pause,
        }
    }
}

impl From<TimeoutAction> for Expiry {
    fn from(action: TimeoutAction) -> Self {
        match action {
            TimeoutAction::Fail => Self::Fail,
            TimeoutAction::Complete => Self::Complete,
        }
    }
}

string_enum! {
    /// The state of a task in the scheduler, apart from its own status (MS-139, MS-142).
    SchedulerStatus ("scheduler status") {
        /// Waiting for its time or its place.
        Queued = "queued",
        /// Its time has come.
        Due = "due",
        /// A worker has claimed it.
        Claimed = "claimed",
        /// An agent works on it.
        Dispatched = "dispatched",
        /// The run it was scheduled for has ended.
        Consumed = "consumed",
        /// Its time passed before anybody took it.
        Expired = "expired",
    }
}

string_enum! {
    /// What a schedule does when its time comes.
    ScheduleAction ("schedule action") {
        /// Tells a task to look whether what it waits for has happened.
        Check = "check",
        /// Says something to a task.
        Message = "message",
        /// Starts a task (`autonomous_dispatch`, MS-194).
        Start = "start",
    }
}

string_enum! {
    /// What happens with runs that nobody was there to start.
    Missed ("policy for missed runs") {
        /// They are left out.
        Skip = "skip",
        /// One run replaces all of them.
        RunOnce = "run_once",
    }
}

string_enum! {
    /// Whether a schedule still fires.
    ScheduleState ("schedule state") {
        Active = "active",
        /// A person has stopped it for now.
        Paused = "paused",
        /// It has done its last run.
        Ended = "ended",
    }
}

/// When the runs of a schedule are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Rhythm {
    /// At an interval in seconds, from when it was made.
    Every {
        /// The seconds between.
        interval_seconds: u64,
    },
    /// By a cron line of five fields.
    Cron { cron: String },
    /// Every day at a time by the local clock.
    Daily { daily_at: civil::Time },
    Once {
        date: civil::Date,
        /// The time by the local clock.
        time: civil::Time,
    },
}

/// Why a rhythm cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RhythmError(String);

/// Something that happens automatically, again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub id: ScheduleId,
    /// What it does.
    pub action: ScheduleAction,
    /// The task that it speaks to (ES-285).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The session that it speaks to, or that its tasks belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The user that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// What its tasks are to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The directory that its tasks work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What the agent reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_prompt: Option<String>,
    /// When its runs are.
    #[serde(flatten)]
    pub rhythm: Rhythm,
    /// The zone of its clock, by its IANA name.
    pub time_zone: String,
    /// When it has waited long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Timestamp>,
    /// What becomes of the task then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_action: Option<TimeoutAction>,
    /// What happens with runs that nobody was there to start.
    pub missed_runs: Missed,
    /// When it was made; the runs of an interval are counted from here.
    pub created_at: Timestamp,
}

impl Rhythm {
    /// The first run after an instant; `None` when there is none. `from` is when the schedule was made.
    ///
    /// Where clocks are put forward, a daily time that does not exist that day is the moment after the
    /// gap, and a cron line skips it; where they are put back, both run at the first of the two.
    pub fn next(&self, from: Timestamp, after: Timestamp, zone: &TimeZone) -> Option<Zoned> {
        match self {
            Self::Every { interval_seconds } => {
                let interval = i64::try_from((*interval_seconds).max(MIN_INTERVAL)).ok()?;
                let passed = after.duration_since(from).as_secs().div_euclid(interval).max(0);
                let until = interval.checked_mul(passed.checked_add(1)?)?;
                let next = from.checked_add(SignedDuration::from_secs(until)).ok()?;
                Some(next.to_zoned(zone.clone()))
            }
            Self::Cron { cron } => {
                let crontab = parse_cron(cron, zone).ok()?;
                crontab.find_next(cronexpr::MakeTimestamp(after)).ok()
            }
            Self::Daily { daily_at } => {
                let today = after.to_zoned(zone.clone()).date();
                let days = [Some(today), today.tomorrow().ok()];
                let at = |day: civil::Date| zone.to_zoned(day.to_datetime(*daily_at)).ok();
                days.into_iter().flatten().filter_map(at).find(|at| at.timestamp() > after)
            }
            Self::Once { date, time } => {
                let at = zone.to_zoned(date.to_datetime(*time)).ok()?;
                (at.timestamp() > after).then_some(at)
            }
        }
    }

    /// Whether it can be kept in a zone at all, or what is wrong with it.
    pub fn check(&self, zone: &TimeZone) -> Result<(), RhythmError> {
        match self {
            Self::Every { interval_seconds } if *interval_seconds < MIN_INTERVAL => {
                Err(RhythmError(format!("an interval is at least {MIN_INTERVAL} s")))
            }
            Self::Cron { cron } => parse_cron(cron, zone).map(|_| ()),
            Self::Every { .. } | Self::Daily { .. } | Self::Once { .. } => Ok(()),
        }
    }
}

fn parse_cron(cron: &str, zone: &TimeZone) -> Result<cronexpr::Crontab, RhythmError> {
    let bad = |why: &dyn std::fmt::Display| {
        RhythmError(format!("`{cron}` is not a cron line like `30 9 * * 1-5`: {why}"))
    };
    if cron.split_whitespace().count() != 5 {
        return Err(bad(&"it has five fields: minute, hour, day, month, weekday"));
    }
    let zone = zone.iana_name().unwrap_or("UTC");
    cronexpr::parse_crontab(&format!("{cron} {zone}")).map_err(|error| {
        // The lines before the last one quote the text, with the zone, and point into it.
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches([' ', '^']);
        bad(&why.replace("..=", " to "))
    })
}

/// A time zone by its IANA name.
pub fn time_zone(name: &str) -> Result<TimeZone, RhythmError> {
    TimeZone::get(name)
        .map_err(|_| RhythmError(format!("`{name}` is not a time zone like `Europe/Berlin`")))
}

/// What a schedule's clock says about an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct DueRun {
    /// Whether it runs now.
    pub runs: bool,
    /// Runs that are left out.
    pub missed: u32,
    /// Its next run.
    pub next: Option<Zoned>,
}

/// Runs that are counted when they were missed; more say nothing new.
const MAX_MISSED: u32 = 1000;

impl Schedule {
    /// The zone of its clock; one that this machine does not know is read as UTC.
    pub fn zone(&self) -> TimeZone {
        time_zone(&self.time_zone).unwrap_or(TimeZone::UTC)
    }

    /// The first run after an instant.
    pub fn next(&self, after: Timestamp) -> Option<Zoned> {
        self.rhythm.next(self.created_at, after, &self.zone())
    }

    /// What happens at `now`, when a run was due at `due`.
    pub fn due_run(&self, due: Timestamp, now: Timestamp) -> DueRun {
        let late = now.duration_since(due) > GRACE;
        let mut missed = 0;
        let mut run = due;
        while let Some(next) = self.next(run).filter(|next| next.timestamp() <= now) {
            run = next.timestamp();
            missed += 1;
            if missed >= MAX_MISSED {
                break;
            }
        }
        // Of several runs that are due together the last is the one that may still be on time.
        let on_time = now.duration_since(run) <= GRACE;
        let runs = !late || on_time || self.missed_runs == Missed::RunOnce;
        let missed = if runs { missed } else { missed + 1 };
        DueRun { runs, missed, next: self.next(now) }
    }
}
