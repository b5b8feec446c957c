//! Carries out the calls of a reply, one step at a time, until each has a result.
//!
//! Invariants:
//! - No call starts without a journaled `risk_check` that allows it.
//! - At most once: `tool_call` is committed before the call starts, synced when it has effects; after a
//!   crash a started call is brought to its result by its declared recovery, never by guessing.
//! - Every call gets exactly one result, in the order of the reply.
//! - A call is prepared once. Whether it may join the calls before it follows from its tool alone, so a call
//!   that has to wait for them is not prepared before they have ended.

mod batch;
mod recover;
mod runner;
mod versions;

pub(crate) use batch::{Batch, CallStep, CallWithoutRun, Group, Run, Spawn};
pub(crate) use runner::Runner;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::ending::Ending;
use windlass_core::event::{Event, ToolCall, ToolResult};
use windlass_core::id::QuestionId;
use windlass_core::outcome::{CallEnding, Fact, Outcome};
use windlass_core::question::{AcceptedAnswers, Question, QuestionKind};
use windlass_core::state::{OpenCall, Signal, Stage};
use windlass_core::tool_name;
use windlass_store::Level;
use windlass_tools::{Executor, Prepared};

use crate::Error;
use crate::claims::EditClaims;
use crate::delegation::{Delegation, DelegationProgress};
use crate::gate::{Gate, Ruling};
use crate::journal::Journal;
use crate::prompt::{ANSWERED, NOT_BEGUN};
use batch::Concurrency;

/// The most calls of one reply that run side by side.
const MAX_CONCURRENT_CALLS: usize = 16;

/// Brings the calls of one agent to their results.
pub(crate) struct Calls {
    pub(crate) gate: Arc<Gate>,
    pub(crate) runner: Arc<Runner>,
    pub(crate) delegation: Arc<Delegation>,
    pub(crate) edits: EditClaims,
}

impl Calls {
    /// One step: the first open call, together with those right after it that may run beside it.
    pub(crate) async fn run(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        // Cancelled for these calls alone: a cancel or the time limit ends them, the loop continues.
        let end_calls = CancellationToken::new();
        let (state, context) = (task.state(), task.context());
        let hooks = self.gate.matching_hooks(state, context.skills(), &state.last_reply.open_calls);
        // A refusal by a hook must not hold up the others of its batch.
        let limit = if hooks.is_empty() { MAX_CONCURRENT_CALLS } else { 1 };
        let mut batch = self.next_batch(task, limit, &end_calls).await;
        if let Some((open, check)) = batch.first_new().filter(|_| !hooks.is_empty()) {
            let flushed = task.flush().await?;
            let watch = self.runner.time_limit.watch(&flushed, stop);
            let refused = tokio::select! {
                refused = self.gate.run_before(&hooks, flushed.task(), &open, &check) => refused,
                // The loop finds out what it was; the call has not begun.
                found = watch.wait_for_interrupt() => return found.map(|_| None),
            };
            if let Some((check, outcome)) = refused {
                batch = Batch::settled(CallWithoutRun::result(open, Some(check), outcome));
            }
        }
        let batch = self.edits.claim(task, batch).await?;
        match batch.group {
            Group::Empty => {}
            Group::Runs(runs) => {
                let interrupt = self.runner.run(task, stop, &end_calls, runs).await?;
                if let Some(interrupt) = interrupt {
                    return Ok(self.runner.time_limit.segment_ending(interrupt));
                }
            }
            Group::Spawns(spawns) => {
                let skills = self.gate.followed_skills(task.state());
                match self.delegation.run(task, stop, spawns, &skills).await? {
                    DelegationProgress::Finished => {}
                    DelegationProgress::Unfinished(ending) => return Ok(ending),
                }
            }
        }
        if let Some(settled) = batch.last {
            settle(task, settled).await?;
        }
        Ok(None)
    }

    /// The first open call and those that may run beside it.
    async fn next_batch(
        &self,
        task: &Journal,
        limit: usize,
        end_calls: &CancellationToken,
    ) -> Batch {
        let mut batch = Batch::default();
        for open in task.state().last_reply.open_calls.iter().take(limit) {
            let concurrency = self.concurrency(open);
            if !batch.accepts(concurrency) {
                break;
            }
            let plan = self.plan(task, open, end_calls).await;
            if !batch.add(plan, concurrency) {
                break;
            }
        }
        batch
    }

    /// Decides what becomes of a call; changes nothing.
    async fn plan(&self, task: &Journal, open: &OpenCall, stop: &CancellationToken) -> CallStep {
        let state = task.state();
        let can_spawn = self.gate.can_spawn(state);
        if let Stage::Started(call) = &open.stage {
            return self.runner.recover(state, open, call, can_spawn, stop).await;
        }
        let settled =
            |outcome| CallStep::WithoutRun(CallWithoutRun::result(open.clone(), None, outcome));
        let arguments = match self.gate.arguments(open) {
            Ok(arguments) => arguments,
            Err(outcome) => return settled(outcome),
        };
        if matches!(&open.stage, Stage::Answered(asked, _) if asked.kind == QuestionKind::AskUser) {
            return settled(Outcome::ok(ANSWERED.trim_end()));
        }
        match self.runner.prepare(state, open, arguments.clone(), can_spawn, stop).await {
            Ok(prepared) => self.decide(task, open, arguments, prepared),
            Err(outcome) => settled(outcome),
        }
    }

    fn decide(
        &self,
        task: &Journal,
        open: &OpenCall,
        arguments: serde_json::Value,
        prepared: Prepared,
    ) -> CallStep {
        let check = match self.gate.decide(task.state(), open, &prepared) {
            Ruling::Allowed(check) => check,
            Ruling::Ask(check, question) => {
                return CallStep::WithoutRun(CallWithoutRun::Ask { check, call: None, question });
            }
            Ruling::Denied(check, outcome) => {
                return CallStep::WithoutRun(CallWithoutRun::result(
                    open.clone(),
                    Some(check),
                    outcome,
                ));
            }
        };
        let (tool, recovery) = (open.request.name.clone(), prepared.recovery.clone());
        let call = ToolCall { call: open.request.id, tool, arguments, recovery };
        let open = open.clone();
        match self.executor(&open) {
            Executor::Question => {
                let question = user_question(&open, &call.arguments);
                CallStep::WithoutRun(CallWithoutRun::Ask { check, call: Some(call), question })
            }
            Executor::SubAgent => match self.delegation.plan(task, call) {
                Ok((call, spawn)) => {
                    CallStep::Spawn(Spawn { open, check: Some(check), call, spawn })
                }
                Err(outcome) => {
                    CallStep::WithoutRun(CallWithoutRun::result(open, Some(check), outcome))
                }
            },
            Executor::Plain => CallStep::Run(Run { open, check: Some(check), call, prepared }),
        }
    }

    fn concurrency(&self, open: &OpenCall) -> Concurrency {
        match self.gate.tool(&open.request.name) {
            Some(tool) if tool.executor() == Executor::SubAgent => Concurrency::Children,
            Some(tool) if tool.only_reads() => Concurrency::Readers,
            Some(_) | None => Concurrency::Alone,
        }
    }

    fn executor(&self, open: &OpenCall) -> Executor {
        self.gate.tool(&open.request.name).map_or(Executor::Plain, |tool| tool.executor())
    }
}

/// A person interrupts: calls that have not begun get their results, so that their next message is the first
/// thing that the agent reads.
pub(crate) fn drop_interrupted(task: &mut Journal) -> Result<(), Error> {
    let state = task.state();
    let open = &state.last_reply.open_calls;
    let has_begun = |open: &OpenCall| matches!(open.stage, Stage::Asked(_) | Stage::Started(_));
    if state.signal != Some(Signal::Interrupt) || open.iter().any(has_begun) {
        return Ok(());
    }
    let outcome = || Outcome::ended(CallEnding::Cancelled, NOT_BEGUN.trim_end());
    let results = open.iter().flat_map(|open| result(open, outcome(), 0)).collect();
    task.buffer(results)
}

/// Journals what became of a call that does not run.
async fn settle(task: &mut Journal, settled: CallWithoutRun) -> Result<(), Error> {
    match settled {
        CallWithoutRun::Result { open, check, outcome } => {
            let check = check.map(Event::RiskCheck);
            task.buffer(check.into_iter().chain(result(&open, outcome, 0)).collect())
        }
        CallWithoutRun::Ask { check, call, question } => {
            let call = call.map(Event::ToolCall);
            let asked = [Event::QuestionAsked(question)];
            let events = std::iter::once(Event::RiskCheck(check)).chain(call).chain(asked);
            task.commit(events.collect(), Level::Synced).await.map(drop)
        }
    }
}

/// The question that the agent puts to a person with `ask_user`.
fn user_question(open: &OpenCall, arguments: &serde_json::Value) -> Question {
    let text = |key: &str| arguments[key].as_str().map(str::to_owned);
    let options = arguments["options"].as_array().into_iter().flatten();
    Question {
        id: QuestionId::derived(&open.request.id.to_string(), tool_name::ASK_USER),
        kind: QuestionKind::AskUser,
        call: Some(open.request.id),
        question: text("question").unwrap_or_default(),
        options: options.filter_map(|option| option.as_str().map(str::to_owned)).collect(),
        context: text("context"),
        binding: None,
        diff: None,
        grants: None,
        accepts: AcceptedAnswers::Words,
        asked: None,
        plan: None,
    }
}

/// A call's result, and the events of what follows from it.
pub(crate) fn result(open: &OpenCall, outcome: Outcome, duration_ms: u64) -> Vec<Event> {
    let follows: Vec<Event> = outcome
        .facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Plan(plan) => Some(Event::PlanUpdated(plan.clone())),
            Fact::Published(file) => Some(Event::DeliverablePublished(file.clone())),
            Fact::FileRead { .. }
            | Fact::SkillRead { .. }
            | Fact::FileChanged { .. }
            | Fact::Evidence(_)
            | Fact::BackgroundStarted { .. }
            | Fact::WorkingDirectory { .. }
            | Fact::Verdict(_) => None,
        })
        .collect();
    let (call, tool) = (open.request.id, open.request.name.clone());
    let ended =
        Event::ToolResult(ToolResult { call, tool, outcome, duration_ms, segment_ms: None });
    std::iter::once(ended).chain(follows).collect()
}
