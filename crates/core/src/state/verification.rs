//! How far the verification of a task's completion contract is: a fold of the events about it.
//!
//! Invariant: what was verified or approved holds only for the last final reply. If the agent is asked for more,
//! verification begins again.

use std::collections::BTreeMap;

use crate::contract::{CheckResult, ContractResult, Review};
use crate::event::{
    PlannedCheck, ReviewStarted, ToolResult, VerificationEnded, VerificationStarted,
};
use crate::id::CallId;
use crate::outcome::{CallEnding, Outcome};
use crate::question::{Answer, Permission, Question, QuestionKind, ReviewAnswer};

/// Where a task stands with its completion contract.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerificationState {
    /// Whether a person let the commands of a contract run, by the hash of those.
    pub consent: BTreeMap<String, bool>,
    /// The checks that run.
    pub running: Option<RunningChecks>,
    /// The auditor that reviews.
    pub auditor: Option<ReviewStarted>,
    /// Whether everything that the contract asks for holds for the last final reply.
    pub passed: bool,
    /// Whether an auditor has ended without a verdict, so that a person is asked.
    pub auditor_silent: bool,
    /// What was said of the last final reply.
    pub review: Option<Review>,
    /// How often the contract was evaluated.
    pub attempts: u32,
    /// How often in a row it was not met.
    pub failures: u32,
    /// The contract's name.
    name: String,
    /// The results of the last time.
    results: Vec<CheckResult>,
}

/// Checks that run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningChecks {
    pub attempt: u32,
    pub checks: Vec<PlannedCheck>,
    /// The results of those that have ended, in order.
    pub outcomes: Vec<(CallId, Outcome)>,
}

impl RunningChecks {
    /// The first command that has no result.
    pub fn next(&self) -> Option<&PlannedCheck> {
        self.checks.get(self.outcomes.len())
    }
}

impl VerificationState {
    /// Whether a call belongs to the contract, and not to a reply of the model.
    pub fn owns(&self, call: CallId) -> bool {
        let checks = self.running.iter().flat_map(|running| &running.checks);
        checks
            .map(|check| check.call)
            .chain(self.auditor.iter().map(|one| one.call))
            .any(|own| own == call)
    }

    /// Whether somebody has approved the last final reply.
    pub fn is_approved(&self) -> bool {
        self.review.as_ref().is_some_and(|review| review.approved)
    }

    /// The outcome of the contract; `None` where it was never evaluated.
    pub fn result(&self) -> Option<ContractResult> {
        (self.attempts > 0).then(|| ContractResult {
            name: self.name.clone(),
            passed: self.passed && self.review.as_ref().is_none_or(|review| review.approved),
            attempts: self.attempts,
            checks: self.results.clone(),
            review: self.review.clone(),
        })
    }

    /// The agent is asked something: what was verified before does not hold for what it says next.
    pub(super) fn forget(&mut self) {
        self.running = None;
        self.auditor = None;
        self.auditor_silent = false;
        self.passed = false;
    }

    pub(super) fn on_start(&mut self, started: &VerificationStarted) {
        self.attempts = started.attempt;
        self.name.clone_from(&started.contract);
        self.review = None;
        let (attempt, checks) = (started.attempt, started.checks.clone());
        self.running = Some(RunningChecks { attempt, checks, outcomes: Vec::new() });
    }

    pub(super) fn on_end(&mut self, ended: &VerificationEnded) {
        self.running = None;
        self.passed = ended.passed;
        self.results.clone_from(&ended.results);
        self.failures = if ended.passed { 0 } else { self.failures + 1 };
    }

    /// A command of the contract, or its auditor, has ended.
    pub(super) fn on_result(&mut self, result: &ToolResult) {
        self.auditor = self.auditor.take().filter(|auditor| auditor.call != result.call);
        if let Some(running) = &mut self.running
            && running.next().is_some_and(|check| check.call == result.call)
            // One that was interrupted runs again.
            && result.outcome.ending != CallEnding::Cancelled
        {
            running.outcomes.push((result.call, result.outcome.clone()));
        }
    }

    /// The auditor has ended, with this verdict if with any. Its call has its result next.
    pub(super) fn on_audit(&mut self, verdict: Option<&Review>) {
        self.auditor_silent = verdict.is_none();
        self.review = verdict.cloned();
        self.passed &= verdict.is_none_or(|verdict| verdict.approved);
    }

    pub(super) fn on_answer(&mut self, question: &Question, answer: &Answer) {
        match (question.kind, &question.binding) {
            // A permission that no call waits for is about the commands of a contract.
            (QuestionKind::Permission, Some(binding)) if question.call.is_none() => {
                let allows = question.permission(&answer.text) == Some(Permission::Allow);
                self.consent.insert(binding.arguments_hash.clone(), allows);
            }
            (QuestionKind::Review, _) => {
                let (approved, reason) = match ReviewAnswer::read(&answer.text) {
                    Some(ReviewAnswer::Approve) => (true, String::new()),
                    Some(ReviewAnswer::Reject { reason }) => (false, reason),
                    None => (false, String::new()),
                };
                self.review = Some(Review { approved, by: answer.by.clone(), reason });
            }
            (
                QuestionKind::AskUser
                | QuestionKind::Permission
                | QuestionKind::Budget
                | QuestionKind::Plan
                | QuestionKind::Runner
                | QuestionKind::Repair,
                _,
            ) => {}
        }
    }
}
