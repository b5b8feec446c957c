//! What the model sees: messages in order, and what it answers with.
//!
//! A context only grows within an epoch, byte for byte, so that providers' caches hit; therefore tool
//! arguments are kept as the very string the provider sent.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::id::CallId;
use crate::picture::Picture;
use crate::reasoning::Reasoning;

/// One tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Our id, unique forever; a provider's repeat, and are untrusted.
    pub id: CallId,
    /// The provider's id, used on the wire only.
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments, verbatim; not necessarily JSON.
    pub arguments: String,
}

/// One message of a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// From a person, an event or the harness itself.
    User {
        /// What it says.
        text: String,
        /// What it shows, before the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pictures: Vec<Picture>,
    },
    /// From the model.
    Assistant {
        /// What it says; may be empty when it only calls tools.
        text: String,
        /// What it asks for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolRequest>,
        /// What it thought before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
    },
    /// The result of a tool call.
    Tool {
        /// The provider's id of the call this answers.
        provider_id: String,
        /// The tool's name.
        name: String,
        /// The outcome as the model reads it.
        text: String,
        /// Whether the outcome is an error, for wires that say so.
        is_error: bool,
    },
}

impl Message {
    /// A message from a person or the harness.
    pub fn user(text: impl Into<String>) -> Self {
        Self::with_pictures(text, Vec::new())
    }

    /// The same with pictures.
    pub fn with_pictures(text: impl Into<String>, pictures: Vec<Picture>) -> Self {
        Self::User { text: text.into(), pictures }
    }

    /// The same without what the model thought: reasoning does not outlive its epoch.
    #[must_use]
    pub fn without_reasoning(mut self) -> Self {
        if let Self::Assistant { reasoning, .. } = &mut self {
            *reasoning = None;
        }
        self
    }
}

/// A tool as offered to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it is for, in words for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: ArgumentSchema,
}

/// The JSON schema of a tool's arguments, as text: it is written once, and then journaled and sent as it is.
#[derive(Clone, Debug)]
pub struct ArgumentSchema(Arc<RawValue>);

impl ArgumentSchema {
    /// The text of the schema.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl From<&serde_json::Value> for ArgumentSchema {
    fn from(schema: &serde_json::Value) -> Self {
        let text = serde_json::value::to_raw_value(schema);
        Self(text.expect("a JSON value can be written as text").into())
    }
}

impl PartialEq for ArgumentSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.text() == other.text()
    }
}

impl Serialize for ArgumentSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ArgumentSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

/// What stays the same for a whole epoch: the system prompt and the tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prelude {
    /// The system prompt.
    pub system: String,
    /// The tools, in stable order.
    pub tools: Vec<ToolSpec>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It said all it wanted to.
    Stop,
    /// It wants tools run.
    ToolCalls,
    /// It ran into its output limit; the reply is cut.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
}

/// Tokens and money of one model call, as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Prompt tokens that came from the provider's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Reply tokens that were spent on reasoning; `output_tokens` has them too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// What it cost in US dollars, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
