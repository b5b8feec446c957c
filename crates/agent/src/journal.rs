//! One task's journal as its agent holds it: commit first, then act.
//!
//! Invariants:
//! - One writer: a `Journal` is not `Clone` and is moved to the agent that drives the task.
//! - State and context change by events alone, in the order and at the times they are committed with, so
//!   recovery is the same code as running.
//! - A noted event is committed with the next one, in one transaction, before anything is asked, run,
//!   shown or waited for. A crash in between is a crash before the event.

use std::sync::Arc;

use jiff::Timestamp;
use windlass_core::event::{Event, StatusChanged};
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_model::{Model, Transcript};
use windlass_store::{Changes, Level, Store, Stream};

use crate::Error;
use crate::context::Context;
use crate::history::History;
use crate::log;
use crate::trace::Trace;

/// A change of so many percent is told to surfaces; each telling is a write.
const SHOWN_PERCENT: f64 = 5.0;

/// Where the time comes from, so that tests own it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A task's journal, its state and its context.
pub struct Journal {
    stream: Stream,
    state: TaskState,
    context: Context,
    trace: Trace,
    clock: Clock,
    /// Ticks for what came after the last look into the mailbox.
    mail: Changes,
    /// Taken in and not yet committed.
    noted: Vec<(Timestamp, Event)>,
    /// How full the context was when surfaces were last told, in steps.
    shown: Option<u64>,
}

impl Journal {
    /// Goes on with a journal that was read.
    pub fn open(
        stream: Stream,
        history: History,
        model: Arc<dyn Model>,
        clock: Clock,
    ) -> Result<Self, Error> {
        let task = stream.task();
        let (records, state) = history.into_parts();
        let mut context = Context::new(model);
        for record in &records {
            context.apply(&record.event);
        }
        let traces = stream.store().dir().traces().join(stream.root().to_string());
        let trace = Trace::catch_up(&traces.join(format!("{task}.jsonl")), &records)?;
        let (noted, mail) = (Vec::new(), stream.store().mailbox().changes());
        Ok(Self { stream, state, context, trace, clock, mail, noted, shown: None })
    }

    /// What is known of the task.
    pub fn state(&self) -> &TaskState {
        &self.state
    }

    /// What the model sees; `None` before the first `agent_start`.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.context.transcript()
    }

    /// The context that the model sees, as turns.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// How large the conversation is, by the best estimate.
    pub fn estimated_tokens(&self) -> u64 {
        self.context.estimated_tokens()
    }

    /// The task's id.
    pub fn task(&self) -> TaskId {
        self.state.id()
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        self.stream.store()
    }

    /// A listener for what comes after the last look into the mailbox.
    pub fn mail(&self) -> Changes {
        self.mail.clone()
    }

    /// Takes events in that need not be committed by themselves: something follows at once that does.
    pub fn note(&mut self, events: Vec<Event>) -> Result<(), Error> {
        let now = self.now();
        for event in events {
            self.take_in(now, &event)?;
            self.noted.push((now, event));
        }
        Ok(())
    }

    /// Commits what was noted and these events, then takes them in.
    pub async fn commit(&mut self, events: Vec<Event>, level: Level) -> Result<(), Error> {
        let (now, known) = (self.now(), self.noted.len());
        let mut all = std::mem::take(&mut self.noted);
        all.extend(events.into_iter().map(|event| (now, event)));
        if all.is_empty() {
            return Ok(());
        }
        let records = self.stream.append_dated(all, level).await?;
        for (place, record) in records.iter().enumerate() {
            if place >= known {
                self.take_in(record.at, &record.event)?;
            }
            log::line(record.task, &record.event, &self.state);
        }
        Ok(self.trace.append(&records)?)
    }

    /// Takes what waits in the mailbox into the journal; cheap when nothing does.
    pub async fn drain(&mut self) -> Result<(), Error> {
        // Marked before the mailbox is read: mail that comes later is a new notice.
        self.mail.mark_seen();
        if !self.store().mailbox().has_mail(self.task())? {
            return Ok(());
        }
        self.commit(Vec::new(), Level::Written).await?;
        let records = self.stream.drain(self.now()).await?;
        for record in &records {
            self.take_in(record.at, &record.event)?;
            log::line(record.task, &record.event, &self.state);
        }
        Ok(self.trace.append(&records)?)
    }

    /// Tells surfaces how full the context is, when that has changed enough to be seen.
    pub async fn show_usage(&mut self, percent: f64) -> Result<(), Error> {
        let step = (percent / SHOWN_PERCENT) as u64;
        if self.shown.replace(step) != Some(step) {
            self.stream.store().runtime().set_context_usage(self.task(), percent).await?;
        }
        Ok(())
    }

    /// The event that moves the status, or `None` where it has it already.
    pub fn moved(&self, to: TaskStatus, reason: StatusReason) -> Option<StatusChanged> {
        let from = self.state.status;
        (from != to).then(|| StatusChanged::new(from, to, reason))
    }

    fn take_in(&mut self, at: Timestamp, event: &Event) -> Result<(), Error> {
        let task = self.state.id();
        self.state.apply(at, event).map_err(|source| Error::Corrupt { task, source })?;
        self.context.apply(event);
        Ok(())
    }
}
