//! Terminals of sixteen colours, such as the console of Linux: only colours that they have are asked for.

use std::collections::BTreeSet;

use serde_json::json;
use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_core::id::CallId;
use windlass_term::{Detail, diff, markdown};
use windlass_tui::app::{Input, Phase};
use windlass_tui::overlay::{Overlay, Page, PageLine, ViewKind};

use crate::world::{COLOURS, World, axes, call, event, settings};

const DIFF: &str = "--- a/sum.sh\n+++ b/sum.sh\n@@ -1,2 +1,2 @@\n echo\n-old\n+new\n";
const REPLY: &str = "# Done\n\n**Fixed** the *sum* in `sum.sh`, see [it](https://example.org).\n\n> ~~old~~\n\n```sh\nsh test.sh\n```\n";

/// A terminal on which something of everything is shown.
fn working() -> World {
    let mut world = World::with(settings(COLOURS), 100, 40);
    let mut facts = world.app.facts.clone();
    facts.axes = axes(WorkMode::Build, RunControl::Autonomous, PermissionProfile::Trusted);
    facts.role = Some("executor".to_owned());
    world.input(Input::Facts(facts));
    let task = world.begin("fix it");
    world.input(Input::Phase(Phase::Working));
    let id = CallId::new(jiff::Timestamp::UNIX_EPOCH);
    world.record(task, call(id, "sh fix.sh"));
    let changed = json!({ "fact": "file_changed", "path": "sum.sh", "hash": "x", "diff": DIFF });
    let result = json!({
        "call": id, "tool": "edit", "ending": "ok", "text": "changed", "duration_ms": 5, "facts": [changed],
    });
    world.record(task, event("tool_result", result));
    world.reply(task, REPLY);
    world.types("and then\n");
    world.paint();
    world
}

/// The numbers of every sequence that changes how text looks.
fn styles(written: &str) -> BTreeSet<String> {
    let sequences = written.split("\u{1b}[").skip(1);
    let styles = sequences.filter_map(|rest| {
        let end = rest.find(|char: char| char.is_ascii_alphabetic())?;
        rest[end..].starts_with('m').then(|| &rest[..end])
    });
    styles.flat_map(|style| style.split(';')).map(str::to_owned).collect()
}

#[test]
fn only_colours_of_a_sixteen_colour_terminal_are_written() {
    let mut world = working();
    world.ask("rm -r build");
    world.wait(std::time::Duration::from_secs(2));
    world.paint();
    world.input(Input::Questions(Vec::new()));
    let mut rows = diff::lines(DIFF, COLOURS, 80, Detail::Full);
    rows.push(markdown::render("A *reply*.", COLOURS, 80));
    let lines = rows.into_iter().map(PageLine::of).collect();
    let page = Page::new(ViewKind::Help, "page", lines);
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    world.paint();
    let is_known = |style: &String| {
        let attributes = ["", "0", "1", "2", "3", "4", "7", "9", "22", "27"];
        let is_colour = style.parse().is_ok_and(|number| (30..=37).contains(&number));
        is_colour || attributes.contains(&style.as_str())
    };
    let styles = styles(&world.painted);
    assert!(styles.iter().all(is_known), "{styles:?}");
    // Something of everything was shown: success, warning, accent, info, dim.
    for wanted in ["32", "33", "35", "36", "31", "2"] {
        assert!(styles.contains(wanted), "no {wanted}: {styles:?}");
    }
}

/// As an emulator of such a terminal has them: the row of colours of MS-107…MS-119.
#[test]
fn badge_diff_and_status_are_seen_in_their_colours() {
    let mut world = working();
    world.paint();
    let screen = world.parser.screen();
    let colour_of = |words: &str| {
        let (row, text) =
            screen.rows(0, 100).enumerate().find(|(_, text)| text.contains(words)).unwrap();
        let column = text[..text.find(words).unwrap()].chars().count();
        screen.cell(row as u16, column as u16).unwrap().fgcolor()
    };
    for (words, wanted) in [
        ("build |", 2),
        ("autonomous", 2),
        ("trusted", 3),
        ("executor", 5),
        ("-old", 1),
        ("+new", 2),
        ("• ", 6),
    ] {
        assert_eq!(colour_of(words), vt100::Color::Idx(wanted), "{words}");
    }
}
