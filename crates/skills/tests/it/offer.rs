//! Who is offered which skill, and how a person calls for one.

use windlass_core::axes::{Axes, PermissionProfile, WorkMode};
use windlass_skills::{
    InvocationError, Scope, Skills, Viewer, change_notice, fork, invoke, skill_of_goal,
};

use crate::{load, put};

fn skills() -> (tempfile::TempDir, Skills) {
    let directory = tempfile::tempdir().unwrap();
    for (name, keys) in [
        ("anyone", ""),
        ("background", "user-invocable: false\n"),
        ("user-tool", "model-invocable: false\n"),
        ("deploy", "side-effects: production-mutation\nmodel-invocable: true\n"),
        ("builder", "permission-profile: trusted\n"),
        ("planner", "author_type: architect\n"),
        ("narrow", "allowed-tools: [read, grep]\ncontext: fork\ngenesis_scope: ci\n"),
        ("filled", ""),
    ] {
        let body = if name == "filled" { "Look at $ARGUMENTS twice." } else { "Do it." };
        let text = format!("---\nname: {name}\ndescription: About {name}\n{keys}---\n{body}\n");
        put(&directory, &format!("s/{name}.md"), text);
    }
    let skills = load(&directory, &[("s", Scope::User)]);
    assert!(skills.problems().is_empty(), "{:?}", skills.problems());
    (directory, skills)
}

fn viewer(profile: PermissionProfile, mode: WorkMode) -> Viewer {
    Viewer::of(&Axes { permission_profile: profile, work_mode: mode, ..Axes::headless() })
}

fn names(skills: &Skills, viewer: Viewer) -> String {
    let names: Vec<_> = skills.offered(viewer).map(|skill| skill.meta.name.as_str()).collect();
    names.join(" ")
}

/// MS-154…161, AX-031
#[test]
fn an_agent_is_offered_what_its_profile_and_role_allow_never_production() {
    let (_directory, skills) = skills();
    let restricted = viewer(PermissionProfile::Restricted, WorkMode::Build);
    assert_eq!(names(&skills, restricted), "anyone background filled narrow");
    let trusted = viewer(PermissionProfile::Trusted, WorkMode::Build);
    assert_eq!(names(&skills, trusted), "anyone background builder filled narrow");
    let architect = viewer(PermissionProfile::Restricted, WorkMode::Plan);
    assert_eq!(names(&skills, architect), "anyone background filled narrow planner");
}

/// AX-032…034, AX-114, MS-154
#[test]
fn a_person_calls_for_a_skill_by_its_name() {
    let (_directory, skills) = skills();
    let viewer = viewer(PermissionProfile::Normal, WorkMode::Build);
    let text = |text: &str| invoke(text, &skills, viewer).unwrap().unwrap().text;
    insta::assert_snapshot!(text("/deploy the web shop"), @r#"
    Follow the skill `deploy`:

    <skill name="deploy">
    Do it.
    </skill>

    Apply it to: the web shop
    "#);
    insta::assert_snapshot!(text("  /filled a.rs\n"), @r#"
    Follow the skill `filled`:

    <skill name="filled">
    Look at a.rs twice.
    </skill>
    "#);
    let narrow = invoke("/narrow", &skills, viewer).unwrap().unwrap();
    assert_eq!(narrow.allowed_tools.unwrap(), ["read", "grep"]);
    assert_eq!(narrow.genesis_scope.unwrap(), "ci");
    insta::assert_snapshot!(invoke("/narrow x", &skills, viewer).unwrap().unwrap().message, @"Let a sub-agent follow the skill `narrow`: call `spawn_agent` with the task `/narrow x` and no other words; the instructions are put in their place. Without that tool, use `read_skill`.");
    let refused = |text: &str| invoke(text, &skills, viewer).unwrap().unwrap_err();
    assert!(matches!(refused("/background"), InvocationError::NotForPeople { .. }));
    insta::assert_snapshot!(refused("/builder now"), @"skill `builder` needs profile `trusted` or more");
    for other in ["/usr/bin/env is missing", "fix /deploy", "/unknown", "", "/"] {
        assert!(invoke(other, &skills, viewer).is_none(), "{other}");
    }
}

/// A body that names its arguments a hundred thousand times does not multiply long arguments.
#[test]
fn arguments_are_filled_in_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let body = "$ARGUMENTS ".repeat(50_000);
    put(&directory, "s/echo.md", format!("---\ndescription: x\n---\n{body}\n"));
    let skills = load(&directory, &[("s", Scope::User)]);
    let text = |arguments: usize| {
        let called = format!("/echo {}", "y".repeat(arguments));
        invoke(&called, &skills, Viewer::default()).unwrap().unwrap().text
    };
    assert!(text(3).contains("yyy yyy yyy") && !text(3).contains("$ARGUMENTS"));
    let long = text(100_000);
    assert!(long.len() < 1 << 20 && long.ends_with(&"y".repeat(100_000)), "{}", long.len());
}

#[test]
fn a_running_agent_reads_only_what_is_new_changed_or_gone() {
    let (directory, before) = skills();
    let viewer = viewer(PermissionProfile::Restricted, WorkMode::Build);
    let known = before.versions(viewer);
    assert!(change_notice(&known, &before, viewer).is_none());
    put(&directory, "s/anyone.md", "---\ndescription: Another\n---\nDo it well.\n");
    put(&directory, "s/fresh.md", "---\ndescription: Fresh\n---\nx\n");
    put(
        &directory,
        "s/builder.md",
        "---\ndescription: hidden\npermission-profile: trusted\n---\nx\n",
    );
    std::fs::remove_file(directory.path().join("s/narrow.md")).unwrap();
    let after = load(&directory, &[("s", Scope::User)]);
    let (text, now) = change_notice(&known, &after, viewer).unwrap();
    insta::assert_snapshot!(text, @r"
    The skills have changed.
    - changed: `anyone`: Another (if you have read it, read it again)
    - new: `fresh`: Fresh
    - gone: `narrow`
    Read one with `read_skill` when it fits what you are doing.
    ");
    assert!(change_notice(&now, &after, viewer).is_none());
}

/// AX-032, AX-034
#[test]
fn a_followed_skill_is_known_by_its_goal_and_limits_tools() {
    let (_directory, skills) = skills();
    let viewer = viewer(PermissionProfile::Normal, WorkMode::Build);
    let goal = fork("/narrow the tests", &skills, viewer).unwrap();
    assert_eq!(skill_of_goal(&goal), Some("narrow"));
    assert!(goal.contains("Apply it to: the tests"), "{goal}");
    assert_eq!(skill_of_goal("fix the build"), None);
    assert!(
        fork("/deploy now", &skills, viewer).is_none(),
        "MS-161: not on a model's own initiative"
    );
    let narrow = skills.get("narrow").unwrap();
    let allowed: Vec<_> = ["read", "grep", "write", "bash"]
        .into_iter()
        .filter(|tool| narrow.allows(&[tool]))
        .collect();
    assert_eq!(allowed, ["read", "grep"]);
    assert!(skills.get("anyone").unwrap().allows(&["bash"]));
    let text = "---\nname: x\ndescription: y\nallowed-tools: Bash(git:*), WebFetch, Task, mcp:time:now\n---\n";
    let directory = tempfile::tempdir().unwrap();
    put(&directory, "s/x.md", text);
    let loaded = load(&directory, &[("s", Scope::User)]);
    let other = loaded.get("x").unwrap();
    let tools: [&[&str]; 5] = [
        &["bash"],
        &["bash_output", "bash"],
        &["web_fetch"],
        &["spawn_agent", "task"],
        &["mcp__time__now"],
    ];
    for tool in tools {
        assert!(other.allows(tool), "{tool:?}");
    }
    assert!(!other.allows(&["write"]) && !other.allows(&["mcp__time__later"]));
}
