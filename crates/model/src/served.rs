//! A model that a server answers for, in the dialect of that server.

use windlass_core::message::Prelude;

use crate::http::Endpoint;
use crate::{
    BoxFuture, Dialect, Error, Model, ModelName, Options, Reply, StreamEvent, Transcript,
    anthropic, openai,
};

/// A model behind an endpoint.
pub(crate) struct ServedModel {
    pub endpoint: Endpoint,
    pub dialect: Dialect,
}

impl Model for ServedModel {
    fn name(&self) -> &ModelName {
        &self.endpoint.name
    }

    fn transcript(&self, prelude: &Prelude) -> Transcript {
        Transcript::new(self.dialect, prelude)
    }

    fn reply<'a>(
        &'a self,
        transcript: &'a Transcript,
        options: &'a Options,
        live: &'a mut (dyn FnMut(StreamEvent) + Send),
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        transcript.must_be(self.dialect);
        match self.dialect {
            Dialect::OpenAi => Box::pin(openai::ask(&self.endpoint, transcript, options, live)),
            Dialect::Anthropic => {
                Box::pin(anthropic::ask(&self.endpoint, transcript, options, live))
            }
        }
    }
}
