//! What is committed to a commitment's stream. Bodies only gain fields, each with a default.

use serde::{Deserialize, Serialize};

use super::{Evidence, Party};
use crate::event::events;
use crate::id::{SessionId, TaskId};

events! {
    /// Something that happened to a commitment.
    CommitmentEvent {
        /// Somebody promised that it is to be done.
        Opened(CommitmentOpened) = "commitment_opened",
        Claimed(CommitmentClaimed) = "commitment_claimed",
        /// A piece of evidence was added. One without a commitment has a stream of its own.
        Captured(EvidenceCaptured) = "evidence_captured",
        Submitted(CommitmentSubmitted) = "commitment_submitted",
        Approved(CommitmentApproved) = "commitment_approved",
        Rejected(CommitmentRejected) = "commitment_rejected",
        /// The claim was given back, or taken away.
        Released(CommitmentReleased) = "commitment_released",
    }
}

impl CommitmentEvent {
    /// The key of the order that it carries out.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Opened(opened) => opened.key.as_deref(),
            Self::Claimed(claimed) => claimed.key.as_deref(),
            Self::Captured(captured) => captured.key.as_deref(),
            Self::Submitted(submitted) => submitted.key.as_deref(),
            Self::Approved(approved) => approved.key.as_deref(),
            Self::Rejected(rejected) => rejected.key.as_deref(),
            Self::Released(released) => released.key.as_deref(),
        }
    }
}

/// Somebody promised that it is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentOpened {
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    pub by: Party,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The directory that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The user that it belongs to, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentClaimed {
    pub by: Party,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A piece of evidence was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceCaptured {
    pub evidence: Evidence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// It was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentSubmitted {
    pub by: Party,
    /// What was done, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// It was judged good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentApproved {
    pub by: Party,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// It was judged not good enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentRejected {
    pub by: Party,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The claim was given back, or taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentReleased {
    pub by: Party,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}
