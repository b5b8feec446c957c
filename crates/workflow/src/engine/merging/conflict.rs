//! Conflicts: an agent resolves them in the branch's own worktree, and what it cannot resolve a person decides.

use std::path::Path;

use serde_json::json;
use windlass_core::event::{Event, MergeChanged, MergeState, QuestionClosed};
use windlass_core::id::QuestionId;

use super::{DIRTY_OPTIONS, Merge};
use crate::definition::{AgentWork, OWN_RUNNER, OnConflict, Spell, Step, Work};
use crate::engine::steps::Attempt;
use crate::engine::{Error, Trouble, decision};
use crate::git::Git;
use crate::merge::MergeCommit;
use crate::next::Leaf;
use crate::output::AgentOutput;
use crate::state::QuestionProgress;
use crate::worktree::{self, some_of};

/// Answers to a conflict of a branch that comes together with others. The second leaves it on its own.
const JOIN_OPTIONS: [&str; 3] = [DIRTY_OPTIONS[0], "Leave it out", DIRTY_OPTIONS[1]];

/// What an agent is asked to do about conflicts.
const CONFLICT_PROMPT: &str = include_str!("../../prompts/conflict.md");

/// The question to a person about the conflict of one attempt at a merge.
#[derive(Clone, Copy)]
pub(super) struct ConflictQuestion<'a>(pub Attempt<'a>);

impl ConflictQuestion<'_> {
    fn id(self, attempt: u32) -> QuestionId {
        QuestionId::derived(
            &self.0.engine.id().to_string(),
            &format!("conflict {} {attempt}", self.0.leaf.path),
        )
    }

    /// Asks a person about conflicts with a branch that no agent has resolved.
    pub(super) async fn ask(self, conflict: &str, target: &str) -> Result<(), Error> {
        let options: &[&str] = match self.0.leaf.step.work {
            Work::Parallel(_) => &JOIN_OPTIONS,
            Work::Agent(_)
            | Work::Script { .. }
            | Work::Loop(_)
            | Work::Merge(_)
            | Work::PullRequest(_)
            | Work::Ask { .. } => &DIRTY_OPTIONS,
        };
        let text = format!(
            "{conflict}. Merge `{target}` there, resolve the conflicts and commit; then try again."
        );
        let id = self.id(self.0.leaf.attempt);
        self.0.engine.ask(decision(id, text, options)).await
    }

    /// Whether a person has said that the branch of a conflict does not come together with the others.
    pub(super) async fn is_left_out(self, known: &MergeChanged) -> bool {
        let question = self.id(known.attempt);
        known.state == MergeState::Conflict
            && self.0.engine.journal.answer_to(question).await.as_deref() == Some(JOIN_OPTIONS[1])
    }

    /// A person who resumes the run without an answer wants the merge tried again; one who has answered `Stop` does not.
    pub(super) async fn settle(self) -> Result<(), Trouble> {
        let question = self.id(self.0.leaf.attempt.saturating_sub(1));
        let progress = self.0.engine.journal.read(|_, run| match run.asked(question) {
            QuestionProgress::No => None,
            QuestionProgress::Open => Some(None),
            QuestionProgress::Answered(answer) => Some(Some(answer.text.clone())),
        });
        match progress.await {
            Some(Some(answer)) if !JOIN_OPTIONS[..2].contains(&answer.as_str()) => {
                Err(Trouble::Failed("the conflicts are not resolved: you stopped it".to_owned()))
            }
            Some(None) => {
                let reason = "the merge is tried again".to_owned();
                let closed = Event::QuestionClosed(QuestionClosed { question, reason });
                Ok(self.0.engine.commit(vec![closed]).await?)
            }
            Some(Some(_)) | None => Ok(()),
        }
    }
}

impl Merge<'_> {
    /// Has conflicts resolved in the branch's own worktree; the merge is computed again afterwards. What the agent cannot
    /// resolve is left to whoever asks a person.
    pub(super) async fn resolve(
        &self,
        computed: &MergeCommit,
        files: &[String],
    ) -> Result<(), Trouble> {
        let conflict = format!(
            "`{}` and `{}` changed the same places: {}. The worktree is kept: {}",
            self.from.branch,
            self.target,
            some_of(files),
            self.from.path
        );
        if self.conflicts == OnConflict::Agent {
            // What an agent leaves that has not resolved them is for a person to see, as it is.
            if !self.resolve_by_agent(computed, files).await? {
                return Err(Trouble::Conflict(conflict));
            }
            self.commit_rest().await?;
            let branch = format!("refs/heads/{}", self.from.branch);
            let head = self.engine().repository.with(move |git| git.commit(&branch)).await?;
            if head.as_deref() != Some(&computed.head) {
                return Ok(());
            }
        }
        Err(Trouble::Conflict(conflict))
    }

    /// Whether the files that were in conflict are resolved, whoever was to do it: a merge with markers in them is clean
    /// to git.
    pub(super) async fn check_resolution(&self, computed: &MergeCommit) -> Result<(), Trouble> {
        let known = self.engine().journal.read(|_, run| run.merges.get(&self.step).cloned()).await;
        let Some(known) = known.filter(|known| known.state == MergeState::Conflict) else {
            return Ok(());
        };
        let (new, old) = (computed.new.clone(), computed.old.clone());
        let look =
            move |git: &Git| worktree::left_markers(git, &known.files, &new, [&old, &known.head]);
        let marked = self.engine().repository.with(look).await?;
        match marked.is_empty() {
            true => Ok(()),
            false => Err(Trouble::Conflict(format!(
                "`{}` has the markers of conflicts in {}. The worktree is kept: {}",
                self.from.branch,
                some_of(&marked),
                self.from.path
            ))),
        }
    }

    async fn resolve_by_agent(
        &self,
        computed: &MergeCommit,
        files: &[String],
    ) -> Result<bool, Trouble> {
        let mut variables = self.attempt.leaf.variables.clone();
        variables.extend([
            ("branch".to_owned(), self.from.branch.as_str().into()),
            ("target".to_owned(), self.target.as_str().into()),
            ("files".to_owned(), files.into()),
        ]);
        variables
            .entry("workflow")
            .or_insert_with(|| json!({ "name": self.engine().workflow.name }));
        let spell = Spell::Inline(CONFLICT_PROMPT.to_owned());
        let prompt = crate::spell::prompt(&self.engine().source, &spell, &variables)
            .map_err(|error| Trouble::Failed(error.to_string()))?;
        // A conflict of the same commits has one agent, however often the process dies.
        let path =
            format!("{}.conflict.{}.{}", self.step, short(&computed.old), short(&computed.head));
        let work = AgentWork { spell, runner: None, model: None, profile: None };
        let timeout = self.engine().deadlines().time_for_more(self.attempt.leaf)?;
        let step =
            Step { work: Work::Agent(work.clone()), timeout, ..self.attempt.leaf.step.clone() };
        let leaf = Leaf { path, step, attempt: 1, variables, ..self.attempt.leaf.clone() };
        let attempt = Attempt { leaf: &leaf, ..self.attempt };
        let directory = Path::new(&self.from.path);
        let said = match self.engine().workflow.runner.as_str() {
            OWN_RUNNER => attempt.own_agent(&work, &prompt, directory).await?,
            other => attempt.program(&work, other, &prompt, directory).await?,
        };
        Ok(said.is_ok_and(|text| AgentOutput::read(&text).is_ok_and(|said| said.success)))
    }
}

fn short(commit: &str) -> &str {
    windlass_core::text::prefix(commit, 12)
}
