//! Keys that a person binds by pressing them: checked here, kept by the program, in force at once.

use super::{App, Effect};
use crate::keymap::{Action, Keymap, written_chord};
use crate::overlay::{KeyList, Keys, Overlay};

/// A binding that was checked and is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub action: Action,
    /// As `[tui.keys]` has them; `None` are the defaults.
    pub keys: Option<String>,
}

impl App {
    /// The page of all keys.
    pub fn key_list(&self) -> KeyList {
        KeyList::new(&self.settings.keymap, self.enhanced_keys, self.size.columns)
    }
}

/// Changes the keys of a terminal.
pub(super) struct Binder<'a>(pub &'a mut App);

impl Binder<'_> {
    /// Wants other keys for an action, where they are free.
    pub(super) fn bind(mut self, action: Action, keys: Keys) -> Vec<Effect> {
        let keymap = &self.0.settings.keymap;
        let keys = match keys {
            Keys::Default => None,
            Keys::Instead(chord) => Some(written_chord(&chord)),
            Keys::Besides(chord) => {
                Some(format!("{} {}", keymap.written(action), written_chord(&chord)))
            }
        };
        match keymap.rebound(action, keys.as_deref()) {
            Ok(_) => vec![Effect::Bind(Binding { action, keys })],
            Err(why) => {
                self.say(format!("not bound: {why}"));
                Vec::new()
            }
        }
    }

    /// A binding is in force, and was kept in this place; or why it could not be kept.
    pub(super) fn bound(mut self, keymap: Keymap, kept: Result<String, String>) {
        let words = match kept {
            Ok(place) => {
                self.0.settings.keymap = keymap;
                let fresh = Overlay::Keys(self.0.key_list());
                self.0.overlay =
                    self.0.overlay.take().map(|before| fresh.in_place_of(Some(before)));
                format!("bound, and written to {place}")
            }
            Err(why) => format!("not bound: {why}"),
        };
        self.say(words);
    }

    /// On the page of keys while it is open.
    fn say(&mut self, words: String) {
        match &mut self.0.overlay {
            Some(Overlay::Keys(keys)) => keys.say(words),
            _ => self.0.say(words),
        }
    }
}
