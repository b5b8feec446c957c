//! A task's state: the fold of its events, and the same code whether running or recovering.
//!
//! Invariants:
//! - State is a fold: `apply` is the only way it changes, and it looks at nothing but the event.
//! - The state says what happens next (`next`), so a loop that was killed and one that was not behave
//!   the same.

mod compaction_state;
mod fold;
mod last_reply;
mod open_questions;
mod parts;
pub mod spending;
mod verification;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::axes::Axes;
use crate::command::{ExecutionConfig, TaskCommand, WorkingMemory};
use crate::contract::Review;
use crate::error::ErrorDetails;
use crate::event::{Continuation, Event, SubAgentSpawn, TaskCreated, WorkflowPart};
use crate::guard::Guard;
use crate::id::{CallId, QuestionId, ScheduleId, TaskId};
use crate::injection::DEFAULT_MODEL;
use crate::layout::Own;
use crate::outcome::Recovery;
use crate::plan::WorkingPlan;
use crate::policy::allow::AllowRule;
use crate::question::Question;
use crate::role::Role;
use crate::schedule::{Expiry, MONITORING_COMPLETE};
use crate::status::{IllegalMove, StatusReason, TaskStatus};

pub use compaction_state::{CompactionState, Flush, OpenCompaction};
pub use last_reply::{LastReply, OpenCall, Stage, Unfinished};
pub use open_questions::OpenQuestions;
pub use parts::{
    AnsweredPlan, Attempts, FileState, PlanReview, SandboxState, SkillState, StartAnswer,
};
pub use spending::Spending;
pub use verification::{RunningChecks, VerificationState};
pub use work::Work;

/// A journal that contradicts itself.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FoldError {
    /// The first event is not the task's creation.
    #[error("a journal must begin with `task_created`, not `{0}`")]
    NotCreated(&'static str),
    /// The task is created twice.
    #[error("`task_created` is not the first event of its journal")]
    DuplicateCreation,
    /// A status moved in a way the lifecycle does not have.
    #[error(transparent)]
    IllegalMove(#[from] IllegalMove),
    /// An event names a call that no reply asked for, or that has ended.
    #[error("`{event}` names call `{call}`, which is not open")]
    NoSuchCall { event: &'static str, call: CallId },
}

/// What the loop does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Ask the model.
    AskModel,
    /// Continue the compaction that began.
    Compact,
    /// Bring the open calls of the last reply to their results.
    RunCalls,
    /// Nothing: a person has to answer first.
    Wait(QuestionId),
    /// Start the plan that a person has accepted, if nothing has changed since.
    StartPlan,
    /// End with these words.
    Finish(String),
}

/// A control signal that has not been acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Stop for good.
    Cancel(Option<String>),
    Pause,
    /// Park now: the calls that were asked for get their results without running.
    Interrupt,
    /// Its time is up, and why.
    Expired(Expiry, String),
}

impl Signal {
    /// Whether a task with this status has done what it was asked for.
    fn is_obeyed_by(&self, status: TaskStatus) -> bool {
        match self {
            Self::Pause | Self::Interrupt | Self::Expired(Expiry::Pause, _) => {
                status == TaskStatus::Paused || status.is_terminal()
            }
            Self::Cancel(_) | Self::Expired(Expiry::Fail | Expiry::Complete, _) => {
                status.is_terminal()
            }
        }
    }
}

/// Everything that is known of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    /// How it began.
    pub created: TaskCreated,
    /// When it began.
    pub created_at: Timestamp,
    pub status: TaskStatus,
    /// Why it has this status.
    pub reason: StatusReason,
    /// When it resumes automatically.
    pub until: Option<Timestamp>,
    /// What went wrong.
    pub error: Option<ErrorDetails>,
    /// The model that a person has chosen since it was created.
    pub chosen_model: Option<String>,
    /// A signal to act on.
    pub signal: Option<Signal>,
    /// The axes in force.
    pub axes: Axes,
    /// The role that the agent works in.
    pub role: Option<Role>,
    /// The axes that the agent's prompt was made for.
    pub prompt_axes: Option<Axes>,
    /// The role that it was made for.
    pub prompt_role: Option<Role>,
    /// The axes and the role that it goes back to when what the health check found is repaired.
    pub before_repair: Option<(Axes, Option<Role>)>,
    /// What the health check found and a person wants it to continue with, in the words of the question.
    pub tolerated_problem: Option<String>,
    /// What people have allowed for the session.
    pub allow_rules: Vec<AllowRule>,
    /// Questions without an answer.
    pub open_questions: OpenQuestions,
    /// The working plan.
    pub plan: Option<WorkingPlan>,
    /// What people said to the plans that it proposed.
    pub plan_review: PlanReview,
    /// What a person said when they were asked whether it may start.
    pub start_answer: Option<StartAnswer>,
    /// The last reply of the model.
    pub last_reply: LastReply,
    /// Segments and retries.
    pub attempts: Attempts,
    /// Files that it has seen, changed and published.
    pub files: FileState,
    /// The sandbox, and what runs in it.
    pub sandbox: SandboxState,
    /// The skills that the agent knows of.
    pub skills: SkillState,
    /// What it has used and paid.
    pub spending: Spending,
    /// The doom-loop guard.
    pub guard: Guard,
    /// Where it stands between two compactions.
    pub compaction: CompactionState,
    /// Sub-agents that were started and have not ended, by the call that asked for each.
    pub sub_agents: BTreeMap<CallId, SubAgentSpawn>,
    /// Schedules that watch it: with nothing to do, it is parked and not done.
    pub schedules: BTreeSet<ScheduleId>,
    /// What it said, as an auditor, of the work that it was started to review.
    pub verdict: Option<Review>,
    /// Where it stands with its completion contract.
    pub verification: VerificationState,
}

impl TaskState {
    /// The state after a journal's first event.
    pub fn begin(at: Timestamp, event: &Event) -> Result<Self, FoldError> {
        let Event::TaskCreated(created) = event else {
            return Err(FoldError::NotCreated(event.kind()));
        };
        let created = created.as_ref().clone();
        let mut state = Self {
            created_at: at,
            status: TaskStatus::Todo,
            reason: StatusReason::User,
            until: None,
            error: None,
            chosen_model: None,
            signal: None,
            axes: created.axes,
            role: created.command.execution_config.role,
            prompt_axes: None,
            prompt_role: None,
            allow_rules: created.session_rules.clone(),
            before_repair: None,
            tolerated_problem: None,
            created,
            open_questions: OpenQuestions::default(),
            plan: None,
            plan_review: PlanReview::default(),
            start_answer: None,
            last_reply: LastReply::default(),
            attempts: Attempts::default(),
            files: FileState::default(),
            sandbox: SandboxState::default(),
            skills: SkillState::default(),
            spending: Spending::default(),
            guard: Guard::default(),
            compaction: CompactionState::default(),
            sub_agents: BTreeMap::new(),
            schedules: BTreeSet::new(),
            verdict: None,
            verification: VerificationState::default(),
        };
        state.inherit();
        Ok(state)
    }

    /// What the agent has put down for itself: its plan and its memos (ES-106).
    pub fn working_memory(&self) -> WorkingMemory {
        let directory = format!("{}/", self.created.layout().path(Own::Memo));
        let memos = self.files.known.keys().filter(|path| path.starts_with(&directory));
        WorkingMemory { plan: self.plan.clone(), memos: memos.cloned().collect() }
    }

    /// The state after a whole journal; `None` for an empty one.
    pub fn fold<'a>(
        events: impl IntoIterator<Item = (Timestamp, &'a Event)>,
    ) -> Result<Option<Self>, FoldError> {
        let mut events = events.into_iter();
        let Some((at, first)) = events.next() else { return Ok(None) };
        let mut state = Self::begin(at, first)?;
        for (at, event) in events {
            state.apply(at, event)?;
        }
        Ok(Some(state))
    }

    /// Changes the state by one event.
    pub fn apply(&mut self, at: Timestamp, event: &Event) -> Result<(), FoldError> {
        if let Some(segment) = &mut self.attempts.segment {
            segment.on_event(at, event.segment_ms());
        }
        match event {
            Event::TaskCreated(_) => return Err(FoldError::DuplicateCreation),
            Event::StatusChanged(change) => self.on_status_change(change)?,
            Event::AgentStart(start) => self.on_segment_start(at, start),
            Event::AgentEnd(result) => self.end_segment(Some(result.usage.duration_ms)),
            Event::LlmRequest(request) => self.spending.on_request(request.reserved_usd),
            Event::LlmResponse(response) => self.on_reply(response),
            // The context alone has what the model thought.
            Event::ReasoningDropped(_) => {}
            Event::RiskCheck(check) if self.verification.owns(check.call) => {}
            // Whether another program may start: no call of a model asks for it.
            Event::RiskCheck(_) if self.is_of_program() => {}
            Event::RiskCheck(check) => {
                self.last_reply.open_call("risk_check", check.call)?;
            }
            Event::QuestionAsked(question) => {
                if let Some(call) = question.call {
                    self.last_reply.open_call("question_asked", call)?.stage =
                        Stage::Asked(question.id);
                }
                self.plan_review.on_question(question.kind);
                self.open_questions.add(question);
            }
            Event::QuestionAnswered(answered) => {
                if let Some(question) = self.open_questions.remove(answered.question) {
                    self.on_answer(question, &answered.answer)?;
                }
            }
            Event::QuestionClosed(closed) => {
                self.open_questions.remove(closed.question);
            }
            Event::PlanAccepted(accepted) => {
                self.plan_review.on_acceptance(accepted);
                self.last_reply.final_text = None;
            }
            Event::ToolCall(call) if self.verification.owns(call.call) => {}
            Event::ToolCall(call) => {
                self.files.may_have_changed |= matches!(call.recovery, Recovery::Unknown);
                self.last_reply.open_call("tool_call", call.call)?.stage =
                    Stage::Started(Box::new(call.clone()));
            }
            Event::ToolResult(result) if self.verification.owns(result.call) => {
                self.verification.on_result(result);
            }
            Event::ToolResult(result) => self.on_tool_result(result)?,
            Event::InjectionReceived(injection) => self.on_injection(injection),
            Event::DoomLoopDetected(_) => self.guard.on_intervention(),
            Event::PlanUpdated(plan) => {
                let before = self.plan.as_ref().map_or(0, WorkingPlan::done);
                self.compaction.step_finished |= plan.done() > before;
                self.plan = Some(plan.clone());
            }
            Event::MemoryFlush(flush) => self.compaction.on_flush(flush),
            Event::CompactionStart(start) => self.compaction.on_start(start),
            Event::CompactionProgress(progress) => {
                self.spending.on_usage(&progress.usage);
                self.attempts.on_reply();
                self.compaction.on_progress(progress);
            }
            Event::CompactionEnd(end) => self.on_compaction_end(end),
            Event::SubAgentSpawn(spawn) => {
                self.spending.usage.sub_agents_spawned += 1;
                self.sub_agents.insert(spawn.call, spawn.clone());
            }
            Event::SubAgentComplete(complete) => self.on_sub_agent_end(complete),
            Event::BudgetHit(hit) => self.spending.on_budget_hit(hit),
            Event::DeliverablePublished(deliverable) => {
                self.files.deliverables.insert(deliverable.filepath.clone(), deliverable.clone());
            }
            // What others look at; the task itself is not changed by them.
            Event::IntentClaimed(_) | Event::CheckpointMade(_) => {}
            Event::VerificationStarted(started) => self.verification.on_start(started),
            Event::VerificationEnded(ended) => self.on_verification_end(ended),
            Event::ReviewStarted(started) => self.verification.auditor = Some(started.clone()),
            Event::PromptChanged(changed) => self.on_prompt_change(changed),
            Event::ModeChanged(changed) => self.on_mode_change(changed),
            Event::CommandExited(exited) => {
                self.sandbox.background.remove(&exited.call);
            }
            Event::SandboxLost(_) => {
                self.sandbox.background.clear();
                self.sandbox.kind = None;
            }
            Event::SandboxStarted(started) => self.sandbox.kind = Some(started.kind.clone()),
            Event::SandboxEnded(_) => self.sandbox.kind = None,
            // The engine of workflows folds these itself.
            Event::WorkflowStepStarted(_)
            | Event::WorkflowStepEnded(_)
            | Event::WorktreeChanged(_)
            | Event::MergeChanged(_) => {}
            Event::RunnerReported(reported) => {
                if let Some(usage) = &reported.usage {
                    self.spending.on_usage(usage);
                }
            }
        }
        Ok(())
    }

    /// Whether another program works on it.
    fn is_of_program(&self) -> bool {
        matches!(self.created.workflow.as_deref(), Some(WorkflowPart::Program { .. }))
    }

    /// What the loop does next.
    pub fn next(&self) -> Next {
        if let Some(question) = self.open_questions.about_task() {
            return Next::Wait(question.id);
        }
        if self.plan_review.answered.is_some() {
            return Next::StartPlan;
        }
        match (self.last_reply.open_calls.first(), &self.last_reply.final_text) {
            (Some(OpenCall { stage: Stage::Asked(question), .. }), _) => Next::Wait(*question),
            (Some(_), _) => Next::RunCalls,
            (None, Some(text)) => Next::Finish(text.clone()),
            (None, None) if self.compaction.compacting.is_some() => Next::Compact,
            (None, None) => Next::AskModel,
        }
    }

    /// Whether the last words mean that there is nothing to do until a schedule speaks again (ES-287).
    pub fn waits_for_schedule(&self) -> bool {
        // Some models put markup around a heading.
        let words =
            |text: &String| text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let ended = |text: &String| words(text).starts_with(MONITORING_COMPLETE);
        !self.schedules.is_empty() && !self.last_reply.final_text.as_ref().is_some_and(ended)
    }

    /// The question whether the task may start, where one is needed (MS-216).
    pub fn start_question(&self) -> QuestionId {
        QuestionId::derived(&self.id().to_string(), "start")
    }

    /// The task's id.
    pub fn id(&self) -> TaskId {
        self.created.command.task_id
    }

    /// What it does differently from the configuration, as people have it now.
    pub fn execution_config(&self) -> ExecutionConfig {
        let mut config = self.created.command.execution_config.clone();
        config.role = self.role;
        if let Some(model) = self.chosen_model.as_deref() {
            config.model = (model != DEFAULT_MODEL).then(|| model.to_owned());
            // An effort was chosen for the model before it.
            config.effort = None;
        }
        config
    }

    /// What a task that continues this one takes over.
    pub fn continuation(&self) -> Continuation {
        Continuation {
            task: self.id(),
            plan: self.plan.clone(),
            known_files: self.files.known.clone(),
            allow_rules: self.allow_rules.clone(),
            working_directory: self.sandbox.working_directory.clone(),
        }
    }

    /// What was submitted.
    pub fn command(&self) -> &TaskCommand {
        &self.created.command
    }

    /// How long it has been worked on.
    pub fn work(&self) -> Work<'_> {
        Work { usage: &self.spending.usage, attempts: &self.attempts }
    }

    /// A question that is open, or that was answered while its call waits.
    pub fn question(&self, id: QuestionId) -> Option<&Question> {
        self.open_questions.get(id).or_else(|| self.last_reply.answered_question(id))
    }
}
