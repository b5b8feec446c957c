//! The checks of what work in a directory needs besides the data: configuration, model, sandbox, program, skills, MCP
//! servers, repository. `doctor` shows them; the coordinator asks for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::time::timeout;
use windlass_coordinator::health::{Advice, Check, CheckStatus, FixReport, RepairPolicy};
use windlass_core::axes::ModelMode;
use windlass_core::id::TaskId;
use windlass_sandbox::{IsolationReport, docker};
use windlass_skills::regular;
use windlass_term::numbers;

use super::place::TaskDirectories;
use super::{Environment, browser, mcp, models, sandbox, skills, web};
use crate::config::{Config, ModelChoice};
use crate::failure::Failure;
use crate::next_action;

/// How long a model server may take to take a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// A lock of git that is older than this has been left behind: git holds it for seconds.
const OLD_GIT_LOCK: Duration = Duration::from_secs(600);

/// A `.git` file of a worktree is one path.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// Looks at everything that work in a directory needs.
pub async fn checks(environment: &Environment, directory: &Path) -> Vec<Check> {
    let mut checks = vec![Check::timed(program)];
    let workspace = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let began = Instant::now();
    let found = skills::now(environment, &workspace);
    let skills = skills_check(&found).since(began);
    let began = Instant::now();
    let config = match environment.config(directory) {
        Ok(config) => config,
        Err(failure) => {
            checks.push(of_config(&failure).since(began));
            checks.extend(["model", "sandbox", "web"].map(skipped));
            checks.extend([skills, skipped("mcp"), Check::timed(|| git(&workspace))]);
            return checks;
        }
    };
    checks.push(Check::ok("config", "every value is valid").since(began));
    let began = Instant::now();
    checks.push(model(&config).await.since(began));
    let helper = Check::timed(|| helper(environment));
    let began = Instant::now();
    let containers = containers(environment).await.map(|check| check.since(began));
    // A sandbox that is opened writes the helper again and removes what is left of others, and looking must change
    // nothing.
    let skipped = |why: &str| Check::new("sandbox", CheckStatus::Skipped, why);
    let began = Instant::now();
    let (sandbox, isolation) = match &containers {
        _ if helper.is_problem() => (skipped("its helper is wrong"), None),
        Some(found) if found.is_problem() => (skipped("containers of ended tasks are left"), None),
        _ => {
            let (check, isolation) = sandbox_check(environment, &config, &workspace).await;
            (check.since(began), isolation)
        }
    };
    checks.push(sandbox);
    checks.push(helper);
    checks.extend(containers);
    checks.push(Check::timed(|| web_check(environment, &config, isolation.as_ref())));
    checks.push(skills);
    checks.push(Check::timed(|| {
        let servers = mcp::startable_servers(environment, &config, &workspace, &found);
        let count = match servers.definitions.len() {
            0 => "no servers".to_owned(),
            count => format!("{} can be started", numbers::plural(count, "server")),
        };
        let check = match servers.has_errors {
            true => Check::wrong("mcp", "a list of servers is wrong"),
            false => Check::ok("mcp", count),
        };
        check.with(servers.notices)
    }));
    checks.push(Check::timed(|| git(&workspace)));
    checks
}

/// What is looked at before each dispatch: what costs next to nothing and would spoil the work.
pub fn dispatch_checks(directory: &Path) -> Vec<Check> {
    vec![program(), git(directory)]
}

/// Repairs what can be repaired without a model.
pub async fn fix(environment: &Environment, directory: &Path) -> Vec<FixReport> {
    let mut fixed = Vec::new();
    if helper(environment).is_problem() {
        fixed.push(match windlass_sandbox::reinstall_helper(&environment.data) {
            Ok(path) => FixReport::done("helper", format!("wrote {} again", path.display())),
            Err(error) => FixReport::failed("helper", error),
        });
    }
    if let Ok(engine) = sandbox::engine(environment).await {
        match docker::remove_orphans(&engine, &environment.data).await {
            Ok(0) => {}
            Ok(count) => {
                let what = format!("removed {}", numbers::plural(count, "orphaned container"));
                fixed.push(FixReport::done("containers", what));
            }
            Err(error) => fixed.push(FixReport::failed("containers", error)),
        }
    }
    if let Some(lock) = old_git_lock(directory) {
        fixed.push(match fs::remove_file(&lock) {
            Ok(()) => FixReport::done("git", format!("removed {}", lock.display())),
            Err(error) => FixReport::failed("git", format!("{}: {error}", lock.display())),
        });
    }
    fixed
}

/// What happens when a dispatch is not safe in a directory. Without a valid configuration nobody has said so.
pub fn repair_policy(environment: &Environment, directory: &Path) -> RepairPolicy {
    environment.config(directory).map_or(RepairPolicy::Ask, |config| config.policy.auto_repair)
}

/// What could not be checked because the configuration has errors.
pub fn skipped(name: &'static str) -> Check {
    Check::new(name, CheckStatus::Skipped, "the configuration has errors")
}

/// A configuration that cannot be read.
pub fn of_config(failure: &Failure) -> Check {
    let text = failure.error.to_string();
    let mut lines = text.lines().map(|line| line.trim_start().to_owned());
    let first = lines.next().unwrap_or_default();
    let hint = failure.hint.iter().map(|hint| format!("hint: {hint}"));
    Check::wrong("config", first).with(lines.chain(hint)).blocking()
}

/// Whether the program that runs is the one that is installed.
fn program() -> Check {
    let version = env!("CARGO_PKG_VERSION");
    let Ok(running) = fs::read_link("/proc/self/exe") else {
        return Check::ok("program", format!("version {version}"));
    };
    match running.to_string_lossy().strip_suffix(" (deleted)") {
        None => Check::ok("program", format!("version {version}, {}", running.display())),
        Some(path) => {
            let words = format!("{path} was replaced or removed while this process runs");
            Check::wrong("program", words).with_advice(Advice::RestartProcesses)
        }
    }
}

fn helper(environment: &Environment) -> Check {
    match windlass_sandbox::helper_problem(&environment.data) {
        None => Check::ok("helper", "the sandbox helper is whole, or is written at the first use"),
        Some(problem) => Check::wrong("helper", problem).fixable("write it again").blocking(),
    }
}

async fn containers(environment: &Environment) -> Option<Check> {
    // Without an engine there are no containers. The check of the sandbox reports a missing engine.
    let engine = sandbox::engine(environment).await.ok()?;
    Some(match docker::orphans(&engine, &environment.data).await {
        Ok(orphans) if orphans.is_empty() => {
            Check::ok("containers", "every container belongs to a running task")
        }
        Ok(orphans) => {
            let count = numbers::plural(orphans.len(), "container");
            Check::wrong("containers", format!("{count} outlived the process that started it"))
                .with(orphans)
                .fixable("remove them")
        }
        Err(error) => Check::wrong("containers", error.to_string()),
    })
}

async fn model(config: &Config) -> Check {
    let choice = match config.models.for_mode(ModelMode::Smart) {
        Ok(choice) => choice,
        Err(_) => {
            let set_up =
                "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or LITELLM_API_BASE and LITELLM_MODEL";
            return Check::new("model", CheckStatus::Missing, "no model is configured")
                .with([set_up.to_owned()]);
        }
    };
    if let Err(details) = models::open(config, &choice) {
        return Check::wrong("model", details.message.clone()).with(details.hint);
    }
    let model = &choice.model;
    match unreachable(config, model).await {
        None => {
            let words = format!("{model}; check that it answers with `windlass models --test`");
            Check::ok("model", words)
        }
        Some(problem) => Check::wrong("model", format!("{model} cannot be reached: {problem}"))
            .with_advice(Advice::CheckModelServer),
    }
}

/// Why no connection to a model's server can be made. Nothing is sent.
async fn unreachable(config: &Config, choice: &ModelChoice) -> Option<String> {
    let endpoint = config.endpoint(choice).ok().flatten()?;
    let base = endpoint.base.expose();
    let (host, port) = (base.host_str()?.to_owned(), base.port_or_known_default()?);
    let proxied = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "ALL_PROXY"];
    if proxied.iter().any(|name| std::env::var_os(name).is_some()) {
        return None;
    }
    let host = host.trim_matches(['[', ']']);
    match timeout(CONNECT_PATIENCE, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("{host}:{port}: {error}")),
        Err(_) => Some(format!("{host}:{port} does not answer within {CONNECT_PATIENCE:?}")),
    }
}

/// Whether a sandbox can be opened, and what it isolates.
async fn sandbox_check(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
) -> (Check, Option<IsolationReport>) {
    let root = TaskId::new(jiff::Timestamp::now());
    // The sandbox shows a task its trace, so there has to be one.
    let trace = environment.data.join("traces").join(root.to_string());
    let _ = fs::create_dir_all(&trace);
    let placed = TaskDirectories::of_directory(environment, workspace, root);
    let check = match sandbox::open_with(environment, config, &placed, root, None).await {
        Ok(opened) => {
            let isolation = opened.sandbox.isolation();
            let mut words = isolation.kind.to_string();
            if let Some(why) = &opened.why {
                words = format!("{words} ({why})");
            }
            opened.sandbox.stop().await;
            let warnings = isolation.warnings.iter().map(|warning| format!("but: {warning}"));
            let check =
                Check::ok("sandbox", words).with(isolation.facts.iter().cloned().chain(warnings));
            (check, Some(isolation))
        }
        Err(details) => {
            let hint = next_action::hint(&details);
            (Check::wrong("sandbox", details.message.clone()).with(hint), None)
        }
    };
    let _ = fs::remove_dir(&trace);
    check
}

/// What of the web can be used, by agents in a sandbox like this one.
fn web_check(
    environment: &Environment,
    config: &Config,
    isolation: Option<&IsolationReport>,
) -> Check {
    let (tools, mut missing) = web::tools(config);
    let mut names: Vec<_> = tools.iter().map(|tool| format!("`{}`", tool.name())).collect();
    let browser = match isolation {
        Some(isolation) => browser::find(environment, config, isolation).map(drop),
        None => browser::program(environment, config).map(drop),
    };
    match browser {
        Ok(()) => names.push("`browser`".to_owned()),
        Err(why) => missing.push(format!("`browser` is not offered: {why}")),
    }
    let offered = match names.is_empty() {
        true => "no tools".to_owned(),
        false => format!("{} can be used", names.join(" and ")),
    };
    Check::ok("web", offered).with(missing)
}

fn skills_check(found: &windlass_skills::Skills) -> Check {
    let count = match found.list().count() {
        0 => "no skills".to_owned(),
        count => format!("{} can be used", numbers::plural(count, "skill")),
    };
    let problems = found.problems();
    match problems.is_empty() {
        true => Check::ok("skills", count),
        false => Check::wrong("skills", count).with(problems.iter().map(ToString::to_string)),
    }
}

/// The state of the repository that a directory is in: a lock that git left behind stops every commit, and an operation
/// that is half done is somebody's.
fn git(directory: &Path) -> Check {
    let Some(git) = git_directory(directory) else { return Check::ok("git", "no repository") };
    if let Some(lock) = old_git_lock(directory) {
        let words = format!("{} was left behind by a git that ended", lock.display());
        return Check::wrong("git", words).fixable("remove it");
    }
    let unfinished = [
        ("MERGE_HEAD", "a merge"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("BISECT_LOG", "a bisection"),
    ];
    let found = unfinished.iter().filter(|(file, _)| git.join(file).exists());
    let found = found.map(|(_, what)| format!("{what} is not finished")).collect::<Vec<_>>();
    if !git.join("HEAD").exists() {
        return Check::wrong("git", format!("{} has no HEAD", git.display()));
    }
    Check::ok("git", git.display().to_string()).with(found)
}

/// The git directory of the repository that a directory is in. Files alone are looked at: git itself would run what
/// its configuration names.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory.ancestors().map(|above| above.join(".git")).find(|git| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    // A worktree names the directory that it has in the repository.
    let text = regular::read_text(&git, MAX_POINTER_BYTES).ok()?;
    let named = PathBuf::from(text.strip_prefix("gitdir:")?.trim());
    Some(git.parent()?.join(named))
}

fn old_git_lock(directory: &Path) -> Option<PathBuf> {
    let lock = git_directory(directory)?.join("index.lock");
    let age = fs::metadata(&lock).ok()?.modified().ok()?.elapsed().ok()?;
    (age > OLD_GIT_LOCK).then_some(lock)
}
