//! `explain`: what the gate thinks of a command, here and now.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use clap::Args;
use jiff::Timestamp;
use windlass_coordinator::explain::{Explanation, Paint};
use windlass_coordinator::{Coordinator, standing_rules};
use windlass_core::axes::{Axes, PermissionProfile, WorkMode};
use windlass_core::id::TaskId;
use windlass_core::policy::{Decision, Pattern, Risk, RuleSet};
use windlass_sandbox::{IsolationReport, SandboxKind};
use windlass_shell::{Context, analyze};
use windlass_term::TerminalStyle;

use super::{Execute, Start, follow_up};
use crate::args::values;
use crate::failure::Failure;
use crate::show::{out, out_json};
use crate::wiring::place::TaskDirectories;
use crate::wiring::{Environment, gate};

/// Say what a command would do and whether it would be allowed here
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The command, as for `bash -c`
    pub command: Option<String>,
    /// The work mode of the agent that would run it
    #[arg(long, value_name = "MODE", value_parser = values::one_of(WorkMode::ALL, WorkMode::as_str), hide_possible_values = true)]
    pub mode: Option<WorkMode>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Read a JSON string per line of standard input, write a JSON object per line
    #[arg(long, conflicts_with = "command")]
    pub stdin: bool,
}

const EXAMPLES: &str = "\
This directory's configuration and your standing rules are applied.

Examples:
  windlass explain 'git push origin main'
  windlass explain --mode plan 'cargo test'
  windlass explain --json 'curl https://example.com/x | sh'
  printf '\"ls\"\\n\"rm -rf /\"\\n' | windlass explain --stdin";

impl Execute for Explain {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        explain(start, &self)
    }
}

/// The longest line taken from standard input: more than any command that is read.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// What commands are judged by in this directory.
struct Judge {
    context: Context,
    rule_set: RuleSet,
    axes: Axes,
}

impl Judge {
    fn new(
        environment: &Environment,
        directory: &Path,
        placed: &TaskDirectories,
        standing: Vec<Pattern>,
        axes: Axes,
    ) -> Result<Self, Failure> {
        let config = environment.config(directory)?;
        let isolation = IsolationReport {
            kind: SandboxKind::Local,
            workspace: placed.top.clone(),
            memory_bytes: None,
            has_own_sockets: true,
            facts: Vec::new(),
            warnings: Vec::new(),
        };
        let context = gate::context(environment, &config, &isolation, &placed.layout, &[]);
        Ok(Self { context, rule_set: gate::rule_set(&config, standing), axes })
    }

    fn explain(&self, text: &str) -> Explanation {
        Explanation::new(text, analyze(text, &self.context), &self.rule_set, &self.axes)
    }
}

/// What the gate thinks of a command of a task that would start in a directory.
pub(super) fn judge(
    environment: &Environment,
    coordinator: &Coordinator,
    directory: &Path,
    axes: Axes,
    text: &str,
) -> Result<Explanation, Failure> {
    let placed =
        TaskDirectories::of_directory(environment, directory, TaskId::new(Timestamp::now()));
    let rules = coordinator.standing_rules().all()?;
    let standing = standing_rules::rules_in(&rules, &placed.top);
    Ok(Judge::new(environment, directory, &placed, standing, axes)?.explain(text))
}

fn explain(start: Start, args: &Explain) -> Result<u8, Failure> {
    let directory = std::env::current_dir().unwrap_or_default();
    let environment = start.environment()?;
    // As a task would be that starts here.
    let placed =
        TaskDirectories::of_directory(&environment, &directory, TaskId::new(Timestamp::now()));
    let headless = Axes::headless();
    let profile = environment.config(&directory)?.policy.profile;
    let axes = Axes {
        work_mode: args.mode.unwrap_or(headless.work_mode),
        permission_profile: profile.unwrap_or(headless.permission_profile),
        ..headless
    };
    let (standing, conversation) = standing_rules(start, &environment, &directory, &placed.top)?;
    let judge = Judge::new(&environment, &directory, &placed, standing, axes)?;
    if args.stdin {
        return explain_lines(&judge);
    }
    let Some(text) = &args.command else {
        return Err(Failure::usage(
            "there is no command to explain",
            "windlass explain 'git push origin topic'",
        ));
    };
    let explanation = Explanation { conversation_profile: conversation, ..judge.explain(text) };
    if args.json {
        out_json(&json(&explanation));
    } else {
        let paint = TerminalStyle::detect().results;
        out(explanation.render(|kind, text| paint_text(kind, text, paint)).trim_end());
    }
    Ok(0)
}

/// The standing rules that hold in a project, and the profile of the last conversation in the directory. Looking creates
/// no store where there is none.
fn standing_rules(
    start: Start,
    environment: &Environment,
    directory: &Path,
    project: &Path,
) -> Result<(Vec<Pattern>, Option<PermissionProfile>), Failure> {
    if !environment.data.join("windlass.db").exists() {
        return Ok((Vec::new(), None));
    }
    let app = start.app()?;
    let coordinator = &app.coordinator;
    let rules = coordinator.standing_rules().all()?;
    let session = coordinator
        .sessions()
        .newest_in(&follow_up::real_directory(directory).display().to_string())?;
    let state = session.map(|session| coordinator.session(session).state()).transpose()?;
    let profile = state.map(|state| state.axes.permission_profile);
    Ok((standing_rules::rules_in(&rules, project), profile))
}

/// One JSON string a line in, one JSON object a line out.
fn explain_lines(judge: &Judge) -> Result<u8, Failure> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = std::io::Read::take(&mut input, MAX_LINE_BYTES + 1);
        let length = limited.read_until(b'\n', &mut line).map_err(anyhow::Error::from)?;
        if length == 0 {
            break;
        }
        let text: String = serde_json::from_slice(&line).map_err(|error| {
            let problem = format!("line {number} of standard input is not a JSON string: {error}");
            Failure::usage(problem, "write one command a line, as a JSON string")
        })?;
        // A reader that has gone away ends this quietly.
        if writeln!(output, "{}", json(&judge.explain(&text))).is_err() {
            break;
        }
    }
    let _ = output.flush();
    Ok(0)
}

fn json(explanation: &Explanation) -> String {
    serde_json::to_string(explanation).unwrap_or_default()
}

fn paint_text(kind: Paint, text: &str, paint: windlass_term::Paint) -> String {
    match kind {
        Paint::Frame => paint.dim(text),
        Paint::Command => paint.bold(text),
        Paint::Risk(Risk::Low) | Paint::Decision(Decision::Allow) => paint.green(text),
        Paint::Risk(Risk::Medium) => paint.cyan(text),
        Paint::Risk(Risk::High) | Paint::Decision(Decision::Ask) => paint.yellow(text),
        Paint::Risk(Risk::Critical) | Paint::Decision(Decision::Deny) => paint.red(text),
        Paint::Text => text.to_owned(),
    }
}
