//! `inbox`: every open question.

use clap::Args;
use windlass_core::shown::shown;
use windlass_term::numbers;

use super::{AppContext, Execute, Start};
use crate::failure::Failure;
use crate::show::{self, out, out_json, task_page};

/// List the questions that wait for a person
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Inbox {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass inbox
  windlass inbox --json | jq .question.question";

impl Execute for Inbox {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        inbox(&start.app()?, &self)
    }
}

pub(super) fn inbox(app: &AppContext, args: &Inbox) -> Result<u8, Failure> {
    let open = app.coordinator.inbox().open()?;
    let now = app.coordinator.now();
    for asked in &open {
        match args.json {
            true => out_json(&task_page::question_json(&asked.row)),
            false => {
                let age = numbers::age(asked.row.asked_at, now);
                let place = show::results_place(app.style);
                out(&(task_page::question_page(asked, &age, place) + "\n"));
            }
        }
    }
    let proposals = app.coordinator.skill_proposals().open()?;
    for proposal in proposals.iter().filter(|_| !args.json) {
        let number = proposal.number;
        out(&shown(&format!(
            "{}\n  windlass skills proposals show {number}\n",
            proposal.summary()
        )));
    }
    if open.is_empty() && proposals.is_empty() && !args.json {
        show::note("nothing waits for you");
    }
    Ok(0)
}
