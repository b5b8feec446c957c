//! Merging what a run did: into its target, and the branches of a parallel step into the worktree around them.
//!
//! Invariants:
//! - The move of a target is journaled before it is made, with the commits before and after. Repeated after a crash, it
//!   is found done, or made from the same commits.
//! - Merges into one repository wait for each other: each is computed and checked on what the one before it left.

mod conflict;
mod gates;
mod joining;
mod record;

use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_core::axes::PermissionProfile;
use windlass_core::event::{
    Event, MergeChanged, MergeState, QuestionClosed, StepEnded, StepResult, WorktreeChanged,
};
use windlass_core::id::QuestionId;
use windlass_core::question::Question;

use super::steps::Attempt;
use super::{Engine, Error, StepEnd, Trouble, Wait, decision, title};
use crate::definition::{MergeWork, OnConflict, Strategy};
use crate::git::Git;
use crate::merge::{self, MergeCommit, MergePreview, MoveOutcome};
use crate::state::QuestionProgress;
use crate::{template, worktree};
use conflict::ConflictQuestion;

/// How often a merge is computed again because its target moved or its conflicts were resolved.
const MAX_COMPUTATIONS: u32 = 10;

/// Why there is no branch to merge into.
pub(super) const DETACHED: &str =
    "the head is detached: name the branch with `target` in the workflow";

const MERGE_OPTIONS: [&str; 2] = ["Merge", "Keep"];
const DIRTY_OPTIONS: [&str; 2] = ["Try again", "Stop"];

/// A branch that is to be merged.
struct Merge<'e> {
    attempt: Attempt<'e>,
    /// What is journaled as the step of the merge.
    step: String,
    from: WorktreeChanged,
    target: String,
    strategy: Strategy,
    gates: &'e [String],
    message: String,
    conflicts: OnConflict,
}

impl<'e> Attempt<'e> {
    pub(super) async fn merge(self, work: &MergeWork) -> Result<StepEnd, Trouble> {
        let name = match &work.from {
            Some(text) => template::render(text, &self.leaf.variables)
                .map_err(|error| Trouble::Failed(error.to_string()))?,
            // What another step did needs no worktree around it.
            None => {
                self.worktrees().place(&self.leaf.worktree).await?;
                self.leaf.worktree.clone()
            }
        };
        let from = self.engine.journal.read(|_, run| run.worktrees.get(&name).cloned()).await;
        let from =
            from.ok_or_else(|| Trouble::Failed(format!("there is no worktree `{name}` to merge")))?;
        let target = match self.text().await {
            Some(known) => known,
            None => self.target(work.target.as_ref()).await?,
        };
        self.start(None, target.clone(), None).await?;
        ConflictQuestion(self).settle().await?;
        let message = match &work.message {
            Some(text) => template::render(text, &self.leaf.variables)
                .map_err(|error| Trouble::Failed(error.to_string()))?,
            None => self.title(),
        };
        let job = Merge {
            attempt: self,
            step: self.leaf.path.clone(),
            from,
            target,
            strategy: work.strategy,
            gates: &work.gates,
            message,
            conflicts: work.conflicts,
        };
        let merged = match job.run().await {
            Err(Trouble::Conflict(conflict)) => {
                ConflictQuestion(self).ask(&conflict, &job.target).await?;
                return Err(Trouble::Conflict(conflict));
            }
            merged => merged?,
        };
        let output = json!({
            "commit": merged, "target": job.target, "branch": job.from.branch,
            "left_out": self.left_out(&job.from.path).await?,
        });
        Ok(StepEnd::Ended(StepEnded { output, ..self.leaf.ended(StepResult::Succeeded) }))
    }

    /// What builds have left in a worktree, and no commit has.
    pub(super) async fn left_out(self, tree: &str) -> Result<Vec<String>, Trouble> {
        let tree = PathBuf::from(tree);
        self.engine.repository.with(move |git| worktree::left_out(git, &tree)).await
    }

    /// What the run is for, in a line.
    pub(super) fn title(self) -> String {
        title(&self.engine.workflow, &self.engine.source)
    }

    /// The branch that gets the work.
    pub(super) async fn target(self, own: Option<&String>) -> Result<String, Trouble> {
        if let Some(named) = own.or(self.engine.workflow.target.as_ref()) {
            return Ok(named.clone());
        }
        if let Some(begun_on) = self.engine.source.branch.clone() {
            let find = move |git: &Git| worktree::branch_of_start(git, &begun_on);
            return self.engine.repository.with(find).await;
        }
        let here = self.engine.repository.with(|git| git.branch_in(git.top())).await?;
        here.ok_or_else(|| Trouble::Failed(DETACHED.to_owned()))
    }
}

impl<'e> Merge<'e> {
    fn engine(&self) -> &'e Engine<'e> {
        self.attempt.engine
    }

    /// Merges, unless that is done; the commit that the target is at afterwards.
    async fn run(&self) -> Result<String, Trouble> {
        self.next_dirty_question().await?;
        let known = self.engine().journal.read(|_, run| run.merges.get(&self.step).cloned()).await;
        match known {
            Some(done)
                if done.state == MergeState::Merged
                    && done.attempt == self.attempt.leaf.attempt =>
            {
                return Ok(done.new);
            }
            Some(moving) if moving.state == MergeState::Moving => {
                let computed = MergeCommit { head: moving.head, old: moving.old, new: moving.new };
                if let Some(done) = self.advance(&computed, merge::Attempt::Repeated).await? {
                    return Ok(done);
                }
            }
            Some(_) | None => {}
        }
        self.commit_rest().await?;
        for _ in 0..MAX_COMPUTATIONS {
            let turn =
                self.engine().repository.wait_for(merge::TURN_LOCK, self.attempt.halt).await?;
            match self.compute().await? {
                MergePreview::Nothing { old, head } => {
                    let computed = MergeCommit { head, old: old.clone(), new: old };
                    self.note(MergeState::Merged, &computed, Vec::new()).await?;
                    return Ok(computed.new);
                }
                MergePreview::Conflict { head, old, files } => {
                    drop(turn);
                    let computed = MergeCommit { head, old, new: String::new() };
                    self.note(MergeState::Conflict, &computed, files.clone()).await?;
                    self.resolve(&computed, &files).await?;
                }
                MergePreview::Clean(computed) => {
                    self.check_resolution(&computed).await?;
                    self.check_permission(&computed).await?;
                    self.check_gates(&computed).await?;
                    self.note(MergeState::Moving, &computed, Vec::new()).await?;
                    if let Some(done) = self.advance(&computed, merge::Attempt::First).await? {
                        return Ok(done);
                    }
                }
            }
        }
        Err(Trouble::Failed(format!("`{}` moves faster than it can be merged into", self.target)))
    }

    /// What an agent left without committing it is its work all the same.
    async fn commit_rest(&self) -> Result<(), Trouble> {
        let (tree, message) = (PathBuf::from(&self.from.path), self.message.clone());
        self.engine()
            .repository
            .with(move |git| merge::commit_rest(git, &tree, &message))
            .await
            .map(drop)
    }

    async fn compute(&self) -> Result<MergePreview, Trouble> {
        let (from, target) = (self.from.clone(), self.target.clone());
        let (strategy, message) = (self.strategy, self.message.clone());
        self.engine()
            .repository
            .with(move |git| {
                let tree = Path::new(&from.path);
                let branch = from.branch.as_str();
                merge::compute(
                    git,
                    &merge::MergeRequest {
                        branch,
                        tree,
                        target: &target,
                        strategy,
                        message: &message,
                    },
                )
            })
            .await
    }

    async fn note(
        &self,
        state: MergeState,
        computed: &MergeCommit,
        files: Vec<String>,
    ) -> Result<(), Error> {
        let changed = MergeChanged {
            step: self.step.clone(),
            attempt: self.attempt.leaf.attempt,
            state,
            branch: self.from.branch.clone(),
            head: computed.head.clone(),
            target: self.target.clone(),
            old: computed.old.clone(),
            new: computed.new.clone(),
            files,
        };
        self.engine().commit(vec![Event::MergeChanged(Box::new(changed))]).await
    }

    /// Moves the target; `None` where it has moved meanwhile and the merge must be computed again.
    async fn advance(
        &self,
        computed: &MergeCommit,
        attempt: merge::Attempt,
    ) -> Result<Option<String>, Trouble> {
        let (target, wanted) = (self.target.clone(), computed.clone());
        let moved = self
            .engine()
            .repository
            .with(move |git| merge::advance(git, &target, &wanted, attempt))
            .await?;
        match moved {
            MoveOutcome::Done => {
                if !self.is_within_run().await {
                    self.attach_record(&computed.new).await?;
                }
                self.note(MergeState::Merged, computed, Vec::new()).await?;
                self.close_dirty_question().await?;
                Ok(Some(computed.new.clone()))
            }
            MoveOutcome::Stale => Ok(None),
            MoveOutcome::Dirty { checkout, why, remedy } => {
                let place = checkout.display();
                let target = &self.target;
                let text = format!(
                    "`{target}` is checked out in `{place}`, and {why}. {remedy}; then try again."
                );
                self.ask_for_clean(text).await.map(|()| None)
            }
        }
    }

    /// The target is checked out with changes of its own: nothing moves before a person has put them away.
    async fn ask_for_clean(&self, text: String) -> Result<(), Trouble> {
        let id = self.next_dirty_question().await?;
        self.engine().ask(decision(id, text, &DIRTY_OPTIONS)).await?;
        Err(Trouble::Wait(Wait::Answer(id)))
    }

    /// The first question about a dirty checkout that has no answer. A person who has answered one with `Stop` has
    /// nothing merged, whatever the checkout is like by now.
    async fn next_dirty_question(&self) -> Result<QuestionId, Trouble> {
        let mut number = 1;
        loop {
            let name = format!("dirty {} {} {number}", self.step, self.attempt.leaf.attempt);
            let id = QuestionId::derived(&self.engine().id().to_string(), &name);
            match self.engine().journal.answer_to(id).await {
                Some(text) if text == DIRTY_OPTIONS[0] => number += 1,
                Some(_) => {
                    let why = format!("`{}` was not merged: you stopped it", self.target);
                    return Err(Trouble::Failed(why));
                }
                None => return Ok(id),
            }
        }
    }

    /// Nobody needs to say any more that the checkout is clean.
    async fn close_dirty_question(&self) -> Result<(), Trouble> {
        let question = self.next_dirty_question().await?;
        let engine = self.engine();
        if engine.journal.read(|_, run| run.asked(question) == QuestionProgress::Open).await {
            let reason = "it is merged".to_owned();
            let closed = QuestionClosed { question, reason };
            engine.commit(vec![Event::QuestionClosed(closed)]).await?;
        }
        Ok(())
    }

    /// Whether the target is a branch of the run itself: a step's work comes together with that of others.
    async fn is_within_run(&self) -> bool {
        let is_target = |tree: &WorktreeChanged| tree.branch == self.target;
        self.engine().journal.read(|_, run| run.worktrees.values().any(is_target)).await
    }

    /// Below `trusted` a person says whether the target gets the work (O-37).
    async fn check_permission(&self, computed: &MergeCommit) -> Result<(), Trouble> {
        let profile = self.engine().journal.read(|task, _| task.axes.permission_profile).await;
        let is_own = self.is_within_run().await;
        if profile >= PermissionProfile::Trusted || is_own {
            return Ok(());
        }
        // A yes is one to what was shown.
        let changes = self.changes_of(computed).await?;
        let id = QuestionId::derived(
            &self.engine().id().to_string(),
            &format!("merge {} {changes}", self.attempt.key()),
        );
        match self.engine().journal.answer_to(id).await {
            Some(text) if text == MERGE_OPTIONS[0] => Ok(()),
            Some(_) => {
                Err(Trouble::Failed(format!("`{}` was not merged: you kept it", self.from.branch)))
            }
            None => {
                let (old, new) = (computed.old.clone(), computed.new.clone());
                let stat = self
                    .engine()
                    .repository
                    .with(move |git| git.run(["diff", "--stat", &old, &new]))
                    .await?;
                let text = format!("Merge `{}` into `{}`?", self.from.branch, self.target);
                let asked = Question { context: Some(stat), ..decision(id, text, &MERGE_OPTIONS) };
                self.close_outdated(&asked).await?;
                self.engine().ask(asked).await?;
                Err(Trouble::Wait(Wait::Answer(id)))
            }
        }
    }

    /// What names the changes that a merge brings. A target that moves elsewhere does not alter it.
    async fn changes_of(&self, computed: &MergeCommit) -> Result<String, Trouble> {
        match self.strategy {
            Strategy::Squash | Strategy::Merge => Ok(computed.head.clone()),
            // Its commits are made again on every new target.
            Strategy::Rebase => {
                let computed = computed.clone();
                self.engine().repository.with(move |git| merge::patch(git, &computed)).await
            }
        }
    }

    /// An open question about what the merge would have been before is settled by the one that is asked now.
    async fn close_outdated(&self, asked: &Question) -> Result<(), Trouble> {
        let engine = self.engine();
        let records = engine.tree.store().journal().of(engine.id())?;
        let is_same = |question: &Question| {
            question.question == asked.question && question.options == asked.options
        };
        for record in records {
            let Event::QuestionAsked(earlier) = record.event else { continue };
            let is_open =
                engine.journal.read(|_, run| run.asked(earlier.id) == QuestionProgress::Open).await;
            if is_open && is_same(&earlier) && earlier.id != asked.id {
                let reason = "the changes are others by now".to_owned();
                let closed = QuestionClosed { question: earlier.id, reason };
                engine.commit(vec![Event::QuestionClosed(closed)]).await?;
            }
        }
        Ok(())
    }
}
