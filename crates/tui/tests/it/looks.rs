//! How every view looks, at each size.

use std::time::Duration;

use serde_json::json;
use windlass_core::id::{CallId, TaskId};
use windlass_tui::app::{Input, Phase};
use windlass_tui::keys::{Code, Key};
use windlass_tui::overlay::{Item, Kind, List, Overlay, Page, PageLine, Target};

use crate::world::{World, call, event};

const SIZES: [(usize, usize); 5] = [(20, 6), (60, 16), (80, 24), (120, 30), (200, 40)];

/// The same at every size, one below the other.
fn at_every_size(play: impl Fn(&mut World)) -> String {
    let look = |(columns, rows): (usize, usize)| {
        let mut world = World::new(columns, rows);
        play(&mut world);
        format!("{columns}×{rows}\n{}\n", world.shown())
    };
    SIZES.map(look).join("\n")
}

fn work(world: &mut World) -> TaskId {
    let task = world.begin("The test in test.sh fails. Find out why and fix it.");
    world.input(Input::Phase(Phase::Working));
    world.record(
        task,
        event(
            "llm_request",
            json!({
                "model": "test/model", "messages": 2, "estimated_tokens": 900, "hash": "x",
            }),
        ),
    );
    world.reply(task, "I look at the **test** first, then at `total.sh`.");
    let id = CallId::new(jiff::Timestamp::UNIX_EPOCH);
    world.record(task, call(id, "sh test.sh"));
    world.wait(Duration::from_secs(3));
    task
}

#[test]
fn a_new_conversation() {
    insta::assert_snapshot!(at_every_size(|_| {}));
}

#[test]
fn work_in_progress_with_a_queue() {
    insta::assert_snapshot!(at_every_size(|world| {
        work(world);
        world.types("then write a test\n");
        world.types("and a note");
    }));
}

#[test]
fn a_question() {
    insta::assert_snapshot!(at_every_size(|world| {
        work(world);
        world.input(Input::Phase(Phase::Blocked));
        world.ask("rm -r build/output && rm notes.txt");
        world.wait(Duration::from_secs(2));
    }));
}

#[test]
fn a_question_before_its_keys_count() {
    insta::assert_snapshot!(at_every_size(|world| {
        world.ask("rm -r build/output");
    }));
}

#[test]
fn a_list_of_files() {
    insta::assert_snapshot!(at_every_size(|world| {
        world.types("see @");
        let name = |n: usize| format!("src/a/rather/long/path/of/file{n}.rs");
        world.input(Input::Files((0..20).map(name).collect()));
        world.key(Key::plain(Code::Down));
    }));
}

#[test]
fn leaving_while_it_works() {
    insta::assert_snapshot!(at_every_size(|world| {
        work(world);
        world.key(Key::ctrl('c'));
        world.key(Key::ctrl('c'));
    }));
}

#[test]
fn a_list_of_tasks() {
    insta::assert_snapshot!(at_every_size(|world| {
        let item = |n: i64| Item {
            target: Target::Task(TaskId::new(jiff::Timestamp::from_second(n).unwrap())),
            line: format!("7K2M{n:03} running       3m  $0.0123  fix the flaky test number {n}"),
            preview: vec![format!("task {n}"), "next: it works; Enter watches it".to_owned()],
        };
        let list = List::new(Kind::Tasks, "tasks", (1..=30).map(item).collect());
        world.input(Input::Loaded(Box::new(Overlay::List(list))));
        world.key(Key::plain(Code::Down));
    }));
}

#[test]
fn a_page_of_text() {
    insta::assert_snapshot!(at_every_size(|world| {
        let lines = (0..100)
            .map(|n| PageLine::of(format!("{n} a line that may be too long for this terminal")));
        let page = Page::new(Kind::Help, "keys", lines.collect());
        world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    }));
}
