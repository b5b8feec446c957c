//! Keys of ours are in nothing that the store keeps beside the journals of tasks either.

use std::path::Path;

use windlass_core::axes::Axes;
use windlass_core::commitment::{Actor, CommitmentOpened, EvidenceKind, Order, Party};
use windlass_core::id::{CommitmentId, DecisionId, EvidenceId, IssueId, ScheduleId, SessionId};
use windlass_core::planning::Severity;
use windlass_core::schedule::{Missed, Rhythm, Schedule, ScheduleAction};
use windlass_core::session::{Rated, SessionEvent};
use windlass_store::{NewDecision, NewIssue, NewMemory, NewProof, SessionAppend, Store};

use crate::world::{World, at, created};

const KEY: &str = "sk-live-0123456789-abcdef";

/// Every file below a directory that holds the key.
fn holding_the_key(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding_the_key(&path, found);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
}

async fn commitment(store: &Store, quoted: &str) {
    let opened = CommitmentOpened {
        title: quoted.to_owned(),
        body: quoted.to_owned(),
        by: Party::Person("ada".to_owned()),
        session_id: None,
        task_id: None,
        project: Some("/project".to_owned()),
        user_id: Some("ada".to_owned()),
        key: None,
    };
    let (ledger, id) = (store.commitments(), CommitmentId::derived("test", "one"));
    ledger.open(id, at(1), opened).await.unwrap();
    let by = || Actor::person("bob");
    ledger.act(id, at(2), by(), Order::Claim, None).await.unwrap();
    let proof = NewProof {
        id: EvidenceId::derived("test", "one"),
        kind: EvidenceKind::TestOutput,
        uri: Some(quoted.to_owned()),
        content: Some(format!("\u{1}{quoted}").into_bytes()),
        description: quoted.to_owned(),
        task: None,
    };
    let kept = ledger.capture(Some(id), at(3), by(), proof, None).await.unwrap();
    let content = ledger.content(&kept).unwrap();
    assert_eq!(String::from_utf8(content).unwrap(), "\u{1}use [redacted: API_KEY] there");
    ledger.act(id, at(4), by(), Order::Submit(quoted.to_owned()), None).await.unwrap();
}

async fn planning(store: &Store, quoted: &str) {
    let text = || quoted.to_owned();
    let project = || "/project".to_owned();
    let issue = NewIssue {
        id: IssueId::derived("test", "one"),
        project: project(),
        plan: None,
        task: None,
        severity: Severity::Low,
        owner: None,
        description: text(),
    };
    store.planning().log_issue(at(1), issue).await.unwrap();
    let decision = NewDecision {
        id: DecisionId::derived("test", "one"),
        project: project(),
        plan: None,
        task: None,
        title: text(),
        reasoning: text(),
        alternatives: vec![text()],
    };
    let logged = store.planning().log_decision(at(1), decision).await.unwrap();
    assert_eq!(logged.alternatives, ["use [redacted: API_KEY] there"]);
}

#[tokio::test]
async fn a_key_is_in_nothing_that_people_and_agents_have_kept() {
    let world = World::new();
    let store = world.open();
    store.secrets().hide([("API_KEY", KEY)]);
    let quoted = format!("use {KEY} there");
    let (text, task) = (|| quoted.clone(), created());
    let session: SessionId = task.command.session_id;
    let id = store.tasks().create(at(0), task).await.unwrap().task();

    commitment(&store, &quoted).await;
    planning(&store, &quoted).await;
    let memory =
        NewMemory { text: text(), tags: vec![text()], task: None, session: None, project: None };
    store.memories().add(at(1), memory).await.unwrap();
    let schedule = Schedule {
        id: ScheduleId::new(at(1)),
        action: ScheduleAction::Start,
        task_id: None,
        session_id: None,
        user_id: None,
        goal: Some(text()),
        workspace: None,
        check_prompt: None,
        rhythm: Rhythm::Every { interval_seconds: 60 },
        time_zone: "UTC".to_owned(),
        timeout_at: None,
        timeout_action: None,
        missed_runs: Missed::RunOnce,
        created_at: at(1),
    };
    store.schedules().add(schedule, None).await.unwrap();
    store.triggers().decide("message", "one", format!("\"{quoted}\""), at(1)).await.unwrap();
    let (_, last) = store.sessions().state(session).unwrap().unwrap();
    let rated = SessionEvent::Rated(Rated {
        stars: 5,
        note: text(),
        task: id,
        model: None,
        axes: Axes::headless(),
        by: "ada".to_owned(),
    });
    let append = SessionAppend { events: vec![rated], mail: Vec::new() };
    store.sessions().append(session, last, at(1), append).await.unwrap();

    let mut found = Vec::new();
    holding_the_key(world.dir.path(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}
