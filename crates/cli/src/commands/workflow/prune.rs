//! `workflow prune`: removes worktrees that ended runs have left.

use clap::Args;
use windlass_coordinator::workflows::{Fate, OwnWork, Prunable};
use windlass_core::shown::{shown_line, shown_path};
use windlass_term::{Table, numbers};

use super::super::AppContext;
use super::super::worktree_run::here;
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};

/// Which worktrees are removed, and how.
#[derive(Debug, Args)]
pub struct PruneWorktrees {
    /// Only those of this run: its id, any unique suffix of it, or the workflow's name for its newest run
    run: Option<String>,
    /// Only print what would be removed, what would stay, and why
    #[arg(long)]
    dry_run: bool,
    /// Remove those with work too: what is not committed is committed to their branches, which stay
    #[arg(long)]
    save: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn prune(app: &AppContext, args: &PruneWorktrees) -> Result<u8, Failure> {
    let workflows = app.coordinator.workflows();
    let only = args.run.as_deref().map(|run| workflows.find(run, &here())).transpose()?;
    let work = if args.save { OwnWork::IsSaved } else { OwnWork::Stays };
    let mut found = workflows.prunable(only, work)?;
    if !args.dry_run {
        found = app.runtime.block_on(workflows.prune(found))?;
    }
    if args.json {
        out_json(&serde_json::to_string(&found).unwrap_or_default());
        return Ok(0);
    }
    print(&found, args.dry_run);
    Ok(0)
}

fn print(found: &[Prunable], is_dry: bool) {
    if found.is_empty() {
        note("no worktree is left");
        return;
    }
    let mut table = Table::new(&["WORKTREE", "RUN", "BECOMES", "WHY"], &[]);
    for one in found {
        let run = one.run.map(|run| run.to_string()).unwrap_or_default();
        let becomes = match (one.fate, is_dry) {
            (Fate::Keep, _) => "kept",
            (Fate::Remove, _) => "removed",
            (Fate::Save, _) => "removed, branch kept",
        };
        table.row(vec![shown_path(&one.path), run, becomes.to_owned(), shown_line(&one.why)]);
    }
    show::print_table(&table);
    let kept = found.iter().filter(|one| one.fate == Fate::Keep).count();
    let gone = numbers::plural(found.len() - kept, "worktree");
    let verb = if is_dry { "would be removed" } else { "removed" };
    out(&format!("{gone} {verb}, {kept} kept"));
    if kept > 0 {
        note(
            "work that is not merged stays; `--save` commits it to its branch and removes the directory",
        );
    }
}
