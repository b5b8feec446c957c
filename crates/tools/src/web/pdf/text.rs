//! What the operators of a page write, line by line.

use std::collections::BTreeMap;

use super::file::{File, Page, is};
use super::font::Font;
use super::object::{Dictionary, Object, Reader};

/// How much text is taken from a file.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// How deep drawings may hold drawings.
const MAX_FORMS: usize = 4;
/// How many drawings are looked into for one page.
const MAX_DRAWN: usize = 64;
/// Operands before an operator; more is no content.
const MAX_OPERANDS: usize = 1_000;
/// A gap inside a line, in thousandths of the letter's size, that is a space.
const SPACE: f64 = -180.0;

/// The text of all pages, an empty line between them.
pub(super) fn of_pages(file: &File<'_>, pages: &[Page<'_>]) -> String {
    let mut all = String::new();
    for page in pages {
        let mut writer = Writer::new(file);
        let contents = match page.dictionary.get("Contents") {
            Some(Object::Array(parts)) => parts.clone(),
            Some(reference) => match file.resolve(reference) {
                Object::Array(parts) => parts.clone(),
                _ => vec![reference.clone()],
            },
            None => Vec::new(),
        };
        let whole: Vec<u8> = contents
            .iter()
            .filter_map(|part| file.stream(part))
            .flat_map(|mut bytes| {
                bytes.push(b'\n');
                bytes
            })
            .collect();
        writer.run(&whole, page.resources, 0);
        let text = writer.text.trim();
        if !text.is_empty() {
            if !all.is_empty() {
                all.push_str("\n\n");
            }
            all.push_str(text);
        }
        if all.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    windlass_core::text::prefix(&all, MAX_TEXT_BYTES).to_owned()
}

struct Writer<'a> {
    file: &'a File<'a>,
    text: String,
    fonts: BTreeMap<String, Font>,
    font: String,
    line: f64,
    drawn: usize,
}

impl<'a> Writer<'a> {
    fn new(file: &'a File<'a>) -> Self {
        let (text, fonts, font) = (String::new(), BTreeMap::new(), String::new());
        Self { file, text, fonts, font, line: 0.0, drawn: 0 }
    }

    fn run(&mut self, content: &[u8], resources: &Dictionary, depth: usize) {
        let mut reader = Reader::new(content, 0);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(object) = reader.next() {
            let Object::Operator(word) = object else {
                if operands.len() < MAX_OPERANDS {
                    operands.push(object);
                }
                continue;
            };
            if word == b"ID" {
                reader.at = behind_image(content, reader.at);
            } else {
                self.operate(&word, &operands, resources, depth);
            }
            operands.clear();
            if self.text.len() > MAX_TEXT_BYTES {
                return;
            }
        }
    }

    fn operate(&mut self, word: &[u8], operands: &[Object], resources: &Dictionary, depth: usize) {
        let number = |index: usize| operands.get(index).and_then(Object::number).unwrap_or(0.0);
        match (word, operands) {
            (b"Tf", [Object::Name(name), ..]) => self.choose(name, resources),
            (b"Tj", [Object::Text(codes), ..]) => self.show(codes),
            (b"'", [Object::Text(codes), ..]) | (b"\"", [_, _, Object::Text(codes), ..]) => {
                self.new_line();
                self.show(codes);
            }
            (b"TJ", [Object::Array(pieces), ..]) => {
                for piece in pieces {
                    match piece {
                        Object::Text(codes) => self.show(codes),
                        Object::Number(gap) if *gap < SPACE => self.space(),
                        _ => {}
                    }
                }
            }
            (b"Td" | b"TD", _) => {
                if number(1) == 0.0 {
                    self.space();
                } else {
                    self.new_line();
                }
            }
            (b"Tm", _) => {
                if number(5) == self.line {
                    self.space();
                } else {
                    self.new_line();
                }
                self.line = number(5);
            }
            (b"T*" | b"BT", _) => self.new_line(),
            (b"Do", [Object::Name(name), ..]) => self.draw(name, resources, depth),
            _ => {}
        }
    }

    fn choose(&mut self, name: &str, resources: &Dictionary) {
        self.font = name.to_owned();
        if !self.fonts.contains_key(name) {
            let fonts = self.file.inner(resources, "Font");
            let font = fonts.and_then(|fonts| self.file.inner(fonts, name));
            let font = font.map(|font| Font::read(self.file, font)).unwrap_or_default();
            self.fonts.insert(name.to_owned(), font);
        }
    }

    fn show(&mut self, codes: &[u8]) {
        let plain = Font::default();
        let text = self.fonts.get(&self.font).unwrap_or(&plain).text(codes);
        self.text.push_str(&text);
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
    }

    fn new_line(&mut self) {
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// A drawing may hold text of its own.
    fn draw(&mut self, name: &str, resources: &Dictionary, depth: usize) {
        let file = self.file;
        let Some(reference) = file.inner(resources, "XObject").and_then(|all| all.get(name)) else {
            return;
        };
        self.drawn += 1;
        if depth >= MAX_FORMS || self.drawn > MAX_DRAWN {
            return;
        }
        let Some(form) = file.resolve(reference).dictionary() else { return };
        if !is(form, "Subtype", "Form") {
            return;
        }
        let own = file.inner(form, "Resources").unwrap_or(resources);
        if let Some(content) = file.stream(reference) {
            // Its fonts have names of their own.
            let outer = std::mem::take(&mut self.fonts);
            self.run(&content, own, depth + 1);
            self.fonts = outer;
        }
    }
}

/// Behind the `EI` of an image that stands in the content itself.
fn behind_image(content: &[u8], from: usize) -> usize {
    let rest = content.get(from..).unwrap_or_default();
    let end = rest.windows(4).position(|window| {
        let [before, b'E', b'I', after] = window else { return false };
        before.is_ascii_whitespace() && after.is_ascii_whitespace()
    });
    end.map_or(content.len(), |end| from + end + 3)
}
