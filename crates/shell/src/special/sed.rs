//! Sed scripts: `e` runs, `w` writes, and the `e` and `w` flags of `s` do too.

use crate::classify::{opaque, worse};
use crate::invocation::Invocation;
use crate::paths::Use;
use crate::shell;
use crate::state::{Arg, UNKNOWN};
use crate::walk::Walk;
use windlass_core::policy::class::{Assessment, Class};

/// What a sed script does besides filtering.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    Runs(String),
    Writes(String),
    Reads(String),
    /// It does not read like a sed script.
    Unclear,
}

pub(super) fn check(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let given = call.has("-e|--expression|-f|--file");
    let mut scripts: Vec<String> = call.values("-e|--expression").map(str::to_owned).collect();
    let mut files = &call.operands[..];
    if !given && let Some((script, rest)) = files.split_first() {
        scripts.push(script.text.clone());
        files = rest;
    }
    let mut judged: Option<Assessment> = None;
    let mut add = |found: Option<Assessment>| {
        if let Some(found) = found {
            judged = Some(judged.take().map_or(found.clone(), |old| worse(old, found)));
        }
    };
    for file in call.values("-f|--file") {
        add(Some(shell::script_file(walk, &Arg::literal(file), "sed")));
    }
    let usage = if call.has("-i|--in-place") { Use::Write } else { Use::Read };
    for file in files {
        add(walk.paths().judge(file, usage));
    }
    for script in scripts {
        for effect in effects(&script) {
            match effect {
                Effect::Runs(command) => {
                    if !command.is_empty() {
                        walk.follow_argument(&command, "sed");
                    }
                    add(Some(opaque("`sed` runs commands from its script")));
                }
                Effect::Writes(file) => add(walk.paths().judge(&Arg::literal(file), Use::Write)),
                Effect::Reads(file) => add(walk.paths().judge(&Arg::literal(file), Use::Read)),
                Effect::Unclear => {
                    add(Some(opaque("its script does not look like a `sed` script")))
                }
            }
        }
        if script.contains(UNKNOWN) && !script.contains(['s', 'p', 'd', '/']) {
            add(Some(Assessment::of(
                Class::Opaque,
                "`sed` runs a script that is only known when it runs",
            )));
        }
    }
    judged
}

/// Reads a script command by command.
fn effects(script: &str) -> Vec<Effect> {
    let mut found = Vec::new();
    let mut rest: &[char] = &script.chars().collect::<Vec<_>>();
    loop {
        rest = skip_while(rest, |c| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        let Some(after) = address(rest) else {
            found.push(Effect::Unclear);
            return found;
        };
        rest = skip_while(after, |c| c.is_whitespace() || matches!(c, '!' | ','));
        let Some((command, mut after)) = rest.split_first() else { return found };
        match command {
            's' | 'y' => {
                let Some((flags, next)) = substitution(after) else {
                    found.push(Effect::Unclear);
                    return found;
                };
                if *command == 's' {
                    if let Some(at) = flags.find('w') {
                        found.push(Effect::Writes(flags[at + 1..].trim().to_owned()));
                    }
                    if flags.split('w').next().is_some_and(|flags| flags.contains('e')) {
                        found.push(Effect::Runs(String::new()));
                    }
                }
                after = next;
            }
            'e' => {
                let (text, next) = line(after);
                found.push(Effect::Runs(text.trim().to_owned()));
                after = next;
            }
            'w' | 'W' | 'r' | 'R' => {
                let (text, next) = line(after);
                let file = text.trim().to_owned();
                found.push(match command {
                    'w' | 'W' => Effect::Writes(file),
                    _ => Effect::Reads(file),
                });
                after = next;
            }
            'a' | 'i' | 'c' | '#' => after = line(after).1,
            'b' | 't' | 'T' | ':' | 'q' | 'Q' | 'l' | 'L' | 'v' => {
                after = skip_while(after, |c| !matches!(c, ';' | '\n' | '}'));
            }
            'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | '=' | 'z' | 'F' => {}
            '{' | '}' | ';' => {}
            &UNKNOWN => return found,
            _ => {
                found.push(Effect::Unclear);
                return found;
            }
        }
        rest = after;
    }
}

fn skip_while(mut rest: &[char], skip: impl Fn(char) -> bool) -> &[char] {
    while let [first, more @ ..] = rest
        && skip(*first)
    {
        rest = more;
    }
    rest
}

/// What follows the addresses in front of a command.
fn address(mut rest: &[char]) -> Option<&[char]> {
    loop {
        rest = skip_while(rest, |c| {
            c.is_ascii_digit()
                || c.is_whitespace()
                || matches!(c, ',' | '$' | '~' | '+' | '!')
                || c == UNKNOWN
        });
        rest = match rest {
            ['/', more @ ..] => after_delimiter(more, '/')?,
            ['\\', delimiter, more @ ..] => after_delimiter(more, *delimiter)?,
            _ => return Some(rest),
        };
        rest = skip_while(rest, |c| matches!(c, 'I' | 'M'));
    }
}

/// What follows the next `delimiter` that is neither escaped nor in brackets.
fn after_delimiter(mut rest: &[char], delimiter: char) -> Option<&[char]> {
    loop {
        rest = match rest {
            ['\\', _, more @ ..] => more,
            [first, more @ ..] if *first == delimiter => return Some(more),
            [_, more @ ..] => more,
            [] => return None,
        };
    }
}

/// The flags of `s/a/b/flags`, and what follows them.
fn substitution(rest: &[char]) -> Option<(String, &[char])> {
    let (delimiter, rest) = rest.split_first()?;
    let rest = after_delimiter(rest, *delimiter)?;
    let rest = after_delimiter(rest, *delimiter)?;
    let plain = skip_while(rest, |c| c.is_ascii_digit() || "gpiImMe".contains(c) || c == UNKNOWN);
    let after = match plain {
        ['w', ..] => line(plain).1,
        _ => plain,
    };
    let flags: String = rest[..rest.len() - after.len()].iter().collect();
    Some((flags, after))
}

/// The rest of the line, and what follows it.
fn line(rest: &[char]) -> (String, &[char]) {
    let end = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
    (rest[..end].iter().collect(), &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_or_touches_files_is_an_effect() {
        let none = [
            "s/e/w/g",
            "/ew/d;p",
            "1,$p",
            "$!N;s/\\n/ /",
            "s|a/b|e|2",
            ":a;N;ba",
            "y/ew/we/",
            "/a/,/b/{p;d}",
            "2q",
            "a\\ e rm x",
        ];
        for script in none {
            assert_eq!(effects(script), [], "{script}");
        }
        assert_eq!(effects("1e rm x"), [Effect::Runs("rm x".into())]);
        assert_eq!(effects("s/a/b/e"), [Effect::Runs(String::new())]);
        assert_eq!(effects("s/a/b/gw out"), [Effect::Writes("out".into())]);
        assert_eq!(effects("/x/w /etc/y"), [Effect::Writes("/etc/y".into())]);
    }
}
