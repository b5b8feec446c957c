//! The scripted model server, and what it saw of time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use windlass_core::message::Usage;
use windlass_model::script::{ScriptedCall, ScriptedReply};
use windlass_testkit::{Answer, Gate, ModelServer, Request};

/// A server that asks for one command in each turn, without delay, and then finishes the task.
pub struct Server {
    inner: ModelServer,
    last_body: Arc<Mutex<Arc<[u8]>>>,
    at_turn: Arc<Vec<AtomicUsize>>,
}

/// What one conversation looked like from the server.
pub struct Observation {
    /// When the first request was whole.
    pub first: Instant,
    /// From each reply to the request that followed it.
    pub turns: Vec<Duration>,
    /// The length of each request's body.
    pub bytes: Vec<u64>,
}

/// Replies are held back before the request of this turn is answered.
pub struct Hold {
    /// The turn whose reply is held back.
    pub turn: usize,
    /// The test opens this gate to release the replies.
    pub gate: Gate,
}

impl Server {
    /// Asks for `command` (`{n}` is the turn's number) `turns` times in each conversation.
    pub fn start(command: &str, turns: usize, hold: Option<Hold>) -> Self {
        Self::start_thinking(command, turns, hold, &[])
    }

    /// As `start`, with replies that come after these thoughts.
    pub fn start_thinking(
        command: &str,
        turns: usize,
        hold: Option<Hold>,
        thoughts: &[String],
    ) -> Self {
        let inner = ModelServer::start_empty();
        inner.forget_bodies();
        let last_body = Arc::new(Mutex::new(Arc::default()));
        let at_turn: Arc<Vec<_>> = Arc::new((0..=turns).map(|_| AtomicUsize::new(0)).collect());
        let (command, body, count) =
            (command.to_owned(), Arc::clone(&last_body), Arc::clone(&at_turn));
        let thoughts = thoughts.to_vec();
        inner.answer_with(move |request: &Request| {
            *body.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&request.body);
            let turn = request.replies.min(turns);
            count[turn].fetch_add(1, Ordering::SeqCst);
            let reply = ScriptedReply { think: thoughts.clone(), ..reply(&command, turn, turns) };
            let answer = Answer::reply(reply);
            Some(match &hold {
                Some(hold) if hold.turn == turn => answer.gated(0, &hold.gate),
                Some(_) | None => answer,
            })
        });
        Self { inner, last_body, at_turn }
    }

    /// Where it listens, for windlass.
    pub fn base(&self) -> String {
        self.inner.base()
    }

    /// Where it listens, for the floor.
    pub fn address(&self) -> String {
        self.inner.address().to_string()
    }

    /// How many conversations have come to a turn.
    pub fn at_turn(&self, turn: usize) -> usize {
        self.at_turn[turn].load(Ordering::SeqCst)
    }

    /// The body that came last.
    pub fn last_body(&self) -> Arc<[u8]> {
        self.last_body.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The latest requests, as one conversation with this many turns.
    pub fn conversation(&self, turns: usize) -> Result<Observation> {
        let mut requests = self.inner.requests();
        let requests = requests.split_off(requests.len().saturating_sub(turns + 1));
        let whole = requests.iter().map(|request| request.replies).eq(0..=turns);
        ensure!(whole, "the latest requests are not one conversation of {turns} turns");
        let times = requests.windows(2).filter_map(|two| {
            let sent = two[0].answered?;
            Some(two[1].received.saturating_duration_since(sent))
        });
        Ok(Observation {
            first: requests[0].received,
            turns: times.collect(),
            bytes: lengths(&requests),
        })
    }

    /// When the last request so far was whole.
    pub fn last_received(&self) -> Option<Instant> {
        self.inner.requests().iter().map(|request| request.received).max()
    }
}

fn lengths(requests: &[Request]) -> Vec<u64> {
    let length = |request: &Request| request.header("content-length").and_then(|l| l.parse().ok());
    requests.iter().filter_map(length).collect()
}

fn reply(command: &str, turn: usize, turns: usize) -> ScriptedReply {
    let command = command.replace("{n}", &turn.to_string());
    let call = ScriptedCall {
        id: None,
        name: "bash".to_owned(),
        arguments: serde_json::json!({ "command": command }).to_string(),
    };
    turn_with(call, turn, turn >= turns)
}

/// One turn of a scripted conversation: a call, or the last word.
pub fn turn_with(call: ScriptedCall, turn: usize, last: bool) -> ScriptedReply {
    ScriptedReply {
        turn,
        task: None,
        text: if last { "done".to_owned() } else { String::new() },
        calls: if last { Vec::new() } else { vec![call] },
        think: Vec::new(),
        redacted: None,
        finish: None,
        // Small whatever the size, so that no turn is spent on compaction.
        usage: Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() }),
        expect: Vec::new(),
        delay: Duration::ZERO,
    }
}
