//! A service at the limits of its machine, and in an outage.

use serde_json::json;
use windlass_coordinator::bus::InStream;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_testkit::{Answer, ModelServer};

use crate::world::{On, Process, World};

#[tokio::test(flavor = "multi_thread")]
async fn tasks_wait_for_open_files_instead_of_failing() {
    let script = "replies: [{bash: echo one >> notes.txt}, {say: done}]";
    let world = World::new(On::Embedded, ModelServer::start(script));
    let service = world.command(&["serve", "--tasks", "50"]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 120; exec \"$0\" serve --tasks 50"]).arg(service.get_program());
    limited.current_dir(service.get_current_dir().unwrap()).env_clear();
    for (name, value) in service.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    limited.stdin(std::process::Stdio::null());
    let service = Process::start(limited);
    let mut tasks = Vec::new();
    for number in 0..30 {
        tasks.push(world.submit(&format!("note {number}")).await.task);
    }
    for task in tasks {
        world.until_status(task, TaskStatus::Done).await;
    }
    assert!(service.stop().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_open_files_is_raised_at_start() {
    let world = World::new(On::Embedded, ModelServer::start("replies: [{say: done}]"));
    let service = world.start(&["serve"]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{line}");
}

/// A service resumes what it parked when the model is back, and publishes one result.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_resumes_a_task_that_an_outage_parked() {
    let world = World::new(On::Embedded, ModelServer::start("replies: [{say: done}]"));
    for _ in 0..2 {
        world.model.next(Answer::error(500, "broken"));
    }
    let config = world.store.dir().root().parent().unwrap().join(".config/windlass");
    std::fs::create_dir_all(&config).unwrap();
    let quick = "[models]\nbackoff_base_ms = 1\nmax_retries = 1\n";
    std::fs::write(config.join("config.toml"), quick).unwrap();
    let _service = world.start(&["serve"]);
    let mut submission = world.submission("work");
    submission.json["execution_config"] = json!({ "outage": "park" });
    world.send(InStream::TaskCommand, &submission.json).await;
    let is_parked = || {
        let row = world.task(submission.task)?;
        (row.reason == StatusReason::ModelOutage).then_some(row)
    };
    let row = world.until("it is parked", is_parked).await;
    assert!(row.detail.unwrap().contains("broken"));
    world.until_status(submission.task, TaskStatus::Done).await;
    let result =
        world.until_published(windlass_store::OutStream::TaskResult, submission.task).await;
    assert_eq!(result["status"], "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_for_redis_is_named() {
    let world = World::new(On::Redis, ModelServer::start("replies: []"));
    let redis = world.redis.as_ref().unwrap();
    redis.cli(&["CONFIG", "SET", "requirepass", "s3cret"]);
    let host = redis.url().replace("redis://", "");
    for url in [format!("redis://:wrong@{host}"), format!("redis://{host}")] {
        let output = world.command(&["serve"]).env("REDIS_URL", url).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("does not accept the user name or password"), "{said}");
        assert!(said.contains("REDIS_URL") && !said.contains("wrong@"), "{said}");
    }
}
