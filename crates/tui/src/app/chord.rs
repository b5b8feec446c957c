//! Keys one after the other that are bound to one action.

use crate::keymap::{Action, Keymap, Meaning, chord_name};
use crate::keys::{Code, Key};

/// The keys of a chord that were pressed and are not all of it.
#[derive(Clone, Debug, Default)]
pub struct Chord {
    pressed: Vec<Key>,
}

/// What a key came to.
pub(super) enum Chorded {
    /// More of the chord must come.
    Waits,
    /// The chord was given up.
    Dropped,
    /// What the key is bound to, if to anything.
    Key(Option<Action>),
}

impl Chord {
    /// What was pressed of it, in words.
    pub fn words(&self) -> Option<String> {
        (!self.pressed.is_empty()).then(|| format!("{} …", chord_name(&self.pressed)))
    }

    pub(super) fn press(&mut self, key: Key, keymap: &Keymap) -> Chorded {
        let has_begun = !self.pressed.is_empty();
        if has_begun && key.code == Code::Escape {
            self.pressed.clear();
            return Chorded::Dropped;
        }
        self.pressed.push(key);
        match keymap.meaning(&self.pressed) {
            Meaning::Begins => Chorded::Waits,
            Meaning::Does(action) => {
                self.pressed.clear();
                Chorded::Key(Some(action))
            }
            Meaning::Nothing => {
                self.pressed.clear();
                // A key that ends a chord by accident does nothing: it may have been meant for it.
                if has_begun { Chorded::Dropped } else { Chorded::Key(None) }
            }
        }
    }
}
