//! Snapshots: written, read again, refused.

use proptest::prelude::*;
use windlass_plan::{FailingTest, Snapshot, TechDebt};

fn snapshot() -> Snapshot {
    Snapshot {
        plan: "checkout".to_owned(),
        task: "t02".to_owned(),
        timestamp: "2026-11-16T13:00:00Z".parse().expect("a time"),
        failing_tests: vec![FailingTest {
            file: "src/a.rs".to_owned(),
            test_name: "adds".to_owned(),
            error: "left: 1\nright: 2".to_owned(),
        }],
        tech_debt: vec![TechDebt {
            file: "src/b.rs".to_owned(),
            what: "copied code".to_owned(),
            why_deferred: "no time".to_owned(),
        }],
        open_decisions: vec!["which store?".to_owned()],
        next_task_intent: "Make the test pass".to_owned(),
    }
}

/// PL-014, PL-015, PL-016, PL-017, PL-018
#[test]
fn a_snapshot_is_markdown_with_every_field() {
    insta::assert_snapshot!(snapshot().markdown(), @r#"
    # Snapshot

    - plan: checkout
    - task: t02
    - timestamp: 2026-11-16T13:00:00Z

    ## failingTests

    - file: src/a.rs
      testName: adds
      error: "left: 1\nright: 2"

    ## techDebt

    - file: src/b.rs
      what: copied code
      whyDeferred: no time

    ## openDecisions

    - which store?

    ## nextTaskIntent

    Make the test pass
    "#);
    assert_eq!(Snapshot::parse(&snapshot().markdown()), Ok(snapshot()));
}

/// PL-031, PL-032, PL-048: a field that is not there is named, whichever it is.
#[test]
fn a_snapshot_without_a_field_is_refused() {
    let whole = snapshot();
    for field in ["failingTests", "techDebt", "openDecisions", "nextTaskIntent"] {
        let mut fields = whole.fields();
        fields.remove(field);
        let missing = Snapshot::from_fields("p", "t", whole.timestamp, &fields).unwrap_err();
        assert_eq!(missing.to_string(), format!("`{field}` is missing"));
        fields.insert(field.to_owned(), serde_json::Value::Null);
        let null = Snapshot::from_fields("p", "t", whole.timestamp, &fields).unwrap_err();
        assert_eq!(null.to_string(), format!("`{field}` must not be null"));
    }
    for (remove, blamed) in [
        ("## failingTests", "failingTests"),
        ("## techDebt", "techDebt"),
        ("## openDecisions", "openDecisions"),
        ("## nextTaskIntent", "nextTaskIntent"),
        ("- plan:", "plan"),
        ("- task:", "task"),
        ("- timestamp:", "timestamp"),
        ("  testName:", "failingTests[0].testName"),
        ("  whyDeferred:", "techDebt[0].whyDeferred"),
    ] {
        let text = whole.markdown();
        let end = |at: usize| text[at..].find("\n## ").map_or(text.len(), |end| at + end + 1);
        let at = text.find(remove).unwrap();
        let until = match remove.starts_with("##") {
            true => end(at + 1),
            false => at + text[at..].find('\n').unwrap() + 1,
        };
        let edited = format!("{}{}", &text[..at], &text[until..]);
        let refused = Snapshot::parse(&edited).unwrap_err();
        assert_eq!(refused.to_string(), format!("`{blamed}` is missing"), "{edited}");
    }
    let unknown = whole.markdown().replace("## techDebt", "## techDept");
    assert!(
        Snapshot::parse(&unknown).unwrap_err().to_string().contains("did you mean `techDebt`?")
    );
}

/// What a file holds is a text of others.
#[test]
fn hidden_characters_of_a_snapshot_are_marked_for_the_model() {
    let left = Snapshot { next_task_intent: "go\u{200b} on\u{e0041}".to_owned(), ..snapshot() };
    let notice = windlass_plan::snapshots_notice(&[left]);
    assert!(notice.contains("go\\u{200B} on\\u{E0041}"), "{notice}");
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,20}|[\\s\\S]{1,20}"
        .prop_filter("a field is never empty", |text| !text.trim().is_empty())
}

proptest! {
    /// PL-030, PL-047: what was saved is what is loaded.
    #[test]
    fn a_snapshot_written_and_read_is_the_same(
        tests in proptest::collection::vec((text(), text(), text()), 0..3),
        debts in proptest::collection::vec((text(), text(), text()), 0..3),
        decisions in proptest::collection::vec(text(), 0..3),
        intent in text(),
    ) {
        let whole = Snapshot {
            failing_tests: tests
                .into_iter()
                .map(|(file, test_name, error)| FailingTest { file, test_name, error })
                .collect(),
            tech_debt: debts
                .into_iter()
                .map(|(file, what, why_deferred)| TechDebt { file, what, why_deferred })
                .collect(),
            open_decisions: decisions,
            next_task_intent: intent,
            ..snapshot()
        };
        prop_assert_eq!(Snapshot::parse(&whole.markdown()), Ok(whole));
    }

    /// Whatever a file holds, it is read or refused.
    #[test]
    fn no_text_makes_reading_a_snapshot_panic(text in "(# Snapshot\n|## techDebt\n|- plan: a\n|- file: \"x\n|[\\s\\S]){0,30}") {
        let _ = Snapshot::parse(&text);
    }
}
