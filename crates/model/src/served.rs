//! A model that a server answers for, in the wire of that server.

use std::sync::atomic::AtomicBool;

use windlass_core::message::Prelude;
use windlass_core::reasoning::Effort;

use crate::http::Endpoint;
use crate::transcript::TranscriptForm;
use crate::{
    BoxFuture, EffortForm, Efforts, Error, Model, ModelName, Options, ReasoningUse, Reply,
    StreamEvent, Transcript, Vision, Wire, anthropic, chat, responses,
};

/// A model that an endpoint serves.
pub(crate) struct ServedModel {
    pub endpoint: Endpoint,
    /// How much it should think; its provider decides where that is not said.
    pub effort: Option<Effort>,
    pub effort_form: EffortForm,
    /// The provider's words for efforts.
    pub efforts: Efforts,
    /// What becomes of its reasoning.
    pub reasoning: ReasoningUse,
    pub vision: Vision,
    /// Whether it reasons at all; assumed where nothing is known.
    pub reasons: bool,
    /// The most tokens it can answer with, where that is known.
    pub max_output: Option<u32>,
    /// Whether its server has refused to summarize reasoning for this account.
    pub summaries_refused: AtomicBool,
}

impl ServedModel {
    /// The provider's word for the effort that is wanted.
    pub fn effort_word(&self) -> Option<&'static str> {
        let effort = self.effort?;
        self.efforts.iter().find(|(known, _)| *known == effort).map(|(_, word)| *word)
    }
}

impl Model for ServedModel {
    fn name(&self) -> &ModelName {
        &self.endpoint.name
    }

    fn transcript(&self, prelude: &Prelude) -> Transcript {
        let (wire, model) = (self.endpoint.wire, self.endpoint.name.to_string());
        let (reasoning, vision) = (self.reasoning, self.vision);
        Transcript::new(TranscriptForm { wire, model, reasoning, vision }, prelude)
    }

    fn reply<'a>(
        &'a self,
        transcript: &'a Transcript,
        options: &'a Options,
        live: &'a mut (dyn FnMut(StreamEvent) + Send),
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        transcript.must_be(self.endpoint.wire);
        match self.endpoint.wire {
            Wire::Chat => Box::pin(chat::ask(self, transcript, options, live)),
            Wire::Responses => Box::pin(responses::ask(self, transcript, options, live)),
            Wire::Anthropic => Box::pin(anthropic::ask(self, transcript, options, live)),
        }
    }
}
