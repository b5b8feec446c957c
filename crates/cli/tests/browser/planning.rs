//! How a session works, changed from the page: its mode, its plan, what waits for it.

use windlass_testkit::{Answer, Gate};

use crate::desk::{Desk, assert_live_equals_reload};

/// MS-002, MS-104: the chip opens a panel, and a choice in it changes the session.
#[test]
fn the_mode_is_changed_by_the_panel_of_its_chip() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    // The agent is at work during both changes: each of them ends its request.
    for _ in 0..2 {
        desk.program.server.next(Answer::script("bash: echo on").gated(0, &gate));
    }
    desk.program.server.next(Answer::script("say: carried on"));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "work a while");
    page.shows("Thinking");
    page.until("document.querySelector('details.mode summary').innerText.includes('build')");
    page.click("details.mode summary", "build");
    page.click("details.mode button", "plan");
    page.until("document.querySelector('details.mode summary').innerText.includes('plan')");
    desk.program.server.requests_reach_blocking(2);
    page.click("details.mode button", "manual");
    page.until("document.querySelector('details.mode summary').innerText.includes('manual')");
    gate.open();
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// The panel of the mode closes by Esc, which leaves the focus on its chip, and by a click beside it.
#[test]
fn the_panel_of_the_mode_closes_like_a_menu() {
    let mut desk = Desk::playing("replies: [{say: finished}]");
    let (_context, page) = desk.sign_in();
    desk.start(&page, "one thing");
    page.shows("finished");
    let is_open = "document.querySelector('#mode').open";
    for close in ["Escape", ""] {
        page.click("details.mode summary", "build");
        page.until(is_open);
        page.click(".panel legend", "Work mode");
        assert_eq!(page.eval(is_open), true, "a click inside leaves it open");
        match close.is_empty() {
            true => page.click("h1", "one thing"),
            false => page.press(close),
        }
        page.until(&format!("!{is_open}"));
        if !close.is_empty() {
            assert_eq!(page.eval("document.activeElement.matches('#mode summary')"), true);
        }
    }
}

/// What is chosen before a session begins is how it begins.
#[test]
fn the_options_of_a_session_reach_its_task() {
    let mut desk = Desk::playing("replies: [{say: finished}]");
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/");
    page.click("#options summary", "Options");
    for (name, value) in [("mode", "research"), ("profile", "normal"), ("model", "deep")] {
        page.eval(&format!("document.querySelector('[name={name}]').value = '{value}'"));
    }
    page.eval("document.querySelector('[name=budget]').value = '2.5'");
    let offered = "[...document.querySelectorAll('[name=mode] option')].length";
    assert_eq!(page.eval(offered), 6, "every mode that the panel has");
    page.write("#message", "look around");
    page.press("Enter");
    page.shows("finished");
    page.until("document.querySelector('details.mode summary').innerText.includes('research')");
    let task = page.eval("request('GET', '/v1/tasks').then(({ tasks }) => tasks[0])");
    let axes = &task["axes"];
    assert_eq!(
        (&axes["workMode"], &axes["permissionProfile"], &axes["modelMode"]),
        (&"research".into(), &"normal".into(), &"deep".into()),
        "{task}"
    );
    assert_eq!(task["cost_budget_usd"], 2.5, "{task}");
}

/// MS-002, MS-104: however long a session is, its mode and what stops it stay in sight.
#[test]
fn the_mode_and_stop_stay_in_sight_at_the_end() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    let long = "A paragraph of the report.\n\n".repeat(80);
    let first = serde_json::json!({ "say": long, "bash": "echo on" });
    desk.program.server.next(Answer::script(&first.to_string()));
    desk.program.server.next(Answer::script("say: at last").gated(0, &gate));
    let (_context, page) = desk.sign_in();
    desk.start(&page, &"a long goal that takes several lines ".repeat(6));
    page.shows("Thinking");
    for (width, height) in [(390, 844), (768, 1024), (1280, 860)] {
        page.resize(width, height);
        page.eval("scrollTo(0, document.documentElement.scrollHeight)");
        page.until("scrollY > 800");
        for what in ["#mode summary", ".session-bar .controls .danger", ".session-bar .chip"] {
            // Inside the window, and nothing lies on it.
            let seen = format!(
                "(() => {{ const one = document.querySelector('{what}');
                    const {{ left, right, top, bottom }} = one.getBoundingClientRect();
                    const within = left >= 0 && right <= {width} && top >= 0 && bottom <= innerHeight;
                    return within && one.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2)); }})()"
            );
            assert_eq!(page.eval(&seen), true, "{what} at {width}");
        }
        let rows = "document.querySelector('.session-bar').getBoundingClientRect().height";
        assert!(
            page.eval(rows).as_f64().unwrap() < 48.0,
            "one row at {width}: {}",
            page.eval(rows)
        );
        page.eval("document.querySelector('#mode').open = true");
        let panel = "(({ left, right, bottom }) => [left >= 0, right <= document.documentElement.clientWidth, bottom <= innerHeight].join())(document.querySelector('.panel').getBoundingClientRect())";
        assert_eq!(page.eval(panel), "true,true,true", "{width}");
        page.eval("document.querySelector('#mode').open = false");
    }
    gate.open();
}

/// A slash command is carried out as on every surface, and its answer is drawn.
#[test]
fn a_slash_command_is_answered_on_the_page() {
    let mut desk = Desk::playing("replies: [{say: finished}]");
    let (_context, page) = desk.sign_in();
    desk.start(&page, "one thing");
    page.shows("finished");
    page.write("#message", "/cost");
    page.press("Enter");
    page.until("!document.querySelector('#reply').hidden");
    page.until("document.querySelector('#reply').innerText.trim().length > 0");
    page.until("document.querySelector('#completions').hidden");
    assert_eq!(desk.program.server.request_count(), 1, "it was not said to the agent");
    // What a command does is read on a phone too, and what stands between backticks is code.
    page.resize(390, 844);
    page.write("#message", "/help");
    page.press("Enter");
    page.until("document.querySelectorAll('#reply dd').length > 10 && document.querySelector('#reply dd code')");
    let narrowest = "Math.min(...[...document.querySelectorAll('#reply :is(dt, dd)')].map((one) => one.offsetWidth))";
    assert!(page.eval(narrowest).as_i64().unwrap() > 250, "{}", page.eval(narrowest));
}

const PLANS: &str = "
replies:
  - say: \"1. read the note\\n2. remove it\"
  - say: \"1. copy the note\\n2. remove it\"
  - say: both are done
";

/// A plan is read whole on the page, sent back with words, and accepted.
#[test]
fn a_plan_is_revised_and_accepted_on_the_page() {
    let mut desk = Desk::playing(PLANS);
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/");
    page.eval("document.querySelector('select[name=mode]').value = 'plan'");
    page.write("#message", "plan what to do with the note");
    page.press("Enter");
    page.shows("Accept this plan?");
    page.shows("remove it");
    page.shows("It has no cost limit.");
    page.write(".own-words input", "copy it first");
    page.press("Enter");
    page.shows("copy the note");
    page.click(".question .answers button", "Accept");
    page.shows("both are done");
    page.until("document.querySelector('details.mode summary').innerText.includes('build')");
    let request = desk.program.server.requests()[1].json().to_string();
    assert!(request.contains("copy it first"), "{request}");
    page.shows("Details");
    assert_live_equals_reload(&page);
}

/// MS-026: one button accepts a plan and lets it run alone.
#[test]
fn a_plan_is_accepted_to_run_autonomously_on_the_page() {
    let mut desk = Desk::playing("replies: [{say: 1. read the note}, {say: it is read}]");
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/");
    page.eval("document.querySelector('select[name=mode]').value = 'plan'");
    page.write("#message", "plan what to do with the note");
    page.press("Enter");
    page.shows("Accept this plan?");
    page.click(".question .answers button", "Accept and run autonomously");
    page.shows("it is read");
    let mode = "document.querySelector('details.mode summary').innerText";
    page.until(&format!("{mode}.includes('build') && {mode}.includes('autonomous')"));
    let sessions = desk.program.windlass(&["sessions", "--json"]).expect(0).json_lines();
    let log = ["mode", "log", "--json", "--session", sessions[0]["session_id"].as_str().unwrap()];
    let changes = desk.program.windlass(&log).expect(0).json_lines();
    let last = changes.last().unwrap();
    assert_eq!(
        (&last["source"], &last["to"]["runControl"]),
        (&"plan".into(), &"autonomous".into())
    );
}

/// What is written while a task works waits, can be changed, reordered and removed, and is sent when it has ended.
#[test]
fn messages_wait_are_changed_and_sent_when_the_task_has_ended() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: first answer").gated(0, &gate));
    for answer in ["say: second answer", "say: third answer"] {
        desk.program.server.next(Answer::script(answer));
    }
    let (_context, page) = desk.sign_in();
    desk.start(&page, "begin");
    page.shows("Thinking");
    for text in ["apples", "pears", "plums"] {
        page.write("#message", text);
        page.press("Enter");
        page.until(&format!(
            "[...document.querySelectorAll('.queued-text')].some(one => one.innerText === '{text}')"
        ));
    }
    // The last one goes up, the first one goes away, another is changed.
    page.click(".queued:has(textarea) button", "Remove");
    page.until("document.querySelectorAll('.queued').length === 2");
    page.click("#queue > div:last-child button", "Up");
    page.until("document.querySelector('.queued-text').innerText === 'plums'");
    page.click("#queue > div:last-child summary", "Edit");
    page.eval("document.querySelector('#queue > div:last-child textarea').select()");
    page.write("#queue > div:last-child textarea", "ripe pears");
    page.click("#queue > div:last-child form button", "Save");
    page.until(
        "document.querySelector('#queue > div:last-child .queued-text').innerText === 'ripe pears'",
    );
    page.reload();
    let texts = "[...document.querySelectorAll('.queued-text')].map(one => one.innerText).join()";
    assert_eq!(page.eval(texts), "plums,ripe pears");
    assert_eq!(desk.program.server.request_count(), 1, "nothing was sent yet");
    // A finger reaches each of them on a phone.
    page.resize(390, 844);
    let covered =
        "[...document.querySelectorAll('.queued-actions :is(button, summary)')].filter((one) => {
        if (!one.checkVisibility()) return false;
        one.scrollIntoView({ block: 'center' });
        const { left, right, top, bottom } = one.getBoundingClientRect();
        const top_most = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        return left < 0 || right > innerWidth || bottom - top < 24 || !one.contains(top_most);
    }).map((one) => one.innerText).join()";
    assert_eq!(page.eval(covered), "");
    assert_eq!(page.eval("document.querySelectorAll('.queued-actions summary').length"), 2);
    gate.open();
    page.shows("third answer");
    page.until("!document.querySelector('.queued')");
    let requests = desk.program.server.requests();
    let last =
        |at: usize| requests[at].json()["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last(1).contains("plums"), "{}", last(1));
    assert!(last(2).contains("ripe pears"), "{}", last(2));
}

/// Two people change the same message: whoever comes second sees what the first has made of it, and decides.
#[test]
fn a_message_that_two_people_change_shows_the_conflict() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: first answer").gated(0, &gate));
    let (_first, ada) = desk.sign_in();
    desk.start(&ada, "begin");
    ada.shows("Thinking");
    ada.write("#message", "pears");
    ada.press("Enter");
    ada.until("document.querySelector('.queued-text')?.innerText === 'pears'");
    let (_second, other) = desk.sign_in();
    other.go(ada.eval("location.href").as_str().unwrap());
    let edit = |page: &windlass_testkit::Page<'_>, text: &str| {
        page.click(".queued summary", "Edit");
        page.eval("document.querySelector('.queued textarea').select()");
        page.write(".queued textarea", text);
    };
    edit(&ada, "ripe pears");
    edit(&other, "plums");
    other.click(".queued form button", "Save");
    ada.until("document.querySelector('.queued-text').innerText === 'plums'");
    assert_eq!(ada.eval("document.querySelector('.queued textarea').value"), "ripe pears");
    ada.click(".queued form button", "Save");
    ada.shows("Somebody has changed it meanwhile to “plums”");
    let text = "document.querySelector('.queued-text').innerText";
    assert_eq!(ada.eval(text), "plums", "nothing is written over unseen");
    ada.click(".queued form button", "Save");
    ada.until(&format!("{text} === 'ripe pears'"));
    // What nobody is writing into follows.
    other.until("document.querySelector('.queued textarea').value === 'ripe pears'");
    gate.open();
}

/// A message that waits can be sent into what is being done.
#[test]
fn a_message_that_waits_is_sent_now() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("bash: echo step").gated(0, &gate));
    desk.program.server.next(Answer::script("say: understood"));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "begin");
    page.shows("Thinking");
    page.write("#message", "look at the tests too");
    page.press("Enter");
    page.shows("Next");
    page.click(".queued button", "Send now");
    page.until("!document.querySelector('.queued')");
    gate.open();
    page.shows("understood");
    let request = desk.program.server.requests()[1].json().to_string();
    assert!(request.contains("look at the tests too"), "{request}");
}
