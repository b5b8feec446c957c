//! Rules that a person gives beforehand, and what they can and cannot allow.

use windlass_testkit::ModelServer;

use crate::program::Program;

const CLEANING: &str =
    "replies: [{bash: rm old.txt && chmod +x run.sh && npm run build}, {say: ok}]";

fn playing(script: &str) -> Program {
    let program = Program::with(ModelServer::start(script));
    for name in ["old.txt", "run.sh"] {
        std::fs::write(program.workspace().join(name), "true\n").unwrap();
    }
    program
}

#[test]
fn a_run_without_a_terminal_finishes_by_rules_given_beforehand() {
    let program = playing(CLEANING);
    program.windlass(&["run", "clean up"]).expect(3);
    assert!(program.workspace().join("old.txt").exists());
    let program = playing(CLEANING);
    program.windlass(&["permissions", "allow", "rm"]).expect(0);
    program.windlass(&["permissions", "allow", "--project", "chmod", "+x"]).expect(0);
    let ran = program.windlass(&["run", "clean up", "--json"]).expect(0);
    assert!(!program.workspace().join("old.txt").exists());
    let checks = ran.json_lines();
    let check = checks.iter().find(|event| event["event_type"] == "risk_check").unwrap();
    let reason = check["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("allowed by the rule `"), "{reason}");
}

#[test]
fn rules_are_listed_and_a_revoked_one_asks_again() {
    let program = playing(CLEANING);
    let empty = program.windlass(&["permissions"]).expect(0);
    assert!(empty.stderr.contains("windlass permissions allow --project"), "{empty:?}");
    program.windlass(&["permissions", "allow", "rm"]).expect(0);
    program.windlass(&["permissions", "allow", "rm"]).expect(0);
    program.windlass(&["permissions", "allow", "chmod"]).expect(0);
    let listed = program.windlass(&["permissions", "list"]).expect(0);
    insta::assert_snapshot!(listed.stdout, @r"
    Standing rules (revoke with `windlass permissions revoke N`)
      1  rm  (every project)
      2  chmod  (every project)
    ");
    let revoked = program.windlass(&["permissions", "revoke", "1"]).expect(0);
    assert!(revoked.stderr.contains("revoked standing rule 1: rm"), "{revoked:?}");
    let again = program.windlass(&["permissions", "revoke", "1"]).expect(2);
    assert!(again.stderr.contains("permissions --revoke N"), "{again:?}");
    program.windlass(&["run", "clean up"]).expect(3);
    assert!(program.workspace().join("old.txt").exists());
}

/// WF-018: the rule holds for the session's later tasks, so it is listed when none is live.
#[test]
fn a_session_rule_is_listed_and_revoked_when_its_task_has_ended() {
    let program = playing("replies: [{bash: make test}, {say: ok}]");
    let run = ["run", "test it", "--permission-profile", "normal"];
    program.windlass(&run).expect(3);
    let task = program.task();
    program.windlass(&["answer", &task, "Allow All"]).expect(0);
    program.windlass(&["resume", &task]).expect(0);
    let listed = program.windlass(&["permissions"]).expect(0).stdout;
    assert!(listed.contains("  1  ses_") && listed.contains("`make test`"), "{listed}");
    let number_of_another = program.windlass(&["permissions", "revoke", "1"]).expect(2);
    assert!(number_of_another.stderr.contains("permissions --revoke N"), "{number_of_another:?}");
    let revoked = program.windlass(&["permissions", "--revoke", "1"]).expect(0);
    assert!(revoked.stderr.contains("revoked session rule 1: ses_"), "{revoked:?}");
    assert!(revoked.stderr.contains("`make test`"), "{revoked:?}");
    assert_eq!(program.windlass(&["permissions"]).expect(0).stdout, "");
}

#[test]
fn a_rule_is_shown_with_what_it_hides() {
    let program = playing("replies: []");
    let pattern = "git push '\u{1b}]0;' \u{202e}\u{200b}x";
    let given = program.windlass(&["permissions", "allow", pattern]).expect(0);
    let listed = program.windlass(&["permissions"]).expect(0);
    for text in [given.stderr, listed.stdout] {
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{text:?}");
        assert!(text.contains(r"\x1b]0;") && text.contains(r"\u{202E}\u{200B}x"), "{text}");
    }
}

#[test]
fn no_rule_is_taken_that_would_loosen_what_is_always_denied() {
    let program = playing("replies: []");
    for pattern in ["sudo ls", "rm -rf build", "mkfs", "*", "> .mcp.json", ""] {
        let refused = program.windlass(&["permissions", "allow", pattern]).expect(2);
        assert!(!refused.stderr.is_empty(), "{pattern}");
    }
    assert_eq!(program.windlass(&["permissions", "--json"]).expect(0).stdout, "");
}

#[test]
fn a_rule_of_a_project_holds_there_and_not_elsewhere() {
    let program = playing("replies: []");
    let other = tempfile::tempdir().unwrap();
    program.windlass(&["permissions", "allow", "--project", "npm install"]).expect(0);
    let explained = |directory: &std::path::Path| {
        let mut command = program.command(&["explain", "--json", "npm install"]);
        let output = command.current_dir(directory).output().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        value["decisions"]["normal"].clone()
    };
    assert_eq!(explained(program.workspace()), "allow");
    assert_eq!(explained(other.path()), "ask");
}

#[test]
fn explain_decides_as_the_run_would() {
    let script = "replies: [{bash: git push --force}, {bash: rm -rf build}, {say: ok}]";
    let program = playing(script);
    let config = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let text = "[policy]\nworkspace_removal = \"ask\"\n\
                [[policy.deny]]\npattern = \"git push --force\"\nreason = \"history is shared\"\n";
    std::fs::write(&config, text).unwrap();
    let decisions = |command: &str| {
        let ran = program.windlass(&["explain", "--json", command]).expect(0);
        ran.json_lines()[0]["decisions"]["trusted"].clone()
    };
    assert_eq!(decisions("git push --force"), "deny");
    assert_eq!(decisions("rm -rf build"), "ask");
    let ran = program.windlass(&["run", "x", "--json"]).expect(3);
    let checks = ran.json_lines().into_iter().filter(|event| event["event_type"] == "risk_check");
    let found: Vec<_> = checks.map(|event| event["data"]["decision"].clone()).collect();
    assert_eq!(found, ["deny", "ask"]);
}

/// A project's file is not the person: it cannot ask for less.
#[test]
fn a_project_cannot_set_what_becomes_of_removal() {
    let program = playing("replies: []");
    let file = program.workspace().join(".windlass/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[policy]\nworkspace_removal = \"ask\"\n").unwrap();
    let ran = program.windlass(&["explain", "--json", "rm -rf build"]);
    let decided = ran.json_lines().first().map(|line| line["decisions"]["trusted"].clone());
    assert!(decided.is_none_or(|decision| decision == "deny"), "{ran:?}");
}
