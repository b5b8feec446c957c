//! Keys bound by pressing them, and hints that name the keys as they are bound.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_tui::app::{Binding, Effect, Input, Phase, Settings};
use windlass_tui::keymap::{Action, Keymap};
use windlass_tui::keys::{Code, Key};
use windlass_tui::overlay::Overlay;

use crate::world::{PLAIN, World, settings};

/// The page of keys, with this action chosen.
fn at(action: Action) -> World {
    let mut world = World::new(100, 30);
    let page = Overlay::Keys(world.app.key_list());
    world.input(Input::Loaded(Box::new(page)));
    let place = Action::ALL.iter().position(|one| *one == action).unwrap();
    (0..place).for_each(|_| world.key(Key::plain(Code::Down)));
    world
}

/// What is to be kept, kept.
fn keep(world: &mut World) -> Vec<(Action, Option<String>)> {
    let mut kept = Vec::new();
    for effect in world.take_effects() {
        let Effect::Bind(Binding { action, keys }) = effect else { continue };
        let keymap = world.app.settings.keymap.rebound(action, keys.as_deref()).unwrap();
        world
            .input(Input::Bound { keymap: Box::new(keymap), kept: Ok("~/config.toml".to_owned()) });
        kept.push((action, keys));
    }
    kept
}

#[test]
fn a_key_is_bound_by_pressing_it() {
    let mut world = at(Action::Editor);
    world.types("\n");
    assert!(world.shown().contains("press the key for editor"), "{}", world.shown());
    world.key(Key::plain(Code::F(4)));
    assert_eq!(keep(&mut world), [(Action::Editor, Some("f4".to_owned()))]);
    let shown = world.shown();
    assert!(shown.contains("❯ F4                             write in $EDITOR"), "{shown}");
    assert!(shown.contains("bound, and written to ~/config.toml"), "{shown}");
    world.types("a");
    world.key(Key::ctrl('n'));
    assert_eq!(keep(&mut world), [(Action::Editor, Some("f4 ctrl+n".to_owned()))]);
    world.types("c");
    world.key(Key::ctrl('x'));
    assert!(world.shown().contains("Ctrl+X, then press the second key"), "{}", world.shown());
    world.types("e");
    assert_eq!(keep(&mut world), [(Action::Editor, Some("ctrl+x,e".to_owned()))]);
    world.types("x");
    assert_eq!(keep(&mut world), [(Action::Editor, None)]);
    world.key(Key::plain(Code::Escape));
    world.types("draft");
    world.key(Key::ctrl('g'));
    assert!(world.take_effects().contains(&Effect::Edit("draft".to_owned())));
}

#[test]
fn a_key_that_is_taken_is_refused_with_its_owner() {
    let mut world = at(Action::Editor);
    for (key, why) in [
        (Key::ctrl('r'), "not bound: `Ctrl+R` is bound to both `history_search` and `editor`"),
        (Key::plain(Code::Char('z')), "not bound: `z` edits text"),
    ] {
        world.types("\n");
        world.key(key);
        assert_eq!(keep(&mut world), []);
        assert!(world.shown().contains(why), "{}", world.shown());
    }
    world.types("\n");
    world.key(Key::plain(Code::Escape));
    assert!(world.app.overlay.is_some(), "Esc keeps the key, and the page");
    assert_eq!(world.app.settings.keymap.names(Action::Editor), ["Ctrl+G"]);
}

#[test]
fn a_binding_that_cannot_be_kept_is_not_in_force() {
    let mut world = at(Action::Editor);
    world.types("\n");
    world.key(Key::plain(Code::F(4)));
    let keymap = Box::new(Keymap::default());
    world.input(Input::Bound { keymap, kept: Err("the disk is full".to_owned()) });
    assert!(world.shown().contains("not bound: the disk is full"), "{}", world.shown());
    assert_eq!(world.app.settings.keymap.names(Action::Editor), ["Ctrl+G"]);
}

/// After a rebinding no hint names the key that it was.
#[test]
fn hints_name_the_keys_that_are_bound() {
    let bound = [
        ("send", "f13"),
        ("send_now", "f14"),
        ("interrupt", "f15"),
        ("leave", "f16"),
        ("stash", "f17"),
        ("queue", "f18"),
        ("history_search", "f19"),
        ("raw", "f20"),
        ("layout", "f21"),
    ];
    let bound: BTreeMap<String, String> =
        bound.iter().map(|(action, key)| ((*action).to_owned(), (*key).to_owned())).collect();
    let keymap = Keymap::with(&bound).unwrap();
    let mut world = World::with(Settings { keymap, ..settings(PLAIN) }, 120, 30);
    let mut seen = String::new();
    let press = |world: &mut World, number: u8, seen: &mut String| {
        world.key(Key::plain(Code::F(number)));
        *seen += &world.shown();
    };
    world.begin("go");
    world.types("aside");
    press(&mut world, 17, &mut seen);
    press(&mut world, 20, &mut seen);
    press(&mut world, 21, &mut seen);
    press(&mut world, 21, &mut seen);
    press(&mut world, 19, &mut seen);
    press(&mut world, 15, &mut seen);
    press(&mut world, 16, &mut seen);
    world.wait(Duration::from_secs(5));
    world.input(Input::Phase(Phase::Working));
    seen += &world.shown();
    world.types("later");
    press(&mut world, 13, &mut seen);
    press(&mut world, 15, &mut seen);
    for key in 13..=21 {
        assert!(seen.contains(&format!("F{key}")), "F{key} in {seen}");
    }
    let defaults = ["Ctrl+S", "Esc ", "Ctrl+C", "Ctrl+Q", "Alt+Up", "Ctrl+R", "Alt+V", "Alt+L"];
    for key in defaults.into_iter().chain(["Enter queues", "Enter sends"]) {
        assert!(!seen.contains(key), "{key} in {seen}");
    }
}
