//! What a plan loads: exactly what it names.

use std::collections::BTreeMap;

use windlass_plan::{AgentDefinition, Capabilities, resolve};

use crate::read;

fn there() -> Capabilities {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Capabilities {
        skills: names(&["content-flow", "truth-seeker", "deploy", "review", "style"]),
        servers: names(&["context7", "files"]),
        waiting_servers: names(&["mine"]),
    }
}

/// PL-049, PL-021: one name means one skill.
#[test]
fn a_plan_with_one_skill_resolves_exactly_one() {
    let text = r#"{"requiredSkills": ["content-flow"], "phases": [{"tasks": [{"bestPatternPrompt": "/content-flow"}]}]}"#;
    let (plan, document) = read(text).unwrap();
    let (needs, tasks) = resolve(&plan, &document, &BTreeMap::new(), &there()).unwrap();
    assert_eq!(needs.skills.unwrap(), ["content-flow"]);
    assert_eq!(tasks[0].skills.as_deref().unwrap(), ["content-flow"]);
}

/// PL-050: an unknown name is an error, and never means all.
#[test]
fn an_unknown_name_is_refused() {
    let text = "{\"requiredSkills\": [\"content-flow\",\n\"truth-seekr\"], \"requiredMcpTools\": [\"context8\", \"mine\"],\n\"phases\": []}";
    let (plan, document) = read(text).unwrap();
    let refused = resolve(&plan, &document, &BTreeMap::new(), &there()).unwrap_err();
    insta::assert_snapshot!(refused, @r"
    plan.json:2: `requiredSkills[1]`: there is no skill `truth-seekr`; did you mean `truth-seeker`? (there are: `content-flow`, `truth-seeker`, `deploy`, `review`, `style`)
    plan.json:2: `requiredMcpTools[0]`: there is no MCP server `context8`; did you mean `context7`? (there are: `context7`, `files`)
    plan.json:2: `requiredMcpTools[1]`: MCP server `mine` waits until you approve the file that names it
    ");
}

/// PL-069: the plan's list, the agent's and the task's are intersected.
#[test]
fn each_list_narrows_what_a_task_may_use() {
    let text = r#"{"requiredSkills": ["content-flow", "deploy"], "requiredMcpTools": ["context7", "files"],
      "assignedAgents": ["a"], "phases": [
        {"tasks": [{"id": "x", "bestPatternPrompt": "/x", "skills": ["deploy"], "tools": ["read", "bash"]},
                   {"id": "y", "bestPatternPrompt": "/x"}]},
        {"tasks": [{"id": "z", "bestPatternPrompt": "/x", "dependsOn": []}]}]}"#;
    let (plan, document) = read(text).unwrap();
    let agent = AgentDefinition {
        name: "a".to_owned(),
        tools: Some(vec!["Bash".to_owned(), "edit".to_owned()]),
        mcp_tools: Some(vec!["files".to_owned()]),
        prompt: "Be quick.".to_owned(),
        ..AgentDefinition::default()
    };
    let agents = BTreeMap::from([("a".to_owned(), agent)]);
    let (_, tasks) = resolve(&plan, &document, &agents, &there()).unwrap();
    assert_eq!(tasks[0].skills.as_deref().unwrap(), ["deploy"]);
    assert_eq!(tasks[0].tools.as_deref().unwrap(), ["Bash"]);
    assert_eq!(tasks[0].servers.as_deref().unwrap(), ["files"]);
    assert_eq!(tasks[1].skills.as_deref().unwrap(), ["content-flow", "deploy"]);
    assert_eq!(tasks[2].depends_on, ["x", "y"], "a phase waits for the one before it");
    assert_eq!(tasks[2].agent_prompt.as_deref(), Some("Be quick."));
}
