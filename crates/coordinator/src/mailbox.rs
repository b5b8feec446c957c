//! Messages, answers and signals for tasks, from any process. Each is durable when acknowledged.

use std::fmt;

use windlass_core::event::Driver;
use windlass_core::id::{InjectionId, QuestionId, TaskId};
use windlass_core::injection::{Control, Injection, InjectionType};
use windlass_core::question::QuestionKind;
use windlass_core::spending::{self, STOP};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Accepted;

use crate::{Coordinator, Error};

impl Coordinator {
    /// Tells a task something.
    pub async fn send(&self, task: TaskId, text: &str, by: &str) -> Result<Accepted, Error> {
        let id = InjectionId::new(self.now());
        self.inject(task, Injection::message(id, text).from(by)).await
    }

    /// Reports an event to a task.
    pub async fn event(&self, task: TaskId, payload: &str, by: &str) -> Result<Accepted, Error> {
        let id = InjectionId::new(self.now());
        self.inject(task, Injection::event(id, payload).from(by)).await
    }

    /// Steers a task, whether or not somebody drives it; returns what became of it.
    pub async fn steer(&self, task: TaskId, control: Control, by: &str) -> Result<Steered, Error> {
        self.steer_as(InjectionId::new(self.now()), task, control, by).await
    }

    /// The same by an id of the sender's, so that a repeated delivery has no further effect.
    pub(crate) async fn steer_as(
        &self,
        id: InjectionId,
        task: TaskId,
        control: Control,
        by: &str,
    ) -> Result<Steered, Error> {
        self.inject(task, Injection::control(id, control.clone()).from(by)).await?;
        // What lets a task of the service go on waits for the worker that takes it.
        let row = self.store.tasks().get(task)?;
        if control == Control::Resume && row.is_some_and(|row| row.driver == Driver::Service) {
            return Ok(Steered::Soon(control));
        }
        match self.settle(task).await {
            Ok(status) => Ok(Steered::Now(status)),
            // Its driver will find the signal.
            Err(Error::Store(windlass_store::Error::Driven { .. })) => Ok(Steered::Soon(control)),
            Err(error) => Err(error),
        }
    }

    /// Tells a task that a person or its deadline has parked that it goes on (ES-075), before somebody
    /// drives it. One that stands still for another reason goes on as if nothing had been.
    pub async fn unpark(&self, task: TaskId, by: &str) -> Result<(), Error> {
        let task = self.root(task)?;
        let parked = self.store.tasks().get(task)?.is_some_and(|row| {
            let by_word = matches!(row.reason, StatusReason::User | StatusReason::Deadline);
            row.status == TaskStatus::Paused && by_word
        });
        let waiting = self.store.mailbox().pending(task)?;
        let told = waiting.iter().any(|one| one.control == Some(Control::Resume));
        if parked && !told && self.store.driving_process(task)?.is_none() {
            let id = InjectionId::new(self.now());
            self.inject(task, Injection::control(id, Control::Resume).from(by)).await?;
        }
        Ok(())
    }

    /// Answers a question, once; returns the task that waits for it.
    pub async fn answer(
        &self,
        question: QuestionId,
        text: &str,
        by: &str,
    ) -> Result<TaskId, Error> {
        self.answer_as(InjectionId::new(self.now()), question, text, by).await
    }

    /// The same by an id of the sender's, so that a repeated delivery has no further effect.
    pub(crate) async fn answer_as(
        &self,
        id: InjectionId,
        question: QuestionId,
        text: &str,
        by: &str,
    ) -> Result<TaskId, Error> {
        let row =
            self.store.questions().get(question)?.ok_or(Error::QuestionClosed { question })?;
        let fits = match row.question.kind {
            QuestionKind::Permission => row.question.permission(text).is_some(),
            QuestionKind::Budget => {
                text.trim().eq_ignore_ascii_case(STOP) || spending::raise(text).is_some()
            }
            QuestionKind::AskUser | QuestionKind::Plan | QuestionKind::Runner => true,
        };
        if !fits {
            let (given, options) = (text.to_owned(), row.question.options);
            return Err(Error::NotAnOption { question, given, options });
        }
        self.inject(row.task, Injection::answer(id, question, text).from(by)).await?;
        Ok(row.task)
    }

    /// Puts a message into a task's mailbox.
    pub async fn inject(&self, task: TaskId, injection: Injection) -> Result<Accepted, Error> {
        let talk = match injection.injection_type {
            InjectionType::UserMessage | InjectionType::ExternalEvent => true,
            InjectionType::HitlResponse | InjectionType::SystemControl => false,
        };
        let root = self.root(task)?;
        if talk && root != task {
            return Err(Error::SubAgent { task, root });
        }
        Ok(self.store.mailbox().inject(task, injection, self.now()).await?)
    }
}

/// What became of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steered {
    /// Nobody drives the task, so it was carried out here.
    Now(TaskStatus),
    /// Whoever drives the task will carry it out.
    Soon(Control),
}

impl fmt::Display for Steered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(status) => write!(f, "is {status}"),
            Self::Soon(Control::Pause) => f.write_str("will pause at its next boundary"),
            Self::Soon(Control::Cancel { .. }) => f.write_str("is being cancelled"),
            Self::Soon(Control::Resume) => f.write_str("goes on"),
            Self::Soon(Control::Revoke { .. }) => f.write_str("will ask again"),
            Self::Soon(Control::Watch { .. }) => f.write_str("will be checked on"),
            Self::Soon(Control::Unwatch { .. }) => f.write_str("will not be checked on any more"),
            Self::Soon(Control::Expire { .. }) => f.write_str("is out of time"),
        }
    }
}
