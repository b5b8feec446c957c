//! One session of a person: its axes, rules and model, its conversation, and its slash commands.
//!
//! Invariants:
//! - A command reads the session, decides, and appends with the number it has read; when another process was
//!   faster it looks again, so both take effect, one after the other.
//! - The message that tells a task of a change is sent in the transaction that records the change.

mod axes;
mod talk;

use jiff::Timestamp;
use windlass_core::axes::Axes;
use windlass_core::id::InjectionId;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::layout::AddedDirectory;
use windlass_core::policy::allow::AllowRule;
use windlass_core::session::{
    Archived, ModelChosen, Rated, RuleRevoked, SessionCreated, SessionEvent, SessionState,
};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Filter, SessionAppend, TaskRow};

use crate::views::{PendingChange, SessionDetails};
use crate::{Coordinator, Error};

pub use axes::{AxesChangeOutcome, AxesOrder};
pub use talk::{Conversation, Delivery, Talk};

/// How often an append is tried again when others are faster; each time one of them has succeeded.
const ATTEMPTS: usize = 100;

/// One session: a conversation, its axes and its work.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) id: SessionId,
}

/// How an interactive session begins.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub axes: Axes,
    pub user_id: String,
    /// The directory that its tasks work in; without one each task of the service has its own.
    pub workspace: Option<String>,
    /// Directories besides it.
    pub added: Vec<AddedDirectory>,
    /// What each conversation of it may cost; `None` for what is configured.
    pub cost_budget: Option<f64>,
    /// The model that it uses; `None` for what is configured.
    pub model: Option<String>,
}

impl NewSession {
    /// One with no more than a directory.
    pub fn new(axes: Axes, user_id: impl Into<String>, workspace: Option<String>) -> Self {
        Self {
            axes,
            user_id: user_id.into(),
            workspace,
            added: Vec::new(),
            cost_budget: None,
            model: None,
        }
    }
}

/// What the tasks of a session are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Nothing is at work.
    Idle,
    /// A unit has begun and does not run: it is paused, or waits for an answer.
    InUnit,
    /// A process works on a unit.
    Working,
}

impl Coordinator {
    /// A session by its id; it need not exist yet.
    pub fn session(&self, id: SessionId) -> Session<'_> {
        Session { coordinator: self, id }
    }
}

impl Session<'_> {
    pub fn id(self) -> SessionId {
        self.id
    }

    /// What its stream amounts to.
    pub fn state(self) -> Result<SessionState, Error> {
        Ok(self.read()?.0)
    }

    /// Whether anything is known of it.
    pub fn exists(self) -> Result<bool, Error> {
        Ok(self.coordinator.store.sessions().state(self.id)?.is_some())
    }

    /// Begins an interactive session, unless it exists.
    pub async fn begin(self, new: NewSession) -> Result<(), Error> {
        self.check_profile(new.axes.permission_profile)?;
        if self.exists()? {
            return Ok(());
        }
        let NewSession { axes, user_id, workspace, added, cost_budget, model } = new;
        let chosen = match &model {
            Some(name) => {
                let model = Some(self.usable_model(workspace.as_deref(), name)?);
                let chosen = ModelChosen { model, by: user_id.clone() };
                Some(SessionEvent::ModelChosen(chosen))
            }
            None => None,
        };
        let user_id = Some(user_id);
        let created =
            SessionCreated { axes, user_id, workspace, interactive: true, added, cost_budget };
        let created = SessionEvent::SessionCreated(created);
        let events = std::iter::once(created).chain(chosen).collect();
        let append = SessionAppend { events, mail: Vec::new() };
        match self.coordinator.store.sessions().append(self.id, 0, self.now(), append).await {
            // Somebody else has begun it meanwhile.
            Err(windlass_store::Error::SessionMoved { .. }) => Ok(()),
            begun => Ok(begun.map(drop)?),
        }
    }

    /// A session as a surface shows it.
    pub fn details(self) -> Result<SessionDetails, Error> {
        let (state, seq) = self.read()?;
        let view = self.coordinator.sessions().view(self.id)?;
        let activity = self.activity()?;
        let pending = state.pending.iter().map(PendingChange::of).collect();
        Ok(SessionDetails {
            session_id: self.id,
            user_id: view.user_id,
            seq,
            interactive: state.created.interactive,
            workspace: state.created.workspace.clone(),
            axes: state.axes,
            role: state.role,
            pending,
            for_this_unit: state.borrowed.map(|borrowed| borrowed.back.apply(&state.axes)),
            model: state.model,
            rules: state.rules,
            conversation: state.conversation,
            active_task_id: view.active_task_id,
            is_working: activity == Activity::Working,
            tasks: view.tasks,
            created_at: state.created_at,
        })
    }

    /// Takes back a rule that an `Allow All` gave, from the session, its tasks and those below them.
    pub async fn revoke(self, rule: &AllowRule, by: &str) -> Result<bool, Error> {
        let live = Filter { session: Some(self.id), live: true, ..Filter::default() };
        let tasks = self.coordinator.tasks();
        let (is_revoked, recipients) = self
            .update(|state| {
                if !state.rules.contains(rule) {
                    return Ok((SessionAppend::default(), (false, Vec::new())));
                }
                let revoked = RuleRevoked { rule: rule.clone(), by: by.to_owned() };
                let (mut mail, mut recipients) = (Vec::new(), Vec::new());
                for task in tasks.rows(&live)? {
                    // The rule may still be on its way to a task without a parent, by mail.
                    let has_parent = task.parent_id.is_some();
                    if has_parent && !tasks.state(task.id)?.allow_rules.contains(rule) {
                        continue;
                    }
                    let control = Control::Revoke { rule: rule.clone() };
                    let id = InjectionId::new(self.now());
                    mail.push((task.id, Injection::control(id, control).from(by)));
                    recipients.push(task.id);
                }
                let events = vec![SessionEvent::RuleRevoked(revoked)];
                Ok((SessionAppend { events, mail }, (true, recipients)))
            })
            .await?;
        for task in recipients {
            match self.coordinator.control().settle(task).await {
                // Its driver reads the mail.
                Ok(_) | Err(Error::Store(windlass_store::Error::Driven { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(is_revoked)
    }

    /// Puts the session away, or takes it back: lists leave it out, and nothing of it is lost.
    pub async fn archive(self, is_archived: bool, by: &str) -> Result<(), Error> {
        self.update(|state| {
            let archived = Archived { is_archived, by: by.to_owned() };
            let is_new = state.is_archived != is_archived;
            let events = is_new.then_some(SessionEvent::Archived(archived)).into_iter().collect();
            Ok((SessionAppend { events, mail: Vec::new() }, ()))
        })
        .await
    }

    /// Stores what a person thinks of the last unit (MS-173).
    pub async fn rate(self, stars: u8, note: &str, by: &str) -> Result<Rated, Error> {
        let filter =
            Filter { session: Some(self.id), roots: true, limit: Some(1), ..Filter::default() };
        let tasks = self.coordinator.store.tasks().list(&filter)?;
        let last = tasks.first().ok_or(Error::NothingToRate { session: self.id })?;
        let rated = Rated {
            stars,
            note: note.to_owned(),
            task: last.id,
            model: last.model.clone(),
            axes: last.axes,
            by: by.to_owned(),
        };
        self.update(|_| {
            let events = vec![SessionEvent::Rated(rated.clone())];
            Ok((SessionAppend { events, mail: Vec::new() }, ()))
        })
        .await?;
        Ok(rated)
    }

    /// Its tasks that have not ended and have no parent, oldest first.
    pub(crate) fn live_tasks(self) -> Result<Vec<TaskRow>, Error> {
        let filter =
            Filter { session: Some(self.id), live: true, roots: true, ..Filter::default() };
        let mut tasks = self.coordinator.store.tasks().list(&filter)?;
        tasks.reverse();
        Ok(tasks)
    }

    /// What its tasks are doing.
    pub(crate) fn activity(self) -> Result<Activity, Error> {
        let mut activity = Activity::Idle;
        for task in self.live_tasks()? {
            let is_driven = self.coordinator.tasks().driving_process(task.id)?.is_some();
            let waits = matches!(
                (task.status, task.reason),
                (TaskStatus::Todo, _) | (TaskStatus::Paused, StatusReason::AwaitingMessage)
            );
            match is_driven && task.status.is_running() {
                true => return Ok(Activity::Working),
                false if !waits => activity = Activity::InUnit,
                false => {}
            }
        }
        Ok(activity)
    }

    /// The task that a command means: the one that is named, else the active one.
    pub(crate) fn target(self, named: &str) -> Result<TaskId, Error> {
        let session = self.id;
        if named.is_empty() {
            let row = self.coordinator.store.sessions().get(session)?;
            return row.and_then(|row| row.active_task_id).ok_or(Error::NothingActive { session });
        }
        let task = self.coordinator.store.ids().task(named)?;
        match self.coordinator.tasks().session_of(task)? == session {
            true => Ok(task),
            // This person cannot name a task of another session.
            false => Err(windlass_store::Error::UnknownTask(named.to_owned()).into()),
        }
    }

    pub(crate) fn now(self) -> Timestamp {
        self.coordinator.now()
    }

    fn read(self) -> Result<(SessionState, u64), Error> {
        let found = self.coordinator.store.sessions().state(self.id)?;
        let unknown = || windlass_store::Error::UnknownSession(self.id.to_string());
        Ok(found.ok_or_else(unknown)?)
    }

    /// Decides on the session as it is, and appends that; again, when another process was faster.
    async fn update<T>(
        self,
        mut decide: impl FnMut(&SessionState) -> Result<(SessionAppend, T), Error>,
    ) -> Result<T, Error> {
        for _ in 0..ATTEMPTS {
            let (state, seq) = self.read()?;
            let (append, value) = decide(&state)?;
            if append.events.is_empty() {
                return Ok(value);
            }
            match self.coordinator.store.sessions().append(self.id, seq, self.now(), append).await {
                Err(windlass_store::Error::SessionMoved { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    self.coordinator.queue().wake();
                    return Ok(value);
                }
            }
        }
        Err(windlass_store::Error::SessionMoved { session: self.id }.into())
    }
}
