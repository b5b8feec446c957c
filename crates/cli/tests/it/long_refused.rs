//! Contexts that the provider refuses as too long, and windows that are too small for a task.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use windlass_testkit::{Answer, ModelServer};

use crate::long_compaction::{
    SUMMARY, Windowed, asks_for_notes, events, is_summary, notes, quoted, reply,
};
use crate::program::Program;

/// A provider whose window is smaller than what was configured: one forced compaction, one retry.
#[test]
fn a_refused_context_is_compacted_and_sent_once_more() {
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 40);
    let windowed = Windowed::new(13_000);
    windowed.serve(
        &program.server,
        |request| reply(request, &format!("say: {}", quoted(SUMMARY))),
        |turn, request| match turn {
            20.. => reply(request, "say: Done."),
            turn => reply(request, &format!("read: notes-{turn}.txt")),
        },
    );
    let ran = program.windlass(&["run", "count", "--json", "--context-window", "64000"]).expect(0);
    assert!(windowed.refused.load(SeqCst) >= 1);
    let started = events(&ran, "compaction_start");
    assert!(started.iter().all(|start| start["trigger"] == "context_length"), "{started:?}");
    assert_eq!(started.len(), windowed.refused.load(SeqCst), "one each, and no second refusal");
    assert!(
        started.iter().all(|start| start["flushed"] == true),
        "notes are saved first: {started:?}"
    );
    let shown = events(&ran, "memory_flush");
    assert_eq!(shown.len(), started.len());
    assert!(
        shown.iter().all(|flush| flush["excerpt"]["kept_turns"].as_u64() > Some(0)),
        "{shown:?}"
    );
    let flush = program.server.requests().into_iter().find(asks_for_notes).unwrap();
    let body = String::from_utf8_lossy(&flush.body).into_owned();
    assert!(body.contains("count") && body.contains("not shown here"), "{body}");
}

/// Where not even a part of the context can be sent, older turns go without notes.
#[test]
fn a_refused_flush_does_not_hold_up_the_compaction() {
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 20, 40);
    let turns = AtomicUsize::new(0);
    program.server.answer_with(move |request| {
        let too_long = || {
            let message = "maximum context length is 9 tokens";
            Answer::error_of(400, "invalid_request_error", "context_length_exceeded", message)
        };
        if is_summary(request) {
            return Some(reply(request, &format!("say: {}", quoted(SUMMARY))));
        }
        if asks_for_notes(request) {
            return Some(too_long());
        }
        Some(match turns.fetch_add(1, SeqCst) {
            8 => too_long(),
            12 => reply(request, "say: Done."),
            turn => reply(request, &format!("read: notes-{turn}.txt")),
        })
    });
    let ran = program.windlass(&["run", "count", "--json", "--context-window", "64000"]).expect(0);
    assert_eq!(ran.result()["final_message"], "Done.");
    assert_eq!(events(&ran, "memory_flush").len(), 1, "asked for once");
    assert_eq!(events(&ran, "compaction_end").len(), 1);
}

/// A window that is smaller than what must stay fails with what is too large.
#[test]
fn a_window_smaller_than_the_pinned_part_is_named_in_the_diagnostic() {
    let program = Program::playing("replies: [{say: hello}]");
    let ran = program.windlass(&["run", "greet", "--json", "--context-window", "5000"]).expect(1);
    let error = &ran.result()["error_details"];
    assert_eq!(error["error_type"], "context_length");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("the largest part is the system prompt and the tools"), "{message}");
    assert!(error["diagnostic"].as_str().unwrap().contains("the task message:"), "{error}");

    let goal = "x".repeat(200_000);
    std::fs::write(program.workspace().join("goal.md"), &goal).unwrap();
    let args = ["run", "@goal.md", "--json", "--context-window", "16000"];
    let ran = program.windlass(&args).expect(1);
    let message = ran.result()["error_details"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the largest part is the task message"), "{message}");
}
