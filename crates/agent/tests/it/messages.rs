//! Messages, answers and signals that reach a task from outside.

use windlass_testkit::play;

/// ES-072, ES-119
#[tokio::test]
async fn a_message_arrives_before_the_next_request() {
    let script = "
        goal: paint
        replies:
          - bash: echo one coat
          - say: painted blue
        at_request: {1: [{send: make it blue}]}
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint
     3 llm_response       bash: {"command":"echo one coat"}
     4 injection_received make it blue
     5 risk_check         bash read allow
     6 tool_call          bash
     7 tool_result        ok: one coat
     8 llm_response       say: painted blue
     9 status_changed     running → done (finished)
    10 agent_end          COMPLETED
    "#);
}

/// O-24
#[tokio::test]
async fn a_message_that_meets_the_final_reply_keeps_the_loop_going() {
    let script = "
        goal: paint
        replies:
          - say: painted
          - say: painted twice
        at_request: {1: [{send: once more}]}
    ";
    insta::assert_snapshot!(play(script).await, @"
    1 status_changed     todo → running (user)
    2 agent_start        paint
    3 llm_response       say: painted
    4 injection_received once more
    5 llm_response       say: painted twice
    6 status_changed     running → done (finished)
    7 agent_end          COMPLETED
    ");
}

/// ES-213, ES-216
#[tokio::test]
async fn a_question_of_the_agent_blocks_until_it_is_answered() {
    let script = "
        goal: paint
        replies:
          - ask_user: {question: which colour?}
          - say: painted blue
        then: [{answer: blue}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint
     3 llm_response       ask_user: {"question":"which colour?"}
     4 risk_check         ask_user note allow
     5 tool_call          ask_user
     6 question_asked     which colour?
     7 status_changed     running → blocked (question)
     8 agent_end          BLOCKED_USER
     9 question_answered  blue
    10 injection_received blue
    11 status_changed     blocked → running (user)
    12 agent_start        paint
    13 tool_result        ok: The user has responded. The response follows as a message.
    14 llm_response       say: painted blue
    15 status_changed     running → done (finished)
    16 agent_end          COMPLETED
    "#);
}

/// ES-075, ES-110
#[tokio::test]
async fn a_paused_task_resumes_where_it_stood() {
    let script = "
        goal: paint
        replies:
          - bash: echo one coat
          - say: painted
        at_request: {1: [pause]}
        then: [resume]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint
     3 llm_response       bash: {"command":"echo one coat"}
     4 injection_received pause
     5 status_changed     running → paused (user)
     6 agent_end          PAUSED
     7 injection_received Task resumed by user
     8 status_changed     paused → running (user)
     9 agent_start        paint
    10 risk_check         bash read allow
    11 tool_call          bash
    12 tool_result        ok: one coat
    13 llm_response       say: painted
    14 status_changed     running → done (finished)
    15 agent_end          COMPLETED
    "#);
}

/// ES-109
#[tokio::test]
async fn a_cancelled_task_asks_nothing_more() {
    let script = "
        goal: paint
        replies:
          - bash: echo one coat
          - say: painted
        at_request: {1: [cancel]}
    ";
    insta::assert_snapshot!(play(script).await, @"
    1 status_changed     todo → running (user)
    2 agent_start        paint
    3 injection_received cancel
    4 status_changed     running → cancelled (user)
    5 agent_end          CANCELLED
    ");
}

/// ES-054, ES-074
#[tokio::test]
async fn an_event_reaches_a_task_at_work() {
    let script = "
        goal: wait for rain
        replies:
          - bash: echo waiting
          - say: it rains
        at_request: {1: [{event: '{\"weather\":\"rain\"}'}]}
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        wait for rain
     3 llm_response       bash: {"command":"echo waiting"}
     4 injection_received {"weather":"rain"}
     5 risk_check         bash read allow
     6 tool_call          bash
     7 tool_result        ok: waiting
     8 llm_response       say: it rains
     9 status_changed     running → done (finished)
    10 agent_end          COMPLETED
    "#);
}
