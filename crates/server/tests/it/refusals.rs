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
    // A browser is led to where it can sign in, and from there to what it asked for.
    let page = world.anonymous(Method::GET, "/tasks?q=a&b").header("accept", "text/html,*/*");
    let response = page.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (303, &"/login?to=%2Ftasks%3Fq%3Da%26b".parse().unwrap())
    );
}

/// Addresses are kept in logs and histories, and are sent to others.
#[tokio::test]
async fn a_token_or_code_in_an_address_signs_nobody_in() {
    let world = World::new().await;
    let (token, code) = (world.token(), world.link.split_once('#').unwrap().1);
    for name in ["token", "access_token", "api_key", "code", "ticket"] {
        for secret in [token.as_str(), code] {
            let sent = world.anonymous(Method::GET, &format!("/v1/tasks?{name}={secret}"));
            assert_eq!(problem(sent).await, refused(401, "not-signed-in"), "{name}");
            let login = world.anonymous(Method::GET, &format!("/login?{name}={secret}"));
            let response = login.send().await.unwrap();
            assert!(!response.headers().contains_key("set-cookie"), "{name}");
        }
    }
    // The code is not used up by that.
    world.cookie().await;
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
    // Nobody guesses a token, and who has the right one is not locked out by a neighbour's wrong one.
    assert_eq!(answer(world.get("/v1/tasks")).await.0, 200);
    // A login code is not looked at.
    let code = world.link.split_once('#').unwrap().1;
    let login = || world.anonymous(Method::POST, "/v1/login").json(&json!({ "code": code }));
    assert_eq!(problem(login()).await, refused(429, "too-many-failures"));
    world.stage.advance(jiff::SignedDuration::from_secs(61));
    assert_eq!(answer(login()).await.0, 200);
}

/// Behind a proxy everybody has its address, so the one that it names is counted and logged.
#[tokio::test]
async fn a_trusted_proxy_names_the_client() {
    let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let mut world = World::with(stage, Options { trusted_proxies, ..options() }).await;
    let guess = |from: &str| {
        let guess = world.by("0000", Method::GET, "/v1/tasks");
        guess.header("x-forwarded-for", format!("6.6.6.6, {from}"))
    };
    for _ in 0..20 {
        assert_eq!(problem(guess("1.2.3.4")).await, refused(401, "wrong-token"));
    }
    assert_eq!(problem(guess("1.2.3.4")).await, refused(429, "too-many-failures"));
    assert_eq!(problem(guess("1.2.3.5")).await, refused(401, "wrong-token"));
    let path = world.coordinator().storage().access_log_file();
    world.stop().await;
    let log = std::fs::read_to_string(path).unwrap();
    let from =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["from"].clone();
    let seen: Vec<_> = log.lines().map(from).collect();
    assert_eq!((&seen[0], &seen[21]), (&json!("1.2.3.4"), &json!("1.2.3.5")));
}

#[tokio::test]
async fn a_request_under_another_name_is_not_for_us() {
    let world = World::new().await;
    let port = world.base.rsplit_once(':').unwrap().1;
    let named = |host: &str| world.get("/v1/tasks").header("host", host.to_owned());
    for host in ["evil.example", "evil.example:80", "localhost", "127.0.0.1", "localhost:1"] {
        assert_eq!(problem(named(host)).await, refused(421, "foreign-host"), "{host}");
    }
    // Also where nobody needs to sign in, and where there is nothing.
    for path in ["/healthz", "/login", "/nothing"] {
        let other = world.anonymous(Method::GET, path).header("host", "evil.example");
        assert_eq!(problem(other).await, refused(421, "foreign-host"), "{path}");
    }
    // To a browser whose name server was lied to, the page and its server have one name.
    let cookie = world.cookie().await;
    for origin in [Some("http://evil.example"), None] {
        let post = world.anonymous(Method::POST, "/v1/tasks").header("host", "evil.example");
        let post = post.header("cookie", &cookie).header("x-windlass", "1");
        let post = origin.into_iter().fold(post, |post, origin| post.header("origin", origin));
        let got = problem(post.json(&json!({ "goal": "x" }))).await;
        assert_eq!(got, refused(421, "foreign-host"), "{origin:?}");
    }
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
    // Nor is a body that no route takes.
    let task = world.submit("work").await;
    let pause = format!("/v1/tasks/{task}/pause");
    for media in ["image/png", "application/octet-stream"] {
        let sent = world.by(&world.token(), Method::POST, &pause).header("content-type", media);
        assert_eq!(problem(sent.body("x")).await, refused(415, "not-json"), "{media}");
    }
    answer(world.post(&format!("/v1/tasks/{task}/cancel"), &json!({}))).await;
    let bare = problem(post().json(&json!({ "goal": "x" }))).await;
    assert_eq!(bare, refused(403, "missing-header"));
    let (_, tasks) = answer(world.get("/v1/tasks")).await;
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1, "only ours: {tasks}");
}

/// A person who follows an old link reads that there is nothing, and a program gets a problem.
#[tokio::test]
async fn an_unknown_address_is_a_page_for_a_browser() {
    let world = World::new().await;
    let browser = |path: &str| world.get(path).header("accept", "text/html,*/*");
    let response = browser("/no/such/page").send().await.unwrap();
    assert_eq!(response.status(), 404);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    assert!(response.text().await.unwrap().contains("There is nothing here"));
    for request in [browser("/v1/no-such-thing"), world.get("/no/such/page")] {
        assert_eq!(problem(request).await, refused(404, "unknown-path"));
    }
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
    // Nothing but an object is one, and none of its names occurs twice.
    for fields in [
        "{}",
        "[]",
        "null",
        "\"x\"",
        "[\"x\"]",
        "{\"goal\":1}",
        "{\"goal\":\"x\",\"colour\":\"red\"}",
        "{\"goal\":\"x\",\"goal\":\"y\"}",
        "{\"goal\":\"x\",\"axes\":{\"workMode\":\"plan\",\"workMode\":\"build\"}}",
    ] {
        let got = problem(raw(fields.into())).await;
        assert_eq!(got, refused(422, "bad-fields"), "{fields}");
    }
    assert_eq!(problem(raw("{\"goal\":\" \"}".into())).await, refused(422, "empty-text"));
    // What is JSON and cannot be taken says why.
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    for (body, why) in [(deep, "recursion limit"), ("{\"goal\":1e999}".to_owned(), "out of range")]
    {
        assert_eq!(problem(raw(body.clone().into())).await, refused(400, "bad-json"), "{why}");
        let detail = answer(raw(body.into())).await.1["detail"].to_string();
        assert!(detail.contains(why), "{detail}");
    }
    let large = format!("{{\"goal\":\"{}\"}}", "x".repeat(5 * 1024 * 1024));
    assert_eq!(problem(raw(large.into())).await, refused(413, "too-large"));
    let goal = |bytes: usize| world.post("/v1/tasks", &json!({ "goal": "x".repeat(bytes) }));
    assert_eq!(problem(goal(1024 * 1024 + 1)).await, refused(413, "too-large"));
    for query in ["limit=0", "limit=201", "limit=x", "colour=red", "cursor=x", "status=odd"] {
        let got = problem(world.get(&format!("/v1/tasks?{query}"))).await;
        assert_eq!(got, refused(400, "bad-request"), "{query}");
    }
    let (_, tasks) = answer(world.get("/v1/tasks")).await;
    assert_eq!(tasks["tasks"], json!([]), "nothing of it was done");
    let unknown = answer(world.get("/v1/tasks?colour=red")).await.1;
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.starts_with("`colour` is not known; known are: status, "), "{detail}");
    assert_eq!(answer(world.anonymous(Method::GET, "/healthz")).await.0, 200);
}

/// A header that decides who sends a request, or what it is, is not sent twice: two readers could believe two things.
#[tokio::test]
async fn a_header_that_says_two_things_is_refused() {
    let world = World::new().await;
    let twice = |name: &'static str, one: &str, other: &str| {
        let request = world.post("/v1/tasks", &json!({ "goal": "x" }));
        request.header(name, one.to_owned()).header(name, other.to_owned())
    };
    for (name, one, other) in [
        ("authorization", "Bearer x", "Bearer y"),
        ("content-type", "text/plain", "application/json"),
        ("idempotency-key", "a", "b"),
        ("origin", &*world.base, &*world.base),
        ("sec-fetch-site", "same-origin", "cross-site"),
    ] {
        let got = problem(twice(name, one, other)).await;
        assert_eq!(got, refused(400, "bad-request"), "{name}");
    }
    let (_, tasks) = answer(world.get("/v1/tasks")).await;
    assert_eq!(tasks["tasks"], json!([]), "nothing of it was done");
    let large = world.get("/v1/me").header("x-large", "a".repeat(66 * 1024));
    // By the connection or by the guard, whichever has it first.
    assert_eq!(large.send().await.unwrap().status(), 431);
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
    // What is said about it are words of ours.
    for number in ["99999999999999999999", "x", "-"] {
        let (_, body) = answer(world.get(&format!("/v1/skills/proposals/{number}"))).await;
        let words = format!("`{number}` is not the number of a proposal");
        assert_eq!((&body["status"], &body["detail"]), (&json!(404), &json!(words)));
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
    let axes = json!({ "permissionProfile": "unrestricted" });
    let wanted = [
        ("/v1/tasks", json!({ "goal": "x", "axes": axes })),
        ("/v1/sessions", json!({ "axes": axes })),
    ];
    for (path, body) in wanted {
        let got = problem(world.post(path, &body)).await;
        assert_eq!(got, refused(403, "needs-opt-in"), "{path}");
    }
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

/// What could only fail later is refused at once, and what is wrong is named in plain words.
#[tokio::test]
async fn a_refusal_names_the_field_and_what_it_must_be() {
    let world = World::new().await;
    let sent = [
        (json!({ "goal": 5 }), "`goal` must be a text, not a number"),
        (
            json!({ "goal": "x", "max_iterations": "a" }),
            "`max_iterations` must be a whole number of 0 or more, not a text",
        ),
        (json!(null), "the body must be an object, not null"),
        (json!(["do it"]), "the body must be an object, not a list"),
        (json!({ "goal": "x", "deadline": "soon" }), "`deadline` must be a time such as"),
        (json!({ "goal": "x", "deadline": "2020-01-01T00:00:00Z" }), "`deadline` is in the past"),
        (json!({ "goal": "x", "timeout_seconds": 0 }), "`timeout_seconds` is from 1 to 31536000"),
        (json!({ "goal": "x", "max_iterations": 0 }), "`max_iterations` is from 1 to 1000000"),
        (json!({ "goal": "x", "budget_usd": 1e308 }), "`budget_usd` is more than 0 and at most"),
    ];
    for (body, words) in sent {
        let (status, problem) = answer(world.post("/v1/tasks", &body)).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(status == 422 && detail.starts_with(words), "{body}: {problem}");
    }
    let (status, problem) = answer(world.get("/v1/tasks?limit=abc")).await;
    let words = "`limit` must be a whole number of 0 or more";
    assert_eq!((status, problem["detail"].as_str()), (400, Some(words)));
    let (_, tasks) = answer(world.get("/v1/tasks")).await;
    assert_eq!(tasks["tasks"], json!([]), "nothing was started");
}
