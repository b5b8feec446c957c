//! The six triggers, one method each (ES-102). Each is handled once, however often it is delivered, and
//! leaves one log line.
//!
//! Invariants:
//! - What a trigger does is decided once, and journaled by its sender's id before it is carried out;
//!   carrying it out again has no further effect, because every id in it is derived from the sender's.
//! - Triggers of one session are handled one after the other, under its lease. Control is not: a cancel
//!   does not wait for a message that is being routed.

use serde::{Deserialize, Serialize};
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};

use crate::router::Router;
use crate::trigger::{
    ExternalEventReceived, HitlResponseReceived, ScheduledTrigger, TaskAction, TaskControlReceived,
    TaskResultReceived, Trigger, TriggerStream, UserMessageReceived,
};
use crate::{Coordinator, Delivery, Error};

/// The kind under which requests of other programs are remembered.
const REQUESTS: &str = "request";

/// What became of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TriggerOutcome {
    /// A task was made of it.
    Started {
        task: TaskId,
        /// Its place in the session's queue, from 1; `None` when it may start at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<usize>,
    },
    /// It waits in a task's mailbox.
    Injected { task: TaskId },
    /// A task was steered.
    Steered {
        task: TaskId,
        /// What becomes of it, in words.
        words: String,
    },
    /// It was answered with words, and nothing else happened.
    Said { message: String },
    /// There was nothing to do.
    Nothing { reason: String },
}

impl From<Delivery> for TriggerOutcome {
    fn from(sent: Delivery) -> Self {
        match sent {
            Delivery::Begun { task, place } => Self::Started { task, place },
            Delivery::Delivered { task } => Self::Injected { task },
        }
    }
}

/// What comes from outside.
#[derive(Clone, Copy)]
pub struct Triggers<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Triggers<'_> {
    /// Handles any trigger by its own method.
    pub async fn handle(self, trigger: Trigger) -> Result<TriggerOutcome, Error> {
        match trigger {
            Trigger::UserMessage(one) => self.user_message_received(one).await,
            Trigger::TaskResult(one) => self.task_result_received(*one).await,
            Trigger::HitlResponse(one) => self.hitl_response_received(one).await,
            Trigger::Scheduled(one) => self.scheduled_trigger(one).await,
            Trigger::ExternalEvent(one) => self.external_event_received(one).await,
            Trigger::TaskControl(one) => self.task_control_received(one).await,
        }
    }

    /// A person says something: route it (ES-052, ES-096).
    pub async fn user_message_received(
        self,
        trigger: UserMessageReceived,
    ) -> Result<TriggerOutcome, Error> {
        let session = trigger.session_id;
        let ttl = self.coordinator.limits.session_lease;
        let route = Router::of(self.coordinator).route(&trigger);
        let handled = self.coordinator.leases.hold(session, ttl, route).await;
        log(TriggerStream::UserMessageReceived, trigger.request_id.as_deref(), &handled);
        handled
    }

    /// A run segment ended: whoever waits for its place may start (ES-097).
    pub async fn task_result_received(
        self,
        trigger: TaskResultReceived,
    ) -> Result<TriggerOutcome, Error> {
        let handled = self.on_result(&trigger);
        let id = trigger.command_id.to_string();
        log(TriggerStream::TaskResultReceived, Some(&id), &handled);
        handled
    }

    /// A person answers: into the task that asked (ES-018, ES-053, ES-098).
    pub async fn hitl_response_received(
        self,
        trigger: HitlResponseReceived,
    ) -> Result<TriggerOutcome, Error> {
        let handled = self.on_answer(&trigger).await;
        let id = trigger.request_id.to_string();
        log(TriggerStream::HitlResponseReceived, Some(&id), &handled);
        handled
    }

    /// Something is due (ES-056, ES-099).
    pub async fn scheduled_trigger(
        self,
        trigger: ScheduledTrigger,
    ) -> Result<TriggerOutcome, Error> {
        let handled = self.coordinator.schedules().timer().fire(&trigger).await;
        log(TriggerStream::ScheduledTrigger, trigger.request_id.as_deref(), &handled);
        handled
    }

    /// Something happened elsewhere: into the task it is for, whatever it says (ES-017, ES-054, ES-291).
    pub async fn external_event_received(
        self,
        trigger: ExternalEventReceived,
    ) -> Result<TriggerOutcome, Error> {
        let handled = self.on_event(&trigger).await;
        log(TriggerStream::ExternalEventReceived, trigger.request_id.as_deref(), &handled);
        handled
    }

    /// A person steers a task (ES-016, ES-055, ES-101).
    pub async fn task_control_received(
        self,
        trigger: TaskControlReceived,
    ) -> Result<TriggerOutcome, Error> {
        let handled = self.on_control(&trigger).await;
        log(TriggerStream::TaskControlReceived, trigger.command_id.as_deref(), &handled);
        handled
    }

    /// What the first request by a key of its sender's was; this one, where it is the first. Kept for a week.
    pub async fn first_request(self, key: &str, request: String) -> Result<String, Error> {
        let now = self.coordinator.now();
        Ok(self.coordinator.store.triggers().decide(REQUESTS, key, request, now).await?)
    }

    /// What the first request by a key was, where there was one.
    pub fn request(self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.coordinator.store.triggers().decision(REQUESTS, key)?)
    }

    fn on_result(self, trigger: &TaskResultReceived) -> Result<TriggerOutcome, Error> {
        let task = trigger.task_id;
        let known = self.coordinator.store.tasks().get(task)?.map(|row| row.session_id);
        if known != Some(trigger.session_id) {
            return Err(windlass_store::Error::UnknownTask(task.to_string()).into());
        }
        self.coordinator.queue().wake();
        Ok(TriggerOutcome::Nothing { reason: format!("{task} is {}", trigger.status) })
    }

    async fn on_answer(self, trigger: &HitlResponseReceived) -> Result<TriggerOutcome, Error> {
        let question = trigger.request_id;
        let row = self
            .coordinator
            .store
            .questions()
            .get(question)?
            .ok_or(Error::QuestionClosed { question })?;
        if trigger.task_id.is_some_and(|task| task != row.task) {
            return Err(Error::QuestionClosed { question });
        }
        let session = self.coordinator.tasks().session_of(row.task)?;
        let by = trigger.user_id.as_deref().unwrap_or("user");
        // The same answer again is the same delivery; another one hears who was first.
        let id =
            InjectionId::derived(&question.to_string(), &format!("{by}\0{}", trigger.response));
        let ttl = self.coordinator.limits.session_lease;
        let answer = self.coordinator.inbox().answer_as(id, question, &trigger.response, by);
        let task = self.coordinator.leases.hold(session, ttl, answer).await?;
        self.coordinator.queue().wake();
        Ok(TriggerOutcome::Injected { task })
    }

    async fn on_event(self, trigger: &ExternalEventReceived) -> Result<TriggerOutcome, Error> {
        let stream = TriggerStream::ExternalEventReceived;
        let task = match (trigger.task_id, trigger.session_id) {
            (Some(task), _) => task,
            (None, Some(session)) => {
                let row = self.coordinator.store.sessions().get(session)?;
                row.and_then(|row| row.active_task_id).ok_or(Error::NothingActive { session })?
            }
            (None, None) => {
                let problem = "neither `task_id` nor `session_id` says whom it is for".to_owned();
                return Err(Error::BadTrigger { stream, problem });
            }
        };
        let id = self.injection_id(trigger.request_id.as_deref(), "event");
        let payload = match &trigger.payload {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let by = trigger.source.as_deref().unwrap_or("event");
        let injection = Injection::event(id, payload).from(by);
        self.coordinator.messages().inject_in_turn(task, injection).await?;
        self.coordinator.queue().wake();
        Ok(TriggerOutcome::Injected { task })
    }

    async fn on_control(self, trigger: &TaskControlReceived) -> Result<TriggerOutcome, Error> {
        let task = trigger.task_id;
        let by = trigger.user_id.as_deref().unwrap_or("user");
        let id = self.injection_id(trigger.command_id.as_deref(), "control");
        let control = match trigger.action {
            TaskAction::Pause => Control::Pause,
            TaskAction::Resume => Control::Resume,
            TaskAction::Cancel => Control::Cancel { reason: trigger.reason.clone() },
            TaskAction::Retry => return self.retry_once(trigger).await,
            TaskAction::Steer => {
                let Some(words) = trigger.reason.as_deref().filter(|words| !words.is_empty())
                else {
                    let stream = TriggerStream::TaskControlReceived;
                    let problem = "`steer` needs a `reason`: what to tell the task".to_owned();
                    return Err(Error::BadTrigger { stream, problem });
                };
                self.coordinator
                    .messages()
                    .inject(task, Injection::message(id, words).from(by))
                    .await?;
                self.coordinator.queue().wake();
                return Ok(TriggerOutcome::Injected { task });
            }
        };
        let handled = self.steer_once(id, task, control, by).await?;
        self.coordinator.queue().wake();
        Ok(handled)
    }

    /// Retries a task once per command: one that comes again finds that the try it asked for was made.
    async fn retry_once(self, trigger: &TaskControlReceived) -> Result<TriggerOutcome, Error> {
        let (task, stream) = (trigger.task_id, TriggerStream::TaskControlReceived.as_str());
        let retries = self.coordinator.tasks().require_row(task)?.retry_count;
        let before = match &trigger.command_id {
            Some(id) => {
                self.coordinator
                    .store
                    .triggers()
                    .decide(stream, id, retries.to_string(), self.coordinator.now())
                    .await?
            }
            None => retries.to_string(),
        };
        if before == retries.to_string() {
            self.coordinator.tasks().retry(task).await?;
            self.coordinator.queue().wake();
        }
        Ok(TriggerOutcome::Steered { task, words: "will be tried again".to_owned() })
    }

    /// Steers a task by an id of the sender's.
    pub(crate) async fn steer_once(
        self,
        id: InjectionId,
        task: TaskId,
        control: Control,
        by: &str,
    ) -> Result<TriggerOutcome, Error> {
        let words = self.coordinator.control().steer_as(id, task, control, by).await?.to_string();
        Ok(TriggerOutcome::Steered { task, words })
    }

    /// An id that a repeated delivery has again.
    pub(crate) fn injection_id(self, request: Option<&str>, what: &str) -> InjectionId {
        match request {
            Some(request) => InjectionId::derived(request, what),
            None => InjectionId::new(self.coordinator.now()),
        }
    }
}

fn log(stream: TriggerStream, id: Option<&str>, handled: &Result<TriggerOutcome, Error>) {
    match handled {
        Ok(handled) => {
            let outcome = serde_json::to_string(handled).unwrap_or_default();
            tracing::info!(trigger = %stream, id, outcome, "trigger handled");
        }
        Err(error) => tracing::info!(trigger = %stream, id, %error, "trigger refused"),
    }
}
