//! Workflow files: what is wrong with them, what their steps would be given, and the schema of their keys.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::workflows::{Rendered, schema};

use super::WorkflowEntry;
use crate::api::answers::{ChangeRefused, ReadRefused};
use crate::api::once::Change;
use crate::api::tasks::{invalid, workspace};
use crate::auth::User;
use crate::extract::Params;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(validate))
        .routes(routes!(render))
        .routes(routes!(get_schema))
}

/// Which workflows are checked.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CheckQuery {
    /// A directory of the project, on the server's machine. Only an admin chooses.
    directory: String,
    /// The workflow's name; without, all of them.
    workflow: Option<String>,
}

/// What a check found.
#[derive(Serialize, ToSchema)]
struct Checked {
    /// The workflows that nothing is wrong with.
    valid: Vec<WorkflowEntry>,
    /// Everything that is wrong with the others, with files and lines.
    errors: Vec<String>,
}

/// Check workflows, their spells and their templates
#[utoipa::path(get, path = "/v1/workflows/validate", operation_id = "validate_workflows", tag = "workflows", params(CheckQuery),
    responses((status = 200, description = "What is right and what is wrong", body = Checked), ReadRefused))]
async fn validate(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<CheckQuery>,
) -> Result<Json<Checked>, Problem> {
    let CheckQuery { directory, workflow } = query;
    check_name(workflow.as_deref().unwrap_or_default())
        .map_err(|problem| Problem::bad_request(problem.detail))?;
    let directory = super::directory(&state, &user, &directory)?;
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        let workflows = coordinator.workflows();
        let names = match workflow {
            Some(name) => vec![name],
            None => {
                let all = workflows.list(&directory);
                all.iter().map(|one| one.path.display().to_string()).collect()
            }
        };
        let mut checked = Checked { valid: Vec::new(), errors: Vec::new() };
        for name in names {
            match workflows.check(&directory, &name) {
                Ok(view) => checked.valid.push(view.into()),
                Err(error) => checked.errors.push(error.to_string()),
            }
        }
        Ok(checked)
    };
    Ok(Json(state.read(read).await?))
}

/// A workflow to be rendered.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WantedRendering {
    /// The workflow's name.
    workflow: String,
    /// What it is for; `{{.bead.title}}` in templates.
    #[serde(default)]
    title: String,
    /// Values of its inputs, by name.
    #[serde(default)]
    inputs: BTreeMap<String, String>,
    /// A directory of the project, on the server's machine. Only an admin chooses.
    directory: String,
}

/// A step as it would run.
#[derive(Serialize, ToSchema)]
struct RenderedStep {
    step: String,
    /// The loop or the parallel step that it is in.
    within: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    /// What else decides how it runs, by its key.
    settings: Vec<RenderedSetting>,
    /// The prompt, the command, the question or the message of a merge.
    text: String,
    /// Why there is none.
    error: Option<String>,
}

/// What a key of a step is set to.
#[derive(Serialize, ToSchema)]
struct RenderedSetting {
    name: String,
    value: String,
}

impl From<Rendered> for RenderedStep {
    fn from(step: Rendered) -> Self {
        let settings = step.settings.into_iter();
        let settings =
            settings.map(|one| RenderedSetting { name: one.name.to_owned(), value: one.value });
        Self {
            step: step.step,
            within: step.within,
            kind: step.kind.to_owned(),
            settings: settings.collect(),
            text: step.text,
            error: step.error,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct Rendering {
    steps: Vec<RenderedStep>,
}

/// Show what each step would be given, without running anything
#[utoipa::path(post, path = "/v1/workflows/render", operation_id = "render_workflow", tag = "workflows", request_body = WantedRendering,
    responses((status = 200, description = "The steps", body = Rendering), ReadRefused, ChangeRefused))]
async fn render(
    State(state): State<AppState>,
    user: User,
    Change { body: wanted, .. }: Change<WantedRendering>,
) -> Result<Response, Problem> {
    let WantedRendering { workflow, title, inputs, directory } = wanted;
    check_name(&workflow)?;
    let directory = workspace(&state, &user, &directory)?;
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        coordinator.workflows().render(&directory, &workflow, &title, inputs)
    };
    let steps = state.read(read).await?.into_iter().map(RenderedStep::from).collect();
    Ok(Json(Rendering { steps }).into_response())
}

/// The JSON schema of workflow files
#[utoipa::path(get, path = "/v1/workflows/schema", operation_id = "get_workflow_schema", tag = "workflows",
    responses((status = 200, description = "A JSON schema", body = serde_json::Value), ReadRefused))]
async fn get_schema(_user: User) -> Json<serde_json::Value> {
    Json(schema())
}

/// A path would read files of others.
pub(super) fn check_name(workflow: &str) -> Result<(), Problem> {
    match workflow.contains('/') {
        true => Err(invalid("`workflow` is a name, not a path")),
        false => Ok(()),
    }
}
