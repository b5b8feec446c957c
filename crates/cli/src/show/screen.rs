//! The output of `run` and `attach`: the lines of its progress, and on a terminal a few lines below them that say
//! what is happening now and what was used so far.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use unicode_width::UnicodeWidthStr as _;
use windlass_coordinator::views::ChangedFile;
use windlass_coordinator::{Preview, PreviewContent, StreamEvent};
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{Event, Record};
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::Fact;
use windlass_core::shown::shown_line;
use windlass_core::state::TaskState;
use windlass_core::status::StatusReason;
use windlass_core::text::{one_line, suffix};
use windlass_term::wrap::cut_columns;
use windlass_term::{Detail, Paint, Progress, TerminalStyle, markdown, numbers, strip_controls};

use super::ending::Retry;
use super::live_area::LiveArea;
use super::{ending, note, out, out_json, task_page};
use crate::args::PrintOptions;

/// Width of a line of progress where stderr is not a terminal.
const PIPED_WIDTH: usize = 100;
/// Bytes of an incoming reply that are kept for its preview.
const REPLY_BYTES: usize = 32 * 1024;
/// Bytes of incoming reasoning that are kept for its preview.
const REASONING_BYTES: usize = 4 * 1024;
/// Lines of incoming reasoning that are shown.
const REASONING_LINES: usize = 3;
/// Bytes of a running command's output that are kept for its preview.
const OUTPUT_BYTES: usize = 8 * 1024;
/// Lines of a running command's output that are shown.
const OUTPUT_LINES: usize = 5;
/// Columns that the status line keeps for what is happening.
const ACTIVITY_WIDTH: usize = 24;
/// How often the lines below are redrawn.
pub const FRAME: Duration = Duration::from_millis(100);

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The output of one run of a task.
pub struct Screen {
    printing: PrintOptions,
    style: TerminalStyle,
    progress: Progress,
    began: Instant,
    /// The reply that is on its way.
    reply: String,
    /// The end of what the model thinks.
    reasoning: String,
    /// The end of what a running call has printed.
    output: Option<(CallId, String)>,
    /// What a person is typing.
    typed: String,
    frame: usize,
    area: LiveArea,
    retry: Retry,
    /// Why the task was last paused.
    pause_reason: Option<StatusReason>,
    /// Whether the end of the last segment was shown.
    has_end: bool,
    /// Commands in the background. What they print stays out of the lines below.
    background: BTreeSet<CallId>,
    task: TaskId,
}

impl Screen {
    /// A screen for one run of a task that has this state.
    pub fn new(
        printing: &PrintOptions,
        style: TerminalStyle,
        task: TaskId,
        state: &TaskState,
    ) -> Self {
        let detail = if printing.verbose { Detail::Full } else { Detail::Brief };
        Self {
            printing: printing.clone(),
            style,
            progress: Progress::new(task, state, style.notes).with_detail(detail),
            began: Instant::now(),
            reply: String::new(),
            reasoning: String::new(),
            output: None,
            typed: String::new(),
            frame: 0,
            area: LiveArea::default(),
            retry: match state.attempts.retries < state.created.max_retries {
                true => Retry::Possible,
                false => Retry::UsedUp,
            },
            pause_reason: None,
            has_end: false,
            background: BTreeSet::new(),
            task,
        }
    }

    /// Leaves out the introduction of a task that was introduced before.
    pub fn skip_introduction(&mut self) {
        self.progress.skip_introduction();
    }

    /// Whether there are lines to redraw.
    pub fn is_live(&self) -> bool {
        self.style.can_redraw && self.shows_progress()
    }

    /// Whether a person reads it, and no program.
    pub fn is_for_people(&self) -> bool {
        !self.printing.json
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
        match &record.event {
            Event::LlmRequest(_) | Event::LlmResponse(_) if record.task == self.task => {
                self.reply.clear();
                self.reasoning.clear();
            }
            Event::StatusChanged(change) if record.task == self.task => {
                self.pause_reason = Some(change.reason);
            }
            Event::ToolResult(result) => {
                self.output.take_if(|(call, _)| *call == result.call);
                let started = result.outcome.facts.iter().filter_map(|fact| match fact {
                    Fact::BackgroundStarted { call, .. } => Some(*call),
                    _ => None,
                });
                self.background.extend(started);
            }
            _ => {}
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

    /// Shows something that is not journaled yet. The next frame draws it: a fast stream must not cost one
    /// redraw per word.
    pub fn preview(&mut self, preview: &Preview) {
        if !self.shows_progress() {
            return;
        }
        match &preview.live {
            PreviewContent::Output { call, .. } if self.background.contains(call) => {}
            PreviewContent::Output { call, text } => {
                let printed = match &mut self.output {
                    Some((known, printed)) if known == call => printed,
                    output => &mut output.insert((*call, String::new())).1,
                };
                *printed += text;
                *printed = suffix(printed, OUTPUT_BYTES).to_owned();
            }
            // A late preview belongs to a reply that is already journaled and shown.
            PreviewContent::Reply(live)
                if preview.task == self.task && self.progress.is_replying() =>
            {
                self.preview_reply(live);
            }
            PreviewContent::Asked { .. } | PreviewContent::Reply(_) | PreviewContent::Ended => {}
        }
    }

    fn preview_reply(&mut self, live: &StreamEvent) {
        match live {
            StreamEvent::Text(more) => {
                self.reply += more;
                self.reply = suffix(&self.reply, REPLY_BYTES).to_owned();
                self.progress.set_activity("writing".to_owned());
            }
            StreamEvent::Reasoning(more) => {
                self.reasoning += more;
                self.reasoning = suffix(&self.reasoning, REASONING_BYTES).to_owned();
                self.progress.set_activity("thinking".to_owned());
            }
            StreamEvent::CallStarted { name, .. } => {
                self.progress.set_activity(format!("preparing {}", shown_line(name)));
            }
            StreamEvent::Retrying { after, reason, .. }
            | StreamEvent::Waiting { after, reason, .. } => {
                self.reply.clear();
                self.reasoning.clear();
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
    }

    /// Shows what a person is typing.
    pub fn show_typing(&mut self, text: &str) {
        self.typed = shown_line(text);
        self.draw();
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
    pub fn end(&mut self, result: &TaskResult, changed: &[ChangedFile]) {
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
        if self.shows_progress() {
            let lines = ending::changes(self.task, changed, self.style.notes);
            // What it changed is not part of its answer.
            if !lines.is_empty() && self.is_live() && result.final_message.is_some() {
                note("");
            }
            lines.iter().for_each(|line| note(line));
        }
        for line in ending::lines(result, self.style, self.retry, self.pause_reason) {
            note(&line);
        }
        if self.shows_progress() && result.status == ResultStatus::Completed {
            let summary = ending::summary(result, self.progress.has_unpriced_replies());
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

    /// Removes the lines below, so that something can be printed in their place.
    pub fn clear(&mut self) {
        self.area.clear(self.style.notes_width());
    }

    fn draw(&mut self) {
        if !self.is_live() {
            return;
        }
        let columns = self.style.notes_width();
        let mut lines = self.preview_lines(columns);
        lines.push(self.status_line(columns));
        if !self.typed.is_empty() {
            lines.push(format!("> {}", end_of(&self.typed, columns.saturating_sub(4))));
        }
        self.area.draw(&lines, columns);
    }

    /// The reply that is being written, as it will look; else the last lines of what the model thinks or of a
    /// running command.
    fn preview_lines(&self, columns: usize) -> Vec<String> {
        let paint = self.style.notes;
        if !self.reply.trim().is_empty() {
            let text = markdown::render(
                &strip_controls(&self.reply),
                paint,
                columns.saturating_sub(1).max(10),
            );
            let lines: Vec<&str> = text.trim_end().lines().collect();
            let room = self.style.notes_height().saturating_sub(4).max(1);
            let lines = &lines[lines.len().saturating_sub(room)..];
            return lines.iter().map(|line| (*line).to_owned()).collect();
        }
        if !self.reasoning.trim().is_empty() {
            return last_lines(&self.reasoning, REASONING_LINES, paint);
        }
        match &self.output {
            Some((_, printed)) => last_lines(printed, OUTPUT_LINES, paint),
            None => Vec::new(),
        }
    }

    /// What is happening, then as much of what was used as there is room for.
    fn status_line(&self, columns: usize) -> String {
        let elapsed = self.began.elapsed();
        let plain = self.progress.usage(elapsed, Paint { on: false });
        let painted = self.progress.usage(elapsed, self.style.notes);
        let activity = strip_controls(self.progress.activity());
        let activity = activity.lines().next().unwrap_or_default();
        // The spinner, the spaces around, and the `^C` that a terminal adds.
        let room = columns.saturating_sub(6);
        let least = activity.width().min(ACTIVITY_WIDTH);
        let mut used = 0;
        let fits = |part: &&String| {
            used += part.width() + 3;
            used + least <= room
        };
        let count = plain.iter().take_while(fits).count();
        let usage: usize = plain[..count].iter().map(|part| part.width() + 3).sum();
        let activity = cut_columns(activity, room.saturating_sub(usage).max(1));
        let spinner = self.style.notes.cyan(SPINNER[self.frame % SPINNER.len()]);
        let parts: Vec<&str> = std::iter::once(activity.as_str())
            .chain(painted[..count].iter().map(String::as_str))
            .collect();
        format!("{spinner} {}", parts.join(" · "))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The last lines of a text that are not empty.
fn last_lines(text: &str, count: usize, paint: Paint) -> Vec<String> {
    let text = strip_controls(text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    let line = |line: &&str| paint.dim(&format!("  {}", line.replace('\t', "    ")));
    last.iter().map(line).collect()
}

/// The end of a line that is too long.
fn end_of(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut rest = text;
    while rest.width() + 1 > columns {
        let mut chars = rest.chars();
        if chars.next().is_none() {
            break;
        }
        rest = chars.as_str();
    }
    format!("…{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_typed_line_shows_its_end() {
        assert_eq!(end_of("one two three", 8), "…o three");
        assert_eq!(end_of("one", 8), "one");
        assert_eq!(end_of("漢字漢字", 5), "…漢字");
    }
}
