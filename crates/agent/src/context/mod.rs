//! From events to what the model sees: the transcript as a fold of the journal.
//!
//! Invariants:
//! - Append-only: within an epoch a transcript only grows, byte for byte. An epoch ends with a
//!   compaction, with the notes saved from a part of a refused context, or with other tools at the start of
//!   a segment; what the next one begins with follows from the journal alone.
//! - A message from outside never comes between a reply and the results of its calls: it is queued
//!   until the last of them has one.
//! - A call is never separated from its result: turns stay or go as a whole.
//! - What the task's state knows is not kept here a second time: `apply` is given the state.

mod turns;
mod epoch;
mod header;
mod estimate;
mod pictures;
mod queued;
mod size;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_core::event::{AgentStart, Event, LlmResponse, ToolResult};
use windlass_core::id::CallId;
use windlass_core::injection::{Injection, InjectionType};
use windlass_core::message::{Message, Prelude, ToolRequest, ToolSpec};
use windlass_core::outcome::{CallEnding, Fact};
use windlass_core::state::{TaskState, Unfinished};
use windlass_model::{Model, PictureSource, Transcript};
use windlass_skills::skill_of_goal;

pub use epoch::hypothetical;
pub use estimate::Estimate;
pub use header::Header;
pub use size::ContextSize;
pub use turns::{ResultOf, Turn, TurnMessage, Turns};

use queued::QueuedMessage;

use crate::conversation::ConversationStart;
use crate::prompt::{self, CUT, FLUSHED, NOT_RUN, WITHHELD};

/// The conversation so far, in the provider's own form and as the turns it is made from.
pub struct Context {
    model: Arc<dyn Model>,
    pictures: PictureSource,
    transcript: Option<Transcript>,
    prelude: Option<Prelude>,
    turns: Turns,
    /// Skills that it read, or that a person called for.
    skills: BTreeSet<String>,
    queued: Vec<QueuedMessage>,
    estimate: Estimate,
    /// How large this epoch was when it began.
    opened_bytes: usize,
    /// Whether the server has refused reasoning in this epoch.
    reasoning_refused: bool,
}

impl Context {
    /// An empty context; the first `agent_start` opens it.
    pub fn new(model: Arc<dyn Model>, pictures: PictureSource) -> Self {
        Self {
            model,
            pictures,
            transcript: None,
            prelude: None,
            turns: Turns::default(),
            skills: BTreeSet::new(),
            queued: Vec::new(),
            estimate: Estimate::default(),
            opened_bytes: 0,
            reasoning_refused: false,
        }
    }

    /// What is sent to the model; `None` before the first `agent_start`. It leaves this crate's hands only
    /// through [`crate::journal::Flushed`].
    pub(crate) fn transcript(&self) -> Option<&Transcript> {
        self.transcript.as_ref()
    }

    /// Whether the next request would hold what the model thought earlier.
    pub fn holds_reasoning(&self) -> bool {
        self.transcript.as_ref().is_some_and(Transcript::holds_reasoning)
    }

    /// Whether the conversation has begun.
    pub fn has_begun(&self) -> bool {
        self.transcript.is_some()
    }

    /// How many messages would be sent, and their hash.
    pub fn fingerprint(&self) -> (usize, String) {
        self.transcript.as_ref().map_or((0, String::new()), |sent| (sent.len(), sent.hash()))
    }

    /// How much of the window it takes.
    pub fn size(&self) -> ContextSize<'_> {
        ContextSize { context: self }
    }

    /// How the provider counts.
    pub fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    /// The tools that the model is shown; `None` before the first `agent_start`.
    pub fn tools(&self) -> Option<&[ToolSpec]> {
        self.prelude.as_ref().map(|prelude| prelude.tools.as_slice())
    }

    /// The conversation that is sent.
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Skills that the agent was given to follow on the way: it read them, or a person called for them.
    pub fn skills(&self) -> &BTreeSet<String> {
        &self.skills
    }

    /// The whole conversation, as a follow-up takes it over. Servers insist on a result for each call, so a
    /// call that never got one is said not to have run.
    pub(crate) fn conversation(&self, state: &TaskState) -> ConversationStart {
        let mut messages: Vec<_> = self.turns.messages(state).map(Cow::into_owned).collect();
        let open = state.last_reply.open_calls.iter().map(|open| &open.request);
        messages.extend(open.map(|call| Message::Tool {
            provider_id: call.provider_id.clone(),
            name: call.name.clone(),
            text: NOT_RUN.trim_end().to_owned(),
            is_error: true,
        }));
        ConversationStart {
            messages,
            said: self.turns.human_words().cloned().collect(),
            skills: self.skills.iter().cloned().collect(),
        }
    }

    /// Applies one event, given the state after it.
    pub fn apply(&mut self, event: &Event, state: &TaskState) {
        match event {
            Event::AgentStart(start) => self.start(start, state),
            Event::PromptChanged(changed) => {
                if let Some(prelude) = &changed.prelude {
                    self.set_prelude(prelude, state);
                }
                if !changed.message.is_empty() {
                    self.queue(QueuedMessage::plain(&changed.message), state);
                }
            }
            Event::LlmResponse(response) => self.reply(response, state),
            Event::ToolResult(result) => self.result(result, state),
            Event::InjectionReceived(injection) => self.inject(injection, state),
            Event::DoomLoopDetected(detected) => {
                self.queue(QueuedMessage::plain(&detected.message), state);
            }
            Event::CommandExited(exited) => {
                self.queue(QueuedMessage::plain(&exited.message), state)
            }
            Event::SandboxLost(lost) if lost.message.is_empty() => {}
            Event::SandboxLost(lost) => self.queue(QueuedMessage::plain(&lost.message), state),
            Event::MemoryFlush(flush) => {
                if let Some(excerpt) = &flush.excerpt {
                    self.show_only(excerpt, state);
                }
                self.queue(QueuedMessage::ephemeral(&flush.message), state);
            }
            Event::CompactionEnd(end) => self.begin_epoch(end, state),
            Event::ReasoningDropped(_) => self.drop_reasoning(state),
            Event::PlanAccepted(accepted) => {
                self.queue(QueuedMessage::plain(&accepted.message), state)
            }
            Event::VerificationEnded(ended) if !ended.message.is_empty() => {
                self.queue(QueuedMessage::plain(&ended.message), state);
            }
            Event::SubAgentComplete(complete) => {
                if let Some(verdict) = complete.verdict.as_ref().filter(|verdict| !verdict.approved)
                {
                    let text = prompt::audit_rejected(&verdict.by, &verdict.reason);
                    self.queue(QueuedMessage::plain(&text), state);
                }
            }
            // The model reads nothing of the other kinds.
            _ => {}
        }
    }

    fn start(&mut self, start: &AgentStart, state: &TaskState) {
        let first = self.transcript.is_none();
        if let Some(prelude) = &start.prelude {
            self.set_prelude(prelude, state);
        }
        for message in &start.context {
            self.open_with(message);
        }
        self.turns.pin_earlier_messages(&start.said);
        self.skills.extend(start.followed_skills.iter().cloned());
        if first {
            self.opened_bytes = self.sent_bytes();
        }
        self.release(state);
    }

    /// Has another model read the conversation from now on.
    pub(crate) fn set_model(&mut self, model: Arc<dyn Model>, state: &TaskState) {
        self.model = model;
        if let Some(prelude) = self.prelude.clone() {
            self.set_prelude(&prelude, state);
        }
    }

    /// Begins an epoch with another prelude and the same messages, without what the model thought.
    fn set_prelude(&mut self, prelude: &Prelude, state: &TaskState) {
        self.turns.forget_reasoning();
        self.reasoning_refused = false;
        self.transcript = Some(self.transcript_of(prelude, &self.turns, state));
        self.prelude = Some(prelude.clone());
        self.estimate.forget_count();
    }

    fn reply(&mut self, response: &LlmResponse, state: &TaskState) {
        let (text, calls) = (response.text.clone(), response.calls.clone());
        let saving_notes = state.compaction.reply_saved_notes;
        let saved = saving_notes && calls.is_empty();
        let prompt = self.sent_bytes();
        let reasoning = response.reasoning.clone().filter(|_| !self.reasoning_refused);
        self.begin_turn(Message::Assistant { text, calls, reasoning }, saving_notes);
        self.estimate.learn(&response.usage, prompt, self.sent_bytes());
        if saved {
            self.queue(QueuedMessage::ephemeral(FLUSHED.trim_end()), state);
        }
        match &state.last_reply.unfinished {
            Some(Unfinished::Cut { .. }) => self.queue(QueuedMessage::plain(CUT.trim_end()), state),
            Some(Unfinished::Withheld) => {
                self.queue(QueuedMessage::plain(WITHHELD.trim_end()), state)
            }
            None => {}
        }
    }

    fn result(&mut self, result: &ToolResult, state: &TaskState) {
        if let Some(call) = request(self.turns.recent().last(), result.call) {
            let (provider_id, name) = (call.provider_id.clone(), call.name.clone());
            let (text, is_error) = (result.outcome.text.clone(), result.outcome.is_error());
            let message = Message::Tool { provider_id, name, text, is_error };
            let denied = result.outcome.ending == CallEnding::Denied;
            let call = Some(ResultOf { call: result.call, denied });
            self.add(TurnMessage { message, call, ephemeral: false });
            let pictures = &result.outcome.pictures;
            if !pictures.is_empty() {
                let text = prompt::pictures(&result.tool, pictures);
                self.queued.push(QueuedMessage {
                    pictures: pictures.clone(),
                    ..QueuedMessage::plain(&text)
                });
            }
        }
        for fact in &result.outcome.facts {
            if let Fact::SkillRead { name, .. } = fact {
                self.skills.insert(name.clone());
            }
        }
        // The turns for saving notes are used up: what follows is work again, and the agent has to know.
        let was_saving = self.turns.recent().last().is_some_and(|turn| turn.flush);
        if was_saving && state.last_reply.open_calls.is_empty() && !state.compaction.is_flushing() {
            self.queue(QueuedMessage::ephemeral(FLUSHED.trim_end()), state);
        }
        self.release(state);
    }

    /// Earlier conversations begin with turns of their own; the first message is what stays.
    fn open_with(&mut self, message: &Message) {
        match message {
            Message::Assistant { .. } => self.begin_turn(message.clone(), false),
            Message::User { .. } | Message::Tool { .. } => {
                self.add(TurnMessage { message: message.clone(), call: None, ephemeral: false });
            }
        }
    }

    fn begin_turn(&mut self, message: Message, flush: bool) {
        push(&mut self.transcript, &message);
        self.turns.begin(message, flush);
    }

    fn add(&mut self, entry: TurnMessage) {
        push(&mut self.transcript, &entry.message);
        self.turns.add(entry);
    }

    fn inject(&mut self, injection: &Injection, state: &TaskState) {
        if injection.injection_type == InjectionType::UserMessage {
            self.skills.extend(skill_of_goal(&injection.content).map(str::to_owned));
        }
        if let Some(message) = QueuedMessage::injection(injection, state) {
            self.queue(message, state);
        }
    }

    fn queue(&mut self, message: QueuedMessage, state: &TaskState) {
        self.queued.push(message);
        self.release(state);
    }

    fn release(&mut self, state: &TaskState) {
        // What arrives before the conversation has begun follows its opening.
        if !state.last_reply.open_calls.is_empty() || self.transcript.is_none() {
            return;
        }
        for QueuedMessage { text, pictures, pinned, ephemeral } in std::mem::take(&mut self.queued)
        {
            let message = Message::User { text, pictures };
            self.add(TurnMessage { message, call: None, ephemeral });
            if let Some(pinned) = pinned {
                self.turns.pin(pinned);
            }
        }
    }

    fn sent_bytes(&self) -> usize {
        self.transcript.as_ref().map_or(0, Transcript::text_bytes)
    }
}

/// Before the conversation has begun there is nothing to add to.
fn push(transcript: &mut Option<Transcript>, message: &Message) {
    if let Some(transcript) = transcript {
        transcript.push(message);
    }
}

/// What the reply of a turn asked for by this call.
fn request(turn: Option<&Turn>, id: CallId) -> Option<&ToolRequest> {
    match &turn?.entries.first()?.message {
        Message::Assistant { calls, .. } => calls.iter().find(|call| call.id == id),
        Message::User { .. } | Message::Tool { .. } => None,
    }
}
