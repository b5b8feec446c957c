//! Short forms of numbers: elapsed time, counts, dollars, ages, plurals.

use std::time::Duration;

use jiff::Timestamp;

pub use windlass_core::text::{count, plural, tokens};

/// Elapsed time as `0:07`, `12:30` or `1:02:03`.
pub fn elapsed(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// How long something took: `0.4 s`, `12 s`, `1:07`.
pub fn took(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        _ => elapsed(time),
    }
}

/// How long ago, in its largest unit: `40s`, `5m`, `3h`, `2d`.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    match now.duration_since(then).as_secs().max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// An amount of money that may not be known.
pub fn known_dollars(amount: Option<f64>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), dollars)
}

/// US dollars; below one dollar up to four decimals, where two would say nothing.
pub fn dollars(amount: f64) -> String {
    // The sum of nothing is a negative zero.
    let amount = amount + 0.0;
    if amount <= 0.0 || amount >= 1.0 {
        return format!("${amount:.2}");
    }
    let text = format!("${amount:.4}");
    let cents = text.strip_suffix("00").filter(|_| amount >= 0.005);
    cents.unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(elapsed(Duration::from_secs(67)), "1:07");
        assert_eq!(elapsed(Duration::from_secs(3723)), "1:02:03");
        assert_eq!([count(950), count(12_345), count(4_500_000)], ["950", "12.3k", "4.5M"]);
        let times = [400, 12_900, 67_000].map(|ms| took(Duration::from_millis(ms)));
        assert_eq!(times, ["0.4 s", "12 s", "1:07"]);
        assert_eq!([tokens(0), tokens(12)], ["tokens unknown", "12 tokens"]);
        assert_eq!(dollars(std::iter::empty::<f64>().sum()), "$0.00");
        let amounts = [0.0, 0.6, 0.0123, 0.123, 0.000_01, 12.345].map(dollars);
        assert_eq!(amounts, ["$0.00", "$0.60", "$0.0123", "$0.1230", "$0.0000", "$12.35"]);
    }

    #[test]
    fn an_age_is_in_its_largest_unit() {
        let now: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        let ages = [0, 59, 60, 7200, 200_000]
            .map(|seconds| age(now - jiff::SignedDuration::from_secs(seconds), now));
        assert_eq!(ages, ["0s", "59s", "1m", "2h", "2d"]);
        assert_eq!(age(now + jiff::SignedDuration::from_secs(5), now), "0s");
    }

    #[test]
    fn one_of_a_thing_is_singular() {
        let counts = [plural(0u64, "line"), plural(1usize, "line"), plural(2u32, "line")];
        assert_eq!(counts, ["0 lines", "1 line", "2 lines"]);
    }
}
