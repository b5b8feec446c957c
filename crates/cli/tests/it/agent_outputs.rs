//! Files that the output of sub-agents is written to.

use crate::long_agents::{machine, of_kind};

/// Several may be asked to write one file, and one may put a link where its output goes: what is answered as written is
/// in the file that was decided about, and nothing else changes.
#[test]
fn the_output_of_a_sub_agent_is_where_its_call_says() {
    let program = machine(
        "
replies:
  - calls: [{spawn_agent: {task: kid ONE, write_output_to: out.md}},
            {spawn_agent: {task: kid TWO, write_output_to: ./out.md}},
            {spawn_agent: {task: kid MARK, write_output_to: key.md}}]
    task: share the work
  - {spawn_agent: {task: kid LINK, write_output_to: ./notes.md}, task: share the work}
  - {say: done, task: share the work}
  - {turn: 0, task: ONE, say: first}
  - {turn: 0, task: TWO, say: second}
  - {turn: 0, task: MARK, say: 'the key is [redacted: SOME_KEY]'}
  - {turn: 0, task: LINK, bash: ./link.sh}
  - {turn: 1, task: LINK, say: evil}
",
    );
    let put = |name: &str, text: &str| {
        std::fs::write(program.workspace().join(name), text).unwrap();
    };
    put("AGENTS.md", "be kind\n");
    put("link.sh", "#!/bin/sh\nln -s AGENTS.md notes.md\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program.workspace().join("link.sh"), mode).unwrap();
    let ran = program.windlass(&["run", "share the work", "--json"]).expect(0);
    let results = of_kind(&ran, "tool_result");
    let texts: Vec<_> = results.iter().filter_map(|result| result["text"].as_str()).collect();
    let written = texts.iter().filter(|text| text.contains("Output written to: "));
    assert_eq!(written.count(), 1, "{texts:?}");
    assert!(texts[0].contains("Output written to: "), "{texts:?}");
    assert_eq!(program.file("out.md"), "first");
    assert!(!program.workspace().join("key.md").exists(), "no mark stands for a key in a file");
    assert!(texts.iter().any(|text| text.contains("Output not written to notes.md")), "{texts:?}");
    assert_eq!(program.file("AGENTS.md"), "be kind\n");
}
