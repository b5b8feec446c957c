//! A person starts a task and watches it.

use serde_json::json;
use windlass_testkit::{Answer, Gate, png};

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
    // What has printed it, and the way back.
    page.until("document.querySelector('pre.command').innerText === 'seq 1 60000'");
    page.until("/stdout\\s+\\S+ bytes/.test(document.querySelector('.whole-output h2').innerText)");
    page.click("a", "The call in its task");
    page.until("location.pathname.endsWith('/events') && document.querySelector(location.hash)?.innerText.includes('seq 1 60000')");
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

/// Whoever watches a command sees what it prints now; whoever has scrolled up to read is left there.
#[test]
fn the_end_of_what_a_command_prints_stays_in_sight() {
    let mut desk = Desk::playing("replies: []");
    let command = "seq 1 200; while [ ! -e go ]; do sleep 0.05; done; seq 201 300; sleep 600";
    desk.program.server.next(Answer::script(&format!("bash: '{command}'")));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "count");
    let prints = |line: &str| {
        page.until(&format!(
            "document.querySelector('.output.live')?.innerText.endsWith('{line}')"
        ));
    };
    let hidden_below = "(() => { const box = document.querySelector('.output.live'); \
        return box.querySelector('pre').getBoundingClientRect().bottom - box.getBoundingClientRect().bottom; })()";
    prints("200");
    assert!(page.eval(hidden_below).as_f64().unwrap() <= 0.0, "the last line is in sight");
    page.eval("document.querySelector('.output.live').scrollTop = -100_000");
    assert!(page.eval(hidden_below).as_f64().unwrap() > 1000.0, "the first line is in sight");
    let workspace = desk.program.data_directory().join("workspaces").join(desk.program.task());
    std::fs::write(workspace.join("go"), "").unwrap();
    prints("300");
    assert!(page.eval(hidden_below).as_f64().unwrap() > 2000.0, "and it still is");
}

/// Among many tabs the title and the icon say how each stands, on the session's page and on the task's.
#[test]
fn the_title_and_the_icon_say_how_a_task_stands() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: it is finished").gated(0, &gate));
    let (context, page) = desk.sign_in();
    desk.start(&page, "work a while");
    let task = context.page();
    desk.go(&task, &format!("/tasks/{}", desk.program.task()));
    let stands = |mark: &str, colour: &str| {
        format!(
            "document.title.startsWith('{mark} work a while') && decodeURIComponent(document.querySelector('#icon').href).includes('{colour}')"
        )
    };
    for page in [&page, &task] {
        page.until(&stands("▶", "#2f8fd0"));
    }
    gate.open();
    for page in [&page, &task] {
        page.until(&stands("✓", "#1c8a4a"));
    }
}

/// What a script in place of a model has made up is nobody's money: it is said, and counted nowhere.
#[test]
fn costs_of_scripts_are_in_no_sum() {
    let mut desk = Desk::playing("replies: [{say: it is real}]");
    let script = desk.program.workspace().join("script.yaml");
    std::fs::write(&script, "replies: [{say: done, usage: {input: 10, output: 10, cost: 7.5}}]")
        .unwrap();
    let model = format!("script:{}", script.display());
    desk.program.windlass(&["run", "play a script", "--model", &model, "--quiet"]).expect(0);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "ask a model");
    page.shows("it is real");
    page.shows("Details");
    desk.go(&page, "/cost");
    page.shows(
        "1 request to scripts in place of a model: not counted, nor the $7.50 that they name.",
    );
    page.shows("ask a model");
    let text = page.text();
    assert!(!text.contains("play a script"), "{text}");
    assert_eq!(text.matches("7.5").count(), 1, "{text}");
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
    // The whole picture is in sight on a phone, and zooming widens it.
    page.resize(390, 844);
    let wider = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.timeline .scroll'))";
    page.until(&format!("{wider} <= 1"));
    page.click(".filters a", "+");
    page.until(&format!("document.querySelector('.timeline .scroll') && {wider} > 100"));
    page.click(".filters a", "−");
    page.until("location.search === '?zoom=1' && document.readyState === 'complete'");
    page.resize(1280, 900);
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
    // An event beyond the window has its address too, and what is around the window is named.
    let task = page.eval("document.querySelector('a[href^=\"/tasks/\"]').getAttribute('href')");
    let task = task.as_str().unwrap().split('/').nth(2).unwrap().to_owned();
    desk.go(&page, &format!("/tasks/{task}/events"));
    page.shows("earlier events.");
    assert!(page.eval("document.querySelector('#e5')").is_null(), "the fifth event is not loaded");
    desk.go(&page, &format!("/tasks/{task}/events?at=5#e5"));
    page.until("document.querySelector('#e5:target .event')");
    page.shows("later events.");
    page.click(".earlier a", "Show them");
    page.until(
        "!document.querySelector('#e5') && document.querySelectorAll('.event').length === 300",
    );
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

/// Whatever is handed over can be had: a large file, a picture, and before there is a result.
#[test]
fn every_deliverable_has_its_file_before_the_result_too() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    let place = desk.program.workspace();
    std::fs::write(place.join("shot.png"), png(40, 30, 1)).unwrap();
    std::fs::write(place.join("large.txt"), "x".repeat(300_000)).unwrap();
    std::fs::write(place.join("report.md"), "# What was wrong\n").unwrap();
    for (name, kind) in [("shot.png", "screenshot"), ("large.txt", "data"), ("report.md", "report")]
    {
        let publish = json!({ "publish_deliverable": { "filepath": name, "description": format!("about {name}"), "type": kind } });
        desk.program.server.next(Answer::script(&publish.to_string()));
    }
    desk.program.server.next(Answer::script("say: at last").gated(0, &gate));
    page.eval("document.querySelector('#options').open = true");
    page.write("input[name=workspace]", &desk.program.real_workspace());
    page.write("#message", "hand it over");
    page.press("Enter");
    page.until("location.pathname.includes('/sessions/')");
    let session = "document.querySelectorAll('.deliverable').length === 3 && document.querySelector('.pictures img')?.naturalWidth === 40";
    page.until(session);
    let task = desk.program.task();
    desk.go(&page, &format!("/tasks/{task}/result"));
    page.shows("No result yet");
    page.until(session);
    let size = "fetch(document.querySelector('a.download[href*=large]').href).then((one) => one.text()).then((text) => text.length)";
    assert_eq!(page.eval(size), 300_000);
    assert!(!page.text().contains("What was wrong"), "it is folded: {}", page.text());
    page.click(".deliverable summary", "Preview");
    page.shows("What was wrong");
    page.click(".deliverable summary", "Preview");
    gate.open();
    page.shows("at last");
    assert_live_equals_reload(&page);
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// What is copied is what was written, not what is drawn of it.
#[test]
fn a_reply_is_copied_as_it_was_written() {
    let mut desk = Desk::playing("replies: [{say: 'It is **done**, see `main.rs`.'}]");
    let (_context, page) = desk.sign_in();
    let clipboard = |of_it: &str| {
        format!(
            "Object.defineProperty(navigator, 'clipboard', {{ configurable: true, value: {of_it} }}); 0"
        )
    };
    desk.start(&page, "do it");
    page.shows("It is done");
    page.eval(&clipboard("{ writeText: async (text) => { window.copied = text; } }"));
    page.click(".reply button", "Copy");
    page.shows("Copied");
    assert_eq!(page.eval("window.copied"), "It is **done**, see `main.rs`.");
    // A page that is not encrypted, of another machine.
    page.eval(&clipboard("undefined"));
    page.click(".reply button", "Copy");
    page.shows("The browser does not allow it.");
}
