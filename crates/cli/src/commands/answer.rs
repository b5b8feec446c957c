//! `answer`: answers a question.

use clap::Args;
use windlass_core::question::Answer as Answered;
use windlass_term::numbers;

use super::drive::drive;
use super::{AppContext, Execute, Start, mail};
use crate::args::PrintOptions;
use crate::failure::Failure;
use crate::show;

/// Answer a question
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Answer {
    /// The question or its task: the id or any unique suffix of it
    pub question: String,
    /// The answer: `y`, `n`, an option or its number, an amount, or your own words
    #[arg(allow_negative_numbers = true)]
    pub text: String,
    /// Resume the task in this process after answering
    #[arg(long)]
    pub resume: bool,
    /// How to print, with `--resume`
    #[command(flatten)]
    pub printing: PrintOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass answer q_01J9… \"use the staging database\"
  windlass answer 7K2M 1 --resume     option 1 of its question; then resume
  windlass answer 7K2M \"no, move it aside instead\"
                                      deny, and say what to do instead";

impl Execute for Answer {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        answer(&start.app()?, &self)
    }
}

pub(super) fn answer(app: &AppContext, args: &Answer) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let question = coordinator.inbox().find(&args.question)?;
    if args.text.trim().is_empty() {
        return Err(Failure::usage("the answer is empty", "say what it should be"));
    }
    app.runtime.block_on(async {
        let task = coordinator.inbox().answer(question, &args.text, &app.environment.user()).await;
        let task = task.map_err(|error| refusal(app, error))?;
        if args.resume {
            let driven = drive(app, task, &args.printing).await;
            let Some(pid) = driven.as_ref().err().and_then(Failure::driver) else { return driven };
            // Another process already drives the task, so it continues there.
            show::note(&format!("answered; process {pid} continues the task"));
            return Ok(0);
        }
        show::note("answered");
        mail::print_uptake(app, task).await
    })
}

/// Why an answer was not taken. The time of an earlier one is shown as its age.
fn refusal(app: &AppContext, error: windlass_coordinator::Error) -> Failure {
    let Some(earlier) = error.earlier_answer() else { return error.into() };
    let Answered { by, text, at } = earlier;
    let by = if by == app.environment.user() { String::new() } else { format!(" by {by}") };
    let age = numbers::age(at, app.coordinator.now());
    Failure::usage(format!("already answered{by} {age} ago: {text}"), "the first answer counts")
}
