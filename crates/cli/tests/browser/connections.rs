//! What happens to pages: many tabs, frozen ones, no network, a new server.

use windlass_testkit::{Answer, Gate};

use crate::desk::{Desk, assert_live_equals_reload};

const GOAL: &str = "say it when asked";

/// Browsers allow six connections to a server; all tabs share one stream.
#[test]
fn seven_tabs_stay_up_to_date() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: the seventh tab sees it").gated(0, &gate));
    let (context, first) = desk.sign_in();
    desk.start(&first, GOAL);
    let address = first.eval("location.pathname");
    let tabs: Vec<_> = (0..7).map(|_| context.page()).collect();
    for tab in &tabs {
        desk.go(tab, address.as_str().unwrap());
        tab.shows(GOAL);
    }
    gate.open();
    for tab in &tabs {
        tab.shows("the seventh tab sees it");
    }
    let streams = tabs.iter().flat_map(|tab| tab.requests());
    assert_eq!(streams.filter(|url| url.contains("/live")).count(), 0, "one tab has the stream");
}

/// A phone freezes tabs that are not seen, and takes the network away.
#[test]
fn a_frozen_tab_and_a_lost_network_catch_up() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: said in the meantime").gated(0, &gate));
    desk.program.server.next(Answer::script("say: said without a network"));
    let (_context, page) = desk.sign_in();
    desk.start(&page, GOAL);
    page.shows("Thinking");
    page.freeze(true);
    gate.open();
    desk.until_done();
    assert!(!page.text().contains("said in the meantime"), "a frozen tab sees nothing");
    page.freeze(false);
    page.shows("said in the meantime");
    page.shows("Details");
    page.offline(true);
    page.shows("Disconnected since");
    let task = desk.program.task();
    desk.program.windlass(&["send", &task, "and again", "--quiet"]).expect(0);
    assert!(!page.text().contains("said without a network"), "{}", page.text());
    page.offline(false);
    page.hides("Disconnected since");
    page.shows("said without a network");
    page.until("document.querySelectorAll('.ended').length === 2");
    assert_live_equals_reload(&page);
}

/// A page that is closed ends nothing: the task works on, and whoever comes back sees all of it.
#[test]
fn a_closed_page_cancels_nothing() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: said to nobody").gated(0, &gate));
    let (context, page) = desk.sign_in();
    desk.start(&page, GOAL);
    page.shows("Thinking");
    let address = page.eval("location.pathname");
    page.close();
    gate.open();
    desk.until_done();
    let later = context.page();
    desk.go(&later, address.as_str().unwrap());
    later.shows("said to nobody");
    later.shows("Details");
    assert_live_equals_reload(&later);
}

/// A connection that is open and dead: nothing says so, and a new one is not answered either. Nobody loads the page again.
#[test]
fn a_server_that_falls_silent_is_noticed_and_caught_up_with() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: said after the silence").gated(0, &gate));
    let (_context, page) = desk.sign_in();
    // Its long waits pass twenty times as fast.
    page.before_each(
        "const wait = window.setTimeout;
         window.setTimeout = (work, ms, ...more) => wait(work, ms >= 10000 ? ms / 20 : ms, ...more)",
    );
    desk.start(&page, GOAL);
    page.shows("Thinking");
    page.eval("window.isSame = true");
    desk.halt(true);
    page.shows("Disconnected since");
    // Nothing moves as if somebody knew that it still lasts.
    let moves = "getComputedStyle(document.querySelector('.spinner')).animationName !== 'none'";
    assert_eq!(page.eval(moves), false);
    desk.halt(false);
    page.hides("Disconnected since");
    assert_eq!(page.eval(moves), true);
    gate.open();
    page.shows("said after the silence");
    assert_eq!(page.eval("window.isSame"), true);
    page.shows("Details");
    assert_live_equals_reload(&page);
}

/// Behind a proxy that shows it under a path, every address of the page has that path.
#[test]
fn the_page_works_under_a_path_of_a_proxy() {
    let program = crate::program::Program::playing("replies: [{say: found it}]");
    program.windlass(&["config", "set", "server.base_path", "/tools/windlass"]).expect(0);
    let mut desk = Desk::of(program);
    assert!(desk.url.ends_with("/tools/windlass"), "{}", desk.url);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "look for it");
    page.shows("found it");
    page.shows("Details");
    assert_live_equals_reload(&page);
    let is_inside = "location.pathname.startsWith('/tools/windlass/')";
    let outside = "[...document.querySelectorAll('[href], [src], [action]')] \
        .map((one) => one.getAttribute('href') ?? one.getAttribute('src') ?? one.getAttribute('action')) \
        .filter((address) => address.startsWith('/') && !address.startsWith('/tools/windlass/'))";
    for place in ["Inbox", "Plans", "Schedules", "Workflows", "Skills", "Cost", "Health", "Tasks"] {
        page.click("nav a", place);
        page.until(&format!(
            "document.querySelector('[aria-current=page] .name')?.textContent === '{place}'"
        ));
        page.until("document.readyState === 'complete' && document.querySelector('main h1')");
        assert_eq!(page.eval(is_inside), true, "{place}");
        assert_eq!(page.eval(outside), serde_json::json!([]), "{place}");
    }
    page.write("#q", "look for it");
    page.press("Enter");
    page.until("location.search.includes('look')");
    assert_eq!(page.eval(is_inside), true);
    page.shows("look for it");
    let requests = page.requests();
    let outside = requests.iter().filter(|url| !url.contains("/tools/windlass"));
    assert_eq!(outside.collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// On a phone a connection may hang before it is one: it is given up in time, and the next one is made.
#[test]
fn a_connection_that_hangs_is_given_up_and_made_again() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: said after it hung").gated(0, &gate));
    let (_context, page) = desk.sign_in();
    // The first two never come to anything, and long waits pass twenty times as fast.
    page.before_each(
        "const wait = window.setTimeout, Real = window.EventSource;
         window.setTimeout = (work, ms, ...more) => wait(work, ms >= 10000 ? ms / 20 : ms, ...more);
         window.attempts = 0;
         window.EventSource = function (...how) {
             return ++window.attempts > 2 ? new Real(...how) : { close() {}, addEventListener() {} };
         };",
    );
    desk.start(&page, GOAL);
    page.until("window.attempts > 2");
    page.hides("Disconnected since");
    gate.open();
    page.shows("said after it hung");
    page.shows("Details");
    assert_live_equals_reload(&page);
}
