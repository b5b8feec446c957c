//! Events as entries of the transcript, and what is going on now: the reply on its way, running calls, sub-agents.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_coordinator::{Preview, PreviewContent, StreamEvent};
use windlass_core::axes::Axes;
use windlass_core::event::{Event, LlmResponse, Record, StatusChanged};
use windlass_core::id::{CallId, QuestionId, TaskId};
use windlass_core::injection::InjectionType;
use windlass_core::message::Finish;
use windlass_core::shown::{shown, shown_line};
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::text::{one_line, suffix};
use windlass_core::tool_name;
use windlass_term::{
    Detail, Paint, Progress, StatusPart, markdown, numbers, reasoning, strip_controls, tool_lines,
};

use crate::app::Settings;
use crate::keymap::Action;
use crate::mode_line;
use crate::text::broken;
use crate::transcript::Entry;

/// Bytes of a reply on its way that are kept for its preview. The whole is printed when it is committed.
const REPLY_BYTES: usize = 16 * 1024;
/// Bytes of a running command's output that are kept.
const OUTPUT_BYTES: usize = 4 * 1024;
/// Columns of a call that are kept; a row has fewer.
const CALL_COLUMNS: usize = 200;

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub call: String,
    pub since: Timestamp,
    /// The end of what it has printed.
    pub printed: String,
    /// The agent that made it, where that is a sub-agent.
    pub task: TaskId,
}

impl Running {
    /// The last line that it has printed.
    pub fn last_line(&self) -> Option<String> {
        let printed = strip_controls(&self.printed);
        let last = printed.lines().rev().find(|line| !line.trim().is_empty());
        last.map(|line| line.replace('\t', "    "))
    }
}

/// A sub-agent at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub label: String,
    pub activity: String,
    pub since: Timestamp,
}

/// One task as it is told.
pub struct Story {
    task: TaskId,
    user: String,
    paint: Paint,
    progress: Progress,
    /// The reply on its way.
    pub reply: String,
    /// Whether the work was stopped: what still comes of a reply belongs to nothing.
    is_stopped: bool,
    /// Whether the model thinks before it writes, and how much of that came.
    pub reasoning_bytes: usize,
    pub running: BTreeMap<CallId, Running>,
    pub agents: BTreeMap<TaskId, Agent>,
    /// The names of sub-agents that have been started, and which of them are paused until a person decides.
    labels: BTreeMap<TaskId, String>,
    held: BTreeSet<TaskId>,
    /// The model of the running segment.
    pub model: Option<String>,
    /// When it continues by itself, where it is parked until then.
    parked_until: Option<Timestamp>,
    asked: BTreeMap<QuestionId, String>,
    sandbox_gaps: String,
    /// Modes that were said before their event came.
    said_modes: Vec<Axes>,
    /// How the whole transcript is opened.
    way_to_all: String,
    /// Whether a screen reader reads it: the mode is said elsewhere.
    is_spoken: bool,
}

impl Story {
    /// The story of a task from this state on.
    pub fn new(state: &TaskState, settings: &Settings) -> Self {
        let paint = settings.paint;
        Self {
            task: state.id(),
            user: settings.user.clone(),
            paint,
            progress: Progress::new(state.id(), state, paint),
            reply: String::new(),
            is_stopped: false,
            reasoning_bytes: 0,
            running: BTreeMap::new(),
            agents: BTreeMap::new(),
            labels: BTreeMap::new(),
            held: BTreeSet::new(),
            model: state.created.command.execution_config.model.clone(),
            parked_until: state.until,
            asked: BTreeMap::new(),
            sandbox_gaps: String::new(),
            said_modes: Vec::new(),
            way_to_all: settings.keymap.way(Action::Transcript),
            is_spoken: settings.screen_reader,
        }
    }

    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The last line of what each running call has printed, and whose call it is.
    pub fn last_lines(&self) -> Vec<(TaskId, String)> {
        let lines = self.running.values().filter_map(|one| Some((one.task, one.last_line()?)));
        lines.collect()
    }

    /// What it does now.
    pub fn activity(&self) -> &str {
        self.progress.activity()
    }

    /// When a parked task is tried again, in words.
    pub fn parked_words(&self) -> Option<String> {
        Some(format!("paused; tried again at {}", clock(self.parked_until?)))
    }

    /// What it has used, as a part of the status line.
    pub fn usage(&self, part: StatusPart, elapsed: Duration, paint: Paint) -> Option<String> {
        self.progress.usage_part(part, elapsed, paint)
    }

    /// Takes in one event; returns what it adds to the transcript.
    pub fn event(&mut self, record: &Record, columns: usize) -> Vec<Entry> {
        let unfinished = self.unfinished(record, columns);
        self.follow(record);
        let width = columns.saturating_sub(4).max(16);
        // Always: it counts, and knows the current activity.
        let lines = self.progress.lines(record, width);
        if record.task != self.task {
            return vec![Entry::Lines(lines)].into_iter().filter(is_shown).collect();
        }
        let entries = match &record.event {
            Event::TaskCreated(created) => vec![self.said(created.goal_for_people(), "")],
            Event::InjectionReceived(message) => match message.injection_type {
                InjectionType::UserMessage => {
                    vec![self.said(message.text_for_people(), &message.by)]
                }
                InjectionType::HitlResponse => Vec::new(),
                InjectionType::ExternalEvent | InjectionType::SystemControl => {
                    vec![Entry::Lines(lines)]
                }
            },
            Event::LlmResponse(response) => reply(response, self.paint, width),
            Event::AgentStart(start) => {
                self.model = Some(start.model.clone());
                let is_new =
                    self.sandbox_gaps != start.sandbox_gaps && !start.sandbox_gaps.is_empty();
                self.sandbox_gaps.clone_from(&start.sandbox_gaps);
                let line = self.paint.yellow(&format!("sandbox: {}", shown(&start.sandbox_gaps)));
                if is_new { vec![Entry::note(line)] } else { Vec::new() }
            }
            // What the sandbox isolates is said once, where something is missing.
            Event::SandboxStarted(_) => Vec::new(),
            // While it is open it is shown with its choices; its answer is printed below it.
            Event::QuestionAsked(question) => {
                let headline = question.question.lines().next().unwrap_or_default();
                let headline = format!("? {}", one_line(&shown(headline), width));
                self.asked.insert(question.id, headline);
                Vec::new()
            }
            Event::QuestionAnswered(answered) => {
                let by = &answered.answer.by;
                let by = if *by == self.user { String::new() } else { format!(" ({by})") };
                let text = one_line(&shown(&answered.answer.text), width);
                let mark = if self.is_spoken { "answered:" } else { "  →" };
                let line = format!("{mark} {text}{}", self.paint.dim(&shown_line(&by)));
                self.question(answered.question, line)
            }
            Event::QuestionClosed(closed) => {
                let mark = if self.is_spoken { "" } else { "  → " };
                let why = one_line(&shown(&closed.reason), width);
                let line = format!("{mark}no longer asked: {why}");
                let line = self.paint.dim(&line);
                self.question(closed.question, line)
            }
            Event::StatusChanged(moved) => self.status(moved),
            Event::ModeChanged(_) if self.is_spoken => Vec::new(),
            Event::ModeChanged(changed) if self.was_said(changed.to) => Vec::new(),
            Event::ModeChanged(changed) => {
                let words = mode_line::change_words(changed.from, changed.to);
                vec![Entry::note(self.paint.dim(&format!("mode: {words}")))]
            }
            Event::ToolResult(_) => vec![Entry::Lines(self.with_hint(lines))],
            _ => vec![Entry::Lines(lines)],
        };
        unfinished.into_iter().chain(entries).filter(is_shown).collect()
    }

    /// What a person has read of a reply that is never finished: it stays, and it is said that the agent does not know it.
    fn unfinished(&mut self, record: &Record, columns: usize) -> Option<Entry> {
        let Event::StatusChanged(moved) = &record.event else { return None };
        if record.task != self.task {
            return None;
        }
        self.is_stopped = moved.to != TaskStatus::Running;
        let reply = std::mem::take(&mut self.reply);
        if !self.is_stopped || reply.trim().is_empty() {
            return None;
        }
        let rows = preview_rows(&reply, columns.saturating_sub(1), self.paint);
        let words = "  not finished; the agent does not remember this reply";
        let rows = rows.into_iter().chain([self.paint.dim(words)]);
        Some(Entry::Lines(std::iter::once(String::new()).chain(rows).collect()))
    }

    /// A change of the mode was said; its event is still to come.
    pub fn mode_said(&mut self, axes: Axes) {
        if !self.said_modes.contains(&axes) {
            self.said_modes.push(axes);
        }
    }

    /// Whether a mode was said already, which it was once.
    fn was_said(&mut self, axes: Axes) -> bool {
        let at = self.said_modes.iter().position(|said| said.to_string() == axes.to_string());
        at.map(|at| self.said_modes.remove(at)).is_some()
    }

    /// A question and what became of it.
    fn question(&mut self, question: QuestionId, line: String) -> Vec<Entry> {
        let asked = self.asked.remove(&question).map(|asked| self.paint.yellow(&asked));
        vec![Entry::Lines(asked.into_iter().chain([line]).collect())]
    }

    /// Takes in something that is not journaled yet.
    pub fn preview(&mut self, preview: &Preview) {
        match &preview.live {
            PreviewContent::Output { call, text } => {
                if let Some(running) = self.running.get_mut(call) {
                    running.printed += text;
                    running.printed = suffix(&running.printed, OUTPUT_BYTES).to_owned();
                }
            }
            // A late preview belongs to a reply that is committed and printed.
            PreviewContent::Reply(live)
                if preview.task == self.task && self.progress.is_replying() && !self.is_stopped =>
            {
                self.preview_reply(live);
            }
            PreviewContent::Asked { .. } | PreviewContent::Ended | PreviewContent::Reply(_) => {}
        }
    }

    fn preview_reply(&mut self, live: &StreamEvent) {
        match live {
            StreamEvent::Text(more) => {
                self.reply += more;
                if self.reply.len() > 2 * REPLY_BYTES {
                    self.reply = suffix(&self.reply, REPLY_BYTES).to_owned();
                }
                self.progress.set_activity("writing".to_owned());
            }
            // It is folded: what is read of it comes with the reply.
            StreamEvent::Reasoning(more) => {
                self.reasoning_bytes += more.len();
                let thought = numbers::count(self.reasoning_bytes as u64);
                self.progress.set_activity(format!("thinking, {thought} characters"));
            }
            StreamEvent::CallStarted { name, .. } => {
                self.progress.set_activity(format!("preparing {}", shown_line(name)));
            }
            StreamEvent::Retrying { after, reason, .. }
            | StreamEvent::Waiting { after, reason, .. } => {
                self.reply.clear();
                let reason = one_line(&strip_controls(reason), 60);
                let after = numbers::took(*after);
                self.progress.set_activity(format!("{reason}; trying again in {after}"));
            }
            StreamEvent::CallArguments { .. } | StreamEvent::Bytes(_) => {}
        }
    }

    /// Keeps what runs.
    fn follow(&mut self, record: &Record) {
        let is_own = record.task == self.task;
        if !is_own {
            self.follow_agent(record);
        }
        match &record.event {
            Event::LlmRequest(_) | Event::LlmResponse(_) if is_own => {
                self.reply.clear();
                self.reasoning_bytes = 0;
            }
            // The sub-agent has a row of its own.
            Event::ToolCall(call) if call.tool == tool_name::SPAWN_AGENT => {}
            Event::ToolCall(call) => {
                let text = tool_lines::call(&call.tool, &call.arguments, CALL_COLUMNS);
                let running = Running {
                    call: text,
                    since: record.at,
                    printed: String::new(),
                    task: record.task,
                };
                self.running.insert(call.call, running);
            }
            Event::ToolResult(result) => {
                self.running.remove(&result.call);
            }
            Event::SubAgentSpawn(spawn) => {
                let label = shown_line(&spawn.label);
                self.labels.insert(spawn.task_id, label.clone());
                let agent = Agent { label, activity: "starting".to_owned(), since: record.at };
                self.agents.insert(spawn.task_id, agent);
            }
            Event::SubAgentComplete(done) => {
                self.forget_agent(done.task_id);
            }
            Event::StatusChanged(moved) if is_own => self.parked_until = moved.until,
            Event::AgentEnd(_) if is_own => {
                self.running.clear();
                self.agents.clear();
                self.reply.clear();
            }
            _ => {}
        }
    }

    /// Keeps what a sub-agent does.
    fn follow_agent(&mut self, record: &Record) {
        if let Event::StatusChanged(moved) = &record.event {
            let is_held = moved.to == TaskStatus::Paused
                && matches!(moved.reason, StatusReason::User | StatusReason::Deadline);
            match is_held {
                true => self.held.insert(record.task),
                false => self.held.remove(&record.task),
            };
        }
        let activity = match &record.event {
            Event::StatusChanged(moved) if moved.to.is_terminal() => {
                return self.forget_agent(record.task);
            }
            Event::StatusChanged(moved) if moved.to == TaskStatus::Paused => match moved.reason {
                StatusReason::User | StatusReason::Deadline => "paused".to_owned(),
                reason => format!("waits ({reason})"),
            },
            Event::QuestionAsked(_) => "waits for an answer".to_owned(),
            Event::AgentStart(_) | Event::QuestionAnswered(_) | Event::QuestionClosed(_) => {
                "starting".to_owned()
            }
            Event::LlmRequest(_) => "thinking".to_owned(),
            Event::ToolCall(call) => tool_lines::call(&call.tool, &call.arguments, CALL_COLUMNS),
            _ => return,
        };
        if let Some(agent) = self.agents.get_mut(&record.task) {
            agent.activity = activity;
        }
    }

    fn forget_agent(&mut self, task: TaskId) {
        self.agents.remove(&task);
        self.running.retain(|_, running| running.task != task);
    }

    /// The names of all sub-agents.
    pub fn labels(&self) -> &BTreeMap<TaskId, String> {
        &self.labels
    }

    /// The name of a sub-agent.
    pub fn label(&self, agent: TaskId) -> Option<&str> {
        self.labels.get(&agent).map(String::as_str)
    }

    /// The sub-agents without which it cannot continue, because a person has paused them; in words.
    pub fn held_agents(&self) -> Option<String> {
        let labels: Vec<_> =
            self.held.iter().filter_map(|task| self.labels.get(task)).map(String::as_str).collect();
        match labels.as_slice() {
            [] => None,
            [one] => Some(format!("sub-agent {one}")),
            several => Some(format!("sub-agents {}", several.join(", "))),
        }
    }

    fn said(&self, text: &str, by: &str) -> Entry {
        let by = (!by.is_empty() && by != self.user).then(|| shown_line(by));
        Entry::Said { text: text.to_owned(), by }
    }

    fn status(&self, moved: &StatusChanged) -> Vec<Entry> {
        let detail = moved.detail.as_deref().unwrap_or_default();
        let detail = if detail.is_empty() { String::new() } else { format!(": {}", shown(detail)) };
        let line = match (moved.to, moved.reason) {
            (TaskStatus::Failed, _) => {
                let error = moved.error.as_ref();
                let why = error.map(|error| shown(&error.message)).unwrap_or_default();
                let hint = error.and_then(|error| error.hint.as_deref()).map(shown);
                let failed = format!("{} {why}", self.paint.red("failed:"));
                let hint = hint.map(|hint| format!("  {hint}"));
                return vec![Entry::Lines(std::iter::once(failed).chain(hint).collect())];
            }
            (TaskStatus::Cancelled, _) => self.paint.yellow(&format!("cancelled{detail}")),
            (TaskStatus::Paused, StatusReason::AwaitingMessage) => return Vec::new(),
            (TaskStatus::Paused, StatusReason::User) if !self.held.is_empty() => {
                let held = self.held_agents().unwrap_or_else(|| "a sub-agent".to_owned());
                let line = format!("waits for {held}, which you paused; r on /agents resumes it");
                self.paint.yellow(&line)
            }
            (TaskStatus::Paused, StatusReason::User) if !detail.is_empty() => {
                self.paint.yellow(&format!("paused{detail}; a message continues it"))
            }
            (TaskStatus::Paused, StatusReason::Shutdown | StatusReason::User) => {
                self.paint.yellow("interrupted; its work is kept, and a message continues it")
            }
            (TaskStatus::Paused, reason) => {
                let how = match moved.until {
                    Some(until) => format!("tried again at {}, or when you write", clock(until)),
                    None => "a message continues it".to_owned(),
                };
                self.paint.yellow(&format!("paused ({reason}){detail}; {how}"))
            }
            _ => return Vec::new(),
        };
        vec![Entry::note(line)]
    }

    /// Says where the rest of a cut output is.
    fn with_hint(&self, lines: Vec<String>) -> Vec<String> {
        let is_fold = |line: &String| strip_controls(line).starts_with("  … ");
        let Some(at) = lines.iter().position(is_fold) else { return lines };
        let hint = self.paint.dim(&format!(" ({} shows all)", self.way_to_all));
        let hinted = |(index, line)| if index == at { format!("{line}{hint}") } else { line };
        lines.into_iter().enumerate().map(hinted).collect()
    }
}

/// A reply on its way, or one that is not finished, as it looks. It is marked: nothing of it is committed.
pub fn preview_rows(reply: &str, columns: usize, paint: Paint) -> Vec<String> {
    let width = columns.saturating_sub(2).clamp(1, 100);
    let text = markdown::render(&strip_controls(reply), paint, width);
    let rows = text.trim_end().lines().flat_map(|line| broken(line, width));
    rows.map(|row| format!("{} {row}", paint.dim("┊"))).collect()
}

/// The time on the person's clock.
fn clock(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

fn is_shown(entry: &Entry) -> bool {
    !matches!(entry, Entry::Lines(lines) if lines.is_empty())
}

/// Why a reply is not whole.
pub fn incomplete(response: &LlmResponse) -> Option<&'static str> {
    match response.finish {
        Finish::Stop | Finish::ToolCalls => None,
        Finish::Length => Some("… cut at the model's output limit"),
        Finish::ContentFilter => Some("… stopped by the provider's content filter"),
    }
}

fn reply(response: &LlmResponse, paint: Paint, width: usize) -> Vec<Entry> {
    let thought = response.reasoning.as_ref();
    let thought = thought.map(|of| reasoning::lines(of, paint, width, Detail::Brief));
    let thought = thought.filter(|lines| !lines.is_empty()).map(Entry::Lines);
    let why = incomplete(response);
    let text = (!response.text.trim().is_empty()).then(|| Entry::Reply(response.text.clone()));
    thought.into_iter().chain(text).chain(why.map(|why| Entry::note(paint.yellow(why)))).collect()
}
