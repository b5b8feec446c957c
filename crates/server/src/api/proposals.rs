//! Skills that are proposed because several tasks of a project did the same.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::skill_proposals::{Finding, Proposal, ProposalStatus};

use super::answers::{ChangeRefused, ReadRefused};
use super::once::Change;
use crate::auth::{Access, User};
use crate::extract::{Id, Params};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(reject))
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

/// Which proposals.
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

/// Why not.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rejection {
    /// Why; the same is not proposed again.
    #[serde(default)]
    reason: String,
}

/// Decline a proposed skill. One is accepted with `windlass skills proposals accept`, which tries it first
#[utoipa::path(post, path = "/v1/skills/proposals/{number}/reject", operation_id = "reject_skill_proposal", tag = "skills",
    request_body = Rejection,
    params(("number" = i64, Path, description = "The number of the proposal"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The proposal", body = ProposalEntry), ReadRefused, ChangeRefused))]
async fn reject(
    State(state): State<AppState>,
    user: User,
    Id(number): Id<i64>,
    Change { once, body: rejection }: Change<Rejection>,
) -> Result<Json<ProposalEntry>, Problem> {
    let unknown = || {
        let detail = format!("there is no proposal {number}");
        Problem::not_found("unknown-proposal", detail)
    };
    if user.access != Access::Admin {
        let detail = "only an admin decides about the skills of a project";
        return Err(Problem::forbidden("not-allowed", detail));
    }
    let proposals = state.coordinator.skill_proposals();
    let found = state.read(move |coordinator| coordinator.skill_proposals().get(number)).await?;
    found.ok_or_else(unknown)?;
    let was_open = proposals.decide(number, ProposalStatus::Rejected, &rejection.reason).await?;
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        coordinator.skill_proposals().get(number)
    };
    let now = state.read(read).await?.ok_or_else(unknown)?;
    let is_repeated = once.name().is_some() && now.status == ProposalStatus::Rejected;
    match was_open || is_repeated {
        true => Ok(Json(ProposalEntry::from(&now))),
        false => {
            let detail = format!("proposal {number} is {}", now.status);
            Err(Problem::new(axum::http::StatusCode::CONFLICT, "already-decided", detail))
        }
    }
}
