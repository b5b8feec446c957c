//! Editing as in vi.

use proptest::prelude::*;
use windlass_tui::app::Input;
use windlass_tui::app::{Effect, Phase};
use windlass_tui::keys::{Code, Key};

use crate::world::{COLOURS, PLAIN, World, settings};

fn world() -> World {
    let mut settings = settings(PLAIN);
    settings.vim = true;
    World::with(settings, 80, 24)
}

fn escape(world: &mut World) {
    world.key(Key::plain(Code::Escape));
}

/// What becomes of a text by these commands. `|` in the text is where the cursor is, in the result too.
fn edited(text: &str, commands: &str) -> String {
    let mut world = world();
    let at = text.find('|').unwrap();
    let before = text.replace('|', "");
    for line in before.split_inclusive('\n') {
        world.types(line.trim_end_matches('\n'));
        if line.ends_with('\n') {
            world.key(Key::ctrl('j'));
        }
    }
    escape(&mut world);
    world.types("gg0");
    let characters = before[..at].chars().count();
    for char in before.chars().take(characters) {
        world.types(if char == '\n' { "j0" } else { "l" });
    }
    for char in commands.chars() {
        match char {
            '⎋' => escape(&mut world),
            '⏎' => world.key(Key::ctrl('j')),
            '®' => world.key(Key::ctrl('r')),
            char => world.key(Key::plain(Code::Char(char))),
        }
    }
    let composer = &world.app.writing.composer;
    let (text, cursor) = (composer.text(), composer.cursor());
    format!("{}|{}", &text[..cursor], &text[cursor..])
}

#[test]
fn motions_lead_where_vi_leads() {
    for (text, commands, wanted) in [
        ("one |two three", "w", "one two |three"),
        ("one two |three", "b", "one |two three"),
        ("|one two", "e", "on|e two"),
        ("|foo.bar baz", "w", "foo|.bar baz"),
        ("|foo.bar baz", "W", "foo.bar |baz"),
        ("foo.bar |baz", "B", "|foo.bar baz"),
        ("|one two three", "2w", "one two |three"),
        ("one |two", "0", "|one two"),
        ("  one |two", "^", "  |one two"),
        ("|one two", "$", "one tw|o"),
        ("|a b c b", "fb", "a |b c b"),
        ("|a b c b", "fb;", "a b c |b"),
        ("|a b c b", "fb;,", "a |b c b"),
        ("a b c |b", "Fb", "a |b c b"),
        ("|a b c b", "tb", "a| b c b"),
        ("a b c |b", "Tb", "a b| c b"),
        ("|f(a[1], b)", "%", "f(a[1], b|)"),
        ("one\n|two\nthree", "gg", "|one\ntwo\nthree"),
        ("|one\ntwo\nthree", "G", "one\ntwo\n|three"),
        ("|one\ntwo\nthree", "2G", "one\n|two\nthree"),
        ("|one\n\ntwo", "}", "one\n|\ntwo"),
        ("one\n\nt|wo", "{", "one\n|\ntwo"),
        ("o|ne", "hh", "|one"),
        ("on|e", "ll", "on|e"),
    ] {
        assert_eq!(edited(text, commands), wanted, "{commands} in {text:?}");
    }
}

#[test]
fn operators_take_motions_counts_and_text_objects() {
    for (text, commands, wanted) in [
        ("one |two three", "dw", "one |three"),
        ("one |two three", "d2w", "one| "),
        ("one |two", "dw", "one| "),
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("one t|wo", "cwx⎋", "one t|x"),
        ("|a b", "cwx⎋", "|x b"),
        ("|a", "dWcwx⎋", "|x"),
        ("one t|wo three", "ciwx⎋", "one |x three"),
        ("say \"he|llo you\" now", "ci\"x⎋", "say \"|x\" now"),
        ("say \"he|llo you\" now", "da\"", "say | now"),
        ("f(a, g(|b), c)", "di(", "f(a, g(|), c)"),
        ("f(a, g(b), |c)", "dib", "f(|)"),
        ("x[|1] y", "da[", "x| y"),
        ("a {b |c} d", "ciBx⎋", "a {|x} d"),
        ("one\nt|wo\n\nthree", "dap", "|three"),
        ("one\n|two\nthree", "dd", "one\n|three"),
        ("one\ntwo\n|three", "dd", "one\n|two"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("|one\ntwo\nthree", "dj", "|three"),
        ("one\n|two\nthree", "ccx⎋", "one\n|x\nthree"),
        ("one |two three", "D", "one| "),
        ("one |two", "Cx⎋", "one |x"),
        ("a |b c", "x", "a | c"),
        ("|abc", "2x", "|c"),
        ("|abc", "rx", "|xbc"),
        ("|abc", "2rx", "x|xc"),
        ("|abc", "~~", "AB|c"),
        ("|one\n  two", "J", "one| two"),
        ("|one two", "dwP", "one| two"),
        ("|one two", "yiwA ⎋p", "one two on|e"),
        ("|one\ntwo", "yyjp", "one\ntwo\n|one"),
        ("one\n|two", "yyP", "one\n|two\ntwo"),
        ("|one two", "dwu", "|one two"),
        ("|one two", "dwu®", "|two"),
        ("|a a a", "cwx⎋w.w.", "x x |x"),
        ("|one", "obelow⎋", "one\nbelo|w"),
        ("|one", "Oabove⎋", "abov|e\none"),
        ("one |two", "Ix⎋", "|xone two"),
        ("one |two", "dfo", "one| "),
        ("|one two", "dtt", "|two"),
    ] {
        assert_eq!(edited(text, commands), wanted, "{commands} in {text:?}");
    }
}

#[test]
fn what_is_marked_is_changed_as_a_whole() {
    for (text, commands, wanted) in [
        ("one |two three", "vex", "one | three"),
        ("one |two three", "viwcx⎋", "one |x three"),
        ("one t|wo three", "viw~", "one |TWO three"),
        ("|one\ntwo\nthree", "Vjd", "|three"),
        ("one |two three", "vawy$p", "one two threetwo| "),
        ("one |two three", "ve⎋x", "one tw| three"),
        ("one two |three", "vbod", "one |hree"),
    ] {
        assert_eq!(edited(text, commands), wanted, "{commands} in {text:?}");
    }
    let mut settings = settings(COLOURS);
    settings.vim = true;
    let mut world = World::with(settings, 60, 10);
    world.types("one two");
    escape(&mut world);
    world.types("viw");
    assert!(world.shown().contains("VISUAL"), "{}", world.shown());
    let marked = (0..60).filter(|column| {
        let rows = 0..10u16;
        rows.into_iter()
            .any(|row| world.parser.screen().cell(row, *column).is_some_and(vt100::Cell::inverse))
    });
    assert_eq!(marked.count(), 3, "the word is marked");
}

#[test]
fn a_pasted_text_is_one_character_for_commands() {
    let mut world = world();
    world.types("see ");
    world.paste(&"line\n".repeat(20));
    world.types(" there");
    escape(&mut world);
    world.types("bbdw");
    assert_eq!(world.app.writing.composer.draft().expanded(), "see there");
    world.types("u");
    let whole = world.app.writing.composer.draft().expanded();
    assert_eq!(whole, format!("see {} there", "line\n".repeat(20)));
}

/// Esc leads to commands first; there, and where nothing is written, it interrupts.
#[test]
fn escape_still_interrupts_and_enter_still_sends() {
    let mut world = world();
    world.input(Input::Phase(Phase::Working));
    world.types("next");
    escape(&mut world);
    assert_eq!(world.take_effects(), []);
    assert!(world.shown().contains("NORMAL"), "{}", world.shown());
    escape(&mut world);
    assert_eq!(world.take_effects(), [Effect::Interrupt]);
    world.input(Input::Phase(Phase::Idle));
    world.types("\n");
    assert!(matches!(world.take_effects().as_slice(), [Effect::Send(_)]));
    // The next text is typed again.
    world.types("dd");
    assert_eq!(world.app.writing.composer.text(), "dd");
}

#[test]
fn the_way_of_editing_is_switched_in_the_conversation() {
    let mut world = World::new(80, 24);
    world.types("/vim\nabc");
    escape(&mut world);
    world.types("x");
    assert_eq!(world.app.writing.composer.text(), "ab");
    world.types("dd/vim off\n");
    world.key(Key::ctrl('c'));
    world.types("i/vim off\ndd");
    assert_eq!(world.app.writing.composer.text(), "dd");
}

proptest! {
    #[test]
    fn no_commands_break_the_text(text in ".{0,40}", commands in "[a-zA-Z0-9(){}\\[\\]\"'.,;~$^%⎋ ]{0,60}") {
        let mut world = world();
        world.paste(&text);
        escape(&mut world);
        for char in commands.chars() {
            let code = if char == '⎋' { Code::Escape } else { Code::Char(char) };
            world.key(Key::plain(code));
            let composer = &world.app.writing.composer;
            prop_assert!(composer.text().is_char_boundary(composer.cursor()));
        }
    }
}
