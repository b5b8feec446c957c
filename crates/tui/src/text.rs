//! Columns of text: one width for everything that is drawn, counted by what a reader takes for one character.

use unicode_segmentation::UnicodeSegmentation as _;
pub use windlass_term::columns::{grapheme_width, width};
use windlass_term::strip_controls;

/// Columns of a text with colours.
pub fn painted_width(text: &str) -> usize {
    width(&strip_controls(text))
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

/// A text filled with spaces to a number of columns.
pub fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(painted_width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// A piece of a painted line.
enum Piece<'a> {
    Colour(&'a str),
    Text(&'a str),
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        if rest.starts_with("\u{1b}[") {
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
/// continue on the next row.
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
        if !self.colour.is_empty() {
            row.push_str("\u{1b}[0m");
        }
        self.done.push(row);
        self.row = " ".repeat(self.indent) + &self.colour;
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

/// The pictures that a terminal without Unicode gets instead of ours, each as wide as the one it replaces.
pub fn to_ascii(line: &str) -> String {
    let picture = |char: char| match char {
        '…' => '~',
        '•' | '●' | '◆' | '∴' => '*',
        '│' | '┊' | '┆' | '▏' | '▌' => '|',
        '─' | '━' | '–' | '—' => '-',
        '❯' | '▸' | '→' | '↳' => '>',
        '←' | '↲' => '<',
        '↑' => '^',
        '↓' => 'v',
        '✓' => '+',
        '✗' | '×' => 'x',
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
        match mapped.is_ascii() {
            true => shown.push_str(&mapped),
            false => shown.push_str(&"?".repeat(grapheme_width(grapheme))),
        }
    }
    shown
}
