//! Roles and commitments on the page.

use windlass_testkit::{Answer, Gate, Page};

use crate::desk::Desk;
use crate::program::Program;

/// AX-071, AX-096: the switcher says which tools change, and the header shows the role.
#[test]
fn the_role_switcher_shows_which_tools_change_and_switches() {
    let mut desk = Desk::playing("replies: [{say: hello there}, {say: here is a plan}]");
    let (_context, page) = desk.sign_in();
    desk.start(&page, "hello");
    page.shows("hello there");
    page.click("summary.axes", "");
    page.shows("Without write, edit, bash");
    page.shows("Needs a claimed commitment");
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
    page.click("button", "Give back");
    page.shows("Open");
    page.until(
        "[...document.querySelectorAll('main button')].some((one) => one.textContent === 'Claim')",
    );
}

/// AX-061: work goes back with a reason, which the page demands.
#[test]
fn submitted_work_is_judged_on_its_page_with_a_reason() {
    let program = Program::playing("replies: []");
    people(&program);
    let mut desk = Desk::of(program);
    let (_context, page) = desk.sign_in();
    let (_other, olga) = desk.visit();
    sign_in_as(&desk, &olga, "olga");
    let promised = "(async () => {
        const { commitment_id: id } = await post('/v1/commitments', { title: 'use JWT' });
        await post(`/v1/commitments/${id}/claim`);
        await post(`/v1/commitments/${id}/evidence`, { type: 'note', content: 'auth.rs' });
        await post(`/v1/commitments/${id}/submit`, { reason: 'all of it' });
        return id;
    })()";
    let id = olga.eval(promised).as_str().unwrap().to_owned();
    // Nobody judges their own work.
    desk.go(&olga, &format!("/commitments/{id}"));
    olga.shows("Handed in: all of it");
    let buttons =
        "[...document.querySelectorAll('main button')].map((one) => one.textContent).join()";
    assert_eq!(olga.eval(&format!("{buttons}.includes('Approve')")), false);
    desk.go(&page, "/commitments");
    page.click("a.button", "Review");
    page.until(&format!("location.pathname === '/commitments/{id}'"));
    page.shows("Handed in: all of it");
    page.click("form[data-reason] button", "Reject");
    assert_eq!(page.eval("document.querySelector('#reason').validity.valueMissing"), true);
    page.write("#reason", "no test of it");
    page.press("Enter");
    page.shows("rejected by ada: no test of it");
    olga.shows("rejected by ada: no test of it");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Two more people: one may only look, one sees and changes what is theirs.
const PEOPLE: &str = "
[server.users.vera]
token_sha256 = 'e8634684693f147f3d593d3ace2dc53e542d4d8b4e2d61e128199b9e320307e0'
access = 'viewer'

[server.users.olga]
token_sha256 = 'e83babeabef696679198ec477d63ec85e49a35304c2e9b1ccea6fb0571d758c3'
access = 'operator'
";

fn people(program: &Program) {
    let config = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, PEOPLE).unwrap();
}

fn sign_in_as(desk: &Desk, page: &Page<'_>, name: &str) {
    desk.go(page, "/login");
    page.write("#code", &format!("{name}-token"));
    page.press("Enter");
    page.until("location.pathname === '/' && document.readyState === 'complete'");
    page.shows("Sessions");
}

/// Whoever may only look finds no field and no button that would be refused, on no page and in no list of actions.
#[test]
fn people_are_offered_only_what_they_may_do() {
    let gate = Gate::default();
    let program = Program::playing("replies: []");
    people(&program);
    let mut desk = Desk::of(program);
    desk.program.server.next(Answer::script("bash: echo on").gated(0, &gate));
    desk.program.server.next(Answer::script("say: for olga"));
    desk.program.server.next(Answer::script("say: carried on"));
    let (_context, ada) = desk.sign_in();
    desk.start(&ada, "work for a while");
    ada.until("document.querySelector('[data-busy]')");
    ada.write("#message", "pears");
    ada.press("Enter");
    ada.until("document.querySelector('.queued')");
    ada.until("document.querySelector('#completions').innerHTML.length > 100");
    ada.until("![...document.querySelectorAll('.panel button')].some((one) => one.innerText === 'unrestricted')");
    let commands = "document.querySelectorAll('#completions li').length";
    let all = ada.eval(commands).as_u64().unwrap();

    let (_other, vera) = desk.visit();
    sign_in_as(&desk, &vera, "vera");
    let offered = "[...document.querySelectorAll('main :is(button, textarea, form, summary)')].filter((one) => one.checkVisibility()).map((one) => one.textContent).join()";
    assert_eq!(vera.eval(offered), "");
    vera.go(ada.eval("location.href").as_str().unwrap());
    vera.until("document.querySelector('#mode').innerText.includes('build')");
    vera.until("document.querySelector('.queued-text').innerText === 'pears'");
    assert_eq!(vera.eval(&format!("{offered}.includes('Stop')")), false, "{}", vera.eval(offered));
    assert_eq!(vera.eval(&format!("{offered}.includes('Send')")), false, "{}", vera.eval(offered));
    assert_eq!(vera.eval("document.querySelector('#composer')"), serde_json::Value::Null);
    assert_eq!(vera.eval("document.querySelector('.page-title .button')"), serde_json::Value::Null);
    vera.press("Control+k");
    vera.until("document.querySelector('#palette').open");
    assert_eq!(
        vera.eval("document.querySelector('#palette-list').innerText.includes('Stop')"),
        false
    );
    // What is their own they may end.
    desk.go(&vera, "/settings");
    assert_eq!(vera.eval(offered), "Sign out");
    vera.click("main button", "Sign out");
    vera.until("location.pathname === '/login'");

    let (_third, olga) = desk.visit();
    sign_in_as(&desk, &olga, "olga");
    // Where a session works is chosen by admins; how it works by everybody.
    assert_eq!(olga.eval("document.querySelector('[name=workspace]')"), serde_json::Value::Null);
    assert_eq!(olga.eval("document.querySelectorAll('.fields label').length"), 4);
    desk.start(&olga, "olga's own");
    olga.shows("for olga");
    let own = olga.eval(commands).as_u64().unwrap();
    desk.go(&olga, "/health");
    olga.shows("This page is for admins");
    assert_eq!(olga.eval("document.querySelector('main .button')"), serde_json::Value::Null);
    assert!(10 < own && own < all, "{own} of {all}");
    gate.open();
}
