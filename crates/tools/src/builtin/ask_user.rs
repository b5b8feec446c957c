//! `ask_user`: a question for a person. The loop carries it out: it parks the task (ES-211…213).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};

use super::{Builtin, act};
use crate::tool::{Call, Category, Kind, Prepared, World};

pub(super) struct AskUser;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The question, complete in itself: the person may not have followed along.
    #[schemars(length(min = 1))]
    #[expect(dead_code, reason = "the loop reads it from the call")]
    question: String,
    /// Answers to choose from, where it is a choice.
    #[expect(dead_code, reason = "the loop reads it from the call")]
    options: Option<Vec<String>>,
    /// What the person should know to answer.
    #[expect(dead_code, reason = "the loop reads it from the call")]
    context: Option<String>,
}

impl Builtin for AskUser {
    type Arguments = Arguments;
    const NAME: &'static str = "ask_user";
    const DESCRIPTION: &'static str = include_str!("descriptions/ask_user.md");
    const CATEGORY: Category = Category::Communication;
    const LEAST: (Class, Risk) = (Class::Note, Risk::Low);
    const KIND: Kind = Kind::Loop;

    fn prepare(_world: World, call: Call, _given: Arguments) -> Result<Prepared, Outcome> {
        Ok(Prepared {
            assessment: Assessment::of(Class::Note, "asks the user"),
            // The loop puts the question's id in place of the call's.
            recovery: Recovery::Reattach { id: call.id.to_string() },
            act: act(|| Outcome::error("Error: questions cannot be asked here.")),
        })
    }
}
