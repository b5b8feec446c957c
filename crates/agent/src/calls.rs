//! Bringing the calls of a reply to their results, one step at a time.
//!
//! Invariants:
//! - One gate: no call starts without a journaled `risk_check` that allows it.
//! - At most once: `tool_call` is committed before the call starts, synced when it has effects; after a
//!   crash a started call is brought to its result by its declared recovery, never by guessing.
//! - Every call gets exactly one result, in the order of the reply.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use windlass_core::event::{Event, RiskCheck, ToolCall, ToolResult};
use windlass_core::id::QuestionId;
use windlass_core::outcome::{Ending as CallEnding, Fact, Outcome, Recovery};
use windlass_core::policy::allow::{self, AllowRule};
use windlass_core::policy::decide::{effective_class, may_be_ruled};
use windlass_core::policy::denial::{Call as Denied, Denial};
use windlass_core::policy::{Assessment, Class, Decision, Rules, Verdict, decide};
use windlass_core::question::{Binding, PERMISSION_OPTIONS, Permission, Question, QuestionKind};
use windlass_core::state::{OpenCall, Stage};
use windlass_store::Level;
use windlass_tools::registry::reachable_under;
use windlass_tools::workspace::Happened;
use windlass_tools::{Call, Facts, Kind, Prepared, output};

use crate::interrupt::{Interrupt, Watch};
use crate::journal::Journal;
use crate::prompt::{ANSWERED, UNKNOWN_OUTCOME};
use crate::run::{Agent, Ending, Error};

/// The most calls of one reply that run side by side.
const MAX_CONCURRENT_CALLS: usize = 16;

/// What becomes of an open call.
enum Plan {
    /// It has its result without running.
    Settled { check: Option<RiskCheck>, outcome: Outcome },
    /// A person has to be asked first.
    Ask { check: RiskCheck, question: Question },
    /// The loop itself carries it out: the agent asks a person.
    AskUser { check: RiskCheck, call: ToolCall, question: Question },
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
        let mut batch = Vec::new();
        // Cancelled for these calls alone: a cancel or the time limit ends them, the loop goes on.
        let end_calls = CancellationToken::new();
        for open in task.state().open_calls.clone().into_iter().take(MAX_CONCURRENT_CALLS) {
            let plan = self.plan(task, &open, &end_calls).await;
            let alone = !is_read_only(&plan);
            if alone && !batch.is_empty() {
                break;
            }
            batch.push((open, plan));
            if alone {
                break;
            }
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
        let arguments = match self.registry.check(name, arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return Plan::Settled { check: None, outcome },
        };
        if matches!(open.stage, Stage::Answered(..)) && self.kind(name) == Kind::Loop {
            return Plan::Settled { check: None, outcome: Outcome::ok(ANSWERED.trim_end()) };
        }
        let prepared = match self.prepare(task, open, arguments.clone(), stop).await {
            Ok(prepared) => prepared,
            Err(outcome) => return Plan::Settled { check: None, outcome },
        };
        self.decided(task, open, arguments, prepared)
    }

    fn decided(
        &self,
        task: &Journal,
        open: &OpenCall,
        arguments: serde_json::Value,
        prepared: Prepared,
    ) -> Plan {
        let state = task.state();
        let call = match &prepared.reading {
            Some(reading) => Denied::Command(reading),
            None => Denied::Other(prepared.assessment.class),
        };
        let permission = permission_given(task, open);
        let rules = self.rules(task, open, &prepared, permission.as_ref());
        let verdict = decide(&prepared.assessment, &state.axes, &rules);
        let check = self.risk_check(task, open, &prepared.assessment, &verdict);
        let tool = &open.request.name;
        match (verdict.decision, permission) {
            (Decision::Deny, _) => {
                tracing::warn!(
                    task_id = %task.task(), tool_name = %check.tool, risk_level = %check.risk,
                    "Risk denied"
                );
                let outcome = denied(&Denial::new(tool, call, &verdict));
                Plan::Settled { check: Some(check), outcome }
            }
            (Decision::Ask, Some(Permission::Deny { comment })) => {
                let outcome = denied(&Denial::by_person(tool, call, Some(&comment)));
                Plan::Settled { check: Some(check), outcome }
            }
            // An approval that does not fit this call any more is asked for again.
            (Decision::Ask, Some(Permission::Allow | Permission::AllowAll) | None) => {
                let question = ask_leave(task, open, &check, &prepared);
                Plan::Ask { check, question }
            }
            (Decision::Allow, _) => {
                let (tool, recovery) = (tool.clone(), prepared.recovery.clone());
                let call = ToolCall { call: open.request.id, tool, arguments, recovery };
                match self.kind(&open.request.name) {
                    Kind::Loop => {
                        let question = asked(open, &call.arguments);
                        Plan::AskUser { check, call, question }
                    }
                    Kind::Plain => Plan::Run { check: Some(check), call, prepared },
                }
            }
        }
    }

    /// What is laid over the table for this very call.
    fn rules(
        &self,
        task: &Journal,
        open: &OpenCall,
        prepared: &Prepared,
        permission: Option<&Permission>,
    ) -> Rules {
        let (tool, reading) = (&open.request.name, prepared.reading.as_deref());
        let class = effective_class(&prepared.assessment);
        let covered = |rule: &AllowRule| match reading {
            Some(reading) => rule.covers(reading),
            None => rule.covers_tool(tool, class),
        };
        Rules {
            denylisted: allow::denied(&self.settings.deny, tool, reading),
            allowlisted: reading
                .is_some_and(|reading| allow::allowlisted(&self.settings.allow, reading)),
            filtered: self.not_offered(task, tool),
            auditor: false,
            session_rule: task.state().allow_rules.iter().any(covered),
            approved: matches!(permission, Some(Permission::Allow | Permission::AllowAll)),
        }
    }

    /// After a crash: a started call is brought to its result by its declared recovery (§15.6).
    async fn recover(
        &self,
        task: &Journal,
        open: &OpenCall,
        started: &ToolCall,
        stop: &CancellationToken,
    ) -> Plan {
        let unknown = || Plan::Settled {
            check: None,
            outcome: Outcome::ended(CallEnding::Unknown, UNKNOWN_OUTCOME.trim_end()),
        };
        match &started.recovery {
            Recovery::Rerun => {}
            Recovery::Verify { change, outcome } => {
                match self.world.workspace.recover(open.request.id, change) {
                    Ok(Happened::Yes) => {
                        return Plan::Settled { check: None, outcome: outcome.as_ref().clone() };
                    }
                    Ok(Happened::No) => {}
                    Ok(Happened::Unknown) | Err(_) => return unknown(),
                }
            }
            Recovery::Reattach { .. } | Recovery::Unknown => return unknown(),
        }
        match self.prepare(task, open, started.arguments.clone(), stop).await {
            Ok(prepared) => Plan::Run { check: None, call: started.clone(), prepared },
            Err(outcome) => Plan::Settled { check: None, outcome },
        }
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
            Plan::Run { .. } => self.run_together(task, stop, end_calls, vec![(open, plan)]).await,
        }
    }

    /// Runs calls side by side and journals their results in the order of the reply.
    async fn run_together(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        end_calls: &CancellationToken,
        batch: Vec<(OpenCall, Plan)>,
    ) -> Result<Option<Ending>, Error> {
        let mut started = Vec::new();
        let mut running = Vec::new();
        let mut level = Level::Written;
        for (open, plan) in batch {
            let (check, call, prepared) = match plan {
                Plan::Run { check, call, prepared } => (check, call, prepared),
                Plan::Settled { .. } | Plan::Ask { .. } | Plan::AskUser { .. } => continue,
            };
            if call.recovery.has_effects() {
                level = Level::Synced;
            }
            if let Some(check) = check {
                started.push(Event::RiskCheck(check));
                started.push(Event::ToolCall(call));
            }
            running.push((open, prepared));
        }
        task.commit(started, level).await?;
        let watch = Watch::over(task, self.settings.timeout, stop);
        let calls =
            join_all(running.into_iter().map(|(open, prepared)| self.perform(open, prepared)));
        tokio::pin!(calls);
        let mut interrupt = None;
        let results = tokio::select! {
            results = &mut calls => results,
            found = interrupting(&watch) => {
                // The calls are told to stop and still awaited: nothing of theirs outlives them.
                interrupt = Some(found?);
                end_calls.cancel();
                calls.await
            }
        };
        let events = results.into_iter().flat_map(|(open, outcome, ms)| result(&open, outcome, ms));
        task.note(events.collect())?;
        Ok(match interrupt {
            Some(Interrupt::Timeout) => Some(Ending::Failed(self.timed_out())),
            Some(Interrupt::Cancel | Interrupt::Shutdown) | None => None,
        })
    }

    async fn perform(&self, open: OpenCall, prepared: Prepared) -> (OpenCall, Outcome, u64) {
        let begun = Instant::now();
        let mut outcome = (prepared.act)().await;
        if outcome.truncated.is_none() {
            let (id, limit) = (open.request.id, self.settings.tool_output_max_tokens);
            (outcome.text, outcome.truncated) =
                output::fit(outcome.text, id, limit, &self.world.workspace);
        }
        let duration_ms = begun.elapsed().as_millis() as u64;
        let tool_name = &open.request.name;
        match outcome.ending {
            CallEnding::Ok => tracing::debug!(tool_name, duration_ms, "Tool executed"),
            _ => {
                tracing::warn!(tool_name, error = %windlass_core::text::one_line(&outcome.text, 200), "Tool failed")
            }
        }
        (open, outcome, duration_ms)
    }

    async fn prepare(
        &self,
        task: &Journal,
        open: &OpenCall,
        arguments: serde_json::Value,
        stop: &CancellationToken,
    ) -> Result<Prepared, Outcome> {
        let Some(tool) = self.registry.get(&open.request.name) else {
            return Err(Outcome::error(format!("There is no tool `{}`.", open.request.name)));
        };
        let state = task.state();
        let facts = Facts {
            known_files: state.known_files.clone(),
            working_directory: state.working_directory.clone(),
        };
        let call = Call {
            id: open.request.id,
            arguments,
            facts: Arc::new(facts),
            limit_tokens: self.settings.tool_output_max_tokens,
            stop: stop.clone(),
        };
        tool.prepare(&self.world, call).await
    }

    fn kind(&self, name: &str) -> Kind {
        self.registry.get(name).map_or(Kind::Plain, |tool| tool.kind())
    }

    /// A tool that the profile does not reach is not shown; a forged call to it is refused here.
    fn not_offered(&self, task: &Journal, name: &str) -> Option<String> {
        let profile = task.state().axes.permission_profile;
        let offered = reachable_under(profile);
        (!self.registry.get(name).is_some_and(|tool| offered(tool.as_ref())))
            .then(|| format!("`{name}` is not available under profile `{profile}`"))
    }

    fn risk_check(
        &self,
        task: &Journal,
        open: &OpenCall,
        assessment: &Assessment,
        verdict: &Verdict,
    ) -> RiskCheck {
        RiskCheck {
            call: open.request.id,
            tool: open.request.name.clone(),
            class: assessment.class,
            risk: assessment.risk,
            decision: verdict.decision,
            reason: verdict.reason.clone(),
            axes: task.state().axes,
        }
    }
}

/// A pause and a shutdown let running calls finish; only a cancel and the time limit end them.
async fn interrupting(watch: &Watch) -> Result<Interrupt, Error> {
    match watch.interrupted().await? {
        Interrupt::Shutdown => std::future::pending().await,
        interrupt @ (Interrupt::Cancel | Interrupt::Timeout) => Ok(interrupt),
    }
}

/// Whether a call may run beside its neighbours. Commands may not: one leaves the directory in which
/// the next begins.
fn is_read_only(plan: &Plan) -> bool {
    match plan {
        Plan::Run { call, prepared, .. } => {
            let looks = prepared.assessment.class == Class::Read;
            looks && !prepared.recovery.has_effects() && call.tool != "bash"
        }
        Plan::Settled { .. } | Plan::Ask { .. } | Plan::AskUser { .. } => false,
    }
}

/// A call's result, and the events of what follows from it.
fn result(open: &OpenCall, outcome: Outcome, duration_ms: u64) -> Vec<Event> {
    let follows: Vec<Event> = outcome
        .facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Plan(plan) => Some(Event::PlanUpdated(plan.clone())),
            Fact::Published(file) => Some(Event::DeliverablePublished(file.clone())),
            Fact::FileRead { .. }
            | Fact::FileChanged { .. }
            | Fact::BackgroundStarted { .. }
            | Fact::WorkingDirectory { .. } => None,
        })
        .collect();
    let (call, tool) = (open.request.id, open.request.name.clone());
    let ended = Event::ToolResult(ToolResult { call, tool, outcome, duration_ms });
    std::iter::once(ended).chain(follows).collect()
}

fn denied(denial: &Denial) -> Outcome {
    Outcome::ended(CallEnding::Denied, denial.render())
}

/// What a person said to this call, if they were asked about exactly this one (MS-068).
fn permission_given(task: &Journal, open: &OpenCall) -> Option<Permission> {
    let Stage::Answered(question, answer) = &open.stage else { return None };
    let fits = question.binding.as_ref() == Some(&binding(task, open));
    question
        .permission(&answer.text)
        .filter(|given| fits || matches!(given, Permission::Deny { .. }))
}

fn binding(task: &Journal, open: &OpenCall) -> Binding {
    Binding {
        arguments_hash: allow::arguments_hash(&open.request.arguments),
        cwd: task.state().working_directory.clone().unwrap_or_default(),
    }
}

fn asked(open: &OpenCall, arguments: &serde_json::Value) -> Question {
    let text = |key: &str| arguments[key].as_str().map(str::to_owned);
    let options = arguments["options"].as_array().into_iter().flatten();
    Question {
        id: QuestionId::derived(&open.request.id.to_string(), "ask_user"),
        kind: QuestionKind::AskUser,
        call: Some(open.request.id),
        question: text("question").unwrap_or_default(),
        options: options.filter_map(|option| option.as_str().map(str::to_owned)).collect(),
        context: text("context"),
        binding: None,
        grants: None,
    }
}

fn ask_leave(task: &Journal, open: &OpenCall, check: &RiskCheck, prepared: &Prepared) -> Question {
    let grants = match &prepared.reading {
        Some(reading) => AllowRule::for_reading(reading),
        None => {
            let class = effective_class(&prepared.assessment);
            let tool = open.request.name.clone();
            may_be_ruled(class).then_some(AllowRule::Tool { tool, class })
        }
    };
    let [allow, deny, allow_all] = PERMISSION_OPTIONS.map(str::to_owned);
    let mut options = vec![allow, deny];
    let mut context = open.request.arguments.clone();
    if let Some(rule) = &grants {
        options.push(allow_all);
        context += &format!("\n`Allow All` allows {rule}.");
    }
    Question {
        id: QuestionId::derived(&open.request.id.to_string(), "permission"),
        kind: QuestionKind::Permission,
        call: Some(open.request.id),
        question: format!("Allow `{}`? {}", check.tool, check.reason),
        options,
        context: Some(context),
        binding: Some(binding(task, open)),
        grants,
    }
}
