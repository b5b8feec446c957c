//! Bringing the calls of a reply to their results, one step at a time.
//!
//! Invariants:
//! - One gate: no call starts without a journaled `risk_check` that allows it.
//! - At most once: `tool_call` is committed before the call starts, synced when it has effects; after a
//!   crash a started call is brought to its result by its declared recovery, never by guessing.
//! - Every call gets exactly one result, in the order of the reply.

mod gate;
mod recover;
mod together;

pub(crate) use together::interrupting;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::event::{Event, RiskCheck, SubAgentSpawn, ToolCall, ToolResult};
use windlass_core::outcome::{Fact, Outcome};
use windlass_core::policy::Class;
use windlass_core::question::{Question, QuestionKind};
use windlass_core::state::{OpenCall, Stage};
use windlass_skills::Viewer;
use windlass_store::Level;
use windlass_tools::{Call, Facts, Kind, Prepared};

use crate::ending::Ending;
use crate::hooks::refused;
use crate::interrupt::Watch;
use crate::journal::Journal;
use crate::prompt::ANSWERED;
use crate::{Agent, Error};

/// The most calls of one reply that run side by side.
const MAX_CONCURRENT_CALLS: usize = 16;

/// What becomes of an open call.
pub(crate) enum Plan {
    /// It has its result without running.
    Settled { check: Option<RiskCheck>, outcome: Outcome },
    /// A person has to be asked first.
    Ask { check: RiskCheck, question: Question },
    /// The loop itself carries it out: the agent asks a person.
    AskUser { check: RiskCheck, call: ToolCall, question: Question },
    /// The loop itself carries it out: another agent works on it. `check` is there when it is new.
    Spawn { check: Option<RiskCheck>, call: ToolCall, spawn: SubAgentSpawn },
    /// It runs.
    Run { check: Option<RiskCheck>, call: ToolCall, prepared: Prepared },
}

impl Agent {
    /// One step: the first open call, together with the read-only ones right behind it.
    pub(crate) async fn run_calls(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let open = task.state().open_calls.clone();
        let hooked = self.hooked(task, &open);
        // A refusal must not hold up the others of its batch.
        let most = if hooked.is_empty() { MAX_CONCURRENT_CALLS } else { 1 };
        let mut batch = Vec::new();
        // Cancelled for these calls alone: a cancel or the time limit ends them, the loop goes on.
        let end_calls = CancellationToken::new();
        for open in open.into_iter().take(most) {
            let plan = self.plan(task, &open, &end_calls).await;
            let company = self.company(&plan);
            if batch.last().is_some_and(|(_, before)| !company.joins(self.company(before))) {
                break;
            }
            batch.push((open, plan));
        }
        if let [(open, plan)] = batch.as_mut_slice()
            && let Plan::Run { check: Some(check), .. } | Plan::Spawn { check: Some(check), .. } =
                plan
        {
            let watch = Watch::over(task, self.parts.settings.timeout, stop);
            let refusal = tokio::select! {
                refusal = self.refusal(&hooked, task.task(), open) => refusal,
                // The loop finds out what it was; the call has not begun.
                found = watch.interrupted() => return found.map(|_| None),
            };
            if let Some(reason) = refusal {
                *plan = refused(check, reason);
            }
        }
        if batch.first().is_some_and(|(_, plan)| self.company(plan) == Company::Spawns) {
            return self.run_spawns(task, stop, batch).await;
        }
        if batch.len() == 1 {
            let (open, plan) = batch.remove(0);
            return self.carry_out(task, stop, &end_calls, open, plan).await;
        }
        self.run_together(task, stop, &end_calls, batch).await
    }

    /// Decides what becomes of a call; changes nothing.
    async fn plan(&self, task: &Journal, open: &OpenCall, stop: &CancellationToken) -> Plan {
        if let Stage::Started(call) = &open.stage {
            return self.recover(task, open, call, stop).await;
        }
        let (name, arguments) = (&open.request.name, &open.request.arguments);
        let arguments = match self.parts.registry.check(name, arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return Plan::Settled { check: None, outcome },
        };
        if matches!(&open.stage, Stage::Answered(asked, _) if asked.kind == QuestionKind::AskUser) {
            return Plan::Settled { check: None, outcome: Outcome::ok(ANSWERED.trim_end()) };
        }
        let prepared = match self.prepare(task, open, arguments.clone(), stop).await {
            Ok(prepared) => prepared,
            Err(outcome) => return Plan::Settled { check: None, outcome },
        };
        self.decided(task, open, arguments, prepared)
    }

    async fn carry_out(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        end_calls: &CancellationToken,
        open: OpenCall,
        plan: Plan,
    ) -> Result<Option<Ending>, Error> {
        match plan {
            Plan::Settled { check, outcome } => {
                let check = check.map(Event::RiskCheck);
                let result = result(&open, outcome, 0);
                let events = check.into_iter().chain(result).collect();
                task.note(events)?;
                Ok(None)
            }
            Plan::Ask { check, question } => {
                let events = vec![Event::RiskCheck(check), Event::QuestionAsked(question)];
                task.commit(events, Level::Synced).await?;
                Ok(None)
            }
            Plan::AskUser { check, call, question } => {
                let events = vec![
                    Event::RiskCheck(check),
                    Event::ToolCall(call),
                    Event::QuestionAsked(question),
                ];
                task.commit(events, Level::Synced).await?;
                Ok(None)
            }
            Plan::Spawn { .. } => self.run_spawns(task, stop, vec![(open, plan)]).await,
            Plan::Run { .. } => self.run_together(task, stop, end_calls, vec![(open, plan)]).await,
        }
    }

    async fn prepare(
        &self,
        task: &Journal,
        open: &OpenCall,
        arguments: serde_json::Value,
        stop: &CancellationToken,
    ) -> Result<Prepared, Outcome> {
        let Some(tool) = self.parts.registry.get(&open.request.name) else {
            return Err(Outcome::error(format!("There is no tool `{}`.", open.request.name)));
        };
        let state = task.state();
        let facts = Facts {
            known_files: state.known_files.clone(),
            working_directory: state.working_directory.clone(),
            viewer: Viewer::of(&state.axes),
            may_spawn: self.may_spawn(state),
        };
        let call = Call {
            id: open.request.id,
            arguments,
            facts: Arc::new(facts),
            limit_tokens: self.parts.settings.tool_output_max_tokens,
            stop: stop.clone(),
        };
        tool.prepare(&self.parts.world, call).await
    }

    fn company(&self, plan: &Plan) -> Company {
        match plan {
            Plan::Run { call, prepared, .. } => {
                let looks = prepared.assessment.class == Class::Read;
                let alone =
                    self.parts.registry.get(&call.tool).is_none_or(|tool| tool.is_exclusive());
                let harmless = looks && !prepared.recovery.has_effects() && !alone;
                if harmless { Company::Readers } else { Company::Alone }
            }
            Plan::Spawn { .. } => Company::Spawns,
            Plan::Settled { .. } | Plan::Ask { .. } | Plan::AskUser { .. } => Company::Alone,
        }
    }

    fn kind(&self, name: &str) -> Kind {
        self.parts.registry.get(name).map_or(Kind::Plain, |tool| tool.kind())
    }
}

/// What a call may run beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Company {
    /// Others that only look.
    Readers,
    /// Other sub-agents.
    Spawns,
    /// Nothing.
    Alone,
}

impl Company {
    fn joins(self, other: Self) -> bool {
        self == other && self != Self::Alone
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
            | Fact::BackgroundStarted { .. }
            | Fact::WorkingDirectory { .. } => None,
        })
        .collect();
    let (call, tool) = (open.request.id, open.request.name.clone());
    let ended = Event::ToolResult(ToolResult { call, tool, outcome, duration_ms });
    std::iter::once(ended).chain(follows).collect()
}
