//! What a person can type: the slash commands, which are the same on every surface (MS-175), and the skills.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::slash::{Availability, TABLE};

use super::answers::ReadRefused;
use crate::auth::{Access, User};
use crate::extract::Params;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(commands)).routes(routes!(skills))
}

/// One slash command.
#[derive(Serialize, ToSchema)]
struct CommandEntry {
    /// Without its slash.
    name: String,
    /// What it takes, as people write it; empty for nothing.
    arguments: String,
    /// What it does, in one sentence.
    help: String,
    group: String,
    /// Whether it shows or changes everybody's work, and so is for admins.
    admins_only: bool,
    /// Words that may follow its name.
    completions: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct CommandList {
    commands: Vec<CommandEntry>,
}

/// List the slash commands
#[utoipa::path(get, path = "/v1/commands", operation_id = "list_commands", tag = "sessions",
    responses((status = 200, description = "Commands", body = CommandList), ReadRefused))]
async fn commands(_user: User) -> Json<CommandList> {
    let entry = |command: &windlass_coordinator::slash::SlashCommand| CommandEntry {
        name: command.name.to_owned(),
        arguments: command.arguments.to_owned(),
        help: command.help.to_owned(),
        group: command.group.title().to_owned(),
        admins_only: command.availability == Availability::Admins,
        completions: command.completions(&[]).into_iter().map(str::to_owned).collect(),
    };
    Json(CommandList { commands: TABLE.iter().map(entry).collect() })
}

/// A skill that a person may call by `/name`.
#[derive(Serialize, ToSchema)]
struct SkillEntry {
    name: String,
    description: String,
}

#[derive(Serialize, ToSchema)]
struct SkillList {
    skills: Vec<SkillEntry>,
}

/// Where the skills are looked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SkillQuery {
    /// The project's directory; only an admin chooses.
    workspace: Option<String>,
}

/// List the skills that a person may call by `/name`
#[utoipa::path(get, path = "/v1/skills", operation_id = "list_skills", tag = "sessions", params(SkillQuery),
    responses((status = 200, description = "Skills", body = SkillList), ReadRefused))]
async fn skills(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<SkillQuery>,
) -> Result<Json<SkillList>, Problem> {
    if query.workspace.is_some() && user.access != Access::Admin {
        let detail = "only an admin chooses a directory of the machine";
        return Err(Problem::forbidden("not-allowed", detail));
    }
    if query.workspace.as_ref().is_some_and(|path| !std::path::Path::new(path).is_absolute()) {
        return Err(Problem::bad_request("`workspace` is an absolute path"));
    }
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        coordinator.skills(query.workspace.as_deref())
    };
    let found = state.read(read).await?;
    let entry = |skill: windlass_coordinator::SkillCommand| SkillEntry {
        name: skill.name,
        description: skill.description,
    };
    Ok(Json(SkillList { skills: found.into_iter().map(entry).collect() }))
}
