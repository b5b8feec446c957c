//! Deny rules, allow entries, session rules and approvals match structure, not text.

use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::policy::allow::{denylist_reason, is_allowlisted};
use windlass_core::policy::{
    AllowRule, Class, CommandAnalysis, Decision, DenyRule, Pattern, RuleScope, Rules, decide,
};
use windlass_shell::{Context, CustomRule, analyze};

use crate::corpus::context;

fn analysis(command: &str) -> CommandAnalysis {
    analyze(command, &context())
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect("a pattern")
}

fn rule(words: &[&str]) -> AllowRule {
    AllowRule::Command { words: words.iter().map(|word| (*word).to_owned()).collect() }
}

/// MS-017, AX-022
#[test]
fn a_deny_rule_matches_a_command_wherever_and_however_it_is_written() {
    let rules =
        [DenyRule { pattern: pattern("git push --force"), reason: "never rewrite history".into() }];
    for command in [
        "git push --force",
        "git push origin topic --force",
        "ls; git push --force",
        "sh -c 'git push --force origin x'",
        "/usr/bin/git push --force",
        "env A=b git push --force",
        "c=git; $c push --force",
    ] {
        let found = denylist_reason(&rules, "bash", Some(&analysis(command)));
        assert_eq!(found.as_deref(), Some("never rewrite history"), "{command}");
    }
    for command in ["git push", "echo git push --force", "git commit -m 'push --force'"] {
        assert_eq!(denylist_reason(&rules, "bash", Some(&analysis(command))), None, "{command}");
    }
}

#[test]
fn a_deny_rule_may_name_a_tool() {
    let rules = [DenyRule { pattern: pattern("mcp:*"), reason: "no servers".into() }];
    assert_eq!(denylist_reason(&rules, "mcp:github:search", None).as_deref(), Some("no servers"));
    assert_eq!(denylist_reason(&rules, "read", None), None);
}

/// MS-062
#[test]
fn an_allow_entry_must_name_every_command_that_does_more_than_look() {
    let entries = [pattern("cargo test"), pattern("npm run *")];
    assert!(is_allowlisted(&entries, &analysis("cargo test --workspace")));
    assert!(is_allowlisted(&entries, &analysis("cd sub && cargo test | tail -5")));
    assert!(!is_allowlisted(&entries, &analysis("cargo test; rm x")));
    assert!(!is_allowlisted(&entries, &analysis("cargo test && git commit -m x")));
    assert!(!is_allowlisted(&entries, &analysis("cargo test > /etc/x")));
}

#[test]
fn a_session_rule_is_not_extended_by_another_command() {
    let rule = rule(&["npm", "test"]);
    for command in
        ["npm test", "npm test -- --watch", "cd a && npm test | tail", "timeout 5 npm test"]
    {
        assert!(rule.covers(&analysis(command)), "{command}");
    }
    for command in [
        "npm test; rm x",
        "npm test && npm publish",
        "npm test $(npm publish)",
        "npm testing",
        "npm test > /etc/x",
        "npm install",
        "PAGER='npm publish' npm test",
        "npm test || curl https://example.org",
    ] {
        assert!(!rule.covers(&analysis(command)), "{command}");
    }
}

/// MS-068
#[test]
fn no_session_rule_covers_what_destroys_or_cannot_be_read() {
    let rules =
        [rule(&["rm"]), rule(&["git"]), AllowRule::Class { class: Class::Destructive }, rule(&[])];
    for command in ["rm a", "git reset --hard", "git push origin main", "$x", "sudo ls", "eval $x"]
    {
        for rule in &rules {
            assert!(!rule.covers(&analysis(command)), "{command} by {rule:?}");
        }
    }
    for command in ["rm a", "git reset --hard", "git push origin main", "sudo ls", "$x"] {
        assert_eq!(AllowRule::for_analysis(&analysis(command)), None, "{command}");
    }
}

/// Permission to read one file of secrets is not permission to read others.
#[test]
fn allow_all_for_secrets_is_for_that_very_command_or_not_offered() {
    let offered = |command: &str| AllowRule::for_analysis(&analysis(command));
    assert_eq!(offered("cat /etc/shadow"), Some(rule(&["cat", "/etc/shadow"])));
    assert_eq!(offered("cat /etc/shadow; head ~/.ssh/id_rsa"), None);
    let given = rule(&["cat", "/etc/shadow"]);
    assert!(given.covers(&analysis("cat /etc/shadow")));
    assert!(given.covers(&analysis("cd src && cat /etc/shadow | wc -l")));
    for command in ["cat /etc/shadow ~/.ssh/id_rsa", "cat ~/.ssh/id_rsa", "sort /etc/shadow"] {
        assert!(!given.covers(&analysis(command)), "{command}");
        assert!(!rule(&["cat"]).covers(&analysis(command)), "{command}");
        assert!(
            !AllowRule::Class { class: Class::Publish }.covers(&analysis(command)),
            "{command}"
        );
    }
}

/// MS-063, MS-064, MS-068: what each profile lets through of everyday commands; what destroys or touches
/// production is confirmed under every one.
#[test]
fn everyday_commands_are_decided_by_profile() {
    let decisions = |command: &str| {
        let call = analysis(command).assessment;
        let each = PermissionProfile::ALL.iter().map(|&permission_profile| {
            let axes = Axes { permission_profile, ..Axes::headless() };
            decide(&call, &axes, &Rules::default()).decision.to_string()
        });
        format!("{command}: {}", each.collect::<Vec<_>>().join(" "))
    };
    let commands = [
        "ls src",
        "mkdir a",
        "cargo test",
        "npm install",
        "git commit -m x",
        "git push origin topic",
        "git push origin main",
        "rm a",
        "git reset --hard",
        "$x",
        "rm -rf a",
    ];
    insta::assert_snapshot!(commands.map(decisions).join("\n"), @"
    ls src: allow allow allow allow
    mkdir a: deny allow allow allow
    cargo test: deny ask allow allow
    npm install: deny ask allow allow
    git commit -m x: deny ask allow allow
    git push origin topic: deny ask ask allow
    git push origin main: deny ask ask ask
    rm a: deny ask ask ask
    git reset --hard: deny ask ask ask
    $x: deny ask ask ask
    rm -rf a: deny deny deny deny
    ");
}

#[test]
fn allow_all_offers_the_narrowest_rule_and_says_what_it_grants() {
    let offered = |command: &str| AllowRule::for_analysis(&analysis(command)).expect("a rule");
    assert_eq!(offered("cargo build --release"), rule(&["cargo", "build"]));
    assert_eq!(offered("cd sub && cargo build | tail"), rule(&["cargo", "build"]));
    assert_eq!(offered("git push origin topic"), rule(&["git", "push"]));
    assert_eq!(offered("npm ci && npm test"), AllowRule::Class { class: Class::Build });
    insta::assert_snapshot!(offered("cargo build").describe(RuleScope::Session), @"every command that starts with `cargo build`, alone or with commands that only look, for this session; never what destroys, touches production or cannot be read");
    insta::assert_snapshot!(offered("npm ci && npm test").describe(RuleScope::Session), @"every command of class `build` or less, and every tool call of class `build`, for this session; never what destroys, touches production or cannot be read");
}

#[test]
fn what_allow_all_offers_covers_the_call_it_was_offered_for() {
    let mut offered = 0;
    for entry in crate::corpus::entries() {
        let analysis = analysis(&entry.command);
        if let Some(rule) = AllowRule::for_analysis(&analysis) {
            assert!(rule.covers(&analysis), "{}: {rule:?}", entry.command);
            offered += 1;
        }
    }
    assert!(offered >= 100, "only {offered} commands of the corpus are offered a rule");
}

#[test]
fn a_class_rule_covers_that_class_and_less() {
    let rule = AllowRule::Class { class: Class::Build };
    assert!(rule.covers(&analysis("cargo build")) && rule.covers(&analysis("cargo test")));
    assert!(!rule.covers(&analysis("git push")) && !rule.covers(&analysis("cat ~/.ssh/id_rsa")));
    assert!(
        rule.covers_tool("browser", Class::Build) && !rule.covers_tool("browser", Class::Publish)
    );
}

/// MS-017
#[test]
fn an_approval_never_overrides_a_later_deny() {
    let axes = Axes { permission_profile: PermissionProfile::Trusted, ..Axes::headless() };
    let call = analysis("rm a").assessment;
    let approved = Rules { approved: true, ..Rules::default() };
    assert_eq!(decide(&call, &axes, &approved).decision, Decision::Allow);
    let denied = Rules { denylisted: Some("frozen".into()), ..approved.clone() };
    assert_eq!(decide(&call, &axes, &denied).decision, Decision::Deny);
    let restricted = Axes { permission_profile: PermissionProfile::Restricted, ..axes };
    assert_eq!(decide(&call, &restricted, &approved).decision, Decision::Deny);
}

#[test]
fn the_configuration_adds_classes_but_does_not_tame_what_destroys() {
    let extra = |text, class| CustomRule { pattern: pattern(text), class, reason: "ours".into() };
    let mut context = context();
    context.custom_rules = vec![
        extra("acme check", Class::Test),
        extra("acme ship", Class::Production),
        extra("rm", Class::Read),
    ];
    context.production = vec![pattern("acme * --live")];
    let class = |command: &str| analyze(command, &context).assessment.class;
    assert_eq!(class("acme check --all"), Class::Test);
    assert_eq!(class("ls && acme ship"), Class::Production);
    assert_eq!(class("acme check --live"), Class::Production);
    assert_eq!(class("acme other"), Class::LocalCommand);
    assert_eq!(class("rm a"), Class::Destructive);
    assert_eq!(class("rm -rf a"), Class::Catastrophic);
}

#[test]
fn branches_are_protected_by_configuration() {
    let mut context = context();
    context.protected_branches = vec!["live".into(), "stable-*".into()];
    let class = |command: &str| analyze(command, &context).assessment.class;
    assert_eq!(class("git push origin live"), Class::Production);
    assert_eq!(class("git push origin x:stable-2"), Class::Production);
    assert_eq!(class("git push origin main"), Class::Publish);
}

#[test]
fn scratch_directories_may_be_written() {
    let mut context = context();
    assert_eq!(analyze("ls > /tmp/a", &context).assessment.class, Class::Destructive);
    context.scratch = vec!["/tmp".into()];
    assert_eq!(analyze("ls > /tmp/a", &context).assessment.class, Class::Edit);
    assert_eq!(analyze("ls > /tmpx/a", &context).assessment.class, Class::Destructive);
}

/// The data directory holds secrets; a workspace that was made in it is the agent's own.
#[test]
fn a_workspace_in_the_data_directory_is_not_secret() {
    let data = format!("{}/.local/share/windlass", context().home);
    let own = format!("{data}/evals/case-1/work");
    let inside = Context { directory: own.clone(), workspace: own.clone(), ..context() };
    let elsewhere =
        Context { directory: "/srv".to_owned(), workspace: "/srv".to_owned(), ..context() };
    let risk = |command: &str, context: &Context| analyze(command, context).assessment.risk;
    let (file, database) = (format!("cat {own}/out.txt"), format!("cat {data}/windlass.db"));
    assert_eq!(risk("cat out.txt", &inside), risk("cat out.txt", &elsewhere));
    assert_eq!(risk(&file, &inside), risk("cat out.txt", &elsewhere));
    assert_ne!(risk(&file, &elsewhere), risk(&file, &inside));
    assert_eq!(risk(&database, &inside), risk(&database, &elsewhere));
    assert_ne!(risk(&database, &inside), risk(&file, &inside));
}
