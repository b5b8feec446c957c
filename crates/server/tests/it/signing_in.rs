//! Signing in: the link, the cookie, the log of who did what.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{World, answer, problem, set_cookie};

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

#[tokio::test]
async fn anybody_signed_in_can_make_a_link_for_another_browser() {
    let world = World::new().await;
    let (status, link) = answer(world.by(&world.token(), Method::POST, "/v1/login-links")).await;
    assert_eq!(status, 201);
    let code = link["path"].as_str().unwrap().strip_prefix("/login#").unwrap().to_owned();
    let login = world.anonymous(Method::POST, "/v1/login").json(&json!({ "code": code }));
    assert_eq!(answer(login).await.0, 200);
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
            "null \"POST\" \"/v1/login\" 200",
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
