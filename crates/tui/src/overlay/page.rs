//! A text to read: scrolled, searched, with jumps between headings and folded parts.

use windlass_term::{Paint, numbers, strip_controls};

use super::scroll_speed::ScrollSpeed;
use super::{DiffOf, PageAction, ViewKind};
use crate::Moment;
use crate::keys::{Code, Direction, Key};
use crate::text::{broken, prose_line};

/// One line of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLine {
    pub text: String,
    /// Whether a jump stops here: a person's message, a file.
    pub is_heading: bool,
    /// When it is seen.
    pub fold: Fold,
}

/// When a line is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    #[default]
    Always,
    /// The short form of what is folded.
    WhileFolded,
    /// What is folded, whole.
    WhileUnfolded,
}

impl PageLine {
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn heading(text: impl Into<String>) -> Self {
        Self { is_heading: true, ..Self::of(text) }
    }

    pub fn folded(text: impl Into<String>) -> Self {
        Self { fold: Fold::WhileUnfolded, ..Self::of(text) }
    }

    /// What stands for folded lines until they are unfolded.
    pub fn brief(text: impl Into<String>) -> Self {
        Self { fold: Fold::WhileFolded, ..Self::of(text) }
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
    /// Whether its end stays in sight while it grows, for whoever is there.
    follows_end: bool,
    is_at_end: bool,
    /// Whether more may come.
    is_growing: bool,
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
    found: Option<Found>,
}

/// Where a search has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// In this row.
    Row(usize),
    Nowhere,
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
            follows_end: false,
            is_at_end: false,
            is_growing: false,
            is_unfolded: false,
            search: Search::default(),
        }
    }

    /// The same, seen from its end.
    pub fn from_end(mut self) -> Self {
        (self.opens_at_end, self.follows_end) = (true, true);
        self
    }

    /// The same; more may come while `is_growing`.
    pub fn growing(mut self, is_growing: bool) -> Self {
        self.is_growing = is_growing;
        self
    }

    /// Whether it shows what happens, and is read again while it is open.
    pub fn is_live(&self) -> bool {
        self.is_growing || self.kind.is_live()
    }

    /// Breaks the lines for a width; cheap where nothing changed.
    pub fn lay_out(&mut self, columns: usize, height: usize) {
        if self.laid.columns != columns {
            if self.laid.columns != 0 {
                // Its row is another one now.
                self.search.found = None;
            }
            // What was at the top stays there.
            let first = self.laid.rows.get(self.top).map(|row| row.line);
            let is_seen = |(_, line): &(usize, &PageLine)| match line.fold {
                Fold::Always => true,
                Fold::WhileFolded => !self.is_unfolded,
                Fold::WhileUnfolded => self.is_unfolded,
            };
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
        self.is_at_end = self.top == last;
    }

    /// The rows that are seen, with what was searched for marked.
    pub fn visible(&self, height: usize, paint: Paint) -> Vec<String> {
        let rows = self.laid.rows.iter().skip(self.top).take(height);
        rows.map(|row| self.marked(&row.text, paint)).collect()
    }

    fn marked(&self, row: &str, paint: Paint) -> String {
        if !paint.on || self.search.is_typing || !self.matches(row) {
            return row.to_owned();
        }
        let plain = strip_controls(row);
        let (lower, words) = (plain.to_lowercase(), self.search.words.to_lowercase());
        let at = lower.find(&words).filter(|_| lower.len() == plain.len());
        let parts = at.and_then(|at| {
            let (before, rest) = plain.split_at_checked(at)?;
            let (found, after) = rest.split_at_checked(words.len())?;
            Some(format!("{before}{}{after}", paint.with("7", found)))
        });
        parts.unwrap_or_else(|| paint.with("7", &plain))
    }

    /// What stands at the bottom: where one is, and the keys.
    pub fn status(&self, height: usize) -> String {
        if self.search.is_typing {
            return "Enter finds · Esc ends the search".to_owned();
        }
        let (count, last) = (self.laid.rows.len(), self.last_top(height));
        // Its own rows are not known before they are counted by this, so the page may be scrolled a little further.
        let percent = (self.top.min(last) * 100).checked_div(last).unwrap_or(100);
        let has_fold = self.lines.iter().any(|line| line.fold != Fold::Always);
        let unfold = match (has_fold, self.is_unfolded) {
            (false, _) => "",
            (true, true) => " · u folds",
            (true, false) => " · u unfolds",
        };
        let jump = if self.lines.iter().any(|line| line.is_heading) { " · [ ] jump" } else { "" };
        let diff =
            if matches!(self.kind, ViewKind::Diff(_)) { " · Tab other changes" } else { "" };
        let lines = numbers::plural(count, "line");
        let found = self.found_words();
        format!("{found}{lines}, {percent} % · / searches{jump}{unfold}{diff} · Esc closes")
    }

    /// Which of the places is found that have what was searched for.
    fn found_words(&self) -> String {
        let words = prose_line(&self.search.words);
        match self.search.found {
            None => String::new(),
            Some(Found::Nowhere) => format!("not found: {words} · "),
            Some(Found::Row(at)) => {
                let rows = self.laid.rows.iter().enumerate();
                let places = rows.filter(|(_, row)| self.matches(&row.text)).map(|(at, _)| at);
                let (before, after): (Vec<usize>, Vec<usize>) = places.partition(|row| *row < at);
                let (place, count) = (before.len() + 1, before.len() + after.len());
                format!("{place} of {count}: {words} · n next, N previous · ")
            }
        }
    }

    /// The words, while they are typed.
    pub fn search(&self) -> Option<&str> {
        self.search.is_typing.then_some(&self.search.words)
    }

    pub fn press(&mut self, key: Key, height: usize, now: Moment) -> PageAction {
        if self.search.is_typing {
            return self.press_search(key, height);
        }
        let page = height.saturating_sub(1).max(1);
        if let Some(direction) = line_step(key) {
            // No row is passed over unseen.
            let rows = self.speed.step(direction, now).min(page) as isize;
            self.scroll(if direction == Direction::Up { -rows } else { rows }, height);
            return PageAction::Nothing;
        }
        self.speed.stop();
        match key.code {
            Code::Escape | Code::Char('q') if !key.ctrl && !key.alt => return PageAction::Close,
            Code::Char('c' | 't' | 'd') if key.ctrl => return PageAction::Close,
            Code::PageUp | Code::Char('b') => self.scroll(-(page as isize), height),
            Code::PageDown | Code::Char(' ' | 'f') => self.scroll(page as isize, height),
            Code::Home | Code::Char('g') => self.top = 0,
            Code::End | Code::Char('G') => self.top = self.last_top(height),
            Code::Char('[' | '{') => self.jump_back(),
            Code::Char(']' | '}') => self.jump(height),
            Code::Char('u') => {
                self.is_unfolded = !self.is_unfolded;
                self.search.found = None;
                let columns = std::mem::take(&mut self.laid.columns);
                self.lay_out(columns, height);
            }
            Code::Char('/') => self.search = Search { is_typing: true, ..Search::default() },
            Code::Char('n') => self.find(Direction::Down, height),
            Code::Char('N') => self.find(Direction::Up, height),
            Code::Tab => {
                if let ViewKind::Diff(of) = self.kind {
                    let next: DiffOf = of.next();
                    return PageAction::Open(ViewKind::Diff(next));
                }
            }
            _ => {}
        }
        PageAction::Nothing
    }

    fn press_search(&mut self, key: Key, height: usize) -> PageAction {
        match key.code {
            Code::Enter => {
                self.search.is_typing = false;
                self.find(Direction::Down, height);
            }
            Code::Escape => self.search = Search::default(),
            Code::Backspace => {
                self.search.words.pop();
            }
            Code::Char('c') if key.ctrl => self.search = Search::default(),
            _ => self.search.words.extend(key.typed()),
        }
        PageAction::Nothing
    }

    pub fn paste(&mut self, words: &str) {
        if self.search.is_typing {
            self.search.words.push_str(words);
        }
    }

    pub fn place_as(&mut self, before: &Self) {
        self.top = before.top;
        self.opens_at_end = self.follows_end && before.is_at_end;
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

    /// Goes to the next place that has what is searched for: from the one before, or from the first row in sight. After
    /// the last place comes the first one.
    fn find(&mut self, direction: Direction, height: usize) {
        if self.search.words.is_empty() {
            return;
        }
        let rows = self.laid.rows.len();
        let places = (0..rows).filter(|at| self.matches(&self.laid.rows[*at].text));
        let places: Vec<usize> = places.collect();
        let from = match (self.search.found, direction) {
            (Some(Found::Row(at)), Direction::Down) => at + 1,
            (Some(Found::Row(at)), Direction::Up) => at,
            (Some(Found::Nowhere) | None, _) => self.top,
        };
        let found = match direction {
            Direction::Down => places.iter().find(|at| **at >= from).or(places.first()),
            Direction::Up => places.iter().rev().find(|at| **at < from).or(places.last()),
        };
        let Some(&at) = found else {
            self.search.found = Some(Found::Nowhere);
            return;
        };
        self.search.found = Some(Found::Row(at));
        let is_in_sight = (self.top..self.top + height).contains(&at);
        if !is_in_sight {
            self.top = at.min(self.last_top(height));
        }
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
