//! What becomes of the calls in a reply.

use windlass_testkit::play;

/// ES-115: reading calls run side by side; their results keep the order of the reply.
#[tokio::test]
async fn results_of_parallel_calls_keep_the_order_of_the_reply() {
    let script = "
        goal: read both
        files: {a.txt: first, b.txt: second}
        replies:
          - calls: [{read: a.txt}, {read: b.txt}]
          - say: read
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        read both
     3 llm_response       read: {"path":"a.txt"} + read: {"path":"b.txt"}
     4 risk_check         read read allow
     5 tool_call          read
     6 risk_check         read read allow
     7 tool_call          read
     8 tool_result        ok:      1	first
     9 tool_result        ok:      1	second
    10 llm_response       say: read
    11 status_changed     running → done (finished)
    12 agent_end          COMPLETED
    "#);
}

/// ES-373: arguments that are not JSON go back to the model.
#[tokio::test]
async fn a_malformed_call_is_an_error_result() {
    let script = "
        goal: look
        replies:
          - calls: [{name: bash, id: call_7, arguments: '{\"command\": \"ls'}]
          - say: sorry
    ";
    insta::assert_snapshot!(play(script).await, @r#"
    1 status_changed     todo → running (user)
    2 agent_start        look
    3 llm_response       bash: {"command": "ls
    4 tool_result        error: The arguments of `bash` are not valid JSON: EOF while parsing a string a…
    5 llm_response       say: sorry
    6 status_changed     running → done (finished)
    7 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_that_names_the_nearest() {
    let script = "
        goal: look
        replies:
          - calls: [{name: gerp, id: call_7, arguments: '{\"pattern\": \"x\"}'}]
          - say: sorry
    ";
    insta::assert_snapshot!(play(script).await, @r#"
    1 status_changed     todo → running (user)
    2 agent_start        look
    3 llm_response       gerp: {"pattern": "x"}
    4 tool_result        error: There is no tool `gerp`. Did you mean `grep`? The tools are: read, write…
    5 llm_response       say: sorry
    6 status_changed     running → done (finished)
    7 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn arguments_that_break_the_schema_are_an_error_result() {
    let script = "
        goal: look
        replies:
          - read: {path: 7}
          - say: sorry
    ";
    insta::assert_snapshot!(play(script).await, @r#"
    1 status_changed     todo → running (user)
    2 agent_start        look
    3 llm_response       read: {"path":7}
    4 tool_result        error: The arguments of `read` do not fit its schema:…
    5 llm_response       say: sorry
    6 status_changed     running → done (finished)
    7 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn a_file_that_was_not_read_is_not_replaced() {
    let script = "
        goal: write it
        files: {a.txt: old}
        replies:
          - write: {path: a.txt, content: new}
          - say: written
    ";
    insta::assert_snapshot!(play(script).await, @r#"
    1 status_changed     todo → running (user)
    2 agent_start        write it
    3 llm_response       write: {"content":"new","path":"a.txt"}
    4 tool_result        error: Error: `a.txt` has not been read in this task. Read it first, then repea…
    5 llm_response       say: written
    6 status_changed     running → done (finished)
    7 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn an_edit_of_a_file_that_has_changed_is_refused() {
    let script = "
        goal: edit it
        files: {a.txt: one two}
        replies:
          - read: a.txt
          - bash: echo three > a.txt
          - edit: {path: a.txt, old_string: one, new_string: two}
          - say: it changed
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        edit it
     3 llm_response       read: {"path":"a.txt"}
     4 risk_check         read read allow
     5 tool_call          read
     6 tool_result        ok:      1	one two
     7 llm_response       bash: {"command":"echo three > a.txt"}
     8 risk_check         bash edit allow
     9 tool_call          bash
    10 tool_result        ok: (no output)
    11 llm_response       edit: {"new_string":"two","old_string":"one","path":"a.txt"}
    12 tool_result        error: Error: `a.txt` has changed since you last read it. Read it again, then r…
    13 llm_response       say: it changed
    14 status_changed     running → done (finished)
    15 agent_end          COMPLETED
    "#);
}

#[tokio::test]
async fn the_working_directory_lasts_from_call_to_call() {
    let script = "
        goal: walk
        files: {sub/a.txt: here}
        replies:
          - bash: cd sub
          - bash: cat a.txt
          - say: walked
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        walk
     3 llm_response       bash: {"command":"cd sub"}
     4 risk_check         bash read allow
     5 tool_call          bash
     6 tool_result        ok: (no output)
     7 llm_response       bash: {"command":"cat a.txt"}
     8 risk_check         bash read allow
     9 tool_call          bash
    10 tool_result        ok: here
    11 llm_response       say: walked
    12 status_changed     running → done (finished)
    13 agent_end          COMPLETED
    "#);
}

/// ES-226
#[tokio::test]
async fn a_published_file_is_a_deliverable() {
    let script = "
        goal: report
        replies:
          - write: {path: output/r.md, content: all is well}
          - publish_deliverable: {filepath: output/r.md, description: the report, type: report}
          - say: reported
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        report
     3 llm_response       write: {"content":"all is well","path":"output/r.md"}
     4 risk_check         write edit allow
     5 tool_call          write
     6 tool_result        ok: Created `output/r.md` (11 bytes, 1 line).
     7 llm_response       publish_deliverable: {"description":"the report","filepath":"output/r.md","type…
     8 risk_check         publish_deliverable note allow
     9 tool_call          publish_deliverable
    10 tool_result        ok: Published `output/r.md` as report (11 bytes).
    11 deliverable_published output/r.md
    12 llm_response       say: reported
    13 status_changed     running → done (finished)
    14 agent_end          COMPLETED
    "#);
}
