//! Trying a failed task again: each attempt has the limits of the task for itself.

use windlass_testkit::Answer;

use crate::program::Program;

/// ES-104, ES-122, MS-132: a retry of a task that used up its rounds continues where it stopped.
#[test]
fn a_retry_gives_a_task_its_rounds_again() {
    let step = |n: usize| format!("  - bash: echo {n} >> steps.txt\n");
    let steps: String = (0..5).map(step).collect();
    let program = Program::playing(&format!("replies:\n{steps}  - say: done\n"));
    let failed = program.windlass(&["run", "work", "--max-iterations", "3"]).expect(1);
    assert!(failed.stderr.contains("reached its limit of 3 steps"), "{}", failed.stderr);
    assert!(failed.stderr.contains("a retry gives it as many steps again"), "{failed:?}");
    program.windlass(&["retry", &program.task()]).expect(0);
    assert_eq!(program.file("steps.txt"), "0\n1\n2\n3\n4\n");
}

/// ES-105, ES-111: the same for a task that used up its time.
#[test]
fn a_retry_gives_a_task_its_time_again() {
    let program = Program::playing("replies: [{bash: sleep 30}, {say: done}]");
    let failed = program.windlass(&["run", "work", "--timeout", "1"]).expect(1);
    assert!(failed.stderr.contains("used up its 1 s of active time"), "{}", failed.stderr);
    program.windlass(&["retry", &program.task()]).expect(0);
}

/// ES-269: an agent that was given up on for repeating itself is not given up on at its next step.
#[test]
fn a_retry_forgets_earlier_nudges_of_the_doom_loop_guard() {
    let same = "  - bash: echo same\n".repeat(40);
    let program = Program::playing(&format!("replies:\n{same}"));
    let failed = program.windlass(&["run", "work"]).expect(1);
    assert!(failed.stderr.contains("kept repeating itself"), "{}", failed.stderr);
    program.server.next(Answer::script("bash: echo same")).next(Answer::script("say: done"));
    program.windlass(&["retry", &program.task()]).expect(0);
}

/// `resume` is for tasks that have not failed, `retry` for those that have. Each names the other command.
#[test]
fn a_retry_of_what_has_not_failed_names_the_command_that_resumes() {
    let program = Program::playing("replies: [{ask_user: {question: sure?}}]");
    program.windlass(&["run", "work"]).expect(3);
    let task = program.task();
    let refused = program.windlass(&["retry", &task]).expect(2);
    assert!(refused.stderr.contains("is blocked, not failed"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("windlass resume {task}")), "{}", refused.stderr);

    let program = Program::playing("replies: []");
    let mut run = program.command(&["run", "work"]);
    run.env("AGENT_MAX_RETRIES", "1").output().unwrap();
    let task = program.task();
    let refused = program.windlass(&["resume", &task]).expect(2);
    assert!(refused.stderr.contains(&format!("windlass retry {task}")), "{}", refused.stderr);
    program.windlass(&["retry", &task]).expect(1);
    let refused = program.windlass(&["retry", &task]).expect(2);
    assert!(refused.stderr.contains("has no retries left (limit 1)"), "{}", refused.stderr);
}

/// MS-132: a script names no task either: the last one of the directory is meant, as everywhere.
#[test]
fn resume_and_retry_take_the_last_task_of_this_directory() {
    let program = Program::playing("replies: [{ask_user: {question: sure?}}, {say: done}]");
    let none = program.windlass(&["retry"]).expect(2);
    assert!(none.stderr.contains("no task was started in `/"), "{none:?}");
    program.windlass(&["run", "work"]).expect(3);
    let (task, refused) = (program.task(), program.windlass(&["retry"]).expect(2));
    assert!(refused.stderr.contains(&format!("`{task}`, has not failed")), "{refused:?}");
    program.windlass(&["answer", &task, "yes"]).expect(0);
    let resumed = program.windlass(&["resume"]).expect(0);
    assert!(resumed.stderr.contains(&format!("the last task of this directory: {task} “work”")));
    assert_eq!(resumed.stdout, "done\n");
}
