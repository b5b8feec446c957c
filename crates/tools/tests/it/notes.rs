//! `update_plan`, `save_memo`, `search_memo`, `ask_user`

use serde_json::json;
use windlass_core::outcome::{Fact, Recovery};
use windlass_tools::Kind;
use windlass_tools::Prepared;

use crate::bench::Bench;

/// ES-036, ES-140, ES-145, ES-146, ES-255
#[tokio::test]
async fn the_plan_is_written_whole_every_time() {
    let mut bench = Bench::new();
    bench.put(".plan.md", "an older plan");
    let call = json!({
        "overall_approach": "small steps",
        "steps": [
            { "id": "1", "description": "look", "status": "done", "notes": "found it" },
            { "id": "2", "description": "fix", "status": "in_progress" },
        ],
    });
    assert_eq!(
        bench.assessed("update_plan", call.clone()).await,
        "note LOW: updates the working plan"
    );
    let Prepared { recovery, .. } = bench.prepare("update_plan", call.clone()).await.ok().unwrap();
    assert!(matches!(recovery, Recovery::Verify { .. }));
    let outcome = bench.call("update_plan", call).await;
    insta::assert_snapshot!(outcome.text, @"
    Plan updated (1/2 done).

    # Execution Plan

    **Approach**: small steps

    ## Steps

    - [x] **1**: look — _found it_
    - [>] **2**: fix
    ");
    assert_eq!(outcome.text, format!("Plan updated (1/2 done).\n\n{}", bench.text(".plan.md")));
    assert!(
        outcome.facts.iter().any(|fact| matches!(fact, Fact::Plan(plan) if plan.steps.len() == 2))
    );
}

#[tokio::test]
async fn the_plan_file_cannot_be_made_to_be_another_file() {
    let mut bench = Bench::new();
    bench.put("main.rs", "fn main() {}");
    std::os::unix::fs::symlink("main.rs", bench.path(".plan.md")).unwrap();
    bench.error("update_plan", json!({ "steps": [] })).await;
    assert_eq!(bench.text("main.rs"), "fn main() {}");
}

/// ES-174, ES-176, ES-037, ES-255
#[tokio::test]
async fn a_memo_is_replaced_or_appended_to() {
    let mut bench = Bench::new();
    let memo = |content: &str, append: bool| json!({ "filename": "findings.md", "content": content, "append": append });
    assert_eq!(
        bench.assessed("save_memo", memo("a", false)).await,
        "note LOW: saves memo `.memo/findings.md`"
    );
    assert_eq!(
        bench.ok("save_memo", memo("one", false)).await,
        "Saved `.memo/findings.md` (3 bytes)."
    );
    assert_eq!(
        bench.ok("save_memo", memo("two\n", true)).await,
        "Appended to `.memo/findings.md` (8 bytes)."
    );
    bench.ok("save_memo", memo("three\n", true)).await;
    assert_eq!(bench.text(".memo/findings.md"), "one\ntwo\nthree\n");
    bench.ok("save_memo", json!({ "filename": "findings.md", "content": "new" })).await;
    assert_eq!(bench.text(".memo/findings.md"), "new");
    bench.ok("save_memo", json!({ "filename": ".memo/deep/er.md", "content": "x" })).await;
    assert_eq!(bench.text(".memo/deep/er.md"), "x");
}

/// ES-177
#[tokio::test]
async fn a_memo_stays_under_memo() {
    let mut bench = Bench::new();
    std::os::unix::fs::symlink("../output", bench.path(".memo/link")).unwrap();
    for filename in [
        "../x.md",
        "../../x.md",
        "/etc/x.md",
        "/workspace/x.md",
        "link/x.md",
        "a/../../x.md",
        ".",
        "..",
    ] {
        if filename == "/workspace/x.md" {
            continue; // Read as the plain name, below.
        }
        let text = bench.error("save_memo", json!({ "filename": filename, "content": "x" })).await;
        assert!(text.starts_with("Error: "), "{filename}: {text}");
    }
    bench.ok("save_memo", json!({ "filename": "/workspace/.memo/y.md", "content": "y" })).await;
    assert_eq!(bench.text(".memo/y.md"), "y");
    assert!(!bench.path("x.md").exists() && !bench.path("output/x.md").exists());
}

/// ES-178, ES-180, ES-255
#[tokio::test]
async fn memos_are_found_by_other_forms_of_their_words_best_first() {
    let mut bench = Bench::new();
    let query = |text: &str| json!({ "query": text });
    insta::assert_snapshot!(bench.ok("search_memo", query("anything")).await,
        @"There are no memos yet. Save one with save_memo.");
    for (filename, content) in [
        (
            "decisions.md",
            "# Database\n\nWe decided on SQLite: one file, no server.\n\n# Queue\n\nRedis streams, because retries are built in.\n",
        ),
        (
            "findings.md",
            "The login test is flaky: it depends on the time zone.\nThe database connection is opened twice.\n",
        ),
        ("deep/ideas.txt", "Cache the parsed configuration.\n"),
    ] {
        bench.ok("save_memo", json!({ "filename": filename, "content": content })).await;
    }
    let mut shown = String::new();
    for words in [
        "why databases",
        "decision about retrying",
        "flakiness in testing",
        "configuring a parser",
        "conections",
        "quantum chromodynamics",
        "the of and",
    ] {
        shown += &format!("? {words}\n{}\n\n", bench.ok("search_memo", query(words)).await);
    }
    insta::assert_snapshot!(shown);
    assert_eq!(bench.assessed("search_memo", query("x")).await, "read LOW: searches the memos");
}

/// ES-196, ES-211, ES-212
#[tokio::test]
async fn a_question_is_left_to_the_loop() {
    let mut bench = Bench::new();
    let call = json!({ "question": "Which?", "options": ["a", "b"], "context": "two ways" });
    let Prepared { assessment, recovery, .. } = bench.prepare("ask_user", call).await.ok().unwrap();
    assert_eq!(assessment.reason, "asks the user");
    assert!(matches!(recovery, Recovery::Reattach { .. }));
    assert_eq!(bench.registry.get("ask_user").unwrap().kind(), Kind::Loop);
}
