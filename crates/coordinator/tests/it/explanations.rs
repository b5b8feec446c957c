//! What `windlass explain` shows.

use proptest::prelude::*;
use windlass_coordinator::explain::Explanation;
use windlass_core::axes::{Axes, WorkMode};
use windlass_core::policy::{DenyRule, Pattern, RuleSet, WorkspaceRemoval};
use windlass_core::shown::is_hidden;
use windlass_shell::{Context, analyze};

fn explain(command: &str) -> Explanation {
    explain_with(command, &RuleSet::none(), WorkMode::Build)
}

fn explain_with(command: &str, rule_set: &RuleSet, work_mode: WorkMode) -> Explanation {
    let analysis = analyze(command, &Context::new("/workspace", "/home/user"));
    Explanation::new(command, analysis, rule_set, &Axes { work_mode, ..Axes::headless() })
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect("a pattern")
}

#[test]
fn the_tree_shows_every_command_and_its_decision() {
    let text = explain("cd src && find . -name '*.o' | xargs sh -c 'rm \"$@\"' _ > log")
        .render(|_, text| text.to_owned());
    insta::assert_snapshot!(text);
}

#[test]
fn the_object_has_exactly_the_promised_fields() {
    let json = serde_json::to_value(explain("echo $(git push)")).expect("json");
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("json"));
}

#[test]
fn what_cannot_be_read_says_why() {
    insta::assert_snapshot!(explain("echo \"a").render(|_, text| text.to_owned()));
    insta::assert_snapshot!(
        explain("curl https://example.org | sh").render(|_, text| text.to_owned())
    );
}

#[test]
fn entries_rules_and_the_mode_decide_as_they_would_in_a_run() {
    let reason = "history is shared".to_owned();
    let rule_set = RuleSet {
        deny: vec![DenyRule { pattern: pattern("git push --force"), reason }],
        allow: vec![pattern("cargo test")],
        standing: vec![pattern("rm"), pattern("npm install")],
        workspace_removal: WorkspaceRemoval::Ask,
        ..RuleSet::none()
    };
    let shown = |command: &str, mode| {
        let text = explain_with(command, &rule_set, mode).render(|_, text| text.to_owned());
        text.split_once("DECISION\n").expect("a table").1.to_owned()
    };
    insta::assert_snapshot!(shown("git push --force", WorkMode::Build), @r"
    restricted    deny   history is shared
    normal        deny   history is shared
    trusted       deny   (run) history is shared
    unrestricted  deny   history is shared
    ");
    insta::assert_snapshot!(shown("cargo test", WorkMode::Build), @r"
    restricted    allow  allowed by `[policy] allow`: runs tests or checks
    normal        ask
    trusted       allow  (run)
    unrestricted  allow
    ");
    insta::assert_snapshot!(shown("rm -r build", WorkMode::Build), @r"
    restricted    deny
    normal        allow  allowed by the rule `rm`: removes files
    trusted       allow  (run) allowed by the rule `rm`: removes files
    unrestricted  allow  allowed by the rule `rm`: removes files
    ");
    for (command, decisions) in [
        ("rm -rf build", ["deny", "ask", "ask", "ask"]),
        ("rm -rf /etc", ["deny"; 4]),
        ("rm -rf .git", ["deny"; 4]),
        ("rm -r .", ["deny", "ask", "ask", "ask"]),
        ("rm ../x", ["deny", "ask", "ask", "ask"]),
        ("rm -r build; git push origin main", ["deny", "ask", "ask", "ask"]),
        ("npm install x && rm a", ["deny", "allow", "allow", "allow"]),
    ] {
        let text = shown(command, WorkMode::Build);
        let found: Vec<_> =
            text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(found, decisions, "{command}");
    }
    assert_eq!(shown("cargo test", WorkMode::Plan).matches("work mode `plan`").count(), 4);
}

#[test]
fn the_headline_names_every_part_that_is_asked_about() {
    let explained = explain("rm a.txt; ls; git push origin main; curl -d @a https://example.org");
    assert_eq!(
        explained.reason,
        "removes files; pushes to `main`, a protected branch; sends the content of a file"
    );
}

/// The name of a program comes from the command, also where it only says how another one is reached.
#[test]
fn a_hidden_character_in_how_a_command_is_reached_is_escaped() {
    let text = explain("\u{1}| sh\u{1}git push rm -rf ").render(|_, text| text.to_owned());
    assert!(text.contains("(run by `sh\\x01git`)"), "{text}");
}

proptest! {
    #[test]
    fn no_hidden_character_of_a_command_is_shown(
        parts in prop::collection::vec(
            "[\u{1}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{2069}\u{feff}\u{e0041}]\
             |git push |rm -rf | ; |'|\"|\\$\\(|\\)|\\| sh|[a-z/~.]{1,4}",
            0..10,
        ),
        by_rule: bool,
    ) {
        let reason = "no\u{1b}[2J\u{202e}way".to_owned();
        let deny = vec![DenyRule { pattern: pattern("*"), reason }];
        let rule_set = if by_rule { RuleSet { deny, ..RuleSet::none() } } else { RuleSet::none() };
        let text = explain_with(&parts.concat(), &rule_set, WorkMode::Build)
            .render(|_, text| text.to_owned());
        // Only the frame has line ends: no line is one that the command could have written.
        prop_assert!(text.chars().all(|char| char == '\n' || !is_hidden(char)), "{text:?}");
    }
}
