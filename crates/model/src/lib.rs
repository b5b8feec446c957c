//! One request in, one streamed reply out: providers, retries, the scripted model.
//!
//! Invariants:
//! - A conversation is kept in the bytes it is sent as: a message is serialized once, when it is
//!   pushed, and a request body is a concatenation. Within an epoch bodies only grow.
//! - One model per value: nothing here ever answers with another model than the one asked. (ES-379)
//! - Bounded: replies, errors, retries and waits each have a named limit.
//! - Keys never leave this crate except in the header they belong to.
//!
//! Dropping the future of [`Model::reply`] cancels the request and closes its connection.

mod name;
mod api;
mod error;
mod transcript;
mod sanitize;
mod price;
pub mod picture;
mod known_models;
mod retry;
mod open;
mod providers;
mod served;
mod tls;
mod listing;
mod http;
mod redact;
mod assemble;
mod pieces;
mod chat;
mod responses;
mod anthropic;
pub mod script;
mod record;
mod memory;

pub use api::{BoxFuture, Call, Model, Options, Reply, StreamEvent};
pub use error::{Category, Error, Fault};
pub use known_models::KnownModel;
pub use listing::list_models;
pub use memory::{ContextService, ContextServiceError, Embeddings, EmbeddingsError, Facts};
pub use name::{ModelName, NameError};
pub use open::{Models, Provider, Settings, SetupError};
pub use price::{LongPrice, Price, Prices};
pub use providers::{Auth, EffortForm, Efforts, KnownProvider, PROVIDERS, ReasoningUse, Wire};
pub use record::Recorder;
pub use retry::{LONGEST_RETRY_AFTER, Retry};
pub use script::Script;
pub use transcript::{PictureSource, Transcript, Vision};

/// The most text and arguments one reply may hold; a longer reply means that the model is stuck.
pub const MAX_REPLY_BYTES: usize = 8 * 1024 * 1024;

/// The most tool calls one reply may hold; beyond it a model repeats itself.
pub const MAX_CALLS: usize = 128;

/// How long a model may send nothing before its stream counts as stalled, unless configured.
pub const STALL: std::time::Duration = std::time::Duration::from_secs(300);
