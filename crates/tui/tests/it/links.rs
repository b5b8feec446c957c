//! Addresses that are broken over several rows: one link for the terminal, and none that others made.

use windlass_term::strip_controls;
use windlass_tui::host::Layout;
use windlass_tui::text::{broken, painted_width};

use crate::world::World;

const ADDRESS: &str = "https://example.org/a/long/path_(of)/it?and=more";

#[test]
fn the_pieces_of_an_address_are_one_link() {
    let rows = broken(&format!("see \u{1b}[1m({ADDRESS}).\u{1b}[0m Then go."), 20);
    let linked: Vec<&String> = rows.iter().filter(|row| row.contains("\u{1b}]8;id=")).collect();
    assert!(linked.len() > 2, "{rows:?}");
    for row in &linked {
        assert_eq!(row.matches(&format!(";{ADDRESS}\u{1b}\\")).count(), 1, "{row:?}");
        assert_eq!(row.matches("\u{1b}]8;;\u{1b}\\").count(), 1, "{row:?}");
    }
    assert!(rows.iter().all(|row| painted_width(row) <= 20), "{rows:?}");
    let plain: String = rows.iter().map(|row| strip_controls(row)).collect();
    assert!(plain.contains(&format!("({ADDRESS}).")), "{plain}");
    // What fits is found by the terminal itself.
    assert!(!broken("see https://example.org", 40)[0].contains("\u{1b}]8"));
}

/// A page and the full screen break addresses; a terminal that does not know links gets none.
#[test]
fn a_terminal_without_links_gets_none() {
    for has_links in [true, false] {
        let mut world = World::new(30, 20);
        world.screen.set_links(has_links);
        world.app.layout = Layout::Full;
        let task = world.begin("go");
        world.reply(task, &format!("Look at {ADDRESS} there."));
        world.paint();
        assert_eq!(world.painted.contains("\u{1b}]8;id="), has_links);
        let rows = world.shown().replace('\n', "");
        assert!(rows.contains(ADDRESS), "{rows}");
    }
}

#[test]
fn what_a_model_writes_makes_no_link() {
    let mut world = World::new(30, 20);
    world.screen.set_links(true);
    world.app.layout = Layout::Full;
    let task = world.begin("\u{1b}]8;;https://evil.example/\u{1b}\\go\u{1b}]8;;\u{1b}\\");
    let long = "x".repeat(60);
    world.reply(
        task,
        &format!("\u{1b}]8;;https://evil.example/\u{1b}\\ https://a.example/{long}\u{1b}]8;;https://evil.example/\u{7}"),
    );
    world.reply(
        task,
        &format!("\u{9d}8;;https://evil.example/\u{9c}https://b.example/\u{1b}{long}"),
    );
    world.paint();
    assert!(!world.painted.contains(";https://evil.example/\u{1b}\\"), "{:?}", world.painted);
    let begun = world.painted.matches("\u{1b}]8;id=").count();
    assert_eq!(world.painted.matches("\u{1b}]8;;\u{1b}\\").count(), begun, "each link is ended");
}
