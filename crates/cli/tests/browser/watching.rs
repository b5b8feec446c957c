//! A person starts a task and watches it.

use windlass_testkit::{Answer, Gate};

use crate::desk::{Desk, assert_live_equals_reload};

/// WF-007: what the model says is seen before its reply is complete; a page that is loaded in the middle misses nothing.
#[test]
fn a_reply_streams_and_a_reload_in_its_middle_misses_nothing() {
    let gate = Gate::default();
    let words: Vec<String> = (1..=400).map(|number| format!("word{number}")).collect();
    let long = format!("say: {} the last word", words.join(" "));
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script(&long).gated(2, &gate));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "count to ten");
    page.shows("word1 word2");
    assert!(!page.text().contains("the last word"));
    page.reload();
    page.shows("word1 word2");
    gate.open();
    page.shows("the last word");
    page.shows("Details");
    assert_live_equals_reload(&page);
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// AX-074, AX-087, AX-112: a long output is cut on the page and can be opened whole.
#[test]
fn a_long_output_is_cut_and_can_be_viewed_whole() {
    let script = "
replies:
  - bash: seq 1 60000
  - say: counted
";
    let mut desk = Desk::playing(script);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "count far");
    page.shows("counted");
    page.shows("[Output truncated]");
    assert!(page.text().contains("..."), "{}", page.text());
    page.click("a", "[View full output]");
    page.until("location.pathname.startsWith('/outputs/')");
    page.shows("59999");
    page.shows("Full output");
}

#[test]
fn calls_say_how_they_ended_and_why_they_were_allowed() {
    let script = "
replies:
  - bash: echo hello; exit 3
  - write: {path: notes.md, content: \"one\\ntwo\\n\"}
  - say: finished
";
    let mut desk = Desk::playing(script);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "do two things");
    page.shows("finished");
    page.shows("exit 3");
    page.shows("+2");
    page.shows("Details");
    assert_live_equals_reload(&page);
    page.click("details.call summary", "echo hello");
    page.shows("Allowed: ");
}
