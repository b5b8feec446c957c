//! From configuration to the browser of a task: whether there is one, where it runs, and what it may reach (O-21).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::id::TaskId;
use windlass_sandbox::network::{AddressRules, HostRules};
use windlass_sandbox::{Host, IsolationReport, Sandbox, SandboxKind};
use windlass_skills::regular;
use windlass_store::Store;
use windlass_tools::browser::{Browser, Config as BrowserConfig, IDLE_LIMIT, parse_cookies};
use windlass_tools::web::Reach;

use super::{Environment, place, sandbox};
use crate::config::Config;
use crate::config::types::{Network, Placement};

/// What `web.browser` is where no browser is wanted.
const OFF: &str = "off";
/// What Chromium and its relatives are called.
const PROGRAMS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
/// Where a local sandbox shows programs of this machine.
const SHOWN: [&str; 5] = ["/usr", "/opt", "/bin", "/nix", "/gnu"];
/// The largest file of cookies.
const MAX_COOKIE_BYTES: u64 = 4 << 20;

/// The browser of a task, or why it gets no browser.
pub fn tool(
    environment: &Environment,
    config: &Config,
    sandbox: &Arc<dyn Sandbox>,
    (workspace, root): (&Path, TaskId),
    store: &Store,
) -> Result<Browser, String> {
    let missing = |why: String| format!("`browser` is not offered: {why}");
    let BrowserProgram { program, needs_proxy } =
        find(environment, config, &sandbox.isolation()).map_err(missing)?;
    let sandbox: Arc<dyn Sandbox> = match config.web.browser_placement {
        Placement::Sandbox => Arc::clone(sandbox),
        Placement::Host => {
            let env: Vec<_> = environment.variables.clone().into_iter().collect();
            let (data, workspace) = (environment.data.clone(), workspace.to_owned());
            let host = Host::new(data, workspace, &env, &place::key_names());
            Arc::new(host.map_err(|error| missing(error.to_string()))?)
        }
    };
    let cookies = cookies(environment, config, store).map_err(missing)?;
    Ok(Browser::new(BrowserConfig {
        program,
        sandbox,
        egress: needs_proxy.then(|| sandbox::egress(config, root)),
        reach: reach(config),
        state: store.dir().browser_directory(),
        cookies,
        idle: IDLE_LIMIT,
    }))
}

/// A browser that a task can have.
pub struct BrowserProgram {
    program: String,
    /// Whether it needs a proxy of its own, because its sandbox has no proxy.
    needs_proxy: bool,
}

/// The browser that tasks in a sandbox of this kind can have, or why they get no browser and what to do about it.
pub fn find(
    environment: &Environment,
    config: &Config,
    report: &IsolationReport,
) -> Result<BrowserProgram, String> {
    let placement = config.web.browser_placement;
    let program = match (placement, report.kind) {
        (Placement::Sandbox, SandboxKind::Docker) => in_container(config),
        (Placement::Sandbox, SandboxKind::Local | SandboxKind::Host) | (Placement::Host, _) => {
            program(environment, config)
        }
    }?;
    let needs_proxy = match (placement, report.kind, config.sandbox.network) {
        (Placement::Host, _, _)
        | (_, SandboxKind::Host, _)
        | (_, SandboxKind::Local, Network::Open) => true,
        (_, SandboxKind::Local, _) if !report.has_own_sockets => {
            let why = "the sandbox has no namespaces here, and Chromium needs sockets of its own; \
                       `web.browser_placement = \"host\"` runs it outside";
            return Err(why.to_owned());
        }
        (_, SandboxKind::Docker, Network::Open) => {
            let why =
                "`sandbox.network` is `open`, and in a container nothing then judges addresses";
            return Err(why.to_owned());
        }
        (_, SandboxKind::Local | SandboxKind::Docker, _) => false,
    };
    Ok(BrowserProgram { program, needs_proxy })
}

/// The program on this machine, or why it was not found and what to do about it.
pub fn program(environment: &Environment, config: &Config) -> Result<String, String> {
    if config.sandbox.network == Network::None {
        return Err("`sandbox.network` is `none`".to_owned());
    }
    let path = environment.variables.get("PATH").map(String::as_str).unwrap_or_default();
    let on_path = |names: &[&str]| {
        let directories: Vec<_> = std::env::split_paths(path).collect();
        environment.kept.programs(&directories, names).into_iter().flatten().next()
    };
    let found = match config.web.browser.as_deref() {
        Some(OFF) => return Err("`web.browser` is `off`".to_owned()),
        Some(name) if name.contains('/') => Some(PathBuf::from(name)).filter(|file| file.is_file()),
        Some(name) => on_path(&[name]),
        None => on_path(&PROGRAMS),
    };
    let Some(found) = found else {
        return Err(match &config.web.browser {
            Some(name) => format!("`{name}` of `web.browser` is not installed"),
            None => "Chromium is not installed; get it with `apt install chromium` or as your system does, or \
                     name the program with `web.browser`"
                .to_owned(),
        });
    };
    let real = found.canonicalize().unwrap_or_else(|_| found.clone());
    if real.ends_with("snap") {
        return Err(format!(
            "`{}` is a snap, which cannot run here; install Chromium or Chrome as a package",
            found.display()
        ));
    }
    let in_sandbox = config.web.browser_placement == Placement::Sandbox;
    if in_sandbox && !SHOWN.iter().any(|top| real.starts_with(top)) {
        return Err(format!(
            "`{}` lies where sandboxes do not see it; install it as a package, or set \
             `web.browser_placement = \"host\"`",
            real.display()
        ));
    }
    Ok(found.display().to_string())
}

/// The program in a container's image: a person says what is in it.
fn in_container(config: &Config) -> Result<String, String> {
    match config.web.browser.as_deref() {
        _ if config.sandbox.network == Network::None => Err("`sandbox.network` is `none`".to_owned()),
        Some(OFF) => Err("`web.browser` is `off`".to_owned()),
        Some(program) => Ok(program.to_owned()),
        None => Err("in a container `web.browser` names Chromium; `windlass image build --browser` makes an \
                     image that has it as `chromium`"
            .to_owned()),
    }
}

fn reach(config: &Config) -> Reach {
    let ranges = config.sandbox.allow_addresses.iter();
    let addresses = AddressRules { allowed: ranges.filter_map(|one| one.parse().ok()).collect() };
    let hosts = match config.sandbox.allow_hosts.as_slice() {
        [] => HostRules::Any,
        hosts => HostRules::Only(hosts.to_vec()),
    };
    Reach::new(addresses, hosts)
}

/// The cookies that a person imports. Their values are kept out of journals like keys.
fn cookies(
    environment: &Environment,
    config: &Config,
    store: &Store,
) -> Result<Vec<serde_json::Value>, String> {
    let Some(path) = &config.web.browser_cookies else { return Ok(Vec::new()) };
    let home = environment.variables.get("HOME").map(Path::new);
    let file = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    let wrong = |why: String| format!("`{path}` of `web.browser_cookies` cannot be used: {why}");
    let text =
        regular::read_text(&file, MAX_COOKIE_BYTES).map_err(|error| wrong(error.to_string()))?;
    let cookies = parse_cookies(&text).map_err(wrong)?;
    let values = cookies.iter().filter_map(|cookie| cookie["value"].as_str());
    store.secrets().hide(values.map(|value| ("web.browser_cookies", value)));
    Ok(cookies)
}
