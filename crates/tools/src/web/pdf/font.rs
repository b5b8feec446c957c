//! From the codes of a string to letters, by what a font says of its codes.

use std::collections::BTreeMap;

use super::file::File;
use super::object::{Dictionary, Object, Reader};

/// How many codes a font's table may name.
const MAX_CODES: usize = 70_000;

/// What a font's codes mean.
#[derive(Default)]
pub(super) struct Font {
    /// Two bytes a code, else one.
    wide: bool,
    letters: BTreeMap<u32, String>,
    /// Codes that were named, each as often as it was.
    named: usize,
}

impl Font {
    pub fn read(file: &File<'_>, font: &Dictionary) -> Self {
        let composite = file.get(font, "Subtype").name() == Some("Type0");
        let mut known = Self { wide: composite, ..Self::default() };
        if let Some(differences) = file.inner(font, "Encoding") {
            known.differences(file.get(differences, "Differences"));
        }
        if let Some(table) = font.get("ToUnicode").and_then(|table| file.stream(table)) {
            known.table(&table);
        }
        known
    }

    /// The letters of a string; codes that nothing is known of are left out.
    pub fn text(&self, codes: &[u8]) -> String {
        if self.wide {
            let pairs = codes
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |code, &byte| code << 8 | u32::from(byte)));
            return pairs.filter_map(|code| self.letters.get(&code)).map(String::as_str).collect();
        }
        let mut text = String::new();
        for &code in codes {
            match self.letters.get(&u32::from(code)) {
                Some(letters) => text.push_str(letters),
                None => {
                    let byte = [code];
                    text.push_str(&encoding_rs::WINDOWS_1252.decode(&byte).0);
                }
            }
        }
        text
    }

    /// Codes that a simple font names by glyph.
    fn differences(&mut self, differences: &Object) {
        let Object::Array(items) = differences else { return };
        let mut code = 0_u32;
        for item in items.iter().take(MAX_CODES) {
            match item {
                Object::Number(number) => code = *number as u32,
                Object::Name(name) => {
                    if let Some(letters) = glyph(name) {
                        self.name(code, letters);
                    }
                    code = code.saturating_add(1);
                }
                _ => {}
            }
        }
    }

    /// The `bfchar` and `bfrange` entries of a table.
    fn table(&mut self, table: &[u8]) {
        let mut reader = Reader::new(table, 0);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(object) = reader.next() {
            let Object::Operator(word) = object else {
                operands.push(object);
                operands.truncate(MAX_CODES);
                continue;
            };
            match word.as_slice() {
                b"endbfchar" => operands.chunks(2).for_each(|pair| self.one(pair)),
                b"endbfrange" => operands.chunks(3).for_each(|range| self.range(range)),
                b"endcodespacerange" => {
                    if let Some(Object::Text(code)) = operands.first() {
                        self.wide = code.len() > 1;
                    }
                }
                _ => {}
            }
            operands.clear();
        }
    }

    fn one(&mut self, pair: &[Object]) {
        if let [Object::Text(code), Object::Text(letters)] = pair {
            self.name(number(code), utf16(letters));
        }
    }

    fn range(&mut self, range: &[Object]) {
        let [Object::Text(first), Object::Text(last), target] = range else { return };
        let (first, last) = (number(first), number(last));
        let codes = (first..=last).take(MAX_CODES - self.named);
        match target {
            Object::Array(each) => {
                for (code, letters) in codes.zip(each) {
                    if let Object::Text(letters) = letters {
                        self.name(code, utf16(letters));
                    }
                }
            }
            Object::Text(letters) => {
                let start = utf16(letters);
                let mut before = start.chars();
                let Some(last) = before.next_back() else { return };
                for (step, code) in codes.enumerate() {
                    let letter = u32::try_from(step)
                        .ok()
                        .and_then(|step| char::from_u32((last as u32).saturating_add(step)));
                    let text: String = before.clone().chain(letter).collect();
                    self.name(code, text);
                }
            }
            _ => {}
        }
    }

    fn name(&mut self, code: u32, letters: String) {
        if self.named < MAX_CODES {
            self.named += 1;
            self.letters.insert(code, letters);
        }
    }
}

fn number(code: &[u8]) -> u32 {
    code.iter().take(4).fold(0, |number, &byte| number << 8 | u32::from(byte))
}

fn utf16(bytes: &[u8]) -> String {
    if let [byte] = bytes {
        return char::from(*byte).to_string();
    }
    let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The letters of a glyph's name, for the names that texts use.
fn glyph(name: &str) -> Option<String> {
    let named = match name {
        "space" | "nbspace" => " ",
        "hyphen" | "minus" | "sfthyphen" => "-",
        "endash" => "–",
        "emdash" => "—",
        "quoteleft" => "‘",
        "quoteright" => "’",
        "quotesingle" => "'",
        "quotedblleft" => "“",
        "quotedblright" => "”",
        "quotedbl" => "\"",
        "bullet" => "•",
        "ellipsis" => "…",
        "fi" => "fi",
        "fl" => "fl",
        "ff" => "ff",
        "ffi" => "ffi",
        "ffl" => "ffl",
        "period" => ".",
        "comma" => ",",
        "colon" => ":",
        "semicolon" => ";",
        "parenleft" => "(",
        "parenright" => ")",
        "bracketleft" => "[",
        "bracketright" => "]",
        "slash" => "/",
        "zero" => "0",
        "one" => "1",
        "two" => "2",
        "three" => "3",
        "four" => "4",
        "five" => "5",
        "six" => "6",
        "seven" => "7",
        "eight" => "8",
        "nine" => "9",
        other => {
            if let Some(code) = other.strip_prefix("uni").filter(|code| code.len() == 4) {
                let code = u32::from_str_radix(code, 16).ok()?;
                return char::from_u32(code).map(String::from);
            }
            return (other.chars().count() == 1).then(|| other.to_owned());
        }
    };
    Some(named.to_owned())
}
