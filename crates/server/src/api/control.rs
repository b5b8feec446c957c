//! Pausing, resuming, cancelling, retrying and steering tasks.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::trigger::{TaskAction, TaskControlReceived};
use windlass_coordinator::{FollowUp, TriggerOutcome};
use windlass_core::id::TaskId;

use super::answers::{ChangeRefused, ReadRefused, accepted, created};
use super::once::{Change, Once};
use super::owned;
use crate::auth::User;
use crate::extract::Id;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(cancel))
        .routes(routes!(retry))
        .routes(routes!(steer))
        .routes(routes!(follow_up))
}

/// What became of a request.
#[derive(Serialize, ToSchema)]
struct Outcome {
    task_id: String,
    /// What happens now, in words.
    message: String,
}

/// What to say to a task.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TaskMessage {
    #[schema(min_length = 1, pattern = r"\S")]
    text: String,
}

/// A request about one task.
struct ControlRequest {
    action: TaskAction,
    text: Option<String>,
    once: Once,
}

async fn control(
    state: &AppState,
    user: &User,
    task: TaskId,
    request: ControlRequest,
) -> Result<Response, Problem> {
    owned::task(state, user, task).await?;
    let ControlRequest { action, text, once } = request;
    let trigger = TaskControlReceived {
        command_id: once.name(),
        task_id: task,
        action,
        reason: text,
        user_id: Some(user.name.clone()),
        session_id: None,
    };
    let control = async {
        let handled = state.coordinator.triggers().task_control_received(trigger).await?;
        let message = match handled {
            TriggerOutcome::Steered { words, .. } => words,
            TriggerOutcome::Injected { .. } => "will be read at its next step".to_owned(),
            TriggerOutcome::Said { message } => message,
            TriggerOutcome::Started { .. } => "was started".to_owned(),
            TriggerOutcome::Nothing { reason } => reason,
        };
        Ok(Outcome { task_id: task.to_string(), message })
    };
    once.first(state, control).await.map(accepted)
}

/// Pause a task after its current step
#[utoipa::path(post, path = "/v1/tasks/{task_id}/pause", operation_id = "pause_task", tag = "tasks",
    params(("task_id" = String, Path, description = "The task"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "What happens", body = Outcome), ReadRefused, ChangeRefused))]
async fn pause(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    once: Once,
) -> Result<Response, Problem> {
    let request = ControlRequest { action: TaskAction::Pause, text: None, once };
    control(&state, &user, task, request).await
}

/// Resume a task
#[utoipa::path(post, path = "/v1/tasks/{task_id}/resume", operation_id = "resume_task", tag = "tasks",
    params(("task_id" = String, Path, description = "The task"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "What happens", body = Outcome), ReadRefused, ChangeRefused))]
async fn resume(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    once: Once,
) -> Result<Response, Problem> {
    let request = ControlRequest { action: TaskAction::Resume, text: None, once };
    control(&state, &user, task, request).await
}

/// Cancel a task and every agent below it
#[utoipa::path(post, path = "/v1/tasks/{task_id}/cancel", operation_id = "cancel_task", tag = "tasks",
    params(("task_id" = String, Path, description = "The task"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "What happens", body = Outcome), ReadRefused, ChangeRefused))]
async fn cancel(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    once: Once,
) -> Result<Response, Problem> {
    let request = ControlRequest { action: TaskAction::Cancel, text: None, once };
    control(&state, &user, task, request).await
}

/// Try a failed task again
#[utoipa::path(post, path = "/v1/tasks/{task_id}/retry", operation_id = "retry_task", tag = "tasks",
    params(("task_id" = String, Path, description = "The task"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "What happens", body = Outcome), ReadRefused, ChangeRefused))]
async fn retry(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    once: Once,
) -> Result<Response, Problem> {
    let request = ControlRequest { action: TaskAction::Retry, text: None, once };
    control(&state, &user, task, request).await
}

/// Tell a task something; it reads it at its next step
#[utoipa::path(post, path = "/v1/tasks/{task_id}/steer", operation_id = "steer_task", tag = "tasks", request_body = TaskMessage,
    params(("task_id" = String, Path, description = "The task"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "What happens", body = Outcome), ReadRefused, ChangeRefused))]
async fn steer(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    Change { once, body: said }: Change<TaskMessage>,
) -> Result<Response, Problem> {
    let request = ControlRequest { action: TaskAction::Steer, text: Some(said.text), once };
    control(&state, &user, task, request).await
}

/// A task that continues another.
#[derive(Serialize, ToSchema)]
struct FollowUpTask {
    task_id: String,
    /// Its place in the session's queue, from 1; absent when it may start at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_place: Option<usize>,
}

/// Ask for more after a task has ended: a new task with its conversation, in the same directory
#[utoipa::path(post, path = "/v1/tasks/{task_id}/follow-ups", operation_id = "follow_up_task", tag = "tasks", request_body = TaskMessage,
    params(("task_id" = String, Path, description = "The task that has ended"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The new task", body = FollowUpTask), ReadRefused, ChangeRefused))]
async fn follow_up(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    Change { once, body: said }: Change<TaskMessage>,
) -> Result<Response, Problem> {
    owned::task(&state, &user, task).await?;
    let request = FollowUp { request: once.name(), ..FollowUp::message(said.text, user.name) };
    let submitted = state.coordinator.tasks().follow_up(task, request).await?;
    let (task_id, queue_place) = (submitted.task.to_string(), submitted.place);
    Ok(created(FollowUpTask { task_id, queue_place }))
}
