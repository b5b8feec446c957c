//! `edit`

use serde_json::json;
use windlass_core::outcome::{Fact, Recovery};
use windlass_tools::Prepared;

use crate::bench::Bench;

async fn bench_with(content: &str) -> Bench {
    let mut bench = Bench::new();
    bench.put("f", content);
    bench.call("read", json!({ "path": "f" })).await;
    bench
}

/// ES-187, ES-256
#[tokio::test]
async fn a_unique_piece_is_replaced_and_the_diff_is_kept_for_people() {
    let mut bench = bench_with("a\nb\nc\nd\ne\nf\n").await;
    let call = json!({ "path": "f", "old_string": "c\n", "new_string": "C\nCC\n" });
    assert_eq!(bench.assessed("edit", call.clone()).await, "edit LOW: edits `f`");
    let outcome = bench.call("edit", call).await;
    assert_eq!(outcome.text, "Edited `f` in 1 place.");
    let [Fact::FileChanged { diff: Some(diff), .. }] = &outcome.facts[..] else { panic!() };
    insta::assert_snapshot!(diff, @"
    @@ -1,5 +1,6 @@
     a
     b
    -c
    +C
    +CC
     d
     e
    ");
    assert_eq!(bench.text("f"), "a\nb\nC\nCC\nd\ne\nf\n");
}

#[tokio::test]
async fn edits_that_cannot_be_meant_are_refused_with_the_way_out() {
    let mut bench = bench_with("x = 1\nx = 1\n").await;
    bench.put("bytes", b"\xff\xfe");
    bench.call("read", json!({ "path": "bytes" })).await;
    let mut shown = String::new();
    for (path, old, new) in [
        ("f", "x = 1", "x = 2"),
        ("f", "y", "z"),
        ("f", "x", "x"),
        ("missing", "x", "y"),
        ("bytes", "x", "y"),
        ("output", "x", "y"),
    ] {
        let call = json!({ "path": path, "old_string": old, "new_string": new });
        shown += &format!("{}\n", bench.error("edit", call).await);
    }
    insta::assert_snapshot!(shown);
    let call =
        json!({ "path": "f", "old_string": "x = 1", "new_string": "x = 2", "replace_all": true });
    assert_eq!(bench.ok("edit", call).await, "Edited `f` in 2 places.");
    assert_eq!(bench.text("f"), "x = 2\nx = 2\n");
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_must_be_read_again() {
    let mut bench = bench_with("one\n").await;
    bench.put("f", "one\ntwo\n");
    let call = || json!({ "path": "f", "old_string": "one", "new_string": "1" });
    insta::assert_snapshot!(bench.error("edit", call()).await,
        @"Error: `f` has changed since you last read it. Read it again, then repeat the edit.");
    bench.ok("read", json!({ "path": "f" })).await;
    bench.ok("edit", call()).await;
    // Its own edit is known to it.
    bench.ok("edit", json!({ "path": "f", "old_string": "two", "new_string": "2" })).await;
    assert_eq!(bench.text("f"), "1\n2\n");
}

#[tokio::test]
async fn a_file_that_was_never_read_is_read_first() {
    let mut bench = Bench::new();
    bench.put("f", "one\n");
    insta::assert_snapshot!(
        bench.error("edit", json!({ "path": "f", "old_string": "one", "new_string": "1" })).await,
        @"Error: `f` has not been read in this task. Read it first, then repeat the edit.");
}

#[tokio::test]
async fn crlf_line_ends_are_kept() {
    let mut bench = bench_with("a\r\nb\r\nc\r\n").await;
    bench.ok("edit", json!({ "path": "f", "old_string": "a\nb", "new_string": "1\n2\n3" })).await;
    assert_eq!(bench.text("f"), "1\r\n2\r\n3\r\nc\r\n");
    let mut mixed = bench_with("a\r\nb\nc\n").await;
    mixed.ok("edit", json!({ "path": "f", "old_string": "b\n", "new_string": "B\n" })).await;
    assert_eq!(mixed.text("f"), "a\r\nB\nc\n");
}

#[tokio::test]
async fn an_edit_is_verified_after_a_crash() {
    let mut bench = bench_with("a").await;
    let call = json!({ "path": "f", "old_string": "a", "new_string": "b" });
    let Prepared { recovery, act, .. } = bench.prepare("edit", call).await.ok().unwrap();
    let Recovery::Verify { change, outcome } = recovery else { panic!("edits are verified") };
    assert_eq!(Some(change.after), {
        bench.put("g", "b");
        bench.world.workspace.hash("g").unwrap()
    });
    assert_eq!(act().await, *outcome);
}
