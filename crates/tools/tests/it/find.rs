//! `glob` and `grep`

use std::ops::ControlFlow;

use serde_json::{Value, json};
use windlass_tools::workspace::{Places, ScanFilter, Stop};

use crate::bench::Bench;

/// A small project with everything that could get in the way of looking around.
fn project() -> Bench {
    let bench = Bench::new();
    bench.put("src/main.rs", "fn main() {\n    run();\n}\n\nfn run() {\n    todo();\n}\n");
    bench.put("src/deep/er/lib.rs", "pub fn run() {}\n");
    bench.put("README.md", "Run it.\r\nThen rest.\r\n");
    bench.put(".github/ci.yml", "run: test\n");
    bench.put("target/out.rs", "fn run() {}\n");
    bench.put("logs/a.log", "run failed\n");
    bench.put("logs/keep.log", "run kept\n");
    bench.put("vendored/x.rs", "fn run() {}\n");
    bench.put("blob.bin", b"run\0run");
    bench.put(".gitignore", "/target/\n*.log\n");
    bench.put("logs/.gitignore", "!keep.log\n");
    bench.put(".ignore", "vendored\n");
    bench.put(".git/config", "run = 1\n");
    std::os::unix::fs::symlink("src/main.rs", bench.path("link.rs")).unwrap();
    std::os::unix::fs::symlink("/etc", bench.path("etc")).unwrap();
    bench
}

async fn table(bench: &mut Bench, tool: &str, calls: &[Value]) -> String {
    let mut shown = String::new();
    for call in calls {
        let text = bench.call(tool, call.clone()).await.text;
        shown += &format!("> {call}\n{text}\n\n");
    }
    shown
}

/// ES-188, ES-254
#[tokio::test]
async fn files_are_found_by_pattern() {
    let mut bench = project();
    let calls = [
        json!({ "pattern": "*.rs" }),
        json!({ "pattern": "src/*.rs" }),
        json!({ "pattern": "/workspace/src/**/*.rs" }),
        json!({ "pattern": "*.{md,log}" }),
        json!({ "pattern": "*.log", "ignored": true }),
        json!({ "pattern": ".github/**" }),
        json!({ "pattern": "src/deep/" }),
        json!({ "pattern": "*.yml", "hidden": true }),
        json!({ "pattern": "*", "path": "src/deep" }),
        json!({ "pattern": "*", "path": "target" }),
        json!({ "pattern": "*.py" }),
        json!({ "pattern": "**/*", "path": "nowhere" }),
        json!({ "pattern": "[" }),
        json!({ "pattern": "*", "path": "../" }),
    ];
    insta::assert_snapshot!(table(&mut bench, "glob", &calls).await);
    assert_eq!(
        bench.assessed("glob", json!({ "pattern": "*" })).await,
        "read LOW: lists files that match `*`"
    );
}

/// ES-189, ES-254, ES-182
#[tokio::test]
async fn lines_are_found_by_regular_expression() {
    let mut bench = project();
    let calls = [
        json!({ "pattern": "run" }),
        json!({ "pattern": "RUN", "ignore_case": true, "glob": "*.md" }),
        json!({ "pattern": r"fn \w+\(\)", "path": "src/main.rs", "context": 1 }),
        json!({ "pattern": r"rest\.$" }),
        json!({ "pattern": "run", "output": "files" }),
        json!({ "pattern": "run", "output": "count", "glob": "*.rs" }),
        json!({ "pattern": "run()", "literal": true, "limit": 1 }),
        json!({ "pattern": "run", "hidden": true, "ignored": true, "output": "files" }),
        json!({ "pattern": "run", "path": "target" }),
        json!({ "pattern": "absent" }),
        json!({ "pattern": "(" }),
        json!({ "pattern": r"a\nb" }),
        json!({ "pattern": "x", "path": "nowhere" }),
        json!({ "pattern": "x", "glob": "{" }),
    ];
    insta::assert_snapshot!(table(&mut bench, "grep", &calls).await);
    assert_eq!(
        bench.assessed("grep", json!({ "pattern": "x" })).await,
        "read LOW: searches files for `x`"
    );
}

/// Every line has a beginning and an end, also in the middle of a file.
#[tokio::test]
async fn anchors_are_the_ends_of_lines() {
    let mut bench = Bench::new();
    bench.put("unix.txt", "one two\ntwo\ntwo three\n");
    bench.put("windows.txt", "one two\r\ntwo\r\ntwo three\r\n");
    for (pattern, lines) in [
        ("^two$", "2:two"),
        ("^two", "2:two\n3:two three"),
        ("two$", "1:one two\n2:two"),
        (r"\Aone", "1:one two"),
        ("^$", ""),
    ] {
        let found = bench.ok("grep", json!({ "pattern": pattern })).await;
        let expected = match lines {
            "" => format!("No matches for `{pattern}`."),
            lines => format!("unix.txt\n{lines}\n\nwindows.txt\n{lines}"),
        };
        assert_eq!(found, expected, "{pattern}");
    }
    bench.put("blank.txt", "a\n\nb\n");
    bench.put("blank-windows.txt", "a\r\n\r\nb\r\n");
    let blank = json!({ "pattern": "^$", "output": "count" });
    assert_eq!(bench.ok("grep", blank).await, "blank-windows.txt: 1\nblank.txt: 1");
}

#[tokio::test]
async fn results_are_bounded_and_say_so() {
    let mut bench = Bench::new();
    for n in 0..510 {
        bench.put(&format!("many/{n:03}.txt"), "x\n");
    }
    bench.put("long.txt", format!("{}needle", "y".repeat(5_000)));
    let glob = bench.ok("glob", json!({ "pattern": "many/*" })).await;
    assert_eq!(glob.lines().count(), 501);
    assert!(glob.ends_with("\n[and 10 files more; narrow the pattern or the path]"), "{glob}");
    let grep = bench.ok("grep", json!({ "pattern": "x" })).await;
    assert!(grep.contains("[stopped after 200 matching lines;"), "{grep}");
    let long = bench.ok("grep", json!({ "pattern": "needle" })).await;
    assert!(long.len() < 500 && long.ends_with("… [line cut]"), "{long}");
}

/// ES-182
#[tokio::test]
async fn saved_outputs_and_memos_are_searched_when_they_are_named() {
    let mut bench = Bench::new();
    std::fs::create_dir_all(bench.path(".git/info")).unwrap();
    bench.put(".git/info/exclude", "secret.txt\n");
    bench.put(".scratch/tool-output-1.txt", "needle\n");
    bench.put(".memo/a.md", "needle\n");
    bench.put("secret.txt", "needle\n");
    let found = bench.ok("grep", json!({ "pattern": "needle", "path": ".scratch" })).await;
    assert_eq!(found, ".scratch/tool-output-1.txt\n1:needle");
    let files = json!({ "pattern": "needle", "hidden": true, "output": "files" });
    assert_eq!(bench.ok("grep", files).await, ".memo/a.md\n.scratch/tool-output-1.txt");
}

#[tokio::test]
async fn our_own_data_is_not_found() {
    let mut bench = Bench::with(|beside| {
        std::fs::create_dir_all(beside.join("ws/data")).unwrap();
        std::fs::write(beside.join("ws/data/token"), "needle").unwrap();
        Places { hidden: vec![beside.join("ws/data")], ..Default::default() }
    });
    assert_eq!(bench.ok("grep", json!({ "pattern": "needle" })).await, "No matches for `needle`.");
    assert_eq!(bench.ok("glob", json!({ "pattern": "token" })).await, "No file matches `token`.");
}

#[test]
fn a_scan_that_nobody_waits_for_ends() {
    let bench = project();
    let stop = Stop::default();
    let mut seen = 0;
    let scanned = bench.world.workspace.scan(".", ScanFilter::default(), &stop, &mut |_| {
        seen += 1;
        stop.stop();
        ControlFlow::Continue(())
    });
    assert_eq!((seen, scanned.unwrap().gave_up), (1, true));
}

#[tokio::test]
async fn a_strange_name_stays_on_its_line() {
    let mut bench = Bench::new();
    let directory = bench.outside.path().join("ws");
    std::fs::write(directory.join("a\nb\u{1b}[31m.txt"), "needle\n").unwrap();
    assert_eq!(bench.ok("glob", json!({ "pattern": "*.txt" })).await, "a␊b␛[31m.txt");
    let files = json!({ "pattern": "needle", "output": "files" });
    assert_eq!(bench.ok("grep", files).await, "a␊b␛[31m.txt");
}
