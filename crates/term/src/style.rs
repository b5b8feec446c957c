//! What each stream of this process can show: colours, a line that is redrawn, its width.

use std::io::{IsTerminal as _, stderr, stdin, stdout};

use rustix::fd::AsFd;

use crate::wrap::wrap;

/// Columns of a terminal that does not report its size.
const DEFAULT_WIDTH: usize = 80;
/// Lines of such a terminal.
const DEFAULT_HEIGHT: usize = 24;
/// Prose wider than this is hard to read.
const MAX_PROSE_WIDTH: usize = 100;
/// How wide a line of a list gets where stdout is not a terminal.
const FILE_WIDTH: usize = 160;

/// How this process shows things on its streams.
#[derive(Clone, Copy, Debug)]
pub struct TerminalStyle {
    /// Colours of stdout.
    pub results: Paint,
    /// Colours of stderr.
    pub notes: Paint,
    /// Whether stdout is a terminal, so that a person reads the results.
    pub is_stdout_terminal: bool,
    /// Whether stderr is a terminal that can redraw a line.
    pub can_redraw: bool,
    /// Whether a person can be asked.
    pub can_ask: bool,
}

impl TerminalStyle {
    /// Reads this process's streams and environment. `NO_COLOR` and `TERM=dumb` turn colours off.
    pub fn detect() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let has_colours = !is_set("NO_COLOR") && !is_dumb;
        Self {
            results: Paint { on: has_colours && stdout().is_terminal() },
            notes: Paint { on: has_colours && stderr().is_terminal() },
            is_stdout_terminal: stdout().is_terminal(),
            can_redraw: stderr().is_terminal() && !is_dumb,
            can_ask: stdin().is_terminal() && stderr().is_terminal(),
        }
    }

    /// How wide prose on stdout may be.
    pub fn results_width(&self) -> usize {
        width(stdout()).min(MAX_PROSE_WIDTH)
    }

    /// How wide a line of a list may be: as the terminal is, or as reads well in a file.
    pub fn line_width(&self) -> usize {
        if self.is_stdout_terminal { width(stdout()) } else { FILE_WIDTH }
    }

    /// How wide a line of progress on stderr may be.
    pub fn notes_width(&self) -> usize {
        width(stderr())
    }

    /// How many lines stderr shows at once.
    pub fn notes_height(&self) -> usize {
        let size = rustix::termios::tcgetwinsize(stderr()).ok();
        let rows = size.map(|size| usize::from(size.ws_row)).filter(|&rows| rows > 0);
        rows.unwrap_or(DEFAULT_HEIGHT)
    }

    /// Prose for stderr: on a terminal broken between words, elsewhere unchanged.
    pub fn wrap_note(&self, text: &str) -> String {
        if self.can_redraw { wrap(text, self.notes_width()) } else { text.to_owned() }
    }
}

fn width(stream: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(stream).ok();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
    columns.unwrap_or(DEFAULT_WIDTH)
}

/// Adds colours to text, or leaves it as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    /// Whether anything is coloured at all.
    pub on: bool,
}

#[expect(missing_docs, reason = "the names say it")]
impl Paint {
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    pub fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }

    /// Text in a style, given as the number of its escape sequence.
    pub fn with(self, style: &str, text: &str) -> String {
        if self.on && !style.is_empty() && !text.is_empty() {
            format!("\u{1b}[{style}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
