//! `publish_deliverable`

use serde_json::json;
use windlass_core::command::{Deliverable, DeliverableType};
use windlass_core::outcome::{Fact, Outcome, Recovery};

use crate::bench::Bench;

fn published(outcome: &Outcome) -> &Deliverable {
    let [Fact::Published(deliverable)] = &outcome.facts[..] else { panic!("{}", outcome.text) };
    deliverable
}

/// ES-223, ES-226, ES-255
#[tokio::test]
async fn a_published_file_has_its_size_and_a_small_one_its_content() {
    let mut bench = Bench::new();
    bench.put("output/report.md", "# Done\n");
    bench.put("output/edge.txt", "x".repeat(32 * 1024));
    bench.put("output/large.txt", "x".repeat(32 * 1024 + 1));
    bench.put("output/shot.png", b"\x89PNG\r\n\x1a\n\0\0");
    let call = |path: &str, kind: &str| json!({ "filepath": path, "description": "what it is", "type": kind });
    let outcome =
        bench.call("publish_deliverable", call("/workspace/output/report.md", "report")).await;
    assert_eq!(outcome.text, "Published `output/report.md` as report (7 bytes).");
    assert_eq!(
        *published(&outcome),
        Deliverable {
            filepath: "output/report.md".into(),
            description: "what it is".into(),
            kind: DeliverableType::Report,
            content: Some("# Done\n".into()),
            size_bytes: Some(7),
        }
    );
    for (path, inline, size) in
        [("edge.txt", true, 32_768), ("large.txt", false, 32_769), ("shot.png", false, 10)]
    {
        let outcome =
            bench.call("publish_deliverable", call(&format!("output/{path}"), "other")).await;
        let deliverable = published(&outcome);
        assert_eq!(
            (deliverable.content.is_some(), deliverable.size_bytes),
            (inline, Some(size)),
            "{path}"
        );
    }
    let prepared =
        bench.prepare("publish_deliverable", call("output/report.md", "data")).await.ok().unwrap();
    assert_eq!(prepared.recovery, Recovery::Rerun);
    assert_eq!(
        bench.assessed("publish_deliverable", call("output/report.md", "code")).await,
        "note LOW: publishes `output/report.md`"
    );
}

/// ES-225, ES-227
#[tokio::test]
async fn what_cannot_be_published_is_an_error_the_agent_can_act_on() {
    let mut bench = Bench::new();
    bench.put("a", "x");
    let mut shown = String::new();
    for (path, kind) in [
        ("nope.md", "report"),
        ("../secret", "report"),
        ("/etc/passwd", "data"),
        ("output", "other"),
        ("a", "poem"),
    ] {
        let call = json!({ "filepath": path, "description": "d", "type": kind });
        shown += &format!("{}\n", bench.error("publish_deliverable", call).await);
    }
    insta::assert_snapshot!(shown);
}
