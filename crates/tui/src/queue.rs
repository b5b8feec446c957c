//! Messages that wait for the turn to end: seen, edited, removed, reordered, or sent into the turn.

use serde::{Deserialize, Serialize};

use crate::composer::Draft;

/// The most messages that wait.
pub const MOST: usize = 50;

/// What waits, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    waiting: Vec<Draft>,
    /// The one that the person looks at, while the keys go to the queue.
    #[serde(skip)]
    selected: Option<usize>,
    /// The place of the message that was taken out to be edited: it returns there.
    #[serde(skip)]
    edited: Option<usize>,
}

impl Queue {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Draft> {
        self.waiting.iter()
    }

    /// Adds a message at the end, or where it was before it was edited; gives it back where too many wait.
    pub fn push(&mut self, draft: Draft) -> Result<(), Draft> {
        if self.waiting.len() >= MOST {
            return Err(draft);
        }
        let at = self.edited.take().unwrap_or(usize::MAX).min(self.waiting.len());
        self.waiting.insert(at, draft);
        Ok(())
    }

    /// Puts a message that was not sent back in front.
    pub fn put_back(&mut self, draft: Draft) {
        self.waiting.insert(0, draft);
    }

    /// Takes the next message.
    pub fn take_first(&mut self) -> Option<Draft> {
        let first = (!self.waiting.is_empty()).then(|| self.waiting.remove(0));
        self.edited = self.edited.map(|at| at.saturating_sub(1));
        self.settle();
        first
    }

    /// Takes the last message back.
    pub fn take_last(&mut self) -> Option<Draft> {
        let last = self.waiting.pop();
        self.edited = None;
        self.settle();
        last
    }

    pub fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Lets the keys go to the queue, at its last message.
    pub fn select(&mut self) {
        self.selected = self.waiting.len().checked_sub(1);
    }

    pub fn leave(&mut self) {
        self.selected = None;
    }

    /// Looks at another message; below the last one the keys go back to the text.
    pub fn go(&mut self, rows: isize) {
        let Some(at) = self.selected else { return };
        let to = at.saturating_add_signed(rows);
        self.selected = (to < self.waiting.len()).then_some(to);
    }

    /// Moves the message that is looked at.
    pub fn shift(&mut self, rows: isize) {
        let Some(at) = self.selected else { return };
        let to = at.saturating_add_signed(rows).min(self.waiting.len().saturating_sub(1));
        let moved = self.waiting.remove(at);
        self.waiting.insert(to, moved);
        self.selected = Some(to);
    }

    /// Takes the message that is looked at.
    pub fn take_selected(&mut self) -> Option<Draft> {
        let at = self.selected.filter(|at| *at < self.waiting.len())?;
        let taken = self.waiting.remove(at);
        self.settle();
        Some(taken)
    }

    /// Takes the message that is looked at, to be sent; the keys go back to the text.
    pub fn take_to_send(&mut self) -> Option<Draft> {
        let taken = self.take_selected();
        self.leave();
        taken
    }

    /// Takes the message that is looked at, to be edited; the keys go back to the text.
    pub fn take_to_edit(&mut self) -> Option<Draft> {
        let at = self.selected;
        let taken = self.take_to_send()?;
        self.edited = at;
        Some(taken)
    }

    /// What is written is not a message of the queue any more.
    pub fn forget_edited(&mut self) {
        self.edited = None;
    }

    fn settle(&mut self) {
        let last = self.waiting.len().checked_sub(1);
        self.selected = self.selected.and_then(|at| last.map(|last| at.min(last)));
    }
}
