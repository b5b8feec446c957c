//! Messages to tasks from any process. Each is durable when acknowledged.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::event::{Driver, WorkflowPart};
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Injection, InjectionType};
use windlass_core::picture::Picture;
use windlass_core::status::TaskStatus;
use windlass_store::{Acceptance, Filter};

use crate::{Coordinator, Error};

/// How long a process that drives a task may take to read a message, or to leave.
const DRIVER_PATIENCE: Duration = Duration::from_secs(1);

/// How long a process that waits for an answer may take to resume a task that nobody drives.
const RESUME_PATIENCE: Duration = Duration::from_millis(200);

/// The time between two looks at whether they have.
const POLL: Duration = Duration::from_millis(20);

/// Messages to tasks.
#[derive(Clone, Copy)]
pub struct Messages<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// Who will read a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageReader {
    /// A process drives the task, or has read the message, or nobody needs to: the task has ended.
    NothingToDo,
    /// A service will.
    ByService,
    /// Nobody, until a person resumes the task.
    AfterResume,
}

impl Messages<'_> {
    /// Tells a task something.
    pub async fn send(self, task: TaskId, text: &str, by: &str) -> Result<Acceptance, Error> {
        self.send_with_pictures(task, text, Vec::new(), by).await
    }

    /// Tells a task something and shows it pictures, which are kept already.
    pub async fn send_with_pictures(
        self,
        task: TaskId,
        text: &str,
        pictures: Vec<Picture>,
        by: &str,
    ) -> Result<Acceptance, Error> {
        let id = InjectionId::new(self.coordinator.now());
        self.inject(task, Injection::message(id, text).with_pictures(pictures).from(by)).await
    }

    /// Reports an event to a task.
    pub async fn event(self, task: TaskId, payload: &str, by: &str) -> Result<Acceptance, Error> {
        let id = InjectionId::new(self.coordinator.now());
        self.inject(task, Injection::event(id, payload).from(by)).await
    }

    /// Puts a message into a task's mailbox.
    pub async fn inject(self, task: TaskId, injection: Injection) -> Result<Acceptance, Error> {
        let is_talk = match injection.injection_type {
            InjectionType::UserMessage | InjectionType::ExternalEvent => true,
            InjectionType::HitlResponse | InjectionType::SystemControl => false,
        };
        let task = if is_talk { self.reader(task)? } else { task };
        let now = self.coordinator.now();
        Ok(self.coordinator.store.mailbox().inject(task, injection, now).await?)
    }

    /// Takes back a message that the task has not read yet; whether it was taken back.
    pub async fn withdraw(self, task: TaskId, message: InjectionId) -> Result<bool, Error> {
        let reader = self.reader(task)?;
        let now = self.coordinator.now();
        Ok(self.coordinator.store.mailbox().withdraw(reader, message, now).await?)
    }

    /// Who reads what is said to a task. Of a run of a workflow that is the agent at work; where none is, or several are,
    /// the run keeps it for its next agent.
    fn reader(self, task: TaskId) -> Result<TaskId, Error> {
        let tasks = self.coordinator.tasks();
        let root = tasks.root(task)?;
        if !matches!(self.part_of(root)?, Some(WorkflowPart::Run(_))) {
            return if root == task { Ok(task) } else { Err(Error::SubAgent { task, root }) };
        }
        let below = Filter { parent: Some(root), live: true, ..Filter::default() };
        let mut agents = Vec::new();
        for row in tasks.rows(&below)? {
            if matches!(self.part_of(row.id)?, Some(WorkflowPart::Agent { .. })) {
                agents.push(row.id);
            }
        }
        match agents.as_slice() {
            _ if agents.contains(&task) => Ok(task),
            [agent] if root == task => Ok(*agent),
            _ if root == task => Ok(root),
            _ => Err(Error::SubAgent { task, root }),
        }
    }

    fn part_of(self, task: TaskId) -> Result<Option<WorkflowPart>, Error> {
        let created = self.coordinator.store.journal().created(task)?;
        Ok(created.and_then(|created| created.workflow).map(|part| *part))
    }

    /// The same, while nobody else handles something for the task's session.
    pub(crate) async fn inject_in_turn(
        self,
        task: TaskId,
        injection: Injection,
    ) -> Result<Acceptance, Error> {
        let session = self.coordinator.tasks().session_of(task)?;
        let ttl = self.coordinator.limits.session_lease;
        self.coordinator.leases.hold(session, ttl, self.inject(task, injection)).await
    }

    /// Waits a moment for a task's mail to be read, and says who will read what was not.
    pub async fn wait_for_uptake(self, task: TaskId) -> Result<MessageReader, Error> {
        let (tasks, store) = (self.coordinator.tasks(), &self.coordinator.store);
        let since = Instant::now();
        loop {
            let driven = tasks.driving_process(task)?.is_some();
            let runs = tasks.get(task)?.is_some_and(|row| row.status == TaskStatus::Running);
            // A segment reads what came before its end.
            if driven && runs || !store.mailbox().has_mail(task)? {
                return Ok(MessageReader::NothingToDo);
            }
            // A process that is about to leave still drives the task, and no longer reads anything; a terminal
            // that shows the question resumes when it sees the answer.
            let patience = if driven { DRIVER_PATIENCE } else { RESUME_PATIENCE };
            if since.elapsed() > patience {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
        if tasks.driving_process(task)?.is_some() {
            return Ok(MessageReader::NothingToDo);
        }
        let row = tasks.get(task)?.filter(|row| !row.status.is_terminal());
        Ok(match row {
            None => MessageReader::NothingToDo,
            // What a person has paused, a person resumes.
            Some(row) if row.driver == Driver::Service && row.status != TaskStatus::Paused => {
                MessageReader::ByService
            }
            Some(_) => MessageReader::AfterResume,
        })
    }
}
