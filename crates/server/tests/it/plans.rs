//! Plans over HTTP: activated, worked through by the service, their issues, decisions and snapshots.

use std::path::Path;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use windlass_coordinator::plans::IssueDraft;
use windlass_coordinator::{NewCommitment, NewSession};
use windlass_core::axes::{Axes, Surface};
use windlass_core::id::SessionId;
use windlass_core::planning::Severity;
use windlass_server::Access;
use windlass_testkit::Stage;

use crate::world::{World, account, answer, options, problem};

/// A directory with a plan of two tasks, and the session that is in it.
pub async fn session_with_plan(world: &World, directory: &Path) -> SessionId {
    session_of(world, "ada", directory).await
}

/// The same for somebody.
pub async fn session_of(world: &World, user: &str, directory: &Path) -> SessionId {
    let plan = json!({"id": "demo", "phases": [{"title": "Only", "tasks": [
        {"bestPatternPrompt": "Use /x"}, {"bestPatternPrompt": "Use /x", "dependsOn": ["t01"]}]}]});
    std::fs::write(directory.join("plan.json"), plan.to_string()).unwrap();
    let session = SessionId::new(world.coordinator().now());
    let workspace = Some(directory.display().to_string());
    let new = NewSession::new(Axes::interactive(Surface::Web), user, workspace);
    world.coordinator().session(session).begin(new).await.unwrap();
    session
}

async fn activated(world: &World, directory: &Path) -> String {
    let session = session_with_plan(world, directory).await;
    let (status, body) = answer(world.post("/v1/plans", &json!({"session_id": session}))).await;
    assert_eq!(status, 201, "{body}");
    body["plan_id"].as_str().unwrap().to_owned()
}

/// MS-131: the service honours what the tasks of a plan wait for.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_activated_and_worked_through_over_http() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await;
    world.serve_tasks();
    let directory = tempfile::tempdir().unwrap();
    let plan = activated(&world, directory.path()).await;
    let (_, before) = answer(world.get(&format!("/v1/plans/{plan}"))).await;
    assert_eq!((&before["state"], &before["total"]), (&json!("waiting"), &json!(2)));
    assert_eq!(before["phases"][0]["tasks"][1]["waits_for"], json!(["t01"]));
    let (status, _) = answer(world.post(&format!("/v1/plans/{plan}/run"), &json!({}))).await;
    assert_eq!(status, 200);
    let done = loop {
        let (_, now) = answer(world.get(&format!("/v1/plans/{plan}"))).await;
        match now["state"].as_str() {
            Some("done") => break now,
            Some("failed" | "blocked") => panic!("{now}"),
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(done["phases"][0]["tasks"][1]["status"], "done");
    let (_, listed) = answer(world.get("/v1/plans")).await;
    assert_eq!(listed["plans"][0]["plan_id"], Value::from(plan));
    world.stop().await;
}

/// PL-025, PL-029, PL-031: what is refused on the command line is refused here, and leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn issues_decisions_and_snapshots_are_kept_or_refused_over_http() {
    let world = World::new().await;
    let directory = tempfile::tempdir().unwrap();
    let plan = activated(&world, directory.path()).await;
    let at = |part: &str| format!("/v1/plans/{plan}/{part}");
    for (part, body) in [
        ("issues", json!({"description": "x"})),
        ("issues", json!({"severity": null, "description": "x"})),
        ("issues", json!({"severity": "huge", "description": "x"})),
        ("issues", json!({"severity": "low", "description": " "})),
        ("decisions", json!({"title": "t", "reasoning": "", "alternatives": ["a"]})),
        ("decisions", json!({"title": "t", "reasoning": "r", "alternatives": []})),
        (
            "snapshot",
            json!({"task": "t01", "failingTests": [], "techDebt": [], "openDecisions": []}),
        ),
    ] {
        let (status, _) = problem(world.post(&at(part), &body)).await;
        assert_eq!(status, 422, "{part} {body}");
    }
    assert_eq!(answer(world.get(&at("issues"))).await.1["issues"], json!([]));
    assert_eq!(answer(world.get(&at("decisions"))).await.1["decisions"], json!([]));
    let issue = json!({"severity": "high", "description": "typecheck fails", "task": "t02", "owner": "intel"});
    let (status, logged) = answer(world.post(&at("issues"), &issue)).await;
    assert_eq!((status, &logged["taskId"]), (201, &json!("t02")));
    let found = answer(world.get(&at("issues?severity=high&owner=intel"))).await.1;
    assert_eq!(found["issues"].as_array().unwrap().len(), 1);
    let id = logged["id"].as_str().unwrap();
    let resolve = world.post(&format!("/v1/issues/{id}/resolve"), &json!({"resolution": "fixed"}));
    assert_eq!(answer(resolve).await.1["resolution"], "fixed");
    let snapshot = json!({"task": "t01", "failingTests": [], "techDebt": [], "openDecisions": ["x"], "nextTaskIntent": "go"});
    assert_eq!(answer(world.post(&at("snapshot"), &snapshot)).await.0, 201);
    let loaded = answer(world.get(&at("snapshot?task=t02"))).await.1;
    assert_eq!((&loaded["task"], &loaded["nextTaskIntent"]), (&json!("t01"), &json!("go")));
    let unknown = world.get("/v1/plans/plan_00000000000000000000000000");
    assert_eq!(problem(unknown).await, (404, "unknown-plan".to_owned()));
}

/// Two operators, each with a plan in a directory of their own, and somebody who only looks.
struct Shared {
    world: World,
    bobs: tempfile::TempDir,
    eves: tempfile::TempDir,
    bob: SessionId,
    eve: SessionId,
}

impl Shared {
    async fn new() -> Self {
        let mut options = options();
        options.accounts = vec![
            account("bob", Access::Operator),
            account("eve", Access::Operator),
            account("vic", Access::Viewer),
        ];
        let world = World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options).await;
        let (bobs, eves) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bob = session_of(&world, "bob", bobs.path()).await;
        let eve = session_of(&world, "eve", eves.path()).await;
        Self { world, bobs, eves, bob, eve }
    }

    fn get(&self, user: &str, path: &str) -> RequestBuilder {
        self.world.by(&format!("{user}-token"), Method::GET, path)
    }

    fn post(&self, user: &str, path: &str, body: &Value) -> RequestBuilder {
        self.world.by(&format!("{user}-token"), Method::POST, path).json(body)
    }

    async fn activate(&self, user: &str, session: SessionId) -> String {
        let made = self.post(user, "/v1/plans", &json!({"session_id": session}));
        let (status, body) = answer(made).await;
        assert_eq!(status, 201, "{body}");
        body["plan_id"].as_str().unwrap().to_owned()
    }

    /// What a slash command in somebody's own session is answered with.
    fn command(&self, user: &str, session: SessionId, line: &str) -> RequestBuilder {
        let path = format!("/v1/sessions/{session}/commands");
        self.post(user, &path, &json!({ "line": line }))
    }
}

/// Another user's plan, and what was logged for it, does not exist: on every route.
#[tokio::test]
async fn a_plan_and_its_notes_belong_to_who_activated_it() {
    let shared = Shared::new().await;
    let plan = shared.activate("bob", shared.bob).await;
    shared.activate("eve", shared.eve).await;
    let at = |part: &str| format!("/v1/plans/{plan}{part}");
    let issue = json!({"severity": "low", "description": "slow"});
    let (_, issue_made) = answer(shared.post("bob", &at("/issues"), &issue)).await;
    let resolve = format!("/v1/issues/{}/resolve", issue_made["id"].as_str().unwrap());
    let fixed = json!({"resolution": "fixed"});
    let decision = json!({"title": "t", "reasoning": "r", "alternatives": ["a"]});
    let snapshot = json!({"task": "t01", "failingTests": [], "techDebt": [], "openDecisions": [], "nextTaskIntent": "go"});
    let changes = [
        (at("/run"), json!({}), "unknown-plan"),
        (at("/issues"), issue.clone(), "unknown-plan"),
        (resolve.clone(), fixed.clone(), "unknown-issue"),
        (at("/decisions"), decision, "unknown-plan"),
        (at("/snapshot"), snapshot, "unknown-plan"),
        ("/v1/plans".to_owned(), json!({"session_id": shared.bob}), "unknown-session"),
    ];
    for (path, body, kind) in &changes {
        let refused = (404, (*kind).to_owned());
        assert_eq!(problem(shared.post("eve", path, body)).await, refused, "{path}");
        let looked = problem(shared.post("vic", path, body)).await;
        assert_eq!(looked, (403, "not-allowed".to_owned()), "{path}");
        let nobody = shared.world.anonymous(Method::POST, path).json(body);
        assert_eq!(problem(nobody).await.0, 401, "{path}");
    }
    for part in ["", "/issues", "/decisions", "/snapshot"] {
        let refused = problem(shared.get("eve", &at(part))).await;
        assert_eq!(refused, (404, "unknown-plan".to_owned()), "{part}");
    }
    let unknown = "/v1/issues/iss_00000000000000000000000000/resolve";
    let unknown = answer(shared.post("eve", unknown, &fixed)).await;
    let anothers = answer(shared.post("eve", &resolve, &fixed)).await;
    assert_eq!((unknown.0, &unknown.1["type"]), (anothers.0, &anothers.1["type"]), "told apart");
    let (_, listed) = answer(shared.get("bob", &at("/issues"))).await;
    assert_eq!(listed["issues"].as_array().unwrap().len(), 1, "nothing was written: {listed}");
    assert_eq!(listed["issues"][0]["resolution"], Value::Null, "{listed}");
    assert_eq!(answer(shared.get("vic", &at("/issues"))).await.0, 200);
    assert_eq!(answer(shared.post("bob", &resolve, &fixed)).await.0, 200);
}

/// A script is a file of the server's machine, also where a plan names it.
#[tokio::test]
async fn only_an_admin_activates_a_plan_that_names_a_script() {
    let shared = Shared::new().await;
    let plan = json!({"id": "demo", "assignedAgents": [{"name": "a", "model": "script:/etc/passwd"}],
        "phases": [{"title": "Only", "assignedAgent": "a", "tasks": [{"bestPatternPrompt": "Use /x"}]}]});
    std::fs::write(shared.bobs.path().join("plan.json"), plan.to_string()).unwrap();
    let refused = (403, "not-allowed".to_owned());
    let activation = json!({"session_id": shared.bob});
    assert_eq!(problem(shared.post("bob", "/v1/plans", &activation)).await, refused);
    let (status, said) = answer(shared.command("bob", shared.bob, "/plans activate")).await;
    assert_eq!(status, 403, "{said}");
    let by_admin = problem(shared.world.post("/v1/plans", &activation)).await;
    assert_ne!(by_admin, refused, "an admin is asked for the approval of the file");
}

/// What was logged for no plan is nobody's, and so an admin's.
#[tokio::test]
async fn an_issue_of_no_plan_is_for_admins() {
    let shared = Shared::new().await;
    let draft = IssueDraft {
        task: None,
        severity: Severity::Low,
        owner: None,
        description: "the owner's own".to_owned(),
    };
    let notes = shared.world.coordinator().plans().notes(shared.bobs.path()).unwrap();
    let issue = notes.log_issue(draft).await.unwrap().id;
    let plan = shared.activate("bob", shared.bob).await;
    let listed = |user: &str| answer(shared.get(user, &format!("/v1/plans/{plan}/issues")));
    assert_eq!(listed("bob").await.1["issues"], json!([]));
    assert_eq!(listed("vic").await.1["issues"].as_array().unwrap().len(), 1);
    let (path, fixed) = (format!("/v1/issues/{issue}/resolve"), json!({"resolution": "fixed"}));
    let refused = problem(shared.post("bob", &path, &fixed)).await;
    assert_eq!(refused, (404, "unknown-issue".to_owned()));
    let line = format!("/plans resolve-issue {issue} --resolution fixed");
    assert_eq!(problem(shared.command("bob", shared.bob, &line)).await.0, 404);
    assert_eq!(answer(shared.world.post(&path, &fixed)).await.0, 200);
}

/// A plan runs as itself: not as the one that was activated after it, and nobody takes over another's.
#[tokio::test]
async fn a_plan_that_is_not_active_is_not_run_in_its_place() {
    let shared = Shared::new().await;
    let first = shared.activate("bob", shared.bob).await;
    let other = json!({"id": "other", "phases": []});
    std::fs::write(shared.bobs.path().join("other.json"), other.to_string()).unwrap();
    let body = json!({"session_id": shared.bob, "plan": "other.json"});
    assert_eq!(answer(shared.post("bob", "/v1/plans", &body)).await.0, 201);
    let run = shared.post("bob", &format!("/v1/plans/{first}/run"), &json!({}));
    assert_eq!(problem(run).await, (409, "plan-not-active".to_owned()));
    let here = session_of(&shared.world, "eve", shared.bobs.path()).await;
    let takeover = shared.post("eve", "/v1/plans", &json!({"session_id": here}));
    assert_eq!(problem(takeover).await, (403, "not-allowed".to_owned()));
    let takeover = problem(shared.command("eve", here, "/plans activate")).await;
    assert_eq!(takeover, (403, "not-allowed".to_owned()));
}

/// Slash commands of an operator show and change what is theirs, by whatever name they are called.
#[tokio::test]
async fn slash_commands_of_an_operator_reach_what_is_theirs() {
    let shared = Shared::new().await;
    let coordinator = shared.world.coordinator();
    let plan = shared.activate("bob", shared.bob).await;
    let issue = json!({"severity": "low", "description": "slow"});
    let issue = shared.post("bob", &format!("/v1/plans/{plan}/issues"), &issue);
    let issue = answer(issue).await.1["id"].as_str().unwrap().to_owned();
    let promised = |title: &str| NewCommitment { title: title.to_owned(), ..Default::default() };
    let bobs = coordinator.commitments().open(promised("bob's word"), "bob").await.unwrap();
    coordinator.commitments().open(promised("eve's word"), "eve").await.unwrap();
    let bare = SessionId::new(coordinator.now());
    let new = NewSession::new(Axes::interactive(Surface::Web), "eve", None);
    coordinator.session(bare).begin(new).await.unwrap();
    let file = shared.bobs.path().join("plan.json").display().to_string();
    for (session, line, status) in [
        (shared.eve, "/remote".to_owned(), 403),
        (shared.eve, "/questions".to_owned(), 403),
        (shared.eve, "/tasks".to_owned(), 403),
        (shared.eve, "/doctor fix".to_owned(), 403),
        (shared.eve, "/repair".to_owned(), 403),
        (shared.eve, format!("/commitments {}", bobs.id), 404),
        (shared.eve, format!("/plans resolve-issue {issue} --resolution fixed"), 404),
        (shared.eve, format!("/plans show {file}"), 403),
        (shared.eve, "/plans activate ../x/plan.json".to_owned(), 403),
        (bare, "/plans status".to_owned(), 403),
        (bare, "/plans run".to_owned(), 403),
        (bare, "/workflow run x y".to_owned(), 403),
        (shared.bob, "/plans status".to_owned(), 404),
    ] {
        let got = problem(shared.command("eve", session, &line)).await;
        assert_eq!(got.0, status, "{line}: {got:?}");
    }
    let (_, listed) = answer(shared.command("eve", shared.eve, "/commitments")).await;
    let listed = listed.to_string();
    assert!(listed.contains("eve's word") && !listed.contains("bob's word"), "{listed}");
    let (_, all) = answer(shared.get("bob", &format!("/v1/plans/{plan}/issues"))).await;
    assert_eq!(all["issues"][0]["resolution"], Value::Null, "{all}");
    let (status, shown) = answer(shared.command("eve", shared.eve, "/plans show")).await;
    assert_eq!(status, 200, "what is in their own directory is shown: {shown}");
    assert!(shared.eves.path().join("plan.json").exists());
}
