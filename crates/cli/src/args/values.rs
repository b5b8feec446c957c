//! Parsers of argument values: words of a closed set, numbers, durations. Each says what is wrong.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PathBufValueParser, PossibleValue, TypedValueParser};
use windlass_core::axes::{self, UnknownValue};
use windlass_core::question::MAX_DOLLARS;

/// Parses a word of a closed set. Completion scripts know the words.
#[derive(Clone)]
pub(crate) struct OneOf<T: 'static> {
    all: &'static [T],
    word: fn(T) -> &'static str,
}

/// One of these words.
pub(crate) fn one_of<T>(all: &'static [T], word: fn(T) -> &'static str) -> OneOf<T> {
    OneOf { all, word }
}

impl<T> TypedValueParser for OneOf<T>
where
    T: FromStr<Err = UnknownValue> + Copy + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        axes::parse::<T>.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.all.iter().map(|value| PossibleValue::new((self.word)(*value)))))
    }
}

/// A whole number, or what is wrong with it in words.
pub(crate) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| match text.strip_prefix('-') {
        Some(number) if is_digits(number) => "must be 0 or more".to_owned(),
        None if is_digits(text) => "too large".to_owned(),
        Some(_) | None => "not a whole number".to_owned(),
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

const AT_LEAST_ONE: &str = "must be 1 or more";

/// How many are shown: none would say nothing.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match whole(text) {
        Ok(0) => Err(AT_LEAST_ONE.to_owned()),
        Err(_) if text.strip_prefix('-').is_some_and(is_digits) => Err(AT_LEAST_ONE.to_owned()),
        read => read,
    }
}

/// An address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not an address and port such as `127.0.0.1:7878`".to_owned())
}

/// An existing directory.
pub(crate) fn directory() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.is_dir() {
        true => Ok(path),
        false if path.exists() => Err("not a directory"),
        false => Err("there is no such directory"),
    })
}

/// An amount of US dollars.
pub(crate) fn dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.strip_prefix('$').unwrap_or(text).parse().ok();
    match amount.filter(|amount| amount.is_finite() && *amount > 0.0) {
        Some(amount) if amount <= MAX_DOLLARS => Ok(amount),
        Some(_) => Err(format!("more than {MAX_DOLLARS}")),
        None => Err("not an amount of US dollars such as `2.50`".to_owned()),
    }
}

/// An age, as people write it: `30d`, `12h`.
pub(crate) fn age(text: &str) -> Result<jiff::SignedDuration, String> {
    let days = text.strip_suffix("days").or_else(|| text.strip_suffix('d'));
    let age = match days.map(|days| days.trim().parse::<u32>()) {
        Some(Ok(days)) => Some(jiff::SignedDuration::from_hours(i64::from(days) * 24)),
        Some(Err(_)) => None,
        None => text.parse::<jiff::SignedDuration>().ok(),
    };
    let wrong = "not a length of time such as `30d` or `12h`";
    age.filter(|age| !age.is_negative()).ok_or_else(|| wrong.to_owned())
}

/// A length of time as a number of seconds, or as people write it.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    if is_digits(text) {
        return whole(text);
    }
    let length: Option<jiff::SignedDuration> = text.parse().ok();
    let seconds = length.and_then(|length| u64::try_from(length.as_secs()).ok());
    let wrong = "not a length of time; write seconds, or `90s`, `30m`, `2h 30m`";
    seconds.filter(|seconds| *seconds > 0).ok_or_else(|| wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_seconds_or_words() {
        let read = |text| seconds(text).ok();
        assert_eq!(
            ["90", "90s", "30m", "2h 30m", "PT1H"].map(read),
            [90, 90, 1800, 9000, 3600].map(Some)
        );
        assert_eq!(["soon", "-5", "-5s", "0s", ""].map(read), [None; 5]);
    }

    #[test]
    fn a_number_that_does_not_fit_is_told_from_other_words() {
        let wrong = |text| whole::<u32>(text).unwrap_err();
        assert_eq!(["99999999999", "-1"].map(wrong), ["too large", "must be 0 or more"]);
        assert_eq!(["many", "1.5", "-", ""].map(wrong), ["not a whole number"; 4]);
        assert_eq!(["0", "-1"].map(|text| at_least_one(text).unwrap_err()), [AT_LEAST_ONE; 2]);
        assert_eq!(seconds("99999999999999999999").unwrap_err(), "too large");
    }

    #[test]
    fn an_amount_is_more_than_nothing() {
        assert_eq!(["2.50", "$3"].map(|text| dollars(text).ok()), [Some(2.5), Some(3.0)]);
        assert_eq!(["0", "-1", "much", "inf", "NaN"].map(|text| dollars(text).ok()), [None; 5]);
    }
}
