//! What a person may type to answer a question.

use jiff::Timestamp;
use windlass_core::id::QuestionId;
use windlass_core::policy::Class;
use windlass_core::policy::allow::AllowRule;
use windlass_core::question::{AcceptedAnswers, Permission, Question, QuestionKind};

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
        accepts: AcceptedAnswers::Words,
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

/// What decides about a run of a workflow is one of its options: a slip of the hand decides nothing.
#[test]
fn where_only_options_count_other_words_are_refused() {
    let asked = Question {
        accepts: AcceptedAnswers::YesNo,
        ..question(QuestionKind::AskUser, &["Try again", "Stop"])
    };
    for again in ["1", "try again", "TRY AGAIN", "y", "yes"] {
        assert_eq!(read(&asked, again).as_deref(), Some("Try again"), "{again}");
    }
    for stop in ["2", " stop\n", "n", "no"] {
        assert_eq!(read(&asked, stop).as_deref(), Some("Stop"), "{stop}");
    }
    for none in ["", "try", "stop it", "no, wait", "0", "3"] {
        assert_eq!(read(&asked, none), None, "{none}");
    }
    let of_three = Question {
        accepts: AcceptedAnswers::Options,
        ..question(QuestionKind::AskUser, &["a", "b", "c"])
    };
    assert_eq!((read(&of_three, "y"), read(&of_three, "n")), (None, None));
    // Journals of earlier versions do not say it.
    let written = serde_json::to_value(question(QuestionKind::AskUser, &["a"])).unwrap();
    assert_eq!(written.get("accepts"), None);
    let read_back = serde_json::from_value::<Question>(written).unwrap();
    assert_eq!(read_back.accepts, AcceptedAnswers::Words);
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
    assert_eq!(read(&asked, "9e99"), None);
    let dollars = Question { accepts: AcceptedAnswers::Dollars, ..asked };
    assert_eq!(read(&dollars, "1000000").as_deref(), Some("1000000"));
    assert_eq!(read(&dollars, "1000001"), None);
}

#[test]
fn an_agents_question_takes_a_number_a_word_or_any_text() {
    let asked = question(QuestionKind::AskUser, &["Yes", "No", "Later"]);
    for (typed, answer) in
        [("3", "Later"), ("later", "Later"), ("y", "Yes"), ("n", "No"), ("ask Bob", "ask Bob")]
    {
        assert_eq!(read(&asked, typed).as_deref(), Some(answer), "{typed}");
    }
    assert_eq!(read(&asked, " \n"), None);
    assert_eq!(read(&question(QuestionKind::AskUser, &[]), "n").as_deref(), Some("n"));
}

#[test]
fn a_question_of_a_workflow_takes_nothing_beside_what_it_offers() {
    let accepting = |accepts, options: &[&str]| {
        let asked = question(QuestionKind::AskUser, options);
        Question { accepts, ..asked }
    };
    let trust = accepting(AcceptedAnswers::YesNo, &["Approve", "Stop"]);
    for yes in ["y", "Yes", "1", "approve"] {
        assert_eq!(read(&trust, yes).as_deref(), Some("Approve"), "{yes}");
    }
    for no in ["n", "No", "2", "stop"] {
        assert_eq!(read(&trust, no).as_deref(), Some("Stop"), "{no}");
    }
    let land = accepting(AcceptedAnswers::Options, &["yes", "no"]);
    assert_eq!(read(&land, "Y").as_deref(), Some("yes"));
    for none in ["ok", "maybe", "3", "", "yes, but later"] {
        assert_eq!((read(&trust, none), read(&land, none)), (None, None), "{none}");
    }
    let rounds = accepting(AcceptedAnswers::Rounds, &["3 more rounds", "Stop"]);
    for (typed, answer) in [("1", "3 more rounds"), ("2", "Stop"), ("5 rounds", "5 rounds")] {
        assert_eq!(read(&rounds, typed).as_deref(), Some(answer), "{typed}");
    }
    for none in ["5", "many rounds", "0 rounds", "101 rounds", "5 cups"] {
        assert_eq!(read(&rounds, none), None, "{none}");
    }
}

/// A number that the list does not have is a slip, not an answer in own words.
#[test]
fn a_number_beside_the_list_is_no_answer() {
    for kind in QuestionKind::ALL.iter().filter(|&&kind| kind != QuestionKind::Budget) {
        let asked = question(*kind, &["red", "blue"]);
        for none in ["0", "3", "7", "-1"] {
            assert_eq!(read(&asked, none), None, "{kind} {none}");
        }
    }
    let ports = question(QuestionKind::AskUser, &["8080", "9090"]);
    assert_eq!(read(&ports, "3000").as_deref(), Some("3000"));
    let open = question(QuestionKind::AskUser, &[]);
    assert_eq!(read(&open, "7").as_deref(), Some("7"));
}
