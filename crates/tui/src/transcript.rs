//! What was printed, kept as far as it may have to be printed again: replies and messages as they were written, all
//! else as lines.
//!
//! Invariant: it is a window. What falls out of it is in the journal, and the transcript page reads it there.

use std::collections::VecDeque;

use windlass_term::{Paint, markdown, numbers, strip_controls};

use crate::text::{height, prose, rows, screen_rows, signs_to_words};

/// Bytes that are kept.
const KEPT_BYTES: usize = 384 * 1024;
/// Rows that are printed again after a resize. More would take a terminal long, and few scroll back further.
pub const REPRINTED_ROWS: usize = 1000;
/// Prose wider than this is hard to read.
const MAX_PROSE: usize = 100;
/// Of a message that is longer than both, so much of its beginning and of its end is printed. What files hold that it
/// names would bury the conversation.
const SAID_BEGIN: usize = 10;
const SAID_END: usize = 5;

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
            Self::Said { text, .. } => paragraph(&prose(text)),
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
            Self::Said { text, by } => {
                let all = paragraph(by.as_deref().unwrap_or("you"), &prose(text));
                shortened(all, |left_out| left_out)
            }
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
    let text = prose(text.trim_end());
    let lines = text.lines().flat_map(|line| rows(line, room)).map(|line| paint.bold(&line));
    let lines = shortened(lines.collect(), |left_out| paint.dim(&left_out));
    let marks = std::iter::once(paint.with("36", "❯ ")).chain(std::iter::repeat("  ".to_owned()));
    let by = by.map(|by| format!("  {}", paint.dim(&format!("({by})"))));
    let mut lines: Vec<String> =
        marks.zip(lines).map(|(mark, line)| format!("{mark}{line}")).collect();
    lines.insert(0, String::new());
    lines.extend(by);
    lines.push(String::new());
    lines
}

/// Where a long message is cut, if it is: the first line that is left out, and the first one after those.
pub fn left_out(lines: usize) -> Option<(usize, usize)> {
    let end = lines.checked_sub(SAID_END)?;
    (end > SAID_BEGIN + 1).then_some((SAID_BEGIN, end))
}

/// What stands for the lines that are left out.
pub fn left_out_words(count: usize) -> String {
    format!("… {}; /transcript has all", numbers::plural(count, "more line"))
}

/// The beginning and the end of a long message.
fn shortened(mut lines: Vec<String>, painted: impl Fn(String) -> String) -> Vec<String> {
    if let Some((from, to)) = left_out(lines.len()) {
        lines.splice(from..to, [painted(left_out_words(to - from))]);
    }
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

    /// What was not printed yet, after the newest rows before it: as many as the terminal showed, in the form in which
    /// it showed them.
    pub fn take_with_shown(&mut self, form: Form, before: Form, shown: usize) -> Vec<String> {
        let new = self.take_new().len();
        let rows_from = |first: usize, form: Form| {
            let last = first.checked_sub(1).and_then(|at| self.entries.get(at));
            let last = last.map(|entry| entry.rows(form)).unwrap_or_default();
            let mut is_blank = last.last().is_some_and(String::is_empty);
            Entry::all_rows(self.entries.iter().skip(first), form, &mut is_blank)
        };
        let height_from = |first: usize| height(&rows_from(first, before), before.columns);
        let mut first = self.entries.len().saturating_sub(new);
        let room = shown + height_from(first);
        while first > 0 && height_from(first) < room {
            first -= 1;
        }
        // Of the first one, only its end may have been in sight.
        let mut above = height_from(first).saturating_sub(room);
        let is_above = |row: &&String| {
            let left = above.checked_sub(screen_rows(row, before.columns));
            above = left.unwrap_or(0);
            left.is_some()
        };
        let hidden = rows_from(first, before).iter().take_while(is_above).count();
        let rest = |form| rows_from(first + 1, form).len();
        let of_first = |form| rows_from(first, form).len().saturating_sub(rest(form));
        rows_from(first, form).split_off(hidden * of_first(form) / of_first(before).max(1))
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
