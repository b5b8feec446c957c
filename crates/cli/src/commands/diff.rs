//! `diff`: what a task has changed in files.

use clap::Args;
use windlass_core::id::TaskId;
use windlass_core::shown::shown_line;
use windlass_term::{Detail, diff, numbers};

use super::{AppContext, Execute, Start, named_task};
use crate::failure::Failure;
use crate::show::{change_lines, note, out, out_json};

/// Show what a task has changed in files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Only the names of the files, and how many lines were added and removed
    #[arg(long)]
    pub stat: bool,
    /// Print the changes as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass diff                       the last task of this directory
  windlass diff 7K2M --stat           only which files, and how much
  windlass diff 7K2M | git apply -R   take the changes back

It shows the changes by `edit` and `write`, also those of sub-agents. What
commands have changed is not in it: see `git diff`. For a workflow run it shows
everything that the run has merged, or what is in its worktree if nothing is.";

impl Execute for Diff {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        print(&start.app()?, &self)
    }
}

fn print(app: &AppContext, args: &Diff) -> Result<u8, Failure> {
    let task = named_task::find_or_last(app, args.task.as_deref())?;
    let changed = app.coordinator.artifacts().changes().of(task)?;
    if args.json {
        for one in &changed {
            let mut line = serde_json::json!(one.file);
            if !args.stat {
                line["diff"] = serde_json::json!(one.diff);
            }
            out_json(&line.to_string());
        }
        return Ok(0);
    }
    if changed.is_empty() {
        note(&format!("{task}: {}", no_changes_words(app, task)?));
        return Ok(0);
    }
    let paint = app.style.results;
    if args.stat {
        let files: Vec<_> = changed.into_iter().map(|one| one.file).collect();
        change_lines(&files, paint).iter().for_each(|line| out(line));
        out(&format!("{} changed", numbers::plural(files.len(), "file")));
        return Ok(0);
    }
    for one in &changed {
        match &one.diff {
            // Elsewhere than on a terminal it is a patch.
            Some(text) if !app.style.is_stdout_terminal => out(text.trim_end_matches('\n')),
            Some(text) => {
                out(&paint.bold(&shown_line(&one.file.path)));
                let width = app.style.line_width();
                diff::lines(text, paint, width, Detail::Full).iter().for_each(|line| out(line));
            }
            None => note(&format!(
                "{}: its versions are not text, are larger than 1 MiB, or are no longer kept",
                shown_line(&one.file.path)
            )),
        }
    }
    Ok(0)
}

/// That nothing is known to have changed.
fn no_changes_words(app: &AppContext, task: TaskId) -> Result<&'static str, Failure> {
    Ok(match app.coordinator.artifacts().changes().are_known_to_git(task)? {
        true => "the run has changed no files",
        false => "its edit and write calls changed no files; commands may have, see `git diff`",
    })
}
