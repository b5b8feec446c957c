//! What people decide about runs of workflows, what ends them in time, and what is refused before they begin.

use std::time::Duration;

use serde_json::Value;

use crate::program::Program;
use crate::workflows::{approved, here, played, put, repository, run, status, steps, worktree};

const FILE: &str = ".windlass/workflows/w.yaml";

/// Both sides change the same place while a question waits.
fn with_conflict(program: &Program) {
    program.windlass(&["workflow", "run", "w"]).expect(3);
    here(program, "echo theirs > a.txt && git commit -qam theirs");
}

#[test]
fn a_person_who_stops_a_conflict_has_nothing_merged() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: wait, type: ask, question: Ready?}
  - {name: land, type: merge, conflicts: ask}
",
    );
    with_conflict(&program);
    program.windlass(&["answer", &run(&program), "yes", "--resume"]);
    let target = here(&program, "git rev-parse main");
    // By now it could be merged.
    let tree = worktree(&program).display().to_string();
    here(&program, &format!("git -C {tree} merge -q -s ours main"));
    let ran = program.windlass(&["answer", &run(&program), "Stop", "--resume"]);
    assert!(ran.stderr.contains("you stopped it"), "{}", ran.stderr);
    assert_eq!(here(&program, "git rev-parse main"), target);
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(program.file("a.txt"), "mine\n", "resumed after that, it is merged");
}

/// An agent that gives up in the middle of a merge leaves its markers: they are neither committed nor merged, and a
/// person is asked as often as it takes.
#[test]
fn an_agent_that_gives_up_on_a_conflict_has_nothing_merged() {
    let script = "
replies:
  - {turn: 0, task: Resolve the conflicts, bash: 'git merge -q main; true'}
  - turn: 1
    task: Resolve the conflicts
    say: |
      ```json
      {\"success\": false, \"summary\": \"gave up\", \"error\": \"too hard\"}
      ```
";
    let steps = "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: wait, type: ask, question: Ready?}
  - {name: land, type: merge}
";
    let program = played(script, steps);
    program.windlass(&["trust", "--yes"]).expect(0);
    with_conflict(&program);
    let target = here(&program, "git rev-parse main");
    let ran = program.windlass(&["answer", &run(&program), "yes", "--resume"]);
    assert!(ran.stderr.contains("changed the same places: a.txt"), "{}", ran.stderr);
    let ran = program.windlass(&["answer", &run(&program), "Try again", "--resume"]);
    assert!(ran.stderr.contains("conflicts that are not resolved: a.txt"), "{}", ran.stderr);
    let tree = worktree(&program).display().to_string();
    here(&program, &format!("git -C {tree} add -A && git -C {tree} commit -qm markers"));
    let ran = program.windlass(&["answer", &run(&program), "Try again", "--resume"]);
    assert!(ran.stderr.contains("markers of conflicts in a.txt"), "{}", ran.stderr);
    assert_eq!(here(&program, "git rev-parse main"), target);
    here(&program, &format!("echo both > {tree}/a.txt && git -C {tree} commit -qam both"));
    program.windlass(&["answer", &run(&program), "Try again", "--resume"]).expect(0);
    assert_eq!(program.file("a.txt"), "both\n");
}

/// By the time of the answer the checkout may be clean again: `Stop` still means that nothing is merged.
#[test]
fn a_person_who_stops_at_a_dirty_checkout_has_nothing_merged() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge}
",
    );
    here(&program, "echo theirs > a.txt");
    program.windlass(&["workflow", "run", "w"]).expect(3);
    here(&program, "git checkout -q a.txt");
    let target = here(&program, "git rev-parse main");
    let unclear = program.windlass(&["answer", &run(&program), "Stop it", "--resume"]).expect(2);
    assert!(unclear.stderr.contains("choose one of: Try again, Stop"), "{}", unclear.stderr);
    let ran = program.windlass(&["answer", &run(&program), "Stop", "--resume"]).expect(1);
    assert!(ran.stderr.contains("`main` was not merged: you stopped it"), "{}", ran.stderr);
    assert_eq!(here(&program, "git rev-parse main"), target);
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(program.file("a.txt"), "mine\n", "resumed after that, it is merged");
}

/// Whoever resumes a run has said enough: the question of its merge does not stay behind.
#[test]
fn a_question_about_a_dirty_checkout_goes_with_the_merge() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge}
  - {name: more, type: ask, question: Anything else?}
",
    );
    here(&program, "echo theirs > a.txt");
    program.windlass(&["workflow", "run", "w"]).expect(3);
    here(&program, "git checkout -q a.txt");
    program.windlass(&["workflow", "resume", "w"]).expect(3);
    let inbox = program.windlass(&["inbox", "--json"]).expect(0).json_lines();
    let open: Vec<_> = inbox.iter().map(|one| one["question"]["question"].clone()).collect();
    assert_eq!(open, ["Anything else?"]);
}

/// A slip of the hand approves nothing, and ends nothing either.
#[test]
fn an_unclear_answer_about_commands_is_refused() {
    let program = repository("  - {name: change, type: script, command: 'echo mine > a.txt'}\n");
    program.windlass(&["workflow", "run", "w"]).expect(3);
    let unclear = program.windlass(&["answer", &run(&program), "maybe", "--resume"]).expect(2);
    assert!(unclear.stderr.contains("choose one of: Approve, Stop"), "{}", unclear.stderr);
    assert_eq!(status(&program)["status"], "blocked");
    program.windlass(&["answer", &run(&program), "y", "--resume"]).expect(0);
}

/// The yes to a merge is one to what was shown (O-37).
#[test]
fn a_merge_with_other_changes_is_asked_about_again() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge}
",
    );
    let args = ["workflow", "run", "w", "--permission-profile", "normal"];
    program.windlass(&args).expect(3);
    here(&program, "echo theirs > a.txt && git commit -qam theirs");
    let merges = |program: &Program| {
        let inbox = program.windlass(&["inbox", "--json"]).expect(0).json_lines();
        let texts = inbox.iter().filter_map(|one| one["question"]["question"].as_str());
        texts.filter(|text| text.starts_with("Merge `")).count()
    };
    // What the agent does about the conflict may be asked about too.
    program.windlass(&["answer", &run(&program), "Merge", "--resume"]).expect(3);
    for _ in 0..5 {
        if merges(&program) > 0 {
            break;
        }
        program.windlass(&["answer", &asker(&program), "Allow", "--resume"]);
    }
    assert_eq!(merges(&program), 1, "the agent has changed what would be merged");
    assert_eq!(program.file("a.txt"), "theirs\n");
    program.windlass(&["answer", &run(&program), "Merge", "--resume"]).expect(0);
    assert_eq!(program.file("a.txt"), "both\n");
}

/// The open question, by its id.
fn asker(program: &Program) -> String {
    let inbox = program.windlass(&["inbox", "--json"]).expect(0).json_lines();
    inbox[0]["question"]["id"].as_str().unwrap().to_owned()
}

/// The target may move elsewhere while a question waits: a rebase brings the same changes.
#[test]
fn a_rebase_of_the_same_changes_is_asked_about_once() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge, strategy: rebase}
",
    );
    program.windlass(&["workflow", "run", "w", "--permission-profile", "normal"]).expect(3);
    here(&program, "echo other > b.txt && git add -A && git commit -qm other");
    program.windlass(&["answer", &run(&program), "Merge", "--resume"]).expect(0);
    assert_eq!(here(&program, "cat a.txt b.txt"), "mine\nother\n");
}

/// O-38: a limit of time counts for steps of steps too, and a resumed run has it once more.
#[test]
fn a_loop_that_takes_too_long_ends() {
    let program = approved(
        "
  - name: fix
    type: loop
    max: 3
    timeout: 1s
    until: .work.success
    steps:
      - {name: work, type: script, command: 'test -e done.txt || sleep 600', on_fail: continue}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(1);
    assert_eq!(steps(&program), ["fix[1].work failed", "fix failed"]);
    let view = status(&program);
    assert_eq!(view["reason"], "timeout");
    assert!(view["detail"].to_string().contains("its `timeout` is 1 seconds"), "{view}");
    assert_eq!(
        program.windlass(&["inbox", "--json"]).expect(0).stdout,
        "",
        "no rounds are missing"
    );
    std::fs::write(worktree(&program).join("done.txt"), "").unwrap();
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(steps(&program).last().unwrap(), "fix succeeded");
}

#[test]
fn parallel_steps_and_merges_that_take_too_long_end() {
    let program = approved(
        "
  - name: both
    type: parallel
    timeout: 1s
    on_fail: continue
    steps:
      - {name: left, type: script, command: 'sleep 600', on_fail: continue}
      - {name: right, type: script, command: 'echo r > right.txt'}
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge, timeout: 1s, gates: ['sleep 600', 'true']}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(1);
    let view = status(&program);
    assert_eq!(view["reason"], "timeout");
    let of = |name: &str| {
        let all = view["steps"].as_array().unwrap();
        all.iter().find(|step| step["step"] == name).unwrap().clone()
    };
    assert!(of("both")["error"].as_str().unwrap().contains("it took too long"), "{view}");
    assert!(of("land")["error"].as_str().unwrap().contains("it took too long"), "{view}");
    assert_eq!(program.file("a.txt"), "one\n");
}

/// A person takes the time that they need.
#[test]
fn a_question_has_no_timeout() {
    let program = repository("  - {name: check, type: ask, question: 'Land?', timeout: 1h}\n");
    let error = program.windlass(&["workflow", "validate", "w"]).expect(2).stderr;
    assert!(error.contains("step `check` of type `ask` has no `timeout`"), "{error}");
}

/// A failure that the file allows does not stop the step around it.
#[test]
fn a_failure_that_may_pass_passes_its_parallel_step() {
    let program = approved(
        "
  - name: both
    type: parallel
    steps:
      - {name: left, type: script, command: 'exit 1', on_fail: continue}
      - {name: right, type: script, command: 'echo r > right.txt'}
  - {name: seen, type: script, command: 'cat right.txt'}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(0);
    assert_eq!(
        steps(&program),
        ["both.left failed", "both.right succeeded", "both succeeded", "seen succeeded"]
    );
}

#[test]
fn a_resumed_parallel_step_tries_again_what_failed() {
    let program = approved(
        "
  - name: both
    type: parallel
    on_fail: ask
    steps:
      - {name: left, type: script, command: 'echo l >> left.txt; test $(wc -l < left.txt) = 2'}
      - {name: right, type: script, command: 'echo r > right.txt'}
  - {name: seen, type: script, command: 'cat left.txt right.txt'}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(3);
    program.windlass(&["answer", &run(&program), "Try again", "--resume"]).expect(0);
    let shown = status(&program)["steps"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(shown["output"]["output"], "l\nl\nr");
}

#[test]
fn a_loop_that_was_stopped_gets_rounds_after_all() {
    let program = approved(
        "
  - name: fix
    type: loop
    max: 1
    until: .test.success
    steps:
      - {name: test, type: script, command: 'echo r >> n.txt; test $(wc -l < n.txt) = 3', on_fail: continue}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(1);
    program.windlass(&["answer", &run(&program), "Stop", "--resume"]).expect(1);
    program.windlass(&["workflow", "resume", "w", "--rounds", "2"]).expect(0);
    assert_eq!(steps(&program).last().unwrap(), "fix succeeded");
}

#[test]
fn a_missing_target_is_named_before_anything_runs() {
    let program = approved(
        "
  - {name: work, type: script, command: 'echo new > new.txt'}
  - {name: land, type: merge, target: nonexist}
",
    );
    let error = program.windlass(&["workflow", "run", "w"]).expect(1).stderr;
    assert!(error.contains("there is no branch `nonexist` to merge into"), "{error}");
    assert_eq!(status(&program)["steps"], serde_json::json!([]));
}

#[test]
fn a_set_up_finds_its_worktree() {
    let program = repository("  - {name: use, type: script, command: 'cat branch.txt'}\n");
    let text = program.file(FILE);
    let with = |setup: &str| {
        put(&program, FILE, &format!("worktree: {{setup: '{setup}'}}\n{text}"));
    };
    with("echo {{.worktree.branch}} > branch.txt");
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let view = status(&program);
    assert_eq!(view["steps"][0]["output"]["output"], view["worktrees"][0]["branch"]);
    with("echo {{.bead.title}}");
    let error = program.windlass(&["workflow", "validate", "w"]).expect(2).stderr;
    assert!(error.contains("`setup`: the variable `bead.title` is not set"), "{error}");
}

/// How long a process may take to come to its set-up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed says nothing about the command that it ran.
#[test]
fn a_set_up_that_is_killed_often_still_runs() {
    let program = repository("  - {name: use, type: script, command: 'cat n.txt'}\n");
    let setup = "echo up >> n.txt; test $(wc -l < n.txt) -gt 3 || sleep 600";
    let text = program.file(FILE);
    put(&program, FILE, &format!("worktree: {{setup: '{setup}'}}\n{text}"));
    program.windlass(&["trust", "--yes"]).expect(0);
    let lines = |program: &Program| {
        let shown = program.windlass(&["workflow", "status", "w", "--json"]);
        let view: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        let path = view["worktrees"][0]["path"].as_str().unwrap_or_default().to_owned();
        let file = std::path::Path::new(&path).join("n.txt");
        std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
    };
    for killed in 1..=3 {
        let verb = if killed == 1 { "run" } else { "resume" };
        let mut child = program.start(&["workflow", verb, "w"]);
        let begun = std::time::Instant::now();
        while lines(&program) < killed {
            assert!(begun.elapsed() < PATIENCE, "the set-up did not begin");
            std::thread::sleep(Duration::from_millis(100));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(status(&program)["steps"][0]["output"]["output"], "up\nup\nup\nup");
}

/// As every task that is cancelled, a run ends what works for it, and does not wait for it.
#[test]
fn a_cancelled_run_ends_its_running_command() {
    let program = repository(
        "  - {name: slow, type: script, command: 'echo begun > ready; sleep 600; echo late > late.txt'}\n",
    );
    let text = program.file(FILE);
    put(&program, FILE, &format!("worktree: false\n{text}"));
    program.windlass(&["trust", "--yes"]).expect(0);
    here(&program, "mkfifo ready");
    let mut child = program.start(&["workflow", "run", "w"]);
    assert_eq!(std::fs::read_to_string(program.workspace().join("ready")).unwrap(), "begun\n");
    program.windlass(&["workflow", "cancel", "w"]).expect(0);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(!program.workspace().join("late.txt").exists());
    assert_eq!(steps(&program), ["slow stopped"]);
    assert_eq!(program.windlass(&["inbox", "--json"]).expect(0).stdout, "");
}

#[test]
fn a_cancelled_run_is_named_and_stays_cancelled() {
    let program = repository("  - {name: wait, type: ask, question: Ready?}\n");
    program.windlass(&["workflow", "run", "w"]).expect(3);
    let run = run(&program);
    let said = program.windlass(&["workflow", "cancel", "w", "--json"]).expect(0).stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["run"], run.as_str());
    let error = program.windlass(&["workflow", "resume", "w"]).expect(2).stderr;
    assert!(error.contains("start another one with `windlass workflow run w`"), "{error}");
}

/// §15.13: a yes is a yes, and words that nobody offered neither approve nor end a run.
#[test]
fn a_yes_approves_the_commands_of_a_file() {
    let program = repository(
        "
  - {name: colour, type: ask, question: Which?, options: [red, blue]}
  - {name: paint, type: script, command: 'echo {{.colour.answer}} > colour.txt'}
  - {name: land, type: merge}
",
    );
    let asked = program.windlass(&["workflow", "run", "w"]).expect(3).stderr;
    assert!(asked.contains("a number, or y or n") && !asked.contains("own words"), "{asked}");
    for none in ["maybe", "3"] {
        let refused = program.windlass(&["answer", &run(&program), none]).expect(2).stderr;
        assert!(refused.contains("choose one of: Approve, Stop"), "{refused}");
    }
    program.windlass(&["answer", &run(&program), "yes", "--resume"]).expect(3);
    for none in ["ok", "7"] {
        let refused = program.windlass(&["answer", &run(&program), none]).expect(2).stderr;
        assert!(refused.contains("choose one of: red, blue"), "{refused}");
    }
    program.windlass(&["answer", &run(&program), "2", "--resume"]).expect(0);
    assert_eq!(program.file("colour.txt"), "blue\n");
}

/// A limit for tasks is not one for the commands of a workflow: each has the time that its file gives it.
#[test]
fn a_command_has_the_time_of_its_file() {
    let program = approved("  - {name: slow, type: script, command: 'sleep 2', timeout: 1m}\n");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), "[agent]\ntimeout_seconds = 1\n").unwrap();
    program.windlass(&["workflow", "run", "w"]).expect(0);
}
