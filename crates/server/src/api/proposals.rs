//! Skills that are proposed because several tasks of a project did the same.

use std::str::FromStr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::skill_proposals::{Finding, Proposal, ProposalStatus};

use super::answers::{ChangeRefused, ReadRefused, accepted};
use super::once::{Change, Once};
use crate::auth::{Access, User};
use crate::extract::{Id, Params};
use crate::problem::Problem;
use crate::skill_drafts::{SkillDraft, SkillWriter, Trial};
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(draft))
        .routes(routes!(accept))
        .routes(routes!(reject))
}

/// A proposed skill.
#[derive(Serialize, ToSchema)]
struct ProposalEntry {
    number: i64,
    /// What it would be called.
    name: String,
    /// The project's directory.
    project: String,
    /// `open`, `accepted` or `rejected`.
    status: String,
    /// Why it was decided so.
    note: String,
    made_at: String,
    /// The goal of the latest of its tasks.
    goal: String,
    /// What several tasks did; the first is what it was proposed for.
    evidence: Vec<FindingEntry>,
}

/// One thing that several tasks did.
#[derive(Serialize, ToSchema)]
struct FindingEntry {
    /// `command`, `file`, `failure` or `correction`.
    kind: String,
    /// In a sentence.
    words: String,
    task_ids: Vec<String>,
}

impl From<&Finding> for FindingEntry {
    fn from(finding: &Finding) -> Self {
        Self {
            kind: finding.kind.to_string(),
            words: finding.words(),
            task_ids: finding.tasks.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<&Proposal> for ProposalEntry {
    fn from(proposal: &Proposal) -> Self {
        Self {
            number: proposal.number,
            name: proposal.name.clone(),
            project: proposal.project.clone(),
            status: proposal.status.to_string(),
            note: proposal.note.clone(),
            made_at: proposal.made_at.to_string(),
            goal: proposal.goal.clone(),
            evidence: proposal.evidence.iter().map(FindingEntry::from).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct ProposalList {
    proposals: Vec<ProposalEntry>,
}

/// Which proposals are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ProposalQuery {
    /// Also those that were decided.
    #[serde(default)]
    all: bool,
}

/// List the skills that are proposed; projects belong to the machine, so operators see none
#[utoipa::path(get, path = "/v1/skills/proposals", operation_id = "list_skill_proposals", tag = "skills", params(ProposalQuery),
    responses((status = 200, description = "Proposals, the latest last", body = ProposalList), ReadRefused))]
async fn list(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<ProposalQuery>,
) -> Result<Json<ProposalList>, Problem> {
    if !user.may_see(None) {
        return Ok(Json(ProposalList { proposals: Vec::new() }));
    }
    let all = state.read(|coordinator| coordinator.skill_proposals().all(None)).await?;
    let is_wanted = |one: &&Proposal| query.all || one.status == ProposalStatus::Open;
    let proposals = all.iter().filter(is_wanted).map(ProposalEntry::from).collect();
    Ok(Json(ProposalList { proposals }))
}

/// A proposed skill, and what accepting it would write.
#[derive(Serialize, ToSchema)]
struct ProposalDetail {
    #[serde(flatten)]
    proposal: ProposalEntry,
    /// What would be written; `null` where nothing is known to be, and once it is decided.
    draft: Option<SkillDraft>,
    /// Names this draft when it is accepted.
    mark: Option<String>,
    /// Why there is no draft: a model has to write it first, or it cannot be written at all.
    no_draft: Option<String>,
    /// Since when it is being tried; `null` once it is decided.
    tried_since: Option<String>,
    /// Why the last try wrote nothing; `null` once it is decided.
    refused: Option<String>,
}

/// The number of a proposal, as a path has it.
struct ProposalNumber(i64);

impl FromStr for ProposalNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse();
        number.map(Self).map_err(|_| format!("`{text}` is not the number of a proposal"))
    }
}

/// Look at a proposed skill: what speaks for it, and what would be written
#[utoipa::path(get, path = "/v1/skills/proposals/{number}", operation_id = "get_skill_proposal", tag = "skills",
    params(("number" = i64, Path, description = "The number of the proposal")),
    responses((status = 200, description = "The proposal", body = ProposalDetail), ReadRefused))]
async fn get(
    State(state): State<AppState>,
    user: User,
    Id(ProposalNumber(number)): Id<ProposalNumber>,
) -> Result<Json<ProposalDetail>, Problem> {
    if !user.may_see(None) {
        return Err(unknown(number));
    }
    let proposal = find(&state, number).await?;
    Ok(Json(detail(&state, proposal).await?))
}

async fn detail(state: &AppState, proposal: Proposal) -> Result<ProposalDetail, Problem> {
    let (draft, no_draft) = match (proposal.status, &state.about.skill_writer) {
        (ProposalStatus::Open, Some(writer)) => {
            let (writer, wanted) = (Arc::clone(writer), proposal.clone());
            match state.read(move |_| Ok(writer.find_draft(&wanted))).await? {
                Ok(Some(draft)) => (Some(draft), None),
                Ok(None) => (None, Some("the fast model has to write it first".to_owned())),
                Err(why) => (None, Some(why)),
            }
        }
        _ => (None, None),
    };
    let (tried_since, refused) = match state.trials.of(&proposal) {
        Some(Trial::Running { since }) => (Some(since.to_string()), None),
        Some(Trial::Refused(why)) => (None, Some(why)),
        None => (None, None),
    };
    let (mark, proposal) = (draft.as_ref().map(SkillDraft::mark), ProposalEntry::from(&proposal));
    Ok(ProposalDetail { proposal, draft, mark, no_draft, tried_since, refused })
}

fn unknown(number: i64) -> Problem {
    Problem::not_found("unknown-proposal", format!("there is no proposal {number}"))
}

async fn find(state: &AppState, number: i64) -> Result<Proposal, Problem> {
    let found = state.read(move |coordinator| coordinator.skill_proposals().get(number)).await?;
    found.ok_or_else(|| unknown(number))
}

/// A proposal that this user decides about: only an admin does, as projects belong to the machine.
async fn decidable(state: &AppState, user: &User, number: i64) -> Result<Proposal, Problem> {
    if user.access != Access::Admin {
        let detail = "only an admin decides about the skills of a project";
        return Err(Problem::forbidden("not-allowed", detail));
    }
    find(state, number).await
}

/// The same, where it is still to be decided, and who would write it.
async fn writable(
    state: &AppState,
    user: &User,
    number: i64,
) -> Result<(Proposal, Arc<dyn SkillWriter>), Problem> {
    let proposal = decidable(state, user, number).await?;
    if proposal.status != ProposalStatus::Open {
        return Err(already_decided(&proposal));
    }
    let writer = state.about.skill_writer.clone().ok_or_else(|| {
        let detail = "this server does not write skills";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-equipped", detail)
    })?;
    Ok((proposal, writer))
}

fn already_decided(proposal: &Proposal) -> Problem {
    let detail = format!("proposal {} is {} already", proposal.number, proposal.status);
    Problem::new(StatusCode::CONFLICT, "already-decided", detail)
}

/// Have a proposed skill drafted; the fast model writes it where the policy says so, which takes a while
#[utoipa::path(post, path = "/v1/skills/proposals/{number}/draft", operation_id = "draft_skill_proposal", tag = "skills",
    params(("number" = i64, Path, description = "The number of the proposal"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The proposal with its draft", body = ProposalDetail), ReadRefused, ChangeRefused))]
async fn draft(
    State(state): State<AppState>,
    user: User,
    Id(ProposalNumber(number)): Id<ProposalNumber>,
    once: Once,
) -> Result<Json<Value>, Problem> {
    let (proposal, writer) = writable(&state, &user, number).await?;
    let draft = async {
        let wanted = proposal.clone();
        let drafted = state.read(move |_| Ok(writer.draft(&wanted))).await?;
        drafted.map_err(|why| Problem::new(StatusCode::CONFLICT, "no-draft", why))?;
        detail(&state, proposal).await
    };
    once.change(&state, draft).await
}

/// What is accepted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Acceptance {
    /// The `mark` of the draft that you have seen; another draft is not written.
    mark: String,
    /// Commit it with git.
    #[serde(default)]
    commit: bool,
}

/// Accept a proposed skill: it is tried, and written into the project if it helps. Look at it to see what became of it
#[utoipa::path(post, path = "/v1/skills/proposals/{number}/accept", operation_id = "accept_skill_proposal", tag = "skills",
    request_body = Acceptance,
    params(("number" = i64, Path, description = "The number of the proposal"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "It is being tried", body = ProposalDetail), ReadRefused, ChangeRefused))]
async fn accept(
    State(state): State<AppState>,
    user: User,
    Id(ProposalNumber(number)): Id<ProposalNumber>,
    Change { once, body: wanted }: Change<Acceptance>,
) -> Result<Response, Problem> {
    decidable(&state, &user, number).await?;
    let begin = async {
        let (proposal, writer) = writable(&state, &user, number).await?;
        let conflict = |word, detail: &str| Problem::new(StatusCode::CONFLICT, word, detail);
        match detail(&state, proposal.clone()).await?.mark {
            Some(mark) if mark == wanted.mark => {}
            Some(_) => {
                return Err(conflict(
                    "draft-changed",
                    "the draft is another one by now; look again",
                ));
            }
            None => return Err(conflict("no-draft", "there is no draft to accept")),
        }
        let trial = state.trials.begin(number, state.now());
        let trial = trial.ok_or_else(|| conflict("being-tried", "it is being tried already"))?;
        let tried = proposal.clone();
        state.trials.spawn(trial, move |trial| trial.run(&*writer, &tried, wanted.commit));
        detail(&state, proposal).await
    };
    once.first(&state, begin).await.map(accepted)
}

/// Why a skill is declined.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rejection {
    /// Why; the same is not proposed again.
    #[serde(default)]
    reason: String,
}

/// Decline a proposed skill
#[utoipa::path(post, path = "/v1/skills/proposals/{number}/reject", operation_id = "reject_skill_proposal", tag = "skills",
    request_body = Rejection,
    params(("number" = i64, Path, description = "The number of the proposal"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The proposal", body = ProposalEntry), ReadRefused, ChangeRefused))]
async fn reject(
    State(state): State<AppState>,
    user: User,
    Id(ProposalNumber(number)): Id<ProposalNumber>,
    Change { once, body: rejection }: Change<Rejection>,
) -> Result<Json<Value>, Problem> {
    decidable(&state, &user, number).await?;
    let reject = async {
        let proposals = state.coordinator.skill_proposals();
        let reason = &rejection.reason;
        let was_open = proposals.decide(number, ProposalStatus::Rejected, reason).await?;
        let now = find(&state, number).await?;
        match was_open {
            true => Ok(ProposalEntry::from(&now)),
            false => Err(already_decided(&now)),
        }
    };
    once.change(&state, reject).await
}
