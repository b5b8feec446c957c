//! The ledger of commitments: each has a stream of its own, and its evidence is kept by hash.
//!
//! Invariants:
//! - An order is decided in the transaction that records it, on the stream as it is then. Of two that cannot both hold,
//!   the second is refused.
//! - The content of a piece of evidence is on disk before an event names it.
//! - Neither events nor evidence hold a key of ours.

use std::borrow::Cow;
use std::path::PathBuf;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, ToSql};
use serde::Serialize;
use windlass_core::commitment::{
    Actor, Commitment, CommitmentEvent, CommitmentOpened, CommitmentState, Evidence,
    EvidenceCaptured, EvidenceKind, MAX_EVIDENCE_BYTES, Order, Party, Refusal, Verdict,
    check_title,
};
use windlass_core::event::EVENT_VERSION;
use windlass_core::hash::sha256;
use windlass_core::id::{CommitmentId, EvidenceId, SessionId, TaskId};
use windlass_core::secrets::Secrets;

use crate::error::Fault;
use crate::files::write_whole;
use crate::journal::chain::{COLUMNS, Chain, StoredRow};
use crate::projections::LedgerRecord;
use crate::row::Columns;
use crate::words::{COMMITMENT_APPROVED, HELD};
use crate::{Error, Level, Store, journal, projections};

/// Commitments that a list has at most.
const MAX_LISTED: u32 = 1_000;

/// The ledger of one data directory.
#[derive(Clone, Copy)]
pub struct Commitments<'a> {
    pub(crate) store: &'a Store,
}

/// A commitment as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitmentRow {
    pub id: CommitmentId,
    pub title: String,
    pub state: CommitmentState,
    pub opened_by: Party,
    pub claimed_by: Option<Party>,
    pub verdict: Option<Verdict>,
    pub verdict_reason: Option<String>,
    /// How many pieces there are.
    pub evidence_count: usize,
    pub session_id: Option<SessionId>,
    pub task_id: Option<TaskId>,
    pub project: Option<String>,
    pub user_id: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Which commitments a list holds; what is not set does not narrow it.
#[derive(Clone, Debug, Default)]
pub struct CommitmentFilter {
    pub state: Option<CommitmentState>,
    pub session: Option<SessionId>,
    pub claimed_by: Option<Party>,
    /// Whose they are.
    pub user: Option<String>,
    /// Only those after this place.
    pub after: Option<CommitmentPlace>,
    /// At most this many.
    pub limit: Option<u32>,
}

/// Where a list of commitments is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitmentPlace {
    pub created_at: Timestamp,
    pub id: CommitmentId,
}

/// A piece of evidence to be kept.
#[derive(Clone, Debug)]
pub struct NewProof {
    pub id: EvidenceId,
    pub kind: EvidenceKind,
    /// Where it was: a path or an address. Without one its own id is named.
    pub uri: Option<String>,
    /// The content; none of an address.
    pub content: Option<Vec<u8>>,
    pub description: String,
    pub task: Option<TaskId>,
}

impl Commitments<'_> {
    /// Opens a commitment. With an id that is known already, nothing happens.
    pub async fn open(
        self,
        id: CommitmentId,
        at: Timestamp,
        opened: CommitmentOpened,
    ) -> Result<Commitment, Error> {
        check_title(&opened.title, &opened.body)?;
        let opened = self.store.secrets().clean_value(opened);
        self.store
            .write(Level::Synced, move |tx| {
                if let Some((known, _)) = fold(tx, id)? {
                    return Ok(known);
                }
                let mut chain = Chain::default();
                let event = CommitmentEvent::Opened(opened);
                append(tx, id, at, event, &mut chain)?;
                Ok(require(tx, id)?.0)
            })
            .await
    }

    /// Does something with a commitment, or refuses it. An order whose key is known has no further effect.
    pub async fn act(
        self,
        id: CommitmentId,
        at: Timestamp,
        by: Actor,
        order: Order,
        key: Option<String>,
    ) -> Result<Commitment, Error> {
        let secrets = self.store.secrets().known();
        self.store
            .write(Level::Synced, move |tx| {
                let (commitment, mut chain) = require(tx, id)?;
                let decided = commitment.decide(&by, order, key).map_err(Error::from)?;
                let Some(event) = decided else { return Ok(commitment) };
                let event = without_keys(&secrets, event);
                append(tx, id, at, event, &mut chain)?;
                Ok(require(tx, id)?.0)
            })
            .await
    }

    /// Keeps a piece of evidence, for a commitment or for none.
    pub async fn capture(
        self,
        commitment: Option<CommitmentId>,
        at: Timestamp,
        by: Actor,
        new: NewProof,
        key: Option<String>,
    ) -> Result<Evidence, Error> {
        let evidence = self.keep(at, &by, new)?;
        if let Some(id) = commitment {
            self.act(id, at, by, Order::Capture(evidence.clone()), key).await?;
            return Ok(evidence);
        }
        let kept = evidence.clone();
        self.store
            .write(Level::Synced, move |tx| {
                let stream = evidence.id.to_string();
                let known: Option<i64> = tx
                    .prepare_cached("SELECT pos FROM events WHERE stream = ?1 LIMIT 1")?
                    .query_row([&stream], |row| row.get(0))
                    .optional()?;
                if known.is_some() {
                    return Ok(());
                }
                let event = CommitmentEvent::Captured(EvidenceCaptured { evidence, key });
                let (kind, body) = event.parts();
                let content = journal::Content { kind, body, hash: None };
                journal::append_row(tx, stream, at, content, &mut Chain::default())?;
                projections::apply_commitment(tx, &LedgerRecord { commitment: None, at, event })
            })
            .await?;
        Ok(kept)
    }

    /// A commitment with its evidence.
    pub fn get(self, id: CommitmentId) -> Result<Commitment, Error> {
        self.store.read(|tx| Ok(require(tx, id)?.0))
    }

    /// Commitments, the newest first.
    pub fn list(self, filter: &CommitmentFilter) -> Result<Vec<CommitmentRow>, Error> {
        let mut sql = "SELECT * FROM commitments WHERE 1".to_owned();
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        let wanted = [
            ("state", filter.state.map(|state| state.to_string())),
            ("session_id", filter.session.map(|id| id.to_string())),
            ("claimed_by", filter.claimed_by.as_ref().map(Party::to_string)),
            ("user_id", filter.user.clone()),
        ];
        for (column, value) in wanted {
            if let Some(value) = value {
                sql += &format!(" AND {column} = ?");
                values.push(Box::new(value));
            }
        }
        if let Some(place) = filter.after {
            sql += " AND (created_at, id) < (?, ?)";
            values.push(Box::new(crate::row::instant(place.created_at)));
            values.push(Box::new(place.id.to_string()));
        }
        let limit = filter.limit.unwrap_or(MAX_LISTED);
        sql += &format!(" ORDER BY created_at DESC, id DESC LIMIT {limit}");
        self.store.read(|tx| rows(tx, &sql, rusqlite::params_from_iter(values.iter())))
    }

    /// What is claimed for a session: by one of its tasks, or by the owner of the session.
    pub fn claimed_in(
        self,
        session: SessionId,
        user: Option<&str>,
    ) -> Result<Vec<CommitmentRow>, Error> {
        self.store.read(|tx| {
            rows(
                tx,
                &format!(
                    "SELECT * FROM commitments
                     WHERE {HELD}
                     AND (claimed_by = ?1 OR claimed_by IN (SELECT id FROM tasks WHERE session_id = ?2))
                 ORDER BY created_at, id"
                ),
                (user, session.to_string()),
            )
        })
    }

    /// The commitments of a piece of work: those that its session opened, and those that it claimed.
    pub fn of_work(
        self,
        session: SessionId,
        user: Option<&str>,
    ) -> Result<Vec<CommitmentRow>, Error> {
        self.store.read(|tx| {
            rows(
                tx,
                &format!(
                    "SELECT * FROM commitments WHERE session_id = ?2
                     OR claimed_by IN (SELECT id FROM tasks WHERE session_id = ?2)
                     OR (claimed_by = ?1 AND {HELD})
                 ORDER BY created_at, id"
                ),
                (user, session.to_string()),
            )
        })
    }

    /// Whether anything of a project waits to be done or judged.
    pub fn has_unfinished(self, project: &str) -> Result<bool, Error> {
        self.store.read(|tx| {
            let sql = &format!(
                "SELECT EXISTS (SELECT 1 FROM commitments WHERE state <> '{COMMITMENT_APPROVED}'
                           AND (project IS NULL OR project = ?1))"
            );
            Ok(tx.prepare_cached(sql)?.query_row([project], |row| row.get(0))?)
        })
    }

    /// The content of a piece of evidence; `None` where nothing but an address is kept, or it is gone or not what
    /// its hash says.
    pub fn content(self, evidence: &Evidence) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.path(&evidence.sha256)).ok()?;
        (evidence.bytes > 0 && sha256(&bytes) == evidence.sha256).then_some(bytes)
    }

    fn path(self, hash: &str) -> PathBuf {
        self.store.dir().evidence().join(hash)
    }

    fn keep(self, at: Timestamp, by: &Actor, mut new: NewProof) -> Result<Evidence, Error> {
        let secrets = self.store.secrets();
        new.uri = new.uri.map(|uri| secrets.clean(&uri));
        new.description = secrets.clean(&new.description);
        new.content = new.content.map(|content| secrets.clean_bytes(&content));
        let size = new.content.as_ref().map_or(0, Vec::len);
        if size > MAX_EVIDENCE_BYTES {
            let (what, limit) = ("the content of the evidence", MAX_EVIDENCE_BYTES);
            return Err(Refusal::TooLong { what, size, limit, unit: "bytes" }.into());
        }
        let uri = new.uri.unwrap_or_else(|| new.id.to_string());
        let hash = sha256(new.content.as_deref().unwrap_or(uri.as_bytes()));
        let path = self.path(&hash);
        if let Some(content) = new.content.as_deref().filter(|_| !path.exists()) {
            write_whole(&path, content)?;
        }
        Ok(Evidence {
            id: new.id,
            kind: new.kind,
            uri,
            sha256: hash,
            bytes: size as u64,
            description: new.description,
            by: by.party.clone(),
            task: new.task,
            at,
        })
    }
}

fn without_keys(secrets: &Secrets, event: CommitmentEvent) -> CommitmentEvent {
    let (kind, body) = event.parts();
    match secrets.redact(&body) {
        Cow::Borrowed(_) => event,
        Cow::Owned(clean) => {
            CommitmentEvent::from_parts(kind, EVENT_VERSION, &clean).unwrap_or(event)
        }
    }
}

fn require(tx: &Connection, id: CommitmentId) -> Result<(Commitment, Chain), Fault> {
    fold(tx, id)?.ok_or_else(|| Error::UnknownCommitment(id.to_string()).into())
}

fn fold(tx: &Connection, id: CommitmentId) -> Result<Option<(Commitment, Chain)>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE stream = ?1 ORDER BY seq");
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query([id.to_string()])?;
    let (mut chain, mut events) = (Chain::default(), Vec::new());
    while let Some(row) = rows.next()? {
        let stored = StoredRow::read(row)?;
        chain.follow(&stored)?;
        let record = stored.ledger_record(Some(id))?;
        events.push((record.at, record.event));
    }
    let commitment = Commitment::fold(id, events.iter().map(|(at, event)| (*at, event)));
    Ok(commitment.map(|commitment| (commitment, chain)))
}

fn append(
    tx: &Connection,
    id: CommitmentId,
    at: Timestamp,
    event: CommitmentEvent,
    chain: &mut Chain,
) -> Result<(), Fault> {
    let (kind, body) = event.parts();
    let content = journal::Content { kind, body, hash: None };
    journal::append_row(tx, id.to_string(), at, content, chain)?;
    projections::apply_commitment(tx, &LedgerRecord { commitment: Some(id), at, event })?;
    projections::set_commitment_tail(tx, &id.to_string(), *chain)
}

fn rows(
    tx: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<CommitmentRow>, Fault> {
    let mut statement = tx.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let of = Columns { table: "commitments", row };
        let reason: Option<String> = of.raw("verdict_reason")?;
        found.push(CommitmentRow {
            id: of.text("id")?,
            title: of.raw("title")?,
            state: of.text("state")?,
            opened_by: of.text("opened_by")?,
            claimed_by: of.optional("claimed_by")?,
            verdict: of.optional("verdict")?,
            verdict_reason: reason.filter(|reason| !reason.is_empty()),
            evidence_count: usize::try_from(of.raw::<i64>("evidence_count")?).unwrap_or(0),
            session_id: of.optional("session_id")?,
            task_id: of.optional("task_id")?,
            project: of.raw("project")?,
            user_id: of.raw("user_id")?,
            created_at: of.text("created_at")?,
            updated_at: of.text("updated_at")?,
        });
    }
    Ok(found)
}

impl StoredRow {
    /// The commitment whose stream it belongs to.
    pub(crate) fn commitment(&self) -> Option<CommitmentId> {
        std::str::from_utf8(&self.stream).ok()?.parse().ok()
    }

    /// The evidence of which it is the stream.
    pub(crate) fn evidence(&self) -> Option<EvidenceId> {
        std::str::from_utf8(&self.stream).ok()?.parse().ok()
    }

    /// What it says of a commitment, or of evidence alone.
    pub(crate) fn ledger_record(
        self,
        commitment: Option<CommitmentId>,
    ) -> Result<LedgerRecord, Fault> {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned).ok();
        let unreadable = || self.damaged(journal::UNREADABLE);
        let at = self.at.instant().ok_or_else(unreadable)?;
        let (kind, body) = (text(&self.kind), text(&self.body));
        let (kind, body) = (kind.ok_or_else(unreadable)?, body.ok_or_else(unreadable)?);
        let version = u32::try_from(self.version).unwrap_or(u32::MAX);
        let event = CommitmentEvent::from_parts(&kind, version, &body)
            .map_err(|source| Error::Unreadable { pos: self.pos, source: source.into() })?;
        Ok(LedgerRecord { commitment, at, event })
    }
}
