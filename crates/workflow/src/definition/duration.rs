//! Durations as people write them: `90`, `90s`, `10m`, `2h`.

use std::time::Duration;

/// The longest timeout; a step that needs more has no bound.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Reads a duration; a bare number is seconds.
pub(super) fn read(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let number: u64 = digits.trim().parse().ok()?;
    let seconds = match &text[digits.len()..] {
        "" | "s" => number,
        "m" => number.checked_mul(60)?,
        "h" => number.checked_mul(3600)?,
        _ => return None,
    };
    let duration = Duration::from_secs(seconds);
    (!duration.is_zero() && duration <= LONGEST).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        let seconds = |text| read(text).map(|duration| duration.as_secs());
        assert_eq!(seconds("90"), Some(90));
        assert_eq!(seconds("10m"), Some(600));
        assert_eq!(seconds("2h"), Some(7200));
        for wrong in ["", "0", "-1", "1d", "m", "99999999999999999999h", "1 000"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
