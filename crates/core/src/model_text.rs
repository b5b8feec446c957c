//! Text that a model reads and that nobody of us wrote: outputs, files, pages, what servers and skills say of themselves.
//!
//! Invariants:
//! - No control character reaches a model or, through it, a terminal.
//! - No character reaches a model that a person who reads the same text does not see.

/// A text with its controls and hidden characters made visible: an escape sequence shows as `␛[31m` and commands no
/// terminal. Idempotent.
pub fn neutralize(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => clean.push(letter),
            '\r' if letters.peek() == Some(&'\n') => {}
            '\0' => clean.push(char::REPLACEMENT_CHARACTER),
            // The Unicode pictures of the control characters stand in their order.
            '\u{1}'..='\u{1f}' => {
                clean.push(char::from_u32(0x2400 + letter as u32).unwrap_or(' '));
            }
            '\u{7f}' => clean.push('␡'),
            '\u{80}'..='\u{9f}' => clean.push(char::REPLACEMENT_CHARACTER),
            // Part of a picture or of a word in scripts that need it; hidden anywhere else.
            '\u{200c}' | '\u{200d}' if joins(clean.chars().next_back(), letters.peek()) => {
                clean.push(letter);
            }
            // How an emoji is drawn; anywhere else, and one after another, they can carry text.
            '\u{fe0e}' | '\u{fe0f}' if selects(clean.chars().next_back(), letters.peek()) => {
                clean.push(letter);
            }
            hidden if is_invisible(hidden) => {
                clean.push_str(&format!("\\u{{{:X}}}", u32::from(hidden)));
            }
            _ => clean.push(letter),
        }
    }
    clean
}

/// Whether a joiner between these two letters is part of how they are written. One joiner after another, or between
/// letters that are written the same without it, could carry text.
fn joins(before: Option<char>, after: Option<&char>) -> bool {
    let before = before.is_some_and(|letter| takes_joiners(letter) || is_selector(letter));
    before && after.is_some_and(|letter| takes_joiners(*letter))
}

/// Whether a selector after this letter says how it is drawn.
fn selects(before: Option<char>, after: Option<&char>) -> bool {
    before.is_some_and(|letter| match letter {
        '0'..='9' | '#' | '*' => after == Some(&'\u{20e3}'),
        _ => is_picture(letter),
    })
}

/// Scripts whose letters join, from Arabic to those of South and South East Asia, and pictures.
fn takes_joiners(letter: char) -> bool {
    let is_joining = matches!(letter,
        '\u{600}'..='\u{109f}' | '\u{1700}'..='\u{1cff}' | '\u{a800}'..='\u{abff}'
        | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10a00}'..='\u{11fff}'
        | '\u{1e900}'..='\u{1e95f}');
    (is_joining || is_picture(letter)) && !is_invisible(letter)
}

/// Characters that are drawn as text or as a picture.
fn is_picture(letter: char) -> bool {
    matches!(letter,
        '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{214f}' | '\u{2190}'..='\u{27bf}'
        | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn is_selector(letter: char) -> bool {
    matches!(letter, '\u{fe0e}' | '\u{fe0f}')
}

/// Characters that have no picture and that can carry text a person does not see: zero-width, bidirectional
/// and tag characters, fillers, private ones beyond those of common fonts, and what is no character.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}' | '\u{16fe4}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
        // Never a character: the last two of each plane.
        || u32::from(letter) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_marked_and_joined_pictures_are_not() {
        assert_eq!(neutralize("a\u{200b}b\u{202e}c\u{e0041}"), "a\\u{200B}b\\u{202E}c\\u{E0041}");
        let family = "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم";
        assert_eq!(neutralize(family), family);
        assert_eq!(neutralize("rm\u{200d} -rf"), "rm\\u{200D} -rf");
        for drawn in ["❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "👁\u{fe0f}\u{200d}🗨"] {
            assert_eq!(neutralize(drawn), drawn);
        }
        let carried = "é\u{200d}\u{200c}é\u{200d}漢 م\u{200c}\u{200d}م 漢\u{fe0f}\u{fff0}";
        let marked = "é\\u{200D}\\u{200C}é\\u{200D}漢 م\\u{200C}\\u{200D}م 漢\\u{FE0F}\\u{FFF0}";
        assert_eq!(neutralize(carried), marked);
        assert_eq!(
            neutralize("\u{fffc}\u{ffff}\u{1fffe}\u{fdd0}\u{100041}\u{e0b0}"),
            "\\u{FFFC}\\u{FFFF}\\u{1FFFE}\\u{FDD0}\\u{100041}\u{e0b0}"
        );
        let carried = "❤\u{fe0f}\u{fe01}\u{fe0f}a\u{fe0f}\u{34f}\u{2800}\u{1bca0}";
        let marked = "❤\u{fe0f}\\u{FE01}\\u{FE0F}a\\u{FE0F}\\u{34F}\\u{2800}\\u{1BCA0}";
        assert_eq!(neutralize(carried), marked);
    }
}
