//! What a person says to a task from the page, beyond answers.

use windlass_testkit::{Answer, Gate};

use crate::desk::{Desk, assert_live_equals_reload};

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

/// Where nothing hovers, the buttons beside the lines are in sight, and large enough for a finger.
#[test]
fn a_line_is_commented_on_with_a_finger() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    desk.program.server.next(Answer::script(r#"write: {path: notes.txt, content: "one\ntwo\n"}"#));
    desk.program.server.next(Answer::script("say: wrote them"));
    desk.start(&page, "write notes");
    page.shows("wrote them");
    let task = desk.program.task();
    let touch = serde_json::json!({ "enabled": true });
    page.call("Emulation.setTouchEmulationEnabled", touch);
    for (width, height, mobile) in [(1024, 768, true), (390, 844, true), (600, 800, false)] {
        let size = serde_json::json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        page.call("Emulation.setDeviceMetricsOverride", size);
        desk.go(&page, &format!("/tasks/{task}/changes"));
        page.shows("Press + beside a line");
        let buttons = "[...document.querySelectorAll('button.comment')]";
        page.until(&format!("{buttons}.length === 2"));
        let small = format!(
            "{buttons}.filter((one) => {{ const {{ width, height }} = one.getBoundingClientRect();
                return getComputedStyle(one).opacity !== '1' || width < 24 || height < 24 }}).length"
        );
        assert_eq!(page.eval(&small), 0, "{width}");
        let overlap = format!(
            "{buttons}[0].getBoundingClientRect().bottom <= {buttons}[1].getBoundingClientRect().top"
        );
        assert_eq!(page.eval(&overlap), true, "{width}");
    }
    page.click("button.comment", "+");
    // The task has ended: what is sent begins another, and a link leads there.
    desk.program.server.next(Answer::script("say: found one"));
    page.write(".comment-box textarea", "use a better word");
    page.click(".comment-box button", "Add comment");
    page.click(".review-bar button", "Send");
    page.click("#said a", "See it");
    page.until(&format!(
        "location.pathname.startsWith('/tasks/task_') && !location.pathname.includes('{task}')"
    ));
    page.shows("notes.txt:1");
}

/// An edit that arrives while a comment is being written leaves it, and a reload keeps it.
#[test]
fn a_comment_outlives_an_edit_and_a_reload() {
    let gate = Gate::new();
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    let write = |lines: &str| format!(r#"write: {{path: notes.txt, content: "{lines}"}}"#);
    desk.program.server.next(Answer::script(&write(r"one\ntwo\n")));
    desk.program.server.next(Answer::script(&write(r"zero\none\n")).gated(0, &gate));
    desk.program.server.next(Answer::script("say: renamed it"));
    desk.start(&page, "write notes");
    page.shows("write notes.txt");
    page.click("a", "Review the changes");
    page.until("location.pathname.endsWith('/changes')");
    let comment = |line: usize| {
        page.eval(&format!("document.querySelector('button[data-line=\"{line}\"]').click()"))
    };
    page.shows("two");
    comment(1);
    page.write(".comment-box textarea", "a better word");
    comment(2);
    page.write("tr:last-child .comment-box textarea", "why two?");
    gate.open();
    page.shows("zero");
    let texts =
        "[...document.querySelectorAll('.comment-box textarea')].map(one => one.value).join()";
    let both = format!("{texts} === 'a better word,why two?'");
    page.until(&both);
    // The line that was moved keeps its comment, the one that is gone says so.
    page.until("document.querySelector('button[data-line=\"2\"]').closest('tr').nextElementSibling.matches('.comment-row')");
    page.shows("notes.txt:2 is not among the lines that are shown. It said: two");
    page.until("document.activeElement.value === 'why two?'");
    page.eval(&until_kept("why two?"));
    page.reload();
    page.until(&both);
    page.click(".comment-box button", "Add comment");
    page.shows("1 comment");
    page.eval(&until_kept("added&quot;:true"));
    page.reload();
    page.shows("1 comment");
    page.shows("You: a better word");
}

/// Resolves when the server has kept a comment with these words.
fn until_kept(words: &str) -> String {
    let kept = format!("(await (await fetch(location.href)).text()).includes('{words}')");
    format!(
        "(async () => {{ while (!{kept}) await new Promise((done) => setTimeout(done, 50)); }})()"
    )
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
    page.shows("No tasks yet");
    assert_eq!(desk.program.server.request_count(), 0);
}

#[test]
fn a_schedule_is_removed_on_its_page() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    let add = ["schedule", "add", "--start", "write the weekly report", "--cron", "30 9 * * 1"];
    desk.program.windlass(&add).expect(0);
    desk.go(&page, "/schedules");
    page.shows("write the weekly report");
    page.click("button", "Remove");
    page.shows("Nothing is scheduled");
    page.until("!document.querySelector('main button')");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// A task is paused after its step and resumed, both from its session.
#[test]
fn a_task_is_paused_and_resumed_from_its_page() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("bash: echo one step").gated(0, &gate));
    desk.program.server.next(Answer::script("say: the rest is done"));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "work in two steps");
    page.shows("Thinking");
    page.click(".controls button", "Pause");
    gate.open();
    page.until("document.querySelector('.session-bar .chip').textContent === 'Paused'");
    assert!(!page.text().contains("the rest is done"), "{}", page.text());
    page.click(".controls button", "Resume");
    page.shows("the rest is done");
    page.shows("Details");
    assert_live_equals_reload(&page);
}

/// A failed task says why, beside its conversation and beside its result, and one button tries it again.
#[test]
fn a_failed_task_says_why_and_is_tried_again() {
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::error(400, "the model has no such parameter"));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "work");
    page.shows("It could not continue");
    page.shows("the model has no such parameter");
    let task = desk.program.task();
    desk.go(&page, &format!("/tasks/{task}/result"));
    page.shows("It could not continue");
    page.shows("the model has no such parameter");
    desk.program.server.next(Answer::script("say: this time it works"));
    page.click(".controls button", "Try again");
    page.shows("this time it works");
    page.hides("It could not continue");
    assert_live_equals_reload(&page);
}

#[test]
fn a_very_long_diff_keeps_its_numbers_whole_and_leads_to_all_of_it() {
    let lines: String = (1..=1600).map(|number| format!("line {number}\n")).collect();
    let script = serde_json::json!({ "replies": [
        { "write": { "path": "long.txt", "content": lines } },
        { "say": "written" },
    ]});
    let mut desk = Desk::playing(&script.to_string());
    let (_context, page) = desk.sign_in();
    page.resize(390, 844);
    desk.start(&page, "write a long file");
    page.shows("written");
    page.shows("Details");
    desk.go(&page, &format!("/tasks/{}/changes", desk.program.task()));
    page.shows("The first 1500 of 1601 lines.");
    let broken = "[...document.querySelectorAll('.ln')].filter((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return range.getClientRects().length > 1;
    }).map((one) => one.textContent)";
    assert_eq!(page.eval(broken), serde_json::json!([]));
    page.click(".earlier a", "Show all");
    page.until("location.search === '?whole=1' && document.readyState === 'complete'");
    page.shows("line 1600");
    assert_eq!(page.complaints(), Vec::<String>::new());
}
