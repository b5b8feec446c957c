//! The JSON Schema that editors use says what the program says.

use boon::{Compiler, Schemas};
use serde_json::{Value, json};
use windlass_plan::{SCHEMA, TEMPLATES};

use crate::read;

/// A task with one key changed; `null` removes it.
fn with(key: &str, value: Value) -> Value {
    let mut task = json!({"bestPatternPrompt": "/x"});
    task[key] = value;
    json!({"phases": [{"tasks": [task]}]})
}

fn corpus() -> Vec<Value> {
    let mut all = vec![
        json!({}),
        json!({"requiredSkills": ["x"]}),
        json!({"requiredSkills": null}),
        json!({"requiredSkills": "x"}),
        json!({"requiredSkills": [1]}),
        json!({"requiredSkills": [""]}),
        json!({"requiredSkills": ["x", "x"]}),
        json!({"requiredSkill": ["x"]}),
        json!({"requiredMcpTools": ["a"], "title": "t", "description": "d", "id": "a-1"}),
        json!({"id": "a b"}),
        json!({"id": ".hidden"}),
        json!({"id": "x".repeat(65)}),
        json!({"title": ""}),
        json!({"title": 1}),
        json!({"assignedAgents": ["a", {"name": "b", "permissionProfile": "normal"}]}),
        json!({"assignedAgents": [{"name": "b", "permissionProfile": "all"}]}),
        json!({"assignedAgents": [{"model": "x"}]}),
        json!({"assignedAgents": [{"name": "b", "temperature": 1}]}),
        json!({"assignedAgents": [1]}),
        json!({"phases": {}}),
        json!({"phases": [{"name": "x"}]}),
        json!({"phases": [{"tasks": [{}]}]}),
        json!({"phases": [{"tasks": null}]}),
        json!({"phases": [1]}),
        json!([]),
    ];
    for (key, value) in [
        ("tools", json!(["read"])),
        ("tools", json!([])),
        ("tools", json!(null)),
        ("skills", json!("x")),
        ("risk", json!("high")),
        ("risk", json!("huge")),
        ("mutation", json!("none")),
        ("mutation", json!("edits")),
        ("approval", json!("required")),
        ("approval", json!(true)),
        ("verification", json!(["cargo test"])),
        ("verification", json!([{}])),
        (
            "steps",
            json!([{"step": 0, "text": "LOAD CONTEXT: x"}, {"step": 99, "text": "SAVE STATE: x"}]),
        ),
        ("steps", json!([{"step": "0", "text": "LOAD CONTEXT"}])),
        ("steps", json!([{"text": "LOAD CONTEXT"}])),
        ("completion", json!({"checks": {"test": true, "docs": "mdl docs"}, "audit": "person"})),
        ("completion", json!({"required_files": ["a.rs"], "commitments": {"min_count": 2}})),
        ("completion", json!({"checks": {"docs": true}})),
        ("completion", json!({"checks": {"docs": {"timeout_seconds": 3}}})),
        ("completion", json!({"checks": {"test": {"timeout_seconds": 0}}})),
        ("completion", json!({"audit": "nobody"})),
        ("completion", json!({"version": "1.0"})),
        ("completion", json!({"check": {}})),
        ("completion", json!(null)),
        ("unknown", json!(1)),
        ("bestPatternPrompt", json!(7)),
        ("file", json!(7)),
    ] {
        all.push(with(key, value));
    }
    all.extend(
        TEMPLATES.iter().map(|one| serde_json::from_str(one.text).expect("templates are JSON")),
    );
    all
}

#[test]
fn the_schema_and_the_program_agree() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut compiler = Compiler::new();
    compiler.add_resource("plan:///schema", schema).unwrap();
    let mut schemas = Schemas::new();
    let index = compiler.compile("plan:///schema", &mut schemas).unwrap();
    let (mut good, mut bad) = (0, 0);
    for plan in corpus() {
        let by_schema = schemas.validate(&plan, index).is_ok();
        let by_us = read(&plan.to_string());
        assert_eq!(by_schema, by_us.is_ok(), "{plan:#}\n{:?}", by_us.err());
        *(if by_schema { &mut good } else { &mut bad }) += 1;
    }
    assert!(good >= 10 && bad >= 20, "{good} good and {bad} bad");
}

/// Every key that the program knows is in the schema, and no other.
#[test]
fn the_schema_has_the_keys_of_the_program() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let phase = &schema["properties"]["phases"]["items"];
    let task = &phase["properties"]["tasks"]["items"];
    for (object, path) in [
        (&schema, ""),
        (&schema["properties"]["assignedAgents"]["items"]["anyOf"][1], "assignedAgents"),
        (phase, "phases"),
        (task, "tasks"),
        (&task["properties"]["steps"]["items"], "steps"),
    ] {
        assert_eq!(object["additionalProperties"], false, "{path}");
        for key in object["properties"].as_object().unwrap().keys() {
            let inner = json!({ key: 1 });
            let plan = match path {
                "" => inner,
                "assignedAgents" => json!({"assignedAgents": [inner]}),
                "phases" => json!({"phases": [inner]}),
                "tasks" => json!({"phases": [{"tasks": [inner]}]}),
                _ => json!({"phases": [{"tasks": [{"steps": [inner]}]}]}),
            };
            let problems = read(&plan.to_string()).err().map(|found| found.to_string());
            let unknown = problems.unwrap_or_default().contains("unknown key");
            assert!(!unknown, "the program does not know `{key}` of `{path}`");
        }
    }
}
