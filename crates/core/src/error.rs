//! Why a task failed, as data that a person and a program can act on (ES-370…373).

use serde::{Deserialize, Serialize};

use crate::words;

words! {
    /// Who could do something about an error.
    ErrorCategory ("error category") {
        /// Passes by itself; worth another try.
        Transient = "transient",
        /// Stays until something is changed.
        Permanent = "permanent",
        /// The agent went astray: limits, loops, time.
        Agent = "agent",
        /// A tool failed; told to the agent, not the end of a task.
        Tool = "tool",
    }
}

words! {
    /// Every way a task can fail.
    ErrorType ("error type") {
        /// Ran out of active time (ES-111).
        Timeout = "timeout",
        /// Ran past its deadline.
        Deadline = "deadline",
        /// Used up its tool rounds (ES-122).
        MaxIterationsExceeded = "max_iterations_exceeded",
        /// Kept doing the same thing (ES-269).
        DoomLoop = "doom_loop",
        /// The model server could not be reached or kept failing.
        ModelUnreachable = "model_unreachable",
        /// The model server refused the credentials.
        ModelUnauthorized = "model_unauthorized",
        /// The model is not there (ES-379).
        ModelUnavailable = "model_unavailable",
        /// The model server asked to come back later, too often.
        ModelRateLimited = "model_rate_limited",
        /// The model server answered with something that is not a reply.
        ModelProtocol = "model_protocol",
        /// The request was refused as malformed.
        ModelRefused = "model_refused",
        /// The context did not fit, even shortened.
        ContextLength = "context_length",
        /// The sandbox did not start (ES-380).
        SandboxUnavailable = "sandbox_unavailable",
        /// The sandbox was ended for its memory use (ES-381).
        SandboxOutOfMemory = "sandbox_out_of_memory",
        /// The memory service did not answer (ES-384).
        ContextServiceUnavailable = "context_service_unavailable",
        /// The submission makes no sense (ES-371).
        InvalidCommand = "invalid_command",
        /// As much waits to be started as may wait; later the same may be taken.
        Overloaded = "overloaded",
        /// The journal contradicts itself (ES-371).
        CorruptedState = "corrupted_state",
        /// The journal could not be written.
        Storage = "storage",
        /// The workspace is gone or cannot be used.
        Workspace = "workspace",
        /// The agent stopped answering (ES-033).
        Hung = "hung",
        /// The budget question was answered with stop.
        Budget = "budget",
        /// A bug of ours.
        Internal = "internal",
    }
}

impl ErrorType {
    /// Who could do something about it.
    pub const fn category(self) -> ErrorCategory {
        use ErrorType::*;
        match self {
            Timeout
            | Deadline
            | MaxIterationsExceeded
            | DoomLoop
            | Hung
            | Budget
            | ContextLength => ErrorCategory::Agent,
            ModelUnreachable
            | ModelRateLimited
            | SandboxUnavailable
            | ContextServiceUnavailable
            | Overloaded
            | Storage => ErrorCategory::Transient,
            ModelUnauthorized | ModelUnavailable | ModelProtocol | ModelRefused
            | SandboxOutOfMemory | InvalidCommand | CorruptedState | Workspace | Internal => {
                ErrorCategory::Permanent
            }
        }
    }
}

/// What went wrong, on results (`DESIGN.md` §15.16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// Which of the known ways.
    pub error_type: ErrorType,
    /// Who could do something about it.
    pub category: ErrorCategory,
    /// What happened, to which thing.
    pub message: String,
    /// Whether the same again may work.
    pub retryable: bool,
    /// What the harness saw, for whoever looks into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ErrorDetails {
    /// An error of a known type; transient ones may be tried again.
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        let category = error_type.category();
        Self {
            error_type,
            category,
            message: message.into(),
            retryable: category == ErrorCategory::Transient,
            diagnostic: None,
            hint: None,
        }
    }

    /// The same with what was seen.
    pub fn diagnosed(mut self, diagnostic: impl Into<String>) -> Self {
        self.diagnostic = Some(diagnostic.into());
        self
    }

    /// The same with what to do next.
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
