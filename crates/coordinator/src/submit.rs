//! Submitting a goal: checked once here, journaled, and from then on a task.

use std::path::{Path, PathBuf};

use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, Outage, ResumeContext, TaskCommand};
use windlass_core::event::{Continuation, Deadline, Driver, TaskCreated};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::layout::{AddedDirectory, Site};
use windlass_core::picture::Picture;
use windlass_core::policy::allow::AllowRule;
use windlass_store::{Creation, Store};

use crate::workplaces::{Workplaces, usable};
use crate::{Error, Tasks};

/// A goal before it is a task.
#[derive(Clone, Debug)]
pub struct TaskDraft {
    /// Whose it is, when somebody says so.
    pub user_id: Option<String>,
    /// What is wanted.
    pub goal: String,
    /// What the goal shows; each is kept already, by [`crate::Pictures`].
    pub pictures: Vec<Picture>,
    /// What must hold on the way.
    pub constraints: Vec<String>,
    /// The directory to work in.
    pub workspace: PathBuf,
    /// Directories besides it.
    pub added: Vec<AddedDirectory>,
    /// Whether another live task may work there too.
    pub share: Share,
    /// The axes to start with.
    pub axes: Axes,
    /// What differs from the configuration.
    pub execution_config: ExecutionConfig,
    /// An earlier conversation to continue.
    pub resume_context: Option<ResumeContext>,
    /// Who drives it.
    pub driver: Driver,
    /// What it may cost.
    pub cost_budget: Option<f64>,
    /// When it must be finished.
    pub deadline: Option<Deadline>,
    /// Tasks that must be done first.
    pub dependency_blockers: Vec<TaskId>,
}

/// Whether a workspace may be shared by live tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// One live task at a time.
    Alone,
    /// The person said that several may.
    Allowed,
}

/// How a whole command is carried out, besides what it says itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitOptions {
    /// Whose it is; counts against the limit of sessions.
    pub user_id: Option<String>,
    /// The axes to start with.
    pub axes: Axes,
    /// The directory to work in; without, `workspaces/<task>` of the data directory is made.
    pub workspace: Option<PathBuf>,
    /// Directories besides it.
    pub added: Vec<AddedDirectory>,
    /// What it may cost.
    pub cost_budget: Option<f64>,
    /// When it must be finished.
    pub deadline: Option<Deadline>,
    /// What happens when its model server does not answer, where neither the command nor the configuration says.
    pub outage: Outage,
    /// The ended task whose conversation it continues.
    pub continues: Option<Box<Continuation>>,
    /// What the goal shows; each is kept already, by [`crate::Pictures`].
    pub pictures: Vec<Picture>,
}

impl Default for SubmitOptions {
    /// As a command from a stream is: headless, in a directory of its own.
    fn default() -> Self {
        Self {
            user_id: None,
            axes: Axes::headless(),
            workspace: None,
            added: Vec::new(),
            cost_budget: None,
            deadline: None,
            outage: Outage::Fail,
            continues: None,
            pictures: Vec::new(),
        }
    }
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The task that stands for it.
    pub task: TaskId,
    /// Whether it is new; a repeated command starts nothing.
    pub new: bool,
    /// Its place in the session's queue, from 1; `None` when it may start at once.
    pub place: Option<usize>,
}

impl Tasks<'_> {
    /// How a command is carried out about which nobody says more.
    pub fn default_options(self) -> SubmitOptions {
        let profile = self.coordinator.limits.profile;
        let axes = Axes { permission_profile: profile, ..Axes::headless() };
        SubmitOptions { axes, ..SubmitOptions::default() }
    }

    /// Refuses a model that tasks of a directory cannot use.
    pub fn check_model(self, directory: Option<&Path>, name: &str) -> Result<(), Error> {
        let directory = directory.map(|directory| directory.display().to_string());
        let checked = self.coordinator.agents.check_model(directory.as_deref(), name);
        checked.map(drop).map_err(|details| Error::Unusable { details: Box::new(details) })
    }

    /// Makes a task of a whole command, for the service to drive. Repeated, it names the same task. A goal that calls a
    /// skill by `/name` becomes its instructions (AX-114).
    pub async fn submit_command(
        self,
        mut command: TaskCommand,
        options: SubmitOptions,
    ) -> Result<Submission, Error> {
        if command.goal.trim().is_empty() {
            return Err(Error::EmptyGoal);
        }
        let (task_id, session) = (command.task_id, command.session_id);
        let project = options.workspace.as_deref();
        let commitments = self.coordinator.commitments();
        let axes =
            commitments.axes_for(&command, options.axes, options.user_id.as_deref(), project)?;
        let known = self.coordinator.store.tasks().get(task_id)?.is_some();
        if !known {
            self.coordinator.queue().check_limit()?;
        }
        if let Some(user) = options.user_id.as_deref().filter(|_| !known) {
            self.coordinator.sessions().check_limit(user, session)?;
        }
        let (workspace, site) = match &options.workspace {
            Some(workspace) => {
                let workspace = usable(workspace)?;
                let site = self.coordinator.agents.site(&workspace);
                (workspace, Site { added: options.added.clone(), ..site })
            }
            None => (Workplaces::of(self.coordinator).make_own(task_id)?, Site::default()),
        };
        let workspace = workspace.display().to_string();
        if !known {
            let skill =
                self.coordinator.agents.expand(Some(&workspace), &options.axes, &command.goal);
            let skill = skill.map_err(|details| Error::Unusable { details: Box::new(details) })?;
            command.goal = skill.map_or(command.goal, |skill| skill.goal);
        }
        let created = TaskCreated {
            pictures: options.pictures,
            site,
            max_retries: self.coordinator.limits.retries,
            cost_budget: options.cost_budget,
            user_id: options.user_id,
            deadline: options.deadline,
            outage: Some(options.outage),
            continues: options.continues,
            session_rules: self.session_rules(session)?,
            ..TaskCreated::new(command, axes, workspace, Driver::Service)
        };
        self.create_for_service(created).await
    }

    /// What people have allowed in a session so far.
    pub(crate) fn session_rules(self, session: SessionId) -> Result<Vec<AllowRule>, Error> {
        let known = self.coordinator.store.sessions().state(session)?;
        Ok(known.map(|(state, _)| state.rules).unwrap_or_default())
    }

    /// Makes a task and puts it in line for the service.
    pub(crate) async fn create_for_service(
        self,
        created: TaskCreated,
    ) -> Result<Submission, Error> {
        let (now, deadline) = (self.coordinator.now(), created.deadline);
        let created = self.coordinator.store.tasks().create(now, created).await?;
        let task = created.task();
        if created == Creation::New(task) {
            self.coordinator
                .store
                .scheduler()
                .enqueue(task, now, deadline.map(|deadline| deadline.at))
                .await?;
        }
        self.coordinator.queue().wake();
        Ok(Submission {
            task,
            new: matches!(created, Creation::New(_)),
            place: self.coordinator.queue().place(task)?,
        })
    }

    /// Makes a task of a goal. It is durable when this returns.
    pub async fn submit(self, draft: TaskDraft) -> Result<TaskId, Error> {
        let now = self.coordinator.now();
        if draft.goal.trim().is_empty() {
            return Err(Error::EmptyGoal);
        }
        check_room(&self.coordinator.store)?;
        let workspace = usable(&draft.workspace)?;
        let site = self.coordinator.agents.site(&workspace);
        let site = Site { added: draft.added, ..site };
        if draft.share == Share::Alone && !draft.axes.work_mode.is_read_only() {
            Workplaces::of(self.coordinator).check_alone(&workspace, &site)?;
        }
        let command = TaskCommand {
            constraints: draft.constraints,
            execution_config: draft.execution_config,
            resume_context: draft.resume_context,
            ..TaskCommand::new(now, SessionId::new(now), draft.goal)
        };
        let user = draft.user_id.as_deref();
        let axes = self.coordinator.commitments().axes_for(
            &command,
            draft.axes,
            user,
            Some(&workspace),
        )?;
        let created = TaskCreated {
            pictures: draft.pictures,
            site,
            dependency_blockers: draft.dependency_blockers,
            max_retries: self.coordinator.limits.retries,
            cost_budget: draft.cost_budget,
            user_id: draft.user_id,
            deadline: draft.deadline,
            ..TaskCreated::new(command, axes, workspace.display().to_string(), draft.driver)
        };
        Ok(self.coordinator.store.tasks().create(now, created).await?.task())
    }
}

/// A task that could be written down and not begun would only be in the way.
fn check_room(store: &Store) -> Result<(), Error> {
    match store.tasks().retention().has_room() {
        true => Ok(()),
        false => Err(windlass_store::Error::Full { path: store.dir().database() }.into()),
    }
}
