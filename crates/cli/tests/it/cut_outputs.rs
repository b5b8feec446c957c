//! Outputs that are too long for the model, through the whole program.

use crate::program::{Program, Ran};

/// The only result that the model was shown, and the ids of the calls.
fn shown(program: &Program, ran: &Ran) -> (String, String) {
    let call = ran.json_lines().into_iter().find(|line| line["event_type"] == "tool_call").unwrap();
    (program.last_message_sent(), call["data"]["call"].as_str().unwrap().to_owned())
}

fn printing(bytes: usize) -> Program {
    let command = format!("head -c {bytes} /dev/zero | tr '\\0' x");
    Program::playing(&format!("replies:\n  - bash: {command:?}\n  - say: done\n"))
}

/// ES-228: 8,000 tokens, as we estimate them, pass as they are; one byte more does not.
#[test]
fn only_an_output_over_eight_thousand_tokens_is_cut() {
    let program = printing(32_000);
    program.windlass(&["run", "print", "--json"]).expect(0);
    assert_eq!(program.last_message_sent(), "x".repeat(32_000));
    assert!(!program.workspace().join(".windlass").exists());

    let program = printing(32_001);
    let ran = program.windlass(&["run", "print", "--json"]).expect(0);
    let (text, call) = shown(&program, &ran);
    assert!(text.len() <= 32_000 && text.contains("[OUTPUT TRUNCATED — "), "{}", text.len());
    assert_eq!(program.own_file(&format!("scratch/tool-output-{call}.txt")), "x".repeat(32_001));
}

/// AX-069, ES-209, ES-229, ES-230, ES-364: the limit is a setting; the whole is in the workspace, and can be read.
#[test]
fn the_limit_is_a_setting_and_the_whole_is_kept() {
    let program = Program::playing(
        "replies: [{bash: seq 1 2000}, {grep: {pattern: ^1234$, path: .windlass/tasks}}, {say: done}]",
    );
    let mut command = program.command(&["run", "count", "--json"]);
    let ran: Ran = command.env("AGENT_TOOL_OUTPUT_MAX_TOKENS", "500").output().unwrap().into();
    let ran = ran.expect(0);
    let (_, call) = shown(&program, &ran);
    let requests = program.server.requests();
    let body = requests[1].json();
    let text = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let text = text.as_str().unwrap();
    let own = format!("{}/.windlass/tasks/{}", program.real_workspace(), program.task());
    let path = format!("{own}/scratch/tool-output-{call}.txt");
    let notice =
        format!("\n\n[OUTPUT TRUNCATED — full output saved to {path}. Use read tool to access.]");
    assert!(text.ends_with(&notice) && text.len() <= 2_000, "{text}");
    assert!(text.starts_with("1\n2\n3\n") && text.contains("\n2000\n\n["), "both ends: {text}");
    let whole: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    assert_eq!(program.own_file(&format!("scratch/tool-output-{call}.txt")), whole);
    let found = program.last_message_sent();
    assert!(found.contains("1234:1234"), "and found again: {found}");
}
