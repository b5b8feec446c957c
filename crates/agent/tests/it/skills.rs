//! Skills that an agent reads, and the hooks that come with them.

use windlass_testkit::play;

/// AX-022: a hook that fails refuses the call, with its words as the reason.
#[tokio::test]
async fn a_hook_refuses_a_call_of_an_agent_that_read_its_skill() {
    let script = r#"
        goal: paint
        skills:
          careful: |
            ---
            name: careful
            description: How to paint.
            hooks:
              - {event: before_tool, tools: [bash], command: 'echo wear gloves >&2; exit 2'}
            ---
            Wear gloves.
        replies:
          - read_skill: careful
          - bash: echo paint > door
          - say: I need gloves
    "#;
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint
     3 llm_response       read_skill: {"name":"careful"}
     4 risk_check         read_skill read allow
     5 tool_call          read_skill
     6 tool_result        ok: ---…
     7 llm_response       bash: {"command":"echo paint > door"}
     8 risk_check         bash edit deny
     9 tool_result        denied: DENIED: This action is not permitted.…
    10 llm_response       say: I need gloves
    11 status_changed     running → done (finished)
    12 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn a_hook_adds_its_remark_to_a_result() {
    let script = r#"
        goal: paint
        skills:
          careful: |
            ---
            name: careful
            description: How to paint.
            hooks:
              - {event: after_tool, tools: [bash], command: 'echo the paint is wet >&2; exit 2'}
            ---
            Wear gloves.
        replies:
          - read_skill: careful
          - bash: echo paint > door
          - say: it dries
    "#;
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint
     3 llm_response       read_skill: {"name":"careful"}
     4 risk_check         read_skill read allow
     5 tool_call          read_skill
     6 tool_result        ok: ---…
     7 llm_response       bash: {"command":"echo paint > door"}
     8 risk_check         bash edit allow
     9 tool_call          bash
    10 tool_result        ok: (no output)…
    11 llm_response       say: it dries
    12 status_changed     running → done (finished)
    13 agent_end          COMPLETED
    "#);
}
