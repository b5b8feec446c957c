//! Follow-ups: more work after a task has ended. `done` is final, so a follow-up is a task of its own. It
//! belongs to the same session, works in the same directory, and begins with the conversation and the
//! knowledge of the task before it (docs/decisions/0012).

use std::path::Path;

use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::event::{Deadline, Driver, TaskCreated};
use windlass_core::id::{CommandId, TaskId};
use windlass_store::Filter;

use crate::submit::{Share, Submitted, usable};
use crate::views::TaskView;
use crate::{Error, Tasks};

/// The newest tasks of a directory that are looked at.
const NEWEST: usize = 50;

/// What a person wants after a task has ended. What is absent is as it was before.
#[derive(Clone, Debug)]
pub struct FollowUp {
    pub user_id: Option<String>,
    /// What is wanted now.
    pub text: String,
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
}

impl FollowUp {
    /// A message, and nothing else changed.
    pub fn message(text: impl Into<String>, user: impl Into<String>) -> Self {
        Self {
            user_id: Some(user.into()),
            text: text.into(),
            constraints: Vec::new(),
            share: Share::Alone,
            axes: None,
            execution_config: ExecutionConfig::default(),
            cost_budget: None,
            deadline: None,
        }
    }

    /// What it does differently from the configuration, after a task that had these wishes.
    pub fn execution_config_after(&self, before: ExecutionConfig) -> ExecutionConfig {
        let now = self.execution_config.clone();
        ExecutionConfig {
            timeout_seconds: now.timeout_seconds.or(before.timeout_seconds),
            max_iterations: now.max_iterations.or(before.max_iterations),
            model: now.model.or(before.model),
            compaction: now.compaction.or(before.compaction),
            outage: now.outage.or(before.outage),
        }
    }
}

impl Tasks<'_> {
    /// Makes a task that continues an ended one. Who drove that one drives it too.
    pub async fn follow_up(self, task: TaskId, wanted: FollowUp) -> Result<Submitted, Error> {
        let now = self.coordinator.now();
        let task = self.root(task)?;
        let before = self.state(task)?;
        if !before.status.is_terminal() {
            return Err(Error::NotEnded { task, status: before.status });
        }
        if wanted.text.trim().is_empty() {
            return Err(Error::EmptyGoal);
        }
        let driver = before.created.driver;
        let workspace = usable(Path::new(&before.created.workspace))?;
        let axes = wanted.axes.unwrap_or(before.axes);
        let may_meet = wanted.share == Share::Allowed || axes.work_mode.is_read_only();
        if driver == Driver::Foreground && !may_meet {
            self.check_alone(&workspace, &before.created.site)?;
        }
        let task_id = TaskId::new(now);
        let command = TaskCommand {
            command_id: CommandId::new(now),
            session_id: before.command().session_id,
            task_id,
            execution_config: wanted.execution_config_after(before.execution_config()),
            goal: wanted.text,
            constraints: wanted.constraints,
            resume_context: None,
        };
        let created = TaskCreated {
            command,
            parent: None,
            root: task_id,
            depth: 0,
            axes,
            workspace: workspace.display().to_string(),
            site: before.created.site.clone(),
            driver,
            dependency_blockers: Vec::new(),
            max_retries: self.coordinator.limits.retries,
            cost_budget: wanted.cost_budget.or(before.created.cost_budget),
            user_id: wanted.user_id,
            deadline: wanted.deadline,
            outage: before.created.outage,
            continues: Some(Box::new(before.continued())),
        };
        match driver {
            Driver::Service => self.create_for_service(created).await,
            Driver::Foreground => {
                let task = self.coordinator.store.tasks().create(now, created).await?.task();
                Ok(Submitted { task, new: true, place: None })
            }
        }
    }

    /// The newest task that a person has started in a directory.
    pub fn newest_in(self, workspace: &Path) -> Result<Option<TaskView>, Error> {
        Ok(self.newest(workspace, 1)?.into_iter().next())
    }

    /// The newest task of a directory that stands still until a person resumes it or answers.
    pub fn resumable_in(self, workspace: &Path) -> Result<Option<TaskView>, Error> {
        let waits = |task: &TaskView| task.is_resumable() || task.waits_for_answer();
        Ok(self.newest(workspace, NEWEST)?.into_iter().find(waits))
    }

    fn newest(self, workspace: &Path, limit: usize) -> Result<Vec<TaskView>, Error> {
        self.list(&Filter {
            workspace: Some(workspace.display().to_string()),
            roots: true,
            limit: Some(limit),
            ..Filter::default()
        })
    }
}
