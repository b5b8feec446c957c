//! Activating a plan: finding exactly what it names, and keeping what each of its tasks may use.

use std::path::Path;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;
use windlass_core::id::{PlanId, SessionId, TaskId};
use windlass_core::status::TaskStatus;
use windlass_plan::{ResolvedTask, check_prompts, resolve};
use windlass_store::PlanRow;

use super::run::tasks_of;
use super::{PlanFile, PlanTaskStatus, Plans};
use crate::slash::Reach;
use crate::{Coordinator, Error};

/// What the activation of a plan has found.
#[derive(Clone, Debug, Serialize)]
pub struct Activation {
    pub plan_id: PlanId,
    pub name: String,
    pub title: String,
    pub path: String,
    /// The skills that its tasks may see, exactly.
    pub skills: Vec<String>,
    /// The MCP servers that its tasks may reach, exactly.
    pub mcp_servers: Vec<String>,
    /// Whether the plan names its skills; without, those of the project are meant.
    pub names_skills: bool,
    pub names_mcp_servers: bool,
    pub agents: Vec<String>,
    pub phases: usize,
    pub tasks: usize,
    /// The tasks that an earlier run has finished, and that stay so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<String>,
    /// What a person should know.
    pub notices: Vec<String>,
}

/// A plan to activate.
#[derive(Clone, Copy, Debug)]
pub struct NewActivation<'a> {
    /// The directory whose plan it is.
    pub directory: &'a Path,
    /// What it is called by; the only one there is without.
    pub named: Option<&'a str>,
    pub by: &'a str,
    /// What the person may name: only who reaches everything names a script as a model.
    pub reach: Reach,
    /// Whether tasks that an earlier run has finished are worked on once more.
    pub again: bool,
}

impl Plans<'_> {
    /// Makes a plan the active one of its project. Everything that it names exists then, and nothing else loads.
    pub async fn activate(self, new: NewActivation<'_>) -> Result<Activation, Error> {
        let NewActivation { directory, named, .. } = new;
        let file = self.read(directory, named)?;
        let prompts = check_prompts(&file.plan, &file.document);
        if !prompts.is_empty() {
            return Err(windlass_plan::Problems(prompts).into());
        }
        let there = self.coordinator.agents.capabilities(directory);
        let there = there.map_err(|details| Error::Unusable { details: Box::new(details) })?;
        let (needs, mut tasks) = resolve(&file.plan, &file.document, &file.agents, &there)?;
        check_reach(new.reach, &tasks)?;
        check_trust(self.coordinator, directory, &file)?;
        check_models(self.coordinator, directory, &tasks)?;
        let session = self.continued_session(&file, &mut tasks, new.again)?;
        let row = self.row(&file, &tasks, new.by, session);
        let mut notices = Vec::new();
        let undefined = file.plan.assigned_agents.iter().filter(|agent| {
            file.agents.get(&agent.name).is_none_or(|agent| agent.prompt.is_empty())
        });
        for agent in undefined {
            notices.push(format!(
                "agent `{0}` has no instructions of its own: write `.windlass/agents/{0}.md`",
                agent.name
            ));
        }
        let finished = tasks.iter().filter(|task| task.done_by.is_some());
        let activation = Activation {
            plan_id: row.id,
            name: row.name.clone(),
            title: row.title.clone(),
            path: row.path.clone(),
            names_skills: needs.skills.is_some(),
            names_mcp_servers: needs.servers.is_some(),
            skills: needs.skills.unwrap_or(there.skills),
            mcp_servers: needs.servers.unwrap_or(there.servers),
            agents: file.plan.assigned_agents.iter().map(|agent| agent.name.clone()).collect(),
            phases: file.plan.phases.len(),
            tasks: tasks.len(),
            finished: finished.map(|task| task.id.clone()).collect(),
            notices,
        };
        self.coordinator.store.planning().activate(row).await?;
        Ok(activation)
    }

    fn row(
        self,
        file: &PlanFile,
        tasks: &[ResolvedTask],
        by: &str,
        session: Option<SessionId>,
    ) -> PlanRow {
        let project = file.project.display().to_string();
        PlanRow {
            id: PlanId::derived(&project, &file.plan.id),
            name: file.plan.id.clone(),
            project,
            path: file.path.display().to_string(),
            title: file.plan.title.clone(),
            digest: digest(file),
            manifest: serde_json::to_string(&file.plan).unwrap_or_default(),
            tasks: serde_json::to_string(tasks).unwrap_or_default(),
            is_active: true,
            session,
            activated_at: self.coordinator.now(),
            activated_by: by.to_owned(),
        }
    }

    /// The run that a plan continues when it is activated again, and which of its tasks an earlier run has finished:
    /// those stay finished, unless somebody wants them again. A run of another version must have ended.
    fn continued_session(
        self,
        file: &PlanFile,
        tasks: &mut [ResolvedTask],
        again: bool,
    ) -> Result<Option<SessionId>, Error> {
        let id = PlanId::derived(&file.project.display().to_string(), &file.plan.id);
        let Some(before) = self.get(id)? else { return Ok(None) };
        let status = self.status_of(&before)?;
        let known = status.phases.into_iter().flat_map(|phase| phase.tasks);
        let known: Vec<_> = known.filter_map(|task| Some((task.task_id?, task))).collect();
        let live = known.iter().find(|(_, task)| !task.status.is_terminal());
        let is_same = before.digest == digest(file);
        if let Some((task, _)) = live.filter(|_| again || !is_same) {
            return Err(Error::Working { task: *task });
        }
        // What has failed cannot be made again in the run that it belongs to.
        let has_failed = |(_, task): &(TaskId, PlanTaskStatus)| task.status != TaskStatus::Done;
        let has_ended = live.is_none() && known.iter().any(has_failed);
        let continues = is_same && !has_ended && !again;
        let round = tasks_of(&before)?.iter().map(|task| task.round).max().unwrap_or_default();
        for task in tasks {
            let done = |(_, one): &&(TaskId, PlanTaskStatus)| {
                one.id == task.id && one.status == TaskStatus::Done && !again
            };
            task.done_by = known.iter().find(done).map(|(id, _)| *id);
            task.round = if continues { round } else { round + 1 };
        }
        Ok(before.session.filter(|_| continues))
    }
}

/// A model, a profile and MCP servers count only where a person has approved the file that names them.
fn check_trust(coordinator: &Coordinator, directory: &Path, file: &PlanFile) -> Result<(), Error> {
    let agents = coordinator.agents.as_ref();
    let own = file
        .plan
        .assigned_agents
        .iter()
        .filter(|agent| !file.agent_files.contains_key(&agent.name));
    let mut sets: Vec<&str> = own
        .filter_map(|agent| file.agents.get(&agent.name))
        .flat_map(|agent| agent.needs_trust())
        .collect();
    if file.plan.required_mcp_tools.as_ref().is_some_and(|servers| !servers.is_empty()) {
        sets.push("MCP servers");
    }
    sets.dedup();
    if !sets.is_empty() && !agents.is_trusted(directory, &file.path, &file.text) {
        return Err(Error::NotTrusted { path: file.path.clone(), sets: sets.join(", ") });
    }
    for (name, (path, text)) in &file.agent_files {
        let sets = file.agents.get(name).map(|agent| agent.needs_trust()).unwrap_or_default();
        if !sets.is_empty() && !agents.is_trusted(directory, path, text) {
            return Err(Error::NotTrusted { path: path.clone(), sets: sets.join(", ") });
        }
    }
    Ok(())
}

/// Refuses the models of a plan that a person may not name.
pub(super) fn check_reach(reach: Reach, tasks: &[ResolvedTask]) -> Result<(), Error> {
    tasks.iter().filter_map(|task| task.model.as_deref()).try_for_each(|one| reach.check_model(one))
}

fn check_models(
    coordinator: &Coordinator,
    directory: &Path,
    tasks: &[ResolvedTask],
) -> Result<(), Error> {
    let directory = directory.display().to_string();
    for model in tasks.iter().filter_map(|task| task.model.as_deref()) {
        let checked = coordinator.agents.check_model(Some(&directory), model);
        checked.map_err(|details| Error::Unusable { details: Box::new(details) })?;
    }
    let session = coordinator.session(SessionId::new(coordinator.now()));
    for profile in tasks.iter().filter_map(|task| task.permission_profile) {
        session.check_profile(profile)?;
    }
    Ok(())
}

/// What a plan and everything that it is made of is recognized by.
pub(super) fn digest(file: &PlanFile) -> String {
    let mut hash = Sha256::new();
    hash.update(serde_json::to_vec(&file.plan).unwrap_or_default());
    for (name, (_, text)) in &file.agent_files {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
    }
    hex(&hash.finalize()[..16])
}
