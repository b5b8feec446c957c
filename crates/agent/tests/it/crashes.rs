//! A process that dies, and the one that continues its task.

use windlass_core::event::Event;
use windlass_testkit::{Stage, play};

/// §15.6: nobody knows whether the command took effect, so it is not repeated.
#[tokio::test]
async fn a_command_that_a_crash_interrupts_has_an_unknown_outcome() {
    let script = "
        goal: start it
        replies:
          - bash: echo up > started; sleep 600
          - say: I check first
        crash_when_written: started
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        start it
     3 llm_response       bash: {"command":"echo up > started; sleep 600"}
     4 risk_check         bash edit allow
     5 tool_call          bash
     6 agent_start        start it
     7 tool_result        unknown: UNKNOWN OUTCOME: the program that runs your tools was interrupted afte…
     8 llm_response       say: I check first
     9 status_changed     running → done (finished)
    10 agent_end          COMPLETED
    "#);
}

/// People read what was interrupted; the advice to check first is for the model alone.
#[tokio::test]
async fn an_unknown_outcome_has_a_text_for_people() {
    let stage = Stage::set(
        "
        goal: start it
        replies:
          - bash: echo up > started; sleep 600
          - say: I check first
        crash_when_written: started
        ",
    );
    let task = stage.play().await;
    let journal = stage.store.journal().of(task).unwrap();
    let result = journal.iter().find_map(|record| match &record.event {
        Event::ToolResult(result) => Some(result),
        _ => None,
    });
    insta::assert_snapshot!(
        result.unwrap().outcome.display_text(),
        @"bash was interrupted; it may have taken effect and was not repeated"
    );
}

/// ES-045: a reply that was not journaled was not given.
#[tokio::test]
async fn a_request_that_a_crash_interrupts_is_sent_again() {
    let script = "
        goal: look
        replies:
          - bash: echo one
          - say: seen
        crash_at_request: 2
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        look
     3 llm_response       bash: {"command":"echo one"}
     4 risk_check         bash read allow
     5 tool_call          bash
     6 tool_result        ok: one
     7 agent_start        look
     8 llm_response       say: seen
     9 status_changed     running → done (finished)
    10 agent_end          COMPLETED
    "#);
}
