//! A screen of its own: scrolled by keys and by the wheel, and followed only from its end.

use std::time::Duration;

use windlass_tui::app::{Effect, Input};
use windlass_tui::keys::{Code, Direction, Key};
use windlass_tui::overlay::{Overlay, Page, PageLine, ViewKind};
use windlass_tui::screen::{Abilities, Screen, Size};
use windlass_tui::text::Signs;

use crate::world::World;

/// A conversation of many replies on a screen of its own.
fn long(columns: usize, rows: usize) -> (World, windlass_core::id::TaskId) {
    let mut world = World::new(columns, rows);
    let task = world.begin("count");
    for n in 0..60 {
        world.reply(task, &format!("answer {n}."));
    }
    world.types("/tui full\n");
    world.wait(Duration::from_secs(10));
    world.paint();
    (world, task)
}

/// The first reply that is in sight.
fn first_row(world: &mut World) -> String {
    let shown = world.shown();
    shown.lines().find(|line| line.starts_with("answer")).unwrap_or_default().to_owned()
}

#[test]
fn the_wheel_scrolls_back_and_to_the_end_again() {
    let (mut world, _) = long(60, 20);
    assert!(world.shown().contains("answer 59."), "{}", world.shown());
    let at_end = first_row(&mut world);
    for _ in 0..4 {
        world.wheel(Direction::Up, 3);
    }
    assert!(!world.shown().contains("answer 59."), "{}", world.shown());
    assert!(world.shown().contains("rows below"), "{}", world.shown());
    for _ in 0..8 {
        world.wheel(Direction::Down, 3);
    }
    assert_eq!(first_row(&mut world), at_end);
    assert!(!world.shown().contains("below"), "{}", world.shown());
}

#[test]
fn what_is_read_further_up_stays_while_more_is_printed() {
    let (mut world, task) = long(60, 20);
    world.wheel(Direction::Up, 3);
    let read = first_row(&mut world);
    for n in 60..90 {
        world.reply(task, &format!("answer {n}."));
        assert_eq!(first_row(&mut world), read, "after answer {n}");
    }
    // The live zone grows, and the rows that are read stay.
    world.ask("rm -r build");
    assert_eq!(first_row(&mut world), read);
    world.key(Key::plain(Code::Char('x')));
    assert_eq!(first_row(&mut world), read);
}

#[test]
fn the_end_is_followed_from_the_end_and_after_sending() {
    let (mut world, task) = long(60, 20);
    world.reply(task, "answer 60.");
    assert!(world.shown().contains("answer 60."), "{}", world.shown());
    world.key(Key::plain(Code::PageUp));
    assert!(!world.shown().contains("answer 60."), "{}", world.shown());
    world.types("more\n");
    world.reply(task, "answer 61.");
    assert!(world.shown().contains("answer 61."), "{}", world.shown());
}

#[test]
fn a_quick_wheel_goes_further_but_no_more_than_a_screen() {
    let (mut world, _) = long(60, 20);
    let number = |world: &mut World| -> usize {
        let row = first_row(world);
        row.trim_start_matches("answer ").trim_end_matches('.').parse().unwrap()
    };
    let before = number(&mut world);
    world.wheel(Direction::Up, 3);
    let slow = before - number(&mut world);
    for _ in 0..5 {
        world.wheel(Direction::Up, 3);
    }
    let before = number(&mut world);
    world.wheel(Direction::Up, 3);
    let quick = before - number(&mut world);
    assert!(quick > slow, "{quick} rows after {slow}");
    assert!(quick <= 17, "{quick}");
}

/// At a question the wheel scrolls what it points at; it answers nothing, and keys count as before.
#[test]
fn the_wheel_at_a_question_scrolls_and_answers_nothing() {
    let (mut world, _) = long(60, 20);
    let lines: Vec<String> = (0..40).map(|n| format!("echo {n}")).collect();
    world.ask(&lines.join("\n"));
    world.wait(Duration::from_secs(2));
    world.paint();
    let read = first_row(&mut world);
    world.wheel(Direction::Up, 0);
    assert_ne!(first_row(&mut world), read);
    assert!(world.shown().contains("echo 0"), "{}", world.shown());
    for _ in 0..30 {
        world.wheel(Direction::Down, 10);
    }
    assert!(world.shown().contains("echo 39"), "{}", world.shown());
    // No further than its end: one notch back is seen at once.
    let before = world.shown();
    world.wheel(Direction::Up, 10);
    assert_ne!(world.shown(), before);
    assert_eq!(world.take_effects(), []);
    world.types("1");
    let effects = world.take_effects();
    assert!(matches!(effects.as_slice(), [Effect::Answer { .. }]), "{effects:?}");
}

#[test]
fn the_wheel_scrolls_a_page_that_is_open() {
    let (mut world, _) = long(60, 20);
    let lines = (0..60).map(|n| PageLine::of(format!("line {n}."))).collect();
    let page = Page::new(ViewKind::Text, "a page", lines);
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    assert!(world.shown().contains("line 0."), "{}", world.shown());
    world.wheel(Direction::Down, 3);
    assert!(world.shown().contains("\nline 3."), "{}", world.shown());
    assert!(!world.shown().contains("line 2."), "{}", world.shown());
}

/// A key that is being bound waits for a key, and the wheel is none.
#[test]
fn the_wheel_is_not_bound_to_anything() {
    let (mut world, _) = long(80, 24);
    world.input(Input::Loaded(Box::new(Overlay::Keys(world.app.key_list()))));
    world.key(Key::plain(Code::Enter));
    world.wheel(Direction::Down, 3);
    assert_eq!(world.take_effects(), []);
    assert!(world.shown().contains("press the key for send"), "{}", world.shown());
}

#[test]
fn the_mouse_is_asked_for_once_and_given_back() {
    let abilities = Abilities { signs: Signs::Unicode, colours: false };
    let mut screen = Screen::new(Size { columns: 40, rows: 10 }, abilities);
    assert_eq!(screen.set_mouse(false), "");
    assert_eq!(screen.set_mouse(true), "\u{1b}[?1000h\u{1b}[?1006h");
    assert_eq!(screen.set_mouse(true), "");
    assert!(screen.leave().contains("\u{1b}[?1006l\u{1b}[?1000l"));
    assert_eq!(screen.set_mouse(true), "\u{1b}[?1000h\u{1b}[?1006h");
}

/// A long address is not cut where nothing but us breaks rows.
#[test]
fn a_long_address_is_whole_on_the_screen_and_a_page() {
    let mut world = World::new(30, 24);
    let task = world.begin("where?");
    let address = "https://example.org/a/very/long/path/that/does/not/fit";
    world.reply(task, &format!("It is at {address} now."));
    world.types("/tui full\n");
    assert!(world.shown().replace('\n', "").contains(address), "{}", world.shown());
    let lines = vec![PageLine::of(format!("See {address} for more."))];
    let page = Page::new(ViewKind::Text, "a page", lines);
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    assert!(world.shown().replace('\n', "").contains(address), "{}", world.shown());
}
