//! From configuration, `.mcp.json` and skills to the MCP servers of a task.
//!
//! Invariant: nothing that a project brings is started before a person has approved the file that says
//! so, as it is now (§15.13).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Url;
use windlass_core::id::TaskId;
use windlass_sandbox::{Host, Sandbox};
use windlass_skills::{Scope, Skills, regular};
use windlass_tools::mcp::{
    ApprovalCheck, Definition, McpHost, Servers, Transport, merge_layers, parse_file, parse_server,
};
use windlass_tools::{Notices, Registry};

use super::Environment;
use super::trust::ApprovableFile;
use crate::config::read::{MAX_FILE_BYTES, is_missing, nearest};
use crate::config::types::Placement;
use crate::config::{Config, File, Trust, keys};
use crate::failure::Failure;

/// The servers that files, skills and the configuration name, before anybody asks which can be started.
#[derive(Debug, Default)]
pub struct McpDeclarations {
    definitions: Vec<Definition>,
    /// Those that start only when a person has approved the project's file that names them.
    waiting: Vec<Definition>,
    /// What is wrong with others.
    pub notices: Vec<String>,
    /// Whether a list of servers, or an entry in it, is not as it must be written.
    has_errors: bool,
}

/// The servers that may be started, and what the person should know of the others.
#[derive(Debug, Default)]
pub struct McpServers {
    pub definitions: Vec<Definition>,
    /// Those that wait for a person's approval.
    pub waiting: Vec<Definition>,
    /// Why others are not among them.
    pub notices: Vec<String>,
    /// Whether a list of servers, or an entry in it, is not as it must be written.
    pub has_errors: bool,
}

impl McpServers {
    /// The keys that the servers are given, whichever file names them.
    pub fn keys(&self) -> Vec<(String, String)> {
        self.definitions.iter().flat_map(keys_of).collect()
    }
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
pub fn read_task_servers(environment: &Environment, path: &Path) -> Result<File, Failure> {
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

/// Why a person cannot approve a project's list of servers.
pub fn problem_of(environment: &Environment, file: &File) -> Option<String> {
    let name = file.path.file_name().and_then(|name| name.to_str());
    let is_list = matches!(name, Some(".mcp.json" | "mcp.json"));
    let errors = || parse_file(&file.text, &environment.variables).1;
    let mut errors = is_list.then(errors).unwrap_or_default().into_iter();
    errors.find(|error| error.server.is_none()).map(|error| error.to_string())
}

/// Keeps them for the task, also when it is resumed (WF-032).
pub fn keep(environment: &Environment, task: TaskId, file: &File) -> std::io::Result<()> {
    let path = task_file(environment, task);
    std::fs::create_dir_all(path.parent().unwrap_or(&environment.data))?;
    std::fs::write(path, &file.text)
}

/// Gives the servers of one task, if it has any, to the task that continues it.
pub fn inherit(environment: &Environment, from: TaskId, to: TaskId) {
    let _ = std::fs::copy(task_file(environment, from), task_file(environment, to));
}

/// The servers for work in a directory that can be started.
pub fn startable_servers(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
    skills: &Skills,
) -> McpServers {
    find_declarations(environment, config, workspace, skills).startable(environment, None)
}

/// The servers for work in a directory: those of skills, of the project, of the configuration, the later
/// winning by name, so that a project cannot stand in for what the user has named (WF-033).
pub fn find_declarations(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
    skills: &Skills,
) -> McpDeclarations {
    let mut reader = McpFiles::new(environment, workspace);
    let of_skills = skill_files(skills)
        .into_iter()
        .flat_map(|(file, scope)| reader.read(&file, scope))
        .collect();
    let of_project = reader.read(&project_file(workspace), Scope::Project);
    let McpFiles { waiting, mut notices, mut has_errors, .. } = reader;
    let mut of_config = Vec::new();
    let by_project = approved_configuration(environment, workspace);
    for (name, table) in &config.mcp.servers.0 {
        let by_project = by_project.as_ref().filter(|(names, _)| names.contains(name));
        let approval = by_project.map(|(_, check)| check.clone());
        match parse_server(name, table, &environment.variables) {
            Ok(definition) => {
                of_config.extend(definition.map(|one| Definition { approval, ..one }));
            }
            Err(error) => {
                has_errors = true;
                notices.push(error.to_string());
            }
        }
    }
    let definitions = merge_layers([of_skills, of_project, of_config]);
    McpDeclarations { definitions, waiting, notices, has_errors }
}

/// The keys that servers of the configuration are given.
pub fn keys(environment: &Environment, config: &Config) -> Vec<(String, String)> {
    let servers = config.mcp.servers.0.iter();
    let servers = servers.filter_map(|(name, table)| {
        parse_server(name, table, &environment.variables).ok().flatten()
    });
    servers.flat_map(|server| keys_of(&server)).collect()
}

/// The keys that a server is given: in variables, headers, flags and its address.
fn keys_of(server: &Definition) -> Vec<(String, String)> {
    let given = match &server.transport {
        Transport::Stdio { args, env, .. } => [env.clone(), values_of_flags(args)].concat(),
        Transport::Http { url, headers } => [headers.clone(), values_in_address(url)].concat(),
    };
    given.iter().flat_map(|(name, value)| keys::find_in_text(name, value)).collect()
}

/// What a server's program is given by flags that name a key: `--token VALUE`, `--api-key=VALUE`.
fn values_of_flags(args: &[String]) -> Vec<(String, String)> {
    let after = args.iter().skip(1).map(String::as_str).chain([""]);
    let flags = args.iter().zip(after).filter(|(flag, _)| flag.starts_with('-'));
    let given = flags.map(|(flag, next)| flag.split_once('=').unwrap_or((flag.as_str(), next)));
    let given = given.map(|(flag, value)| (flag.trim_start_matches('-'), value));
    let given = given.filter(|(flag, _)| keys::names_key(flag));
    given.map(|(flag, value)| (flag.to_owned(), value.to_owned())).collect()
}

/// What the address of a server holds beside its host: the values of a query, and a password.
fn values_in_address(address: &str) -> Vec<(String, String)> {
    let Ok(url) = Url::parse(address) else { return Vec::new() };
    let pairs = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned()));
    pairs.chain(keys::find_in_address("password", &url)).collect()
}

/// The names of the servers that the project's own configuration has, where it is approved, and the check for them.
fn approved_configuration(
    environment: &Environment,
    workspace: &Path,
) -> Option<(Vec<String>, ApprovalCheck)> {
    let path = crate::config::read::project_file(workspace);
    let file = open(&path).ok().flatten()?;
    let document = file.text.parse::<toml::Table>().ok()?;
    let names = document.get("mcp")?.get("servers")?.as_table()?.keys().cloned().collect();
    check_approval(&environment.data, workspace, file).ok()?;
    Some((names, approval_check(&environment.data, workspace, &path)))
}

impl McpDeclarations {
    /// Those that can be started; what a task was given wins over all others.
    pub fn startable(&self, environment: &Environment, task: Option<TaskId>) -> McpServers {
        let file = task.map(|task| task_file(environment, task));
        let mut reader = McpFiles {
            notices: self.notices.clone(),
            has_errors: self.has_errors,
            ..McpFiles::new(environment, Path::new(""))
        };
        let of_task = file.map(|file| reader.read(&file, Scope::User));
        let (mut notices, has_errors) = (reader.notices, reader.has_errors);
        let mut definitions = merge_layers([self.definitions.clone(), of_task.unwrap_or_default()]);
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
        McpServers { definitions, waiting: self.waiting.clone(), notices, has_errors }
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
    /// Whether something in them is wrong.
    has_errors: bool,
}

impl<'a> McpFiles<'a> {
    fn new(environment: &'a Environment, workspace: &'a Path) -> Self {
        let (waiting, notices) = (Vec::new(), Vec::new());
        Self { environment, workspace, waiting, notices, has_errors: false }
    }

    fn read(&mut self, path: &Path, scope: Scope) -> Vec<Definition> {
        let file = match open(path) {
            Ok(Some(file)) => file,
            Ok(None) => return Vec::new(),
            Err(error) => {
                self.has_errors = true;
                self.notices.push(format!("`{}` cannot be read: {error}", path.display()));
                return Vec::new();
            }
        };
        let (mut definitions, errors) = parse_file(&file.text, &self.environment.variables);
        self.has_errors |= !errors.is_empty();
        self.notices.extend(errors.iter().map(|error| format!("`{}`: {error}", path.display())));
        if scope == Scope::Project {
            if let Err(why) = check_approval(&self.environment.data, self.workspace, file) {
                self.notices.push(format!(
                    "{why}, so its MCP servers do not start; look at it with `windlass trust`"
                ));
                self.waiting.extend(definitions);
                return Vec::new();
            }
            let check = approval_check(&self.environment.data, self.workspace, path);
            for definition in &mut definitions {
                definition.approval = Some(check.clone());
            }
        }
        definitions
    }
}

/// Why a project's file is not approved as it is now, with what it runs.
fn check_approval(data: &Path, workspace: &Path, file: File) -> Result<(), String> {
    let entry = ApprovableFile::new(workspace, file);
    if entry.trust(data) == Trust::Approved {
        return Ok(());
    }
    let path = entry.file.path.display();
    if entry.leaves_project() {
        return Err(format!("`{path}` leads out of the project"));
    }
    Err(match entry.changes(data).as_slice() {
        [] => format!("`{path}` is not approved"),
        changed => format!("`{path}` is no longer approved ({} changed)", changed.join(", ")),
    })
}

/// Reads a project's file again before each start of a server that it names.
fn approval_check(data: &Path, workspace: &Path, path: &Path) -> ApprovalCheck {
    let (data, workspace, path) = (data.to_owned(), workspace.to_owned(), path.to_owned());
    ApprovalCheck::new(move || {
        let shown = path.display();
        let checked = match open(&path) {
            Ok(Some(file)) => check_approval(&data, &workspace, file),
            Ok(None) => Err(format!("`{shown}` is gone")),
            Err(error) => Err(format!("`{shown}` cannot be read: {error}")),
        };
        checked.map_err(|why| format!("{why}; a person can look at it with `windlass trust`"))
    })
}

/// A file's text, if it is there.
pub fn open(path: &Path) -> std::io::Result<Option<File>> {
    match regular::read_text(path, MAX_FILE_BYTES) {
        Ok(text) => Ok(Some(File { path: path.to_owned(), text })),
        Err(error) if is_missing(&error) => Ok(None),
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
