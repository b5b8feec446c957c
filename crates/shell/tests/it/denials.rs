//! What the model reads after a denial.

use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::policy::denial::DeniedCall;
use windlass_core::policy::{Assessment, Class, Decision, Denial, Rules, decide};
use windlass_shell::analyze;

use crate::corpus::context;

fn denial(command: &str, profile: PermissionProfile, rules: &Rules) -> Denial {
    let analysis = analyze(command, &context());
    let axes = Axes { permission_profile: profile, ..Axes::headless() };
    let verdict = decide(&analysis.assessment, &axes, rules);
    assert_eq!(verdict.decision, Decision::Deny, "{command}");
    Denial::new("bash", DeniedCall::Command(&analysis), &verdict)
}

/// ES-116, AX-022, AX-023, AX-037, AX-098
#[test]
fn a_denial_has_the_fixed_line_the_reason_and_suggestions() {
    let denial = denial("rm -rf build", PermissionProfile::Trusted, &Rules::default());
    insta::assert_snapshot!(denial.render(), @r#"
    DENIED: This action is not permitted.
    {"tool":"bash","reason":"denied under every profile: `rm -rf` deletes a directory tree without confirmation; `rm -r build` can be approved","suggestions":["remove the files you mean by name, or a directory of the workspace with `rm -r`, which asks the user","move them aside instead, such as `mv build build.old`","use the project's own clean command","ask the user with `ask_user`, saying what you need and why"],"can_retry":true}
    "#);
}

/// ES-263
#[test]
fn sudo_and_rm_rf_are_denied_under_all_four_profiles() {
    for command in ["sudo ls", "rm -rf build", "ls; sudo ls", "echo x | xargs rm -rf"] {
        for &profile in PermissionProfile::ALL {
            denial(command, profile, &Rules::default());
        }
    }
}

/// AX-068, AX-119
#[test]
fn a_denied_push_suggests_a_pull_request() {
    let reason = "Executors cannot push directly. Create a PR for review.";
    let rules = Rules { denylisted: Some(reason.into()), ..Rules::default() };
    let denial = denial("git push origin main", PermissionProfile::Unrestricted, &rules);
    assert_eq!(denial.reason, reason);
    assert!(denial.suggestions.iter().any(|text| text.contains("gh pr create")), "{denial:?}");
    assert!(denial.suggestions.iter().any(|text| text.contains("ask the user to push")));
}

/// AX-026, AX-100
#[test]
fn every_denial_of_the_corpus_ends_with_asking_the_user() {
    for entry in crate::corpus::entries() {
        let analysis = analyze(&entry.command, &context());
        let axes = Axes { permission_profile: PermissionProfile::Restricted, ..Axes::headless() };
        let verdict = decide(&analysis.assessment, &axes, &Rules::default());
        let denial = Denial::new("bash", DeniedCall::Command(&analysis), &verdict);
        let last = denial.suggestions.last().expect("a suggestion");
        assert!(last.contains("ask_user"), "{}", entry.command);
    }
}

#[test]
fn a_denied_write_suggests_saying_what_should_be_changed() {
    let axes = Axes { permission_profile: PermissionProfile::Restricted, ..Axes::headless() };
    let call = Assessment::of(Class::Edit, "writes `a`");
    let rules = Rules {
        filtered: Some("`write` is not a tool of an architect".into()),
        ..Rules::default()
    };
    let verdict = decide(&call, &axes, &rules);
    let denial = Denial::new("write", DeniedCall::Other(call.class), &verdict);
    assert!(denial.suggestions.iter().any(|text| text.contains("say in your reply")), "{denial:?}");
    assert!(!denial.can_retry);
}

#[test]
fn a_person_may_say_why() {
    let analysis = analyze("rm a", &context());
    let denial = Denial::by_person("bash", DeniedCall::Command(&analysis), Some("we need it"));
    assert_eq!(denial.reason, "the user denied it: we need it");
    assert!(denial.render().starts_with("DENIED: This action is not permitted.\n{"));
}

/// A suggestion that names a tool we do not have sends the agent into the next error.
#[test]
fn suggestions_name_only_tools_that_exist() {
    let axes = Axes { permission_profile: PermissionProfile::Restricted, ..Axes::headless() };
    let call = Assessment::of(Class::Edit, "writes `a`");
    let verdict = decide(&call, &axes, &Rules::default());
    let of_write = Denial::new("write", DeniedCall::Other(call.class), &verdict);
    let of_command = denial("cargo build", PermissionProfile::Restricted, &Rules::default());
    for text in of_write.suggestions.iter().chain(&of_command.suggestions) {
        assert!(!text.contains("`commit`"), "{text}");
    }
}
