//! Merging what a run did: into its target, and the branches of a parallel step into the worktree around them.
//!
//! Invariants:
//! - The move of a target is journaled before it is made, with the commits before and after. Repeated after a crash, it
//!   is found done, or made from the same commits.
//! - Merges into one repository wait for each other: each is computed and checked on what the one before it left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::axes::PermissionProfile;
use windlass_core::event::{
    Event, MergeChanged, MergeState, QuestionClosed, StepEnded, StepResult, WorktreeChanged,
};
use windlass_core::id::QuestionId;
use windlass_core::question::Question;

use super::children::{Script, ScriptEnd};
use super::steps::key;
use super::{Engine, Error, StepEnd, Trouble, Wait, question};
use crate::definition::{
    AgentWork, MergeWork, OWN_RUNNER, OnConflict, ParallelWork, Place, Spell, Step, Strategy, Work,
};
use crate::git::Lock;
use crate::merge::{self, Attempt, Computed, Moved, Outlook};
use crate::next::Leaf;
use crate::state::Asked;
use crate::worktree::some_of;
use crate::{template, worktree};

/// What an agent is asked to do about conflicts.
const CONFLICT_PROMPT: &str = include_str!("../prompts/conflict.md");
/// How often a merge is computed again because its target moved or its conflicts were resolved.
const MAX_COMPUTATIONS: u32 = 10;
/// How often a waiting merge looks whether it is its turn.
const TURN_POLL: Duration = Duration::from_millis(50);

const MERGE_OPTIONS: [&str; 2] = ["Merge", "Keep"];
const DIRTY_OPTIONS: [&str; 2] = ["Try again", "Stop"];

/// A branch that is to be merged.
struct Job<'a> {
    leaf: &'a Leaf,
    /// What is journaled as the step of the merge.
    step: String,
    from: WorktreeChanged,
    target: String,
    strategy: Strategy,
    gates: &'a [String],
    message: String,
    conflicts: OnConflict,
}

impl Engine<'_> {
    pub(super) async fn merge(
        &self,
        leaf: &Leaf,
        work: &MergeWork,
        halt: &CancellationToken,
    ) -> Result<StepEnd, Trouble> {
        self.place(&leaf.worktree, halt).await?;
        let name = match &work.from {
            Some(text) => template::render(text, &leaf.variables)
                .map_err(|error| Trouble::Failed(error.to_string()))?,
            None => leaf.worktree.clone(),
        };
        let from = self.journal.read(|_, run| run.worktrees.get(&name).cloned()).await;
        let from =
            from.ok_or_else(|| Trouble::Failed(format!("there is no worktree `{name}` to merge")))?;
        let target = self.target(leaf, work).await?;
        self.start(leaf, None, target.clone(), None).await?;
        self.close_conflict_question(leaf).await?;
        let message = match &work.message {
            Some(text) => template::render(text, &leaf.variables)
                .map_err(|error| Trouble::Failed(error.to_string()))?,
            None => self.message(),
        };
        let job = Job {
            leaf,
            step: leaf.path.clone(),
            from,
            target,
            strategy: work.strategy,
            gates: &work.gates,
            message,
            conflicts: work.conflicts,
        };
        let merged = self.merge_job(&job, halt).await?;
        let output = json!({ "commit": merged, "target": job.target, "branch": job.from.branch });
        Ok(StepEnd::Ended(StepEnded { output, ..leaf.ended(StepResult::Succeeded) }))
    }

    /// The branches of a parallel step come together in the worktree around them.
    pub(super) async fn join(&self, leaf: &Leaf, work: &ParallelWork) -> Result<StepEnd, Trouble> {
        let halt = CancellationToken::new();
        if work.join && matches!(self.workflow.place, Place::Worktree(_)) {
            // A run that begins with a parallel step has no worktree of its own yet.
            self.place(&leaf.worktree, &halt).await?;
        }
        let outer = self.journal.read(|_, run| run.worktrees.get(&leaf.worktree).cloned()).await;
        let mut merged = Vec::new();
        for step in &work.steps {
            let name = match leaf.worktree.as_str() {
                "" => step.name.clone(),
                outer => format!("{outer}-{}", step.name),
            };
            let path = format!("{}.{}", leaf.path, step.name);
            let (from, ended) = self
                .journal
                .read(|_, run| (run.worktrees.get(&name).cloned(), run.end_of(&path).cloned()))
                .await;
            if !work.join {
                // Each stays on its own branch, whole: a person will look at them.
                if let Some(from) = from {
                    let (tree, message) =
                        (PathBuf::from(&from.path), format!("windlass: {}", step.name));
                    self.with_git(move |git| worktree::commit_all(git, &tree, &message)).await?;
                }
                continue;
            }
            let has_succeeded = ended.is_some_and(|ended| ended.result == StepResult::Succeeded);
            let (Some(from), Some(outer), true) = (from, &outer, has_succeeded) else { continue };
            let job = Job {
                leaf,
                step: format!("{path} (joined)"),
                from,
                target: outer.branch.clone(),
                strategy: Strategy::Merge,
                gates: &[],
                message: format!("windlass: join {}", step.name),
                conflicts: OnConflict::Agent,
            };
            let tree = PathBuf::from(&outer.path);
            self.with_git(move |git| worktree::commit_all(git, &tree, "windlass: before a join"))
                .await?;
            merged.push(self.merge_job(&job, &halt).await?);
        }
        let path_of = |step: &Step| format!("{}.{}", leaf.path, step.name);
        let is_success = self
            .journal
            .read(|_, run| {
                let has_failed = |path: String| {
                    run.end_of(&path).is_some_and(|ended| ended.result == StepResult::Failed)
                };
                !work.steps.iter().map(path_of).any(has_failed)
            })
            .await;
        let output = json!({ "commits": merged });
        let result = if is_success { StepResult::Succeeded } else { StepResult::Failed };
        let error = (!is_success).then(|| "a step in it failed".to_owned());
        let reason = error.as_ref().map(|_| windlass_core::status::StatusReason::Error);
        Ok(StepEnd::Ended(StepEnded { output, error, reason, ..leaf.ended(result) }))
    }

    fn message(&self) -> String {
        let title = self.source.title.trim();
        match title.is_empty() {
            true => format!("Workflow {}", self.workflow.name),
            false => title.to_owned(),
        }
    }

    /// The branch that gets the work; found once, when the step begins.
    async fn target(&self, leaf: &Leaf, work: &MergeWork) -> Result<String, Trouble> {
        let (path, attempt) = (leaf.path.as_str(), leaf.attempt);
        let known = self.journal.read(|_, run| {
            let started = run.step(path)?.started.as_ref()?;
            (started.attempt == attempt).then(|| started.text.clone())
        });
        let named =
            known.await.or_else(|| work.target.clone()).or_else(|| self.workflow.target.clone());
        if let Some(named) = named {
            return Ok(named);
        }
        let here = self.with_git(|git| git.branch_in(git.top())).await?;
        here.ok_or_else(|| {
            Trouble::Failed(
                "the head is detached: name the branch with `target` in the workflow".to_owned(),
            )
        })
    }

    async fn merge_job(&self, job: &Job<'_>, halt: &CancellationToken) -> Result<String, Trouble> {
        let known = self.journal.read(|_, run| run.merges.get(&job.step).cloned()).await;
        match known {
            Some(done) if done.state == MergeState::Merged && done.attempt == job.leaf.attempt => {
                return Ok(done.new);
            }
            Some(moving) if moving.state == MergeState::Moving => {
                let computed = Computed { head: moving.head, old: moving.old, new: moving.new };
                if let Some(done) = self.advance(job, &computed, Attempt::Repeated).await? {
                    return Ok(done);
                }
            }
            Some(_) | None => {}
        }
        self.commit_rest(job).await?;
        for _ in 0..MAX_COMPUTATIONS {
            let turn = self.wait_for_turn(halt).await?;
            match self.compute(job).await? {
                Outlook::Nothing { old, head } => {
                    let computed = Computed { head, old: old.clone(), new: old };
                    self.note_merge(job, MergeState::Merged, &computed, Vec::new()).await?;
                    return Ok(computed.new);
                }
                Outlook::Conflict { head, old, files } => {
                    drop(turn);
                    let computed = Computed { head, old, new: String::new() };
                    self.note_merge(job, MergeState::Conflict, &computed, files.clone()).await?;
                    self.resolve(job, &computed, &files, halt).await?;
                }
                Outlook::Clean(computed) => {
                    self.check_permission(job, &computed).await?;
                    self.check_gates(job, &computed, halt).await?;
                    self.note_merge(job, MergeState::Moving, &computed, Vec::new()).await?;
                    if let Some(done) = self.advance(job, &computed, Attempt::First).await? {
                        return Ok(done);
                    }
                }
            }
        }
        Err(Trouble::Failed(format!("`{}` moves faster than it can be merged into", job.target)))
    }

    /// What an agent left without committing it is its work all the same.
    async fn commit_rest(&self, job: &Job<'_>) -> Result<(), Trouble> {
        let (tree, message) = (PathBuf::from(&job.from.path), job.message.clone());
        self.with_git(move |git| worktree::commit_all(git, &tree, &message)).await.map(drop)
    }

    async fn compute(&self, job: &Job<'_>) -> Result<Outlook, Trouble> {
        let (from, target) = (job.from.clone(), job.target.clone());
        let (strategy, message) = (job.strategy, job.message.clone());
        self.with_git(move |git| {
            let tree = Path::new(&from.path);
            let branch = from.branch.as_str();
            merge::compute(
                git,
                &merge::Wanted { branch, tree, target: &target, strategy, message: &message },
            )
        })
        .await
    }

    /// Waits until no other merge into the repository is under way.
    async fn wait_for_turn(&self, halt: &CancellationToken) -> Result<Lock, Trouble> {
        loop {
            if let Some(turn) = self.with_git(|git| git.try_lock("windlass-merge.lock")).await? {
                return Ok(turn);
            }
            tokio::select! {
                () = halt.cancelled() => return Err(Trouble::Wait(Wait::Parked)),
                () = tokio::time::sleep(TURN_POLL) => {}
            }
        }
    }

    async fn note_merge(
        &self,
        job: &Job<'_>,
        state: MergeState,
        computed: &Computed,
        files: Vec<String>,
    ) -> Result<(), Error> {
        let changed = MergeChanged {
            step: job.step.clone(),
            attempt: job.leaf.attempt,
            state,
            branch: job.from.branch.clone(),
            head: computed.head.clone(),
            target: job.target.clone(),
            old: computed.old.clone(),
            new: computed.new.clone(),
            files,
        };
        self.journal.commit(self.now(), vec![Event::MergeChanged(Box::new(changed))]).await
    }

    /// Moves the target; `None` where it has moved meanwhile and the merge must be computed again.
    async fn advance(
        &self,
        job: &Job<'_>,
        computed: &Computed,
        attempt: Attempt,
    ) -> Result<Option<String>, Trouble> {
        let (target, wanted) = (job.target.clone(), computed.clone());
        let moved =
            self.with_git(move |git| merge::advance(git, &target, &wanted, attempt)).await?;
        match moved {
            Moved::Done => {
                self.note_merge(job, MergeState::Merged, computed, Vec::new()).await?;
                Ok(Some(computed.new.clone()))
            }
            Moved::Stale => Ok(None),
            Moved::Dirty { checkout, why } => {
                self.ask_for_clean(job, &checkout, &why).await.map(|()| None)
            }
        }
    }

    /// The target is checked out with changes of its own: nothing moves before a person has put them away.
    async fn ask_for_clean(
        &self,
        job: &Job<'_>,
        checkout: &Path,
        why: &str,
    ) -> Result<(), Trouble> {
        for number in 1.. {
            let name = format!("dirty {} {} {number}", job.step, job.leaf.attempt);
            let id = QuestionId::derived(&self.id().to_string(), &name);
            match self.answer_to(id).await {
                Some(text) if text == DIRTY_OPTIONS[0] => continue,
                Some(_) => {
                    return Err(Trouble::Failed(format!(
                        "`{}` was not merged: you stopped it",
                        job.target
                    )));
                }
                None => {
                    let place = checkout.display();
                    let text = format!(
                        "`{}` is checked out in `{place}`, and {why}. Commit or put away what is there; then try again.",
                        job.target
                    );
                    let options = DIRTY_OPTIONS.map(str::to_owned).to_vec();
                    self.journal
                        .ask(self.now(), Question { options, ..question(id, text) })
                        .await?;
                    return Err(Trouble::Wait(Wait::Answer(id)));
                }
            }
        }
        Ok(())
    }

    async fn answer_to(&self, id: QuestionId) -> Option<String> {
        self.journal
            .read(|_, run| match run.asked(id) {
                Asked::Answered(answer) => Some(answer.text.clone()),
                Asked::No | Asked::Open => None,
            })
            .await
    }

    /// Below `trusted` a person says whether the target gets the work (O-37).
    async fn check_permission(&self, job: &Job<'_>, computed: &Computed) -> Result<(), Trouble> {
        let profile = self.journal.read(|task, _| task.axes.permission_profile).await;
        let is_own = self
            .journal
            .read(|_, run| run.worktrees.values().any(|tree| tree.branch == job.target))
            .await;
        if profile >= PermissionProfile::Trusted || is_own {
            return Ok(());
        }
        let id = QuestionId::derived(&self.id().to_string(), &format!("merge {}", key(job.leaf)));
        match self.answer_to(id).await {
            Some(text) if text == MERGE_OPTIONS[0] => Ok(()),
            Some(_) => {
                Err(Trouble::Failed(format!("`{}` was not merged: you kept it", job.from.branch)))
            }
            None => {
                let (old, new) = (computed.old.clone(), computed.new.clone());
                let stat =
                    self.with_git(move |git| git.run(["diff", "--stat", &old, &new])).await?;
                let asked = Question {
                    options: MERGE_OPTIONS.map(str::to_owned).to_vec(),
                    context: Some(stat),
                    ..question(id, format!("Merge `{}` into `{}`?", job.from.branch, job.target))
                };
                self.journal.ask(self.now(), asked).await?;
                Err(Trouble::Wait(Wait::Answer(id)))
            }
        }
    }

    /// Runs the gates on the merged tree, in a checkout of its own.
    async fn check_gates(
        &self,
        job: &Job<'_>,
        computed: &Computed,
        halt: &CancellationToken,
    ) -> Result<(), Trouble> {
        if job.gates.is_empty() {
            return Ok(());
        }
        let scratch = PathBuf::from(format!("{}-gates", job.from.path));
        let (path, commit) = (scratch.clone(), computed.new.clone());
        self.with_git(move |git| worktree::add_scratch(git, &path, &commit)).await?;
        let checked = self.run_gates(job, computed, &scratch, halt).await;
        if !matches!(checked, Err(Trouble::Wait(_) | Trouble::Journal(_))) {
            self.with_git(move |git| worktree::remove_scratch(git, &scratch)).await?;
        }
        checked
    }

    async fn run_gates(
        &self,
        job: &Job<'_>,
        computed: &Computed,
        scratch: &Path,
        halt: &CancellationToken,
    ) -> Result<(), Trouble> {
        for gate in job.gates {
            let mut ended = ScriptEnd::Unknown;
            // A gate changes nothing that is kept, so one that was interrupted runs again.
            for attempt in 1..=3 {
                let key = format!("{} gate {gate} {} #{attempt}", job.step, computed.new);
                let script = Script {
                    key: &key,
                    step: &job.step,
                    command: gate,
                    directory: scratch,
                    timeout_seconds: job.leaf.step.timeout.map(|timeout| timeout.as_secs()),
                };
                ended = self.run_script(script, halt).await?;
                if !matches!(ended, ScriptEnd::Unknown) {
                    break;
                }
            }
            match ended {
                ScriptEnd::Exited { code: 0, .. } => {}
                ScriptEnd::Exited { code, output } => {
                    return Err(Trouble::Failed(format!(
                        "gate `{gate}`: exit code {code}\n{output}"
                    )));
                }
                ScriptEnd::Failed { error, output, .. } => {
                    return Err(Trouble::Failed(format!("gate `{gate}`: {error}\n{output}")));
                }
                ScriptEnd::Unknown => {
                    return Err(Trouble::Failed(format!("gate `{gate}` was interrupted")));
                }
            }
        }
        Ok(())
    }

    /// Has conflicts resolved in the branch's own worktree; the merge is computed again afterwards.
    async fn resolve(
        &self,
        job: &Job<'_>,
        computed: &Computed,
        files: &[String],
        halt: &CancellationToken,
    ) -> Result<(), Trouble> {
        let conflict = format!(
            "`{}` and `{}` changed the same places: {}. The worktree is kept: {}",
            job.from.branch,
            job.target,
            some_of(files),
            job.from.path
        );
        if job.conflicts == OnConflict::Agent {
            let resolved = self.resolve_by_agent(job, computed, files, halt).await?;
            self.commit_rest(job).await?;
            let branch = format!("refs/heads/{}", job.from.branch);
            let head = self.with_git(move |git| git.commit(&branch)).await?;
            if resolved && head.as_deref() != Some(&computed.head) {
                return Ok(());
            }
        }
        let id = self.conflict_question(job.leaf, job.leaf.attempt);
        let text = format!("{conflict}. Resolve it there and commit, then try again.");
        let options = DIRTY_OPTIONS.map(str::to_owned).to_vec();
        self.journal.ask(self.now(), Question { options, ..question(id, text) }).await?;
        Err(Trouble::Conflict(conflict))
    }

    async fn resolve_by_agent(
        &self,
        job: &Job<'_>,
        computed: &Computed,
        files: &[String],
        halt: &CancellationToken,
    ) -> Result<bool, Trouble> {
        let mut variables = job.leaf.variables.clone();
        variables.extend([
            ("branch".to_owned(), job.from.branch.as_str().into()),
            ("target".to_owned(), job.target.as_str().into()),
            ("files".to_owned(), files.into()),
        ]);
        variables.entry("workflow").or_insert_with(|| json!({ "name": self.workflow.name }));
        let spell = Spell::Inline(CONFLICT_PROMPT.to_owned());
        let prompt = crate::spell::prompt(&self.source, &spell, &variables)
            .map_err(|error| Trouble::Failed(error.to_string()))?;
        // A conflict of the same commits has one agent, however often the process dies.
        let path =
            format!("{}.conflict.{}.{}", job.step, short(&computed.old), short(&computed.head));
        let work = AgentWork { spell, runner: None, model: None, profile: None };
        let step = Step { work: Work::Agent(work.clone()), ..job.leaf.step.clone() };
        let leaf = Leaf { path, step, attempt: 1, ..job.leaf.clone() };
        let directory = Path::new(&job.from.path);
        let said = match self.workflow.runner.as_str() {
            OWN_RUNNER => self.own_agent(&leaf, &work, &prompt, directory, halt).await?,
            other => self.program(&leaf, &work, other, &prompt, directory, halt).await?,
        };
        Ok(said.is_ok())
    }

    fn conflict_question(&self, leaf: &Leaf, attempt: u32) -> QuestionId {
        QuestionId::derived(&self.id().to_string(), &format!("conflict {} {attempt}", leaf.path))
    }

    /// A person who resumes the run has answered the question about the attempt before.
    async fn close_conflict_question(&self, leaf: &Leaf) -> Result<(), Error> {
        let question = self.conflict_question(leaf, leaf.attempt.saturating_sub(1));
        if self.journal.read(|_, run| run.asked(question) == Asked::Open).await {
            let reason = "the merge is tried again".to_owned();
            let closed = Event::QuestionClosed(QuestionClosed { question, reason });
            self.journal.commit(self.now(), vec![closed]).await?;
        }
        Ok(())
    }
}

fn short(commit: &str) -> &str {
    windlass_core::text::prefix(commit, 12)
}
