//! From `[runners]` to the programs that work on steps of workflows.
//!
//! Invariant: a program gets of a person's keys and servers only what their own file names for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Driver, WorkflowPart};
use windlass_core::layout::TASKS_DIRECTORY;
use windlass_core::state::TaskState;
use windlass_tools::mcp::{Definition, Transport};
use windlass_workflow::RunnerPlace;
use windlass_workflow::runner::{Claude, Codex, Command, Runner};

use super::place::Placed;
use super::wired_agents::{WiredAgents, misconfigured};
use super::{Environment, sandbox};
use crate::config::Config;

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

    /// The runner of this name. `command` is what a workflow says of one that is not configured.
    pub fn runner(
        self,
        name: &str,
        command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        let named = self.program.clone();
        match (name, named, command) {
            ("claude", program, None) => {
                let program = program.unwrap_or_else(|| name.to_owned());
                Ok(Arc::new(Claude { program, arguments: self.args }))
            }
            ("codex", program, None) => {
                let program = program.unwrap_or_else(|| name.to_owned());
                Ok(Arc::new(Codex { program, arguments: self.args }))
            }
            (_, _, Some(command)) => {
                Ok(Arc::new(Command { name: name.to_owned(), argv: command.to_vec() }))
            }
            (_, Some(program), None) => {
                let argv = std::iter::once(program).chain(self.args).collect();
                Ok(Arc::new(Command { name: name.to_owned(), argv }))
            }
            (_, None, None) => {
                let message = format!(
                    "there is no runner `{name}`; `windlass`, `claude` and `codex` are built in, and \
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
}

impl WiredAgents {
    /// The runner of this name for steps in a directory.
    pub(super) fn runner_in(
        &self,
        directory: &Path,
        name: &str,
        command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails> {
        let project = self.project(directory).map_err(misconfigured)?;
        Program::of(project.config(), name)?.runner(name, command)
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
            _ => Program::default(),
        };
        let lease = match task.created.driver {
            Driver::Foreground => None,
            Driver::Service => Some(config.coordinator.task_lease_ms),
        };
        let environment = program.environment(&self.environment);
        let placed = Placed::of_task(&task.created);
        let (id, reach) = (task.id(), program.reach);
        let opened =
            sandbox::open_for_runner(&self.environment, &config, &placed, id, lease, reach).await?;
        let found = project.servers()?.found(&self.environment, Some(task.created.root));
        let workspace = opened.isolation().workspace;
        Ok(RunnerPlace {
            state: workspace.join(TASKS_DIRECTORY).join(id.to_string()).join("runner"),
            sandbox: opened,
            stall: config.models.stall_seconds,
            environment,
            mcp_servers: found.definitions.iter().map(described).collect(),
        })
    }
}

/// A server as `.mcp.json` has it (WF-031).
fn described(server: &Definition) -> (String, Value) {
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
