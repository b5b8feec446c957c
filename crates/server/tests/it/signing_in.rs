//! Signing in: the link, the cookie, the log of who did what.

use reqwest::Method;
use serde_json::{Value, json};

use windlass_server::{Access, Account, Options};
use windlass_testkit::Stage;

use crate::world::{World, account, answer, options, problem, set_cookie};

#[tokio::test]
async fn a_login_link_signs_in_once() {
    let world = World::new().await;
    let (url, code) = world.link.split_once('#').unwrap();
    assert_eq!(url, format!("{}/login", world.base));
    let login = || world.anonymous(Method::POST, "/v1/login").json(&json!({ "code": code }));
    let response = login().send().await.unwrap();
    let cookie = set_cookie(&response).to_owned();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains(code));
    assert_eq!(problem(login()).await, (401, "wrong-token".to_owned()));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let me = || world.anonymous(Method::GET, "/v1/me").header("cookie", &cookie);
    assert_eq!(answer(me()).await.1["name"], "ada");
    // It is renewed while it is used, and ends when it is not.
    world.stage.advance(jiff::SignedDuration::from_hours(2));
    let renewed = me().send().await.unwrap();
    assert!(set_cookie(&renewed).contains("HttpOnly"));
    world.stage.advance(jiff::SignedDuration::from_hours(11));
    assert_eq!(problem(me()).await, (401, "session-expired".to_owned()));
}

#[tokio::test]
async fn who_signs_out_is_signed_out() {
    let world = World::new().await;
    let cookie = world.cookie().await;
    let with = |method, path: &str| {
        world.anonymous(method, path).header("cookie", &cookie).header("x-windlass", "1")
    };
    let out = with(Method::POST, "/v1/logout").send().await.unwrap();
    assert_eq!(out.status(), 204);
    assert!(set_cookie(&out).contains("Max-Age=0"));
    assert_eq!(problem(with(Method::GET, "/v1/me")).await.1, "session-expired");
}

/// A stream that a cookie has opened says nothing more once the cookie does not hold.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_sign_in_that_opened_it() {
    let world = World::new().await;
    let task = world.submit("look").await;
    let session = answer(world.get(&format!("/v1/tasks/{task}"))).await.1["session_id"].clone();
    let page = format!("/live?view=/sessions/{}", session.as_str().unwrap());
    let streams = ["/v1/events?after=0".to_owned(), format!("/v1/tasks/{task}/events"), page];
    let open = |cookie: String, path: String| {
        let request = world.anonymous(Method::GET, &path).header("cookie", cookie);
        let request = request.header("accept", "text/event-stream");
        async move {
            let mut response = request.send().await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            assert!(response.chunk().await.unwrap().is_some(), "{path} begins");
            response
        }
    };
    let cookie = world.cookie().await;
    let mut opened = Vec::new();
    for path in &streams {
        opened.push(open(cookie.clone(), path.clone()).await);
    }
    let out = world.anonymous(Method::POST, "/v1/logout").header("cookie", &cookie);
    assert_eq!(answer(out.header("x-windlass", "1")).await.0, 204);
    for stream in &mut opened {
        while stream.chunk().await.unwrap().is_some() {}
    }
    // Another browser of the same user, whose cookie expires.
    let (_, link) = answer(world.by(&world.token(), Method::POST, "/v1/login-links")).await;
    let code = link["path"].as_str().unwrap().strip_prefix("/login#").unwrap().to_owned();
    let login = world.anonymous(Method::POST, "/v1/login").json(&json!({ "code": code }));
    let cookie = set_cookie(&login.send().await.unwrap()).split(';').next().unwrap().to_owned();
    let mut stream = open(cookie, "/v1/events?after=0".to_owned()).await;
    world.stage.advance(jiff::SignedDuration::from_hours(13));
    world.submit("not-for-them").await;
    let mut seen = Vec::new();
    while let Some(chunk) = stream.chunk().await.unwrap() {
        seen.extend(chunk);
    }
    assert!(!String::from_utf8_lossy(&seen).contains("not-for-them"));
}

/// What a user's browser receives when the server is started again, with other tokens.
#[tokio::test]
async fn another_token_and_a_sign_out_hold_after_a_restart() {
    let names = ["bob", "eve", "joe"];
    let accounts = names.map(|name| account(name, Access::Operator)).to_vec();
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let mut world = World::with(stage, Options { accounts, ..options() }).await;
    let mut values = Vec::new();
    for name in names {
        let code = json!({ "code": format!("{name}-token") });
        let login = world.anonymous(Method::POST, "/v1/login").json(&code).send().await.unwrap();
        let cookie = set_cookie(&login).split(';').next().unwrap().to_owned();
        values.push(cookie.split_once('=').unwrap().1.to_owned());
        if name == "joe" {
            let out = world.anonymous(Method::POST, "/v1/logout").header("cookie", cookie);
            assert_eq!(answer(out.header("x-windlass", "1")).await.0, 204);
        }
    }
    world.stop().await;
    let changed = account("changed", Access::Operator).token;
    let eve = Account { token: changed, ..account("eve", Access::Operator) };
    let accounts = vec![account("bob", Access::Operator), eve, account("joe", Access::Operator)];
    let world = World::with(world.stage, Options { accounts, ..options() }).await;
    let own = world.cookie().await;
    // Its name has the port.
    let name = own.split_once('=').unwrap().0;
    let me = |value: &str| {
        let cookie = format!("{name}={value}");
        answer(world.anonymous(Method::GET, "/v1/me").header("cookie", cookie))
    };
    assert_eq!(me(&values[0]).await.0, 200, "bob has the token that he had");
    assert_eq!(me(&values[1]).await.0, 401, "eve has another token");
    assert_eq!(me(&values[2]).await.0, 401, "joe has signed out");
}

#[tokio::test]
async fn anybody_signed_in_can_make_a_link_for_another_browser() {
    let accounts = vec![account("vic", Access::Viewer)];
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let world = World::with(stage, Options { accounts, ..options() }).await;
    let (status, link) = answer(world.by(&world.token(), Method::POST, "/v1/login-links")).await;
    assert_eq!(status, 201);
    let code = link["path"].as_str().unwrap().strip_prefix("/login#").unwrap().to_owned();
    let login = world.anonymous(Method::POST, "/v1/login").json(&json!({ "code": code }));
    assert_eq!(answer(login).await.0, 200);
    // Whoever makes too many keeps nobody else from signing in.
    let mut refused = None;
    for _ in 0..100 {
        let made = world.by("vic-token", Method::POST, "/v1/login-links").send().await.unwrap();
        if made.status() != 201 {
            refused = Some(made);
            break;
        }
    }
    let refused = refused.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"60".parse().unwrap())
    );
    assert_eq!(answer(world.post("/v1/login-links", &json!({}))).await.0, 201);
}

#[tokio::test]
async fn the_access_log_says_who_and_holds_no_secret() {
    let mut world = World::new().await;
    let (token, cookie) = (world.token(), world.cookie().await);
    answer(world.get("/v1/tasks?q=hidden")).await;
    answer(world.by("wrong", Method::GET, "/v1/me")).await;
    let path = world.coordinator().storage().access_log_file();
    let link = world.link.clone();
    world.stop().await;
    let log = std::fs::read_to_string(path).unwrap();
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = entries
        .iter()
        .map(|one| format!("{} {} {} {}", one["user"], one["method"], one["path"], one["status"]))
        .collect();
    assert_eq!(
        seen,
        [
            "\"ada\" \"POST\" \"/v1/login\" 200",
            "\"ada\" \"GET\" \"/v1/tasks\" 200",
            "null \"GET\" \"/v1/me\" 401",
        ]
    );
    assert!(entries.iter().all(|one| one["from"] == "127.0.0.1"));
    let code = link.split_once('#').unwrap().1;
    let value = cookie.split_once('=').unwrap().1;
    for secret in [token.as_str(), code, value, "hidden"] {
        assert!(!log.contains(secret), "{log}");
    }
}
