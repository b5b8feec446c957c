//! `ask_user`: a question for a person. The loop carries it out: it parks the task (ES-211…213).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::tool_name;

use super::{Builtin, act};
use crate::tool::{Call, Category, Executor, Prepared, ToolContext};

pub(super) struct AskUser;

/// What an agent asks, as the arguments of `ask_user`; read by the loop.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct UserQuestion {
    /// The question, complete in itself: the person may not have followed along.
    #[schemars(length(min = 1))]
    pub question: String,
    /// Answers to choose from, where it is a choice.
    pub options: Option<Vec<String>>,
    /// What the person should know to answer.
    pub context: Option<String>,
}

impl Builtin for AskUser {
    type Arguments = UserQuestion;
    const NAME: &'static str = tool_name::ASK_USER;
    const DESCRIPTION: &'static str = include_str!("descriptions/ask_user.md");
    const CATEGORY: Category = Category::Communication;
    const MIN_CLASS: (Class, Risk) = (Class::Note, Risk::Low);
    const IS_ALWAYS_ALLOWED: bool = true;
    const KIND: Executor = Executor::Question;

    fn prepare(
        _context: ToolContext,
        call: Call,
        _given: UserQuestion,
    ) -> Result<Prepared, Outcome> {
        let assessment = Assessment::of(Class::Note, "asks the user");
        // The loop asks the question, whose id is derived from the call's.
        let recovery = Recovery::Reattach { id: call.id.to_string() };
        let act = act(|| Outcome::failure("questions cannot be asked here."));
        Ok(Prepared::new(assessment, recovery, act))
    }
}
