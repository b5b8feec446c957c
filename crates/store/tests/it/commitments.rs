//! The ledger of commitments: one stream each, decided in the transaction that records it.

use windlass_core::commitment::{
    Actor, CommitmentOpened, CommitmentState, EvidenceKind, Order, Party, Refusal,
};
use windlass_core::id::{CommitmentId, EvidenceId};
use windlass_store::{CommitmentFilter, Error, NewProof, Store};

use crate::world::{World, at};

fn opened(title: &str) -> CommitmentOpened {
    CommitmentOpened {
        title: title.to_owned(),
        body: "in `auth.rs`".to_owned(),
        by: Party::Person("ada".to_owned()),
        session_id: None,
        task_id: None,
        project: Some("/project".to_owned()),
        user_id: Some("ada".to_owned()),
        key: None,
    }
}

fn proof(name: &str, content: &str) -> NewProof {
    NewProof {
        id: EvidenceId::derived("test", name),
        kind: EvidenceKind::TestOutput,
        uri: None,
        content: Some(content.as_bytes().to_vec()),
        description: "all tests pass".to_owned(),
        task: None,
    }
}

async fn promise(store: &Store, name: &str) -> CommitmentId {
    let id = CommitmentId::derived("test", name);
    store.commitments().open(id, at(1), opened(name)).await.unwrap().id
}

async fn act(store: &Store, id: CommitmentId, by: &str, order: Order) -> Result<(), Error> {
    store.commitments().act(id, at(2), Actor::person(by), order, None).await.map(drop)
}

/// AX-061, AX-116, AX-117, MS-195: each order leaves its rows, and the rows are a fold of the journal.
#[tokio::test]
async fn a_whole_life_is_in_the_tables_and_can_be_rebuilt() {
    let world = World::new();
    let store = world.open();
    let id = promise(&store, "use JWT").await;
    assert!(id.to_string().starts_with("cmt_"));
    act(&store, id, "bob", Order::Claim).await.unwrap();
    let by = || Actor::person("bob");
    store.commitments().capture(Some(id), at(3), by(), proof("a", "ok 1"), None).await.unwrap();
    act(&store, id, "bob", Order::Submit("done".to_owned())).await.unwrap();
    act(&store, id, "eve", Order::Reject("no".to_owned())).await.unwrap();
    act(&store, id, "bob", Order::Submit("again".to_owned())).await.unwrap();
    act(&store, id, "eve", Order::Approve("good".to_owned())).await.unwrap();
    store.commitments().capture(None, at(4), by(), proof("b", "seen"), None).await.unwrap();

    let rows = store.commitments().list(&CommitmentFilter::default()).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].state, rows[0].evidence_count), (CommitmentState::Approved, 1));
    assert_eq!(rows[0].verdict_reason.as_deref(), Some("good"));
    assert!(store.projections().verify().unwrap().is_empty());
    store.projections().rebuild().await.unwrap();
    assert_eq!(store.commitments().list(&CommitmentFilter::default()).unwrap(), rows);
    assert!(store.projections().verify().unwrap().is_empty());
}

/// AX-117: of two claims at once one holds, and the other one leaves nothing.
#[tokio::test]
async fn of_two_claims_at_once_one_is_refused() {
    let world = World::new();
    let (one, other) = (world.open(), world.open());
    let id = promise(&one, "use JWT").await;
    let (first, second) =
        tokio::join!(act(&one, id, "bob", Order::Claim), act(&other, id, "eve", Order::Claim));
    let refused = [first, second].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    let [Error::Refused(Refusal::AlreadyClaimed { by, .. })] = refused.as_slice() else {
        panic!("{refused:?}")
    };
    let found = one.commitments().get(id).unwrap();
    assert_eq!(found.claimed_by.as_ref(), Some(by));
    assert!(one.projections().verify().unwrap().is_empty());
}

/// AX-011: what is refused changes nothing.
#[tokio::test]
async fn nothing_is_submitted_without_evidence_nor_approved_by_its_claimer() {
    let world = World::new();
    let store = world.open();
    let id = promise(&store, "use JWT").await;
    act(&store, id, "bob", Order::Claim).await.unwrap();
    let refused = act(&store, id, "bob", Order::Submit(String::new())).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::NoEvidence { .. })), "{refused}");
    let actor = Actor::person("bob");
    store.commitments().capture(Some(id), at(3), actor, proof("a", "ok"), None).await.unwrap();
    act(&store, id, "bob", Order::Submit(String::new())).await.unwrap();
    let refused = act(&store, id, "bob", Order::Approve(String::new())).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::OwnWork { .. })), "{refused}");
    assert_eq!(store.commitments().get(id).unwrap().state, CommitmentState::Submitted);
    let unknown = act(&store, CommitmentId::derived("no", "such"), "bob", Order::Claim).await;
    assert!(matches!(unknown, Err(Error::UnknownCommitment(_))), "{unknown:?}");
}

#[tokio::test]
async fn evidence_is_kept_by_its_hash_and_damage_is_noticed() {
    let world = World::new();
    let store = world.open();
    let id = promise(&store, "use JWT").await;
    let actor = Actor::person("bob");
    let ledger = store.commitments();
    let kept = ledger.capture(Some(id), at(3), actor, proof("a", "42 passed"), None).await.unwrap();
    assert_eq!(kept.sha256.len(), 64);
    assert_eq!(ledger.content(&kept).as_deref(), Some("42 passed".as_bytes()));
    std::fs::write(store.dir().evidence().join(&kept.sha256), "43 passed").unwrap();
    assert_eq!(ledger.content(&kept), None);
}

/// A call that is repeated after a crash has the same key, and takes effect once.
#[tokio::test]
async fn an_order_with_a_key_is_carried_out_once() {
    let world = World::new();
    let store = world.open();
    let id = promise(&store, "use JWT").await;
    for _ in 0..2 {
        let key = Some("call_1".to_owned());
        let claimed = store.commitments().act(id, at(2), Actor::person("bob"), Order::Claim, key);
        assert_eq!(claimed.await.unwrap().state, CommitmentState::Claimed);
        let key = Some("call_2".to_owned());
        let by = Actor::person("bob");
        store.commitments().capture(Some(id), at(3), by, proof("a", "ok"), key).await.unwrap();
    }
    assert_eq!(store.commitments().get(id).unwrap().evidence.len(), 1);
}
