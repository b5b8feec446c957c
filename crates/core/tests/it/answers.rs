//! What a person may type to answer a question.

use jiff::Timestamp;
use windlass_core::id::QuestionId;
use windlass_core::policy::Class;
use windlass_core::policy::allow::AllowRule;
use windlass_core::question::{Permission, Question, QuestionKind};

fn question(kind: QuestionKind, options: &[&str]) -> Question {
    Question {
        id: QuestionId::new(Timestamp::UNIX_EPOCH),
        kind,
        call: None,
        question: "?".to_owned(),
        options: options.iter().map(|&option| option.to_owned()).collect(),
        context: None,
        binding: None,
        diff: None,
        grants: None,
        asked: None,
        plan: None,
    }
}

fn read(question: &Question, typed: &str) -> Option<String> {
    question.read_answer(typed)
}

#[test]
fn a_permission_is_given_or_denied_in_many_words() {
    let mut asked = question(QuestionKind::Permission, &["Allow", "Deny", "Allow All"]);
    for yes in ["y", "Y", "yes", "YES\n", "1", "allow", " Allow "] {
        assert_eq!(read(&asked, yes).as_deref(), Some("Allow"), "{yes}");
    }
    for no in ["n", "N", "no", "2", "deny", "DENY", "no.", "Deny: "] {
        assert_eq!(read(&asked, no).as_deref(), Some("Deny"), "{no}");
    }
    for no in ["no, use mv", "n: use mv", "deny - use mv", "No use mv", "Deny: use mv"] {
        assert_eq!(read(&asked, no).as_deref(), Some("Deny: use mv"), "{no}");
        let comment = "use mv".to_owned();
        assert_eq!(asked.permission(no), Some(Permission::Deny { comment }), "{no}");
    }
    for none in ["", "maybe", "not now", "yes, but only src", "allow it", "0", "4", "nope"] {
        assert_eq!(read(&asked, none), None, "{none}");
    }
    let rule = AllowRule::Tool { tool: "edit".to_owned(), class: Class::Edit };
    asked.grants = Some(rule);
    for all in ["3", "allow all"] {
        let given = read(&asked, all).unwrap();
        assert_eq!(asked.permission(&given), Some(Permission::AllowAll), "{all}");
    }
}

#[test]
fn all_is_allowed_only_where_it_is_offered() {
    let asked = question(QuestionKind::Permission, &["Allow", "Deny"]);
    assert_eq!((read(&asked, "allow all"), read(&asked, "3")), (None, None));
}

#[test]
fn a_budget_takes_any_amount() {
    let asked = question(QuestionKind::Budget, &["Raise by 0.05", "Stop"]);
    for (typed, answer) in [
        ("1", "Raise by 0.05"),
        ("yes", "Raise by 0.05"),
        ("2", "Stop"),
        ("no", "Stop"),
        ("stop", "Stop"),
        ("0.50", "0.50"),
        ("$2", "$2"),
        ("raise by 7", "raise by 7"),
    ] {
        assert_eq!(read(&asked, typed).as_deref(), Some(answer), "{typed}");
    }
    assert_eq!(read(&asked, "more"), None);
}

#[test]
fn a_question_of_an_agent_takes_a_number_a_word_or_any_text() {
    let asked = question(QuestionKind::AskUser, &["Yes", "No", "Later"]);
    for (typed, answer) in
        [("3", "Later"), ("later", "Later"), ("y", "Yes"), ("n", "No"), ("ask Bob", "ask Bob")]
    {
        assert_eq!(read(&asked, typed).as_deref(), Some(answer), "{typed}");
    }
    assert_eq!(read(&asked, " \n"), None);
    assert_eq!(read(&question(QuestionKind::AskUser, &[]), "n").as_deref(), Some("n"));
}
