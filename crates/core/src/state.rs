//! A task's state: the fold of its events, and the same code whether running or recovering.
//!
//! Invariants:
//! - State is a fold: `apply` is the only way it changes, and it looks at nothing but the event.
//! - What happens next is a question to the state (`next`), so a loop that was killed and one that was
//!   not go on alike.

mod fold;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::axes::Axes;
use crate::command::{Deliverable, HitlRequest, TaskCommand, UsageMetrics};
use crate::compaction_state::CompactionState;
use crate::error::ErrorDetails;
use crate::event::{Event, SubAgentSpawn, TaskCreated, ToolCall};
use crate::guard::Guard;
use crate::id::{CallId, QuestionId, ScheduleId, TaskId};
use crate::message::ToolRequest;
use crate::plan::WorkingPlan;
use crate::policy::allow::AllowRule;
use crate::question::{Answer, Question};
use crate::schedule::{Expiry, MONITORING_COMPLETE};
use crate::spending::Spending;
use crate::status::{IllegalMove, StatusReason, TaskStatus};

/// A journal that contradicts itself.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FoldError {
    /// The first event is not the task's creation.
    #[error("a journal must begin with `task_created`, not `{0}`")]
    NoBeginning(&'static str),
    /// The task is created twice.
    #[error("`task_created` stands in the middle of a journal")]
    SecondBeginning,
    /// A status moved in a way the lifecycle does not have.
    #[error(transparent)]
    IllegalMove(#[from] IllegalMove),
    /// An event speaks of a call that no reply asked for, or that has ended.
    #[error("`{event}` names call `{call}`, which is not open")]
    NoSuchCall {
        /// The event.
        event: &'static str,
        /// The call.
        call: CallId,
    },
}

/// How far an open call has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// Nothing has happened to it.
    Waiting,
    /// A person is asked about it.
    Asked(QuestionId),
    /// A person has answered this question.
    Answered(Box<Question>, Answer),
    /// It was started; whether it ended is not known.
    Started(Box<ToolCall>),
}

/// A call of the last reply that has no result yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// What the model asked for.
    pub request: ToolRequest,
    /// How far it has come.
    pub stage: Stage,
}

/// What the loop does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Ask the model.
    AskModel,
    /// Go on with the compaction that was begun.
    Compact,
    /// Bring the open calls of the last reply to their results.
    RunCalls,
    /// Nothing: a person has to answer first.
    Wait(QuestionId),
    /// End with these words.
    Finish(String),
}

/// A control signal that has not been acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Stop for good.
    Cancel(Option<String>),
    /// Park.
    Pause,
    /// Its time is up, and why.
    Expired(Expiry, String),
}

/// A last word that is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// Cut at the model's output limit; the next reply goes on from there.
    Cut {
        /// What was said so far.
        text: String,
        /// How many replies in a row were cut.
        times: u32,
    },
    /// The provider withheld the rest.
    Withheld,
}

/// Everything that is known of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    /// How it began.
    pub created: TaskCreated,
    /// When it began.
    pub created_at: Timestamp,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why it stands there.
    pub reason: StatusReason,
    /// When it goes on by itself.
    pub until: Option<Timestamp>,
    /// Times in a row that its model's server had it wait instead of answering.
    pub holds: u32,
    /// The axes in force.
    pub axes: Axes,
    /// Calls of the last reply without a result, in order.
    pub open_calls: Vec<OpenCall>,
    /// The last reply's text, when it was final and nothing has come since.
    pub final_text: Option<String>,
    /// The last reply, where it would have been final had it been whole.
    pub unfinished: Option<Unfinished>,
    /// Questions without an answer.
    pub open_questions: BTreeMap<QuestionId, Question>,
    /// What people have allowed for the session.
    pub allow_rules: Vec<AllowRule>,
    /// A signal to act on.
    pub signal: Option<Signal>,
    /// The working plan.
    pub plan: Option<WorkingPlan>,
    /// What was published, by path.
    pub deliverables: BTreeMap<String, Deliverable>,
    /// The version of each file that the agent has last seen or made.
    pub known_files: BTreeMap<String, String>,
    /// The files that it and agents below it have changed, in the order of their first change.
    pub changed_files: Vec<String>,
    /// Where the whole of each cut output is.
    pub outputs: Vec<String>,
    /// The shell's directory, as the agent sees it.
    pub working_directory: Option<String>,
    /// The kind of sandbox that was brought up for it and is not down yet.
    pub sandbox: Option<String>,
    /// Commands left running, by the call that started each.
    pub background: BTreeMap<CallId, String>,
    /// The version of each skill that the agent has been told of.
    pub told_skills: BTreeMap<String, String>,
    /// The same as its system prompt tells it, which is all that outlives a compaction.
    prelude_skills: BTreeMap<String, String>,
    /// Tokens, rounds and calls so far; `duration_ms` counts ended segments only.
    pub usage: UsageMetrics,
    /// What it has cost so far, as far as is known.
    pub cost_spent: f64,
    /// Whether the price of anything is known; without, nothing is known of its cost.
    pub priced: bool,
    /// Prompt and reply tokens of the last reply.
    pub last_tokens: u64,
    /// What went wrong.
    pub error: Option<ErrorDetails>,
    /// Whether an agent has ever started.
    pub started: bool,
    /// Times it was retried.
    pub retries: u32,
    /// Rounds and active time before the last retry: each attempt has its limits for itself.
    before_attempt: (u32, u64),
    /// The doom-loop guard.
    pub guard: Guard,
    /// Where it stands between two compactions.
    pub cycle: CompactionState,
    /// What it has spent.
    pub spending: Spending,
    /// Sub-agents that were started and have not ended, by the call that asked for each.
    pub sub_agents: BTreeMap<CallId, SubAgentSpawn>,
    /// Schedules that look after it: with nothing to do, it is parked and not done.
    pub schedules: BTreeSet<ScheduleId>,
    /// When the running segment began and when it was last heard of.
    segment: Option<(Timestamp, Timestamp)>,
}

impl TaskState {
    /// The state after a journal's first event.
    pub fn begin(at: Timestamp, event: &Event) -> Result<Self, FoldError> {
        let Event::TaskCreated(created) = event else {
            return Err(FoldError::NoBeginning(event.kind()));
        };
        let created = created.as_ref().clone();
        Ok(Self {
            created_at: at,
            status: TaskStatus::Todo,
            reason: StatusReason::User,
            until: None,
            holds: 0,
            axes: created.axes,
            created,
            open_calls: Vec::new(),
            final_text: None,
            unfinished: None,
            open_questions: BTreeMap::new(),
            allow_rules: Vec::new(),
            signal: None,
            plan: None,
            deliverables: BTreeMap::new(),
            known_files: BTreeMap::new(),
            changed_files: Vec::new(),
            outputs: Vec::new(),
            working_directory: None,
            sandbox: None,
            background: BTreeMap::new(),
            told_skills: BTreeMap::new(),
            prelude_skills: BTreeMap::new(),
            usage: UsageMetrics::default(),
            cost_spent: 0.0,
            priced: false,
            last_tokens: 0,
            error: None,
            started: false,
            retries: 0,
            before_attempt: (0, 0),
            guard: Guard::default(),
            cycle: CompactionState::default(),
            spending: Spending::default(),
            sub_agents: BTreeMap::new(),
            schedules: BTreeSet::new(),
            segment: None,
        })
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

    /// Takes in one event.
    pub fn apply(&mut self, at: Timestamp, event: &Event) -> Result<(), FoldError> {
        if let Some((_, heard)) = &mut self.segment {
            *heard = at;
        }
        match event {
            Event::TaskCreated(_) => return Err(FoldError::SecondBeginning),
            Event::StatusChanged(moved) => {
                self.status.check_move(moved.to)?;
                if moved.to == TaskStatus::Retrying {
                    self.retries += 1;
                    self.holds = 0;
                    self.before_attempt = (self.usage.iterations, self.usage.duration_ms);
                    // One that is told to try again may do again what it did last.
                    self.guard.forget();
                    self.spending.retried();
                    self.unfinished = None;
                }
                self.status = moved.to;
                self.reason = moved.reason;
                self.until = moved.until;
                self.holds += u32::from(moved.reason == StatusReason::RateLimited);
                self.cycle.yielded |= moved.reason == StatusReason::ContextFull;
                self.error = moved.error.clone();
                self.clear_signal();
            }
            Event::AgentStart(start) => {
                if start.prelude.is_some() {
                    self.told_skills = start.skills.clone();
                    self.prelude_skills = start.skills.clone();
                }
                self.guard.thresholds = start.guard.unwrap_or_default();
                self.end_segment();
                // What an earlier segment had brought up is gone with it.
                self.sandbox = None;
                self.cost_spent += self.spending.segment_begun();
                self.started = true;
                self.segment = Some((at, at));
            }
            Event::AgentEnd(_) => self.end_segment(),
            Event::LlmRequest(request) => self.spending.requested(request.reserved_usd),
            Event::LlmResponse(response) => self.on_reply(response),
            Event::RiskCheck(check) => {
                self.open_call("risk_check", check.call)?;
            }
            Event::QuestionAsked(question) => {
                if let Some(call) = question.call {
                    self.open_call("question_asked", call)?.stage = Stage::Asked(question.id);
                }
                self.open_questions.insert(question.id, question.clone());
            }
            Event::QuestionAnswered(answered) => {
                if let Some(question) = self.open_questions.remove(&answered.question) {
                    self.on_answer(question, &answered.answer)?;
                }
            }
            Event::QuestionClosed(closed) => {
                self.open_questions.remove(&closed.question);
            }
            Event::ToolCall(call) => {
                self.open_call("tool_call", call.call)?.stage =
                    Stage::Started(Box::new(call.clone()));
            }
            Event::ToolResult(result) => self.on_tool_result(result)?,
            Event::InjectionReceived(injection) => self.on_injection(injection),
            Event::DoomLoopDetected(_) => self.guard.intervened(),
            Event::PlanUpdated(plan) => {
                let before = self.plan.as_ref().map_or(0, WorkingPlan::done);
                self.cycle.step_finished |= plan.done() > before;
                self.plan = Some(plan.clone());
            }
            Event::MemoryFlush(flush) => self.cycle.on_flush(flush),
            Event::CompactionStart(start) => self.cycle.on_start(start),
            Event::CompactionProgress(progress) => {
                self.spent(&progress.usage);
                self.cycle.on_progress(progress);
            }
            Event::CompactionEnd(end) => {
                self.usage.compactions = end.number;
                self.cycle.on_end(end);
                // What it was told since may be summarized away, so it is told again.
                self.told_skills = self.prelude_skills.clone();
            }
            Event::SubAgentSpawn(spawn) => {
                self.usage.sub_agents_spawned += 1;
                self.sub_agents.insert(spawn.call, spawn.clone());
            }
            Event::SubAgentComplete(complete) => self.on_sub_agent_end(complete),
            Event::BudgetHit(hit) => self.spending.hit(hit),
            Event::DeliverablePublished(deliverable) => {
                self.deliverables.insert(deliverable.filepath.clone(), deliverable.clone());
            }
            Event::ModeChanged(changed) => self.axes = changed.to,
            Event::CommandExited(exited) => {
                self.background.remove(&exited.call);
            }
            Event::SandboxLost(_) => {
                self.background.clear();
                self.sandbox = None;
            }
            Event::SandboxStarted(started) => self.sandbox = Some(started.kind.clone()),
            Event::SandboxEnded(_) => self.sandbox = None,
        }
        Ok(())
    }

    /// What the loop does next.
    pub fn next(&self) -> Next {
        // A question that no call waits for is about the whole task.
        if let Some(question) = self.open_questions.values().find(|one| one.call.is_none()) {
            return Next::Wait(question.id);
        }
        match (self.open_calls.first(), &self.final_text) {
            (Some(OpenCall { stage: Stage::Asked(question), .. }), _) => Next::Wait(*question),
            (Some(_), _) => Next::RunCalls,
            (None, Some(text)) => Next::Finish(text.clone()),
            (None, None) if self.cycle.compacting.is_some() => Next::Compact,
            (None, None) => Next::AskModel,
        }
    }

    /// Whether the last words mean that there is nothing to do until a schedule speaks again (ES-287).
    pub fn waits_for_schedule(&self) -> bool {
        // Some models put marks around a heading.
        let words =
            |text: &String| text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let ended = |text: &String| words(text).starts_with(MONITORING_COMPLETE);
        !self.schedules.is_empty() && !self.final_text.as_ref().is_some_and(ended)
    }

    /// The task's id.
    pub fn id(&self) -> TaskId {
        self.created.command.task_id
    }

    /// What was handed in.
    pub fn command(&self) -> &TaskCommand {
        &self.created.command
    }

    /// Active time up to `now`: segments only, so that blocked and paused time does not count.
    pub fn active_ms(&self, now: Timestamp) -> u64 {
        let running = self.segment.map_or(0, |(from, _)| millis(from, now));
        self.usage.duration_ms + running
    }

    /// What it has cost; `None` where it has spent and nobody knows what.
    pub fn known_cost(&self) -> Option<f64> {
        (self.priced || self.usage.total_tokens == 0).then_some(self.cost_spent)
    }

    /// Tool rounds of this attempt.
    pub fn attempt_rounds(&self) -> u32 {
        self.usage.iterations.saturating_sub(self.before_attempt.0)
    }

    /// Active time of this attempt up to `now`.
    pub fn attempt_ms(&self, now: Timestamp) -> u64 {
        self.active_ms(now).saturating_sub(self.before_attempt.1)
    }

    /// A question that is open, or that was answered while its call waits.
    pub fn question(&self, id: QuestionId) -> Option<&Question> {
        let answered = self.open_calls.iter().find_map(|open| match &open.stage {
            Stage::Answered(question, _) if question.id == id => Some(question.as_ref()),
            Stage::Answered(..) | Stage::Waiting | Stage::Asked(_) | Stage::Started(_) => None,
        });
        self.open_questions.get(&id).or(answered)
    }

    /// What is asked of a person, on the wire.
    pub fn hitl_request(&self) -> Option<HitlRequest> {
        self.open_questions.values().next().map(HitlRequest::from)
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
