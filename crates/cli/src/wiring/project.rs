//! What a directory brings to the work in it: configuration, models, skills and MCP servers.
//!
//! Invariants:
//! - Each part is read when it is first needed, and then kept.
//! - `run` makes one project at its start and keeps it to its end, so a file that changes meanwhile counts
//!   from the next start. A service makes one for each segment of a task. Skills alone are followed while
//!   they change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use windlass_agent::ContractInForce;
use windlass_core::error::ErrorDetails;
use windlass_core::reasoning::Effort;
use windlass_model::Model;
use windlass_skills::SkillRegistry;

use super::{Environment, contract, mcp, models, skills};
use crate::config::{Config, ModelSelection};
use crate::failure::Failure;

/// The models that were opened, by name and effort.
type OpenModels = BTreeMap<(String, Option<Effort>), Arc<dyn Model>>;

/// A directory's configuration, and what else is read for work in it.
pub struct Project {
    environment: Environment,
    /// As the person named it, for messages.
    workspace: PathBuf,
    /// The same without links, as tasks name it.
    directory: PathBuf,
    config: Config,
    /// What must hold before work in it is done.
    contract: Option<Arc<ContractInForce>>,
    models: Mutex<OpenModels>,
    skills: OnceLock<SkillRegistry>,
    servers: OnceLock<mcp::McpDeclarations>,
}

impl Project {
    /// Loads the configuration for work in a directory.
    pub fn load(environment: Environment, workspace: &Path) -> Result<Self, Failure> {
        Ok(Self {
            config: environment.config(workspace)?,
            contract: contract::load(&environment, workspace)?,
            environment,
            workspace: workspace.to_owned(),
            directory: skills::real_path(workspace),
            models: Mutex::default(),
            skills: OnceLock::new(),
            servers: OnceLock::new(),
        })
    }

    /// Whether a task that works in this directory belongs to it.
    pub fn is_at(&self, directory: &Path) -> bool {
        self.directory == directory
    }

    /// Its directory, without links in its path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its configuration, before a task's own wishes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What must hold before work in it is done.
    pub fn contract(&self) -> Option<&Arc<ContractInForce>> {
        self.contract.as_ref()
    }

    /// A model, ready to be asked. A task's wishes choose the model, not how it is asked, so tasks share it.
    pub fn model(&self, chosen: &ModelSelection) -> Result<Arc<dyn Model>, ErrorDetails> {
        let key = (chosen.model.to_string(), chosen.effort);
        let mut opened = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = opened.get(&key) {
            return Ok(Arc::clone(model));
        }
        let model = models::open(&self.config, chosen)?;
        opened.insert(key, Arc::clone(&model));
        Ok(model)
    }

    /// Its skills, followed while they change.
    pub fn skills(&self) -> Result<&SkillRegistry, ErrorDetails> {
        if let Some(registry) = self.skills.get() {
            return Ok(registry);
        }
        let registry = skills::registry(&self.environment, &self.workspace, None)?;
        Ok(self.skills.get_or_init(|| registry))
    }

    /// The MCP servers that its files and its skills name.
    pub fn servers(&self) -> Result<&mcp::McpDeclarations, ErrorDetails> {
        let skills = self.skills()?.current();
        let read =
            || mcp::find_declarations(&self.environment, &self.config, &self.workspace, &skills);
        Ok(self.servers.get_or_init(read))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::ModelChoice;

    const SERVERS: &str = r#"{"mcpServers": {"notes": {"url": "http://localhost:1/mcp"}}}"#;

    #[test]
    fn a_project_reads_each_file_once() {
        let room = tempfile::tempdir().unwrap();
        let workspace = room.path().join("work");
        let script = room.path().join("replies.yaml");
        fs::create_dir_all(workspace.join(".windlass")).unwrap();
        fs::write(&script, "replies: [{say: hello}]").unwrap();
        fs::write(workspace.join(".windlass/config.toml"), "[agent]\nmax_iterations = 7\n")
            .unwrap();
        fs::write(workspace.join(".mcp.json"), SERVERS).unwrap();
        let environment = Environment {
            variables: BTreeMap::from([("HOME".to_owned(), room.path().display().to_string())]),
            ..Environment::new(Some(room.path().join("data"))).unwrap()
        };
        let project = Project::load(environment, &workspace).unwrap();
        let choice = ModelSelection::from(ModelChoice::Script(script.clone()));
        let model = project.model(&choice).unwrap();
        let notices = project.servers().unwrap().notices.clone();
        assert!(notices.len() == 1 && notices[0].contains("is not approved"), "{notices:?}");

        fs::remove_file(&script).unwrap();
        fs::remove_file(workspace.join(".mcp.json")).unwrap();
        fs::write(workspace.join(".windlass/config.toml"), "broken").unwrap();
        assert!(Arc::ptr_eq(&model, &project.model(&choice).unwrap()));
        assert_eq!(project.servers().unwrap().notices, notices);
        assert!(std::ptr::eq(project.skills().unwrap(), project.skills().unwrap()));
        assert_eq!(project.config().agent.max_iterations, 7);
        assert!(project.is_at(&workspace.canonicalize().unwrap()));
    }
}
