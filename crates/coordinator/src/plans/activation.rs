//! Activating a plan: finding exactly what it names, and keeping what each of its tasks may use.

use std::path::Path;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use windlass_core::id::{PlanId, SessionId};
use windlass_plan::{ResolvedTask, check_prompts, resolve};
use windlass_store::PlanRow;

use super::{PlanFile, Plans};
use crate::Error;

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
    /// What a person should know.
    pub notices: Vec<String>,
}

impl Plans<'_> {
    /// Makes a plan the active one of its project. Everything that it names exists then, and nothing else loads.
    pub async fn activate(
        self,
        directory: &Path,
        named: Option<&str>,
        by: &str,
    ) -> Result<Activation, Error> {
        let file = self.read(directory, named)?;
        let prompts = check_prompts(&file.plan, &file.document);
        if !prompts.is_empty() {
            return Err(windlass_plan::Problems(prompts).into());
        }
        let there = self.coordinator.agents.capabilities(directory);
        let there = there.map_err(|details| Error::Unusable { details: Box::new(details) })?;
        let (needs, tasks) = resolve(&file.plan, &file.document, &file.agents, &there)?;
        self.check_trust(directory, &file)?;
        self.check_models(directory, &tasks)?;
        let row = self.row(&file, &tasks, by)?;
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
            notices,
        };
        self.coordinator.store.planning().activate(row).await?;
        Ok(activation)
    }

    /// A model, a profile and MCP servers count only where a person has approved the file that names them.
    fn check_trust(self, directory: &Path, file: &PlanFile) -> Result<(), Error> {
        let agents = self.coordinator.agents.as_ref();
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

    fn check_models(self, directory: &Path, tasks: &[ResolvedTask]) -> Result<(), Error> {
        let directory = directory.display().to_string();
        for model in tasks.iter().filter_map(|task| task.model.as_deref()) {
            let checked = self.coordinator.agents.check_model(Some(&directory), model);
            checked.map_err(|details| Error::Unusable { details: Box::new(details) })?;
        }
        let session = self.coordinator.session(SessionId::new(self.coordinator.now()));
        for profile in tasks.iter().filter_map(|task| task.permission_profile) {
            session.check_profile(profile)?;
        }
        Ok(())
    }

    fn row(self, file: &PlanFile, tasks: &[ResolvedTask], by: &str) -> Result<PlanRow, Error> {
        let project = file.project.display().to_string();
        let id = PlanId::derived(&project, &file.plan.id);
        let digest = digest(file);
        let before = self.get(id)?;
        let session = match before {
            Some(before) => self.kept_session(&before, &digest)?,
            None => None,
        };
        Ok(PlanRow {
            id,
            name: file.plan.id.clone(),
            project,
            path: file.path.display().to_string(),
            title: file.plan.title.clone(),
            digest,
            manifest: serde_json::to_string(&file.plan).unwrap_or_default(),
            tasks: serde_json::to_string(tasks).unwrap_or_default(),
            is_active: true,
            session,
            activated_at: self.coordinator.now(),
            activated_by: by.to_owned(),
        })
    }

    /// The run that a plan continues when it is activated again: one of the same plan that has not ended. A run of
    /// another version must have ended.
    fn kept_session(self, before: &PlanRow, digest: &str) -> Result<Option<SessionId>, Error> {
        let Some(session) = before.session else { return Ok(None) };
        let rows = self.coordinator.store.planning().tasks(before.id, session)?;
        let Some(live) = rows.iter().find(|row| !row.status.is_terminal()) else { return Ok(None) };
        match before.digest == digest {
            true => Ok(Some(session)),
            false => Err(Error::Working { task: live.task }),
        }
    }
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
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
