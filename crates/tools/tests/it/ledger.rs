//! The tools for commitments.

use jiff::Timestamp;
use serde_json::json;
use windlass_core::commitment::{CommitmentState, Party};
use windlass_core::id::{CommitmentId, SessionId, TaskId};
use windlass_core::outcome::Outcome;
use windlass_store::CommitmentFilter;
use windlass_tools::Signature;

use crate::bench::Bench;

fn sign(bench: &mut Bench, name: &str) -> TaskId {
    let task = TaskId::derived("test", name);
    bench.facts.signature = Some(Signature {
        session: SessionId::new(Timestamp::UNIX_EPOCH),
        task,
        root: task,
        user: Some("ada".to_owned()),
        project: "/project".to_owned(),
        reviews: None,
    });
    task
}

fn promised(bench: &Bench) -> CommitmentId {
    bench.store.commitments().list(&CommitmentFilter::default()).unwrap()[0].id
}

/// AX-061, AX-116, AX-117
#[tokio::test]
async fn the_six_tools_carry_a_commitment_through_its_life() {
    let mut bench = Bench::new();
    bench.put("test.log", "42 passed\n");
    let architect = sign(&mut bench, "architect");
    let said = bench.call("commit", json!({"title": "use JWT", "body": "in auth.rs"})).await;
    let id = promised(&bench);
    assert_eq!(said.text, format!("Commitment `{id}` \"use JWT\" is open."));
    let executor = sign(&mut bench, "executor");
    let id = json!(id.to_string());
    bench.call("claim", json!({"commitment": id})).await;
    let proof =
        json!({"commitment": id, "type": "test_output", "path": "test.log", "description": "all"});
    let kept: Outcome = bench.call("capture", proof).await;
    assert!(kept.text.contains("sha256"), "{}", kept.text);
    bench.call("submit", json!({"commitment": id, "summary": "done"})).await;
    let own = bench.call("approve", json!({"commitment": id})).await;
    assert!(own.is_error() && own.text.contains("cannot judge it"), "{}", own.text);
    sign(&mut bench, "auditor");
    let rejected = bench.call("reject", json!({"commitment": id, "reason": "no refresh"})).await;
    assert!(rejected.text.contains("is claimed") && rejected.text.contains("no refresh"));
    sign(&mut bench, "executor");
    bench.call("submit", json!({"commitment": id})).await;
    sign(&mut bench, "auditor");
    bench.call("approve", json!({"commitment": id, "reason": "good"})).await;

    let found = bench.store.commitments().get(promised(&bench)).unwrap();
    assert_eq!(found.state, CommitmentState::Approved);
    assert_eq!(
        (found.opened_by, found.claimed_by),
        (Party::Agent(architect), Some(Party::Agent(executor)))
    );
    assert_eq!(found.evidence.len(), 1);
    let content = bench.store.commitments().content(&found.evidence[0]).unwrap();
    assert_eq!(content, b"42 passed\n");
}

#[tokio::test]
async fn evidence_that_holds_secrets_asks() {
    let mut bench = Bench::new();
    bench.put(".ssh/id_rsa", "hush");
    bench.put("test.log", "42 passed\n");
    sign(&mut bench, "executor");
    let call = |path: &str| json!({ "type": "file", "path": path, "description": "it" });
    assert_eq!(
        bench.assessed("capture", call(".ssh/id_rsa")).await,
        "read HIGH: `.ssh/id_rsa` holds secrets"
    );
    let log = bench.assessed("capture", call("test.log")).await;
    assert_eq!(log, "ledger LOW: records evidence of type file");
}

/// AX-117: the second claim is refused, and so is an unknown commitment.
#[tokio::test]
async fn a_second_claim_is_an_error_that_names_the_first() {
    let mut bench = Bench::new();
    let first = sign(&mut bench, "first");
    bench.call("commit", json!({"title": "use JWT"})).await;
    let id = promised(&bench).to_string();
    bench.call("claim", json!({"commitment": id})).await;
    sign(&mut bench, "second");
    let second = bench.call("claim", json!({"commitment": id})).await;
    assert!(second.is_error() && second.text.contains(&first.to_string()), "{}", second.text);
    let unknown = bench.call("claim", json!({"commitment": "cmt_nope"})).await;
    assert!(unknown.text.contains("there is no commitment"), "{}", unknown.text);
}

#[tokio::test]
async fn evidence_is_typed_and_needs_what_its_type_says() {
    let mut bench = Bench::new();
    sign(&mut bench, "one");
    bench.put("shot.png", b"\x89PNG\r\n\x1a\n");
    for good in [
        json!({"type": "diff", "content": "-a\n+b"}),
        json!({"type": "url", "url": "https://example.org/ci/1"}),
        json!({"type": "screenshot", "path": "shot.png"}),
        json!({"type": "note", "content": "auth.rs has no tests"}),
    ] {
        let kept = bench.call("capture", good.clone()).await;
        assert!(!kept.is_error(), "{good}: {}", kept.text);
    }
    for bad in [
        json!({"type": "file", "content": "x"}),
        json!({"type": "url", "url": "javascript:alert(1)"}),
        json!({"type": "file", "path": "../outside"}),
        json!({"type": "test_output"}),
    ] {
        assert!(bench.call("capture", bad.clone()).await.is_error(), "{bad}");
    }
}

/// An auditor that was started to review a task judges that task and no other.
#[tokio::test]
async fn a_verdict_about_a_task_is_given_by_its_reviewer_alone() {
    let mut bench = Bench::new();
    let reviewed = TaskId::derived("test", "reviewed");
    sign(&mut bench, "auditor");
    let verdict = json!({"commitment": reviewed.to_string(), "reason": "good"});
    assert!(bench.call("approve", verdict.clone()).await.is_error());
    bench.facts.signature.as_mut().unwrap().reviews = Some(reviewed);
    assert!(!bench.call("approve", verdict).await.is_error());
    let other = TaskId::derived("test", "other").to_string();
    assert!(bench.call("reject", json!({"commitment": other, "reason": "x"})).await.is_error());
}
