//! What the tests share: a throwaway data directory, a clock, and the smallest legal commands.

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use windlass_core::axes::Axes;
use windlass_core::command::TaskCommand;
use windlass_core::event::{Driver, Event, LlmRequest, LlmResponse, StatusChanged, TaskCreated};
use windlass_core::id::{InjectionId, QuestionId, SessionId, TaskId};
use windlass_core::message::{Finish, Usage};
use windlass_core::question::{AcceptedAnswers, Question, QuestionKind};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Options, Store};

/// A data directory that goes away with the test.
pub struct World {
    pub dir: TempDir,
}

impl World {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn open(&self) -> Store {
        Store::open(self.dir.path(), Options::default()).unwrap()
    }
}

/// The `second`th second of the tests' time.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap() + SignedDuration::from_secs(second)
}

pub fn created() -> TaskCreated {
    created_at(at(0))
}

pub fn created_at(at: Timestamp) -> TaskCreated {
    TaskCreated {
        max_retries: 3,
        ..TaskCreated::new(
            TaskCommand::new(at, SessionId::new(at), "fix the build"),
            Axes::headless(),
            "/work",
            Driver::Foreground,
        )
    }
}

pub fn child_of(parent: TaskId, root: TaskId) -> TaskCreated {
    TaskCreated { parent: Some(parent), root, depth: 1, ..created_at(at(1)) }
}

pub fn moved(from: TaskStatus, to: TaskStatus) -> Event {
    Event::StatusChanged(StatusChanged::new(from, to, StatusReason::User))
}

pub fn request() -> Event {
    let (model, hash) = ("test/model".to_owned(), "0".to_owned());
    let (context, reserved_usd) = (None, None);
    Event::LlmRequest(LlmRequest {
        model,
        messages: 1,
        estimated_tokens: 10,
        hash,
        context,
        reserved_usd,
        segment_ms: None,
    })
}

pub fn reply(text: &str) -> Event {
    Event::LlmResponse(LlmResponse {
        text: text.to_owned(),
        calls: Vec::new(),
        reasoning: None,
        finish: Finish::Stop,
        usage: Usage {
            input_tokens: 10,
            output_tokens: 5,
            cost_usd: Some(0.25),
            ..Usage::default()
        },
        model: "test/model".to_owned(),
        latency_ms: 1,
        segment_ms: None,
    })
}

pub fn question(kind: QuestionKind) -> Question {
    Question {
        id: QuestionId::new(at(0)),
        kind,
        call: None,
        question: "which one?".to_owned(),
        options: vec!["red".to_owned(), "blue".to_owned()],
        context: None,
        binding: None,
        diff: None,
        grants: None,
        accepts: AcceptedAnswers::Words,
        asked: None,
        plan: None,
    }
}

pub fn injection_id() -> InjectionId {
    InjectionId::new(at(0))
}

/// Makes the journal what it was before streams had numbers.
pub const EVENTS_OF_VERSION_14: &str = "
    ALTER TABLE sessions DROP COLUMN archived;
    CREATE TABLE older (
        pos INTEGER PRIMARY KEY AUTOINCREMENT,
        stream TEXT NOT NULL,
        seq INTEGER NOT NULL CHECK (seq >= 1),
        at TEXT NOT NULL,
        kind TEXT NOT NULL,
        v INTEGER NOT NULL,
        body TEXT NOT NULL,
        hash BLOB,
        content BLOB,
        UNIQUE (stream, seq)
    );
    INSERT INTO older SELECT pos, stream, seq, at, kind, v, body, hash, content FROM events;
    UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = 'journal')
        WHERE name = 'older';
    DROP VIEW events; DROP TABLE journal; DROP TABLE streams;
    ALTER TABLE older RENAME TO events;
    CREATE INDEX events_replies ON events (stream, seq) WHERE kind = 'llm_response';
    CREATE INDEX events_contents ON events (content) WHERE content IS NOT NULL;
    PRAGMA user_version = 14;";
