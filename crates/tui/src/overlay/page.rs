//! A text to read: scrolled, searched, with jumps between headings and folded parts.

use windlass_term::strip_controls;

use super::scroll_speed::ScrollSpeed;
use super::{Asked, DiffOf, ViewKind};
use crate::Moment;
use crate::keys::{Code, Direction, Key};
use crate::text::broken;

/// One line of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLine {
    pub text: String,
    /// Whether a jump stops here: a person's message, a file.
    pub is_heading: bool,
    /// Whether it is seen only when unfolded.
    pub is_folded: bool,
}

impl PageLine {
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn heading(text: impl Into<String>) -> Self {
        Self { is_heading: true, ..Self::of(text) }
    }

    pub fn folded(text: impl Into<String>) -> Self {
        Self { is_folded: true, ..Self::of(text) }
    }
}

/// A text and where the person is in it.
#[derive(Clone, Debug)]
pub struct Page {
    pub kind: ViewKind,
    pub title: String,
    lines: Vec<PageLine>,
    /// The lines as they are seen at this width.
    laid: Laid,
    top: usize,
    speed: ScrollSpeed,
    /// Until it is laid out, its end is not known.
    opens_at_end: bool,
    is_unfolded: bool,
    search: Search,
}

#[derive(Clone, Debug, Default)]
struct Laid {
    columns: usize,
    rows: Vec<Row>,
}

/// A row as it is seen.
#[derive(Clone, Debug)]
struct Row {
    text: String,
    is_heading: bool,
    /// The line that it belongs to.
    line: usize,
}

#[derive(Clone, Debug, Default)]
struct Search {
    words: String,
    is_typing: bool,
}

impl Page {
    pub fn new(kind: ViewKind, title: impl Into<String>, lines: Vec<PageLine>) -> Self {
        Self {
            kind,
            title: title.into(),
            lines,
            laid: Laid::default(),
            top: 0,
            speed: ScrollSpeed::default(),
            opens_at_end: false,
            is_unfolded: false,
            search: Search::default(),
        }
    }

    /// The same, seen from its end.
    pub fn from_end(mut self) -> Self {
        self.opens_at_end = true;
        self
    }

    /// Breaks the lines for a width; cheap where nothing changed.
    pub fn lay_out(&mut self, columns: usize, height: usize) {
        if self.laid.columns != columns {
            // What was at the top stays there.
            let first = self.laid.rows.get(self.top).map(|row| row.line);
            let is_seen = |(_, line): &(usize, &PageLine)| self.is_unfolded || !line.is_folded;
            let seen = self.lines.iter().enumerate().filter(is_seen);
            let laid = seen.flat_map(|(number, line)| {
                let rows = broken(&line.text, columns).into_iter().enumerate();
                let row = move |(at, text)| Row {
                    text,
                    is_heading: line.is_heading && at == 0,
                    line: number,
                };
                rows.map(row)
            });
            self.laid = Laid { columns, rows: laid.collect() };
            if let Some(first) = first {
                let same = self.laid.rows.iter().position(|row| row.line >= first);
                self.top = same.unwrap_or(self.top);
            }
        }
        let last = self.last_top(height);
        self.top = if std::mem::take(&mut self.opens_at_end) { last } else { self.top.min(last) };
    }

    /// The rows that are seen.
    pub fn visible(&self, height: usize) -> Vec<String> {
        let rows = self.laid.rows.iter().skip(self.top).take(height);
        rows.map(|row| row.text.clone()).collect()
    }

    /// What stands at the bottom: the search, or where one is.
    pub fn status(&self, height: usize) -> String {
        if self.search.is_typing {
            return format!("/{}", self.search.words);
        }
        let (count, last) = (self.laid.rows.len(), self.last_top(height));
        // Its own rows are not known before they are counted by this, so the page may be scrolled a little further.
        let percent = (self.top.min(last) * 100).checked_div(last).unwrap_or(100);
        let unfold = match (self.lines.iter().any(|line| line.is_folded), self.is_unfolded) {
            (false, _) => "",
            (true, true) => " · u folds",
            (true, false) => " · u unfolds",
        };
        let jump = if self.lines.iter().any(|line| line.is_heading) { " · [ ] jump" } else { "" };
        let diff =
            if matches!(self.kind, ViewKind::Diff(_)) { " · Tab other changes" } else { "" };
        format!("{count} lines, {percent} % · / searches{jump}{unfold}{diff} · Esc closes")
    }

    /// Where the cursor is while words are typed.
    pub fn search_column(&self) -> Option<usize> {
        self.search.is_typing.then(|| 1 + crate::text::width(&self.search.words))
    }

    pub fn press(&mut self, key: Key, height: usize, now: Moment) -> Asked {
        if self.search.is_typing {
            return self.press_search(key, height);
        }
        let page = height.saturating_sub(1).max(1);
        if let Some(direction) = line_step(key) {
            // No row is passed over unseen.
            let rows = self.speed.step(direction, now).min(page) as isize;
            self.scroll(if direction == Direction::Up { -rows } else { rows }, height);
            return Asked::Nothing;
        }
        self.speed.stop();
        match key.code {
            Code::Escape | Code::Char('q') if !key.ctrl && !key.alt => return Asked::Close,
            Code::Char('c' | 't' | 'd') if key.ctrl => return Asked::Close,
            Code::PageUp | Code::Char('b') => self.scroll(-(page as isize), height),
            Code::PageDown | Code::Char(' ' | 'f') => self.scroll(page as isize, height),
            Code::Home | Code::Char('g') => self.top = 0,
            Code::End | Code::Char('G') => self.top = self.last_top(height),
            Code::Char('[' | '{') => self.jump_back(),
            Code::Char(']' | '}') => self.jump(height),
            Code::Char('u') => {
                self.is_unfolded = !self.is_unfolded;
                let columns = std::mem::take(&mut self.laid.columns);
                self.lay_out(columns, height);
            }
            Code::Char('/') => self.search = Search { words: String::new(), is_typing: true },
            Code::Char('n') => self.find_next(height),
            Code::Char('N') => self.find_previous(),
            Code::Tab => {
                if let ViewKind::Diff(of) = self.kind {
                    let next: DiffOf = of.next();
                    return Asked::Open(ViewKind::Diff(next));
                }
            }
            _ => {}
        }
        Asked::Nothing
    }

    fn press_search(&mut self, key: Key, height: usize) -> Asked {
        match key.code {
            Code::Enter => {
                self.search.is_typing = false;
                self.find_next(height);
            }
            Code::Escape => self.search = Search::default(),
            Code::Backspace => {
                self.search.words.pop();
            }
            Code::Char('c') if key.ctrl => self.search = Search::default(),
            _ => self.search.words.extend(key.typed()),
        }
        Asked::Nothing
    }

    pub fn paste(&mut self, words: &str) {
        if self.search.is_typing {
            self.search.words.push_str(words);
        }
    }

    pub fn place_as(&mut self, before: &Self) {
        self.top = before.top;
        self.is_unfolded = before.is_unfolded;
        self.search = before.search.clone();
    }

    fn last_top(&self, height: usize) -> usize {
        self.laid.rows.len().saturating_sub(height)
    }

    fn scroll(&mut self, rows: isize, height: usize) {
        self.top = self.top.saturating_add_signed(rows).min(self.last_top(height));
    }

    fn jump(&mut self, height: usize) {
        let rows = self.laid.rows.iter().enumerate().skip(self.top + 1);
        if let Some((at, _)) = rows.into_iter().find(|(_, row)| row.is_heading) {
            self.top = at.min(self.last_top(height));
        }
    }

    fn jump_back(&mut self) {
        let rows = self.laid.rows.iter().enumerate().take(self.top);
        self.top = rows.rev().find(|(_, row)| row.is_heading).map_or(0, |(at, _)| at);
    }

    fn matches(&self, row: &str) -> bool {
        let words = self.search.words.to_lowercase();
        !words.is_empty() && strip_controls(row).to_lowercase().contains(&words)
    }

    fn find_next(&mut self, height: usize) {
        let mut rows = self.laid.rows.iter().enumerate().skip(self.top + 1);
        if let Some((at, _)) = rows.find(|(_, row)| self.matches(&row.text)) {
            self.top = at.min(self.last_top(height));
        }
    }

    fn find_previous(&mut self) {
        let rows = self.laid.rows.iter().enumerate().take(self.top);
        let found = rows.rev().find(|(_, row)| self.matches(&row.text));
        self.top = found.map_or(self.top, |(at, _)| at);
    }
}

/// The way that a key scrolls by single rows.
fn line_step(key: Key) -> Option<Direction> {
    match key.code {
        Code::Up | Code::Char('k') => Some(Direction::Up),
        Code::Down | Code::Char('j') | Code::Enter => Some(Direction::Down),
        _ => None,
    }
}
