//! What a model thinks before it answers: opaque to us, journaled with the reply, and sent back unchanged.
//!
//! Invariant: reasoning goes only to the model that made it, and only within the epoch it was made in.

use serde::{Deserialize, Serialize};

use crate::string_enum;

/// The reasoning of one reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The model that made it, as `provider/model`.
    pub model: String,
    /// In the order they came.
    pub thoughts: Vec<Thought>,
}

/// One piece of reasoning, and its place in the reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// What may be read of it; empty where the provider shows nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// How many bytes of the reply's text came before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_text: usize,
    /// How many of the reply's calls came before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_calls: usize,
}

/// What makes a thought acceptable to the provider that made it. Never changed, never understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seal {
    /// The signature of the text.
    Signature(String),
    /// The thought itself, encrypted; it has no text.
    Redacted(String),
    /// The whole item as JSON, which holds the text in its own form.
    Item(String),
    /// The name of the field that the text came in.
    Field(String),
    /// What came with the next call, as JSON.
    Call(String),
    /// How the provider labels the text that follows: a remark on the way, or the answer.
    Phase(String),
}

impl Reasoning {
    /// What may be read of it, a paragraph for each thought.
    pub fn text(&self) -> String {
        let texts = self.thoughts.iter().map(|thought| thought.text.trim());
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

string_enum! {
    /// How much a model thinks before it answers.
    Effort ("level of effort") {
        /// It does not think.
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        /// As much as it can.
        Max = "max",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_is_read_as_it_was_written() {
        let reasoning = Reasoning {
            model: "anthropic/m".to_owned(),
            thoughts: vec![
                Thought {
                    text: "Look first.".to_owned(),
                    seal: Some(Seal::Signature("c2ln".to_owned())),
                    ..Thought::default()
                },
                Thought {
                    seal: Some(Seal::Redacted("ZGF0YQ==".to_owned())),
                    after_text: 8,
                    after_calls: 1,
                    ..Thought::default()
                },
            ],
        };
        let written = serde_json::to_string(&reasoning).unwrap();
        assert_eq!(
            written,
            r#"{"model":"anthropic/m","thoughts":[{"text":"Look first.","seal":{"signature":"c2ln"}},{"seal":{"redacted":"ZGF0YQ=="},"after_text":8,"after_calls":1}]}"#
        );
        assert_eq!(serde_json::from_str::<Reasoning>(&written).unwrap(), reasoning);
        assert_eq!(reasoning.text(), "Look first.");
    }
}
