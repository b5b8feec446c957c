//! Follow-ups: more work after a task has ended. `done` is final, so a follow-up is a task of its own. It
//! belongs to the same session, works in the same directory, and begins with the conversation and the
//! knowledge of the task before it (docs/decisions/0012).

use std::path::Path;

use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::event::{Continuation, Deadline, Driver, TaskCreated, WorkflowPart};
use windlass_core::id::{CommandId, TaskId};
use windlass_core::picture::Picture;
use windlass_core::session::SessionState;
use windlass_store::Filter;

use crate::submit::{Share, Submission};
use crate::views::TaskView;
use crate::workplaces::{Workplaces, usable};
use crate::{Error, Tasks};

/// The newest tasks of a directory that are looked at.
const NEWEST: usize = 50;

/// What a person wants after a task has ended. What is absent is as it was before.
#[derive(Clone, Debug)]
pub struct FollowUp {
    pub user_id: Option<String>,
    /// What is wanted now.
    pub text: String,
    /// What that shows; each is kept already, by [`crate::Pictures`].
    pub pictures: Vec<Picture>,
    /// What must hold on the way, besides what held before.
    pub constraints: Vec<String>,
    /// Whether another live task may work in the directory.
    pub share: Share,
    pub axes: Option<Axes>,
    /// What differs from the task before.
    pub execution_config: ExecutionConfig,
    /// What the follow-up itself may cost.
    pub cost_budget: Option<f64>,
    pub deadline: Option<Deadline>,
    /// The sender's own id, so that a repeated delivery has no further effect.
    pub request: Option<String>,
}

impl FollowUp {
    /// A message, and nothing else changed.
    pub fn message(text: impl Into<String>, user: impl Into<String>) -> Self {
        Self {
            user_id: Some(user.into()),
            text: text.into(),
            pictures: Vec::new(),
            constraints: Vec::new(),
            share: Share::Alone,
            axes: None,
            execution_config: ExecutionConfig::default(),
            cost_budget: None,
            deadline: None,
            request: None,
        }
    }

    /// What it does differently from the configuration, after a task that had these wishes.
    pub fn execution_config_after(&self, before: ExecutionConfig) -> ExecutionConfig {
        let now = self.execution_config.clone();
        ExecutionConfig {
            timeout_seconds: now.timeout_seconds.or(before.timeout_seconds),
            max_iterations: now.max_iterations.or(before.max_iterations),
            // An effort belongs to the model it was chosen for.
            effort: now.effort.or(before.effort.filter(|_| now.model.is_none())),
            model: now.model.or(before.model),
            compaction: now.compaction.or(before.compaction),
            outage: now.outage.or(before.outage),
            role: now.role.or(before.role),
            contract: now.contract.or(before.contract),
        }
    }
}

impl<'a> Tasks<'a> {
    /// Makes a task that continues an ended one. Who drove that one drives it too.
    pub async fn follow_up(self, task: TaskId, wanted: FollowUp) -> Result<Submission, Error> {
        let now = self.coordinator.now();
        let task = self.root(task)?;
        let before = self.state(task)?;
        if !before.status.is_terminal() {
            return Err(Error::NotEnded { task, status: before.status });
        }
        if matches!(before.created.workflow.as_deref(), Some(WorkflowPart::Run(_))) {
            let words = format!("`{task}` is a run of a workflow and has ended; start another run");
            return Err(Error::Workflow(words));
        }
        if wanted.text.trim().is_empty() {
            return Err(Error::EmptyGoal);
        }
        let driver = before.created.driver;
        let workspace = Path::new(&before.created.workspace);
        Workplaces::of(self.coordinator).restore(workspace)?;
        let workspace = usable(workspace)?;
        let session_id = before.command().session_id;
        let session = self.coordinator.store.sessions().state(session_id)?;
        // A run may have had axes of its own.
        let moved = |session: &SessionState| {
            session.created.interactive || session.axes != session.created.axes
        };
        let known = session.as_ref().map(|(session, _)| session).filter(|session| moved(session));
        let axes = known.map_or(before.axes, |session| session.axes);
        let axes = wanted.axes.unwrap_or(axes);
        // What was allowed is the session's, if that has a stream. The ended task still has a rule that was revoked
        // there since.
        let has_stream = session.as_ref().is_some_and(|(_, seq)| *seq > 0);
        let session_rules = session.map(|(session, _)| session.rules).unwrap_or_default();
        let continued = match has_stream {
            true => Continuation { allow_rules: Vec::new(), ..before.continuation() },
            false => before.continuation(),
        };
        let may_meet = wanted.share == Share::Allowed || axes.work_mode.is_read_only();
        if driver == Driver::Foreground && !may_meet {
            Workplaces::of(self.coordinator).check_alone(&workspace, &before.created.site)?;
        }
        let execution_config = wanted.execution_config_after(before.execution_config());
        let new = TaskCommand::new(now, session_id, wanted.text);
        let (command_id, task_id) = match &wanted.request {
            Some(request) => {
                (CommandId::derived(request, "command"), TaskId::derived(request, "task"))
            }
            None => (new.command_id, new.task_id),
        };
        let constraints = wanted.constraints;
        let command = TaskCommand { command_id, task_id, execution_config, constraints, ..new };
        let created = TaskCreated {
            pictures: wanted.pictures,
            site: before.created.site.clone(),
            max_retries: self.coordinator.limits.retries,
            cost_budget: wanted.cost_budget.or(before.created.cost_budget),
            user_id: wanted.user_id,
            deadline: wanted.deadline,
            outage: before.created.outage,
            continues: Some(Box::new(continued)),
            conversation: before.created.conversation,
            session_rules,
            plan: before.created.plan.clone(),
            ..TaskCreated::new(command, axes, workspace.display().to_string(), driver)
        };
        match driver {
            Driver::Service => self.create_for_service(created).await,
            Driver::Foreground => {
                let task = self.coordinator.store.tasks().create(now, created).await?.task();
                Ok(Submission { task, new: true, place: None })
            }
        }
    }

    /// The tasks that people have started in a directory.
    pub fn in_directory(self, workspace: &'a Path) -> InDirectory<'a> {
        InDirectory { tasks: self, workspace }
    }
}

/// The tasks that people have started in a directory.
#[derive(Clone, Copy)]
pub struct InDirectory<'a> {
    tasks: Tasks<'a>,
    workspace: &'a Path,
}

impl InDirectory<'_> {
    /// The newest task of the directory.
    pub fn newest(self) -> Result<Option<TaskView>, Error> {
        Ok(self.latest(1)?.into_iter().next())
    }

    /// The newest that is stopped until a person resumes it or answers.
    pub fn resumable(self) -> Result<Option<TaskView>, Error> {
        let waits = |task: &TaskView| task.is_resumable() || task.waits_for_answer();
        Ok(self.latest(NEWEST)?.into_iter().find(waits))
    }

    fn latest(self, limit: usize) -> Result<Vec<TaskView>, Error> {
        self.tasks.list(&Filter {
            workspace: Some(self.workspace.display().to_string()),
            roots: true,
            limit: Some(limit),
            ..Filter::default()
        })
    }
}
