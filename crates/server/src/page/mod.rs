//! The page: the coordinator's views in a browser, and which parts change while a person looks.
//!
//! Invariants:
//! - A page and every patch of it are drawn by the same functions from the same views (§15.24).
//! - Text that comes from a person, a model, a tool or a file is text: nothing of it is markup, is run, or is fetched.
//! - Every change goes through the API, so that the page can do nothing that a program cannot.

mod login;
mod view;
mod live;
mod stream;
mod previews;
mod drafts;
mod layout;
mod base;
mod assets;
mod home;
mod session;
mod mode;
mod queue;
mod processes;
mod conversation;
mod entry;
mod deliverable;
mod question;
mod inbox;
mod proposal;
mod tasks;
mod task;
mod timeline;
mod output;
mod schedules;
mod workflows;
mod workflow_run;
mod plans;
mod commitments;
mod skills;
mod settings;
mod health;
mod cost;
mod chart;
mod diff;
mod markdown;
mod pieces;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, put};
use maud::{Markup, html};
use serde::Deserialize;
use windlass_coordinator::Error;

pub use drafts::Drafts;
pub use previews::Previews;

use crate::api::owned;
use crate::auth::User;
use crate::extract::Body;
use crate::problem::Problem;
use crate::state::AppState;
use drafts::Purpose;
use live::PageContent;
use view::{PageSources, View};

/// The addresses of pages; [`view::of`] knows what each shows.
const PAGES: &[&str] = &[
    "/",
    "/inbox",
    "/tasks",
    "/tasks/{id}",
    "/tasks/{id}/{tab}",
    "/sessions/{id}",
    "/outputs/{call}",
    "/schedules",
    "/workflows",
    "/workflows/{id}",
    "/plans",
    "/commitments",
    "/commitments/{id}",
    "/skills",
    "/skills/proposals/{number}",
    "/cost",
    "/health",
    "/settings",
];

/// What a page may do in a browser: its own script and style, requests to its own server, and nothing else.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The routes of the page.
pub fn routes() -> Router<AppState> {
    let routes = Router::new()
        .route("/live", get(stream::live))
        .route("/assets/{name}", get(asset))
        .route("/seen", put(note_visible_page))
        .route("/drafts/{purpose}", put(keep_draft));
    let routes = PAGES.iter().fold(routes, |routes, path| routes.route(path, get(show)));
    routes.merge(login::routes())
}

/// A page as it is now.
async fn show(State(state): State<AppState>, user: User, uri: Uri) -> Response {
    let address = uri.path_and_query().map_or("/", |address| address.as_str());
    let Some(view) = view::of(uri.path(), uri.query().unwrap_or_default()) else {
        return nothing_here(&state, address, &user).await;
    };
    let (view, live) = match stream::draw(&state, &user, view).await {
        Ok(drawn) => drawn,
        Err(problem) => return not_drawn(&state, address, &user, &problem),
    };
    let Some(live) = live else { return nothing_here(&state, address, &user).await };
    let frame = view.frame(&live);
    page(&state, StatusCode::OK, &layout::page(&state, address, &user, &live, &frame))
}

/// A page that could not be drawn. The script loads it again as soon as it can be.
fn not_drawn(state: &AppState, address: &str, user: &User, problem: &Problem) -> Response {
    let words = html! {
        span data-failed { (windlass_core::shown::shown_line(&problem.detail)) ". " }
        a href=(address) { "Try again" }
    };
    let content = pieces::nothing("This page could not be drawn just now", words);
    let live = PageContent::new("Not drawn");
    page(state, problem.code(), &layout::page(state, address, user, &live, &content))
}

/// The page of an address that leads to nothing. It has what every page has, such as how many questions are open.
pub async fn nothing_here(state: &AppState, address: &str, user: &User) -> Response {
    let drawn = stream::draw(state, user, Box::new(NothingHere)).await;
    let live = drawn.ok().and_then(|(_, live)| live);
    let live = live.unwrap_or_else(|| PageContent::new("Not found"));
    let content = NothingHere.frame(&live);
    page(state, StatusCode::NOT_FOUND, &layout::page(state, address, user, &live, &content))
}

struct NothingHere;

impl View for NothingHere {
    fn content(&mut self, _: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        Ok(Some(PageContent::new("Not found")))
    }

    fn frame(&self, _: &PageContent) -> Markup {
        let words = html! { "It may have been removed, or belong to somebody else. " a href="/tasks" { "See all tasks" } };
        pieces::nothing("There is nothing here", words)
    }
}

fn page(state: &AppState, status: StatusCode, markup: &Markup) -> Response {
    // The style sheet is fetched while the page is still read: nothing is drawn before it.
    let style = format!("<{}{}>; rel=preload; as=style", state.base, assets::path("style.css"));
    let headers =
        [(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY.to_owned()), (header::LINK, style)];
    (status, headers, Html(base::with_base(&markup.0, &state.base))).into_response()
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let found = assets::ASSETS.iter().find(|asset| asset.name == name);
    let Some(asset) = found else {
        return Err(Problem::not_found("unknown-path", format!("there is no file `{name}`")));
    };
    let about = [
        (header::CONTENT_TYPE, asset.media),
        // Its address changes with it.
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::VARY, "accept-encoding"),
    ];
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    Ok(match accepted.is_some_and(assets::accepts_gzip) {
        true => {
            (about, [(header::CONTENT_ENCODING, "gzip")], assets::packed(asset)).into_response()
        }
        false => (about, asset.text).into_response(),
    })
}

/// A page of the owner is in sight: no notice has to be sent elsewhere.
async fn note_visible_page(
    State(state): State<AppState>,
    user: User,
    Body(_): Body<VisiblePage>,
) -> StatusCode {
    if user.name == state.auth.owner() {
        state.presence.note_visible_page(state.now());
    }
    StatusCode::NO_CONTENT
}

/// The body of a request that only says that a page is in sight: an object without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VisiblePage {}

/// What somebody has begun to write.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    text: String,
}

/// Keeps a draft. It is the page's own: nothing that a task sees.
async fn keep_draft(
    State(state): State<AppState>,
    user: User,
    Path(purpose): Path<String>,
    Body(draft): Body<Draft>,
) -> Result<StatusCode, Problem> {
    let unknown = || Problem::not_found("unknown-path", format!("`{purpose}` has no draft"));
    let purpose = Purpose::read(&purpose).ok_or_else(unknown)?;
    match purpose {
        Purpose::NewSession => {}
        Purpose::Session(id) | Purpose::Panel(id) => owned::session(&state, &user, id).await?,
        Purpose::Review(id) => drop(owned::task(&state, &user, id).await?),
    }
    if draft.text.len() > drafts::MAX_BYTES {
        let detail = format!("a draft has at most {} bytes", drafts::MAX_BYTES);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail));
    }
    let drafts = state.drafts.clone();
    let kept = tokio::task::spawn_blocking(move || drafts.write(&user.name, purpose, &draft.text));
    match kept.await {
        Ok(Ok(())) => Ok(StatusCode::NO_CONTENT),
        Ok(Err(error)) => Err(not_kept(&error)),
        Err(error) => Err(not_kept(&error)),
    }
}

fn not_kept(error: &dyn std::error::Error) -> Problem {
    let detail = format!("the draft was not kept: {error}");
    Problem::new(StatusCode::INSUFFICIENT_STORAGE, "not-kept", detail)
}
