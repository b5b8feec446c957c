//! What people read of an event, on every surface.

use windlass_core::event::{
    BudgetHit, BudgetKind, BudgetLevel, Event, MemoryFlush, SandboxEnded, ToolResult,
};
use windlass_core::id::CallId;
use windlass_core::outcome::Outcome;

fn result(tool: &str, outcome: Outcome) -> Event {
    let call = CallId::derived("task", "call");
    Event::ToolResult(ToolResult {
        call,
        tool: tool.to_owned(),
        outcome,
        duration_ms: 7,
        segment_ms: None,
    })
}

#[test]
fn a_result_says_how_it_ended_before_what_it_printed() {
    let ran = Outcome { exit_code: Some(1), ..Outcome::error("no such file") };
    assert_eq!(result("bash", ran).words(), "bash exit 1 in 7 ms: no such file");
    let silent = Outcome { display: Some(String::new()), ..Outcome::ok("(no output)") };
    assert_eq!(result("bash", silent).words(), "bash ok in 7 ms");
    let named = Outcome::error("glob: no such directory");
    assert_eq!(result("glob", named).words(), "glob error in 7 ms: no such directory");
}

#[test]
fn a_warning_is_a_note_that_a_person_should_look_at() {
    let hit = BudgetHit {
        budget: BudgetKind::Turns,
        level: BudgetLevel::Exceeded,
        spent: 8.0,
        limit: 8.0,
    };
    let event = Event::BudgetHit(hit);
    assert_eq!(event.words(), "turns exceeded: 8 of 8");
    assert!(event.note().is_some_and(|note| note.is_warning));
}

#[test]
fn an_event_without_a_note_still_has_words() {
    let ended = Event::SandboxEnded(SandboxEnded { kind: "local".to_owned() });
    assert_eq!((ended.words().as_str(), ended.note()), ("local", None));
    let flush = Event::MemoryFlush(MemoryFlush {
        number: 1,
        estimated_tokens: 81_234,
        message: String::new(),
        excerpt: None,
    });
    assert_eq!(flush.words(), "notes are saved at about 81.2k tokens");
}
