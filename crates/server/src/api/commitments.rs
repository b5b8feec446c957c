//! Commitments: promised work, who has claimed it, what proves it, and what was said of it; and the roles that work
//! with them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::{CommitmentFilter, CommitmentRow, GivenEvidence, NewCommitment};
use windlass_core::commitment::{
    Commitment, CommitmentState, Evidence, EvidenceKind, Order, Party,
};
use windlass_core::id::{CommitmentId, SessionId};
use windlass_core::role::Role;

use super::answers::{ChangeRefused, ReadRefused};
use super::once::{Change, Once};
use super::owned;
use super::tasks::invalid;
use crate::auth::User;
use crate::extract::{Id, Params};
use crate::place;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, open))
        .routes(routes!(get))
        .routes(routes!(claim))
        .routes(routes!(capture))
        .routes(routes!(content))
        .routes(routes!(submit))
        .routes(routes!(approve))
        .routes(routes!(reject))
        .routes(routes!(release))
        .routes(routes!(modes))
}

/// A commitment in a list.
#[derive(Serialize, ToSchema)]
struct CommitmentEntry {
    commitment_id: String,
    title: String,
    /// `open`, `claimed`, `submitted` or `approved`.
    state: String,
    opened_by: String,
    /// A task, or a person's name.
    claimed_by: Option<String>,
    /// What was said last: `approved` or `rejected`.
    verdict: Option<String>,
    verdict_reason: Option<String>,
    evidence_count: usize,
    session_id: Option<String>,
    created_at: String,
    updated_at: String,
}

impl From<&CommitmentRow> for CommitmentEntry {
    fn from(row: &CommitmentRow) -> Self {
        Self {
            commitment_id: row.id.to_string(),
            title: row.title.clone(),
            state: row.state.to_string(),
            opened_by: row.opened_by.to_string(),
            claimed_by: row.claimed_by.as_ref().map(Party::to_string),
            verdict: row.verdict.map(|verdict| verdict.to_string()),
            verdict_reason: row.verdict_reason.clone(),
            evidence_count: row.evidence_count,
            session_id: row.session_id.map(|id| id.to_string()),
            created_at: row.created_at.to_string(),
            updated_at: row.updated_at.to_string(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct CommitmentList {
    commitments: Vec<CommitmentEntry>,
    /// The cursor to continue with; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A commitment with its evidence.
#[derive(Serialize, ToSchema)]
struct CommitmentView {
    commitment_id: String,
    title: String,
    body: String,
    /// `open`, `claimed`, `submitted` or `approved`.
    state: String,
    opened_by: String,
    claimed_by: Option<String>,
    submitted_by: Option<String>,
    summary: Option<String>,
    verdict: Option<String>,
    verdict_by: Option<String>,
    verdict_reason: Option<String>,
    evidence: Vec<EvidenceView>,
    session_id: Option<String>,
    project: Option<String>,
    created_at: String,
    updated_at: String,
}

/// A piece of evidence.
#[derive(Serialize, ToSchema)]
struct EvidenceView {
    evidence_id: String,
    /// `test_output`, `diff`, `file`, `url`, `screenshot` or `note`.
    r#type: String,
    uri: String,
    sha256: String,
    bytes: u64,
    description: String,
    by: String,
    at: String,
}

impl From<&Evidence> for EvidenceView {
    fn from(evidence: &Evidence) -> Self {
        Self {
            evidence_id: evidence.id.to_string(),
            r#type: evidence.kind.to_string(),
            uri: evidence.uri.clone(),
            sha256: evidence.sha256.clone(),
            bytes: evidence.bytes,
            description: evidence.description.clone(),
            by: evidence.by.to_string(),
            at: evidence.at.to_string(),
        }
    }
}

impl From<&Commitment> for CommitmentView {
    fn from(found: &Commitment) -> Self {
        let name = |party: &Option<Party>| party.as_ref().map(Party::to_string);
        Self {
            commitment_id: found.id.to_string(),
            title: found.title.clone(),
            body: found.body.clone(),
            state: found.state.to_string(),
            opened_by: found.opened_by.to_string(),
            claimed_by: name(&found.claimed_by),
            submitted_by: name(&found.submitted_by),
            summary: found.summary.clone(),
            verdict: found.verdict.map(|verdict| verdict.to_string()),
            verdict_by: name(&found.verdict_by),
            verdict_reason: found.verdict_reason.clone(),
            evidence: found.evidence.iter().map(EvidenceView::from).collect(),
            session_id: found.session_id.map(|id| id.to_string()),
            project: found.project.clone(),
            created_at: found.created_at.to_string(),
            updated_at: found.updated_at.to_string(),
        }
    }
}

/// Which commitments are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only those in this state: `open`, `claimed`, `submitted` or `approved`.
    state: Option<String>,
    /// At most this many; 50 without.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `next` of the answer before.
    cursor: Option<String>,
}

/// List the commitments that you may see, the newest first
#[utoipa::path(get, path = "/v1/commitments", operation_id = "list_commitments", tag = "commitments", params(ListQuery),
    responses((status = 200, description = "Commitments", body = CommitmentList), ReadRefused))]
async fn list(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<ListQuery>,
) -> Result<Json<CommitmentList>, Problem> {
    let limit = place::limit_of(query.limit)?;
    let wanted = query.state.as_deref().map(|word| word.parse::<CommitmentState>()).transpose();
    let wanted = wanted.map_err(|error| Problem::bad_request(error.to_string()))?;
    let filter = CommitmentFilter {
        state: wanted,
        user: user.limited_to(),
        after: place::of_cursor(query.cursor.as_deref())?,
        limit: Some(limit as u32 + 1),
        ..CommitmentFilter::default()
    };
    let mut rows = state.read(move |coordinator| coordinator.commitments().list(&filter)).await?;
    let next = place::cut(&mut rows, limit, place::after_commitment);
    let commitments = rows.iter().map(CommitmentEntry::from).collect();
    Ok(Json(CommitmentList { commitments, next }))
}

async fn find(state: &AppState, user: &User, id: CommitmentId) -> Result<Commitment, Problem> {
    let found = state.read(move |coordinator| coordinator.commitments().get(id)).await?;
    match user.may_see(found.user_id.as_deref()) {
        true => Ok(found),
        // What is another's looks like what does not exist.
        false => {
            let detail = format!("there is no commitment `{id}`");
            Err(Problem::not_found("unknown-commitment", detail))
        }
    }
}

/// Look at a commitment with its evidence
#[utoipa::path(get, path = "/v1/commitments/{commitment_id}", operation_id = "get_commitment", tag = "commitments",
    params(("commitment_id" = String, Path, description = "The commitment")),
    responses((status = 200, description = "The commitment", body = CommitmentView), ReadRefused))]
async fn get(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<CommitmentId>,
) -> Result<Json<CommitmentView>, Problem> {
    Ok(Json(CommitmentView::from(&find(&state, &user, id).await?)))
}

/// Work to be promised.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewPromise {
    /// What is promised, in one line.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    title: String,
    /// What to change, where, and how it is proven.
    #[serde(default)]
    body: String,
    /// The session that it belongs to.
    session_id: Option<String>,
}

/// Promise a piece of work
#[utoipa::path(post, path = "/v1/commitments", operation_id = "open_commitment", tag = "commitments", request_body = NewPromise,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The commitment", body = CommitmentView), ReadRefused, ChangeRefused))]
async fn open(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<NewPromise>,
) -> Result<Response, Problem> {
    let session = wanted.session_id.as_ref().map(|text| text.parse::<SessionId>()).transpose();
    let session = session.map_err(|error| invalid(format!("`session_id`: {error}")))?;
    if let Some(session) = session {
        owned::session(&state, &user, session).await?;
    }
    let new = NewCommitment { title: wanted.title, body: wanted.body, session, project: None };
    let make = async {
        let made = state.coordinator.commitments().open(new, &user.name).await?;
        Ok(CommitmentView::from(&made))
    };
    once.created(&state, make).await
}

/// Words about an order.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Words {
    /// What was done, or why.
    #[serde(default)]
    reason: String,
}

async fn act(
    state: &AppState,
    user: &User,
    once: &Once,
    id: CommitmentId,
    order: Order,
) -> Result<Json<Value>, Problem> {
    find(state, user, id).await?;
    let act = async {
        let done = state.coordinator.commitments().act(id, order, &user.name).await?;
        Ok(CommitmentView::from(&done))
    };
    once.change(state, act).await
}

/// Claim an open commitment
#[utoipa::path(post, path = "/v1/commitments/{commitment_id}/claim", operation_id = "claim_commitment", tag = "commitments",
    params(("commitment_id" = String, Path, description = "The commitment"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The commitment", body = CommitmentView), ReadRefused, ChangeRefused))]
async fn claim(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<CommitmentId>,
    once: Once,
) -> Result<Json<Value>, Problem> {
    act(&state, &user, &once, id, Order::Claim).await
}

/// Hand in a commitment that you have claimed and proven
#[utoipa::path(post, path = "/v1/commitments/{commitment_id}/submit", operation_id = "submit_commitment", tag = "commitments", request_body = Words,
    params(("commitment_id" = String, Path, description = "The commitment"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The commitment", body = CommitmentView), ReadRefused, ChangeRefused))]
async fn submit(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<CommitmentId>,
    Change { once, body: words }: Change<Words>,
) -> Result<Json<Value>, Problem> {
    act(&state, &user, &once, id, Order::Submit(words.reason)).await
}

/// Approve what somebody else has handed in
#[utoipa::path(post, path = "/v1/commitments/{commitment_id}/approve", operation_id = "approve_commitment", tag = "commitments", request_body = Words,
    params(("commitment_id" = String, Path, description = "The commitment"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The commitment", body = CommitmentView), ReadRefused, ChangeRefused))]
async fn approve(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<CommitmentId>,
    Change { once, body: words }: Change<Words>,
) -> Result<Json<Value>, Problem> {
    act(&state, &user, &once, id, Order::Approve(words.reason)).await
}

/// Reject what somebody else has handed in; it goes back to them
#[utoipa::path(post, path = "/v1/commitments/{commitment_id}/reject", operation_id = "reject_commitment", tag = "commitments", request_body = Words,
    params(("commitment_id" = String, Path, description = "The commitment"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The commitment", body = CommitmentView), ReadRefused, ChangeRefused))]
async fn reject(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<CommitmentId>,
    Change { once, body: words }: Change<Words>,
) -> Result<Json<Value>, Problem> {
    act(&state, &user, &once, id, Order::Reject(words.reason)).await
}

/// Give a claim back, or take it away
#[utoipa::path(post, path = "/v1/commitments/{commitment_id}/release", operation_id = "release_commitment", tag = "commitments", request_body = Words,
    params(("commitment_id" = String, Path, description = "The commitment"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The commitment", body = CommitmentView), ReadRefused, ChangeRefused))]
async fn release(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<CommitmentId>,
    Change { once, body: words }: Change<Words>,
) -> Result<Json<Value>, Problem> {
    act(&state, &user, &once, id, Order::Release(words.reason)).await
}

/// Evidence to be kept: a text, or an address.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewEvidence {
    r#type: EvidenceWord,
    /// The text itself.
    content: Option<String>,
    url: Option<String>,
    /// The name of the file that the content is of.
    path: Option<String>,
    /// What it shows.
    #[serde(default)]
    description: String,
}

/// What a piece of evidence is.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum EvidenceWord {
    TestOutput,
    Diff,
    File,
    Url,
    Screenshot,
    Note,
}

impl From<EvidenceWord> for EvidenceKind {
    fn from(word: EvidenceWord) -> Self {
        match word {
            EvidenceWord::TestOutput => Self::TestOutput,
            EvidenceWord::Diff => Self::Diff,
            EvidenceWord::File => Self::File,
            EvidenceWord::Url => Self::Url,
            EvidenceWord::Screenshot => Self::Screenshot,
            EvidenceWord::Note => Self::Note,
        }
    }
}

/// Add evidence to a commitment
#[utoipa::path(post, path = "/v1/commitments/{commitment_id}/evidence", operation_id = "capture_evidence", tag = "commitments", request_body = NewEvidence,
    params(("commitment_id" = String, Path, description = "The commitment"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The evidence", body = EvidenceView), ReadRefused, ChangeRefused))]
async fn capture(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<CommitmentId>,
    Change { once, body: wanted }: Change<NewEvidence>,
) -> Result<Response, Problem> {
    find(&state, &user, id).await?;
    let given = GivenEvidence {
        kind: wanted.r#type.into(),
        content: wanted.content.map(String::into_bytes),
        path: wanted.path,
        url: wanted.url,
        description: wanted.description,
    };
    let make = async {
        let kept = state.coordinator.commitments().capture(Some(id), given, &user.name).await?;
        Ok(EvidenceView::from(&kept))
    };
    once.created(&state, make).await
}

/// Read the content of a piece of evidence
#[utoipa::path(get, path = "/v1/commitments/{commitment_id}/evidence/{evidence_id}", operation_id = "get_evidence", tag = "commitments",
    params(("commitment_id" = String, Path, description = "The commitment"),
           ("evidence_id" = String, Path, description = "The evidence")),
    responses((status = 200, description = "Its content", content_type = "application/octet-stream", body = Vec<u8>), ReadRefused))]
async fn content(
    State(state): State<AppState>,
    user: User,
    Path((commitment, evidence)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let unknown = || {
        let detail = format!("there is no content of evidence `{evidence}`");
        Problem::not_found("unknown-evidence", detail)
    };
    let id: CommitmentId = commitment.parse().map_err(|_| unknown())?;
    let found = find(&state, &user, id).await?;
    let wanted = found.evidence.into_iter().find(|one| one.id.to_string() == evidence);
    let wanted = wanted.ok_or_else(unknown)?;
    let bytes = state
        .read(move |coordinator| Ok(coordinator.commitments().content(&wanted)))
        .await?
        .ok_or_else(unknown)?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        // It is somebody's file: no browser runs it.
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, bytes).into_response())
}

/// A role that an agent can work in.
#[derive(Serialize, ToSchema)]
struct ModeView {
    /// `architect`, `executor` or `auditor`.
    mode: String,
    allowed_tools: Vec<String>,
    denied_tools: Vec<String>,
    system_prompt_addition: String,
    requires_commitment: bool,
}

#[derive(Serialize, ToSchema)]
struct ModeList {
    modes: Vec<ModeView>,
}

/// List the roles that an agent can work in
#[utoipa::path(get, path = "/v1/modes", operation_id = "list_modes", tag = "commitments",
    responses((status = 200, description = "Roles", body = ModeList), ReadRefused))]
async fn modes(_user: User) -> Json<ModeList> {
    let view = |role: &Role| {
        let config = role.config();
        ModeView {
            mode: config.mode.to_string(),
            allowed_tools: config.allowed_tools,
            denied_tools: config.denied_tools,
            system_prompt_addition: config.system_prompt_addition,
            requires_commitment: config.requires_commitment,
        }
    };
    Json(ModeList { modes: Role::ALL.iter().map(view).collect() })
}
