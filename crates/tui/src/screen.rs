//! The writer: prints what is committed once into the terminal's own scrollback, and redraws the live zone below it.
//!
//! Invariants:
//! - Rows above the live zone are never written to. Only a change of the terminal's width prints them again, because
//!   no row of theirs fits any more.
//! - A row of the live zone is written when it differs from the one before, and never when it does not: nothing to
//!   show costs no byte.
//! - The cursor stands where the person writes after every frame. It moves relative to the zone, so that nothing
//!   has to be asked of the terminal.
//! - One frame is one write between the marks of a synchronized update.

use std::fmt::Write as _;

use windlass_term::link;

use crate::text::{Signs, height, in_signs, painted_width};

const BEGIN_FRAME: &str = "\u{1b}[?2026h";
const END_FRAME: &str = "\u{1b}[?2026l";
const CLEAR_TO_END: &str = "\u{1b}[J";
const CLEAR_REST: &str = "\u{1b}[K";
const ENTER_ALTERNATE: &str = "\u{1b}[?1049h";
const LEAVE_ALTERNATE: &str = "\u{1b}[?1049l";
const CLEAR_SCREEN: &str = "\u{1b}[2J\u{1b}[H";
/// Buttons and the wheel, with numbers that have no largest row.
const MOUSE_ON: &str = "\u{1b}[?1000h\u{1b}[?1006h";
pub const MOUSE_OFF: &str = "\u{1b}[?1006l\u{1b}[?1000l";
/// The screen, the scrollback, and home. A terminal that knows no scrollback ignores the second.
const CLEAR_ALL: &str = "\u{1b}[2J\u{1b}[3J\u{1b}[H";

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// Columns that are written to. The last one stays free: some terminals break a line there.
    pub fn room(self) -> usize {
        self.columns.saturating_sub(1).max(1)
    }
}

/// The rows of the live zone or of an overlay, and where the cursor is in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub rows: Vec<String>,
    /// Row and column of the cursor; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// What a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    pub signs: Signs,
    pub colours: bool,
}

/// Turns frames into bytes.
#[derive(Debug)]
pub struct Screen {
    size: Size,
    abilities: Abilities,
    /// The live zone as it is drawn.
    drawn: Vec<String>,
    /// Rows of what was printed that are in sight above the zone.
    above: usize,
    /// The row of the zone that the cursor is in.
    cursor_row: usize,
    cursor: Option<(usize, usize)>,
    is_cursor_hidden: bool,
    /// The overlay as it is drawn, while there is one.
    overlay: Option<Vec<String>>,
    /// Whether what the overlay covers comes back when it ends.
    has_alternate: bool,
    /// Whether the terminal knows links. One that does not may print them.
    has_links: bool,
    title: String,
    shape: Shape,
    has_mouse: bool,
}

/// How the cursor looks; the number that asks the terminal for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// As the person has set it.
    #[default]
    Own = 0,
    Block = 2,
    Bar = 6,
}

impl Screen {
    pub fn new(size: Size, abilities: Abilities) -> Self {
        Self {
            size,
            abilities,
            drawn: Vec::new(),
            above: 0,
            cursor_row: 0,
            cursor: None,
            is_cursor_hidden: false,
            overlay: None,
            has_alternate: true,
            has_links: false,
            title: String::new(),
            shape: Shape::Own,
            has_mouse: false,
        }
    }

    /// Prints committed rows and draws the zone below them. Returns what is to be written; nothing where nothing
    /// changed.
    pub fn paint(&mut self, committed: &[String], zone: &Frame) -> String {
        let rows = self.fitting(&zone.rows);
        let mut text = self.end_overlay();
        if committed.is_empty() {
            self.redraw(&rows, &mut text);
        } else {
            self.insert(committed, &rows, &mut text);
        }
        self.place_cursor(zone.cursor, &mut text);
        in_frame(text)
    }

    /// Draws an overlay over the whole screen; what is below comes back when it ends.
    pub fn paint_overlay(&mut self, overlay: &Frame) -> String {
        let mut text = String::new();
        let rows: Vec<String> = overlay.rows.iter().take(self.size.rows).cloned().collect();
        let rows = self.fitting(&rows);
        let before = match self.overlay.take() {
            Some(before) => before,
            None => {
                text = format!("{ENTER_ALTERNATE}{}", self.clear_screen());
                self.cursor = None;
                Vec::new()
            }
        };
        for at in 0..rows.len().max(before.len()) {
            let row = rows.get(at).map_or("", String::as_str);
            if before.get(at).map(String::as_str) != Some(row) {
                let _ = write!(text, "\u{1b}[{};1H{row}{CLEAR_REST}", at + 1);
            }
        }
        self.overlay = Some(rows);
        let moved = !text.is_empty() || self.cursor != overlay.cursor;
        match overlay.cursor.filter(|_| moved) {
            Some((row, column)) => {
                let _ = write!(text, "\u{1b}[{};{}H", row + 1, column + 1);
                self.show_cursor(&mut text);
            }
            None if overlay.cursor.is_none() => self.hide_cursor(&mut text),
            None => {}
        }
        self.cursor = overlay.cursor;
        in_frame(text)
    }

    /// The terminal has another size. True where everything that is shown must be printed again.
    pub fn resize(&mut self, size: Size) -> bool {
        let narrower = size.columns != self.size.columns;
        let outgrown = self.drawn.len() > size.rows;
        // A larger one shows again what was scrolled away.
        self.above += size.rows.saturating_sub(self.size.rows);
        self.size = size;
        self.count_above();
        if let Some(overlay) = &mut self.overlay {
            // Terminals keep other rows of it; all are written again.
            overlay.clear();
            self.cursor = None;
        }
        narrower || outgrown
    }

    /// The terminal has broken the rows of the zone for its new width; they are removed before the next frame. For a
    /// person who keeps the scrollback as it is.
    pub fn reflow(&mut self) {
        let columns = self.size.columns.max(1);
        let above = height(&self.drawn[..self.cursor_row.min(self.drawn.len())], columns);
        let column = self.cursor.map_or(0, |(_, column)| column);
        self.cursor_row = above + column / columns;
        // Different from any frame, so that all of it is drawn.
        self.drawn.clear();
        self.cursor = None;
    }

    /// Clears the screen and what was scrolled away, and prints these rows with the zone below them. A terminal without
    /// an alternate screen cannot clear what was scrolled away either.
    pub fn reprint(&mut self, committed: &[String], zone: &Frame) -> String {
        let rows = self.fitting(&zone.rows);
        let mut text = match self.has_alternate {
            true => CLEAR_ALL.to_owned(),
            false => self.clear_screen(),
        };
        (self.drawn, self.cursor_row, self.cursor) = (Vec::new(), 0, None);
        self.above = 0;
        self.insert(committed, &rows, &mut text);
        self.place_cursor(zone.cursor, &mut text);
        in_frame(text)
    }

    /// Forgets what is drawn, after another program had the terminal: the zone is drawn again where the cursor is.
    pub fn forget(&mut self) {
        (self.drawn, self.cursor_row, self.cursor) = (Vec::new(), 0, None);
        self.overlay = None;
        // The title was the other program's meanwhile, the mouse and the cursor too.
        self.title.clear();
        (self.shape, self.has_mouse, self.is_cursor_hidden) = (Shape::Own, false, false);
    }

    /// Removes the zone, so that the shell continues below what was printed.
    pub fn leave(&mut self) -> String {
        let mut text = self.end_overlay();
        self.go_to_top(&mut text);
        text.push_str(CLEAR_TO_END);
        self.show_cursor(&mut text);
        text += &self.set_shape(Shape::Own);
        text += &self.set_mouse(false);
        self.forget();
        text
    }

    /// The title of the window, where it changes.
    pub fn set_title(&mut self, title: &str) -> String {
        if self.title == title {
            return String::new();
        }
        title.clone_into(&mut self.title);
        format!("\u{1b}]0;{}\u{7}", in_signs(title, self.abilities.signs))
    }

    /// The shape of the cursor, where it changes.
    pub fn set_shape(&mut self, shape: Shape) -> String {
        match std::mem::replace(&mut self.shape, shape) == shape {
            true => String::new(),
            false => format!("\u{1b}[{} q", shape as u8),
        }
    }

    /// Whether the terminal reports the wheel instead of scrolling by itself, where that changes.
    pub fn set_mouse(&mut self, has_mouse: bool) -> String {
        match std::mem::replace(&mut self.has_mouse, has_mouse) == has_mouse {
            true => String::new(),
            false if has_mouse => MOUSE_ON.to_owned(),
            false => MOUSE_OFF.to_owned(),
        }
    }

    /// Whether the terminal keeps what an overlay covers.
    pub fn set_alternate(&mut self, has_alternate: bool) {
        self.has_alternate = has_alternate;
    }

    /// Whether the terminal knows links (OSC 8).
    pub fn set_links(&mut self, has_links: bool) {
        self.has_links = has_links;
    }

    pub fn has_overlay(&self) -> bool {
        self.overlay.is_some()
    }

    /// How many rows of what was printed are in sight, or are covered by an overlay.
    pub fn rows_above(&self) -> usize {
        self.above
    }

    /// Whether the rows below the overlay are lost: they must be printed again when it ends.
    pub fn has_lost_rows(&self) -> bool {
        self.overlay.is_some() && !self.has_alternate
    }

    /// Uncovers what is below the overlay, or leaves an empty screen where nothing was kept.
    fn end_overlay(&mut self) -> String {
        if self.overlay.take().is_none() {
            return String::new();
        }
        self.cursor = None;
        if self.has_alternate {
            return LEAVE_ALTERNATE.to_owned();
        }
        (self.drawn, self.cursor_row, self.above) = (Vec::new(), 0, 0);
        format!("{LEAVE_ALTERNATE}{}", self.clear_screen())
    }

    /// Clears the screen and goes home. GNU screen puts what is cleared down to the end into its scrollback, but not
    /// what is cleared up to the cursor.
    fn clear_screen(&self) -> String {
        match self.has_alternate {
            true => CLEAR_SCREEN.to_owned(),
            false => format!("\u{1b}[{};{}H\u{1b}[1J\u{1b}[H", self.size.rows, self.size.columns),
        }
    }

    /// Prints rows in place of the zone, and the zone below them.
    fn insert(&mut self, committed: &[String], rows: &[String], text: &mut String) {
        self.go_to_top(text);
        let is_wide = |line: &String| painted_width(line) >= self.size.columns;
        if committed.iter().any(is_wide) {
            // The terminal breaks it into rows that we do not count: all of them are cleared first.
            text.push_str(CLEAR_TO_END);
        }
        for line in committed {
            // At the last column, clearing the rest would take the last character.
            let rest = if is_wide(line) { "" } else { CLEAR_REST };
            let _ = write!(text, "{}{rest}\r\n", self.shown(line));
        }
        text.push_str(CLEAR_TO_END);
        self.above += height(committed, self.size.columns);
        self.print_zone(rows, text);
    }

    /// Writes the rows that differ.
    fn redraw(&mut self, rows: &[String], text: &mut String) {
        if self.drawn == rows {
            return;
        }
        if self.drawn.is_empty() || rows.is_empty() {
            self.go_to_top(text);
            text.push_str(CLEAR_TO_END);
            self.print_zone(rows, text);
            return;
        }
        let mut at = self.cursor_row;
        let common = self.drawn.len().min(rows.len());
        for (row, line) in rows.iter().enumerate().take(common) {
            if self.drawn[row] != *line {
                go_to_row(&mut at, row, text);
                let _ = write!(text, "\r{line}{CLEAR_REST}");
            }
        }
        if rows.len() > common {
            go_to_row(&mut at, common - 1, text);
            for line in &rows[common..] {
                // At the bottom of the screen this scrolls, as printed lines do.
                let _ = write!(text, "\r\n{line}{CLEAR_REST}");
                at += 1;
            }
        } else if self.drawn.len() > common {
            go_to_row(&mut at, common, text);
            let _ = write!(text, "\r{CLEAR_TO_END}");
        }
        self.cursor_row = at;
        self.cursor = None;
        self.drawn = rows.to_vec();
        self.count_above();
    }

    fn print_zone(&mut self, rows: &[String], text: &mut String) {
        text.push_str(&rows.join("\r\n"));
        self.cursor_row = rows.len().saturating_sub(1);
        self.cursor = None;
        self.drawn = rows.to_vec();
        self.count_above();
    }

    /// No more is in sight than there is room for.
    fn count_above(&mut self) {
        self.above = self.above.min(self.size.rows.saturating_sub(self.drawn.len()));
    }

    /// Goes to the first column of the zone's first row.
    fn go_to_top(&mut self, text: &mut String) {
        let mut at = self.cursor_row;
        go_to_row(&mut at, 0, text);
        text.push('\r');
        self.cursor_row = 0;
    }

    fn place_cursor(&mut self, cursor: Option<(usize, usize)>, text: &mut String) {
        let Some((row, column)) = cursor else {
            self.hide_cursor(text);
            return;
        };
        if self.cursor != cursor || !text.is_empty() {
            let row = row.min(self.drawn.len().saturating_sub(1));
            go_to_row(&mut self.cursor_row, row, text);
            text.push('\r');
            if column > 0 {
                let _ = write!(text, "\u{1b}[{}C", column.min(self.size.room()));
            }
            self.cursor = cursor;
        }
        self.show_cursor(text);
    }

    fn show_cursor(&mut self, text: &mut String) {
        if std::mem::take(&mut self.is_cursor_hidden) {
            text.push_str("\u{1b}[?25h");
        }
    }

    fn hide_cursor(&mut self, text: &mut String) {
        if !std::mem::replace(&mut self.is_cursor_hidden, true) {
            text.push_str("\u{1b}[?25l");
        }
    }

    /// Rows as they are drawn: at most as many as the terminal has, none wider than it.
    fn fitting(&self, rows: &[String]) -> Vec<String> {
        let hidden = rows.len().saturating_sub(self.size.rows.max(1));
        let room = self.size.room();
        let fit = |row: &String| match painted_width(row) > room {
            true => self.shown(&windlass_term::wrap::cut_columns(row, room)),
            false => self.shown(row),
        };
        rows[hidden..].iter().map(fit).collect()
    }

    fn shown(&self, line: &str) -> String {
        let line = if self.has_links { line.to_owned() } else { link::without(line) };
        in_signs(&line, self.abilities.signs)
    }
}

fn go_to_row(at: &mut usize, row: usize, text: &mut String) {
    match row.cmp(at) {
        std::cmp::Ordering::Less => {
            let _ = write!(text, "\u{1b}[{}A", *at - row);
        }
        std::cmp::Ordering::Greater => {
            let _ = write!(text, "\u{1b}[{}B", row - *at);
        }
        std::cmp::Ordering::Equal => {}
    }
    *at = row;
}

fn in_frame(text: String) -> String {
    if text.is_empty() { text } else { format!("{BEGIN_FRAME}{text}{END_FRAME}") }
}
