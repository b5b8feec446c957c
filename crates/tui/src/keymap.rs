//! Which key does what: the defaults, what a person has bound instead, and the check for conflicts.

use std::collections::BTreeMap;
use std::fmt;

use windlass_core::string_enum;

use crate::keys::{Code, Key};

string_enum! {
    /// What a key can be bound to; the words are those of `[tui.keys]`.
    Action ("key action") {
        /// Send what is written.
        Send = "send",
        Newline = "newline",
        /// Send at once, into the turn that runs.
        SendNow = "send_now",
        Interrupt = "interrupt",
        Leave = "leave",
        /// Leave when nothing is written.
        EndOfInput = "end_of_input",
        Suspend = "suspend",
        Redraw = "redraw",
        Editor = "editor",
        HistorySearch = "history_search",
        Unfold = "unfold",
        Queue = "queue",
        Stash = "stash",
        CopyReply = "copy_reply",
        /// Print without marks and line breaks of ours.
        Raw = "raw",
        /// Inline, or on a screen of its own.
        Layout = "layout",
        Transcript = "transcript",
        Diff = "diff",
        Tasks = "tasks",
        Inbox = "inbox",
        Sessions = "sessions",
        Agents = "agents",
        Help = "help",
        CycleWorkMode = "cycle_work_mode",
        Autonomous = "autonomous",
        Assisted = "assisted",
        Manual = "manual",
        Repair = "repair",
        CycleProfile = "cycle_profile",
    }
}

impl Action {
    /// What it does, for the help page.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Send => "send the message",
            Self::Newline => "begin a new line; `\\` and Enter does so too",
            Self::SendNow => "send now, into the running turn",
            Self::Interrupt => "interrupt the turn; its work stays",
            Self::Leave => "put the draft into the history; twice: leave",
            Self::EndOfInput => "leave, if nothing is written",
            Self::Suspend => "suspend; `fg` resumes",
            Self::Redraw => "redraw the screen",
            Self::Editor => "write in $EDITOR",
            Self::HistorySearch => "search earlier messages",
            Self::Unfold => "unfold pasted text",
            Self::Queue => "go through the queued messages",
            Self::Stash => "put the draft aside, or take it back",
            Self::CopyReply => "copy the last reply as Markdown",
            Self::Raw => "print plain text for copying, or as before",
            Self::Layout => "switch between inline and full screen",
            Self::Transcript => "the whole conversation, with search",
            Self::Diff => "what was changed",
            Self::Tasks => "all tasks",
            Self::Inbox => "all questions",
            Self::Sessions => "other conversations",
            Self::Agents => "sub-agents and background commands",
            Self::Help => "this page; also `?` on an empty line",
            Self::CycleWorkMode => "next work mode",
            Self::Autonomous => "autonomous",
            Self::Assisted => "assisted",
            Self::Manual => "manual",
            Self::Repair => "repair mode",
            Self::CycleProfile => "next permission profile",
        }
    }

    /// The command that does the same.
    pub const fn command(self) -> Option<&'static str> {
        Some(match self {
            Self::Tasks => "/tasks",
            Self::Inbox => "/inbox",
            Self::Transcript => "/transcript",
            Self::Diff => "/diff",
            Self::Sessions => "/sessions",
            Self::Agents => "/agents",
            Self::Help => "/keys",
            Self::CopyReply => "/copy",
            Self::Raw => "/raw",
            Self::Layout => "/tui",
            Self::Editor => "/editor",
            Self::Send
            | Self::Newline
            | Self::SendNow
            | Self::Interrupt
            | Self::Leave
            | Self::EndOfInput
            | Self::Suspend
            | Self::Redraw
            | Self::HistorySearch
            | Self::Unfold
            | Self::Queue
            | Self::Stash
            | Self::CycleWorkMode
            | Self::Autonomous
            | Self::Assisted
            | Self::Manual
            | Self::Repair
            | Self::CycleProfile => return None,
        })
    }

    /// The action that a command does.
    pub fn of_command(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.command() == Some(text))
    }
}

const fn ctrl_shift(char: char) -> Key {
    Key { code: Code::Char(char), ctrl: true, alt: false, shift: true }
}

const fn alt(char: char) -> Key {
    Key::alt(Code::Char(char))
}

/// The keys of each action, the first as help shows it. Terminals without the enhanced keyboard protocol cannot
/// tell Ctrl+Shift+M from Enter, so each of these has an Alt key too (MS-092…097, MS-211).
const DEFAULTS: &[(Action, &[Key])] = &[
    (Action::Send, &[Key::plain(Code::Enter)]),
    (Action::Newline, &[Key::shift(Code::Enter), Key::alt(Code::Enter), Key::ctrl('j')]),
    (Action::SendNow, &[Key::ctrl('s'), Key { ctrl: true, ..Key::plain(Code::Enter) }]),
    (Action::Interrupt, &[Key::plain(Code::Escape)]),
    (Action::Leave, &[Key::ctrl('c')]),
    (Action::EndOfInput, &[Key::ctrl('d')]),
    (Action::Suspend, &[Key::ctrl('z')]),
    (Action::Redraw, &[Key::ctrl('l')]),
    (Action::Editor, &[Key::ctrl('g')]),
    (Action::HistorySearch, &[Key::ctrl('r')]),
    (Action::Unfold, &[Key::ctrl('o')]),
    (Action::Queue, &[Key::alt(Code::Up), alt('q')]),
    (Action::Stash, &[Key::ctrl('q')]),
    (Action::CopyReply, &[alt('c')]),
    (Action::Raw, &[alt('v')]),
    (Action::Layout, &[alt('l')]),
    (Action::Transcript, &[Key::ctrl('t')]),
    (Action::Diff, &[alt('g')]),
    (Action::Tasks, &[alt('t')]),
    (Action::Inbox, &[alt('n')]),
    (Action::Sessions, &[alt('o')]),
    (Action::Agents, &[alt('w')]),
    (Action::Help, &[Key::plain(Code::F(1))]),
    (Action::CycleWorkMode, &[ctrl_shift('m'), alt('m')]),
    (Action::Autonomous, &[ctrl_shift('a'), alt('a')]),
    (Action::Assisted, &[ctrl_shift('s'), alt('s')]),
    (Action::Manual, &[ctrl_shift('i'), alt('i')]),
    (Action::Repair, &[ctrl_shift('r'), alt('r')]),
    (Action::CycleProfile, &[ctrl_shift('p'), alt('p')]),
];

/// Keys that edit text; nothing else can be bound to them.
const EDITING: &[Key] = &[
    Key::plain(Code::Left),
    Key::plain(Code::Right),
    Key::plain(Code::Up),
    Key::plain(Code::Down),
    Key::plain(Code::Home),
    Key::plain(Code::End),
    Key::plain(Code::Backspace),
    Key::plain(Code::Delete),
    Key::plain(Code::Tab),
    Key::ctrl('a'),
    Key::ctrl('e'),
    Key::ctrl('b'),
    Key::ctrl('f'),
    Key::ctrl('k'),
    Key::ctrl('u'),
    Key::ctrl('w'),
    Key::ctrl('y'),
    Key::ctrl('_'),
    alt('b'),
    alt('f'),
    alt('d'),
];

/// What each key does, and each chord: keys one after the other.
#[derive(Clone, Debug)]
pub struct Keymap {
    bound: BTreeMap<Vec<Key>, Action>,
    /// What the person has bound, as it is written in `[tui.keys]`.
    own: BTreeMap<String, String>,
}

/// What keys that were pressed one after the other stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Nothing,
    /// A chord begins with them.
    Begins,
    Does(Action),
}

impl Default for Keymap {
    fn default() -> Self {
        let keys =
            DEFAULTS.iter().flat_map(|(action, keys)| keys.iter().map(|key| (vec![*key], *action)));
        Self { bound: keys.collect(), own: BTreeMap::new() }
    }
}

impl Keymap {
    /// The defaults with what a person has bound instead: an action's name and its keys, separated by spaces; the keys
    /// of a chord are joined by commas. An error says what is wrong with which binding.
    pub fn with(bindings: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut map = Self { own: bindings.clone(), ..Self::default() };
        let mut own: BTreeMap<Vec<Key>, Action> = BTreeMap::new();
        for (name, keys) in bindings {
            let action: Action = name.parse().map_err(|error| format!("{error}"))?;
            map.bound.retain(|_, bound| *bound != action);
            for word in keys.split_whitespace() {
                let chord = parse_chord(word).ok_or_else(|| {
                    format!(
                        "`{word}` is not a key; write such as `ctrl+r`, `alt+enter`, `f5`, or `ctrl+x,e` \
                         for two keys one after the other"
                    )
                })?;
                if EDITING.contains(&chord[0]) || chord[0].typed().is_some() {
                    return Err(format!("`{word}` edits text and cannot be bound to `{action}`"));
                }
                if let Some(other) = own.insert(chord, action).filter(|other| *other != action) {
                    return Err(format!("`{word}` is bound to both `{other}` and `{action}`"));
                }
            }
        }
        for (chord, action) in own {
            map.add(chord, action)?;
        }
        Ok(map)
    }

    /// The same with other keys for one action, written as in [`Self::with`]; `None` are its defaults.
    pub fn rebound(&self, action: Action, keys: Option<&str>) -> Result<Self, String> {
        let mut bindings = self.own.clone();
        match keys {
            Some(keys) => bindings.insert(action.to_string(), keys.to_owned()),
            None => bindings.remove(action.as_str()),
        };
        Self::with(&bindings)
    }

    /// The keys of an action as `[tui.keys]` has them.
    pub fn written(&self, action: Action) -> String {
        let chords = self.chords(action).into_iter().map(written_chord);
        chords.collect::<Vec<_>>().join(" ")
    }

    fn add(&mut self, chord: Vec<Key>, action: Action) -> Result<(), String> {
        let other = self.bound.iter().find(|(other, _)| {
            let (short, long) =
                if other.len() < chord.len() { (*other, &chord) } else { (&chord, *other) };
            long.starts_with(short)
        });
        match other {
            Some((keys, other)) if *keys == chord && *other == action => {}
            Some((keys, other)) if *keys == chord => {
                let fix = format!("bind `{other}` to another key too");
                let keys = chord_name(keys);
                return Err(format!("`{keys}` is bound to both `{other}` and `{action}`; {fix}"));
            }
            Some((keys, other)) => {
                return Err(format!(
                    "`{}` begins `{}`: one of `{other}` and `{action}` could never be reached",
                    chord_name(if keys.len() < chord.len() { keys } else { &chord }),
                    chord_name(if keys.len() < chord.len() { &chord } else { keys }),
                ));
            }
            None => {}
        }
        self.bound.insert(chord, action);
        Ok(())
    }

    pub fn meaning(&self, keys: &[Key]) -> Meaning {
        match self.bound.get(keys) {
            Some(action) => Meaning::Does(*action),
            None if self.bound.keys().any(|bound| bound.starts_with(keys)) => Meaning::Begins,
            None => Meaning::Nothing,
        }
    }

    /// How a hint names the way to an action: its key as it is bound now, else its command, else its name.
    pub fn way(&self, action: Action) -> String {
        let key = self.names(action).into_iter().next();
        let other = action.command().unwrap_or_else(|| action.as_str());
        key.unwrap_or_else(|| other.to_owned())
    }

    /// The keys of an action in words, in the order of the defaults.
    pub fn names(&self, action: Action) -> Vec<String> {
        self.chords(action).into_iter().map(chord_name).collect()
    }

    fn chords(&self, action: Action) -> Vec<&[Key]> {
        let defaults =
            DEFAULTS.iter().find(|(of, _)| *of == action).map_or(&[][..], |(_, keys)| keys);
        let of_action = self.bound.iter().filter(|(_, bound)| **bound == action);
        let mut chords: Vec<&[Key]> = of_action.map(|(keys, _)| keys.as_slice()).collect();
        let place = |keys: &[Key]| defaults.iter().position(|one| keys == [*one]);
        chords.sort_by_key(|keys| place(keys).unwrap_or(usize::MAX));
        chords
    }
}

/// A chord as `[tui.keys]` has it.
pub fn written_chord(keys: &[Key]) -> String {
    keys.iter().map(|key| name(*key).to_lowercase()).collect::<Vec<_>>().join(",")
}

/// A chord as people write it.
pub fn chord_name(keys: &[Key]) -> String {
    keys.iter().map(|key| name(*key)).collect::<Vec<_>>().join(" ")
}

fn parse_chord(text: &str) -> Option<Vec<Key>> {
    let mut keys = Vec::new();
    let mut rest = text;
    loop {
        // A comma can be a key itself.
        let comma = rest
            .char_indices()
            .skip(1)
            .find(|(at, char)| *char == ',' && !rest[..*at].ends_with('+') && *at + 1 < rest.len());
        let (word, after) = match comma {
            Some((at, _)) => (&rest[..at], &rest[at + 1..]),
            None => (rest, ""),
        };
        keys.push(parse(word)?);
        if after.is_empty() {
            return Some(keys);
        }
        rest = after;
    }
}

/// A key as people write it.
pub fn name(key: Key) -> String {
    struct Name(Key);
    impl fmt::Display for Name {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let Key { code, ctrl, alt, shift } = self.0;
            for (held, word) in [(ctrl, "Ctrl+"), (alt, "Alt+"), (shift, "Shift+")] {
                f.write_str(if held { word } else { "" })?;
            }
            match code {
                Code::Char(' ') => f.write_str("Space"),
                Code::Char(char) => write!(f, "{}", char.to_uppercase()),
                Code::F(number) => write!(f, "F{number}"),
                Code::Escape => f.write_str("Esc"),
                Code::PageUp => f.write_str("PgUp"),
                Code::PageDown => f.write_str("PgDn"),
                other => write!(f, "{other:?}"),
            }
        }
    }
    Name(key).to_string()
}

/// Reads a key as people write it.
pub fn parse(text: &str) -> Option<Key> {
    let mut key = Key::plain(Code::Escape);
    let mut rest = text;
    loop {
        let (word, after) = match rest.split_once('+') {
            Some((word, after)) if !word.is_empty() && !after.is_empty() => (word, after),
            _ => break,
        };
        match word.to_ascii_lowercase().as_str() {
            "ctrl" => key.ctrl = true,
            "alt" => key.alt = true,
            "shift" => key.shift = true,
            _ => return None,
        }
        rest = after;
    }
    let word = rest.to_lowercase();
    key.code = match word.as_str() {
        "enter" => Code::Enter,
        "tab" => Code::Tab,
        "backspace" => Code::Backspace,
        "esc" | "escape" => Code::Escape,
        "up" => Code::Up,
        "down" => Code::Down,
        "left" => Code::Left,
        "right" => Code::Right,
        "home" => Code::Home,
        "end" => Code::End,
        "pageup" | "pgup" => Code::PageUp,
        "pagedown" | "pgdn" => Code::PageDown,
        "insert" => Code::Insert,
        "delete" => Code::Delete,
        "space" => Code::Char(' '),
        word => match word.strip_prefix('f').and_then(|number| number.parse().ok()) {
            Some(number @ 1..=24) => Code::F(number),
            _ => {
                let mut chars = word.chars();
                let char = chars.next().filter(|_| chars.next().is_none())?;
                Code::Char(char)
            }
        },
    };
    Some(key)
}
