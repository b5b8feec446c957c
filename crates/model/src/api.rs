//! The interface of every model: what it can do, and what goes in and out.

use std::{future::Future, pin::Pin, time::Duration};

use windlass_core::message::{Finish, Prelude, Usage};
use windlass_core::reasoning::Reasoning;

use crate::{Error, ModelName, Transcript};

/// A future on the heap, so that models can be used as `Arc<dyn Model>`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers a conversation.
pub trait Model: Send + Sync {
    /// Which model this is; the same for its whole life.
    fn name(&self) -> &ModelName;

    /// An empty conversation in this provider's wire.
    fn transcript(&self, prelude: &Prelude) -> Transcript;

    /// Asks for the next reply. Temporary failures are retried.
    ///
    /// `transcript` must come from this model's [`Model::transcript`], or one of the same wire.
    /// `live` receives previews and waits; only the returned reply counts. Dropping the future cancels.
    fn reply<'a>(
        &'a self,
        transcript: &'a Transcript,
        options: &'a Options,
        live: &'a mut (dyn FnMut(StreamEvent) + Send),
    ) -> BoxFuture<'a, Result<Reply, Error>>;
}

/// What a request asks for beside the conversation; what is `None` is left to the provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How freely it words things. The router uses 0.1. (ES-068)
    pub temperature: Option<f64>,
    /// The most tokens it may answer with.
    pub max_output_tokens: Option<u32>,
    /// A JSON schema the reply's text must follow.
    pub schema: Option<serde_json::Value>,
}

/// One finished answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What it says; may be empty when it only calls tools.
    pub text: String,
    /// What it asks for, in order.
    pub calls: Vec<Call>,
    /// What it thought before; goes back with the reply.
    pub reasoning: Option<Reasoning>,
    /// Why it stopped.
    pub finish: Finish,
    /// Tokens and money; all zero when the provider does not say.
    pub usage: Usage,
    /// The model as the provider names it in its answer.
    pub model: String,
    /// From sending the request that worked to the end of its stream. (ES-334)
    pub latency: Duration,
}

/// One tool call as the provider sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The provider's id, filled in when missing, made unique within the conversation.
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments, verbatim; not necessarily JSON.
    pub arguments: String,
}

/// What happens while a reply is on its way. Previews: a retry starts the reply again.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// More of the text.
    Text(String),
    /// More of what it thinks.
    Reasoning(String),
    /// A tool call has begun.
    CallStarted {
        /// Its place among the reply's calls.
        index: usize,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments.
    CallArguments {
        /// Its place among the reply's calls.
        index: usize,
        /// The next part of the arguments.
        delta: String,
    },
    /// The attempt failed; what was shown of it is void. The next begins after a wait.
    Retrying {
        /// Which retry this will be, from 1.
        attempt: u32,
        /// How long until then.
        after: Duration,
        /// What went wrong.
        reason: String,
    },
    /// As `Retrying`, but the server said how long to wait. (ES-378)
    Waiting {
        /// Which retry this will be, from 1.
        attempt: u32,
        /// How long the server wants us to wait.
        after: Duration,
        /// What it said.
        reason: String,
    },
    /// How many bytes of the reply have arrived in all: it is alive.
    Bytes(u64),
}
