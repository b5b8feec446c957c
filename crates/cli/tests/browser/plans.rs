//! Plans on the page.

use serde_json::json;
use windlass_testkit::{Answer, ModelServer};

use crate::desk::{Desk, assert_live_equals_reload};
use crate::program::Program;

/// PL-058, AX-071: a plan is run from its page, and the page follows it to the end.
#[test]
fn a_plan_is_run_from_its_page_and_followed_to_the_end() {
    let server = ModelServer::start_empty();
    server.answer_with(|request| {
        Some(match request.replies {
            0 => Answer::script("save_snapshot: {failingTests: [], techDebt: [], openDecisions: [], nextTaskIntent: next}"),
            _ => Answer::script("say: it is done"),
        })
    });
    let program = Program::with(server);
    let task = |id: &str, title: &str| json!({"id": id, "title": title, "bestPatternPrompt": format!("Run `make {id}`")});
    let plan = json!({"id": "small", "title": "A <b>small</b> plan", "phases": [
        {"id": "one", "title": "First things", "tasks": [task("t01", "look around"), task("t02", "write it down")]},
        {"id": "two", "title": "Last things", "tasks": [task("t03", "tidy up")]},
    ]});
    std::fs::write(program.workspace().join("plan.json"), plan.to_string()).unwrap();
    program.windlass(&["plan", "activate"]).expect(0);
    let mut desk = Desk::of(program);
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/plans");
    page.shows("0 of 3 done");
    page.shows("First things");
    page.shows("tidy up");
    page.click("button", "Run");
    page.shows("3 of 3 done");
    page.until("[...document.querySelectorAll('progress')].every(one => one.value === one.max)");
    page.until("!document.querySelector('#plans button')");
    assert_live_equals_reload(&page);
    page.click("#plans a", "session");
    page.until("location.pathname.startsWith('/sessions/')");
    page.shows("it is done");
    assert_eq!(page.complaints(), Vec::<String>::new());
}
