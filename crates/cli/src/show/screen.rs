//! A run as it goes on: lines of what happened, and on a terminal one line below them that says what
//! is happening now and what it has taken so far.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Duration;

use tokio::time::Instant;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use windlass_agent::Preview;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{
    AgentStart, BudgetKind, Event, LlmResponse, Record, SubAgentSpawn, ToolCall, ToolResult,
};
use windlass_core::id::{CallId, TaskId};
use windlass_core::message::{Finish, ToolRequest};
use windlass_core::plan::WorkingPlan;
use windlass_core::state::{Stage, TaskState};
use windlass_core::status::StatusReason;
use windlass_core::text::{one_line, suffix};
use windlass_model::Live;

use super::ending::Retry;
use super::meter::{Meter, clock, money};
use super::{Look, Paint, ending, markdown, note, out, plain, words};
use crate::args::Printing;

/// How wide a line of progress gets where nobody says how wide the screen is.
const PIPED_WIDTH: usize = 100;
/// Lines of what the agent says between its calls.
const SAID_LINES: usize = 4;
/// Bytes of a reply that is on its way that are kept for its preview.
const PREVIEW_BYTES: usize = 400;
/// How often the line below is redrawn.
pub const FRAME: Duration = Duration::from_millis(100);

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// A run as it goes on.
pub struct Screen {
    task: TaskId,
    printing: Printing,
    look: Look,
    meter: Meter,
    began: Instant,
    now: String,
    heard: String,
    replying: bool,
    planned: bool,
    introduced: bool,
    frame: usize,
    drawn: bool,
    retry: Retry,
    /// Calls that were asked for and were not seen to begin; the result of one tells which it was.
    asked: BTreeMap<CallId, String>,
    /// Why it was last parked.
    parked: Option<StatusReason>,
    /// What the sub-agents at work are called.
    below: BTreeMap<TaskId, String>,
}

impl Screen {
    /// A screen for one run of a task that stands here.
    pub fn new(printing: &Printing, look: Look, task: TaskId, state: &TaskState) -> Self {
        let below = state.sub_agents.values().map(|spawn| (spawn.task_id, spawn.label.clone()));
        Self {
            task,
            below: below.collect(),
            printing: printing.clone(),
            look,
            meter: Meter::of(state),
            began: Instant::now(),
            now: at_hand(state).unwrap_or_else(|| "starting".to_owned()),
            heard: String::new(),
            replying: false,
            planned: state.plan.is_some(),
            introduced: false,
            frame: 0,
            drawn: false,
            retry: match state.retries < state.created.max_retries {
                true => Retry::Possible,
                false => Retry::UsedUp,
            },
            asked: open_calls(state),
            parked: None,
        }
    }

    /// Whether there is a line to be redrawn.
    pub fn is_live(&self) -> bool {
        self.look.redraws && self.shows_progress()
    }

    /// Whether events are shown as they come; else it is enough to take them in at the end.
    pub fn follows(&self) -> bool {
        self.printing.json || self.shows_progress()
    }

    /// Whether what sub-agents do is shown too.
    pub fn shows_all(&self) -> bool {
        !self.printing.json && self.shows_progress()
    }

    /// Shows one event.
    pub fn event(&mut self, record: &Record) {
        if self.printing.json {
            out(&windlass_agent::trace::entry(record));
            return;
        }
        if let Event::SubAgentSpawn(spawn) = &record.event {
            self.below.insert(spawn.task_id, spawn.label.clone());
        }
        if record.task != self.task {
            return self.event_below(record);
        }
        self.take_in(&record.event);
        if self.shows_progress() {
            for line in self.lines(&record.event) {
                self.say(&line);
            }
        }
        self.planned |= matches!(record.event, Event::PlanUpdated(_));
        self.introduced |= matches!(record.event, Event::AgentStart(_));
        if let Event::ToolCall(ToolCall { call, .. }) | Event::ToolResult(ToolResult { call, .. }) =
            &record.event
        {
            self.asked.remove(call);
        }
        self.draw();
    }

    /// Shows what a sub-agent does: a line for each call, told from the task's own by whose it is.
    fn event_below(&mut self, record: &Record) {
        if !self.shows_progress() {
            return;
        }
        let who = self.below.get(&record.task).map_or("sub-agent", String::as_str);
        let width = self.width();
        let line = |what: &str| one_line(&plain(&format!("{who}: {what}")), width);
        match &record.event {
            Event::LlmRequest(_) => self.now = line("thinking"),
            // Has an event of its own.
            Event::ToolCall(call) if call.tool == "spawn_agent" => return,
            Event::ToolCall(call) => {
                self.now = line(&words::call(&call.tool, &call.arguments, width));
                self.say(&self.look.notes.dim(&format!("  {}", self.now)));
            }
            Event::SubAgentSpawn(spawn) => {
                let line = line(&spawned(spawn));
                self.say(&self.look.notes.dim(&format!("  {line}")));
            }
            _ => return,
        }
        self.draw();
    }

    /// Shows something that is not journaled yet.
    pub fn preview(&mut self, preview: &Preview) {
        // What comes late belongs to a reply that is journaled, and shown, already.
        if !self.shows_progress() || !self.replying {
            return;
        }
        match &preview.live {
            Live::Text(more) => {
                self.heard += more;
                self.heard = suffix(&self.heard, PREVIEW_BYTES).to_owned();
                let text = plain(&self.heard).split_whitespace().collect::<Vec<_>>().join(" ");
                self.now = format!("“{text}");
            }
            Live::CallStarted { name, .. } => self.now = format!("preparing {}", plain(name)),
            Live::Retrying { after, reason, .. } | Live::Waiting { after, reason, .. } => {
                self.heard.clear();
                let reason = one_line(&plain(reason), self.width());
                let after = match after.as_secs() {
                    0..60 => format!("{:.1} s", after.as_secs_f64()),
                    _ => clock(*after),
                };
                let line = format!("  … {reason}; trying again in {after}");
                self.say(&self.look.notes.yellow(&line));
                self.now = "waiting for the model".to_owned();
            }
            Live::CallArguments { .. } | Live::Bytes(_) => {}
        }
        // Drawn with the next frame: a fast stream must not cost a redraw a word.
    }

    /// Moves the spinner and the clock.
    pub fn tick(&mut self) {
        self.frame = self.frame.wrapping_add(1);
        self.draw();
    }

    /// A remark in the middle of a run.
    pub fn say(&mut self, line: &str) {
        self.clear();
        note(line);
    }

    /// Shows how it ended.
    pub fn end(&mut self, result: &TaskResult) {
        if self.printing.json {
            return;
        }
        self.clear();
        if let Some(text) = &result.final_message {
            let text = plain(text);
            if self.shows_progress() && self.look.redraws {
                note("");
            }
            out(&match self.look.reads_results {
                true => markdown(&text, self.look.results, self.look.results_width()),
                false => text.trim_end().to_owned(),
            });
        }
        if self.printing.print && result.status == ResultStatus::Completed {
            return;
        }
        for line in ending::lines(result, self.look, self.retry, self.parked) {
            note(&line);
        }
        if self.shows_progress() && result.status == ResultStatus::Completed {
            let summary = ending::summary(result, self.meter.cost_words());
            note(&self.look.notes.dim(&summary));
        }
    }

    fn shows_progress(&self) -> bool {
        self.printing.shows_progress()
    }

    fn width(&self) -> usize {
        let all = if self.look.redraws { self.look.notes_width() } else { PIPED_WIDTH };
        all.saturating_sub(4).max(20)
    }

    fn take_in(&mut self, event: &Event) {
        match event {
            Event::AgentStart(start) => self.meter.started(start),
            Event::LlmRequest(_) => {
                self.replying = true;
                self.heard.clear();
                "thinking".clone_into(&mut self.now);
            }
            Event::LlmResponse(response) => {
                self.replying = false;
                self.meter.replied(response);
                self.asked.extend(response.calls.iter().map(asked));
            }
            Event::ToolCall(call) => {
                self.now = words::call(&call.tool, &call.arguments, self.width());
            }
            Event::PlanUpdated(plan) => self.meter.planned(plan),
            Event::StatusChanged(moved) => self.parked = Some(moved.reason),
            _ => {}
        }
    }

    fn lines(&self, event: &Event) -> Vec<String> {
        let (paint, width) = (self.look.notes, self.width());
        let text = |text: &str| one_line(&plain(text), width);
        match event {
            // A segment that follows an answer given here needs no introduction.
            Event::AgentStart(_) if self.introduced => Vec::new(),
            Event::AgentStart(start) => {
                let mut lines = vec![paint.dim(&about(start, self.look.notes_width()))];
                if !start.footing.is_empty() {
                    lines.push(paint.yellow(&text(&format!("sandbox: {}", start.footing))));
                }
                lines
            }
            Event::SandboxStarted(started) => {
                vec![paint.dim(&text(&format!("sandbox {}: {}", started.kind, started.footing)))]
            }
            Event::SandboxLost(lost) => {
                vec![paint.yellow(&text(&format!("sandbox lost: {}", lost.reason)))]
            }
            Event::LlmResponse(response) => self.reply_lines(response),
            Event::ToolCall(call) => match call.tool.as_str() {
                // What these do has an event of its own.
                "update_plan" | "publish_deliverable" | "ask_user" | "spawn_agent" => Vec::new(),
                "bash" => {
                    vec![paint.bold(&words::call(&call.tool, &call.arguments, width))]
                }
                _ => {
                    let line = words::call(&call.tool, &call.arguments, width);
                    vec![format!("{} {line}", paint.cyan("•"))]
                }
            },
            Event::ToolResult(result) => {
                // What never began, or began before this screen did, has not been shown.
                let unseen = self.asked.get(&result.call).map(|call| {
                    let mark = if result.outcome.is_error() { "✗" } else { "•" };
                    paint.dim(&format!("{mark} {}", one_line(call, width)))
                });
                let came = words::outcome(&result.tool, &result.outcome, paint, width);
                unseen.filter(|_| !came.is_empty()).into_iter().chain(came).collect()
            }
            Event::PlanUpdated(plan) => self.plan_lines(plan),
            Event::DeliverablePublished(file) => {
                let line = text(&format!("{}: {}", file.filepath, file.description));
                vec![format!("{} {line}", paint.green("published"))]
            }
            Event::InjectionReceived(injection) if injection.control.is_none() => {
                vec![format!("{} {}", paint.cyan("←"), text(&injection.content))]
            }
            Event::DoomLoopDetected(detected) => {
                vec![paint.yellow(&text(&format!("! repeating itself: {}", detected.pattern)))]
            }
            Event::CommandExited(exited) => {
                vec![text(&format!("• {} ended: {}", exited.command, exited.exit))]
            }
            Event::MemoryFlush(_) => vec![paint.dim("context filling up: saving notes")],
            // Nothing could be made shorter; what comes of that is said at the end.
            Event::CompactionEnd(end) if end.summarized_turns == 0 => Vec::new(),
            Event::CompactionEnd(end) => vec![paint.dim(&text(&format!(
                "context made shorter: {} turns summarized, {} kept, {} → {} tokens",
                end.summarized_turns, end.kept_turns, end.tokens_before, end.tokens_after
            )))],
            Event::SubAgentSpawn(spawn) => vec![text(&spawned(spawn))],
            Event::SubAgentComplete(done) => {
                let said = done.error.as_deref().filter(|_| done.output.is_empty());
                let said = said.unwrap_or(&done.output);
                vec![text(&format!("↲ {} {}: {said}", done.label, done.status))]
            }
            Event::BudgetHit(hit) => {
                let [spent, limit] = [hit.spent, hit.limit].map(|amount| match hit.budget {
                    BudgetKind::Cost => money(amount),
                    BudgetKind::Tokens | BudgetKind::Turns | BudgetKind::Time => {
                        format!("{amount:.0}")
                    }
                });
                let used = format!("! {} budget: {spent} of {limit} used", hit.budget);
                vec![paint.yellow(&text(&used))]
            }
            Event::InjectionReceived(_)
            | Event::CompactionStart(_)
            | Event::CompactionProgress(_)
            | Event::TaskCreated(_)
            | Event::StatusChanged(_)
            | Event::LlmRequest(_)
            | Event::RiskCheck(_)
            | Event::QuestionAsked(_)
            | Event::QuestionAnswered(_)
            | Event::QuestionClosed(_)
            | Event::ModeChanged(_)
            | Event::SandboxEnded(_)
            | Event::AgentEnd(_) => Vec::new(),
        }
    }

    /// What it says on the way. Its last word is shown at the end, unless it did not come whole.
    fn reply_lines(&self, response: &LlmResponse) -> Vec<String> {
        let (paint, width) = (self.look.notes, self.width());
        let why = match response.finish {
            _ if !response.calls.is_empty() => None,
            Finish::Stop | Finish::ToolCalls => return Vec::new(),
            Finish::Length => Some("cut at the model's output limit"),
            Finish::ContentFilter => Some("stopped by the provider's content filter"),
        };
        let why = why.map(|why| paint.yellow(&format!("  … {why}")));
        said(&response.text, paint, width).into_iter().chain(why).collect()
    }

    /// The whole plan when it is made, one line whenever it changes.
    fn plan_lines(&self, plan: &WorkingPlan) -> Vec<String> {
        let (paint, width) = (self.look.notes, self.width());
        let heading = self.meter.plan_words(width).unwrap_or_default();
        if self.planned {
            return vec![paint.bold(&heading)];
        }
        let heading = paint.bold(&format!("plan {}/{}", plan.done(), plan.steps.len()));
        let steps = plan.steps.iter().map(|step| {
            format!("  {} {}", step.status.icon(), one_line(&plain(&step.description), width))
        });
        [heading].into_iter().chain(steps).collect()
    }

    /// Removes the line below, so that something can be printed in its place.
    pub fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[2K");
            self.drawn = false;
        }
    }

    fn draw(&mut self) {
        if !self.is_live() {
            return;
        }
        let width = self.look.notes_width();
        let elapsed = self.began.elapsed();
        let measured = self.meter.words(elapsed, Paint { on: false });
        // The spinner, the spaces and the dot between; and `^C`, which the terminal puts behind it.
        let room = width.saturating_sub(measured.width() + 8);
        let spinner = self.look.notes.cyan(SPINNER[self.frame % SPINNER.len()]);
        let line = if room >= 8 {
            let now = tail_or_head(&self.now, room);
            format!("{spinner} {now} · {}", self.meter.words(elapsed, self.look.notes))
        } else {
            one_line(&measured, width.saturating_sub(1))
        };
        let _ = write!(io::stderr().lock(), "\r\u{1b}[2K{line}");
        let _ = io::stderr().flush();
        self.drawn = true;
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The calls that a task goes on with.
fn open_calls(state: &TaskState) -> BTreeMap<CallId, String> {
    state.open_calls.iter().map(|open| asked(&open.request)).collect()
}

fn asked(request: &ToolRequest) -> (CallId, String) {
    let arguments = serde_json::from_str(&request.arguments).unwrap_or_default();
    (request.id, words::call(&request.name, &arguments, PIPED_WIDTH))
}

/// The call that a task which was interrupted goes on with; no event says so again.
fn at_hand(state: &TaskState) -> Option<String> {
    let call = state.open_calls.first()?;
    let Stage::Started(call) = &call.stage else { return None };
    Some(words::call(&call.tool, &call.arguments, PIPED_WIDTH))
}

/// Who is sent off to do what, and the name to ask about it by.
fn spawned(spawn: &SubAgentSpawn) -> String {
    format!("↳ {} ({}): {}", spawn.label, spawn.task_id, spawn.task)
}

/// Who works, on what model, and where; why there is said where the line has room for it.
fn about(start: &AgentStart, width: usize) -> String {
    let model = match start.model.strip_prefix("script:") {
        Some(path) => format!("script:{}", path.rsplit('/').next().unwrap_or(path)),
        None => start.model.clone(),
    };
    let line = |place: &str| plain(&format!("{} · {model} · {place}", start.task_id));
    let whole = line(&start.container);
    let short = start.container.split(" (").next().unwrap_or(&start.container);
    if whole.width() <= width { whole } else { line(short) }
}

/// What the agent says between its calls, indented.
fn said(text: &str, paint: Paint, width: usize) -> Vec<String> {
    let text = markdown(&plain(text), paint, width);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let more = (lines.len() > SAID_LINES).then(|| "  …".to_owned());
    let shown = lines.iter().take(SAID_LINES).map(|line| format!("  {line}"));
    shown.chain(more).collect()
}

/// A reply on its way is seen at its end, anything else from its beginning; in so many columns.
fn tail_or_head(text: &str, columns: usize) -> String {
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
    fn a_reply_is_seen_at_its_end_and_a_call_from_its_beginning() {
        assert_eq!(tail_or_head("“one two three", 8), "…o three");
        assert_eq!(tail_or_head("“one", 8), "“one");
        assert_eq!(tail_or_head("$ cargo test --all", 8), "$ cargo…");
    }

    proptest! {
        #[test]
        fn the_line_below_never_wraps(text in "“?[a-z 漢字é]{0,40}", columns in 8usize..30) {
            prop_assert!(tail_or_head(&text, columns).width() <= columns);
        }
    }
}
