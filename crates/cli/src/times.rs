//! Times as a person writes them on a command line: a moment, a time of day, or how
//! long from now.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil};

use crate::failure::Failure;

const LENGTHS: &str = "write a length of time like `90s` or `PT1H`";
const FORMS: &str = "write it like `2026-12-24 18:00`, `2026-12-24T18:00:00Z`, `2h` or `PT30M`";

/// A moment: given as such, by the clock of a zone, or as a time from now.
pub fn moment(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, Failure> {
    let text = text.trim();
    let wrong = || Failure::usage(format!("`{text}` is not a time"), FORMS);
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Ok(zoned) = text.parse::<jiff::Zoned>() {
        return Ok(zoned.timestamp());
    }
    if let Ok(length) = duration(text.strip_prefix('+').unwrap_or(text)) {
        return now.checked_add(length).map_err(|_| wrong());
    }
    let at: civil::DateTime = text.parse().map_err(|_| wrong())?;
    Ok(zone.to_zoned(at).map_err(|_| wrong())?.timestamp())
}

/// A length of time, such as `90s`, `2h 30m` or `PT1H`; more than nothing.
pub fn duration(text: &str) -> Result<SignedDuration, Failure> {
    let wrong = |problem| Failure::usage(format!("`{text}` is {problem}"), LENGTHS);
    let length: SignedDuration = text.trim().parse().map_err(|_| wrong("not a length of time"))?;
    match length.is_positive() {
        true => Ok(length),
        false => Err(wrong("not longer than 0 s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MS-183, MS-186: instants, times by the clock on the wall, and durations in both spellings.
    #[test]
    fn a_moment_is_read_in_every_spelling() {
        let now: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let read = |text: &str| moment(text, now, &berlin).map(|at| at.to_string());
        for (text, at) in [
            ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
            ("2026-12-24 18:00", "2026-12-24T17:00:00Z"),
            ("2026-12-24T18:00:00-05:00[America/New_York]", "2026-12-24T23:00:00Z"),
            ("2h", "2026-11-15T10:00:00Z"),
            ("+PT30M", "2026-11-15T08:30:00Z"),
        ] {
            assert_eq!(read(text).unwrap(), at, "{text}");
        }
        for text in ["", "soon", "-2h", "2026-13-01 00:00"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
