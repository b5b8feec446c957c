//! Prompts that name what to use, and those that only describe it.

use windlass_plan::{Reference, check_prompts, reference};

use crate::read;

/// PL-063, PL-064, PL-065, PL-066
#[test]
fn each_kind_of_reference_is_found() {
    let skill = |name: &str| Some(Reference::Skill(name.to_owned()));
    let tool = |name: &str| Some(Reference::McpTool(name.to_owned()));
    let command = |name: &str| Some(Reference::Command(name.to_owned()));
    for (prompt, found) in [
        ("Use /content-flow to review this page", skill("content-flow")),
        ("/truth-seeker", skill("truth-seeker")),
        ("Review it (with `/content-flow`).", skill("content-flow")),
        ("Use mcp:context7:query-docs to fetch docs", tool("mcp:context7:query-docs")),
        ("Ask mcp:query-docs, then write", tool("mcp:query-docs")),
        (
            "Run nx generate @stackmates/schema:table",
            Some(Reference::Generator("@stackmates/schema:table".to_owned())),
        ),
        ("Run npx tsx tools/scripts/planning/plan-cli.ts list-templates", command("npx tsx")),
        ("Then run `make check` and look", command("make check")),
        ("Run `./scripts/test` twice", command("./scripts/test")),
        ("First cargo test, then stop", command("cargo test")),
    ] {
        assert_eq!(reference(prompt), found, "{prompt}");
    }
}

/// PL-067: a description is no reference, and neither is a path or prose about a program.
#[test]
fn a_description_alone_is_not_a_reference() {
    for prompt in [
        "Review the page with the content flow skill",
        "Use the docs server to fetch documentation",
        "Write the result to /tmp/out and read /etc/hosts",
        "Put it below /usr/share or /workspace",
        "Make sure the tests pass, and go to the next page",
        "and/or, 1/2, https://example.com/x",
        "the cargo workspace and npm packages are described there",
        "Run nx generate something",
        "mcp: and mcp:a:b:c:d",
        "`the schema table` is wrong",
        "",
    ] {
        assert_eq!(reference(prompt), None, "{prompt}");
    }
}

/// PL-006, PL-056, PL-057: the task of a prompt without a reference is named.
#[test]
fn a_task_without_a_reference_is_named_with_its_line() {
    let good = r#"{"phases": [{"tasks": [{"bestPatternPrompt": "Use /x"}, {"bestPatternPrompt": "Use mcp:a"}]}]}"#;
    let (plan, document) = read(good).unwrap();
    assert!(check_prompts(&plan, &document).is_empty());
    let bad = "{\"phases\": [{\"tasks\": [{\"bestPatternPrompt\": \"Use /x\"},\n {\"id\": \"t09\", \"bestPatternPrompt\": \"Use the skill\"}]}]}";
    let (plan, document) = read(bad).unwrap();
    let found = check_prompts(&plan, &document);
    insta::assert_snapshot!(found[0].to_string(), @"plan.json:2: `phases[0].tasks[1].bestPatternPrompt`: the prompt of task `t09` names nothing to use: write `/skill-name`, `mcp:server:tool`, `nx generate @scope/plugin:gen` or a command");
    assert_eq!(found.len(), 1);
}
