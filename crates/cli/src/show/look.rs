//! What each stream can show: colours, a line that is redrawn, how wide it is.

use std::io::{IsTerminal as _, stderr, stdin, stdout};

use rustix::fd::AsFd;

use super::wrap::wrap;

/// Columns where nobody says how many there are.
const USUAL_WIDTH: usize = 80;
/// Prose wider than this is hard to read.
const WIDEST: usize = 100;
/// How wide a line of a list gets where it is not shown on a terminal.
const FILE_WIDTH: usize = 160;

/// How things are shown in this process.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colours of stdout.
    pub results: Paint,
    /// Colours of stderr.
    pub notes: Paint,
    /// Whether stdout is a terminal, so that results are for eyes.
    pub reads_results: bool,
    /// Whether stderr is a terminal that can redraw a line.
    pub redraws: bool,
    /// Whether a person can be asked.
    pub can_ask: bool,
}

impl Look {
    /// What this process's streams and environment say. `NO_COLOR` and `TERM=dumb` are honoured.
    pub fn here() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let colours = !set("NO_COLOR") && !dumb;
        Self {
            results: Paint { on: colours && stdout().is_terminal() },
            notes: Paint { on: colours && stderr().is_terminal() },
            reads_results: stdout().is_terminal(),
            redraws: stderr().is_terminal() && !dumb,
            can_ask: stdin().is_terminal() && stderr().is_terminal(),
        }
    }

    /// How wide results may be.
    pub fn results_width(&self) -> usize {
        width(stdout()).min(WIDEST)
    }

    /// How wide a line of a list may be: as the terminal is, or as reads well in a file.
    pub fn line_width(&self) -> usize {
        if self.reads_results { width(stdout()) } else { FILE_WIDTH }
    }

    /// Prose for stderr: broken between words on a terminal, as it is elsewhere.
    pub fn prose(&self, text: &str) -> String {
        if self.redraws { wrap(text, self.notes_width()) } else { text.to_owned() }
    }

    /// How wide progress may be.
    pub fn notes_width(&self) -> usize {
        width(stderr())
    }
}

fn width(stream: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(stream).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(USUAL_WIDTH)
}

/// Colours, where they are wanted.
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

    pub fn italic(self, text: &str) -> String {
        self.with("3", text)
    }

    pub fn underlined(self, text: &str) -> String {
        self.with("4", text)
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
