//! Projections: tables that answer questions quickly and are a fold of the journal.
//!
//! Invariants:
//! - `apply` uses nothing but the record and the projections themselves, so replaying all
//!   records into empty tables gives the same rows.
//! - Rows with a number of their own take the event's `pos`, so that a rebuild gives them the same numbers.

mod commitment;
mod session;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::{Connection, OptionalExtension};
use windlass_core::axes::Axes;
use windlass_core::command::{Deliverable, TaskResult, UsageMetrics};
use windlass_core::event::{
    Event, ModeChanged, QuestionAnswered, QuestionClosed, Record, StatusChanged, TaskCreated,
};
use windlass_core::injection::{Control, Injection, InjectionType};
use windlass_core::message::Usage;
use windlass_core::question::{Question, QuestionStatus};
use windlass_core::role::Role;
use windlass_core::schedule::DeadlineAction;
use windlass_core::status::{StatusReason, TaskStatus};

use crate::error::Fault;
use crate::journal::Tail;
use crate::journal::chain::Chain;
use crate::row::{instant, json};
use crate::words::LIVE;
use crate::workflow_runs;

pub(crate) use commitment::{LedgerRecord, apply_commitment, set_commitment_tail};
pub(crate) use session::{apply_session, set_session_tail};

/// The tables that hold nothing but a fold of the journal, in an order that satisfies references.
pub(crate) const TABLES: [&str; 12] = [
    "sessions",
    "tasks",
    "task_blockers",
    "plan_tasks",
    "task_transitions",
    "mode_transitions",
    "questions",
    "deliverables",
    "ratings",
    "workflow_runs",
    "commitments",
    "evidence",
];

/// Tokens of one reply; a provider that claims more must not make the sum overflow.
const MAX_TOKENS: u64 = 1 << 40;

/// Whether [`apply`] does anything for events of this kind.
pub(crate) fn is_projected(kind: &[u8]) -> bool {
    const UNPROJECTED: [&[u8]; 6] = [
        b"llm_request",
        b"tool_call",
        b"tool_result",
        b"risk_check",
        b"command_exited",
        b"prompt_changed",
    ];
    !UNPROJECTED.contains(&kind)
}

/// Applies one event to the projections; [`update_tail`] completes that.
pub(crate) fn apply(tx: &Connection, record: &Record) -> Result<(), Fault> {
    workflow_runs::apply(tx, record)?;
    match &record.event {
        Event::TaskCreated(created) => insert_task(tx, record, created)?,
        Event::StatusChanged(moved) => change_status(tx, record, moved)?,
        Event::AgentStart(start) => set_column(tx, record, "model", &start.model)?,
        Event::LlmResponse(response) => add_usage(tx, record, &response.usage, 1)?,
        Event::CompactionProgress(progress) => add_usage(tx, record, &progress.usage, 0)?,
        Event::QuestionAsked(question) => insert_question(tx, record, question)?,
        Event::QuestionAnswered(answered) => answer_question(tx, answered)?,
        Event::QuestionClosed(closed) => close_question(tx, record, closed)?,
        Event::RunnerReported(reported) => {
            if let Some(usage) = &reported.usage {
                add_usage(tx, record, usage, 0)?;
            }
        }
        Event::PlanUpdated(plan) => set_column(tx, record, "plan", &json(plan))?,
        Event::SandboxStarted(started) => {
            set_container(tx, record, started.container_id.as_deref())?
        }
        Event::SandboxEnded(_) | Event::SandboxLost(_) => set_container(tx, record, None)?,
        Event::DeliverablePublished(deliverable) => upsert_deliverable(tx, record, deliverable)?,
        Event::IntentClaimed(claimed) => {
            let text = format!("I will edit {}", claimed.claim);
            set_column(tx, record, "intent_claim", &text)?;
        }
        Event::CheckpointMade(made) => {
            set_column(tx, record, "checkpoint_ref", &made.checkpoint_ref)?;
        }
        Event::ModeChanged(changed) => change_mode(tx, record, changed)?,
        Event::AgentEnd(result) => set_result(tx, record, result)?,
        Event::InjectionReceived(injection) => apply_injection(tx, record, injection)?,
        // No table is derived from the other kinds.
        _ => {}
    }
    Ok(())
}

/// Writes where a task's stream ends: once for all events of one transaction, by the last of them.
pub(crate) fn update_tail(tx: &Connection, record: &Record, tail: &Tail) -> Result<(), Fault> {
    let end = Chain { seq: tail.seq, hash: tail.hash };
    set_tail(tx, &record.task.to_string(), end, &instant(record.at))
}

/// The same for a stream that was read to its end.
pub(crate) fn set_tail(tx: &Connection, task: &str, end: Chain, at: &str) -> Result<(), Fault> {
    tx.prepare_cached(
        "UPDATE tasks SET last_seq = ?2, last_hash = ?3, updated_at = ?4 WHERE id = ?1",
    )?
    .execute((task, i64::try_from(end.seq).unwrap_or(i64::MAX), end.hash, at))?;
    Ok(())
}

fn insert_task(tx: &Connection, record: &Record, created: &TaskCreated) -> Result<(), Fault> {
    let command = &created.command;
    let session = command.session_id.to_string();
    let at = instant(record.at);
    let Axes { work_mode, run_control, permission_profile, model_mode, surface } = created.axes;
    tx.prepare_cached(
        "INSERT INTO sessions (id, work_mode, run_control, permission_profile, model_mode, surface,
                               created_at, updated_at, user_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)
         ON CONFLICT (id) DO UPDATE SET user_id = coalesce(user_id, ?8)",
    )?
    .execute((
        &session,
        work_mode.as_str(),
        run_control.as_str(),
        permission_profile.as_str(),
        model_mode.as_str(),
        surface.as_str(),
        &at,
        &created.user_id,
    ))?;
    if created.parent.is_none() {
        tx.prepare_cached(
            "UPDATE sessions SET active_task_id = ?2, updated_at = ?3 WHERE id = ?1",
        )?
        .execute((&session, record.task.to_string(), &at))?;
    }
    let deadline_action = created.deadline.map_or(DeadlineAction::Fail, |deadline| deadline.action);
    let blockers = match created.dependency_blockers.is_empty() {
        true => None,
        false => Some(json(&created.dependency_blockers)),
    };
    tx.prepare_cached(
        "INSERT INTO tasks (id, work_mode, run_control, permission_profile, model_mode, surface,
                            status, status_reason, dependency_blockers, max_retries, cost_budget,
                            created_at, updated_at, session_id, command_id, parent_id, root_id,
                            depth, driver, goal, workspace, usage, deadline, deadline_action,
                            role)
         VALUES (:id, :work_mode, :run_control, :permission_profile, :model_mode, :surface,
                 :status, :reason, :blockers, :max_retries, :cost_budget,
                 :at, :at, :session, :command, :parent, :root,
                 :depth, :driver, :goal, :workspace, :usage, :deadline, :deadline_action,
                 :role)",
    )?
    .execute(rusqlite::named_params! {
        ":id": record.task.to_string(),
        ":work_mode": work_mode.as_str(),
        ":run_control": run_control.as_str(),
        ":permission_profile": permission_profile.as_str(),
        ":model_mode": model_mode.as_str(),
        ":surface": surface.as_str(),
        ":status": TaskStatus::Todo.as_str(),
        ":reason": StatusReason::User.as_str(),
        ":blockers": blockers,
        ":max_retries": created.max_retries,
        ":cost_budget": created.cost_budget,
        ":at": at,
        ":session": session,
        ":command": command.command_id.to_string(),
        ":parent": created.parent.map(|parent| parent.to_string()),
        ":root": created.root.to_string(),
        ":depth": created.depth,
        ":driver": created.driver.as_str(),
        ":goal": created.title(),
        ":workspace": created.workspace,
        ":usage": json(&UsageMetrics::default()),
        ":deadline": created.deadline.map(|deadline| instant(deadline.at)),
        ":deadline_action": deadline_action.as_str(),
        ":role": command.execution_config.role.map(Role::as_str),
    })?;
    for blocker in &created.dependency_blockers {
        tx.prepare_cached(
            "INSERT OR IGNORE INTO task_blockers (blocker, task_id) VALUES (?1, ?2)",
        )?
        .execute((blocker.to_string(), record.task.to_string()))?;
    }
    if let Some(plan) = created.plan.as_deref().filter(|_| created.parent.is_none()) {
        tx.prepare_cached(
            "INSERT INTO plan_tasks (task_id, plan_id, session_id, phase, key, agent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            record.task.to_string(),
            plan.plan.to_string(),
            &session,
            &plan.phase,
            &plan.key,
            &plan.agent,
        ))?;
    }
    Ok(())
}

fn change_status(tx: &Connection, record: &Record, moved: &StatusChanged) -> Result<(), Fault> {
    let task = record.task.to_string();
    let at = instant(record.at);
    let (from, to, reason) = (moved.from.as_str(), moved.to.as_str(), moved.reason.as_str());
    let ended = moved.to.is_terminal().then_some(&at);
    let paused = (moved.to == TaskStatus::Paused).then_some(&at);
    let started = (moved.to == TaskStatus::Running).then_some(&at);
    next_action(tx, &task, moved)?;
    tx.prepare_cached(
        "UPDATE tasks SET status = ?2, status_reason = ?3, status_detail = ?4, error = ?5,
                completed_at = ?6, paused_at = ?7, started_at = coalesce(started_at, ?8),
                retry_count = retry_count + ?9
         WHERE id = ?1",
    )?
    .execute((
        &task,
        to,
        reason,
        &moved.detail,
        moved.error.as_ref().map(json),
        ended,
        paused,
        started,
        u32::from(moved.to == TaskStatus::Retrying),
    ))?;
    tx.prepare_cached(
        "INSERT INTO task_transitions (id, task_id, from_status, to_status, reason, scope, timestamp)
         VALUES (?1, ?2, ?3, ?4, ?5, 'now', ?6)",
    )?
    .execute((record.pos, &task, from, to, reason, &at))?;
    if moved.to.is_terminal() {
        // The newest live task takes its place.
        tx.prepare_cached(&format!(
            "UPDATE sessions SET updated_at = ?2, active_task_id =
                 (SELECT id FROM tasks WHERE session_id = sessions.id AND parent_id IS NULL
                  AND {LIVE}
                  ORDER BY created_at DESC, id DESC LIMIT 1)
             WHERE id = (SELECT session_id FROM tasks WHERE id = ?1) AND active_task_id = ?1"
        ))?
        .execute((&task, &at))?;
    }
    Ok(())
}

/// When a task that waits for its time continues automatically. Nothing else here changes a schedule's next run.
fn next_action(tx: &Connection, task: &str, moved: &StatusChanged) -> Result<(), Fault> {
    let next = moved.until.map(|until| until.to_zoned(TimeZone::UTC).to_string());
    tx.prepare_cached(
        "UPDATE tasks SET next_action_at = ?2
         WHERE id = ?1 AND (?2 IS NOT NULL OR next_action_at IS NOT NULL
             AND status_reason IN (SELECT value FROM json_each(?3)))",
    )?
    .execute((task, next, timed_reasons()))?;
    Ok(())
}

/// The reasons for which a task waits for its time, as a JSON list.
fn timed_reasons() -> String {
    let timed = StatusReason::ALL.iter().filter(|reason| reason.resumes_at_a_time());
    json(&timed.map(|reason| reason.as_str()).collect::<Vec<_>>())
}

/// A task that a person writes to becomes the active one; one that a schedule checks on says when.
fn apply_injection(tx: &Connection, record: &Record, injection: &Injection) -> Result<(), Fault> {
    let task = record.task.to_string();
    let spoken = injection.injection_type == InjectionType::UserMessage
        || injection.control == Some(Control::Resume);
    if spoken {
        tx.prepare_cached(
            "UPDATE sessions SET active_task_id = ?1, updated_at = ?2
             WHERE id = (SELECT session_id FROM tasks WHERE id = ?1 AND parent_id IS NULL)",
        )?
        .execute((&task, instant(record.at)))?;
    }
    let next = match &injection.control {
        Some(Control::Watch { next, .. }) => next.as_ref().map(ToString::to_string),
        Some(Control::Unwatch { .. }) => None,
        Some(
            Control::Pause
            | Control::Interrupt
            | Control::Resume
            | Control::Revoke { .. }
            | Control::Cancel { .. }
            | Control::UseModel { .. }
            | Control::ChangeAxes { .. }
            | Control::Steer { .. }
            | Control::Grant { .. }
            | Control::Expire { .. },
        )
        | None => return Ok(()),
    };
    tx.prepare_cached("UPDATE tasks SET next_action_at = ?2 WHERE id = ?1")?
        .execute((&task, next))?;
    Ok(())
}

fn add_usage(tx: &Connection, record: &Record, usage: &Usage, turns: u32) -> Result<(), Fault> {
    // Tokens and cost are seen at once; the other figures are settled by `agent_end`.
    tx.prepare_cached(
        "UPDATE tasks SET turns = turns + ?5, cost_spent = cost_spent + ?2,
                usage = json_set(usage,
                    '$.input_tokens', usage ->> '$.input_tokens' + ?3,
                    '$.output_tokens', usage ->> '$.output_tokens' + ?4,
                    '$.total_tokens', usage ->> '$.total_tokens' + ?3 + ?4)
         WHERE id = ?1",
    )?
    .execute((
        record.task.to_string(),
        usage.cost_usd.unwrap_or(0.0),
        usage.input_tokens.min(MAX_TOKENS) as i64,
        usage.output_tokens.min(MAX_TOKENS) as i64,
        turns,
    ))?;
    Ok(())
}

fn insert_question(tx: &Connection, record: &Record, question: &Question) -> Result<(), Fault> {
    tx.prepare_cached(
        "INSERT INTO questions (id, task_id, kind, call_id, question, body, state, asked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute((
        question.id.to_string(),
        record.task.to_string(),
        question.kind.as_str(),
        question.call.map(|call| call.to_string()),
        &question.question,
        json(question),
        QuestionStatus::Open.as_str(),
        instant(record.at),
    ))?;
    Ok(())
}

fn answer_question(tx: &Connection, answered: &QuestionAnswered) -> Result<(), Fault> {
    let answer = &answered.answer;
    tx.prepare_cached(
        "UPDATE questions SET state = ?2, answer = ?3, answered_by = ?4, answered_at = ?5
         WHERE id = ?1",
    )?
    .execute((
        answered.question.to_string(),
        QuestionStatus::Answered.as_str(),
        &answer.text,
        &answer.by,
        instant(answer.at),
    ))?;
    Ok(())
}

fn close_question(tx: &Connection, record: &Record, closed: &QuestionClosed) -> Result<(), Fault> {
    tx.prepare_cached(
        "UPDATE questions SET state = ?2, closed_reason = ?3, closed_at = ?4
         WHERE id = ?1 AND state = ?5",
    )?
    .execute((
        closed.question.to_string(),
        QuestionStatus::Closed.as_str(),
        &closed.reason,
        instant(record.at),
        QuestionStatus::Open.as_str(),
    ))?;
    Ok(())
}

fn upsert_deliverable(
    tx: &Connection,
    record: &Record,
    deliverable: &Deliverable,
) -> Result<(), Fault> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO deliverables
             (task_id, filepath, description, type, content, size_bytes, published_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((
        record.task.to_string(),
        &deliverable.filepath,
        &deliverable.description,
        deliverable.kind.as_str(),
        &deliverable.content,
        deliverable.size_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
        instant(record.at),
    ))?;
    Ok(())
}

fn change_mode(tx: &Connection, record: &Record, changed: &ModeChanged) -> Result<(), Fault> {
    let task = record.task.to_string();
    let Axes { work_mode, run_control, permission_profile, model_mode, surface } = changed.to;
    tx.prepare_cached(
        "UPDATE tasks SET work_mode = ?2, run_control = ?3, permission_profile = ?4,
                model_mode = ?5, surface = ?6, role = ?7
         WHERE id = ?1",
    )?
    .execute((
        &task,
        work_mode.as_str(),
        run_control.as_str(),
        permission_profile.as_str(),
        model_mode.as_str(),
        surface.as_str(),
        changed.role.map(Role::as_str),
    ))?;
    if changed.change.is_some() {
        // It carries out a change of the session, which has the row.
        return Ok(());
    }
    let session: Option<String> = tx
        .prepare_cached("SELECT session_id FROM tasks WHERE id = ?1")?
        .query_row([&task], |row| row.get(0))
        .optional()?;
    match session {
        Some(session) => {
            let place = TransitionSource { pos: record.pos, session: &session, task: Some(&task) };
            insert_transition(tx, place, changed, record.at)
        }
        None => Ok(()),
    }
}

/// Where a change of the axes happened.
struct TransitionSource<'a> {
    pos: i64,
    session: &'a str,
    task: Option<&'a str>,
}

fn insert_transition(
    tx: &Connection,
    place: TransitionSource<'_>,
    changed: &ModeChanged,
    at: Timestamp,
) -> Result<(), Fault> {
    tx.prepare_cached(
        "INSERT INTO mode_transitions
             (id, session_id, task_id, from_axes, to_axes, reason, scope, source, timestamp)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute((
        place.pos,
        place.session,
        place.task,
        json(&changed.from),
        json(&changed.to),
        &changed.reason,
        changed.scope.as_str(),
        changed.source.as_str(),
        instant(at),
    ))?;
    Ok(())
}

fn set_result(tx: &Connection, record: &Record, result: &TaskResult) -> Result<(), Fault> {
    tx.prepare_cached("UPDATE tasks SET result = ?2, usage = ?3 WHERE id = ?1")?.execute((
        record.task.to_string(),
        json(result),
        json(&result.usage),
    ))?;
    Ok(())
}

/// Where a task's effects happen, while that is a container (ES-078).
fn set_container(tx: &Connection, record: &Record, container: Option<&str>) -> Result<(), Fault> {
    tx.prepare_cached("UPDATE tasks SET container_id = ?2 WHERE id = ?1")?
        .execute((record.task.to_string(), container))?;
    Ok(())
}

/// Sets one text column; `column` is never input.
fn set_column(
    tx: &Connection,
    record: &Record,
    column: &'static str,
    value: &str,
) -> Result<(), Fault> {
    tx.prepare_cached(&format!("UPDATE tasks SET {column} = ?2 WHERE id = ?1"))?
        .execute((record.task.to_string(), value))?;
    Ok(())
}
