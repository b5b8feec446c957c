//! What was printed, kept as far as it may have to be printed again: replies and messages as they were written, all
//! else as lines.
//!
//! Invariant: it is a window. What falls out of it is in the journal, and the transcript page reads it there.

use std::collections::VecDeque;

use windlass_core::shown::shown;
use windlass_term::{Paint, markdown, strip_controls};

use crate::text::{rows, signs_to_words};

/// Bytes that are kept.
const KEPT_BYTES: usize = 384 * 1024;
/// Rows that are printed again after a resize. More would take a terminal long, and few scroll back further.
pub const REPRINTED_ROWS: usize = 1000;
/// Prose wider than this is hard to read.
const MAX_PROSE: usize = 100;

/// Something that is printed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// What a person said.
    Said { text: String, by: Option<String> },
    /// What the model answered, as Markdown.
    Reply(String),
    /// Lines as they are.
    Lines(Vec<String>),
}

/// How entries are printed.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Columns of the terminal.
    pub columns: usize,
    pub paint: Paint,
    pub style: FormStyle,
}

/// What entries are printed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormStyle {
    /// Marks, colours, rendered Markdown.
    Drawn,
    /// As they were written: no marks, no colours, and line breaks only by the terminal, so that what is copied is
    /// the text itself.
    Raw,
    /// Words in place of marks and colours, for a screen reader.
    Spoken,
}

impl Entry {
    /// A remark of the terminal itself.
    pub fn note(line: impl Into<String>) -> Self {
        Self::Lines(vec![line.into()])
    }

    /// The rows of an entry.
    pub fn rows(&self, form: Form) -> Vec<String> {
        let Form { columns, paint, style } = form;
        match style {
            FormStyle::Raw => return self.raw_rows(),
            FormStyle::Spoken => return self.spoken_rows(columns),
            FormStyle::Drawn => {}
        }
        let lines = match self {
            Self::Said { text, by } => said(text, by.as_deref(), columns, paint),
            Self::Reply(text) => {
                let width = columns.saturating_sub(1).clamp(1, MAX_PROSE);
                let text = markdown::render(&strip_controls(text), paint, width);
                let lines = text.lines().map(str::to_owned);
                std::iter::once(String::new()).chain(lines).chain([String::new()]).collect()
            }
            Self::Lines(lines) => lines.clone(),
        };
        lines.iter().flat_map(|line| rows(line, columns.saturating_sub(1).max(1))).collect()
    }

    fn raw_rows(&self) -> Vec<String> {
        let paragraph = |text: &str| {
            let lines = text.trim_end().lines().map(str::to_owned);
            std::iter::once(String::new()).chain(lines).chain([String::new()]).collect()
        };
        match self {
            Self::Said { text, .. } => paragraph(&shown(text)),
            Self::Reply(text) => paragraph(&strip_controls(text)),
            Self::Lines(lines) => {
                let plain = lines.iter().map(|line| strip_controls(line));
                plain.map(|line| line.strip_prefix("  ").unwrap_or(&line).to_owned()).collect()
            }
        }
    }

    fn spoken_rows(&self, columns: usize) -> Vec<String> {
        let paragraph = |who: &str, text: &str| -> Vec<String> {
            format!("{who}: {}", text.trim_end()).lines().map(str::to_owned).collect()
        };
        let lines = match self {
            Self::Said { text, by } => paragraph(by.as_deref().unwrap_or("you"), &shown(text)),
            Self::Reply(text) => paragraph("agent", strip_controls(text).trim_start()),
            Self::Lines(lines) => lines.iter().map(|line| signs_to_words(line)).collect(),
        };
        let lines = lines.iter().filter(|line| !line.trim().is_empty());
        lines.flat_map(|line| rows(line, columns.saturating_sub(1).max(1))).collect()
    }

    /// The rows of several entries. Two empty rows never follow each other, also across calls: `is_blank` says
    /// whether the last row was empty.
    pub fn all_rows<'a>(
        entries: impl IntoIterator<Item = &'a Self>,
        form: Form,
        is_blank: &mut bool,
    ) -> Vec<String> {
        let rows = entries.into_iter().flat_map(|entry| entry.rows(form));
        let is_new = |row: &String| {
            let was_blank = std::mem::replace(is_blank, row.is_empty());
            !(was_blank && row.is_empty())
        };
        rows.filter(is_new).collect()
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Said { text, .. } | Self::Reply(text) => text.len(),
            Self::Lines(lines) => lines.iter().map(String::len).sum(),
        }
    }
}

/// A person's message: a mark in front, its lines indented below it, nothing in it that controls a terminal.
fn said(text: &str, by: Option<&str>, columns: usize, paint: Paint) -> Vec<String> {
    let room = columns.saturating_sub(3).max(1);
    let text = shown(text.trim_end());
    let lines = text.lines().flat_map(|line| rows(line, room));
    let marks = std::iter::once(paint.with("36", "❯ ")).chain(std::iter::repeat("  ".to_owned()));
    let by = by.map(|by| format!("  {}", paint.dim(&format!("({by})"))));
    let mut lines: Vec<String> =
        marks.zip(lines).map(|(mark, line)| format!("{mark}{}", paint.bold(&line))).collect();
    lines.insert(0, String::new());
    lines.extend(by);
    lines.push(String::new());
    lines
}

/// The newest entries.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    entries: VecDeque<Entry>,
    bytes: usize,
    has_older: bool,
    last_reply: Option<String>,
    /// What was not printed yet.
    new: Vec<Entry>,
    /// How many entries before those were not printed either, because another layout showed them.
    postponed: usize,
}

impl Transcript {
    /// Adds an entry, to be printed.
    pub fn push(&mut self, entry: Entry) {
        self.new.push(entry.clone());
        if let Entry::Reply(text) = &entry {
            self.last_reply = Some(text.clone());
        }
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.bytes > KEPT_BYTES && self.entries.len() > 1 {
            if let Some(oldest) = self.entries.pop_front() {
                self.bytes -= oldest.bytes();
                self.has_older = true;
            }
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// What was not printed yet, to be printed once.
    pub fn take_new(&mut self) -> Vec<Entry> {
        let new = std::mem::take(&mut self.new);
        let postponed = std::mem::take(&mut self.postponed);
        if postponed == 0 {
            return new;
        }
        let from = self.entries.len().saturating_sub(postponed + new.len());
        self.entries.iter().skip(from).cloned().collect()
    }

    /// Leaves what is new to be printed later, and returns it.
    pub fn postpone_new(&mut self) -> Vec<Entry> {
        let new = std::mem::take(&mut self.new);
        self.postponed += new.len();
        new
    }

    /// The last reply as it was written.
    pub fn last_reply(&self) -> Option<&str> {
        self.last_reply.as_deref()
    }

    /// What was not printed yet and, where that is less, as many of the newest rows as a screen has room for.
    pub fn take_screenful(&mut self, form: Form, room: usize) -> Vec<String> {
        let new = self.take_new();
        let new = Entry::all_rows(&new, form, &mut false).len();
        self.newest_rows(form, room.max(new)).0
    }

    /// The newest rows, with a notice where there are older ones.
    pub fn rows(&self, form: Form, most: usize) -> Vec<String> {
        let (mut rows, is_cut) = self.newest_rows(form, most);
        if is_cut {
            rows.insert(0, form.paint.dim("… earlier output: /transcript"));
        }
        rows
    }

    /// The newest rows, and whether there are older ones.
    fn newest_rows(&self, form: Form, most: usize) -> (Vec<String>, bool) {
        let mut first = self.entries.len();
        let mut count = 0;
        while first > 0 && count < most {
            first -= 1;
            count += self.entries[first].rows(form).len();
        }
        let mut is_cut = self.has_older || first > 0;
        let newest = self.entries.iter().skip(first);
        let mut rows = Entry::all_rows(newest, form, &mut false);
        if rows.len() > most {
            rows.drain(..rows.len() - most);
            is_cut = true;
        }
        (rows, is_cut)
    }
}
