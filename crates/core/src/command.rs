//! What comes in and what goes out: `TaskCommand` and `TaskResult`, with exactly the fields of the
//! wire contract (ES-292…305). Other programs read these; a field here is a promise.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::contract::{ContractResult, GivenContract};
use crate::error::ErrorDetails;
use crate::id::{CommandId, QuestionId, SessionId, TaskId};
use crate::injection::Injection;
use crate::plan::WorkingPlan;
use crate::question::Question;
use crate::reasoning::Effort;
use crate::role::Role;
use crate::status::{StatusReason, TaskStatus};
use crate::string_enum;

/// A goal, submitted whole (ES-292).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskCommand {
    /// Makes a repeated submission harmless.
    pub command_id: CommandId,
    /// The conversation it belongs to.
    pub session_id: SessionId,
    /// The task it starts.
    pub task_id: TaskId,
    /// What is wanted.
    pub goal: String,
    /// What must hold on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// What this task does differently from the configuration.
    #[serde(default)]
    pub execution_config: ExecutionConfig,
    /// An earlier conversation to continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_context: Option<ResumeContext>,
}

impl TaskCommand {
    /// A goal, with ids of its own.
    pub fn new(now: Timestamp, session_id: SessionId, goal: impl Into<String>) -> Self {
        Self {
            command_id: CommandId::new(now),
            session_id,
            task_id: TaskId::new(now),
            goal: goal.into(),
            constraints: Vec::new(),
            execution_config: ExecutionConfig::default(),
            resume_context: None,
        }
    }
}

/// Per-task overrides; what is absent comes from the configuration (ES-369).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionConfig {
    /// Limit of active time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Limit of tool rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// The model, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model thinks before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Compaction settings that differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionOverrides>,
    /// What happens when the model server does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The role that it begins in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What must hold before it is done; it replaces the project's own contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Box<GivenContract>>,
}

string_enum! {
    /// What happens to a task whose model server is still gone after the quick retries.
    Outage ("outage policy") {
        /// It is parked with the reason and resumes automatically, with growing pauses, for at most a day.
        Park = "park",
        /// It fails (ES-374, ES-383).
        Fail = "fail",
    }
}

/// Compaction settings of one task (ES-151…157); what is absent comes from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompactionOverrides {
    /// The model's context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window_tokens: Option<u64>,
    /// Kept free for the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_reserve_tokens: Option<u64>,
    /// How full the window may get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_trigger_ratio: Option<f64>,
    /// Whether the agent saves notes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_flush_enabled: Option<bool>,
    /// How long before the trigger it saves them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_flush_soft_threshold_tokens: Option<u64>,
    /// How long a summary may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_summary_tokens: Option<u64>,
    /// How many recent turns stay whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_recent_turns: Option<u32>,
}

/// An earlier conversation and what arrived since (ES-297).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeContext {
    /// The messages so far, oldest first.
    pub previous_messages: Vec<crate::message::Message>,
    /// The answer or signal that continues it.
    pub injection: Injection,
}

string_enum! {
    /// What became of a task, on the wire (ES-299).
    ResultStatus ("result status") {
        Completed = "COMPLETED",
        /// Given up, timed out or stuck on an error.
        Failed = "FAILED",
        /// Waiting for a person.
        BlockedUser = "BLOCKED_USER",
        Paused = "PAUSED",
        /// Stopped for good.
        Cancelled = "CANCELLED",
    }
}

impl ResultStatus {
    /// The status on the wire; `None` while the task is running.
    pub fn of(status: TaskStatus, reason: StatusReason) -> Option<Self> {
        match status {
            TaskStatus::Done => Some(Self::Completed),
            TaskStatus::Failed => Some(Self::Failed),
            TaskStatus::Cancelled => Some(Self::Cancelled),
            TaskStatus::Paused => Some(Self::Paused),
            TaskStatus::Reviewing => Some(Self::BlockedUser),
            TaskStatus::Blocked if reason.is_failure_of_blocked_task() => Some(Self::Failed),
            TaskStatus::Blocked => Some(Self::BlockedUser),
            TaskStatus::Todo
            | TaskStatus::Running
            | TaskStatus::Verifying
            | TaskStatus::Retrying => None,
        }
    }
}

/// Everything a finished or parked run hands back (ES-298).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    pub task_id: TaskId,
    pub session_id: SessionId,
    /// The submission it answers.
    pub command_id: CommandId,
    /// What became of it.
    pub status: ResultStatus,
    /// Whether it was completed at its deadline with what there was until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// What the agent published.
    pub deliverables: Vec<Deliverable>,
    /// The agent's last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_message: Option<String>,
    /// Where the proof is.
    pub evidence_refs: Vec<EvidenceRef>,
    /// What the agent has put down for itself, if anything (ES-106).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_memory: Option<WorkingMemory>,
    /// What it took.
    pub usage: UsageMetrics,
    /// What it and its sub-agents have cost in US dollars, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_details: Option<ErrorDetails>,
    /// What is asked; present exactly when the status is `BLOCKED_USER` (ES-300).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hitl_request: Option<HitlRequest>,
    /// The outcome of its completion contract, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ContractResult>,
}

string_enum! {
    /// What a deliverable is (ES-225).
    DeliverableType ("deliverable type") {
        Report = "report",
        Code = "code",
        /// Figures or records.
        Data = "data",
        /// A picture of a screen.
        Screenshot = "screenshot",
        Other = "other",
    }
}

/// One file that the agent wants the user to see (ES-301).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliverable {
    /// Relative to the workspace.
    pub filepath: String,
    /// What it is, in the agent's words.
    pub description: String,
    /// What kind of thing.
    #[serde(rename = "type")]
    pub kind: DeliverableType,
    /// The text itself, when small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

string_enum! {
    /// What an evidence reference points to (ES-305).
    EvidenceType ("evidence type") {
        Screenshot = "screenshot",
        File = "file",
        /// A record of what happened.
        Log = "log",
        /// A page elsewhere that was read.
        Url = "url",
    }
}

/// What an agent has put down for itself (ES-106).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkingMemory {
    /// Its working plan.
    pub plan: Option<WorkingPlan>,
    /// The paths of its memos.
    pub memos: Vec<String>,
}

/// Where one piece of proof is (ES-304).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRef {
    /// Its id within the task.
    pub ref_id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: EvidenceType,
    /// Where it is.
    pub uri: String,
    /// What it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What is asked of a person (ES-302).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitlRequest {
    /// The question's id.
    pub request_id: QuestionId,
    pub question: String,
    /// Answers to choose from, if it is a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What the person should know first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

impl From<&Question> for HitlRequest {
    fn from(question: &Question) -> Self {
        Self {
            request_id: question.id,
            question: question.question.clone(),
            options: question.options.clone(),
            context: question.context.clone(),
        }
    }
}

/// What a run took (ES-303). `total_tokens` is always input plus output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageMetrics {
    /// Input plus output.
    pub total_tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub iterations: u32,
    /// Tool calls that ran.
    pub tool_calls: u32,
    pub sub_agents_spawned: u32,
    /// Times the context was summarized.
    pub compactions: u32,
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-043, ES-292: a command is a whole goal; subtasks and unknown fields are refused, as is a missing one.
    #[test]
    fn a_task_command_holds_a_goal_and_no_subtasks() {
        let id = "00000000000000000000000001";
        let json = |more: &str| {
            format!(
                r#"{{"command_id":"cmd_{id}","session_id":"ses_{id}","task_id":"task_{id}"{more}}}"#
            )
        };
        let read = |more| serde_json::from_str::<TaskCommand>(&json(more));
        let command = read(r#","goal":"fix it""#).unwrap();
        assert_eq!(command.execution_config, ExecutionConfig::default());
        assert_eq!((command.constraints.len(), command.resume_context), (0, None));
        let whole = json(r#","goal":"fix it""#);
        for field in ["command_id", "session_id", "task_id", "goal"] {
            let mut value: serde_json::Value = serde_json::from_str(&whole).unwrap();
            value.as_object_mut().unwrap().remove(field);
            let refused = serde_json::from_value::<TaskCommand>(value).unwrap_err().to_string();
            assert!(refused.contains(field), "{field}: {refused}");
        }
        let refused = read(r#","goal":"fix it","subtasks":[]"#).unwrap_err();
        assert!(refused.to_string().contains("subtasks"), "{refused}");
    }

    /// ES-299, ES-300: what a status is on the wire, for each reason that matters.
    #[test]
    fn each_status_has_its_word_on_the_wire() {
        use StatusReason::*;
        let on_wire = |status, reason| ResultStatus::of(status, reason).map(ResultStatus::as_str);
        assert_eq!(on_wire(TaskStatus::Blocked, Question), Some("BLOCKED_USER"));
        assert_eq!(on_wire(TaskStatus::Blocked, Budget), Some("BLOCKED_USER"));
        assert_eq!(on_wire(TaskStatus::Blocked, Timeout), Some("FAILED"));
        assert_eq!(on_wire(TaskStatus::Blocked, Error), Some("FAILED"));
        for &reason in StatusReason::ALL {
            assert_eq!(on_wire(TaskStatus::Done, reason), Some("COMPLETED"));
            assert_eq!(on_wire(TaskStatus::Failed, reason), Some("FAILED"));
            assert_eq!(on_wire(TaskStatus::Paused, reason), Some("PAUSED"));
            assert_eq!(on_wire(TaskStatus::Cancelled, reason), Some("CANCELLED"));
            assert_eq!(on_wire(TaskStatus::Reviewing, reason), Some("BLOCKED_USER"));
            for at_work in ["todo", "running", "verifying", "retrying"] {
                assert_eq!(on_wire(at_work.parse().unwrap(), reason), None, "{at_work}");
            }
        }
        let all: Vec<_> = ResultStatus::ALL.iter().map(|status| status.as_str()).collect();
        assert_eq!(all, ["COMPLETED", "FAILED", "BLOCKED_USER", "PAUSED", "CANCELLED"]);
    }
}
