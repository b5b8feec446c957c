//! Skills on real directories: files in, list and problems out.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

mod live;
mod offer;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;
use windlass_skills::{ApprovalFn, ParsedSkill, Scope, Skills, parse_markdown, parse_yaml};

pub(crate) fn put(directory: &TempDir, name: &str, content: impl AsRef<[u8]>) {
    let path = directory.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub(crate) fn load(directory: &TempDir, names: &[(&str, Scope)]) -> Skills {
    let directories: Vec<_> =
        names.iter().map(|(name, scope)| (directory.path().join(name), *scope)).collect();
    Skills::load(&directories, &approved(false))
}

/// Whether every project's skill is approved.
pub(crate) fn approved(all: bool) -> ApprovalFn {
    Arc::new(move |_| all)
}

fn shown(skills: &Skills, directory: &Path) -> String {
    let mut text = String::new();
    for skill in skills.list() {
        let meta = &skill.meta;
        writeln!(text, "{} ({}): {}", meta.name, skill.scope, meta.description).unwrap();
    }
    for problem in skills.problems() {
        writeln!(text, "! {problem}").unwrap();
    }
    text.replace(&*directory.to_string_lossy(), "DIR")
}

const PDF: &str = "---\nname: pdf\ndescription: Fill in forms\n---\n\n# PDF\n\nDo this.\n";

/// AX-015, ES-244, ES-245, ES-246, ES-248
#[test]
fn folders_and_lone_files_are_found_and_read() {
    let directory = tempfile::tempdir().unwrap();
    put(&directory, "s/pdf/SKILL.md", PDF);
    put(&directory, "s/pdf/scripts/fill.py", "");
    put(&directory, "s/pdf/evals/case-1/hidden/answer", "");
    put(&directory, "s/review.md", "---\r\ndescription: Look closely\r\n---\r\nLook.\r\n");
    put(
        &directory,
        "s/deploy.yaml",
        "name: ship\ndescription: Ship it\nside_effects: production-mutation\ncontent: |\n  Push.\n",
    );
    put(&directory, "s/README.md", "not a skill");
    put(&directory, "s/empty/notes.txt", "not a skill");
    let skills = load(&directory, &[("missing", Scope::Builtin), ("s", Scope::User)]);
    insta::assert_snapshot!(shown(&skills, directory.path()), @"
    pdf (user): Fill in forms
    review (user): Look closely
    ship (user): Ship it
    ");
    let pdf = skills.get("pdf").unwrap();
    assert_eq!((pdf.content.as_str(), pdf.body.as_str()), (PDF, "# PDF\n\nDo this.\n"));
    let resources: Vec<_> = pdf.resources.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(resources, ["scripts/fill.py"]);
    assert_eq!(skills.get("review").unwrap().body, "Look.\r\n");
    let ship = skills.get("ship").unwrap();
    assert_eq!(ship.body, "Push.\n");
    assert!(!ship.meta.model_invocable && ship.meta.user_invocable, "MS-161");
    assert!(skills.get("nope").is_none() && Skills::empty().list().next().is_none());
}

/// AX-016, AX-017
#[test]
fn the_later_directory_wins_by_name() {
    let directory = tempfile::tempdir().unwrap();
    put(&directory, "home/pdf/SKILL.md", PDF);
    put(&directory, "project/.windlass/skills/pdf.md", PDF.replace("Fill in", "Read"));
    let places = [("home", Scope::User), ("project/.windlass/skills", Scope::Project)]
        .map(|(name, scope)| (directory.path().join(name), scope));
    let loaded = |all| shown(&Skills::load(&places, &approved(all)), directory.path());
    insta::assert_snapshot!(loaded(true), @"pdf (project): Read forms");
    insta::assert_snapshot!(loaded(false), @"pdf (user): Fill in forms");
    let skills = Skills::load(&places, &approved(false));
    let overridden: Vec<_> = skills.overridden().map(|skill| skill.scope).collect();
    assert_eq!((overridden, skills.contested().count()), (vec![Scope::Project], 1));
}

#[test]
fn a_projects_skill_takes_no_name_by_its_case() {
    let directory = tempfile::tempdir().unwrap();
    put(&directory, "home/pdf/SKILL.md", PDF);
    let other = PDF.replace("name: pdf", "name: PDF").replace("Fill in", "Read");
    put(&directory, "project/.windlass/skills/other.md", other);
    let places = [("home", Scope::User), ("project/.windlass/skills", Scope::Project)]
        .map(|(name, scope)| (directory.path().join(name), scope));
    let loaded = |all| Skills::load(&places, &approved(all));
    insta::assert_snapshot!(shown(&loaded(false), directory.path()), @"pdf (user): Fill in forms");
    insta::assert_snapshot!(shown(&loaded(true), directory.path()), @"PDF (project): Read forms");
    assert_eq!((loaded(false).overridden().count(), loaded(false).contested().count()), (1, 1));
}

/// As public collections have them: a colon without quotes, and a title for a name.
#[test]
fn skills_of_public_collections_are_read_with_a_warning() {
    let text = "---\nname: Hook Development\ndescription: Use when: it's needed\n---\nbody\n";
    let read = parse_markdown(text, "hook-development").unwrap();
    assert_eq!(read.meta.name, "hook-development");
    assert_eq!(read.meta.description, "Use when: it's needed");
    let warning = read.warning.unwrap();
    assert_eq!((warning.line, warning.reason.contains("`description`")), (Some(3), true));
    // What no name can be made of stays refused.
    assert!(parse_markdown("---\nname: ../evil one\ndescription: x\n---\n", "ok").is_err());
}

/// Public collections have longer ones.
#[test]
fn a_long_description_is_cut_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let description = "é".repeat(2000);
    put(&directory, "s/x.md", format!("---\nname: x\ndescription: {description}\n---\nbody\n"));
    let skills = load(&directory, &[("s", Scope::User)]);
    let kept = &skills.get("x").unwrap().meta.description;
    assert_eq!(kept.chars().count(), 1024);
    assert!(kept.ends_with("é…"), "{kept}");
    let problem = skills.problems()[0].to_string();
    assert!(
        problem
            .ends_with("x.md:3: `description` has 2000 characters; only the first 1024 are used")
    );
}

/// ES-248, MS-152
#[test]
fn broken_files_are_reported_and_the_rest_is_used() {
    let directory = tempfile::tempdir().unwrap();
    put(&directory, "s/a/SKILL.md", PDF);
    for (name, content) in [
        ("again.md", PDF.to_owned()),
        ("badyaml.md", "---\nname: x\ndescription: [1,\n---\n".to_owned()),
        ("badtype.md", "---\nname: x\ndescription: y\nuser-invocable: perhaps\n---\n".to_owned()),
        ("colon.md", "---\nname: x\ndescription: use this: always\n---\n".to_owned()),
        ("list.md", "---\n- a\n---\n".to_owned()),
        ("longname.md", format!("---\nname: {}\ndescription: y\n---\n", "n".repeat(65))),
        ("nodescription.md", "---\nname: x\n---\nbody\n".to_owned()),
        ("noend.md", "---\nname: x\n".to_owned()),
        ("nofront.md", "# Just text\n".to_owned()),
        ("nocontent.yaml", "name: x\ndescription: y\n".to_owned()),
        ("path.md", "---\nname: ../x\ndescription: y\n---\n".to_owned()),
        ("profile.md", "---\nname: x\ndescription: y\npermission_profile: root\n---\n".to_owned()),
        ("author.md", "---\nname: x\ndescription: y\nauthor_type: robot\n---\n".to_owned()),
        ("context.md", "---\nname: x\ndescription: y\ncontext: thread\n---\n".to_owned()),
        ("huge.md", "x".repeat((1 << 20) + 1)),
    ] {
        put(&directory, &format!("s/{name}"), content);
    }
    put(&directory, "s/bytes.md", b"---\n\xff\n---\n");
    let skills = load(&directory, &[("s", Scope::User)]);
    insta::assert_snapshot!(shown(&skills, directory.path()));
}

#[test]
fn every_key_is_read_in_kebab_and_in_snake_case() {
    let text = |dash: &str, tools: &str| {
        let keys = "user~invocable: false\nmodel~invocable: false\nside~effects: code-edits\n\
            permission~profile: trusted\nauthor~type: auditor\ncontext: fork\ngenesis~scope: ci\n";
        let keys = keys.replace('~', dash);
        format!(
            "---\nname: x\ndescription: y\n{keys}allowed{dash}tools: {tools}\nhooks:\n  - event: stop\n\
            unknown: ignored\n---\nbody"
        )
    };
    let ParsedSkill { meta, body, .. } = parse_markdown(&text("-", "[read, grep]"), "f").unwrap();
    insta::assert_debug_snapshot!(meta);
    assert_eq!(body, "body");
    assert_eq!(parse_markdown(&text("_", "read, grep"), "f").unwrap().meta, meta);
}

/// A few lines that stand for billions: refused, not unfolded.
#[test]
fn a_frontmatter_that_unfolds_without_end_is_refused() {
    let mut front = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let parts = vec![format!("*a{}", level - 1); 10].join(", ");
        front += &format!("b{level}: &a{level} [{parts}]\n");
    }
    let text = format!("---\nname: x\ndescription: y\n{front}hooks: *a11\n---\nbody\n");
    assert!(parse_markdown(&text, "x").is_err());
    assert!(parse_yaml(&format!("description: y\ncontent: z\n{front}hooks: *a11\n"), "x").is_err());
}

#[test]
fn a_project_cannot_make_us_read_files_outside_it() {
    let directory = tempfile::tempdir().unwrap();
    put(&directory, "secret.md", PDF);
    put(&directory, "project/docs/shared.md", PDF.replace("name: pdf", "name: shared"));
    let skills = directory.path().join("project/.windlass/skills");
    std::fs::create_dir_all(&skills).unwrap();
    std::os::unix::fs::symlink("../../../secret.md", skills.join("out.md")).unwrap();
    std::os::unix::fs::symlink("../../docs/shared.md", skills.join("in.md")).unwrap();
    let loaded = load(&directory, &[("project/.windlass/skills", Scope::Project)]);
    insta::assert_snapshot!(shown(&loaded, directory.path()), @"
    shared (project): Fill in forms
    ! DIR/project/.windlass/skills/out.md: is a link to outside the project, which is not followed
    ");
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "(---\n)?[ -~\n\t:\\[\\]{}&*!|>'\"%@`é]{0,200}(\n---\n)?.{0,40}") {
        let _ = parse_markdown(&text, "fallback");
        let _ = parse_yaml(&text, "fallback");
    }

    #[test]
    fn name_description_and_body_come_back_as_written(
        name in "[a-z][a-z0-9-]{0,63}", description in "[a-zA-Z][a-zA-Z ,.]{0,80}[a-z]", body in "[a-z #\n]{0,80}",
    ) {
        let text = format!("---\nname: '{name}'\ndescription: '{description}'\n---\n{body}");
        let ParsedSkill { meta, body: read, .. } = parse_markdown(&text, "fallback").unwrap();
        prop_assert_eq!((meta.name, meta.description), (name, description));
        prop_assert_eq!(read, body.trim_start_matches('\n'));
    }
}
