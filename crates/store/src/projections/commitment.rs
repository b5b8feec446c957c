//! What the events of a commitment do to the projections.

use jiff::Timestamp;
use rusqlite::Connection;
use windlass_core::commitment::{
    CommitmentEvent, CommitmentOpened, CommitmentState, Evidence, Party, Verdict,
};
use windlass_core::id::{CommitmentId, EvidenceId};

use crate::error::Fault;
use crate::journal::chain::Chain;
use crate::row::instant;

/// An event of a commitment, or of evidence that belongs to none, with its place.
pub(crate) struct LedgerRecord {
    /// The commitment; none for evidence alone.
    pub(crate) commitment: Option<CommitmentId>,
    pub(crate) at: Timestamp,
    pub(crate) event: CommitmentEvent,
}

/// Applies one event; [`set_commitment_tail`] completes that.
pub(crate) fn apply_commitment(tx: &Connection, record: &LedgerRecord) -> Result<(), Fault> {
    let at = instant(record.at);
    if let CommitmentEvent::Captured(captured) = &record.event {
        insert_evidence(tx, record.commitment, &captured.evidence)?;
    }
    let Some(id) = record.commitment.map(|id| id.to_string()) else { return Ok(()) };
    let set = |state: CommitmentState, claimed: Option<&Party>, submitted: Option<&Party>| {
        tx.prepare_cached(
            "UPDATE commitments SET state = ?2, claimed_by = ?3, submitted_by = ?4 WHERE id = ?1",
        )?
        .execute((
            &id,
            state.as_str(),
            claimed.map(Party::to_string),
            submitted.map(Party::to_string),
        ))?;
        Ok::<_, Fault>(())
    };
    match &record.event {
        CommitmentEvent::Opened(opened) => insert(tx, &id, &at, opened)?,
        CommitmentEvent::Claimed(claimed) => {
            set(CommitmentState::Claimed, Some(&claimed.by), None)?;
        }
        CommitmentEvent::Captured(_) => {
            tx.prepare_cached(
                "UPDATE commitments SET evidence_count = evidence_count + 1 WHERE id = ?1",
            )?
            .execute([&id])?;
        }
        CommitmentEvent::Submitted(submitted) => {
            tx.prepare_cached(
                "UPDATE commitments SET state = ?2, submitted_by = ?3 WHERE id = ?1",
            )?
            .execute((
                &id,
                CommitmentState::Submitted.as_str(),
                submitted.by.to_string(),
            ))?;
        }
        CommitmentEvent::Approved(approved) => {
            judge(tx, &id, Verdict::Approved, &approved.by, &approved.reason)?;
        }
        CommitmentEvent::Rejected(rejected) => {
            judge(tx, &id, Verdict::Rejected, &rejected.by, &rejected.reason)?;
        }
        CommitmentEvent::Released(_) => set(CommitmentState::Open, None, None)?,
    }
    tx.prepare_cached("UPDATE commitments SET updated_at = ?2 WHERE id = ?1")?
        .execute((&id, at))?;
    Ok(())
}

/// Writes where a commitment's stream ends.
pub(crate) fn set_commitment_tail(tx: &Connection, id: &str, end: Chain) -> Result<(), Fault> {
    tx.prepare_cached("UPDATE commitments SET last_seq = ?2, last_hash = ?3 WHERE id = ?1")?
        .execute((id, i64::try_from(end.seq).unwrap_or(i64::MAX), end.hash))?;
    Ok(())
}

fn insert(tx: &Connection, id: &str, at: &str, opened: &CommitmentOpened) -> Result<(), Fault> {
    tx.prepare_cached(
        "INSERT INTO commitments (id, session_id, task_id, user_id, project, title, body, state,
                                  opened_by, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)",
    )?
    .execute((
        id,
        opened.session_id.map(|id| id.to_string()),
        opened.task_id.map(|id| id.to_string()),
        &opened.user_id,
        &opened.project,
        &opened.title,
        &opened.body,
        CommitmentState::Open.as_str(),
        opened.by.to_string(),
        at,
    ))?;
    Ok(())
}

fn judge(
    tx: &Connection,
    id: &str,
    verdict: Verdict,
    by: &Party,
    reason: &str,
) -> Result<(), Fault> {
    let state = match verdict {
        Verdict::Approved => CommitmentState::Approved,
        Verdict::Rejected => CommitmentState::Claimed,
    };
    tx.prepare_cached(
        "UPDATE commitments SET state = ?2, verdict = ?3, verdict_by = ?4, verdict_reason = ?5
         WHERE id = ?1",
    )?
    .execute((id, state.as_str(), verdict.as_str(), by.to_string(), reason))?;
    Ok(())
}

fn insert_evidence(
    tx: &Connection,
    commitment: Option<CommitmentId>,
    evidence: &Evidence,
) -> Result<(), Fault> {
    // For people and programs that read the database (AX-061); windlass itself folds the stream of the commitment.
    let id: EvidenceId = evidence.id;
    tx.prepare_cached(
        "INSERT INTO evidence (id, commitment_id, task_id, type, uri, sha256, bytes, description,
                               captured_by, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute((
        id.to_string(),
        commitment.map(|id| id.to_string()),
        evidence.task.map(|id| id.to_string()),
        evidence.kind.as_str(),
        &evidence.uri,
        &evidence.sha256,
        i64::try_from(evidence.bytes).unwrap_or(i64::MAX),
        &evidence.description,
        evidence.by.to_string(),
        instant(evidence.at),
    ))?;
    Ok(())
}
