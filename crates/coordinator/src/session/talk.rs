//! The conversation of a session: a message continues it, and after `clear` begins another.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_core::command::{ExecutionConfig, Outage, TaskCommand};
use windlass_core::ending::Ending;
use windlass_core::event::{Continuation, Driver, TaskCreated};
use windlass_core::id::{CommandId, InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::layout::Site;
use windlass_core::picture::Picture;
use windlass_core::session::{Cleared, SessionEvent, SessionState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Filter, SessionAppend, TaskRow};

use super::{Activity, Session};
use crate::submit::Share;
use crate::workplaces::{Workplaces, usable};
use crate::{Coordinator, Error, Submission};

/// A message, and who works on it.
#[derive(Clone, Debug)]
pub struct Talk {
    pub text: String,
    /// What people read in place of the text, where that carries more than was typed.
    pub shown: Option<String>,
    /// What it shows; each is kept already, by [`crate::Pictures`].
    pub pictures: Vec<Picture>,
    pub by: String,
    /// Who drives a task that the message begins.
    pub driver: Driver,
    /// Whether another live task may work in the directory.
    pub share: Share,
    /// The sender's own id, so that a repeated delivery has no further effect.
    pub request: Option<String>,
}

impl Talk {
    /// A message from a terminal, which drives the task itself.
    pub fn here(text: impl Into<String>, by: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            shown: None,
            pictures: Vec::new(),
            by: by.into(),
            driver: Driver::Foreground,
            share: Share::Alone,
            request: None,
        }
    }

    /// A message from a surface whose tasks a service drives.
    pub fn for_service(text: impl Into<String>, by: impl Into<String>) -> Self {
        Self { driver: Driver::Service, ..Self::here(text, by) }
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Delivery {
    /// A task was made of it.
    Begun {
        task: TaskId,
        /// Its place in the session's queue, from 1; `None` when it may start at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<usize>,
    },
    /// It waits for the task of the conversation, which reads it at its next boundary.
    Delivered { task: TaskId },
}

impl Delivery {
    pub const fn task(&self) -> TaskId {
        match self {
            Self::Begun { task, .. } | Self::Delivered { task } => *task,
        }
    }
}

/// What is said in one session.
#[derive(Clone, Copy)]
pub struct Conversation<'a> {
    session: Session<'a>,
    coordinator: &'a Coordinator,
}

impl<'a> Session<'a> {
    /// What is said in it.
    pub fn conversation(self) -> Conversation<'a> {
        Conversation { session: self, coordinator: self.coordinator }
    }
}

impl Conversation<'_> {
    /// Says something. `/name` of a skill becomes its instructions; other slash commands are for
    /// [`run`](Session::run).
    pub async fn send(self, talk: Talk) -> Result<Delivery, Error> {
        if talk.text.trim().is_empty() {
            return Err(Error::EmptyGoal);
        }
        let state = self.session.state()?;
        let directory = match &state.created.workspace {
            Some(directory) => Some(directory.clone()),
            None => self.last_task(&state)?.map(|last| last.workspace),
        };
        let expanded =
            self.coordinator.agents.expand(directory.as_deref(), &state.axes, &talk.text);
        let expanded =
            expanded.map_err(|details| Error::Unusable { details: Box::new(details) })?;
        let (goal, message) = match expanded {
            Some(skill) => (skill.goal, skill.message),
            None => (talk.text.clone(), talk.text.clone()),
        };
        let (first, next) = (Talk { text: goal, ..talk.clone() }, Talk { text: message, ..talk });
        let live = self.task(&state)?;
        let sent = match live.filter(|row| !row.status.is_terminal()) {
            Some(row) => match self.deliver(&row, &next).await {
                // It ended while the message was on its way; what was said is not lost.
                Err(Error::Store(windlass_store::Error::TaskEnded { .. })) => {
                    self.begin_task(&self.session.state()?, first).await?
                }
                delivered => delivered?,
            },
            None => self.begin_task(&state, first).await?,
        };
        self.coordinator.queue().wake();
        Ok(sent)
    }

    /// Ends the conversation; the next message begins another. Files, memos and the journal stay (C-24).
    pub async fn clear(self, by: &str) -> Result<Option<TaskId>, Error> {
        let state = self.session.state()?;
        let row = self.task(&state)?;
        let live = row.filter(|row| !row.status.is_terminal());
        if let Some(task) =
            live.as_ref().filter(|_| self.session.activity().ok() == Some(Activity::Working))
        {
            return Err(Error::Working { task: task.id });
        }
        self.save_snapshot(&state).await?;
        let task = self
            .session
            .update(|state| {
                let cleared = Cleared { task: state.conversation, by: by.to_owned() };
                let events = match state.conversation {
                    Some(_) => vec![SessionEvent::Cleared(cleared)],
                    None => Vec::new(),
                };
                Ok((SessionAppend { events, mail: Vec::new() }, state.conversation))
            })
            .await?;
        if let Some(row) = live {
            self.close(&row).await?;
        }
        Ok(task)
    }

    /// With an active plan nothing is lost by a clear (PL-033).
    async fn save_snapshot(self, state: &SessionState) -> Result<(), Error> {
        let (Some(directory), Some(task)) = (&state.created.workspace, state.conversation) else {
            return Ok(());
        };
        let task = self.coordinator.tasks().state(task)?;
        let plans = self.coordinator.plans();
        plans.save_before_clear(Path::new(directory), &task).await.map(drop)
    }

    /// The task that the next message continues.
    fn task(self, state: &SessionState) -> Result<Option<TaskRow>, Error> {
        match state.conversation {
            Some(task) => self.coordinator.tasks().get(task),
            None => Ok(None),
        }
    }

    /// How the last task of its conversation was created, or the last of the session after a `clear`.
    fn last_task(self, state: &SessionState) -> Result<Option<TaskCreated>, Error> {
        let store = &self.coordinator.store;
        let session = Some(self.session.id);
        let newest = Filter { session, roots: true, limit: Some(1), ..Filter::default() };
        let last = match state.conversation {
            Some(task) => Some(task),
            None => store.tasks().list(&newest)?.first().map(|row| row.id),
        };
        Ok(last.map(|task| store.journal().created(task)).transpose()?.flatten())
    }

    async fn deliver(self, row: &TaskRow, talk: &Talk) -> Result<Delivery, Error> {
        let task = row.id;
        let id = self.coordinator.triggers().injection_id(talk.request.as_deref(), "message");
        let injection = Injection::message(id, &talk.text).from(&talk.by);
        let injection = injection.shown_as(talk.shown.clone());
        let injection = injection.with_pictures(talk.pictures.clone());
        self.coordinator.messages().inject(task, injection).await?;
        if row.status == TaskStatus::Paused && row.reason == StatusReason::User {
            // A person who writes to a task that they have paused wants it to continue.
            let id = InjectionId::derived(&id.to_string(), "resume");
            let resume = Injection::control(id, Control::Resume).from(&talk.by);
            self.coordinator.messages().inject(task, resume).await?;
        }
        Ok(Delivery::Delivered { task })
    }

    /// Makes a task of a message; it continues the ended one before it, unless the conversation was cleared.
    async fn begin_task(self, state: &SessionState, talk: Talk) -> Result<Delivery, Error> {
        let now = self.session.now();
        let (command_id, task_id) = match &talk.request {
            Some(request) => {
                (CommandId::derived(request, "command"), TaskId::derived(request, "task"))
            }
            None => (CommandId::new(now), TaskId::new(now)),
        };
        let (workspace, site) = self.place(state, &talk, task_id)?;
        let continues = match state.conversation {
            Some(before) => Some(Box::new(Continuation {
                // What was allowed is the session's.
                allow_rules: Vec::new(),
                ..self.coordinator.tasks().state(before)?.continuation()
            })),
            None => None,
        };
        let execution_config = ExecutionConfig {
            model: state.model.clone(),
            role: state.role,
            ..ExecutionConfig::default()
        };
        let command = TaskCommand {
            command_id,
            task_id,
            execution_config,
            ..TaskCommand::new(now, self.session.id, talk.text)
        };
        let created = TaskCreated {
            shown_goal: talk.shown,
            pictures: talk.pictures,
            site,
            max_retries: self.coordinator.limits.retries,
            cost_budget: state.created.cost_budget,
            user_id: Some(talk.by),
            outage: Some(Outage::Park),
            continues,
            conversation: state.created.interactive,
            session_rules: state.rules.clone(),
            ..TaskCreated::new(command, state.axes, workspace.display().to_string(), talk.driver)
        };
        match talk.driver {
            Driver::Service => {
                let Submission { task, place, .. } =
                    self.coordinator.tasks().create_for_service(created).await?;
                Ok(Delivery::Begun { task, place })
            }
            Driver::Foreground => {
                let task = self.coordinator.store.tasks().create(now, created).await?.task();
                Ok(Delivery::Begun { task, place: None })
            }
        }
    }

    fn place(
        self,
        state: &SessionState,
        talk: &Talk,
        task: TaskId,
    ) -> Result<(PathBuf, Site), Error> {
        let places = Workplaces::of(self.coordinator);
        let (directory, added) = match (&state.created.workspace, self.last_task(state)?) {
            (Some(directory), _) => (directory.clone(), state.created.added.clone()),
            // A session that has no directory works where it has worked before.
            (None, Some(last)) => (last.workspace, last.site.added),
            (None, None) => return Ok((places.make_own(task)?, Site::default())),
        };
        places.restore(Path::new(&directory))?;
        let workspace = usable(Path::new(&directory))?;
        let site = self.coordinator.agents.site(&workspace);
        let site = Site { added, ..site };
        let may_meet = talk.share == Share::Allowed || state.axes.work_mode.is_read_only();
        if talk.driver == Driver::Foreground && !may_meet {
            places.check_alone(&workspace, &site)?;
        }
        Ok((workspace, site))
    }

    /// Ends the task of a conversation that nobody works on: done, where it waited for the next message.
    async fn close(self, row: &TaskRow) -> Result<(), Error> {
        let owner = self.coordinator.store.owners().own(row.id).await?;
        let state = self.coordinator.tasks().state(row.id)?;
        let awaits_message =
            state.status == TaskStatus::Paused && state.reason == StatusReason::AwaitingMessage;
        let ending = match awaits_message {
            true => Ending::Done,
            false => Ending::Cancelled(Some("the conversation was cleared".to_owned())),
        };
        self.coordinator.control().conclude(&owner, &state, &ending).await.map(drop)
    }
}
