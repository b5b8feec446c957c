//! Measures long tasks: `cargo run --release -p windlass-cli --example long`.
//!
//! 1. 400 turns in a window of 16,000 tokens: what a turn costs beside the model, in the first and the
//!    last hundred. Flat means that neither the history nor the compactions make turns dearer.
//! 2. One sub-agent and three side by side, 5 turns each, with a model that takes 200 ms a turn.
//!
//! The binary is both sides: started with `WINDLASS_LONG` it is `windlass`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that fails should stop"
)]

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use windlass_testkit::{Answer, ModelServer, Request};

const AS_WINDLASS: &str = "WINDLASS_LONG";
const TURNS: usize = 400;
const LATENCY: Duration = Duration::from_millis(200);
const SUMMARY: &str =
    "## Tool failures\\n## Files\\n## Decisions\\n## Findings\\n## Plan\\n## User instructions";

fn main() -> ExitCode {
    if std::env::var_os(AS_WINDLASS).is_some() {
        return windlass_cli::run(std::env::args_os(), windlass_cli::Hooks::default());
    }
    turns();
    agents();
    ExitCode::SUCCESS
}

fn turns() {
    let server = ModelServer::start_empty();
    let count = AtomicUsize::new(0);
    server.forget_bodies().answer_with(move |request| {
        let item = match (says(request, 0).contains("You summarize"), last(request)) {
            (true, _) => format!("say: \"{SUMMARY}\""),
            (false, text) if text.starts_with("You are approaching") => "say: ok".to_owned(),
            (false, _) => match count.fetch_add(1, SeqCst) {
                turn if turn < TURNS => format!("read: notes-{}.txt", turn % 50),
                _ => "say: done".to_owned(),
            },
        };
        let input = request.body.len() / 3;
        Some(Answer::script(&format!("{item}\nusage: {{input: {input}, output: 20}}")))
    });
    let output = windlass(&server, &["--context-window", "16000", "--max-iterations", "1000"]);
    let events: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |event: &serde_json::Value| -> jiff::Timestamp {
        event["timestamp"].as_str().unwrap().parse().unwrap()
    };
    // From a reply to the next request: everything that is ours.
    let mut replied = None;
    let mut own = Vec::new();
    for event in &events {
        match event["event_type"].as_str().unwrap() {
            "llm_response" => replied = Some(at(event)),
            "llm_request" => {
                own.extend(replied.take().map(|since| at(event).duration_since(since)))
            }
            _ => {}
        }
    }
    let median = |part: &[jiff::SignedDuration]| {
        let mut part = part.to_vec();
        part.sort();
        part[part.len() / 2].as_micros()
    };
    let compactions = events.iter().filter(|e| e["event_type"] == "compaction_end").count();
    println!(
        "turns: {} of ours, {compactions} compactions; median of the first 100: {} µs, of the last: {} µs",
        own.len(),
        median(&own[..100]),
        median(&own[own.len() - 100..]),
    );
}

fn agents() {
    let time = |agents: usize| {
        let server = ModelServer::start_empty();
        server.answer_with(move |request| {
            let root = says(request, 1).contains("the goal");
            let spawns: Vec<_> =
                (0..agents).map(|n| format!("{{spawn_agent: {{task: 'piece {n}'}}}}")).collect();
            Some(match (root, request.replies) {
                (true, 0) => Answer::script(&format!("calls: [{}]", spawns.join(", "))),
                (true, _) => Answer::script("say: done"),
                (false, turn @ 0..4) => {
                    Answer::script(&format!("read: notes-{turn}.txt")).delayed(LATENCY)
                }
                (false, _) => Answer::script("say: piece done").delayed(LATENCY),
            })
        });
        let begun = Instant::now();
        windlass(&server, &[]);
        begun.elapsed()
    };
    let (one, three) = (time(1), time(3));
    println!(
        "sub-agents: one {} ms, three {} ms, {:.2} times as long",
        one.as_millis(),
        three.as_millis(),
        three.as_secs_f64() / one.as_secs_f64()
    );
}

fn says(request: &Request, place: usize) -> String {
    request.json()["messages"][place]["content"].as_str().unwrap_or_default().to_owned()
}

fn last(request: &Request) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    messages
        .last()
        .map(|m| m["content"].as_str().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

/// Runs the program in throwaway directories; returns what it printed.
fn windlass(server: &ModelServer, more: &[&str]) -> String {
    let root = tempfile::tempdir().unwrap();
    for number in 0..50 {
        let text: String =
            (0..20).map(|line| format!("note {number} line {line}: well\n")).collect();
        std::fs::write(root.path().join(format!("notes-{number}.txt")), text).unwrap();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["run", "the goal", "--json"])
        .args(more)
        .current_dir(root.path())
        .env(AS_WINDLASS, "1")
        .env("WINDLASS_DATA", root.path().join("data"))
        .env("LITELLM_API_BASE", server.base())
        .env("LITELLM_MODEL", "gpt-4o")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
