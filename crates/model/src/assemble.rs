//! A reply put together from the parts of its stream, whatever the dialect.
//!
//! Invariants: text and arguments together stay within [`MAX_REPLY_BYTES`]; every call of a finished
//! reply has an id that no other call of the conversation has.

use std::collections::HashSet;

use windlass_core::message::{Finish, Usage};

use crate::{Call, Fault, Live, MAX_CALLS, MAX_REPLY_BYTES, Transcript};

/// Longer ids are not ids; they are replaced.
const MAX_ID: usize = 64;

/// Reads a dialect's stream into an [`Assembly`].
pub(crate) trait Reader: Send {
    /// Takes in one event's data.
    fn read(
        &mut self,
        data: &str,
        into: &mut Assembly,
        live: &mut (dyn FnMut(Live) + Send),
    ) -> Result<Progress, Fault>;
}

/// Whether a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub text: String,
    pub calls: Vec<Call>,
    pub finish: Option<Finish>,
    pub usage: Usage,
    /// Prompt tokens written to the provider's cache, which some bill apart.
    pub cache_written: u64,
    pub model: String,
    size: usize,
}

impl Assembly {
    pub fn add_text(
        &mut self,
        delta: String,
        live: &mut (dyn FnMut(Live) + Send),
    ) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        self.text.push_str(&delta);
        live(Live::Text(delta));
        Ok(())
    }

    /// Begins a call and says which one it is.
    pub fn begin_call(
        &mut self,
        provider_id: String,
        name: String,
        live: &mut (dyn FnMut(Live) + Send),
    ) -> Result<usize, Fault> {
        let index = self.calls.len();
        if index == MAX_CALLS {
            return Err(Fault::TooLarge { what: "tool calls", limit: MAX_CALLS });
        }
        self.grow(provider_id.len() + name.len())?;
        live(Live::CallStarted { index, name: name.clone() });
        self.calls.push(Call { provider_id, name, arguments: String::new() });
        Ok(index)
    }

    pub fn add_arguments(
        &mut self,
        index: usize,
        delta: String,
        live: &mut (dyn FnMut(Live) + Send),
    ) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        self.calls[index].arguments.push_str(&delta);
        live(Live::CallArguments { index, delta });
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        self.size += bytes;
        if self.size > MAX_REPLY_BYTES {
            return Err(Fault::TooLarge { what: "bytes", limit: MAX_REPLY_BYTES });
        }
        Ok(())
    }

    /// Settles what is left open once the stream has ended.
    pub fn settle(&mut self, progress: Progress, transcript: &Transcript) -> Result<Finish, Fault> {
        let finish = match (self.finish, progress) {
            // Some servers say `stop` although they call.
            (Some(Finish::Stop) | None, Progress::Done) | (Some(Finish::Stop), Progress::More)
                if !self.calls.is_empty() =>
            {
                Finish::ToolCalls
            }
            (Some(Finish::ToolCalls), _) if self.calls.is_empty() => Finish::Stop,
            (Some(finish), _) => finish,
            (None, Progress::Done) => Finish::Stop,
            (None, Progress::More) => {
                let seen = format!("the stream ended after {} bytes of the reply", self.size);
                return Err(Fault::Truncated { detail: seen });
            }
        };
        let empty = self.text.trim().is_empty() && self.calls.is_empty();
        match finish {
            Finish::Stop | Finish::ToolCalls if empty => return Err(Fault::EmptyReply),
            Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::ContentFilter => {}
        }
        identify(&mut self.calls, transcript);
        Ok(finish)
    }
}

/// Gives every call an id that is its own within the conversation.
pub(crate) fn identify(calls: &mut [Call], transcript: &Transcript) {
    let mut taken = HashSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        let usable = !call.provider_id.is_empty() && call.provider_id.len() <= MAX_ID;
        let wanted = match usable {
            true => std::mem::take(&mut call.provider_id),
            false => format!("call_{}_{index}", transcript.turn()),
        };
        let free = |id: &String| !taken.contains(id) && !transcript.has_call(id);
        let mut again = (2..).map(|number| format!("{wanted}_{number}"));
        call.provider_id = match free(&wanted) {
            true => wanted.clone(),
            false => again.find(free).unwrap_or_default(),
        };
        taken.insert(call.provider_id.clone());
    }
}
