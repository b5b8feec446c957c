//! The stream that keeps pages up to date: one connection for all tabs of a browser, patches for each page in it.
//!
//! Invariants:
//! - The first patch of each page holds all of it. A browser that reconnects has everything, whatever happened before.
//! - A reader is asked for at most [`MAX_VIEWS`] pages, and a page is drawn at most every [`PACE`].
//! - A slow reader delays nobody: its patches are drawn when it takes them, from the state at that time.
//! - A page that could not be drawn says so, and is drawn again from scratch until that succeeds.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use windlass_coordinator::FastPollGuard;

use super::live::{PageContent, SentContent};
use super::view::{self, PageSources, View};
use super::{assets, layout};
use crate::auth::User;
use crate::problem::Problem;
use crate::state::AppState;

/// Pages of one connection.
const MAX_VIEWS: usize = 20;
/// The least time between two drawings.
const PACE: Duration = Duration::from_millis(80);
/// The time between two signs of life. A script cannot see comments, so they are events.
const BEAT: Duration = Duration::from_secs(15);
/// How long something may go unseen that nobody commits: a process that ends, a clock that passes.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The same while a page could not be drawn.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long a connection lives. A new one renews the cookie.
const LIFETIME: Duration = Duration::from_secs(600);

/// Streams patches of the pages that the query names.
pub async fn live(State(state): State<AppState>, user: User, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let addresses = url::form_urlencoded::parse(query.as_bytes());
    let addresses = addresses.filter(|(name, _)| name == "view").map(|(_, view)| view.into_owned());
    let pages = addresses.take(MAX_VIEWS).filter_map(OpenPage::new).collect();
    let connection = Connection::new(state, user, pages);
    let events = stream::unfold(connection, |mut connection| async {
        let event = connection.next().await?;
        Some((Ok::<_, Infallible>(event), connection))
    });
    let headers = [
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Sse::new(events)).into_response()
}

/// One page of a connection.
struct OpenPage {
    address: String,
    /// Absent while it is drawn on another thread.
    view: Option<Box<dyn View>>,
    sent: SentContent,
    /// Whether the last drawing failed.
    is_stale: bool,
}

impl OpenPage {
    fn new(address: String) -> Option<Self> {
        let view = view_at(&address)?;
        Some(Self { address, view: Some(view), sent: SentContent::default(), is_stale: false })
    }

    /// Records whether the page could be drawn. Returns an event for the browser if that has changed.
    fn set_stale(&mut self, is_stale: bool) -> Option<Event> {
        let changed = std::mem::replace(&mut self.is_stale, is_stale) != is_stale;
        let event = Event::default().event(if is_stale { "stale" } else { "fresh" });
        changed.then(|| event.data(json!({ "view": self.address }).to_string()))
    }
}

fn view_at(address: &str) -> Option<Box<dyn View>> {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    view::of(path, query)
}

struct Connection {
    state: AppState,
    user: User,
    pages: Vec<OpenPage>,
    ready: VecDeque<Event>,
    changes: watch::Receiver<u64>,
    _fast_poll: FastPollGuard,
    queues: watch::Receiver<u64>,
    trials: watch::Receiver<u64>,
    /// Patches so far; each has its number as id.
    count: u64,
    drawn_at: Instant,
    last_event_at: Instant,
    until: Instant,
    is_over: bool,
}

impl Connection {
    fn new(state: AppState, user: User, pages: Vec<OpenPage>) -> Self {
        let now = Instant::now();
        let hello = json!({ "version": assets::version() }).to_string();
        let mut changes = state.previews.changes();
        // What is there already is drawn at once.
        changes.mark_changed();
        Self {
            changes,
            _fast_poll: state.coordinator.feed().fast_poll(),
            queues: state.queues.changes(),
            trials: state.trials.changes(),
            state,
            user,
            pages,
            ready: VecDeque::from([Event::default().event("hello").data(hello)]),
            count: 0,
            drawn_at: now.checked_sub(PACE).unwrap_or(now),
            last_event_at: now,
            until: now + LIFETIME,
            is_over: false,
        }
    }

    /// The next event; `None` when the connection is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last_event_at = Instant::now();
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            let beat = self.last_event_at + BEAT;
            let is_stale = self.pages.iter().any(|page| page.is_stale);
            let look = self.drawn_at + if is_stale { TRY_AGAIN } else { LOOK_AGAIN };
            tokio::select! {
                () = self.state.events.wait_for_stop() => return None,
                () = sleep_until(self.until) => {
                    self.is_over = true;
                    self.ready.push_back(Event::default().event("again").data("{}"));
                }
                () = sleep_until(beat) => {
                    self.ready.push_back(Event::default().event("beat").data("{}"));
                }
                changed = timeout_at(look, any([&mut self.changes, &mut self.queues, &mut self.trials])) => {
                    if matches!(changed, Ok(Err(_))) {
                        return None;
                    }
                    sleep_until(self.drawn_at + PACE).await;
                    self.changes.mark_unchanged();
                    self.queues.mark_unchanged();
                    self.trials.mark_unchanged();
                    self.draw().await;
                }
            }
        }
    }

    /// Draws every page, and queues what has changed of each.
    async fn draw(&mut self) {
        self.drawn_at = Instant::now();
        for page in &mut self.pages {
            let Some(view) = page.view.take() else { continue };
            match draw(&self.state, &self.user, view).await {
                Ok((view, Some(live))) => {
                    page.view = Some(view);
                    self.ready.extend(page.set_stale(false));
                    let Some(patch) = page.sent.patch(&page.address, &live) else { continue };
                    let patch = patch.with_base(&self.state.base);
                    self.count += 1;
                    let data = serde_json::to_string(&patch).unwrap_or_default();
                    let event = Event::default().event("patch").id(self.count.to_string());
                    self.ready.push_back(event.data(data));
                }
                // Gone, or no longer for this reader: the page keeps what it has.
                Ok((view, None)) => page.view = Some(view),
                // What the failed drawing left behind may be half of something, so it begins from nothing.
                Err(_) => {
                    page.view = view_at(&page.address);
                    self.ready.extend(page.set_stale(true));
                }
            }
        }
    }
}

/// Something was committed, a queue has changed, or a try of a skill.
async fn any(counts: [&mut watch::Receiver<u64>; 3]) -> Result<(), watch::error::RecvError> {
    let [commits, queues, trials] = counts;
    tokio::select! {
        changed = commits.changed() => changed,
        changed = queues.changed() => changed,
        changed = trials.changed() => changed,
    }
}

/// Draws a page on a thread that may wait for the disk, and gives the page back.
pub async fn draw(
    state: &AppState,
    user: &User,
    mut view: Box<dyn View>,
) -> Result<(Box<dyn View>, Option<PageContent>), Problem> {
    let (user, about) = (user.clone(), state.about.clone());
    let (previews, drafts) = (state.previews.clone(), state.drafts.clone());
    let (checkup, queues) = (state.checkup.clone(), state.queues.clone());
    let trials = state.trials.clone();
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        let reading = PageSources {
            coordinator,
            previews: &previews,
            drafts: &drafts,
            about: &about,
            checkup: &checkup,
            queues: &queues,
            trials: &trials,
            user: &user,
        };
        let content = view.content(&reading)?;
        let content = content.map(|content| layout::with_shell(content, &reading)).transpose()?;
        Ok((view, content))
    };
    let drawn = state.read(read).await;
    drawn.inspect_err(|problem| {
        tracing::warn!(problem = problem.detail, "a page could not be drawn")
    })
}
