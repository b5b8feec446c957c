//! Events for any number of readers: one job of the process reads the journal's end and hands each event to all.
//!
//! Invariants:
//! - A reader that continues after a cursor gets every event of its scope after it, in order, each once: it listens
//!   first, then reads what is committed, then leaves out what it has had.
//! - A slow reader costs nobody else anything. What it misses it reads from the journal, at its own cursor.
//! - Without readers nothing is read. When the first one comes, reading begins at the end of the journal, and all who
//!   listen then read up to there by themselves.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use windlass_coordinator::views::TaskOrigin;
use windlass_coordinator::{Coordinator, Error, FastPollGuard, Preview, Scope, trace};
use windlass_core::event::Record;
use windlass_core::id::TaskId;

use crate::auth::User;
use crate::problem::Problem;
use crate::state::AppState;

/// Events that a reader may be behind before it reads from the journal instead.
const BACKLOG: usize = 256;

/// Events read at once.
pub const PAGE: usize = 256;

/// Tasks whose origin is remembered by the job that reads.
const MAX_ORIGINS: usize = 10_000;

/// An event that is committed, and where its task belongs.
pub struct Committed {
    pub record: Record,
    pub origin: TaskOrigin,
    json: OnceLock<Arc<str>>,
}

impl Committed {
    /// The event as the API has it; made once for all readers.
    pub fn json(&self) -> Arc<str> {
        Arc::clone(self.json.get_or_init(|| {
            let Record { pos, task, seq, .. } = &self.record;
            let session = self.origin.session;
            let entry = trace::entry(&self.record);
            let rest = entry.strip_prefix('{').unwrap_or(&entry);
            let head = format!(r#"{{"id":{pos},"task_id":"{task}","session_id":"{session}""#);
            format!(r#"{head},"seq":{seq},{rest}"#).into()
        }))
    }

    /// Whether it belongs to what is asked for.
    fn is_in(&self, scope: Scope) -> bool {
        match scope {
            Scope::All => true,
            Scope::Task(task) => self.record.task == task,
            Scope::Tree(root) => self.origin.root == root,
            Scope::Session(session) => self.origin.session == session,
        }
    }
}

/// What readers get.
#[derive(Clone)]
enum FanItem {
    Event(Arc<Committed>),
    /// Events before the next one may be missing here; the journal has them.
    Gap,
}

/// Hands out events as they are committed.
pub struct EventFan {
    sender: broadcast::Sender<FanItem>,
    /// Somebody has begun to listen.
    wanted: Notify,
    /// Ends every reader.
    stop: CancellationToken,
}

impl EventFan {
    pub fn new(stop: CancellationToken) -> Self {
        Self { sender: broadcast::channel(BACKLOG).0, wanted: Notify::new(), stop }
    }

    /// Resolves when the server stops.
    pub async fn wait_for_stop(&self) {
        self.stop.cancelled().await;
    }

    /// Reads the end of the journal for those who listen, until the server stops.
    pub async fn run(&self, coordinator: &Coordinator) -> Result<(), Error> {
        let reading = self.read(coordinator);
        self.stop.run_until_cancelled(reading).await.unwrap_or(Ok(()))
    }

    async fn read(&self, coordinator: &Coordinator) -> Result<(), Error> {
        let mut tail = coordinator.feed().tail()?;
        let mut origins = Origins::default();
        loop {
            if self.sender.receiver_count() == 0 {
                self.wanted.notified().await;
                tail.skip()?;
                self.send(FanItem::Gap);
            }
            let records = tokio::select! {
                records = tail.next() => records?,
                // Whoever is left may be nobody.
                () = self.sender.closed() => continue,
            };
            for committed in origins.with_origins(coordinator, records)? {
                self.send(FanItem::Event(committed));
            }
        }
    }

    fn send(&self, notice: FanItem) {
        // The last one may have left just now.
        let _ = self.sender.send(notice);
    }

    /// Follows what a user may see of a scope, from the event after `after`.
    pub fn subscribe(
        &self,
        state: &AppState,
        scope: Scope,
        user: User,
        after: i64,
    ) -> Subscription {
        // First of all, so that nothing falls between what is read and what is received.
        let live = self.sender.subscribe();
        self.wanted.notify_one();
        Subscription {
            live,
            previews: state.coordinator.feed().previews(),
            _fast_poll: state.coordinator.feed().fast_poll(),
            stop: self.stop.clone(),
            state: state.clone(),
            scope,
            user,
            cursor: after,
            ready: VecDeque::new(),
            is_behind: true,
        }
    }
}

/// Where the tasks of events belong, asked once for each.
#[derive(Default)]
struct Origins(HashMap<TaskId, TaskOrigin>);

impl Origins {
    fn with_origins(
        &mut self,
        coordinator: &Coordinator,
        records: Vec<Record>,
    ) -> Result<Vec<Arc<Committed>>, Error> {
        let mut found = Vec::with_capacity(records.len());
        for record in records {
            let Some(origin) = self.of(coordinator, record.task)? else { continue };
            found.push(Arc::new(Committed { record, origin, json: OnceLock::new() }));
        }
        Ok(found)
    }

    /// `None` for a task that was pruned meanwhile.
    fn of(&mut self, coordinator: &Coordinator, task: TaskId) -> Result<Option<TaskOrigin>, Error> {
        if let Some(known) = self.0.get(&task) {
            return Ok(Some(known.clone()));
        }
        let Some(origin) = coordinator.tasks().origin(task)? else { return Ok(None) };
        if self.0.len() >= MAX_ORIGINS {
            self.0.clear();
        }
        self.0.insert(task, origin.clone());
        Ok(Some(origin))
    }
}

/// Up to `limit` committed events of a scope after a cursor; fewer mean that there are no more. Both a single answer and a
/// stream are made of this.
pub async fn after(
    state: &AppState,
    scope: Scope,
    cursor: i64,
    limit: usize,
) -> Result<Vec<Arc<Committed>>, Problem> {
    let read = move |coordinator: &Coordinator| {
        let records = coordinator.feed().after(scope, cursor, limit)?;
        Origins::default().with_origins(coordinator, records)
    };
    state.read(read).await
}

/// Something for a reader.
pub enum Update {
    Event(Arc<Committed>),
    /// It is happening; not journaled, and void if the reply is started again.
    Preview(Preview),
}

/// One reader of the events, and where it has got to.
pub struct Subscription {
    state: AppState,
    scope: Scope,
    user: User,
    /// The last event that was read, shown or not.
    cursor: i64,
    ready: VecDeque<Arc<Committed>>,
    /// Whether there may be events in the journal that were not received.
    is_behind: bool,
    live: broadcast::Receiver<FanItem>,
    previews: broadcast::Receiver<Preview>,
    stop: CancellationToken,
    _fast_poll: FastPollGuard,
}

impl Subscription {
    /// The next event or preview; waits for it. `None` when the server stops.
    pub async fn next(&mut self) -> Result<Option<Update>, Problem> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                self.cursor = next.record.pos;
                if self.user.may_see(next.origin.user.as_deref()) {
                    return Ok(Some(Update::Event(next)));
                }
                continue;
            }
            if self.is_behind {
                let page = after(&self.state, self.scope, self.cursor, PAGE).await?;
                self.is_behind = page.len() == PAGE;
                self.ready.extend(page);
                continue;
            }
            tokio::select! {
                // In this order: what was shown of a reply comes before the reply.
                biased;
                () = self.stop.cancelled() => return Ok(None),
                preview = self.previews.recv() => match preview {
                    Ok(preview) if self.wants(&preview) => {
                        return Ok(Some(Update::Preview(preview)));
                    }
                    // Another task's, or too many at once: previews are not promises.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return Ok(None),
                },
                notice = self.live.recv() => match notice {
                    Ok(FanItem::Event(event)) => {
                        if event.record.pos > self.cursor && event.is_in(self.scope) {
                            self.ready.push_back(event);
                        }
                    }
                    Ok(FanItem::Gap) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        self.is_behind = true;
                    }
                    Err(broadcast::error::RecvError::Closed) => return Ok(None),
                },
            }
        }
    }

    /// Previews are for those who follow one task. The task was checked when they began.
    fn wants(&self, preview: &Preview) -> bool {
        match self.scope {
            Scope::Task(task) | Scope::Tree(task) => preview.task == task,
            Scope::All | Scope::Session(_) => false,
        }
    }
}
