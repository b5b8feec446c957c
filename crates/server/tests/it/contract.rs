//! The OpenAPI text, taken at its word: by a fuzzer, and by a generator of clients. scripts/test installs both.

use std::path::Path;
use std::process::Output;

use reqwest::Method;
use serde_json::Value;
use tokio::process::Command;
use windlass_testkit::Stage;

use crate::world::{World, answer, options};

fn program(variable: &str) -> std::ffi::OsString {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set; scripts/test installs it and sets this"))
}

/// The description, in a file.
async fn description(world: &World, directory: &Path) -> std::path::PathBuf {
    let (status, text) = answer(world.get("/openapi.json")).await;
    assert_eq!(status, 200);
    let path = directory.join("openapi.json");
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

fn passed(ran: &Output) {
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
}

/// What every answer is checked for: no 5xx, a documented status, type and shape, and nothing wrong accepted.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,response_headers_conformance,negative_data_rejection";

#[tokio::test(flavor = "multi_thread")]
async fn a_fuzzer_finds_every_answer_documented() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await;
    let directory = tempfile::tempdir().unwrap();
    let path = description(&world, directory.path()).await;
    let fuzz = |examples: &str, header: Option<String>| {
        let mut command = Command::new(program("WINDLASS_TEST_SCHEMATHESIS"));
        command
            .arg("run")
            .arg(&path)
            .args(["--url", &world.base, "--checks", CHECKS, "--max-examples", examples])
            .args(["--phases", "examples,coverage,fuzzing", "--seed", "1", "--no-color"])
            .args(["--generation-database", "none", "--request-timeout", "20"])
            .args(["--generation-with-security-parameters", "false", "--max-time", "40"])
            .args(header.iter().flat_map(|header| ["--header", header.as_str()]))
            .current_dir(directory.path());
        command
    };
    let token = format!("Authorization: Bearer {}", world.token());
    passed(&fuzz("10", Some(token)).output().await.unwrap());
    // Nobody is told anything without a token, and what is told is documented too.
    passed(&fuzz("3", None).output().await.unwrap());
    assert_eq!(answer(world.anonymous(Method::GET, "/readyz")).await.0, 200);
    world.stop().await;
}

/// A client made by a generator hands in a goal and reads what became of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_generated_client_runs_a_task() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: all done}]"), options()).await;
    world.serve_tasks();
    let directory = tempfile::tempdir().unwrap();
    let path = description(&world, directory.path()).await;
    let programs = std::path::PathBuf::from(program("WINDLASS_TEST_OPENAPI_CLIENT"));
    let made = Command::new(programs.join("openapi-python-client"))
        .args(["generate", "--meta", "none", "--output-path"])
        .arg(directory.path().join("windlass_client"))
        .arg("--path")
        .arg(path)
        .current_dir(directory.path())
        .output()
        .await
        .unwrap();
    passed(&made);
    let script = directory.path().join("run.py");
    std::fs::write(&script, include_str!("generated_client.py")).unwrap();
    let ran = Command::new(programs.join("python"))
        .arg(script)
        .arg(&world.base)
        .env("WINDLASS_TOKEN", world.token())
        .current_dir(directory.path())
        .output()
        .await
        .unwrap();
    passed(&ran);
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "done: all done");
    world.stop().await;
}

/// Whoever has an answer with a tag may send the tag, and then gets a 304.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_with_a_tag_is_described_with_its_304() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await;
    world.serve_tasks();
    let (_, made) = answer(world.post("/v1/tasks", &serde_json::json!({ "goal": "x" }))).await;
    let id = |name: &str| made[name].as_str().unwrap().to_owned();
    let result = format!("/v1/tasks/{}/result", id("task_id"));
    while answer(world.get(&result)).await.0 != 200 {
        tokio::task::yield_now().await;
    }
    let (_, api) = answer(world.get("/openapi.json")).await;
    let mut tagged = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        let place = path.replace("{task_id}", &id("task_id"));
        let place = place.replace("{session_id}", &id("session_id"));
        let is_stream = methods["get"]["responses"]["200"].to_string().contains("ndjson");
        if methods["get"].is_null() || place.contains('{') || is_stream {
            continue;
        }
        let given = world.get(&place).send().await.unwrap();
        let Some(tag) = given.headers().get("etag") else { continue };
        let again = world.get(&place).header("if-none-match", tag).send().await.unwrap();
        let is_described = methods["get"]["responses"]["304"].is_object();
        assert_eq!((again.status().as_u16(), is_described), (304, true), "{path}");
        tagged += 1;
    }
    assert_eq!(tagged, 4);
    world.stop().await;
}

/// Whatever a link leads to, it changes nothing: neither what can be read nor what can only be changed.
#[tokio::test(flavor = "multi_thread")]
async fn reading_any_address_changes_nothing() {
    let mut world = World::with(
        Stage::set("goal: unused\nreplies: [{ask_user: {question: go on?}}]"),
        options(),
    )
    .await;
    world.serve_tasks();
    let (_, made) = answer(world.post("/v1/tasks", &serde_json::json!({ "goal": "x" }))).await;
    let id = |from: &Value, name: &str| from[name].as_str().unwrap().to_owned();
    let (task, session) = (id(&made, "task_id"), id(&made, "session_id"));
    // Its segment has ended: until a person answers, nothing more is journaled by itself.
    while world.coordinator().tasks().last_end(task.parse().unwrap()).unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let (_, questions) = answer(world.get("/v1/questions")).await;
    let question = id(&questions["questions"][0], "question_id");
    let end = world.coordinator().feed().end().unwrap();
    let (_, api) = answer(world.get("/openapi.json")).await;
    let mut refused = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        let place = path.replace("{task_id}", &task).replace("{session_id}", &session);
        let place = place.replace("{question_id}", &question);
        for place in [place.clone(), format!("{place}?goal=x&text=x&answer=yes")] {
            let (status, said) = answer(world.get(&place)).await;
            assert!(!methods["get"].is_null() || status == 405, "{place}: {status} {said}");
            refused += usize::from(status == 405);
        }
    }
    assert!(refused > 40, "{refused}");
    assert_eq!(world.coordinator().feed().end().unwrap(), end);
    let (_, list) = answer(world.get("/v1/questions")).await;
    assert_eq!(list["questions"][0]["state"], "open", "{list}");
    world.stop().await;
}

#[tokio::test]
async fn the_description_names_every_route_and_what_it_refuses() {
    let world = World::new().await;
    let (_, api) = answer(world.get("/openapi.json")).await;
    let paths = api["paths"].as_object().unwrap();
    let open = ["/healthz", "/readyz"];
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|code| code.starts_with('2')), "{method} {path}");
            let is_documented = open.contains(&path.as_str()) || responses.contains_key("401");
            assert!(is_documented, "{method} {path}");
            // Every one is there: it is refused for want of a token, not for want of a route.
            let concrete = path.replace(['{', '}'], "");
            let method: Method = method.to_uppercase().parse().unwrap();
            let request = world.anonymous(method.clone(), &concrete);
            let request = match method {
                Method::GET | Method::DELETE => request,
                _ => request.json(&Value::Null),
            };
            let (status, _) = answer(request).await;
            assert!([200, 401, 422].contains(&status), "{method} {path}: {status}");
        }
    }
    assert!(paths.len() > 25, "{}", paths.len());
}
