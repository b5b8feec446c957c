//! `doctor`: checks everything that work needs; `doctor fix` repairs what needs no model, `doctor heal` has an agent
//! repair the rest.

mod heal;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use windlass_coordinator::health::{Check, CheckStatus, FixReport};
use windlass_core::shown::shown;
use windlass_term::TerminalStyle;
use windlass_term::wrap::wrap;

use super::{AppContext, Execute, Start};
use crate::args::{SandboxArgs, values};
use crate::config::ConfigErrors;
use crate::failure::Failure;
use crate::next_action;
use crate::show::{self, out, out_json};
use crate::wiring::health;

/// Check everything that work needs; `fix` and `heal` repair it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Without it nothing is changed. `fix` repairs what needs no model, `heal` has an agent repair the rest
    #[arg(value_enum, hide_possible_values = true)]
    pub action: Option<DoctorAction>,
    /// The directory whose project file, skills and MCP servers are checked
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = values::directory())]
    pub workspace: PathBuf,
    /// Which sandbox to check
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Print each check as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What `doctor` does beyond looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorAction {
    /// Repair what needs no model
    Fix,
    /// Have an agent repair what is left
    Heal,
}

const EXAMPLES: &str = "\
Examples:
  windlass doctor
  windlass doctor fix                 rebuild tables, remove stale locks and
                                      orphaned containers
  windlass doctor heal                fix, then let an agent repair the rest
  windlass doctor --json | jq -r 'select(.status != \"ok\") | .check'

Exits with 1 if something is still wrong or missing.";

impl Execute for Doctor {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = match start.sandbox(&self.sandbox).app() {
            Ok(app) => app,
            Err(failure) => return Ok(self.print(&without_data(&failure))),
        };
        match self.action {
            None => {
                let checks = check(&app, &self);
                let code = self.print(&checks);
                self.offer_repairs(&checks);
                Ok(code)
            }
            Some(DoctorAction::Fix) => Ok(fix(&app, &self)),
            Some(DoctorAction::Heal) => heal::heal(&app, &self),
        }
    }
}

impl Doctor {
    /// Prints checks; the exit code.
    fn print(&self, checks: &[Check]) -> u8 {
        checks.iter().for_each(|check| print(check, self.json));
        u8::from(checks.iter().any(Check::is_problem))
    }

    /// Says which commands repair what was found.
    fn offer_repairs(&self, checks: &[Check]) {
        if self.json {
            return;
        }
        let problems = checks.iter().filter(|check| check.is_problem());
        let (fixable, rest): (Vec<_>, Vec<_>) = problems.partition(|check| check.fix.is_some());
        if !fixable.is_empty() {
            show::note("`windlass doctor fix` repairs what needs no model");
        }
        if rest.iter().any(|check| check.status == CheckStatus::Wrong) {
            show::note("`windlass doctor heal` has an agent look at the rest");
        }
    }
}

/// Columns before the words of a check.
const BEFORE: usize = 20;

/// Looks at everything.
fn check(app: &AppContext, args: &Doctor) -> Vec<Check> {
    if !args.json
        && let Ok(config) = app.environment.config(&args.workspace)
    {
        show::print_config_notices(&config);
    }
    app.runtime.block_on(app.coordinator.health().check(&args.workspace))
}

/// What is known where the data cannot be opened.
fn without_data(failure: &Failure) -> Vec<Check> {
    let names = ["store", "model", "sandbox", "web", "skills", "mcp"];
    if failure.error.is::<ConfigErrors>() {
        // The file says where the data is, so without it nothing else can be checked.
        let mut checks = vec![health::of_config(failure)];
        checks.extend(names.map(health::skipped));
        return checks;
    }
    let hint = failure.hint.clone();
    let causes = failure.error.chain().skip(1).map(ToString::to_string);
    let store = Check::wrong("store", failure.error.to_string()).with(causes.chain(hint));
    let skipped = |name| Check::new(name, CheckStatus::Skipped, "the data cannot be opened");
    let mut checks = vec![store.blocking()];
    checks.extend(names.into_iter().skip(1).map(skipped));
    checks
}

/// Repairs what needs no model, and looks again.
fn fix(app: &AppContext, args: &Doctor) -> u8 {
    let fixed = app.runtime.block_on(app.coordinator.health().fix(&args.workspace));
    fixed.iter().for_each(|one| print_fixed(one, args.json));
    let left: Vec<_> = check(app, args).into_iter().filter(Check::is_problem).collect();
    if fixed.is_empty() && left.is_empty() && !args.json {
        show::note("nothing is wrong");
    }
    args.print(&left)
}

fn print_fixed(FixReport { name, outcome }: &FixReport, as_json: bool) {
    let (status, words) = match outcome {
        Ok(words) => ("fixed", words),
        Err(words) => ("failed", words),
    };
    if as_json {
        return out_json(&json!({ "check": name, "status": status, "message": words }).to_string());
    }
    let paint = TerminalStyle::detect().results;
    let mark = format!("{status:<7}");
    let mark = if outcome.is_ok() { paint.green(&mark) } else { paint.red(&mark) };
    print_lines(&mark, name, std::slice::from_ref(words));
}

fn print(check: &Check, as_json: bool) {
    let Check { name, status, message, details, fix, hint: _, advice, blocks, took } = check;
    let hint = next_action::check_hint(check);
    if as_json {
        let line = json!({
            "check": name, "status": status, "message": message, "details": details,
            "fix": fix, "hint": hint, "blocks_dispatch": blocks,
            "duration_ms": took.as_secs_f64() * 1_000.0,
        });
        return out_json(&line.to_string());
    }
    let paint = TerminalStyle::detect().results;
    let mark = format!("{:<7}", status.as_str());
    let mark = match status {
        CheckStatus::Ok => paint.green(&mark),
        CheckStatus::Wrong => paint.red(&mark),
        CheckStatus::Missing | CheckStatus::Skipped => paint.yellow(&mark),
    };
    let mut texts = vec![format!("{message}{}", duration(check))];
    texts.extend(details.iter().map(|detail| format!("- {detail}")));
    if check.is_problem() {
        texts.extend(fix.iter().map(|fix| format!("fix: {fix}")));
    }
    if check.is_problem() || advice.is_some() {
        texts.extend(hint.iter().map(|hint| format!("hint: {hint}")));
    }
    print_lines(&mark, name, &texts);
}

/// How long a check took, where that is worth a word.
fn duration(check: &Check) -> String {
    match check.took.as_millis() {
        0..=99 => String::new(),
        millis => format!(" ({:.1} s)", millis as f64 / 1_000.0),
    }
}

fn print_lines(mark: &str, name: &str, texts: &[String]) {
    let room = TerminalStyle::detect().line_width().saturating_sub(BEFORE).max(20);
    let mut front = format!("{mark}  {name:<BEFORE$}", BEFORE = BEFORE - 9);
    for text in texts {
        for line in wrap(&shown(text), room).lines() {
            out(&format!("{front}{line}"));
            front = " ".repeat(BEFORE);
        }
    }
}
