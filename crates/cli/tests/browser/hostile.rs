//! Text of models, tools and people is text, whatever it says.

use serde_json::{Value, json};
use windlass_testkit::{Page, by_hand};

use crate::desk::Desk;
use crate::program::Program;

/// Markup, scripts, a picture from elsewhere and reordering characters.
const EVIL: &str = "<script>window.hacked=1</script><img src=https://evil.example/a onerror='window.hacked=2'>![x](https://evil.example/b)\u{202e}gnp";

/// A page that shows hostile text: nothing of it is markup, is run or reorders what stands beside it.
fn assert_harmless(page: &Page<'_>, place: &str) {
    page.until("document.querySelector('main').textContent.includes('window.hacked')");
    assert!(page.eval("window.hacked").is_null(), "{place}");
    let foreign = "document.querySelectorAll('main :is(img, iframe, script, object, [onerror], [onload], a[href^=\"javascript\" i])').length";
    assert_eq!(page.eval(foreign), 0, "{place}");
    let text = page.eval("document.title + document.body.textContent");
    let text = text.as_str().unwrap();
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{place}: {text}");
    assert_eq!(page.complaints(), Vec::<String>::new(), "{place}");
}

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
    desk.start(&page, &format!("\u{202e}gnp goal {evil}"));
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
    // The last place is the session. What a command answers there is drawn by the script.
    page.write("#message", "/tasks");
    page.press("Escape");
    page.press("Enter");
    let answered = "document.querySelector('#reply').textContent";
    page.until(&format!("{answered}.includes('window.hacked')"));
    let answered = page.eval(answered).as_str().unwrap().to_owned();
    assert!(answered.contains(r"\u{202E}gnp") && !answered.contains('\u{202e}'), "{answered}");
    assert!(page.eval("window.hacked").is_null());
    let foreign: Vec<_> = page.requests().into_iter().filter(|url| url.contains("evil")).collect();
    assert_eq!(foreign, Vec::<String>::new());
}

/// Two answers that differ never look the same, and what is sent is what the agent has offered.
#[test]
fn hidden_characters_of_an_answer_are_shown_and_sent() {
    let options = ["go", "g\u{202e}o", "g\u{200b}o"];
    let ask = serde_json::json!({ "ask_user": { "question": "Which `way`?", "options": options } });
    let script = serde_json::json!({ "replies": [ask, { "say": "thank you" }] });
    let mut desk = Desk::playing(&script.to_string());
    let (_context, page) = desk.sign_in();
    desk.start(&page, "ask me");
    page.shows("Which way?");
    page.until("document.querySelectorAll('.answers button').length === 3");
    let labels = "[...document.querySelectorAll('.answers button')].map((one) => one.textContent)";
    assert_eq!(page.eval(labels), serde_json::json!(["go", "g\\u{202E}o", "g\\u{200B}o"]));
    page.click(".answers button", "g\\u{202E}o");
    page.shows("thank you");
    let request = desk.program.server.requests().last().unwrap().json().to_string();
    assert!(request.contains("g\u{202e}o") || request.contains("202E"), "{request}");
}

/// What skills and MCP servers say of themselves is text too.
#[test]
fn descriptions_of_skills_and_servers_are_text() {
    let evil = r#"<img src=https://evil.example/a onerror="window.hacked=1"><script>window.hacked=2</script>"#;
    let script = serde_json::json!({ "replies": [{ "mcp__evil__look": {} }, { "say": "looked" }] });
    let program = Program::playing(&script.to_string());
    let put = |path: &str, text: &str| {
        let path = program.data.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let described = serde_json::json!(evil);
    put(
        ".windlass/skills/evil/SKILL.md",
        &format!("---\nname: evil\ndescription: {described}\n---\n{evil}\n"),
    );
    let server = program.workspace().join("server.py");
    std::fs::write(&server, SERVER.replace("EVIL", &described.to_string())).unwrap();
    put(
        ".config/windlass/config.toml",
        &format!("[mcp.servers.evil]\ncommand = 'python3'\nargs = ['{}']\n", server.display()),
    );
    program.windlass(&["permissions", "allow", "mcp:evil:*"]).expect(0);
    let mut desk = Desk::of(program);
    let (_context, page) = desk.sign_in();
    page.eval("document.querySelector('#options').open = true");
    page.write("input[name=workspace]", &desk.program.real_workspace());
    page.write("#message", "look around");
    page.press("Enter");
    page.until("location.pathname.includes('/sessions/')");
    page.shows("looked");
    page.shows("Details");
    let session = page.eval("location.pathname").as_str().unwrap().to_owned();
    let task = desk.program.task();
    // The model is offered the tool with what its server says of it.
    let offered = desk.program.server.requests()[0].json().to_string();
    assert!(offered.contains("mcp__evil__look"), "{offered}");
    for place in ["/skills".to_owned(), session, format!("/tasks/{task}/events")] {
        desk.go(&page, &place);
        page.until("document.querySelector('main').textContent.includes('window.hacked')");
        assert!(page.eval("window.hacked").is_null(), "{place}");
        assert_eq!(
            page.eval("document.querySelectorAll('main img, main script').length"),
            0,
            "{place}"
        );
        assert_eq!(page.complaints(), Vec::<String>::new(), "{place}");
    }
    let foreign: Vec<_> =
        page.requests().into_iter().filter(|url| url.contains("evil.example")).collect();
    assert_eq!(foreign, Vec::<String>::new());
}

/// A server whose every word is hostile.
const SERVER: &str = r#"
import json, sys
SAID = EVIL
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    tool = {"name": "look", "description": SAID, "inputSchema": {"type": "object", "properties": {}}}
    answers = {
        "initialize": lambda: {
            "protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": SAID, "version": "1"}, "instructions": SAID,
        },
        "tools/list": lambda: {"tools": [tool]},
        "tools/call": lambda: {"content": [{"type": "text", "text": SAID}]},
    }
    result = answers.get(asked["method"], dict)()
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

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

/// A machine on which everything that somebody can name is named by somebody hostile.
fn hostile_machine() -> Program {
    let plan = json!({ "update_plan": { "current_focus": EVIL, "overall_approach": EVIL,
        "steps": [{ "id": "1", "description": EVIL, "status": "in_progress" }] } });
    let drawing =
        format!("<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=3'>{EVIL}</svg>");
    let publish = |path: &str, kind: &str| json!({ "publish_deliverable": { "filepath": path, "description": EVIL, "type": kind } });
    let ask = json!({ "ask_user": { "question": EVIL, "context": EVIL, "options": [EVIL, "go"] } });
    let script = json!({
        "match": [{ "task": "below", "replies": [{ "say": EVIL }] }],
        "replies": [
            plan,
            { "write": { "path": "evil.svg", "content": drawing } },
            { "write": { "path": "evil.md", "content": format!("# {EVIL}\n") } },
            publish("evil.svg", "other"),
            publish("evil.md", "report"),
            { "spawn_agent": { "task": format!("below {EVIL}"), "label": EVIL } },
            ask,
            { "say": EVIL },
        ],
    });
    let program = Program::playing(&script.to_string());
    let place = program.workspace();
    let workflow = json!({ "steps": [
        { "name": "look", "type": "script", "command": "cat evil.txt; cat evil.txt >&2; exit 1", "on_fail": "continue" },
    ] });
    std::fs::create_dir_all(place.join(".windlass/workflows")).unwrap();
    std::fs::write(place.join(".windlass/workflows/evil.yaml"), workflow.to_string()).unwrap();
    std::fs::write(place.join("evil.txt"), format!("{EVIL}\u{1b}[31m\n")).unwrap();
    let prompt = format!("Run `make all`. {EVIL}");
    let task = json!({ "id": "t01", "title": EVIL, "bestPatternPrompt": prompt });
    let phases = json!([{ "id": "one", "title": EVIL, "tasks": [task] }]);
    let manifest = json!({ "id": "evil", "title": EVIL, "phases": phases });
    std::fs::write(place.join("plan.json"), manifest.to_string()).unwrap();
    by_hand(
        place,
        "git init -q -b main && git config user.name Ada && git config user.email ada@example.com
         git add -A && git commit -qm start",
    );
    let run = |args: &[&str]| program.windlass(args).expect(0);
    run(&["trust", "--yes"]);
    run(&["workflow", "run", "evil", EVIL, "--quiet"]);
    run(&["plan", "activate"]);
    run(&["schedule", "add", "--start", EVIL, "--cron", "30 9 * * 1"]);
    let made = run(&["commitments", "commit", EVIL]);
    run(&[
        "commitments",
        "capture",
        made.stdout.trim(),
        "--type",
        "note",
        "--content",
        EVIL,
        "--description",
        EVIL,
    ]);
    program
}

/// Every page that shows what somebody has named shows it as text.
#[test]
fn hostile_names_are_text_on_every_page() {
    let mut desk = Desk::of(hostile_machine());
    let promised = desk.program.windlass(&["commitments", "list", "--json"]).expect(0).json_lines();
    let runs = desk.program.windlass(&["workflow", "status", "evil", "--json"]).expect(0);
    let run: Value = serde_json::from_str(&runs.stdout).unwrap();
    let (_context, page) = desk.sign_in();
    desk.start(&page, EVIL);
    page.until("document.querySelectorAll('.answers button').length === 2");
    let session = page.eval("location.pathname").as_str().unwrap().to_owned();
    let task = page.eval("document.querySelector('a[href^=\"/tasks/\"]').getAttribute('href')");
    let task = task.as_str().unwrap().split('/').nth(2).unwrap().to_owned();
    let mut places: Vec<String> =
        ["/", "/inbox", "/tasks", "/plans", "/commitments", "/schedules", "/workflows", "/cost"]
            .map(str::to_owned)
            .into();
    places.push(format!("/commitments/{}", promised[0]["id"].as_str().unwrap()));
    places.push(format!("/workflows/{}", run["run"].as_str().unwrap()));
    let tabs = ["timeline", "events", "changes", "result"];
    places.extend(tabs.map(|tab| format!("/tasks/{task}/{tab}")));
    places.push(session);
    for place in &places {
        desk.go(&page, place);
        assert_harmless(&page, place);
    }
    // The list of actions is made of what the page says.
    page.press("Control+k");
    page.until("document.querySelector('#palette')?.open");
    assert_eq!(page.eval("document.querySelectorAll('#palette :is(img, script)').length"), 0);
    page.press("Escape");
    // A document that could run is handed over as a file, which a browser does not open as a page of ours.
    let answer = "fetch(document.querySelector('a.download[href*=svg]').href).then(({ headers }) =>
        [headers.get('content-type'), headers.get('content-disposition').split(';')[0], headers.get('x-content-type-options')].join())";
    assert_eq!(page.eval(answer), "application/octet-stream,attachment,nosniff");
    page.click(".answers button", "go");
    page.shows("Details");
    assert_harmless(&page, "after the answer");
    let foreign: Vec<_> =
        page.requests().into_iter().filter(|url| url.contains("evil.example")).collect();
    assert_eq!(foreign, Vec::<String>::new());
}
