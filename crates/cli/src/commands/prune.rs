//! `prune`: removes finished tasks with everything of theirs, and gives the space back.

use clap::Args;
use jiff::SignedDuration;
use windlass_coordinator::{RemovalReport, RetentionPlan};
use windlass_core::shown::shown_path;
use windlass_term::numbers;

use super::{AppContext, Execute, Start};
use crate::args::values;
use crate::failure::Failure;
use crate::show::{note, out};

/// Remove finished tasks and free their space
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Prune {
    /// How long ago a task must have ended: such as `30d` or `12h` [default: store.keep_days, or 30d]
    #[arg(long, value_name = "TIME", value_parser = values::age, allow_hyphen_values = true)]
    pub older_than: Option<SignedDuration>,
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass prune --dry-run            what would be removed
  windlass prune --older-than 90d     remove what ended 90 days ago or earlier

Removes the journal, trace and outputs of a task, and its workspace if a
service made it. It keeps tasks that have not ended or are needed by others,
published files, open commitments, and runs with a worktree that still exists
(see `windlass workflow prune`). Sums of cost and counters stay.
`keep_days` in [store] does the same once a day.";

/// The age without a flag and without a setting.
const DEFAULT_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Tasks that are named one by one.
const SHOWN: usize = 20;

impl Execute for Prune {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        prune(&start.app()?, &self)
    }
}

fn prune(app: &AppContext, args: &Prune) -> Result<u8, Failure> {
    let retention = app.coordinator.storage().retention();
    let age = args.older_than.or(retention.keep_time()).unwrap_or(DEFAULT_AGE);
    let plan = retention.plan(age)?;
    let tasks = numbers::plural(plan.going.len(), "task");
    if args.dry_run {
        for tree in plan.going.iter().take(SHOWN) {
            let goal = windlass_core::text::one_line(&tree.goal, 60);
            out(&format!("{}  {}", tree.root, windlass_core::shown::shown_line(&goal)));
        }
        if plan.going.len() > SHOWN {
            out(&format!("and {} more", plan.going.len() - SHOWN));
        }
        out(&format!("{tasks} would be removed"));
    } else {
        let removed = app.runtime.block_on(retention.remove(&plan))?;
        out(&format!("{tasks} removed{}", removed_words(&removed)));
        for file in removed.published.iter().take(SHOWN) {
            out(&format!("kept: {} was published", shown_path(file)));
        }
    }
    print_kept(&plan);
    Ok(0)
}

/// How much went with the tasks.
fn removed_words(removed: &RemovalReport) -> String {
    match removed.tasks {
        0 => String::new(),
        _ => {
            let events = usize::try_from(removed.events).unwrap_or(usize::MAX);
            format!(": {}, {}", numbers::plural(events, "event"), megabytes(removed.bytes))
        }
    }
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn print_kept(plan: &RetentionPlan) {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    for (task, why) in plan.staying.iter().take(SHOWN) {
        note(&format!("kept: {task}: {why}"));
    }
    if plan.staying.len() > SHOWN {
        note(&format!("kept: {} more for such reasons", plan.staying.len() - SHOWN));
    }
    if plan.unfinished > 0 {
        note(&format!("kept: {}, not ended yet", numbers::plural(count(plan.unfinished), "task")));
    }
    if plan.recent > 0 {
        note(&format!(
            "kept: {} that ended more recently",
            numbers::plural(count(plan.recent), "task")
        ));
    }
}
