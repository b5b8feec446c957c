//! What a project's files tell the agent.

use crate::program::Program;

fn system_prompt(program: &Program) -> String {
    program.windlass(&["run", "greet", "-q"]).expect(0);
    let body = program.server.requests()[0].json();
    body["messages"][0]["content"].as_str().unwrap().to_owned()
}

/// WF-006
#[test]
fn the_prompt_contains_what_agents_md_says() {
    let program = Program::playing("replies: [{say: hello}]");
    std::fs::write(program.workspace().join("AGENTS.md"), "Always use tabs.").unwrap();
    std::fs::write(program.workspace().join("CLAUDE.md"), "Never use tabs.").unwrap();
    let prompt = system_prompt(&program);
    assert!(prompt.contains("Always use tabs.") && !prompt.contains("Never use tabs."), "{prompt}");
}

/// WF-006
#[test]
fn claude_md_is_read_where_there_is_no_agents_md() {
    let program = Program::playing("replies: [{say: hello}]");
    std::fs::write(program.workspace().join("CLAUDE.md"), "Never use tabs.").unwrap();
    assert!(system_prompt(&program).contains("Never use tabs."));
}
