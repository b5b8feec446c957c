//! The inbox: what waits for a person, and the answers.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::views::{OpenQuestion, QuestionState};
use windlass_core::id::QuestionId;
use windlass_core::question::QuestionStatus;

use super::answers::{ChangeRefused, ReadRefused, accepted};
use super::once::Change;
use super::owned;
use super::tasks::NewAxes;
use crate::auth::User;
use crate::extract::Id;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(answer))
}

/// Something that waits, or waited, for a person.
#[derive(Serialize, ToSchema)]
struct QuestionEntry {
    question_id: String,
    task_id: String,
    /// What a sub-agent that asks is called.
    label: Option<String>,
    /// `ask_user`, `permission`, `budget`, `plan` or `runner`.
    kind: String,
    question: String,
    /// Answers to choose from; free text when empty.
    options: Vec<String>,
    /// Of a question of the kinds `ask_user` and `runner`: `words` takes an option or any text, `options` an option only,
    /// `yes_no` also `y` and `n`, `rounds` also such as `5 more rounds`.
    accepts: String,
    /// What the person should know first.
    context: Option<String>,
    /// The change of a file that is asked about, whole.
    diff: Option<String>,
    /// The tool whose call waits for the answer.
    tool: Option<String>,
    /// The arguments of that call.
    #[schema(value_type = Option<Object>)]
    arguments: Value,
    /// Why a permission is asked for.
    #[schema(value_type = Option<Object>)]
    asked: Value,
    /// The plan that is asked about: its `text`, and what accepting it is bound to.
    #[schema(value_type = Option<Object>)]
    plan: Value,
    asked_at: String,
    /// `open`, `answered` or `closed`.
    state: String,
    answer: Option<String>,
    answered_by: Option<String>,
}

impl From<&OpenQuestion> for QuestionEntry {
    fn from(open: &OpenQuestion) -> Self {
        let question = &open.row.question;
        // A task that has ended waits for nobody.
        let has_ended = open.asker.as_ref().is_some_and(|task| task.status.is_terminal());
        let state = match open.row.state.status() {
            QuestionStatus::Open if has_ended => QuestionStatus::Closed,
            status @ (QuestionStatus::Open | QuestionStatus::Answered | QuestionStatus::Closed) => {
                status
            }
        };
        let given = open.row.state.answer();
        Self {
            question_id: question.id.to_string(),
            task_id: open.row.task.to_string(),
            label: open.label.clone(),
            kind: question.kind.to_string(),
            question: question.question.clone(),
            options: question.options.clone(),
            accepts: question.accepts.to_string(),
            context: question.context.clone(),
            diff: question.diff.clone(),
            tool: open.call.as_ref().map(|call| call.tool.clone()),
            arguments: open.call.as_ref().map_or(Value::Null, |call| call.arguments.clone()),
            asked: question.asked.as_ref().map_or(Value::Null, |asked| json!(asked)),
            plan: question.plan.as_ref().map_or(Value::Null, |plan| json!(plan)),
            asked_at: open.row.asked_at.to_string(),
            state: state.to_string(),
            answer: given.map(|answer| answer.text.clone()),
            answered_by: given.map(|answer| answer.by.clone()),
        }
    }
}

/// Every open question that you may answer, oldest first.
#[derive(Serialize, ToSchema)]
struct QuestionList {
    questions: Vec<QuestionEntry>,
}

/// List every open question of every task that you may see
#[utoipa::path(get, path = "/v1/questions", operation_id = "list_questions", tag = "questions",
    responses((status = 200, description = "Questions", body = QuestionList), ReadRefused))]
async fn list(State(state): State<AppState>, user: User) -> Result<Json<QuestionList>, Problem> {
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        let mut questions = Vec::new();
        for open in coordinator.inbox().open()? {
            let origin = coordinator.tasks().origin(open.row.task)?;
            if origin.is_some_and(|origin| user.may_see(origin.user.as_deref())) {
                questions.push(QuestionEntry::from(&open));
            }
        }
        Ok(QuestionList { questions })
    };
    Ok(Json(state.read(read).await?))
}

async fn find(state: &AppState, user: &User, id: QuestionId) -> Result<OpenQuestion, Problem> {
    let unknown = || Problem::not_found("unknown-question", format!("there is no question `{id}`"));
    let open = state.read(move |coordinator| coordinator.inbox().get(id)).await?;
    let open = open.ok_or_else(unknown)?;
    owned::task(state, user, open.row.task).await.map_err(|_| unknown())?;
    Ok(open)
}

/// Look at a question
#[utoipa::path(get, path = "/v1/questions/{question_id}", operation_id = "get_question", tag = "questions",
    params(("question_id" = String, Path, description = "The question")),
    responses((status = 200, description = "The question", body = QuestionEntry), ReadRefused))]
async fn get(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<QuestionId>,
) -> Result<Json<QuestionEntry>, Problem> {
    Ok(Json(QuestionEntry::from(&find(&state, &user, id).await?)))
}

/// The answer to a question.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewAnswer {
    /// One of the options or its number; free text if the question has no options.
    #[schema(min_length = 1, pattern = r"\S")]
    answer: String,
    /// Axes that the session of the task changes to with the answer: both or neither (MS-176).
    axes: Option<NewAxes>,
}

/// An answer that was taken.
#[derive(Serialize, ToSchema)]
struct AnswerReceipt {
    question_id: String,
    task_id: String,
}

/// Answer a question; the first answer counts
#[utoipa::path(post, path = "/v1/questions/{question_id}/answer", operation_id = "answer_question", tag = "questions", request_body = NewAnswer,
    params(("question_id" = String, Path, description = "The question"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "Taken", body = AnswerReceipt), ReadRefused, ChangeRefused))]
async fn answer(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<QuestionId>,
    Change { once, body: given }: Change<NewAnswer>,
) -> Result<Response, Problem> {
    let open = find(&state, &user, id).await?;
    let task = open.row.task;
    let taken =
        || accepted(AnswerReceipt { question_id: id.to_string(), task_id: task.to_string() });
    // An answer by its number, or in other letters, is kept in the words of its option.
    let words = open.row.question.read_answer(&given.answer);
    if once.name().is_some()
        && words.is_some_and(|words| is_answer_of(&open.row.state, &words, &user))
    {
        return Ok(taken());
    }
    let inbox = state.coordinator.inbox();
    match given.axes.map(|axes| axes.change()).transpose()? {
        Some(change) => {
            inbox.answer_with_axes(id, &given.answer, change, &user.name).await?;
        }
        None => {
            inbox.answer(id, &given.answer, &user.name).await?;
        }
    }
    // A task of the service is resumed by a worker, which may be this process.
    state.coordinator.queue().wake();
    Ok(taken())
}

/// Whether a question has this answer from this user already: the request was repeated.
fn is_answer_of(state: &QuestionState, text: &str, user: &User) -> bool {
    state.answer().is_some_and(|given| given.by == user.name && given.text.trim() == text.trim())
}
