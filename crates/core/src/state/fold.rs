//! What single events do to a task's state, where that takes more than a line.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use super::parts::Segment;
use super::{FoldError, Signal, Stage, StartAnswer, TaskState};
use crate::axes::WorkMode;
use crate::event::{
    AgentStart, CompactionEnd, LlmResponse, ModeChanged, PromptChanged, StatusChanged,
    SubAgentComplete, ToolResult, VerificationEnded,
};
use crate::guard::CallResult;
use crate::injection::{Control, Injection};
use crate::message::ToolRequest;
use crate::outcome::{CallEnding, Fact};
use crate::policy::allow::AllowRule;
use crate::question::{Answer, Permission, Question, QuestionKind, REPAIR_OPTIONS};
use crate::session::Source;
use crate::status::{StatusReason, TaskStatus};

impl TaskState {
    /// A follow-up begins with what the task before it knew.
    pub(super) fn inherit(&mut self) {
        let Some(before) = self.created.continues.clone() else {
            // A task of a plan begins and ends with the same two steps (C-07).
            let is_first = self.created.depth == 0;
            self.plan = self.created.plan.as_ref().filter(|_| is_first).map(|plan| plan.steps());
            return;
        };
        self.plan = before.plan;
        self.files.known = before.known_files;
        before.allow_rules.iter().for_each(|rule| self.allow(rule));
        self.sandbox.working_directory = before.working_directory;
    }

    /// A change that the health check made is taken back when nothing is wrong; any other change is somebody's
    /// decision.
    pub(super) fn on_mode_change(&mut self, changed: &ModeChanged) {
        self.before_repair = match (changed.to.work_mode, changed.source) {
            (WorkMode::Repair, Source::Repair) => {
                self.before_repair.or(Some((changed.from, self.role)))
            }
            (WorkMode::Repair, _) => self.before_repair,
            (
                WorkMode::Chat
                | WorkMode::Plan
                | WorkMode::Build
                | WorkMode::Review
                | WorkMode::Research,
                _,
            ) => None,
        };
        self.axes = changed.to;
        self.role = changed.role;
    }

    /// What is not met goes back to the agent.
    pub(super) fn on_verification_end(&mut self, ended: &VerificationEnded) {
        self.verification.on_end(ended);
        if !ended.passed {
            self.last_reply.final_text = None;
        }
    }

    pub(super) fn on_status_change(&mut self, change: &StatusChanged) -> Result<(), FoldError> {
        self.status.check_move(change.to)?;
        if change.to == TaskStatus::Retrying {
            self.attempts.retries += 1;
            self.attempts.on_reply();
            self.attempts.rounds_before = self.spending.usage.iterations;
            self.attempts.active_ms_before = self.spending.usage.duration_ms;
            // A new attempt may do again what the last one did.
            self.guard.forget();
            self.spending.on_retry();
            self.last_reply.unfinished = None;
        }
        self.attempts.on_pause(change.reason);
        self.compaction.yielded |= change.reason == StatusReason::ContextFull;
        self.status = change.to;
        self.reason = change.reason;
        self.until = change.until;
        self.error = change.error.clone();
        self.signal = self.signal.take().filter(|signal| !signal.is_obeyed_by(change.to));
        Ok(())
    }

    pub(super) fn on_segment_start(&mut self, at: Timestamp, start: &AgentStart) {
        if start.prelude.is_some() {
            self.skills.announced = start.skills.clone();
            self.skills.in_prompt = start.skills.clone();
            self.prompt_axes = Some(self.axes);
            self.prompt_role = self.role;
        }
        self.guard.thresholds = start.guard.unwrap_or_default();
        self.end_segment(None);
        // The sandbox of an earlier segment is gone with it.
        self.sandbox.kind = None;
        self.spending.on_segment_start();
        self.attempts.started = true;
        self.attempts.on_model(&start.model);
        self.attempts.segment = Some(Segment { last_event: at, worked_ms: 0 });
    }

    pub(super) fn on_prompt_change(&mut self, changed: &PromptChanged) {
        self.skills.announced = changed.skills.clone();
        self.skills.in_prompt = changed.skills.clone();
        self.prompt_axes = Some(changed.axes);
        self.prompt_role = changed.role;
        self.attempts.on_model(&changed.model);
    }

    pub(super) fn on_compaction_end(&mut self, end: &CompactionEnd) {
        self.spending.usage.compactions = end.number;
        self.compaction.on_end(end);
        // What was announced since may be summarized away, so it is announced again.
        self.skills.announced = self.skills.in_prompt.clone();
    }

    pub(super) fn on_reply(&mut self, response: &LlmResponse) {
        let usage = &response.usage;
        self.spending.on_usage(usage);
        self.spending.own_turns += 1;
        self.attempts.on_reply();
        self.attempts.was_answered = true;
        self.plan_review.revised = None;
        self.verification.forget();
        self.spending.last_tokens = usage.input_tokens + usage.output_tokens;
        // What an agent says when it has saved its notes is not its final reply.
        if self.compaction.on_reply(!response.calls.is_empty()) {
            self.last_reply.on_flush_reply(response);
        } else {
            self.last_reply.on_reply(response);
        }
    }

    pub(super) fn on_sub_agent_end(&mut self, complete: &SubAgentComplete) {
        self.sub_agents.remove(&complete.call);
        if self.verification.owns(complete.call) {
            let verdict = complete.verdict.as_ref();
            self.verification.on_audit(verdict);
            // What an auditor rejects goes back to the agent.
            if verdict.is_some_and(|verdict| !verdict.approved) {
                self.last_reply.final_text = None;
            }
        }
        complete.files_changed.iter().for_each(|path| self.files.on_change(path));
        self.spending.on_sub_agent_end(complete);
    }

    pub(super) fn on_answer(
        &mut self,
        question: Question,
        answer: &Answer,
    ) -> Result<(), FoldError> {
        if question.kind == QuestionKind::Budget {
            self.spending.on_answer(&answer.text);
        }
        if question.kind == QuestionKind::Repair && answer.text == REPAIR_OPTIONS[1] {
            self.tolerated_problem.clone_from(&question.context);
        }
        self.plan_review.on_answer(&question, answer);
        if question.id == self.start_question() {
            let permission = question.permission(&answer.text);
            self.start_answer =
                permission.map(|given| StartAnswer { given, by: answer.by.clone() });
        }
        self.verification.on_answer(&question, answer);
        if question.permission(&answer.text) == Some(Permission::AllowAll)
            && let Some(rule) = &question.grants
        {
            self.allow(rule);
        }
        if let Some(call) = question.call {
            self.last_reply.open_call("question_answered", call)?.stage =
                Stage::Answered(Box::new(question), answer.clone());
        }
        Ok(())
    }

    pub(super) fn on_tool_result(&mut self, result: &ToolResult) -> Result<(), FoldError> {
        let call = self.last_reply.close_call("tool_result", result.call)?;
        let ran = matches!(call.stage, Stage::Started(_) | Stage::Answered(..));
        self.spending.usage.tool_calls += u32::from(ran);
        self.sub_agents.remove(&result.call);
        let flushing = self.compaction.is_flushing();
        if self.last_reply.open_calls.is_empty() {
            self.spending.usage.iterations += 1;
            self.compaction.on_round_end();
        }
        for fact in &result.outcome.facts {
            self.on_fact(fact);
        }
        if let Some(cut) = &result.outcome.truncated {
            self.files.outputs.push(cut.full_output_path.clone());
        }
        let ending = match result.outcome.ending {
            CallEnding::Error | CallEnding::Denied | CallEnding::Unknown => CallResult::Failure,
            CallEnding::Ok | CallEnding::Cancelled => CallResult::Success,
        };
        // What is refused while notes are saved says nothing about the work.
        if !flushing {
            let said = hash_of(result.outcome.comparable());
            self.guard.on_call(&result.tool, canonical_hash(&call.request), said, ending);
        }
        Ok(())
    }

    pub(super) fn on_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::FileRead { path, hash } => {
                self.files.known.insert(path.clone(), hash.clone());
            }
            Fact::FileChanged { path, hash, .. } => {
                self.files.known.insert(path.clone(), hash.clone());
                self.files.on_change(path);
            }
            Fact::WorkingDirectory { path } => self.sandbox.working_directory = Some(path.clone()),
            Fact::BackgroundStarted { call, command } => {
                self.sandbox.background.insert(*call, command.clone());
            }
            Fact::Evidence(evidence) => self.files.on_evidence(evidence),
            // The plan and deliverables have events of their own; which skills bind it, the context knows.
            Fact::Plan(_) | Fact::Published(_) | Fact::SkillRead { .. } => {}
            Fact::Verdict(review) => self.verdict = Some(review.clone()),
        }
    }

    pub(super) fn on_injection(&mut self, injection: &Injection) {
        match &injection.control {
            Some(Control::Cancel { reason }) => self.signal = Some(Signal::Cancel(reason.clone())),
            // A cancel that waits is not softened by a pause that follows it.
            Some(Control::Pause) if matches!(self.signal, None | Some(Signal::Pause)) => {
                self.signal = Some(Signal::Pause);
            }
            Some(Control::Interrupt) if self.may_be_parked() => {
                self.signal = Some(Signal::Interrupt);
            }
            Some(Control::Resume) if self.may_be_parked() => self.signal = None,
            Some(Control::Revoke { rule }) => self.allow_rules.retain(|given| given != rule),
            Some(Control::Watch { schedule, next }) => match next {
                Some(_) => drop(self.schedules.insert(*schedule)),
                None => drop(self.schedules.remove(schedule)),
            },
            Some(Control::Unwatch { schedule }) => drop(self.schedules.remove(schedule)),
            Some(Control::UseModel { model }) => self.chosen_model = Some(model.clone()),
            Some(Control::Grant { rule }) => self.allow(rule),
            // The journal has a `mode_changed` in its place.
            Some(Control::ChangeAxes { .. }) => {}
            // The context has it.
            Some(Control::Steer { .. }) => {}
            // What a person said first counts.
            Some(Control::Expire { action }) if self.signal.is_none() => {
                self.signal = Some(Signal::Expired(*action, injection.content.clone()));
            }
            Some(
                Control::Pause | Control::Interrupt | Control::Resume | Control::Expire { .. },
            )
            | None => {}
        }
        if let Some(announced) = injection.announced_skills() {
            self.skills.announced = announced;
        }
        if injection.text_for_model().is_some() {
            self.last_reply.final_text = None;
            self.verification.forget();
            // What follows answers this, and does not continue where the reply was cut.
            self.last_reply.unfinished = None;
        }
    }

    /// Whether no signal waits but one that parks it.
    const fn may_be_parked(&self) -> bool {
        matches!(self.signal, None | Some(Signal::Pause | Signal::Interrupt))
    }

    fn allow(&mut self, rule: &AllowRule) {
        if !self.allow_rules.contains(rule) {
            self.allow_rules.push(rule.clone());
        }
    }

    /// Ends the segment; its end says the active time in all. After a crash the last event that says so
    /// counts, and not what the process may have done after it.
    pub(super) fn end_segment(&mut self, total_ms: Option<u64>) {
        let known = self.work().active_ms();
        if self.attempts.segment.take().is_some() {
            self.spending.usage.duration_ms = total_ms.unwrap_or(known).max(known);
        }
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Two calls are the same when tool and arguments are, whatever the order of keys.
fn canonical_hash(request: &ToolRequest) -> u64 {
    let arguments = serde_json::from_str::<serde_json::Value>(&request.arguments)
        .map_or_else(|_| request.arguments.clone(), |value| value.to_string());
    hash_of((&request.name, arguments))
}
