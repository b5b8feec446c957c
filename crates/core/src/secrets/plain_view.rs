//! A text as a reader sees it: without the sequences that colour it, with JSON escapes read, and with long words in one
//! piece that a program has cut into lines. A key that is parted so is still a key on the screen.

/// The escape character as it is shown to models.
const SHOWN_ESCAPE: &[u8] = "␛".as_bytes();
const ESCAPE: u8 = 0x1b;

/// How many letters and digits stand before a line end within a word: programs that cut base64 and hexadecimal digits into
/// lines make them longer. Lines of prose rarely end so.
const CUT_WORD_BYTES: usize = 16;

/// What a reader sees of some bytes, and where each byte of it comes from.
pub(super) struct PlainView {
    pub bytes: Vec<u8>,
    /// Where the original of each byte begins and ends.
    places: Vec<(usize, usize)>,
}

impl PlainView {
    /// The view, where it differs from the bytes themselves, which continue a word of this length. What is begun at
    /// their end and may be left out, is.
    pub fn of(bytes: &[u8], mut word: usize) -> Option<Self> {
        if !is_special(bytes, word) {
            return None;
        }
        let mut view = Self { bytes: Vec::new(), places: Vec::new() };
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let is_begun = rest.len() < SHOWN_ESCAPE.len() && SHOWN_ESCAPE.starts_with(rest);
            let (byte, length) = match (line_end(rest), rest) {
                (Some(length), _) if is_cut(word, &rest[length..]) => {
                    word = 0;
                    (None, length)
                }
                (_, rest) if rest.starts_with(SHOWN_ESCAPE) => (Some(ESCAPE), SHOWN_ESCAPE.len()),
                (_, rest) if rest.starts_with(b"\\u") => json_escape(rest),
                (_, rest) if is_begun || rest == b"\\" => (None, rest.len()),
                (_, rest) => (Some(rest[0]), 1),
            };
            let end = at + length;
            match byte {
                Some(ESCAPE) => at = end + sequence_length(&bytes[end..]),
                Some(byte) => {
                    word = word_with(word, byte);
                    view.bytes.push(byte);
                    view.places.push((at, end));
                    at = end;
                }
                None => at = end,
            }
        }
        Some(view)
    }

    /// Where a part of the view is in the original.
    pub fn original(&self, start: usize, end: usize) -> (usize, usize) {
        (self.places[start].0, self.places[end - 1].1)
    }
}

/// How long the word is at the end of what a reader got so far, where it was of this length before these bytes.
pub(super) fn word_after(word: usize, bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(CUT_WORD_BYTES)..];
    let word = if last.len() < CUT_WORD_BYTES { word } else { 0 };
    last.iter().fold(word, |word, byte| word_with(word, *byte))
}

fn word_with(word: usize, byte: u8) -> usize {
    // The letters of base64 in both alphabets, and of most keys.
    let is_of_word = byte.is_ascii_alphanumeric() || b"+/=-_.".contains(&byte);
    if is_of_word { word + 1 } else { 0 }
}

/// Whether a line end between a word of this length and what follows is within one.
fn is_cut(word: usize, after: &[u8]) -> bool {
    word >= CUT_WORD_BYTES && after.first().is_none_or(|byte| word_with(0, *byte) > 0)
}

/// Whether a view of these bytes may differ from them. Asked of every text: most bytes cost one comparison.
fn is_special(bytes: &[u8], word: usize) -> bool {
    let ends_word = |at: usize| word_after(word, &bytes[..at]) >= CUT_WORD_BYTES;
    let is_before = |at: usize, byte: u8| bytes.get(at + 1).is_none_or(|next| *next == byte);
    bytes.iter().enumerate().any(|(at, &byte)| match byte {
        ESCAPE => true,
        b'\\' => is_before(at, b'u') || ends_word(at),
        b'\n' | b'\r' => ends_word(at),
        0xe2 => is_before(at, SHOWN_ESCAPE[1]),
        _ => false,
    })
}

/// How long the line end is that these bytes begin with, also as JSON writes it, or the beginning of one.
fn line_end(bytes: &[u8]) -> Option<usize> {
    const LINE_ENDS: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];
    if !matches!(bytes.first(), Some(b'\n' | b'\r' | b'\\')) {
        return None;
    }
    LINE_ENDS
        .into_iter()
        .find(|end| bytes.starts_with(end))
        .map(<[u8]>::len)
        .or_else(|| LINE_ENDS.iter().any(|end| end.starts_with(bytes)).then_some(bytes.len()))
}

/// The character of `\u002d` and the length of that; nothing for one that is cut off, the backslash alone for another.
fn json_escape(text: &[u8]) -> (Option<u8>, usize) {
    let digits = &text[2..text.len().min(6)];
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let number = std::str::from_utf8(digits).ok().and_then(|hex| u32::from_str_radix(hex, 16).ok());
    match (is_hex, digits.len(), number.and_then(|number| u8::try_from(number).ok())) {
        (true, 4, Some(byte)) if byte.is_ascii() => (Some(byte), 6),
        (true, 0..4, _) if text.len() < 6 => (None, text.len()),
        _ => (Some(b'\\'), 1),
    }
}

/// How long the rest of an escape sequence is.
fn sequence_length(text: &[u8]) -> usize {
    let is_parameter = |byte: &&u8| (b' '..=b'?').contains(*byte);
    match text.first() {
        Some(b'[') => {
            let parameters = text[1..].iter().take_while(is_parameter).count();
            (1 + parameters + 1).min(text.len())
        }
        Some(b']') => {
            let ends = |&byte: &u8| matches!(byte, 0x07 | ESCAPE | b'\n');
            text.iter().position(ends).map_or(text.len(), |end| end + 1)
        }
        Some(_) => 1,
        None => 0,
    }
}
