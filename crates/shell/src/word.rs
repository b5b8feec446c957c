//! One shell word to its pieces: text, quoted text, variables, substitutions.
//!
//! Invariants:
//! - Linear: each byte is looked at once a nesting level; the nesting is bounded by [`super::guard`].
//! - Every substitution is a piece of its own; none stays hidden in text.

mod skip;

use self::skip::{skip_braces, skip_parentheses};
use super::syntax::ParseFailure;

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    Variable {
        name: String,
        operation: Operation,
        quoted: bool,
    },
    Command {
        script: String,
        quoted: bool,
    },
    Arithmetic(String),
    /// `~` and `~user`.
    Tilde(String),
}

/// What `${name…}` does with the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Plain,
    /// `-`, `:-`, `=`, `:=`, `+`, `:+`: the value or this word, and whether the word is assigned.
    Or {
        word: String,
        assigns: bool,
    },
    /// `@P`: the value is expanded as a prompt, which executes what it holds.
    Prompt,
    /// `!name`: the variable whose name is the value; what follows may hold substitutions.
    Indirect(String),
    /// `[@]`, `[*]`: every element.
    All,
    /// `[n]`: one element.
    Element(String),
    /// `[n]` and an operator after it.
    OfElement {
        index: String,
        then: Box<Operation>,
    },
    /// Anything else computes a new value; its words are kept for the substitutions in them.
    Computed(String),
}

const UNCLOSED: &str = "a quote or expansion in it is not closed";

/// The pieces of a word as the shell reads it.
pub(super) fn pieces(word: &str) -> Result<Vec<Piece>, ParseFailure> {
    Scanner { text: word, at: 0, pieces: Vec::new(), plain: String::new() }.read_unquoted()
}

/// The pieces of text in which quotes are ordinary characters: here-documents, arithmetic.
pub(super) fn document_pieces(text: &str) -> Result<Vec<Piece>, ParseFailure> {
    let mut scanner = Scanner { text, at: 0, pieces: Vec::new(), plain: String::new() };
    scanner.read_quoted(None)?;
    Ok(scanner.pieces)
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    pieces: Vec<Piece>,
    plain: String,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn flush(&mut self, quoted: bool) {
        if !self.plain.is_empty() {
            let text = std::mem::take(&mut self.plain);
            self.pieces.push(Piece::Text { text, quoted });
        }
    }

    fn read_unquoted(mut self) -> Result<Vec<Piece>, ParseFailure> {
        self.tilde();
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.flush(false);
                    match self.next() {
                        Some('\n') | None => {}
                        Some(escaped) => {
                            self.plain.push(escaped);
                            self.flush(true);
                        }
                    }
                }
                '\'' => {
                    self.flush(false);
                    let end = self.text[self.at..].find('\'').ok_or_else(unclosed_failure)?;
                    let text = self.text[self.at..self.at + end].to_owned();
                    self.at += end + 1;
                    self.pieces.push(Piece::Text { text, quoted: true });
                }
                '"' => self.double_quotes()?,
                '$' if self.peek() == Some('\'') => {
                    self.flush(false);
                    self.at += 1;
                    let text = self.ansi_c()?;
                    self.pieces.push(Piece::Text { text, quoted: true });
                }
                '$' if self.peek() == Some('"') => {
                    self.at += 1;
                    self.double_quotes()?;
                }
                '$' | '`' => self.expansion(c, false)?,
                _ => self.plain.push(c),
            }
        }
        self.flush(false);
        Ok(self.pieces)
    }

    fn tilde(&mut self) {
        let Some(rest) = self.text.strip_prefix('~') else { return };
        let user = rest.split(['/', ':']).next().unwrap_or_default();
        if user.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+')) {
            self.pieces.push(Piece::Tilde(user.to_owned()));
            self.at = 1 + user.len();
        }
    }

    fn double_quotes(&mut self) -> Result<(), ParseFailure> {
        self.flush(false);
        // An empty pair still makes a word.
        self.pieces.push(Piece::Text { text: String::new(), quoted: true });
        self.read_quoted(Some('"'))
    }

    /// Text in which only `$`, backquote and backslash mean something, up to `end`.
    fn read_quoted(&mut self, end: Option<char>) -> Result<(), ParseFailure> {
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == end => {
                    self.flush(true);
                    return Ok(());
                }
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c @ ('$' | '`' | '\\')) => self.plain.push(c),
                    Some(c) if Some(c) == end => self.plain.push(c),
                    Some(c) => self.plain.extend(['\\', c]),
                },
                '$' | '`' => self.expansion(c, true)?,
                _ => self.plain.push(c),
            }
        }
        self.flush(true);
        end.map_or(Ok(()), |_| Err(unclosed_failure()))
    }

    /// What follows a `$` or a backquote.
    fn expansion(&mut self, opener: char, quoted: bool) -> Result<(), ParseFailure> {
        if opener == '`' {
            self.flush(quoted);
            let script = self.read_backquoted()?;
            self.pieces.push(Piece::Command { script, quoted });
            return Ok(());
        }
        match self.peek() {
            Some('(') => {
                self.flush(quoted);
                let start = self.at + 1;
                let end =
                    skip_parentheses(self.text.as_bytes(), start).ok_or_else(unclosed_failure)?;
                let script = self.text[start..end].to_owned();
                self.at = end + 1;
                match arithmetic(&script) {
                    Some(text) => self.pieces.push(Piece::Arithmetic(text.to_owned())),
                    None => self.pieces.push(Piece::Command { script, quoted }),
                }
            }
            Some('{') => {
                self.flush(quoted);
                let start = self.at + 1;
                let end = skip_braces(self.text.as_bytes(), start).ok_or_else(unclosed_failure)?;
                let (name, operation) = parameter(&self.text[start..end]);
                self.at = end + 1;
                self.pieces.push(Piece::Variable { name, operation, quoted });
            }
            Some('[') => {
                self.flush(quoted);
                let start = self.at + 1;
                let end = self.text[start..].find(']').ok_or_else(unclosed_failure)? + start;
                self.pieces.push(Piece::Arithmetic(self.text[start..end].to_owned()));
                self.at = end + 1;
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                self.flush(quoted);
                let rest = &self.text[self.at..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let name = rest[..end.unwrap_or(rest.len())].to_owned();
                self.at += name.len();
                self.pieces.push(Piece::Variable { name, operation: Operation::Plain, quoted });
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.flush(quoted);
                self.at += 1;
                let name = c.to_string();
                self.pieces.push(Piece::Variable { name, operation: Operation::Plain, quoted });
            }
            _ => self.plain.push('$'),
        }
        Ok(())
    }

    fn read_backquoted(&mut self) -> Result<String, ParseFailure> {
        let mut script = String::new();
        loop {
            match self.next().ok_or_else(unclosed_failure)? {
                '`' => return Ok(script),
                '\\' => match self.next().ok_or_else(unclosed_failure)? {
                    c @ ('`' | '\\' | '$') => script.push(c),
                    c => script.extend(['\\', c]),
                },
                c => script.push(c),
            }
        }
    }

    /// The decoded text of `$'…'`, after its opening quote.
    fn ansi_c(&mut self) -> Result<String, ParseFailure> {
        let mut bytes = Vec::new();
        loop {
            match self.next().ok_or_else(unclosed_failure)? {
                '\'' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                '\\' => {
                    let escape = self.next().ok_or_else(unclosed_failure)?;
                    self.ansi_c_escape(escape, &mut bytes);
                }
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
    }

    fn ansi_c_escape(&mut self, escape: char, bytes: &mut Vec<u8>) {
        let simple = match escape {
            'n' => Some(b'\n'),
            't' => Some(b'\t'),
            'r' => Some(b'\r'),
            'a' => Some(7),
            'b' => Some(8),
            'e' | 'E' => Some(27),
            'f' => Some(12),
            'v' => Some(11),
            '\\' | '\'' | '"' | '?' => Some(escape as u8),
            _ => None,
        };
        if let Some(byte) = simple {
            return bytes.push(byte);
        }
        match escape {
            'x' => bytes.push((self.number(16, 2) & 0xff) as u8),
            'u' | 'U' => {
                let digits = if escape == 'u' { 4 } else { 8 };
                let c = char::from_u32(self.number(16, digits)).unwrap_or('\u{fffd}');
                bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
            }
            'c' => bytes.extend(self.next().map(|c| (c as u32 & 0x1f) as u8)),
            '0'..='7' => {
                self.at -= 1;
                bytes.push((self.number(8, 3) & 0xff) as u8);
            }
            other => bytes.extend(['\\', other].iter().collect::<String>().bytes()),
        }
    }

    fn number(&mut self, radix: u32, most_digits: usize) -> u32 {
        let mut value = 0_u32;
        for _ in 0..most_digits {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        value
    }
}

fn unclosed_failure() -> ParseFailure {
    ParseFailure::because(UNCLOSED)
}

/// The expression in `$((…))`; none for a command that merely starts with a subshell, `$((a); (b))`.
fn arithmetic(script: &str) -> Option<&str> {
    let inner = script.strip_prefix('(')?.strip_suffix(')')?;
    let mut depth = 0_i32;
    for byte in inner.bytes() {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        if depth < 0 {
            return None;
        }
    }
    Some(inner)
}

/// The name and operation in `${…}`.
fn parameter(inner: &str) -> (String, Operation) {
    let name_end = |text: &str| {
        let special = text.chars().next().is_some_and(|c| "@*#?-$!".contains(c));
        match text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            Some(0) if special => 1,
            end => end.unwrap_or(text.len()),
        }
    };
    if inner.len() > 1 && inner.starts_with('#') {
        return (inner[1..].to_owned(), Operation::Computed(inner[1..].to_owned()));
    }
    if let Some(rest) = inner.strip_prefix('!').filter(|rest| !rest.is_empty()) {
        let end = name_end(rest);
        return (rest[..end].to_owned(), Operation::Indirect(rest[end..].to_owned()));
    }
    let end = name_end(inner);
    let (name, mut rest) = (inner[..end].to_owned(), &inner[end..]);
    let mut operation = Operation::Plain;
    if rest.starts_with('[')
        && let Some(close) = rest.rfind(']')
    {
        operation = match &rest[1..close] {
            "@" | "*" => Operation::All,
            index => Operation::Element(index.to_owned()),
        };
        rest = &rest[close + 1..];
    }
    if let Operation::Element(index) = &operation
        && !rest.is_empty()
    {
        let (_, then) = parameter(&format!("{name}{rest}"));
        return (name, Operation::OfElement { index: index.clone(), then: Box::new(then) });
    }
    let after_colon = rest.strip_prefix(':').unwrap_or(rest);
    match after_colon.chars().next() {
        None => (name, operation),
        Some(c @ ('-' | '=' | '+')) => {
            let word = after_colon[1..].to_owned();
            (name, Operation::Or { word, assigns: c == '=' })
        }
        Some('@') if rest.starts_with("@P") => (name, Operation::Prompt),
        // Of an array the operator is applied to elements, which is not followed.
        Some(_) if !matches!(operation, Operation::Plain) => {
            (name, Operation::Computed(format!("[]{rest}")))
        }
        Some(_) => (name, Operation::Computed(rest.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts(word: &str) -> Vec<String> {
        pieces(word)
            .unwrap()
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Command { script, .. } => Some(script),
                _ => None,
            })
            .collect()
    }

    fn text(word: &str) -> String {
        pieces(word)
            .unwrap()
            .into_iter()
            .map(|piece| match piece {
                Piece::Text { text, .. } => text,
                other => format!("<{other:?}>"),
            })
            .collect()
    }

    #[test]
    fn quotes_and_escapes_join_into_one_text() {
        assert_eq!(text(r"\rm"), "rm");
        assert_eq!(text("r''m"), "rm");
        assert_eq!(text(r#""r"'m'"#), "rm");
        assert_eq!(text(r"$'\x72\155'"), "rm");
        assert_eq!(text(r"$'\u0072m'"), "rm");
        assert_eq!(text(r#""a\$b\c""#), r"a$b\c");
    }

    #[test]
    fn a_substitution_ends_at_its_own_parenthesis() {
        assert_eq!(scripts(r#"a$(echo ")" ')' \) $(b))c"#), [r#"echo ")" ')' \) $(b)"#]);
        assert_eq!(scripts("\"$(a \"$(b)\")\""), ["a \"$(b)\""]);
        assert_eq!(scripts(r"`a \`b\``"), ["a `b`"]);
        assert_eq!(scripts("$(cat <<'E'\nit's ) here\nE\n)"), ["cat <<'E'\nit's ) here\nE\n"]);
        assert_eq!(scripts("$(cat <<E\n:)\nE\n)$(b)"), ["cat <<E\n:)\nE\n", "b"]);
    }

    #[test]
    fn an_unclosed_word_is_unreadable() {
        for word in ["'a", "\"a", "$(a", "${a", "`a", "$'a", "$[a"] {
            assert!(pieces(word).is_err(), "{word}");
        }
    }
}
