//! Columns of text: one width for everything that is drawn, counted by what a reader takes for one character.

use unicode_segmentation::UnicodeSegmentation as _;
pub use windlass_term::columns::{grapheme_width, width};
use windlass_term::{link, strip_controls};

/// Columns of a text with colours.
pub fn painted_width(text: &str) -> usize {
    width(&strip_controls(text))
}

/// Rows of a terminal that a painted row takes: it breaks an address itself that is too long.
pub fn screen_rows(row: &str, columns: usize) -> usize {
    painted_width(row).div_ceil(columns.max(1)).max(1)
}

/// The same of several rows.
pub fn height(rows: &[String], columns: usize) -> usize {
    rows.iter().map(|row| screen_rows(row, columns)).sum()
}

/// A plain text cut to a number of columns, with a mark where something is left out.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let wide = grapheme_width(grapheme);
        if used + wide > columns.saturating_sub(1) {
            break;
        }
        kept.push_str(grapheme);
        used += wide;
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// The end of a plain text in a number of columns, with a mark where something is left out: what is typed there is seen.
pub fn cut_start(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut start, mut used) = (text.len(), 0);
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        let wide = grapheme_width(grapheme);
        if used + wide > columns.saturating_sub(1) {
            break;
        }
        start = at;
        used += wide;
    }
    let mark = if columns > 0 { "…" } else { "" };
    format!("{mark}{}", &text[start..])
}

/// A text filled with spaces to a number of columns.
pub fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(painted_width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// The most characters that one picture is made of: a family of emoji has seven.
const MOST_JOINED: usize = 10;

/// What a person wrote, as they wrote it: emoji, combining marks, tabs and spaces. What could hide something or control
/// the terminal is escaped. A text that is approved is shown more strictly, by core `shown`.
pub fn prose(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        for (at, char) in grapheme.chars().enumerate() {
            match char {
                ' ' | '\n' => kept.push(char),
                '\r' if grapheme == "\r\n" => {}
                '\t' => kept.push_str("    "),
                char if at > 0 && at < MOST_JOINED && joins(char) => kept.push(char),
                char => kept.push_str(&windlass_core::shown::shown(char.encode_utf8(&mut [0; 4]))),
            }
        }
    }
    kept
}

/// The same in one row.
pub fn prose_line(text: &str) -> String {
    prose(text).replace('\n', " ")
}

/// Whether a character belongs to the picture before it. Tags and most selectors can carry a text that nobody sees.
fn joins(char: char) -> bool {
    let is_selector = matches!(char, '\u{fe00}'..='\u{fe0d}' | '\u{e0000}'..='\u{e0fff}');
    !char.is_control() && !is_selector
}

/// A piece of a painted line.
enum Piece<'a> {
    Colour(&'a str),
    Link(&'a str),
    Text(&'a str),
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        if let Some(length) = link::sequence(rest) {
            found.push(Piece::Link(&rest[..length]));
            rest = &rest[length..];
        } else if rest.starts_with("\u{1b}[") {
            let end = rest.find('m').map_or(rest.len(), |end| end + 1);
            found.push(Piece::Colour(&rest[..end]));
            rest = &rest[end..];
        } else {
            let end = rest.find('\u{1b}').unwrap_or(rest.len()).max(1);
            let end =
                (end..=rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len());
            found.push(Piece::Text(&rest[..end]));
            rest = &rest[end..];
        }
    }
    found
}

/// Breaks a painted line into rows for the scrollback, as [`broken`] does. But an address stays whole, on a row of its
/// own where it is too long, so that a terminal can open it: the terminal itself breaks it.
pub fn rows(line: &str, columns: usize) -> Vec<String> {
    break_line(line, columns, LongAddress::Whole)
}

/// Breaks a painted line into rows of at most this many columns, between words where there are any. Colours
/// continue on the next row. The pieces of an address are one link.
pub fn broken(line: &str, columns: usize) -> Vec<String> {
    break_line(line, columns, LongAddress::Broken)
}

/// What becomes of an address that is wider than a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LongAddress {
    Whole,
    #[default]
    Broken,
}

fn break_line(line: &str, columns: usize, addresses: LongAddress) -> Vec<String> {
    let columns = columns.max(1);
    if painted_width(line) <= columns {
        return vec![line.to_owned()];
    }
    let indent = indentation(line).min(columns / 2);
    let mut rows = Rows { columns, indent, addresses, ..Rows::default() };
    for piece in pieces(line) {
        match piece {
            Piece::Colour(code) => rows.colour(code),
            Piece::Link(code) => rows.row.push_str(code),
            Piece::Text(text) => {
                for word in words(text) {
                    rows.word(word);
                }
            }
        }
    }
    rows.end()
}

/// Words with the spaces after them.
fn words(text: &str) -> Vec<&str> {
    text.split_inclusive(' ').collect()
}

/// Whether a word is an address, also in brackets or quotes.
fn is_address(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '<', '[', '"', '\'', '`']);
    ["http://", "https://", "file://"].iter().any(|start| word.starts_with(start))
}

/// The address in a word, without the punctuation around it.
fn address(word: &str) -> &str {
    let word = word.trim_start_matches(['(', '<', '[', '"', '\'', '`']);
    let mut address =
        word.trim_end_matches(['>', ']', '"', '\'', '`', ',', ';', ':', '!', '?', '.']);
    // A bracket that was opened before it is no part of it.
    while address.ends_with(')') && address.matches('(').count() < address.matches(')').count() {
        address = address[..address.len() - 1].trim_end_matches(['.', ',', '`', '"']);
    }
    address
}

fn indentation(line: &str) -> usize {
    let plain = strip_controls(line);
    plain.len() - plain.trim_start_matches(' ').len()
}

/// Rows as they fill up.
#[derive(Default)]
struct Rows {
    columns: usize,
    indent: usize,
    addresses: LongAddress,
    done: Vec<String>,
    row: String,
    used: usize,
    /// The colour in force, to continue with on the next row.
    colour: String,
    /// The link in force, likewise.
    link: Option<String>,
}

impl Rows {
    fn colour(&mut self, code: &str) {
        self.row.push_str(code);
        if matches!(code, "\u{1b}[0m" | "\u{1b}[m") {
            self.colour.clear();
        } else {
            self.colour.push_str(code);
        }
    }

    fn word(&mut self, word: &str) {
        let wide = width(word.trim_end());
        if self.used + wide > self.columns && self.used > self.indent {
            self.break_row();
        }
        if self.addresses == LongAddress::Whole
            && self.used + wide > self.columns
            && is_address(word)
        {
            // Nothing stands before it, and nothing follows it on its row.
            self.row = self.colour.clone() + word.trim_end();
            self.used = self.columns;
            return;
        }
        if self.used + wide > self.columns && is_address(word) {
            self.link = link::begin(address(word.trim_end()));
            self.row.extend(self.link.as_deref());
        }
        self.graphemes(word);
        if self.link.take().is_some() {
            self.row.push_str(link::END);
        }
    }

    fn graphemes(&mut self, word: &str) {
        for grapheme in word.graphemes(true) {
            let wide = grapheme_width(grapheme);
            if self.used + wide > self.columns {
                if grapheme == " " {
                    continue;
                }
                self.break_row();
            }
            self.row.push_str(grapheme);
            self.used += wide;
        }
    }

    fn break_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let mut row = row.trim_end_matches(' ').to_owned();
        if self.link.is_some() {
            row.push_str(link::END);
        }
        if !self.colour.is_empty() {
            row.push_str("\u{1b}[0m");
        }
        self.done.push(row);
        self.row = " ".repeat(self.indent) + &self.colour;
        self.row.extend(self.link.as_deref());
        self.used = self.indent;
    }

    fn end(mut self) -> Vec<String> {
        if strip_controls(&self.row).trim().is_empty() && !self.done.is_empty() {
            return self.done;
        }
        self.done.push(self.row);
        self.done
    }
}

/// A line of ours for a screen reader: words in place of signs and colours, nothing that is only drawn.
pub fn signs_to_words(line: &str) -> String {
    let plain = strip_controls(line);
    // Before a line it says that more was left out; the line itself says of what.
    let plain = plain.trim_start().trim_start_matches('…');
    let mut said = String::with_capacity(plain.len());
    for char in plain.chars() {
        match char {
            '✓' => said.push_str("done: "),
            '✗' => said.push_str("failed: "),
            '→' => said.push_str("to "),
            '▸' => said.push_str("step: "),
            '↻' => said.push_str("again: "),
            '←' => said.push_str("message: "),
            '↳' => said.push_str("sub-agent: "),
            '↲' => said.push_str("sub-agent ended: "),
            '·' => said.push_str(", "),
            '❯' | '•' | '●' | '◆' | '∴' | '»' | '‖' => {}
            '│' | '┊' | '┆' | '▏' | '▌' | '─' | '━' => said.push(' '),
            char => said.push(char),
        }
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ,", ",")
}

/// The characters that a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    Unicode,
    /// ASCII and the letters of Western Europe: what the fonts of a Linux console have.
    Latin,
    Ascii,
}

impl Signs {
    fn has(self, char: char) -> bool {
        match self {
            Self::Unicode => true,
            Self::Latin => char.is_ascii() || matches!(char, 'À'..='ÿ'),
            Self::Ascii => char.is_ascii(),
        }
    }
}

/// A line in the characters that a terminal has. What stands for another one is as wide as that one.
pub fn in_signs(line: &str, signs: Signs) -> String {
    if signs == Signs::Unicode {
        return line.to_owned();
    }
    let picture = |char: char| match char {
        '…' => '~',
        '•' | '●' | '◆' | '∴' | '■' | '▪' => '*',
        '◦' | '○' | '☐' | '□' | '↻' => 'o',
        '│' | '┃' | '║' | '┊' | '┆' | '▏' | '▌' => '|',
        '─' | '━' | '═' | '‐' | '‑' | '–' | '—' | '−' => '-',
        // Corners and crossings, as trees and tables have them.
        '┌'..='╋' | '╒'..='╰' => '+',
        '█' | '▓' | '▒' => '#',
        '░' => '.',
        '❯' | '▸' | '→' | '↳' | '»' | '›' => '>',
        '←' | '↲' | '«' | '‹' => '<',
        '↑' => '^',
        '↓' => 'v',
        '✓' | '✔' | '☑' => '+',
        '✗' | '✘' | '×' => 'x',
        '\u{a0}' => ' ',
        '‖' => '=',
        '⇥' => '>',
        '·' => '.',
        '’' | '‘' => '\'',
        '“' | '”' => '"',
        '⠋' | '⠙' | '⠹' | '⠸' | '⠼' => '/',
        '⠴' | '⠦' | '⠧' | '⠇' | '⠏' => '\\',
        char => char,
    };
    let mut shown = String::with_capacity(line.len());
    for grapheme in line.graphemes(true) {
        let mapped: String = grapheme.chars().map(picture).collect();
        match mapped.chars().all(|char| signs.has(char)) {
            true => shown.push_str(&mapped),
            false => shown.push_str(&"?".repeat(grapheme_width(grapheme))),
        }
    }
    shown
}
