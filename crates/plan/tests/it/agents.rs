//! Definitions of agents, and tasks in files of their own.

use windlass_core::axes::PermissionProfile;
use windlass_core::planning::{Approval, Mutation, Severity};
use windlass_plan::{parse_agent, parse_task_file};

#[test]
fn a_definition_gives_model_tools_and_prompt() {
    let text = "---\ndescription: Finds things out\nmodel: openai/deep\npermission-profile: normal\ntools: read, grep\nskills: [content-flow]\n---\nYou find things out.\n";
    let agent = parse_agent(".windlass/agents/intel.md", "intel", text).unwrap();
    assert_eq!((agent.name.as_str(), agent.prompt.as_str()), ("intel", "You find things out."));
    assert_eq!(agent.model.as_deref(), Some("openai/deep"));
    assert_eq!(agent.permission_profile, Some(PermissionProfile::Normal));
    assert_eq!(agent.tools.as_deref().unwrap(), ["read", "grep"]);
    assert_eq!(agent.needs_trust(), ["model", "permission profile"]);
}

#[test]
fn a_wrong_definition_is_refused_with_file_and_line() {
    let wrong = |text: &str| parse_agent("a.md", "a", text).unwrap_err().to_string();
    insta::assert_snapshot!(wrong("no frontmatter"), @"a.md:1: the frontmatter is missing: the first line must be `---`");
    insta::assert_snapshot!(wrong("---\nmodle: x\n---\n"), @"a.md:2: `modle`: unknown key; did you mean `model`?");
    insta::assert_snapshot!(wrong("---\ndescription: x\npermission-profile: trustd\n---\n"), @"a.md:3: `permission-profile`: `trustd` is not allowed; did you mean `trusted`? (allowed: restricted, normal, trusted, unrestricted)");
    insta::assert_snapshot!(wrong("---\nname: b\n---\n"), @"a.md:2: `name`: its name is `b`, and its file is named `a`");
    insta::assert_snapshot!(wrong("---\nmodel:\n---\n"), @"a.md:2: `model`: `null` is not a value; leave the key out instead");
}

/// MS-216: a task's file has a frontmatter with a schema.
#[test]
fn a_task_file_has_risk_mutation_verification_and_approval() {
    let text = "---\ntitle: Ship it\nrisk: critical\nmutation: production-mutation\nverification: [\"cargo test\"]\napproval: required\n---\nRun `make deploy`.\n";
    let task = parse_task_file("tasks/t01.md", "t01", text).unwrap();
    assert_eq!((task.id.as_str(), task.title.as_str()), ("t01", "Ship it"));
    assert_eq!(task.best_pattern_prompt, "Run `make deploy`.");
    assert_eq!(task.risk, Some(Severity::Critical));
    assert_eq!(task.mutation, Some(Mutation::ProductionMutation));
    assert_eq!(task.approval, Some(Approval::Required));
    assert_eq!(task.verification, ["cargo test"]);
    let wrong = |text: &str| parse_task_file("t.md", "t", text).unwrap_err().to_string();
    insta::assert_snapshot!(wrong("---\ntitle: x\nrisks: low\n---\ntext\n"), @"t.md:3: `risks`: unknown key; did you mean `risk`?");
    insta::assert_snapshot!(wrong("---\napproval: maybe\n---\ntext\n"), @"t.md:2: `approval`: `maybe` is not allowed (allowed: none, required)");
    insta::assert_snapshot!(wrong("---\nrisk: low\n---\n"), @"t.md:1: the prompt is missing: write it after the frontmatter");
    insta::assert_snapshot!(wrong("---\ntools:\n---\ntext\n"), @"t.md:2: `tools`: must be a list, not `null`; leave the key out instead");
}
