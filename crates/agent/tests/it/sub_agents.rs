//! Agents that start agents.

use windlass_testkit::play;

/// ES-232
#[tokio::test]
async fn two_sub_agents_of_one_reply_both_report() {
    let script = "
        goal: paint both
        match:
          - {task: paint the left, say: left is blue}
          - {task: paint the right, say: right is red}
        replies:
          - calls:
              - spawn_agent: {task: paint the left, label: left}
              - spawn_agent: {task: paint the right, label: right}
          - say: both are painted
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint both
     3 llm_response       spawn_agent: {"label":"left","task":"paint the left"} + spawn_agent: {"label":"…
     4 risk_check         spawn_agent delegate allow
     5 tool_call          spawn_agent
     6 sub_agent_spawn    paint the left
     7 risk_check         spawn_agent delegate allow
     8 tool_call          spawn_agent
     9 sub_agent_spawn    paint the right
    10 sub_agent_complete completed
    11 tool_result        ok: Sub-agent "left" completed in SECONDS (TOKENS).…
    12 sub_agent_complete completed
    13 tool_result        ok: Sub-agent "right" completed in SECONDS (TOKENS).…
    14 llm_response       say: both are painted
    15 status_changed     running → done (finished)
    16 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn a_sub_agent_that_fails_does_not_fail_its_parent() {
    let script = "
        goal: paint both
        limits: {max_iterations: 1}
        match:
          - task: paint the left
            replies: [{bash: echo 1}, {bash: echo 2}, {bash: echo 3}]
        replies:
          - spawn_agent: {task: paint the left, label: left}
          - say: the left is not painted
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint both
     3 llm_response       spawn_agent: {"label":"left","task":"paint the left"}
     4 risk_check         spawn_agent delegate allow
     5 tool_call          spawn_agent
     6 sub_agent_spawn    paint the left
     7 sub_agent_complete failed
     8 tool_result        error: Sub-agent "left" failed in SECONDS (TOKENS).…
     9 llm_response       say: the left is not painted
    10 status_changed     running → done (finished)
    11 agent_end          COMPLETED
    "#);
}
