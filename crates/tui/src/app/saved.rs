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
pub struct Saved {
    #[serde(default)]
    draft: Draft,
    #[serde(default)]
    aside: Option<Draft>,
    #[serde(default)]
    queue: Queue,
    /// The message that was on its way. Where the journal has it, it is not sent again.
    #[serde(default)]
    sending: Option<Draft>,
    /// What was said to lines of plans.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    comments: BTreeMap<QuestionId, Comments>,
}

impl Saved {
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// What has to survive.
    pub fn of(app: &App) -> Self {
        let mut queue = app.outgoing.queue.clone();
        queue.leave();
        Self {
            draft: app.writing.draft(),
            aside: app.writing.stash.clone(),
            queue,
            sending: app.outgoing.sending.clone(),
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

    /// Gives back what was written before. A message that was on its way is offered again, unless the journal has it:
    /// `said` are the last messages there.
    pub fn restore(self, app: &mut App, said: &[String]) {
        let Self { draft, aside, queue, sending, comments } = self;
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
        match sending.filter(|draft| !said.contains(&draft.expanded())) {
            Some(draft) if writing.composer.is_empty() => writing.composer.replace(draft),
            Some(draft) => outgoing.put_back(draft),
            None => {}
        }
        if !writing.composer.is_empty() || !outgoing.queue.is_empty() {
            app.say("what you had not sent is back");
        }
    }
}
