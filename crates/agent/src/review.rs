//! Reviewing finished work that has passed its checks: a person is asked, or an auditor is started (§9).
//!
//! Invariants:
//! - A verdict is journaled before it counts: as the answer to a question, or with the end of the auditor.
//! - An auditor that gives no verdict decides nothing: a person is asked then.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_core::commitment::{Actor, CommitmentState, Order};
use windlass_core::contract::{Audit, ContractResult, Review};
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{Event, ReviewStarted, RiskCheck, SubAgentSpawn, ToolCall};
use windlass_core::id::{CallId, QuestionId, TaskId};
use windlass_core::message::ToolRequest;
use windlass_core::outcome::Recovery;
use windlass_core::policy::{Class, Decision};
use windlass_core::question::{AcceptedAnswers, Question, QuestionKind, REVIEW_OPTIONS};
use windlass_core::role::Role;
use windlass_core::state::{OpenCall, Stage, TaskState};
use windlass_core::tool_name;
use windlass_store::{CommitmentRow, Level};

use crate::calls::Spawn;
use crate::commitments::Commitments;
use crate::delegation::{Delegation, DelegationProgress};
use crate::gate::Gate;
use crate::journal::Journal;
use crate::parts::ContractInForce;
use crate::verify::line;
use crate::{Error, Parts, prompt};

/// What the auditor is called in lists.
const LABEL: &str = "auditor";

/// Gets a verdict on finished work.
pub(crate) struct Reviewer {
    contract: Option<Arc<ContractInForce>>,
    gate: Arc<Gate>,
    delegation: Arc<Delegation>,
    /// The auditor asks the same model as the agent whose work it judges.
    model: String,
    auditor_timeout: Duration,
}

impl Reviewer {
    pub(crate) fn new(parts: &Parts, gate: Arc<Gate>, delegation: Arc<Delegation>) -> Self {
        Self {
            contract: parts.settings.contract.clone(),
            gate,
            delegation,
            model: parts.model.name().to_string(),
            auditor_timeout: parts.settings.sub_agent_timeout,
        }
    }

    /// Commitments that are submitted and wait for a verdict, where the contract wants one.
    pub(crate) fn submitted_commitments(&self, task: &Journal) -> Vec<CommitmentRow> {
        let rules = self.contract.as_ref().and_then(|active| active.contract.commitments.as_ref());
        if !rules.is_some_and(|rules| rules.require_closed) {
            return Vec::new();
        }
        let mut rows = Commitments::of(task).of_work().unwrap_or_default();
        rows.retain(|row| row.state == CommitmentState::Submitted);
        rows
    }

    /// One step of the review of work that has passed its checks.
    pub(crate) async fn step(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let verification = &task.state().verification;
        if let Some(review) = verification.review.clone().filter(|review| review.approved) {
            return self.approve_commitments(task, &review).await;
        }
        let wants_auditor =
            self.contract.as_ref().is_some_and(|active| active.contract.audit == Audit::Auditor);
        let may_start = self.gate.can_spawn(task.state()) && !verification.auditor_silent;
        match wants_auditor && may_start {
            true => self.start_auditor(task, stop).await,
            false => {
                let question = question(task);
                task.commit(vec![Event::QuestionAsked(question)], Level::Synced).await?;
                Ok(None)
            }
        }
    }

    /// Approving the work also approves the commitments that it has submitted.
    async fn approve_commitments(
        &self,
        task: &Journal,
        review: &Review,
    ) -> Result<Option<Ending>, Error> {
        let Ok(party) = review.by.parse();
        let by = Actor { party, on_behalf_of: None };
        for row in self.submitted_commitments(task) {
            let order = Order::Approve(review.reason.clone());
            let ledger = task.store().commitments();
            match ledger.act(row.id, task.now(), by.clone(), order, None).await {
                Ok(_) => {}
                Err(windlass_store::Error::Refused(refusal)) => {
                    let message = format!("the work is approved, but {refusal}");
                    let error = ErrorDetails::new(ErrorType::ContractUnmet, message)
                        .with_remedy(Remedy::ApproveByAnother);
                    return Ok(Some(Ending::Failed(error)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Runs an agent in the auditor role below this task, and waits for its verdict.
    async fn start_auditor(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let started = match task.state().verification.auditor.clone() {
            Some(started) => started,
            None => {
                let name = format!("auditor {}", task.state().verification.attempts);
                let call = CallId::derived(&task.task().to_string(), &name);
                let started = ReviewStarted { call, task_id: TaskId::new(task.now()) };
                task.commit(vec![Event::ReviewStarted(started.clone())], Level::Written).await?;
                started
            }
        };
        let spawn = self.auditor(task, &started);
        match self.delegation.run(task, stop, vec![spawn], &[]).await? {
            DelegationProgress::Finished => Ok(None),
            DelegationProgress::Unfinished(ending) => Ok(ending),
        }
    }

    /// The call that starts the auditor. One that was started before a crash is waited for again.
    fn auditor(&self, task: &Journal, started: &ReviewStarted) -> Spawn {
        let state = task.state();
        let known = state.sub_agents.get(&started.call).cloned();
        let spawn = known.clone().unwrap_or_else(|| self.auditor_spawn(state, started));
        let arguments = serde_json::json!({ "task": spawn.task, "label": LABEL });
        let tool = tool_name::SPAWN_AGENT.to_owned();
        let request = ToolRequest {
            id: started.call,
            provider_id: String::new(),
            name: tool.clone(),
            arguments: arguments.to_string(),
        };
        let check = RiskCheck {
            call: started.call,
            tool: tool.clone(),
            class: Class::Delegate,
            risk: Class::Delegate.base_risk(),
            decision: Decision::Allow,
            reason: "the completion contract asks for an auditor".to_owned(),
            axes: state.axes,
        };
        let recovery = Recovery::Reattach { id: spawn.task_id.to_string() };
        Spawn {
            open: OpenCall { request, stage: Stage::Waiting },
            check: known.is_none().then_some(check),
            call: ToolCall { call: started.call, tool, arguments, recovery },
            spawn,
        }
    }

    fn auditor_spawn(&self, state: &TaskState, started: &ReviewStarted) -> SubAgentSpawn {
        SubAgentSpawn {
            call: started.call,
            task_id: started.task_id,
            label: LABEL.to_owned(),
            task: prompt::audit_goal(
                &state.id().to_string(),
                state.command().goal.trim(),
                state.last_reply.final_text.as_deref().unwrap_or_default().trim(),
                &checks(state),
            ),
            timeout_ms: u64::try_from(self.auditor_timeout.as_millis()).unwrap_or(u64::MAX),
            model: self.model.clone(),
            model_mode: None,
            axes: Role::Auditor.axes(state.axes),
            role: Some(Role::Auditor),
            depth: state.created.depth + 1,
            write_output_to: None,
        }
    }
}

/// The outcome of the contract, one line for each requirement.
fn checks(state: &TaskState) -> String {
    let result: Option<ContractResult> = state.verification.result();
    let lines = result.iter().flat_map(|result| &result.checks).map(line);
    lines.collect::<Vec<_>>().join("\n")
}

/// Asks a person for a verdict.
fn question(task: &Journal) -> Question {
    let state = task.state();
    let said = state.last_reply.final_text.as_deref().unwrap_or_default().trim();
    let checks = checks(state);
    let checked = match checks.is_empty() {
        true => "No checks were run.".to_owned(),
        false => checks,
    };
    Question {
        id: QuestionId::derived(
            &task.task().to_string(),
            &format!("review {}", state.verification.attempts),
        ),
        kind: QuestionKind::Review,
        call: None,
        question: "Approve the finished work?".to_owned(),
        options: REVIEW_OPTIONS.map(str::to_owned).to_vec(),
        context: Some(format!("{said}\n\n{checked}")),
        binding: None,
        diff: None,
        grants: None,
        accepts: AcceptedAnswers::Words,
        asked: None,
        plan: None,
    }
}
