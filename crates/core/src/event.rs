//! Events: what is committed to a journal. The journal is the truth; everything else is a fold of it.
//!
//! A new kind is one line in the list below and a body in the file of its group. Then the fold
//! (`TaskState::apply`) and the line that people read for it do not compile until they know it.
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

use jiff::Timestamp;

use crate::command::{Deliverable, TaskResult};
use crate::id::TaskId;
use crate::injection::Injection;
use crate::plan::WorkingPlan;
use crate::question::Question;

pub use call::{DoomLoopDetected, RiskCheck, ToolCall, ToolResult};
pub use compaction::{CompactionEnd, CompactionProgress, CompactionStart, Excerpt, MemoryFlush};
pub use model::{LlmRequest, LlmResponse};
pub use question::{QuestionAnswered, QuestionClosed};
pub use sandbox::{CommandExited, SandboxEnded, SandboxLost, SandboxStarted};
pub use sub_agent::{
    BudgetHit, BudgetKind, BudgetLevel, SubAgentComplete, SubAgentSpawn, SubAgentStatus,
};
pub use task::{AgentStart, Continued, Deadline, Driver, ModeChanged, StatusChanged, TaskCreated};

/// The version of event bodies that this program writes.
pub const EVENT_VERSION: u32 = 1;

/// Declares the kinds of events: the enum, the name of each kind, and how a body is written and read.
macro_rules! events {
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

            fn write_body(&self) -> serde_json::Result<String> {
                match self { $(Self::$kind(body) => serde_json::to_string(body),)* }
            }

            /// `None` for a kind that this program does not know.
            fn read_body(kind: &str, body: &str) -> Option<serde_json::Result<Self>> {
                match kind {
                    $($text => Some(serde_json::from_str(body).map(Self::$kind)),)*
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// Something that happened to a task.
    Event {
        // The task as a whole.
        /// The task exists.
        TaskCreated(Box<TaskCreated>) = "task_created",
        /// Its status moved.
        StatusChanged(StatusChanged) = "status_changed",
        /// A run segment began.
        AgentStart(Box<AgentStart>) = "agent_start",
        /// A run segment ended.
        AgentEnd(Box<TaskResult>) = "agent_end",
        /// The axes changed. Session modes produce it: changing a running task's axes.
        ModeChanged(ModeChanged) = "mode_changed",

        // The model.
        /// The model was asked.
        LlmRequest(LlmRequest) = "llm_request",
        /// The model answered.
        LlmResponse(LlmResponse) = "llm_response",

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

        // What the work produces.
        /// The working plan changed.
        PlanUpdated(WorkingPlan) = "plan_updated",
        /// A file became a deliverable.
        DeliverablePublished(Deliverable) = "deliverable_published",

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

    /// Makes an event that can say it say how long the segment has been worked on.
    pub fn set_segment_ms(&mut self, segment_ms: u64) {
        match self {
            Self::LlmRequest(request) => request.segment_ms = Some(segment_ms),
            Self::LlmResponse(response) => response.segment_ms = Some(segment_ms),
            Self::ToolResult(result) => result.segment_ms = Some(segment_ms),
            // As above.
            _ => {}
        }
    }

    /// The event's name and its body as JSON.
    pub fn parts(&self) -> (&'static str, String) {
        let body = self.write_body().expect("events hold only JSON-representable data");
        (self.kind(), body)
    }

    /// Reads a stored event.
    pub fn from_parts(kind: &str, version: u32, body: &str) -> Result<Self, UnreadableEvent> {
        let unreadable = |source| UnreadableEvent { kind: kind.to_owned(), version, source };
        if version > EVENT_VERSION {
            return Err(unreadable(None));
        }
        match Self::read_body(kind, body) {
            Some(event) => event.map_err(|source| unreadable(Some(source))),
            None => Err(unreadable(None)),
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
