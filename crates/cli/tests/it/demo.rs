//! `demo`: the whole loop, on any machine; of the user's it touches only the list of tasks.

use std::process::Command;

use crate::terminal::{Terminal, remains};

/// A machine with nothing configured: no key, no server, no data.
fn demo(home: &std::path::Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .arg("demo")
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("TMPDIR", home.join("tmp"));
    std::fs::create_dir_all(home.join("tmp")).unwrap();
    command
}

fn masked(text: &str) -> String {
    let mask = |line: &str| {
        if line.starts_with("task_") {
            return "TASK · SCRIPT · SANDBOX".to_owned();
        }
        for command in ["windlass show ", "windlass events ", "windlass diff "] {
            if let Some((before, _)) = line.split_once(command) {
                return format!("{before}{command}TASK");
            }
        }
        match line.split_once("done in ") {
            Some((before, after)) => {
                let rest = after.split_once(" ·").map_or("", |(_, rest)| rest);
                format!("{before}done in TIME ·{rest}")
            }
            None => line.to_owned(),
        }
    };
    // What the sandbox stands on depends on the machine.
    let varies = ["sandbox ", "sandbox: ", "no isolation "];
    let same = |line: &&str| !varies.iter().any(|start| line.starts_with(start));
    let shown: Vec<_> = text.lines().filter(same).map(mask).collect();
    shown.join("\n").trim_start().to_owned()
}

#[test]
fn the_demo_fixes_a_failing_test_and_leaves_only_its_task() {
    let home = tempfile::tempdir().unwrap();
    let ran = demo(home.path(), &[]).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0), "{stderr}");
    insta::assert_snapshot!(masked(&stderr));
    assert!(stdout.starts_with("## The test passes"), "{stdout}");
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
    let next = stderr.lines().find_map(|line| line.split_once("windlass show ")).unwrap().1;
    let windlass = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        let ran = command.args(args).env_clear().env("HOME", home.path()).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    let page = windlass(&["show", next]);
    assert!(page.contains("status     done") && page.contains("The test passes"), "{page}");
    assert_eq!(windlass(&["tasks", "--json"]).lines().count(), 1);
    let cost: serde_json::Value = serde_json::from_str(&windlass(&["cost", "--json"])).unwrap();
    assert_eq!((&cost["total"]["replies"], &cost["tasks"]), (&0.into(), &serde_json::json!({})));
    assert!(cost["simulated"]["cost_usd"].as_f64().unwrap() > 0.0, "{cost}");
    let page = windlass(&["cost"]);
    assert!(page.contains("is simulated") && page.contains("$0.00"), "{page}");
}

/// What the README shows is what the demo prints into a pipe: its answer stands before what it delivers.
#[test]
fn the_readme_shows_the_demo_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let ran = demo(home.path(), &[]).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let (work, end) = stderr.split_once("deliverable ").unwrap();
    let (end, _) = end.split_once("\n\nThat was").unwrap();
    let printed = masked(&format!("{work}{stdout}deliverable {end}"));
    let readme = include_str!("../../../../README.md");
    let (_, shown) = readme.split_once("## What you see").unwrap();
    let shown = shown.split("```\n").nth(1).unwrap();
    assert_eq!(masked(shown), printed);
}

#[test]
fn the_demo_looks_good_on_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let mut command = demo(home.path(), &[]);
    command.env("TERM", "xterm-256color");
    let (written, code) = Terminal::start(command, 90).end();
    assert_eq!(code, 0, "{written}");
    insta::assert_snapshot!(masked(&remains(&written)));
}

#[test]
fn the_demo_can_be_kept_to_look_around_in() {
    let home = tempfile::tempdir().unwrap();
    let ran = demo(home.path(), &["--keep", "--json"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let kept = std::fs::read_dir(home.path().join("tmp")).unwrap().next().unwrap().unwrap().path();
    let report = std::fs::read_to_string(kept.join("shop/output/report.md")).unwrap();
    assert!(report.starts_with("# The total was too small"), "{report}");
    let fixed = Command::new("sh").arg("test.sh").current_dir(kept.join("shop")).status().unwrap();
    assert!(fixed.success());
}
