//! How far a plan is: its phases and tasks, what each waits for, and a picture of it.

use std::path::Path;

use serde::Serialize;
use windlass_core::id::{PlanId, SessionId, TaskId};
use windlass_core::status::TaskStatus;
use windlass_plan::ResolvedTask;
use windlass_store::{PlanRow, PlanningFilter, TaskRow};

use super::Plans;
use super::run::{task_id, tasks_of};
use crate::Error;
use crate::slash::Block;

/// How many cells the bar of a phase has.
const BAR: usize = 10;

/// Where a plan or a phase stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// Nothing of it has begun.
    Waiting,
    Running,
    /// A task waits for a person.
    Blocked,
    /// A task has failed for good or was cancelled.
    Failed,
    Done,
}

impl PlanState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }

    /// The sign in front of a phase.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Waiting => "○",
            Self::Running => "◐",
            Self::Blocked => "?",
            Self::Failed => "✗",
            Self::Done => "●",
        }
    }
}

/// A plan and how far it is.
#[derive(Clone, Debug, Serialize)]
pub struct PlanStatus {
    pub plan_id: PlanId,
    pub name: String,
    pub title: String,
    pub project: String,
    pub path: String,
    pub active: bool,
    pub session_id: Option<SessionId>,
    pub state: PlanState,
    pub done: usize,
    pub total: usize,
    pub open_issues: usize,
    pub phases: Vec<PhaseStatus>,
}

/// A phase and how far it is.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseStatus {
    pub id: String,
    pub title: String,
    pub state: PlanState,
    pub done: usize,
    pub total: usize,
    pub tasks: Vec<PlanTaskStatus>,
}

/// A task of a plan and where it stands.
#[derive(Clone, Debug, Serialize)]
pub struct PlanTaskStatus {
    pub id: String,
    pub title: String,
    pub agent: Option<String>,
    /// The task of the run, once there is one.
    pub task_id: Option<TaskId>,
    /// `todo` before there is one.
    pub status: TaskStatus,
    pub status_detail: Option<String>,
    pub retries: u32,
    /// Tasks that must be done first and are not.
    pub waits_for: Vec<String>,
}

impl Plans<'_> {
    /// How far the active plan of a directory's project is, or the plan of this name.
    pub fn status(self, directory: &Path, named: Option<&str>) -> Result<PlanStatus, Error> {
        let row = match named {
            None => self.need_active(directory)?,
            Some(name) => {
                let project = self.project(directory).display().to_string();
                let unknown = || Error::NoPlan {
                    directory: directory.to_owned(),
                    named: Some(name.to_owned()),
                };
                let is_meant = |row: &PlanRow| row.project == project && row.name == name;
                self.list()?.into_iter().find(is_meant).ok_or_else(unknown)?
            }
        };
        self.status_of(&row)
    }

    /// How far a plan is.
    pub fn status_of(self, plan: &PlanRow) -> Result<PlanStatus, Error> {
        let tasks = tasks_of(plan)?;
        let mut rows = Vec::new();
        for task in &tasks {
            let id = task.done_by.or(plan.session.map(|session| task_id(session, task)));
            rows.push(id.map(|id| self.coordinator.tasks().get(id)).transpose()?.flatten());
        }
        let is_done = |key: &String| {
            let place = tasks.iter().position(|task| task.id == *key);
            let row = place.and_then(|place| rows[place].as_ref());
            row.is_some_and(|row| row.status == TaskStatus::Done)
        };
        let titles: serde_json::Value = serde_json::from_str(&plan.manifest).unwrap_or_default();
        let mut phases: Vec<PhaseStatus> = Vec::new();
        for (task, row) in tasks.iter().zip(&rows) {
            if phases.last().is_none_or(|phase| phase.id != task.phase) {
                phases.push(PhaseStatus {
                    id: task.phase.clone(),
                    title: phase_title(&titles, &task.phase),
                    state: PlanState::Waiting,
                    done: 0,
                    total: 0,
                    tasks: Vec::new(),
                });
            }
            let waits_for = task.depends_on.iter().filter(|key| !is_done(key)).cloned().collect();
            if let Some(phase) = phases.last_mut() {
                phase.tasks.push(task_status(task, row.as_ref(), waits_for));
            }
        }
        for phase in &mut phases {
            phase.total = phase.tasks.len();
            phase.done = phase.tasks.iter().filter(|task| task.status == TaskStatus::Done).count();
            phase.state = state(phase.tasks.iter().map(|task| task.status));
        }
        let filter = PlanningFilter {
            project: plan.project.clone(),
            plan: Some(plan.name.clone()),
            open: true,
            ..PlanningFilter::default()
        };
        let statuses = phases.iter().flat_map(|phase| phase.tasks.iter().map(|task| task.status));
        Ok(PlanStatus {
            plan_id: plan.id,
            name: plan.name.clone(),
            title: plan.title.clone(),
            project: plan.project.clone(),
            path: plan.path.clone(),
            active: plan.is_active,
            session_id: plan.session,
            state: state(statuses),
            done: phases.iter().map(|phase| phase.done).sum(),
            total: phases.iter().map(|phase| phase.total).sum(),
            open_issues: self.coordinator.store.planning().issues(&filter)?.len(),
            phases,
        })
    }

    /// The current task of a plan: the first that is not done.
    pub(super) fn current_task(self, plan: &PlanRow) -> Result<Option<String>, Error> {
        let status = self.status_of(plan)?;
        let mut tasks = status.phases.into_iter().flat_map(|phase| phase.tasks);
        Ok(tasks.find(|task| task.status != TaskStatus::Done).map(|task| task.id))
    }
}

fn phase_title(manifest: &serde_json::Value, id: &str) -> String {
    let phases = manifest["phases"].as_array().into_iter().flatten();
    let mut titles =
        phases.filter(|phase| phase["id"] == id).filter_map(|phase| phase["title"].as_str());
    titles.next().unwrap_or(id).to_owned()
}

fn task_status(
    task: &ResolvedTask,
    row: Option<&TaskRow>,
    waits_for: Vec<String>,
) -> PlanTaskStatus {
    PlanTaskStatus {
        id: task.id.clone(),
        title: task.title.clone(),
        agent: task.agent.clone(),
        task_id: row.map(|row| row.id),
        status: row.map_or(TaskStatus::Todo, |row| row.status),
        status_detail: row.and_then(|row| row.detail.clone()),
        retries: row.map_or(0, |row| row.retry_count),
        waits_for,
    }
}

/// The common state of tasks with these statuses.
fn state(statuses: impl Iterator<Item = TaskStatus>) -> PlanState {
    let all: Vec<TaskStatus> = statuses.collect();
    let any = |wanted: &[TaskStatus]| all.iter().any(|status| wanted.contains(status));
    if !all.is_empty() && all.iter().all(|status| *status == TaskStatus::Done) {
        PlanState::Done
    } else if any(&[TaskStatus::Failed, TaskStatus::Cancelled]) {
        PlanState::Failed
    } else if any(&[TaskStatus::Blocked]) {
        PlanState::Blocked
    } else if all.iter().any(|status| *status != TaskStatus::Todo) {
        PlanState::Running
    } else {
        PlanState::Waiting
    }
}

impl PhaseStatus {
    /// How much of it is done, as a bar.
    pub fn bar(&self) -> String {
        let filled = (self.done * BAR).checked_div(self.total).unwrap_or(0);
        format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled))
    }
}

impl PlanTaskStatus {
    /// Where it stands, in a few words.
    pub fn words(&self) -> String {
        match (self.status, self.waits_for.is_empty()) {
            (TaskStatus::Todo, false) => format!("waits for {}", self.waits_for.join(", ")),
            (status, _) if self.retries > 0 => format!("{status} (try {})", self.retries + 1),
            (status, _) => status.to_string(),
        }
    }
}

impl PlanStatus {
    /// The plan as any surface can draw it: what it is, a picture of its phases, and its tasks.
    pub fn blocks(&self) -> Vec<Block> {
        let mut fields = vec![
            ("plan", format!("{} ({})", self.name, self.title)),
            ("state", self.state.as_str().to_owned()),
            ("tasks", format!("{} of {} done", self.done, self.total)),
        ];
        if self.open_issues > 0 {
            fields.push(("open issues", self.open_issues.to_string()));
        }
        let phases = self.phases.iter().map(|phase| {
            vec![
                format!("{} {}", phase.state.sign(), phase.title),
                phase.bar(),
                format!("{}/{}", phase.done, phase.total),
                phase.state.as_str().to_owned(),
            ]
        });
        let tasks = self.phases.iter().flat_map(|phase| &phase.tasks).map(|task| {
            vec![
                task.id.clone(),
                task.words(),
                task.agent.clone().unwrap_or_default(),
                task.task_id.map(|id| id.to_string()).unwrap_or_default(),
                task.title.clone(),
            ]
        });
        vec![
            Block::fields(fields),
            Block::table(&["PHASE", "PROGRESS", "DONE", "STATE"], &[2], phases.collect()),
            Block::table(&["TASK", "STATUS", "AGENT", "RUNS AS", "TITLE"], &[], tasks.collect()),
        ]
    }
}
