//! Events to what the model sees: the transcript as a fold of the journal.
//!
//! Invariants:
//! - Append-only: within an epoch a transcript only grows, byte for byte.
//! - A message from outside never stands between a reply and the results of its calls: it is held
//!   until the last of them has one.

use std::collections::HashMap;
use std::sync::Arc;

use windlass_core::event::Event;
use windlass_core::id::CallId;
use windlass_core::message::{Message, Usage};
use windlass_core::text::BYTES_PER_TOKEN;
use windlass_model::{Model, Transcript};

/// The conversation so far, in the provider's own form.
pub struct Context {
    model: Arc<dyn Model>,
    transcript: Option<Transcript>,
    open: HashMap<CallId, (String, String)>,
    held: Vec<String>,
    measured: Option<Measured>,
}

/// The provider's last word on how large the conversation is.
struct Measured {
    tokens: u64,
    bytes: usize,
}

impl Context {
    /// An empty context; the first `agent_start` opens it.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model, transcript: None, open: HashMap::new(), held: Vec::new(), measured: None }
    }

    /// What is sent to the model; `None` before the first `agent_start`.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.transcript.as_ref()
    }

    /// How large the conversation is: the provider's last report plus what came after it.
    pub fn estimated_tokens(&self) -> u64 {
        let bytes = self.transcript.as_ref().map_or(0, Transcript::bytes);
        match &self.measured {
            Some(known) => {
                let newer = bytes.saturating_sub(known.bytes) as u64;
                known.tokens + newer.div_ceil(BYTES_PER_TOKEN)
            }
            None => (bytes as u64).div_ceil(BYTES_PER_TOKEN),
        }
    }

    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AgentStart(start) => {
                if let Some(prelude) = &start.prelude {
                    self.transcript = Some(self.model.transcript(prelude));
                    self.measured = None;
                }
                for message in &start.context {
                    self.push(message);
                }
                self.release();
            }
            Event::LlmResponse(response) => {
                self.open = response
                    .calls
                    .iter()
                    .map(|call| (call.id, (call.provider_id.clone(), call.name.clone())))
                    .collect();
                let (text, calls) = (response.text.clone(), response.calls.clone());
                self.push(&Message::Assistant { text, calls });
                self.measure(&response.usage);
            }
            Event::ToolResult(result) => {
                if let Some((provider_id, name)) = self.open.remove(&result.call) {
                    let text = result.outcome.text.clone();
                    let is_error = result.outcome.is_error();
                    self.push(&Message::Tool { provider_id, name, text, is_error });
                }
                self.release();
            }
            Event::InjectionReceived(injection) => self.hold(injection.text_for_model()),
            Event::DoomLoopDetected(detected) => self.hold(Some(detected.message.clone())),
            Event::CommandExited(exited) => self.hold(Some(exited.message.clone())),
            Event::SandboxLost(lost) => {
                self.hold((!lost.message.is_empty()).then(|| lost.message.clone()));
            }
            Event::TaskCreated(_)
            | Event::StatusChanged(_)
            | Event::LlmRequest(_)
            | Event::RiskCheck(_)
            | Event::ToolCall(_)
            | Event::QuestionAsked(_)
            | Event::QuestionAnswered(_)
            | Event::QuestionClosed(_)
            | Event::PlanUpdated(_)
            | Event::DeliverablePublished(_)
            | Event::ModeChanged(_)
            | Event::SandboxStarted(_)
            | Event::AgentEnd(_) => {}
        }
    }

    fn hold(&mut self, text: Option<String>) {
        self.held.extend(text);
        self.release();
    }

    fn release(&mut self) {
        // What arrives before the conversation has begun follows its opening.
        if self.open.is_empty() && self.transcript.is_some() {
            for text in std::mem::take(&mut self.held) {
                self.push(&Message::User { text });
            }
        }
    }

    fn push(&mut self, message: &Message) {
        if let Some(transcript) = &mut self.transcript {
            transcript.push(message);
        }
    }

    fn measure(&mut self, usage: &Usage) {
        if usage.input_tokens > 0 {
            let bytes = self.transcript.as_ref().map_or(0, Transcript::bytes);
            let tokens = usage.input_tokens + usage.output_tokens;
            self.measured = Some(Measured { tokens, bytes });
        }
    }
}
