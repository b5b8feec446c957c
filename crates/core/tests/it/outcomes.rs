//! What the model and what people read of a call's result.

use windlass_core::outcome::{CallEnding, Outcome};
use windlass_core::policy::Denial;

#[test]
fn an_outcome_without_a_text_for_people_shows_the_models() {
    let old = r#"{"ending":"error","text":"no such name\n[exit code 101]","exit_code":101}"#;
    let outcome: Outcome = serde_json::from_str(old).unwrap();
    assert_eq!(outcome.display_text(), "no such name\n[exit code 101]");
    assert_eq!(serde_json::to_string(&outcome).unwrap(), old);
}

#[test]
fn people_read_the_reason_of_a_denial_and_of_a_failure() {
    let denial = Denial {
        tool: "bash".to_owned(),
        reason: "it publishes".to_owned(),
        suggestions: vec!["leave it out".to_owned()],
        can_retry: false,
    };
    let denied = Outcome::denied(denial.clone());
    assert_eq!((denied.display_text(), denied.ending), ("it publishes", CallEnding::Denied));
    assert_eq!(denied.text, denial.render());
    let mut failed = Outcome::failure("no such file.");
    failed.add_note("A hook says: look again");
    assert_eq!(failed.text, "Error: no such file.\n\nA hook says: look again");
    assert_eq!(failed.display_text(), "no such file.\n\nA hook says: look again");
}
