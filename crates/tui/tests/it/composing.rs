//! Writing: editing, pastes, history, completion, the queue.

use std::time::Duration;

use windlass_coordinator::files;
use windlass_tui::app::{Effect, Input, Phase, Saved};
use windlass_tui::composer::Draft;
use windlass_tui::keys::{Code, Key};

use crate::world::World;

fn sent(effects: &[Effect]) -> Vec<String> {
    let text = |effect: &Effect| match effect {
        Effect::Send(draft) => Some(draft.expanded()),
        _ => None,
    };
    effects.iter().filter_map(text).collect()
}

#[test]
fn enter_sends_and_every_newline_key_breaks_the_line() {
    let mut world = World::new(80, 24);
    world.types("a");
    world.key(Key::shift(Code::Enter));
    world.types("b");
    world.key(Key::alt(Code::Enter));
    world.types("c");
    world.key(Key::ctrl('j'));
    world.types("d\\\ne\n");
    assert_eq!(sent(&world.take_effects()), ["a\nb\nc\nd\ne"]);
}

#[test]
fn a_large_paste_is_a_placeholder_and_sent_whole() {
    let mut world = World::new(80, 24);
    let text: String = (0..30).map(|n| format!("line {n}\n")).collect();
    world.types("look: ");
    world.paste(&text);
    world.paste(&text);
    insta::assert_snapshot!(world.shown().lines().find(|l| l.starts_with('❯')).unwrap(),
        @"❯ look: [pasted text 1: 30 lines][pasted text 2: 30 lines]");
    world.key(Key::ctrl('w'));
    world.types("\n");
    assert_eq!(sent(&world.take_effects()), [format!("look: {text}")]);
}

#[test]
fn an_unfolded_paste_can_be_edited() {
    let mut world = World::new(80, 24);
    world.paste(&"x\n".repeat(12));
    world.key(Key::ctrl('o'));
    world.types("end\n");
    assert_eq!(sent(&world.take_effects()), [format!("{}end", "x\n".repeat(12))]);
}

#[test]
fn a_cleared_draft_comes_back_from_the_history() {
    let mut world = World::new(80, 24);
    world.types("important");
    world.key(Key::ctrl('c'));
    assert!(world.app.writing.composer.is_empty());
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "important");
}

#[test]
fn history_is_searched_and_the_draft_survives() {
    let mut world = World::new(80, 24);
    for text in ["fix the parser\n", "write docs\n"] {
        world.types(text);
        world.app.outgoing.sending = None;
    }
    world.types("half");
    world.key(Key::ctrl('r'));
    world.types("pars");
    assert_eq!(world.app.writing.composer.text(), "fix the parser");
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.app.writing.composer.text(), "half");
}

#[test]
fn messages_queue_while_it_works_and_go_out_after() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.types("first\nsecond\n");
    assert_eq!(sent(&world.take_effects()), Vec::<String>::new());
    assert!(world.shown().contains("queued: first"), "{}", world.shown());
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(sent(&world.take_effects()), ["first"]);
}

#[test]
fn queued_messages_are_moved_removed_edited_and_sent_now() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.types("one\ntwo\nthree\n");
    world.key(Key::alt(Code::Up));
    world.key(Key::shift(Code::Up));
    world.key(Key::plain(Code::Char('s')));
    assert_eq!(world.take_effects(), [Effect::Steer(Draft::of("three"))]);
    world.key(Key::alt(Code::Up));
    world.key(Key::plain(Code::Enter));
    assert_eq!(world.app.writing.composer.text(), "two");
    assert_eq!(world.app.outgoing.queue.len(), 1);
}

#[test]
fn escape_interrupts_and_twice_takes_the_last_message_back() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.types("later\n");
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.take_effects(), [Effect::Interrupt]);
    world.now += Duration::from_millis(200);
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.app.writing.composer.text(), "later");
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(world.take_effects(), []);
}

/// What was queued before an interrupt waits for the person; what they write after it is read first.
#[test]
fn a_message_after_an_interrupt_goes_before_the_queue() {
    let mut world = World::new(80, 24);
    world.begin("go");
    world.input(Input::Phase(Phase::Working));
    world.types("from before\n");
    world.key(Key::plain(Code::Escape));
    world.input(Input::Phase(Phase::Idle));
    world.take_effects();
    world.types("from after\n");
    assert_eq!(world.take_effects(), [Effect::Send(Draft::of("from after"))]);
    assert!(world.shown().contains("queued: from before"), "{}", world.shown());
    assert!(world.shown().contains("the queue is on hold"), "{}", world.shown());
    // It waits through that turn too, until it is sent on.
    world.input(Input::NotSent { draft: Draft::of("from after"), why: "no".to_owned() });
    world.key(Key::ctrl('c'));
    world.input(Input::Phase(Phase::Working));
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(world.take_effects(), []);
    world.types("\n");
    assert_eq!(world.take_effects(), [Effect::Send(Draft::of("from before"))]);
    // Nothing is held any more.
    world.input(Input::NotSent { draft: Draft::of("from before"), why: "no".to_owned() });
    world.key(Key::ctrl('c'));
    world.input(Input::Phase(Phase::Working));
    world.types("the next\n");
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(world.take_effects(), [Effect::Send(Draft::of("the next"))]);
}

/// A message that waits belongs to its conversation. Only the text is offered to another one of the directory.
#[test]
fn what_was_queued_for_a_conversation_is_not_sent_in_another() {
    let mut world = World::new(80, 24);
    world.types("a first message\n");
    let saved = Saved::for_directory(&world.app);
    let mut next = World::new(80, 24);
    saved.restore(&mut next.app, &[]);
    assert!(next.shown().contains("❯ a first message"), "nothing was said yet: {}", next.shown());
    world.begin("a first message");
    world.input(Input::Phase(Phase::Working));
    world.types("queued\n");
    world.types("a draft");
    let mut next = World::new(80, 24);
    Saved::for_directory(&world.app).restore(&mut next.app, &[]);
    assert!(next.shown().contains("❯ a draft"), "{}", next.shown());
    assert!(!next.shown().contains("queued"), "{}", next.shown());
    let mut same = World::new(80, 24);
    Saved::of(&world.app).restore(&mut same.app, &[]);
    assert!(same.shown().contains("queued: queued"), "{}", same.shown());
}

#[test]
fn a_message_that_was_not_sent_comes_back() {
    let mut world = World::new(80, 24);
    world.types("hello\n");
    world.take_effects();
    let why = "no model is configured".to_owned();
    world.input(Input::NotSent { draft: Draft::of("hello"), why });
    assert_eq!(world.app.writing.composer.text(), "hello");
    assert!(world.all().contains("not sent: no model is configured"), "{}", world.all());
}

#[test]
fn files_are_completed_by_their_letters() {
    let mut world = World::new(80, 24);
    world.types("see @");
    assert_eq!(world.take_effects(), [Effect::IndexFiles]);
    let files = ["src/main.rs", "src/parser.rs", "docs/parse.md"].map(str::to_owned);
    world.input(Input::Files(files.to_vec()));
    world.types("psr");
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "see @src/parser.rs ");
}

#[test]
fn a_hundred_thousand_files_are_searched() {
    let names: Vec<String> =
        (0..100_000).map(|n| format!("crates/part{n}/src/file{n}.rs")).collect();
    assert_eq!(files::best(&names, "file77777", 3)[0], "crates/part77777/src/file77777.rs");
    assert_eq!(files::best(&names, "nosuchname", 3), Vec::<&str>::new());
}

#[test]
fn ignored_files_are_not_offered() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [(".gitignore", "target\n"), ("a.rs", ""), ("target/x.o", "")] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    assert_eq!(files::list(directory.path()), [".gitignore", "a.rs"]);
}

#[test]
fn leaving_takes_two_presses_and_offers_the_background() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.key(Key::ctrl('c'));
    assert_eq!(world.take_effects(), []);
    world.key(Key::ctrl('c'));
    assert!(
        world.shown().contains("b  leave; it continues in the background"),
        "{}",
        world.shown()
    );
    world.key(Key::plain(Code::Char('b')));
    let leave = Effect::Leave(windlass_tui::app::Leaving::Background);
    assert_eq!(world.take_effects(), [leave]);
}

#[test]
fn a_path_is_a_message_and_a_command_is_not() {
    let mut world = World::new(80, 24);
    world.types("/etc/hosts is wrong\n");
    assert_eq!(sent(&world.take_effects()), ["/etc/hosts is wrong"]);
    world.app.outgoing.sending = None;
    world.types("/status\n");
    assert_eq!(world.take_effects(), [Effect::Slash("/status".to_owned())]);
    world.types("!ls -l\n");
    assert_eq!(world.take_effects(), [Effect::Shell("ls -l".to_owned())]);
}

/// The rows of the text as they are drawn.
fn written(world: &mut World) -> Vec<String> {
    let shown = world.shown();
    let rows = shown.lines().skip_while(|line| !line.starts_with('❯'));
    rows.take_while(|line| !line.starts_with("ready")).map(str::to_owned).collect()
}

#[test]
fn rows_of_the_text_are_broken_between_words() {
    let mut world = World::new(30, 24);
    world.types("please look at the totals of the shop again ");
    assert_eq!(written(&mut world), ["❯ please look at the totals", "  of the shop again"]);
    world.types(&"x".repeat(40));
    let long = format!("  {}", "x".repeat(27));
    assert_eq!(written(&mut world)[2..], [long, format!("  {}", "x".repeat(13))]);
    world.key(Key::ctrl('w'));
    world.types("日本語の長い文字列もここで折り返します");
    let rows = written(&mut world);
    assert_eq!(
        rows[1..],
        ["  of the shop again 日本語の", "  長い文字列もここで折り返し", "  ます"]
    );
}

#[test]
fn the_cursor_goes_up_and_down_rows_broken_between_words() {
    let mut world = World::new(30, 24);
    world.types("please look at the totals of the shop again");
    world.key(Key::plain(Code::Up));
    world.types("!");
    let text = "please look at th!e totals of the shop again";
    assert_eq!(world.app.writing.composer.text(), text);
    world.key(Key::plain(Code::Down));
    world.types("?");
    assert_eq!(world.app.writing.composer.text(), format!("{text}?"));
}

#[test]
fn a_message_sent_twice_is_in_the_history_once() {
    let mut world = World::new(80, 24);
    for text in ["first\n", "again\n", "again\n"] {
        world.types(text);
        world.app.outgoing.sending = None;
    }
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "again");
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "first");
}

/// A draft that is as long as a draft can be is not lost by Ctrl+C either, and is written to the file.
#[test]
fn a_long_draft_that_is_cleared_is_kept() {
    let mut world = World::new(80, 24);
    let text = "a line of a long draft\n".repeat(8_000);
    world.paste(&text);
    world.key(Key::ctrl('c'));
    assert!(world.app.writing.composer.is_empty());
    let kept = Effect::Remember(text.clone());
    assert!(std::mem::take(&mut world.effects).contains(&kept));
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.draft().expanded(), text);
}
