//! `explain`: what the gate thinks of a command.

use std::io::{BufRead as _, Write as _};

use clap::Args;
use jiff::Timestamp;
use windlass_coordinator::explain::{Explanation, Paint};
use windlass_core::id::TaskId;
use windlass_core::policy::{Decision, Risk};
use windlass_sandbox::{IsolationReport, Kind};
use windlass_shell::{Context, analyze};
use windlass_term::TerminalStyle;

use super::{Execute, Start};
use crate::failure::Failure;
use crate::show::{out, out_json};
use crate::wiring::place::Placed;
use crate::wiring::{Environment, gate};

/// Say what a command would do and whether it would be allowed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The command, as for `bash -c`
    pub command: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Read one JSON string a line from standard input, write one JSON object a line
    #[arg(long, conflicts_with = "command")]
    pub stdin: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass explain 'git push origin main'
  windlass explain --json 'curl https://example.com/x | sh'
  printf '\"ls\"\\n\"rm -rf /\"\\n' | windlass explain --stdin";

impl Execute for Explain {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        explain(&start.environment()?, &self)
    }
}

/// The longest line taken from standard input: more than any command that is read.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// `explain` needs no store: it reads a command and says what would happen.
pub(super) fn explain(environment: &Environment, args: &Explain) -> Result<u8, Failure> {
    let directory = std::env::current_dir().unwrap_or_default();
    let config = environment.config(&directory)?;
    // As a task would be that starts here.
    let placed = Placed::of_directory(environment, &directory, TaskId::new(Timestamp::now()));
    let isolation = IsolationReport {
        kind: Kind::Local,
        workspace: placed.top.clone(),
        memory_bytes: None,
        facts: Vec::new(),
        warnings: Vec::new(),
    };
    let context = gate::context(environment, &config, &isolation, &placed.layout, &[]);
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
        out_json(&json(&explanation));
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
