//! Events: what is committed to a journal. The journal is the truth; everything else is a fold of it.
//!
//! A new kind is one line in the list below, and a body in the file of its group with the words that people read of it.
//! Then the fold (`TaskState::apply`) does not compile until it knows the kind.
//!
//! Invariants:
//! - Bodies only gain fields, each with a default, so that an old journal can always be read.
//! - `Event::parts` then `Event::from_parts` is identity.

mod task;
mod model;
mod call;
mod question;
mod sandbox;
mod compaction;
mod sub_agent;
mod worker;
mod workflow;
mod verification;

use jiff::Timestamp;

use crate::command::{Deliverable, TaskResult};
use crate::id::TaskId;
use crate::injection::Injection;
use crate::plan::WorkingPlan;
use crate::question::Question;

pub use call::{DoomLoopDetected, RiskCheck, ToolCall, ToolResult};
pub use compaction::{CompactionEnd, CompactionProgress, CompactionStart, Excerpt, MemoryFlush};
pub use model::{LlmRequest, LlmResponse, ReasoningDropped};
pub use question::{PlanAccepted, QuestionAnswered, QuestionClosed};
pub use sandbox::{CommandExited, SandboxEnded, SandboxLost, SandboxStarted};
pub use sub_agent::{
    BudgetHit, BudgetKind, BudgetLevel, SubAgentComplete, SubAgentSpawn, SubAgentStatus,
};
pub use task::{
    AgentStart, Continuation, Deadline, Driver, ModeChanged, PromptChanged, StatusChanged,
    TaskCreated,
};
pub use verification::{PlannedCheck, ReviewStarted, VerificationEnded, VerificationStarted};
pub use workflow::{
    MergeChanged, MergeState, RunnerReported, ScriptWork, StepEnded, StepResult, StepStarted,
    WorkflowPart, WorkflowSource, WorktreeChanged, WorktreeKind, WorktreeState,
};

pub use worker::{CheckpointMade, IntentClaimed};

/// The version of event bodies that this program writes.
pub const EVENT_VERSION: u32 = 1;

/// The kinds of events that say what a reply used and cost.
pub const KINDS_WITH_USAGE: [&str; 3] = ["llm_response", "compaction_progress", "runner_reported"];

/// What people read of an event: one source for every surface. The body of each kind has it.
pub(crate) trait Words {
    /// What happened, in one line; the kind is shown beside it. The surface escapes it and cuts it to its width.
    fn words(&self) -> String;

    /// What a conversation says of it. None where it is shown in another form, or not at all.
    fn note(&self) -> Option<Note> {
        None
    }
}

/// A sentence about an event in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    /// What a person may want to read besides it.
    pub detail: Option<String>,
    /// Whether a person should look at it.
    pub is_warning: bool,
}

impl Note {
    pub(crate) fn new(text: impl Into<String>) -> Option<Self> {
        Some(Self { text: text.into(), detail: None, is_warning: false })
    }

    pub(crate) fn with_detail(text: impl Into<String>, detail: &str) -> Option<Self> {
        Some(Self { text: text.into(), detail: Some(detail.to_owned()), is_warning: false })
    }

    pub(crate) fn warning(text: impl Into<String>, detail: Option<&str>) -> Option<Self> {
        let detail = detail.map(str::to_owned);
        Some(Self { text: text.into(), detail, is_warning: true })
    }
}

/// Declares the kinds of events: the enum, the name of each kind, and how a body is written and read; `with words`
/// also what people read of each.
macro_rules! events {
    (
        $(#[$doc:meta])* $name:ident with words {
            $($(#[$vdoc:meta])* $kind:ident($body:ty) = $text:literal,)*
        }
    ) => {
        $crate::event::events! {
            $(#[$doc])* $name { $($(#[$vdoc])* $kind($body) = $text,)* }
        }

        impl $name {
            /// What happened, in one line for people, without the kind.
            pub fn words(&self) -> String {
                match self { $(Self::$kind(body) => body.words(),)* }
            }

            /// What a conversation says of it; none where it is shown in another form, or not at all.
            pub fn note(&self) -> Option<Note> {
                match self { $(Self::$kind(body) => body.note(),)* }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $kind:ident($body:ty) = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $($(#[$vdoc])* $kind($body),)* }

        impl $name {
            /// The name of every kind, in declared order.
            pub const KINDS: &'static [&'static str] = &[$($text,)*];

            /// The name of this event's kind; the trace's `event_type`.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$kind(_) => $text,)* }
            }

            /// The event's name and its body as JSON.
            pub fn parts(&self) -> (&'static str, String) {
                let body = match self { $(Self::$kind(body) => serde_json::to_string(body),)* };
                (self.kind(), body.expect("events hold only JSON-representable data"))
            }

            /// Reads a stored event.
            pub fn from_parts(
                kind: &str,
                version: u32,
                body: &str,
            ) -> Result<Self, $crate::event::UnreadableEvent> {
                let unreadable = |source| $crate::event::UnreadableEvent::new(kind, version, source);
                if version > $crate::event::EVENT_VERSION {
                    return Err(unreadable(None));
                }
                match kind {
                    $($text => serde_json::from_str(body)
                        .map(Self::$kind)
                        .map_err(|source| unreadable(Some(source))),)*
                    // A kind that this program does not know.
                    _ => Err(unreadable(None)),
                }
            }
        }
    };
}
pub(crate) use events;

events! {
    /// Something that happened to a task.
    Event with words {
        // The task as a whole.
        /// The task exists.
        TaskCreated(Box<TaskCreated>) = "task_created",
        /// Its status moved.
        StatusChanged(StatusChanged) = "status_changed",
        /// A run segment began.
        AgentStart(Box<AgentStart>) = "agent_start",
        /// A run segment ended.
        AgentEnd(Box<TaskResult>) = "agent_end",
        /// The axes changed.
        ModeChanged(ModeChanged) = "mode_changed",
        /// The system prompt, the tools or the model changed: a new epoch begins within the segment.
        PromptChanged(Box<PromptChanged>) = "prompt_changed",

        // The model.
        /// The model was asked.
        LlmRequest(LlmRequest) = "llm_request",
        /// The model answered.
        LlmResponse(LlmResponse) = "llm_response",
        /// What the model thought is sent back to it no longer.
        ReasoningDropped(ReasoningDropped) = "reasoning_dropped",

        // Tool calls.
        /// The gate decided about a call.
        RiskCheck(RiskCheck) = "risk_check",
        /// A call is about to start.
        ToolCall(ToolCall) = "tool_call",
        /// A call ended.
        ToolResult(ToolResult) = "tool_result",
        /// The agent repeats itself.
        DoomLoopDetected(DoomLoopDetected) = "doom_loop_detected",

        // Messages and questions.
        /// A message from outside was received.
        InjectionReceived(Injection) = "injection_received",
        /// A person is asked.
        QuestionAsked(Question) = "question_asked",
        /// A person answered.
        QuestionAnswered(QuestionAnswered) = "question_answered",
        /// A question is no longer open.
        QuestionClosed(QuestionClosed) = "question_closed",
        /// A plan was accepted, and its execution begins.
        PlanAccepted(Box<PlanAccepted>) = "plan_accepted",

        // What the work produces.
        /// The working plan changed.
        PlanUpdated(WorkingPlan) = "plan_updated",
        /// A file became a deliverable.
        DeliverablePublished(Deliverable) = "deliverable_published",
        /// A worker says what it will edit.
        IntentClaimed(IntentClaimed) = "intent_claimed",
        /// The state of the files was kept under a git ref.
        CheckpointMade(CheckpointMade) = "checkpoint_made",

        // The completion contract.
        /// The checks of the contract begin.
        VerificationStarted(VerificationStarted) = "verification_started",
        /// The checks of the contract have ended.
        VerificationEnded(VerificationEnded) = "verification_ended",
        /// An auditor reviews the finished work.
        ReviewStarted(ReviewStarted) = "review_started",

        // The sandbox.
        /// The sandbox runs.
        SandboxStarted(SandboxStarted) = "sandbox_started",
        /// The sandbox is gone.
        SandboxLost(SandboxLost) = "sandbox_lost",
        /// The sandbox is removed: the segment is over.
        SandboxEnded(SandboxEnded) = "sandbox_ended",
        /// A background command ended.
        CommandExited(CommandExited) = "command_exited",

        // Compaction.
        /// The agent is asked to save its notes.
        MemoryFlush(MemoryFlush) = "memory_flush",
        /// Older turns are about to be summarized.
        CompactionStart(CompactionStart) = "compaction_start",
        /// The summarizer answered.
        CompactionProgress(CompactionProgress) = "compaction_progress",
        /// The context was rebuilt from the summary.
        CompactionEnd(CompactionEnd) = "compaction_end",

        // Sub-agents and what a tree of agents shares.
        /// A sub-agent is about to start.
        SubAgentSpawn(SubAgentSpawn) = "sub_agent_spawn",
        /// A sub-agent ended.
        SubAgentComplete(Box<SubAgentComplete>) = "sub_agent_complete",
        /// A budget is nearly or wholly used up.
        BudgetHit(BudgetHit) = "budget_hit",

        // Runs of workflows.
        /// A step of a workflow begins.
        WorkflowStepStarted(Box<StepStarted>) = "workflow_step_started",
        /// A step of a workflow ended.
        WorkflowStepEnded(Box<StepEnded>) = "workflow_step_ended",
        /// A worktree of a run is made, used or removed.
        WorktreeChanged(Box<WorktreeChanged>) = "worktree_changed",
        /// What a run did is merged, or cannot be.
        MergeChanged(Box<MergeChanged>) = "merge_changed",
        /// Another program reports what it does.
        RunnerReported(Box<RunnerReported>) = "runner_reported",
    }
}

/// An event with its place in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Place in the whole database; the cursor that surfaces resume from.
    pub pos: i64,
    pub task: TaskId,
    /// Place in the task's stream, from 1.
    pub seq: u64,
    /// When it was committed.
    pub at: Timestamp,
    /// The tool round it belongs to.
    pub iteration: u32,
    pub event: Event,
}

/// A stored event that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error("event `{kind}` version {version} cannot be read")]
pub struct UnreadableEvent {
    kind: String,
    version: u32,
    #[source]
    source: Option<serde_json::Error>,
}

impl UnreadableEvent {
    pub(crate) fn new(kind: &str, version: u32, source: Option<serde_json::Error>) -> Self {
        Self { kind: kind.to_owned(), version, source }
    }
}

impl Event {
    /// How long the segment had been worked on when the event was journaled, where the event says so.
    pub fn segment_ms(&self) -> Option<u64> {
        match self {
            Self::LlmRequest(request) => request.segment_ms,
            Self::LlmResponse(response) => response.segment_ms,
            Self::ToolResult(result) => result.segment_ms,
            // The ends of a segment say it in their own way; the others come with one of these.
            _ => None,
        }
    }

    /// Sets the active time of the segment on events that carry it.
    pub fn set_segment_ms(&mut self, segment_ms: u64) {
        match self {
            Self::LlmRequest(request) => request.segment_ms = Some(segment_ms),
            Self::LlmResponse(response) => response.segment_ms = Some(segment_ms),
            Self::ToolResult(result) => result.segment_ms = Some(segment_ms),
            // As above.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let mut names = Event::KINDS.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Event::KINDS.len());
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let event = Event::SandboxEnded(SandboxEnded { kind: "local".to_owned() });
        let (kind, body) = event.parts();
        assert_eq!((kind, &*body), ("sandbox_ended", r#"{"kind":"local"}"#));
        assert_eq!(Event::from_parts(kind, EVENT_VERSION, &body).ok(), Some(event));
    }

    #[test]
    fn an_unknown_kind_and_a_later_version_are_refused() {
        for (kind, version) in [("sandbox_moved", EVENT_VERSION), ("sandbox_ended", 2)] {
            let error = Event::from_parts(kind, version, r#"{"kind":"local"}"#).unwrap_err();
            let said = format!("event `{kind}` version {version} cannot be read");
            assert_eq!(error.to_string(), said);
        }
    }
}
