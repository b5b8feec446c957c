//! A context that outgrows its window.

use windlass_testkit::{play, play_context};

/// The window has room for the prompt and two of the three files.
const LONG: &str = include_str!("long.yaml");

/// ES-158, ES-163: notes first, then the summary.
#[tokio::test]
async fn a_full_context_is_compacted_after_notes_are_saved() {
    insta::assert_snapshot!(play(LONG).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        read three long files
     3 llm_response       bash: {"command":"seq -f 'line %04g of a long file' 1 400"}
     4 risk_check         bash read allow
     5 tool_call          bash
     6 tool_result        ok: line 0001 of a long file…
     7 llm_response       bash: {"command":"seq -f 'line %04g of another long file' 1 400"}
     8 risk_check         bash read allow
     9 tool_call          bash
    10 tool_result        ok: line 0001 of another long file…
    11 memory_flush       You are approaching context limits. Save any important information to /workspac…
    12 llm_response       save_memo: {"content":"each has 400 lines","filename":"long.md"}
    13 risk_check         save_memo note allow
    14 tool_call          save_memo
    15 tool_result        ok: Saved `.memo/long.md` (18 bytes).
    16 llm_response       say: The notes are saved.
    17 llm_response       bash: {"command":"seq -f 'line %04g of a third long file' 1 400"}
    18 risk_check         bash read allow
    19 tool_call          bash
    20 tool_result        ok: line 0001 of a third long file…
    21 compaction_start   tokens
    22 compaction_end     model
    23 llm_response       say: all are read
    24 status_changed     running → done (finished)
    25 agent_end          COMPLETED
    "#);
}

/// ES-164, ES-165: what the model sees when its older turns have become a summary.
#[tokio::test]
async fn a_compacted_context_holds_goal_summary_and_recent_turns() {
    insta::assert_snapshot!(play_context(LONG).await);
}
