//! Every way a reply can fail, one variant per thing a caller would do differently.

use std::time::Duration;

use jiff::SignedDuration;

use crate::{KnownProvider, ModelName};

/// Why there is no reply, and from whom.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{fault}{} (model `{model}`{}{}{})", asks(.fault), at(.base), key(.fault, .model), tries(*.attempts))]
pub struct Error {
    /// The model that was asked.
    pub model: ModelName,
    /// Where it was asked, without credentials; empty for a script.
    pub base: String,
    /// How often it was asked.
    pub attempts: u32,
    /// What went wrong the last time.
    pub fault: Fault,
}

fn at(base: &str) -> String {
    if base.is_empty() { String::new() } else { format!(" at {base}") }
}

/// Which key was not accepted: a person may have several.
fn key(fault: &Fault, model: &ModelName) -> String {
    if !matches!(fault, Fault::Unauthorized { .. } | Fault::Forbidden { .. }) {
        return String::new();
    }
    KnownProvider::find(model.provider())
        .map_or_else(String::new, |provider| format!(", with the key in {}", provider.key_env))
}

fn tries(attempts: u32) -> String {
    if attempts > 1 { format!(", {attempts} attempts") } else { String::new() }
}

/// How long the server wants us to stay away.
fn asks(fault: &Fault) -> String {
    match fault.retry_after().filter(|wait| *wait >= Duration::from_secs(1)) {
        Some(wait) => {
            let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
            format!("; it asks to retry in {:#}", SignedDuration::from_secs(seconds))
        }
        None => String::new(),
    }
}

/// Whether asking again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// It may be gone at the next try. (ES-370)
    Transient,
    /// Someone has to change something. (ES-371)
    Permanent,
}

/// What went wrong. `detail` is what the server said: redacted, cut, and never a promise.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the fields say what the messages do")]
pub enum Fault {
    /// Nothing listens there.
    #[error("the model server refuses connections")]
    Refused,
    /// The name does not resolve, the network is down, or connecting takes too long.
    #[error("the model server cannot be reached: {detail}")]
    Unreachable { detail: String },
    /// No secure connection: a certificate we cannot trust, or no TLS there at all.
    #[error("no secure connection to the model server: {detail}")]
    Tls { detail: String },
    /// 401: no key, or a wrong one.
    #[error("the model server does not accept the key: {detail}")]
    Unauthorized { detail: String },
    /// 403: the key may not do this.
    #[error("the model server forbids this: {detail}")]
    Forbidden { detail: String },
    /// 404: no such model, or no such path. (ES-379)
    #[error("the model is not available: {detail}")]
    ModelUnavailable { detail: String },
    /// 429: too fast. (ES-378)
    #[error("rate limited: {detail}")]
    RateLimited { retry_after: Option<Duration>, detail: String },
    /// Out of credit: waiting does not help, paying does.
    #[error("the account's quota is used up: {detail}")]
    OutOfCredit { detail: String },
    /// 408 and 409: the server gave up on this attempt.
    #[error("the model server dropped the request (status {status}): {detail}")]
    Dropped { status: u16, retry_after: Option<Duration>, detail: String },
    /// 503 and 529: too many others are asking.
    #[error("the model server is overloaded (status {status}): {detail}")]
    Overloaded { status: u16, retry_after: Option<Duration>, detail: String },
    /// Any other 5xx.
    #[error("the model server failed (status {status}): {detail}")]
    Server { status: u16, retry_after: Option<Duration>, detail: String },
    /// Any other 4xx: the request itself is refused.
    #[error("the model server refused the request (status {status}): {detail}")]
    BadRequest { status: u16, detail: String },
    /// What the model thought earlier is not accepted back; without it the request may be.
    #[error("the model server refuses the reasoning it is sent back: {detail}")]
    ReasoningRefused { detail: String },
    /// The conversation does not fit; compact it and ask again.
    #[error("the conversation is longer than the model's window{}: {detail}", limit_words(*.limit))]
    ContextLength { limit: Option<u64>, detail: String },
    /// The provider will not answer this prompt.
    #[error("the provider's content filter stopped the request: {detail}")]
    ContentFilter { detail: String },
    /// Not a byte for too long.
    #[error("the model server sent nothing for {} s", .after.as_secs_f64())]
    Stalled { after: Duration },
    /// The stream ended before the reply did.
    #[error("the reply broke off: {detail}")]
    Truncated { detail: String },
    /// The stream holds what no model server would send.
    #[error("the reply is garbled: {detail}")]
    Garbled { detail: String },
    /// What answers there speaks another language; most likely the base is wrong.
    #[error("this is not a model server: {detail}")]
    NotAModelServer { detail: String },
    /// Neither text nor calls.
    #[error("the model answered with nothing")]
    EmptyReply,
    /// The reply passed one of our limits.
    #[error("the reply has more than {limit} {what}")]
    TooLarge { what: &'static str, limit: usize },
    /// The script does not fit the conversation.
    #[error("{detail}")]
    Script { detail: String },
    /// The recording cannot be written.
    #[error("the recording cannot be written: {detail}")]
    Recording { detail: String },
}

fn limit_words(limit: Option<u64>) -> String {
    limit.map(|tokens| format!(" of {tokens} tokens")).unwrap_or_default()
}

impl Fault {
    /// Whether asking again can help.
    pub fn category(&self) -> Category {
        match self {
            Self::Refused
            | Self::Unreachable { .. }
            | Self::RateLimited { .. }
            | Self::Dropped { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::Stalled { .. }
            | Self::Truncated { .. }
            | Self::Garbled { .. }
            | Self::EmptyReply => Category::Transient,
            Self::Tls { .. }
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::ModelUnavailable { .. }
            | Self::OutOfCredit { .. }
            | Self::BadRequest { .. }
            | Self::ReasoningRefused { .. }
            | Self::ContextLength { .. }
            | Self::ContentFilter { .. }
            | Self::NotAModelServer { .. }
            | Self::TooLarge { .. }
            | Self::Script { .. }
            | Self::Recording { .. } => Category::Permanent,
        }
    }

    /// Whether the server is gone or broken: it refuses connections, breaks them off, sends nothing, or fails.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Refused
            | Self::Unreachable { .. }
            | Self::Dropped { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::Stalled { .. }
            | Self::Truncated { .. } => true,
            Self::Tls { .. }
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::ModelUnavailable { .. }
            | Self::RateLimited { .. }
            | Self::OutOfCredit { .. }
            | Self::BadRequest { .. }
            | Self::ReasoningRefused { .. }
            | Self::ContextLength { .. }
            | Self::ContentFilter { .. }
            | Self::Garbled { .. }
            | Self::NotAModelServer { .. }
            | Self::EmptyReply
            | Self::TooLarge { .. }
            | Self::Script { .. }
            | Self::Recording { .. } => false,
        }
    }

    /// Whether something is between us and a server that has answered before, such as the page of a network that
    /// wants a sign-in, or a proxy that does not know the server yet: another answer, a redirect, no secure connection.
    pub fn may_come_from_intermediary(&self) -> bool {
        match self {
            Self::Tls { .. } | Self::NotAModelServer { .. } | Self::Garbled { .. } => true,
            // 421 and 425: this connection is the wrong one, or the request came too early.
            Self::BadRequest { status, .. } => matches!(status, 421 | 425),
            Self::Refused
            | Self::Unreachable { .. }
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::ModelUnavailable { .. }
            | Self::RateLimited { .. }
            | Self::OutOfCredit { .. }
            | Self::Dropped { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::ReasoningRefused { .. }
            | Self::ContextLength { .. }
            | Self::ContentFilter { .. }
            | Self::Stalled { .. }
            | Self::Truncated { .. }
            | Self::EmptyReply
            | Self::TooLarge { .. }
            | Self::Script { .. }
            | Self::Recording { .. } => false,
        }
    }

    /// How long the server wants us to wait, when it says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. }
            | Self::Dropped { retry_after, .. }
            | Self::Overloaded { retry_after, .. }
            | Self::Server { retry_after, .. } => *retry_after,
            Self::Refused
            | Self::Unreachable { .. }
            | Self::Tls { .. }
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::ModelUnavailable { .. }
            | Self::OutOfCredit { .. }
            | Self::BadRequest { .. }
            | Self::ReasoningRefused { .. }
            | Self::ContextLength { .. }
            | Self::ContentFilter { .. }
            | Self::Stalled { .. }
            | Self::Truncated { .. }
            | Self::Garbled { .. }
            | Self::NotAModelServer { .. }
            | Self::EmptyReply
            | Self::TooLarge { .. }
            | Self::Script { .. }
            | Self::Recording { .. } => None,
        }
    }
}

impl Error {
    /// Whether asking again can help.
    pub fn category(&self) -> Category {
        self.fault.category()
    }

    /// How long the server wants us to wait before the next request, after all our own retries.
    pub fn retry_delay(&self) -> Option<Duration> {
        self.fault.retry_after().filter(|_| self.retryable())
    }

    /// Whether the same request may be sent again later with a chance.
    pub fn retryable(&self) -> bool {
        self.category() == Category::Transient
    }
}
