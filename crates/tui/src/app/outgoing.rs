//! Messages on their way: the queue, and the one that is being sent.

use windlass_core::event::StatusChanged;
use windlass_core::id::InjectionId;
use windlass_core::status::{StatusReason, TaskStatus};

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
    /// The name under which it is sent: the journal tells by it whether it has arrived.
    pub request: Option<String>,
    /// Messages that were sent into the turn at work, until its agent has read them.
    pub steered: Vec<Steered>,
    /// Whether the message that is being withdrawn is to be written on.
    pub(super) is_wanted_back: bool,
}

/// A message that waits in a task's mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steered {
    pub draft: Draft,
    /// The name that it was sent under.
    pub request: String,
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
        self.request = None;
        Effect::Send(draft)
    }

    /// The agent reads this message now.
    pub(super) fn read(&mut self, message: InjectionId) {
        self.steered.retain(|one| InjectionId::derived(&one.request, "message") != message);
    }

    /// A message could not be sent.
    pub(super) fn not_sent(&mut self, draft: &Draft) {
        self.arrived();
        self.steered.retain(|one| one.draft != *draft);
    }

    /// Nothing is on its way any more.
    pub(super) fn arrived(&mut self) {
        (self.sending, self.request) = (None, None);
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

    /// The task has another status. Where its work was stopped or has failed, wherever that happened, what waits here does
    /// not begin it again; a task that has ended reads nothing any more.
    pub(super) fn moved(&mut self, moved: &StatusChanged) {
        if ends_the_work(moved) {
            self.hold();
        }
        if moved.to.is_terminal() {
            self.steered.clear();
        }
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
            Code::Char('s') => self.queue.take_to_send().map(Pressed::SendNow),
            Code::Enter | Code::Char('e') => self.queue.take_to_edit().map(Pressed::Edit),
            _ => {
                self.go(key);
                None
            }
        };
        taken.unwrap_or(Pressed::Moved)
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

/// Whether the work was stopped or has failed, and does not continue by itself.
fn ends_the_work(moved: &StatusChanged) -> bool {
    match moved.to {
        TaskStatus::Failed | TaskStatus::Cancelled => true,
        TaskStatus::Paused => {
            let is_turn_over =
                matches!(moved.reason, StatusReason::AwaitingMessage | StatusReason::Schedule);
            !is_turn_over && !moved.reason.resumes_at_a_time()
        }
        TaskStatus::Blocked => {
            !matches!(moved.reason, StatusReason::Question | StatusReason::Budget)
        }
        TaskStatus::Todo
        | TaskStatus::Running
        | TaskStatus::Verifying
        | TaskStatus::Reviewing
        | TaskStatus::Retrying
        | TaskStatus::Done => false,
    }
}
