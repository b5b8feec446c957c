//! Manifests: what is a plan, and what is refused with its place.

use crate::{problems, read};

const WHOLE: &str = r#"{
  "$schema": "plan.schema.json",
  "id": "checkout",
  "title": "Rebuild the checkout",
  "requiredSkills": ["content-flow", "truth-seeker"],
  "requiredMcpTools": ["context7"],
  "assignedAgents": ["intel", {"name": "builder", "prompt": "Build it.", "tools": ["read", "edit"]}],
  "phases": [
    {"id": "look", "assignedAgent": "intel", "tasks": [
      {"id": "t01", "bestPatternPrompt": "Use /content-flow", "skills": ["content-flow"]}
    ]},
    {"id": "build", "assignedAgent": "builder", "tasks": [
      {"id": "t02", "bestPatternPrompt": "Use mcp:context7:query-docs", "tools": ["read", "mcp:context7"]},
      {"id": "t03", "bestPatternPrompt": "Run `cargo test`", "assignedAgent": "intel", "dependsOn": ["t02"],
       "risk": "high", "mutation": "code-edits", "verification": ["cargo test"], "approval": "required"}
    ]}
  ]
}"#;

/// PL-001, PL-002, PL-003, PL-004, PL-005, PL-007, PL-008
#[test]
fn a_manifest_names_skills_servers_agents_phases_and_tasks() {
    let (plan, _) = read(WHOLE).unwrap();
    assert_eq!(plan.required_skills.as_deref().unwrap(), ["content-flow", "truth-seeker"]);
    assert_eq!(plan.required_mcp_tools.as_deref().unwrap(), ["context7"]);
    let roster: Vec<_> = plan.assigned_agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(roster, ["intel", "builder"]);
    let agents: Vec<_> = plan.tasks().map(|(phase, task)| plan.agent_of(phase, task)).collect();
    assert_eq!(agents, [Some("intel"), Some("builder"), Some("intel")], "the nearest counts");
    let shown = serde_json::to_value(&plan).unwrap();
    assert_eq!(shown["phases"][1]["tasks"][0]["tools"][1], "mcp:context7");
    assert_eq!(shown["phases"][0]["tasks"][0]["skills"][0], "content-flow");
    assert_eq!(shown["phases"][1]["tasks"][1]["bestPatternPrompt"], "Run `cargo test`");
}

/// PL-039: a plan with skills is valid, and so is one without.
#[test]
fn a_plan_with_and_without_required_skills_is_valid() {
    let (with, _) = read(r#"{"requiredSkills": ["x"], "phases": []}"#).unwrap();
    assert_eq!(with.required_skills.unwrap(), ["x"]);
    let (without, _) = read(r#"{"phases": [{"tasks": [{"bestPatternPrompt": "/x"}]}]}"#).unwrap();
    assert_eq!(without.required_skills, None);
    let names: Vec<_> = without.tasks().map(|(phase, task)| (&phase.id, &task.id)).collect();
    assert_eq!(names, [(&"p1".to_owned(), &"t01".to_owned())]);
}

/// PL-040, PL-041: `null` is refused, for this key and for any other.
#[test]
fn null_is_refused_with_its_line() {
    insta::assert_snapshot!(problems("{\n  \"title\": \"x\",\n  \"requiredSkills\": null\n}"), @"plan.json:3: `requiredSkills`: must be a list, not `null`; leave the key out instead");
    let every = r#"{"title": null, "requiredMcpTools": null, "assignedAgents": null,
        "phases": [{"assignedAgent": null, "tasks": [{"bestPatternPrompt": null, "tools": [null], "risk": null}]}]}"#;
    insta::assert_snapshot!(problems(every), @r"
    plan.json:1: `assignedAgents`: must be a list, not `null`; leave the key out instead
    plan.json:1: `title`: must be a text, not `null`; leave the key out instead
    plan.json:1: `requiredMcpTools`: must be a list, not `null`; leave the key out instead
    plan.json:2: `phases[0].tasks[0].bestPatternPrompt`: must be a text, not `null`; leave the key out instead
    plan.json:2: `phases[0].tasks[0].tools[0]`: must be a text, not `null`; leave the key out instead
    plan.json:2: `phases[0].tasks[0].risk`: must be a text, not `null`; leave the key out instead
    plan.json:2: `phases[0].assignedAgent`: must be a text, not `null`; leave the key out instead
    ");
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_one() {
    let text = "{\n \"requiredSkill\": [],\n \"phases\": [\n  {\"task\": []},\n  {\"tasks\": [{\"bestPatternPromt\": \"/x\"}]}\n ]\n}";
    insta::assert_snapshot!(problems(text), @r"
    plan.json:2: `requiredSkill`: unknown key; did you mean `requiredSkills`?
    plan.json:4: `phases[0].task`: unknown key; did you mean `tasks`?
    plan.json:5: `phases[1].tasks[0].bestPatternPromt`: unknown key; did you mean `bestPatternPrompt`?
    plan.json:5: `phases[1].tasks[0]`: `bestPatternPrompt` is missing
    ");
}

#[test]
fn what_is_not_json_and_a_repeated_key_have_lines() {
    insta::assert_snapshot!(problems("{\n \"title\": \"x\",\n}"), @"plan.json:3: not JSON: trailing comma (column 1)");
    insta::assert_snapshot!(problems("{\"title\": \"x\",\n \"title\": \"y\"}"), @"plan.json:2: `title`: this key appears twice in one object");
    insta::assert_snapshot!(problems("[]"), @"plan.json:1: must be an object, not a list");
}

/// PL-009: whoever is assigned is in the roster.
#[test]
fn an_agent_outside_the_roster_is_an_error() {
    let text = r#"{"assignedAgents": ["intel", "builder"],
      "assignedAgent": "nobody",
      "phases": [{"assignedAgent": "intle", "tasks": [
        {"bestPatternPrompt": "/x", "assignedAgent": "auditor"}]}]}"#;
    insta::assert_snapshot!(problems(text), @r"
    plan.json:2: `assignedAgent`: agent `nobody` is not in the roster (`assignedAgents`: `intel`, `builder`)
    plan.json:3: `phases[0].assignedAgent`: agent `intle` is not in the roster; did you mean `intel`? (`assignedAgents`: `intel`, `builder`)
    plan.json:4: `phases[0].tasks[0].assignedAgent`: agent `auditor` is not in the roster (`assignedAgents`: `intel`, `builder`)
    ");
}

/// PL-069, O-01: a task narrows what its plan names.
#[test]
fn a_task_cannot_widen_its_plan() {
    let text = r#"{"requiredSkills": ["content-flow"], "requiredMcpTools": ["context7"],
      "assignedAgents": [{"name": "a", "skills": ["other"], "mcpTools": ["files"]}],
      "phases": [{"tasks": [
        {"bestPatternPrompt": "/x", "skills": ["content-flo"], "tools": ["read", "mcp:context8:x"]}]}]}"#;
    insta::assert_snapshot!(problems(text), @r"
    plan.json:2: `assignedAgents[0].skills[0]`: skill `other` is not in the plan's `requiredSkills`
    plan.json:2: `assignedAgents[0].mcpTools[0]`: MCP server `files` is not in the plan's `requiredMcpTools`
    plan.json:4: `phases[0].tasks[0].skills[0]`: skill `content-flo` is not in the plan's `requiredSkills`; did you mean `content-flow`?
    plan.json:4: `phases[0].tasks[0].tools[1]`: MCP server `context8` is not in the plan's `requiredMcpTools`; did you mean `context7`?
    ");
}

/// MS-131: what waits for itself could never start.
#[test]
fn cycles_and_unknown_names_are_found() {
    let task = |id: &str, after: &str| {
        format!(r#"{{"id": "{id}", "bestPatternPrompt": "/x", "dependsOn": [{after}]}}"#)
    };
    let plan =
        |tasks: &[String]| format!(r#"{{"phases": [{{"tasks": [{}]}}]}}"#, tasks.join(",\n"));
    let around = plan(&[task("a", "\"c\""), task("b", "\"a\""), task("c", "\"b\"")]);
    insta::assert_snapshot!(problems(&around), @"plan.json:1: `phases[0].tasks[0].dependsOn`: these tasks wait for each other: a → c → b → a");
    insta::assert_snapshot!(problems(&plan(&[task("a", "\"a\"")])), @"plan.json:1: `phases[0].tasks[0].dependsOn`: these tasks wait for each other: a → a");
    insta::assert_snapshot!(problems(&plan(&[task("a1", ""), task("b", "\"a2\"")])), @"plan.json:2: `phases[0].tasks[1].dependsOn[0]`: there is no task `a2`; did you mean `a1`?");
    let later = r#"{"phases": [
        {"tasks": [{"id": "a", "bestPatternPrompt": "/x", "dependsOn": ["b"]}]},
        {"tasks": [{"id": "b", "bestPatternPrompt": "/x"}]}]}"#;
    insta::assert_snapshot!(problems(later), @"plan.json:2: `phases[0].tasks[0].dependsOn`: these tasks wait for each other: a → b → a");
    let phases = r#"{"phases": [{"id": "one", "dependsOn": ["two"], "tasks": [{"bestPatternPrompt": "/x"}]},
        {"id": "two", "tasks": [{"bestPatternPrompt": "/x"}]}, {"id": "two", "dependsOn": ["thre"]}]}"#;
    insta::assert_snapshot!(problems(phases), @r"
    plan.json:2: `phases[2].id`: there are two phases `two`
    plan.json:2: `phases[2].dependsOn[0]`: there is no phase `thre`
    ");
}

/// MS-216: frontmatter in the manifest has a schema.
#[test]
fn risk_mutation_verification_and_approval_are_checked() {
    let text = r#"{"phases": [{"tasks": [
      {"bestPatternPrompt": "/x", "risk": "hig", "mutation": "all", "approval": true, "verification": "cargo test"},
      {"bestPatternPrompt": "/x", "mutation": "production-mutation", "approval": "none"}]}]}"#;
    insta::assert_snapshot!(problems(text), @r"
    plan.json:2: `phases[0].tasks[0].risk`: `hig` is not allowed; did you mean `high`? (allowed: low, medium, high, critical)
    plan.json:2: `phases[0].tasks[0].mutation`: `all` is not allowed (allowed: none, code-edits, production-mutation)
    plan.json:2: `phases[0].tasks[0].verification`: must be a list, not a text
    plan.json:2: `phases[0].tasks[0].approval`: must be a text, not true or false
    ");
    let text = r#"{"phases": [{"tasks": [
      {"bestPatternPrompt": "/x", "mutation": "production-mutation", "approval": "none"}]}]}"#;
    insta::assert_snapshot!(problems(text), @"plan.json:2: `phases[0].tasks[0].approval`: a `production-mutation` needs `approval: required`");
    let (plan, _) = read(WHOLE).unwrap();
    let needs: Vec<_> = plan.tasks().map(|(_, task)| task.needs_approval()).collect();
    assert_eq!(needs, [false, false, true]);
}

proptest::proptest! {
    /// Whatever a file holds, it is read or refused.
    #[test]
    fn no_text_makes_reading_panic(text in "[\\[\\]{}\",:a-z0-9\\\\ \n]{0,80}") {
        let _ = problems(&text);
    }
}

/// AX-008: a plan may say what must hold before its tasks are done; what is wrong with it is blamed on its line.
#[test]
fn a_contract_of_a_plan_or_task_is_read_with_its_place() {
    let text = r#"{
  "completion": {"checks": {"test": "make test"}, "audit": true},
  "phases": [{"tasks": [
    {"id": "a", "bestPatternPrompt": "/x", "completion": {"required_files": ["a.txt"]}}
  ]}]
}"#;
    let (plan, _) = read(text).unwrap();
    let of_plan = plan.completion.as_ref().unwrap();
    assert_eq!(of_plan.checks[0].command.as_deref(), Some("make test"));
    assert_eq!(plan.task("a").unwrap().completion.as_ref().unwrap().required_files, ["a.txt"]);
    let wrong = text.replace("a.txt", "../a.txt").replace("make test", "");
    insta::assert_snapshot!(problems(&wrong), @r"
    plan.json:2: `completion.checks.test`: is not a command
    plan.json:4: `phases[0].tasks[0].completion.required_files[0]`: names `../a.txt`, which is outside the workspace; give a path below it
    ");
}
