//! What is written to a file, so that a crash loses nothing that was typed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_core::id::QuestionId;

use super::App;
use crate::composer::Draft;
use crate::dialog::Comments;
use crate::queue::Queue;

/// The drafts of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedDrafts {
    #[serde(default)]
    draft: Draft,
    #[serde(default)]
    aside: Option<Draft>,
    #[serde(default)]
    queue: Queue,
    /// The message that was on its way. Where the journal has it, it is not sent again.
    #[serde(default)]
    sending: Option<Draft>,
    /// The name that it was sent under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    /// Words to a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Draft>,
    /// Commands that the person ran, for the next message; and those that the message on its way has taken along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ran: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sent_ran: Vec<String>,
    /// What was said to lines of plans.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    comments: BTreeMap<QuestionId, Comments>,
}

impl SavedDrafts {
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// What has to survive.
    pub fn of(app: &App) -> Self {
        let mut queue = app.outgoing.queue.clone();
        queue.leave();
        queue.forget_edited();
        Self {
            draft: app.writing.draft(),
            aside: app.writing.stash.clone(),
            queue,
            sending: app.outgoing.sending.clone(),
            request: app.outgoing.request.clone(),
            answer: app.writing.answer(),
            ran: app.writing.ran.waiting.clone(),
            sent_ran: app.writing.ran.sent.clone(),
            comments: app.questions.comments(),
        }
    }

    /// What a new conversation in the same directory is offered: the text. What was on its way to this conversation
    /// is not sent in another, unless nothing was said in it yet.
    pub fn for_directory(app: &App) -> Self {
        let saved = Self::of(app);
        match app.story.is_some() {
            true => Self { draft: saved.draft, aside: saved.aside, ..Self::default() },
            false => saved,
        }
    }

    /// The name of the message that was on its way.
    pub fn request(&self) -> Option<&str> {
        self.request.as_deref()
    }

    /// Keeps a message that could not be sent, in front of those that wait.
    pub fn put_back(&mut self, draft: Draft) {
        self.queue.put_back(draft);
        (self.sending, self.request) = (None, None);
        self.ran.splice(..0, std::mem::take(&mut self.sent_ran));
    }

    /// The message that was on its way has arrived.
    pub fn arrived(&mut self) {
        (self.sending, self.request) = (None, None);
        self.sent_ran.clear();
    }

    /// Gives back what was written before. A message that was on its way is offered again, unless it `has_arrived`.
    pub fn restore(self, app: &mut App, has_arrived: bool) {
        let Self { draft, aside, queue, sending, answer, ran, sent_ran, comments, .. } = self;
        let (writing, outgoing) = (&mut app.writing, &mut app.outgoing);
        for words in app.questions.restore(comments) {
            writing.history.push(&words);
        }
        writing.stash = aside.map(Draft::checked);
        outgoing.queue = queue;
        outgoing.hold();
        if !draft.is_empty() {
            writing.composer.replace(draft);
        }
        if let Some(words) = answer {
            // The question may be another one now.
            writing.history.push(&words.expanded());
        }
        writing.ran.waiting =
            if has_arrived { ran } else { sent_ran.into_iter().chain(ran).collect() };
        match sending.filter(|_| !has_arrived) {
            Some(draft) if writing.composer.is_empty() => writing.composer.replace(draft),
            Some(draft) => outgoing.put_back(draft),
            None => {}
        }
        if !writing.composer.is_empty() || !outgoing.queue.is_empty() {
            app.say("what you had not sent is back");
        }
    }
}
