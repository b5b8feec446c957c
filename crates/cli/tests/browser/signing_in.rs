//! How a browser signs in, and where it is afterwards.

use serde_json::json;

use crate::desk::Desk;
use crate::program::Program;

/// A server that a proxy shows under a path.
fn under_a_path() -> Desk {
    let program = Program::playing("replies: []");
    program.windlass(&["config", "set", "server.base_path", "/tools/windlass"]).expect(0);
    Desk::of(program)
}

/// The code is taken out of the address.
#[test]
fn a_link_signs_in_a_tab_that_shows_the_login_page() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.visit();
    desk.go(&page, "/login");
    page.shows("Sign in");
    let link = desk.link();
    page.eval(&format!("window.isSame = true; location.href = {}", json!(link)));
    page.until(
        "!window.isSame && location.pathname === '/' && document.querySelector('#composer')",
    );
    assert_eq!(page.eval("location.hash"), "");
}

/// What is wrong is said in a sentence, and another code can be tried at once.
#[test]
fn a_wrong_code_is_refused_and_another_can_be_tried() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.visit();
    desk.go(&page, "/login");
    page.write("#code", "a wrong one");
    page.press("Enter");
    page.shows("This token or code is not valid; windlass open prints a new link");
    assert_eq!(page.eval("document.querySelector('#says code').textContent"), "windlass open");
    page.write("#code", &desk.link());
    page.press("Enter");
    page.until("location.pathname === '/' && document.querySelector('#composer')");
}

/// Browsers do not send the cookie with the first request then.
#[test]
fn a_link_of_another_site_leads_to_its_page() {
    for mut desk in [Desk::playing("replies: []"), under_a_path()] {
        let (_context, page) = desk.sign_in();
        let wanted = format!("{}/tasks?show=failed&q=%2Fetc#x", desk.url);
        page.go(&format!(
            "data:text/html,<a href='{}'>x</a>",
            wanted.replace('%', "%25").replace('#', "%23")
        ));
        page.click("a", "x");
        page.until(&format!("location.href === {}", json!(wanted)));
        page.shows("No such tasks");
    }
}

#[test]
fn whoever_signs_in_reaches_the_page_they_asked_for() {
    for mut desk in [Desk::playing("replies: []"), under_a_path()] {
        let (_context, page) = desk.visit();
        desk.go(&page, "/schedules?x=1#y");
        page.until("location.pathname.endsWith('/login')");
        let link = desk.link();
        page.write("#code", &link);
        page.press("Enter");
        page.until(&format!(
            "location.href === {}",
            json!(format!("{}/schedules?x=1#y", desk.url))
        ));
        page.shows("Nothing is scheduled");
        // Signed out while a page is open: the same.
        page.until("document.readyState === 'complete'");
        page.eval("fetch(`${base}/v1/logout`, { method: 'POST', headers: { 'x-windlass': '1' } })");
        page.eval("request('GET', '/v1/me').catch(() => 0)");
        page.until("location.pathname.endsWith('/login')");
        page.eval(&format!("location.hash = {}", json!(desk.link().split('#').nth(1).unwrap())));
        page.shows("Nothing is scheduled");
    }
}

/// Nobody is led to another site, nor to another program behind the same proxy.
#[test]
fn a_hostile_target_leads_to_the_first_page() {
    for mut desk in [Desk::playing("replies: []"), under_a_path()] {
        let (_context, page) = desk.sign_in();
        let targets = [
            "https://evil.example/",
            "//evil.example/",
            "/\\evil.example/",
            "\\\\evil.example",
            "/.//evil.example",
            "/\t/evil.example",
            "\t//evil.example",
            "javascript:alert(1)",
            "@evil.example",
            ".evil.example",
            "/../../x//y",
            "",
        ];
        for to in targets {
            desk.go(&page, &format!("/login?to={}", url_encoded(to)));
            page.until(&format!("location.href.replace(/\\/$/, '') === {}", json!(desk.url)));
        }
        let evil = page.requests().into_iter().find(|url| !url.starts_with(&desk.url));
        assert_eq!(evil, None);
    }
}

fn url_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}
