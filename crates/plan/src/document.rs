//! A JSON text with the line of each of its values, so that whatever is wrong later can be blamed on a line.
//!
//! Invariant: the scan runs over a text that serde_json has accepted, so it only finds where things are.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Problem, Problems};

/// A JSON text, read.
#[derive(Clone, Debug)]
pub struct Document {
    /// As messages name it.
    pub file: String,
    pub value: Value,
    /// The line of each value, by its path.
    lines: BTreeMap<String, u32>,
    /// Keys that stand twice in one object, by their path, with the second line.
    doubled: Vec<(String, u32)>,
}

impl Document {
    /// Reads a text; what is not JSON is refused with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, Problems> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value = serde_json::from_str(text).map_err(|error| {
            let line = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1);
            let whole = error.to_string();
            let message = whole.split(" at line ").next().unwrap_or(&whole).to_owned();
            let message = format!("not JSON: {message} (column {})", error.column());
            Problems(vec![Problem { file: file.to_owned(), line, path: String::new(), message }])
        })?;
        let mut scan = Scan { bytes: text.as_bytes(), at: 0, line: 1, ..Scan::default() };
        scan.value(String::new());
        Ok(Self { file: file.to_owned(), value, lines: scan.lines, doubled: scan.doubled })
    }

    /// A problem at a place of the document. What is not there is missed where it should be.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        let mut known = path;
        let line = loop {
            if let Some(line) = self.lines.get(known) {
                break *line;
            }
            match known.rfind(['.', '[']) {
                Some(end) => known = &known[..end],
                None => break self.lines.get("").copied().unwrap_or(1),
            }
        };
        Problem { file: self.file.clone(), line, path: path.to_owned(), message: message.into() }
    }

    /// A key that appears twice in one object is ambiguous.
    pub(crate) fn duplicate_keys(&self) -> impl Iterator<Item = Problem> + '_ {
        self.doubled.iter().map(|(path, line)| Problem {
            line: *line,
            ..self.problem(path, "this key appears twice in one object")
        })
    }
}

/// The path of a key below another.
pub(crate) fn key_path(path: &str, key: &str) -> String {
    match path.is_empty() {
        true => key.to_owned(),
        false => format!("{path}.{key}"),
    }
}

/// The path of an item of a list.
pub(crate) fn item_path(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

#[derive(Default)]
struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    line: u32,
    lines: BTreeMap<String, u32>,
    doubled: Vec<(String, u32)>,
}

impl Scan<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_whitespace()) {
            self.line += u32::from(*byte == b'\n');
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self, path: String) {
        let first = self.peek();
        if self.lines.contains_key(&path) {
            self.doubled.push((path.clone(), self.line));
        }
        self.lines.insert(path.clone(), self.line);
        match first {
            Some(b'{') => self.object(&path),
            Some(b'[') => self.list(&path),
            Some(b'"') => drop(self.text()),
            Some(_) => self.word(),
            None => {}
        }
    }

    fn object(&mut self, path: &str) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    let key = self.text();
                    self.peek();
                    self.at += 1;
                    self.value(key_path(path, &key));
                }
                b'}' => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn list(&mut self, path: &str) {
        self.at += 1;
        let mut index = 0;
        while let Some(byte) = self.peek() {
            match byte {
                b']' => {
                    self.at += 1;
                    return;
                }
                b',' => self.at += 1,
                _ => {
                    self.value(item_path(path, index));
                    index += 1;
                }
            }
        }
    }

    /// A text in quotes, without them.
    fn text(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        let end = self.at.min(self.bytes.len());
        serde_json::from_slice(&self.bytes[start..end]).unwrap_or_default()
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
        while self.bytes.get(self.at).is_some_and(|byte| !is_end(byte)) {
            self.at += 1;
        }
    }
}
