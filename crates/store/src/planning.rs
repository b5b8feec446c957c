//! Plans as rows: which is active where, issues, decisions, and where snapshots are. Written by commands and
//! by tools, and no fold of the journal: a rebuild leaves them as they are.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use windlass_core::id::{DecisionId, IssueId, PlanId, SessionId, TaskId};
use windlass_core::planning::{Resolution, Severity};
use windlass_core::status::TaskStatus;
use windlass_core::string_enum;

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::words::PLAN_ACTIVE;
use crate::{Error, Level, Store};

string_enum! {
    /// Whether a plan is the one of its project. A project has at most one.
    PlanActivation ("plan state") {
        Active = "active",
        Inactive = "inactive",
    }
}

/// A plan that was activated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    pub id: PlanId,
    /// The plan's own name.
    pub name: String,
    /// The directory that it belongs to.
    pub project: String,
    /// The file of the plan.
    pub path: String,
    pub title: String,
    /// The hash of the file as it was activated.
    pub digest: String,
    /// The file as it was activated.
    pub manifest: String,
    /// What each task may use, as JSON of the plan's crate.
    pub tasks: String,
    pub is_active: bool,
    /// The session of its run, once it has one.
    pub session: Option<SessionId>,
    pub activated_at: Timestamp,
    pub activated_by: String,
}

/// An issue to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIssue {
    pub id: IssueId,
    pub project: String,
    pub plan: Option<String>,
    pub task: Option<String>,
    pub severity: Severity,
    pub owner: Option<String>,
    pub description: String,
}

/// An issue that somebody logged (PL-011).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    pub id: IssueId,
    /// The directory that it belongs to.
    #[serde(skip)]
    pub project: String,
    pub plan_id: Option<String>,
    pub task_id: Option<String>,
    pub severity: Severity,
    pub owner_team: Option<String>,
    pub description: String,
    pub created_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
    pub resolution: Option<Resolution>,
}

/// A decision to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDecision {
    pub id: DecisionId,
    pub project: String,
    pub plan: Option<String>,
    pub task: Option<String>,
    pub title: String,
    pub reasoning: String,
    pub alternatives: Vec<String>,
}

/// A decision that somebody logged (PL-013).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub id: DecisionId,
    pub plan_id: Option<String>,
    pub task_id: Option<String>,
    pub title: String,
    pub reasoning: String,
    pub alternatives: Vec<String>,
    pub created_at: Timestamp,
}

/// Which issues or decisions of a project are wanted.
#[derive(Clone, Debug, Default)]
pub struct PlanningFilter {
    pub project: String,
    pub plan: Option<String>,
    pub task: Option<String>,
    pub severity: Option<Severity>,
    pub owner: Option<String>,
    /// Those without a resolution alone.
    pub open: bool,
}

/// A task of a plan that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanTaskRow {
    pub task: TaskId,
    pub phase: String,
    pub key: String,
    pub status: TaskStatus,
}

/// Plans, issues, decisions and snapshots.
#[derive(Clone, Copy)]
pub struct Planning<'a> {
    pub(crate) store: &'a Store,
}

impl Planning<'_> {
    /// Makes a plan the active one of its project; synced. Its run, if it has one, stays its own.
    pub async fn activate(self, plan: PlanRow) -> Result<(), Error> {
        self.store
            .write(Level::Synced, move |tx| {
                tx.prepare_cached(
                    "UPDATE plans SET state = ?3 WHERE project = ?1 AND id <> ?2",
                )?
                .execute((
                    &plan.project,
                    plan.id.to_string(),
                    PlanActivation::Inactive.as_str(),
                ))?;
                tx.prepare_cached(
                    "INSERT INTO plans (id, name, project, path, title, digest, manifest, tasks, state,
                                        session_id, activated_at, activated_by)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?12, ?9, ?10, ?11)
                     ON CONFLICT (id) DO UPDATE SET
                         path = ?4, title = ?5, digest = ?6, manifest = ?7, tasks = ?8, state = ?12,
                         session_id = ?9, activated_at = ?10, activated_by = ?11",
                )?
                .execute((
                    plan.id.to_string(),
                    &plan.name,
                    &plan.project,
                    &plan.path,
                    &plan.title,
                    &plan.digest,
                    &plan.manifest,
                    &plan.tasks,
                    plan.session.map(|session| session.to_string()),
                    row::instant(plan.activated_at),
                    &plan.activated_by,
                    PlanActivation::Active.as_str(),
                ))?;
                Ok(())
            })
            .await
    }

    /// Gives a plan the session that its tasks belong to, unless it has one; returns the one that counts.
    pub async fn begin_run(self, plan: PlanId, session: SessionId) -> Result<SessionId, Error> {
        self.store
            .write(Level::Synced, move |tx| {
                tx.prepare_cached(
                    "UPDATE plans SET session_id = coalesce(session_id, ?2) WHERE id = ?1",
                )?
                .execute((plan.to_string(), session.to_string()))?;
                let found: String = tx
                    .prepare_cached("SELECT session_id FROM plans WHERE id = ?1")?
                    .query_row([plan.to_string()], |row| row.get(0))?;
                row::parse("plans", &found)
            })
            .await
    }

    /// The active plan of a project.
    pub fn active(self, project: &str) -> Result<Option<PlanRow>, Error> {
        self.one(&format!("project = ?1 AND state = '{PLAN_ACTIVE}'"), project)
    }

    /// A plan by its id.
    pub fn get(self, plan: PlanId) -> Result<Option<PlanRow>, Error> {
        self.one("id = ?1", &plan.to_string())
    }

    /// Every plan that was activated, the newest first.
    pub fn all(self) -> Result<Vec<PlanRow>, Error> {
        self.store.read(|tx| {
            let mut statement =
                tx.prepare_cached("SELECT * FROM plans ORDER BY activated_at DESC, id")?;
            let mut rows = statement.query(())?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(plan_row(row)?);
            }
            Ok(found)
        })
    }

    /// The tasks of a plan's run, by session.
    pub fn tasks(self, plan: PlanId, session: SessionId) -> Result<Vec<PlanTaskRow>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT plan_tasks.task_id, phase, key, status FROM plan_tasks
                 JOIN tasks ON tasks.id = plan_tasks.task_id
                 WHERE plan_id = ?1 AND plan_tasks.session_id = ?2 ORDER BY tasks.created_at, tasks.id",
            )?;
            let mut rows = statement.query((plan.to_string(), session.to_string()))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "plan_tasks", row };
                found.push(PlanTaskRow {
                    task: of.text("task_id")?,
                    phase: of.raw("phase")?,
                    key: of.raw("key")?,
                    status: of.text("status")?,
                });
            }
            Ok(found)
        })
    }

    /// Logs an issue; synced. One of the same id was logged before, and stays.
    pub async fn log_issue(self, at: Timestamp, mut issue: NewIssue) -> Result<Issue, Error> {
        issue.description = self.store.secrets().clean(&issue.description);
        self.store
            .write(Level::Synced, move |tx| {
                tx.prepare_cached(
                    "INSERT OR IGNORE INTO planning_issues
                         (id, planId, taskId, severity, ownerTeam, description, createdAt, project)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?
                .execute((
                    issue.id.to_string(),
                    &issue.plan,
                    &issue.task,
                    issue.severity.as_str(),
                    &issue.owner,
                    &issue.description,
                    row::instant(at),
                    &issue.project,
                ))?;
                find_issue(tx, issue.id)?
                    .ok_or_else(|| Error::UnknownIssue(issue.id.to_string()).into())
            })
            .await
    }

    /// Issues of a project, oldest first.
    pub fn issues(self, filter: &PlanningFilter) -> Result<Vec<Issue>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM planning_issues WHERE project = ?1
                     AND (?2 IS NULL OR taskId = ?2) AND (?3 IS NULL OR severity = ?3)
                     AND (?4 IS NULL OR ownerTeam = ?4) AND (?5 IS NULL OR planId = ?5)
                     AND (NOT ?6 OR resolvedAt IS NULL)
                 ORDER BY createdAt, id",
            )?;
            let mut rows = statement.query((
                &filter.project,
                &filter.task,
                filter.severity.map(Severity::as_str),
                &filter.owner,
                &filter.plan,
                filter.open,
            ))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(issue(row)?);
            }
            Ok(found)
        })
    }

    /// An issue by its id, or by a unique beginning or end of it.
    pub fn find_issue(self, text: &str) -> Result<Issue, Error> {
        let unknown = || Error::UnknownIssue(text.to_owned());
        let id = self.store.ids().issue(text)?;
        self.store.read(|tx| find_issue(tx, id)).and_then(|found| found.ok_or_else(unknown))
    }

    /// Says what became of an issue; synced. `false` where it was resolved before, which stays.
    pub async fn resolve_issue(
        self,
        at: Timestamp,
        id: IssueId,
        resolution: Resolution,
    ) -> Result<bool, Error> {
        self.store
            .write(Level::Synced, move |tx| {
                let changed = tx
                    .prepare_cached(
                        "UPDATE planning_issues SET resolvedAt = ?2, resolution = ?3
                         WHERE id = ?1 AND resolvedAt IS NULL",
                    )?
                    .execute((id.to_string(), row::instant(at), resolution.as_str()))?;
                Ok(changed > 0)
            })
            .await
    }

    /// Logs a decision; synced. One of the same id was logged before, and stays.
    pub async fn log_decision(
        self,
        at: Timestamp,
        mut decision: NewDecision,
    ) -> Result<Decision, Error> {
        let secrets = self.store.secrets();
        decision.title = secrets.clean(&decision.title);
        decision.reasoning = secrets.clean(&decision.reasoning);
        decision.alternatives = secrets.clean_value(decision.alternatives);
        self.store
            .write(Level::Synced, move |tx| {
                tx.prepare_cached(
                    "INSERT OR IGNORE INTO planning_decisions
                         (id, planId, taskId, title, reasoning, alternatives, createdAt, project)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?
                .execute((
                    decision.id.to_string(),
                    &decision.plan,
                    &decision.task,
                    &decision.title,
                    &decision.reasoning,
                    row::json(&decision.alternatives),
                    row::instant(at),
                    &decision.project,
                ))?;
                tx.prepare_cached("SELECT * FROM planning_decisions WHERE id = ?1")?
                    .query_row([decision.id.to_string()], |row| Ok(self::decision(row)))?
            })
            .await
    }

    /// Decisions of a project, oldest first.
    pub fn decisions(self, filter: &PlanningFilter) -> Result<Vec<Decision>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT * FROM planning_decisions WHERE project = ?1
                     AND (?2 IS NULL OR taskId = ?2) AND (?3 IS NULL OR planId = ?3)
                 ORDER BY createdAt, id",
            )?;
            let mut rows = statement.query((&filter.project, &filter.task, &filter.plan))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(decision(row)?);
            }
            Ok(found)
        })
    }

    /// Notes where the snapshot of a task is.
    pub async fn index_snapshot(
        self,
        at: Timestamp,
        (project, plan, task): (String, String, String),
        path: String,
    ) -> Result<(), Error> {
        self.store
            .write(Level::Synced, move |tx| {
                tx.prepare_cached(
                    "INSERT INTO snapshots (project, plan, task, path, saved_at)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (project, plan, task) DO UPDATE SET path = ?4, saved_at = ?5",
                )?
                .execute((project, plan, task, path, row::instant(at)))?;
                Ok(())
            })
            .await
    }

    /// The task whose snapshot was saved last.
    pub fn last_snapshot(self, project: &str, plan: &str) -> Result<Option<String>, Error> {
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached(
                    "SELECT task FROM snapshots WHERE project = ?1 AND plan = ?2
                     ORDER BY saved_at DESC, task LIMIT 1",
                )?
                .query_row((project, plan), |row| row.get(0))
                .optional()?)
        })
    }

    fn one(self, condition: &str, value: &str) -> Result<Option<PlanRow>, Error> {
        self.store.read(|tx| {
            let sql = format!("SELECT * FROM plans WHERE {condition}");
            let mut statement = tx.prepare_cached(&sql)?;
            let mut rows = statement.query([value])?;
            rows.next()?.map(plan_row).transpose()
        })
    }
}

fn plan_row(row: &Row<'_>) -> Result<PlanRow, Fault> {
    let of = Columns { table: "plans", row };
    Ok(PlanRow {
        id: of.text("id")?,
        name: of.raw("name")?,
        project: of.raw("project")?,
        path: of.raw("path")?,
        title: of.raw("title")?,
        digest: of.raw("digest")?,
        manifest: of.raw("manifest")?,
        tasks: of.raw("tasks")?,
        is_active: of.text::<PlanActivation>("state")? == PlanActivation::Active,
        session: of.optional("session_id")?,
        activated_at: of.text("activated_at")?,
        activated_by: of.raw("activated_by")?,
    })
}

fn find_issue(tx: &Connection, id: IssueId) -> Result<Option<Issue>, Fault> {
    let mut statement = tx.prepare_cached("SELECT * FROM planning_issues WHERE id = ?1")?;
    let mut rows = statement.query([id.to_string()])?;
    rows.next()?.map(issue).transpose()
}

fn issue(row: &Row<'_>) -> Result<Issue, Fault> {
    let of = Columns { table: "planning_issues", row };
    Ok(Issue {
        id: of.text("id")?,
        project: of.raw("project")?,
        plan_id: of.raw("planId")?,
        task_id: of.raw("taskId")?,
        severity: of.text("severity")?,
        owner_team: of.raw("ownerTeam")?,
        description: of.raw("description")?,
        created_at: of.text("createdAt")?,
        resolved_at: of.optional("resolvedAt")?,
        resolution: of.optional("resolution")?,
    })
}

fn decision(row: &Row<'_>) -> Result<Decision, Fault> {
    let of = Columns { table: "planning_decisions", row };
    Ok(Decision {
        id: of.text("id")?,
        plan_id: of.raw("planId")?,
        task_id: of.raw("taskId")?,
        title: of.raw("title")?,
        reasoning: of.raw("reasoning")?,
        alternatives: of.json("alternatives")?.unwrap_or_default(),
        created_at: of.text("createdAt")?,
    })
}
