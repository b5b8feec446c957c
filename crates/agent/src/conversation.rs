//! The conversation of an ended task, as a follow-up takes it over: what the model saw, word for word, so that
//! providers' caches hit, and what compactions of the follow-up must keep.

use std::sync::Arc;

use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::message::Message;
use windlass_core::picture::Picture;
use windlass_model::{Model, PictureSource};
use windlass_store::Store;

use crate::context::Context;
use crate::history::History;
use crate::memory::RecalledMemories;
use crate::{Error, prompt};

/// What a conversation begins with.
#[derive(Default)]
pub(crate) struct ConversationStart {
    /// What the model reads, oldest first.
    pub messages: Vec<Message>,
    /// What people said, word for word.
    pub said: Vec<String>,
    /// The skills that the agent follows.
    pub skills: Vec<String>,
}

impl ConversationStart {
    /// The conversation of a task, as the model saw it last.
    pub fn read(store: &Store, task: TaskId, model: Arc<dyn Model>) -> Result<Self, Error> {
        let history = History::read(store, task)?;
        let mut context = Context::new(model, picture_source(store));
        history.replay(|event, state| context.apply(event, state))?;
        let mut conversation = context.conversation(history.state());
        // It ended before it began, so all that is known is what was wanted.
        if conversation.messages.is_empty() {
            let created = &history.state().created;
            let nothing = RecalledMemories::default();
            conversation.messages = prompt::opening(created, &nothing, &created.layout(), None);
        }
        Ok(conversation)
    }

    /// The same after a person said more.
    pub fn followed_by(mut self, task: TaskId, text: &str, pictures: Vec<Picture>) -> Self {
        let id = InjectionId::derived(&task.to_string(), "follow_up");
        let message = Injection::message(id, text.trim());
        if let Some(text) = message.text_for_model() {
            self.messages.push(Message::with_pictures(&text, pictures));
            self.said.push(text);
        }
        self
    }
}

/// Where the pictures of a conversation are.
pub(crate) fn picture_source(store: &Store) -> PictureSource {
    let pictures = store.pictures();
    PictureSource::new(move |picture| pictures.read(picture))
}
