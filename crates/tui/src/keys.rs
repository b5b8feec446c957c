//! Bytes from a terminal as keys, pastes and answers of the terminal.
//!
//! Invariants:
//! - Nothing is lost and nothing is guessed: a character or a sequence that comes in several pieces is one event.
//! - Pasted text is one event and never a key. A paste whose end is lost is handed over after [`PASTE_PATIENCE`]. On a
//!   terminal that does not mark pastes, several lines at once are one: nobody types so fast.
//! - A sequence has a longest length; an answer that nobody asked for is dropped.

use std::time::Duration;

/// How long the rest of a sequence may take after an escape. An escape key sends nothing more.
pub const ESCAPE_PATIENCE: Duration = Duration::from_millis(40);
/// How long a paste may be silent before its end counts as lost.
pub const PASTE_PATIENCE: Duration = Duration::from_millis(1000);

/// The longest sequence of a key.
const MAX_SEQUENCE: usize = 64;
/// The longest answer of a terminal.
const MAX_ANSWER: usize = 4096;
/// The largest paste; what is longer belongs into a file. Nobody takes one that has grown to this.
pub const MAX_PASTE: usize = 4 * 1024 * 1024;

/// The fewest bytes of an unmarked paste. Fewer may have been typed while a slow connection held them back.
const LEAST_UNMARKED: usize = 64;

const ESCAPE: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key of the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Insert,
    Delete,
    F(u8),
}

/// A key with the modifiers that were held. Shift is part of a character, except where the terminal says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

impl Key {
    pub const fn plain(code: Code) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    pub const fn ctrl(char: char) -> Self {
        Self { code: Code::Char(char), ctrl: true, alt: false, shift: false }
    }

    pub const fn alt(code: Code) -> Self {
        Self { code, ctrl: false, alt: true, shift: false }
    }

    pub const fn shift(code: Code) -> Self {
        Self { code, ctrl: false, alt: false, shift: true }
    }

    /// The character that a key types.
    pub fn typed(self) -> Option<char> {
        match self.code {
            Code::Char(char) if !self.ctrl && !self.alt => Some(char),
            _ => None,
        }
    }
}

/// Which way is scrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

/// One notch of the mouse's wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wheel {
    pub direction: Direction,
    /// The row of the screen that the mouse points at; the first is 0.
    pub row: usize,
}

/// What came from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Key(Key),
    Paste(String),
    Wheel(Wheel),
    /// Whether the window has the focus.
    Focus(bool),
    /// The terminal tells more about keys than old ones do.
    EnhancedKeys,
    /// The terminal is GNU screen.
    GnuScreen,
}

/// Reads bytes as they come.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// The paste that has begun.
    paste: Option<Vec<u8>>,
    /// A paste that the terminal does not mark, while more of it may come.
    unmarked: Vec<u8>,
}

/// What the bytes in hand are.
enum Read {
    /// This many bytes are this event, or nothing that matters.
    Done(usize, Option<Event>),
    /// This many bytes begin a paste.
    PasteBegins(usize),
    /// More must come.
    Partial,
}

impl Decoder {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        if self.take_unmarked(bytes) {
            return events;
        }
        events.extend(self.end_unmarked());
        self.bytes.extend_from_slice(bytes);
        loop {
            if self.paste.is_some() && !self.take_paste(&mut events) {
                break;
            }
            if self.bytes.is_empty() {
                break;
            }
            match read(&self.bytes) {
                Read::Done(count, event) => {
                    self.bytes.drain(..count);
                    events.extend(event);
                }
                Read::PasteBegins(count) => {
                    self.bytes.drain(..count);
                    self.paste = Some(Vec::new());
                }
                Read::Partial => break,
            }
        }
        events
    }

    /// How long to wait for more before [`Decoder::expire`]; `None` where nothing is pending.
    pub fn patience(&self) -> Option<Duration> {
        match (&self.paste, self.bytes.is_empty() && self.unmarked.is_empty()) {
            (Some(_), _) => Some(PASTE_PATIENCE),
            (None, false) => Some(ESCAPE_PATIENCE),
            (None, true) => None,
        }
    }

    /// Nothing more came: what is pending is all there is.
    pub fn expire(&mut self) -> Vec<Event> {
        if let Some(paste) = self.end_unmarked() {
            return vec![paste];
        }
        if let Some(mut paste) = self.paste.take() {
            paste.append(&mut self.bytes);
            return vec![Event::Paste(pasted(&paste))];
        }
        let pending = std::mem::take(&mut self.bytes);
        match pending.as_slice() {
            [ESCAPE] => vec![Event::Key(Key::plain(Code::Escape))],
            [ESCAPE, ESCAPE] => vec![Event::Key(Key::plain(Code::Escape)); 2],
            [ESCAPE, b'['] => vec![Event::Key(Key::alt(Code::Char('[')))],
            [ESCAPE, b'O'] => vec![Event::Key(Key::alt(Code::Char('O')))],
            _ => Vec::new(),
        }
    }

    /// Takes bytes that are a paste which the terminal does not mark, or more of it.
    fn take_unmarked(&mut self, bytes: &[u8]) -> bool {
        let is_idle = self.paste.is_none() && self.bytes.is_empty();
        let is_text =
            |byte: &u8| *byte >= b' ' && *byte != 0x7f || matches!(byte, b'\r' | b'\n' | b'\t');
        let has_lines = bytes.trim_ascii_end().iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        let begins = bytes.len() >= LEAST_UNMARKED && has_lines;
        let continues = !self.unmarked.is_empty();
        let is_paste = is_idle && (begins || continues) && bytes.iter().all(is_text);
        if is_paste {
            let room = MAX_PASTE.saturating_sub(self.unmarked.len());
            self.unmarked.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        is_paste
    }

    fn end_unmarked(&mut self) -> Option<Event> {
        let paste = std::mem::take(&mut self.unmarked);
        (!paste.is_empty()).then(|| Event::Paste(pasted(&paste)))
    }

    /// Moves what belongs to the paste; false while its end has not come.
    fn take_paste(&mut self, events: &mut Vec<Event>) -> bool {
        let Some(paste) = &mut self.paste else { return true };
        // The end may have come in two pieces: looked for from a little before the new part.
        let from = paste.len().saturating_sub(PASTE_END.len());
        paste.append(&mut self.bytes);
        match find(&paste[from..], PASTE_END).map(|at| from + at) {
            Some(at) => {
                self.bytes = paste.split_off(at + PASTE_END.len());
                paste.truncate(at);
                events.push(Event::Paste(pasted(paste)));
                self.paste = None;
                true
            }
            None => {
                // What is too much is dropped up to the end of the paste: as keys it would be sent line by line.
                let kept = MAX_PASTE.saturating_sub(PASTE_END.len());
                let last = paste.len().saturating_sub(PASTE_END.len());
                paste.drain(kept.min(last)..last);
                false
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Pasted bytes as text: line ends as we write them, no control characters besides them and tabs.
fn pasted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}

fn read(bytes: &[u8]) -> Read {
    match bytes {
        [] => Read::Partial,
        [ESCAPE] => Read::Partial,
        // The first function keys of the console of Linux.
        [ESCAPE, b'[', b'[', key @ b'A'..=b'E', ..] => {
            Read::Done(4, Some(Event::Key(Key::plain(Code::F(key - b'A' + 1)))))
        }
        [ESCAPE, b'[', b'['] => Read::Partial,
        [ESCAPE, b'[', ..] => read_control(bytes),
        [ESCAPE, b'O', ..] => match bytes.get(2) {
            None => Read::Partial,
            Some(end) => Read::Done(3, function_key(&[], *end).map(Event::Key)),
        },
        [ESCAPE, b']' | b'P' | b'_' | b'^' | b'X', ..] => read_answer(bytes),
        [ESCAPE, rest @ ..] => match read(rest) {
            Read::Done(count, Some(Event::Key(key))) => {
                Read::Done(count + 1, Some(Event::Key(Key { alt: true, ..key })))
            }
            Read::Done(count, event) => Read::Done(count + 1, event),
            Read::PasteBegins(count) => Read::PasteBegins(count + 1),
            Read::Partial => Read::Partial,
        },
        [byte @ (0..=0x1f | 0x7f), ..] => Read::Done(1, Some(Event::Key(control_key(*byte)))),
        _ => read_character(bytes),
    }
}

fn read_character(bytes: &[u8]) -> Read {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Read::Done(1, None),
    };
    let Some(own) = bytes.get(..length) else {
        // A byte that cannot continue it ends the wait.
        let broken = bytes[1..].iter().any(|byte| !(0x80..=0xbf).contains(byte));
        return if broken { Read::Done(1, None) } else { Read::Partial };
    };
    match std::str::from_utf8(own).ok().and_then(|text| text.chars().next()) {
        Some(char) if !char.is_control() => {
            Read::Done(length, Some(Event::Key(Key::plain(Code::Char(char)))))
        }
        Some(_) => Read::Done(length, None),
        None => Read::Done(1, None),
    }
}

fn control_key(byte: u8) -> Key {
    match byte {
        b'\r' => Key::plain(Code::Enter),
        b'\t' => Key::plain(Code::Tab),
        0x7f | 0x08 => Key::plain(Code::Backspace),
        0 => Key::ctrl(' '),
        1..=26 => Key::ctrl(char::from(b'a' + byte - 1)),
        _ => Key::ctrl(char::from(byte + 0x40)),
    }
}

/// `ESC [`, parameters, and one byte that ends it.
fn read_control(bytes: &[u8]) -> Read {
    let body = &bytes[2..];
    let is_end = |byte: &u8| (0x40..=0x7e).contains(byte);
    let is_part = |byte: &u8| (0x20..=0x3f).contains(byte);
    let parameters = body.iter().take_while(|byte| is_part(byte)).count();
    let Some(end) = body.get(parameters) else {
        return if body.len() > MAX_SEQUENCE {
            Read::Done(bytes.len(), None)
        } else {
            Read::Partial
        };
    };
    let count = 2 + parameters + 1;
    if !is_end(end) {
        // Not a sequence after all; the byte that breaks it is read again.
        return Read::Done(count - 1, None);
    }
    let parameters = &body[..parameters];
    match (parameters, end) {
        (b"200", b'~') => Read::PasteBegins(count),
        ([], b'I') => Read::Done(count, Some(Event::Focus(true))),
        ([], b'O') => Read::Done(count, Some(Event::Focus(false))),
        ([b'?', ..], b'u') => Read::Done(count, Some(Event::EnhancedKeys)),
        // Terminals say what they are by a number; this is the letter S.
        ([b'>', b'8', b'3', b';', ..], b'c') => Read::Done(count, Some(Event::GnuScreen)),
        ([b'<', report @ ..], b'M') => Read::Done(count, wheel(report).map(Event::Wheel)),
        ([b'?' | b'>' | b'<' | b'=', ..], _) => Read::Done(count, None),
        _ => Read::Done(count, function_key(parameters, *end).map(Event::Key)),
    }
}

/// The wheel in a report of the mouse: its button, column and row. Clicks mean nothing here, so the one that gives a
/// window the focus answers nothing.
fn wheel(report: &[u8]) -> Option<Wheel> {
    const MODIFIERS: u32 = 0b1_1100;
    let mut fields = std::str::from_utf8(report).ok()?.split(';');
    let button: u32 = fields.next()?.parse().ok()?;
    let row: usize = fields.nth(1)?.parse().ok()?;
    let direction = match button & !MODIFIERS {
        64 => Direction::Up,
        65 => Direction::Down,
        _ => return None,
    };
    Some(Wheel { direction, row: row.saturating_sub(1) })
}

/// An answer in a string: up to BEL or `ESC \`.
fn read_answer(bytes: &[u8]) -> Read {
    let end = bytes[2..].iter().position(|byte| *byte == 0x07);
    let long_end = find(&bytes[2..], b"\x1b\\");
    match (end, long_end) {
        (Some(end), Some(long)) if long < end => Read::Done(2 + long + 2, None),
        (Some(end), _) => Read::Done(2 + end + 1, None),
        (None, Some(long)) => Read::Done(2 + long + 2, None),
        (None, None) if bytes.len() > MAX_ANSWER => Read::Done(bytes.len(), None),
        (None, None) => Read::Partial,
    }
}

/// The key of a sequence; `None` where it has no meaning here or is a release.
fn function_key(parameters: &[u8], end: u8) -> Option<Key> {
    let text = std::str::from_utf8(parameters).ok()?;
    let mut fields = text.split(';');
    let mut first = fields.next().unwrap_or_default().split(':');
    let number: u32 = first.next().unwrap_or_default().parse().unwrap_or(1);
    let on_latin_layout: Option<u32> = first.nth(1).and_then(|number| number.parse().ok());
    let mut second = fields.next().unwrap_or_default().split(':');
    let modifiers: u32 = second.next().unwrap_or_default().parse().unwrap_or(1);
    let is_release = second.next() == Some("3");
    if is_release {
        return None;
    }
    // The older form of the same: 27 ; modifiers ; character ~
    if (number, end) == (27, b'~') && text.starts_with("27;") {
        let char = fields.next()?.parse().ok()?;
        return with_modifiers(code_of(char)?, modifiers);
    }
    let code = match end {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'P' => Code::F(1),
        b'Q' => Code::F(2),
        b'R' => Code::F(3),
        b'S' => Code::F(4),
        b'M' if parameters.is_empty() => Code::Enter,
        b'Z' => return Some(Key { shift: true, ..with_modifiers(Code::Tab, modifiers)? }),
        b'u' => shortcut(code_of(number)?, on_latin_layout, modifiers),
        b'~' => match number {
            1 | 7 => Code::Home,
            2 => Code::Insert,
            3 => Code::Delete,
            4 | 8 => Code::End,
            5 => Code::PageUp,
            6 => Code::PageDown,
            11..=15 => Code::F((number - 10) as u8),
            17..=21 => Code::F((number - 11) as u8),
            23..=26 => Code::F((number - 12) as u8),
            28 | 29 => Code::F((number - 13) as u8),
            31..=34 => Code::F((number - 14) as u8),
            _ => return None,
        },
        _ => return None,
    };
    with_modifiers(code, modifiers)
}

/// A key with modifiers is known by its place: Ctrl+C is the same key on a Cyrillic layout, where it types another
/// letter.
fn shortcut(code: Code, on_latin_layout: Option<u32>, modifiers: u32) -> Code {
    const ALT_AND_CTRL: u32 = 0b110;
    let is_shortcut = modifiers.saturating_sub(1) & ALT_AND_CTRL != 0;
    match (code, on_latin_layout.and_then(code_of)) {
        (Code::Char(own), Some(latin)) if is_shortcut && !own.is_ascii() => latin,
        (code, _) => code,
    }
}

/// The key of a number as the enhanced protocol has it.
fn code_of(number: u32) -> Option<Code> {
    Some(match number {
        9 => Code::Tab,
        13 | 57414 => Code::Enter,
        27 => Code::Escape,
        8 | 127 => Code::Backspace,
        57376..=57387 => Code::F((number - 57363) as u8),
        57399..=57408 => Code::Char(char::from(b'0' + (number - 57399) as u8)),
        57417 => Code::Left,
        57418 => Code::Right,
        57419 => Code::Up,
        57420 => Code::Down,
        57421 => Code::PageUp,
        57422 => Code::PageDown,
        57423 => Code::Home,
        57424 => Code::End,
        57425 => Code::Insert,
        57426 => Code::Delete,
        // Other numbers of that range are keys without a meaning here, such as a modifier by itself.
        57344..=63743 => return None,
        number => Code::Char(char::from_u32(number).filter(|char| !char.is_control())?),
    })
}

fn with_modifiers(code: Code, modifiers: u32) -> Option<Key> {
    let bits = modifiers.saturating_sub(1);
    let (shift, alt, ctrl) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
    // Super, hyper and meta: the window manager's, not ours.
    if bits & 0b11_1000 != 0 {
        return None;
    }
    let code = match code {
        Code::Char(char) if ctrl || alt => Code::Char(char.to_lowercase().next().unwrap_or(char)),
        Code::Char(char) if shift => Code::Char(char.to_uppercase().next().unwrap_or(char)),
        code => code,
    };
    let is_typed = matches!(code, Code::Char(_)) && !ctrl && !alt;
    Some(Key { code, ctrl, alt, shift: shift && !is_typed })
}
