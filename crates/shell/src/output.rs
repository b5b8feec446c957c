//! What a command prints, where the text alone says so: `echo rm`, `printf '\x72m'`, `which rm`.
//!
//! Used to follow text into a command name or a shell; when in doubt the output is not known.

use super::state::Arg;
use super::syntax::{CommandPart, Node, Redirect};
use super::walk::Walk;
use super::written;

/// The output of a list of commands; `None` when the text does not say.
pub(super) fn of_list(walk: &mut Walk<'_>, nodes: &[Node]) -> Option<String> {
    let [Node::Simple(parts)] = nodes else { return None };
    of_simple(walk, parts)
}

pub(super) fn of_simple(walk: &mut Walk<'_>, parts: &[CommandPart]) -> Option<String> {
    let to_file = |part: &CommandPart| {
        matches!(part, CommandPart::Redirect(Redirect::To(..) | Redirect::Process(..)))
    };
    if parts.iter().any(to_file) { None } else { text_printed(walk, parts) }
}

/// What the command prints, wherever that goes.
fn text_printed(walk: &mut Walk<'_>, parts: &[CommandPart]) -> Option<String> {
    let state = walk.state.clone();
    let output = without_recording(walk, |walk| printed_text(walk, parts));
    walk.state = state;
    output
}

/// Expanding walks substitutions. The caller has already recorded them, so what is found again is dropped.
fn without_recording<T>(walk: &mut Walk<'_>, expand: impl FnOnce(&mut Walk<'_>) -> T) -> T {
    let found = walk.findings.open_level(Vec::new());
    let expansion = expand(walk);
    walk.findings.close_level(found);
    expansion
}

fn printed_text(walk: &mut Walk<'_>, parts: &[CommandPart]) -> Option<String> {
    let (mut words, mut document) = (Vec::new(), None);
    for part in parts {
        match part {
            CommandPart::Word(word) => match &walk.expander().word(word)[..] {
                [fields] => words.extend(fields.iter().cloned()),
                _ => return None,
            },
            CommandPart::Assign(assign) if !words.is_empty() => {
                words.push(Arg::literal(&*assign.raw))
            }
            CommandPart::Assign(_) | CommandPart::Process(_) => return None,
            CommandPart::Redirect(Redirect::Document(text, expands)) => {
                document = Some(match expands {
                    true => walk.expander().document(text),
                    false => Arg::literal(&**text),
                });
            }
            CommandPart::Redirect(Redirect::Text(word)) => {
                document = Some(walk.expander().text(word))
            }
            CommandPart::Redirect(Redirect::From(_) | Redirect::Process(..)) => return None,
            CommandPart::Redirect(Redirect::To(..) | Redirect::Duplicate(_)) => {}
        }
    }
    let words: Vec<&str> = words.iter().map(Arg::known).collect::<Option<_>>()?;
    match (&words[..], document) {
        (["echo", rest @ ..], _) => Some(echo(rest)),
        (["printf", "--", format, rest @ ..] | ["printf", format, rest @ ..], _) => {
            printf(format, rest)
        }
        (["which" | "type", rest @ ..], _) => rest.last().map(|name| (*name).to_owned()),
        (["command", "-v" | "-V", name], _) => Some((*name).to_owned()),
        (["cat"] | ["cat", "-"], Some(document)) => document.known().map(str::to_owned),
        _ => None,
    }
}

/// Remembers what a command wrote into the file its output goes to.
pub(super) fn remember(walk: &mut Walk<'_>, parts: &[CommandPart]) {
    let mut targets = parts.iter().filter_map(|part| match part {
        CommandPart::Redirect(Redirect::To(word, append)) => Some((word, *append)),
        CommandPart::Redirect(_)
        | CommandPart::Word(_)
        | CommandPart::Assign(_)
        | CommandPart::Process(_) => None,
    });
    let (Some((word, append)), None) = (targets.next(), targets.next()) else { return };
    let text = text_printed(walk, parts);
    let file = without_recording(walk, |walk| walk.expander().text(word));
    let program = parts.iter().find_map(|part| match part {
        CommandPart::Word(word) => Some(&**word),
        CommandPart::Redirect(_) | CommandPart::Assign(_) | CommandPart::Process(_) => None,
    });
    if program.is_some_and(|program| written::FETCHERS.contains(&program)) {
        written::mark_fetched(walk, &file.text);
    }
    for path in walk.paths().resolve(&file.text).into_iter().flatten() {
        walk.written.write(path, append, text.as_deref());
    }
}

fn echo(words: &[&str]) -> String {
    let (mut escapes, mut rest) = (false, words);
    while let [flag, more @ ..] = rest {
        match *flag {
            "-n" | "-E" => {}
            "-e" | "-en" | "-ne" => escapes = true,
            _ => break,
        }
        rest = more;
    }
    let text = rest.join(" ");
    if escapes { unescape(&text) } else { text }
}

pub(super) fn printf(format: &str, words: &[&str]) -> Option<String> {
    let format = unescape(format);
    if !format.contains('%') {
        return Some(format);
    }
    if format.contains("%%") {
        return None;
    }
    let mut output = String::new();
    let mut words = words.iter();
    loop {
        let mut pieces = format.split('%');
        output.push_str(pieces.next()?);
        for piece in pieces {
            let word = words.next().copied().unwrap_or_default();
            match piece.chars().next()? {
                's' => output.push_str(word),
                'b' => output.push_str(&unescape(word)),
                _ => return None,
            }
            output.push_str(&piece[1..]);
        }
        if words.len() == 0 {
            return Some(output);
        }
    }
}

/// Backslash escapes as `printf` and `echo -e` decode them.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let Some((escape, tail)) = rest.split_first() else {
            bytes.push(b'\\');
            break;
        };
        rest = tail;
        match escape {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'\\' => bytes.push(b'\\'),
            b'x' => bytes.push(number(&mut rest, 16, 2)),
            b'0'..=b'7' => {
                let mut digits = [&[*escape][..], rest].concat();
                digits.truncate(4);
                let mut slice = &digits[..];
                let most = if *escape == b'0' { 4 } else { 3 };
                bytes.push(number(&mut slice, 8, most));
                let used = digits.len() - slice.len();
                rest = rest.get(used.saturating_sub(1)..).unwrap_or_default();
            }
            other => bytes.extend([b'\\', *other]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn number(rest: &mut &[u8], radix: u32, most_digits: usize) -> u8 {
    let mut value = 0_u32;
    for _ in 0..most_digits {
        let Some(digit) = rest.first().and_then(|b| char::from(*b).to_digit(radix)) else { break };
        value = value * radix + digit;
        *rest = &rest[1..];
    }
    (value & 0xff) as u8
}
