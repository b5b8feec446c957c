//! What a page does when something goes wrong behind it.

use rusqlite::Connection;

use crate::desk::Desk;

/// A page that the server could not draw says so, and is drawn as soon as it can be again.
#[test]
fn a_page_whose_drawing_failed_is_drawn_again() {
    let mut desk = Desk::playing("replies: []");
    let (context, page) = desk.sign_in();
    desk.program.windlass(&["commitments", "commit", "the first promise"]).expect(0);
    desk.go(&page, "/commitments");
    page.shows("the first promise");
    let database = Connection::open(desk.program.data_directory().join("windlass.db")).unwrap();
    database.execute_batch("ALTER TABLE commitments RENAME TO commitments_gone").unwrap();
    page.shows("Not up to date since");
    page.shows("the first promise");
    // Nor can it be loaded; it says so, and does it by itself later.
    let other = context.page();
    desk.go(&other, "/commitments");
    other.shows("This page could not be drawn just now");
    database.execute_batch("ALTER TABLE commitments_gone RENAME TO commitments").unwrap();
    page.hides("Not up to date since");
    other.shows("the first promise");
    desk.program.windlass(&["commitments", "commit", "the second promise"]).expect(0);
    page.shows("the second promise");
}

/// A page of an older program asks to be loaded again, and says nothing it does not know.
#[test]
fn an_old_page_asks_to_be_loaded_again() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    page.before_each(
        "new MutationObserver((_, observer) => {
            const root = document.documentElement;
            if (root?.dataset.version && !sessionStorage.wasOld) {
                root.dataset.version = 'another';
                sessionStorage.wasOld = '1';
                observer.disconnect();
            }
        }).observe(document, { childList: true, subtree: true })",
    );
    desk.go(&page, "/inbox");
    page.shows("Windlass was updated.");
    page.click("#banner a", "Load the page again");
    page.hides("Windlass was updated.");
}

/// A browser whose login has ended is led to where it can sign in.
#[test]
fn a_browser_that_is_signed_out_is_led_to_the_login_page() {
    let mut desk = Desk::playing("replies: []");
    let (context, page) = desk.sign_in();
    let other = context.page();
    desk.go(&other, "/settings");
    other.click("button", "Sign out");
    other.until("location.pathname === '/login'");
    page.write("#message", "too late");
    page.press("Enter");
    page.until("location.pathname === '/login'");
    assert_eq!(desk.program.server.request_count(), 0);
}

/// The icon has the number of open questions, and a screen reader announces a new one.
#[test]
fn the_icon_counts_questions_and_new_ones_are_announced() {
    let mut desk = Desk::playing("replies: [{bash: rm notes.md}, {say: removed it}]");
    let (context, page) = desk.sign_in();
    desk.go(&page, "/inbox");
    let plain = page.eval("document.querySelector('#icon').href");
    let icon = "decodeURIComponent(document.querySelector('#icon').href)";
    let second = context.page();
    desk.start(&second, "tidy up the notes");
    page.until(&format!("{icon}.includes('>1</text>')"));
    assert_eq!(
        page.eval("document.querySelector('#news').textContent"),
        "A question waits: tidy up the notes"
    );
    assert_eq!(page.eval("document.querySelector('#news').ariaLive"), "polite");
    let pixels = "(async () => {
        const picture = new Image();
        picture.src = document.querySelector('#icon').href;
        await picture.decode();
        const canvas = new OffscreenCanvas(32, 32).getContext('2d');
        canvas.drawImage(picture, 0, 0, 32, 32);
        return canvas.getImageData(0, 0, 32, 32).data.join();
    })()";
    let one = page.eval(pixels);
    desk.program.server.next(windlass_testkit::Answer::script("bash: rm -r build"));
    page.eval("post('/v1/tasks', { goal: 'remove the build' })");
    page.until(&format!("{icon}.includes('>2</text>')"));
    assert_ne!(page.eval(pixels), one, "the number is drawn");
    page.until("document.querySelectorAll('.answers').length === 2");
    for left in [1, 0] {
        page.click(".answers button", "Deny");
        page.until(&format!("document.querySelectorAll('.answers').length === {left}"));
    }
    page.until("!document.title.startsWith('(')");
    assert_eq!(page.eval("document.querySelector('#icon').href"), plain);
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// More pages than the server keeps up to date: those that are left out say so.
#[test]
fn a_page_that_gets_no_patches_says_so() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/inbox");
    // Other tabs show what they show by the channel; this one holds the stream.
    page.until("isLeader");
    page.eval(
        "window.told = []; window.wide = new BroadcastChannel('windlass');
         wide.onmessage = ({ data }) => told.push(data);
         for (let at = 0; at < 21; at++)
             wide.postMessage({ kind: 'show', tab: `t${at}`, view: `/tasks?q=${at}`, seen: false })",
    );
    page.until("told.some(one => one.kind === 'shown' && one.data.length === 20 && !one.data.includes('/tasks?q=20'))");
    page.eval("wide.postMessage({ kind: 'shown', data: ['/tasks'] })");
    page.shows("This page is not kept up to date: more than 20 pages are open.");
    page.eval("wide.postMessage({ kind: 'shown', data: ['/inbox'] })");
    page.hides("This page is not kept up to date");
}

/// A notification names what waits, comes only when no page is in sight, and goes when the question is answered.
#[test]
fn a_notification_names_what_waits_and_goes_with_the_answer() {
    let mut desk = Desk::playing("replies: [{bash: rm notes.md}, {say: removed it}]");
    let (context, page) = desk.sign_in();
    // The browser shows nothing here: what would be shown is written down.
    page.before_each(
        "window.made = []; window.away = false;
         window.Notification = class {
             static permission = 'granted';
             static requestPermission() { return Promise.resolve('granted'); }
             constructor(title, options) { this.words = `${title}: ${options.body}`; this.tag = options.tag; made.push(this); }
             close() { this.closed = true; }
         };
         Object.defineProperty(document, 'hidden', { get: () => window.away });",
    );
    desk.go(&page, "/inbox");
    page.click("[data-notify]", "Notify me");
    page.shows("Notifications are on");
    let second = context.page();
    desk.start(&second, "tidy up the notes");
    second.shows("Run this command?");
    page.until("document.title.startsWith('(1)')");
    assert_eq!(page.eval("made.length"), 0, "two pages are in sight");
    second.click(".answers button", "Deny");
    second.shows("removed it");
    page.until("!document.title.startsWith('(1)')");
    second.close();
    page.eval("window.away = true");
    desk.program.server.next(windlass_testkit::Answer::script("bash: rm -r build"));
    page.eval("post('/v1/tasks', { goal: 'remove the build' })");
    page.until("made.length === 1");
    assert_eq!(page.eval("made[0].words"), "Windlass waits for you: remove the build");
    // Another question has its own, and each goes with its own question.
    desk.program.server.next(windlass_testkit::Answer::script("bash: rm -r cache"));
    page.eval("post('/v1/tasks', { goal: 'remove the cache' })");
    page.until("made.length === 2 && document.querySelectorAll('.answers').length === 2");
    assert_ne!(page.eval("made[0].tag"), page.eval("made[1].tag"));
    page.click(".answers button", "Deny");
    page.until("made.filter(one => one.closed).length === 1");
    // Whoever looks at a page has seen the rest.
    page.eval("window.away = false; document.dispatchEvent(new Event('visibilitychange'))");
    page.until("made.every(one => one.closed)");
}
