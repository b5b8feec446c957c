//! The output contract: the last JSON code block of what an agent said (WF-053…058).
//!
//! Invariant: the last block decides. Where it is not of that shape, an earlier one does not take its place.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_core::text::suffix;

/// How much of a long output is looked at; the contract asks for the block at its end.
const MAX_BYTES: usize = 8 << 20;

/// What an agent says of its work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentOutput {
    pub success: bool,
    pub summary: String,
    /// Values for later steps.
    #[serde(default, deserialize_with = "object")]
    pub outputs: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Models write `null` for what they have nothing to say about.
fn object<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    Ok(Option::<Map<String, Value>>::deserialize(deserializer)?.unwrap_or_default())
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("it said nothing")]
    Silent,
    #[error("its last words hold no JSON code block")]
    NoBlock,
    #[error("its last JSON code block is not an output: {0}")]
    Shape(String),
}

impl AgentOutput {
    /// Reads what an agent said.
    pub fn read(text: &str) -> Result<Self, Missing> {
        if text.trim().is_empty() {
            return Err(Missing::Silent);
        }
        let block = last_block(end_of(text)).ok_or(Missing::NoBlock)?;
        serde_json::from_str(&block).map_err(|error| Missing::Shape(error.to_string()))
    }
}

/// The end of a long text, from the beginning of a line.
fn end_of(text: &str) -> &str {
    let end = suffix(text, MAX_BYTES);
    match end.len() == text.len() {
        true => end,
        false => end.split_once('\n').map_or(end, |(_, rest)| rest),
    }
}

/// What a program wrote after the last block of its prompt, which terminals and many programs repeat: the block that
/// the prompt shows as an example is not the output.
pub(crate) fn after_prompt<'t>(text: &'t str, prompt: &str) -> &'t str {
    let Some(example) = last_block(prompt) else { return text };
    let longest = example.lines().map(str::trim).max_by_key(|line| line.len()).unwrap_or_default();
    let Some(at) = text.rfind(longest).filter(|_| !longest.is_empty()) else { return text };
    let rest = &text[at + longest.len()..];
    rest.split_once("```").map_or(rest, |(_, rest)| rest)
}

/// The last fenced block of JSON that is not part of a quote.
fn last_block(text: &str) -> Option<String> {
    let (mut quotes, mut open, mut last) = (0_u32, None::<Block>, None);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::BlockQuote(_)) => quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => quotes = quotes.saturating_sub(1),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info)))
                if quotes == 0 && is_json(&info) =>
            {
                open = Some(Block { names_json: !info.trim().is_empty(), text: String::new() });
            }
            Event::Text(text) => {
                if let Some(open) = &mut open {
                    open.text.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                last = open.take().filter(Block::is_output).map(|block| block.text).or(last)
            }
            _ => {}
        }
    }
    last
}

fn is_json(info: &str) -> bool {
    let word = info.split_whitespace().next().unwrap_or_default();
    word.is_empty() || word.eq_ignore_ascii_case("json")
}

/// A fenced block.
struct Block {
    /// Whether it says that it is JSON.
    names_json: bool,
    text: String,
}

impl Block {
    /// A fence without a language may hold anything; one with `json` that holds something else is a mistake of its own,
    /// and reading it says which.
    fn is_output(&self) -> bool {
        self.names_json || self.text.trim_start().starts_with('{')
    }
}
