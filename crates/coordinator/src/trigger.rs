//! What sets the coordinator in motion, with exactly the fields of the wire contract (ES-095…102).
//!
//! A trigger arrives on the stream that has its name. One that cannot be read is refused for good: the
//! same bytes will not read better later, so whoever delivers them must not try again.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use windlass_core::command::TaskResult;
use windlass_core::id::{QuestionId, ScheduleId, SessionId, TaskId};
use windlass_core::picture::Picture;
use windlass_core::schedule::DeadlineAction;
use windlass_core::string_enum;

string_enum! {
    /// Where a trigger arrives; one stream and one coordinator method each.
    TriggerStream ("trigger stream") {
        /// A person says something.
        UserMessageReceived = "user-message-received",
        /// A run segment ended.
        TaskResultReceived = "task-result-received",
        /// A person answers a question.
        HitlResponseReceived = "hitl-response-received",
        /// A schedule, a deadline or a monitor's end is due.
        ScheduledTrigger = "scheduled-trigger",
        /// Something happened elsewhere.
        ExternalEventReceived = "external-event-received",
        /// A person pauses, resumes, cancels, retries or steers a task.
        TaskControlReceived = "task-control-received",
    }
}

/// A payload that is not what its stream promises; trying again does not help.
#[derive(Debug, thiserror::Error)]
#[error("`{stream}` cannot be read: {source}")]
pub struct TriggerError {
    /// Where it arrived.
    pub stream: TriggerStream,
    #[source]
    source: serde_json::Error,
}

/// A person says something (ES-096).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserMessageReceived {
    pub session_id: SessionId,
    /// Who says it.
    pub user_id: String,
    /// Makes a repeated delivery harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What is said.
    pub message: String,
    /// When a task that it starts must be finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// What happens then; without, the task fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_action: Option<DeadlineAction>,
    /// The directory that a new session works in. Never on the wire: a client of a stream must not choose
    /// directories of this machine.
    #[serde(skip)]
    pub workspace: Option<String>,
    /// What it shows. Never on the wire: a stream carries no bytes, and their names would mean nothing here.
    #[serde(skip)]
    pub pictures: Vec<Picture>,
}

/// A run segment ended (ES-097); the same JSON as on `task-result`.
pub type TaskResultReceived = TaskResult;

/// A person answers a question (ES-098).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HitlResponseReceived {
    /// The question, as `hitl_request.request_id` named it.
    pub request_id: QuestionId,
    pub response: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The task that asked; checked when given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Its session; for the reader of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

string_enum! {
    /// What is due (ES-056).
    Due ("scheduled trigger type") {
        /// The next run of a schedule.
        Cron = "cron",
        /// A task's deadline.
        Deadline = "deadline",
        /// The end of a monitor's patience.
        MonitoringTimeout = "monitoring_timeout",
    }
}

/// Something is due (ES-099). A schedule of ours is named by its id; another scheduler names the task
/// and says what to check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledTrigger {
    /// Makes a repeated delivery harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What is due.
    pub trigger_type: Due,
    /// Our schedule, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<ScheduleId>,
    /// The task, where no schedule says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// What the agent reads, where no schedule says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_prompt: Option<String>,
    /// When it was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

/// Something happened elsewhere (ES-100). It goes to the task named, else to the session's active one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalEventReceived {
    /// Makes a repeated delivery harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The task that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The session whose active task it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What happened, as it was sent: text or any JSON.
    pub payload: serde_json::Value,
}

string_enum! {
    /// What a person wants of a task.
    TaskAction ("task action") {
        /// Park it at its next boundary.
        Pause = "pause",
        /// Continue where it was paused.
        Resume = "resume",
        /// Stop it for good.
        Cancel = "cancel",
        /// Run it again after a failure.
        Retry = "retry",
        /// Tell it something on its way.
        Steer = "steer",
    }
}

/// A person steers a task (ES-101).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskControlReceived {
    /// Makes a repeated delivery harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    pub task_id: TaskId,
    /// What is wanted.
    pub action: TaskAction,
    /// Why, in the person's words; what `steer` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The task's session; for the reader of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Any trigger, read from its stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A person says something.
    UserMessage(UserMessageReceived),
    /// A run segment ended.
    TaskResult(Box<TaskResultReceived>),
    /// A person answers a question.
    HitlResponse(HitlResponseReceived),
    /// Something is due.
    Scheduled(ScheduledTrigger),
    /// Something happened elsewhere.
    ExternalEvent(ExternalEventReceived),
    /// A person steers a task.
    TaskControl(TaskControlReceived),
}

impl Trigger {
    /// Reads a payload of a stream.
    pub fn read(stream: TriggerStream, json: &str) -> Result<Self, TriggerError> {
        fn one<T: DeserializeOwned>(stream: TriggerStream, json: &str) -> Result<T, TriggerError> {
            serde_json::from_str(json).map_err(|source| TriggerError { stream, source })
        }
        Ok(match stream {
            TriggerStream::UserMessageReceived => Self::UserMessage(one(stream, json)?),
            TriggerStream::TaskResultReceived => Self::TaskResult(one(stream, json)?),
            TriggerStream::HitlResponseReceived => Self::HitlResponse(one(stream, json)?),
            TriggerStream::ScheduledTrigger => Self::Scheduled(one(stream, json)?),
            TriggerStream::ExternalEventReceived => Self::ExternalEvent(one(stream, json)?),
            TriggerStream::TaskControlReceived => Self::TaskControl(one(stream, json)?),
        })
    }

    /// Where it arrived.
    pub const fn stream(&self) -> TriggerStream {
        match self {
            Self::UserMessage(_) => TriggerStream::UserMessageReceived,
            Self::TaskResult(_) => TriggerStream::TaskResultReceived,
            Self::HitlResponse(_) => TriggerStream::HitlResponseReceived,
            Self::Scheduled(_) => TriggerStream::ScheduledTrigger,
            Self::ExternalEvent(_) => TriggerStream::ExternalEventReceived,
            Self::TaskControl(_) => TriggerStream::TaskControlReceived,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000000000000000000001";

    fn refused(stream: TriggerStream, json: &str) -> String {
        Trigger::read(stream, json).unwrap_err().to_string()
    }

    /// ES-096, ES-098, ES-099, ES-100, ES-101: the JSON of each trigger, as a client writes it.
    #[test]
    fn each_trigger_is_read_from_the_stream_of_its_name() {
        let payloads = [
            (
                "user-message-received",
                format!(r#"{{"session_id":"ses_{ID}","user_id":"ada","message":"hello"}}"#),
            ),
            ("hitl-response-received", format!(r#"{{"request_id":"q_{ID}","response":"blue"}}"#)),
            (
                "scheduled-trigger",
                format!(r#"{{"trigger_type":"deadline","task_id":"task_{ID}"}}"#),
            ),
            (
                "external-event-received",
                format!(r#"{{"task_id":"task_{ID}","payload":{{"build":"green"}}}}"#),
            ),
            (
                "task-control-received",
                format!(r#"{{"command_id":"c1","task_id":"task_{ID}","action":"pause"}}"#),
            ),
        ];
        for (name, json) in payloads {
            let stream: TriggerStream = name.parse().unwrap();
            let trigger = Trigger::read(stream, &json).unwrap();
            assert_eq!(trigger.stream().as_str(), name);
            let read = match &trigger {
                Trigger::UserMessage(it) => serde_json::to_value(it),
                Trigger::TaskResult(it) => serde_json::to_value(it),
                Trigger::HitlResponse(it) => serde_json::to_value(it),
                Trigger::Scheduled(it) => serde_json::to_value(it),
                Trigger::ExternalEvent(it) => serde_json::to_value(it),
                Trigger::TaskControl(it) => serde_json::to_value(it),
            };
            let written: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(read.unwrap(), written, "nothing is lost or added");
        }
        let names: Vec<_> = TriggerStream::ALL.iter().map(|stream| stream.as_str()).collect();
        assert_eq!(names.len(), 6, "and results, which are `TaskResult`s: {names:?}");
        assert!(names.contains(&"task-result-received"));
    }

    /// ES-292: what is missing, unknown or not one of the words is named, and refused for good.
    #[test]
    fn a_payload_that_does_not_fit_its_stream_is_refused() {
        let missing = format!(r#"{{"session_id":"ses_{ID}","message":"hello"}}"#);
        assert!(refused(TriggerStream::UserMessageReceived, &missing).contains("user_id"));
        let unknown = format!(r#"{{"request_id":"q_{ID}","response":"x","answer":"y"}}"#);
        assert!(refused(TriggerStream::HitlResponseReceived, &unknown).contains("answer"));
        let action = format!(r#"{{"task_id":"task_{ID}","action":"explode"}}"#);
        assert!(refused(TriggerStream::TaskControlReceived, &action).contains("explode"));
        let id = r#"{"task_id":"7","payload":1}"#;
        assert!(refused(TriggerStream::ExternalEventReceived, id).contains("task_01J9"));
        assert!(refused(TriggerStream::ScheduledTrigger, "nonsense").contains("scheduled-trigger"));
    }
}
