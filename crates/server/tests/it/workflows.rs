//! Workflows, workers and proposed skills over HTTP.

use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use windlass_server::{Access, Options};
use windlass_testkit::Stage;

use crate::world::{World, account, answer, options, problem};

const WORKFLOW: &str = "
steps:
  - {name: choose, type: ask, question: 'Which way?', options: [left, right]}
";

/// A repository with a workflow that asks.
pub fn repository() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join(".windlass/workflows");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("way.yaml"), WORKFLOW).unwrap();
    let script =
        "git init -q -b main && git config user.name Ada && git config user.email ada@example.com
                  git add -A && git commit -qm start";
    let made = Command::new("sh").args(["-ec", script]).current_dir(&directory).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    directory
}

async fn world() -> World {
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let accounts = vec![account("bob", Access::Operator), account("vic", Access::Viewer)];
    World::with(stage, Options { accounts, ..options() }).await
}

async fn poll(world: &World, path: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    loop {
        let (status, body) = answer(world.get(path)).await;
        assert_eq!(status, 200, "{body}");
        if is_there(&body) {
            return body;
        }
        tokio::task::yield_now().await;
    }
}

/// MS-143: a run is listed and started once, asks, is answered, and tells what became of its steps.
#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_started_once_watched_and_answered_over_http() {
    let (mut world, repository) = (world().await, repository());
    world.serve_tasks();
    let directory = repository.path().display().to_string();
    let (status, found) = answer(world.get(&format!("/v1/workflows?directory={directory}"))).await;
    assert_eq!((status, &found["workflows"][0]["name"]), (200, &json!("way")), "{found}");
    let wanted = json!({ "workflow": "way", "title": "go", "directory": directory });
    let start = || world.post("/v1/workflows/runs", &wanted).header("idempotency-key", "once");
    let (status, first) = answer(start()).await;
    assert_eq!(status, 201, "{first}");
    assert_eq!(answer(start()).await, (201, first.clone()));
    let (_, runs) = answer(world.get("/v1/workflows/runs")).await;
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
    let run = format!("/v1/workflows/runs/{}", first["run_id"].as_str().unwrap());
    let has_one = |list: &Value| !list["questions"].as_array().unwrap().is_empty();
    let asked = poll(&world, "/v1/questions", has_one).await;
    let question = asked["questions"][0]["question_id"].as_str().unwrap();
    let path = format!("/v1/questions/{question}/answer");
    assert_eq!(answer(world.post(&path, &json!({ "answer": "2" }))).await.0, 202);
    let done = poll(&world, &run, |view| view["status"] == "done").await;
    let step = &done["steps"][0];
    assert_eq!((&step["step"], &step["status"]), (&json!("choose"), &json!("succeeded")));
    assert!(step["started_at"].is_string() && step["ended_at"].is_string(), "{step}");
    assert!(step["output"].to_string().contains("right"), "{step}");
    assert!(done["worktrees"].is_array() && done["merges"].is_array(), "{done}");
    world.stop().await;
}

/// What the command line checks and shows of a workflow file, the API does too.
#[tokio::test(flavor = "multi_thread")]
async fn workflows_are_checked_and_rendered_over_http() {
    let (world, repository) = (world().await, repository());
    let directory = repository.path().display().to_string();
    let path = format!("/v1/workflows/validate?directory={directory}");
    let (status, checked) = answer(world.get(&path)).await;
    assert_eq!((status, &checked["valid"][0]["name"]), (200, &json!("way")), "{checked}");
    assert_eq!(checked["errors"], json!([]));
    let wanted = json!({ "workflow": "way", "directory": directory });
    let (status, rendered) = answer(world.post("/v1/workflows/render", &wanted)).await;
    assert_eq!((status, &rendered["steps"][0]["text"]), (200, &json!("Which way?")), "{rendered}");
    let (_, schema) = answer(world.get("/v1/workflows/schema")).await;
    assert_eq!(schema["title"], "A windlass workflow");
    for wrong in [json!({ "budget_usd": 0.0 }), json!({ "permission_profile": "lax" })] {
        let mut wanted = wanted.clone();
        wanted.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        assert_eq!(problem(world.post("/v1/workflows/runs", &wanted)).await.0, 422, "{wanted}");
    }
}

/// A list of runs says that there are more, and where they begin.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_of_runs_comes_in_pages() {
    let (world, repository) = (world().await, repository());
    let directory = repository.path().display().to_string();
    let mut started = Vec::new();
    for title in ["one", "two", "three"] {
        let wanted = json!({ "workflow": "way", "title": title, "directory": directory });
        let (status, run) = answer(world.post("/v1/workflows/runs", &wanted)).await;
        assert_eq!(status, 201, "{run}");
        started.push(run["run_id"].clone());
        world.stage.advance(jiff::SignedDuration::from_secs(1));
    }
    let (mut listed, mut path) = (Vec::new(), "/v1/workflows/runs?limit=2".to_owned());
    loop {
        let (_, page) = answer(world.get(&path)).await;
        listed.extend(page["runs"].as_array().unwrap().iter().map(|run| run["run_id"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/workflows/runs?limit=2&cursor={next}");
    }
    started.reverse();
    assert_eq!(listed, started);
    for bad in ["limit=0", "limit=201", "cursor=x"] {
        assert_eq!(problem(world.get(&format!("/v1/workflows/runs?{bad}"))).await.0, 400, "{bad}");
    }
}

/// Worktrees that runs have left are listed with what pruning would do and why, to those who may see the runs.
#[tokio::test(flavor = "multi_thread")]
async fn worktrees_that_are_left_are_listed_and_pruned_over_http() {
    let (mut world, repository) = (world().await, repository());
    let file = repository.path().join(".windlass/workflows/think.yaml");
    std::fs::write(file, "steps:\n  - {name: think, type: agent, spell: \"Think.\\nHard.\"}\n")
        .unwrap();
    world.serve_tasks();
    let wanted = json!({ "workflow": "think", "directory": repository.path() });
    let (status, made) = answer(world.post("/v1/workflows/runs", &wanted)).await;
    assert_eq!(status, 201, "{made}");
    let run = made["run_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/workflows/runs/{run}");
    // Its agent ends without the block that it owes.
    let view = poll(&world, &path, |view| view["status"] == "blocked").await;
    assert_eq!(
        (&view["standing"], &view["reason"]),
        (&json!("waiting"), &json!("error")),
        "{view}"
    );
    let prune = || world.post("/v1/workflows/worktrees/prune", &json!({ "run_id": run }));
    let (_, kept) = answer(prune()).await;
    assert_eq!(kept["worktrees"][0]["why"], "its run is blocked", "{kept}");
    let cancel = format!("/v1/tasks/{run}/cancel");
    assert!(answer(world.post(&cancel, &json!({}))).await.0 < 300);
    let view = poll(&world, &path, |view| view["status"] == "cancelled").await;
    assert_eq!(view["standing"], "left_over", "{view}");
    assert_eq!(view["worktrees"][0]["standing"], "left_over", "{view}");
    let (_, left) = answer(world.get("/v1/workflows/worktrees")).await;
    let one = &left["worktrees"][0];
    assert_eq!((&one["fate"], &one["run_id"]), (&json!("remove"), &json!(run)), "{left}");
    let (_, others) = answer(world.by("bob-token", Method::GET, "/v1/workflows/worktrees")).await;
    assert_eq!(others["worktrees"], json!([]));
    let odd = json!({ "run_id": "nobody" });
    assert_eq!(problem(world.post("/v1/workflows/worktrees/prune", &odd)).await.0, 422);
    let viewer = world.by("vic-token", Method::POST, "/v1/workflows/worktrees/prune");
    assert_eq!(problem(viewer.json(&json!({}))).await.0, 403);
    let keyed = || prune().header("idempotency-key", "prune-once");
    let (status, done) = answer(keyed()).await;
    assert_eq!((status, &done["worktrees"][0]["fate"]), (200, &json!("remove")), "{done}");
    assert!(!std::path::Path::new(one["path"].as_str().unwrap()).exists());
    assert_eq!(answer(keyed()).await.1, done, "a repetition is answered as the first was");
    assert_eq!(answer(prune()).await.1["worktrees"], json!([]), "again, and nothing is left");
    assert_eq!(poll(&world, &path, |_| true).await["standing"], "ended");
    world.stop().await;
}

#[tokio::test]
async fn runs_that_cannot_be_are_refused_and_others_are_not_shown() {
    let (world, repository) = (world().await, repository());
    let directory = repository.path().display().to_string();
    let post = |path: &str, body: Value| world.post(path, &body);
    for (path, body, refused) in [
        (
            "/v1/workflows/runs",
            json!({ "workflow": "gone", "directory": directory }),
            (422, "bad-workflow"),
        ),
        (
            "/v1/workflows/runs",
            json!({ "workflow": "../x", "directory": directory }),
            (422, "bad-fields"),
        ),
        (
            "/v1/workflows/runs",
            json!({ "workflow": "way", "directory": "relative" }),
            (422, "bad-fields"),
        ),
        ("/v1/parallel", json!({ "tasks": [], "directory": directory }), (422, "bad-workflow")),
        (
            "/v1/parallel",
            json!({ "tasks": ["a"], "workers": 0, "directory": directory }),
            (422, "bad-workflow"),
        ),
        (
            "/v1/parallel",
            json!({ "tasks": ["a"], "colour": 1, "directory": directory }),
            (422, "bad-fields"),
        ),
        (
            "/v1/parallel/tries",
            json!({ "prompt": "a", "runners": ["windlass"], "directory": directory }),
            (422, "bad-workflow"),
        ),
    ] {
        let (status, kind) = problem(post(path, body.clone())).await;
        assert_eq!((status, kind.as_str()), refused, "{path} {body}");
    }
    let odd = problem(world.get("/v1/workflows?directory=")).await;
    assert_eq!(odd, (400, "bad-request".to_owned()));
    let start =
        |token: &str, path: &str, body: &Value| world.by(token, Method::POST, path).json(body);
    let crew = json!({ "tasks": ["write the docs"], "directory": directory });
    for token in ["bob-token", "vic-token"] {
        assert_eq!(problem(start(token, "/v1/parallel", &crew)).await.0, 403, "{token}");
    }
    let (status, made) = answer(post("/v1/parallel", crew)).await;
    assert_eq!(status, 201, "{made}");
    let run = made["run_id"].as_str().unwrap();
    for path in [format!("/v1/workflows/runs/{run}"), format!("/v1/parallel/{run}/results")] {
        assert_eq!(answer(world.get(&path)).await.0, 200, "{path}");
        assert_eq!(problem(world.by("bob-token", Method::GET, &path)).await.0, 404, "{path}");
    }
    let (_, others) = answer(world.by("bob-token", Method::GET, "/v1/workflows/runs")).await;
    assert_eq!(others["runs"], json!([]));
    let task = world.submit("not a run").await;
    for path in [format!("/v1/workflows/runs/{task}"), format!("/v1/parallel/{task}/results")] {
        let odd = problem(world.get(&path)).await;
        assert_eq!(odd, (404, "not-a-run".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn proposed_skills_are_listed_and_declined_by_admins() {
    let world = world().await;
    let path = "/v1/skills/proposals";
    assert_eq!(answer(world.get(path)).await, (200, json!({ "proposals": [] })));
    assert_eq!(problem(world.get(&format!("{path}?colour=red"))).await.0, 400);
    let reject = format!("{path}/1/reject");
    let unknown = problem(world.post(&reject, &json!({}))).await;
    assert_eq!(unknown, (404, "unknown-proposal".to_owned()));
    let other = world.by("bob-token", Method::POST, &reject).json(&json!({}));
    assert_eq!(problem(other).await, (403, "not-allowed".to_owned()));
}
