//! The API for programs. Each file has the routes of one noun, with their description: the OpenAPI text is made of
//! the same functions that answer.

mod answers;
mod once;
pub mod owned;
mod health;
mod login;
mod tasks;
mod task_view;
mod control;
mod events;
mod files;
mod questions;
mod sessions;
mod queue;
mod commands;
mod proposals;
mod results;
mod outputs;
mod pictures;
mod schedules;
mod plans;
mod plan_notes;
mod cost;
mod parallel;
mod context;
mod doctor;
mod workflows;
mod commitments;

pub use answers::digest_of;
pub use once::Turns;
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::problem::Problem;
use crate::state::AppState;

/// The description of everything that has no route of its own.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "windlass",
        description = "Runs AI agents on long tasks. Every request needs `Authorization: Bearer TOKEN`, or the cookie \
                       of a signed-in browser; a change by cookie needs the header `X-Windlass` too. What is refused \
                       is refused as problem JSON (RFC 9457) with a `type` that does not change its meaning.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(Problem)),
    modifiers(&Security),
    security(("token" = []), ("cookie" = [])),
)]
struct Description;

/// The two ways to say who one is.
struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("token", SecurityScheme::Http(token));
        let cookie = ApiKeyValue::new("windlass_PORT_INSTANCE");
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    }
}

/// The routes of the API with their description.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Description::openapi())
        .merge(health::routes())
        .merge(login::routes())
        .merge(tasks::routes())
        .merge(control::routes())
        .merge(events::routes())
        .merge(files::routes())
        .merge(questions::routes())
        .merge(sessions::routes())
        .merge(queue::routes())
        .merge(commands::routes())
        .merge(proposals::routes())
        .merge(results::routes())
        .merge(outputs::routes())
        .merge(pictures::routes())
        .merge(schedules::routes())
        .merge(plans::routes())
        .merge(plan_notes::routes())
        .merge(cost::routes())
        .merge(parallel::routes())
        .merge(context::routes())
        .merge(doctor::routes())
        .merge(workflows::routes())
        .merge(commitments::routes())
}
