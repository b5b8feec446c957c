//! Verifying finished work against its completion contract: without a model, in the sandbox, through the gate (§9).
//!
//! Invariants:
//! - State is a fold: which check comes next is a question to the state, so a task that was killed while it verified
//!   ends as one that was not. A check that was interrupted runs again; it is meant to be repeated.
//! - No command of a contract runs before a person has approved it, by its content.
//! - What is not met goes back to the agent, a bounded number of times.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::axes::{RunControl, WorkMode};
use windlass_core::commitment::CommitmentState;
use windlass_core::contract::{Audit, CheckResult, CommitmentRules, Contract};
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{Event, PlannedCheck, ToolCall, VerificationEnded, VerificationStarted};
use windlass_core::id::{CallId, QuestionId};
use windlass_core::message::ToolRequest;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::question::{
    AcceptedAnswers, Binding, PERMISSION_OPTIONS, Question, QuestionKind,
};
use windlass_core::role::Role;
use windlass_core::state::{Next, OpenCall, Stage, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::tool_name;
use windlass_store::{CommitmentRow, Level};
use windlass_tools::workspace::Workspace;

use crate::calls::{Run, Runner, result};
use crate::commitments::Commitments;
use crate::delegation::Delegation;
use crate::gate::Gate;
use crate::journal::Journal;
use crate::parts::ContractInForce;
use crate::review::Reviewer;
use crate::{Error, Parts, prompt};

/// How often in a row an agent may finish without meeting its contract. A final reply uses no tool round, so that limit
/// would never end it.
const MAX_FAILURES: u32 = 10;

/// How much of what a failed check printed goes back to the agent; the end says what went wrong.
const MAX_OUTPUT_BYTES: usize = 8 << 10;

/// Verifies the finished work of one agent.
pub(crate) struct Verification {
    contract: Option<Arc<ContractInForce>>,
    workspace: Arc<Workspace>,
    gate: Arc<Gate>,
    runner: Arc<Runner>,
    reviewer: Reviewer,
}

impl Verification {
    pub(crate) fn new(
        parts: &Parts,
        gate: Arc<Gate>,
        runner: Arc<Runner>,
        delegation: Arc<Delegation>,
    ) -> Self {
        Self {
            contract: parts.settings.contract.clone(),
            workspace: parts.world.workspace.clone(),
            reviewer: Reviewer::new(parts, gate.clone(), delegation),
            gate,
            runner,
        }
    }

    /// Whether a final reply is still to be checked or judged. Talk and read-only work have nothing to verify.
    pub(crate) fn is_due(&self, task: &Journal) -> bool {
        let state = task.state();
        let builds = matches!(state.axes.work_mode, WorkMode::Build | WorkMode::Repair);
        let is_watched =
            state.created.conversation && state.axes.run_control != RunControl::Autonomous;
        if state.created.depth > 0 || !builds || is_watched || state.waits_for_schedule() {
            return false;
        }
        let has_contract =
            self.contract.as_deref().is_some_and(|active| !active.contract.is_empty());
        let is_wanted = has_contract || state.role == Some(Role::Executor);
        is_wanted
            && state.before_repair.is_none()
            && (!state.verification.passed || self.must_review(task))
    }

    /// One step of the verification.
    pub(crate) async fn step(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let state = task.state();
        if state.verification.passed {
            return self.reviewer.step(task, stop).await;
        }
        if state.verification.failures >= MAX_FAILURES {
            return Ok(Some(Ending::Failed(unmet_contract(state))));
        }
        match state.verification.running.as_ref().map(|running| running.next().cloned()) {
            None => self.begin_checks(task).await,
            Some(Some(check)) => self.run_check(task, stop, &check).await,
            Some(None) => self.end_checks(task).await,
        }
    }

    async fn begin_checks(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let checks = self.planned_checks(task);
        if !checks.is_empty() && self.consent(task.state()).is_none() {
            let question = self.consent_question(task, &checks);
            task.commit(vec![Event::QuestionAsked(question)], Level::Synced).await?;
            return Ok(None);
        }
        let started = VerificationStarted {
            contract: self
                .contract
                .as_deref()
                .map(|active| active.contract.name.clone())
                .unwrap_or_default(),
            attempt: task.state().verification.attempts + 1,
            checks: match self.consent(task.state()) {
                Some(false) => Vec::new(),
                Some(true) | None => checks,
            },
        };
        let verifying = task.status_change(TaskStatus::Verifying, StatusReason::Finished);
        let events = verifying.map(Event::StatusChanged).into_iter();
        let events = events.chain([Event::VerificationStarted(started)]).collect();
        task.commit(events, Level::Written).await?;
        Ok(None)
    }

    /// The commands of the contract, as they would run here.
    fn planned_checks(&self, task: &Journal) -> Vec<PlannedCheck> {
        let Some(active) = self.contract.as_deref() else { return Vec::new() };
        let attempt = task.state().verification.attempts + 1;
        let planned = active.contract.checks.iter().filter_map(|check| {
            let name = format!("check {attempt} {}", check.name);
            Some(PlannedCheck {
                call: CallId::derived(&task.task().to_string(), &name),
                name: check.name.clone(),
                command: check.command_in(|file| self.has_file(file))?,
                timeout_seconds: check.seconds(),
            })
        });
        planned.collect()
    }

    fn has_file(&self, path: &str) -> bool {
        self.workspace.hash(path).is_ok_and(|hash| hash.is_some())
    }

    /// Whether a person lets the commands run; `None` where nobody was asked.
    fn consent(&self, state: &TaskState) -> Option<bool> {
        let active = self.contract.as_deref()?;
        match active.approved {
            true => Some(true),
            false => state.verification.consent.get(&active.contract.digest()).copied(),
        }
    }

    /// One question that shows every command (§15.13).
    fn consent_question(&self, task: &Journal, checks: &[PlannedCheck]) -> Question {
        let active = self.contract.as_deref();
        let source = active.map(|active| active.source.as_str()).unwrap_or_default();
        let digest = active.map(|active| active.contract.digest()).unwrap_or_default();
        let commands: Vec<_> =
            checks.iter().map(|check| format!("{}: {}", check.name, check.command)).collect();
        let [allow, deny, _] = PERMISSION_OPTIONS.map(str::to_owned);
        Question {
            id: QuestionId::derived(&task.task().to_string(), &format!("contract {digest}")),
            kind: QuestionKind::Permission,
            call: None,
            question: format!(
                "The work is finished. Run the checks of `{source}` now? They are not approved."
            ),
            options: vec![allow, deny],
            context: Some(format!(
                "{}\n\nOnce its file is approved, this is not asked again. Without its checks, you judge the work.",
                commands.join("\n")
            )),
            binding: Some(Binding {
                arguments_hash: digest,
                cwd: String::new(),
                files: Vec::new(),
                mark: None,
            }),
            diff: None,
            grants: None,
            accepts: AcceptedAnswers::Words,
            asked: None,
            plan: None,
        }
    }

    async fn run_check(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        check: &PlannedCheck,
    ) -> Result<Option<Ending>, Error> {
        if let Some(change) = task.status_change(TaskStatus::Verifying, StatusReason::Finished) {
            // It was resumed in the middle of its checks.
            task.commit(vec![Event::StatusChanged(change)], Level::Written).await?;
        }
        let arguments = json!({ "command": check.command, "timeout": check.timeout_seconds });
        let request = ToolRequest {
            id: check.call,
            provider_id: String::new(),
            name: tool_name::BASH.to_owned(),
            arguments: arguments.to_string(),
        };
        let open = OpenCall { request, stage: Stage::Waiting };
        let end_calls = CancellationToken::new();
        // The directory of the agent's shell does not matter to a check.
        let mut state = task.state().clone();
        state.sandbox.working_directory = None;
        let prepared =
            self.runner.prepare(&state, &open, arguments.clone(), false, &end_calls).await;
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(outcome) => return self.settle_check(task, &open, Vec::new(), outcome).await,
        };
        let risk_check = match self.gate.decide_check(&state, &open, &prepared) {
            (risk_check, None) => risk_check,
            (risk_check, Some(denied)) => {
                let decided = vec![Event::RiskCheck(risk_check)];
                return self.settle_check(task, &open, decided, denied).await;
            }
        };
        let tool = tool_name::BASH.to_owned();
        let call = ToolCall { call: check.call, tool, arguments, recovery: Recovery::Rerun };
        let run = Run { open, check: Some(risk_check), call, prepared };
        let interrupt = self.runner.run(task, stop, &end_calls, vec![run]).await?;
        Ok(interrupt.and_then(|interrupt| self.runner.time_limit.segment_ending(interrupt)))
    }

    /// Journals a check that did not run.
    async fn settle_check(
        &self,
        task: &mut Journal,
        open: &OpenCall,
        mut events: Vec<Event>,
        outcome: Outcome,
    ) -> Result<Option<Ending>, Error> {
        events.extend(result(open, outcome, 0));
        task.commit(events, Level::Written).await?;
        Ok(None)
    }

    async fn end_checks(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let results = self.results(task)?;
        let unmet: Vec<_> = results.iter().filter(|result| !result.passed).map(line).collect();
        let ended = VerificationEnded {
            attempt: task.state().verification.attempts,
            passed: unmet.is_empty(),
            message: match unmet.is_empty() {
                true => String::new(),
                false => prompt::contract_unmet(&unmet.join("\n")),
            },
            results,
        };
        let works_again = (!ended.passed)
            .then(|| task.status_change(TaskStatus::Running, StatusReason::Finished))
            .flatten();
        let events = [Event::VerificationEnded(ended)].into_iter();
        let events = events.chain(works_again.map(Event::StatusChanged)).collect();
        task.commit(events, Level::Synced).await?;
        Ok(None)
    }

    /// The outcome of every requirement, in the order of the contract.
    fn results(&self, task: &Journal) -> Result<Vec<CheckResult>, Error> {
        let empty = Contract::default();
        let contract = self.contract.as_deref().map_or(&empty, |active| &active.contract);
        let mut results: Vec<_> =
            contract.required_files.iter().map(|path| self.required_file(path)).collect();
        let is_denied = self.consent(task.state()) == Some(false);
        let running = task.state().verification.running.as_ref();
        for check in contract.checks.iter().filter(|_| !is_denied) {
            let planned = running.and_then(|running| {
                let place = running.checks.iter().position(|planned| planned.name == check.name)?;
                Some((&running.checks[place], running.outcomes.get(place)?))
            });
            results.push(match planned {
                Some((planned, (_, outcome))) => command_result(planned, outcome),
                None => requirement(
                    &check.name,
                    Some(
                        "no command is known for it in this project; give it one in the contract"
                            .to_owned(),
                    ),
                ),
            });
        }
        results.extend(self.commitments(task, contract.commitments.as_ref())?);
        Ok(results)
    }

    fn required_file(&self, path: &str) -> CheckResult {
        let missing = (!self.has_file(path)).then(|| format!("`{path}` does not exist"));
        requirement(&format!("file {path}"), missing)
    }

    /// Commitments as the contract wants them (AX-011); an executor's need evidence in any case.
    fn commitments(
        &self,
        task: &Journal,
        rules: Option<&CommitmentRules>,
    ) -> Result<Option<CheckResult>, Error> {
        let is_executor = task.state().role == Some(Role::Executor);
        let problems = match rules {
            Some(rules) => commitment_problems(rules, &Commitments::of(task).of_work()?),
            None if is_executor => {
                let claims = Commitments::of(task).claimed_commitments()?;
                claims.iter().filter(|row| row.evidence_count == 0).map(without_evidence).collect()
            }
            None => return Ok(None),
        };
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        Ok(Some(requirement("commitments", problem)))
    }

    /// Whether somebody has to judge the work, and has not.
    fn must_review(&self, task: &Journal) -> bool {
        let state = task.state();
        let audits =
            self.contract.as_deref().is_some_and(|active| active.contract.audit != Audit::None);
        let is_unchecked = self.consent(state) == Some(false);
        let unjudged = !self.reviewer.submitted_commitments(task).is_empty();
        unjudged || (audits || is_unchecked) && !state.verification.is_approved()
    }
}

/// A task that is asked something while it verifies works again.
pub(crate) async fn leave_verifying(task: &mut Journal) -> Result<(), Error> {
    let state = task.state();
    let verifies = matches!(state.next(), Next::Finish(_) | Next::Wait(_));
    if state.status != TaskStatus::Verifying || verifies {
        return Ok(());
    }
    let change = task.status_change(TaskStatus::Running, StatusReason::Finished);
    let events = change.map(Event::StatusChanged).into_iter().collect();
    task.commit(events, Level::Written).await.map(drop)
}

/// What is wrong with the commitments of a piece of work.
fn commitment_problems(rules: &CommitmentRules, rows: &[CommitmentRow]) -> Vec<String> {
    let mut problems = Vec::new();
    if rows.len() < rules.min_count {
        problems.push(format!(
            "there must be at least {} of this work, and there are {}; make one with `commit`, `claim` it, `capture` \
             evidence and `submit` it",
            rules.min_count,
            rows.len()
        ));
    }
    if rules.require_evidence {
        problems.extend(rows.iter().filter(|row| row.evidence_count == 0).map(without_evidence));
    }
    if rules.require_closed {
        let is_unfinished = |row: &&CommitmentRow| {
            matches!(row.state, CommitmentState::Open | CommitmentState::Claimed)
        };
        problems.extend(rows.iter().filter(is_unfinished).map(|row| {
            let why = row.verdict_reason.as_ref().map(|why| format!(" (rejected: {why})"));
            format!(
                "`{}` is {} and must be submitted{}",
                row.id,
                row.state,
                why.unwrap_or_default()
            )
        }));
    }
    problems
}

fn without_evidence(row: &CommitmentRow) -> String {
    format!("`{}` has no evidence; record it with `capture`", row.id)
}

fn requirement(name: &str, problem: Option<String>) -> CheckResult {
    CheckResult {
        name: name.to_owned(),
        passed: problem.is_none(),
        detail: problem.unwrap_or_else(|| "met".to_owned()),
        output: String::new(),
        call: None,
    }
}

fn command_result(check: &PlannedCheck, outcome: &Outcome) -> CheckResult {
    let passed = !outcome.is_error();
    let how = match (passed, outcome.exit_code) {
        (true, _) => "passed".to_owned(),
        (false, Some(code)) => format!("exited with {code}"),
        (false, None) => "failed".to_owned(),
    };
    CheckResult {
        name: check.name.clone(),
        passed,
        detail: format!("`{}` {how}", check.command),
        output: if passed { String::new() } else { end_of(&outcome.text) },
        call: Some(check.call),
    }
}

/// The end of a long text.
fn end_of(text: &str) -> String {
    let text = text.trim();
    let from = text.len().saturating_sub(MAX_OUTPUT_BYTES);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    match from {
        0 => text.to_owned(),
        _ => format!("[…]{}", &text[from..]),
    }
}

/// One requirement, for the agent.
pub(crate) fn line(result: &CheckResult) -> String {
    let printed = match result.output.is_empty() {
        true => String::new(),
        false => format!("\n\n```\n{}\n```", result.output),
    };
    format!("- {}: {}{printed}", result.name, result.detail)
}

fn unmet_contract(state: &TaskState) -> ErrorDetails {
    let failed = state.verification.result().map(|result| result.checks).unwrap_or_default();
    let names: Vec<_> =
        failed.iter().filter(|result| !result.passed).map(|result| result.name.as_str()).collect();
    let message = format!(
        "the completion contract is still not met after {} attempts: {}",
        state.verification.failures,
        names.join(", ")
    );
    ErrorDetails::new(ErrorType::ContractUnmet, message).with_remedy(Remedy::ReadEvents)
}
