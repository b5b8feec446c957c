//! Text of models, tools and people is text, whatever it says.

use crate::desk::Desk;

/// Markup, scripts, pictures, escape sequences and reordering characters, wherever text comes from.
#[test]
fn hostile_text_is_shown_as_text_and_fetches_nothing() {
    let evil = r#"<script>window.hacked=1</script><img src=https://evil.example/a onerror="window.hacked=2"><svg onload=window.hacked=3>"#;
    let script = serde_json::json!({ "replies": [
        { "bash": format!("printf '%s\\033[31m\\n' '{}'", evil.replace('\'', "")) },
        { "write": { "path": "<b>x</b>.html", "content": format!("{evil}\n") } },
        { "say": format!("# {evil}\n\n![x](https://evil.example/b)\n\n[y](javascript:window.hacked=4)\n\n\u{202e}gnp") },
    ]});
    let mut desk = Desk::playing(&script.to_string());
    let (_context, page) = desk.sign_in();
    desk.start(&page, &format!("goal {evil}"));
    page.shows("Done");
    let session = page.eval("location.pathname");
    let task = page.eval("document.querySelector('a[href^=\"/tasks/\"]').getAttribute('href')");
    let task = task.as_str().unwrap().split('/').nth(2).unwrap().to_owned();
    let tabs = ["timeline", "events", "changes", "outputs", "result"];
    let mut places: Vec<String> = tabs.iter().map(|tab| format!("/tasks/{task}/{tab}")).collect();
    let more = ["/", "/tasks", "/cost", session.as_str().unwrap()];
    places.extend(more.map(str::to_owned));
    for place in places {
        desk.go(&page, &place);
        page.shows("window.hacked");
        assert!(page.eval("window.hacked").is_null(), "{place}");
        let foreign = "document.querySelectorAll('main img, main iframe, main script, main a[href^=\"javascript\" i]').length";
        assert_eq!(page.eval(foreign), 0, "{place}");
        assert!(!page.text().contains('\u{202e}') && !page.text().contains('\u{1b}'), "{place}");
        assert_eq!(page.complaints(), Vec::<String>::new(), "{place}");
    }
    let foreign: Vec<_> = page.requests().into_iter().filter(|url| url.contains("evil")).collect();
    assert_eq!(foreign, Vec::<String>::new());
}
