//! A conversation in the bytes it is sent as.
//!
//! Invariant: pushing appends and never rewrites, so the messages of two requests of one epoch extend
//! each other byte for byte, and a turn costs its new messages, not its history.

use std::collections::HashSet;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use windlass_core::message::{Message, Prelude};

use crate::{Dialect, anthropic, openai};

/// A conversation, kept as the bytes of its messages. Made by [`crate::Model::transcript`].
#[derive(Clone, Debug)]
pub struct Transcript {
    dialect: Dialect,
    /// What precedes the messages in a body and never changes: the tools and, where the dialect
    /// keeps it apart, the system prompt. Complete JSON members, each with a comma after it.
    pub(crate) prelude: Vec<u8>,
    /// The messages, comma-separated, without the brackets around them.
    pub(crate) messages: Vec<u8>,
    /// Whether the last message still takes blocks. (Anthropic merges what is not from the model.)
    pub(crate) open: bool,
    /// Where the last block of each of the latest messages not from the model ends, oldest first.
    pub(crate) marks: Vec<usize>,
    count: usize,
    assistants: usize,
    /// Assistant messages of earlier epochs, which a compaction has folded away.
    before: usize,
    after_last_assistant: usize,
    hash: Sha256,
    call_ids: HashSet<String>,
}

/// How many recent ends are kept: a provider's cache is asked at the last two.
const MARKS: usize = 2;

impl Transcript {
    pub(crate) fn new(dialect: Dialect, prelude: &Prelude) -> Self {
        let mut transcript = Self {
            dialect,
            prelude: Vec::new(),
            messages: Vec::new(),
            open: false,
            marks: Vec::new(),
            count: 0,
            assistants: 0,
            before: 0,
            after_last_assistant: 0,
            hash: Sha256::new(),
            call_ids: HashSet::new(),
        };
        match dialect {
            Dialect::OpenAi => openai::wire::begin(&mut transcript, prelude),
            Dialect::Anthropic => anthropic::wire::begin(&mut transcript, prelude),
        }
        transcript.after_last_assistant = transcript.messages.len();
        transcript.hash.update(&transcript.prelude);
        transcript.hash.update(&transcript.messages);
        transcript
    }

    /// Says how many replies came before this epoch, so that scripts continue where they were.
    #[must_use]
    pub fn with_prior_replies(mut self, replies: usize) -> Self {
        self.before = replies;
        self
    }

    /// Appends one message.
    ///
    /// The results of a reply's calls come right after it, before anything else: servers insist.
    pub fn push(&mut self, message: &Message) {
        let from = self.messages.len();
        match self.dialect {
            Dialect::OpenAi => openai::wire::push(self, message),
            Dialect::Anthropic => anthropic::wire::push(self, message),
        }
        self.hash.update(&self.messages[from..]);
        self.count += 1;
        if let Message::Assistant { calls, .. } = message {
            self.assistants += 1;
            self.after_last_assistant = self.messages.len();
            self.call_ids.extend(calls.iter().map(|call| call.provider_id.clone()));
        }
    }

    /// How many messages were pushed.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing was pushed yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bytes the system prompt, the tools and the messages take on the wire.
    pub fn bytes(&self) -> usize {
        self.prelude.len() + self.messages.len()
    }

    /// How many of the messages are the model's.
    pub fn assistant_messages(&self) -> usize {
        self.assistants
    }

    /// Which reply of the whole task comes next, from 0, earlier epochs counted.
    pub fn turn(&self) -> usize {
        self.before + self.assistants
    }

    /// A SHA-256 of everything said so far, in hex. Equal conversations have equal hashes.
    pub fn hash(&self) -> String {
        use std::fmt::Write;
        self.hash.clone().finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// Whether a call of this id is already part of the conversation.
    pub(crate) fn has_call(&self, provider_id: &str) -> bool {
        self.call_ids.contains(provider_id)
    }

    /// Panics unless this was made by a model of that dialect.
    pub(crate) fn must_be(&self, dialect: Dialect) {
        assert_eq!(self.dialect, dialect, "a transcript is for the model that made it");
    }

    /// Remembers where a message that is not the model's ends just now.
    pub(crate) fn mark(&mut self) {
        if self.marks.len() == MARKS {
            self.marks.remove(0);
        }
        self.marks.push(self.messages.len());
    }

    /// The texts of what came after the model's last message.
    pub(crate) fn news(&self) -> Vec<String> {
        let news = &self.messages[self.after_last_assistant..];
        let news = read(news.strip_prefix(b",").unwrap_or(news), self.open);
        news.iter().flat_map(|said| said.content.texts()).collect()
    }

    /// The system prompt, where the dialect has it among the messages, and the first user message.
    pub(crate) fn opening(&self) -> (String, String) {
        let said = read(&self.messages, self.open);
        let first = |role: &str| {
            let found = said.iter().find(|said| said.role == role);
            found.map(|said| said.content.texts().join("\n")).unwrap_or_default()
        };
        (first("system"), first("user"))
    }
}

/// Reads comma-separated messages of either dialect.
fn read(messages: &[u8], open: bool) -> Vec<Said> {
    let close: &[u8] = if open { b"]}]" } else { b"]" };
    serde_json::from_slice(&[b"[", messages, close].concat()).unwrap_or_default()
}

#[derive(Deserialize)]
struct Said {
    role: String,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Content {
    #[default]
    Nothing,
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    #[serde(default)]
    content: Content,
}

impl Content {
    fn texts(&self) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Text(text) => vec![text.clone()],
            Self::Blocks(blocks) => blocks
                .iter()
                .flat_map(|block| block.text.iter().cloned().chain(block.content.texts()))
                .collect(),
        }
    }
}
