//! Objects as they are written: numbers, names, strings, arrays, dictionaries, references.

use std::collections::BTreeMap;

/// How deep arrays and dictionaries may nest.
const MAX_DEPTH: usize = 50;
/// How many items one of them may hold.
const MAX_ITEMS: usize = 100_000;

/// One object, or an operator of a content stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Object {
    Null,
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    Array(Vec<Object>),
    Dictionary(Dictionary),
    Reference(u32),
    Operator(Vec<u8>),
}

/// A dictionary.
pub(super) type Dictionary = BTreeMap<String, Object>;

impl Object {
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub fn dictionary(&self) -> Option<&Dictionary> {
        if let Self::Dictionary(dictionary) = self { Some(dictionary) } else { None }
    }
}

/// Reads objects one after the other.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The next object; `None` at the end.
    pub fn next(&mut self) -> Option<Object> {
        self.object(0)
    }

    fn object(&mut self, depth: usize) -> Option<Object> {
        self.skip_space();
        let byte = self.peek()?;
        match byte {
            b'/' => Some(Object::Name(self.name())),
            b'(' => Some(Object::Text(self.literal())),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Some(Object::Dictionary(self.dictionary(depth)))
            }
            b'<' => Some(Object::Text(self.hexadecimal())),
            b'[' => {
                self.at += 1;
                Some(Object::Array(self.array(depth)))
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => Some(self.number_or_reference()),
            b']' | b'>' | b')' | b'{' | b'}' => {
                // An end without a beginning is passed over.
                self.at += 1;
                Some(Object::Null)
            }
            _ => Some(self.word()),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'%' => {
                    let rest = &self.bytes[self.at..];
                    let line = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
                    self.at += line.unwrap_or(rest.len());
                }
                byte if is_space(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let start = self.at;
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    fn name(&mut self) -> String {
        self.at += 1;
        let written = self.run(is_regular);
        let mut name = Vec::new();
        let mut rest = written;
        while let Some((&byte, tail)) = rest.split_first() {
            let code = tail
                .get(..2)
                .filter(|_| byte == b'#')
                .and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
            name.push(code.unwrap_or(byte));
            rest = if code.is_some() { &tail[2..] } else { tail };
        }
        String::from_utf8_lossy(&name).into_owned()
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let (mut text, mut depth) = (Vec::new(), 1);
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.escaped(&mut text),
                b'(' => {
                    depth += 1;
                    text.push(byte);
                }
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                    text.push(byte);
                }
                _ => text.push(byte),
            }
        }
        text
    }

    fn escaped(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' | b'f' => text.push(b' '),
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
            }
            b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    match self.peek() {
                        Some(digit @ b'0'..=b'7') => {
                            code = code * 8 + u32::from(digit - b'0');
                            self.at += 1;
                        }
                        _ => break,
                    }
                }
                text.push((code & 0xff) as u8);
            }
            other => text.push(other),
        }
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        self.at += 1;
        let digits = self.run(|byte| byte != b'>');
        self.at += 1;
        let mut digits: Vec<u8> = digits
            .iter()
            .filter_map(|&byte| (byte as char).to_digit(16).map(|d| d as u8))
            .collect();
        if digits.len() % 2 == 1 {
            digits.push(0);
        }
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn array(&mut self, depth: usize) -> Vec<Object> {
        let mut items = Vec::new();
        while depth < MAX_DEPTH && items.len() < MAX_ITEMS {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                Some(_) => items.extend(self.object(depth + 1)),
            }
        }
        items
    }

    fn dictionary(&mut self, depth: usize) -> Dictionary {
        let mut entries = Dictionary::new();
        while depth < MAX_DEPTH && entries.len() < MAX_ITEMS {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(b'>') => {
                    self.at += if self.bytes.get(self.at + 1) == Some(&b'>') { 2 } else { 1 };
                    break;
                }
                Some(b'/') => {
                    let key = self.name();
                    if let Some(value) = self.object(depth + 1) {
                        entries.insert(key, value);
                    }
                }
                Some(_) => drop(self.object(depth + 1)),
            }
        }
        entries
    }

    fn number_or_reference(&mut self) -> Object {
        let number = self.number();
        let after = self.at;
        // `12 0 R`
        if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
            self.skip_space();
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                let _generation = self.run(|byte| byte.is_ascii_digit());
                self.skip_space();
                let ends = self.bytes.get(self.at + 1).is_none_or(|&byte| !is_regular(byte));
                if self.peek() == Some(b'R') && ends {
                    self.at += 1;
                    return Object::Reference(number as u32);
                }
            }
        }
        self.at = after;
        Object::Number(number)
    }

    fn number(&mut self) -> f64 {
        let written = self.run(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.'));
        std::str::from_utf8(written).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
    }

    fn word(&mut self) -> Object {
        let word = self.run(is_regular);
        if word.is_empty() {
            self.at += 1;
        }
        if word == b"null" { Object::Null } else { Object::Operator(word.to_vec()) }
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\0' | b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte)
        && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}
