//! `write`

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use windlass_core::outcome::{Fact, FileChange, Recovery};
use windlass_tools::Prepared;
use windlass_tools::workspace::{ChangeState, content_hash};

use crate::bench::Bench;

/// ES-186, ES-257
#[tokio::test]
async fn a_new_file_and_its_directories_are_made() {
    let mut bench = Bench::new();
    let call = json!({ "path": "/workspace/a/b/c.txt", "content": "one\ntwo\n" });
    assert_eq!(bench.assessed("write", call.clone()).await, "edit MEDIUM: creates `a/b/c.txt`");
    assert!(!bench.path("a").exists(), "preparing changes nothing");
    let outcome = bench.call("write", call).await;
    assert_eq!(outcome.text, "Created `a/b/c.txt` (8 bytes, 2 lines).");
    let hash = content_hash(b"one\ntwo\n");
    let diff = Some("@@ -0,0 +1,2 @@\n+one\n+two\n".to_owned());
    assert_eq!(outcome.facts, [Fact::FileChanged { path: "a/b/c.txt".into(), hash, diff }]);
    assert_eq!(bench.text("a/b/c.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn a_version_that_was_not_read_is_not_replaced() {
    let mut bench = Bench::new();
    bench.put("a", "theirs");
    let call = || json!({ "path": "a", "content": "mine" });
    assert_eq!(
        bench.error("write", call()).await,
        "Error: `a` has not been read in this task. Read it first, then repeat the write."
    );
    bench.ok("read", json!({ "path": "a" })).await;
    assert_eq!(bench.assessed("write", call()).await, "edit MEDIUM: replaces `a`");
    bench.put("a", "theirs again");
    assert_eq!(
        bench.error("write", call()).await,
        "Error: `a` has changed since you last read it. Read it again, then repeat the write."
    );
    assert_eq!(bench.text("a"), "theirs again");
    bench.ok("read", json!({ "path": "a" })).await;
    assert_eq!(bench.ok("write", call()).await, "Replaced `a` (4 bytes, 1 line).");
    assert_eq!(bench.assessed("write", call()).await, "edit MEDIUM: replaces `a`");
    bench.put("empty", "");
    let call = json!({ "path": "empty", "content": "mine" });
    assert_eq!(bench.assessed("write", call).await, "edit MEDIUM: replaces `empty`");
}

#[tokio::test]
async fn a_file_that_changes_after_the_decision_is_not_overwritten() {
    let mut bench = Bench::new();
    bench.put("a", "old");
    bench.ok("read", json!({ "path": "a" })).await;
    let Prepared { act, .. } =
        bench.prepare("write", json!({ "path": "a", "content": "new" })).await.ok().unwrap();
    bench.put("a", "somebody else's");
    let outcome = act().await;
    assert!(outcome.is_error() && outcome.text.contains("has changed"), "{}", outcome.text);
    assert_eq!(bench.text("a"), "somebody else's");
}

#[tokio::test]
async fn the_mode_of_a_replaced_file_is_kept() {
    let mut bench = Bench::new();
    bench.put("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(bench.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    bench.ok("read", json!({ "path": "run.sh" })).await;
    bench.ok("write", json!({ "path": "run.sh", "content": "#!/bin/sh\ntrue\n" })).await;
    let mode = std::fs::metadata(bench.path("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
}

#[tokio::test]
async fn recovery_can_tell_whether_the_write_happened() {
    let mut bench = Bench::new();
    bench.put("a", "old");
    bench.ok("read", json!({ "path": "a" })).await;
    let Prepared { recovery, act, .. } =
        bench.prepare("write", json!({ "path": "a", "content": "new" })).await.ok().unwrap();
    let Recovery::Verify { change, outcome } = recovery else { panic!("writes are verified") };
    let call = bench.next_call();
    let happened =
        |bench: &Bench, change: &FileChange| bench.world.workspace.recover(call, change).unwrap();
    assert_eq!(happened(&bench, &change), ChangeState::NotApplied);
    assert_eq!(act().await, *outcome);
    assert_eq!(happened(&bench, &change), ChangeState::Applied);
    bench.put("a", "newer");
    assert_eq!(happened(&bench, &change), ChangeState::Unknown);
    std::fs::remove_file(bench.path("a")).unwrap();
    assert_eq!(happened(&bench, &change), ChangeState::Unknown);
    let new = FileChange { path: "no/such/dir/a".into(), before: None, after: "x".into() };
    assert_eq!(happened(&bench, &new), ChangeState::NotApplied);
}

#[tokio::test]
async fn recovery_removes_what_a_crash_left_beside_the_file() {
    let mut bench = Bench::new();
    bench.put("d/a", "old");
    let call = bench.next_call();
    let leftover = format!("d/.windlass-{call}.tmp");
    bench.put(&leftover, "half a");
    let change =
        FileChange { path: "d/a".into(), before: Some(content_hash(b"old")), after: "x".into() };
    assert_eq!(bench.world.workspace.recover(call, &change).unwrap(), ChangeState::NotApplied);
    assert!(!bench.path(&leftover).exists());
    assert_eq!(bench.text("d/a"), "old");
}

#[tokio::test]
async fn no_temporary_file_is_left_behind() {
    let mut bench = Bench::new();
    bench.ok("write", json!({ "path": "d/a", "content": "1" })).await;
    bench.error("write", json!({ "path": "d", "content": "1" })).await;
    let names: Vec<_> = std::fs::read_dir(bench.path("d"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a"]);
}
