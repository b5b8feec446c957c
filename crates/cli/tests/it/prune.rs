//! `prune`, and what it leaves.

use crate::program::Program;

#[test]
fn prune_removes_what_has_ended_and_says_what_stays() {
    let program = Program::playing("replies: [{say: done}]");
    program.windlass(&["run", "first"]).expect(0);
    let task = program.task();
    let cost = || program.windlass(&["cost", "--json"]).expect(0).json_lines()[0]["total"].clone();
    let before = cost();
    let kept = program.windlass(&["prune"]).expect(0);
    assert_eq!(
        (kept.stdout.as_str(), kept.stderr.as_str()),
        ("0 tasks removed\n", "kept: 1 task that ended more recently\n")
    );
    let planned = program.windlass(&["prune", "--older-than", "0s", "--dry-run"]).expect(0).stdout;
    assert_eq!(planned, format!("{task}  first\n1 task would be removed\n"));
    program.windlass(&["show", &task]).expect(0);

    let removed = program.windlass(&["prune", "--older-than", "0s"]).expect(0).stdout;
    assert!(removed.starts_with("1 task removed: "), "{removed}");
    program.windlass(&["show", &task]).expect(2);
    assert_eq!(cost(), before, "sums stay");
    assert!(!program.data_directory().join("traces").join(&task).exists());
    let sound = program.windlass(&["doctor", "--json"]).stdout;
    assert!(sound.contains("agrees with its journal"), "{sound}");
}

#[test]
fn a_broken_event_is_named_and_other_tasks_continue() {
    let program = Program::playing("replies: [{say: done}]");
    program.windlass(&["run", "first"]).expect(0);
    let broken = program.task();
    let other = program.windlass(&["run", "second", "--json"]).expect(0).result();
    let database = program.data_directory().join("windlass.db");
    let bytes = std::fs::read(&database).unwrap();
    // Wherever it is: pages keep old copies of rows.
    let (wanted, other_goal) = (b"\"goal\":\"first\"", b"\"goal\":\"First\"");
    let mut changed = bytes.clone();
    for at in 0..bytes.len() - wanted.len() {
        if bytes[at..].starts_with(wanted) {
            changed[at..at + wanted.len()].copy_from_slice(other_goal);
        }
    }
    assert_ne!(changed, bytes);
    std::fs::write(&database, changed).unwrap();

    let refused = program.windlass(&["events", &broken]).expect(2).stderr;
    assert!(refused.contains(&format!("event 1 of `{broken}` is damaged")), "{refused}");
    // What is advised is not refused for the same reason, and what the other events say is shown.
    let refused = program.windlass(&["show", &broken]).expect(2).stderr;
    assert!(refused.contains("hint: `windlass doctor` names every damaged task"), "{refused}");
    program.windlass(&["logs", &broken]).expect(0);
    let sound = program.windlass(&["doctor", "--json"]).stdout;
    assert!(sound.contains(&format!("event 1 of `{broken}` is damaged")), "{sound}");
    program.windlass(&["events", other["task_id"].as_str().unwrap()]).expect(0);
}
