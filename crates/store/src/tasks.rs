//! Reading tasks: rows, lists, deliverables, transitions and dependency blockers.

use std::collections::BTreeSet;

use jiff::{Timestamp, Zoned};
use rusqlite::{Connection, OptionalExtension, Row, ToSql};
use windlass_core::axes::Axes;
use windlass_core::command::{Deliverable, TaskResult, UsageMetrics};
use windlass_core::error::ErrorDetails;
use windlass_core::event::{Driver, KINDS_WITH_USAGE};
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_core::plan::WorkingPlan;
use windlass_core::role::Role;
use windlass_core::schedule::DeadlineAction;
use windlass_core::status::{StatusReason, TaskStatus};

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::words::{DONE, LIVE};
use crate::{Error, Store};

/// A task as lists and pages show it. The journal has the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// Identifies the task.
    pub id: TaskId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The submission that created it.
    pub command_id: CommandId,
    /// The task that started it.
    pub parent_id: Option<TaskId>,
    /// The root of its tree; itself without a parent.
    pub root_id: TaskId,
    /// How many agents are above it in its tree.
    pub depth: u32,
    /// Who drives it.
    pub driver: Driver,
    /// What is wanted.
    pub goal: String,
    /// The directory it works in.
    pub workspace: String,
    /// The axes in force.
    pub axes: Axes,
    /// Where it is in its lifecycle.
    pub status: TaskStatus,
    /// Why it has this status.
    pub reason: StatusReason,
    /// Why, in words.
    pub detail: Option<String>,
    /// What went wrong.
    pub error: Option<ErrorDetails>,
    /// The result of its last run segment.
    pub result: Option<TaskResult>,
    /// What it used: tokens up to now, the rest up to the last ended segment.
    pub usage: UsageMetrics,
    /// The working plan.
    pub plan: Option<WorkingPlan>,
    /// The model it talks to.
    pub model: Option<String>,
    /// The container it runs in, if it runs in one.
    pub container_id: Option<String>,
    /// Model replies so far.
    pub turns: u32,
    /// Events in its journal.
    pub last_seq: u64,
    /// Tasks that must be done before it starts (MS-131).
    pub dependency_blockers: Vec<TaskId>,
    /// Times it was retried (MS-132).
    pub retry_count: u32,
    /// Times it may be retried.
    pub max_retries: u32,
    /// A git ref or patch file to go back to (MS-133).
    pub checkpoint_ref: Option<String>,
    /// What it may cost (MS-134).
    pub cost_budget: Option<f64>,
    /// What it has cost.
    pub cost_spent: f64,
    /// When it was submitted (MS-135).
    pub created_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// When it must be finished.
    pub deadline: Option<Timestamp>,
    /// What happens then.
    pub deadline_action: DeadlineAction,
    /// When a parked task continues automatically, in its own time zone (MS-136).
    pub next_action_at: Option<Zoned>,
    /// What a parallel worker intends to edit (MS-137).
    pub intent_claim: Option<String>,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// How many owners it has had.
    pub epoch: u64,
}

impl TaskRow {
    /// The goal in one line of at most `width` characters (ES-078).
    pub fn goal_summary(&self, width: usize) -> String {
        windlass_core::text::one_line(&self.goal, width)
    }
}

/// Where a task belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOrigin {
    pub session: SessionId,
    /// The root of its tree; itself without a parent.
    pub root: TaskId,
    /// The user of the session, where that is known.
    pub user: Option<String>,
}

/// Which tasks a list holds; what is not set does not narrow it.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// Started by this task.
    pub parent: Option<TaskId>,
    /// Of this tree, the root included.
    pub root: Option<TaskId>,
    /// With one of these statuses.
    pub statuses: Vec<TaskStatus>,
    /// With this kind of driver.
    pub driver: Option<Driver>,
    /// Working in this directory.
    pub workspace: Option<String>,
    /// Only tasks that have not ended.
    pub live: bool,
    /// Only tasks without a parent.
    pub roots: bool,
    /// Of sessions of this user.
    pub user: Option<String>,
    /// With this text in the goal, in upper or lower case.
    pub goal: Option<String>,
    /// With this text in the goal or the directory, or at the end of the id, in upper or lower case.
    pub text: Option<String>,
    /// Listed after this task.
    pub after: Option<ListPlace>,
    /// At most this many, the newest.
    pub limit: Option<usize>,
}

/// A task's place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPlace {
    pub created_at: Timestamp,
    pub id: TaskId,
}

/// One change of a task's status (MS-141).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Transition {
    pub from: TaskStatus,
    pub to: TaskStatus,
    pub reason: Option<StatusReason>,
    /// When it took effect.
    pub scope: Option<String>,
    pub at: Timestamp,
}

/// Tasks as lists and pages show them.
#[derive(Clone, Copy)]
pub struct Tasks<'a> {
    pub(crate) store: &'a Store,
}

impl Tasks<'_> {
    /// Whether the price of any of a task's own replies is known.
    pub fn is_priced(self, task: TaskId) -> Result<bool, Error> {
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM events WHERE stream = ?1
                         AND kind IN (SELECT value FROM json_each(?2))
                         AND body ->> '$.usage.cost_usd' IS NOT NULL)",
                )?
                .query_row((task.to_string(), row::json(&KINDS_WITH_USAGE)), |row| row.get(0))?)
        })
    }

    /// Whether a model has replied to a task itself.
    pub fn has_replies(self, task: TaskId) -> Result<bool, Error> {
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM events WHERE stream = ?1
                         AND kind IN (SELECT value FROM json_each(?2)))",
                )?
                .query_row((task.to_string(), row::json(&KINDS_WITH_USAGE)), |row| row.get(0))?)
        })
    }

    /// The task with this id.
    pub fn get(self, id: TaskId) -> Result<Option<TaskRow>, Error> {
        self.store.read(|tx| task(tx, id))
    }

    /// Where a task belongs; `None` where there is no such task.
    pub fn origin(self, id: TaskId) -> Result<Option<TaskOrigin>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT session_id, root_id, sessions.user_id AS user_id FROM tasks
                 LEFT JOIN sessions ON sessions.id = tasks.session_id WHERE tasks.id = ?1",
            )?;
            let mut rows = statement.query([id.to_string()])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let of = Columns { table: "tasks", row };
            Ok(Some(TaskOrigin {
                session: of.text("session_id")?,
                root: of.text("root_id")?,
                user: of.raw("user_id")?,
            }))
        })
    }

    /// The task that a command ran for; `None` where nothing of its output is kept.
    pub fn of_output(self, command_id: &str) -> Result<Option<TaskId>, Error> {
        let found: Option<Option<String>> = self.store.read(|tx| {
            Ok(tx
                .prepare_cached("SELECT task_id FROM spawn_logs WHERE command_id = ?1 LIMIT 1")?
                .query_row([command_id], |row| row.get(0))
                .optional()?)
        })?;
        Ok(found.flatten().and_then(|task| task.parse().ok()))
    }

    /// The tasks that the filter lets through, the newest first.
    pub fn list(self, filter: &Filter) -> Result<Vec<TaskRow>, Error> {
        self.store.read(|tx| tasks(tx, filter))
    }

    /// How many tasks the filter lets through, whatever its limit.
    pub fn count(self, filter: &Filter) -> Result<usize, Error> {
        self.store.read(|tx| {
            let (conditions, values) = conditions(filter);
            let mut statement =
                tx.prepare_cached(&format!("SELECT count(*) FROM tasks WHERE {conditions}"))?;
            let count: i64 =
                statement.query_row(rusqlite::params_from_iter(values), |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }

    /// What a task has published, by path.
    pub fn deliverables(self, task: TaskId) -> Result<Vec<Deliverable>, Error> {
        self.store.read(|tx| deliverables(tx, task))
    }

    /// The changes of a task's status, oldest first.
    pub fn transitions(self, task: TaskId) -> Result<Vec<Transition>, Error> {
        self.store.read(|tx| transitions(tx, task))
    }

    /// The dependency blockers of a task that are not done; it does not start before they are (MS-131).
    pub fn open_blockers(self, task: TaskId) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let blockers = self::task(tx, task)?.map(|row| row.dependency_blockers);
            let mut open = Vec::new();
            for blocker in blockers.unwrap_or_default() {
                // A blocker that does not exist is not done either.
                if self::task(tx, blocker)?.is_none_or(|row| row.status != TaskStatus::Done) {
                    open.push(blocker);
                }
            }
            Ok(open)
        })
    }

    /// Of these tasks, those that are done; asked once for a whole list.
    pub fn finished_of(self, tasks: &BTreeSet<TaskId>) -> Result<BTreeSet<TaskId>, Error> {
        if tasks.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids = row::json(&tasks);
        self.store.read(|tx| {
            let mut query = tx.prepare_cached(&format!(
                "SELECT id FROM tasks WHERE status = '{DONE}'
                     AND id IN (SELECT value FROM json_each(?1))"
            ))?;
            let found = query.query_map([&ids], |row| row.get::<_, String>(0))?;
            found.map(|id| row::parse("tasks", &id?)).collect()
        })
    }

    pub(crate) fn root_of(self, task: TaskId) -> Result<TaskId, Error> {
        self.store.read(|tx| {
            let root: Option<String> = tx
                .prepare_cached("SELECT root_id FROM tasks WHERE id = ?1")?
                .query_row([task.to_string()], |row| row.get(0))
                .optional()?;
            let root = root.ok_or_else(|| Error::UnknownTask(task.to_string()))?;
            row::parse("tasks", &root)
        })
    }
}

pub(crate) fn task(tx: &Connection, id: TaskId) -> Result<Option<TaskRow>, Fault> {
    let mut statement = tx.prepare_cached("SELECT * FROM tasks WHERE id = ?1")?;
    let mut rows = statement.query([id.to_string()])?;
    rows.next()?.map(task_row).transpose()
}

/// The axes of a task, and whether it is a sub-agent.
pub(crate) fn axes_of(tx: &Connection, task: TaskId) -> Result<Option<TaskAxes>, Fault> {
    let mut statement = tx.prepare_cached(
        "SELECT work_mode, run_control, permission_profile, model_mode, surface, parent_id, role
         FROM tasks WHERE id = ?1",
    )?;
    let mut rows = statement.query([task.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let is_child = row.get::<_, Option<String>>("parent_id")?.is_some();
    let of = Columns { table: "tasks", row };
    Ok(Some(TaskAxes { axes: axes(&of)?, role: of.optional("role")?, is_child }))
}

/// The axes and the role of a task, and whether another task started it.
pub(crate) struct TaskAxes {
    pub(crate) axes: Axes,
    pub(crate) role: Option<Role>,
    pub(crate) is_child: bool,
}

/// The axes in a row of a task or a session.
pub(crate) fn axes(of: &Columns<'_, '_>) -> Result<Axes, Fault> {
    Ok(Axes {
        work_mode: of.text("work_mode")?,
        run_control: of.text("run_control")?,
        permission_profile: of.text("permission_profile")?,
        model_mode: of.text("model_mode")?,
        surface: of.text("surface")?,
    })
}

/// What a filter asks of a row, and the values in it.
fn conditions(filter: &Filter) -> (String, Vec<Box<dyn ToSql>>) {
    let mut sql = "1".to_owned();
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    let mut narrow = |column: &str, value: Option<String>| {
        if let Some(value) = value {
            values.push(Box::new(value));
            sql.push_str(&format!(" AND {column} = ?{}", values.len()));
        }
    };
    narrow("session_id", filter.session.map(|id| id.to_string()));
    narrow("parent_id", filter.parent.map(|id| id.to_string()));
    narrow("root_id", filter.root.map(|id| id.to_string()));
    narrow("driver", filter.driver.map(|driver| driver.to_string()));
    narrow("workspace", filter.workspace.clone());
    let mut also = |condition: &str, value: Option<String>| {
        if let Some(value) = value {
            values.push(Box::new(value));
            sql.push_str(&condition.replace("{}", &format!("?{}", values.len())));
        }
    };
    also(" AND session_id IN (SELECT id FROM sessions WHERE user_id = {})", filter.user.clone());
    also(" AND instr(lower(goal), {}) > 0", filter.goal.as_ref().map(|text| text.to_lowercase()));
    also(
        " AND (instr(lower(goal), {}) > 0 OR instr(lower(workspace), {}) > 0
               OR substr(lower(id), -length({})) = {})",
        filter.text.as_ref().map(|text| text.to_lowercase()),
    );
    if let Some(ListPlace { created_at, id }) = filter.after {
        also(" AND (created_at, id) < ({}, ", Some(row::instant(created_at)));
        also("{})", Some(id.to_string()));
    }
    if filter.live {
        sql.push_str(&format!(" AND {LIVE}"));
    }
    if filter.roots {
        sql.push_str(" AND parent_id IS NULL");
    }
    if !filter.statuses.is_empty() {
        // Names of ours, never input.
        let words: Vec<_> = filter.statuses.iter().map(|status| format!("'{status}'")).collect();
        sql.push_str(&format!(" AND status IN ({})", words.join(", ")));
    }
    (sql, values)
}

fn tasks(tx: &Connection, filter: &Filter) -> Result<Vec<TaskRow>, Fault> {
    let (conditions, values) = conditions(filter);
    let mut sql =
        format!("SELECT * FROM tasks WHERE {conditions} ORDER BY created_at DESC, id DESC");
    if let Some(limit) = filter.limit {
        sql.push_str(&format!(" LIMIT {limit}"));
    }
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(task_row(row)?);
    }
    Ok(found)
}

fn task_row(row: &Row<'_>) -> Result<TaskRow, Fault> {
    let of = Columns { table: "tasks", row };
    Ok(TaskRow {
        id: of.text("id")?,
        session_id: of.text("session_id")?,
        command_id: of.text("command_id")?,
        parent_id: of.optional("parent_id")?,
        root_id: of.text("root_id")?,
        depth: of.raw("depth")?,
        driver: of.text("driver")?,
        goal: of.raw("goal")?,
        workspace: of.raw("workspace")?,
        axes: axes(&of)?,
        status: of.text("status")?,
        reason: of.text("status_reason")?,
        detail: of.raw("status_detail")?,
        error: of.json("error")?,
        result: of.json("result")?,
        usage: of.json("usage")?.unwrap_or_default(),
        plan: of.json("plan")?,
        model: of.raw("model")?,
        container_id: of.raw("container_id")?,
        turns: of.raw("turns")?,
        last_seq: of.raw::<i64>("last_seq")?.unsigned_abs(),
        dependency_blockers: of.json("dependency_blockers")?.unwrap_or_default(),
        retry_count: of.raw("retry_count")?,
        max_retries: of.raw("max_retries")?,
        checkpoint_ref: of.raw("checkpoint_ref")?,
        cost_budget: of.raw("cost_budget")?,
        cost_spent: of.raw("cost_spent")?,
        created_at: of.text("created_at")?,
        started_at: of.optional("started_at")?,
        completed_at: of.optional("completed_at")?,
        paused_at: of.optional("paused_at")?,
        deadline: of.optional("deadline")?,
        deadline_action: of.text("deadline_action")?,
        next_action_at: of.optional("next_action_at")?,
        intent_claim: of.raw("intent_claim")?,
        updated_at: of.text("updated_at")?,
        epoch: of.raw::<i64>("epoch")?.unsigned_abs(),
    })
}

pub(crate) fn deliverables(tx: &Connection, task: TaskId) -> Result<Vec<Deliverable>, Fault> {
    let mut statement =
        tx.prepare_cached("SELECT * FROM deliverables WHERE task_id = ?1 ORDER BY filepath")?;
    let mut rows = statement.query([task.to_string()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let of = Columns { table: "deliverables", row };
        found.push(Deliverable {
            filepath: of.raw("filepath")?,
            description: of.raw("description")?,
            kind: of.text("type")?,
            content: of.raw("content")?,
            size_bytes: of.raw::<Option<i64>>("size_bytes")?.map(i64::unsigned_abs),
        });
    }
    Ok(found)
}

fn transitions(tx: &Connection, task: TaskId) -> Result<Vec<Transition>, Fault> {
    let mut statement =
        tx.prepare_cached("SELECT * FROM task_transitions WHERE task_id = ?1 ORDER BY id")?;
    let mut rows = statement.query([task.to_string()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let of = Columns { table: "task_transitions", row };
        found.push(Transition {
            from: of.text("from_status")?,
            to: of.text("to_status")?,
            reason: of.optional("reason")?,
            scope: of.raw("scope")?,
            at: of.text("timestamp")?,
        });
    }
    Ok(found)
}
