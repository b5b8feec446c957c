//! When to ask again, and how long to wait before.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::{Category, Fault};

/// How temporary failures are retried. Defaults: ES-374…377.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// How many retries follow the first attempt.
    pub max_retries: u32,
    /// The first wait.
    pub base: Duration,
    /// Factor from one wait to the next.
    pub multiplier: f64,
    /// The longest wait we choose ourselves.
    pub cap: Duration,
    /// The longest wait that a server may ask for here; for a longer one the caller parks the task.
    pub max_retry_after: Duration,
}

/// The longest `retry-after` that we wait out without parking the task. It equals the default stall limit. A parked
/// task holds no sandbox.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Waits are lengthened by up to this much, so that many tasks do not come back at once.
const JITTER: f64 = 0.25;

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_retries: 3,
            base: Duration::from_millis(1000),
            multiplier: 2.0,
            cap: Duration::from_secs(30),
            max_retry_after: LONGEST_RETRY_AFTER,
        }
    }
}

impl Retry {
    /// How long to wait before retry `number` (from 1), or `None` when it is over.
    ///
    /// `chance` is in 0..1 and decides the jitter.
    pub(crate) fn wait(&self, number: u32, fault: &Fault, chance: f64) -> Option<Duration> {
        if number > self.max_retries || fault.category() == Category::Permanent {
            return None;
        }
        if let Some(asked) = fault.retry_after() {
            return (asked <= self.max_retry_after).then_some(asked);
        }
        let steps = i32::try_from(number - 1).unwrap_or(i32::MAX);
        let factor = self.multiplier.powi(steps) * (1.0 + JITTER * chance);
        let cap = self.cap.as_secs_f64();
        Some(Duration::from_secs_f64((self.base.as_secs_f64() * factor).clamp(0.0, cap)))
    }
}

/// A number in 0..1 that differs between processes and calls.
pub(crate) fn random_fraction() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Reads how long a server wants us to wait: milliseconds, seconds, or an HTTP date.
///
/// A date is measured against the server's own clock when it tells it, so that ours may be wrong.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| *n >= 0.0);
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = http_date(after)?;
    let now = text(DATE.as_str()).and_then(http_date).unwrap_or_else(Timestamp::now);
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn http_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<Duration>) -> Fault {
        Fault::RateLimited { retry_after, detail: String::new() }
    }

    /// ES-374, ES-375, ES-376, ES-377, ES-370
    #[test]
    fn waits_double_from_one_second_to_thirty_and_end_after_three_retries() {
        let retry = Retry::default();
        let wait = |number, chance| retry.wait(number, &Fault::EmptyReply, chance);
        assert_eq!(
            [1, 2, 3, 4].map(|number| wait(number, 0.0)),
            [Some(1000), Some(2000), Some(4000), None].map(|ms| ms.map(Duration::from_millis))
        );
        assert_eq!(wait(2, 1.0), Some(Duration::from_millis(2500)));
        let patient = Retry { max_retries: 9, ..retry };
        assert_eq!(patient.wait(9, &Fault::EmptyReply, 1.0), Some(Duration::from_secs(30)));
    }

    /// ES-371, ES-379
    #[test]
    fn what_someone_has_to_change_is_not_retried() {
        let gone = Fault::ModelUnavailable { detail: String::new() };
        assert_eq!(Retry::default().wait(1, &gone, 0.0), None);
    }

    /// ES-378
    #[test]
    fn the_servers_wait_goes_before_ours_up_to_a_limit() {
        let asked =
            |seconds| Retry::default().wait(1, &busy(Some(Duration::from_secs(seconds))), 0.5);
        assert_eq!(asked(120), Some(Duration::from_secs(120)));
        assert_eq!(asked(0), Some(Duration::ZERO));
        assert_eq!(asked(300), Some(Duration::from_secs(300)));
        assert_eq!(asked(301), None);
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        let read = |pairs: &[(&'static str, &str)]| {
            retry_after(
                &pairs.iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect(),
            )
        };
        assert_eq!(read(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(read(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(
            read(&[("retry-after-ms", "250"), ("retry-after", "9")]),
            Some(Duration::from_millis(250))
        );
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        let later = ("retry-after", "Wed, 21 Oct 2026 07:28:07 GMT");
        let earlier = ("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT");
        assert_eq!(read(&[date, later]), Some(Duration::from_secs(7)));
        assert_eq!(read(&[date, earlier]), Some(Duration::ZERO));
        for nonsense in ["soon", "-1", "NaN", "inf", "1e400", ""] {
            assert_eq!(read(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
    }

    #[test]
    fn chance_stays_between_nought_and_one() {
        assert!((0..100).all(|_| (0.0..1.0).contains(&random_fraction())));
    }
}
