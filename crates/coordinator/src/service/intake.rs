//! Intake: entries of the bus to the coordinator's methods, one after the other for each session.
//!
//! Invariants:
//! - An entry is acknowledged when the store has what it asks for, or when it was refused and its sender
//!   notified; never before. It may come again, and has no further effect then.
//! - Entries of one session keep their order. A signal does not wait for messages that people sent before it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_core::command::{ResultStatus, TaskCommand};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_store::OutStream;

use super::{Backoff, Service, chain};
use crate::bus::{Bus, Flag, InStream, StreamEntry, Subscription};
use crate::trigger::{TaskAction, Trigger};
use crate::{BoxFuture, Coordinator, Error, ErrorClass};

/// Entries taken at once.
const AT_ONCE: usize = 64;

/// Entries in hand; beyond it the bus keeps them.
const IN_HAND: usize = 256;

/// How long one look at the bus waits. A service that stops waits for it to end.
const WAIT: Duration = Duration::from_millis(500);

type PendingRead = BoxFuture<'static, Result<Vec<StreamEntry>, crate::bus::Error>>;

pub(super) async fn run(
    service: Service,
    coordinator: Coordinator,
    bus: Arc<dyn Bus>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let (streams, consumer) = (service.streams, service.name);
    let subscription = Subscription { streams, consumer, limit: AT_ONCE };
    let intake = Arc::new(Intake { coordinator, bus, subscription, stop: stop.clone() });
    let mut queues = SessionQueues::new(intake.clone());
    let mut backoff = Backoff::new();
    let mut claimed: Option<Instant> = None;
    let mut taking: Option<PendingRead> = None;
    // A look that was begun is ended: what it took would otherwise wait to be claimed.
    while !stop.is_cancelled() || taking.is_some() {
        if taking.is_none() && queues.in_hand() < IN_HAND {
            // Half the time, so that a dead consumer's entries wait one and a half times at most.
            let claim = claimed.is_none_or(|at| at.elapsed() * 2 >= service.claim_after);
            if claim {
                claimed = Some(Instant::now());
            }
            taking = Some(intake.clone().read_pending(claim.then_some(service.claim_after)));
        }
        let idle = taking.is_none();
        let look = async {
            match &mut taking {
                Some(taking) => taking.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            taken = look => {
                taking = None;
                match taken.map_err(Error::from) {
                    Ok(entries) => {
                        backoff = Backoff::new();
                        entries.into_iter().for_each(|entry| queues.enqueue(entry));
                    }
                    Err(error) if error.is_transient() => {
                        stop.run_until_cancelled(backoff.wait("taking in", &error)).await;
                    }
                    Err(error) => return Err(error),
                }
            }
            Some(done) = queues.working.join_next_with_id() => queues.advance(done),
            () = stop.cancelled(), if idle => break,
        }
    }
    while let Some(done) = queues.working.join_next_with_id().await {
        queues.advance(done);
    }
    Ok(())
}

/// Entries in hand, one queue for each session.
struct SessionQueues {
    intake: Arc<Intake>,
    waiting: HashMap<String, VecDeque<StreamEntry>>,
    working: JoinSet<()>,
    busy: HashMap<Id, String>,
}

impl SessionQueues {
    fn new(intake: Arc<Intake>) -> Self {
        Self { intake, waiting: HashMap::new(), working: JoinSet::new(), busy: HashMap::new() }
    }

    fn in_hand(&self) -> usize {
        self.working.len() + self.waiting.values().map(VecDeque::len).sum::<usize>()
    }

    fn enqueue(&mut self, entry: StreamEntry) {
        let queue = queue_name(&entry);
        match self.waiting.get_mut(&queue) {
            Some(waiting) => waiting.push_back(entry),
            None => {
                self.waiting.insert(queue.clone(), VecDeque::new());
                self.begin(queue, entry);
            }
        }
    }

    fn begin(&mut self, queue: String, entry: StreamEntry) {
        let intake = self.intake.clone();
        let work = self.working.spawn(async move { intake.process(&entry).await });
        self.busy.insert(work.id(), queue);
    }

    fn advance(&mut self, done: Result<(Id, ()), JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(panicked) => {
                // Not acknowledged; another consumer may succeed.
                tracing::error!(%panicked, "an entry could not be processed");
                panicked.id()
            }
        };
        let Some(queue) = self.busy.remove(&id) else { return };
        match self.waiting.get_mut(&queue).and_then(VecDeque::pop_front) {
            Some(next) => self.begin(queue, next),
            None => drop(self.waiting.remove(&queue)),
        }
    }
}

/// Whom an entry is about, as far as that can be read.
fn queue_name(entry: &StreamEntry) -> String {
    let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
    let of = |field: &str| body.get(field).and_then(Value::as_str).map(str::to_owned);
    let whom = of("session_id").or(of("task_id")).or(of("request_id"));
    let whom = whom.unwrap_or_else(|| entry.id.clone());
    match entry.stream {
        InStream::TaskControl => format!("control {whom}"),
        InStream::TaskCommand
        | InStream::UserMessage
        | InStream::TaskResult
        | InStream::HitlResponse
        | InStream::Scheduled
        | InStream::ExternalEvent => whom,
    }
}

struct Intake {
    coordinator: Coordinator,
    bus: Arc<dyn Bus>,
    subscription: Subscription,
    stop: CancellationToken,
}

impl Intake {
    /// One look at the bus, after claiming what others left lying where `claim` says for how long.
    fn read_pending(self: Arc<Self>, claim: Option<Duration>) -> PendingRead {
        Box::pin(async move {
            if let Some(idle) = claim {
                let claimed = self.bus.claim(&self.subscription, idle).await?;
                if !claimed.is_empty() {
                    return Ok(claimed);
                }
            }
            Bus::take(&*self.bus, &self.subscription, WAIT).await
        })
    }

    async fn process(&self, entry: &StreamEntry) {
        let mut backoff = Backoff::new();
        while let Err(error) = self.attempt(entry).await {
            if self.stop.is_cancelled() {
                // Not acknowledged, so another claims it.
                return;
            }
            self.stop.run_until_cancelled(backoff.wait("an entry", &error)).await;
        }
    }

    /// Fails only where another attempt may help.
    async fn attempt(&self, entry: &StreamEntry) -> Result<(), Error> {
        match self.carry_out(entry).await {
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                let details = ErrorDetails::new(refusal_type(&error), chain(&error));
                self.refuse(entry, details).await?;
            }
            Ok(()) => {}
        }
        Ok(self.bus.acknowledge(entry).await?)
    }

    async fn carry_out(&self, entry: &StreamEntry) -> Result<(), Error> {
        let Some(stream) = entry.stream.trigger() else {
            let command: TaskCommand = match serde_json::from_str(&entry.body) {
                Ok(command) => command,
                Err(problem) => return self.refuse_unread(entry, &problem).await,
            };
            let options = self.coordinator.tasks().default_options();
            return self.coordinator.tasks().submit_command(command, options).await.map(drop);
        };
        let trigger = match Trigger::read(stream, &entry.body) {
            Ok(trigger) => with_own_id(trigger, entry),
            Err(problem) => return self.refuse_unread(entry, &problem).await,
        };
        let steered = match &trigger {
            Trigger::TaskControl(control) => Some((control.task_id, control.action)),
            Trigger::UserMessage(_)
            | Trigger::TaskResult(_)
            | Trigger::HitlResponse(_)
            | Trigger::Scheduled(_)
            | Trigger::ExternalEvent(_) => None,
        };
        // Removed before the task is resumed: the flag would park it again.
        if let Some((task, TaskAction::Resume | TaskAction::Retry)) = steered {
            self.bus.set_flag(task, None).await?;
        }
        self.coordinator.triggers().handle(trigger).await?;
        match steered {
            Some((task, TaskAction::Pause)) => {
                self.bus.set_flag(task, Some(Flag::Paused)).await?;
            }
            Some((task, TaskAction::Cancel)) => {
                self.bus.set_flag(task, Some(Flag::Cancelled)).await?;
            }
            Some((_, TaskAction::Resume | TaskAction::Retry | TaskAction::Steer)) | None => {}
        }
        Ok(())
    }

    async fn refuse_unread(
        &self,
        entry: &StreamEntry,
        problem: &impl ToString,
    ) -> Result<(), Error> {
        let error = ErrorDetails::new(ErrorType::InvalidCommand, problem.to_string());
        self.refuse(entry, error).await
    }

    /// Tells whoever sent it that it will never be carried out, and why.
    async fn refuse(&self, entry: &StreamEntry, error: ErrorDetails) -> Result<(), Error> {
        let problem = error.message.as_str();
        tracing::warn!(stream = %entry.stream, id = entry.id, problem, "entry refused");
        let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
        let of = |field: &str| body.get(field).cloned().unwrap_or_default();
        let key = format!("refused/{}/{}", entry.stream, entry.id);
        let (stream, body) = match entry.stream {
            InStream::TaskCommand => {
                let refusal = json!({
                    "task_id": of("task_id"),
                    "session_id": of("session_id"),
                    "command_id": of("command_id"),
                    "status": ResultStatus::Failed,
                    "deliverables": [],
                    "evidence_refs": [],
                    "usage": windlass_core::command::UsageMetrics::default(),
                    "error_details": error,
                });
                (OutStream::TaskResult, refusal)
            }
            InStream::UserMessage
            | InStream::TaskResult
            | InStream::HitlResponse
            | InStream::Scheduled
            | InStream::ExternalEvent
            | InStream::TaskControl => {
                let refusal = json!({
                    "message_id": key,
                    "session_id": of("session_id"),
                    "task_id": of("task_id"),
                    "request_id": of("request_id"),
                    "message": format!("`{}` was refused: {problem}", entry.stream),
                });
                (OutStream::UserMessage, refusal)
            }
        };
        let command = of("command_id").as_str().map(str::to_owned);
        let store = &self.coordinator.store;
        let now = self.coordinator.now();
        Ok(store.bus().outbox().enqueue(now, stream, key, command, body.to_string()).await?)
    }
}

/// The trigger with a name of its own: where its sender gave none, its place in the stream is one, so that
/// a second delivery has no further effect.
fn with_own_id(trigger: Trigger, entry: &StreamEntry) -> Trigger {
    let name = || Some(format!("{}/{}", entry.stream, entry.id));
    match trigger {
        Trigger::UserMessage(mut one) => {
            one.request_id = one.request_id.or_else(name);
            Trigger::UserMessage(one)
        }
        Trigger::Scheduled(mut one) => {
            one.request_id = one.request_id.or_else(name);
            Trigger::Scheduled(one)
        }
        Trigger::ExternalEvent(mut one) => {
            one.request_id = one.request_id.or_else(name);
            Trigger::ExternalEvent(one)
        }
        Trigger::TaskControl(mut one) => {
            one.command_id = one.command_id.or_else(name);
            Trigger::TaskControl(one)
        }
        other @ (Trigger::TaskResult(_) | Trigger::HitlResponse(_)) => other,
    }
}

/// What the sender of an entry that is refused for good receives.
fn refusal_type(error: &Error) -> ErrorType {
    match error.code().0 {
        ErrorClass::Limited => ErrorType::Overloaded,
        ErrorClass::Internal => ErrorType::Internal,
        // What is unavailable for good is not configured.
        ErrorClass::Invalid
        | ErrorClass::Unknown
        | ErrorClass::Forbidden
        | ErrorClass::Conflict
        | ErrorClass::TooLarge
        | ErrorClass::Unavailable => ErrorType::InvalidCommand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_overload_and_a_fault_of_ours_is_internal() {
        let limit = Error::TooManySessions { user: "ann".to_owned(), limit: 1 };
        assert_eq!(refusal_type(&limit), ErrorType::Overloaded);
        assert_eq!(refusal_type(&Error::TooManyWaiting { limit: 1 }), ErrorType::Overloaded);
        assert_eq!(refusal_type(&Error::Job("panic".to_owned())), ErrorType::Internal);
        assert_eq!(refusal_type(&Error::EmptyGoal), ErrorType::InvalidCommand);
    }
}
