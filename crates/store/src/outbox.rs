//! The outbox: messages for other programs, written in the transaction of the event that causes it (§15.18).
//!
//! Invariants:
//! - A message exists exactly when its event does; it is published afterwards, at least once, and its
//!   `key` identifies a repetition.
//! - Only tasks that a service drives have messages: nobody would publish those of a foreground task.
//! - A segment that ends because its process does, or that only waits for the next message or check, has
//!   no result yet.

use jiff::Timestamp;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use windlass_core::command::{HitlRequest, ResultStatus, TaskResult};
use windlass_core::event::{Driver, Event, Record, StatusChanged};
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_core::question::Question;
use windlass_core::status::StatusReason;
use windlass_core::string_enum;

use crate::error::Fault;
use crate::{Bus, Error, Level, Store, row, tasks};

string_enum! {
    /// A stream that others read (ES-387, ES-388, ES-389).
    OutStream ("stream") {
        /// Results of tasks.
        TaskResult = "task-result",
        /// Questions for people.
        HitlRequest = "hitl-request-command",
        /// What people should know: status updates and replies.
        UserMessage = "user-message-command",
    }
}

/// Words for a person, going out (ES-389).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessageCommand {
    /// Names this message; a repeated one has the same.
    pub message_id: String,
    pub session_id: SessionId,
    /// What it is about, if it is about a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The message it answers, if it answers one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What is said.
    pub message: String,
}

/// One message that waits to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its place in the outbox.
    pub id: i64,
    /// The same for every repetition of it.
    pub key: String,
    /// The submission it belongs to.
    pub command_id: Option<String>,
    /// Where it goes.
    pub stream: OutStream,
    /// What it says, as JSON.
    pub body: String,
}

/// Messages that wait to be published outside.
#[derive(Clone, Copy)]
pub struct Outbox<'a> {
    store: &'a Store,
}

impl<'a> Bus<'a> {
    /// Messages that wait to be published outside.
    pub fn outbox(self) -> Outbox<'a> {
        Outbox { store: self.store }
    }
}

impl Outbox<'_> {
    /// Up to `limit` messages that wait to be published, oldest first.
    pub fn pending(self, limit: usize) -> Result<Vec<Outgoing>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id, key, command_id, stream, body FROM outbox ORDER BY id LIMIT ?1",
            )?;
            let mut rows = statement.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(Outgoing {
                    id: row.get(0)?,
                    key: row.get(1)?,
                    command_id: row.get(2)?,
                    stream: row::parse("outbox", &row.get::<_, String>(3)?)?,
                    body: row.get(4)?,
                });
            }
            Ok(found)
        })
    }

    /// Removes messages that were published.
    pub async fn remove(self, ids: Vec<i64>) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                let mut forget = tx.prepare_cached("DELETE FROM outbox WHERE id = ?1")?;
                for id in ids {
                    forget.execute([id])?;
                }
                Ok(())
            })
            .await
    }

    /// Adds a message that no event causes: a refusal, or a reply that belongs to no task. Synced. A message
    /// whose key is already in the outbox is dropped.
    pub async fn enqueue(
        self,
        at: Timestamp,
        stream: OutStream,
        key: String,
        command_id: Option<String>,
        body: String,
    ) -> Result<(), Error> {
        self.store
            .write(Level::Synced, move |tx| {
                put(tx, at, stream, &key, command_id.as_deref(), &body)?;
                Ok(())
            })
            .await
    }

    /// Adds a message for a person, synced. One with a repeated `message_id` is dropped.
    pub async fn enqueue_user_message(
        self,
        message: &UserMessageCommand,
        at: Timestamp,
    ) -> Result<(), Error> {
        let (id, body) = (message.message_id.clone(), row::json(message));
        self.store
            .write(Level::Synced, move |tx| put(tx, at, OutStream::UserMessage, &id, None, &body))
            .await
    }
}

/// Adds the messages that the events just appended to `task` cause.
pub(crate) fn enqueue_for(tx: &Connection, task: TaskId, records: &[Record]) -> Result<(), Fault> {
    let matters = |record: &Record| {
        matches!(
            record.event,
            Event::QuestionAsked(_) | Event::StatusChanged(_) | Event::AgentEnd(_)
        )
    };
    if !records.iter().any(matters) {
        return Ok(());
    }
    let Some(about) = MessageSource::of(tx, task)? else { return Ok(()) };
    let ended = records.iter().any(|record| matches!(record.event, Event::AgentEnd(_)));
    for record in records.iter().filter(|record| matters(record)) {
        match &record.event {
            Event::QuestionAsked(question) => about.enqueue_question(tx, record, question)?,
            Event::StatusChanged(moved) if about.is_root => {
                about.enqueue_status(tx, record, moved)?;
                if !ended {
                    about.enqueue_missing_result(tx, record, moved)?;
                }
            }
            Event::AgentEnd(result) if about.is_root => about.enqueue_result(tx, record, result)?,
            _ => {}
        }
    }
    Ok(())
}

/// The task and the submission that messages are about.
struct MessageSource {
    task: TaskId,
    is_root: bool,
    command_id: CommandId,
    session_id: SessionId,
}

impl MessageSource {
    /// `None` for a task that no service drives.
    fn of(tx: &Connection, task: TaskId) -> Result<Option<Self>, Fault> {
        let mut statement = tx.prepare_cached(
            "SELECT root.id, root.command_id, root.session_id, root.driver
             FROM tasks JOIN tasks AS root ON root.id = tasks.root_id WHERE tasks.id = ?1",
        )?;
        let mut rows = statement.query([task.to_string()])?;
        let Some(found) = rows.next()? else { return Ok(None) };
        let text = |column: usize| found.get::<_, String>(column);
        let driver: Driver = row::parse("tasks", &text(3)?)?;
        let root: TaskId = row::parse("tasks", &text(0)?)?;
        let about = Self {
            task,
            is_root: root == task,
            command_id: row::parse("tasks", &text(1)?)?,
            session_id: row::parse("tasks", &text(2)?)?,
        };
        Ok((driver == Driver::Service).then_some(about))
    }

    fn enqueue_question(
        &self,
        tx: &Connection,
        record: &Record,
        question: &Question,
    ) -> Result<(), Fault> {
        let request = HitlRequest::from(question);
        let mut body = serde_json::to_value(request).unwrap_or_default();
        body["command_id"] = self.command_id.to_string().into();
        body["session_id"] = self.session_id.to_string().into();
        body["task_id"] = self.task.to_string().into();
        body["kind"] = question.kind.as_str().into();
        self.put(tx, record, OutStream::HitlRequest, &body.to_string())
    }

    fn enqueue_status(
        &self,
        tx: &Connection,
        record: &Record,
        moved: &StatusChanged,
    ) -> Result<(), Fault> {
        // A full disk has room for endings only.
        if matches!(moved.reason, StatusReason::Shutdown | StatusReason::DiskFull) {
            return Ok(());
        }
        let detail = moved.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
        let message = UserMessageCommand {
            message_id: self.key(record),
            session_id: self.session_id,
            task_id: Some(self.task),
            request_id: None,
            message: format!("{} is {}{detail}", self.task, moved.to),
        };
        let mut body = serde_json::to_value(message).unwrap_or_default();
        body["status"] = moved.to.as_str().into();
        body["reason"] = moved.reason.as_str().into();
        self.put(tx, record, OutStream::UserMessage, &body.to_string())
    }

    fn enqueue_result(
        &self,
        tx: &Connection,
        record: &Record,
        result: &TaskResult,
    ) -> Result<(), Fault> {
        let reason = tasks::task(tx, self.task)?.map(|row| row.reason);
        if reason.is_some_and(continues_later) {
            return Ok(());
        }
        self.put(tx, record, OutStream::TaskResult, &row::json(result))
    }

    /// A status that was changed while no agent ran has no `agent_end`; its result is still published.
    fn enqueue_missing_result(
        &self,
        tx: &Connection,
        record: &Record,
        moved: &StatusChanged,
    ) -> Result<(), Fault> {
        let Some(status) = ResultStatus::of(moved.to, moved.reason) else { return Ok(()) };
        let Some(row) = tasks::task(tx, self.task)? else { return Ok(()) };
        if continues_later(moved.reason) || status == ResultStatus::BlockedUser {
            return Ok(());
        }
        let before = row.result;
        let result = TaskResult {
            task_id: self.task,
            session_id: self.session_id,
            command_id: self.command_id,
            status,
            partial: status == ResultStatus::Completed && moved.reason == StatusReason::Deadline,
            deliverables: tasks::deliverables(tx, self.task)?,
            final_message: None,
            working_memory: before.as_ref().and_then(|result| result.working_memory.clone()),
            contract: before.as_ref().and_then(|result| result.contract.clone()),
            evidence_refs: before.map(|result| result.evidence_refs).unwrap_or_default(),
            usage: row.usage,
            cost_usd: None,
            error_details: moved.error.clone(),
            hitl_request: None,
        };
        self.put(tx, record, OutStream::TaskResult, &row::json(&result))
    }

    fn put(
        &self,
        tx: &Connection,
        record: &Record,
        stream: OutStream,
        body: &str,
    ) -> Result<(), Fault> {
        let command = self.command_id.to_string();
        put(tx, record.at, stream, &self.key(record), Some(&command), body)
    }

    /// A task may end several segments, so the command alone does not name one result.
    fn key(&self, record: &Record) -> String {
        format!("{}/{}", self.command_id, record.pos)
    }
}

/// Whether a segment that ended for this reason continues automatically, so that there is no result yet.
fn continues_later(reason: StatusReason) -> bool {
    match reason {
        StatusReason::Shutdown
        | StatusReason::DiskFull
        | StatusReason::ModelOutage
        | StatusReason::AwaitingMessage
        | StatusReason::Schedule => true,
        StatusReason::User
        | StatusReason::Finished
        | StatusReason::Question
        | StatusReason::Budget
        | StatusReason::Timeout
        | StatusReason::Deadline
        | StatusReason::Error
        | StatusReason::Dependency
        | StatusReason::MergeConflict
        | StatusReason::ContextFull
        | StatusReason::RateLimited => false,
    }
}

pub(crate) fn put(
    tx: &Connection,
    at: Timestamp,
    stream: OutStream,
    key: &str,
    command_id: Option<&str>,
    body: &str,
) -> Result<(), Fault> {
    // One event may cause messages on two streams.
    let key = format!("{key}/{stream}");
    tx.prepare_cached(
        "INSERT INTO outbox (key, command_id, stream, body, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key) DO NOTHING",
    )?
    .execute((key, command_id, stream.as_str(), body, row::instant(at)))?;
    Ok(())
}
