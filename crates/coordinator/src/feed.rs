//! Following a task: its events as they are committed, and previews of what is coming.
//!
//! Events come from the store, whichever process commits them. Previews come from a broadcast inside this process and,
//! on request, from the process that drives the task.

use std::collections::VecDeque;

use tokio::sync::broadcast;
use windlass_agent::Preview;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_store::{Bookmark, Changes, Filter, Store, StreamCursors};
pub use windlass_store::{Damage, JournalEntry, Scope};

use crate::live::Watcher;
use crate::{Coordinator, Error};

/// Events read at once while following.
const PAGE: usize = 256;

/// Something to show.
#[derive(Clone, Debug)]
pub enum Update {
    Event(Box<Record>),
    /// It is happening; not journaled, and void if the reply is started again.
    Preview(Preview),
}

/// A task's events in order, or those of a task and of every agent below it.
pub struct TaskFeed {
    store: Store,
    task: TaskId,
    /// Whose events are read, the task's own first.
    journals: Vec<FollowedJournal>,
    includes_sub_agents: bool,
    ready: VecDeque<Record>,
    changes: Changes,
    previews: broadcast::Receiver<Preview>,
    /// Previews of the process that drives it.
    elsewhere: Option<Watcher>,
    /// One of them, which follows what was committed before it.
    next_preview: Option<Preview>,
}

/// One journal, read up to here.
struct FollowedJournal {
    place: Bookmark,
    /// Nothing more will be written there.
    ended: bool,
}

impl FollowedJournal {
    fn new(task: TaskId, seq: u64) -> Self {
        Self { place: Bookmark::after(task, seq), ended: false }
    }

    fn task(&self) -> TaskId {
        self.place.task()
    }
}

/// Events as they are committed.
#[derive(Clone, Copy)]
pub struct Feed<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Feed<'_> {
    /// Follows a task from the event after `seq`; 0 is the beginning.
    pub fn follow(self, task: TaskId, seq: u64) -> TaskFeed {
        TaskFeed {
            store: self.coordinator.store.clone(),
            task,
            journals: vec![FollowedJournal::new(task, seq)],
            includes_sub_agents: false,
            ready: VecDeque::new(),
            changes: self.coordinator.store.changes(),
            previews: self.coordinator.previews.subscribe(),
            elsewhere: None,
            next_preview: None,
        }
    }

    /// Follows a task from the event after `seq` and, from now on, every sub-agent below it. Events of one journal come
    /// in their order. Between journals one thing is sure: what a sub-agent did comes before the event about its end,
    /// unless more than a page of it was written since the last look.
    pub fn follow_all(self, task: TaskId, seq: u64) -> Result<TaskFeed, Error> {
        let mut feed = self.follow(task, seq);
        feed.includes_sub_agents = true;
        let root = self.coordinator.tasks().root(task)?;
        let live = Filter { root: Some(root), live: true, ..Filter::default() };
        let mut rows = self.coordinator.store.tasks().list(&live)?;
        // Those above come before those below them.
        rows.sort_by_key(|row| row.depth);
        for row in rows.iter().filter(|row| row.id != task) {
            let is_below = |one: &FollowedJournal| Some(one.task()) == row.parent_id;
            if feed.journals.iter().any(is_below) {
                feed.journals.push(FollowedJournal::new(row.id, row.last_seq));
            }
        }
        Ok(feed)
    }

    /// Events of a task after its event `seq`, one page of them, with what is damaged named in its place; none at the
    /// end. It is for people who look: what continues a task is refused a damaged journal.
    pub fn readable(self, task: TaskId, seq: u64) -> Result<Vec<JournalEntry>, Error> {
        Ok(self.coordinator.store.journal().readable(task, seq, PAGE)?)
    }

    /// Up to `limit` events after the cursor `pos`, oldest first; fewer mean that there are no more. One that is damaged
    /// is left out: `doctor` names it.
    pub fn after(self, scope: Scope, pos: i64, limit: usize) -> Result<Vec<Record>, Error> {
        let (mut found, mut pos) = (Vec::new(), pos);
        while found.len() < limit {
            let (journal, left) = (self.coordinator.store.journal(), limit - found.len());
            let records = up_to_damage(pos, |pos| journal.since_in(scope, pos, left))?;
            let Some(last) = records.last() else { break };
            pos = last.pos;
            found.extend(records);
        }
        Ok(found)
    }

    /// The cursor of the newest event.
    pub fn end(self) -> Result<i64, Error> {
        Ok(self.coordinator.store.journal().end()?)
    }

    /// Every event of every task that is committed from now on. A process needs one of these, whoever listens to it.
    pub fn tail(self) -> Result<Tail, Error> {
        let changes = self.coordinator.store.changes();
        let (coordinator, pos) = (self.coordinator.clone(), self.end()?);
        Ok(Tail { coordinator, pos, streams: StreamCursors::default(), changes })
    }

    /// While it is kept, other processes' commits are noticed within some milliseconds. It costs wake-ups.
    pub fn fast_poll(self) -> FastPollGuard {
        FastPollGuard { _changes: self.coordinator.store.changes().with_fast_poll() }
    }

    /// Previews of the tasks that this process drives. Whoever is too slow misses some.
    pub fn previews(self) -> broadcast::Receiver<Preview> {
        self.coordinator.previews.subscribe()
    }
}

/// The next events after a cursor. They may end early, before an event that is damaged; none are returned only where
/// there are no more.
fn up_to_damage(
    mut pos: i64,
    mut read: impl FnMut(i64) -> Result<Vec<Record>, windlass_store::Error>,
) -> Result<Vec<Record>, Error> {
    loop {
        match read(pos) {
            Err(windlass_store::Error::DamagedEvent { pos: damaged, .. }) if damaged > pos => {
                pos = damaged;
            }
            found => return Ok(found?),
        }
    }
}

/// While it is held, commits of other processes are noticed sooner.
pub struct FastPollGuard {
    _changes: Changes,
}

/// The end of the whole journal, as it grows.
pub struct Tail {
    coordinator: Coordinator,
    pos: i64,
    streams: StreamCursors,
    changes: Changes,
}

impl Tail {
    /// The cursor of the last event that was returned.
    pub fn pos(&self) -> i64 {
        self.pos
    }

    /// Leaves out what is committed up to now.
    pub fn skip(&mut self) -> Result<(), Error> {
        self.pos = self.coordinator.feed().end()?;
        Ok(())
    }

    /// The next events, at least one; waits for them.
    pub async fn next(&mut self) -> Result<Vec<Record>, Error> {
        loop {
            self.changes.mark_seen();
            let journal = self.coordinator.store.journal();
            let records =
                up_to_damage(self.pos, |pos| journal.follow(pos, PAGE, &mut self.streams))?;
            if let Some(last) = records.last() {
                self.pos = last.pos;
                return Ok(records);
            }
            self.changes.changed().await?;
        }
    }
}

/// What happens in any task, for whoever keeps many pages up to date.
pub struct Notices {
    changes: Changes,
    previews: broadcast::Receiver<Preview>,
}

/// Why a follower reads again.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Something was committed, by this process or another.
    Committed,
    /// A task of this process has something to show before it is committed.
    Preview(Preview),
    /// Some previews were missed.
    Missed,
}

impl Feed<'_> {
    /// Notices from now on.
    pub fn notices(self) -> Notices {
        Notices {
            changes: self.coordinator.store.changes(),
            previews: self.coordinator.previews.subscribe(),
        }
    }
}

impl Notices {
    /// The next notice; waits for it. Several commits may be one notice. A commit is noticed before any preview that was
    /// made after it.
    pub async fn next(&mut self) -> Result<Notice, Error> {
        tokio::select! {
            biased;
            changed = self.changes.changed() => changed.map(|()| Notice::Committed).map_err(Error::from),
            preview = self.previews.recv() => match preview {
                Ok(preview) => Ok(Notice::Preview(preview)),
                Err(broadcast::error::RecvError::Lagged(_)) => Ok(Notice::Missed),
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            },
        }
    }
}

impl TaskFeed {
    /// Notices what other processes commit within some milliseconds, for somebody who watches.
    pub fn with_fast_poll(mut self) -> Self {
        self.changes = self.store.changes().with_fast_poll();
        self
    }

    /// Also gets the previews of the process that drives the task, if it is another one.
    pub fn watch_process(&mut self, process: Option<u32>) {
        let root = self.store.dir().root().to_owned();
        let other = process.filter(|process| *process != std::process::id());
        // The one before goes first: both would have the same name.
        self.elsewhere = None;
        self.elsewhere = other.and_then(|process| match Watcher::open(&root, process) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                tracing::warn!(%error, "what is printed meanwhile cannot be watched");
                None
            }
        });
    }

    /// The next thing to show; waits for it, also when the task has ended. A caller that wants to stop then asks
    /// `Tasks::has_ended` after each update and takes the rest by [`TaskFeed::next_committed`].
    pub async fn next(&mut self) -> Result<Update, Error> {
        loop {
            self.changes.mark_seen();
            if let Some(record) = self.next_committed()? {
                return Ok(Update::Event(Box::new(record)));
            }
            if let Some(preview) = self.next_preview.take().filter(|one| self.follows(one.task)) {
                return Ok(Update::Preview(preview));
            }
            tokio::select! {
                changed = self.changes.changed() => changed?,
                preview = self.previews.recv() => match preview {
                    Ok(preview) if self.follows(preview.task) => {
                        return Ok(Update::Preview(preview));
                    }
                    // Another task's, or too many at once: previews are not promises.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
                preview = next_remote_preview(self.elsewhere.as_ref()) => match preview {
                    // It may be quicker than the notice of a commit: the request comes before its reply.
                    Ok(preview) => self.next_preview = Some(preview),
                    Err(_) => self.elsewhere = None,
                },
            }
        }
    }

    fn follows(&self, task: TaskId) -> bool {
        task == self.task || self.journals.iter().any(|journal| journal.task() == task)
    }

    /// The next event that is committed already, without waiting.
    pub fn next_committed(&mut self) -> Result<Option<Record>, Error> {
        if self.ready.is_empty() {
            self.read()?;
        }
        let next = self.ready.pop_front();
        if let Some(record) = &next {
            self.advance(record);
        }
        Ok(next)
    }

    /// Reads parents before children, and returns the events of children first: what a sub-agent wrote before its end is
    /// there when the event about its end is read.
    fn read(&mut self) -> Result<(), Error> {
        let (mut pages, mut places) = (Vec::new(), Vec::new());
        for journal in &self.journals {
            let mut place = journal.place.clone();
            pages.push(self.store.journal().read_on(&mut place, PAGE)?);
            places.push(place);
        }
        // Only when all could be read: what was read is shown.
        for (journal, place) in self.journals.iter_mut().zip(places) {
            journal.place = place;
        }
        let mut empty = pages.iter().map(Vec::is_empty);
        self.journals.retain(|journal| !(empty.next().unwrap_or(false) && journal.ended));
        self.ready.extend(pages.into_iter().rev().flatten());
        Ok(())
    }

    fn advance(&mut self, record: &Record) {
        match &record.event {
            Event::SubAgentSpawn(spawn) if self.includes_sub_agents => {
                self.journals.push(FollowedJournal::new(spawn.task_id, 0));
            }
            Event::WorkflowStepStarted(step) if self.includes_sub_agents => {
                // A step that continues is followed already.
                let task = step.task.filter(|task| !self.follows(*task));
                self.journals.extend(task.map(|task| FollowedJournal::new(task, 0)));
            }
            Event::SubAgentComplete(complete) => {
                let journals =
                    self.journals.iter_mut().filter(|one| one.task() == complete.task_id);
                journals.for_each(|journal| journal.ended = true);
            }
            _ => {}
        }
    }
}

async fn next_remote_preview(watcher: Option<&Watcher>) -> std::io::Result<Preview> {
    match watcher {
        Some(watcher) => watcher.next().await,
        None => std::future::pending().await,
    }
}
