//! Where planning ends: the plan is put before a person, and what they accept is carried out.
//!
//! Invariants:
//! - An acceptance holds for the plan, the files and the budget as they were shown. If one of them has changed when
//!   the work should begin, nothing begins: the person is asked again and reads what changed.
//! - The change to build is one transaction: who accepted which plan, and the axes it is carried out with.
//! - The plan is journaled with its question. Its file is for the person, who may edit it; an agent cannot.

use std::sync::Arc;

use windlass_core::axes::{Axes, RunControl, Surface, WorkMode};
use windlass_core::ending::Ending;
use windlass_core::event::{BudgetKind, Event, ModeChanged, PlanAccepted};
use windlass_core::id::{CallId, ChangeId, InjectionId, QuestionId};
use windlass_core::injection::Injection;
use windlass_core::layout::Own;
use windlass_core::plan::WorkingPlan;
use windlass_core::question::{
    Acceptance, AcceptedAnswers, PLAN_OPTIONS, ProposedPlan, Question, QuestionKind,
};
use windlass_core::session::Source;
use windlass_core::state::{Next, TaskState};
use windlass_store::Level;
use windlass_tools::workspace::{Purpose, Replacement, TreeDigest, Workspace};

use crate::journal::Journal;
use crate::{Error, Parts, prompt};

/// The largest plan file that is read; a plan is for a person to read.
const MAX_PLAN_BYTES: u64 = 256 << 10;

/// Who accepts a plan where nobody is asked.
const NOBODY: &str = "run control `autonomous`";

/// Puts plans before people, and starts what they accept.
pub(crate) struct PlanReview {
    workspace: Arc<Workspace>,
    cost_limit: Option<f64>,
}

impl PlanReview {
    pub(crate) fn new(parts: &Parts) -> Self {
        let workspace = parts.world.workspace.clone();
        Self { workspace, cost_limit: parts.settings.budget.cost_usd }
    }

    /// Whether the final reply of this task is a plan for somebody to accept (MS-022).
    pub(crate) fn ends_in_proposal(state: &TaskState) -> bool {
        state.axes.work_mode == WorkMode::Plan
            && state.created.depth == 0
            && !state.waits_for_schedule()
            // Not every reply of a conversation is a plan. A plan is one that was written with `update_plan`.
            && (!state.created.conversation || state.plan.is_some())
            && !plan_text(state).is_empty()
    }

    /// Puts the plan before a person. Headless work that is autonomous asks nobody and continues (MS-027).
    pub(crate) async fn propose(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let text = plan_text(task.state());
        let plan = self.plan_now(task, text, None).await;
        self.write_proposal(task, &plan);
        let Axes { run_control, surface, .. } = task.state().axes;
        if run_control == RunControl::Autonomous && surface == Surface::Headless {
            return self.accept(task, None, NOBODY, plan, Acceptance::Autonomous).await;
        }
        self.ask_about(task, plan).await
    }

    /// Starts the plan that a person has accepted, unless something has changed since they read it.
    pub(crate) async fn start(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let Some(answered) = task.state().plan_review.answered.clone() else { return Ok(None) };
        let before = &answered.plan;
        let (text, unreadable) = match self.edited_text(&before.path) {
            Ok(edited) => (edited.unwrap_or_else(|| before.text.clone()), None),
            Err(problem) => (before.text.clone(), Some(problem)),
        };
        let mut now = self.plan_now(task, text, Some(before)).await;
        now.changed.extend(unreadable);
        match now.changed.is_empty() {
            true => {
                let question = Some(answered.question);
                self.accept(task, question, &answered.by, now, answered.acceptance).await
            }
            false => self.ask_about(task, now).await,
        }
    }

    /// Tells the agent how a person has edited the plan that it is to revise.
    pub(crate) async fn report_edits(&self, task: &mut Journal) -> Result<(), Error> {
        let state = task.state();
        let revised = state.plan_review.revised.as_ref().filter(|_| state.next() == Next::AskModel);
        let Some(before) = revised else { return Ok(()) };
        let edited = self.edited_text(&before.path).ok().flatten();
        let Some(text) = edited.filter(|text| ProposedPlan::digest_of(text) != before.digest)
        else {
            return Ok(());
        };
        let id = InjectionId::new(task.now());
        let notice = Injection::notice(id, prompt::plan_edited(&text), None);
        task.commit(vec![Event::InjectionReceived(notice)], Level::Written).await.map(drop)
    }

    async fn ask_about(
        &self,
        task: &mut Journal,
        plan: ProposedPlan,
    ) -> Result<Option<Ending>, Error> {
        let question = question(QuestionId::new(task.now()), plan);
        task.commit(vec![Event::QuestionAsked(question)], Level::Synced).await?;
        Ok(None)
    }

    async fn accept(
        &self,
        task: &mut Journal,
        question: Option<QuestionId>,
        by: &str,
        plan: ProposedPlan,
        acceptance: Acceptance,
    ) -> Result<Option<Ending>, Error> {
        let from = task.state().axes;
        let to = from.for_accepted_plan(acceptance);
        // What the agent has said itself, it need not read again.
        let is_own = plan_text(task.state()) == plan.text.trim();
        let accepted = PlanAccepted {
            question,
            by: by.to_owned(),
            message: prompt::plan_accepted(&to, &plan.path, (!is_own).then_some(&plan.text)),
            path: plan.path,
            text: plan.text,
            digest: plan.digest,
            tree: plan.tree,
            axes: to,
            budget_usd: plan.budget_usd,
        };
        let reason = format!("plan accepted by {by}");
        let changed = ModeChanged {
            // It is a change of the session too.
            change: Some(ChangeId::new(task.now())),
            ..ModeChanged::by_task(from, to, Source::Plan, reason, by)
        };
        let events = vec![Event::PlanAccepted(Box::new(accepted)), Event::ModeChanged(changed)];
        task.commit(events, Level::Synced).await?;
        Ok(None)
    }

    /// A plan with what it is bound to right now, and what is different from `before`.
    async fn plan_now(
        &self,
        task: &Journal,
        text: String,
        before: Option<&ProposedPlan>,
    ) -> ProposedPlan {
        let workspace = self.workspace.clone();
        let (at, path) = (task.now(), workspace.layout().path(Own::Proposal));
        let since = before.map(|before| before.at);
        let looked = tokio::task::spawn_blocking(move || workspace.tree(since)).await;
        let tree = match looked {
            Ok(Ok(tree)) => tree,
            // Where the files cannot be looked at, that is what the plan is bound to.
            Ok(Err(error)) => unreadable(&error),
            Err(error) => unreadable(&error),
        };
        let mut plan = ProposedPlan {
            path,
            digest: ProposedPlan::digest_of(&text),
            text,
            tree: tree.digest,
            at,
            budget_usd: self.budget(task.state()),
            changed: Vec::new(),
        };
        if let Some(before) = before {
            plan.changed = differences(before, &plan, &tree.changed);
        }
        plan
    }

    /// What the whole task may cost, with what people have granted.
    fn budget(&self, state: &TaskState) -> Option<f64> {
        let raised = state.spending.raised.get(&BudgetKind::Cost).copied().unwrap_or(0.0);
        self.cost_limit.map(|limit| limit + raised)
    }

    /// The text of the plan's file; `None` where there is no such file.
    fn edited_text(&self, path: &str) -> Result<Option<String>, String> {
        use windlass_tools::workspace::Error as WorkspaceError;
        match self.workspace.read_all(path, MAX_PLAN_BYTES) {
            Ok(content) => String::from_utf8(content)
                .map(|text| Some(text.trim().to_owned()))
                .map_err(|_| format!("`{path}` is no longer text")),
            Err(WorkspaceError::NotFound { .. }) => Ok(None),
            Err(error) => Err(format!("the plan's file cannot be read: {error}")),
        }
    }

    /// Writes the plan where a person can edit it. Without the file they can still answer.
    fn write_proposal(&self, task: &Journal, plan: &ProposedPlan) {
        let content = format!("{}\n", plan.text.trim());
        let written = self.workspace.hash(&plan.path).and_then(|before| {
            self.workspace.replace(Replacement {
                call: CallId::derived(&task.task().to_string(), &plan.path),
                path: &plan.path,
                before: before.as_deref(),
                content: content.as_bytes(),
                purpose: Purpose::Harness,
            })
        });
        if let Err(error) = written {
            tracing::warn!(task_id = %task.task(), %error, "The plan could not be written to its file");
        }
    }
}

/// The plan that a task ends with: its last words, else its working plan.
fn plan_text(state: &TaskState) -> String {
    let said = state.last_reply.final_text.as_deref().unwrap_or_default().trim();
    match said.is_empty() {
        false => said.to_owned(),
        true => {
            state.plan.as_ref().map(WorkingPlan::markdown).unwrap_or_default().trim().to_owned()
        }
    }
}

fn unreadable(error: &dyn std::error::Error) -> TreeDigest {
    TreeDigest { digest: format!("unreadable: {error}"), changed: Vec::new() }
}

/// What is different from the plan that a person has read, in words.
fn differences(before: &ProposedPlan, now: &ProposedPlan, files: &[String]) -> Vec<String> {
    let mut changed = Vec::new();
    if before.digest != now.digest {
        changed.push(format!("the plan in `{}` was edited", now.path));
    }
    if before.tree != now.tree {
        changed.push(match files {
            [] => "files of the workspace were removed, or replaced by older ones".to_owned(),
            files => format!("files of the workspace were changed: {}", files.join(", ")),
        });
    }
    if before.budget_usd != now.budget_usd {
        let dollars = |budget: Option<f64>| match budget {
            Some(usd) => format!("${usd:.2}"),
            None => "no limit".to_owned(),
        };
        let (from, to) = (dollars(before.budget_usd), dollars(now.budget_usd));
        changed.push(format!("the budget was {from} and is {to} now"));
    }
    changed
}

fn question(id: QuestionId, plan: ProposedPlan) -> Question {
    let question = match plan.changed.as_slice() {
        [] => "Accept this plan?".to_owned(),
        changed => {
            format!("Since you read the plan, {}. Accept it as it is now?", changed.join("; "))
        }
    };
    Question {
        id,
        kind: QuestionKind::Plan,
        call: None,
        question,
        options: PLAN_OPTIONS.map(str::to_owned).to_vec(),
        context: Some(plan.text.clone()),
        binding: None,
        diff: None,
        grants: None,
        accepts: AcceptedAnswers::Words,
        asked: None,
        plan: Some(Box::new(plan)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn plan() -> ProposedPlan {
        ProposedPlan {
            path: "plan.md".to_owned(),
            text: "paint".to_owned(),
            digest: "a".to_owned(),
            tree: "b".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            budget_usd: Some(2.0),
            changed: Vec::new(),
        }
    }

    #[test]
    fn what_an_acceptance_is_bound_to_is_named_when_it_changes() {
        let before = plan();
        let now = ProposedPlan {
            digest: "x".to_owned(),
            tree: "y".to_owned(),
            budget_usd: None,
            ..plan()
        };
        let found = differences(&before, &now, &["src/a.rs".to_owned()]);
        assert_eq!(
            found,
            [
                "the plan in `plan.md` was edited",
                "files of the workspace were changed: src/a.rs",
                "the budget was $2.00 and is no limit now"
            ]
        );
        assert!(differences(&before, &plan(), &[]).is_empty());
    }
}
