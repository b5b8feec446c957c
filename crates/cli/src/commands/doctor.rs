//! `doctor`: is the store sound, what does the sandbox stand on, is a model configured.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use windlass_core::axes::ModelMode;
use windlass_core::id::TaskId;
use windlass_core::shown::shown;
use windlass_term::wrap::wrap;
use windlass_term::{TerminalStyle, numbers};

use super::{AppContext, Execute, Start};
use crate::args::SandboxArgs;
use crate::config::{Config, ConfigErrors};
use crate::failure::Failure;
use crate::show::{self, out, out_json};
use crate::wiring::place::Placed;
use crate::wiring::{mcp, models, sandbox, skills, web};

/// Check the store, the configuration, the model and the sandbox
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// The directory whose project file, skills and MCP servers are checked
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Which sandbox to check
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Print each check as a line of JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass doctor
  windlass doctor --json | jq -r 'select(.status != \"ok\") | .check'

Exits with 1 if something is wrong or missing.";

impl Execute for Doctor {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let checks = match start.sandbox(&self.sandbox).app() {
            Ok(app) => doctor(&app, &self)?,
            // The file says where the data is, so without it nothing else can be checked.
            Err(failure) if failure.error.is::<ConfigErrors>() => {
                let mut checks = vec![Check::of_config(&failure)];
                checks.extend(
                    ["store", "model", "sandbox", "web", "skills", "mcp"].map(Check::skipped),
                );
                checks
            }
            Err(failure) => return Err(failure),
        };
        checks.iter().for_each(|check| check.print(self.json));
        let fine = |check: &Check| matches!(check.status, Status::Ok | Status::Skipped);
        Ok(u8::from(!checks.iter().all(fine)))
    }
}

/// How many problems of one kind are listed.
const SHOWN: usize = 20;
/// A database larger than this deserves a word, in bytes.
const LARGE_STORE: u64 = 5_000_000_000;
/// Columns before the words of a check.
const BEFORE: usize = 18;

/// What came of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Wrong,
    /// Something that windlass needs is not set up yet.
    Missing,
    /// It could not be checked, because of something else that is wrong.
    Skipped,
}

impl Status {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Wrong => "wrong",
            Self::Missing => "missing",
            Self::Skipped => "skipped",
        }
    }
}

/// One thing that was looked at.
struct Check {
    name: &'static str,
    status: Status,
    words: String,
    details: Vec<String>,
}

impl Check {
    fn new(name: &'static str, status: Status, words: impl Into<String>) -> Self {
        Self { name, status, words: words.into(), details: Vec::new() }
    }

    fn with(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details.into_iter().take(SHOWN));
        self
    }

    fn skipped(name: &'static str) -> Self {
        Self::new(name, Status::Skipped, "the configuration has errors")
    }

    fn of_config(failure: &Failure) -> Self {
        let text = failure.error.to_string();
        let mut lines = text.lines().map(|line| line.trim_start().to_owned());
        let first = lines.next().unwrap_or_default();
        let hint = failure.hint.iter().map(|hint| format!("hint: {hint}"));
        Self::new("config", Status::Wrong, first).with(lines.chain(hint))
    }

    fn print(&self, as_json: bool) {
        let Self { name, status, words, details } = self;
        if as_json {
            let line = json!({
                "check": name, "status": status.word(), "message": words, "details": details,
            });
            return out_json(&line.to_string());
        }
        let style = TerminalStyle::detect();
        let paint = style.results;
        let mark = format!("{:<7}", status.word());
        let mark = match status {
            Status::Ok => paint.green(&mark),
            Status::Wrong => paint.red(&mark),
            Status::Missing | Status::Skipped => paint.yellow(&mark),
        };
        let room = style.line_width().saturating_sub(BEFORE).max(20);
        let details = details.iter().map(|detail| format!("- {detail}"));
        let texts = [words.clone()].into_iter().chain(details);
        let mut front = format!("{mark}  {name:<BEFORE$}", BEFORE = BEFORE - 9);
        for text in texts {
            for line in wrap(&shown(&text), room).lines() {
                out(&format!("{front}{line}"));
                front = " ".repeat(BEFORE);
            }
        }
    }
}

/// Looks at everything.
fn doctor(app: &AppContext, args: &Doctor) -> Result<Vec<Check>, Failure> {
    let workspace = args.workspace.canonicalize().unwrap_or_else(|_| args.workspace.clone());
    let found = skills::now(&app.environment, &workspace);
    let mut checks = vec![store(app)?];
    let config = match app.environment.config(&args.workspace) {
        Ok(config) => config,
        Err(failure) => {
            checks.push(Check::of_config(&failure));
            checks.extend(["model", "sandbox", "web"].map(Check::skipped));
            checks.extend([skills_check(&found), Check::skipped("mcp")]);
            return Ok(checks);
        }
    };
    checks.push(Check::new("config", Status::Ok, "every value is valid"));
    checks.push(model(&config));
    checks.push(sandbox_check(app, &config, &workspace));
    let (tools, missing) = web::tools(&config);
    let names: Vec<_> = tools.iter().map(|tool| format!("`{}`", tool.name())).collect();
    let offered = match names.is_empty() {
        true => "no tools".to_owned(),
        false => format!("{} can be used", names.join(" and ")),
    };
    checks.push(Check::new("web", Status::Ok, offered).with(missing));
    checks.push(skills_check(&found));
    let servers = mcp::found(&app.environment, &config, &workspace, &found);
    let count = match servers.definitions.len() {
        0 => "no servers".to_owned(),
        count => format!("{} can be started", numbers::plural(count, "server")),
    };
    checks.push(Check::new("mcp", Status::Ok, count).with(servers.notices));
    if !args.json {
        show::print_config_notices(&config);
    }
    Ok(checks)
}

fn store(app: &AppContext) -> Result<Check, Failure> {
    let storage = app.coordinator.storage();
    let differences = storage.verify()?;
    let place = storage.database().display().to_string();
    Ok(match differences.len() {
        0 => {
            let words = format!("{place} agrees with its journal");
            Check::new("store", Status::Ok, words).with(large_store(app))
        }
        count => {
            let places = numbers::plural(count, "place");
            let words = format!("{place} differs from its journal in {places}");
            let differences = differences.iter().map(ToString::to_string);
            Check::new("store", Status::Wrong, words).with(differences)
        }
    })
}

/// What to do about a database that has grown large.
fn large_store(app: &AppContext) -> Option<String> {
    let retention = app.coordinator.retention();
    let bytes = retention.database_bytes();
    (bytes > LARGE_STORE).then(|| {
        format!(
            "it takes {:.1} GB: `windlass prune` removes finished tasks; `keep_days` in [store] does so daily",
            bytes as f64 / 1e9
        )
    })
}

fn model(config: &Config) -> Check {
    let choice = match config.models.for_mode(ModelMode::Smart) {
        Ok(choice) => choice,
        Err(_) => {
            let set_up =
                "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or LITELLM_API_BASE and LITELLM_MODEL";
            let words = "no model is configured";
            return Check::new("model", Status::Missing, words).with([set_up.to_owned()]);
        }
    };
    match models::open(config, choice) {
        Ok(_) => {
            let words = format!("{choice}; check that it answers with `windlass models --test`");
            Check::new("model", Status::Ok, words)
        }
        Err(details) => {
            Check::new("model", Status::Wrong, details.message.clone()).with(details.hint)
        }
    }
}

fn sandbox_check(app: &AppContext, config: &Config, workspace: &Path) -> Check {
    let root = TaskId::new(app.coordinator.now());
    // The sandbox shows a task its trace, so there has to be one.
    let trace = app.coordinator.storage().trace_directory(root);
    let _ = std::fs::create_dir_all(&trace);
    let placed = Placed::of_directory(&app.environment, workspace, root);
    let opened = sandbox::open_with(&app.environment, config, &placed, root, None);
    let check = match app.runtime.block_on(opened) {
        Ok(opened) => {
            let isolation = opened.sandbox.isolation();
            let mut words = isolation.kind.to_string();
            if let Some(why) = &opened.why {
                words = format!("{words} ({why})");
            }
            app.runtime.block_on(opened.sandbox.stop());
            let warnings = isolation.warnings.iter().map(|warning| format!("but: {warning}"));
            Check::new("sandbox", Status::Ok, words)
                .with(isolation.facts.iter().cloned().chain(warnings))
        }
        Err(details) => {
            let hint = crate::next_action::hint(&details);
            Check::new("sandbox", Status::Wrong, details.message.clone()).with(hint)
        }
    };
    let _ = std::fs::remove_dir(&trace);
    check
}

fn skills_check(found: &windlass_skills::Skills) -> Check {
    let count = match found.list().count() {
        0 => "no skills".to_owned(),
        count => format!("{} can be used", numbers::plural(count, "skill")),
    };
    let problems = found.problems();
    let status = if problems.is_empty() { Status::Ok } else { Status::Wrong };
    Check::new("skills", status, count).with(problems.iter().map(ToString::to_string))
}
