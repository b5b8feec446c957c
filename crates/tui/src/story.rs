//! Events as entries of the transcript, and what is going on now: the reply on its way, running calls, sub-agents.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_coordinator::{Preview, PreviewContent, StreamEvent};
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
    Detail, Paint, Progress, StatusPart, numbers, reasoning, strip_controls, tool_lines,
};

use crate::Moment;
use crate::app::Settings;
use crate::keymap::Action;
use crate::transcript::Entry;

/// Bytes of a reply on its way that are kept for its preview. The whole is printed when it is committed.
const REPLY_BYTES: usize = 16 * 1024;
/// Bytes of a running command's output that are kept.
const OUTPUT_BYTES: usize = 4 * 1024;

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub call: String,
    pub since: Moment,
    /// The end of what it has printed.
    pub printed: String,
    /// The agent that made it, where that is a sub-agent.
    pub task: TaskId,
}

/// A sub-agent at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub label: String,
    pub activity: String,
    pub since: Moment,
}

/// One task as it is told.
pub struct Story {
    task: TaskId,
    user: String,
    paint: Paint,
    progress: Progress,
    /// The reply on its way.
    pub reply: String,
    /// Whether the model thinks before it writes, and how much of that came.
    pub reasoning_bytes: usize,
    pub running: BTreeMap<CallId, Running>,
    pub agents: BTreeMap<TaskId, Agent>,
    /// The model of the running segment.
    pub model: Option<String>,
    asked: BTreeMap<QuestionId, String>,
    sandbox_gaps: String,
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
            reasoning_bytes: 0,
            running: BTreeMap::new(),
            agents: BTreeMap::new(),
            model: state.created.command.execution_config.model.clone(),
            asked: BTreeMap::new(),
            sandbox_gaps: String::new(),
            way_to_all: settings.keymap.way(Action::Transcript),
            is_spoken: settings.screen_reader,
        }
    }

    pub fn task(&self) -> TaskId {
        self.task
    }

    /// What it does now.
    pub fn activity(&self) -> &str {
        self.progress.activity()
    }

    /// What it has used, as a part of the status line.
    pub fn usage(&self, part: StatusPart, elapsed: Duration, paint: Paint) -> Option<String> {
        self.progress.usage_part(part, elapsed, paint)
    }

    /// Takes in one event; returns what it adds to the transcript.
    pub fn event(&mut self, record: &Record, columns: usize, now: Moment) -> Vec<Entry> {
        self.follow(record, now);
        let width = columns.saturating_sub(4).max(16);
        // Always: it counts, and knows the current activity.
        let lines = self.progress.lines(record, width);
        if record.task != self.task {
            return vec![Entry::Lines(lines)].into_iter().filter(is_shown).collect();
        }
        let entries = match &record.event {
            Event::TaskCreated(created) => vec![self.said(&created.command.goal, "")],
            Event::InjectionReceived(message) => match message.injection_type {
                InjectionType::UserMessage => vec![self.said(&message.content, &message.by)],
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
            Event::ModeChanged(changed) => {
                let line = format!("mode: {} → {}", changed.from, changed.to);
                vec![Entry::note(self.paint.dim(&line))]
            }
            Event::ToolResult(_) => vec![Entry::Lines(self.with_hint(lines))],
            _ => vec![Entry::Lines(lines)],
        };
        entries.into_iter().filter(is_shown).collect()
    }

    /// A question and what became of it.
    fn question(&mut self, question: QuestionId, line: String) -> Vec<Entry> {
        let asked = self.asked.remove(&question).map(|asked| self.paint.yellow(&asked));
        vec![Entry::Lines(asked.into_iter().chain([line]).collect())]
    }

    /// Takes in something that is not journaled yet.
    pub fn preview(&mut self, preview: &Preview, now: Moment) {
        match &preview.live {
            PreviewContent::Output { call, text } => {
                if let Some(running) = self.running.get_mut(call) {
                    running.printed += text;
                    running.printed = suffix(&running.printed, OUTPUT_BYTES).to_owned();
                }
            }
            // A late preview belongs to a reply that is committed and printed.
            PreviewContent::Reply(live)
                if preview.task == self.task && self.progress.is_replying() =>
            {
                self.preview_reply(live);
            }
            PreviewContent::Asked { .. } | PreviewContent::Ended => {}
            PreviewContent::Reply(_) => {
                if let Some(agent) = self.agents.get_mut(&preview.task)
                    && agent.activity.is_empty()
                {
                    agent.since = now;
                }
            }
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
    fn follow(&mut self, record: &Record, now: Moment) {
        let is_own = record.task == self.task;
        match &record.event {
            Event::LlmRequest(_) | Event::LlmResponse(_) if is_own => {
                self.reply.clear();
                self.reasoning_bytes = 0;
            }
            // The sub-agent has a row of its own.
            Event::ToolCall(call) if call.tool == tool_name::SPAWN_AGENT => {}
            Event::ToolCall(call) => {
                let text = tool_lines::call(&call.tool, &call.arguments, 200);
                if let Some(agent) = self.agents.get_mut(&record.task) {
                    agent.activity.clone_from(&text);
                }
                let running =
                    Running { call: text, since: now, printed: String::new(), task: record.task };
                self.running.insert(call.call, running);
            }
            Event::ToolResult(result) => {
                self.running.remove(&result.call);
            }
            Event::LlmRequest(_) => {
                if let Some(agent) = self.agents.get_mut(&record.task) {
                    "thinking".clone_into(&mut agent.activity);
                }
            }
            Event::SubAgentSpawn(spawn) => {
                let agent = Agent {
                    label: shown_line(&spawn.label),
                    activity: "starting".to_owned(),
                    since: now,
                };
                self.agents.insert(spawn.task_id, agent);
            }
            Event::SubAgentComplete(done) => {
                self.agents.remove(&done.task_id);
                self.running.retain(|_, running| running.task != done.task_id);
            }
            Event::AgentEnd(_) if is_own => {
                self.running.clear();
                self.agents.clear();
                self.reply.clear();
            }
            _ => {}
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
            (TaskStatus::Paused, StatusReason::Shutdown | StatusReason::User) => {
                self.paint.yellow("interrupted; its work is kept, and a message continues it")
            }
            (TaskStatus::Paused, reason) => {
                let line = format!("paused ({reason}){detail}; a message continues it");
                self.paint.yellow(&line)
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
