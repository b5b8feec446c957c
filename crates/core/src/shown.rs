//! Text on which a person can safely decide: what would be invisible, move the cursor or reorder the line is shown as
//! an escape (§15.29).
//!
//! Invariants:
//! - Nothing is dropped: the text can be read back from what is shown, so that two different texts never
//!   look the same.
//! - What is shown holds no control character but the line end, and none that has no picture of its own.
//!
//! A character below U+0080 is shown as `\x1b`, any other as `\u{202E}`, a byte that is not text as `\xff`, a
//! tab as `⇥` and three spaces. Backslashes are doubled only where they would be read as part of an escape, so
//! that `grep '\.rs'` looks as it is written. A space that ends a line is shown as `\x20`.
//!
//! A mark that is drawn over the letter before it is shown as it is where that letter has few, and not twice: one drawn
//! over itself is not seen, and a pile of them covers the lines around it.
//!
//! What is shown is in the normal form that Unicode calls NFC: of characters that are the same by definition only one is
//! shown as it is.
//!
//! Letters of other scripts that look like Latin ones are escaped in a word that has Latin letters too. A
//! word wholly of another script stays readable; no list of look-alikes can be complete.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_normalizer::properties::{
    CanonicalCombiningClassMapBorrowed, CanonicalCompositionBorrowed,
};

/// What becomes of line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    Kept,
    Escaped,
}

/// The picture of a tab. The character itself is escaped.
const TAB: &str = "⇥   ";

/// A text of several lines.
pub fn shown(text: &str) -> String {
    marked(text, &|escape| escape.to_owned())
}

/// A name or another text of one line: a line end is escaped too.
pub fn shown_line(text: &str) -> String {
    render(&units(text.as_bytes()), LineEnds::Escaped, &|escape| escape.to_owned())
}

/// A line whose hidden characters are escaped already, as the analysis of a command words it: escaped once more, the
/// escapes would look like backslashes that were typed.
pub fn shown_once(text: &str) -> Cow<'_, str> {
    match text.chars().any(is_hidden) {
        true => Cow::Owned(shown_line(text)),
        false => Cow::Borrowed(text),
    }
}

/// The name of a file, which may hold bytes that are not text.
pub fn shown_path(path: &std::path::Path) -> String {
    let units = units(path.as_os_str().as_encoded_bytes());
    render(&units, LineEnds::Escaped, &|escape| escape.to_owned())
}

/// A text of several lines whose escapes are marked, where the surface has styles.
pub fn marked(text: &str, mark: &dyn Fn(&str) -> String) -> String {
    let is_plain = |byte: u8| matches!(byte, b'!'..=b'[' | b']'..=b'~');
    if text.bytes().all(is_plain) {
        return text.to_owned();
    }
    render(&units(text.as_bytes()), LineEnds::Kept, mark)
}

/// A JSON text that is the same value and holds no hidden character: those become JSON escapes.
pub fn shown_json(json: &str) -> String {
    if json.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return json.to_owned();
    }
    let mut shown = String::with_capacity(json.len());
    for char in json.chars() {
        // Outside of strings JSON has only characters that are plain, line ends among them.
        if char == '\n' || !is_hidden(char) {
            shown.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    }
    shown
}

/// Whether a character has no picture of its own, or one that other characters have too.
pub fn is_hidden(char: char) -> bool {
    match char {
        ' '..='~' => false,
        _ if char.is_control() => true,
        _ => {
            !has_picture(char)
                || HIDDEN.iter().any(|&(from, to)| (from..=to).contains(&char))
                || !NFC.is_normalized(char.encode_utf8(&mut [0; 4]))
        }
    }
}

const NFC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfc();

/// Whether a character joins what stands before it to a picture that another text has too, or stands in another order
/// than it would have in one with the same picture.
fn joins(before: &[Unit], char: char) -> bool {
    let classes = CanonicalCombiningClassMapBorrowed::new();
    let class = |char| classes.get_u8(char);
    let last = match before.last() {
        Some(Unit::Char(last)) => *last,
        Some(Unit::Byte(_)) | None => return false,
    };
    let starter = before.iter().rev().map_while(|unit| match unit {
        Unit::Char(char) => Some(*char),
        Unit::Byte(_) => None,
    });
    let mut starter = starter.skip_while(|char| class(*char) != 0);
    let composes = |starter| CanonicalCompositionBorrowed::new().compose(starter, char).is_some();
    (class(char) != 0 && class(last) > class(char)) || starter.next().is_some_and(composes)
}

/// How many marks a letter has at most. Writing in Hebrew and in Tibetan takes this many.
const MAX_MARKS: usize = 4;

/// Whether a character is a mark that the letter before it has already, or one too many.
fn has_too_many_marks(before: &[Unit], char: char) -> bool {
    if !is_mark(char) {
        return false;
    }
    let marks =
        before.iter().rev().take_while(|unit| matches!(unit, Unit::Char(char) if is_mark(*char)));
    let marks: Vec<_> = marks.take(MAX_MARKS).collect();
    marks.len() == MAX_MARKS || marks.contains(&&Unit::Char(char))
}

/// Whether a character is drawn over the one before it: the standard library escapes it where it stands alone.
fn is_mark(char: char) -> bool {
    char > '~' && has_picture(char) && char.escape_debug().next() != Some(char)
}

/// Characters that the standard library takes for printable and that are not, or look like others.
const HIDDEN: &[(char, char)] = &[
    // Combining marks that make the same picture as a letter of its own.
    ('\u{300}', '\u{36f}'),
    ('\u{1ab0}', '\u{1aff}'),
    ('\u{1dc0}', '\u{1dff}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{3099}', '\u{309a}'),
    ('\u{fe20}', '\u{fe2f}'),
    ('\u{ff9e}', '\u{ff9f}'),
    // Parts of Korean syllables, which also have a letter of their own; fillers.
    ('\u{1100}', '\u{11ff}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{a960}', '\u{a97f}'),
    ('\u{d7b0}', '\u{d7ff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    // The same picture as another character, by definition.
    ('\u{374}', '\u{374}'),
    ('\u{37e}', '\u{37e}'),
    ('\u{387}', '\u{387}'),
    ('\u{1fef}', '\u{1fef}'),
    ('\u{1ffd}', '\u{1ffd}'),
    ('\u{2126}', '\u{2126}'),
    ('\u{212a}', '\u{212b}'),
    ('\u{2329}', '\u{232a}'),
    ('\u{f900}', '\u{faff}'),
    // Letters of Arabic as they are drawn at one place of a word.
    ('\u{fb50}', '\u{fdff}'),
    ('\u{fe70}', '\u{fefc}'),
    // Signs that are read as those of ASCII: `-`, `/`, `.`, `:`, `|`, `*`, `;`.
    ('\u{2d7}', '\u{2d7}'),
    ('\u{2010}', '\u{2012}'),
    ('\u{2024}', '\u{2024}'),
    ('\u{2043}', '\u{2044}'),
    ('\u{2212}', '\u{2212}'),
    ('\u{2215}', '\u{2217}'),
    ('\u{2223}', '\u{2223}'),
    ('\u{2236}', '\u{2236}'),
    ('\u{a789}', '\u{a789}'),
    ('\u{fe52}', '\u{fe55}'),
    ('\u{fe58}', '\u{fe58}'),
    ('\u{fe63}', '\u{fe63}'),
    ('\u{2f800}', '\u{2fa1f}'),
    // No picture: vowels, selectors and blanks of single scripts.
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{fffc}', '\u{fffc}'),
    ('\u{16fe4}', '\u{16fe4}'),
    ('\u{1d159}', '\u{1d159}'),
    ('\u{e0000}', '\u{e0fff}'),
    // The picture of a tab.
    ('⇥', '⇥'),
];

/// Whether the standard library prints a character as it is: not a format character, a space other than
/// the common one, a private or an unassigned character.
fn has_picture(char: char) -> bool {
    // As the second of a text: alone, a combining mark would be escaped too.
    let mut text = [b'a'; 5];
    let end = 1 + char.encode_utf8(&mut text[1..]).len();
    let text = std::str::from_utf8(&text[..end]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(char)
}

/// Greek, Cyrillic and Armenian letters that look like Latin ones.
const LOOK_ALIKES: &str = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοριυ\
                           АВЕЅІЈКМНОРСТУХҮԌԚԜЗаеѕіјорсухҮүһԁԛԝѵӀӏкмпг\
                           ՕՍԼՏօոսհցզյքյ";

/// One part of what is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Char(char),
    /// A byte that is not text.
    Byte(u8),
}

fn units(bytes: &[u8]) -> Vec<Unit> {
    let of_chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let valid: Vec<_> = chunk.valid().chars().map(Unit::Char).collect();
        valid.into_iter().chain(chunk.invalid().to_vec().into_iter().map(Unit::Byte))
    };
    bytes.utf8_chunks().flat_map(of_chunk).collect()
}

fn render(units: &[Unit], ends: LineEnds, mark: &dyn Fn(&str) -> String) -> String {
    let mixed = mixed_letters(units);
    let escape = |index: usize| escape(units, index, ends, &mixed);
    let mut shown = String::with_capacity(units.len());
    let mut index = 0;
    while let Some(&unit) = units.get(index) {
        if unit == Unit::Char('\\') {
            let run = units[index..].iter().take_while(|unit| **unit == Unit::Char('\\')).count();
            index += run;
            let doubled = looks_like_an_escape(&units[index..]) || escape(index).is_some();
            shown.extend(std::iter::repeat_n('\\', if doubled { 2 * run } else { run }));
            continue;
        }
        match (escape(index), unit) {
            (Some(escape), _) => shown.push_str(&mark(&escape)),
            (None, Unit::Char('\t')) => shown.push_str(TAB),
            (None, Unit::Char(char)) => shown.push(char),
            (None, Unit::Byte(_)) => {}
        }
        index += 1;
    }
    shown
}

/// The escape in place of a unit; `None` where it is shown as it is.
fn escape(units: &[Unit], index: usize, ends: LineEnds, mixed: &[bool]) -> Option<String> {
    let char = match units.get(index)? {
        Unit::Byte(byte) => return Some(format!("\\x{byte:02x}")),
        Unit::Char(char) => *char,
    };
    let ends_line = || matches!(units.get(index + 1), None | Some(Unit::Char('\n')));
    let is_escaped = match char {
        '\n' => ends == LineEnds::Escaped,
        '\t' => false,
        ' ' => ends_line(),
        ..='~' => is_hidden(char),
        _ => {
            is_hidden(char)
                || mixed.get(index) == Some(&true)
                || joins(&units[..index], char)
                || has_too_many_marks(&units[..index], char)
        }
    };
    is_escaped.then(|| match char {
        ..='\u{7f}' => format!("\\x{:02x}", u32::from(char)),
        _ => format!("\\u{{{:X}}}", u32::from(char)),
    })
}

/// Which units are letters that look like Latin ones, in a word that has Latin letters; empty for none.
fn mixed_letters(units: &[Unit]) -> Vec<bool> {
    let alike = |unit: &Unit| matches!(unit, Unit::Char(char) if LOOK_ALIKES.contains(*char));
    if units.iter().all(|unit| matches!(unit, Unit::Char(char) if char.is_ascii())) {
        return Vec::new();
    }
    let in_word = |unit: &Unit| matches!(unit, Unit::Char(char) if char.is_alphanumeric());
    let is_latin = |unit: &Unit| matches!(unit, Unit::Char(char) if char.is_ascii_alphabetic());
    let mut mixed = Vec::with_capacity(units.len());
    for word in units.chunk_by(|one, next| in_word(one) == in_word(next)) {
        let latin = word.iter().any(is_latin);
        mixed.extend(word.iter().map(|unit| latin && alike(unit)));
    }
    mixed
}

/// Whether text after a backslash reads as an escape of ours: `x1b`, `u{202E}`.
fn looks_like_an_escape(units: &[Unit]) -> bool {
    let is_hex = |unit: &Unit| matches!(unit, Unit::Char(char) if char.is_ascii_hexdigit());
    match units {
        [Unit::Char('x'), high, low, ..] => is_hex(high) && is_hex(low),
        [Unit::Char('u'), Unit::Char('{'), rest @ ..] => {
            let digits = rest.iter().take_while(|unit| is_hex(unit)).count();
            digits > 0 && rest.get(digits) == Some(&Unit::Char('}'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
