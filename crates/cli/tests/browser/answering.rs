//! Questions, answered from wherever a person is.

use crate::desk::{Desk, assert_live_equals_reload};

const ASKS: &str = "
replies:
  - bash: rm notes.md
  - say: removed it
";

/// A permission is answered from a second browser; the first one sees by whom.
#[test]
fn a_permission_is_answered_from_a_second_browser() {
    let mut desk = Desk::playing(ASKS);
    let (_first, desk_page) = desk.sign_in();
    desk.start(&desk_page, "tidy up");
    desk_page.shows("rm notes.md");
    desk_page.until("document.title.startsWith('(1)')");
    let (_second, phone) = desk.sign_in();
    phone.resize(390, 844);
    desk.go(&phone, "/inbox");
    phone.shows("Run this command?");
    phone.click("button", "Allow");
    phone.shows("Nothing waits for you");
    phone.shows("Allow by ada");
    desk_page.shows("removed it");
    desk_page.shows("Allow by ada");
    desk_page.shows("Details");
    desk_page.until("!document.title.startsWith('(1)')");
    assert_live_equals_reload(&desk_page);
    assert_live_equals_reload(&phone);
}

/// Denying with words tells the agent what to do instead.
#[test]
fn a_denial_carries_words_to_the_agent() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.shows("rm notes.md");
    page.write(".own-words input", "keep the notes");
    page.press("Enter");
    page.shows("Deny: keep the notes by ada");
    page.shows("removed it");
    let request = desk.program.server.requests().last().unwrap().json().to_string();
    assert!(request.contains("keep the notes"), "{request}");
}

#[test]
fn a_task_is_stopped_while_it_asks() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.shows("rm notes.md");
    page.click(".controls button", "Stop");
    page.shows("Cancelled");
    page.until("!document.querySelector('.question')");
}
