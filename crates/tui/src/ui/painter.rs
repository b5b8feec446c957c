//! Frames: when one is due, and how it gets onto the terminal.
//!
//! Invariant: at most one frame in [`SHORTEST_FRAME`], and none where nothing changed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::app::App;
use crate::host::{Layout, Options};
use crate::screen::{Abilities, Screen, Size};
use crate::terminal::{self, Terminal};
use crate::transcript::{Entry, Form};
use crate::view::{self, WholeScreen};

/// At most about sixty frames a second.
pub(super) const SHORTEST_FRAME: Duration = Duration::from_millis(16);
/// A resize that continues is painted when it has ended.
const RESIZE_PAUSE: Duration = Duration::from_millis(60);

/// The terminal, and what is on it.
pub(super) struct Painter {
    screen: Screen,
    terminal: Terminal,
    /// The layout and the form of what is on the terminal.
    layout: Layout,
    is_raw: bool,
    has_title: bool,
    /// Whether the wheel scrolls the whole-screen layout.
    has_mouse: bool,
    rewraps: bool,
    has_links: bool,
    reprinted_rows: usize,
    /// Whether something changed since the last frame.
    pub is_dirty: bool,
    /// Everything must be printed again.
    must_reprint: bool,
    last_paint: Option<Instant>,
    resize_by: Option<Instant>,
    whole_screen: WholeScreen,
    /// Whether the last row that was printed is empty.
    is_blank: bool,
    /// The form of what was printed last.
    printed: Option<Form>,
}

impl Painter {
    pub fn open(options: &Options, size: Size, log: &Path) -> io::Result<Self> {
        let abilities = Abilities { signs: options.signs, colours: options.settings.paint.on };
        Ok(Self {
            screen: Screen::new(size, abilities),
            terminal: Terminal::open(options.key_modes, log)?,
            layout: options.layout,
            is_raw: false,
            has_title: options.title,
            has_mouse: options.mouse,
            rewraps: options.rewrap,
            has_links: options.has_links,
            reprinted_rows: options.reprinted_rows,
            is_dirty: true,
            must_reprint: false,
            last_paint: None,
            resize_by: None,
            whole_screen: WholeScreen::default(),
            is_blank: false,
            printed: None,
        })
    }

    /// When a frame or a resize is due.
    pub fn wake(&self) -> Option<Instant> {
        let next = self.last_paint.map_or_else(Instant::now, |last| last + SHORTEST_FRAME);
        self.resize_by.or(self.is_dirty.then_some(next))
    }

    pub fn paint_when_due(&mut self, app: &mut App) -> io::Result<()> {
        let is_soon = self.last_paint.is_some_and(|last| last + SHORTEST_FRAME > Instant::now());
        match self.is_dirty && self.resize_by.is_none() && !is_soon {
            true => self.paint(app),
            false => Ok(()),
        }
    }

    /// Writes one frame.
    pub fn paint(&mut self, app: &mut App) -> io::Result<()> {
        self.is_dirty = false;
        self.notice_form(app);
        self.screen.set_alternate(app.has_alternate_screen);
        // GNU screen, which tells what it is, prints what it does not know.
        self.screen.set_links(self.has_links && app.has_alternate_screen);
        let mut text = String::new();
        if self.has_title {
            text = self.screen.set_title(&app.title());
        }
        text += &self.screen.set_shape(app.writing.cursor_shape());
        text += &self.screen.set_mouse(self.has_mouse && app.layout == Layout::Full);
        text += &match view::overlay(app) {
            Some(frame) => self.screen.paint_overlay(&frame),
            None if app.layout == Layout::Full => {
                let frame = self.whole_screen.frame(app);
                self.screen.paint_overlay(&frame)
            }
            None => self.paint_inline(app),
        };
        if text.is_empty() {
            return Ok(());
        }
        self.last_paint = Some(Instant::now());
        self.terminal.write(&text)
    }

    /// What is on the terminal may be printed in another way now.
    fn notice_form(&mut self, app: &App) {
        if self.layout != app.layout {
            self.layout = app.layout;
            self.whole_screen.clear();
        }
        if self.is_raw != app.is_raw {
            self.is_raw = app.is_raw;
            self.whole_screen.clear();
            // Whoever keeps the scrollback as it is gets what follows in the other form.
            self.must_reprint |= self.rewraps && app.layout == Layout::Inline;
        }
    }

    fn paint_inline(&mut self, app: &mut App) -> String {
        let zone = view::zone(app);
        let before = self.printed.replace(app.form()).unwrap_or(app.form());
        if self.screen.has_lost_rows() && !self.must_reprint {
            let rows = app.transcript.take_with_shown(app.form(), before, self.screen.rows_above());
            self.is_blank = rows.last().is_none_or(String::is_empty);
            return self.screen.paint(&rows, &zone);
        }
        if std::mem::take(&mut self.must_reprint) {
            let rows = match app.has_alternate_screen {
                true => {
                    app.transcript.take_new();
                    app.transcript.rows(app.form(), self.reprinted_rows)
                }
                // What was scrolled away stays there: only what could be seen is printed again.
                false => {
                    app.transcript.take_with_shown(app.form(), before, self.screen.rows_above())
                }
            };
            self.is_blank = rows.last().is_none_or(String::is_empty);
            let leave = if self.screen.has_overlay() {
                self.screen.paint(&[], &zone)
            } else {
                String::new()
            };
            return leave + &self.screen.reprint(&rows, &zone);
        }
        let entries = app.transcript.take_new();
        let rows = Entry::all_rows(&entries, app.form(), &mut self.is_blank);
        self.screen.paint(&rows, &zone)
    }

    /// The window changes its size; more changes may follow.
    pub fn resize_soon(&mut self) {
        self.resize_by = Some(Instant::now() + RESIZE_PAUSE);
    }

    /// The new size, when its time has come.
    pub fn take_resize(&mut self) -> Option<Size> {
        self.resize_by.take_if(|by| *by <= Instant::now())?;
        let size = terminal::size();
        if self.screen.resize(size) {
            match self.rewraps {
                true => self.must_reprint = true,
                false => self.screen.reflow(),
            }
        }
        self.whole_screen.clear();
        Some(size)
    }

    /// Draws everything again.
    pub fn redraw(&mut self) {
        match self.rewraps {
            true => self.must_reprint = true,
            false => self.screen.forget(),
        }
        self.is_dirty = true;
    }

    /// Gives the terminal to another program.
    pub fn give(&mut self) -> io::Result<()> {
        let text = self.screen.leave();
        let written = self.terminal.write(&text);
        self.terminal.give();
        written
    }

    /// Takes it back, and draws everything again.
    pub fn take(&mut self) -> io::Result<()> {
        self.terminal.take()?;
        self.screen.forget();
        self.resize_by = Some(Instant::now());
        self.is_dirty = true;
        Ok(())
    }

    /// Sets its modes again after this process was stopped from outside: the shell has set its own meanwhile.
    pub fn renew(&mut self) -> io::Result<()> {
        self.terminal.give();
        self.take()
    }

    pub fn write(&self, text: &str) -> io::Result<()> {
        self.terminal.write(text)
    }

    /// Where another program's errors go.
    pub fn stderr(&self) -> Option<OwnedFd> {
        self.terminal.stderr()
    }
}
