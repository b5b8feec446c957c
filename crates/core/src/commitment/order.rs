//! What somebody wants to do with a commitment, and why it is refused.

use super::{
    Actor, Commitment, CommitmentApproved, CommitmentClaimed, CommitmentEvent, CommitmentRejected,
    CommitmentReleased, CommitmentState, CommitmentSubmitted, Evidence, EvidenceCaptured,
    EvidenceKind, MAX_EVIDENCE, MAX_TEXT_BYTES, MAX_TITLE_CHARS, Party,
};
use crate::id::CommitmentId;

/// What somebody wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Claim,
    Capture(Evidence),
    /// Hand it in, with words about what was done.
    Submit(String),
    Approve(String),
    Reject(String),
    /// Give the claim back, or take it away.
    Release(String),
}

/// Why an order is refused; nothing is changed then.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say what the fields hold")]
pub enum Refusal {
    #[error("`{id}` is already claimed by `{by}`")]
    AlreadyClaimed { id: CommitmentId, by: Party },
    #[error("`{id}` is {state}, so it cannot be {wanted}")]
    WrongState { id: CommitmentId, state: CommitmentState, wanted: &'static str },
    #[error("`{id}` is claimed by `{by}`, and only they can submit it")]
    NotTheClaimer { id: CommitmentId, by: Party },
    #[error("`{id}` has no evidence, so it cannot be submitted")]
    NoEvidence { id: CommitmentId },
    #[error("`{id}` was {how} by `{by}`, who cannot judge it")]
    OwnWork { id: CommitmentId, how: &'static str, by: Party },
    #[error("`{id}` already has {MAX_EVIDENCE} pieces of evidence, which is the limit")]
    TooMuchEvidence { id: CommitmentId },
    #[error("{what} is empty")]
    Empty { what: &'static str },
    #[error("{what} is {size} {unit} long, and at most {limit} are accepted")]
    TooLong { what: &'static str, size: usize, limit: usize, unit: &'static str },
    #[error("evidence of type `{kind}` needs {needs}")]
    IncompleteEvidence { kind: EvidenceKind, needs: &'static str },
}

impl Commitment {
    /// The event that carries an order out; `None` where it took effect before.
    pub fn decide(
        &self,
        by: &Actor,
        order: Order,
        key: Option<String>,
    ) -> Result<Option<CommitmentEvent>, Refusal> {
        if key.as_deref().is_some_and(|key| self.has_key(key)) {
            return Ok(None);
        }
        let party = by.party.clone();
        Ok(Some(match order {
            Order::Claim => {
                self.check_claim()?;
                CommitmentEvent::Claimed(CommitmentClaimed { by: party, key })
            }
            Order::Capture(evidence) => {
                self.check_capture(&evidence)?;
                CommitmentEvent::Captured(EvidenceCaptured { evidence, key })
            }
            Order::Submit(summary) => {
                self.check_submission(by, &summary)?;
                CommitmentEvent::Submitted(CommitmentSubmitted { by: party, summary, key })
            }
            Order::Approve(reason) => {
                self.check_verdict(by, &reason, "approved")?;
                CommitmentEvent::Approved(CommitmentApproved { by: party, reason, key })
            }
            Order::Reject(reason) => {
                self.check_verdict(by, &reason, "rejected")?;
                require_text("the reason of a rejection", &reason)?;
                CommitmentEvent::Rejected(CommitmentRejected { by: party, reason, key })
            }
            Order::Release(reason) => {
                self.check_release(by, &reason)?;
                CommitmentEvent::Released(CommitmentReleased { by: party, reason, key })
            }
        }))
    }

    fn check_claim(&self) -> Result<(), Refusal> {
        match (&self.claimed_by, self.state) {
            (Some(by), CommitmentState::Claimed | CommitmentState::Submitted) => {
                Err(Refusal::AlreadyClaimed { id: self.id, by: by.clone() })
            }
            (_, CommitmentState::Open) => Ok(()),
            (None, CommitmentState::Claimed | CommitmentState::Submitted)
            | (_, CommitmentState::Approved) => Err(self.wrong_state("claimed")),
        }
    }

    fn check_capture(&self, evidence: &Evidence) -> Result<(), Refusal> {
        short("the description", &evidence.description)?;
        if self.state == CommitmentState::Approved {
            return Err(self.wrong_state("given more evidence"));
        }
        match self.evidence.len() < MAX_EVIDENCE {
            true => Ok(()),
            false => Err(Refusal::TooMuchEvidence { id: self.id }),
        }
    }

    fn check_submission(&self, by: &Actor, summary: &str) -> Result<(), Refusal> {
        short("the summary", summary)?;
        let (CommitmentState::Claimed, Some(holder)) = (self.state, &self.claimed_by) else {
            return Err(self.wrong_state("submitted"));
        };
        if !by.works_for(holder) {
            return Err(Refusal::NotTheClaimer { id: self.id, by: holder.clone() });
        }
        match self.evidence.is_empty() {
            true => Err(Refusal::NoEvidence { id: self.id }),
            false => Ok(()),
        }
    }

    fn check_verdict(&self, by: &Actor, reason: &str, wanted: &'static str) -> Result<(), Refusal> {
        short("the reason", reason)?;
        let own = |party: &Option<Party>| party.as_ref() == Some(&by.party);
        let own_work = |how| Refusal::OwnWork { id: self.id, how, by: by.party.clone() };
        match self.state {
            // Said before the state: it does not become theirs to judge by being submitted.
            CommitmentState::Claimed | CommitmentState::Submitted if own(&self.claimed_by) => {
                Err(own_work("claimed"))
            }
            CommitmentState::Submitted if own(&self.submitted_by) => Err(own_work("submitted")),
            CommitmentState::Submitted => Ok(()),
            CommitmentState::Open | CommitmentState::Claimed | CommitmentState::Approved => {
                Err(self.wrong_state(wanted))
            }
        }
    }

    /// A claim is given back by who has it, or taken away by a person.
    fn check_release(&self, by: &Actor, reason: &str) -> Result<(), Refusal> {
        short("the reason", reason)?;
        let Some(holder) = self.claimed_by.as_ref().filter(|_| self.is_held()) else {
            return Err(self.wrong_state("released"));
        };
        match by.works_for(holder) || matches!(by.party, Party::Person(_)) {
            true => Ok(()),
            false => Err(Refusal::NotTheClaimer { id: self.id, by: holder.clone() }),
        }
    }

    fn wrong_state(&self, wanted: &'static str) -> Refusal {
        Refusal::WrongState { id: self.id, state: self.state, wanted }
    }
}

/// Whether a title and a body can be those of a commitment.
pub fn check_title(title: &str, body: &str) -> Result<(), Refusal> {
    require_text("the title", title)?;
    short("the body", body)?;
    let size = title.chars().count();
    match size <= MAX_TITLE_CHARS {
        true => Ok(()),
        false => Err(Refusal::TooLong {
            what: "the title",
            size,
            limit: MAX_TITLE_CHARS,
            unit: "characters",
        }),
    }
}

/// Whether what was given for a piece of evidence is what its type needs: a path, an address, or a text.
pub fn check_evidence(
    kind: EvidenceKind,
    path: Option<&str>,
    url: Option<&str>,
    content: Option<&str>,
) -> Result<(), Refusal> {
    let given = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
    let is_address = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    let (is_there, needs) = match kind {
        EvidenceKind::File | EvidenceKind::Screenshot => {
            (given(path), "`path`, a file of the workspace")
        }
        EvidenceKind::Url => (url.is_some_and(is_address), "`url`, an http or https address"),
        EvidenceKind::TestOutput | EvidenceKind::Diff | EvidenceKind::Note => {
            (given(content) || given(path), "`content`, the text itself, or `path`")
        }
    };
    match is_there {
        true => Ok(()),
        false => Err(Refusal::IncompleteEvidence { kind, needs }),
    }
}

fn require_text(what: &'static str, text: &str) -> Result<(), Refusal> {
    match text.trim().is_empty() {
        true => Err(Refusal::Empty { what }),
        false => Ok(()),
    }
}

fn short(what: &'static str, text: &str) -> Result<(), Refusal> {
    let size = text.len();
    match size <= MAX_TEXT_BYTES {
        true => Ok(()),
        false => Err(Refusal::TooLong { what, size, limit: MAX_TEXT_BYTES, unit: "bytes" }),
    }
}
