//! What the server answers with, well or badly.

use std::{sync::Arc, time::Duration};

use windlass_model::{Script, script::ScriptedReply};

use crate::signal::Signal;

/// One answer. Made from a reply, a status or bytes, then changed as a test needs it.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) what: What,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delay: Duration,
    pub(crate) split: Option<usize>,
    pub(crate) gates: Vec<(usize, Gate)>,
    pub(crate) end: End,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A reply in the wire of the request.
    Reply(Box<ScriptedReply>),
    /// A status with a body.
    Status { code: u16, kind: String, body: String },
    /// A stream of these bytes, a chunk each.
    Stream(Vec<Vec<u8>>),
    /// These bytes instead of any response.
    Raw(Vec<u8>),
    /// The connection is closed without an answer.
    Close,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The stream ends normally.
    Whole,
    /// The connection is closed after this many chunks.
    Cut(usize),
    /// The response is ended properly, but after this many chunks.
    Short(usize),
    /// Nothing more comes after this many chunks.
    Hang(usize),
}

impl Answer {
    fn new(what: What) -> Self {
        let (headers, gates) = (Vec::new(), Vec::new());
        Self { what, headers, delay: Duration::ZERO, split: None, gates, end: End::Whole }
    }

    /// A reply, streamed in the wire it is asked for in.
    pub fn reply(reply: ScriptedReply) -> Self {
        Self::new(What::Reply(Box::new(reply)))
    }

    /// A reply written as one item of a script: `say: done`.
    pub fn script(item: &str) -> Self {
        let mut lines = String::from("replies:\n");
        for (number, line) in item.lines().filter(|line| !line.trim().is_empty()).enumerate() {
            lines.push_str(if number == 0 { "  - " } else { "    " });
            lines.push_str(line);
            lines.push('\n');
        }
        let script = Script::parse(&lines).unwrap_or_else(|error| panic!("bad reply: {error}"));
        Self::reply(script.replies.into_iter().next().expect("one item is one reply"))
    }

    /// A refusal whose message both wires read.
    pub fn error(code: u16, message: &str) -> Self {
        Self::error_of(code, "invalid_request_error", "error", message)
    }

    /// A refusal with the type and code a provider would give.
    pub fn error_of(status: u16, kind: &str, code: &str, message: &str) -> Self {
        let error = serde_json::json!({"message": message, "type": kind, "code": code});
        let body = serde_json::json!({"type": "error", "error": error});
        Self::status(status, "application/json", &body.to_string())
    }

    /// Any status with any body.
    pub fn status(code: u16, content_type: &str, body: &str) -> Self {
        Self::new(What::Status { code, kind: content_type.to_owned(), body: body.to_owned() })
    }

    /// A stream of events with these data.
    pub fn events<T: AsRef<str>>(data: impl IntoIterator<Item = T>) -> Self {
        let event = |data: T| format!("data: {}\n\n", data.as_ref()).into_bytes();
        Self::new(What::Stream(data.into_iter().map(event).collect()))
    }

    /// A stream of these bytes, a chunk each.
    pub fn stream(chunks: Vec<Vec<u8>>) -> Self {
        Self::new(What::Stream(chunks))
    }

    /// Bytes instead of a response; then the connection is closed.
    pub fn raw(bytes: &[u8]) -> Self {
        Self::new(What::Raw(bytes.to_vec()))
    }

    /// No response at all: the connection is closed.
    pub fn close() -> Self {
        Self::new(What::Close)
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before the response begins.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sends the stream in pieces of this many bytes, wherever that parts it.
    #[must_use]
    pub fn split_every(mut self, bytes: usize) -> Self {
        self.split = Some(bytes.max(1));
        self
    }

    /// Stops before chunk `at` (from 0) until the gate is opened. Gate 0 holds back the head too.
    #[must_use]
    pub fn gated(mut self, at: usize, gate: &Gate) -> Self {
        self.gates.push((at, gate.clone()));
        self
    }

    /// Closes the connection after this many chunks.
    #[must_use]
    pub fn cut_after(mut self, chunks: usize) -> Self {
        self.end = End::Cut(chunks);
        self
    }

    /// Ends the response properly, but after this many chunks.
    #[must_use]
    pub fn ended_after(mut self, chunks: usize) -> Self {
        self.end = End::Short(chunks);
        self
    }

    /// Sends nothing more after this many chunks, and keeps the connection open.
    #[must_use]
    pub fn hung_after(mut self, chunks: usize) -> Self {
        self.end = End::Hang(chunks);
        self
    }
}

/// Holds an answer back until a test lets it go. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Doors>);

#[derive(Debug, Default)]
struct Doors {
    reached: Signal,
    opened: Signal,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.opened.raise();
    }

    /// Waits until an answer has reached the gate.
    pub async fn reached(&self) {
        self.0.reached.expect(1, "an answer at the gate").await;
    }

    /// As `reached`, from a test without a runtime.
    pub fn reached_blocking(&self) {
        self.0.reached.expect_blocking(1, "an answer at the gate");
    }

    pub(crate) async fn pass(&self) {
        self.0.reached.raise();
        self.0.opened.reach(1).await;
    }
}
