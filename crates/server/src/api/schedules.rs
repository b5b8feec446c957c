//! Schedules: what happens automatically, and when.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::views::ScheduleRow;
use windlass_core::id::{ScheduleId, SessionId, TaskId};
use windlass_core::schedule::{Missed, Rhythm, Schedule, ScheduleAction};

use super::answers::{ChangeRefused, PageQuery, ReadRefused, created};
use super::once::{Change, Once};
use super::owned;
use super::tasks::invalid;
use crate::auth::User;
use crate::extract::{Id, Params};
use crate::place::{self, SchedulePlace};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(get, remove))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// A schedule and where it stands.
#[derive(Serialize, ToSchema)]
struct ScheduleEntry {
    schedule_id: String,
    /// `check`, `message` or `start`.
    action: String,
    task_id: Option<String>,
    session_id: Option<String>,
    user_id: Option<String>,
    goal: Option<String>,
    /// What the agent reads.
    text: Option<String>,
    interval_seconds: Option<u64>,
    cron: Option<String>,
    /// A time of day, or a date and a time.
    at: Option<String>,
    time_zone: String,
    /// `active`, `paused` or `ended`.
    state: String,
    next_at: Option<String>,
    created_at: String,
}

impl From<&ScheduleRow> for ScheduleEntry {
    fn from(row: &ScheduleRow) -> Self {
        let schedule = &row.schedule;
        let (interval_seconds, cron, at) = match &schedule.rhythm {
            Rhythm::Every { interval_seconds } => (Some(*interval_seconds), None, None),
            Rhythm::Cron { cron } => (None, Some(cron.clone()), None),
            Rhythm::Daily { daily_at } => (None, None, Some(daily_at.to_string())),
            Rhythm::Once { date, time } => (None, None, Some(format!("{date} {time}"))),
        };
        Self {
            schedule_id: schedule.id.to_string(),
            action: schedule.action.to_string(),
            task_id: schedule.task_id.map(|id| id.to_string()),
            session_id: schedule.session_id.map(|id| id.to_string()),
            user_id: schedule.user_id.clone(),
            goal: schedule.goal.clone(),
            text: schedule.check_prompt.clone(),
            interval_seconds,
            cron,
            at,
            time_zone: schedule.time_zone.clone(),
            state: row.state.to_string(),
            next_at: row.next_at.as_ref().map(|at| at.timestamp().to_string()),
            created_at: schedule.created_at.to_string(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct ScheduleList {
    schedules: Vec<ScheduleEntry>,
    /// The cursor to continue with; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List the schedules that you may see, those that have ended too, the oldest first
#[utoipa::path(get, path = "/v1/schedules", operation_id = "list_schedules", tag = "schedules", params(PageQuery),
    responses((status = 200, description = "Schedules", body = ScheduleList), ReadRefused))]
async fn list(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<PageQuery>,
) -> Result<Json<ScheduleList>, Problem> {
    let limit = place::limit_of(query.limit)?;
    let after: Option<SchedulePlace> = place::of_cursor(query.cursor.as_deref())?;
    let mut rows = state.read(|coordinator| coordinator.schedules().list()).await?;
    // A schedule that ends meanwhile keeps its place in this order.
    rows.sort_by_key(SchedulePlace::of);
    rows.retain(|row| {
        user.may_see(row.schedule.user_id.as_deref()) && Some(SchedulePlace::of(row)) > after
    });
    let next = place::cut(&mut rows, limit, place::after_schedule);
    Ok(Json(ScheduleList { schedules: rows.iter().map(ScheduleEntry::from).collect(), next }))
}

async fn find(state: &AppState, user: &User, id: ScheduleId) -> Result<ScheduleRow, Problem> {
    let row = state.read(move |coordinator| coordinator.schedules().get(id)).await?;
    let row = row.filter(|row| user.may_see(row.schedule.user_id.as_deref()));
    row.ok_or_else(|| {
        Problem::not_found("unknown-schedule", format!("there is no schedule `{id}`"))
    })
}

/// Look at a schedule
#[utoipa::path(get, path = "/v1/schedules/{schedule_id}", operation_id = "get_schedule", tag = "schedules",
    params(("schedule_id" = String, Path, description = "The schedule")),
    responses((status = 200, description = "The schedule", body = ScheduleEntry), ReadRefused))]
async fn get(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<ScheduleId>,
) -> Result<Json<ScheduleEntry>, Problem> {
    Ok(Json(ScheduleEntry::from(&find(&state, &user, id).await?)))
}

/// A schedule to be made: what it does and when.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewSchedule {
    /// `check` asks a task to look whether what it waits for has happened, `message` says something to a task or a
    /// session, `start` starts a task.
    action: ActionWord,
    /// The task that is checked or gets the message.
    task_id: Option<String>,
    /// The session whose active task gets the message, or that started tasks belong to.
    session_id: Option<String>,
    /// What a started task is to do.
    goal: Option<String>,
    /// What to check, or what to say.
    text: Option<String>,
    /// At an interval.
    #[schema(minimum = 1)]
    interval_seconds: Option<u64>,
    /// By a cron line of five fields.
    cron: Option<String>,
    /// Every day at a local time, such as `09:30`.
    daily_at: Option<String>,
    /// Once, at a local date and time, such as `2026-12-24 18:00`.
    once_at: Option<String>,
    /// The zone of its times by its IANA name; UTC without.
    time_zone: Option<String>,
}

/// What a schedule does.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ActionWord {
    Check,
    Message,
    Start,
}

/// Make a schedule
#[utoipa::path(post, path = "/v1/schedules", operation_id = "add_schedule", tag = "schedules", request_body = NewSchedule,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The schedule", body = ScheduleEntry), ReadRefused, ChangeRefused))]
async fn add(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<NewSchedule>,
) -> Result<Response, Problem> {
    let parse = |name: &str, error: String| invalid(format!("`{name}`: {error}"));
    let task_id = wanted.task_id.as_ref().map(|text| text.parse::<TaskId>()).transpose();
    let task_id = task_id.map_err(|error| parse("task_id", error.to_string()))?;
    let session_id = wanted.session_id.as_ref().map(|text| text.parse::<SessionId>()).transpose();
    let session_id = session_id.map_err(|error| parse("session_id", error.to_string()))?;
    if let Some(task) = task_id {
        owned::task(&state, &user, task).await?;
    }
    if let Some(session) = session_id {
        owned::session(&state, &user, session).await?;
    }
    let now = state.now();
    let id = match once.name() {
        Some(name) => ScheduleId::derived(&name, "schedule"),
        None => ScheduleId::new(now),
    };
    if let Ok(made) = find(&state, &user, id).await {
        return Ok(created(ScheduleEntry::from(&made)));
    }
    let schedule = Schedule {
        id,
        action: match wanted.action {
            ActionWord::Check => ScheduleAction::Check,
            ActionWord::Message => ScheduleAction::Message,
            ActionWord::Start => ScheduleAction::Start,
        },
        task_id,
        session_id,
        user_id: Some(user.name.clone()),
        rhythm: rhythm(&wanted)?,
        goal: wanted.goal,
        workspace: None,
        check_prompt: wanted.text,
        time_zone: wanted.time_zone.unwrap_or_else(|| "UTC".to_owned()),
        timeout_at: None,
        timeout_action: None,
        missed_runs: Missed::RunOnce,
        created_at: now,
    };
    state.coordinator.schedules().add(schedule).await?;
    Ok(created(ScheduleEntry::from(&find(&state, &user, id).await?)))
}

/// When its runs are; exactly one of the four ways to say it.
fn rhythm(wanted: &NewSchedule) -> Result<Rhythm, Problem> {
    let bad = |name: &str, such: &str| invalid(format!("`{name}` must be a time such as `{such}`"));
    match (wanted.interval_seconds, &wanted.cron, &wanted.daily_at, &wanted.once_at) {
        (Some(interval_seconds), None, None, None) => Ok(Rhythm::Every { interval_seconds }),
        (None, Some(cron), None, None) => Ok(Rhythm::Cron { cron: cron.clone() }),
        (None, None, Some(text), None) => {
            let daily_at = text.parse().map_err(|_| bad("daily_at", "09:30"))?;
            Ok(Rhythm::Daily { daily_at })
        }
        (None, None, None, Some(text)) => {
            let at: jiff::civil::DateTime =
                text.parse().map_err(|_| bad("once_at", "2026-11-19T17:00"))?;
            Ok(Rhythm::Once { date: at.date(), time: at.time() })
        }
        _ => Err(invalid("give one of `interval_seconds`, `cron`, `daily_at` and `once_at`")),
    }
}

/// Remove a schedule for good
#[utoipa::path(delete, path = "/v1/schedules/{schedule_id}", operation_id = "remove_schedule", tag = "schedules",
    params(("schedule_id" = String, Path, description = "The schedule"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 204, description = "Removed"), ReadRefused, ChangeRefused))]
async fn remove(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<ScheduleId>,
    once: Once,
) -> Result<StatusCode, Problem> {
    let remove = async {
        find(&state, &user, id).await?;
        Ok(state.coordinator.schedules().remove(id).await?)
    };
    once.removed(&state, remove).await
}

/// Pause a schedule
#[utoipa::path(post, path = "/v1/schedules/{schedule_id}/pause", operation_id = "pause_schedule", tag = "schedules",
    params(("schedule_id" = String, Path, description = "The schedule"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The schedule", body = ScheduleEntry), ReadRefused, ChangeRefused))]
async fn pause(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<ScheduleId>,
    once: Once,
) -> Result<Json<Value>, Problem> {
    let change = async {
        find(&state, &user, id).await?;
        state.coordinator.schedules().pause(id).await?;
        Ok(ScheduleEntry::from(&find(&state, &user, id).await?))
    };
    once.change(&state, change).await
}

/// Resume a schedule with its next run
#[utoipa::path(post, path = "/v1/schedules/{schedule_id}/resume", operation_id = "resume_schedule", tag = "schedules",
    params(("schedule_id" = String, Path, description = "The schedule"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The schedule", body = ScheduleEntry), ReadRefused, ChangeRefused))]
async fn resume(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<ScheduleId>,
    once: Once,
) -> Result<Json<Value>, Problem> {
    let change = async {
        find(&state, &user, id).await?;
        state.coordinator.schedules().resume(id).await?;
        Ok(ScheduleEntry::from(&find(&state, &user, id).await?))
    };
    once.change(&state, change).await
}
