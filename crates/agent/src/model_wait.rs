//! A model server that does not answer: which failures park a task, and for how long.
//!
//! Invariants:
//! - Pure: the policy, the journal's count of earlier pauses and the failure decide.
//! - A parked task holds nothing, neither a sandbox nor a process, while it waits (ES-378).
//! - Bounded: the pauses in a row grow, and after about a day of them the task fails.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_core::command::Outage;
use windlass_core::ending::Ending;
use windlass_core::state::TaskState;
use windlass_core::status::StatusReason;
use windlass_model::{Error, Fault};

/// The longest wait that a model's server may ask for; a longer one fails the task.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The shortest time that a rate-limited task is parked: ending and starting a segment should be worth it. It
/// is doubled each time in a row, this many times.
const SHORTEST_ASKED_WAIT: Duration = Duration::from_secs(60);
const MAX_DOUBLINGS: u32 = 6;

/// Waits in a row that a server asks for, about a day with the shortest ones; then the task fails.
const MAX_ASKED_WAITS: u32 = 24;

/// The first pause of an outage; each further one is twice as long, up to the longest. A server that is back
/// is noticed within that time.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How long pauses may last in all, without one reply between them.
const LONGEST_OUTAGE: Duration = Duration::from_secs(24 * 3600);

/// Pauses are lengthened by up to this part, so that many tasks do not come back at once.
const JITTER: u32 = 4;

/// How a task waits for its model, whose last request failed; `None` when waiting cannot help, or may not.
pub(crate) fn wait_for_model(
    policy: Outage,
    state: &TaskState,
    now: Timestamp,
    error: &Error,
) -> Option<Ending> {
    let attempts = &state.attempts;
    let asked = asked_wait(attempts.rate_limit_streak, error);
    let (reason, wait) = match (asked, policy) {
        (Some(wait), _) => (StatusReason::RateLimited, wait),
        (None, Outage::Fail) => return None,
        (None, Outage::Park) => {
            let pause = pause(attempts.outage_streak)
                .filter(|_| is_outage(error, attempts.was_answered))?;
            (StatusReason::ModelOutage, pause + jitter(state, pause))
        }
    };
    // Whole seconds, and never too early.
    let seconds = i64::try_from(wait.as_secs()).ok()?.checked_add(1)?;
    let until = now.checked_add(SignedDuration::from_secs(seconds)).ok()?;
    let until = until.round(jiff::Unit::Second).ok()?;
    Some(Ending::Waiting { reason, until, detail: error.to_string() })
}

/// How long the server's own wait is taken to be; `None` when it names none, or has done so too often.
fn asked_wait(before: u32, error: &Error) -> Option<Duration> {
    let acceptable = |wait: &Duration| *wait <= LONGEST_ASKED_WAIT && before < MAX_ASKED_WAITS;
    let asked = error.retry_delay().filter(acceptable)?;
    Some(asked.max(SHORTEST_ASKED_WAIT * 2_u32.pow(before.min(MAX_DOUBLINGS))))
}

/// Whether the server may answer the same request later, though it does not say when. If the server names a time that
/// is too long, the task fails; it is not retried earlier. A server that has never answered this task is a mistake that
/// waiting does not cure; one that has is most likely temporarily unreachable.
fn is_outage(error: &Error, was_answered: bool) -> bool {
    let is_busy = matches!(error.fault, Fault::RateLimited { .. });
    let is_hidden = was_answered && error.fault.may_come_from_intermediary();
    (error.fault.is_outage() || is_busy || is_hidden) && error.retry_delay().is_none()
}

/// The next pause after `before` others in a row.
fn pause(before: u32) -> Option<Duration> {
    let length =
        |number: u32| (FIRST_PAUSE * 2_u32.pow(number.min(MAX_DOUBLINGS))).min(LONGEST_PAUSE);
    let waited: Duration = (0..before).map(length).sum();
    (waited < LONGEST_OUTAGE).then(|| length(before))
}

/// The same for one task and pause, another for every other.
fn jitter(state: &TaskState, pause: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (state.id(), state.attempts.outage_streak).hash(&mut hasher);
    let share = (hasher.finish() % 1_000) as u32;
    pause / JITTER * share / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DESIGN §5: growing pauses, for at most a day.
    #[test]
    fn pauses_grow_to_five_minutes_and_end_after_a_day() {
        let pauses: Vec<u64> = (0..).map_while(pause).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses[..8], [5, 10, 20, 40, 80, 160, 300, 300]);
        let day = 24 * 3600;
        assert!((day..day + 300).contains(&pauses.iter().sum::<u64>()), "{}", pauses.len());
    }
}
