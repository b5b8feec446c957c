//! Which worker edits what (MS-212). Rows beside the journal: they hold only while their task sends heartbeats.

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use windlass_core::claim::{Claim, LineRange};
use windlass_core::id::TaskId;

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::words::LIVE;
use crate::{Error, Level, Store, Tasks};

/// A claim holds while its task has sent a heartbeat this recently (O-52).
pub const CLAIM_HOLDS: SignedDuration = SignedDuration::from_secs(90);

/// A claim, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldClaim {
    pub task: TaskId,
    pub claim: Claim,
    pub claimed_at: Timestamp,
    /// When the holder last sent a heartbeat.
    pub last_heartbeat_at: Option<Timestamp>,
}

impl HeldClaim {
    /// Whether others must leave it alone.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.last_heartbeat_at.is_some_and(|beat| now.duration_since(beat) <= CLAIM_HOLDS)
    }
}

/// What workers of one repository will edit.
#[derive(Clone, Copy)]
pub struct Claims<'a> {
    store: &'a Store,
}

impl<'a> Tasks<'a> {
    /// Which task edits what.
    pub fn claims(self) -> Claims<'a> {
        Claims { store: self.store }
    }
}

impl Claims<'_> {
    /// Claims a place for a task, or returns who holds it. One transaction: of two that claim at once, one is refused.
    pub async fn claim(
        self,
        repository: &str,
        task: TaskId,
        claim: Claim,
        now: Timestamp,
    ) -> Result<Option<HeldClaim>, Error> {
        let repository = repository.to_owned();
        self.store
            .write(Level::Written, move |tx| {
                let others = holders(tx, &repository, Some(&claim.path))?;
                let is_in_the_way = |other: &HeldClaim| {
                    other.task != task && other.holds(now) && other.claim.overlaps(&claim)
                };
                if let Some(holder) = others.into_iter().find(is_in_the_way) {
                    return Ok(Some(holder));
                }
                let lines = claim.lines.map(|lines| (lines.first, lines.last));
                tx.prepare_cached(
                    "INSERT OR REPLACE INTO intent_claims
                         (repository, task_id, path, first_line, last_line, symbol, claimed_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute((
                    repository,
                    task.to_string(),
                    claim.path,
                    lines.map(|(first, _)| first),
                    lines.map(|(_, last)| last),
                    claim.symbol,
                    row::instant(now),
                ))?;
                Ok(None)
            })
            .await
    }

    /// What a task has claimed, oldest first.
    pub fn of_task(self, task: TaskId) -> Result<Vec<Claim>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM intent_claims WHERE task_id = ?1 ORDER BY claimed_at, rowid",
            )?;
            let mut rows = statement.query([task.to_string()])?;
            let mut claims: Vec<Claim> = Vec::new();
            while let Some(row) = rows.next()? {
                let claim = read(&Columns { table: "intent_claims", row })?;
                if !claims.contains(&claim) {
                    claims.push(claim);
                }
            }
            Ok(claims)
        })
    }

    /// Every claim in a repository whose task has not ended, oldest first.
    pub fn of(self, repository: &str) -> Result<Vec<HeldClaim>, Error> {
        self.store.read(|tx| holders(tx, repository, None))
    }
}

/// A sub-agent has no runtime row of its own; its root's process speaks for it.
fn holders(tx: &Connection, repository: &str, path: Option<&str>) -> Result<Vec<HeldClaim>, Fault> {
    let mut statement = tx.prepare_cached(&format!(
        "SELECT intent_claims.*, coalesce(own.last_heartbeat_at, roots.last_heartbeat_at) AS beat
         FROM intent_claims JOIN tasks ON tasks.id = intent_claims.task_id
             LEFT JOIN task_runtime AS own ON own.task_id = tasks.id
             LEFT JOIN task_runtime AS roots ON roots.task_id = tasks.root_id
         WHERE repository = ?1 AND (?2 IS NULL OR path = ?2)
             AND tasks.{LIVE}
         ORDER BY claimed_at, intent_claims.task_id"
    ))?;
    let mut rows = statement.query((repository, path))?;
    let mut claims = Vec::new();
    while let Some(row) = rows.next()? {
        let of = Columns { table: "intent_claims", row };
        let beat: Option<String> = of.raw("beat")?;
        claims.push(HeldClaim {
            task: of.text("task_id")?,
            claim: read(&of)?,
            claimed_at: of.text("claimed_at")?,
            last_heartbeat_at: beat.map(|at| row::parse("task_runtime", &at)).transpose()?,
        });
    }
    Ok(claims)
}

fn read(of: &Columns<'_, '_>) -> Result<Claim, Fault> {
    let (first, last): (Option<u32>, Option<u32>) = (of.raw("first_line")?, of.raw("last_line")?);
    Ok(Claim {
        path: of.raw("path")?,
        lines: first.zip(last).map(|(first, last)| LineRange { first, last }),
        symbol: of.raw("symbol")?,
    })
}
