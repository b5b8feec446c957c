//! What happened to a task as people follow it: a fold of its events into entries, each drawn by itself.
//!
//! Invariants:
//! - An entry has one key for its whole life; what happens to a call or a question later changes its entry.
//! - The fold is the only source of what is drawn, so that a page that is open and one that is loaded agree.

mod entries;

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde_json::Value;
use windlass_coordinator::{Coordinator, Damage, Error, JournalEntry, is_own_file};
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::compaction::{Gauge, WindowLimits};
use windlass_core::event::{
    Event, LlmResponse, Note, Record, StatusChanged, SubAgentComplete, TaskCreated, ToolResult,
};
use windlass_core::id::{CallId, QuestionId, TaskId};
use windlass_core::injection::{Control, Injection, InjectionType};
use windlass_core::outcome::Fact;
use windlass_core::plan::WorkingPlan;
use windlass_core::question::Question;
use windlass_core::status::{StatusReason, TaskStatus};

pub use entries::{Abandoned, Asking, AskingState, Body, Call, Doing, Entry, Process, Saying};
use entries::{control_words, words};

use super::live::Fragment;
use super::pieces::Tone;

/// The conversation of one task.
#[derive(Clone, Debug)]
pub struct Conversation {
    entries: Vec<Entry>,
    calls: HashMap<CallId, usize>,
    questions: HashMap<QuestionId, usize>,
    sub_agents: HashMap<CallId, usize>,
    pub plan: Option<WorkingPlan>,
    pub doing: Doing,
    /// The event up to which it is folded.
    pub seq: u64,
    pub model: Option<String>,
    pub changed_files: BTreeMap<String, (usize, usize)>,
    /// Commands that run in its background.
    pub processes: BTreeMap<CallId, Process>,
    limits: Option<WindowLimits>,
    context_tokens: u64,
    segments: u32,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            calls: HashMap::new(),
            questions: HashMap::new(),
            sub_agents: HashMap::new(),
            plan: None,
            doing: Doing::Nothing,
            seq: 0,
            model: None,
            changed_files: BTreeMap::new(),
            processes: BTreeMap::new(),
            limits: None,
            context_tokens: 0,
            segments: 0,
        }
    }
}

impl Conversation {
    /// Adds an event.
    pub fn apply(&mut self, record: &Record) {
        self.seq = record.seq;
        match &record.event {
            Event::TaskCreated(created) => self.create(record, created),
            Event::AgentStart(start) => {
                self.model = Some(start.model.clone());
                self.limits = WindowLimits::of_segment(start).or(self.limits);
                self.segments += 1;
            }
            Event::AgentEnd(result) => self.end(record, result),
            Event::StatusChanged(change) => self.move_to(record, change),
            Event::PromptChanged(changed) => self.model = Some(changed.model.clone()),
            Event::LlmRequest(request) => {
                self.context_tokens = request.estimated_tokens;
                self.doing = Doing::Thinking { since: record.at, request: record.seq };
            }
            Event::LlmResponse(response) => self.reply(record, response),
            Event::RiskCheck(check) => {
                self.change_call(check.call, |call| call.check = Some(check.clone()));
            }
            Event::ToolCall(started) => self.change_call(started.call, |call| {
                call.started_at = Some(record.at);
                call.abandoned = None;
                call.arguments = started.arguments.clone();
            }),
            Event::ToolResult(result) => self.call_ended(record, result),
            Event::QuestionAsked(question) => self.ask(record, question),
            Event::QuestionAnswered(answered) => {
                self.settle(answered.question, AskingState::Answered(answered.answer.clone()));
            }
            Event::QuestionClosed(closed) => {
                self.settle(closed.question, AskingState::Closed(closed.reason.clone()));
            }
            Event::InjectionReceived(injection) => self.injection(record, injection),
            Event::PlanUpdated(plan) => self.change_plan(record, plan),
            Event::DeliverablePublished(deliverable) => {
                self.push(record, Body::Deliverable(Box::new(deliverable.clone())));
            }
            Event::SubAgentSpawn(spawn) => {
                self.sub_agents.insert(spawn.call, self.entries.len());
                self.push(record, Body::SubAgent { spawn: Box::new(spawn.clone()), end: None });
            }
            Event::SubAgentComplete(complete) => self.sub_agent_ended(complete),
            Event::CompactionStart(_) => self.doing = Doing::Compacting { since: record.at },
            Event::CompactionEnd(end) => {
                self.doing = Doing::Nothing;
                self.context_tokens = end.tokens_after;
            }
            Event::CommandExited(exited) => drop(self.processes.remove(&exited.call)),
            Event::SandboxLost(_) | Event::SandboxEnded(_) => self.processes.clear(),
            // The others say what there is to say of them in a note; what that is stands beside their bodies.
            _ => {}
        }
        if let Some(Note { text, detail, is_warning }) = record.event.note() {
            let tone = if is_warning { Tone::Warning } else { Tone::Quiet };
            self.note(record, tone, text, detail);
        }
    }

    /// Adds what was committed to a task since the last time, and shows each entry of its journal.
    pub fn catch_up(
        &mut self,
        coordinator: &Coordinator,
        task: TaskId,
        mut see: impl FnMut(JournalEntry),
    ) -> Result<(), Error> {
        loop {
            let page = coordinator.feed().readable(task, self.seq)?;
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                match &entry {
                    JournalEntry::Event(record) => self.apply(record),
                    JournalEntry::Damaged(damage) => self.damage(damage),
                }
                see(entry);
            }
        }
    }

    /// Adds the place of something that cannot be read. What a call came to may have stood there.
    fn damage(&mut self, damage: &Damage) {
        self.seq = damage.last;
        self.doing = Doing::Nothing;
        self.abandon_calls(Abandoned::Damaged);
        // When it was is not known, and not shown.
        let at = self.entries.last().map_or(Timestamp::UNIX_EPOCH, |entry| entry.at);
        let body = Body::Damaged(damage.clone());
        self.entries.push(Entry { pos: 0, task: damage.task, at, body, drawn: None });
    }

    fn create(&mut self, record: &Record, created: &TaskCreated) {
        let by = created.user_id.clone().unwrap_or_default();
        let mut text = created.command.goal.clone();
        for constraint in &created.command.constraints {
            text.push_str(&format!("\n- {constraint}"));
        }
        let pictures = created.pictures.clone();
        self.push(record, Body::Said { by, text, kind: Saying::Goal, pictures });
    }

    fn ask(&mut self, record: &Record, question: &Question) {
        self.questions.insert(question.id, self.entries.len());
        let asking = Asking { question: question.clone(), state: AskingState::Open };
        self.push(record, Body::Question(Box::new(asking)));
    }

    fn change_plan(&mut self, record: &Record, plan: &WorkingPlan) {
        let before = self.plan.as_ref().map(WorkingPlan::done);
        if before != Some(plan.done()) {
            let text = format!("Plan {}/{}", plan.done(), plan.steps.len());
            self.note(record, Tone::Quiet, text, plan.current_focus.clone());
        }
        self.plan = Some(plan.clone());
    }

    fn sub_agent_ended(&mut self, complete: &SubAgentComplete) {
        let found = self.sub_agents.get(&complete.call).copied();
        self.change(found, |body| {
            if let Body::SubAgent { end, .. } = body {
                *end = Some(Box::new(complete.clone()));
            }
        });
    }

    fn push(&mut self, record: &Record, body: Body) {
        let Record { pos, task, at, .. } = *record;
        self.entries.push(Entry { pos, task, at, body, drawn: None });
    }

    fn note(&mut self, record: &Record, tone: Tone, text: String, detail: Option<String>) {
        let detail = detail.filter(|detail| !detail.trim().is_empty());
        self.push(record, Body::Note { tone, text, detail });
    }

    fn reply(&mut self, record: &Record, response: &LlmResponse) {
        self.doing = Doing::Nothing;
        self.context_tokens = response.usage.input_tokens + response.usage.output_tokens;
        let has_thoughts = response.reasoning.as_ref().is_some_and(|one| !one.text().is_empty());
        if has_thoughts || !response.text.trim().is_empty() {
            self.push(record, Body::Reply(Box::new(response.clone())));
        }
        for request in &response.calls {
            let raw = || Value::String(request.arguments.clone());
            let call = Call {
                id: request.id,
                tool: request.name.clone(),
                arguments: serde_json::from_str(&request.arguments).unwrap_or_else(|_| raw()),
                check: None,
                started_at: None,
                outcome: None,
                abandoned: None,
                duration_ms: 0,
                answered: None,
            };
            self.calls.insert(request.id, self.entries.len());
            self.push(record, Body::Call(Box::new(call)));
        }
    }

    fn change(&mut self, index: Option<usize>, change: impl FnOnce(&mut Body)) {
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            change(&mut entry.body);
            entry.drawn = None;
        }
    }

    fn change_call(&mut self, id: CallId, change: impl FnOnce(&mut Call)) {
        let found = self.calls.get(&id).copied();
        self.change(found, |body| {
            if let Body::Call(call) = body {
                change(call);
            }
        });
    }

    fn call_ended(&mut self, record: &Record, result: &ToolResult) {
        for fact in &result.outcome.facts {
            if let Fact::BackgroundStarted { call, command } = fact {
                let process = Process { command: command.clone(), since: record.at };
                self.processes.insert(*call, process);
            }
            if let Fact::FileChanged { path, diff, .. } = fact
                && !is_own_file(path)
            {
                let (added, removed) = diff.as_deref().map(super::diff::counts).unwrap_or_default();
                let entry = self.changed_files.entry(path.clone()).or_default();
                *entry = (entry.0 + added, entry.1 + removed);
            }
        }
        self.change_call(result.call, |call| {
            call.outcome = Some(result.outcome.clone());
            call.duration_ms = result.duration_ms;
        });
    }

    fn settle(&mut self, question: QuestionId, state: AskingState) {
        let found = self.questions.get(&question).copied();
        let mut waiting = None;
        self.change(found, |body| {
            if let Body::Question(asking) = body {
                waiting = asking.question.call;
                asking.state = state.clone();
            }
        });
        if let (Some(call), AskingState::Answered(answer)) = (waiting, state) {
            self.change_call(call, |call| call.answered = Some(answer));
        }
    }

    fn injection(&mut self, record: &Record, injection: &Injection) {
        let (by, text) = (injection.by.clone(), injection.content.clone());
        let pictures = injection.pictures.clone();
        match (injection.injection_type, &injection.control) {
            (InjectionType::UserMessage, _)
            | (InjectionType::SystemControl, Some(Control::Steer { .. })) => {
                self.push(record, Body::Said { by, text, kind: Saying::Message, pictures });
            }
            (InjectionType::ExternalEvent, _) => {
                self.push(record, Body::Said { by, text, kind: Saying::Event, pictures });
            }
            // The question shows its answer.
            (InjectionType::HitlResponse, _) => {}
            (InjectionType::SystemControl, Some(control)) => {
                if let Some(words) = control_words(control) {
                    let text = if by.is_empty() { words } else { format!("{words} by {by}") };
                    self.note(record, Tone::Quiet, text, None);
                }
            }
            (InjectionType::SystemControl, None) => {
                self.note(
                    record,
                    Tone::Quiet,
                    "Notified of what changed around it".to_owned(),
                    Some(text),
                );
            }
        }
    }

    fn end(&mut self, record: &Record, result: &TaskResult) {
        self.doing = Doing::Nothing;
        if result.status == ResultStatus::Completed {
            self.push(record, Body::Ended(Box::new(result.clone())));
        }
    }

    /// No result is waited for of those calls that have none.
    fn abandon_calls(&mut self, why: Abandoned) {
        for entry in &mut self.entries {
            if let Body::Call(call) = &mut entry.body
                && call.outcome.is_none()
            {
                call.abandoned = call.abandoned.or(Some(why));
                entry.drawn = None;
            }
        }
    }

    fn move_to(&mut self, record: &Record, change: &StatusChanged) {
        self.doing = Doing::Nothing;
        if change.to.is_terminal() {
            self.abandon_calls(Abandoned::TaskEnded);
        }
        let detail = change.detail.clone();
        match (change.to, change.reason) {
            (TaskStatus::Failed, _) => match &change.error {
                Some(error) => self.push(record, Body::Failure(Box::new(error.clone()))),
                None => self.note(record, Tone::Bad, "Failed".to_owned(), detail),
            },
            (TaskStatus::Blocked, StatusReason::Question | StatusReason::Budget) => {}
            (TaskStatus::Blocked, reason) => {
                self.note(record, Tone::Warning, format!("Blocked: {}", words(reason)), detail);
            }
            (TaskStatus::Paused, StatusReason::AwaitingMessage) => {}
            (TaskStatus::Paused, reason) => {
                self.note(record, Tone::Quiet, format!("Paused: {}", words(reason)), detail);
            }
            (TaskStatus::Cancelled, _) => {
                self.note(record, Tone::Quiet, "Cancelled".to_owned(), detail);
            }
            (TaskStatus::Retrying, _) => {
                self.note(record, Tone::Quiet, "Trying again".to_owned(), detail);
            }
            (TaskStatus::Running, _) if self.segments > 0 => {
                self.note(record, Tone::Quiet, "Resumed".to_owned(), detail);
            }
            (TaskStatus::Reviewing, _) => {
                self.note(record, Tone::Quiet, "In review".to_owned(), detail);
            }
            (
                TaskStatus::Todo | TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Done,
                _,
            ) => {}
        }
    }

    /// How many calls were refused: they came to an end and never started.
    pub fn refused_calls(&self) -> usize {
        let is_refused = |body: &Body| matches!(body, Body::Call(call) if call.started_at.is_none() && call.outcome.is_some());
        self.entries.iter().filter(|entry| is_refused(&entry.body)).count()
    }

    /// What of its journal cannot be read.
    pub fn damaged(&self) -> impl Iterator<Item = &Damage> {
        self.entries.iter().filter_map(|entry| {
            let Body::Damaged(damage) = &entry.body else { return None };
            Some(damage)
        })
    }

    /// How full the context is.
    pub fn gauge(&self) -> Option<Gauge> {
        self.limits.filter(|_| self.context_tokens > 0).map(|one| one.gauge(self.context_tokens))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has asked something that it has read no answer to.
    pub fn is_asking(&self) -> bool {
        let is_open = |body: &Body| matches!(body, Body::Question(asking) if matches!(asking.state, AskingState::Open));
        self.entries.iter().any(|entry| is_open(&entry.body))
    }

    /// Whether a sub-agent has not come to its end for it.
    pub fn waits_for_sub_agents(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.body, Body::SubAgent { end: None, .. }))
    }

    /// The calls that have started and not ended.
    pub fn running_calls(&self) -> impl Iterator<Item = CallId> {
        self.entries.iter().filter_map(|entry| match &entry.body {
            Body::Call(call) if call.is_running() => Some(call.id),
            _ => None,
        })
    }

    /// The entries from one on, each as `draw` draws it. What has not changed is not drawn again, except for those
    /// that `depends` on more than the entry itself.
    pub fn fragments(
        &mut self,
        from: usize,
        depends: impl Fn(&Body) -> bool,
        draw: impl Fn(&Entry) -> maud::Markup,
    ) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        for index in from..self.entries.len() {
            let entry = &self.entries[index];
            let fragment = match &entry.drawn {
                Some(fragment) if !depends(&entry.body) => fragment.clone(),
                _ => Fragment::new(entry.key(), draw(entry)),
            };
            self.entries[index].drawn = Some(fragment.clone());
            fragments.push(fragment);
        }
        fragments
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
