//! One task's journal as its agent holds it: commit first, then act.
//!
//! Invariants:
//! - One writer: a `Journal` is not `Clone` and is moved to the agent that drives the task.
//! - State and context change by events alone, in the order and at the times they are committed with, so
//!   recovery is the same code as running.
//! - No event holds a key of ours; it is taken out before the event is applied, so no request holds one either.
//! - A buffered event is committed with the next one, in one transaction. A crash in between is a crash
//!   before the event. Whatever acts outside (asks a model, starts a call, waits) needs a [`Flushed`], and
//!   that exists only while nothing is buffered.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use windlass_core::event::{Event, Record, StatusChanged};
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_model::{Model, Transcript};
use windlass_store::{Changes, Level, Store, Stream};

use crate::Error;
use crate::clock::Clock;
use crate::context::Context;
use crate::conversation::picture_source;
use crate::history::History;
use crate::log;
use crate::trace::Trace;

/// Surfaces are notified when the context's usage changes by this many percent; each notice is a write.
const USAGE_STEP_PERCENT: f64 = 5.0;

/// A task's journal, its state and its context.
pub struct Journal {
    stream: Stream,
    state: TaskState,
    context: Context,
    trace: Trace,
    clock: Arc<dyn Clock>,
    /// The running time at which the segment began.
    began: Duration,
    /// Reports mail that came after the mailbox was last read.
    mail: Changes,
    /// Applied to state and context, and not yet committed.
    buffered: Vec<(Timestamp, Event)>,
    /// The newest event that is committed.
    last_seq: u64,
    /// The usage that surfaces were last notified of, in steps.
    shown_usage: Option<u64>,
}

/// Tells the active time of an attempt, while its journal is elsewhere.
pub struct Stopwatch {
    clock: Arc<dyn Clock>,
    began: Duration,
    before: Duration,
}

impl Stopwatch {
    pub fn attempt_time(&self) -> Duration {
        self.before + self.clock.running_time().saturating_sub(self.began)
    }
}

/// Proof that every event applied so far is committed. It borrows the journal, so nothing can be buffered
/// while it lives.
pub struct Flushed<'a> {
    journal: &'a Journal,
}

impl Flushed<'_> {
    /// What is sent to the model; `None` before the first `agent_start`.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.journal.context.transcript()
    }
}

impl Deref for Flushed<'_> {
    type Target = Journal;

    fn deref(&self) -> &Journal {
        self.journal
    }
}

impl Journal {
    /// Opens a journal that was read. The context is folded here and not before: it needs the model, and
    /// the model is chosen by the state.
    pub fn open(
        stream: Stream,
        history: History,
        model: Arc<dyn Model>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let mut context = Context::new(model, picture_source(stream.store()));
        history.replay(|event, state| context.apply(event, state))?;
        let (records, state) = history.into_parts();
        let last_seq = records.last().map_or(0, |record| record.seq);
        let traces = stream.store().dir().traces().join(stream.root().to_string());
        let trace = Trace::catch_up(&traces.join(format!("{}.jsonl", stream.task())), &records)?;
        let (buffered, mail) = (Vec::new(), stream.store().mailbox().changes());
        let began = clock.running_time();
        Ok(Self {
            stream,
            state,
            context,
            trace,
            clock,
            began,
            mail,
            buffered,
            last_seq,
            shown_usage: None,
        })
    }

    /// What is known of the task.
    pub fn state(&self) -> &TaskState {
        &self.state
    }

    /// The context that the model sees, as turns.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// How large the conversation is, by the best estimate.
    pub fn estimated_tokens(&self) -> u64 {
        self.context.size().tokens()
    }

    /// Has another model read the context from now on.
    pub(crate) fn set_model(&mut self, model: Arc<dyn Model>) {
        self.context.set_model(model, &self.state);
    }

    /// The task's id.
    pub fn task(&self) -> TaskId {
        self.state.id()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The newest event that is committed.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Active time of this attempt so far.
    pub fn attempt_time(&self) -> Duration {
        Duration::from_millis(self.state.work().attempt_ms(self.active_ms()))
    }

    /// Active time so far: what earlier segments took, and how long this one has been worked on.
    pub fn active_ms(&self) -> u64 {
        self.state.work().active_ms_with(self.segment_ms())
    }

    /// How long the running segment has been worked on.
    fn segment_ms(&self) -> u64 {
        u64::try_from(self.segment_time().as_millis()).unwrap_or(u64::MAX)
    }

    fn segment_time(&self) -> Duration {
        self.clock.running_time().saturating_sub(self.began)
    }

    /// Tells active time without holding the journal.
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch {
            clock: self.clock.clone(),
            began: self.began,
            before: self.attempt_time().saturating_sub(self.segment_time()),
        }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        self.stream.store()
    }

    /// A listener for mail that comes after the mailbox was last read.
    pub fn mail(&self) -> Changes {
        self.mail.clone()
    }

    /// Applies events that are committed together with the next ones.
    pub fn buffer(&mut self, events: Vec<Event>) -> Result<(), Error> {
        let (now, secrets) = (self.now(), self.store().secrets().known());
        for event in events {
            let mut event = secrets.redact_event(event);
            event.set_segment_ms(self.segment_ms());
            self.apply(now, &event)?;
            self.buffered.push((now, event));
        }
        Ok(())
    }

    /// Commits what was buffered.
    pub async fn flush(&mut self) -> Result<Flushed<'_>, Error> {
        self.commit(Vec::new(), Level::Written).await
    }

    /// Commits what was buffered, which is applied already, and these events, then applies them.
    pub async fn commit(&mut self, events: Vec<Event>, level: Level) -> Result<Flushed<'_>, Error> {
        let (now, applied) = (self.now(), self.buffered.len());
        if events.iter().any(|event| matches!(event, Event::AgentStart(_))) {
            self.began = self.clock.running_time();
        }
        let (segment_ms, secrets) = (self.segment_ms(), self.store().secrets().known());
        let mut all = std::mem::take(&mut self.buffered);
        all.extend(events.into_iter().map(|event| {
            let mut event = secrets.redact_event(event);
            event.set_segment_ms(segment_ms);
            (now, event)
        }));
        if !all.is_empty() {
            let records = self.stream.append_dated(all, level).await?;
            self.on_commit(&records, applied)?;
        }
        Ok(Flushed { journal: self })
    }

    /// Moves what waits in the mailbox into the journal; cheap when nothing does.
    pub async fn drain(&mut self) -> Result<(), Error> {
        // Marked before the mailbox is read: mail that comes later is a new notice.
        self.mail.mark_seen();
        if !self.store().mailbox().has_mail(self.task())? {
            return Ok(());
        }
        self.flush().await?;
        let records = self.stream.drain(self.now()).await?;
        self.on_commit(&records, 0)
    }

    /// Notifies surfaces of the context's usage, when it has changed enough to be seen.
    pub async fn show_usage(&mut self, percent: f64) -> Result<(), Error> {
        let step = (percent / USAGE_STEP_PERCENT) as u64;
        if self.shown_usage.replace(step) != Some(step) {
            self.store().owners().runtime().set_context_usage(self.task(), percent).await?;
        }
        Ok(())
    }

    /// The event that changes the status, or `None` when the task has that status already.
    pub fn status_change(&self, to: TaskStatus, reason: StatusReason) -> Option<StatusChanged> {
        let from = self.state.status;
        (from != to).then(|| StatusChanged::new(from, to, reason))
    }

    /// Applies, logs and traces committed records; the first `applied` of them were applied before.
    fn on_commit(&mut self, records: &[Record], applied: usize) -> Result<(), Error> {
        if let Some(last) = records.last() {
            self.last_seq = last.seq;
        }
        for (place, record) in records.iter().enumerate() {
            if place >= applied {
                self.apply(record.at, &record.event)?;
            }
            log::line(record.task, &record.event, &self.state);
        }
        Ok(self.trace.append(records)?)
    }

    fn apply(&mut self, at: Timestamp, event: &Event) -> Result<(), Error> {
        let task = self.state.id();
        self.state.apply(at, event).map_err(|source| Error::Corrupt { task, source })?;
        self.context.apply(event, &self.state);
        Ok(())
    }
}
