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
    // Where it would run, whole, and which file it is bound to, as in the terminal.
    let bound = "document.querySelector('.bound').innerText";
    phone.until(&format!("/in \\/.+\\n.*notes\\.md \\(does not exist\\)/s.test({bound})"));
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

const DELEGATES: &str = "
match:
  - task: remove the note
    replies: [{bash: rm notes.md}, {say: removed it}]
replies:
  - spawn_agent: {task: remove the note, label: cleaner}
  - say: everything is tidy
";

/// What a sub-agent asks counts like a question of the session's own: on its page, in the inbox and in the title.
#[test]
fn a_question_of_a_sub_agent_waits_and_is_answered_like_any_other() {
    let mut desk = Desk::playing(DELEGATES);
    let (context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.shows("Sub-agent cleaner");
    page.shows("rm notes.md");
    page.until("document.title.startsWith('(1)')");
    let inbox = context.page();
    desk.go(&inbox, "/inbox");
    inbox.shows("sub-agent cleaner");
    inbox.click(".answers button", "Allow");
    inbox.shows("Nothing waits for you");
    page.shows("everything is tidy");
    page.until("!document.querySelector('.question') && !document.title.startsWith('(1)')");
    page.shows("Details");
    assert_live_equals_reload(&page);
    // Both are in the overview, the one below the other.
    desk.go(&page, "/tasks");
    page.until("document.querySelector('.children')?.innerText.includes('remove the note')");
}

/// On a phone the pages scroll sideways; the search stays in sight, and the inbox as long as something waits in it.
#[test]
fn a_phone_shows_the_search_and_a_waiting_inbox_on_every_page() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.shows("rm notes.md");
    let task = desk.program.task();
    page.resize(390, 844);
    let in_sight = |what: &str| {
        format!(
            "(() => {{ const one = document.querySelector('{what}');
                const {{ left, right, top, bottom }} = one.getBoundingClientRect();
                return left >= 0 && right <= 390 && one.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2)); }})()"
        )
    };
    for path in ["/settings".to_owned(), "/schedules".to_owned(), format!("/tasks/{task}")] {
        desk.go(&page, &path);
        for what in ["[data-palette]", ".places a[href=\"/inbox\"]", ".places [aria-current]"] {
            page.until(&in_sight(what));
        }
    }
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

/// A question whose task has ended is closed. It does not look as if somebody had answered it.
#[test]
fn a_task_is_stopped_while_it_asks() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.shows("rm notes.md");
    page.click(".controls button", "Stop");
    page.shows("Cancelled");
    page.shows("closed: its task has ended");
    page.until("!document.querySelector('.question') && !document.title.startsWith('(1)')");
    assert_live_equals_reload(&page);
}

/// When the keyboard of a phone takes half of the window, the question stays above the field; whoever reads further up
/// stays there.
#[test]
fn a_question_stays_in_sight_when_the_window_gets_smaller() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.resize(390, 844);
    page.shows("Run this command?");
    let is_seen = "(([deny, field]) => deny.bottom <= field.top && deny.top >= 0)(
        ['.own-words button', '#composer'].map(one => document.querySelector(one).getBoundingClientRect()))";
    page.until(is_seen);
    page.resize(390, 480);
    page.until(&format!("innerHeight === 480 && {is_seen}"));
    let moved = "new Promise(done => { addEventListener('scroll', done, { once: true }); scrollTo(0, 0); }).then(() => 0)";
    page.eval(moved);
    page.resize(390, 420);
    page.until("innerHeight === 420");
    page.eval("new Promise(requestAnimationFrame).then(() => 0)");
    assert_eq!(page.eval("scrollY"), 0);
}
