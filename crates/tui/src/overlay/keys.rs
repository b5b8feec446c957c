//! The page of keys: which key does what, and binding another key by pressing it.

use super::{Item, List, PageAction, Target, ViewKind};
use crate::keymap::{Action, Keymap, chord_name};
use crate::keys::{Code, Key};

/// The widest that the keys of an action may be before what it does.
const KEYS: usize = 30;
/// In fewer columns only the first key of an action is listed.
const NARROW: usize = 70;
const FIRST_KEY: usize = 12;

/// Keys that are the same for everybody.
const FIXED: &[(&str, &str)] = &[
    ("Tab", "complete a command or a file"),
    ("Up, Down", "earlier messages"),
    ("Ctrl+A/E, Ctrl+U/K/W, Ctrl+Y", "edit as in a shell; Ctrl+_ undoes"),
    ("@name", "name a file"),
    ("!command", "run a command in the sandbox"),
    ("/vim", "edit as in vi, or no longer"),
    ("/help", "all commands"),
];

/// The list of keys, and the key that is being pressed for one of them.
#[derive(Clone, Debug)]
pub struct KeyList {
    pub list: List,
    waiting: Option<Waiting>,
    /// What became of the last key.
    said: Option<String>,
}

/// What an action is to be bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// These one after the other, and no others.
    Instead(Vec<Key>),
    /// These beside the keys that it has.
    Besides(Vec<Key>),
    Default,
}

/// Keys that are to be pressed.
#[derive(Clone, Debug)]
struct Waiting {
    action: Action,
    /// Whether the action keeps the keys that it has.
    is_besides: bool,
    /// How many keys one after the other.
    count: usize,
    pressed: Vec<Key>,
}

impl KeyList {
    /// All actions with their keys; `enhanced` says whether the terminal can tell all keys apart.
    pub fn new(keymap: &Keymap, enhanced: bool, columns: usize) -> Self {
        let item = |action: &Action| {
            let mut keys = keymap.names(*action);
            if !enhanced {
                // Terminals of the old kind cannot tell these keys from others.
                keys.retain(|key| !key.starts_with("Ctrl+Shift+") && key != "Ctrl+Enter");
            }
            let preview = vec![
                format!("{}: {}", keys.join(", "), action.about()),
                format!(
                    "in your configuration: [tui.keys] {action} = \"{}\"",
                    keymap.written(*action)
                ),
            ];
            Item {
                target: Target::Action(*action),
                line: row(&keys.join(", "), keys.first(), action.about(), columns),
                preview,
            }
        };
        let mut items: Vec<Item> = Action::ALL.iter().map(item).collect();
        items.extend(FIXED.iter().map(|(keys, about)| Item {
            target: Target::Text,
            line: row(keys, Some(&(*keys).to_owned()), about, columns),
            preview: vec![format!("{keys}: {about}"), "this one cannot be bound".to_owned()],
        }));
        Self { list: List::new(ViewKind::Help, "keys", items), waiting: None, said: None }
    }

    pub fn status(&self) -> String {
        match (&self.waiting, &self.said) {
            (Some(Waiting { action, count: 1, .. }), _) => {
                format!("press the key for {action} · Esc keeps it as it is")
            }
            (Some(Waiting { action, pressed, .. }), _) if pressed.is_empty() => {
                format!("press the first of two keys for {action} · Esc keeps it as it is")
            }
            (Some(Waiting { pressed, .. }), _) => {
                format!("{}, then press the second key · Esc cancels", chord_name(pressed))
            }
            (None, Some(said)) => said.clone(),
            (None, None) => self.list.status(),
        }
    }

    pub fn say(&mut self, words: impl Into<String>) {
        self.said = Some(words.into());
    }

    /// Whether the next key is bound.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub fn press(&mut self, key: Key, rows: usize) -> PageAction {
        self.said = None;
        if self.waiting.is_some() {
            return self.take(key);
        }
        let chosen = match self.list.current().map(|item| item.target) {
            Some(Target::Action(action)) => Some(action),
            _ => None,
        };
        let is_letter = key.typed().is_some() && !self.list.is_typing();
        match (key.code, chosen) {
            (Code::Enter, Some(action)) => self.wait(action, 1, false),
            (Code::Char('a'), Some(action)) if is_letter => self.wait(action, 1, true),
            (Code::Char('c'), Some(action)) if is_letter => self.wait(action, 2, false),
            (Code::Char('x'), Some(action)) if is_letter => {
                return PageAction::Bind(action, Keys::Default);
            }
            _ => return self.list.press(key, rows),
        }
        PageAction::Nothing
    }

    fn wait(&mut self, action: Action, count: usize, is_besides: bool) {
        self.waiting = Some(Waiting { action, is_besides, count, pressed: Vec::new() });
    }

    /// Takes a key for the action that waits for one.
    fn take(&mut self, key: Key) -> PageAction {
        let Some(mut waiting) = self.waiting.take() else { return PageAction::Nothing };
        if key == Key::plain(Code::Escape) {
            return PageAction::Nothing;
        }
        waiting.pressed.push(key);
        if waiting.pressed.len() < waiting.count {
            self.waiting = Some(waiting);
            return PageAction::Nothing;
        }
        let keys = match waiting.is_besides {
            true => Keys::Besides(waiting.pressed),
            false => Keys::Instead(waiting.pressed),
        };
        PageAction::Bind(waiting.action, keys)
    }
}

/// One line: the keys, then what they do.
fn row(all: &str, first: Option<&String>, about: &str, columns: usize) -> String {
    match columns < NARROW {
        true => {
            let first = first.map(String::as_str).unwrap_or_default();
            format!("{first:<FIRST_KEY$} {about}")
        }
        false => format!("{all:<KEYS$} {about}"),
    }
}
