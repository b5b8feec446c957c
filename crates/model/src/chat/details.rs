//! What Chat Completions servers send of a model's reasoning, in the forms that are in use: a text in a field,
//! signed blocks, structured details, and signatures on calls.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_core::reasoning::{Seal, Thought};

use crate::assemble::Assembly;
use crate::{Fault, StreamEvent};

/// The fields of a delta that hold reasoning. Servers differ in which they send; some send several at once.
pub(super) struct Thinking {
    pub reasoning_content: Option<Value>,
    pub reasoning: Option<Value>,
    pub thinking_blocks: Vec<ThinkingBlock>,
    pub reasoning_details: Vec<Map<String, Value>>,
}

/// A block as LiteLLM passes it on from Anthropic.
#[derive(Deserialize)]
pub(super) struct ThinkingBlock {
    signature: Option<String>,
    data: Option<String>,
}

/// The reasoning of a stream so far.
#[derive(Default)]
pub(super) struct Details {
    /// The structured details so far, by their index.
    parts: BTreeMap<u64, Map<String, Value>>,
}

/// Fields of a detail that come in pieces.
const IN_PIECES: [&str; 4] = ["text", "summary", "data", "signature"];

impl Details {
    /// Takes in what one delta holds.
    pub(super) fn read(
        &mut self,
        thinking: Thinking,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        let fields =
            [("reasoning_content", thinking.reasoning_content), ("reasoning", thinking.reasoning)];
        // Where both are there they say the same.
        let said = fields.into_iter().find_map(|(field, value)| match value {
            Some(Value::String(text)) if !text.is_empty() => Some((field, text)),
            _ => None,
        });
        if let Some((field, text)) = said {
            let at = text_thought(field, into)?;
            into.add_thought(at, text, live)?;
        }
        for block in thinking.thinking_blocks {
            if let Some(data) = block.data {
                into.begin_thought(Some(Seal::Redacted(data)))?;
            } else if let Some(signature) = block.signature.filter(|text| !text.is_empty()) {
                let at = text_thought("reasoning_content", into)?;
                into.seal(at, Seal::Signature(signature))?;
            }
        }
        for detail in thinking.reasoning_details {
            self.merge(detail);
        }
        Ok(())
    }

    fn merge(&mut self, detail: Map<String, Value>) {
        let next = self.parts.len() as u64;
        let index = detail.get("index").and_then(Value::as_u64).unwrap_or(next);
        let part = self.parts.entry(index).or_default();
        for (key, value) in detail {
            match (part.get_mut(&key), &value) {
                (Some(Value::String(so_far)), Value::String(more))
                    if IN_PIECES.contains(&key.as_str()) =>
                {
                    so_far.push_str(more);
                }
                (Some(_), Value::Null) => {}
                _ => {
                    part.insert(key, value);
                }
            }
        }
    }

    /// Keeps the structured details, which are complete now.
    pub(super) fn finish(&mut self, into: &mut Assembly) -> Result<(), Fault> {
        for part in std::mem::take(&mut self.parts).into_values() {
            into.begin_thought(Some(Seal::Item(Value::Object(part).to_string())))?;
        }
        Ok(())
    }
}

/// The thought that a text belongs to: the last one, while nothing else came after it and it is not signed yet.
pub(super) fn text_thought(field: &str, into: &mut Assembly) -> Result<usize, Fault> {
    let here = (into.text.len(), into.calls.len());
    let open = |thought: &Thought| {
        (thought.after_text, thought.after_calls) == here
            && matches!(&thought.seal, Some(Seal::Field(_)))
    };
    match into.thoughts.last() {
        Some(last) if open(last) => Ok(into.thoughts.len() - 1),
        _ => into.begin_thought(Some(Seal::Field(field.to_owned()))),
    }
}

/// What came with a call, which goes back with it.
pub(super) fn keep_with_call(call: usize, extra: &Value, into: &mut Assembly) -> Result<(), Fault> {
    let at = into.begin_thought(Some(Seal::Call(extra.to_string())))?;
    into.thoughts[at].after_calls = call;
    Ok(())
}
