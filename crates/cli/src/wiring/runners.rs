//! From `[runners]` to the programs that work on steps of workflows.
//!
//! Invariant: a program gets of a person's keys and servers only what their own file names for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Driver, TaskCreated, WorkflowPart};
use windlass_core::id::TaskId;
use windlass_core::layout::TASKS_DIRECTORY;
use windlass_core::state::TaskState;
use windlass_sandbox::Exit;
use windlass_tools::mcp::{Definition, Transport};
use windlass_workflow::RunnerPlace;
use windlass_workflow::runner::{Claude, Codex, Command, Runner, how_to_install};

use super::place::TaskDirectories;
use super::wired_agents::{WiredAgents, misconfigured};
use super::{Environment, hide_everywhere, sandbox};
use crate::config::{Config, keys};

/// What `[runners.programs.NAME]` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Program {
    program: Option<String>,
    args: Vec<String>,
    /// Variables of the person that it gets, by name.
    env: Vec<String>,
    /// Variables with their values.
    set: BTreeMap<String, String>,
    /// Servers as `HOST:PORT`.
    pub reach: Vec<String>,
}

impl Program {
    /// What is configured for a runner of this name; nothing where it is not mentioned.
    pub fn of(config: &Config, name: &str) -> Result<Self, ErrorDetails> {
        let Some(table) = config.runners.programs.0.get(name) else { return Ok(Self::default()) };
        let wrong = |why: String| {
            let message = format!("`[runners.programs.{name}]` in your configuration file: {why}");
            ErrorDetails::new(ErrorType::InvalidCommand, message)
        };
        let program: Self =
            serde_json::from_value(table.clone()).map_err(|error| wrong(error.to_string()))?;
        let has_port = |server: &&String| {
            server
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        match program.reach.iter().find(|server| !has_port(server)) {
            Some(server) => Err(wrong(format!("`{server}` in `reach` is not `HOST:PORT`"))),
            None => Ok(program),
        }
    }

    /// The runner of this name. `command` is what a workflow says of one; what the person has configured counts more.
    pub fn runner(
        self,
        name: &str,
        command: Option<&[String]>,
        config: &Config,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        match (name, self.program, command) {
            ("claude", program, _) => {
                let program = program.unwrap_or_else(|| name.to_owned());
                Ok(Arc::new(Claude { program, arguments: self.args }))
            }
            ("codex", program, _) => {
                let program = program.unwrap_or_else(|| name.to_owned());
                Ok(Arc::new(Codex { program, arguments: self.args }))
            }
            (_, Some(program), _) => {
                let argv = std::iter::once(program).chain(self.args).collect();
                Ok(Arc::new(Command { name: name.to_owned(), argv }))
            }
            (_, None, Some(command)) => {
                Ok(Arc::new(Command { name: name.to_owned(), argv: command.to_vec() }))
            }
            (_, None, None) => {
                let own = program_names(config);
                let known = match own.is_empty() {
                    true => "and ".to_owned(),
                    false => format!("you have configured `{}`, and ", own.join("`, `")),
                };
                let message = format!(
                    "there is no runner `{name}`; `windlass`, `claude` and `codex` are built in, {known}\
                     `[runners.programs.{name}]` with `program` in your configuration file makes another"
                );
                Err(ErrorDetails::new(ErrorType::InvalidCommand, message))
            }
        }
    }

    /// The variables that it gets. A server of this machine is reached through the sandbox's proxy, which programs
    /// otherwise pass by for loopback.
    pub fn environment(&self, environment: &Environment) -> Vec<(String, String)> {
        let own = self.env.iter().filter_map(|name| environment.variables.get_key_value(name));
        let given = own.chain(&self.set).map(|(name, value)| (name.clone(), value.clone()));
        let through_proxy = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new()));
        let through_proxy = through_proxy.into_iter().filter(|_| !self.reach.is_empty());
        through_proxy.chain(given).collect()
    }

    /// The keys among them: what it prints is journaled.
    pub fn keys(&self, environment: &Environment) -> Vec<(String, String)> {
        let given = self.environment(environment);
        given.iter().flat_map(|(name, value)| keys::find_in_text(name, value)).collect()
    }
}

/// The names under which a configuration has programs of its own.
fn program_names(config: &Config) -> Vec<String> {
    let programs = config.runners.programs.0.iter();
    let named = programs.filter(|(_, table)| table.get("program").is_some());
    named.map(|(name, _)| name.clone()).collect()
}

/// Whether the sandbox finds a program.
const FIND: &str = r#"command -v -- "$PROGRAM""#;

impl WiredAgents {
    /// The runners that the configuration for a directory makes, by name.
    pub(super) fn configured_runners(&self, directory: &Path) -> Vec<String> {
        let Ok(project) = self.project(directory) else { return Vec::new() };
        program_names(project.config())
    }

    /// Why a runner cannot work in a directory: its name is unknown, or the sandbox does not have its program.
    pub(super) async fn check_runner_in(
        &self,
        directory: &Path,
        name: &str,
    ) -> Result<(), ErrorDetails> {
        let project = self.project(directory).map_err(misconfigured)?;
        let program = Program::of(project.config(), name)?;
        let named = program.program.clone().unwrap_or_else(|| name.to_owned());
        program.runner(name, None, project.config())?;
        // A path from here may be made by the set-up of the worktree.
        if Path::new(&named).is_relative() && named.contains('/') {
            return Ok(());
        }
        let id = TaskId::new(jiff::Timestamp::now());
        // The sandbox shows a task its trace, so there has to be one.
        let trace = self.environment.data.join("traces").join(id.to_string());
        let _ = std::fs::create_dir_all(&trace);
        let sandbox = sandbox::open(&self.environment, project.config(), directory, id).await?;
        let command = windlass_sandbox::Command {
            env: vec![("PROGRAM".to_owned(), named.clone())],
            ..windlass_sandbox::Command::script(id.to_string(), FIND, sandbox.isolation().workspace)
        };
        let found = match sandbox.start(command).await {
            Ok(running) => running.wait().await.exit == Exit::Code(0),
            // The run itself says what is wrong with the sandbox.
            Err(_) => true,
        };
        sandbox.stop().await;
        let _ = std::fs::remove_dir(&trace);
        match found {
            true => Ok(()),
            false => Err(ErrorDetails::new(ErrorType::InvalidCommand, how_to_install(&named))),
        }
    }

    /// The runner of this name for steps in a directory.
    pub(super) fn runner_in(
        &self,
        directory: &Path,
        name: &str,
        command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        let project = self.project(directory).map_err(misconfigured)?;
        Program::of(project.config(), name)?.runner(name, command, project.config())
    }

    /// The sandbox of a task that another program works on, and what the program gets there.
    pub(super) async fn place_for_runner(
        &self,
        task: &TaskState,
    ) -> Result<RunnerPlace, ErrorDetails> {
        let directory = Path::new(&task.created.workspace);
        let project = self.project(directory).map_err(misconfigured)?;
        let config = project
            .config()
            .for_task(&task.execution_config())
            .map_err(|errors| misconfigured(errors.into()))?;
        let program = match task.created.workflow.as_deref() {
            Some(WorkflowPart::Program { runner, .. }) => Program::of(&config, runner)?,
            Some(WorkflowPart::Run(_) | WorkflowPart::Script(_) | WorkflowPart::Agent { .. })
            | None => Program::default(),
        };
        let lease = match task.created.driver {
            Driver::Foreground => None,
            Driver::Service => Some(config.coordinator.task_lease_ms),
        };
        let environment = program.environment(&self.environment);
        let keys = program.keys(&self.environment);
        let placed = TaskDirectories::of_task(&task.created);
        let (id, reach) = (task.id(), program.reach);
        let opened =
            sandbox::open_for_runner(&self.environment, &config, &placed, id, lease, reach).await?;
        let found = project.servers()?.startable(&self.environment, Some(task.created.root));
        hide_everywhere(&self.store, &[keys, found.keys()].concat());
        let workspace = opened.isolation().workspace;
        Ok(RunnerPlace {
            state: state_of(&task.created, &workspace),
            sandbox: opened,
            stall: config.models.stall_seconds,
            environment,
            mcp_servers: found.definitions.iter().map(server_entry).collect(),
            instructions: crate::instructions::load(directory, Path::new(task.created.boundary())),
        })
    }
}

/// Where a program keeps its own sessions: below the directory of the run, the only one of a task that its sandbox
/// lets it write to.
fn state_of(task: &TaskCreated, workspace: &Path) -> PathBuf {
    let own = workspace.join(TASKS_DIRECTORY).join(task.root.to_string());
    own.join("runner").join(task.command.task_id.to_string())
}

/// A server as `.mcp.json` has it (WF-031).
fn server_entry(server: &Definition) -> (String, Value) {
    let pairs = |pairs: &[(String, String)]| -> Map<String, Value> {
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
    };
    let fields = match &server.transport {
        Transport::Stdio { command, args, env } => {
            json!({"command": command, "args": args, "env": pairs(env)})
        }
        Transport::Http { url, headers } => {
            json!({"type": "http", "url": url, "headers": pairs(headers)})
        }
    };
    (server.name.clone(), fields)
}
