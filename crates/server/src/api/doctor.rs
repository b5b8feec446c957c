//! The health of the installation, as `windlass doctor` finds it.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::health::Check;

use super::answers::ReadRefused;
use crate::auth::{Access, User};
use crate::extract::Params;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(doctor))
}

/// How old a report may be, when the request does not say; and the least that a request may ask for.
const USUAL_AGE: u64 = 60;
const LEAST_AGE: u64 = 5;

/// How recent the answer must be.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DoctorQuery {
    /// The checks run again where the last report is older.
    #[param(minimum = 5, maximum = 86400)]
    max_age_seconds: Option<u64>,
}

/// What the checks have found.
#[derive(Serialize, ToSchema)]
struct DoctorReport {
    checked_at: String,
    /// Whether nothing is wrong or missing.
    is_sound: bool,
    checks: Vec<CheckEntry>,
}

/// One thing that was looked at.
#[derive(Serialize, ToSchema)]
struct CheckEntry {
    check: String,
    /// `ok`, `wrong`, `missing` or `skipped`.
    status: String,
    message: String,
    details: Vec<String>,
    /// What `windlass doctor fix` would do about it.
    fix: Option<String>,
    /// What a person or an agent can do about it.
    hint: Option<String>,
    /// Whether no task starts before it is right.
    blocks: bool,
}

impl From<&Check> for CheckEntry {
    fn from(check: &Check) -> Self {
        Self {
            check: check.name.to_owned(),
            status: check.status.to_string(),
            message: check.message.clone(),
            details: check.details.clone(),
            fix: check.fix.clone(),
            hint: check.hint.clone(),
            blocks: check.blocks,
        }
    }
}

/// Check everything that work needs; for admins
#[utoipa::path(get, path = "/v1/doctor", operation_id = "check_health", tag = "health", params(DoctorQuery),
    responses((status = 200, description = "What was found", body = DoctorReport), ReadRefused))]
async fn doctor(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<DoctorQuery>,
) -> Result<Json<DoctorReport>, Problem> {
    if user.access != Access::Admin {
        return Err(Problem::forbidden("not-allowed", "the checks are for admins"));
    }
    let seconds = query.max_age_seconds.unwrap_or(USUAL_AGE);
    if !(LEAST_AGE..=86_400).contains(&seconds) {
        return Err(Problem::bad_request(format!(
            "`max_age_seconds` is from {LEAST_AGE} to 86400"
        )));
    }
    let report = state.checkup.report(&state.coordinator, Duration::from_secs(seconds)).await;
    Ok(Json(DoctorReport {
        checked_at: report.at.to_string(),
        is_sound: !report.checks.iter().any(Check::is_problem),
        checks: report.checks.iter().map(CheckEntry::from).collect(),
    }))
}
