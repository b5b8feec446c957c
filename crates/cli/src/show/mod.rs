//! What a person reads: progress and notes on stderr, results on stdout.

pub(crate) mod ending;
pub mod keys;
mod live_area;
pub mod replies;
mod screen;
pub mod task_page;

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use windlass_core::shown::{is_hidden, shown, shown_json};
use windlass_term::{Table, TerminalStyle};

pub use ending::{answer_with, change_lines, ending_lines};
pub use screen::{FRAME, Screen};
use windlass_term::question::Canvas;

use crate::config::types::Notify;
use crate::config::{self, Config};
use crate::failure::Failure;

/// How often it is checked that somebody still reads the results.
const READER_CHECK: Duration = Duration::from_millis(100);

/// Characters of an id where people read it: its end names a task well enough, and leaves room.
pub const SHORT_ID: usize = 7;

/// What became of results that could not be printed: an error number, or 0.
static LOST: AtomicI32 = AtomicI32::new(0);

/// Prints a result. A closed pipe is not an error of ours; other errors are reported at the end.
pub fn out(text: &str) {
    let (mut stdout, text) = (io::stdout().lock(), keys::clean(text));
    if let Err(error) = writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        LOST.store(error.raw_os_error().unwrap_or(-1), Ordering::Relaxed);
    }
}

/// Prints a result in JSON: the same value, without characters that a terminal would hide or obey.
pub fn out_json(json: &str) {
    out(&shown_json(json));
}

/// Whether the reader of the results has closed its pipe.
pub fn reader_is_gone() -> bool {
    LOST.load(Ordering::Relaxed) == rustix::io::Errno::PIPE.raw_os_error()
}

/// Resolves when the reader of the results has closed its pipe, even if nothing is printed.
pub async fn reader_gone() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let gone = || {
        let stdout = io::stdout();
        let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
        let found = poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        // A terminal that hangs up ends the program by a signal.
        found && polled[0].revents().intersects(PollFlags::ERR)
    };
    while !gone() {
        tokio::time::sleep(READER_CHECK).await;
    }
}

/// Why results were lost, where the reader is still there: a full disk, most likely.
pub fn lost_results() -> Option<io::Error> {
    let number = LOST.load(Ordering::Relaxed);
    (number != 0 && !reader_is_gone()).then(|| io::Error::from_raw_os_error(number))
}

/// Prints a remark.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", keys::clean(text));
}

/// Tells a person who looks elsewhere that something waits for them. `words` are our own.
pub fn notify(how: Notify, words: &str) {
    let signal = match how {
        Notify::Off => return,
        Notify::Bell => "\u{7}".to_owned(),
        Notify::Osc9 => format!("\u{1b}]9;windlass: {words}\u{7}"),
    };
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{signal}").and_then(|()| stderr.flush());
}

/// Where a question on stderr is shown.
pub fn notes_place(style: TerminalStyle) -> Canvas {
    Canvas { paint: style.notes, columns: style.can_redraw.then(|| style.notes_width()) }
}

/// Where a question on stdout is shown.
pub fn results_place(style: TerminalStyle) -> Canvas {
    Canvas { paint: style.results, columns: style.is_stdout_terminal.then(|| style.line_width()) }
}

/// Prints a table, its headings dimmed.
pub fn print_table(table: &Table) {
    let style = TerminalStyle::detect();
    let (width, paint) = (style.line_width(), style.results);
    // A file or a pipe gets columns, however wide.
    if style.is_stdout_terminal && table.width() > width {
        table.fit(width).iter().for_each(|line| out(line));
        return;
    }
    for (number, line) in table.lines().iter().enumerate() {
        out(&if number == 0 { paint.dim(line) } else { line.clone() });
    }
}

/// Prints what the person should know about their configuration.
pub fn print_config_notices(config: &Config) {
    let style = TerminalStyle::detect();
    for line in config::notice::lines(&config.notices) {
        note(&style.wrap_note(&format!("notice: {}", shown(&line))));
    }
}

/// Prints an error with its causes and what to do next.
pub fn error(failure: &Failure) {
    let style = TerminalStyle::detect();
    let say = |text: String| note(&style.wrap_note(&text));
    say(format!("{} {}", style.notes.red("error:"), message(&failure.error.to_string())));
    for cause in failure.error.chain().skip(1) {
        say(format!("  caused by: {}", message(&cause.to_string())));
    }
    if let Some(hint) = failure.hint.as_ref().filter(|hint| !hint.is_empty()) {
        say(format!("\n{} {}", style.notes.bold("hint:"), message(hint)));
    }
}

/// A message, parts of which may be escaped already: escaped twice they would look like backslashes that were typed.
fn message(text: &str) -> Cow<'_, str> {
    match text.chars().any(|char| char != '\n' && is_hidden(char)) {
        true => Cow::Owned(shown(text)),
        false => Cow::Borrowed(text),
    }
}
