//! What is refused, and as what.

use reqwest::Method;
use serde_json::json;
use windlass_server::{Access, Error, Options, Server};
use windlass_testkit::Stage;

use crate::world::{World, account, answer, options, problem};

fn refused(status: u16, kind: &str) -> (u16, String) {
    (status, kind.to_owned())
}

#[tokio::test]
async fn nobody_is_answered_without_a_token() {
    let world = World::new().await;
    for path in ["/v1/tasks", "/v1/questions", "/v1/events", "/openapi.json", "/nothing"] {
        let got = problem(world.anonymous(Method::GET, path)).await;
        assert_eq!(got, refused(401, "not-signed-in"), "{path}");
    }
    let post = world.anonymous(Method::POST, "/v1/tasks").json(&json!({ "goal": "x" }));
    assert_eq!(problem(post).await, refused(401, "not-signed-in"));
    for path in ["/healthz", "/readyz", "/login"] {
        assert_eq!(answer(world.anonymous(Method::GET, path)).await.0, 200, "{path}");
    }
    // A browser is led to where it can sign in.
    let page = world.anonymous(Method::GET, "/anything").header("accept", "text/html,*/*");
    let response = page.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (303, &"/login".parse().unwrap())
    );
}

#[tokio::test]
async fn wrong_tokens_are_refused_and_then_slowed_down() {
    let world = World::new().await;
    let guess = || world.by("0000", Method::GET, "/v1/tasks");
    assert_eq!(problem(guess()).await, refused(401, "wrong-token"));
    for scheme in ["Basic YWRhOmFkYQ==", "Bearer", "bearer  ", "Token x"] {
        let odd = world.anonymous(Method::GET, "/v1/tasks").header("authorization", scheme);
        assert_eq!(problem(odd).await, refused(401, "wrong-token"), "{scheme}");
    }
    for _ in 5..20 {
        assert_eq!(problem(guess()).await.0, 401);
    }
    assert_eq!(problem(guess()).await, refused(429, "too-many-failures"));
    // Not even the right one is looked at, or guessing would go on.
    assert_eq!(problem(world.get("/v1/tasks")).await.0, 429);
    world.stage.advance(jiff::SignedDuration::from_secs(61));
    assert_eq!(answer(world.get("/v1/tasks")).await.0, 200);
}

#[tokio::test]
async fn a_request_under_another_name_is_not_for_us() {
    let world = World::new().await;
    let port = world.base.rsplit_once(':').unwrap().1;
    let named = |host: &str| world.get("/v1/tasks").header("host", host.to_owned());
    for host in ["evil.example", "evil.example:80", "localhost", "127.0.0.1", "localhost:1"] {
        assert_eq!(problem(named(host)).await, refused(421, "foreign-host"), "{host}");
    }
    // Also where nobody needs to sign in.
    let health = world.anonymous(Method::GET, "/healthz").header("host", "evil.example");
    assert_eq!(problem(health).await.0, 421);
    assert_eq!(answer(named(&format!("localhost:{port}"))).await.0, 200);
}

#[tokio::test]
async fn a_page_of_another_site_is_refused() {
    let world = World::new().await;
    let cookie = world.cookie().await;
    let by_cookie = |name: &'static str, value: &str| {
        let request = world.anonymous(Method::POST, "/v1/tasks").header("cookie", &cookie);
        request
            .header("x-windlass", "1")
            .header(name, value.to_owned())
            .json(&json!({ "goal": "x" }))
    };
    for origin in ["http://evil.example", "null", "http://localhost:1", "file://", "https://"] {
        let got = problem(by_cookie("origin", origin)).await;
        assert_eq!(got, refused(403, "foreign-origin"), "{origin}");
    }
    // Another port of this machine is the same site to a browser.
    for site in ["cross-site", "same-site"] {
        let got = problem(by_cookie("sec-fetch-site", site)).await;
        assert_eq!(got, refused(403, "foreign-origin"), "{site}");
    }
    assert_eq!(answer(by_cookie("origin", &world.base.clone())).await.0, 201);
    assert_eq!(answer(by_cookie("sec-fetch-site", "same-origin")).await.0, 201);
    // A link from elsewhere leads to a page, and to nothing of the API.
    let follow = |path: &str| {
        let request = world.anonymous(Method::GET, path).header("sec-fetch-site", "cross-site");
        request.header("sec-fetch-mode", "navigate").header("sec-fetch-dest", "document")
    };
    assert_eq!(answer(follow("/login")).await.0, 200);
    assert_eq!(problem(follow("/v1/tasks")).await, refused(403, "foreign-origin"));
}

#[tokio::test]
async fn what_a_form_can_send_changes_nothing() {
    let world = World::new().await;
    let cookie = world.cookie().await;
    let post = || world.anonymous(Method::POST, "/v1/tasks").header("cookie", &cookie);
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let simple = post().header("content-type", media).header("x-windlass", "1");
        let got = problem(simple.body("{\"goal\":\"x\"}")).await;
        assert_eq!(got, refused(415, "not-json"), "{media}");
    }
    let bare = problem(post().json(&json!({ "goal": "x" }))).await;
    assert_eq!(bare, refused(403, "missing-header"));
    assert_eq!(answer(world.get("/v1/tasks")).await.1["tasks"], json!([]));
}

#[tokio::test]
async fn bodies_that_are_not_what_was_asked_for_are_refused() {
    let world = World::new().await;
    let token = world.token();
    let raw = |body: Vec<u8>| {
        let post = world.by(&token, Method::POST, "/v1/tasks");
        post.header("content-type", "application/json").body(body)
    };
    for garbage in ["", "{", "[1,", "nonsense", "{\"goal\":\"x\"}}"] {
        let got = problem(raw(garbage.into())).await;
        assert_eq!(got, refused(400, "bad-json"), "{garbage}");
    }
    assert_eq!(problem(raw(vec![0xFF, 0xFE])).await, refused(400, "bad-json"));
    for fields in ["{}", "[]", "null", "{\"goal\":1}", "{\"goal\":\"x\",\"colour\":\"red\"}"] {
        let got = problem(raw(fields.into())).await;
        assert_eq!(got, refused(422, "bad-fields"), "{fields}");
    }
    assert_eq!(problem(raw("{\"goal\":\" \"}".into())).await, refused(422, "empty-text"));
    let deep = "[".repeat(100_000);
    assert_eq!(problem(raw(deep.into())).await, refused(400, "bad-json"));
    let large = format!("{{\"goal\":\"{}\"}}", "x".repeat(5 * 1024 * 1024));
    assert_eq!(problem(raw(large.into())).await, refused(413, "too-large"));
    for query in ["limit=0", "limit=201", "limit=x", "colour=red", "cursor=x", "status=odd"] {
        let got = problem(world.get(&format!("/v1/tasks?{query}"))).await;
        assert_eq!(got, refused(400, "bad-request"), "{query}");
    }
    assert_eq!(answer(world.anonymous(Method::GET, "/healthz")).await.0, 200);
}

#[tokio::test]
async fn tricks_with_paths_lead_nowhere() {
    let world = World::new().await;
    let task = world.submit("look").await;
    for path in [
        "/v1/tasks/..%2f..%2ftoken".to_owned(),
        "/v1/tasks/%00".to_owned(),
        "/v1/tasks/task_'%20OR%201=1".to_owned(),
        "/v1/tasks/%ff%fe".to_owned(),
        format!("/v1//tasks/{task}"),
        format!("/v1/tasks/{task}/"),
        format!("/v1/tasks/{task}/../../token"),
        "/assets/..%2f..%2fCargo.toml".to_owned(),
        "/assets/login.js/..".to_owned(),
    ] {
        let (status, body) = answer(world.get(&path)).await;
        assert!((400..500).contains(&status), "{path}: {status} {body}");
    }
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::TRACE] {
        let got = problem(world.by(&world.token(), method.clone(), "/v1/tasks")).await;
        assert_eq!(got, refused(405, "wrong-method"), "{method}");
    }
}

#[tokio::test]
async fn what_is_another_users_does_not_exist() {
    let accounts = vec![
        account("bob", Access::Operator),
        account("eve", Access::Operator),
        account("vic", Access::Viewer),
    ];
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let world = World::with(stage, Options { accounts, ..options() }).await;
    let start = world.by("bob-token", Method::POST, "/v1/tasks").json(&json!({ "goal": "mine" }));
    let (_, started) = answer(start).await;
    let (task, session) =
        (started["task_id"].as_str().unwrap(), started["session_id"].as_str().unwrap());
    let about = [
        format!("/v1/tasks/{task}"),
        format!("/v1/tasks/{task}/events"),
        format!("/v1/events?session={session}"),
        format!("/v1/events?tree={task}"),
    ];
    for path in &about {
        for token in ["bob-token", "vic-token", &world.token()] {
            assert_eq!(answer(world.by(token, Method::GET, path)).await.0, 200, "{token} {path}");
        }
        assert_eq!(problem(world.by("eve-token", Method::GET, path)).await.0, 404, "{path}");
    }
    for path in ["/v1/tasks", "/v1/events"] {
        let (_, seen) = answer(world.by("eve-token", Method::GET, path)).await;
        assert!(!seen.to_string().contains(task), "{path}: {seen}");
    }
    let cancel = format!("/v1/tasks/{task}/cancel");
    assert_eq!(
        problem(world.by("eve-token", Method::POST, &cancel)).await,
        refused(404, "unknown-task")
    );
    let join = json!({ "goal": "join", "session_id": session });
    let join = world.by("eve-token", Method::POST, "/v1/tasks").json(&join);
    assert_eq!(problem(join).await, refused(404, "unknown-session"));
    // A viewer looks and does not touch; an operator does not choose directories of the machine.
    assert_eq!(
        problem(world.by("vic-token", Method::POST, &cancel)).await,
        refused(403, "not-allowed")
    );
    let elsewhere = json!({ "goal": "x", "workspace": "/tmp" });
    let elsewhere = world.by("bob-token", Method::POST, "/v1/tasks").json(&elsewhere);
    assert_eq!(problem(elsewhere).await, refused(403, "not-allowed"));
    let loose = json!({ "goal": "x", "axes": { "permissionProfile": "unrestricted" } });
    assert_eq!(problem(world.post("/v1/tasks", &loose)).await, refused(403, "not-allowed"));
    assert_eq!(answer(world.by("bob-token", Method::POST, &cancel)).await.0, 202);
}

#[tokio::test]
async fn other_machines_are_served_encrypted_or_by_an_explicit_flag() {
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let open = Options { address: "0.0.0.0:0".parse().unwrap(), ..options() };
    let refused = Server::bind(stage.coordinator.clone(), open.clone()).await;
    assert!(matches!(refused, Err(Error::Plain { .. })));
    let allowed = Options { allows_plain: true, ..open };
    assert!(Server::bind(stage.coordinator.clone(), allowed).await.is_ok());
    let same = Options { accounts: vec![account("ada", Access::Viewer)], ..options() };
    let refused = Server::bind(stage.coordinator.clone(), same).await;
    assert!(matches!(refused, Err(Error::SameName { .. })));
}

/// The skills of a project belong to the machine: whoever is not an admin decides nothing about them.
#[tokio::test]
async fn only_an_admin_decides_about_proposed_skills() {
    let mut options = options();
    options.accounts = vec![account("bob", Access::Operator), account("vic", Access::Viewer)];
    let world = World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options).await;
    for verb in ["draft", "accept", "reject"] {
        let path = format!("/v1/skills/proposals/1/{verb}");
        let body = match verb {
            "accept" => json!({ "mark": "m" }),
            _ => json!({}),
        };
        for user in ["bob", "vic"] {
            let asked = world.by(&format!("{user}-token"), Method::POST, &path).json(&body);
            assert_eq!(problem(asked).await, (403, "not-allowed".to_owned()), "{user} {verb}");
        }
        let asked = world.post(&path, &body);
        assert_eq!(problem(asked).await, (404, "unknown-proposal".to_owned()), "{verb}");
    }
    let hidden = world.by("bob-token", Method::GET, "/v1/skills/proposals/1");
    assert_eq!(problem(hidden).await, (404, "unknown-proposal".to_owned()));
}
