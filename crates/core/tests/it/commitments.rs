//! What a commitment allows in each state, and who may do it.

use jiff::Timestamp;
use windlass_core::commitment::{
    Actor, Commitment, CommitmentOpened, CommitmentState, Evidence, EvidenceKind, Order, Party,
    Verdict, check_evidence,
};
use windlass_core::id::{CommitmentId, EvidenceId, TaskId};

fn opened() -> Commitment {
    let opened = CommitmentOpened {
        title: "use JWT".to_owned(),
        body: String::new(),
        by: Party::Person("ada".to_owned()),
        session_id: None,
        task_id: None,
        project: None,
        user_id: None,
        key: None,
    };
    Commitment::begin(CommitmentId::derived("test", "one"), Timestamp::UNIX_EPOCH, &opened)
}

fn evidence() -> Evidence {
    Evidence {
        id: EvidenceId::derived("test", "proof"),
        kind: EvidenceKind::TestOutput,
        uri: "proof".to_owned(),
        sha256: "00".to_owned(),
        bytes: 2,
        description: String::new(),
        by: Party::Person("bob".to_owned()),
        task: None,
        at: Timestamp::UNIX_EPOCH,
    }
}

fn act(commitment: &mut Commitment, by: &str, order: Order) -> Result<CommitmentState, String> {
    let event = commitment.decide(&Actor::person(by), order, None);
    let event =
        event.map_err(|refusal| refusal.to_string())?.expect("an order that changes something");
    commitment.apply(Timestamp::UNIX_EPOCH, &event);
    Ok(commitment.state)
}

/// O-39, AX-117
#[test]
fn a_commitment_is_claimed_proven_handed_in_and_approved() {
    let mut one = opened();
    assert!(act(&mut one, "bob", Order::Submit(String::new())).unwrap_err().contains("is open"));
    assert_eq!(act(&mut one, "bob", Order::Claim), Ok(CommitmentState::Claimed));
    let second = act(&mut one, "eve", Order::Claim).unwrap_err();
    assert!(second.ends_with("is already claimed by `bob`"), "{second}");
    let unproven = act(&mut one, "bob", Order::Submit(String::new())).unwrap_err();
    assert!(unproven.contains("no evidence"), "{unproven}");
    act(&mut one, "bob", Order::Capture(evidence())).unwrap();
    assert!(act(&mut one, "eve", Order::Submit(String::new())).unwrap_err().contains("only they"));
    assert_eq!(act(&mut one, "bob", Order::Submit("done".into())), Ok(CommitmentState::Submitted));
    let own = act(&mut one, "bob", Order::Approve(String::new())).unwrap_err();
    assert!(own.contains("was claimed by `bob`, who cannot judge it"), "{own}");
    assert_eq!(act(&mut one, "eve", Order::Approve("good".into())), Ok(CommitmentState::Approved));
    assert!(act(&mut one, "bob", Order::Claim).unwrap_err().contains("is approved"));
    assert!(act(&mut one, "bob", Order::Capture(evidence())).is_err());
}

/// O-39
#[test]
fn a_rejected_commitment_is_claimed_again_with_the_reason() {
    let mut one = opened();
    act(&mut one, "bob", Order::Claim).unwrap();
    act(&mut one, "bob", Order::Capture(evidence())).unwrap();
    act(&mut one, "bob", Order::Submit(String::new())).unwrap();
    assert!(act(&mut one, "eve", Order::Reject(" ".into())).unwrap_err().contains("is empty"));
    let state = act(&mut one, "eve", Order::Reject("no test".into()));
    assert_eq!(state, Ok(CommitmentState::Claimed));
    assert_eq!(one.verdict, Some(Verdict::Rejected));
    assert_eq!(one.verdict_reason.as_deref(), Some("no test"));
    assert_eq!(one.claimed_by, Some(Party::Person("bob".to_owned())));
    assert_eq!(act(&mut one, "bob", Order::Submit(String::new())), Ok(CommitmentState::Submitted));
}

#[test]
fn an_agent_works_on_its_users_claim_and_does_not_judge_it() {
    let mut one = opened();
    act(&mut one, "bob", Order::Claim).unwrap();
    act(&mut one, "bob", Order::Capture(evidence())).unwrap();
    let agent = Actor::agent(TaskId::derived("test", "task"), Some("bob".to_owned()));
    let event = one.decide(&agent, Order::Submit(String::new()), None).unwrap().unwrap();
    one.apply(Timestamp::UNIX_EPOCH, &event);
    let judged = one.decide(&agent, Order::Approve(String::new()), None).unwrap_err();
    assert!(judged.to_string().contains("was submitted by"), "{judged}");
    let other = Actor::agent(TaskId::derived("test", "auditor"), Some("bob".to_owned()));
    assert!(one.decide(&other, Order::Approve(String::new()), None).is_ok());
}

#[test]
fn an_order_with_a_key_takes_effect_once() {
    let mut one = opened();
    let key = Some("call_1".to_owned());
    let event = one.decide(&Actor::person("bob"), Order::Claim, key.clone()).unwrap().unwrap();
    one.apply(Timestamp::UNIX_EPOCH, &event);
    assert_eq!(one.decide(&Actor::person("bob"), Order::Claim, key), Ok(None));
}

#[test]
fn a_released_commitment_is_open_for_others() {
    let mut one = opened();
    let agent = Actor::agent(TaskId::derived("test", "task"), None);
    let claimed = one.decide(&agent, Order::Claim, None).unwrap().unwrap();
    one.apply(Timestamp::UNIX_EPOCH, &claimed);
    let other = Actor::agent(TaskId::derived("test", "other"), None);
    assert!(one.decide(&other, Order::Release(String::new()), None).is_err());
    assert_eq!(act(&mut one, "ada", Order::Release("it hangs".into())), Ok(CommitmentState::Open));
    assert_eq!(one.claimed_by, None);
}

#[test]
fn evidence_needs_what_its_type_says() {
    let refused = |kind, path, url, content| check_evidence(kind, path, url, content).is_err();
    assert!(refused(EvidenceKind::File, None, None, Some("text")));
    assert!(refused(EvidenceKind::Url, None, Some("ftp://x"), None));
    assert!(refused(EvidenceKind::Diff, None, None, Some(" ")));
    assert!(!refused(EvidenceKind::TestOutput, None, None, Some("ok")));
    assert!(!refused(EvidenceKind::Screenshot, Some("shot.png"), None, None));
}
