//! Working through a plan: its tasks are tasks of one session, in the order of what they wait for.
//!
//! Invariant: everything that a run decides is in the tasks' own journals. A run that was killed is begun again by
//! the same command: tasks that exist are not made again, and what was done is not done again.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::command::{ExecutionConfig, Outage, ResultStatus, TaskCommand, TaskResult};
use windlass_core::contract::{Check, GivenContract};
use windlass_core::event::{Driver, TaskCreated};
use windlass_core::id::{CommandId, PlanId, SessionId, TaskId};
use windlass_core::planning::{Mutation, PlanTask};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_plan::{ResolvedTask, goal};
use windlass_store::{PlanRow, TaskRow};

use super::{PlanStatus, Plans, activation};
use crate::slash::Reach;
use crate::{Coordinator, Error, ParkedWait};

/// How a plan is worked through.
#[derive(Clone, Debug)]
pub struct PlanRun {
    /// The axes of its tasks, where an agent's definition does not say more.
    pub axes: Axes,
    /// The directory that its tasks work in.
    pub workspace: PathBuf,
    pub by: String,
    /// What that person may name, as at the activation.
    pub reach: Reach,
    pub driver: Driver,
    /// The session that its tasks belong to; one of their own without it.
    pub session: Option<SessionId>,
    /// What each task does differently from the configuration.
    pub execution_config: ExecutionConfig,
    /// What each task may cost.
    pub cost_budget: Option<f64>,
}

/// What each task of a plan may use, as it was found when the plan was activated.
pub(super) fn tasks_of(plan: &PlanRow) -> Result<Vec<ResolvedTask>, Error> {
    serde_json::from_str(&plan.tasks).map_err(|_| {
        let stored =
            windlass_store::Error::Malformed { table: "plans", value: plan.id.to_string() };
        stored.into()
    })
}

/// The task that a task of a plan stands for in a run: the one that has finished it in an earlier run, else its own.
pub(super) fn task_id(session: SessionId, task: &ResolvedTask) -> TaskId {
    task.done_by.unwrap_or_else(|| TaskId::derived(&session.to_string(), &name_in_run(task)))
}

/// What ids are derived from: several runs of a plan may be in one session.
fn name_in_run(task: &ResolvedTask) -> String {
    match task.round {
        0 => task.id.clone(),
        round => format!("{} {round}", task.id),
    }
}

impl Plans<'_> {
    /// Begins the run of an active plan, or finds the one that was begun: makes its tasks, each with what it waits
    /// for (MS-131).
    pub async fn begin(self, plan: PlanRow, run: PlanRun) -> Result<PlanStatus, Error> {
        if !plan.is_active {
            return Err(Error::PlanNotActive { name: plan.name });
        }
        let directory = run.workspace.as_path();
        let file = self.read(directory, Some(&plan.path))?;
        if activation::digest(&file) != plan.digest {
            return Err(Error::PlanChanged { path: file.path });
        }
        let tasks = tasks_of(&plan)?;
        activation::check_reach(run.reach, &tasks)?;
        let wanted = run.session.unwrap_or_else(|| SessionId::new(self.coordinator.now()));
        let session = self.coordinator.store.planning().begin_run(plan.id, wanted).await?;
        let is_trusted = self.coordinator.agents.is_trusted(directory, &file.path, &file.text);
        for task in tasks.iter().filter(|task| task.done_by.is_none()) {
            let blockers = tasks.iter().filter(|before| task.depends_on.contains(&before.id));
            let blockers = blockers.map(|before| task_id(session, before)).collect();
            let created = self.task_created(&plan, &run, session, task, is_trusted)?;
            let created = TaskCreated { dependency_blockers: blockers, ..created };
            match run.driver {
                Driver::Service => {
                    self.coordinator.tasks().create_for_service(created).await?;
                }
                Driver::Foreground => {
                    let now = self.coordinator.now();
                    self.coordinator.store.tasks().create(now, created).await?;
                }
            }
        }
        self.status_of(&PlanRow { session: Some(session), ..plan })
    }

    fn task_created(
        self,
        plan: &PlanRow,
        run: &PlanRun,
        session: SessionId,
        task: &ResolvedTask,
        is_trusted: bool,
    ) -> Result<TaskCreated, Error> {
        let id = task_id(session, task);
        let place = place(plan, task);
        let workspace = crate::workplaces::usable(&run.workspace)?;
        let command = TaskCommand {
            command_id: CommandId::derived(&session.to_string(), &name_in_run(task)),
            session_id: session,
            task_id: id,
            goal: goal(task, &place),
            constraints: Vec::new(),
            execution_config: ExecutionConfig {
                model: task.model.clone().or(run.execution_config.model.clone()),
                contract: contract(task, is_trusted),
                ..run.execution_config.clone()
            },
            resume_context: None,
        };
        let profile = match (task.permission_profile, task.mutation) {
            (_, Mutation::None) => PermissionProfile::Restricted,
            (Some(profile), _) => profile,
            (None, _) => run.axes.permission_profile,
        };
        let axes = Axes { permission_profile: profile, ..run.axes };
        Ok(TaskCreated {
            site: self.coordinator.agents.site(&workspace),
            max_retries: self.coordinator.limits.retries,
            cost_budget: run.cost_budget,
            user_id: Some(run.by.clone()),
            outage: Some(Outage::Park),
            session_rules: self.coordinator.tasks().session_rules(session)?,
            plan: Some(Box::new(place)),
            ..TaskCreated::new(command, axes, workspace.display().to_string(), run.driver)
        })
    }

    /// Drives the tasks of a plan's run here, as many at once as a session may have, until nothing is left that
    /// could run. `changed` hears of every task whose segment has ended.
    pub async fn drive(
        self,
        plan: PlanId,
        stop: &CancellationToken,
        mut changed: impl FnMut(&PlanStatus),
    ) -> Result<PlanStatus, Error> {
        let none = || Error::NoPlan { directory: PathBuf::new(), named: Some(plan.to_string()) };
        let row = self.get(plan)?.ok_or_else(none)?;
        self.catch_up(&row).await?;
        let mut driving = PlanDriver::new(self.coordinator.clone());
        loop {
            if !stop.is_cancelled() {
                for task in self.startable(&row, &driving)? {
                    driving.start(task, stop);
                }
            }
            changed(&self.status_of(&row)?);
            let Some((task, result)) = driving.next().await else { break };
            match result {
                Ok(result) => self.settle(&result).await?,
                // Somebody else drives it, or it no longer needs anybody.
                Err(
                    Error::Store(windlass_store::Error::Driven { .. })
                    | Error::Ended { .. }
                    | Error::Dependencies { .. },
                ) => {}
                Err(error) => {
                    tracing::error!(%task, %error, "a task of the plan could not be driven");
                    driving.troubles.push(error);
                }
            }
        }
        match driving.troubles.pop() {
            Some(error) => Err(error),
            None => self.status_of(&row),
        }
    }

    /// The tasks of a run that could run now, in the order of the plan.
    fn startable(self, plan: &PlanRow, driving: &PlanDriver) -> Result<Vec<TaskId>, Error> {
        let Some(session) = plan.session else { return Ok(Vec::new()) };
        let room = self.coordinator.limits.tasks_per_session.saturating_sub(driving.jobs.len());
        let mut found = Vec::new();
        for task in tasks_of(plan)? {
            let id = task_id(session, &task);
            let Some(row) = self.coordinator.tasks().get(id)? else { continue };
            if driving.tasks.contains(&id) || driving.has_tried(&row) {
                continue;
            }
            if self.is_startable(&row)? {
                found.push(id);
            }
        }
        found.truncate(room);
        Ok(found)
    }

    fn is_startable(self, row: &TaskRow) -> Result<bool, Error> {
        Ok(match (row.status, row.reason) {
            (TaskStatus::Todo, _) => {
                self.coordinator.store.tasks().open_blockers(row.id)?.is_empty()
            }
            // Whoever ran it is gone, or its lock says otherwise.
            (
                TaskStatus::Running
                | TaskStatus::Verifying
                | TaskStatus::Reviewing
                | TaskStatus::Retrying,
                _,
            ) => true,
            // It is driven again by whoever answers; here only what was answered meanwhile.
            (TaskStatus::Blocked, StatusReason::Question | StatusReason::Budget) => {
                self.coordinator.inbox().open_in_tree(row.id)?.is_empty()
            }
            (TaskStatus::Paused, StatusReason::User) => false,
            (TaskStatus::Paused, _) => true,
            (
                TaskStatus::Blocked | TaskStatus::Done | TaskStatus::Failed | TaskStatus::Cancelled,
                _,
            ) => false,
        })
    }
}

/// What must hold before a task is done: its verification, and what its plan says of completion; without either, the
/// project's own contract holds. Whoever has not approved the plan is asked before commands run (§15.13).
fn contract(task: &ResolvedTask, approved: bool) -> Option<Box<GivenContract>> {
    if task.verification.is_empty() && task.completion.is_none() {
        return None;
    }
    let mut contract = task.completion.clone().unwrap_or_default();
    if contract.name.is_empty() {
        contract.name = format!("task {}", task.id);
    }
    let others = std::mem::take(&mut contract.checks);
    let names = (1..).map(|number| format!("verification {number}"));
    let names = names.filter(|name| others.iter().all(|check| check.name != *name));
    let checks = names.zip(&task.verification).map(|(name, command)| Check {
        name,
        command: Some(command.clone()),
        timeout_seconds: None,
    });
    contract.checks = checks.collect();
    contract.checks.extend(others);
    Some(Box::new(GivenContract { contract, approved }))
}

/// A task's place in its plan, and what the plan lets it use.
fn place(plan: &PlanRow, task: &ResolvedTask) -> PlanTask {
    PlanTask {
        plan: plan.id,
        name: plan.name.clone(),
        phase: task.phase.clone(),
        key: task.id.clone(),
        agent: task.agent.clone(),
        agent_prompt: task.agent_prompt.clone(),
        skills: task.skills.clone(),
        servers: task.servers.clone(),
        tools: task.tools.clone(),
        risk: task.risk,
        mutation: task.mutation,
        approval: task.approval,
        verification: task.verification.clone(),
    }
}

type Driven = (TaskId, Result<TaskResult, Error>);

/// The tasks of a run that this process drives.
struct PlanDriver {
    coordinator: Coordinator,
    jobs: JoinSet<Driven>,
    tasks: HashSet<TaskId>,
    /// The status that a task was left in here: it is not tried again before that changes.
    left: HashMap<TaskId, (TaskStatus, u32)>,
    troubles: Vec<Error>,
}

impl PlanDriver {
    fn new(coordinator: Coordinator) -> Self {
        Self {
            coordinator,
            jobs: JoinSet::new(),
            tasks: HashSet::new(),
            left: HashMap::new(),
            troubles: Vec::new(),
        }
    }

    fn has_tried(&self, row: &TaskRow) -> bool {
        self.left.get(&row.id) == Some(&(row.status, row.retry_count))
    }

    fn start(&mut self, task: TaskId, stop: &CancellationToken) {
        let (coordinator, stop) = (self.coordinator.clone(), stop.clone());
        self.tasks.insert(task);
        self.jobs.spawn(async move { (task, work(&coordinator, task, &stop).await) });
    }

    /// The next task whose segment has ended; `None` when none is left.
    async fn next(&mut self) -> Option<Driven> {
        let (task, result) = match self.jobs.join_next().await? {
            Ok(driven) => driven,
            Err(error) => {
                self.troubles.push(Error::Job(error.to_string()));
                return Box::pin(self.next()).await;
            }
        };
        self.tasks.remove(&task);
        if let Ok(Some(row)) = self.coordinator.tasks().get(task) {
            self.left.insert(task, (row.status, row.retry_count));
        }
        Some((task, result))
    }
}

/// Drives a task; one that is parked for a while is driven again when its time has come.
async fn work(
    coordinator: &Coordinator,
    task: TaskId,
    stop: &CancellationToken,
) -> Result<TaskResult, Error> {
    let tasks = coordinator.tasks();
    loop {
        let result = tasks.drive(task, stop).await?;
        let until = tasks.parked(task).until()?.filter(|_| result.status == ResultStatus::Paused);
        let Some(until) = until.filter(|_| !stop.is_cancelled()) else { return Ok(result) };
        let waited = tokio::select! {
            waited = tasks.parked(task).wait(until) => waited?,
            () = stop.cancelled() => return Ok(result),
        };
        if waited != ParkedWait::Due {
            return Ok(result);
        }
    }
}
