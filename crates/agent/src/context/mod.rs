//! Events to what the model sees: the transcript as a fold of the journal.
//!
//! Invariants:
//! - Append-only: within an epoch a transcript only grows, byte for byte. An epoch ends with a
//!   compaction, with the notes saved from a part of a refused context, or with other tools at the start of
//!   a segment; what the next one begins with follows from the journal alone.
//! - A message from outside never stands between a reply and the results of its calls: it is held
//!   until the last of them has one.
//! - A call is never parted from its result: turns stay or go as a whole.

mod turns;
mod epoch;
mod header;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use windlass_core::compaction::MAX_FLUSH_TURNS;
use windlass_core::event::{Event, LlmResponse};
use windlass_core::id::{CallId, QuestionId};
use windlass_core::injection::{Injection, InjectionType};
use windlass_core::message::{Finish, Message, Prelude, ToolRequest, ToolSpec, Usage};
use windlass_core::outcome::Fact;
use windlass_core::text::BYTES_PER_TOKEN;
use windlass_model::{Model, Transcript};
use windlass_skills::followed;

pub use epoch::tried;
pub use header::Header;
pub use turns::{Entry, Turn};

use crate::prompt::{CUT, FLUSHED, WITHHELD};

/// The conversation so far, in the provider's own form and as the turns it is made from.
pub struct Context {
    model: Arc<dyn Model>,
    transcript: Option<Transcript>,
    prelude: Option<Prelude>,
    /// The messages the task opened with; they stay for ever.
    opening: Vec<Message>,
    /// What earlier compactions left.
    header: Header,
    /// The turns of this epoch.
    turns: Vec<Turn>,
    /// Skills that it was given to follow on the way, by itself or by a person.
    skills: BTreeSet<String>,
    /// Replies of the whole task.
    replies: usize,
    open: HashMap<CallId, ToolRequest>,
    held: Vec<Held>,
    /// Whether the agent is asked to save its notes.
    flushing: bool,
    /// Replies with calls while it is.
    flush_turns: u32,
    questions: HashMap<QuestionId, String>,
    measured: Option<Measured>,
    /// Tokens per byte, as the provider last counted.
    rate: f64,
    /// How large this epoch was when it began.
    opened_bytes: usize,
}

/// A message that waits for its place.
struct Held {
    text: String,
    /// What stays of it word for word, when its turn goes.
    pinned: Option<String>,
    /// Whether it goes with the next compaction, whatever stays.
    passing: bool,
}

/// The provider's last word on how large the conversation is.
struct Measured {
    tokens: u64,
    bytes: usize,
}

/// Fewer tokens per byte than this are not believed: an estimate must not be too small.
const LEAST_RATE: f64 = 1.0 / BYTES_PER_TOKEN as f64;
/// More tokens per byte than this cannot be.
const MOST_RATE: f64 = 1.0;

impl Context {
    /// An empty context; the first `agent_start` opens it.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            transcript: None,
            prelude: None,
            opening: Vec::new(),
            header: Header::default(),
            turns: Vec::new(),
            skills: BTreeSet::new(),
            replies: 0,
            open: HashMap::new(),
            held: Vec::new(),
            flushing: false,
            flush_turns: 0,
            questions: HashMap::new(),
            measured: None,
            rate: LEAST_RATE,
            opened_bytes: 0,
        }
    }

    /// What is sent to the model; `None` before the first `agent_start`.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.transcript.as_ref()
    }

    /// How large the conversation is: the provider's last report plus what came after it (O-17).
    pub fn estimated_tokens(&self) -> u64 {
        let bytes = self.transcript.as_ref().map_or(0, Transcript::bytes);
        match &self.measured {
            Some(known) => known.tokens + self.tokens(bytes.saturating_sub(known.bytes)),
            None => self.tokens(bytes),
        }
    }

    /// How many tokens so many bytes are, by the provider's last count.
    pub fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 * self.rate).ceil() as u64
    }

    /// How many bytes so many tokens are.
    pub fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 / self.rate) as usize
    }

    /// How large this epoch was when it began.
    pub fn floor_tokens(&self) -> u64 {
        self.tokens(self.opened_bytes)
    }

    /// The tools that the model is shown; `None` before the first `agent_start`.
    pub fn tools(&self) -> Option<&[ToolSpec]> {
        self.prelude.as_ref().map(|prelude| prelude.tools.as_slice())
    }

    /// The turns of this epoch, oldest first.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Skills that the agent was given to follow on the way: it read them, or a person called for them.
    pub fn skills(&self) -> &BTreeSet<String> {
        &self.skills
    }

    /// The messages that stay for ever.
    pub fn opening(&self) -> &[Message] {
        &self.opening
    }

    /// What stands for earlier epochs.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many bytes the system prompt and the tools take.
    pub fn prelude_bytes(&self) -> usize {
        self.prelude.as_ref().map_or(0, |prelude| self.model.transcript(prelude).bytes())
    }

    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AgentStart(start) => {
                let first = self.transcript.is_none();
                if let Some(prelude) = &start.prelude {
                    self.transcript = Some(self.behind(prelude));
                    self.prelude = Some(prelude.clone());
                    self.measured = None;
                }
                for message in &start.context {
                    self.open_with(message);
                }
                if first {
                    self.opened_bytes = self.transcript.as_ref().map_or(0, Transcript::bytes);
                }
                self.release();
            }
            Event::LlmResponse(response) => {
                self.replies += 1;
                self.open = response.calls.iter().map(|call| (call.id, call.clone())).collect();
                let (text, calls) = (response.text.clone(), response.calls.clone());
                let saved = self.flushing && calls.is_empty();
                let unfinished = unfinished(response).filter(|_| !saved);
                self.measure(&response.usage);
                self.begin_turn(Message::Assistant { text, calls });
                self.counted(&response.usage);
                self.flush_turns += u32::from(self.flushing);
                if saved {
                    self.flushed();
                }
                if let Some(told) = unfinished {
                    self.hold(Held::plain(told.trim_end()));
                }
            }
            Event::ToolResult(result) => {
                if let Some(call) = self.open.remove(&result.call) {
                    let text = result.outcome.text.clone();
                    let is_error = result.outcome.is_error();
                    let (provider_id, name) = (call.provider_id, call.name);
                    let message = Message::Tool { provider_id, name, text, is_error };
                    self.add(Entry { message, call: Some(result.call), passing: false });
                }
                self.learn(&result.outcome.facts);
                // As the state counts: what follows is work again, and the agent has to know.
                if self.flushing && self.open.is_empty() && self.flush_turns >= MAX_FLUSH_TURNS {
                    self.flushed();
                }
                self.release();
            }
            Event::InjectionReceived(injection) => self.injected(injection),
            Event::DoomLoopDetected(detected) => self.hold(Held::plain(&detected.message)),
            Event::CommandExited(exited) => self.hold(Held::plain(&exited.message)),
            Event::SandboxLost(lost) if lost.message.is_empty() => {}
            Event::SandboxLost(lost) => self.hold(Held::plain(&lost.message)),
            Event::MemoryFlush(flush) => {
                (self.flushing, self.flush_turns) = (true, 0);
                if let Some(excerpt) = &flush.excerpt {
                    self.show_only(excerpt);
                }
                self.hold(Held::passing(&flush.message));
            }
            Event::CompactionStart(_) => self.flushing = false,
            Event::CompactionEnd(end) => self.begin_epoch(end),
            Event::PlanUpdated(plan) => self.header.plan = Some(plan.clone()),
            Event::QuestionAsked(question) => {
                self.questions.insert(question.id, question.question.clone());
            }
            Event::SubAgentComplete(complete) => self.header.changed(&complete.files_changed),
            Event::TaskCreated(_)
            | Event::StatusChanged(_)
            | Event::LlmRequest(_)
            | Event::RiskCheck(_)
            | Event::ToolCall(_)
            | Event::QuestionAnswered(_)
            | Event::QuestionClosed(_)
            | Event::DeliverablePublished(_)
            | Event::ModeChanged(_)
            | Event::SandboxStarted(_)
            | Event::SandboxEnded(_)
            | Event::CompactionProgress(_)
            | Event::SubAgentSpawn(_)
            | Event::BudgetHit(_)
            | Event::AgentEnd(_) => {}
        }
    }

    /// Notes are saved, or were not in the turns there are for it: the agent goes on with its work.
    fn flushed(&mut self) {
        self.flushing = false;
        self.hold(Held::passing(FLUSHED.trim_end()));
    }

    /// Earlier conversations begin with turns of their own; the first message is what stays.
    fn open_with(&mut self, message: &Message) {
        match message {
            Message::Assistant { .. } => {
                self.replies += 1;
                self.begin_turn(message.clone());
            }
            Message::User { .. } | Message::Tool { .. } => {
                self.add(Entry { message: message.clone(), call: None, passing: false });
            }
        }
    }

    fn begin_turn(&mut self, message: Message) {
        self.push(&message);
        let entry = Entry { message, call: None, passing: false };
        self.turns.push(Turn { entries: vec![entry], said: Vec::new(), flush: self.flushing });
    }

    fn add(&mut self, entry: Entry) {
        self.push(&entry.message);
        match self.turns.last_mut() {
            Some(turn) => turn.entries.push(entry),
            None => self.opening.push(entry.message),
        }
    }

    fn injected(&mut self, injection: &Injection) {
        if injection.injection_type == InjectionType::UserMessage {
            self.skills.extend(followed(&injection.content).map(str::to_owned));
        }
        let Some(text) = injection.text_for_model() else { return };
        let pinned =
            match injection.injection_type {
                InjectionType::UserMessage => Some(text.clone()),
                InjectionType::HitlResponse => {
                    let asked = injection.question.and_then(|id| self.questions.get(&id));
                    Some(asked.map_or_else(
                        || text.clone(),
                        |asked| format!("You asked: {asked}\n{text}"),
                    ))
                }
                InjectionType::ExternalEvent | InjectionType::SystemControl => None,
            };
        self.hold(Held { text, pinned, passing: false });
    }

    fn hold(&mut self, held: Held) {
        self.held.push(held);
        self.release();
    }

    fn release(&mut self) {
        // What arrives before the conversation has begun follows its opening.
        if !self.open.is_empty() || self.transcript.is_none() {
            return;
        }
        for Held { text, pinned, passing } in std::mem::take(&mut self.held) {
            self.add(Entry { message: Message::User { text }, call: None, passing });
            if let (Some(pinned), Some(turn)) = (pinned, self.turns.last_mut()) {
                turn.said.push(pinned);
            }
        }
    }

    fn push(&mut self, message: &Message) {
        if let Some(transcript) = &mut self.transcript {
            transcript.push(message);
        }
    }

    fn learn(&mut self, facts: &[Fact]) {
        for fact in facts {
            match fact {
                Fact::FileChanged { path, .. } => self.header.changed(std::slice::from_ref(path)),
                Fact::SkillRead { name } => drop(self.skills.insert(name.clone())),
                Fact::FileRead { .. }
                | Fact::Plan(_)
                | Fact::Published(_)
                | Fact::BackgroundStarted { .. }
                | Fact::WorkingDirectory { .. } => {}
            }
        }
    }

    /// Learns how the provider counts, from the size of the prompt it has just reported.
    fn measure(&mut self, usage: &Usage) {
        let bytes = self.transcript.as_ref().map_or(0, Transcript::bytes);
        if usage.input_tokens > 0 && bytes > 0 {
            let rate = usage.input_tokens as f64 / bytes as f64;
            self.rate = rate.clamp(LEAST_RATE, MOST_RATE);
        }
    }

    fn counted(&mut self, usage: &Usage) {
        if usage.input_tokens > 0 {
            let bytes = self.transcript.as_ref().map_or(0, Transcript::bytes);
            let tokens = usage.input_tokens + usage.output_tokens;
            self.measured = Some(Measured { tokens, bytes });
        }
    }
}

impl Held {
    fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), pinned: None, passing: false }
    }

    fn passing(text: &str) -> Self {
        Self { text: text.to_owned(), pinned: None, passing: true }
    }
}

/// What an agent is told whose last word did not come whole.
fn unfinished(response: &LlmResponse) -> Option<&'static str> {
    match response.finish {
        _ if !response.calls.is_empty() => None,
        Finish::Length => Some(CUT),
        Finish::ContentFilter => Some(WITHHELD),
        Finish::Stop | Finish::ToolCalls => None,
    }
}
