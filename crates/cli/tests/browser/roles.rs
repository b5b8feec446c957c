//! Roles and commitments on the page.

use crate::desk::Desk;

/// AX-071, AX-096: the switcher says which tools change, and the header shows the role.
#[test]
fn the_role_switcher_shows_which_tools_change_and_switches() {
    let mut desk = Desk::playing("replies: [{say: hello there}, {say: here is a plan}]");
    let (_context, page) = desk.sign_in();
    desk.start(&page, "hello");
    page.shows("hello there");
    page.click("summary.axes", "");
    page.shows("without write, edit, bash");
    page.shows("needs a claimed commitment");
    page.click(".roles button", "architect");
    page.until("document.querySelector('summary.axes .role')?.textContent === 'Architect'");
    page.write("#message", "use JWT");
    page.press("Enter");
    page.shows("here is a plan");
    let request = desk.program.server.requests().last().unwrap().json().to_string();
    assert!(
        request.contains("ARCHITECT MODE") && !request.contains(r#""name":"write""#),
        "{request}"
    );
}

/// AX-071: what is promised is listed, claimed and shown with its evidence.
#[test]
fn a_commitment_is_claimed_and_shown_on_its_page() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    let made = desk.program.windlass(&["commitments", "commit", "use <b>JWT</b>"]).expect(0);
    let id = made.stdout.trim();
    let capture =
        ["commitments", "capture", id, "--type", "note", "--content", "auth.rs is untested"];
    desk.program.windlass(&capture).expect(0);
    desk.go(&page, "/commitments");
    page.shows("use <b>JWT</b>");
    page.click("button", "Claim");
    page.shows("claimed by ada");
    page.click("a.row-title", "use");
    page.until("location.pathname.startsWith('/commitments/cmt_')");
    page.shows("sha256");
}
