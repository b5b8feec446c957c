//! Slows down guessing: after some wrong tokens or codes from one address, its requests are refused for a while.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// Wrong ones that an address may send within [`WINDOW_SECONDS`].
const MAX_FAILURES: u32 = 20;

const WINDOW_SECONDS: i64 = 60;

/// Addresses that are remembered; where there are more, all new ones count as one.
const MAX_ADDRESSES: usize = 4096;

#[derive(Default)]
pub(super) struct Throttle(Mutex<HashMap<Option<IpAddr>, Failures>>);

#[derive(Clone, Copy)]
struct Failures {
    since: i64,
    count: u32,
}

impl Throttle {
    /// Seconds until an address is listened to again; `None` where it is now.
    pub(super) fn blocked(&self, from: IpAddr, now: Timestamp) -> Option<u64> {
        let now = now.as_second();
        let failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = failures.get(&Some(from)).or_else(|| failures.get(&None))?;
        let left = found.since + WINDOW_SECONDS - now;
        (found.count >= MAX_FAILURES && left > 0).then_some(left.unsigned_abs())
    }

    /// Counts a wrong one.
    pub(super) fn failed(&self, from: IpAddr, now: Timestamp) {
        let now = now.as_second();
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|_, one| one.since + WINDOW_SECONDS > now);
        let has_room = failures.len() < MAX_ADDRESSES || failures.contains_key(&Some(from));
        let key = has_room.then_some(from);
        failures.entry(key).or_insert(Failures { since: now, count: 0 }).count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_is_slowed_down_for_the_one_who_guesses() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (guesser, other): (IpAddr, IpAddr) =
            ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let throttle = Throttle::default();
        for second in 0..i64::from(MAX_FAILURES) {
            assert_eq!(throttle.blocked(guesser, at(second)), None);
            throttle.failed(guesser, at(second));
        }
        assert_eq!(throttle.blocked(guesser, at(20)), Some(40));
        assert_eq!(throttle.blocked(other, at(20)), None);
        assert_eq!(throttle.blocked(guesser, at(WINDOW_SECONDS)), None);
    }
}
