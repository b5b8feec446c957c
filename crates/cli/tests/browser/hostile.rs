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

/// Long words, long lines, wide tables, many rows and other scripts: nothing is wider than the window, on a phone too.
#[test]
fn long_and_foreign_text_stays_inside_the_page() {
    let word = "Donaudampfschifffahrtsgesellschaft".repeat(12);
    let goal = format!("修复登录错误并编写测试 {word} إصلاح الخطأ {}", "very long goal ".repeat(40));
    let line = "let value = compute(".to_owned() + &"argument, ".repeat(60) + ");";
    let columns = "| column ".repeat(20);
    let table = format!("{columns}|\n{}|\n{columns}|", "|---".repeat(20));
    let script = serde_json::json!({ "replies": [
        { "bash": format!("echo {word}; echo {word} >&2; exit 3") },
        { "write": { "path": format!("{}/{}.rs", "deep/".repeat(12).trim_end_matches('/'), "name".repeat(20)), "content": format!("{line}\n") } },
        { "say": format!("# {word}\n\n```rust\n{line}\n```\n\n{table}\n\n- `{word}`\n") },
    ]});
    let mut desk = Desk::playing(&script.to_string());
    let (_context, page) = desk.sign_in();
    desk.start(&page, &goal);
    page.shows("Details");
    let session = page.eval("location.pathname").as_str().unwrap().to_owned();
    let task = desk.program.task();
    let mut places: Vec<String> = ["/", "/tasks", "/cost"].map(str::to_owned).into();
    places.push(session);
    let tabs = ["timeline", "events", "changes", "outputs", "result"];
    places.extend(tabs.iter().map(|tab| format!("/tasks/{task}/{tab}")));
    let pictures = std::env::var_os("WINDLASS_STRESS_SCREENSHOTS").map(std::path::PathBuf::from);
    for (number, place) in places.iter().enumerate() {
        desk.go(&page, place);
        for (width, height) in [(1280, 860), (390, 844)] {
            page.resize(width, height);
            // Not with `innerWidth`, which grows with what is too wide.
            let over = page.eval(&format!("document.documentElement.scrollWidth - {width}"));
            assert!(over.as_i64().unwrap() <= 0, "{place} is {over} pixels too wide at {width}");
            if let Some(directory) = &pictures {
                page.picture(&directory.join(format!("stress-{number}-{width}.png")));
            }
        }
    }
}
