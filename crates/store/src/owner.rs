//! Ownership: one process drives a root task and its children, and only it appends to their streams.
//!
//! Invariants:
//! - An owner holds the tree's kernel lock and has raised the root's epoch; every append checks the
//!   epoch in its own transaction, so that an owner that missed a takeover cannot write (§15.3).
//! - One `Stream` per task at a time, and it is not `Clone`: the single-writer rule is a type.
//! - The lock is held until the owner and all its streams are dropped.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};
use windlass_core::command::ResultStatus;
use windlass_core::event::{Event, Record, TaskCreated};
use windlass_core::id::TaskId;
use windlass_core::status::{StatusReason, TaskStatus};

use crate::create::{self, Creation};
use crate::error::Fault;
use crate::journal::{self, Tail};
use crate::lock::{Lock, LockFailure};
use crate::{
    Error, Level, Store, mailbox, outbox, projections, ready_index, row, runtime, session_stream,
    tasks,
};

/// The right to drive a task and its children.
pub struct Owner {
    lease: Arc<Lease>,
}

/// The right to append to one task's stream.
pub struct Stream {
    task: TaskId,
    lease: Arc<Lease>,
}

struct Lease {
    store: Store,
    root: TaskId,
    epoch: u64,
    in_use: Mutex<HashSet<TaskId>>,
    _lock: Lock,
}

/// Who drives which task, and which jobs one process does for all.
#[derive(Clone, Copy)]
pub struct Owners<'a> {
    pub(crate) store: &'a Store,
}

impl Owners<'_> {
    /// Takes ownership of the tree that `task` belongs to, or says which process has it.
    pub async fn own(self, task: TaskId) -> Result<Owner, Error> {
        let root = self.store.tasks().root_of(task)?;
        let path = self.store.dir().lock_of(root);
        let lock = Lock::take(&path).map_err(|refused| match refused {
            LockFailure::Held(pid) => Error::Driven { task: root, pid },
            LockFailure::Failed(source) => Error::file(&path, source),
        })?;
        Owner::raise(self.store, root, lock).await
    }

    /// Takes ownership although another process holds the lock: a process that hangs, is stopped or
    /// runs on a host that does not answer. Its next append fails with [`Error::Superseded`]. Effects that it has
    /// started continue; end the process as well.
    pub async fn take_over(self, task: TaskId) -> Result<Owner, Error> {
        let root = self.store.tasks().root_of(task)?;
        let path = self.store.dir().lock_of(root);
        let lock = Lock::replace(&path).map_err(|source| Error::file(&path, source))?;
        Owner::raise(self.store, root, lock).await
    }

    /// The same for an owner of this epoch that has sent no heartbeat for a whole lease. Fails when another
    /// process was quicker.
    pub async fn take_over_from(self, task: TaskId, epoch: u64) -> Result<Owner, Error> {
        let root = self.store.tasks().root_of(task)?;
        let path = self.store.dir().lock_of(root);
        // The epoch is raised first: only one of several processes succeeds, and only that one replaces the lock.
        let epoch = self
            .store
            .write(Level::Written, move |tx| {
                let raised = tx
                    .prepare_cached(
                        "UPDATE tasks SET epoch = epoch + 1 WHERE id = ?1 AND epoch = ?2
                         RETURNING epoch",
                    )?
                    .query_row((root.to_string(), epoch as i64), |row| row.get::<_, i64>(0))
                    .optional()?;
                match raised {
                    Some(epoch) => Ok(epoch.unsigned_abs()),
                    None => Err(Error::Superseded { task: root }.into()),
                }
            })
            .await?;
        let lock = Lock::replace(&path).map_err(|source| Error::file(&path, source))?;
        Ok(Owner::of(self.store, root, epoch, lock))
    }

    /// The process that drives the tree `task` belongs to, if one does.
    pub fn driving_process(self, task: TaskId) -> Result<Option<u32>, Error> {
        let path = self.store.dir().lock_of(self.store.tasks().root_of(task)?);
        Lock::holder(&path).map_err(|source| Error::file(&path, source))
    }
}

/// A job that one process of a data directory does at a time, for as long as it holds this value.
pub struct Singleton {
    _lock: Lock,
}

impl Owners<'_> {
    /// Claims the job of this name, unless another process has it.
    pub fn claim_singleton(self, name: &'static str) -> Result<Option<Singleton>, Error> {
        let path = self.store.dir().locks().join(format!("{name}.duty"));
        match Lock::take(&path) {
            Ok(lock) => Ok(Some(Singleton { _lock: lock })),
            Err(LockFailure::Held(_)) => Ok(None),
            Err(LockFailure::Failed(source)) => Err(Error::file(&path, source)),
        }
    }
}

impl Owner {
    async fn raise(store: &Store, root: TaskId, lock: Lock) -> Result<Self, Error> {
        // Written is enough: a power loss that takes the number back has ended every earlier owner, and
        // whatever is synced later is synced together with the number.
        let epoch = store
            // A task on a full disk needs an owner to be ended or parked.
            .write_urgently(Level::Written, move |tx| {
                let epoch: i64 = tx
                    .prepare_cached(
                        "UPDATE tasks SET epoch = epoch + 1 WHERE id = ?1 RETURNING epoch",
                    )?
                    .query_row([root.to_string()], |row| row.get(0))?;
                Ok(epoch.unsigned_abs())
            })
            .await?;
        Ok(Self::of(store, root, epoch, lock))
    }

    fn of(store: &Store, root: TaskId, epoch: u64, lock: Lock) -> Self {
        let in_use = Mutex::default();
        let lease = Lease { store: store.clone(), root, epoch, in_use, _lock: lock };
        Self { lease: Arc::new(lease) }
    }

    /// The root of the tree.
    pub fn root(&self) -> TaskId {
        self.lease.root
    }

    /// How many owners the tree has had.
    pub fn epoch(&self) -> u64 {
        self.lease.epoch
    }

    /// The stream of a task of the tree; refused while another one for it exists.
    pub fn stream(&self, task: TaskId) -> Result<Stream, Error> {
        let root = self.lease.store.tasks().root_of(task)?;
        if root != self.lease.root {
            return Err(Error::WrongTree { task, root: self.lease.root });
        }
        let mut in_use = self.lease.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if !in_use.insert(task) {
            return Err(Error::StreamInUse(task));
        }
        drop(in_use);
        Ok(Stream { task, lease: self.lease.clone() })
    }

    /// Appends to the root's stream.
    pub async fn append(
        &self,
        at: Timestamp,
        events: Vec<Event>,
        level: Level,
    ) -> Result<Vec<Record>, Error> {
        self.append_to(self.lease.root, at, events, level).await
    }

    /// Appends to the stream of a task of the tree.
    pub async fn append_to(
        &self,
        task: TaskId,
        at: Timestamp,
        events: Vec<Event>,
        level: Level,
    ) -> Result<Vec<Record>, Error> {
        let events = events.into_iter().map(|event| (at, event)).collect();
        self.lease.append(task, events, level).await
    }

    /// Creates a child in the tree, synced; a repeated `command_id` creates nothing.
    pub async fn create_child(
        &self,
        at: Timestamp,
        created: TaskCreated,
    ) -> Result<Creation, Error> {
        let Lease { root, epoch, .. } = *self.lease;
        if created.root != root || created.parent.is_none() {
            return Err(Error::WrongTree { task: created.command.task_id, root });
        }
        self.lease
            .store
            .write(Level::Synced, move |tx| {
                check_epoch(tx, root, epoch)?;
                create::create(tx, at, created)
            })
            .await
    }
}

impl Stream {
    /// The task whose stream this is.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The root of its tree.
    pub fn root(&self) -> TaskId {
        self.lease.root
    }

    /// Appends events, all or none, and returns them as the journal has them.
    pub async fn append(
        &mut self,
        at: Timestamp,
        events: Vec<Event>,
        level: Level,
    ) -> Result<Vec<Record>, Error> {
        self.append_dated(events.into_iter().map(|event| (at, event)).collect(), level).await
    }

    /// Appends events that happened at different times, all or none.
    pub async fn append_dated(
        &mut self,
        events: Vec<(Timestamp, Event)>,
        level: Level,
    ) -> Result<Vec<Record>, Error> {
        self.lease.append(self.task, events, level).await
    }

    /// Takes everything that waits in the task's mailbox into the journal, in order and in one
    /// transaction. When nothing waits it costs one read of an index, and no transaction.
    pub async fn drain(&mut self, at: Timestamp) -> Result<Vec<Record>, Error> {
        let Lease { store, root, epoch, .. } = &*self.lease;
        let (task, root, epoch) = (self.task, *root, *epoch);
        if !store.mailbox().has_mail(task)? {
            return Ok(Vec::new());
        }
        store
            .write(Level::Written, move |tx| {
                check_epoch(tx, root, epoch)?;
                mailbox::drain(tx, task, at)
            })
            .await
    }

    /// Everything in the task's journal.
    pub fn journal(&self) -> Result<Vec<Record>, Error> {
        self.lease.store.journal().of(self.task)
    }

    /// The store it belongs to.
    pub fn store(&self) -> &Store {
        &self.lease.store
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({}, epoch {})", self.lease.root, self.lease.epoch)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.task)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.lease.in_use.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.task);
    }
}

impl Lease {
    async fn append(
        &self,
        task: TaskId,
        events: Vec<(Timestamp, Event)>,
        level: Level,
    ) -> Result<Vec<Record>, Error> {
        let (root, epoch) = (self.root, self.epoch);
        let finished = &self.store.inner.finished_outputs;
        let outputs = Arc::new(finished.take(task));
        let carried = Arc::clone(&outputs);
        let is_urgent = events.iter().any(|(_, event)| ends_segment(event));
        let work = move |tx: &Connection| {
            check_epoch(tx, root, epoch)?;
            let mut head = StreamHead::of(tx, task, root)?;
            let mut records = Vec::with_capacity(events.len());
            for (at, event) in events {
                records.push(head.append(tx, task, at, event)?);
            }
            if let Some(last) = records.last() {
                projections::update_tail(tx, last, head.tail())?;
            }
            session_stream::follow(tx, &records)?;
            ready_index::follow(tx, root, task, head.status, &records)?;
            outbox::enqueue_for(tx, task, &records)?;
            carried.iter().try_for_each(|output| output.insert(tx))?;
            Ok(records)
        };
        let written = match is_urgent {
            true => self.store.write_urgently(level, work).await,
            false => self.store.write(level, work).await,
        };
        if written.is_err() {
            // The next append takes them along.
            finished.put_back(task, &outputs);
        }
        written
    }
}

/// Whether an event ends or parks a task, for which there must be room on a full disk.
fn ends_segment(event: &Event) -> bool {
    match event {
        Event::StatusChanged(moved) => !moved.to.is_running(),
        Event::AgentEnd(_) => true,
        _ => false,
    }
}

fn check_epoch(tx: &Connection, root: TaskId, epoch: u64) -> Result<(), Fault> {
    let now: i64 = tx
        .prepare_cached("SELECT epoch FROM tasks WHERE id = ?1")?
        .query_row([root.to_string()], |row| row.get(0))?;
    match now.unsigned_abs() == epoch {
        true => Ok(()),
        false => Err(Error::Superseded { task: root }.into()),
    }
}

/// What appending needs to know about a task: where its stream ends, and its status.
pub(crate) struct StreamHead {
    tail: Tail,
    status: TaskStatus,
}

impl StreamHead {
    fn of(tx: &Connection, task: TaskId, root: TaskId) -> Result<Self, Fault> {
        let head = Self::read(tx, task)?;
        match head {
            Some((head, of)) if of == root => Ok(head),
            Some(_) => Err(Error::WrongTree { task, root }.into()),
            None => Err(Error::UnknownTask(task.to_string()).into()),
        }
    }

    /// The head of `task`'s stream and the root of its tree; `None` when there is no such task.
    pub(crate) fn read(tx: &Connection, task: TaskId) -> Result<Option<(Self, TaskId)>, Fault> {
        let mut statement = tx.prepare_cached(
            "SELECT last_seq, turns, status, root_id, last_hash FROM tasks WHERE id = ?1",
        )?;
        let mut rows = statement.query([task.to_string()])?;
        let Some(found) = rows.next()? else { return Ok(None) };
        let seq = found.get::<_, i64>(0)?.unsigned_abs();
        let tail = Tail { seq, replies: found.get(1)?, hash: found.get(4)? };
        let status = row::parse("tasks", &found.get::<_, String>(2)?)?;
        let root = row::parse("tasks", &found.get::<_, String>(3)?)?;
        Ok(Some((Self { tail, status }, root)))
    }

    /// Where the stream ends now.
    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Appends one event, unless the lifecycle forbids it.
    pub(crate) fn append(
        &mut self,
        tx: &Connection,
        task: TaskId,
        at: Timestamp,
        mut event: Event,
    ) -> Result<Record, Fault> {
        match &mut event {
            Event::TaskCreated(_) => return Err(Error::DuplicateCreation(task).into()),
            Event::StatusChanged(moved) => {
                self.status
                    .check_move(moved.to)
                    .map_err(|source| Error::IllegalMove { task, source })?;
                self.status = moved.to;
                if moved.axes.is_none() {
                    moved.axes = tasks::axes_of(tx, task)?.map(|now| now.axes);
                }
                // The agent reads what was accepted until now; what comes later is refused.
                let finished =
                    moved.to == TaskStatus::Done && moved.reason == StatusReason::Finished;
                if finished && mailbox::has_news(tx, task)? {
                    return Err(Error::MailPending(task).into());
                }
                if moved.to.is_terminal() {
                    runtime::clear(tx, task)?;
                }
            }
            // Nobody would wake the task after this segment, so this segment reads the answer.
            Event::AgentEnd(result)
                if result.status == ResultStatus::BlockedUser && mailbox::has_answer(tx, task)? =>
            {
                return Err(Error::MailPending(task).into());
            }
            _ => {}
        }
        journal::append(tx, task, at, event, &mut self.tail)
    }
}
