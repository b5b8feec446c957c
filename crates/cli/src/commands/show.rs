//! `show`: one task on a page.

use clap::Args;
use windlass_coordinator::views::Compaction;
use windlass_core::id::TaskId;
use windlass_term::{numbers, strip_controls};

use super::{AppContext, Execute, Start, cost, named_task};
use crate::failure::Failure;
use crate::show::{self, out, out_json, task_page};

/// Show one task: its status, questions, plan, files and answer
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Show {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Show what was dropped from its context, and where to read it
    #[arg(long)]
    pub compactions: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass show                       the last task of this directory
  windlass show 7K2M                  any unique end of the task's id will do
  windlass show 7K2M --json           the same for programs";

impl Execute for Show {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        show(&start.app()?, &self)
    }
}

pub(super) fn show(app: &AppContext, args: &Show) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = named_task::find_or_last(app, args.task.as_deref())?;
    if args.compactions {
        return compactions(app, task, args.json);
    }
    let details = coordinator.tasks().details(task)?;
    if args.json {
        let mut shown = task_page::task_json(&details.view);
        shown["context"] = serde_json::json!(details.gauge);
        shown["working_memory"] = serde_json::json!(details.state.working_memory());
        shown["changed_files"] = serde_json::json!(details.state.files.changed);
        shown["answered"] = details.view.is_answered().into();
        out_json(&shown.to_string());
    } else {
        out(&task_page::task_page(&details, &cost::words(&details.cost), app.style));
        let now = coordinator.now();
        for asked in coordinator.inbox().open_in_tree(task)? {
            let (age, place) =
                (numbers::age(asked.row.asked_at, now), show::results_place(app.style));
            out(&format!("\n{}", task_page::question_page(&asked, &age, place)));
        }
    }
    Ok(0)
}

/// What was dropped from a task's context, and where it can be read.
fn compactions(app: &AppContext, task: TaskId, json: bool) -> Result<u8, Failure> {
    let found = app.coordinator.artifacts().compactions(task)?;
    if found.is_empty() && !json {
        show::note("its context was never compacted");
    }
    for Compaction { at, end } in found {
        if json {
            out_json(&serde_json::json!({ "at": at, "compaction": end }).to_string());
            continue;
        }
        out(&format!(
            "compaction {} at {}\n  turns      {} summarized, {} kept\n  tokens     {} → {}\n  \
             summary    by {}\n  in full    {}\n",
            end.number,
            at.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %H:%M:%S"),
            end.summarized_turns,
            end.kept_turns,
            end.tokens_before,
            end.tokens_after,
            end.source,
            end.file.as_deref().unwrap_or("not kept"),
        ));
        end.summary.lines().for_each(|line| out(&format!("    {}", strip_controls(line))));
        out("");
    }
    Ok(0)
}
