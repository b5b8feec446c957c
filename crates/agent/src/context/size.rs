//! How much of the window a context takes.

use super::Context;

/// The size of a context.
#[derive(Clone, Copy)]
pub struct ContextSize<'a> {
    pub(super) context: &'a Context,
}

impl ContextSize<'_> {
    /// The conversation, by the best estimate.
    pub fn tokens(self) -> u64 {
        self.context.estimate.conversation(self.context.sent_bytes())
    }

    /// This epoch when it began.
    pub fn floor_tokens(self) -> u64 {
        self.context.estimate.tokens(self.context.opened_bytes)
    }

    /// The system prompt and the tools.
    pub fn prelude_bytes(self) -> usize {
        let Context { prelude, model, .. } = self.context;
        prelude.as_ref().map_or(0, |prelude| model.transcript(prelude).bytes())
    }
}
