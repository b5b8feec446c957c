//! A reply put together from the parts of its stream, whatever the wire.
//!
//! Invariants: text, thoughts and arguments together stay within [`MAX_REPLY_BYTES`]; every call of a finished
//! reply has an id that no other call of the conversation has.

use std::collections::HashSet;

use serde::Deserialize;
use windlass_core::message::{Finish, Usage};
use windlass_core::reasoning::{Seal, Thought};

use crate::{Call, Fault, MAX_CALLS, MAX_REPLY_BYTES, StreamEvent, Transcript};

/// Longer ids are not ids; they are replaced. Providers take 64 characters, of which a number that
/// makes an id unique needs some.
const MAX_ID: usize = 56;

/// The most thoughts one reply may hold; several come before each call.
const MAX_THOUGHTS: usize = 4 * MAX_CALLS;

/// Reads a wire's stream into an [`Assembly`].
pub(crate) trait Reader: Send {
    /// Takes in one event's data.
    fn read(
        &mut self,
        data: &str,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Progress, Fault>;

    /// Adds what was kept back until the stream has ended.
    fn finish(&mut self, _into: &mut Assembly) -> Result<(), Fault> {
        Ok(())
    }
}

/// Whether more of a stream is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

/// One piece of a stream as what it should be.
pub(crate) fn parse<'a, T: Deserialize<'a>>(what: &str, data: &'a str) -> Result<T, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::Garbled {
        detail: format!("{what} is not valid JSON of its kind: {error}"),
    })
}

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub text: String,
    pub calls: Vec<Call>,
    pub thoughts: Vec<Thought>,
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
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        self.text.push_str(&delta);
        live(StreamEvent::Text(delta));
        Ok(())
    }

    /// Begins a call and says which one it is.
    pub fn begin_call(
        &mut self,
        provider_id: String,
        name: String,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<usize, Fault> {
        let index = self.calls.len();
        if index == MAX_CALLS {
            return Err(Fault::TooLarge { what: "tool calls", limit: MAX_CALLS });
        }
        self.grow(provider_id.len() + name.len())?;
        live(StreamEvent::CallStarted { index, name: name.clone() });
        self.calls.push(Call { provider_id, name, arguments: String::new() });
        Ok(index)
    }

    pub fn add_arguments(
        &mut self,
        index: usize,
        delta: String,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        self.calls[index].arguments.push_str(&delta);
        live(StreamEvent::CallArguments { index, delta });
        Ok(())
    }

    /// Begins a thought at this place of the reply and says which one it is.
    pub fn begin_thought(&mut self, seal: Option<Seal>) -> Result<usize, Fault> {
        if self.thoughts.len() == MAX_THOUGHTS {
            return Err(Fault::TooLarge { what: "thoughts", limit: MAX_THOUGHTS });
        }
        let (after_text, after_calls) = (self.text.len(), self.calls.len());
        self.thoughts.push(Thought { text: String::new(), seal: None, after_text, after_calls });
        let index = self.thoughts.len() - 1;
        if let Some(seal) = seal {
            self.seal(index, seal)?;
        }
        Ok(index)
    }

    pub fn add_thought(
        &mut self,
        index: usize,
        delta: String,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        self.thoughts[index].text.push_str(&delta);
        live(StreamEvent::Reasoning(delta));
        Ok(())
    }

    /// Keeps what the provider wants back with a thought.
    pub fn seal(&mut self, index: usize, seal: Seal) -> Result<(), Fault> {
        let (Seal::Signature(data)
        | Seal::Redacted(data)
        | Seal::Item(data)
        | Seal::Field(data)
        | Seal::Call(data)
        | Seal::Phase(data)) = &seal;
        self.grow(data.len())?;
        self.thoughts[index].seal = Some(seal);
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        self.size += bytes;
        if self.size > MAX_REPLY_BYTES {
            return Err(Fault::TooLarge { what: "bytes", limit: MAX_REPLY_BYTES });
        }
        Ok(())
    }

    /// Whether nothing of a reply has arrived.
    pub fn is_untouched(&self) -> bool {
        self.size == 0 && self.finish.is_none()
    }

    /// Settles what is left open once the stream has ended.
    pub fn settle(&mut self, progress: Progress, transcript: &Transcript) -> Result<Finish, Fault> {
        let finish = match (self.finish, progress) {
            (None, Progress::More) => {
                let detail = format!("the stream ended after {} bytes of the reply", self.size);
                return Err(Fault::Truncated { detail });
            }
            (Some(cut @ (Finish::Length | Finish::ContentFilter)), _) => cut,
            // What it does counts, not what it says: some servers say `stop` although they call.
            (Some(Finish::Stop | Finish::ToolCalls), _) | (None, Progress::Done) => {
                if self.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls }
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
        if call.provider_id.is_empty() || call.provider_id.len() > MAX_ID {
            call.provider_id = format!("call_{}_{index}", transcript.turn());
        }
        let wanted = call.provider_id.clone();
        let mut number = 1;
        while transcript.has_call(&call.provider_id) || !taken.insert(call.provider_id.clone()) {
            number += 1;
            call.provider_id = format!("{wanted}_{number}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Wire, anthropic::Events, chat::Chunks, responses::Items, transcript::TranscriptForm,
    };

    /// Pieces of real events, so that what is put together from them is nearly right.
    fn event() -> impl Strategy<Value = String> {
        let number = prop_oneof![
            Just("0"),
            Just("1"),
            Just("-1"),
            Just("18446744073709551615"),
            Just("null")
        ];
        let text = prop_oneof![Just("null"), Just("\"\""), Just("\"a\""), Just("{}"), Just("7")];
        (0..19_usize, number, text.clone(), text).prop_map(|(form, n, a, b)| match form {
            0 => format!(r#"{{"choices":[{{"index":{n},"delta":{{"content":{a}}},"finish_reason":{b}}}]}}"#),
            1 | 2 => format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{n},"id":{a},"function":{{"name":{b},"arguments":{a}}}}}]}}}}]}}"#
            ),
            3 => format!(r#"{{"usage":{{"prompt_tokens":{n},"cost":{a}}},"choices":{b}}}"#),
            4 => format!(r#"{{"error":{a}}}"#),
            5 => format!(r#"{{"type":"content_block_delta","index":{n},"delta":{{"type":"text_delta","text":{a}}}}}"#),
            6 => format!(
                r#"{{"type":"content_block_start","index":{n},"content_block":{{"type":"tool_use","id":{a},"name":{b},"input":{a}}}}}"#
            ),
            7 => format!(
                r#"{{"type":"content_block_delta","index":{n},"delta":{{"type":"input_json_delta","partial_json":{a}}}}}"#
            ),
            8 => format!(r#"{{"type":"content_block_stop","index":{n}}}"#),
            9 => format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{a}}},"usage":{{"output_tokens":{n}}}}}"#),
            10 => "[DONE]".to_owned(),
            11 => format!(
                r#"{{"choices":[{{"delta":{{"reasoning_content":{a},"reasoning":{b},"thinking_blocks":[{{"signature":{a}}}]}}}}]}}"#
            ),
            12 => format!(
                r#"{{"type":"content_block_start","index":{n},"content_block":{{"type":"thinking","thinking":{a},"signature":{b}}}}}"#
            ),
            13 => format!(
                r#"{{"type":"content_block_delta","index":{n},"delta":{{"type":"signature_delta","signature":{a}}}}}"#
            ),
            14 => format!(
                r#"{{"type":"response.output_item.added","output_index":{n},"item":{{"type":"function_call","call_id":{a},"name":{b}}}}}"#
            ),
            15 => format!(
                r#"{{"type":"response.function_call_arguments.delta","output_index":{n},"delta":{a}}}"#
            ),
            16 => format!(
                r#"{{"type":"response.output_item.done","output_index":{n},"item":{{"type":"reasoning","summary":[{{"text":{a}}}]}}}}"#
            ),
            17 => format!(r#"{{"type":"response.completed","response":{{"output":[{a}],"usage":{b}}}}}"#),
            _ => r#"{"type":"message_stop"}"#.to_owned(),
        })
    }

    proptest! {
        #[test]
        fn no_stream_makes_a_reader_panic_or_a_reply_without_ids(
            events in proptest::collection::vec(prop_oneof![4 => event(), 1 => any::<String>()], 0..12),
        ) {
            let prelude = windlass_core::message::Prelude { system: String::new(), tools: Vec::new() };
            let transcript = Transcript::new(TranscriptForm::plain(Wire::Chat, "m"), &prelude);
            let readers: [Box<dyn Reader>; 3] =
                [Box::new(Chunks::default()), Box::new(Events::default()), Box::new(Items::default())];
            for mut reader in readers {
                let mut assembly = Assembly::default();
                for event in &events {
                    let _ = reader.read(event, &mut assembly, &mut |_| {});
                }
                let _ = reader.finish(&mut assembly);
                let _ = assembly.settle(Progress::Done, &transcript);
                let ids: HashSet<_> = assembly.calls.iter().map(|call| &call.provider_id).collect();
                let settled = ids.iter().all(|id| !id.is_empty());
                prop_assert!(settled && ids.len() == assembly.calls.len());
            }
        }
    }
}
