//! Leaving: takes two presses, and says what is still running.

use super::{Effect, Leaving, Phase, TWICE};
use crate::Moment;
use crate::keymap::Action;
use crate::keys::{Code, Key};

/// How far a person is in leaving.
#[derive(Default)]
pub struct Departure {
    /// Whether they are asked what becomes of the task at work.
    pub is_asked: bool,
    /// Whether a task of another conversation is at work here.
    pub has_other_work: bool,
    last_press: Option<Moment>,
}

impl Departure {
    /// A press of the key to leave; whether it is the second.
    pub(super) fn press_twice(&mut self, now: Moment) -> bool {
        let is_second = self.last_press.is_some_and(|at| at + TWICE > now);
        self.last_press = (!is_second).then_some(now);
        is_second
    }

    /// Another key was pressed: the next press of the key to leave is the first again.
    pub(super) fn disarm(&mut self) {
        self.last_press = None;
    }

    /// Leaves, or asks first where something works.
    pub(super) fn begin(&mut self, phase: Phase) -> Vec<Effect> {
        if phase.is_working() || self.has_other_work {
            self.is_asked = true;
            return Vec::new();
        }
        vec![Effect::Save, Effect::Leave(Leaving::Park)]
    }

    /// What a key says to that question, which every key settles.
    pub(super) fn press(&mut self, key: Key, action: Option<Action>) -> Vec<Effect> {
        self.is_asked = false;
        match (key.code, action) {
            (_, Some(Action::Leave)) | (Code::Char('p'), None) => {
                vec![Effect::Leave(Leaving::Park)]
            }
            (Code::Char('b'), None) => vec![Effect::Leave(Leaving::Background)],
            _ => Vec::new(),
        }
    }

    /// When a second press no longer counts as one.
    pub(super) fn until(&self) -> Option<Moment> {
        self.last_press.map(|at| at + TWICE)
    }

    pub(super) fn expire(&mut self, now: Moment) {
        self.last_press.take_if(|at| *at + TWICE <= now);
    }
}
