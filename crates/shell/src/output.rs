//! What a command prints, where the text alone says so: `echo rm`, `printf '\x72m'`, `which rm`.
//!
//! Used to follow text into a command name or a shell; when in doubt the output is not known.

use super::state::Arg;
use super::syntax::{Node, Part, Redirect};
use super::walk::Walk;

impl Walk<'_> {
    /// The output of a list of commands; `None` when the text does not say.
    pub(super) fn output(&mut self, nodes: &[Node]) -> Option<String> {
        let [Node::Simple(parts)] = nodes else { return None };
        self.output_of_simple(parts)
    }

    pub(super) fn output_of_simple(&mut self, parts: &[Part]) -> Option<String> {
        let to_file =
            |part: &Part| matches!(part, Part::Redirect(Redirect::To(..) | Redirect::Process(..)));
        if parts.iter().any(to_file) { None } else { self.text_printed(parts) }
    }

    /// What the command prints, wherever that goes.
    pub(super) fn text_printed(&mut self, parts: &[Part]) -> Option<String> {
        // Expanding walks substitutions, which the caller has already done: what is found is dropped.
        let found = std::mem::take(&mut self.found);
        let state = self.state.clone();
        let output = self.printed_text(parts);
        self.found = found;
        self.state = state;
        output
    }

    fn printed_text(&mut self, parts: &[Part]) -> Option<String> {
        let (mut words, mut document) = (Vec::new(), None);
        for part in parts {
            match part {
                Part::Word(word) => match &self.expand(word)[..] {
                    [fields] => words.extend(fields.iter().cloned()),
                    _ => return None,
                },
                Part::Assign(assign) if !words.is_empty() => words.push(Arg::literal(&*assign.raw)),
                Part::Assign(_) | Part::Process(_) => return None,
                Part::Redirect(Redirect::Document(text, expands)) => {
                    document = Some(match expands {
                        true => self.expand_document(text),
                        false => Arg::literal(&**text),
                    });
                }
                Part::Redirect(Redirect::Text(word)) => document = Some(self.expand_to_text(word)),
                Part::Redirect(Redirect::From(_) | Redirect::Process(..)) => return None,
                Part::Redirect(Redirect::To(..) | Redirect::Duplicate(_)) => {}
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

fn printf(format: &str, words: &[&str]) -> Option<String> {
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
