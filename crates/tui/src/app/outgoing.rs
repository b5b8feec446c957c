//! Messages on their way: the queue, and the one that is being sent.

use super::{Effect, Phase};
use crate::composer::Draft;
use crate::keys::{Code, Key};
use crate::queue::Queue;

/// What waits for the turn to end, and what is on its way into the journal.
#[derive(Default)]
pub struct Outgoing {
    pub queue: Queue,
    /// Whether the queue waits for the person, after an interrupt.
    pub is_held: bool,
    /// The message on its way into the journal.
    pub sending: Option<Draft>,
}

/// What a key did to the queue.
pub(super) enum Pressed {
    Moved,
    Removed(Draft),
    SendNow(Draft),
    Edit(Draft),
}

impl Outgoing {
    /// Whether a new message has to wait. A queue that is held does not hold back what the person writes after the
    /// interrupt.
    pub(super) fn must_wait(&self, phase: Phase) -> bool {
        let is_behind = !self.queue.is_empty() && !self.is_held;
        phase != Phase::Idle || self.sending.is_some() || is_behind
    }

    /// Sends the first message that waits, where nothing else is on its way.
    pub(super) fn send_next(&mut self, phase: Phase) -> Vec<Effect> {
        if self.is_held || phase != Phase::Idle || self.sending.is_some() {
            return Vec::new();
        }
        let Some(draft) = self.queue.take_first() else { return Vec::new() };
        vec![Effect::Save, self.send(draft)]
    }

    pub(super) fn send(&mut self, draft: Draft) -> Effect {
        // An empty queue holds nothing that is queued from now on.
        self.is_held &= !self.queue.is_empty();
        self.sending = Some(draft.clone());
        Effect::Send(draft)
    }

    /// Lets the queue continue after an interrupt.
    pub(super) fn release(&mut self, phase: Phase) -> Vec<Effect> {
        self.is_held = false;
        self.send_next(phase)
    }

    /// Holds the queue until the person says so.
    pub(super) fn hold(&mut self) {
        self.is_held = !self.queue.is_empty();
    }

    /// Puts a message that was not sent back in front, where it waits for the person.
    pub(super) fn put_back(&mut self, draft: Draft) {
        self.is_held = true;
        self.queue.put_back(draft);
    }

    pub(super) fn press(&mut self, key: Key) -> Pressed {
        let taken = match key.code {
            Code::Delete | Code::Backspace | Code::Char('x') => {
                self.queue.take_selected().map(Pressed::Removed)
            }
            Code::Char('s') => self.take().map(Pressed::SendNow),
            Code::Enter | Code::Char('e') => self.take().map(Pressed::Edit),
            _ => {
                self.go(key);
                None
            }
        };
        taken.unwrap_or(Pressed::Moved)
    }

    fn take(&mut self) -> Option<Draft> {
        let draft = self.queue.take_selected()?;
        self.queue.leave();
        Some(draft)
    }

    fn go(&mut self, key: Key) {
        match key.code {
            Code::Up if key.shift => self.queue.shift(-1),
            Code::Down if key.shift => self.queue.shift(1),
            Code::Char('K') => self.queue.shift(-1),
            Code::Char('J') => self.queue.shift(1),
            Code::Up => self.queue.go(-1),
            Code::Down => self.queue.go(1),
            _ => self.queue.leave(),
        }
    }
}
