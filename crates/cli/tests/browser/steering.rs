//! What a person says to a task from the page, beyond answers.

use windlass_testkit::{Answer, Gate};

use crate::desk::Desk;

/// A comment on a line of a diff becomes the next message, with the line quoted.
#[test]
fn a_comment_on_a_diff_line_becomes_the_next_message() {
    let gate = Gate::new();
    let script = "
replies:
  - write: {path: notes.md, content: \"one\\ntwo\\n\"}
";
    let mut desk = Desk::playing(script);
    let (_context, page) = desk.sign_in();
    desk.program.server.next(Answer::script(r#"write: {path: notes.md, content: "one\ntwo\n"}"#));
    desk.program.server.next(Answer::script("bash: echo on").gated(0, &gate));
    desk.program.server.next(Answer::script("say: renamed it"));
    desk.start(&page, "write notes");
    page.shows("write notes.md");
    page.click("a", "Review the changes");
    page.until("location.pathname.endsWith('/changes')");
    page.click("details.preview summary", "Preview");
    page.until("document.querySelector('details.preview').innerText.includes('one two')");
    page.click("tr.add button.comment", "+");
    page.write(".comment-box textarea", "use a better word");
    page.click(".comment-box button", "Add comment");
    page.shows("1 comment");
    page.click(".review-bar button", "Send");
    page.shows("The agent reads it before its next step");
    gate.open();
    desk.program.server.requests_reach_blocking(3);
    let request = desk.program.server.requests()[2].json().to_string();
    for words in ["notes.md:1", "> one", "use a better word"] {
        assert!(request.contains(words), "{words}: {request}");
    }
}

/// What somebody has begun to write at a desk is there on the phone.
#[test]
fn a_draft_follows_its_writer() {
    let mut desk = Desk::playing("replies: []");
    let (_desk, first) = desk.sign_in();
    first.write("#message", "half a sentence");
    first.until(
        "performance.getEntriesByType('resource').some(one => one.name.endsWith('/drafts/new'))",
    );
    let (_phone, second) = desk.sign_in();
    second.until("document.querySelector('#message').value === 'half a sentence'");
}

/// What is open beside a session follows its reader, and a session is begun again by a link that sends nothing.
#[test]
fn a_panel_follows_its_reader_and_a_session_is_duplicated() {
    let mut desk = Desk::playing("replies: [{say: counted}]");
    let (_desk, first) = desk.sign_in();
    first.resize(390, 844);
    desk.start(&first, "count the lines & words");
    first.shows("Details");
    let is_open = "getComputedStyle(document.querySelector('.columns > aside')).display !== 'none'";
    first.until(&format!("!({is_open})"));
    first.click("[data-toggle-side]", "Plan and details");
    first.until(is_open);
    first.until(
        "performance.getEntriesByType('resource').some(one => one.name.includes('/drafts/panel-'))",
    );
    let (_phone, second) = desk.sign_in();
    second.resize(390, 844);
    second.go(first.eval("location.href").as_str().unwrap());
    second.until(is_open);
    second.click(".controls a", "Duplicate");
    second.until("document.querySelector('#message')?.value === 'count the lines & words'");
    second.until("location.pathname === '/'");
    assert_eq!(desk.program.server.request_count(), 1, "nothing is sent");
}

/// A link may fill the field, and never sends it.
#[test]
fn a_link_fills_the_field_and_sends_nothing() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/?prompt=remove%20everything");
    page.until("document.querySelector('#message').value === 'remove everything'");
    page.reload();
    desk.go(&page, "/tasks");
    page.shows("No such tasks");
    assert_eq!(desk.program.server.request_count(), 0);
}
