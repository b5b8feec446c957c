//! `headless`: another spelling of `run`.

use clap::Args;
use windlass_core::axes::RunControl;

use super::run::run;
use super::{AppContext, Execute, Start};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::wiring::Project;

/// The same as `run`; takes the word `autonomous` before the goal
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Headless {
    /// The goal, which may follow the word `autonomous`
    #[arg(value_name = "[autonomous] GOAL", required = true, num_args = 1..=2)]
    pub words: Vec<String>,
    /// The same as `--control autonomous`
    #[arg(long, conflicts_with = "control")]
    pub autonomous: bool,
    /// How it is run
    #[command(flatten)]
    pub options: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass headless autonomous \"fix the build\"
  windlass headless --autonomous \"fix the build\" --json";

impl Execute for Headless {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let (app, project) = start.app_for_run(&self.options)?;
        headless(&app, &project, self)
    }
}

/// `headless [autonomous] GOAL` and `headless --autonomous GOAL` (MS-177, MS-178).
fn headless(app: &AppContext, project: &Project, mut args: Headless) -> Result<u8, Failure> {
    let autonomous = args.words.len() == 2 && args.words[0] == "autonomous";
    let goal = match args.words.as_slice() {
        [word] if word == "autonomous" => {
            let hint = "say what to do: `windlass headless autonomous \"fix the build\"`";
            return Err(Failure::usage("the goal is missing", hint));
        }
        [goal] => goal,
        [_, goal] if autonomous => goal,
        words => {
            let hint = format!("quote the goal: `windlass headless \"{}\"`", words.join(" "));
            return Err(Failure::usage("the goal is more than one argument", hint));
        }
    };
    if autonomous || args.autonomous {
        args.options.control = Some(RunControl::Autonomous);
    }
    run(app, project, Some(goal), &args.options)
}
