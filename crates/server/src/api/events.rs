//! Events: as a list after a cursor, and as a stream that continues it. Both are made of the same function.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event as SseEvent, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, interval_at};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::{Preview, PreviewContent, Scope, StreamEvent};
use windlass_core::id::{SessionId, TaskId};

use super::answers::ReadRefused;
use super::owned;
use crate::auth::User;
use crate::events::{self, Subscription, Update};
use crate::extract::{Id, Params};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(all_events)).routes(routes!(task_events))
}

/// Events in one answer, when the request does not say.
const USUAL_LIMIT: usize = 100;

/// Events in one answer at most.
const MAX_LIMIT: usize = 1000;

/// How often a stream says that it is there. A comment would not reach the script of a page.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a client waits before it connects again.
const RETRY: Duration = Duration::from_secs(1);

/// Which events of all tasks.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AllQuery {
    /// Only events after this one. 0 is the beginning; a stream without it begins now.
    #[param(minimum = 0)]
    after: Option<i64>,
    /// At most this many, in a list.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only those of this session.
    session: Option<String>,
    /// Only those of this task and of every agent below it.
    tree: Option<String>,
}

/// Which events of one task.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TaskQuery {
    /// Only events after this one; 0 is the beginning.
    #[param(minimum = 0)]
    after: Option<i64>,
    /// At most this many, in a list.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Events in the order in which they were committed.
#[derive(Serialize, ToSchema)]
struct EventList {
    #[schema(value_type = Vec<EventEntry>)]
    events: Vec<Box<RawValue>>,
    /// The cursor to continue with: `after` of the next request.
    next: i64,
    /// Whether there are more already.
    has_more: bool,
}

/// One event of a task's journal.
#[derive(Serialize, ToSchema)]
struct EventEntry {
    /// Its place among all events; the cursor to continue after it.
    id: i64,
    task_id: String,
    session_id: String,
    /// Its place among the events of its task, from 1.
    seq: u64,
    timestamp: String,
    /// The tool round it belongs to.
    iteration: u32,
    /// What happened, such as `tool_call`.
    event_type: String,
    /// What is known of it.
    #[schema(value_type = Object)]
    data: Value,
}

/// Events of all tasks that you may see
///
/// With `Accept: text/event-stream` the answer is a stream that continues after `Last-Event-ID`, else after `after`,
/// else with what happens from now on. Every event has an id. An event named `heartbeat` comes every 15 seconds.
#[utoipa::path(get, path = "/v1/events", operation_id = "list_events", tag = "events", params(AllQuery),
    responses(
        (status = 200, description = "Events", content((EventList = "application/json"), (String = "text/event-stream"))),
        ReadRefused,
    ))]
async fn all_events(
    State(state): State<AppState>,
    user: User,
    headers: HeaderMap,
    Params(query): Params<AllQuery>,
) -> Result<Response, Problem> {
    let scope = match (&query.session, &query.tree) {
        (None, None) => Scope::All,
        (Some(session), None) => {
            let session: SessionId = parsed("session", session)?;
            owned::session(&state, &user, session).await?;
            Scope::Session(session)
        }
        (None, Some(task)) => {
            let task: TaskId = parsed("tree", task)?;
            Scope::Tree(owned::task(&state, &user, task).await?.root)
        }
        (Some(_), Some(_)) => {
            return Err(Problem::bad_request("`session` and `tree` exclude each other"));
        }
    };
    if wants_stream(&headers) {
        let after = match last_event_id(&headers)?.or(query.after) {
            Some(after) => after,
            None => state.read(|coordinator| coordinator.feed().end()).await?,
        };
        return Ok(streamed(state.events.subscribe(&state, scope, user, after)));
    }
    list(&state, scope, &user, query.after.unwrap_or(0), query.limit).await
}

/// Events of one task
///
/// With `Accept: text/event-stream` the answer is a stream that continues after `Last-Event-ID`, else after `after`.
/// Its events named `preview` show what is coming: they are not journaled, have no id, and are void when the reply is
/// started again.
#[utoipa::path(get, path = "/v1/tasks/{task_id}/events", operation_id = "list_task_events", tag = "events",
    params(("task_id" = String, Path, description = "The task"), TaskQuery),
    responses(
        (status = 200, description = "Events", content((EventList = "application/json"), (String = "text/event-stream"))),
        ReadRefused,
    ))]
async fn task_events(
    State(state): State<AppState>,
    user: User,
    headers: HeaderMap,
    Id(task): Id<TaskId>,
    Params(query): Params<TaskQuery>,
) -> Result<Response, Problem> {
    owned::task(&state, &user, task).await?;
    let scope = Scope::Task(task);
    if wants_stream(&headers) {
        let after = last_event_id(&headers)?.or(query.after).unwrap_or(0);
        return Ok(streamed(state.events.subscribe(&state, scope, user, after)));
    }
    list(&state, scope, &user, query.after.unwrap_or(0), query.limit).await
}

async fn list(
    state: &AppState,
    scope: Scope,
    user: &User,
    after: i64,
    limit: Option<usize>,
) -> Result<Response, Problem> {
    let limit = limit.unwrap_or(USUAL_LIMIT);
    if after < 0 || !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_request(format!(
            "`after` is 0 or more, `limit` from 1 to {MAX_LIMIT}"
        )));
    }
    // One more says whether there are more.
    let mut found = events::after(state, scope, after, limit + 1).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().map_or(after, |last| last.record.pos);
    let visible = found.iter().filter(|one| user.may_see(one.origin.user.as_deref()));
    let events = visible.filter_map(|one| RawValue::from_string(one.json().to_string()).ok());
    Ok(Json(EventList { events: events.collect(), next, has_more }).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
    accept.contains("text/event-stream")
}

/// Where a stream that was interrupted continues.
fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let id = id.to_str().ok().and_then(|id| id.trim().parse().ok()).filter(|id| *id >= 0);
    id.map(Some).ok_or_else(|| Problem::bad_request("`Last-Event-ID` is not an id of an event"))
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> Result<T, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("`{name}`: {error}")))
}

/// A stream of events with what a browser and a proxy need to pass it on at once.
pub(crate) fn streamed(subscription: Subscription) -> Response {
    let ticks = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    let state = (subscription, ticks);
    let events = stream::unfold(state, |(mut subscription, mut ticks)| async move {
        let event = next(&mut subscription, &mut ticks).await?;
        Some((Ok::<_, Infallible>(event), (subscription, ticks)))
    });
    let first = stream::iter([Ok(SseEvent::default().retry(RETRY).comment("windlass"))]);
    let mut response = Sse::new(stream::StreamExt::chain(first, events)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// The next thing to send; `None` ends the stream, and the client connects again.
async fn next(subscription: &mut Subscription, ticks: &mut Interval) -> Option<SseEvent> {
    loop {
        let update = tokio::select! {
            update = subscription.next() => update,
            _ = ticks.tick() => return Some(SseEvent::default().event("heartbeat").data("{}")),
        };
        match update {
            Ok(Some(Update::Event(event))) => {
                let id = event.record.pos.to_string();
                return Some(SseEvent::default().id(id).data(&*event.json()));
            }
            Ok(Some(Update::Preview(preview))) => {
                if let Some(json) = preview_json(&preview) {
                    return Some(SseEvent::default().event("preview").data(json.to_string()));
                }
            }
            Ok(None) => return None,
            Err(problem) => {
                tracing::warn!(detail = problem.detail, "a stream of events ended");
                return None;
            }
        }
    }
}

/// What is coming, as a page or a program shows it (WF-007).
pub(crate) fn preview_json(preview: &Preview) -> Option<Value> {
    let task = preview.task;
    let json = match &preview.live {
        PreviewContent::Reply(event) => reply_json(task, event),
        PreviewContent::Output { call, text } => {
            json!({ "task_id": task, "kind": "output", "call": call, "text": text })
        }
        // Readers have the events that these stand for.
        PreviewContent::Asked { .. } | PreviewContent::Ended => return None,
    };
    Some(json)
}

fn reply_json(task: TaskId, event: &StreamEvent) -> Value {
    match event {
        StreamEvent::Text(text) => json!({ "task_id": task, "kind": "text", "text": text }),
        StreamEvent::Reasoning(text) => {
            json!({ "task_id": task, "kind": "reasoning", "text": text })
        }
        StreamEvent::CallStarted { index, name } => {
            json!({ "task_id": task, "kind": "call", "index": index, "tool": name })
        }
        StreamEvent::CallArguments { index, delta } => {
            json!({ "task_id": task, "kind": "arguments", "index": index, "text": delta })
        }
        StreamEvent::Retrying { attempt, after, reason }
        | StreamEvent::Waiting { attempt, after, reason } => json!({
            "task_id": task,
            "kind": "void",
            "attempt": attempt,
            "after_seconds": after.as_secs(),
            "reason": reason,
        }),
        StreamEvent::Bytes(count) => json!({ "task_id": task, "kind": "bytes", "count": count }),
    }
}
