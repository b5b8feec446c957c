//! Submitting, listing and viewing tasks.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::SubmitOptions;
use windlass_coordinator::views::Filter;
use windlass_core::axes::{Axes, PermissionProfile, Surface};
use windlass_core::command::{ExecutionConfig, Outage, TaskCommand};
use windlass_core::event::Deadline;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::question::MAX_DOLLARS;
use windlass_core::role::Role;
use windlass_core::schedule::DeadlineAction;
use windlass_core::session::AxesChange;
use windlass_core::status::TaskStatus;
use windlass_core::text::with_causes;

use super::answers::{ChangeRefused, ReadRefused, created, with_etag};
use super::once::Change;
use super::owned;
use super::pictures::{self, NewPicture};
use super::task_view::Task;
use crate::auth::{Access, User, Via};
use crate::extract::{Id, Params};
use crate::place;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, submit)).routes(routes!(get))
}

/// Tasks in one answer, when the request does not say.
const USUAL_LIMIT: usize = 50;

/// Tasks in one answer at most.
const MAX_LIMIT: usize = 200;

/// The longest goal, as on the command line.
const MAX_GOAL_BYTES: usize = 1024 * 1024;

/// Which tasks are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only those with one of these statuses, separated by commas.
    status: Option<String>,
    /// Only those of this session.
    session: Option<String>,
    /// Only those that this task has started.
    parent: Option<String>,
    /// Only those with this text in the goal.
    q: Option<String>,
    /// Only tasks that have not ended.
    live: Option<bool>,
    /// Whether sub-agents are listed too.
    sub_agents: Option<bool>,
    /// At most this many.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `next` of the answer before.
    cursor: Option<String>,
}

/// Tasks, the newest first.
#[derive(Serialize, ToSchema)]
struct TaskList {
    tasks: Vec<Task>,
    /// The cursor to continue with; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List the tasks that you may see, the newest first
#[utoipa::path(get, path = "/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(ListQuery),
    responses(
        (status = 200, description = "Tasks", body = TaskList),
        (status = 304, description = "As the client has them (`If-None-Match`)"),
        ReadRefused,
    ))]
async fn list(
    State(state): State<AppState>,
    user: User,
    headers: HeaderMap,
    Params(query): Params<ListQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.unwrap_or(USUAL_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_LIMIT}")));
    }
    let bad = |name: &str, error: String| Problem::bad_request(format!("`{name}`: {error}"));
    let words = query.status.iter().flat_map(|words| words.split(',')).map(str::trim);
    let statuses = words
        .map(|word| word.parse::<TaskStatus>().map_err(|error| bad("status", error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    let session = query.session.map(|text| text.parse::<SessionId>()).transpose();
    let parent = query.parent.map(|text| text.parse::<TaskId>()).transpose();
    let parent = parent.map_err(|error| bad("parent", error.to_string()))?;
    let filter = Filter {
        session: session.map_err(|error| bad("session", error.to_string()))?,
        roots: parent.is_none() && !query.sub_agents.unwrap_or(false),
        parent,
        statuses,
        live: query.live.unwrap_or(false),
        goal: query.q.filter(|text| !text.is_empty()),
        user: user.limited_to(),
        after: place::of_cursor(query.cursor.as_deref())?,
        // One more says whether there are more.
        limit: Some(limit + 1),
        ..Filter::default()
    };
    let mut views = state.read(move |coordinator| coordinator.tasks().list(&filter)).await?;
    let has_more = views.len() > limit;
    views.truncate(limit);
    let last = views.last().filter(|_| has_more);
    let next = last.map(|last| place::after_task(&last.row));
    let tasks = views.iter().map(Task::from).collect();
    Ok(with_etag(&headers, &TaskList { tasks, next }))
}

/// Look at a task
#[utoipa::path(get, path = "/v1/tasks/{task_id}", operation_id = "get_task", tag = "tasks",
    params(("task_id" = String, Path, description = "The task")),
    responses(
        (status = 200, description = "The task", body = Task),
        (status = 304, description = "As the client has it (`If-None-Match`)"),
        ReadRefused,
    ))]
async fn get(
    State(state): State<AppState>,
    user: User,
    headers: HeaderMap,
    Id(task): Id<TaskId>,
) -> Result<Response, Problem> {
    let view = owned::view(&state, &user, task).await?;
    Ok(with_etag(&headers, &Task::from(&view)))
}

/// A goal and how it is to be worked on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewTask {
    /// What is wanted.
    #[schema(min_length = 1, pattern = r"\S", example = "fix the failing test")]
    goal: String,
    /// What must hold on the way.
    #[serde(default)]
    constraints: Vec<String>,
    /// The session it belongs to; a new one without.
    session_id: Option<String>,
    /// The directory to work in, on the server's machine; one of its own without. Only an admin chooses.
    workspace: Option<String>,
    /// The model, such as `anthropic/claude-sonnet-5`. Only an admin names a `script:FILE`.
    model: Option<String>,
    /// What differs from how tasks start: build, autonomous, the configured profile, smart.
    axes: Option<NewAxes>,
    /// The role that it begins in, with its axes. An executor needs a claimed commitment.
    role: Option<RoleWord>,
    /// What it may cost in US dollars.
    #[schema(exclusive_minimum = 0.0, maximum = 1_000_000.0)]
    budget_usd: Option<f64>,
    /// How long it may work.
    #[schema(minimum = 1, maximum = 31_536_000)]
    timeout_seconds: Option<u64>,
    /// How many tool rounds it may take.
    #[schema(minimum = 1, maximum = 1_000_000)]
    max_iterations: Option<u32>,
    /// When it must be finished.
    #[schema(format = DateTime)]
    deadline: Option<String>,
    /// What happens then.
    deadline_action: Option<DeadlineActionWord>,
    /// What the goal shows; at most ten.
    #[serde(default)]
    #[schema(max_items = 10)]
    pictures: Vec<NewPicture>,
}

/// `architect`, `executor` or `auditor`.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RoleWord {
    Architect,
    Executor,
    Auditor,
}

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Self {
        match word {
            RoleWord::Architect => Self::Architect,
            RoleWord::Executor => Self::Executor,
            RoleWord::Auditor => Self::Auditor,
        }
    }
}

/// `fail`, `complete_partial` or `pause_and_notify`.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DeadlineActionWord {
    Fail,
    CompletePartial,
    PauseAndNotify,
}

impl From<DeadlineActionWord> for DeadlineAction {
    fn from(word: DeadlineActionWord) -> Self {
        match word {
            DeadlineActionWord::Fail => Self::Fail,
            DeadlineActionWord::CompletePartial => Self::CompletePartial,
            DeadlineActionWord::PauseAndNotify => Self::PauseAndNotify,
        }
    }
}

/// Some of the axes.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewAxes {
    /// `chat`, `plan`, `build`, `review`, `repair` or `research`.
    pub work_mode: Option<String>,
    /// `manual`, `assisted` or `autonomous`.
    pub run_control: Option<String>,
    /// `restricted`, `normal`, `trusted` or `unrestricted`.
    pub permission_profile: Option<String>,
    /// `fast`, `smart` or `deep`.
    pub model_mode: Option<String>,
}

impl NewAxes {
    /// Others with these axes in their place.
    pub(super) fn apply_to(&self, mut axes: Axes) -> Result<Axes, Problem> {
        fn read<T>(to: &mut T, word: Option<&String>) -> Result<(), Problem>
        where
            T: std::str::FromStr<Err = windlass_core::axes::UnknownValue>,
        {
            if let Some(word) = word {
                *to =
                    windlass_core::axes::parse(word).map_err(|error| invalid(error.to_string()))?;
            }
            Ok(())
        }
        read(&mut axes.work_mode, self.work_mode.as_ref())?;
        read(&mut axes.run_control, self.run_control.as_ref())?;
        read(&mut axes.permission_profile, self.permission_profile.as_ref())?;
        read(&mut axes.model_mode, self.model_mode.as_ref())?;
        Ok(axes)
    }
}

impl NewAxes {
    /// These axes as a change of a session's.
    pub(super) fn change(&self) -> Result<AxesChange, Problem> {
        let axes = self.apply_to(Axes::headless())?;
        Ok(AxesChange {
            work_mode: self.work_mode.as_ref().map(|_| axes.work_mode),
            run_control: self.run_control.as_ref().map(|_| axes.run_control),
            permission_profile: self.permission_profile.as_ref().map(|_| axes.permission_profile),
            model_mode: self.model_mode.as_ref().map(|_| axes.model_mode),
            surface: None,
            role: None,
        })
    }
}

/// A task that was handed in.
#[derive(Serialize, ToSchema)]
struct TaskReceipt {
    task_id: String,
    session_id: String,
    /// Whether it is new; a repeated request starts nothing.
    new: bool,
    /// Its place in the session's queue, from 1; absent when it may start at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_place: Option<usize>,
}

/// Hand in a goal
///
/// With an `Idempotency-Key`, the same request again names the same task and starts nothing.
#[utoipa::path(post, path = "/v1/tasks", operation_id = "submit_task", tag = "tasks", request_body = NewTask,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses(
        (status = 201, description = "The task", body = TaskReceipt),
        (status = 200, description = "The task of the first such request", body = TaskReceipt),
        ReadRefused, ChangeRefused,
    ))]
async fn submit(
    State(state): State<AppState>,
    user: User,
    Change { once, body: mut wanted }: Change<NewTask>,
) -> Result<Response, Problem> {
    if wanted.goal.len() > MAX_GOAL_BYTES {
        let detail = format!("`goal` is over {MAX_GOAL_BYTES} bytes; put the text into a file");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail));
    }
    let pictures = pictures::keep(&state, std::mem::take(&mut wanted.pictures)).await?;
    let session_id = match &wanted.session_id {
        Some(text) => {
            let session = text.parse::<SessionId>().map_err(|error| invalid(error.to_string()))?;
            owned::session(&state, &user, session).await?;
            session
        }
        None => SessionId::derived(&once.task_id(&state).to_string(), "session"),
    };
    let options = SubmitOptions { pictures, ..options(&state, &user, &wanted)? };
    // A repeated request was checked the first time; by now its deadline may be over.
    if state.coordinator.tasks().get(once.task_id(&state))?.is_none() {
        check_wishes(&state, &wanted, &options)?;
    }
    let command = TaskCommand {
        command_id: once.command_id(&state),
        session_id,
        task_id: once.task_id(&state),
        goal: wanted.goal,
        constraints: wanted.constraints,
        execution_config: ExecutionConfig {
            timeout_seconds: wanted.timeout_seconds,
            max_iterations: wanted.max_iterations,
            model: wanted.model,
            role: wanted.role.map(Role::from),
            ..ExecutionConfig::default()
        },
        resume_context: None,
    };
    let submitted = state.coordinator.tasks().submit_command(command, options).await?;
    let origin = owned::task(&state, &user, submitted.task).await?;
    let answer = TaskReceipt {
        task_id: submitted.task.to_string(),
        session_id: origin.session.to_string(),
        new: submitted.new,
        queue_place: submitted.place,
    };
    Ok(if submitted.new { created(answer) } else { Json(answer).into_response() })
}

/// The usual axes with those of a request in their place, as far as they are allowed.
pub(super) fn chosen_axes(
    state: &AppState,
    usual: Axes,
    given: Option<&NewAxes>,
) -> Result<Axes, Problem> {
    let axes = given.map_or(Ok(usual), |given| given.apply_to(usual))?;
    if given.is_some_and(|axes| axes.permission_profile.is_some())
        && axes.permission_profile == PermissionProfile::Unrestricted
        && !state.coordinator.limits().unrestricted
    {
        return Err(windlass_coordinator::Error::Unrestricted.into());
    }
    Ok(axes)
}

/// Refuses what could only fail once the task is started.
fn check_wishes(
    state: &AppState,
    wanted: &NewTask,
    options: &SubmitOptions,
) -> Result<(), Problem> {
    let limits = [
        ("timeout_seconds", wanted.timeout_seconds, MAX_TIMEOUT_SECONDS),
        ("max_iterations", wanted.max_iterations.map(u64::from), MAX_ITERATIONS),
    ];
    for (name, given, most) in limits {
        if given.is_some_and(|given| !(1..=most).contains(&given)) {
            return Err(invalid(format!("`{name}` is from 1 to {most}")));
        }
    }
    if options.deadline.is_some_and(|deadline| deadline.at <= state.now()) {
        return Err(invalid("`deadline` is in the past"));
    }
    check_model(state, options.workspace.as_deref(), wanted.model.as_deref())
}

/// The model of a request. Only an admin names a script, which is a file of this machine.
pub(super) fn chosen_model(user: &User, model: Option<String>) -> Result<Option<String>, Problem> {
    model.as_deref().map_or(Ok(()), |name| user.reach().check_model(name))?;
    Ok(model)
}

/// Refuses a model that work in a directory cannot use.
pub(super) fn check_model(
    state: &AppState,
    directory: Option<&Path>,
    model: Option<&str>,
) -> Result<(), Problem> {
    let Some(name) = model else { return Ok(()) };
    let checked = state.coordinator.tasks().check_model(directory, name);
    checked.map_err(|error| invalid(format!("`model`: {}", with_causes(&error))))
}

/// A budget that is one.
pub(super) fn checked_budget(budget_usd: Option<f64>) -> Result<Option<f64>, Problem> {
    match budget_usd
        .is_some_and(|budget| !budget.is_finite() || budget <= 0.0 || budget > MAX_DOLLARS)
    {
        true => Err(invalid("`budget_usd` is more than 0 and at most 1000000")),
        false => Ok(budget_usd),
    }
}

fn options(state: &AppState, user: &User, wanted: &NewTask) -> Result<SubmitOptions, Problem> {
    let usual = state.coordinator.tasks().default_options();
    let surface = match user.via {
        Via::Token => Surface::Rpc,
        Via::Cookie => Surface::Web,
    };
    let axes = Axes { surface, ..usual.axes };
    let axes = chosen_axes(state, axes, wanted.axes.as_ref())?;
    chosen_model(user, wanted.model.clone())?;
    let cost_budget = checked_budget(wanted.budget_usd)?;
    let deadline = wanted.deadline.as_ref().map(|text| {
        let at = text
            .parse()
            .map_err(|_| invalid("`deadline` must be a time such as `2026-11-19T17:00:00Z`"))?;
        let action = wanted.deadline_action.map_or(DeadlineAction::Fail, Into::into);
        Ok::<_, Problem>(Deadline { at, action })
    });
    let workspace = wanted.workspace.as_deref().map(|path| workspace(state, user, path));
    Ok(SubmitOptions {
        user_id: Some(user.name.clone()),
        axes,
        workspace: workspace.transpose()?,
        cost_budget,
        deadline: deadline.transpose()?,
        outage: Outage::Park,
        ..usual
    })
}

/// A directory of this machine, which only an admin chooses, and never one that holds everything.
pub(super) fn workspace(state: &AppState, user: &User, path: &str) -> Result<PathBuf, Problem> {
    if user.access != Access::Admin {
        let detail = "only an admin chooses the directory that a task works in";
        return Err(Problem::forbidden("not-allowed", detail));
    }
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(invalid(format!("`{}` is not an absolute path", path.display())));
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match state.refused_workspaces.contains(&real) {
        true => Err(invalid(format!("`{}` is too much for one task", real.display()))),
        false => Ok(real),
    }
}

/// How long a task may be given to work.
const MAX_TIMEOUT_SECONDS: u64 = 31_536_000;

/// How many tool rounds a task may be given.
const MAX_ITERATIONS: u64 = 1_000_000;

/// A body that is JSON, and not what was asked for.
pub(super) fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad-fields", detail)
}
