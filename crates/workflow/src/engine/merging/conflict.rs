//! Conflicts: an agent resolves them in the branch's own worktree, and what it cannot resolve a person decides.

use std::path::Path;

use serde_json::json;
use windlass_core::event::{Event, QuestionClosed};
use windlass_core::id::QuestionId;
use windlass_core::question::Question;

use super::{DIRTY_OPTIONS, Merge};
use crate::definition::{AgentWork, OWN_RUNNER, OnConflict, Spell, Step, Work};
use crate::engine::steps::Attempt;
use crate::engine::{Error, Trouble, question};
use crate::merge::Computed;
use crate::next::Leaf;
use crate::state::Asked;
use crate::worktree::some_of;

/// What an agent is asked to do about conflicts.
const CONFLICT_PROMPT: &str = include_str!("../../prompts/conflict.md");

impl Attempt<'_> {
    fn conflict_question(self, attempt: u32) -> QuestionId {
        QuestionId::derived(
            &self.engine.id().to_string(),
            &format!("conflict {} {attempt}", self.leaf.path),
        )
    }

    /// A person who resumes the run has answered the question about the attempt before.
    pub(super) async fn close_conflict_question(self) -> Result<(), Error> {
        let question = self.conflict_question(self.leaf.attempt.saturating_sub(1));
        if self.engine.journal.read(|_, run| run.asked(question) == Asked::Open).await {
            let reason = "the merge is tried again".to_owned();
            let closed = Event::QuestionClosed(QuestionClosed { question, reason });
            self.engine.commit(vec![closed]).await?;
        }
        Ok(())
    }
}

impl Merge<'_> {
    /// Has conflicts resolved in the branch's own worktree; the merge is computed again afterwards.
    pub(super) async fn resolve(
        &self,
        computed: &Computed,
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
            let resolved = self.resolve_by_agent(computed, files).await?;
            self.commit_rest().await?;
            let branch = format!("refs/heads/{}", self.from.branch);
            let head = self.engine().repository.with(move |git| git.commit(&branch)).await?;
            if resolved && head.as_deref() != Some(&computed.head) {
                return Ok(());
            }
        }
        let id = self.attempt.conflict_question(self.attempt.leaf.attempt);
        let text = format!("{conflict}. Resolve it there and commit, then try again.");
        let options = DIRTY_OPTIONS.map(str::to_owned).to_vec();
        self.engine().ask(Question { options, ..question(id, text) }).await?;
        Err(Trouble::Conflict(conflict))
    }

    async fn resolve_by_agent(
        &self,
        computed: &Computed,
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
        let step = Step { work: Work::Agent(work.clone()), ..self.attempt.leaf.step.clone() };
        let leaf = Leaf { path, step, attempt: 1, ..self.attempt.leaf.clone() };
        let attempt = Attempt { leaf: &leaf, ..self.attempt };
        let directory = Path::new(&self.from.path);
        let said = match self.engine().workflow.runner.as_str() {
            OWN_RUNNER => attempt.own_agent(&work, &prompt, directory).await?,
            other => attempt.program(&work, other, &prompt, directory).await?,
        };
        Ok(said.is_ok())
    }
}

fn short(commit: &str) -> &str {
    windlass_core::text::prefix(commit, 12)
}
