//! `list_skills` and `read_skill`

use serde_json::json;
use windlass_skills::{Scope, Skills};

use crate::bench::Bench;

fn bench() -> Bench {
    let bench = Bench::new();
    let put = |name: &str, content: &str| {
        let path = bench.outside.path().join("skills").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    put(
        "pdf/SKILL.md",
        "---\nname: pdf\ndescription: Fill in forms\n---\n# PDF\n\nUse \x1b[1mthis\x1b[0m.\n",
    );
    put("pdf/scripts/fill.py", "");
    put(
        "sly.md",
        "---\nname: sly\ndescription: \"Do\\u200b it\\u202e \\U000E0041\\e[2J\"\n---\nX.\n",
    );
    put("review.md", "---\nname: review\ndescription: Look closely\n---\nLook.\n");
    put(
        "ship.md",
        "---\nname: ship\ndescription: Ship it\nside-effects: production-mutation\n---\nPush.\n",
    );
    put(
        "forked.md",
        "---\nname: forked\ndescription: Apart\ncontext: fork\nallowed-tools: read\nauthor-type: executor\n---\nX.\n",
    );
    let skills = Skills::load(
        &[(bench.outside.path().join("skills"), Scope::User)],
        &(std::sync::Arc::new(|_: &windlass_skills::Skill| false) as windlass_skills::ApprovalFn),
    );
    bench.with_skills(skills)
}

/// ES-008, ES-198, ES-245, ES-254, MS-155, MS-161
#[tokio::test]
async fn skills_are_listed_by_name_and_description() {
    let mut bench = bench();
    // What is hidden in a description is marked.
    insta::assert_snapshot!(bench.ok("list_skills", json!({})).await, @r"
    - pdf: Fill in forms
    - review: Look closely
    - sly: Do\u{200B} it\u{202E} \u{E0041}␛[2J
    ");
    assert_eq!(bench.assessed("list_skills", json!({})).await, "read LOW: lists the skills");
    assert_eq!(Bench::new().ok("list_skills", json!({})).await, "There are no skills.");
}

/// ES-008, ES-199, ES-246, ES-247, ES-254, MS-161
#[tokio::test]
async fn a_skill_is_read_whole_or_the_known_ones_are_named() {
    let mut bench = bench();
    let name = |name: &str| json!({ "name": name });
    insta::assert_snapshot!(bench.ok("read_skill", name("pdf")).await, @"
    ---
    name: pdf
    description: Fill in forms
    ---
    # PDF

    Use ␛[1mthis␛[0m.

    [Other files of this skill, under /skills/pdf/: scripts/fill.py]
    ");
    assert!(bench.ok("read_skill", name("review")).await.ends_with("---\nLook.\n"));
    insta::assert_snapshot!(bench.error("read_skill", name("nope")).await,
        @"Error: there is no skill `nope`. The skills are: pdf, review, sly.");
    insta::assert_snapshot!(bench.error("read_skill", name("ship")).await,
        @"Error: skill `ship` is used only when the user calls for it. Ask the user to run /ship.");
    assert_eq!(bench.assessed("read_skill", name("pdf")).await, "read LOW: reads skill `pdf`");
}

/// AX-031, AX-032, AX-034, MS-157
#[tokio::test]
async fn a_skill_that_forks_is_not_read_by_an_agent_that_spawns() {
    let mut bench = bench();
    let forked = json!({ "name": "forked" });
    assert!(
        bench.error("read_skill", forked.clone()).await.contains("there is no skill"),
        "no role"
    );
    let axes = windlass_core::axes::Axes::headless();
    bench.facts.viewer = windlass_skills::Viewer::of(&axes);
    let inline = bench.ok("read_skill", forked.clone()).await;
    assert!(
        inline.contains("\nX.\n") && inline.contains("use only these tools: read]"),
        "{inline}"
    );
    bench.facts.may_spawn = true;
    let delegated = bench.ok("read_skill", forked).await;
    assert!(delegated.contains("`spawn_agent` with the task `/forked"), "{delegated}");
    assert!(!delegated.contains("\nX.\n"), "{delegated}");
}
