//! Every page: in words, in pictures, on a phone, by the rules of accessibility.

use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_testkit::{Answer, Gate, Page, by_hand};

use crate::desk::Desk;
use crate::program::{Program, needed};

/// A task that does a bit of everything.
const DAY: &str = r##"
match:
  - task: run the tests
    replies: [{bash: make test}, {bash: sh run-tests.sh}, {say: All of them pass.}]
replies:
  - say: I'll look at the program and its test first.
    update_plan:
      steps:
        - {id: "1", description: see the test fail, status: in_progress}
        - {id: "2", description: find the cause in total.sh, status: pending}
        - {id: "3", description: fix it and run the test again, status: pending}
        - {id: "4", description: write the report, status: pending}
  - bash: "echo 'FAIL: the total should be 12 and is 5'; exit 1"
  - write: {path: total.sh, content: "sum=0\nwhile read -r name price || [ -n \"$name\" ]; do\n  sum=$((sum + price))\ndone < \"$1\"\necho \"$sum\"\n"}
  - update_plan:
      steps:
        - {id: "1", description: see the test fail, status: done}
        - {id: "2", description: find the cause in total.sh, status: done}
        - {id: "3", description: fix it and run the test again, status: in_progress}
        - {id: "4", description: write the report, status: pending}
  - bash: "seq 1 40"
  - write: {path: output/report.md, content: "# The total was too small\n\nThe loop dropped the **last line** of a file without a newline at its end.\n\n| | before | after |\n|---|---|---|\n| `sh test.sh` | FAIL, 5 | ok, 12 |\n"}
  - publish_deliverable: {filepath: output/report.md, description: what was wrong and how it was fixed, type: report}
  - say: |
      ## The test passes

      `total.sh` dropped the **last line** of a file without a trailing newline, so *cheese* was never counted.

      - one line changed in `total.sh`: the loop also handles such a line
      - `sh test.sh` now says `ok: the total is 12`

      ```sh
      while read -r name price || [ -n "$name" ]; do
      ```
"##;

const WORKFLOW: &str = "
steps:
  - {name: install, type: script, command: 'echo 214 packages are up to date'}
  - {name: test, type: script, command: 'echo 3 of 118 tests fail >&2; exit 1', on_fail: continue}
  - {name: report, type: script, command: 'echo written to output/report.md'}
";

/// A machine on which every page has something to show.
fn furnished() -> Program {
    let program = Program::playing(DAY);
    let place = program.workspace();
    let put = |name: &str, text: &str| {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(".windlass/workflows/nightly.yaml", WORKFLOW);
    let skill = program.data.path().join(".windlass/skills/release");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), SKILL).unwrap();
    put("plan.json", &plan().to_string());
    put("run-tests.sh", "echo 118 tests passed\n");
    put("Makefile", "all:\n\ttrue\n");
    by_hand(
        place,
        "git init -q -b main && git config user.name Ada && git config user.email ada@example.com
         git add -A && git commit -qm start",
    );
    let run = |args: &[&str]| program.windlass(args).expect(0);
    run(&["trust", "--yes"]);
    for _ in 0..3 {
        run(&["run", "run the tests", "--quiet"]);
    }
    run(&["workflow", "run", "nightly", "nightly tests of main", "--quiet"]);
    run(&["plan", "activate"]);
    run(&["schedule", "add", "--start", "write the weekly report", "--cron", "30 9 * * 1"]);
    let made = run(&["commitments", "commit", "sessions end after 12 hours without use"]);
    let found = ["--type", "note", "--content", "cookie.rs: renewed at each use"];
    run(&[&["commitments", "capture", made.stdout.trim()], &found[..]].concat());
    run(&["commitments", "commit", "the access log names who did what"]);
    program
}

const SKILL: &str = "---
name: release
description: Use when a release is to be made. It checks the changelog, the version and the tests.
---
1. Read `CHANGELOG.md`.
2. Run the tests.
";

fn plan() -> Value {
    let task = |id: &str, title: &str, after: &[&str]| json!({"id": id, "title": title, "bestPatternPrompt": format!("Run `make {id}`"), "dependsOn": after});
    json!({"id": "login", "title": "Sign in with a link", "phases": [
        {"id": "design", "title": "Decide how links work", "tasks": [
            task("t01", "Describe who may sign in and how", &[]),
            task("t02", "List what could go wrong", &["t01"]),
        ]},
        {"id": "build", "title": "Build it", "tasks": [
            task("t03", "Make links that work once", &[]),
            task("t04", "Trade a link for a cookie", &["t03"]),
            task("t05", "Slow down guessing", &[]),
        ]},
    ]})
}

/// The pages and the name of each picture.
fn places(desk: &Desk, page: &Page<'_>, session: &str, task: &str) -> Vec<(&'static str, String)> {
    let runs = desk.program.windlass(&["workflow", "status", "nightly", "--json"]).expect(0);
    let run: Value = serde_json::from_str(&runs.stdout).unwrap();
    let promised = desk.program.windlass(&["commitments", "list", "--json"]).expect(0);
    let all = promised.json_lines();
    desk.go(page, &format!("/tasks/{task}/outputs"));
    let output =
        page.eval("document.querySelector('main a[href^=\"/outputs/\"]').getAttribute('href')");
    let output = output.as_str().unwrap().to_owned();
    let proven = all.iter().find(|one| one.to_string().contains("12 hours")).unwrap();
    vec![
        ("home", "/".to_owned()),
        ("session", session.to_owned()),
        ("inbox", "/inbox".to_owned()),
        ("tasks", "/tasks".to_owned()),
        ("task", format!("/tasks/{task}")),
        ("task-events", format!("/tasks/{task}/events")),
        ("task-changes", format!("/tasks/{task}/changes")),
        ("task-outputs", format!("/tasks/{task}/outputs")),
        ("task-result", format!("/tasks/{task}/result")),
        ("output", output),
        ("plans", "/plans".to_owned()),
        ("commitments", "/commitments".to_owned()),
        ("commitment", format!("/commitments/{}", proven["id"].as_str().unwrap())),
        ("schedules", "/schedules".to_owned()),
        ("workflows", "/workflows".to_owned()),
        ("workflow-run", format!("/workflows/{}", run["run"].as_str().unwrap())),
        ("skills", "/skills".to_owned()),
        ("skill-proposal", "/skills/proposals/1".to_owned()),
        ("settings", "/settings".to_owned()),
        ("cost", "/cost".to_owned()),
        ("health", "/health".to_owned()),
        ("login", "/login".to_owned()),
    ]
}

/// Every page, light and dark, wide and on a phone: nothing is wider than the window, axe-core finds nothing serious, and
/// the script does not fail. `WINDLASS_SCREENSHOTS` names a directory that gets the pictures.
#[test]
fn every_page_fits_is_accessible_and_has_its_picture() {
    let mut desk = Desk::of(furnished());
    let (context, page) = desk.sign_in();
    desk.start(
        &page,
        "The test in test.sh fails. Find out why, fix total.sh and write a short report.",
    );
    page.shows("The test passes");
    page.shows("Details");
    let session = page.eval("location.pathname").as_str().unwrap().to_owned();
    let task = page.eval("document.querySelector('a[href^=\"/tasks/\"]').getAttribute('href')");
    let task = task.as_str().unwrap().split('/').nth(2).unwrap().to_owned();
    let asking = ask_something(&mut desk, &page);
    let mut all = places(&desk, &page, &session, &task);
    all.push(("session-asks", asking));
    let camera = Camera::new();
    let mut problems = Vec::new();
    for (name, place) in &all {
        desk.go(&page, place);
        page.until("document.querySelector('main').innerText.trim().length > 0");
        problems.extend(camera.look(&page, name));
    }
    for (name, key, id) in [("palette", "Control+k", "palette"), ("keys", "?", "keys")] {
        desk.go(&page, &session);
        page.eval("document.activeElement.blur()");
        page.press(key);
        page.until(&format!("document.querySelector('#{id}')?.open"));
        problems.extend(camera.look(&page, name));
    }
    problems.extend(busy_session(&mut desk, &page, &camera));
    problems.extend(page.complaints());
    // Its status is an error, which a browser notes.
    let nowhere = context.page();
    desk.go(&nowhere, "/skills/proposals/999");
    nowhere.shows("There is nothing here");
    problems.extend(camera.look(&nowhere, "not-found"));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Looks at a page in each of its forms.
struct Camera {
    axe: String,
    /// Where pictures go.
    pictures: Option<PathBuf>,
}

impl Camera {
    fn new() -> Self {
        let axe = std::fs::read_to_string(needed("WINDLASS_TEST_AXE")).unwrap();
        Self { axe, pictures: std::env::var_os("WINDLASS_SCREENSHOTS").map(PathBuf::from) }
    }

    /// What is wrong with a page, wide and narrow, light and dark.
    fn look(&self, page: &Page<'_>, name: &str) -> Vec<String> {
        let mut problems = Vec::new();
        for width in [320, 768, 1024] {
            page.resize(width, 860);
            problems.extend(misfits(page, name, width));
        }
        for (scheme, size, (width, height)) in [
            ("light", "wide", (1280, 860)),
            ("dark", "wide", (1280, 860)),
            ("light", "narrow", (390, 844)),
            ("dark", "narrow", (390, 844)),
        ] {
            page.resize(width, height);
            page.scheme(scheme);
            problems.extend(misfits(page, name, width));
            problems.extend(check(page, &self.axe, &format!("{name}, {scheme}, {size}")));
            if let Some(directory) = &self.pictures {
                page.eval("document.querySelector('#log') ? 0 : scrollTo(0, 0)");
                page.picture(&directory.join(format!("{name}-{size}-{scheme}.png")));
            }
        }
        problems
    }
}

/// What does not fit into a window of this width.
fn misfits(page: &Page<'_>, name: &str, width: u32) -> Vec<String> {
    // Not with `innerWidth`, which grows with what is too wide.
    let over = page.eval(&format!("document.documentElement.scrollWidth - {width}"));
    let over = Some(over.as_i64().unwrap()).filter(|over| *over > 0);
    let over = over.map(|over| format!("{name} is {over} pixels too wide at {width}"));
    let awkward = page.eval(AWKWARD);
    let awkward = awkward.as_array().unwrap().iter();
    over.into_iter().chain(awkward.map(|what| format!("{name} at {width}: {what}"))).collect()
}

/// Bars that scroll by a pixel or two, except texts that are cut at a part of the window, buttons whose words are broken in
/// their middle, and on a phone fields with letters so small that it enlarges the page around them.
const AWKWARD: &str = "(() => {
    const found = [];
    for (const one of document.querySelectorAll('body :not(textarea, .event > pre)')) {
        const over = one.scrollHeight - one.clientHeight;
        const scrolls = ['auto', 'scroll'].includes(getComputedStyle(one).overflowY);
        if (scrolls && one.clientHeight > 0 && over > 0 && over < 4) found.push(`${one.tagName}.${one.className} scrolls by ${over}`);
    }
    const fields = innerWidth <= 760 ? document.querySelectorAll('input:not([type=file], [type=hidden]), select, textarea') : [];
    for (const one of fields) {
        const size = parseFloat(getComputedStyle(one).fontSize);
        if (size < 16) found.push(`${one.tagName}#${one.id} has letters of ${size} pixels`);
    }
    for (const one of document.querySelectorAll('button, .button')) {
        const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
        for (let text = texts.nextNode(); text; text = texts.nextNode()) {
            for (const word of text.data.matchAll(/[^\\s-]+/g)) {
                const range = document.createRange();
                range.setStart(text, word.index);
                range.setEnd(text, word.index + word[0].length);
                const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
                if (lines.size > 1) found.push(`“${word[0]}” of “${one.textContent.trim()}” is broken`);
            }
        }
    }
    return found;
})()";

/// A session at work with messages that wait, and what opens in it: the panel of the mode, the list of commands, files.
fn busy_session(desk: &mut Desk, page: &Page<'_>, camera: &Camera) -> Vec<String> {
    let gate = Gate::default();
    let mut problems = Vec::new();
    desk.program.server.next(Answer::script("say: It is on the way.").gated(0, &gate));
    desk.go(page, "/");
    page.eval("document.querySelector('#options').open = true");
    problems.extend(camera.look(page, "options"));
    page.write("input[name=workspace]", &desk.program.real_workspace());
    page.write("#message", "Move the sign-in page to the new design, step by step");
    page.press("Enter");
    page.until("document.querySelector('[data-busy]')");
    for text in [
        "Keep the old address",
        "Also run the tests on the phone, and say which of them fail",
        "Then write the changelog",
    ] {
        page.write("#message", text);
        page.press("Enter");
        page.until(&format!("[...document.querySelectorAll('.queued-text')].some((one) => one.innerText === '{text}')"));
    }
    // As wide as it is beside an ordinary scrollbar.
    for width in [1265, 1066, 768, 745, 375, 320] {
        page.resize(width, 860);
        problems.extend(misfits(page, "queue", width));
    }
    problems.extend(camera.look(page, "queue"));
    page.resize(390, 844);
    let tall =
        "Math.max(...[...document.querySelectorAll('.queued')].map((one) => one.offsetHeight))";
    if page.eval(tall).as_f64().unwrap() > 130.0 {
        problems.push(format!("a message that waits is {} pixels tall", page.eval(tall)));
    }
    page.eval("document.querySelector('#mode').open = true");
    problems.extend(camera.look(page, "mode"));
    page.eval("document.querySelector('#mode').open = false");
    for (name, text, list) in [("commands", "/", "completions"), ("files", "see @", "files")] {
        page.eval("document.querySelector('#message').select()");
        page.write("#message", text);
        page.until(&format!("!document.querySelector('#{list}').hidden"));
        problems.extend(camera.look(page, name));
    }
    gate.open();
    problems
}

/// A second session that waits for a person.
fn ask_something(desk: &mut Desk, page: &Page<'_>) -> String {
    let question = r#"bash: "rm -r build && git push origin main""#;
    desk.program.server.next(Answer::script(question));
    desk.start(page, "Remove the build directory and publish the branch");
    page.shows("Run this command?");
    page.eval("location.pathname").as_str().unwrap().to_owned()
}

/// What axe-core finds that is serious.
fn check(page: &Page<'_>, axe: &str, place: &str) -> Vec<String> {
    page.eval(&format!("window.axe ? 0 : (() => {{ {axe}\n; return 0 }})()"));
    let found = page
        .eval("axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations)");
    let serious = |one: &&Value| matches!(one["impact"].as_str(), Some("serious" | "critical"));
    let found: Vec<&Value> = found.as_array().unwrap().iter().filter(serious).collect();
    let words = |one: &Value| {
        let nodes = one["nodes"].as_array().unwrap().iter().take(4);
        let nodes: Vec<_> =
            nodes.map(|node| format!("{} {}", node["target"], node["failureSummary"])).collect();
        format!("{place}: {}: {}\n  {}", one["id"], one["help"], nodes.join("\n  "))
    };
    found.iter().map(|one| words(one)).collect()
}

/// What a browser fetches before it shows the first page has at most 30 KB, compressed.
#[test]
fn the_first_page_is_small() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/");
    let sizes = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
        .filter(one => !one.name.includes('/live')).map(one => [one.name, one.encodedBodySize])";
    let sizes = page.eval(sizes);
    let sizes = sizes.as_array().unwrap();
    assert!(sizes.iter().any(|one| one[0].as_str().unwrap().contains("style.css")), "{sizes:?}");
    let sum: u64 = sizes.iter().filter_map(|one| one[1].as_u64()).sum();
    assert!((10_000..30 * 1024).contains(&sum), "{sum} bytes: {sizes:?}");
}

/// What is only there for screen readers takes no room.
#[test]
fn a_page_with_little_on_it_does_not_scroll() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    for (width, height) in [(1280, 860), (390, 844)] {
        page.resize(width, height);
        desk.go(&page, "/workflows");
        page.shows("No workflow has run");
        let more = "document.documentElement.scrollHeight - innerHeight";
        assert_eq!(page.eval(more), 0, "at {width}");
    }
}

#[test]
fn where_a_setting_comes_from_is_whole_at_every_width() {
    let mut desk = Desk::playing("replies: []");
    let path =
        "/home/somebody/with/a/long/way/to/the/directory/of/their/configuration/config.toml:12";
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/settings");
    page.eval(&format!("document.querySelector('.setting > .chip').textContent = '{path}'; 0"));
    for width in [1280, 768, 390] {
        page.resize(width, 844);
        let misfits = "(([chip, value, row]) => [
            chip.right > row.right || chip.left < row.left,
            chip.left < value.right && chip.top < value.bottom && value.top < chip.bottom,
        ].join())(['.setting > .chip', '.setting > span', '.rows']
            .map((one) => document.querySelector(one).getBoundingClientRect()))";
        assert_eq!(page.eval(misfits), "false,false", "cut or on the value at {width}");
    }
}

/// The time of another year is the longest.
#[test]
fn the_time_of_an_event_stays_in_its_column() {
    let mut desk = Desk::playing("replies: [{say: done}]");
    let (_context, page) = desk.sign_in();
    desk.start(&page, "do it");
    page.shows("Details");
    let task = desk.program.task();
    desk.go(&page, &format!("/tasks/{task}/events"));
    page.until("document.querySelector('.event time')");
    page.eval("document.querySelector('.event time').textContent = 'Nov 19, 2025, 11:50 PM'; 0");
    for width in [1280, 1010, 900, 390] {
        page.resize(width, 844);
        let room =
            "(one => one.scrollWidth - one.clientWidth)(document.querySelector('.event time'))";
        assert_eq!(page.eval(room), 0, "at {width}");
    }
}
