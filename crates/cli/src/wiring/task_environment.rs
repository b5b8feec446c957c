//! What an agent reads about the place where it works: system, shell, network, toolchains, limits.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use windlass_agent::{Settings, TaskEnvironment};
use windlass_sandbox::{IsolationReport, SandboxKind};

use super::Environment;
use crate::config::Config;
use crate::config::types::Network;

/// Programs worth knowing of: what builds, runs and tests projects.
const TOOLCHAINS: [&str; 28] = [
    "git", "make", "cmake", "gcc", "clang", "cargo", "rustc", "go", "python3", "pip", "uv",
    "poetry", "node", "npm", "pnpm", "yarn", "bun", "deno", "java", "mvn", "gradle", "dotnet",
    "ruby", "php", "swift", "docker", "jq", "rg",
];

/// Directories that a local sandbox has of its own, empty; what the host has there is not seen.
const FRESH: [&str; 5] = ["/tmp", "/run", "/var/tmp", "/home", "/root"];

/// What is known of the place of a task with these settings.
pub(super) fn of(
    environment: &Environment,
    config: &Config,
    isolation: &IsolationReport,
    settings: &Settings,
) -> TaskEnvironment {
    let search_path = environment.variables.get("PATH").cloned().unwrap_or_default();
    TaskEnvironment {
        time_zone: TimeZone::system(),
        system: system(isolation.kind, config),
        shell: "bash".to_owned(),
        network: network(isolation.kind, config),
        toolchains: toolchains(environment, config, isolation.kind, &search_path),
        limits: limits(config, isolation, settings),
        search_path,
    }
}

fn system(kind: SandboxKind, config: &Config) -> String {
    let kernel = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let kernel =
        format!("{} {} {}", part(kernel.sysname()), part(kernel.release()), part(kernel.machine()));
    match kind {
        SandboxKind::Docker => format!("{kernel}, container of `{}`", config.sandbox.image),
        SandboxKind::Local | SandboxKind::Host => match distribution() {
            Some(name) => format!("{kernel}, {name}"),
            None => kernel,
        },
    }
}

/// What the system calls itself.
fn distribution() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn network(kind: SandboxKind, config: &Config) -> String {
    let hosts = &config.sandbox.allow_hosts;
    match (kind, config.sandbox.network) {
        (SandboxKind::Host, _) | (_, Network::Open) => "open".to_owned(),
        (_, Network::None) => "none".to_owned(),
        (_, Network::Restricted) if hosts.is_empty() => {
            "restricted (public addresses, through a proxy that the environment names)".to_owned()
        }
        (_, Network::Restricted) => format!("restricted to {}", hosts.join(", ")),
    }
}

/// The programs that commands find. A container is not looked into: it starts with the first command.
fn toolchains(environment: &Environment, config: &Config, kind: SandboxKind, path: &str) -> String {
    let home = environment.variables.get("HOME").map(PathBuf::from);
    let shown: Vec<PathBuf> = match &home {
        Some(home) => {
            let below = |path: &String| home.join(path.strip_prefix("~/").unwrap_or(path));
            config.sandbox.read_only.iter().map(below).collect()
        }
        None => Vec::new(),
    };
    let is_seen = |directory: &Path| match kind {
        SandboxKind::Docker => false,
        SandboxKind::Host => true,
        SandboxKind::Local => {
            let is_fresh = FRESH.iter().any(|fresh| directory.starts_with(fresh));
            let is_home = home.as_ref().is_some_and(|home| directory.starts_with(home));
            shown.iter().any(|top| directory.starts_with(top)) || !(is_fresh || is_home)
        }
    };
    if kind == SandboxKind::Docker {
        return "those of the image".to_owned();
    }
    let directories: Vec<PathBuf> = path
        .split(':')
        .map(PathBuf::from)
        .filter(|one| one.is_absolute() && is_seen(one))
        .collect();
    let found = environment.kept.programs(&directories, &TOOLCHAINS);
    let there = TOOLCHAINS.into_iter().zip(found).filter_map(|(name, file)| file.map(|_| name));
    there.collect::<Vec<_>>().join(", ")
}

fn limits(config: &Config, isolation: &IsolationReport, settings: &Settings) -> Vec<String> {
    let mut limits = vec![format!("{} tool rounds", settings.max_iterations)];
    limits.extend(settings.timeout.map(|limit| format!("{} s of active time", limit.as_secs())));
    limits.extend(settings.budget.cost_usd.map(|usd| format!("${usd:.2}")));
    let (usual, most) = (config.agent.bash_timeout_seconds, config.agent.bash_max_timeout_seconds);
    limits.push(format!("{} s for a command, {} s at most", usual.as_secs(), most.as_secs()));
    limits.extend(isolation.memory_bytes.map(|bytes| format!("{} MiB of memory", bytes >> 20)));
    limits
}
