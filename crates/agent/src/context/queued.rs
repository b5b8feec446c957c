//! Messages that wait until they may follow the results of a reply.

use windlass_core::injection::{Injection, InjectionType};
use windlass_core::picture::Picture;
use windlass_core::state::TaskState;

/// A message that waits.
pub(super) struct QueuedMessage {
    pub text: String,
    pub pictures: Vec<Picture>,
    /// What stays of it word for word, when its turn is dropped.
    pub pinned: Option<String>,
    /// Whether the next compaction drops it in any case.
    pub ephemeral: bool,
}

impl QueuedMessage {
    pub fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), pictures: Vec::new(), pinned: None, ephemeral: false }
    }

    pub fn ephemeral(text: &str) -> Self {
        Self { ephemeral: true, ..Self::plain(text) }
    }

    /// What the model reads of a message from outside; none where it reads nothing of it.
    pub fn injection(injection: &Injection, state: &TaskState) -> Option<Self> {
        let text = injection.text_for_model()?;
        let pinned = match injection.injection_type {
            _ if injection.is_from_person() => Some(text.clone()),
            InjectionType::HitlResponse => {
                let question = injection.question.and_then(|id| state.question(id));
                Some(question.map_or_else(
                    || text.clone(),
                    |question| format!("You asked: {}\n{text}", question.question),
                ))
            }
            InjectionType::UserMessage
            | InjectionType::ExternalEvent
            | InjectionType::SystemControl => None,
        };
        Some(Self { text, pictures: injection.pictures.clone(), pinned, ephemeral: false })
    }
}
