use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// Reads the text back from what is shown.
fn read_back(shown: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = shown;
    while let Some(first) = rest.chars().next() {
        let run = rest.len() - rest.trim_start_matches('\\').len();
        let after: Vec<_> = units(&rest.as_bytes()[run..]);
        if run > 0 && looks_like_an_escape(&after) {
            text.extend(std::iter::repeat_n(b'\\', run / 2));
            rest = &rest[run..];
            let end = if rest.starts_with('x') { 3 } else { rest.find('}').unwrap() + 1 };
            let (escape, more) = rest.split_at(end);
            rest = more;
            if run.is_multiple_of(2) {
                text.extend(escape.bytes());
                continue;
            }
            let digits = escape.trim_matches(|char: char| !char.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).unwrap();
            match escape.starts_with('x') {
                true => text.push(u8::try_from(number).unwrap()),
                false => text.extend(char::from_u32(number).unwrap().to_string().bytes()),
            }
        } else if let Some(more) = rest.strip_prefix(TAB) {
            text.push(b'\t');
            rest = more;
        } else {
            let end = run.max(first.len_utf8());
            text.extend(rest[..end].bytes());
            rest = &rest[end..];
        }
    }
    text
}

#[test]
fn what_would_be_hidden_is_escaped_and_nothing_is_dropped() {
    let attack = "git push origin main '\u{1b}]0;'; rm victim; : '\u{7}'";
    assert_eq!(shown(attack), r"git push origin main '\x1b]0;'; rm victim; : '\x07'");
    assert_eq!(shown("notes\u{9d}/deploy\u{9c}.md"), r"notes\u{9D}/deploy\u{9C}.md");
    assert_eq!(shown("a\u{202e}b\u{200b}c\u{feff}"), r"a\u{202E}b\u{200B}c\u{FEFF}");
    assert_eq!(shown("\u{e0041}x\u{fe0f}\u{ad}\u{a0}"), r"\u{E0041}x\u{FE0F}\u{AD}\u{A0}");
    assert_eq!(shown("50%\rdone\n\tend \n"), "50%\\x0ddone\n⇥   end\\x20\n");
    assert_eq!(shown_line("a\nb"), r"a\x0ab");
    for plain in ["grüße, 漢字, हिन्दी, Привет, ελληνικά 🙂 →", "grep -E '\\.rs$' \\\n  src\\n"]
    {
        assert_eq!(shown(plain), plain);
    }
}

#[test]
fn a_backslash_is_doubled_only_before_what_reads_as_an_escape() {
    assert_eq!(shown(r"printf '\x1b[0m' C:\dir"), r"printf '\\x1b[0m' C:\dir");
    assert_eq!(shown("\\\u{1b}"), r"\\\x1b");
    assert_eq!(shown(r"\u{202E}"), r"\\u{202E}");
    assert_eq!(shown(r"\u{}"), r"\u{}");
}

#[test]
fn what_is_escaped_already_is_not_escaped_again() {
    let once = shown("git push '\u{1b}]0;'");
    assert_eq!(shown_once(&once), once);
    assert_eq!(shown_once("a\u{202e}b"), r"a\u{202E}b");
}

#[test]
fn letters_that_look_latin_are_escaped_in_a_latin_word() {
    assert_eq!(shown("cоpy сору"), r"c\u{43E}py сору");
    assert_eq!(shown("e\u{301} \u{37e}"), r"e\u{301} \u{37E}");
}

#[test]
fn of_characters_that_are_the_same_by_definition_one_is_escaped() {
    assert_eq!(
        (shown("\u{929}").as_str(), shown("\u{928}\u{93c}").as_str()),
        ("\u{929}", "\u{928}\\u{93C}")
    );
    assert_eq!(
        shown("\u{958} \u{fe8d} \u{5d1}\u{5bc}\u{5b0}"),
        "\\u{958} \\u{FE8D} \u{5d1}\u{5bc}\\u{5B0}"
    );
    assert_eq!(shown("a\u{2010}b\u{2212}c\u{2044}d"), "a\\u{2010}b\\u{2212}c\\u{2044}d");
    assert_eq!(shown("cօpy հայերեն"), "c\\u{585}py հայերեն");
    for plain in ["தமிழ் ொ", "বাংলা কো", "עברית", "العربية", "한국어", "हिन्दी"]
    {
        assert_eq!(shown(plain), plain);
    }
}

#[test]
fn marks_that_pile_up_are_escaped() {
    let one = "\u{e01}\u{e47}";
    assert_eq!(shown(one), one);
    assert_eq!(shown("\u{e01}\u{e47}\u{e47}"), "\u{e01}\u{e47}\\u{E47}");
    let pile = format!("a{}", "\u{483}\u{610}".repeat(50));
    let unescaped = shown(&pile).chars().filter(|char| !char.is_ascii()).count();
    assert!(unescaped <= MAX_MARKS, "{}", shown(&pile));
}

#[test]
fn escapes_can_be_marked() {
    assert_eq!(marked("a\u{1b}\\", &|escape| format!("<{escape}>")), r"a<\x1b>\");
}

#[test]
fn a_file_name_shows_bytes_that_are_not_text() {
    let name = |bytes: &[u8]| shown_path(Path::new(OsStr::from_bytes(bytes)));
    assert_eq!(name(b"a\xff\n"), r"a\xff\x0a");
    assert_ne!(name(b"a\xff"), name(b"a\xfe"));
    assert_ne!(name(b"a\xff"), name("a\u{fffd}".as_bytes()));
}

#[test]
fn json_keeps_its_value_without_hidden_characters() {
    let value = serde_json::json!({ "text": "a\u{9b}2J\u{202e}\u{e0041}é\n\\" });
    let text = shown_json(&value.to_string());
    assert!(text.contains(r"a\u009b2J\u202e\udb40\udc41é\n\\"), "{text}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
}

/// Characters that hide, and those of which escapes are made.
fn tricky() -> impl Strategy<Value = String> {
    let hidden = "[\u{0}-\u{20}\u{7f}-\u{a0}\u{ad}\u{300}\u{301}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}\u{e0041}\u{fe0f}\u{feff}]";
    let part = prop_oneof![
        3 => hidden.prop_map(|char| char),
        2 => r"\\{1,3}(x1b|x2|u\{202E\}|u\{\}|n)?",
        2 => "[ \t\n⇥]{1,3}",
        2 => "[a-cаеx0-9u{}é漢]",
        2 => "[\u{928}\u{929}\u{93c}\u{951}\u{958}\u{9be}\u{9c7}\u{9cb}\u{5b0}\u{5bc}\u{5d1}\u{627}\u{653}\u{622}]{1,3}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn two_different_texts_never_look_the_same(one in tricky(), other in tricky()) {
        prop_assert_eq!(read_back(&shown(&one)), one.as_bytes());
        prop_assert_eq!(read_back(&shown_line(&one)), one.as_bytes());
        prop_assert_eq!(one == other, shown(&one) == shown(&other));
        prop_assert_eq!(one == other, shown_line(&one) == shown_line(&other));
    }

    #[test]
    fn names_of_files_never_look_the_same(name in prop::collection::vec(any::<u8>(), 0..12)) {
        let shown = shown_path(Path::new(OsStr::from_bytes(&name)));
        prop_assert_eq!(read_back(&shown), name);
    }

    #[test]
    fn what_is_shown_is_in_normal_form(one in tricky(), other in tricky()) {
        prop_assert!(NFC.is_normalized(&shown(&one)), "{:?}", shown(&one));
        // So two texts that a normalization makes one do not look the same either.
        let normal = NFC.normalize(&one).into_owned();
        prop_assert_eq!(one == normal, shown(&one) == NFC.normalize(&shown(&normal)).into_owned());
        prop_assert_eq!(one == other, NFC.normalize(&shown(&one)) == NFC.normalize(&shown(&other)));
    }

    #[test]
    fn nothing_hidden_remains(text in tricky()) {
        let shown = shown(&text);
        prop_assert!(shown.chars().all(|char| char == '\n' || char == '⇥' || !is_hidden(char)));
        prop_assert!(shown.split('\n').all(|line| line.is_empty() || line.ends_with(TAB) || !line.ends_with(' ')));
    }
}
