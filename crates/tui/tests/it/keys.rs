//! Bytes of terminals as keys and pastes.

use proptest::prelude::*;
use windlass_tui::app::{Effect, Input};
use windlass_tui::keymap::{Action, Keymap, Meaning, name, parse};
use windlass_tui::keys::{Code, Decoder, Direction, Event, Key, MAX_PASTE, Wheel};
use windlass_tui::overlay::{DiffOf, Overlay, ViewKind};

use crate::world::{PLAIN, World, bindings, settings};

fn read(bytes: &[u8]) -> Vec<Event> {
    let mut decoder = Decoder::default();
    let mut events = decoder.push(bytes);
    events.extend(decoder.expire());
    events
}

fn key(bytes: &[u8]) -> Key {
    match read(bytes).as_slice() {
        [Event::Key(key)] => *key,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_of_old_and_of_enhanced_terminals_are_read() {
    let ctrl_shift_m = Key { shift: true, ..Key::ctrl('m') };
    let shift_enter = Key::shift(Code::Enter);
    for (bytes, wanted) in [
        (&b"a"[..], Key::plain(Code::Char('a'))),
        ("ß".as_bytes(), Key::plain(Code::Char('ß'))),
        (b"\r", Key::plain(Code::Enter)),
        (b"\n", Key::ctrl('j')),
        (b"\x03", Key::ctrl('c')),
        (b"\x1b", Key::plain(Code::Escape)),
        (b"\x1b[A", Key::plain(Code::Up)),
        (b"\x1bOA", Key::plain(Code::Up)),
        (b"\x1b[1;5D", Key { ctrl: true, ..Key::plain(Code::Left) }),
        (b"\x1b[1;3A", Key::alt(Code::Up)),
        (b"\x1b[3~", Key::plain(Code::Delete)),
        (b"\x1b[15~", Key::plain(Code::F(5))),
        (b"\x1b[Z", Key::shift(Code::Tab)),
        (b"\x1b\r", Key::alt(Code::Enter)),
        (b"\x1bm", Key::alt(Code::Char('m'))),
        (b"\x1b[13;2u", shift_enter),
        (b"\x1b[27;2;13~", shift_enter),
        (b"\x1b[109;6u", ctrl_shift_m),
        (b"\x1b[109:77;6u", ctrl_shift_m),
        (b"\x1b[97;1:1u", Key::plain(Code::Char('a'))),
        (b"\x1b[97;2u", Key::plain(Code::Char('A'))),
        (b"\x1b[57414;2u", shift_enter),
    ] {
        assert_eq!(key(bytes), wanted, "{}", bytes.escape_ascii());
    }
}

#[test]
fn releases_and_answers_of_the_terminal_are_no_keys() {
    for bytes in
        [&b"\x1b[97;1:3u"[..], b"\x1b[?62;22c", b"\x1b]11;rgb:0/0/0\x1b\\", b"\x1bP1+r\x1b\\"]
    {
        assert_eq!(read(bytes), [], "{}", bytes.escape_ascii());
    }
    assert_eq!(read(b"\x1b[?1u"), [Event::EnhancedKeys]);
    assert_eq!(read(b"\x1b[>83;40900;0c\x1b[>84;0;0c"), [Event::GnuScreen]);
    assert_eq!(read(b"\x1b[I\x1b[O"), [Event::Focus(true), Event::Focus(false)]);
}

#[test]
fn a_paste_is_one_event_with_plain_line_ends() {
    let pasted = read(b"\x1b[200~one\r\ntwo\rthree \x1b[31m\x03y\x1b[201~z");
    assert_eq!(
        pasted,
        [Event::Paste("one\ntwo\nthree [31my".to_owned()), Event::Key(Key::plain(Code::Char('z')))]
    );
}

#[test]
fn a_paste_without_an_end_is_handed_over() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.push(b"\x1b[200~lost"), []);
    assert!(decoder.patience().is_some());
    assert_eq!(decoder.expire(), [Event::Paste("lost".to_owned())]);
    assert_eq!(decoder.push(b"a"), [Event::Key(Key::plain(Code::Char('a')))]);
}

/// The rest of a paste that is too large is no keys: its lines would be sent, and run where they begin with `!`.
#[test]
fn what_is_too_much_of_a_paste_is_not_typed() {
    let line = b"!touch this; 0123456789 0123456789 0123456789 0123456789 0123456789\r".repeat(200);
    for (begin, end) in [(&b"\x1b[200~"[..], &b"\x1b[201~"[..]), (b"", b"")] {
        let mut decoder = Decoder::default();
        let mut events = decoder.push(begin);
        for _ in 0..(MAX_PASTE / line.len() + 20) {
            events.extend(decoder.push(&line));
        }
        // The end may come in two pieces.
        let (first, second) = end.split_at(end.len() / 2);
        events.extend(decoder.push(first));
        events.extend(decoder.push(second));
        if end.is_empty() {
            events.extend(decoder.expire());
        }
        events.extend(decoder.push(b"x"));
        let [Event::Paste(text), Event::Key(key)] = events.as_slice() else {
            panic!("{} events", events.len());
        };
        assert!(text.len() > MAX_PASTE / 2 && text.len() <= MAX_PASTE);
        assert_eq!(*key, Key::plain(Code::Char('x')));
    }
    let mut world = World::new(80, 24);
    world.paste(&"!touch this\n".repeat(30_000));
    assert!(world.shown().contains("put it into a file"), "{}", world.shown());
    assert_eq!(world.take_effects(), []);
}

#[test]
fn bound_keys_replace_the_defaults() {
    let map = Keymap::with(&bindings(&[("editor", "ctrl+n f12")])).unwrap();
    assert_eq!(map.meaning(&[Key::ctrl('n')]), Meaning::Does(Action::Editor));
    assert_eq!(map.meaning(&[Key::plain(Code::F(12))]), Meaning::Does(Action::Editor));
    assert_eq!(map.meaning(&[Key::ctrl('g')]), Meaning::Nothing);
}

/// What the documentation gives as an example works by itself.
#[test]
fn a_chord_of_the_documentation_is_in_nobodys_way() {
    for (action, keys) in [("editor", "f4"), ("diff", "ctrl+x,d")] {
        assert!(Keymap::with(&bindings(&[(action, keys)])).is_ok(), "{action} = {keys:?}");
    }
}

#[test]
fn keys_up_to_f24_can_be_bound_and_are_read() {
    let map = Keymap::with(&bindings(&[("diff", "f24"), ("tasks", "shift+f13")])).unwrap();
    assert_eq!(map.meaning(&[key(b"\x1b[57387u")]), Meaning::Does(Action::Diff));
    assert_eq!(map.meaning(&[key(b"\x1b[57376;2u")]), Meaning::Does(Action::Tasks));
    let error = Keymap::with(&bindings(&[("diff", "f25")])).unwrap_err();
    assert!(error.starts_with("`f25` is not a key"), "{error}");
}

#[test]
fn a_chord_is_pressed_key_by_key() {
    let mut settings = settings(PLAIN);
    settings.keymap =
        Keymap::with(&bindings(&[("editor", "ctrl+x,ctrl+e"), ("diff", "ctrl+x,d")])).unwrap();
    let mut world = World::with(settings, 80, 24);
    world.types("half");
    world.key(Key::ctrl('x'));
    assert!(world.shown().contains("Ctrl+X …"), "{}", world.shown());
    world.key(Key::ctrl('e'));
    assert_eq!(world.take_effects(), [Effect::Edit("half".to_owned())]);
    world.key(Key::ctrl('x'));
    world.types("d");
    assert_eq!(world.take_effects(), [Effect::Load(ViewKind::Diff(DiffOf::Turn))]);
    // What belongs to no chord is not typed either, and Esc gives one up.
    world.key(Key::ctrl('x'));
    world.types("q");
    world.key(Key::ctrl('x'));
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.take_effects(), []);
    assert_eq!(world.app.writing.composer.text(), "half");
    assert!(!world.shown().contains("Ctrl+X"), "{}", world.shown());
}

#[test]
fn conflicting_and_unknown_bindings_are_refused() {
    for (pairs, wanted) in [
        (&[("editor", "ctrl+r")][..], "`Ctrl+R` is bound to both `history_search` and `editor`"),
        (&[("editor", "f5"), ("diff", "f5")], "`f5` is bound to both"),
        (&[("editor", "hyper+x")], "`hyper+x` is not a key"),
        (&[("editor", "x")], "`x` edits text"),
        (&[("editor", "ctrl+a")], "`ctrl+a` edits text"),
        (&[("edit", "f5")], "`edit` is not a key action; allowed: send,"),
        (&[("diff", "ctrl+t,d")], "`Ctrl+T` begins `Ctrl+T D`: one of `transcript` and `diff`"),
        (&[("diff", "f5,d"), ("tasks", "f5")], "`F5` begins `F5 D`"),
        (&[("diff", "x,d")], "`x,d` edits text"),
        (&[("diff", "f5,hyper+x")], "`f5,hyper+x` is not a key"),
    ] {
        let error = Keymap::with(&bindings(pairs)).unwrap_err();
        assert!(error.starts_with(wanted), "{error}");
    }
}

#[test]
fn the_wheel_is_read_and_clicks_are_not() {
    let wheel = |direction, row| Event::Wheel(Wheel { direction, row });
    let up = wheel(Direction::Up, 11);
    assert_eq!(read(b"\x1b[<64;5;12M"), std::slice::from_ref(&up));
    assert_eq!(read(b"\x1b[<68;5;12M"), [up], "with Shift held");
    assert_eq!(read(b"\x1b[<65;5;1M"), [wheel(Direction::Down, 0)]);
    assert_eq!(read(b"\x1b[<0;5;12M\x1b[<0;5;12m\x1b[<2;1;1M"), []);
    assert_eq!(read(b"\x1b[<64M\x1b[<;;M\x1b[<99999999999;1;1M"), []);
}

#[test]
fn shortcuts_are_the_same_keys_on_other_layouts() {
    // Ctrl and the key of C on a Russian keyboard; the same key by itself types its letter.
    assert_eq!(read(b"\x1b[1089::99;5u"), [Event::Key(Key::ctrl('c'))]);
    assert_eq!(read(b"\x1b[1090::110;3u"), [Event::Key(Key::alt(Code::Char('n')))]);
    assert_eq!(read(b"\x1b[1089::99;1u"), [Event::Key(Key::plain(Code::Char('с')))]);
    // On a French one A and Q have changed places: the letter counts, where it is one.
    assert_eq!(read(b"\x1b[97::113;5u"), [Event::Key(Key::ctrl('a'))]);
}

/// Old versions of screen do not mark pastes.
#[test]
fn several_lines_at_once_are_a_paste_where_none_is_marked() {
    let text = "first line of what was copied\rsecond line of what was copied\rthird line";
    let pasted = Event::Paste(text.replace('\r', "\n"));
    assert_eq!(read(text.as_bytes()), std::slice::from_ref(&pasted));
    let mut decoder = Decoder::default();
    assert_eq!(decoder.push(text.as_bytes()), []);
    assert_eq!(decoder.push(b"\rthe end\r"), []);
    let whole = format!("{}\nthe end\n", text.replace('\r', "\n"));
    assert_eq!(decoder.expire(), [Event::Paste(whole)]);
    assert_eq!(decoder.push(b"\r"), [Event::Key(Key::plain(Code::Enter))]);
    // A key that is none of the text ends it.
    assert_eq!(decoder.push(text.as_bytes()), []);
    assert_eq!(decoder.push(b"\x03"), [pasted, Event::Key(Key::ctrl('c'))]);
    // What a slow connection held back was typed, and so is a long line with its Enter.
    let typed = |text: &str| read(text.as_bytes()).len();
    assert_eq!(typed("yes\rand then the tests\r"), 23);
    assert_eq!(typed(&format!("{}\r", "x".repeat(100))), 101);
}

proptest! {
    #[test]
    fn bytes_in_pieces_are_read_as_in_one(
        text in "[a-zß漢🙂 \\x1b\\[\\]~;0-9:uA-Z\\r\\x03]{0,60}", cut in 0usize..60,
    ) {
        let bytes = text.as_bytes();
        // Several lines at once may be a paste, in pieces they may be typed.
        prop_assume!(bytes.len() < 64);
        let cut = cut.min(bytes.len());
        let mut decoder = Decoder::default();
        let mut pieces = decoder.push(&bytes[..cut]);
        pieces.extend(decoder.push(&bytes[cut..]));
        pieces.extend(decoder.expire());
        prop_assert_eq!(pieces, read(bytes));
    }

    #[test]
    fn no_bytes_break_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&bytes);
    }

    #[test]
    fn a_key_printed_and_parsed_is_the_same_key(char in "[a-z0-9]", ctrl: bool, alt: bool, shift: bool) {
        let key = Key { code: Code::Char(char.chars().next().unwrap()), ctrl, alt, shift };
        prop_assert_eq!(parse(&name(key)), Some(key));
    }
}

#[test]
fn function_keys_of_the_linux_console_are_read() {
    for (number, letter) in (1..).zip("ABCDE".chars()) {
        let bytes = format!("\u{1b}[[{letter}");
        assert_eq!(read(bytes.as_bytes()), [Event::Key(Key::plain(Code::F(number)))]);
    }
    let mut decoder = Decoder::default();
    assert_eq!(decoder.push(b"\x1b[["), []);
    assert_eq!(decoder.push(b"B"), [Event::Key(Key::plain(Code::F(2)))]);
}

#[test]
fn a_page_can_be_suspended_like_the_rest() {
    let mut world = World::new(80, 24);
    let page = windlass_tui::overlay::Page::new(ViewKind::Text, "a page", Vec::new());
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    world.key(Key::ctrl('z'));
    assert_eq!(world.take_effects(), [Effect::Suspend]);
    assert!(world.app.overlay.is_some());
}
