//! From configuration to the place where effects happen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::id::TaskId;
use windlass_sandbox::local::{self, Limits, Namespaces};
use windlass_sandbox::network::{AddressRules, Connection, Egress, HostRules};
use windlass_sandbox::{Host, Local, Network, Sandbox};

use super::Surroundings;
use crate::config::Config;
use crate::config::types::{Network as Reach, SandboxMode};

/// A sandbox for a task: prepared, nothing started in it yet.
pub async fn open(
    surroundings: &Surroundings,
    config: &Config,
    workspace: &Path,
    root: TaskId,
) -> Result<Arc<dyn Sandbox>, ErrorDetails> {
    open_with(surroundings, config, workspace, root, None).await
}

/// The same, with these skills shown in it.
pub async fn open_with(
    surroundings: &Surroundings,
    config: &Config,
    workspace: &Path,
    root: TaskId,
    skills: Option<PathBuf>,
) -> Result<Arc<dyn Sandbox>, ErrorDetails> {
    let environment: Vec<_> =
        surroundings.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mode = surroundings.sandbox.or(config.sandbox.mode).unwrap_or(SandboxMode::Local);
    match mode {
        SandboxMode::Host => {
            let data = surroundings.data.clone();
            let host = Host::new(data, workspace.to_owned(), &environment, &[]);
            Ok(Arc::new(host.map_err(unavailable)?))
        }
        SandboxMode::Docker | SandboxMode::Local => {
            let home =
                surroundings.env.get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
            let expand = |path: &String| path.strip_prefix("~/").unwrap_or(path).into();
            let local = Local::open(local::Config {
                data: surroundings.data.clone(),
                workspace: workspace.to_owned(),
                environment,
                environment_names: Vec::new(),
                read_only: config.sandbox.read_only.iter().map(expand).collect(),
                home,
                hidden: Vec::new(),
                skills,
                trace: Some(surroundings.data.join("traces").join(root.to_string())),
                network: network(config, root),
                limits: Limits {
                    memory_bytes: config.sandbox.memory.0,
                    processes: config.sandbox.pids_limit,
                    ..Limits::DEFAULT
                },
                namespaces: Namespaces::WhereGranted,
            });
            Ok(Arc::new(local.await.map_err(unavailable)?))
        }
    }
}

fn network(config: &Config, task: TaskId) -> Network {
    let settings = &config.sandbox;
    match settings.network {
        Reach::None => Network::None,
        Reach::Open => Network::Open,
        Reach::Restricted => Network::Restricted(Egress {
            addresses: AddressRules {
                allowed: settings
                    .allow_addresses
                    .iter()
                    .filter_map(|one| one.parse().ok())
                    .collect(),
            },
            hosts: match settings.allow_hosts.as_slice() {
                [] => HostRules::Any,
                hosts => HostRules::Only(hosts.to_vec()),
            },
            observer: Arc::new(move |connection: &Connection| {
                tracing::info!(task_id = %task, ?connection, "Connection from the sandbox");
            }),
        }),
    }
}

fn unavailable(error: windlass_sandbox::Error) -> ErrorDetails {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        message += &format!(": {cause}");
        source = cause.source();
    }
    ErrorDetails::new(ErrorType::SandboxUnavailable, message)
        .hinted("`--sandbox host` runs commands without isolation, if that is what you want")
}
