//! What the gate allows, asks and denies, and what an answer changes.

use windlass_testkit::play;

/// ES-116, AX-084
#[tokio::test]
async fn a_denied_call_does_not_end_the_task() {
    let script = "
        goal: clean up
        replies:
          - bash: rm -rf /
          - say: I leave it
    ";
    insta::assert_snapshot!(play(script).await, @r#"
    1 status_changed     todo → running (user)
    2 agent_start        clean up
    3 llm_response       bash: {"command":"rm -rf /"}
    4 risk_check         bash catastrophic deny
    5 tool_result        denied: DENIED: This action is not permitted.…
    6 llm_response       say: I leave it
    7 status_changed     running → done (finished)
    8 agent_end          COMPLETED
    "#);
}

/// ES-117, MS-068
#[tokio::test]
async fn a_destructive_call_waits_for_a_person() {
    let script = "
        goal: clean up
        files: {old.txt: x}
        replies:
          - bash: rm old.txt
          - say: removed
    ";
    insta::assert_snapshot!(play(script).await, @r#"
    1 status_changed     todo → running (user)
    2 agent_start        clean up
    3 llm_response       bash: {"command":"rm old.txt"}
    4 risk_check         bash destructive ask
    5 question_asked     Run this command? It removes files.
    6 status_changed     running → blocked (question)
    7 agent_end          BLOCKED_USER
    "#);
}

/// C-15
#[tokio::test]
async fn an_allowed_call_runs_after_the_answer() {
    let script = "
        goal: clean up
        files: {old.txt: x}
        replies:
          - bash: rm old.txt
          - say: removed
        then: [{answer: Allow}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        clean up
     3 llm_response       bash: {"command":"rm old.txt"}
     4 risk_check         bash destructive ask
     5 question_asked     Run this command? It removes files.
     6 status_changed     running → blocked (question)
     7 agent_end          BLOCKED_USER
     8 question_answered  Allow
     9 status_changed     blocked → running (user)
    10 agent_start        clean up
    11 risk_check         bash destructive allow
    12 tool_call          bash
    13 tool_result        ok: (no output)
    14 llm_response       say: removed
    15 status_changed     running → done (finished)
    16 agent_end          COMPLETED
    "#);
}

/// C-15, AX-037
#[tokio::test]
async fn a_call_that_a_person_denies_is_an_error_result() {
    let script = "
        goal: clean up
        files: {old.txt: x}
        replies:
          - bash: rm old.txt
          - say: I leave it
        then: [{answer: Deny}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        clean up
     3 llm_response       bash: {"command":"rm old.txt"}
     4 risk_check         bash destructive ask
     5 question_asked     Run this command? It removes files.
     6 status_changed     running → blocked (question)
     7 agent_end          BLOCKED_USER
     8 question_answered  Deny
     9 status_changed     blocked → running (user)
    10 agent_start        clean up
    11 risk_check         bash destructive ask
    12 tool_result        denied: DENIED: This action is not permitted.…
    13 llm_response       say: I leave it
    14 status_changed     running → done (finished)
    15 agent_end          COMPLETED
    "#);
}

/// C-15
#[tokio::test]
async fn allow_all_covers_the_same_command_from_then_on() {
    let script = "
        goal: build
        profile: normal
        replies:
          - bash: make a
          - bash: make a
          - say: made
        then: [{answer: Allow All}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        build
     3 llm_response       bash: {"command":"make a"}
     4 risk_check         bash build ask
     5 question_asked     Run this command? It builds by the project's own rules.
     6 status_changed     running → blocked (question)
     7 agent_end          BLOCKED_USER
     8 question_answered  Allow All
     9 status_changed     blocked → running (user)
    10 agent_start        build
    11 risk_check         bash build allow
    12 tool_call          bash
    13 tool_result        error: make: *** No rule to make target 'a'.  Stop.…
    14 llm_response       bash: {"command":"make a"}
    15 risk_check         bash build allow
    16 tool_call          bash
    17 tool_result        error: make: *** No rule to make target 'a'.  Stop.…
    18 llm_response       say: made
    19 status_changed     running → done (finished)
    20 agent_end          COMPLETED
    "#);
}

/// O-23
#[tokio::test]
async fn the_calls_after_a_question_wait_and_run_in_order() {
    let script = "
        goal: clean up
        files: {old.txt: x}
        replies:
          - calls:
              - bash: rm old.txt
              - bash: echo after
          - say: removed
        then: [{answer: Allow}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        clean up
     3 llm_response       bash: {"command":"rm old.txt"} + bash: {"command":"echo after"}
     4 risk_check         bash destructive ask
     5 question_asked     Run this command? It removes files.
     6 status_changed     running → blocked (question)
     7 agent_end          BLOCKED_USER
     8 question_answered  Allow
     9 status_changed     blocked → running (user)
    10 agent_start        clean up
    11 risk_check         bash destructive allow
    12 tool_call          bash
    13 tool_result        ok: (no output)
    14 risk_check         bash read allow
    15 tool_call          bash
    16 tool_result        ok: after
    17 llm_response       say: removed
    18 status_changed     running → done (finished)
    19 agent_end          COMPLETED
    "#);
}

/// MS-062, MS-067
#[tokio::test]
async fn a_restricted_agent_reads_and_does_not_write() {
    let script = "
        goal: look
        profile: restricted
        files: {a.txt: hello}
        replies:
          - bash: cat a.txt
          - bash: echo x > b.txt
          - say: seen
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        look
     3 llm_response       bash: {"command":"cat a.txt"}
     4 risk_check         bash read allow
     5 tool_call          bash
     6 tool_result        ok: hello
     7 llm_response       bash: {"command":"echo x > b.txt"}
     8 risk_check         bash edit deny
     9 tool_result        denied: DENIED: This action is not permitted.…
    10 llm_response       say: seen
    11 status_changed     running → done (finished)
    12 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn under_manual_control_every_change_is_asked_for() {
    let script = "
        goal: write it
        control: manual
        replies:
          - bash: echo x > b.txt
          - say: written
        then: [{answer: Allow}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        write it
     3 llm_response       bash: {"command":"echo x > b.txt"}
     4 risk_check         bash edit ask
     5 question_asked     Run this command? It writes `b.txt`.
     6 status_changed     running → blocked (question)
     7 agent_end          BLOCKED_USER
     8 question_answered  Allow
     9 status_changed     blocked → running (user)
    10 agent_start        write it
    11 risk_check         bash edit allow
    12 tool_call          bash
    13 tool_result        ok: (no output)
    14 llm_response       say: written
    15 status_changed     running → done (finished)
    16 agent_end          COMPLETED
    "#);
}
