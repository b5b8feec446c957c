//! Turns: a reply with all its results and what was said after it (O-18).

use windlass_core::id::CallId;
use windlass_core::message::Message;
use windlass_core::text::{prefix, suffix};

/// One message of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What was said.
    pub message: Message,
    /// The call it is the result of.
    pub call: Option<ResultOf>,
    /// Whether the next compaction drops it in any case.
    pub ephemeral: bool,
}

/// Which call a message is the result of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultOf {
    pub call: CallId,
    /// Whether it was refused and never ran.
    pub denied: bool,
}

/// One reply, the results of its calls, and what came before the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// In the order they are sent.
    pub entries: Vec<Entry>,
    /// What a person said in it, word for word.
    pub said: Vec<String>,
    /// Whether the agent saved its notes in it, and did nothing else.
    pub flush: bool,
}

impl Turn {
    /// What of it may stay after a compaction.
    pub fn retained(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.ephemeral)
    }

    /// The turn as the next epoch knows it.
    pub fn for_next_epoch(&self, shrink: Option<usize>, file: Option<&str>) -> Self {
        let entries = self.retained().map(|entry| Entry {
            message: entry.truncated(shrink, file),
            call: entry.call,
            ephemeral: false,
        });
        Self { entries: entries.collect(), said: self.said.clone(), flush: false }
    }
}

impl Entry {
    /// The message as the next epoch knows it: a result over the limit is cut, and says where the whole of it is.
    pub fn truncated(&self, shrink: Option<usize>, file: Option<&str>) -> Message {
        match (&self.message, shrink, self.call) {
            (Message::Tool { provider_id, name, text, is_error }, Some(limit), Some(call))
                if text.len() > limit =>
            {
                Message::Tool {
                    provider_id: provider_id.clone(),
                    name: name.clone(),
                    text: shrunk(text, limit, call.call, file),
                    is_error: *is_error,
                }
            }
            (message, _, _) => message.clone().without_reasoning(),
        }
    }
}

/// A result of at most about `limit` bytes that says where the whole of it is.
pub fn shrunk(text: &str, limit: usize, call: CallId, file: Option<&str>) -> String {
    let whole = match file {
        Some(file) => format!("the whole result is in {file}, under `{call}`"),
        None => "the whole result could not be kept".to_owned(),
    };
    // A notice of the tool itself is at the end, and points to its own file.
    let (head, tail) = (prefix(text, limit / 2), suffix(text, limit / 2));
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left_out} bytes left out to make room; {whole} …]\n{tail}")
}
