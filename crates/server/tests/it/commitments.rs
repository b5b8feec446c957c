//! Commitments and roles over HTTP.

use reqwest::Method;
use serde_json::json;
use windlass_server::Access;
use windlass_testkit::Stage;

use crate::world::{World, account, answer, options, problem};

/// AX-061, AX-117: the same rules as everywhere, and refusals as problems.
#[tokio::test]
async fn a_commitment_goes_through_its_life_over_http() {
    let world = World::new().await;
    let (status, made) = answer(world.post("/v1/commitments", &json!({"title": "use JWT"}))).await;
    assert_eq!((status, &made["state"]), (201, &json!("open")));
    let id = made["commitment_id"].as_str().unwrap();
    let path = |verb: &str| format!("/v1/commitments/{id}/{verb}");
    let (status, claimed) = answer(world.post(&path("claim"), &json!({}))).await;
    assert_eq!((status, &claimed["state"]), (200, &json!("claimed")));
    let refused = |verb: &str, body| problem(world.post(&path(verb), &body));
    assert_eq!(refused("claim", json!({})).await, (409, "commitment-refused".to_owned()));
    assert_eq!(refused("submit", json!({})).await, (409, "commitment-refused".to_owned()));
    assert_eq!(refused("evidence", json!({"type": "url", "url": "x"})).await.0, 422);
    let proof = json!({"type": "test_output", "content": "42 passed", "description": "all"});
    let (status, kept) = answer(world.post(&path("evidence"), &proof)).await;
    assert_eq!((status, kept["sha256"].as_str().unwrap().len()), (201, 64));
    let content = path(&format!("evidence/{}", kept["evidence_id"].as_str().unwrap()));
    let content = world.get(&content).send().await.unwrap();
    assert_eq!(content.headers()["content-disposition"], "attachment");
    assert_eq!(content.text().await.unwrap(), "42 passed");
    let (_, submitted) = answer(world.post(&path("submit"), &json!({"reason": "done"}))).await;
    assert_eq!((&submitted["state"], &submitted["summary"]), (&json!("submitted"), &json!("done")));
    assert_eq!(refused("approve", json!({})).await, (409, "commitment-refused".to_owned()));
    let (_, listed) = answer(world.get("/v1/commitments?state=submitted")).await;
    assert_eq!(listed["commitments"].as_array().unwrap().len(), 1);
    assert_eq!(problem(world.get("/v1/commitments?state=lost")).await.0, 400);
    assert_eq!(problem(world.get("/v1/commitments/cmt_x")).await.0, 404);
}

/// Another user's commitments do not exist.
#[tokio::test]
async fn a_commitment_is_shown_to_those_who_may_see_it() {
    let mut options = options();
    options.accounts = vec![account("bob", Access::Operator), account("eve", Access::Operator)];
    let world = World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options).await;
    let by =
        |user: &str, method: Method, path: &str| world.by(&format!("{user}-token"), method, path);
    let made = by("bob", Method::POST, "/v1/commitments").json(&json!({"title": "use JWT"}));
    let (status, made) = answer(made).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/v1/commitments/{}", made["commitment_id"].as_str().unwrap());
    assert_eq!(answer(by("bob", Method::GET, &path)).await.0, 200);
    assert_eq!(problem(by("eve", Method::GET, &path)).await.0, 404);
    assert_eq!(problem(by("eve", Method::POST, &format!("{path}/claim"))).await.0, 404);
    let (_, listed) = answer(by("eve", Method::GET, "/v1/commitments")).await;
    assert_eq!(listed["commitments"], json!([]));
}

/// AX-035, AX-036: the three roles, and no other.
#[tokio::test]
async fn roles_are_listed_and_others_are_refused() {
    let world = World::new().await;
    let (_, modes) = answer(world.get("/v1/modes")).await;
    let names: Vec<_> =
        modes["modes"].as_array().unwrap().iter().map(|mode| &mode["mode"]).collect();
    assert_eq!(names, ["architect", "executor", "auditor"]);
    let goal = |role: &str| world.post("/v1/tasks", &json!({"goal": "look", "role": role}));
    assert_eq!(problem(goal("captain")).await.0, 422);
    assert_eq!(problem(goal("executor")).await, (409, "nothing-claimed".to_owned()));
    let (status, task) = answer(goal("auditor")).await;
    assert_eq!(status, 201);
    let path = format!("/v1/tasks/{}", task["task_id"].as_str().unwrap());
    let (_, task) = answer(world.get(&path)).await;
    assert_eq!(task["axes"]["workMode"], "review");
}

/// The page of an operator has their own commitments, however many newer ones others have, and leads to the older ones.
#[tokio::test]
async fn a_long_page_of_commitments_leads_to_the_older_ones() {
    let mut options = options();
    options.accounts = vec![account("bob", Access::Operator), account("eve", Access::Operator)];
    let world = World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options).await;
    let promise = async |user: &str, title: &str| {
        let request = world.by(&format!("{user}-token"), Method::POST, "/v1/commitments");
        assert_eq!(answer(request.json(&json!({ "title": title }))).await.0, 201);
    };
    promise("bob", "the very first").await;
    for number in 0..100 {
        promise("eve", &format!("promise {number}")).await;
    }
    let page = async |user: &str, path: &str| {
        let (status, body) = answer(world.by(&format!("{user}-token"), Method::GET, path)).await;
        assert_eq!(status, 200, "{path}");
        body.as_str().unwrap().to_owned()
    };
    let own = page("bob", "/commitments").await;
    assert!(own.contains("the very first") && !own.contains("promise 99"), "{own}");
    assert!(!own.contains("older commitments"), "{own}");
    assert!(!page("eve", "/commitments").await.contains("older commitments"));
    let whole = answer(world.get("/commitments")).await.1.as_str().unwrap().to_owned();
    assert!(whole.contains("There are older commitments") && !whole.contains("the very first"));
    let link = whole.split("href=\"").find(|rest| rest.starts_with("/commitments?after=")).unwrap();
    let rest = answer(world.get(link.split('"').next().unwrap())).await.1;
    let rest = rest.as_str().unwrap();
    assert!(rest.contains("the very first") && !rest.contains("promise 99"), "{rest}");
    assert!(rest.contains("Newer commitments are not shown"), "{rest}");
}
