//! Roles of a session: the three commands, what they say, what they change, and when they end.

use windlass_coordinator::{Error, GivenEvidence, NewCommitment};
use windlass_core::commitment::{EvidenceKind, Order};
use windlass_core::role::Role;
use windlass_core::session::Source;

use crate::conversations::Talking;

const REPLIES: &str = "goal: unused\nreplies: [{say: one}, {say: two}, {say: three}]";

async fn claim(talking: &Talking) -> windlass_core::id::CommitmentId {
    let ledger = talking.stage.coordinator.commitments();
    let new = NewCommitment { title: "use JWT".to_owned(), ..NewCommitment::default() };
    let id = ledger.open(new, "eve").await.unwrap().id;
    ledger.act(id, Order::Claim, "ada").await.unwrap();
    id
}

/// AX-004, AX-035, AX-053, AX-060, AX-093, AX-115: without any commitment, one transition with source `role`.
#[tokio::test]
async fn architect_switches_with_its_exact_words_and_nothing_else_does() {
    let talking = Talking::begin(REPLIES).await;
    assert_eq!(
        talking.run("/architect").await,
        "Switched to Architect mode. You can plan and create commitments but cannot modify code directly."
    );
    assert_eq!(talking.axes(), "plan | manual | restricted | smart");
    assert_eq!(talking.session().details().unwrap().role, Some(Role::Architect));
    let rows = talking.stage.store.sessions().transitions(talking.id).unwrap();
    assert_eq!(rows.iter().map(|row| row.source).collect::<Vec<_>>(), [Source::Role]);
    for wrong in ["/archi", "/Architect", "/architects", "/architect now", "/role architect"] {
        assert!(talking.try_run(wrong).await.is_err(), "{wrong}");
    }
    assert_eq!(talking.stage.store.sessions().transitions(talking.id).unwrap().len(), 1);
    assert!(talking.stage.store.projections().verify().unwrap().is_empty());
}

/// AX-056, AX-094, AX-109: refused without a claim, with a message that says so.
#[tokio::test]
async fn executor_needs_a_claimed_commitment() {
    let talking = Talking::begin(REPLIES).await;
    let refused = talking.try_run("/executor").await.unwrap_err();
    assert!(matches!(refused, Error::NothingClaimed { .. }), "{refused}");
    assert!(refused.to_string().contains("Executor mode needs a claimed commitment"));
    assert_eq!(talking.axes(), "chat | manual | normal | smart", "nothing changed");
    let id = claim(&talking).await;
    let said = talking.run("/executor").await;
    assert!(
        said.starts_with("Switched to Executor mode.") && said.contains(&id.to_string()),
        "{said}"
    );
    assert_eq!(talking.axes(), "build | manual | normal | smart");
}

/// AX-095
#[tokio::test]
async fn auditor_reviews_with_the_deep_model_under_restricted() {
    let talking = Talking::begin(REPLIES).await;
    assert!(talking.run("/auditor").await.starts_with("Switched to Auditor mode."));
    assert_eq!(talking.axes(), "review | manual | restricted | deep");
    assert!(talking.run("/mode").await.contains("role                auditor"));
}

/// From one role to another nothing of the first one stays; a change of the work mode by hand ends the role.
#[tokio::test]
async fn a_role_replaces_a_role_and_a_work_mode_ends_it() {
    let talking = Talking::begin(REPLIES).await;
    claim(&talking).await;
    talking.run("/architect").await;
    talking.run("/auditor").await;
    talking.run("/executor").await;
    assert_eq!(talking.axes(), "build | manual | normal | smart");
    let said = talking.run("/mode chat").await;
    assert!(said.contains("you left the Executor role"), "{said}");
    assert_eq!(talking.session().details().unwrap().role, None);
}

/// AX-082, AX-097: the role is the session's own: the next task has it, another session has not.
#[tokio::test]
async fn the_next_task_works_in_the_role_and_another_session_does_not() {
    let talking = Talking::begin(REPLIES).await;
    talking.run("/architect").await;
    let task = talking.say("plan it").await;
    let state = talking.stage.coordinator.tasks().state(task).unwrap();
    assert_eq!(state.role, Some(Role::Architect));
    let sent = talking.sent();
    assert!(sent[0].contains("ARCHITECT MODE") && !sent[0].contains(r#""name":"write""#));
    let other = Talking::begin(REPLIES).await;
    assert_eq!(other.session().details().unwrap().role, None);
}

/// A conversation that is under way gets the role with the next request, and so do its tools.
#[tokio::test]
async fn a_running_conversation_changes_its_tools_with_the_role() {
    let talking = Talking::begin(REPLIES).await;
    talking.say("hello").await;
    talking.run("/auditor").await;
    talking.say("and now?").await;
    let sent = talking.sent();
    assert!(sent[0].contains(r#""name":"write""#) && !sent[1].contains(r#""name":"write""#));
    assert!(sent[1].contains("AUDITOR MODE"));
}

/// AX-071: what every surface draws of the ledger.
#[tokio::test]
async fn commitments_are_listed_and_shown_with_their_evidence() {
    let talking = Talking::begin(REPLIES).await;
    assert!(talking.run("/commitments").await.starts_with("Nothing is promised."));
    let id = claim(&talking).await;
    let listed = talking.run("/commitments").await;
    assert!(listed.contains(&id.to_string()) && listed.contains("claimed"), "{listed}");
    let evidence = GivenEvidence {
        kind: EvidenceKind::Url,
        content: None,
        path: None,
        url: Some("https://example.org/ci/7".to_owned()),
        description: "all green".to_owned(),
    };
    talking.stage.coordinator.commitments().capture(Some(id), evidence, "ada").await.unwrap();
    let shown = talking.run(&format!("/commitments {id}")).await;
    assert!(shown.contains("https://example.org/ci/7") && shown.contains("claimed by"), "{shown}");
}
