//! The agents of this program: what each task's agent is made from, and what a project brings to it.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::broadcast;
use windlass_agent::{Parts, Preview};
use windlass_coordinator::health::{Check, FixReport, RepairPolicy};
use windlass_coordinator::plans::Capabilities;
use windlass_coordinator::skill_proposals::SkillPolicy;
use windlass_coordinator::{AgentFactory, BoxFuture, ExpandedSkill, SkillCommand};
use windlass_core::axes::{Axes, ModelMode};
use windlass_core::command::ExecutionConfig;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::WorkflowSource;
use windlass_core::layout::Site;
use windlass_core::state::TaskState;
use windlass_model::Model;
use windlass_skills::{Skills, Viewer};
use windlass_store::Store;
use windlass_workflow::RunnerPlace;
use windlass_workflow::runner::Runner;

use super::equipment::Equipment;
use super::{Environment, Project, health, models, place, plans, trust, workflows};
use crate::config::{File, ModelSelection, Trust};
use crate::failure::Failure;

/// Gives agents what they work with.
pub(super) struct WiredAgents {
    pub(super) environment: Environment,
    pub(super) store: Store,
    /// What was loaded at the start, where this process works in one directory.
    project: Option<Arc<Project>>,
}

impl WiredAgents {
    pub(super) fn new(
        environment: Environment,
        store: Store,
        project: Option<Arc<Project>>,
    ) -> Self {
        Self { environment, store, project }
    }

    /// What the directory of a task brings: as it was loaded at the start, else as it is now.
    pub(super) fn project(&self, directory: &Path) -> Result<Arc<Project>, Failure> {
        match &self.project {
            Some(project) if project.is_at(directory) => Ok(Arc::clone(project)),
            _ => Ok(Arc::new(Project::load(self.environment.clone(), directory)?)),
        }
    }

    /// The model that routes messages: its own, else the fast one.
    fn routing_model(&self) -> Result<Arc<dyn Model>, ErrorDetails> {
        let config = self.environment.config(Path::new(".")).map_err(misconfigured)?;
        let choice = match &config.coordinator.router_model {
            Some(choice) => ModelSelection::from(choice.clone()),
            None => config
                .models
                .for_mode(ModelMode::Fast)
                .map_err(|errors| misconfigured(errors.into()))?,
        };
        models::open(&config, &choice)
    }

    /// The skills of a directory as they are now.
    fn skills(&self, directory: Option<&str>) -> Skills {
        super::skills::now(&self.environment, Path::new(directory.unwrap_or("/")))
    }
}

impl AgentFactory for WiredAgents {
    fn make<'a>(
        &'a self,
        task: &'a TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> BoxFuture<'a, Result<Parts, ErrorDetails>> {
        Box::pin(async move {
            let project =
                self.project(Path::new(&task.created.workspace)).map_err(misconfigured)?;
            Equipment::new(&self.environment, &self.store, project, task)?.parts(previews).await
        })
    }

    fn site(&self, directory: &Path) -> Site {
        place::site(&self.environment, directory)
    }

    fn expand(
        &self,
        directory: Option<&str>,
        axes: &Axes,
        text: &str,
    ) -> Result<Option<ExpandedSkill>, ErrorDetails> {
        if !text.trim_start().starts_with('/') {
            return Ok(None);
        }
        let skills = self.skills(directory);
        let invoked = windlass_skills::invoke(text, &skills, Viewer::of(axes)).transpose();
        let expanded = |found: windlass_skills::Invocation| ExpandedSkill {
            goal: found.text,
            message: found.message,
        };
        invoked.map(|found| found.map(expanded)).map_err(|error| {
            ErrorDetails::new(ErrorType::InvalidCommand, error.to_string())
                .with_remedy(Remedy::SeeSkills)
        })
    }

    fn skill_commands(&self, directory: Option<&str>) -> Result<Vec<SkillCommand>, ErrorDetails> {
        let skills = self.skills(directory);
        let callable = skills.list().filter(|skill| skill.meta.user_invocable);
        let command = |skill: &windlass_skills::Skill| SkillCommand {
            name: skill.meta.name.clone(),
            description: skill.meta.description.clone(),
        };
        Ok(callable.map(command).collect())
    }

    fn check_model(&self, directory: Option<&str>, name: &str) -> Result<String, ErrorDetails> {
        let project = self.project(Path::new(directory.unwrap_or("/"))).map_err(misconfigured)?;
        let wishes = ExecutionConfig { model: Some(name.to_owned()), ..Default::default() };
        let refused = |errors: crate::config::ConfigErrors| misconfigured(errors.into());
        let config = project.config().for_task(&wishes).map_err(refused)?;
        let choice = config.models.for_mode(ModelMode::Smart).map_err(refused)?;
        project.model(&choice)?;
        Ok(choice.model.to_string())
    }

    fn capabilities(&self, directory: &Path) -> Result<Capabilities, ErrorDetails> {
        let project = self.project(directory).map_err(misconfigured)?;
        plans::capabilities(&self.environment, &project)
    }

    fn is_trusted(&self, directory: &Path, path: &Path, text: &str) -> bool {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        trust::of(&self.environment.data, directory, &file) == Trust::Approved
    }

    fn checks<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(health::checks(&self.environment, directory))
    }

    fn dispatch_checks(&self, directory: &Path) -> Vec<Check> {
        health::dispatch_checks(directory)
    }

    fn fix<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Vec<FixReport>> {
        Box::pin(health::fix(&self.environment, directory))
    }

    fn repair_policy(&self, directory: &Path) -> RepairPolicy {
        health::repair_policy(&self.environment, directory)
    }

    fn is_workflow_approved(&self, directory: &Path, file: &Path) -> bool {
        workflows::is_approved(&self.environment, directory, file)
    }

    fn is_source_approved(&self, directory: &Path, source: &WorkflowSource) -> bool {
        workflows::is_source_approved(&self.environment, directory, source)
    }

    fn approve_workflow(
        &self,
        directory: &Path,
        source: &WorkflowSource,
    ) -> Result<(), ErrorDetails> {
        workflows::approve(&self.environment, directory, source)
    }

    fn skill_policy(&self, directory: &Path) -> SkillPolicy {
        let config = self.environment.config(directory);
        config.map_or(SkillPolicy::Propose, |config| config.policy.skill_proposals)
    }

    fn reasoning_model(&self, directory: &Path) -> Result<Option<Arc<dyn Model>>, ErrorDetails> {
        let project = self.project(directory).map_err(misconfigured)?;
        if !project.config().agent.reasoning_assist {
            return Ok(None);
        }
        let choice = project.config().models.for_mode(ModelMode::Fast);
        project.model(&choice.map_err(|errors| misconfigured(errors.into()))?).map(Some)
    }

    fn default_budget(&self, directory: &Path) -> Option<f64> {
        self.project(directory).ok()?.config().agent.budget_usd
    }

    fn runners(&self, directory: &Path) -> Vec<String> {
        self.configured_runners(directory)
    }

    fn check_runner<'a>(
        &'a self,
        directory: &'a Path,
        name: &'a str,
    ) -> BoxFuture<'a, Result<(), ErrorDetails>> {
        Box::pin(self.check_runner_in(directory, name))
    }

    fn runner(
        &self,
        directory: &Path,
        name: &str,
        command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        self.runner_in(directory, name, command)
    }

    fn runner_place<'a>(
        &'a self,
        task: &'a TaskState,
    ) -> BoxFuture<'a, Result<RunnerPlace, ErrorDetails>> {
        Box::pin(self.place_for_runner(task))
    }

    fn router(&self) -> BoxFuture<'_, Result<Arc<dyn Model>, ErrorDetails>> {
        Box::pin(std::future::ready(self.routing_model()))
    }
}

pub(super) fn misconfigured(failure: Failure) -> ErrorDetails {
    let details = ErrorDetails::new(ErrorType::InvalidCommand, failure.error.to_string());
    match failure.hint {
        // It names settings, which are the same for every surface.
        Some(hint) => details.with_hint(hint),
        None => details.with_remedy(Remedy::CheckConfiguration),
    }
}
