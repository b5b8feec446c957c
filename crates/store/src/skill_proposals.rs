//! What the tasks of a project have in common, and the skills that were proposed for it (MS-165).

use jiff::{SignedDuration, Timestamp};
use rusqlite::OptionalExtension as _;
use windlass_core::id::TaskId;
use windlass_core::string_enum;

use crate::row::{self, Columns};
use crate::{Error, Level, Store};

/// Pieces of evidence of one task; a task that does more repeats itself.
const MAX_PER_TASK: usize = 300;

string_enum! {
    /// What several tasks had in common (MS-162).
    EvidenceKind ("evidence kind") {
        /// What a person had to say to the agent.
        Correction = "correction",
        /// A command that did not work.
        Failure = "failure",
        /// A command that worked and does more than read.
        Command = "command",
        /// A file that was read.
        File = "file",
    }
}

string_enum! {
    /// What became of a proposal.
    ProposalStatus ("proposal status") {
        /// A person has not decided yet.
        Open = "open",
        Accepted = "accepted",
        Rejected = "rejected",
    }
}

/// One thing that a task did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvidence {
    pub kind: EvidenceKind,
    /// What makes it the same in two tasks.
    pub key: String,
    /// What else is known of it, such as what worked in place of a command that failed.
    pub detail: String,
}

/// One thing that several tasks did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    pub kind: EvidenceKind,
    pub key: String,
    /// As in the latest of them.
    pub detail: String,
    /// The tasks, the latest last.
    pub tasks: Vec<TaskId>,
}

/// A skill to propose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProposal {
    pub project: String,
    pub name: String,
    /// What it is proposed for: no second proposal is made for the same thing.
    pub kind: EvidenceKind,
    pub key: String,
    /// Everything that speaks for it, as JSON.
    pub evidence: String,
}

/// A skill that was proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposalRow {
    pub number: i64,
    pub project: String,
    pub name: String,
    pub kind: EvidenceKind,
    pub key: String,
    pub evidence: String,
    pub status: ProposalStatus,
    /// Why it was decided so.
    pub note: String,
    pub made_at: Timestamp,
    pub decided_at: Option<Timestamp>,
}

/// Evidence and proposals.
#[derive(Clone, Copy)]
pub struct SkillProposals<'a> {
    pub(crate) store: &'a Store,
}

impl SkillProposals<'_> {
    /// Records what a task did, in place of what was recorded of it before.
    pub async fn record(
        self,
        at: Timestamp,
        project: String,
        task: TaskId,
        evidence: Vec<NewEvidence>,
    ) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.execute("DELETE FROM skill_evidence WHERE task_id = ?1", (task.to_string(),))?;
                let mut insert = tx.prepare_cached(
                    "INSERT OR REPLACE INTO skill_evidence (project, task_id, kind, key, detail, seen_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                for NewEvidence { kind, key, detail } in evidence.iter().take(MAX_PER_TASK) {
                    let (task, at) = (task.to_string(), row::instant(at));
                    insert.execute((&project, task, kind.as_str(), key, detail, at))?;
                }
                Ok(())
            })
            .await
    }

    /// What at least so many tasks of a project did.
    pub fn recurrences(self, project: &str, at_least: usize) -> Result<Vec<Recurrence>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT kind, key, detail, task_id FROM skill_evidence WHERE project = ?1
                 ORDER BY kind, key, seen_at, task_id",
            )?;
            let mut rows = statement.query((project,))?;
            let mut found: Vec<Recurrence> = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "skill_evidence", row };
                let (kind, key): (EvidenceKind, String) = (of.text("kind")?, of.raw("key")?);
                let (detail, task): (String, TaskId) = (of.raw("detail")?, of.text("task_id")?);
                match found.last_mut() {
                    Some(last) if last.kind == kind && last.key == key => {
                        last.detail = detail;
                        last.tasks.push(task);
                    }
                    _ => found.push(Recurrence { kind, key, detail, tasks: vec![task] }),
                }
            }
            found.retain(|one| one.tasks.len() >= at_least);
            Ok(found)
        })
    }

    /// Proposes a skill, unless the project had a proposal within the cooldown or one for the same thing ever (MS-215).
    pub async fn propose(
        self,
        at: Timestamp,
        cooldown: SignedDuration,
        new: NewProposal,
    ) -> Result<Option<i64>, Error> {
        let since = row::instant(at - cooldown);
        self.store
            .write(Level::Synced, move |tx| {
                let earlier: Option<i64> = tx
                    .query_row(
                        "SELECT id FROM skill_proposals WHERE project = ?1
                         AND (made_at > ?2 OR kind = ?3 AND key = ?4) LIMIT 1",
                        (&new.project, &since, new.kind.as_str(), &new.key),
                        |row| row.get(0),
                    )
                    .optional()?;
                if earlier.is_some() {
                    return Ok(None);
                }
                tx.execute(
                    "INSERT INTO skill_proposals (project, name, kind, key, evidence, status, note, made_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, '', ?7)",
                    (
                        &new.project,
                        &new.name,
                        new.kind.as_str(),
                        &new.key,
                        &new.evidence,
                        ProposalStatus::Open.as_str(),
                        row::instant(at),
                    ),
                )?;
                Ok(Some(tx.last_insert_rowid()))
            })
            .await
    }

    /// The proposals for one project, or for all, the latest last.
    pub fn all(self, project: Option<&str>) -> Result<Vec<ProposalRow>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id, project, name, kind, key, evidence, status, note, made_at, decided_at
                 FROM skill_proposals WHERE ?1 IS NULL OR project = ?1 ORDER BY id",
            )?;
            let mut rows = statement.query((project,))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "skill_proposals", row };
                found.push(ProposalRow {
                    number: of.raw("id")?,
                    project: of.raw("project")?,
                    name: of.raw("name")?,
                    kind: of.text("kind")?,
                    key: of.raw("key")?,
                    evidence: of.raw("evidence")?,
                    status: of.text("status")?,
                    note: of.raw("note")?,
                    made_at: of.text("made_at")?,
                    decided_at: of.optional("decided_at")?,
                });
            }
            Ok(found)
        })
    }

    /// Decides about an open proposal; whether there was an open one of this number.
    pub async fn decide(
        self,
        at: Timestamp,
        number: i64,
        status: ProposalStatus,
        note: String,
    ) -> Result<bool, Error> {
        self.store
            .write(Level::Synced, move |tx| {
                let changed = tx.execute(
                    "UPDATE skill_proposals SET status = ?2, note = ?3, decided_at = ?4
                     WHERE id = ?1 AND status = ?5",
                    (
                        number,
                        status.as_str(),
                        note,
                        row::instant(at),
                        ProposalStatus::Open.as_str(),
                    ),
                )?;
                Ok(changed > 0)
            })
            .await
    }
}
