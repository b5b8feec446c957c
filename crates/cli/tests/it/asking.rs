//! What a person reads before they decide, and how they answer.

use windlass_testkit::ModelServer;

use crate::program::Program;

/// A push, and beside it what an escape sequence would hide on a terminal.
const HIDDEN: &str = r#"replies: [{bash: "git push origin main '\e]0;'; rm victim; : '\a'"}, {write: {path: "notes\u009d/deploy\u009c.md", content: x}}]"#;

#[test]
fn a_question_shows_what_a_terminal_would_hide() {
    let program = Program::playing(HIDDEN);
    let ran = program.windlass(&["run", "publish"]).expect(3);
    let inbox = program.windlass(&["inbox"]).expect(0);
    for seen in [&ran.stderr, &inbox.stdout] {
        assert!(seen.contains(r"git push origin main '\x1b]0;'; rm victim; : '\x07'"), "{seen}");
    }
    let answer = ["answer", &program.task(), "deny", "--resume"];
    let ran = program.windlass(&answer);
    assert!(ran.stderr.contains(r"notes\u{9D}/deploy\u{9C}.md"), "{ran:?}");
}

#[test]
fn json_on_a_terminal_holds_no_character_that_it_obeys() {
    let program = Program::with(ModelServer::start(r#"replies: [{say: "a\u009b2Jb\u202e"}]"#));
    program.windlass(&["run", "x"]).expect(0);
    let task = program.task();
    for command in [["events", &task, "--json"].as_slice(), &["trace", &task], &["result", &task]] {
        let shown = program.windlass(command).expect(0).stdout;
        assert!(shown.contains(r"a\u009b2Jb\u202e"), "{command:?}: {shown}");
        assert!(!shown.contains(['\u{9b}', '\u{202e}']), "{command:?}: {shown}");
    }
    let said = program.windlass(&["result", &task]).expect(0).stdout;
    let result: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(result["final_message"], "a\u{9b}2Jb\u{202e}");
}
