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

/// Commands in the background are seen while they run, with what they print, on the session's page and on the task's.
#[test]
fn background_commands_are_seen_with_what_they_print() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    let command = "bash: {command: 'echo ready on port 8000; sleep 600', background: true}";
    desk.program.server.next(Answer::script(command));
    desk.program.server.next(Answer::script("say: it runs").gated(0, &gate));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "start the server");
    page.shows("Running commands");
    let card = "document.querySelector('.processes')?.innerText ?? ''";
    page.until(&format!("({card}).includes('sleep 600')"));
    page.until(&format!("({card}).includes('ready on port 8000')"));
    desk.go(&page, &format!("/tasks/{}", desk.program.task()));
    page.shows("Running commands");
    page.until(&format!("({card}).includes('ready on port 8000')"));
    gate.open();
    page.hides("Running commands");
}

/// Attempts at the same thing are one line of the timeline, which opens.
#[test]
fn attempts_at_the_same_thing_are_one_line_of_the_timeline() {
    let script = "
replies:
  - bash: test -e ready
  - bash: test -e ready
  - bash: touch ready
  - bash: test -e ready
  - say: it was not there at first
";
    let mut desk = Desk::playing(script);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "wait for it");
    page.shows("it was not there at first");
    page.shows("Details");
    desk.go(&page, &format!("/tasks/{}", desk.program.task()));
    page.shows("3 attempts, 2 failed");
    let lines = "document.querySelectorAll('.spans > li').length";
    assert_eq!(page.eval(lines), 7, "five replies, one command, and the attempts");
    page.click(".attempts summary", "attempts");
    page.until(
        "document.querySelectorAll('.attempts[open] li, .attempts details[open] li').length === 3",
    );
    page.click(".filters a", "Failed only");
    page.until(&format!("{lines} === 1"));
    page.shows("3 attempts, 2 failed");
    assert_live_equals_reload(&page);
}

/// History that is not loaded whole says so, and the rest is a link away; keys lead from message to message.
#[test]
fn half_loaded_history_says_so_and_messages_are_jumped_between() {
    let round = |round: usize| {
        let calls: Vec<_> = (0..10).map(|at| format!("{{glob: '*.{round}_{at}'}}")).collect();
        format!("  - calls: [{}]\n", calls.join(", "))
    };
    let many: String = (0..21).map(round).collect();
    let script = format!("replies:\n{many}  - say: that was all\n  - say: and more\n");
    let mut desk = Desk::playing(&script);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "take many steps");
    page.shows("that was all");
    page.shows("Details");
    page.write("#message", "one more thing");
    page.press("Enter");
    page.shows("and more");
    page.until("document.querySelectorAll('.ended').length >= 1");
    page.shows("Showing the last 200 of");
    assert!(!page.text().contains("*.0_0"), "the first call is not loaded");
    assert_live_equals_reload(&page);
    page.click("a", "Show earlier ones");
    page.shows("*.0_0");
    page.hides("Showing the last");
    // From the end to the message before, and on to the one before that.
    let said = "[...document.querySelectorAll('main [data-user]')]";
    page.until(&format!("{said}.length === 2"));
    page.eval("document.activeElement.blur()");
    page.eval("scrollTo(0, document.documentElement.scrollHeight)");
    let is_seen = |at: usize| {
        format!(
            "(top => top > -10 && top < innerHeight / 2)({said}[{at}].getBoundingClientRect().top)"
        )
    };
    page.press("k");
    page.until(&format!("{} || {}", is_seen(0), is_seen(1)));
    page.press("k");
    page.until(&is_seen(0));
    page.press("j");
    page.until(&format!("{said}[1].getBoundingClientRect().bottom <= innerHeight"));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn failures_are_shown_alone_and_events_have_addresses() {
    let script = "replies: [{bash: echo fine}, {bash: 'echo wrong; exit 4'}, {say: finished}]";
    let mut desk = Desk::playing(script);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "try two things");
    page.shows("finished");
    page.shows("Details");
    let task = desk.program.task();
    desk.go(&page, &format!("/tasks/{task}"));
    page.until("document.querySelectorAll('.span').length === 5");
    page.click(".filters a", "Failed only");
    page.until("document.querySelectorAll('.span').length === 1");
    page.shows("exit 4");
    page.click(".filters a", "Everything");
    page.until("document.querySelectorAll('.span').length === 5");
    page.click(".filters a", "+");
    // A page that is still being read has fewer lines than it will have.
    page.until("location.search.includes('zoom=2') && document.readyState === 'complete'");
    page.click(".tabs a", "Events");
    page.until("location.pathname.endsWith('/events') && document.readyState === 'complete'");
    let all = page.eval("document.querySelectorAll('.event').length").as_u64().unwrap();
    assert!(all > 10, "{all} events");
    page.click(".filters a", "Failed only");
    page.until("location.search.includes('failed=1') && document.readyState === 'complete'");
    let failed = page.eval("document.querySelectorAll('.event').length").as_u64().unwrap();
    assert!((1..all).contains(&failed), "{failed} of {all} events");
    let link = page.eval("document.querySelector('.permalink a').getAttribute('href')");
    let address = format!("/tasks/{task}/events{}", link.as_str().unwrap());
    desk.go(&page, &address);
    page.until("document.querySelector(':target .event')");
    assert_eq!(page.complaints(), Vec::<String>::new());
}
