//! Claims a place before a worker in a worktree edits it, so that two workers do not change the same place (MS-137,
//! MS-212). The loop makes the claim from the edit itself: no agent can forget it.

use std::path::Path;
use std::sync::Arc;

use windlass_core::claim::{Claim, LineRange};
use windlass_core::event::{Event, IntentClaimed, RiskCheck, WorkflowPart};
use windlass_core::id::TaskId;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::state::OpenCall;
use windlass_core::text::one_line;
use windlass_store::HeldClaim;
use windlass_tools::Prepared;
use windlass_tools::symbols::symbol_at;
use windlass_tools::workspace::Workspace;
use windlass_tools::workspace::repository::repository_of_worktree;

use crate::calls::{Batch, CallWithoutRun, Group};
use crate::journal::Journal;
use crate::{Error, Tree, prompt};

/// The most of a file that is read to find what its lines belong to.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How much of another worker's goal is repeated.
const GOAL_CHARS: usize = 60;

/// Claims what one agent will edit.
pub(crate) struct EditClaims {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) tree: Arc<Tree>,
}

impl EditClaims {
    /// Claims what the calls of a batch will edit. A batch whose place somebody else holds becomes a result that
    /// names the holder.
    pub(crate) async fn claim(&self, task: &mut Journal, batch: Batch) -> Result<Batch, Error> {
        let created = &task.state().created;
        if matches!(created.workflow.as_deref(), Some(WorkflowPart::Agent { is_try: true, .. })) {
            return Ok(batch);
        }
        let top = created.boundary().to_owned();
        let Some(edit) = planned_edit(&batch, &self.workspace, &top) else {
            return Ok(batch);
        };
        // Elsewhere nobody is in the way, so nothing is recorded.
        if repository_of_worktree(Path::new(&top)).is_none() {
            return Ok(batch);
        }
        for claim in edit.claims {
            let refused = claim_place(&self.tree, Path::new(&top), task.task(), &claim).await?;
            if let Some(text) = refused {
                let outcome = Outcome::failure(text);
                let settled = CallWithoutRun::result(edit.open, Some(edit.check), outcome);
                return Ok(Batch::settled(settled));
            }
            task.buffer(vec![Event::IntentClaimed(IntentClaimed { claim })])?;
        }
        Ok(batch)
    }
}

/// Claims a place in the worktree `top` for a task; why not, where somebody else has it. Only workers in linked worktrees
/// of one repository can be in each other's way.
pub async fn claim_place(
    tree: &Tree,
    top: &Path,
    task: TaskId,
    claim: &Claim,
) -> Result<Option<String>, Error> {
    let Some(repository) = repository_of_worktree(top) else { return Ok(None) };
    let repository = repository.display().to_string();
    let claims = tree.store().tasks().claims();
    let Some(holder) = claims.claim(&repository, task, claim.clone(), tree.now()).await? else {
        return Ok(None);
    };
    let goal = tree.store().tasks().get(holder.task)?.map(|row| row.goal);
    Ok(Some(refusal(claim, &holder, &goal.unwrap_or_default())))
}

/// The function or type around some lines of a file, else the lines themselves.
pub fn claim_of(path: &str, text: &str, lines: LineRange) -> Claim {
    match symbol_at(path, text, lines) {
        Some(symbol) => {
            Claim { path: path.to_owned(), lines: Some(symbol.lines), symbol: Some(symbol.name) }
        }
        None => Claim { path: path.to_owned(), lines: Some(lines), symbol: None },
    }
}

/// What a batch will edit.
struct PlannedEdit {
    open: OpenCall,
    check: RiskCheck,
    claims: Vec<Claim>,
}

/// An edit runs alone. One that began before a crash has its claim.
fn planned_edit(batch: &Batch, workspace: &Workspace, top: &str) -> Option<PlannedEdit> {
    let Group::Runs(runs) = &batch.group else { return None };
    let run = runs.first()?;
    let check = run.check.clone()?;
    run.prepared.diff.as_ref()?;
    let claims = claims(&run.prepared, workspace, top);
    Some(PlannedEdit { open: run.open.clone(), check, claims })
}

/// What a prepared call will edit: for each change the function or type around it, else its lines.
fn claims(prepared: &Prepared, workspace: &Workspace, top: &str) -> Vec<Claim> {
    let (Some(diff), Recovery::Verify { change, .. }) = (&prepared.diff, &prepared.recovery) else {
        return Vec::new();
    };
    let path = Path::new(&change.path);
    let Some(path) = path.strip_prefix(top).unwrap_or(path).to_str().map(str::to_owned) else {
        return Vec::new();
    };
    if change.before.is_none() {
        return vec![Claim { path, lines: None, symbol: None }];
    }
    let text = workspace.read_all(&change.path, MAX_FILE_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut claims: Vec<Claim> = Vec::new();
    for lines in changed_lines(diff) {
        let claim = claim_of(&path, &text, lines);
        if !claims.contains(&claim) {
            claims.push(claim);
        }
    }
    claims
}

/// The lines of the old file that a unified diff changes, a range for each run of changes. An insertion is between
/// two lines and claims the one before it.
fn changed_lines(diff: &str) -> Vec<LineRange> {
    let mut ranges: Vec<LineRange> = Vec::new();
    let mut line = 0;
    let mut touch = |at: u32| {
        let at = at.max(1);
        match ranges.last_mut() {
            Some(range) if at <= range.last + 1 => range.last = range.last.max(at),
            _ => ranges.push(LineRange { first: at, last: at }),
        }
    };
    for row in diff.lines() {
        if let Some(hunk) = row.strip_prefix("@@ -") {
            let start = hunk.split([',', ' ']).next().and_then(|number| number.parse().ok());
            line = start.unwrap_or(1);
            continue;
        }
        match row.as_bytes().first() {
            Some(b'-') if !row.starts_with("---") => {
                touch(line);
                line += 1;
            }
            Some(b'+') if !row.starts_with("+++") => touch(line.saturating_sub(1)),
            Some(b' ') => line += 1,
            _ => {}
        }
    }
    ranges
}

fn refusal(claim: &Claim, holder: &HeldClaim, goal: &str) -> String {
    prompt::fill(
        include_str!("prompts/claim_refused.md").trim_end(),
        &[
            ("claim", &claim.to_string()),
            ("holder", &holder.task.to_string()),
            ("goal", &one_line(goal, GOAL_CHARS)),
            ("held", &holder.claim.to_string()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_changes_is_a_range_of_old_lines() {
        let diff = "@@ -8,7 +8,7 @@\n a\n b\n-c\n-d\n+e\n f\n g\n@@ -40,2 +40,3 @@\n x\n+y\n z\n";
        let lines = |first, last| LineRange { first, last };
        assert_eq!(changed_lines(diff), [lines(10, 11), lines(40, 40)]);
    }
}
