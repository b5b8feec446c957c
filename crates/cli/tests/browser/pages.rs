//! Every page: in words, in pictures, on a phone, by the rules of accessibility.

use std::path::PathBuf;

use serde_json::Value;
use windlass_testkit::Page;

use crate::desk::Desk;
use crate::program::{Program, needed};

/// A task that does a bit of everything.
const DAY: &str = r##"
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

      - one line changed in `total.sh`: the loop also takes such a line
      - `sh test.sh` now says `ok: the total is 12`

      ```sh
      while read -r name price || [ -n "$name" ]; do
      ```
"##;

/// The pages and the name of each picture.
fn places(session: &str, task: &str) -> Vec<(&'static str, String)> {
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
        ("plans", "/plans".to_owned()),
        ("schedules", "/schedules".to_owned()),
        ("workflows", "/workflows".to_owned()),
        ("skills", "/skills".to_owned()),
        ("settings", "/settings".to_owned()),
        ("cost", "/cost".to_owned()),
        ("health", "/health".to_owned()),
    ]
}

/// Every page, light and dark, wide and on a phone: nothing is wider than the window, axe-core finds nothing serious, and
/// the script does not fail. `WINDLASS_SCREENSHOTS` names a directory that gets the pictures.
#[test]
fn every_page_fits_is_accessible_and_has_its_picture() {
    let axe = std::fs::read_to_string(needed("WINDLASS_TEST_AXE")).unwrap();
    let mut desk = Desk::playing(DAY);
    let (_context, page) = desk.sign_in();
    desk.start(
        &page,
        "The test in test.sh fails. Find out why, fix total.sh and write a short report.",
    );
    page.shows("The test passes");
    page.shows("Done");
    let session = page.eval("location.pathname").as_str().unwrap().to_owned();
    let task = page.eval("document.querySelector('a[href^=\"/tasks/\"]').getAttribute('href')");
    let task = task.as_str().unwrap().split('/').nth(2).unwrap().to_owned();
    let asking = ask_something(&mut desk, &page);
    let mut all = places(&session, &task);
    all.push(("session-asks", asking));
    let mut problems = Vec::new();
    let pictures = std::env::var_os("WINDLASS_SCREENSHOTS").map(PathBuf::from);
    for (name, place) in &all {
        desk.go(&page, place);
        page.until("document.querySelector('main').innerText.trim().length > 0");
        for (scheme, size, (width, height)) in [
            ("light", "wide", (1280, 860)),
            ("dark", "wide", (1280, 860)),
            ("light", "narrow", (390, 844)),
            ("dark", "narrow", (390, 844)),
        ] {
            page.resize(width, height);
            page.scheme(scheme);
            let over = page.eval("document.documentElement.scrollWidth - innerWidth");
            if over.as_i64().unwrap() > 0 {
                problems.push(format!("{name} is {over} pixels too wide at {width}"));
            }
            problems.extend(check(&page, &axe, &format!("{name}, {scheme}, {size}")));
            if let Some(directory) = &pictures {
                page.eval("document.querySelector('#log') ? 0 : scrollTo(0, 0)");
                page.picture(&directory.join(format!("{name}-{size}-{scheme}.png")));
            }
        }
    }
    problems.extend(page.complaints());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A second session that waits for a person.
fn ask_something(desk: &mut Desk, page: &Page<'_>) -> String {
    let question = r#"bash: "rm -r build && git push origin main""#;
    desk.program.server.next(windlass_testkit::Answer::script(question));
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

/// MS-163: a proposed skill is in the inbox of the page, with the command that accepts it.
#[test]
fn a_proposed_skill_is_in_the_inbox_of_the_page() {
    let script = "replies: [{bash: sh no-such.sh}, {bash: sh run-tests.sh}, {say: the long way}]";
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("run-tests.sh"), "echo all passed\n").unwrap();
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    let mut desk = Desk::of(program);
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/inbox");
    page.shows("Proposed skill `learned-sh-run-tests-sh`");
    page.shows("in 3 tasks: `sh no-such.sh` fails, `sh run-tests.sh` works");
    page.shows("windlass skills proposals accept 1");
}
