//! What `${name…}` makes of a value that is known: cutting, replacing, changing case.
//!
//! Patterns are followed as far as they are plain text, `*` and `?`; any other is not known.

use windlass_core::policy::pattern::glob;

use crate::state::{Arg, Fields};

/// The longest value that a pattern is tried on; every part of it is compared.
const LONGEST_MATCHED: usize = 256;

/// The value after an operator, which is given with its expanded words; `None` when it is not known.
pub(super) fn apply(operator: &str, value: &str) -> Option<String> {
    let first = operator.chars().next()?;
    match first {
        ':' => slice(&operator[1..], value),
        '#' => cut_start(operator, value),
        '%' => cut_end(operator, value),
        '/' => replace(operator, value),
        ',' | '^' => change_case(operator, value),
        '@' => match &operator[1..] {
            "U" => Some(value.to_uppercase()),
            "L" => Some(value.to_lowercase()),
            "u" => Some(capital(value, char::to_ascii_uppercase)),
            _ => None,
        },
        _ => None,
    }
}

/// `${@:2}` and `${@:2:1}`: some of the arguments. The one before the first is the shell's own name.
pub(super) fn arguments(operator: &str, fields: &Fields) -> Fields {
    let numbers = operator.strip_prefix(':').map(|words| {
        words.split(':').map(|word| word.trim().parse::<usize>().ok()).collect::<Option<Vec<_>>>()
    });
    let rest = |offset: usize| fields.iter().skip(offset - 1).cloned();
    match numbers.flatten().as_deref() {
        Some([offset]) if *offset > 0 => rest(*offset).collect(),
        Some([offset, length]) if *offset > 0 => rest(*offset).take(*length).collect(),
        _ => vec![Arg::unknown()],
    }
}

/// `offset` or `offset:length`, both perhaps negative.
fn slice(words: &str, value: &str) -> Option<String> {
    let (offset, length) = match words.split_once(':') {
        Some((offset, length)) => (offset, Some(length.trim().parse::<i64>().ok()?)),
        None => (words, None),
    };
    let count = i64::try_from(value.chars().count()).ok()?;
    let from_end = |n: i64| if n < 0 { count + n } else { n };
    let start = from_end(offset.trim().parse::<i64>().ok()?).clamp(0, count);
    let end = match length {
        Some(length) if length < 0 => count + length,
        Some(length) => start + length,
        None => count,
    };
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end.max(start)).ok()?);
    Some(value.chars().skip(start).take(end - start).collect())
}

fn cut_start(operator: &str, value: &str) -> Option<String> {
    let (pattern, longest) = match operator.strip_prefix("##") {
        Some(pattern) => (pattern, true),
        None => (&operator[1..], false),
    };
    check(pattern, value)?;
    let mut ends: Vec<usize> = boundaries(value);
    if longest {
        ends.reverse();
    }
    let end = ends.into_iter().find(|&end| glob(pattern, &value[..end]));
    Some(value[end.unwrap_or(0)..].to_owned())
}

fn cut_end(operator: &str, value: &str) -> Option<String> {
    let (pattern, longest) = match operator.strip_prefix("%%") {
        Some(pattern) => (pattern, true),
        None => (&operator[1..], false),
    };
    check(pattern, value)?;
    let mut starts: Vec<usize> = boundaries(value);
    if !longest {
        starts.reverse();
    }
    let start = starts.into_iter().find(|&start| glob(pattern, &value[start..]));
    Some(value[..start.unwrap_or(value.len())].to_owned())
}

/// `/old/new`, `//old/new`, `/#old/new`, `/%old/new`; without a second slash it is removed.
fn replace(operator: &str, value: &str) -> Option<String> {
    let rest = &operator[1..];
    let (all, rest) = match rest.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (old, new) = split_unescaped(rest);
    let (anchor, pattern) = match old.chars().next() {
        Some(anchor @ ('#' | '%')) if !all => (Some(anchor), &old[1..]),
        _ => (None, &*old),
    };
    check(pattern, value)?;
    if pattern.is_empty() {
        return Some(value.to_owned());
    }
    let mut result = String::new();
    let (mut at, mut done) = (0, false);
    while at <= value.len() {
        let fits = |end: &usize| match anchor {
            Some('#') if at > 0 => false,
            Some('%') if *end < value.len() => false,
            _ => *end > at && glob(pattern, &value[at..*end]),
        };
        let longest = boundaries(value).into_iter().rev().filter(|end| *end >= at).find(fits);
        match longest.filter(|_| !done) {
            Some(end) => {
                result.push_str(&new);
                done = !all;
                at = end;
            }
            None => {
                let Some(next) = value[at..].chars().next() else { break };
                result.push(next);
                at += next.len_utf8();
            }
        }
    }
    Some(result)
}

/// The two parts of `old/new`, where `\/` is a slash of the first.
fn split_unescaped(text: &str) -> (String, String) {
    let mut old = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => old.extend(chars.next().map(|(_, c)| c)),
            '/' => return (old, text[at + 1..].to_owned()),
            c => old.push(c),
        }
    }
    (old, String::new())
}

fn change_case(operator: &str, value: &str) -> Option<String> {
    Some(match operator {
        ",," => value.to_lowercase(),
        "^^" => value.to_uppercase(),
        "," => capital(value, char::to_ascii_lowercase),
        "^" => capital(value, char::to_ascii_uppercase),
        // With a pattern only some letters change.
        _ => return None,
    })
}

fn capital(value: &str, change: impl Fn(&char) -> char) -> String {
    let mut chars = value.chars();
    chars.next().map(|first| change(&first)).into_iter().chain(chars).collect()
}

/// Whether a pattern and a value are such that a match can be seen.
fn check(pattern: &str, value: &str) -> Option<()> {
    let plain = !pattern.contains(['[', '(', '\\']);
    (plain && value.len() <= LONGEST_MATCHED).then_some(())
}

/// Where characters begin, and the end.
fn boundaries(value: &str) -> Vec<usize> {
    value.char_indices().map(|(at, _)| at).chain([value.len()]).collect()
}

#[cfg(test)]
mod tests {
    use super::apply;

    /// Each line was compared with bash.
    #[test]
    fn operators_give_what_bash_gives() {
        for (operator, value, result) in [
            ("//X/", "rXm", "rm"),
            ("/X/-", "aXbX", "a-bX"),
            ("//?/x", "ab", "xx"),
            ("/#a/b", "aa", "ba"),
            ("/%a/b", "aa", "ab"),
            (":2", "xxrm", "rm"),
            (":1:2", "xrmx", "rm"),
            (": -2", "xxrm", "rm"),
            (":0:-1", "rmx", "rm"),
            ("#x", "xrm", "rm"),
            ("##*/", "/usr/bin/rm", "rm"),
            ("#*/", "/usr/bin/rm", "usr/bin/rm"),
            ("%.*", "rm.x.y", "rm.x"),
            ("%%.*", "rm.x.y", "rm"),
            (",,", "RM", "rm"),
            ("^", "rm", "Rm"),
            ("@L", "RM", "rm"),
        ] {
            assert_eq!(
                apply(operator, value).as_deref(),
                Some(result),
                "${{x{operator}}} of {value}"
            );
        }
        assert_eq!(apply("#[a-z]", "rm"), None);
    }
}
