//! A plan under review: where the person is in it, and what they say to single lines.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use windlass_core::shown::shown_line;
use windlass_term::Paint;
use windlass_term::question::Canvas;

use super::DialogAction;
use crate::keys::{Code, Key};

/// What was said to lines of a plan, by the line's number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comments(BTreeMap<usize, Comment>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Comment {
    /// The line as it was written in the plan.
    line: String,
    words: String,
}

impl Comments {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The comments as an answer: each below the line that it is about.
    pub fn revision(&self) -> Option<String> {
        let quoted = |comment: &Comment| format!("> {}\n{}", comment.line.trim(), comment.words);
        let all: Vec<String> = self.0.values().map(quoted).collect();
        (!all.is_empty()).then(|| format!("Revise: {}", all.join("\n\n")))
    }
}

/// The lines of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanReview {
    lines: Vec<String>,
    /// The line that a comment would be about, while the person goes through them.
    at: Option<usize>,
    pub comments: Comments,
}

impl PlanReview {
    pub fn of(text: &str) -> Self {
        let lines = text.trim().lines().map(str::to_owned).collect();
        Self { lines, at: None, comments: Comments::default() }
    }

    pub fn is_commenting(&self) -> bool {
        self.at.is_some()
    }

    /// Lets the keys go through the lines.
    pub fn begin(&mut self) {
        self.at = Some(self.at.unwrap_or(0)).filter(|at| *at < self.lines.len());
    }

    /// What a key does while the person goes through the lines.
    pub fn press(&mut self, key: Key, page: usize) -> DialogAction {
        let Some(at) = self.at else { return DialogAction::Nothing };
        match key.code {
            Code::Up | Code::Char('k') => self.go(at, -1),
            Code::Down | Code::Char('j') => self.go(at, 1),
            Code::PageUp => self.go(at, -(page as isize)),
            Code::PageDown => self.go(at, page as isize),
            Code::Char('x') | Code::Delete | Code::Backspace => {
                self.comments.0.remove(&at);
            }
            Code::Enter | Code::Char('c') if !key.ctrl => {
                return DialogAction::Comment { line: at };
            }
            Code::Escape => self.at = None,
            _ => return DialogAction::Nothing,
        }
        DialogAction::Moved
    }

    /// The next line that says something.
    fn go(&mut self, from: usize, by: isize) {
        let last = self.lines.len().saturating_sub(1);
        let step = if by < 0 { -1 } else { 1 };
        let mut to = from.saturating_add_signed(by).min(last);
        while self.lines[to].trim().is_empty() && to != 0 && to != last {
            to = to.saturating_add_signed(step);
        }
        self.at = Some(to);
    }

    /// Says something to a line; nothing takes it back.
    pub fn comment(&mut self, line: usize, words: &str) {
        let (words, Some(text)) = (words.trim(), self.lines.get(line)) else { return };
        match words.is_empty() {
            true => self.comments.0.remove(&line),
            false => {
                let comment = Comment { line: text.clone(), words: words.to_owned() };
                self.comments.0.insert(line, comment)
            }
        };
    }

    /// What was said to a line.
    pub fn said(&self, line: usize) -> Option<&str> {
        self.comments.0.get(&line).map(|comment| comment.words.as_str())
    }

    /// The plan with its comments, and which of these rows are the line that a comment would be about.
    pub fn rows(&self, place: Canvas) -> (Vec<String>, Option<Range<usize>>) {
        let (paint, columns) = (place.paint, place.columns.unwrap_or(usize::MAX));
        let mut rows = Vec::new();
        let mut focus = None;
        for (number, line) in self.lines.iter().enumerate() {
            let from = rows.len();
            rows.extend(super::broken(&place.quoted_prose(line), columns));
            if self.at == Some(number) {
                mark(&mut rows[from..], paint);
                focus = Some(from..rows.len());
            }
            let said = self.said(number).unwrap_or_default();
            let said = said.lines().map(|said| paint.yellow(&format!("  » {}", shown_line(said))));
            rows.extend(super::broken(&said.collect::<Vec<_>>(), columns));
        }
        (rows, focus)
    }
}

/// Marks the line that the person is at.
fn mark(rows: &mut [String], paint: Paint) {
    if let Some(first) = rows.first_mut()
        && let Some(rest) = first.strip_prefix("  ")
    {
        *first = format!("{} {rest}", paint.cyan("❯"));
    }
}
