//! `answer`: answers a question.

use clap::Args;

use super::drive::drive;
use super::{AppContext, Execute, Start, ask, mail};
use crate::args::Printing;
use crate::failure::Failure;
use crate::show;

/// Answer a question
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Answer {
    /// The question or its task: the id or any unique suffix of it
    pub question: String,
    /// The answer: text, or the number of an option
    pub text: String,
    /// Resume the task in this process after answering
    #[arg(long)]
    pub resume: bool,
    /// How to print, with `--resume`
    #[command(flatten)]
    pub printing: Printing,
}

const EXAMPLES: &str = "\
Examples:
  windlass answer q_01J9… \"use the staging database\"
  windlass answer 7K2M 1 --resume     by its task, an option's number; resume";

impl Execute for Answer {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        answer(&start.app()?, &self)
    }
}

pub(super) fn answer(app: &AppContext, args: &Answer) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let question = coordinator.inbox().find(&args.question)?;
    let asked = coordinator.inbox().get(question)?;
    let options = asked.map(|asked| asked.row.question.options).unwrap_or_default();
    let Some(text) = ask::chosen(&args.text, &options) else {
        return Err(Failure::usage("the answer is empty", "say what it should be"));
    };
    app.runtime.block_on(async {
        let task = coordinator.inbox().answer(question, &text, &app.environment.user()).await?;
        if args.resume {
            let driven = drive(app, task, &args.printing).await;
            let Some(pid) = driven.as_ref().err().and_then(Failure::driver) else { return driven };
            // Another process already drives the task, so it continues there.
            show::note(&format!("answered {question}; process {pid} continues it"));
            return Ok(0);
        }
        show::note(&format!("answered {question}"));
        mail::print_uptake(app, task).await
    })
}
