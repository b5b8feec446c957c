//! Which of the things that tasks have in common becomes a proposal.

use super::*;

fn repeated(kind: EvidenceKind, key: &str, tasks: &[u8]) -> Recurrence {
    let task = |number: &u8| TaskId::derived("test", &number.to_string());
    let detail = match kind {
        EvidenceKind::Failure => r#"{"then":"sh run.sh all","said":"no rule"}"#,
        EvidenceKind::Correction | EvidenceKind::Command | EvidenceKind::File => "{}",
    };
    Recurrence {
        kind,
        key: key.into(),
        detail: detail.into(),
        tasks: tasks.iter().map(task).collect(),
    }
}

fn chosen(repeated: &[Recurrence]) -> String {
    let found = choose(repeated).unwrap_or_default();
    found.iter().map(|one| format!("{} {}\n", one.kind, one.what)).collect()
}

/// MS-162
#[test]
fn what_people_had_to_say_counts_first_then_what_did_not_work() {
    let failure = repeated(EvidenceKind::Failure, "make test", &[1, 2, 3]);
    let correction = repeated(EvidenceKind::Correction, "use tabs", &[3, 4, 5]);
    let command = repeated(EvidenceKind::Command, "sh run.sh all", &[1, 2, 3, 4]);
    let file = repeated(EvidenceKind::File, "run.sh", &[1, 2, 3]);
    let all = [file.clone(), command.clone(), failure.clone(), correction];
    assert_eq!(chosen(&all), "correction use tabs\n");
    let some = [file.clone(), command.clone(), failure];
    assert_eq!(chosen(&some), "failure make test\nfile run.sh\ncommand sh run.sh all\n");
    assert_eq!(chosen(std::slice::from_ref(&file)), "", "one file is a habit");
    let two = [file, command.clone(), repeated(EvidenceKind::Command, "make", &[1, 2, 3])];
    assert!(chosen(&two).starts_with("command sh run.sh all\n"), "two commands are a procedure");
    assert_eq!(chosen(&[]), "");
}

#[test]
fn a_name_follows_from_what_works() {
    let one = |kind, what: &str| name(&finding(&repeated(kind, what, &[1, 2, 3])));
    assert_eq!(one(EvidenceKind::Failure, "make test"), "learned-sh-run-sh-all");
    assert_eq!(
        one(EvidenceKind::Correction, "Please, use TABS in Makefiles!"),
        "learned-please-use-tabs-in"
    );
    assert_eq!(one(EvidenceKind::Correction, "…"), "learned");
}
