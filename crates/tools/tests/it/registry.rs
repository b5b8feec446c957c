//! Which tools there are, how the model sees them, and what it reads about bad arguments.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::json;
use windlass_core::axes::PermissionProfile;
use windlass_core::layout::Layout;
use windlass_core::policy::Class;
use windlass_core::role::Role;
use windlass_tools::registry::{MAX_ARGUMENT_BYTES, reachable_under};
use windlass_tools::{Category, Executor, Registry, Subject, Tool};

#[test]
fn every_schema_of_ours_compiles_and_no_two_names_are_alike() {
    let mut again = Registry::default();
    for tool in Registry::builtin().iter() {
        again.add(tool.clone()).unwrap();
    }
}

/// ES-185, ES-186, ES-187, ES-188, ES-189, ES-193, ES-194, ES-195, ES-196, ES-197, ES-198, ES-199, ES-200, ES-201,
/// ES-007, ES-008, ES-032, ES-254, ES-255, ES-256, ES-257
#[test]
fn the_tools_stand_in_a_stable_order_with_their_risk_and_category() {
    let mut table = String::new();
    for tool in Registry::builtin().iter() {
        let (class, risk) = tool.min_class();
        let by = if tool.executor() == Executor::Plain { "" } else { "loop" };
        let row = format!("{:20} {risk:7} {class:5} {:20} {by}", tool.name(), tool.category());
        writeln!(table, "{}", row.trim_end()).unwrap();
    }
    insta::assert_snapshot!(table);
}

/// C-09: the lists of a role are written by hand, and people read them. Which commands a role may run is its own.
#[test]
fn every_role_lists_the_tools_that_only_read_or_take_notes() {
    for tool in Registry::builtin().iter().filter(|tool| tool.category() != Category::Environment) {
        if !matches!(tool.min_class().0, Class::Read | Class::Note) {
            continue;
        }
        for role in Role::ALL {
            let listed = role.config().allowed_tools;
            assert!(listed.iter().any(|name| name == tool.name()), "{role}: {}", tool.name());
        }
    }
}

/// ES-139, ES-141, ES-142, ES-143, ES-144, ES-174, ES-175, ES-178, ES-179, ES-202, ES-211, ES-212, ES-223,
/// ES-224, ES-225
#[test]
fn the_model_is_shown_plain_schemas() {
    let mut shown = String::new();
    for spec in Registry::builtin().specs(&Layout::service(), |_| true) {
        let parameters: serde_json::Value = serde_json::from_str(spec.parameters.text()).unwrap();
        let schema = serde_json::to_string_pretty(&parameters).unwrap();
        writeln!(shown, "## {}\n{}\n\n{schema}\n", spec.name, spec.description).unwrap();
        assert_eq!(parameters["additionalProperties"], false, "{}", spec.name);
        // A property may be called `title`; a title of a schema is noise.
        for noise in ["$ref", "$schema", "\"title\": \"", "null"] {
            assert!(!schema.contains(noise), "{} has {noise}", spec.name);
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_step_that_is_completed_is_done() {
    let steps = |status: &str| {
        format!(r#"{{"steps": [{{"id": "1", "description": "x", "status": "{status}"}}]}}"#)
    };
    let read = |status| Registry::builtin().check("update_plan", &steps(status)).unwrap();
    assert_eq!(read("completed"), read("done"));
}

/// ES-202
#[test]
fn specs_are_the_same_bytes_every_time() {
    let bytes =
        || serde_json::to_string(&Registry::builtin().specs(&Layout::service(), |_| true)).unwrap();
    assert_eq!(bytes(), bytes());
}

/// ES-203, MS-066
#[test]
fn a_stricter_profile_is_not_offered_what_it_could_never_use() {
    let registry = Registry::builtin();
    let names = |profile| -> Vec<String> {
        registry
            .specs(&Layout::service(), reachable_under(profile))
            .into_iter()
            .map(|spec| spec.name)
            .collect()
    };
    let normal = names(PermissionProfile::Normal);
    let restricted = names(PermissionProfile::Restricted);
    let missing: Vec<_> = normal.iter().filter(|name| !restricted.contains(name)).collect();
    assert_eq!(missing, ["write", "edit", "bash_kill"]);
}

/// ES-204, ES-141, ES-142, ES-225
#[test]
fn bad_arguments_are_answered_with_what_is_allowed() {
    let registry = Registry::builtin();
    let cases = [
        ("Read", "{}"),
        ("read_file", "{}"),
        ("rd", "{}"),
        ("frobnicate", "{}"),
        ("read", "{\"path\": \"a"),
        ("read", "[1]"),
        ("read", ""),
        ("read", "{\"path\": 1, \"ofset\": 2}"),
        ("read", "{\"path\": \"a\", \"offset\": 0}"),
        ("read", "{\"path\": \"a\", \"limit\": \"ten\"}"),
        ("update_plan", "{}"),
        (
            "update_plan",
            "{\"steps\": [{\"id\": \"1\", \"description\": \"x\", \"status\": \"doing\"}]}",
        ),
        ("update_plan", "{\"steps\": [{\"id\": \"1\", \"when\": 1, \"status\": \"done\"}]}"),
        ("ask_user", "{\"question\": \"\"}"),
        ("edit", "{\"path\": \"a\", \"old_string\": \"\", \"new_string\": \"b\"}"),
    ];
    let mut shown = String::new();
    for (name, arguments) in cases {
        let outcome = registry.check(name, arguments).unwrap_err();
        assert!(outcome.is_error());
        writeln!(shown, "{name} {arguments}\n{}\n", outcome.text).unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn arguments_over_the_limit_are_refused_unread() {
    let huge = format!("{{\"path\": \"{}\"}}", "x".repeat(MAX_ARGUMENT_BYTES));
    let outcome = Registry::builtin().check("read", &huge).unwrap_err();
    assert!(outcome.text.contains("too large"), "{}", outcome.text);
}

#[test]
fn an_optional_field_may_be_null() {
    let value = Registry::builtin().check("read", r#"{"path": "a", "offset": null}"#).unwrap();
    assert_eq!(value, serde_json::json!({ "path": "a" }));
    let step = r#"{"steps": [{"id": "1", "description": "x", "status": "done", "notes": null}]}"#;
    assert!(Registry::builtin().check("update_plan", step).is_ok());
    assert!(Registry::builtin().check("read", r#"{"path": null}"#).is_err());
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let mut registry = Registry::builtin();
    let again = registry.get("read").unwrap().clone();
    assert_eq!(registry.add(again).unwrap_err().to_string(), "there are two tools named `read`");
}

proptest::proptest! {
    #[test]
    fn checking_never_panics(name in ".{0,40}", arguments in ".{0,200}", number: i64) {
        static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::builtin);
        let _ = REGISTRY.check(&name, &arguments);
        let json = serde_json::json!({ "path": [&name], "steps": { "a": number }, "query": arguments });
        for tool in REGISTRY.iter() {
            let _ = REGISTRY.check(tool.name(), &arguments);
            let _ = REGISTRY.check(tool.name(), &json.to_string());
        }
    }
}

/// AX-034
#[test]
fn a_skill_cannot_take_away_notes_questions_and_other_skills() {
    let registry = Registry::builtin();
    let those = |is: fn(&dyn Tool) -> bool| -> Vec<String> {
        let found = registry.iter().filter(|tool| is(tool.as_ref()));
        found.map(|tool| tool.name().to_owned()).collect()
    };
    assert_eq!(those(|tool| tool.is_note()), ["update_plan", "save_memo", "search_memo"]);
    let others = ["ask_user", "list_skills", "read_skill", "publish_deliverable"];
    assert_eq!(those(|tool| tool.is_always_allowed() && !tool.is_note()), others);
}

#[test]
fn a_tool_answers_to_the_names_that_other_agents_give_it() {
    let registry = Registry::builtin();
    let names = |name: &str| registry.get(name).unwrap().names().join(" ");
    assert_eq!(names("spawn_agent"), "spawn_agent task");
    assert_eq!(names("bash_output"), "bash_output bash");
    assert_eq!(names("read"), "read");
}

#[test]
fn a_call_says_what_it_is_about() {
    let registry = Registry::builtin();
    let subject = |name: &str, arguments| registry.get(name).unwrap().subject(&arguments);
    let file = |path: &str| Subject::File(path.to_owned());
    assert_eq!(subject("read", json!({ "path": "a.rs" })), file("a.rs"));
    assert_eq!(subject("publish_deliverable", json!({ "filepath": "b.md" })), file("b.md"));
    assert_eq!(subject("bash", json!({ "command": "ls" })), Subject::Command("ls".to_owned()));
    let note = Subject::Note { name: "n.md".to_owned(), content: "text".to_owned() };
    assert_eq!(subject("save_memo", json!({ "filename": "n.md", "content": "text" })), note);
    assert_eq!(subject("list_skills", json!({})), Subject::Other);
}
