//! Roles at the loop's own seam: which tools an agent is offered, and what the gate says to calls that it makes anyway.

use windlass_core::commitment::{Actor, CommitmentOpened, Order, Party};
use windlass_core::id::CommitmentId;
use windlass_store::CommitmentFilter;
use windlass_testkit::Stage;

/// The names of the tools in the first request of an agent in a role, and the request.
async fn first_request(role: &str) -> (Vec<String>, String) {
    let script = format!("goal: look\nrole: {role}\ncontrol: manual\nreplies: [{{say: seen}}]");
    let stage = Stage::set(&script);
    stage.play().await;
    let request = stage.server.requests()[0].json();
    let tools = request["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    (names.collect(), request.to_string())
}

fn has(tools: &[String], name: &str) -> bool {
    tools.iter().any(|tool| tool == name)
}

/// AX-019, AX-050, AX-052, AX-077, AX-097, AX-108: an architect reads, notes, promises and delegates.
#[tokio::test]
async fn an_architect_is_offered_reading_notes_commitments_and_sub_agents() {
    let (tools, request) = first_request("architect").await;
    for tool in ["read", "grep", "glob", "update_plan", "commit", "capture", "spawn_agent"] {
        assert!(has(&tools, tool), "{tool} is not in {tools:?}");
    }
    for tool in ["write", "edit", "bash", "bash_output", "claim", "submit", "approve", "reject"] {
        assert!(!has(&tools, tool), "{tool} is in {tools:?}");
    }
    assert!(request.contains("You are operating in ARCHITECT MODE."), "{request}");
}

/// AX-021, AX-057, AX-058, AX-059, AX-110: an auditor reads, tests and judges.
#[tokio::test]
async fn an_auditor_is_offered_reading_commands_and_verdicts() {
    let (tools, request) = first_request("auditor").await;
    for tool in ["read", "bash", "approve", "reject", "capture"] {
        assert!(has(&tools, tool), "{tool} is not in {tools:?}");
    }
    for tool in ["write", "edit", "commit", "claim", "submit", "spawn_agent", "bash_kill"] {
        assert!(!has(&tools, tool), "{tool} is in {tools:?}");
    }
    assert!(request.contains("You are operating in AUDITOR MODE."), "{request}");
    let rules = request.split("\\n").find(|line| line.contains("Runs at once")).unwrap();
    assert!(rules.contains("tests and linters"), "{rules}");
}

/// AX-051, AX-060: calls that no architect can make, whatever else is allowed.
#[tokio::test]
async fn forged_calls_of_an_architect_are_denied_with_the_reason() {
    let script = "
        goal: change it
        role: architect
        control: assisted
        rules: [touch made.txt, ls]
        replies:
          - write: {path: made.txt, content: x}
          - bash: ls
          - bash: touch made.txt
          - claim: {commitment: cmt_x}
          - commit: {title: make the file}
          - say: an executor can do it
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let journal = stage.journal(task);
    assert!(journal.contains("commit ledger allow"), "{journal}");
    for denied in ["write edit deny", "bash read deny"] {
        assert!(journal.contains(denied), "{denied}: {journal}");
    }
    assert!(!stage.workspace().join("made.txt").exists());
    let sent_text = stage.server.requests().last().unwrap().json().to_string();
    assert!(sent_text.contains("`bash` is not a tool of the architect role"), "{sent_text}");
    let promised = stage.store.commitments().list(&CommitmentFilter::default()).unwrap();
    assert_eq!(promised[0].title, "make the file");
}

/// AX-057: a command is judged part by part.
#[tokio::test]
async fn an_auditor_runs_tests_and_linters_and_nothing_that_writes() {
    let attempts = [
        ("npm test", true),
        ("cargo test", true),
        ("cargo clippy", true),
        ("cargo test && cat a.txt", true),
        ("cat a.txt | grep x", true),
        ("ls", true),
        ("ls > x", false),
        ("npm test > x", false),
        ("cargo test 2> x", false),
        ("cargo test | tee x", false),
        ("cargo test; touch x", false),
        ("cargo build", false),
        ("npm install", false),
        ("cargo test $(touch x)", false),
        ("touch x", false),
        ("python3 run.py", false),
        ("rm a.txt", false),
        ("git commit -am x", false),
    ];
    let replies: String =
        attempts.iter().map(|(command, _)| format!("  - bash: {command:?}\n")).collect();
    let script = format!(
        "goal: judge it\nrole: auditor\nfiles: {{a.txt: \"x\\n\", run.py: \"x\"}}\nlimits: {{max_iterations: 90}}\n\
         replies:\n{replies}  - write: {{path: x, content: y}}\n  - edit: {{path: a.txt, old_string: x, new_string: y}}\n  - say: judged\n"
    );
    let stage = Stage::set(&script);
    let task = stage.play().await;
    let checks: Vec<_> = stage
        .store
        .journal()
        .of(task)
        .unwrap()
        .into_iter()
        .filter_map(|record| match record.event {
            windlass_core::event::Event::RiskCheck(check) => Some(check),
            _ => None,
        })
        .collect();
    for ((command, allowed), check) in attempts.iter().zip(&checks) {
        let is_allowed = check.decision == windlass_core::policy::Decision::Allow;
        assert_eq!(is_allowed, *allowed, "{command}: {} {}", check.class, check.reason);
    }
    assert!(checks[attempts.len()..].iter().all(|check| check.reason.contains("auditor")));
    assert!(!stage.workspace().join("x").exists());
    assert_eq!(std::fs::read_to_string(stage.workspace().join("a.txt")).unwrap(), "x\n");
}

/// C-12: what a role forbids, it forbids the agents below.
#[tokio::test]
async fn a_sub_agent_of_an_architect_is_an_architect() {
    let script = "
        goal: plan it
        role: architect
        control: assisted
        match:
          - task: change it
            replies: [{write: {path: made.txt, content: x}}, {bash: touch made.txt}, {say: it was refused}]
        replies:
          - spawn_agent: {task: change it}
          - say: planned
    ";
    let stage = Stage::set(script);
    stage.play().await;
    assert!(!stage.workspace().join("made.txt").exists());
    let child = stage.server.requests()[1].json().to_string();
    assert!(child.contains("ARCHITECT MODE") && !child.contains(r#""name":"write""#), "{child}");
}

async fn claimed(stage: &Stage, user: &str) -> CommitmentId {
    let id = CommitmentId::derived("test", "commitment");
    let opened = CommitmentOpened {
        title: "make the file".to_owned(),
        body: "it is called made.txt".to_owned(),
        by: Party::Person("bob".to_owned()),
        session_id: None,
        task_id: None,
        project: None,
        user_id: None,
        key: None,
    };
    let (ledger, now) = (stage.store.commitments(), stage.coordinator.now());
    ledger.open(id, now, opened).await.unwrap();
    ledger.act(id, now, Actor::person(user), Order::Claim, None).await.unwrap();
    id
}

async fn submit_for(stage: &Stage, user: &str) -> windlass_core::id::TaskId {
    let mut draft = stage.draft();
    draft.user_id = Some(user.to_owned());
    stage.coordinator.tasks().submit(draft).await.unwrap()
}

/// AX-020, AX-054, AX-055, AX-056, AX-083, AX-109
#[tokio::test]
async fn an_executor_needs_a_claim_and_reads_what_it_has_claimed() {
    let script = "
        goal: do it
        role: executor
        replies:
          - write: {path: made.txt, content: x}
          - capture: {commitment: COMMITMENT, type: file, path: made.txt}
          - submit: {commitment: COMMITMENT, summary: done}
          - say: done
    ";
    let id = CommitmentId::derived("test", "commitment").to_string();
    let stage = Stage::set(&script.replace("COMMITMENT", &id));
    let refused = stage.coordinator.tasks().submit(stage.draft()).await.unwrap_err();
    assert!(refused.to_string().contains("Executor mode needs a claimed commitment"), "{refused}");
    claimed(&stage, "ada").await;
    let task = submit_for(&stage, "ada").await;
    stage.drive(task).await;
    assert!(stage.workspace().join("made.txt").exists());
    let request = stage.server.requests()[0].json().to_string();
    assert!(request.contains("EXECUTOR MODE") && request.contains("it is called made.txt"));
    assert!(stage.journal(task).contains("COMPLETED"), "{}", stage.journal(task));
}

/// AX-083: a claim that is taken away ends the role, and with it the work.
#[tokio::test]
async fn an_executor_whose_claim_is_lost_leaves_the_role() {
    let script = "
        goal: do it
        role: executor
        replies:
          - ask_user: {question: which colour?}
          - write: {path: made.txt, content: x}
          - say: stopped
    ";
    let stage = Stage::set(script);
    let id = claimed(&stage, "ada").await;
    let task = submit_for(&stage, "ada").await;
    stage.drive(task).await;
    let order = Order::Release("not now".to_owned());
    stage.coordinator.commitments().act(id, order, "bob").await.unwrap();
    let question = stage.coordinator.inbox().open().unwrap()[0].row.question.id;
    stage.coordinator.inbox().answer(question, "blue", "ada").await.unwrap();
    stage.drive(task).await;
    let journal = stage.journal(task);
    assert!(journal.contains("the commitment is no longer claimed"), "{journal}");
    assert!(!stage.workspace().join("made.txt").exists(), "{journal}");
    let sent_text = stage.server.requests().last().unwrap().json().to_string();
    assert!(!sent_text.contains("EXECUTOR MODE"), "{sent_text}");
}
