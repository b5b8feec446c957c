//! `explain` and `permissions`: what the gate thinks of a command, and what people have allowed.

use std::io::{BufRead as _, Write as _};

use windlass_coordinator::explain::{Explanation, Paint};
use windlass_coordinator::views::Filter;
use windlass_core::injection::Control;
use windlass_core::policy::Decision;
use windlass_core::policy::Risk;
use windlass_sandbox::{IsolationReport, Kind};
use windlass_shell::{Context, analyze};
use windlass_term::TerminalStyle;

use super::AppContext;
use crate::args::{Explain, Permissions};
use crate::failure::Failure;
use crate::show::{self, out};
use crate::wiring::{Environment, gate};

/// The longest line taken from standard input: more than any command that is read.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// `explain` needs no store: it reads a command and says what would happen.
pub(super) fn explain(environment: &Environment, args: &Explain) -> Result<u8, Failure> {
    let directory = std::env::current_dir().unwrap_or_default();
    let config = environment.config(&directory)?;
    let isolation = IsolationReport {
        kind: Kind::Local,
        workspace: "/workspace".into(),
        memory_bytes: None,
        facts: Vec::new(),
        warnings: Vec::new(),
    };
    let context = gate::context(environment, &config, &isolation);
    if args.stdin {
        return explain_lines(&context);
    }
    let Some(text) = &args.command else {
        return Err(Failure::usage(
            "there is no command to explain",
            "windlass explain 'rm -rf build'",
        ));
    };
    let explanation = Explanation::new(text, analyze(text, &context));
    if args.json {
        out(&json(&explanation));
    } else {
        let paint = TerminalStyle::detect().results;
        out(explanation.render(|kind, text| painted(kind, text, paint)).trim_end());
    }
    Ok(0)
}

/// One JSON string a line in, one JSON object a line out.
fn explain_lines(context: &Context) -> Result<u8, Failure> {
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
        let explanation = Explanation::new(&text, analyze(&text, context));
        // A reader that has gone away ends this quietly.
        if writeln!(output, "{}", json(&explanation)).is_err() {
            break;
        }
    }
    let _ = output.flush();
    Ok(0)
}

fn json(explanation: &Explanation) -> String {
    serde_json::to_string(explanation).unwrap_or_default()
}

fn painted(kind: Paint, text: &str, paint: windlass_term::Paint) -> String {
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

/// Rules in force, and taking them back.
pub(super) fn permissions(app: &AppContext, args: &Permissions) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let tasks = match &args.task {
        Some(task) => vec![coordinator.tasks().find(task)?],
        None => {
            let live = Filter { live: true, ..Filter::default() };
            coordinator.tasks().rows(&live)?.into_iter().map(|row| row.id).collect()
        }
    };
    let mut number = 0;
    for task in tasks {
        for rule in coordinator.tasks().state(task)?.allow_rules {
            number += 1;
            if args.revoke == Some(number) {
                let user = app.environment.user();
                let control = Control::Revoke { rule: rule.clone() };
                app.runtime.block_on(coordinator.control().steer(task, control, &user))?;
                show::note(&format!("revoked for {task}: {rule}"));
                return Ok(0);
            }
            if args.revoke.is_none() {
                out(&match args.json {
                    true => serde_json::json!({ "number": number, "task_id": task, "rule": rule })
                        .to_string(),
                    false => format!("{number:>3}  {task}  {rule}"),
                });
            }
        }
    }
    match args.revoke {
        Some(wanted) => Err(Failure::usage(
            format!("there is no rule {wanted}"),
            "list them with `windlass permissions`",
        )),
        None if number == 0 && !args.json => {
            show::note("no rules: every question is asked anew");
            Ok(0)
        }
        None => Ok(0),
    }
}
