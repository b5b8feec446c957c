//! What a conversation is made of: entries, what each shows, and the words for what happened.

use jiff::Timestamp;
use serde_json::Value;
use windlass_coordinator::Damage;
use windlass_core::command::{Deliverable, TaskResult};
use windlass_core::error::ErrorDetails;
use windlass_core::event::{LlmResponse, RiskCheck, SubAgentComplete, SubAgentSpawn};
use windlass_core::id::{CallId, TaskId};
use windlass_core::injection::Control;
use windlass_core::outcome::Outcome;
use windlass_core::picture::Picture;
use windlass_core::question::{Answer, Question};
use windlass_core::status::StatusReason;

use crate::page::live::Fragment;
use crate::page::pieces::Tone;

/// One thing in a conversation.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The event it began with; the page's address of it.
    pub pos: i64,
    /// The task whose journal it is in.
    pub task: TaskId,
    pub at: Timestamp,
    pub body: Body,
    /// As it was last drawn; `None` after a change.
    pub(super) drawn: Option<Fragment>,
}

/// What an entry shows.
#[derive(Clone, Debug)]
pub enum Body {
    /// A person, or something elsewhere, says something.
    Said {
        by: String,
        text: String,
        kind: Saying,
        pictures: Vec<Picture>,
    },
    /// The model says something.
    Reply(Box<LlmResponse>),
    Call(Box<Call>),
    Question(Box<Asking>),
    /// One line about the course of things.
    Note {
        tone: Tone,
        text: String,
        detail: Option<String>,
    },
    /// It could not continue.
    Failure(Box<ErrorDetails>),
    Deliverable(Box<Deliverable>),
    SubAgent {
        spawn: Box<SubAgentSpawn>,
        end: Option<Box<SubAgentComplete>>,
    },
    /// It is done.
    Ended(Box<TaskResult>),
    /// What stood here cannot be read.
    Damaged(Damage),
}

/// Who says something, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saying {
    Goal,
    Message,
    Event,
}

/// Why nobody waits for the result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// Its task has ended without it.
    TaskEnded,
    /// What became of it may have stood where the journal is damaged.
    Damaged,
}

/// A call and what is known of it.
#[derive(Clone, Debug)]
pub struct Call {
    pub id: CallId,
    pub tool: String,
    pub arguments: Value,
    /// Why it may run.
    pub check: Option<RiskCheck>,
    pub started_at: Option<Timestamp>,
    pub outcome: Option<Outcome>,
    /// Why no result of it is waited for, where none is.
    pub abandoned: Option<Abandoned>,
    pub duration_ms: u64,
    /// Who was asked, and said what.
    pub answered: Option<Answer>,
}

impl Call {
    /// Whether it has started, and may still come to a result.
    pub fn is_running(&self) -> bool {
        self.started_at.is_some() && self.outcome.is_none() && self.abandoned.is_none()
    }
}

/// A question in the conversation.
#[derive(Clone, Debug)]
pub struct Asking {
    pub question: Question,
    pub state: AskingState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskingState {
    Open,
    Answered(Answer),
    Closed(String),
}

/// What a task is doing right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing, or what an entry shows.
    Nothing,
    /// The model was asked, by this event.
    Thinking { since: Timestamp, request: u64 },
    /// Its context is being summarized.
    Compacting { since: Timestamp },
}

/// A command that runs in the background of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub command: String,
    pub since: Timestamp,
}

impl Entry {
    /// Its place on a page. Several calls begin with one event.
    pub fn key(&self) -> String {
        match &self.body {
            Body::Call(call) => call.id.to_string(),
            Body::Question(asking) => asking.question.id.to_string(),
            Body::Damaged(damage) => format!("damaged-{}-{}", damage.task, damage.first),
            Body::Said { .. }
            | Body::Reply(_)
            | Body::Note { .. }
            | Body::Failure(_)
            | Body::Deliverable(_)
            | Body::SubAgent { .. }
            | Body::Ended(_) => format!("e{}", self.pos),
        }
    }
}

/// Why a task stands still.
pub(super) const fn words(reason: StatusReason) -> &'static str {
    match reason {
        StatusReason::User => "by a person",
        StatusReason::Finished => "its work is done",
        StatusReason::Question => "it asks something",
        StatusReason::Budget => "its budget is used up",
        StatusReason::Timeout => "its time is used up",
        StatusReason::Deadline => "its deadline has passed",
        StatusReason::Error => "something went wrong",
        StatusReason::Dependency => "another task comes first",
        StatusReason::Schedule => "until its next check",
        StatusReason::MergeConflict => "its work could not be merged",
        StatusReason::AwaitingMessage => "it waits for a message",
        StatusReason::ContextFull => "its context is full",
        StatusReason::RateLimited => "the model server asks to wait",
        StatusReason::ModelOutage => "the model server does not answer",
        StatusReason::DiskFull => "the disk is full",
        StatusReason::Shutdown => "the service stopped",
    }
}

/// What a signal did; `None` for one that an event of its own shows.
pub(super) fn control_words(control: &Control) -> Option<String> {
    match control {
        Control::Revoke { rule } => Some(format!("Asked about again: {rule}")),
        Control::UseModel { model } => Some(format!("Model: {model}")),
        Control::Watch { .. } => Some("Watched by a schedule".to_owned()),
        Control::Unwatch { .. } => Some("No longer watched by a schedule".to_owned()),
        Control::Grant { rule } => Some(format!("Allowed in this session: {rule}")),
        Control::ChangeAxes { .. }
        // Its words are shown as what was said.
        | Control::Steer { .. }
        | Control::Pause
        | Control::Interrupt
        | Control::Resume
        | Control::Cancel { .. }
        | Control::Expire { .. } => None,
    }
}
