//! Skills that are proposed: in the inbox, on their own page, accepted and declined.

use windlass_testkit::{Page, by_hand, git};

use crate::desk::{Desk, assert_live_equals_reload};
use crate::program::Program;

/// Without the skill the long way, with it the short one.
const HELPS: &str = "
match:
  - system: Use before you run
    replies: [{read_skill: learned-sh-run-tests-sh}, {bash: sh run-tests.sh}, {say: the short way}]
replies: [{bash: make test}, {bash: sh run-tests.sh}, {say: the long way}]
";

/// With the skill or without it the long way.
const HELPS_NOT: &str =
    "replies: [{bash: make test}, {bash: sh run-tests.sh}, {say: the long way}]";

const SKILL: &str = ".windlass/skills/learned-sh-run-tests-sh/SKILL.md";

/// A project in which three tasks have made the same detour, and its server.
fn desk(script: &str) -> Desk {
    let program = Program::playing(script);
    let place = program.workspace();
    std::fs::write(place.join("run-tests.sh"), "echo all passed\n").unwrap();
    std::fs::write(place.join("Makefile"), "all:\n\ttrue\n").unwrap();
    by_hand(
        place,
        "git init -q -b main && git config user.name Ada && git config user.email ada@example.com
         git add . && git commit -qm first",
    );
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    Desk::of(program)
}

/// The page of the proposal, reached as a person does.
fn proposal(desk: &mut Desk) -> Page<'static> {
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/inbox");
    page.shows("Proposed skills");
    page.shows("in 3 tasks: make test fails, sh run-tests.sh works");
    assert_live_equals_reload(&page);
    page.click("#proposals a", "See the skill");
    page.until("location.pathname === '/skills/proposals/1'");
    page.shows("What would be written");
    page
}

/// MS-163: what several tasks did is shown with the skill that would come of it, and can be declined.
#[test]
fn a_proposed_skill_is_shown_in_the_inbox_and_declined() {
    let mut desk = desk(HELPS);
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/inbox");
    page.click("#proposals button", "Decline");
    page.hides("Proposed skills");
    let listed = desk.program.windlass(&["skills", "proposals", "--json"]).expect(0).json_lines();
    assert_eq!(
        (&listed[0]["status"], &listed[0]["note"]),
        (&"rejected".into(), &"declined on the page".into())
    );
    assert!(!desk.program.workspace().join(SKILL).exists());
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// MS-166, MS-167, MS-168: what the page shows is tried, and then exactly that is written and committed.
#[test]
fn a_proposed_skill_is_read_tried_and_written_from_the_page() {
    let mut desk = desk(HELPS);
    let page = proposal(&mut desk);
    let shown = page.eval("document.querySelector('#draft pre').textContent");
    page.shows("evals/case-1/grader.sh");
    assert!(!desk.program.workspace().join(SKILL).exists(), "looking writes nothing");
    // Another draft than the one that was seen is not written.
    let other =
        "post('/v1/skills/proposals/1/accept', { mark: 'another' }).catch(error => error.kind)";
    assert_eq!(page.eval(other), "draft-changed");
    page.click("#head button", "Try, write and commit");
    page.shows("It is being tried");
    page.shows("accepted: written, commit");
    assert_live_equals_reload(&page);
    let written = std::fs::read_to_string(desk.program.workspace().join(SKILL)).unwrap();
    assert_eq!(shown, written.trim_end());
    let subject = git(desk.program.workspace(), &["log", "--format=%s", "-1"]);
    assert_eq!(subject, "Add the skill learned-sh-run-tests-sh");
    desk.go(&page, "/inbox");
    page.shows("Nothing waits for you");
    assert_eq!(page.complaints().len(), 1, "the refused request alone: {:?}", page.complaints());
}

/// MS-166: a skill that does not help is not written, and the page says why; it can still be declined.
#[test]
fn a_proposed_skill_that_does_not_help_is_refused_on_the_page() {
    let mut desk = desk(HELPS_NOT);
    let page = proposal(&mut desk);
    page.click("#head button", "Try and write");
    page.shows("nothing was written: the skill does not help");
    assert_live_equals_reload(&page);
    assert!(!desk.program.workspace().join(SKILL).exists());
    page.click("#head button", "Decline");
    page.shows("rejected: declined on the page");
}
