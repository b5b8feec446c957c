//! From configuration, `.mcp.json` and skills to the MCP servers of a task.
//!
//! Invariant: nothing that a project brings is started before a person has approved the file that says
//! so, as it is now (§15.13).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::id::TaskId;
use windlass_sandbox::{Host, Sandbox};
use windlass_skills::{Scope, Skills, regular};
use windlass_tools::mcp::{Definition, McpHost, Servers, joined, parse_file, parse_server};
use windlass_tools::{Notices, Registry};

use super::Environment;
use super::trust::ApprovableFile;
use crate::config::read::{MAX_FILE_BYTES, gone, nearest};
use crate::config::types::Placement;
use crate::config::{Config, File, Trust};
use crate::failure::Failure;

/// The servers that files, skills and the configuration name, before anybody asks which can be started.
#[derive(Debug, Default)]
pub struct Declared {
    definitions: Vec<Definition>,
    /// Those that start only when a person has approved the project's file that names them.
    waiting: Vec<Definition>,
    /// What is wrong with others.
    pub notices: Vec<String>,
}

/// The servers that may be started, and what the person should know of the others.
#[derive(Debug, Default)]
pub struct McpServers {
    pub definitions: Vec<Definition>,
    /// Those that wait for a person's approval.
    pub waiting: Vec<Definition>,
    /// Why others are not among them.
    pub notices: Vec<String>,
}

/// A project's list of servers.
pub fn project_file(workspace: &Path) -> PathBuf {
    nearest(workspace, ".mcp.json")
}

/// Where what servers say of themselves is kept.
pub fn pins(environment: &Environment) -> PathBuf {
    environment.data.join("mcp")
}

/// Where the servers that one task was given are kept.
fn task_file(environment: &Environment, task: TaskId) -> PathBuf {
    pins(environment).join("tasks").join(format!("{task}.json"))
}

/// Reads a list of servers that a person gives to one task; what is wrong with it is said at once.
pub fn given(environment: &Environment, path: &Path) -> Result<File, Failure> {
    let hint =
        "it is written as `.mcp.json` is: {\"mcpServers\": {\"NAME\": {\"command\": \"…\"}}}";
    let cannot = |why: String| Failure::usage(format!("`{}` {why}", path.display()), hint);
    let file = open(path).map_err(|error| cannot(format!("cannot be read: {error}")))?;
    let file = file.ok_or_else(|| cannot("does not exist".to_owned()))?;
    match parse_file(&file.text, &environment.variables).1.first() {
        Some(error) => Err(cannot(format!("holds no list of servers: {error}"))),
        None => Ok(file),
    }
}

/// Keeps them for the task, also when it is resumed (WF-032).
pub fn keep(environment: &Environment, task: TaskId, file: &File) -> std::io::Result<()> {
    let path = task_file(environment, task);
    std::fs::create_dir_all(path.parent().unwrap_or(&environment.data))?;
    std::fs::write(path, &file.text)
}

/// Gives the servers of one task to the task that continues it. One without any has none to give.
pub fn inherit(environment: &Environment, from: TaskId, to: TaskId) {
    let _ = std::fs::copy(task_file(environment, from), task_file(environment, to));
}

/// The servers for work in a directory that can be started.
pub fn found(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
    skills: &Skills,
) -> McpServers {
    declared(environment, config, workspace, skills).found(environment, None)
}

/// The servers for work in a directory: those of skills, of the project, of the configuration, the later
/// winning by name, so that a project cannot stand in for what the user has named (WF-033).
pub fn declared(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
    skills: &Skills,
) -> Declared {
    let mut reader = McpFiles { environment, workspace, waiting: Vec::new(), notices: Vec::new() };
    let of_skills = skill_files(skills)
        .into_iter()
        .flat_map(|(file, scope)| reader.read(&file, scope))
        .collect();
    let of_project = reader.read(&project_file(workspace), Scope::Project);
    let McpFiles { waiting, mut notices, .. } = reader;
    let mut of_config = Vec::new();
    for (name, table) in &config.mcp.servers.0 {
        match parse_server(name, table, &environment.variables) {
            Ok(definition) => of_config.extend(definition),
            Err(error) => notices.push(error.to_string()),
        }
    }
    Declared { definitions: joined([of_skills, of_project, of_config]), waiting, notices }
}

impl Declared {
    /// Those that can be started; what a task was given wins over all others.
    pub fn found(&self, environment: &Environment, task: Option<TaskId>) -> McpServers {
        let file = task.map(|task| task_file(environment, task));
        let mut reader = McpFiles {
            environment,
            workspace: Path::new(""),
            waiting: Vec::new(),
            notices: self.notices.clone(),
        };
        let of_task = file.map(|file| reader.read(&file, Scope::User));
        let mut notices = reader.notices;
        let mut definitions = joined([self.definitions.clone(), of_task.unwrap_or_default()]);
        definitions.retain(|definition| match missing(definition, &environment.variables) {
            None => true,
            Some(program) => {
                notices.push(format!(
                    "MCP server `{}` is not available: its program `{program}` is not installed",
                    definition.name
                ));
                false
            }
        });
        McpServers { definitions, waiting: self.waiting.clone(), notices }
    }
}

/// The `mcp.json` of each skill that has one (MS-151).
pub fn skill_files(skills: &Skills) -> Vec<(PathBuf, Scope)> {
    let file = |skill: &windlass_skills::Skill| {
        let path = skill.folder()?.join("mcp.json");
        path.is_file().then_some((path, skill.scope))
    };
    skills.list().filter_map(file).collect()
}

/// Reads lists of servers.
struct McpFiles<'a> {
    environment: &'a Environment,
    workspace: &'a Path,
    waiting: Vec<Definition>,
    notices: Vec<String>,
}

impl McpFiles<'_> {
    fn read(&mut self, path: &Path, scope: Scope) -> Vec<Definition> {
        let file = match open(path) {
            Ok(Some(file)) => file,
            Ok(None) => return Vec::new(),
            Err(error) => {
                self.notices.push(format!("`{}` cannot be read: {error}", path.display()));
                return Vec::new();
            }
        };
        let (definitions, errors) = parse_file(&file.text, &self.environment.variables);
        let entry = (scope == Scope::Project).then(|| ApprovableFile::new(self.workspace, file));
        if let Some(entry) =
            entry.filter(|entry| entry.trust(&self.environment.data) == Trust::Unknown)
        {
            let why = match entry.changes(&self.environment.data).as_slice() {
                [] => format!("`{}` is not approved", path.display()),
                changed => format!(
                    "`{}` is not approved any more ({} changed)",
                    path.display(),
                    changed.join(", ")
                ),
            };
            self.notices.push(format!(
                "{why}, so its MCP servers do not start; look at it with `windlass trust`"
            ));
            self.waiting.extend(definitions);
            return Vec::new();
        }
        self.notices.extend(errors.iter().map(|error| format!("`{}`: {error}", path.display())));
        definitions
    }
}

/// A file's text, if it is there.
pub fn open(path: &Path) -> std::io::Result<Option<File>> {
    match regular::read_text(path, MAX_FILE_BYTES) {
        Ok(text) => Ok(Some(File { path: path.to_owned(), text })),
        Err(error) if gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The program that a server needs and that is not here (WF-034).
pub fn missing(definition: &Definition, env: &BTreeMap<String, String>) -> Option<String> {
    let program = definition.program()?;
    let found = if program.contains('/') {
        // A relative path is one of the workspace, which only the sandbox knows.
        !program.starts_with('/') || Path::new(program).exists()
    } else {
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        std::env::split_paths(path).any(|directory| directory.join(program).is_file())
    };
    (!found).then(|| program.to_owned())
}

/// Where servers over stdio run: in the task's sandbox, or beside us where the user says so.
pub fn host(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
    sandbox: &Arc<dyn Sandbox>,
    notices: Notices,
) -> Result<McpHost, windlass_sandbox::Error> {
    let sandbox: Arc<dyn Sandbox> = match config.mcp.placement {
        Placement::Sandbox => Arc::clone(sandbox),
        Placement::Host => {
            let env: Vec<_> = environment.variables.clone().into_iter().collect();
            let (data, workspace) = (environment.data.clone(), workspace.to_owned());
            Arc::new(Host::new(data, workspace, &env, &super::place::key_names())?)
        }
    };
    Ok(McpHost { sandbox, pins: pins(environment), notices })
}

/// Adds every server's tools to a task's. A missing server is reported, and the others stay (WF-035).
pub async fn equip(registry: &mut Registry, found: McpServers, host: &McpHost) {
    for notice in &found.notices {
        tracing::warn!("{notice}");
    }
    let servers = Servers::new(found.definitions, host);
    let (tools, mut missing) = servers.tools().await;
    for tool in tools {
        if let Err(error) = registry.add(tool) {
            missing.push(error.to_string());
        }
    }
    for why in missing {
        tracing::warn!("{why}");
        host.notices.add(why);
    }
}
