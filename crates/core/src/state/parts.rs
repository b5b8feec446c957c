//! The parts of a task's state, one per concern.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::command::Deliverable;
use crate::event::PlanAccepted;
use crate::id::{CallId, QuestionId};
use crate::outcome::Evidence;
use crate::question::{
    Acceptance, Answer, Permission, PlanAnswer, ProposedPlan, Question, QuestionKind,
};
use crate::status::StatusReason;

/// What a person said when they were asked whether a task may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartAnswer {
    pub given: Permission,
    pub by: String,
}

/// How often the task was started and tried, and how long it has been active.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempts {
    /// Whether an agent has ever started.
    pub started: bool,
    /// The model of the last segment.
    pub model: Option<String>,
    /// Whether that model has answered this task.
    pub was_answered: bool,
    /// Times it was retried.
    pub retries: u32,
    /// Times in a row that the model server refused a request for a while instead of answering.
    pub rate_limit_streak: u32,
    /// Times in a row that the task was parked because the model server was gone.
    pub outage_streak: u32,
    /// Rounds and active time before the last retry: each attempt has limits of its own.
    pub(super) rounds_before: u32,
    pub(super) active_ms_before: u64,
    pub(super) segment: Option<Segment>,
}

/// The segment that runs, or that a process left without ending it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    /// When its last event was committed.
    pub(super) last_event: Timestamp,
    /// How long it has been worked on, as its last event with a time says.
    pub(super) worked_ms: u64,
}

impl Segment {
    pub(super) fn on_event(&mut self, at: Timestamp, worked_ms: Option<u64>) {
        self.last_event = at;
        self.worked_ms = worked_ms.unwrap_or(self.worked_ms);
    }
}

impl Attempts {
    /// A segment or a context begins with this model.
    pub(super) fn on_model(&mut self, model: &str) {
        self.was_answered &= self.model.as_deref() == Some(model);
        self.model = Some(model.to_owned());
    }

    /// The model server works again.
    pub(super) fn on_reply(&mut self) {
        (self.rate_limit_streak, self.outage_streak) = (0, 0);
    }

    /// The task was parked.
    pub(super) fn on_pause(&mut self, reason: StatusReason) {
        self.rate_limit_streak += u32::from(reason == StatusReason::RateLimited);
        self.outage_streak += u32::from(reason == StatusReason::ModelOutage);
    }

    /// Whether a segment has begun and not ended.
    pub fn is_in_segment(&self) -> bool {
        self.segment.is_some()
    }
}

/// Pieces of evidence of one task.
const MAX_EVIDENCE: usize = 200;

/// The files of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileState {
    /// The version of each file that the agent has last seen or made.
    pub known: BTreeMap<String, String>,
    /// The files that it and agents below it have changed, in the order of their first change.
    pub changed: Vec<String>,
    /// Whether a call was started of which nobody can tell what it has changed, such as a command.
    pub may_have_changed: bool,
    /// What was published, by path.
    pub deliverables: BTreeMap<String, Deliverable>,
    /// Where the whole of each cut output is.
    pub outputs: Vec<String>,
    /// What proves what was done or read, each once, the latest last.
    pub evidence: Vec<Evidence>,
}

impl FileState {
    /// The latest counts, and of very many the latest ones.
    pub(super) fn on_evidence(&mut self, evidence: &Evidence) {
        self.evidence.retain(|known| known.location != evidence.location);
        if self.evidence.len() == MAX_EVIDENCE {
            self.evidence.remove(0);
        }
        self.evidence.push(evidence.clone());
    }

    pub(super) fn on_change(&mut self, path: &str) {
        if !self.changed.iter().any(|known| known == path) {
            self.changed.push(path.to_owned());
        }
    }
}

/// The sandbox of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxState {
    /// The kind that was started for it and has not ended.
    pub kind: Option<String>,
    /// The shell's directory, as the agent sees it.
    pub working_directory: Option<String>,
    /// Commands left running, by the call that started each.
    pub background: BTreeMap<CallId, String>,
}

/// The skills that an agent knows of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillState {
    /// The version of each skill that was announced to the agent.
    pub announced: BTreeMap<String, String>,
    /// The same as the system prompt has it, which is all that outlives a compaction.
    pub(super) in_prompt: BTreeMap<String, String>,
}

/// What people said to the plans that a task proposed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanReview {
    /// The plan that a person has accepted and that has not begun.
    pub answered: Option<Box<AnsweredPlan>>,
    /// The plan that is being carried out.
    pub accepted: Option<Box<PlanAccepted>>,
    /// The plan that a person wants to be revised; the agent has not replied since.
    pub revised: Option<Box<ProposedPlan>>,
}

/// A plan that a person has accepted, before anybody has looked whether it still holds.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredPlan {
    pub question: QuestionId,
    pub plan: ProposedPlan,
    pub acceptance: Acceptance,
    /// Who accepted it.
    pub by: String,
}

impl PlanReview {
    pub(super) fn on_question(&mut self, kind: QuestionKind) {
        if kind == QuestionKind::Plan {
            self.answered = None;
        }
    }

    pub(super) fn on_answer(&mut self, question: &Question, answer: &Answer) {
        let Some(plan) = question.plan.as_deref() else { return };
        let acceptance = match PlanAnswer::read(&answer.text) {
            Some(PlanAnswer::Accept(acceptance)) => acceptance,
            Some(PlanAnswer::Revise { .. }) | None => {
                self.revised = Some(Box::new(plan.clone()));
                return;
            }
        };
        self.answered = Some(Box::new(AnsweredPlan {
            question: question.id,
            plan: plan.clone(),
            acceptance,
            by: answer.by.clone(),
        }));
    }

    pub(super) fn on_acceptance(&mut self, accepted: &PlanAccepted) {
        self.answered = None;
        self.accepted = Some(Box::new(accepted.clone()));
    }
}
