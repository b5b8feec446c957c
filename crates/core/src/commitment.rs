//! Commitments: promised work that one party claims, proves and submits, and another approves (§9, O-39).
//!
//! Invariants:
//! - A commitment is a fold of its own stream; every order is decided here, on that state alone.
//! - One claimer at a time. Nothing is submitted without evidence. Who claimed or submitted it does not judge it.
//! - An order that carries a key takes effect once, however often it is delivered.

mod event;
mod order;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{CommitmentId, EvidenceId, SessionId, TaskId};
use crate::string_enum;

pub use event::{
    CommitmentApproved, CommitmentClaimed, CommitmentEvent, CommitmentOpened, CommitmentRejected,
    CommitmentReleased, CommitmentSubmitted, EvidenceCaptured,
};
pub use order::{Order, Refusal, check_evidence, check_title};

/// The longest title; what is longer belongs in the body.
pub const MAX_TITLE_CHARS: usize = 200;
/// The longest body, reason or description.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// Pieces of evidence of one commitment; more would prove nothing new.
pub const MAX_EVIDENCE: usize = 200;
/// The largest piece of evidence; a larger one is named by a path or an address instead.
pub const MAX_EVIDENCE_BYTES: usize = 4 << 20;

string_enum! {
    /// Where a commitment stands. A rejected one is `claimed` again, with its verdict.
    CommitmentState ("commitment state") {
        /// Nobody works on it.
        Open = "open",
        Claimed = "claimed",
        /// Handed in, and not judged yet.
        Submitted = "submitted",
        /// Judged good; this is final.
        Approved = "approved",
    }
}

impl CommitmentState {
    /// Whether somebody holds it: it is claimed, and not approved.
    pub const fn is_held(self) -> bool {
        match self {
            Self::Claimed | Self::Submitted => true,
            Self::Open | Self::Approved => false,
        }
    }
}

string_enum! {
    /// What was said of submitted work.
    Verdict ("verdict") {
        Approved = "approved",
        Rejected = "rejected",
    }
}

string_enum! {
    /// What a piece of evidence is.
    EvidenceKind ("evidence type") {
        TestOutput = "test_output",
        Diff = "diff",
        File = "file",
        Url = "url",
        Screenshot = "screenshot",
        /// Something that was seen, in words.
        Note = "note",
    }
}

impl EvidenceKind {
    /// Whether it is a file of the workspace, given by its path.
    pub const fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Screenshot)
    }
}

/// Who does something with a commitment: an agent by the root of its tree, or a person by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    Agent(TaskId),
    Person(String),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(task) => task.fmt(f),
            Self::Person(name) => f.write_str(name),
        }
    }
}

impl FromStr for Party {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(task) => Self::Agent(task),
            Err(_) => Self::Person(text.to_owned()),
        })
    }
}

impl Serialize for Party {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Party {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Ok(party) = String::deserialize(from)?.parse();
        Ok(party)
    }
}

/// Who acts, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub party: Party,
    /// The person for whom an agent works; they may have claimed what it works on.
    pub on_behalf_of: Option<String>,
}

impl Actor {
    pub fn person(name: impl Into<String>) -> Self {
        Self { party: Party::Person(name.into()), on_behalf_of: None }
    }

    pub fn agent(root: TaskId, user: Option<String>) -> Self {
        Self { party: Party::Agent(root), on_behalf_of: user }
    }

    /// Whether what this party holds is this actor's to work on.
    fn works_for(&self, holder: &Party) -> bool {
        let person = self.on_behalf_of.clone().map(Party::Person);
        self.party == *holder || person.as_ref() == Some(holder)
    }
}

/// One piece of evidence, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub id: EvidenceId,
    #[serde(rename = "type")]
    pub kind: EvidenceKind,
    /// Where it was: a path of the workspace, an address, or the id of the evidence itself.
    pub uri: String,
    /// SHA-256 of its content; of an address, of the address.
    pub sha256: String,
    /// How large its content is; 0 where nothing but the address is kept.
    pub bytes: u64,
    /// What it shows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Who captured it.
    pub by: Party,
    /// The task in which it was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub at: Timestamp,
}

/// Everything that is known of a commitment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment {
    pub id: CommitmentId,
    pub title: String,
    /// What somebody needs to know to carry it out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    pub state: CommitmentState,
    pub opened_by: Party,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The task that opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The directory that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The user that it belongs to, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<Party>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<Party>,
    /// What was said of it when it was last submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_by: Option<Party>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_reason: Option<String>,
    pub evidence: Vec<Evidence>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The keys of the orders that have taken effect.
    #[serde(skip)]
    keys: BTreeSet<String>,
}

impl Commitment {
    /// A commitment that was opened so.
    pub fn begin(id: CommitmentId, at: Timestamp, opened: &CommitmentOpened) -> Self {
        Self {
            id,
            title: opened.title.clone(),
            body: opened.body.clone(),
            state: CommitmentState::Open,
            opened_by: opened.by.clone(),
            session_id: opened.session_id,
            task_id: opened.task_id,
            project: opened.project.clone(),
            user_id: opened.user_id.clone(),
            claimed_by: None,
            submitted_by: None,
            summary: None,
            verdict: None,
            verdict_by: None,
            verdict_reason: None,
            evidence: Vec::new(),
            created_at: at,
            updated_at: at,
            keys: opened.key.iter().cloned().collect(),
        }
    }

    /// Changes it by one event.
    pub fn apply(&mut self, at: Timestamp, event: &CommitmentEvent) {
        self.updated_at = at;
        self.keys.extend(event.key().map(str::to_owned));
        match event {
            CommitmentEvent::Opened(_) => {}
            CommitmentEvent::Claimed(claimed) => {
                self.state = CommitmentState::Claimed;
                self.claimed_by = Some(claimed.by.clone());
            }
            CommitmentEvent::Captured(captured) => self.evidence.push(captured.evidence.clone()),
            CommitmentEvent::Submitted(submitted) => {
                self.state = CommitmentState::Submitted;
                self.submitted_by = Some(submitted.by.clone());
                self.summary = Some(submitted.summary.clone()).filter(|text| !text.is_empty());
            }
            CommitmentEvent::Approved(approved) => {
                self.state = CommitmentState::Approved;
                self.judge(Verdict::Approved, &approved.by, &approved.reason);
            }
            CommitmentEvent::Rejected(rejected) => {
                self.state = CommitmentState::Claimed;
                self.judge(Verdict::Rejected, &rejected.by, &rejected.reason);
            }
            CommitmentEvent::Released(_) => {
                self.state = CommitmentState::Open;
                self.claimed_by = None;
                self.submitted_by = None;
            }
        }
    }

    /// The state after a whole stream; `None` where it does not begin with its opening.
    pub fn fold<'e>(
        id: CommitmentId,
        events: impl IntoIterator<Item = (Timestamp, &'e CommitmentEvent)>,
    ) -> Option<Self> {
        let mut events = events.into_iter();
        let Some((at, CommitmentEvent::Opened(opened))) = events.next() else { return None };
        let mut commitment = Self::begin(id, at, opened);
        events.for_each(|(at, event)| commitment.apply(at, event));
        Some(commitment)
    }

    /// Whether an order with this key has taken effect.
    pub fn has_key(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Whether somebody holds it: it is claimed, and not approved.
    pub const fn is_held(&self) -> bool {
        self.state.is_held()
    }

    fn judge(&mut self, verdict: Verdict, by: &Party, reason: &str) {
        self.verdict = Some(verdict);
        self.verdict_by = Some(by.clone());
        self.verdict_reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
    }
}
