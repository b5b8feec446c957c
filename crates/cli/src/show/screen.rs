//! The output of `run`: the lines of its progress, and on a terminal one line below them that says what
//! is happening now and what was used so far.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::time::Instant;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use windlass_coordinator::{Preview, StreamEvent};
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::shown::shown_line;
use windlass_core::state::TaskState;
use windlass_core::status::StatusReason;
use windlass_core::text::{one_line, suffix};
use windlass_term::{Paint, Progress, TerminalStyle, numbers, strip_controls};

use super::ending::Retry;
use super::{ending, note, out, out_json, task_page};
use crate::args::Printing;

/// Width of a line of progress where stderr is not a terminal.
const PIPED_WIDTH: usize = 100;
/// Bytes of an incoming reply that are kept for its preview.
const PREVIEW_BYTES: usize = 400;
/// How often the status line is redrawn.
pub const FRAME: Duration = Duration::from_millis(100);

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The output of one run of a task.
pub struct Screen {
    printing: Printing,
    style: TerminalStyle,
    progress: Progress,
    began: Instant,
    /// The end of the reply that is on its way.
    preview: String,
    frame: usize,
    is_drawn: bool,
    retry: Retry,
    /// Why the task was last paused.
    pause_reason: Option<StatusReason>,
    /// Whether the end of the last segment was shown.
    has_end: bool,
    task: TaskId,
}

impl Screen {
    /// A screen for one run of a task that has this state.
    pub fn new(printing: &Printing, style: TerminalStyle, task: TaskId, state: &TaskState) -> Self {
        Self {
            printing: printing.clone(),
            style,
            progress: Progress::new(task, state, style.notes),
            began: Instant::now(),
            preview: String::new(),
            frame: 0,
            is_drawn: false,
            retry: match state.attempts.retries < state.created.max_retries {
                true => Retry::Possible,
                false => Retry::UsedUp,
            },
            pause_reason: None,
            has_end: false,
            task,
        }
    }

    /// Whether there is a status line to redraw.
    pub fn is_live(&self) -> bool {
        self.style.can_redraw && self.shows_progress()
    }

    /// Whether events are shown as they come; if not, the screen may receive them all at the end.
    pub fn shows_events(&self) -> bool {
        self.printing.json || self.shows_progress()
    }

    /// Whether events of sub-agents are shown too.
    pub fn shows_sub_agents(&self) -> bool {
        !self.printing.json && self.shows_progress()
    }

    /// Shows one event.
    pub fn event(&mut self, record: &Record) {
        if record.task == self.task {
            self.has_end = matches!(record.event, Event::AgentEnd(_));
        }
        if self.printing.json {
            out_json(&windlass_coordinator::trace::entry(record));
            return;
        }
        if record.task == self.task {
            match &record.event {
                Event::LlmRequest(_) => self.preview.clear(),
                Event::StatusChanged(change) => self.pause_reason = Some(change.reason),
                _ => {}
            }
        }
        let lines = self.progress.lines(record, self.width());
        if self.shows_progress() {
            lines.iter().for_each(|line| self.say(line));
        }
        self.draw();
    }

    /// Whether the last event that was shown ended a segment. JSON always ends with one, also where a task
    /// is still blocked and nothing new was journaled.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// Shows something that is not journaled yet.
    pub fn preview(&mut self, preview: &Preview) {
        // A late preview belongs to a reply that is already journaled and shown.
        if !self.shows_progress() || !self.progress.is_replying() {
            return;
        }
        match &preview.live {
            StreamEvent::Text(more) => {
                self.preview += more;
                self.preview = suffix(&self.preview, PREVIEW_BYTES).to_owned();
                let text = strip_controls(&self.preview);
                let words: Vec<_> = text.split_whitespace().collect();
                self.progress.set_activity(format!("“{}", words.join(" ")));
            }
            StreamEvent::CallStarted { name, .. } => {
                self.progress.set_activity(format!("preparing {}", shown_line(name)));
            }
            StreamEvent::Retrying { after, reason, .. }
            | StreamEvent::Waiting { after, reason, .. } => {
                self.preview.clear();
                let reason = one_line(&strip_controls(reason), self.width());
                let after = match after.as_secs() {
                    0..60 => format!("{:.1} s", after.as_secs_f64()),
                    _ => numbers::elapsed(*after),
                };
                let line = format!("  … {reason}; trying again in {after}");
                self.say(&self.style.notes.yellow(&line));
                self.progress.set_activity("waiting for the model".to_owned());
            }
            StreamEvent::CallArguments { .. } | StreamEvent::Bytes(_) => {}
        }
        // The next frame draws it: a fast stream must not cost one redraw per word.
    }

    /// Moves the spinner and the clock.
    pub fn tick(&mut self) {
        self.frame = self.frame.wrapping_add(1);
        self.draw();
    }

    /// Prints a line in the middle of a run.
    pub fn say(&mut self, line: &str) {
        self.clear();
        note(line);
    }

    /// Shows how the run ended.
    pub fn end(&mut self, result: &TaskResult) {
        if self.printing.json {
            return;
        }
        self.clear();
        if let Some(text) = &result.final_message {
            if self.is_live() {
                note("");
            }
            out(&task_page::answer(text, self.style));
        }
        if self.printing.print && result.status == ResultStatus::Completed && !result.partial {
            return;
        }
        for line in ending::lines(result, self.style, self.retry, self.pause_reason) {
            note(&line);
        }
        if self.shows_progress() && result.status == ResultStatus::Completed {
            let summary = ending::summary(result, self.progress.cost());
            note(&self.style.notes.dim(&summary));
        }
    }

    fn shows_progress(&self) -> bool {
        self.printing.shows_progress()
    }

    fn width(&self) -> usize {
        let all = if self.style.can_redraw { self.style.notes_width() } else { PIPED_WIDTH };
        all.saturating_sub(4).max(20)
    }

    /// Removes the status line, so that something can be printed in its place.
    pub fn clear(&mut self) {
        if self.is_drawn {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[2K");
            self.is_drawn = false;
        }
    }

    fn draw(&mut self) {
        if !self.is_live() {
            return;
        }
        let width = self.style.notes_width();
        let elapsed = self.began.elapsed();
        let usage = self.progress.usage(elapsed, Paint { on: false });
        // The spinner, the spaces, the dot between, and the `^C` that a terminal adds.
        let room = width.saturating_sub(usage.width() + 8);
        let spinner = self.style.notes.cyan(SPINNER[self.frame % SPINNER.len()]);
        let line = if room >= 8 {
            let activity = fit_line(self.progress.activity(), room);
            let usage = self.progress.usage(elapsed, self.style.notes);
            format!("{spinner} {activity} · {usage}")
        } else {
            one_line(&usage, width.saturating_sub(1))
        };
        let _ = write!(io::stderr().lock(), "\r\u{1b}[2K{line}");
        let _ = io::stderr().flush();
        self.is_drawn = true;
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Cuts a text to a number of columns: an incoming reply keeps its end, anything else its beginning.
fn fit_line(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let fits = |used: &mut usize, char: char| {
        *used += char.width().unwrap_or(0);
        (*used <= room).then_some(char)
    };
    if let Some(reply) = text.strip_prefix('“') {
        if text.width() <= columns {
            return text.to_owned();
        }
        let tail: Vec<char> = reply.chars().rev().scan(0, fits).collect();
        return ['…'].into_iter().chain(tail.into_iter().rev()).collect();
    }
    let line = text.lines().next().unwrap_or_default();
    if line.width() <= columns {
        return line.to_owned();
    }
    line.chars().scan(0, fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reply_keeps_its_end_and_a_call_its_beginning() {
        assert_eq!(fit_line("“one two three", 8), "…o three");
        assert_eq!(fit_line("“one", 8), "“one");
        assert_eq!(fit_line("$ cargo test --all", 8), "$ cargo…");
    }

    proptest! {
        #[test]
        fn the_status_line_never_wraps(text in "“?[a-z 漢字é]{0,40}", columns in 8usize..30) {
            prop_assert!(fit_line(&text, columns).width() <= columns);
        }
    }
}
