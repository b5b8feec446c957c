//! Skills that are proposed, in the inbox.

use crate::desk::{Desk, assert_live_equals_reload};
use crate::program::Program;

/// MS-163: what several tasks did is shown with the skill that would come of it, and can be declined.
#[test]
fn a_proposed_skill_is_shown_in_the_inbox_and_declined() {
    let script = "replies: [{bash: make test}, {bash: sh run-tests.sh}, {say: the long way}]";
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("run-tests.sh"), "echo all passed\n").unwrap();
    std::fs::write(program.workspace().join("Makefile"), "all:\n\ttrue\n").unwrap();
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    let mut desk = Desk::of(program);
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/inbox");
    page.shows("Proposed skills");
    page.shows("`make test` fails, `sh run-tests.sh` works");
    page.shows("windlass skills proposals accept 1");
    assert_live_equals_reload(&page);
    page.click("#proposals button", "Decline");
    page.hides("Proposed skills");
    let listed = desk.program.windlass(&["skills", "proposals", "--json"]).expect(0).json_lines();
    assert_eq!(
        (&listed[0]["status"], &listed[0]["note"]),
        (&"rejected".into(), &"declined on the page".into())
    );
    assert_eq!(page.complaints(), Vec::<String>::new());
}
