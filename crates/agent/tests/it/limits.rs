//! Limits: rounds, repetition, budgets, replies that were cut.

use windlass_testkit::play;

/// ES-104, ES-372
#[tokio::test]
async fn a_task_fails_at_its_limit_of_rounds() {
    let script = "
        goal: try
        limits: {max_iterations: 2}
        replies:
          - bash: echo 1
          - bash: echo 2
          - bash: echo 3
          - say: done
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        try
     3 llm_response       bash: {"command":"echo 1"}
     4 risk_check         bash read allow
     5 tool_call          bash
     6 tool_result        ok: 1
     7 llm_response       bash: {"command":"echo 2"}
     8 risk_check         bash read allow
     9 tool_call          bash
    10 tool_result        ok: 2
    11 llm_response       bash: {"command":"echo 3"}
    12 status_changed     running → failed (error)
    13 agent_end          FAILED: it reached its limit of 2 steps
    "#);
}

/// ES-264, ES-267
#[tokio::test]
async fn three_identical_calls_earn_a_nudge() {
    let script = "
        goal: look
        replies:
          - glob: '*.x'
          - glob: '*.x'
          - glob: '*.x'
          - say: nothing there
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        look
     3 llm_response       glob: {"pattern":"*.x"}
     4 risk_check         glob read allow
     5 tool_call          glob
     6 tool_result        ok: No file matches `*.x`.
     7 llm_response       glob: {"pattern":"*.x"}
     8 risk_check         glob read allow
     9 tool_call          glob
    10 tool_result        ok: No file matches `*.x`.
    11 llm_response       glob: {"pattern":"*.x"}
    12 risk_check         glob read allow
    13 tool_call          glob
    14 tool_result        ok: No file matches `*.x`.
    15 doom_loop_detected You appear to be repeating the same action. Reconsider your approach.
    16 llm_response       say: nothing there
    17 status_changed     running → done (finished)
    18 agent_end          COMPLETED
    "#);
}

/// ES-268, ES-269
#[tokio::test]
async fn an_agent_that_ignores_three_nudges_fails() {
    let script = "
        goal: look
        match:
          - when: ''
            glob: '*.x'
        replies: []
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        look
     3 llm_response       glob: {"pattern":"*.x"}
     4 risk_check         glob read allow
     5 tool_call          glob
     6 tool_result        ok: No file matches `*.x`.
     7 llm_response       glob: {"pattern":"*.x"}
     8 risk_check         glob read allow
     9 tool_call          glob
    10 tool_result        ok: No file matches `*.x`.
    11 llm_response       glob: {"pattern":"*.x"}
    12 risk_check         glob read allow
    13 tool_call          glob
    14 tool_result        ok: No file matches `*.x`.
    15 doom_loop_detected You appear to be repeating the same action. Reconsider your approach.
    16 llm_response       glob: {"pattern":"*.x"}
    17 risk_check         glob read allow
    18 tool_call          glob
    19 tool_result        ok: No file matches `*.x`.
    20 doom_loop_detected Stop and re-read your plan. What should you do differently?
    21 llm_response       glob: {"pattern":"*.x"}
    22 risk_check         glob read allow
    23 tool_call          glob
    24 tool_result        ok: No file matches `*.x`.
    25 doom_loop_detected Stop and re-read your plan. What should you do differently?
    26 llm_response       glob: {"pattern":"*.x"}
    27 risk_check         glob read allow
    28 tool_call          glob
    29 tool_result        ok: No file matches `*.x`.
    30 status_changed     running → failed (error)
    31 agent_end          FAILED: the agent kept repeating itself after three interventions
    "#);
}

/// ES-265
#[tokio::test]
async fn five_failures_in_a_row_earn_a_nudge() {
    let script = "
        goal: look
        replies:
          - read: a
          - read: b
          - read: c
          - read: d
          - read: e
          - say: there are none
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        look
     3 llm_response       read: {"path":"a"}
     4 risk_check         read read allow
     5 tool_call          read
     6 tool_result        error: Error: `a` does not exist. Use glob to find the file.
     7 llm_response       read: {"path":"b"}
     8 risk_check         read read allow
     9 tool_call          read
    10 tool_result        error: Error: `b` does not exist. Use glob to find the file.
    11 llm_response       read: {"path":"c"}
    12 risk_check         read read allow
    13 tool_call          read
    14 tool_result        error: Error: `c` does not exist. Use glob to find the file.
    15 llm_response       read: {"path":"d"}
    16 risk_check         read read allow
    17 tool_call          read
    18 tool_result        error: Error: `d` does not exist. Use glob to find the file.
    19 llm_response       read: {"path":"e"}
    20 risk_check         read read allow
    21 tool_call          read
    22 tool_result        error: Error: `e` does not exist. Use glob to find the file.
    23 doom_loop_detected You appear to be repeating the same action. Reconsider your approach.
    24 llm_response       say: there are none
    25 status_changed     running → done (finished)
    26 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn a_reply_cut_at_the_output_limit_is_continued() {
    let script = "
        goal: tell a story
        replies:
          - say: 'Once upon a time'
            finish: length
          - say: ' there was a windlass.'
    ";
    insta::assert_snapshot!(play(script).await, @"
    1 status_changed     todo → running (user)
    2 agent_start        tell a story
    3 llm_response       say: Once upon a time
    4 llm_response       say:  there was a windlass.
    5 status_changed     running → done (finished)
    6 agent_end          COMPLETED
    ");
}

#[tokio::test]
async fn a_reply_that_a_filter_stopped_fails_the_task() {
    let script = "
        goal: tell a story
        replies:
          - {say: 'Once', finish: content_filter}
          - {say: 'Once', finish: content_filter}
          - {say: 'Once', finish: content_filter}
    ";
    insta::assert_snapshot!(play(script).await, @"
    1 status_changed     todo → running (user)
    2 agent_start        tell a story
    3 llm_response       say: Once
    4 status_changed     running → failed (error)
    5 agent_end          FAILED: the provider's content filter stopped the reply
    ");
}

#[tokio::test]
async fn a_task_at_its_budget_asks_before_the_next_request() {
    let script = "
        goal: look
        limits: {turns: 1}
        replies:
          - glob: '*.x'
          - say: nothing there
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        look
     3 llm_response       glob: {"pattern":"*.x"}
     4 risk_check         glob read allow
     5 tool_call          glob
     6 tool_result        ok: No file matches `*.x`.
     7 budget_hit         turns exceeded
     8 question_asked     The turns budget is used up: 1 of 1 turns. Raise it, or stop?
     9 status_changed     running → blocked (budget)
    10 agent_end          BLOCKED_USER
    "#);
}

#[tokio::test]
async fn a_raised_budget_lets_the_task_continue() {
    let script = "
        goal: look
        limits: {turns: 1}
        replies:
          - glob: '*.x'
          - say: nothing there
        then: [{answer: Raise by 2}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        look
     3 llm_response       glob: {"pattern":"*.x"}
     4 risk_check         glob read allow
     5 tool_call          glob
     6 tool_result        ok: No file matches `*.x`.
     7 budget_hit         turns exceeded
     8 question_asked     The turns budget is used up: 1 of 1 turns. Raise it, or stop?
     9 status_changed     running → blocked (budget)
    10 agent_end          BLOCKED_USER
    11 question_answered  Raise by 2
    12 status_changed     blocked → running (user)
    13 agent_start        look
    14 llm_response       say: nothing there
    15 status_changed     running → done (finished)
    16 agent_end          COMPLETED
    "#);
}
