//! A conversation in the bytes it is sent as.
//!
//! Invariant: pushing appends and never rewrites, so the messages of two requests of one epoch extend
//! each other byte for byte, and a turn costs its new messages, not its history. Pictures are the exception: their
//! bytes are read when a body is made, so that a conversation does not hold them in memory.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use windlass_core::hash::hex;
use windlass_core::message::{Message, Prelude};
use windlass_core::picture::Picture;
use windlass_core::reasoning::Reasoning;
use windlass_core::text::BYTES_PER_TOKEN;

use crate::{ReasoningUse, Wire, anthropic, chat, responses};

/// Bytes of a body beside its head and its conversation; an allocation more where a wire needs more.
const BESIDE_CONVERSATION: usize = 256;

/// What a conversation must know of the model it is for.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptForm {
    pub wire: Wire,
    /// The model as `provider/model`: reasoning of another one is left out.
    pub model: String,
    /// What becomes of its own reasoning.
    pub reasoning: ReasoningUse,
    pub vision: Vision,
}

impl TranscriptForm {
    /// A model that takes its reasoning back, and cannot see.
    pub fn plain(wire: Wire, model: &str) -> Self {
        let (reasoning, vision) = (ReasoningUse::Return, Vision::Blind);
        Self { wire, model: model.to_owned(), reasoning, vision }
    }
}

/// Where the bytes of pictures are; it gives none for one that is gone.
#[derive(Clone)]
pub struct PictureSource(Arc<ReadPicture>);

type ReadPicture = dyn Fn(&Picture) -> Option<Vec<u8>> + Send + Sync;

impl PictureSource {
    /// Reads pictures by this function.
    pub fn new(read: impl Fn(&Picture) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for PictureSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PictureSource")
    }
}

/// Whether a model can see pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vision {
    Seeing,
    /// It reads what a picture is called instead.
    Blind,
}

/// A picture, and where in the messages its block begins.
#[derive(Clone, Debug)]
struct PlacedPicture {
    at: usize,
    picture: Picture,
}

/// A conversation, kept as the bytes of its messages. Made by [`crate::Model::transcript`].
#[derive(Clone, Debug)]
pub struct Transcript {
    form: TranscriptForm,
    /// What precedes the messages in a body and never changes: the tools and, where the wire
    /// keeps it apart, the system prompt. Complete JSON members, each with a comma after it.
    pub(crate) prelude: Vec<u8>,
    /// The messages, comma-separated, without the brackets around them.
    pub(crate) messages: Vec<u8>,
    /// Whether the last message still takes blocks. (Anthropic merges what is not from the model.)
    pub(crate) open: bool,
    source: Option<PictureSource>,
    /// What is inserted into the messages when a body is made, in order.
    shown: Vec<PlacedPicture>,
    /// Where the last block of each of the latest messages not from the model ends, oldest first.
    pub(crate) marks: Vec<usize>,
    count: usize,
    assistants: usize,
    /// Assistant messages of earlier epochs, which a compaction has folded away.
    before: usize,
    after_last_assistant: usize,
    hash: Sha256,
    call_ids: HashSet<String>,
    /// Whether some of the messages hold reasoning.
    holds_reasoning: bool,
    /// What the conversation begins with, as a short hash: the same in each of its requests.
    cache_key: Option<String>,
}

/// How long the short hash of a conversation's beginning is.
const CACHE_KEY: usize = 32;

/// Why a picture is only named.
const CANNOT_SEE: &str = "this model cannot see pictures";
const GONE: &str = "it is no longer kept";

/// How many recent ends are kept: a provider's cache is asked at the last two.
const MARKS: usize = 2;

impl Transcript {
    pub(crate) fn new(form: TranscriptForm, prelude: &Prelude) -> Self {
        let wire = form.wire;
        let mut transcript = Self {
            form,
            prelude: Vec::new(),
            messages: Vec::new(),
            open: false,
            source: None,
            shown: Vec::new(),
            marks: Vec::new(),
            count: 0,
            assistants: 0,
            before: 0,
            after_last_assistant: 0,
            hash: Sha256::new(),
            call_ids: HashSet::new(),
            holds_reasoning: false,
            cache_key: None,
        };
        match wire {
            Wire::Chat => chat::wire::begin(&mut transcript, prelude),
            Wire::Responses => responses::wire::begin(&mut transcript, prelude),
            Wire::Anthropic => anthropic::wire::begin(&mut transcript, prelude),
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

    /// Says where the bytes of pictures are.
    #[must_use]
    pub fn with_pictures(mut self, source: PictureSource) -> Self {
        self.source = Some(source);
        self
    }

    /// Appends one message.
    ///
    /// The results of a reply's calls come right after it, before anything else: servers insist.
    pub fn push(&mut self, message: &Message) {
        let (from, shown) = (self.messages.len(), self.shown.len());
        let named = self.name_pictures(message);
        let message = named.as_ref().unwrap_or(message);
        match self.form.wire {
            Wire::Chat => chat::wire::push(self, message),
            Wire::Responses => responses::wire::push(self, message),
            Wire::Anthropic => anthropic::wire::push(self, message),
        }
        self.hash.update(&self.messages[from..]);
        for shown in &self.shown[shown..] {
            self.hash.update(shown.picture.hash.as_str());
        }
        self.count += 1;
        if self.cache_key.is_none() {
            self.cache_key = Some(self.hash()[..CACHE_KEY].to_owned());
        }
        if let Message::Assistant { calls, .. } = message {
            self.assistants += 1;
            self.after_last_assistant = self.messages.len();
            self.call_ids.extend(calls.iter().map(|call| call.provider_id.clone()));
        }
    }

    /// Reasoning as far as it may be sent to this model: its own, where its server takes it back.
    pub(crate) fn returnable_reasoning<'a>(
        &mut self,
        reasoning: Option<&'a Reasoning>,
    ) -> Option<&'a Reasoning> {
        let returned = match self.form.reasoning {
            ReasoningUse::Off | ReasoningUse::Drop => None,
            ReasoningUse::Return | ReasoningUse::Require | ReasoningUse::Signatures => {
                reasoning.filter(|reasoning| reasoning.model == self.form.model)
            }
        };
        self.holds_reasoning |= returned.is_some();
        returned
    }

    /// What becomes of reasoning here.
    pub(crate) fn reasoning_use(&self) -> ReasoningUse {
        self.form.reasoning
    }

    /// Whether some of the messages hold what the model thought.
    pub fn holds_reasoning(&self) -> bool {
        self.holds_reasoning
    }

    /// Tells a provider which requests belong together.
    pub(crate) fn cache_key(&self) -> Option<&str> {
        self.cache_key.as_deref()
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

    /// How large it is as text: pictures count as much text as has their tokens.
    pub fn text_bytes(&self) -> usize {
        let tokens: u64 = self.shown.iter().map(|shown| shown.picture.tokens()).sum();
        self.bytes() + usize::try_from(tokens * BYTES_PER_TOKEN).unwrap_or(usize::MAX)
    }

    /// The pictures that it shows, oldest first.
    pub fn pictures(&self) -> impl Iterator<Item = &Picture> {
        self.shown.iter().map(|shown| &shown.picture)
    }

    /// Which reply of the whole task comes next, from 0, earlier epochs counted.
    pub fn turn(&self) -> usize {
        self.before + self.assistants
    }

    /// A SHA-256 of everything said so far, in hex. Equal conversations have equal hashes.
    pub fn hash(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Whether a call of this id is already part of the conversation.
    pub(crate) fn has_call(&self, provider_id: &str) -> bool {
        self.call_ids.contains(provider_id)
    }

    /// Panics unless this was made by a model of that wire.
    pub(crate) fn must_be(&self, wire: Wire) {
        assert_eq!(self.form.wire, wire, "a transcript is for the model that made it");
    }

    /// Shows a picture in front of the block that is written next. A message has text after its pictures, so what
    /// is kept here stays valid without them.
    pub(crate) fn show(&mut self, picture: &Picture) {
        self.shown.push(PlacedPicture { at: self.messages.len(), picture: picture.clone() });
    }

    /// The message as a model reads it that cannot see; `None` when it stays as it is.
    fn name_pictures(&self, message: &Message) -> Option<Message> {
        let Message::User { text, pictures } = message else { return None };
        if self.form.vision == Vision::Seeing || pictures.is_empty() {
            return None;
        }
        let notes: Vec<_> = pictures.iter().map(|picture| picture.note(CANNOT_SEE)).collect();
        Some(Message::user(format!("{}\n\n{}", text.trim_end(), notes.join("\n"))))
    }

    /// A request's body up to where the conversation follows: its head as an object that is still open.
    pub(crate) fn begin_body(&self, head: &serde_json::Value) -> Vec<u8> {
        let mut body = head.to_string().into_bytes();
        body.reserve(self.bytes() + BESIDE_CONVERSATION);
        // The head's closing brace gives way to what follows.
        body.pop();
        body.push(b',');
        body
    }

    /// Writes the messages into a body, with `mark` in the blocks that are marked and a `block` for each picture:
    /// of its bytes in base64, or of the words that replace them.
    pub(crate) fn write_messages(
        &self,
        body: &mut Vec<u8>,
        mark: &[u8],
        block: impl Fn(&Picture, Result<String, String>) -> serde_json::Value,
    ) {
        // A mark goes inside the block that ends there, before its brace.
        let mut marks = self.marks.iter().map(|end| end - 1).peekable();
        let mut shown = self.shown.iter().peekable();
        let mut from = 0;
        loop {
            let next_mark = marks.peek().copied().unwrap_or(usize::MAX);
            let next_shown = shown.peek().map_or(usize::MAX, |shown| shown.at);
            let at = next_mark.min(next_shown).min(self.messages.len());
            body.extend_from_slice(&self.messages[from..at]);
            from = at;
            if next_shown <= next_mark
                && let Some(PlacedPicture { picture, .. }) = shown.next()
            {
                let bytes = self.source.as_ref().and_then(|source| source.0(picture));
                let data = bytes.map(|bytes| STANDARD.encode(bytes));
                let block = block(picture, data.ok_or_else(|| picture.note(GONE)));
                body.extend_from_slice(block.to_string().as_bytes());
                body.push(b',');
            } else if marks.next().is_some() {
                body.extend_from_slice(mark);
            } else {
                return;
            }
        }
    }

    /// Remembers where a message that is not the model's ends just now.
    pub(crate) fn mark(&mut self) {
        if self.marks.len() == MARKS {
            self.marks.remove(0);
        }
        self.marks.push(self.messages.len());
    }

    /// The texts of what came after the model's last message.
    pub(crate) fn new_texts(&self) -> Vec<String> {
        let news = &self.messages[self.after_last_assistant..];
        let news = read(news.strip_prefix(b",").unwrap_or(news), self.open);
        news.iter().flat_map(|said| said.content.texts()).collect()
    }

    /// The system prompt, where the wire has it among the messages, and the first user message.
    pub(crate) fn opening(&self) -> (String, String) {
        let said = read(&self.messages, self.open);
        let first = |role: &str| {
            let found = said.iter().find(|said| said.role == role);
            found.map(|said| said.content.texts().join("\n")).unwrap_or_default()
        };
        (first("system"), first("user"))
    }
}

/// Reads comma-separated messages of any wire.
fn read(messages: &[u8], open: bool) -> Vec<WireMessage> {
    let close: &[u8] = if open { b"]}]" } else { b"]" };
    serde_json::from_slice(&[b"[", messages, close].concat()).unwrap_or_default()
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(default)]
    role: String,
    /// The result of a call, where the wire has that as an item of its own.
    #[serde(default, alias = "output")]
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Content {
    #[default]
    Nothing,
    Text(String),
    Blocks(Vec<TextBlock>),
}

#[derive(Deserialize)]
struct TextBlock {
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
