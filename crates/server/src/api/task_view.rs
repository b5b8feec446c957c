//! A task as the API shows it.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use windlass_coordinator::views::{NextAction, TaskView};
use windlass_core::axes::Axes;

/// A task and where it stands.
#[derive(Serialize, ToSchema)]
pub struct Task {
    #[schema(example = "task_01J9ZZZZZZZZZZZZZZZZZZZZZZ")]
    pub task_id: String,
    pub session_id: String,
    /// The task that started it, where it is a sub-agent.
    pub parent_id: Option<String>,
    /// The root of its tree; itself without a parent.
    pub root_id: String,
    pub goal: String,
    /// `todo`, `running`, `verifying`, `reviewing`, `blocked`, `paused`, `retrying`, `done`, `failed` or `cancelled`.
    pub status: String,
    pub status_reason: String,
    /// Why, in words.
    pub status_detail: Option<String>,
    /// Whether it should be running and has lost its process.
    pub interrupted: bool,
    /// The process that drives it.
    pub driven_by: Option<u32>,
    /// `foreground` or `service`.
    pub driver: String,
    pub workspace: String,
    pub model: Option<String>,
    pub axes: AxesView,
    pub usage: Usage,
    /// What it and the agents below it have cost in US dollars, where anything is known of that.
    pub cost_usd: Option<f64>,
    /// What it may cost.
    pub cost_budget_usd: Option<f64>,
    /// Model replies so far.
    pub turns: u32,
    /// Events in its journal.
    pub last_seq: u64,
    /// Its place in the queue of its session, from 1, while it waits there.
    pub queue_place: Option<usize>,
    /// Open questions of the task and of every agent below it.
    pub question_ids: Vec<String>,
    /// How full its context is, from 0 to 100.
    pub context_percent: Option<f64>,
    /// What comes next: `answer`, `raise_budget`, `wait_for_tasks`, `wait_for_service`, `wait_for_check`,
    /// `wait_for_model`, `send_message`, `resume`, `retry`, `review`, `follow` or `nothing`.
    pub next_action: String,
    /// Whether it is stopped until a person resumes it.
    pub resumable: bool,
    /// Its working plan.
    #[schema(value_type = Option<Object>)]
    pub plan: Value,
    /// What went wrong.
    #[schema(value_type = Option<Object>)]
    pub error: Value,
    pub created_at: String,
    pub updated_at: String,
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    pub deadline: Option<String>,
    pub next_action_at: Option<String>,
}

/// One value of each axis.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AxesView {
    pub work_mode: String,
    pub run_control: String,
    pub permission_profile: String,
    pub model_mode: String,
    pub surface: String,
}

impl From<&Axes> for AxesView {
    fn from(axes: &Axes) -> Self {
        Self {
            work_mode: axes.work_mode.to_string(),
            run_control: axes.run_control.to_string(),
            permission_profile: axes.permission_profile.to_string(),
            model_mode: axes.model_mode.to_string(),
            surface: axes.surface.to_string(),
        }
    }
}

/// What a task has used.
#[derive(Serialize, ToSchema)]
pub struct Usage {
    pub total_tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub iterations: u32,
    pub tool_calls: u32,
    pub sub_agents_spawned: u32,
    pub compactions: u32,
    pub duration_ms: u64,
}

impl From<&TaskView> for Task {
    fn from(view: &TaskView) -> Self {
        let row = &view.row;
        let text = |at: &jiff::Timestamp| at.to_string();
        Self {
            task_id: row.id.to_string(),
            session_id: row.session_id.to_string(),
            parent_id: row.parent_id.map(|id| id.to_string()),
            root_id: row.root_id.to_string(),
            goal: row.goal.clone(),
            status: row.status.to_string(),
            status_reason: row.reason.to_string(),
            status_detail: row.detail.clone(),
            interrupted: view.is_interrupted(),
            driven_by: view.driven_by,
            driver: row.driver.to_string(),
            workspace: row.workspace.clone(),
            model: row.model.clone(),
            axes: (&row.axes).into(),
            usage: Usage {
                total_tokens: row.usage.total_tokens,
                input_tokens: row.usage.input_tokens,
                output_tokens: row.usage.output_tokens,
                iterations: row.usage.iterations,
                tool_calls: row.usage.tool_calls,
                sub_agents_spawned: row.usage.sub_agents_spawned,
                compactions: row.usage.compactions,
                duration_ms: row.usage.duration_ms,
            },
            cost_usd: view.cost_usd,
            cost_budget_usd: row.cost_budget,
            turns: row.turns,
            last_seq: row.last_seq,
            queue_place: view.queue_place,
            question_ids: view.questions.iter().map(|one| one.question.id.to_string()).collect(),
            context_percent: view.worker.as_ref().and_then(|worker| worker.context_usage_percent),
            next_action: action_word(&view.next_action()).to_owned(),
            resumable: view.is_resumable(),
            plan: row.plan.as_ref().map_or(Value::Null, |plan| json!(plan)),
            error: row.error.as_ref().map_or(Value::Null, |error| json!(error)),
            created_at: text(&row.created_at),
            updated_at: text(&row.updated_at),
            started_at: row.started_at.as_ref().map(text),
            completed_at: row.completed_at.as_ref().map(text),
            deadline: row.deadline.as_ref().map(text),
            next_action_at: row.next_action_at.as_ref().map(|at| at.timestamp().to_string()),
        }
    }
}

fn action_word(action: &NextAction) -> &'static str {
    match action {
        NextAction::Answer { .. } => "answer",
        NextAction::RaiseBudget { .. } => "raise_budget",
        NextAction::WaitForTasks { .. } => "wait_for_tasks",
        NextAction::WaitForService => "wait_for_service",
        NextAction::WaitForCheck { .. } => "wait_for_check",
        NextAction::WaitForModel { .. } => "wait_for_model",
        NextAction::SendMessage => "send_message",
        NextAction::Resume => "resume",
        NextAction::Retry { .. } => "retry",
        NextAction::Review => "review",
        NextAction::Follow { .. } => "follow",
        NextAction::Nothing => "nothing",
    }
}
