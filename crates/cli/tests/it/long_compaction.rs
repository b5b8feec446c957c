//! Tasks that outgrow their context: compaction through the real program.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer, Request};

use crate::program::{Program, Ran};

/// How this provider counts, unlike our first guess.
const BYTES_PER_TOKEN: usize = 3;
const SUMMARY: &str = "## Tool failures\n- none\n## Files\n- read `notes`\n## Decisions\n- go on\n\
                       ## Findings\n- lines\n## Plan\n- under way\n## User instructions\n- see above";

/// What a request looks like to the model.
fn is_summary(request: &Request) -> bool {
    request.json()["messages"][0]["content"].as_str().unwrap_or_default().contains("You summarize")
}

fn last_text(request: &Request) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    last["content"].as_str().unwrap_or_default().to_owned()
}

/// A reply with the usage that a provider with its own way of counting reports.
fn reply(request: &Request, item: &str) -> Answer {
    let input = request.body.len() / BYTES_PER_TOKEN;
    Answer::script(&format!("{item}\nusage: {{input: {input}, output: 20}}"))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Files with different contents, so that reading them is progress.
fn notes(program: &Program, count: usize, lines: usize) {
    for number in 0..count {
        let text: String = (0..lines)
            .map(|line| format!("note {number} line {line}: all is well here\n"))
            .collect();
        std::fs::write(program.workspace().join(format!("notes-{number}.txt")), text).unwrap();
    }
}

/// A server with a window: it counts in its own way and refuses what is over.
struct Windowed {
    window: usize,
    refused: Arc<AtomicUsize>,
    largest: Arc<AtomicUsize>,
    turns: Arc<AtomicUsize>,
}

impl Windowed {
    fn new(window: usize) -> Self {
        let none = || Arc::new(AtomicUsize::new(0));
        Self { window, refused: none(), largest: none(), turns: none() }
    }

    /// Answers with `work` turn by turn; notes and summaries are dealt with here.
    fn serve(
        &self,
        server: &ModelServer,
        summary: impl Fn(&Request) -> Answer + Send + 'static,
        work: impl Fn(usize, &Request) -> Answer + Send + 'static,
    ) {
        let (window, refused) = (self.window, self.refused.clone());
        let (largest, turns) = (self.largest.clone(), self.turns.clone());
        server.answer_with(move |request| {
            let tokens = request.body.len() / BYTES_PER_TOKEN;
            if tokens > window {
                refused.fetch_add(1, SeqCst);
                let message = format!("maximum context length is {window} tokens, got {tokens}");
                let code = "context_length_exceeded";
                return Some(Answer::error_of(400, "invalid_request_error", code, &message));
            }
            largest.fetch_max(tokens, SeqCst);
            if is_summary(request) {
                return Some(summary(request));
            }
            if last_text(request).starts_with("You are approaching context limits") {
                return Some(reply(request, "say: Nothing new to save."));
            }
            Some(work(turns.fetch_add(1, SeqCst) + 1, request))
        });
    }
}

fn events(ran: &Ran, kind: &str) -> Vec<Value> {
    let all = ran.json_lines();
    all.into_iter()
        .filter(|event| event["event_type"] == kind)
        .map(|event| event["data"].clone())
        .collect()
}

/// ES-041, ES-151, ES-157, ES-163, ES-164, ES-165, ES-180, ES-183: must show 1.
#[test]
fn four_hundred_turns_in_a_small_window_lose_neither_goal_nor_correction_nor_memo() {
    const TURNS: usize = 400;
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 20);
    let windowed = Windowed::new(16_000);
    let (gate, seen) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
    let (held, last) = (gate.clone(), seen.clone());
    windowed.serve(
        &program.server,
        |request| reply(request, &format!("say: {}", quoted(SUMMARY))),
        move |turn, request| match turn {
            7 => reply(request, "read: notes-7.txt").gated(0, &held),
            20 => reply(
                request,
                "save_memo: {filename: facts.md, content: 'The vault code is 4711-B.'}",
            ),
            TURNS => reply(request, "search_memo: which code opens the vault"),
            turn if turn > TURNS => {
                last.lock().unwrap().push(request.clone());
                reply(request, "say: All four hundred done.")
            }
            turn => reply(request, &format!("read: notes-{}.txt", turn % 50)),
        },
    );
    let args = ["run", "count the GRANITE pebbles", "--json", "--context-window", "16000"];
    let child = program.start(&[&args[..], &["--max-iterations", "2000"]].concat());
    gate.reached_blocking();
    let task = program.task();
    program.windlass(&["send", &task, "only the ROUND ones, please"]).expect(0);
    gate.open();
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(0);

    assert_eq!(windowed.refused.load(SeqCst), 0, "no request was over the window");
    assert!(windowed.largest.load(SeqCst) <= 16_000);
    let ended = events(&ran, "compaction_end");
    assert!(ended.len() >= 10, "{} compactions", ended.len());
    for end in &ended {
        assert!(end["tokens_after"].as_u64() < end["tokens_before"].as_u64(), "{end}");
        assert_eq!(end["source"], "model");
    }
    let last = seen.lock().unwrap().pop().unwrap();
    let body = String::from_utf8_lossy(&last.body).into_owned();
    assert!(body.contains("count the GRANITE pebbles"), "the goal is there");
    assert!(body.contains("only the ROUND ones, please"), "the correction is there");
    assert!(last_text(&last).contains("4711-B"), "the memo is found again: {}", last_text(&last));
    assert_eq!(ran.result()["usage"]["compactions"], ended.len());
}
