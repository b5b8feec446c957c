//! Turns: a reply with all its results and what was said after it (O-18); and the conversation that is made of them.

use std::borrow::Cow;

use windlass_core::event::CompactionEnd;
use windlass_core::id::CallId;
use windlass_core::message::Message;
use windlass_core::state::TaskState;
use windlass_core::text::{prefix, suffix};

use super::{Header, pictures};
use crate::prompt::ShortenedOutput;

/// A conversation: how it was opened, what is left of earlier epochs, and the turns of this one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns {
    opening: Vec<Message>,
    header: Header,
    recent: Vec<Turn>,
    replies: usize,
}

impl Turns {
    /// The messages the task opened with; they are never dropped.
    pub fn opening(&self) -> &[Message] {
        &self.opening
    }

    /// What replaces earlier epochs.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The turns of this epoch, oldest first.
    pub fn recent(&self) -> &[Turn] {
        &self.recent
    }

    /// What people said in the whole conversation, word for word, oldest first.
    pub fn human_words(&self) -> impl Iterator<Item = &String> {
        self.header.said.iter().chain(self.recent.iter().flat_map(|turn| &turn.said))
    }

    /// How many replies came before the messages of this epoch.
    pub fn prior_replies(&self) -> usize {
        self.replies - self.recent.len()
    }

    /// All messages, in the order they are sent.
    pub fn messages(&self, state: &TaskState) -> impl Iterator<Item = Cow<'_, Message>> {
        let header = self.header.summary.is_some().then(|| Message::user(self.header.text(state)));
        let entries = self.recent.iter().flat_map(|turn| &turn.entries);
        let opening = self.opening.iter().map(Cow::Borrowed);
        opening
            .chain(header.map(Cow::Owned))
            .chain(entries.map(|entry| Cow::Borrowed(&entry.message)))
    }

    /// The turns that would go and those that would stay. Turns in which notes were saved never stay:
    /// what they said is in the notes.
    pub fn partition(&self, keep: usize) -> (Vec<&Turn>, Vec<&Turn>) {
        let work = self.recent.iter().filter(|turn| !turn.flush).count();
        let mut skip = work.saturating_sub(keep);
        self.recent.iter().partition(|turn| {
            let goes = turn.flush || skip > 0;
            skip = skip.saturating_sub(usize::from(!turn.flush && goes));
            goes
        })
    }

    /// What a compaction leaves.
    pub fn after_compaction(&self, end: &CompactionEnd) -> Self {
        let (dropped, kept) = self.partition(end.kept_turns as usize);
        let next = |turn: &&Turn| turn.for_next_epoch(end.shrink_bytes, end.file.as_deref());
        let mut recent: Vec<Turn> = kept.iter().map(next).collect();
        pictures::replace_older_pictures(&mut recent, end.shrink_bytes);
        Self {
            opening: self.opening.clone(),
            header: self.header.after_compaction(end, &dropped),
            recent,
            replies: self.replies,
        }
    }

    /// Begins a turn with a reply.
    pub fn begin(&mut self, reply: Message, flush: bool) {
        self.replies += 1;
        let entry = TurnMessage { message: reply, call: None, ephemeral: false };
        self.recent.push(Turn { entries: vec![entry], said: Vec::new(), flush });
    }

    /// Adds to the last turn, or to the opening where no turn has begun.
    pub fn add(&mut self, entry: TurnMessage) {
        match self.recent.last_mut() {
            Some(turn) => turn.entries.push(entry),
            None => self.opening.push(entry.message),
        }
    }

    /// Keeps word for word what a person said in the last turn. The opening is kept in any case.
    pub fn pin(&mut self, said: String) {
        if let Some(turn) = self.recent.last_mut() {
            turn.said.push(said);
        }
    }

    /// Keeps what people said in the conversation that this one continues.
    pub fn pin_earlier_messages(&mut self, said: &[String]) {
        self.header.said.extend(said.iter().cloned());
    }

    /// Reasoning does not outlive its epoch.
    pub fn forget_reasoning(&mut self) {
        let entries = self.recent.iter_mut().flat_map(|turn| &mut turn.entries);
        for message in entries.map(|entry| &mut entry.message).chain(&mut self.opening) {
            if let Message::Assistant { reasoning, .. } = message {
                *reasoning = None;
            }
        }
    }
}

/// One message of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnMessage {
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
    pub entries: Vec<TurnMessage>,
    /// What a person said in it, word for word.
    pub said: Vec<String>,
    /// Whether the agent saved its notes in it, and did nothing else.
    pub flush: bool,
}

impl Turn {
    /// What of it may stay after a compaction.
    pub fn retained(&self) -> impl Iterator<Item = &TurnMessage> {
        self.entries.iter().filter(|entry| !entry.ephemeral)
    }

    /// The turn as the next epoch knows it.
    pub fn for_next_epoch(&self, shrink: Option<usize>, file: Option<&str>) -> Self {
        let entries = self.retained().map(|entry| TurnMessage {
            message: entry.truncated(shrink, file),
            call: entry.call,
            ephemeral: false,
        });
        Self { entries: entries.collect(), said: self.said.clone(), flush: false }
    }
}

impl TurnMessage {
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
    // A notice of the tool itself is at the end, and points to its own file.
    let (head, tail) = (prefix(text, limit / 2), suffix(text, limit / 2));
    let left_out = text.len() - head.len() - tail.len();
    ShortenedOutput { head, tail, left_out }.result(call, file)
}
