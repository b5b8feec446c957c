//! What comes next in a run, from its events alone.

use std::collections::BTreeSet;

use serde_json::json;
use windlass_core::event::{
    Event, QuestionAnswered, StatusChanged, StepEnded, StepResult, StepStarted, WorkflowSource,
};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::Answer;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_workflow::RunState;
use windlass_workflow::definition::Workflow;
use windlass_workflow::next::{Next, Run, failure_question, more_rounds};

struct Story {
    workflow: Workflow,
    source: WorkflowSource,
    state: RunState,
    overdue: BTreeSet<String>,
}

impl Story {
    fn new(steps: &str) -> Self {
        let text = format!("inputs: {{issue: {{default: '7'}}}}\nsteps:\n{steps}");
        let workflow = Workflow::read(&text, "w").unwrap();
        let source = WorkflowSource {
            name: "w".to_owned(),
            title: "Fix the login".to_owned(),
            text,
            approved: true,
            ..WorkflowSource::default()
        };
        Self { workflow, source, state: RunState::default(), overdue: BTreeSet::new() }
    }

    fn next(&self) -> Next {
        let id = TaskId::derived("run", "test");
        let overdue = &self.overdue;
        Run { id, workflow: &self.workflow, source: &self.source, state: &self.state, overdue }
            .next()
    }

    /// The steps that may work now; steps that end by themselves are ended on the way.
    fn ready(&mut self) -> Vec<String> {
        loop {
            match self.next() {
                Next::Work(leaves) => return leaves.into_iter().map(|leaf| leaf.path).collect(),
                Next::End(ended) => self.state.apply(&Event::WorkflowStepEnded(Box::new(ended))),
                Next::Decide(ended) => return vec![format!("decide {}", ended.step)],
                Next::Stop(ended) => return vec![format!("stop {}", ended.step)],
                Next::Finished => return Vec::new(),
            }
        }
    }

    fn begin(&mut self, step: &str) {
        let kind = "script".to_owned();
        let started = StepStarted {
            step: step.to_owned(),
            attempt: 1,
            kind,
            task: None,
            text: String::new(),
        };
        self.state.apply(&Event::WorkflowStepStarted(Box::new(started)));
    }

    /// The run stops, and a person resumes it.
    fn stop_and_resume(&mut self) {
        let (running, blocked) = (TaskStatus::Running, TaskStatus::Blocked);
        let stuck = StatusChanged::new(running, blocked, StatusReason::Error);
        self.state.apply(&Event::StatusChanged(stuck));
        let resumed = StatusChanged::new(blocked, running, StatusReason::User);
        self.state.apply(&Event::StatusChanged(resumed));
    }

    fn answer(&mut self, question: QuestionId, text: &str) {
        let (text, by) = (text.to_owned(), "ada".to_owned());
        let answer = Answer { text, by, at: jiff::Timestamp::UNIX_EPOCH };
        self.state.apply(&Event::QuestionAnswered(QuestionAnswered { question, answer }));
    }

    /// The question about the rounds of the loop, after its last end.
    fn rounds_question(&self) -> QuestionId {
        failure_question(TaskId::derived("run", "test"), self.state.end_of("fix").unwrap())
    }

    fn run(&mut self, step: &str, result: StepResult, output: serde_json::Value) {
        self.begin(step);
        let error = (result == StepResult::Failed).then(|| "exit code 1".to_owned());
        let ended =
            StepEnded { step: step.to_owned(), attempt: 1, result, output, error, reason: None };
        self.state.apply(&Event::WorkflowStepEnded(Box::new(ended)));
    }

    fn succeed(&mut self, step: &str) {
        self.run(step, StepResult::Succeeded, json!({ "output": format!("of {step}") }));
    }

    fn fail(&mut self, step: &str) {
        self.run(step, StepResult::Failed, json!({ "output": "2 failed" }));
    }

    fn variable(&self, path: &str) -> serde_json::Value {
        let Next::Work(leaves) = self.next() else { panic!("nothing is ready") };
        let variables = serde_json::Value::Object(leaves[0].variables.clone());
        path.split('.').fold(variables, |value, part| value[part].clone())
    }
}

const LOOP: &str = "
  - {name: build, type: script, command: make}
  - name: fix
    type: loop
    max: 3
    until: .test.success
    steps:
      - {name: test, type: script, command: make test, on_fail: continue, output: test_output}
      - {name: repair, type: script, command: 'true', when: .test.failed}
  - {name: done, type: script, command: 'true'}
";

#[test]
fn steps_run_in_order_and_a_loop_until_its_condition_holds() {
    let mut story = Story::new(LOOP);
    let mut seen = Vec::new();
    while let [step] = story.ready().as_slice() {
        seen.push(step.clone());
        match step.as_str() {
            "fix[1].test" => story.fail(step),
            step => story.succeed(step),
        }
    }
    assert_eq!(seen, ["build", "fix[1].test", "fix[1].repair", "fix[2].test", "done"]);
    assert_eq!(story.state.end_of("fix").unwrap().output, json!({ "rounds": 2 }));
}

#[test]
fn a_loop_that_does_not_get_there_fails() {
    let mut story = Story::new(LOOP);
    for step in [
        "build",
        "fix[1].test",
        "fix[1].repair",
        "fix[2].test",
        "fix[2].repair",
        "fix[3].test",
        "fix[3].repair",
    ] {
        assert_eq!(story.ready(), [step]);
        if step.ends_with("test") { story.fail(step) } else { story.succeed(step) }
    }
    assert_eq!(story.ready(), ["stop fix"]);
    let ended = story.state.end_of("fix").unwrap();
    assert_eq!(ended.error.as_deref(), Some("its condition does not hold after 3 rounds"));
}

/// WF-058, WF-060, WF-061, WF-062
#[test]
fn the_next_step_sees_how_the_one_before_it_ended() {
    let mut story = Story::new(LOOP);
    assert_eq!(story.variable("previous.failed"), false);
    story.succeed("build");
    story.fail("fix[1].test");
    assert_eq!(story.variable("previous.failed"), true);
    assert_eq!(story.variable("previous.success"), false);
    assert_eq!(story.variable("test.output"), "2 failed");
    assert_eq!(story.variable("test_output"), "2 failed");
    assert_eq!(story.variable("build.success"), true);
    assert_eq!(story.variable("bead.title"), "Fix the login");
    assert_eq!(story.variable("issue"), "7");
    assert_eq!(story.variable("loop.round"), 1);
}

/// A repair that a later round did not need has still been made, and of two branches the one that was taken counts.
#[test]
fn a_skipped_round_takes_no_result_away() {
    let mut story = Story::new(
        "
  - name: fix
    type: loop
    max: 3
    until: .test.success
    steps:
      - {name: test, type: script, command: 'true', on_fail: continue}
      - {name: repair, type: script, command: 'true', when: .test.failed, output: repaired}
  - {name: one, type: script, command: 'true', output: either}
  - {name: two, type: script, command: 'true', when: .one.failed, output: either}
  - {name: done, type: script, command: 'true'}
",
    );
    story.fail("fix[1].test");
    story.succeed("fix[1].repair");
    story.succeed("fix[2].test");
    assert_eq!(story.ready(), ["one"]);
    for name in ["repair.output", "repaired"] {
        assert_eq!(story.variable(name), "of fix[1].repair", "{name}");
    }
    assert_eq!(story.variable("repair.skipped"), true);
    assert_eq!(story.variable("repair.success"), false);
    story.succeed("one");
    assert_eq!(story.ready(), ["done"]);
    assert_eq!(story.variable("either"), "of one");
}

#[test]
fn a_failed_step_stops_unless_the_file_says_otherwise() {
    let steps = |on_fail: &str| {
        format!(
            "
  - {{name: a, type: script, command: 'false', on_fail: {on_fail}}}
  - {{name: b, type: script, command: 'true'}}
"
        )
    };
    for (on_fail, next) in [("stop", "stop a"), ("continue", "b"), ("ask", "decide a")] {
        let mut story = Story::new(&steps(on_fail));
        story.fail("a");
        assert_eq!(story.ready(), [next], "{on_fail}");
    }
}

#[test]
fn a_step_that_needs_another_is_skipped_when_that_failed() {
    let mut story = Story::new(
        "
  - {name: a, type: script, command: 'false', on_fail: continue}
  - {name: b, type: script, command: 'true', needs: [a]}
  - {name: c, type: script, command: 'true'}
",
    );
    story.fail("a");
    assert_eq!(story.ready(), ["c"]);
    assert_eq!(story.state.end_of("b").unwrap().error.as_deref(), Some("`a` did not succeed"));
}

#[test]
fn parallel_steps_are_ready_together_and_wait_for_what_they_need() {
    let mut story = Story::new(
        "
  - name: all
    type: parallel
    steps:
      - {name: a, type: script, command: 'true'}
      - {name: b, type: script, command: 'true'}
      - {name: c, type: script, command: 'true', needs: [a]}
  - {name: after, type: script, command: 'true'}
",
    );
    assert_eq!(story.ready(), ["all.a", "all.b"]);
    story.succeed("all.a");
    assert_eq!(story.ready(), ["all.b", "all.c"]);
    story.succeed("all.b");
    story.succeed("all.c");
    assert_eq!(story.ready(), ["all"], "what they did comes together");
    story.succeed("all");
    assert_eq!(story.ready(), ["after"]);
}

/// What a branch needs may be anywhere in another branch; it is not skipped because that has not run yet.
#[test]
fn a_branch_waits_for_a_step_inside_another() {
    let mut story = Story::new(
        "
  - name: all
    type: parallel
    steps:
      - name: one
        type: loop
        max: 1
        steps:
          - {name: a, type: script, command: 'true'}
          - {name: b, type: script, command: 'true'}
      - {name: c, type: script, command: 'true', needs: [a]}
      - name: two
        type: loop
        max: 1
        steps:
          - {name: d, type: script, command: 'true', needs: [b]}
",
    );
    assert_eq!(story.ready(), ["all.one[1].a"]);
    story.succeed("all.one[1].a");
    assert_eq!(story.ready(), ["all.one[1].b"]);
    story.succeed("all.one[1].b");
    assert_eq!(story.ready(), ["all.c", "all.two[1].d"]);
}

#[test]
fn an_unknown_variable_in_a_condition_fails_the_step() {
    let mut story = Story::new(
        "
  - {name: a, type: script, command: 'true', when: .nobody.success}
",
    );
    assert_eq!(story.ready(), ["stop a"]);
    let error = story.state.end_of("a").unwrap().error.clone();
    assert_eq!(error.as_deref(), Some("its condition: the variable `nobody.success` is not set"));
}

#[test]
fn a_step_that_has_ended_does_not_come_again() {
    let mut story = Story::new(LOOP);
    story.succeed("build");
    let before = story.ready();
    let again = RunState::fold([]);
    assert_ne!(story.state, again);
    assert_eq!(story.ready(), before);
    assert!(!before.contains(&"build".to_owned()));
}

/// A run that was killed right after somebody resumed it still tries the failed step again.
#[test]
fn a_failed_step_is_tried_again_after_the_run_has_stopped() {
    let mut story = Story::new(LOOP);
    story.fail("build");
    assert_eq!(story.ready(), ["stop build"]);
    let stuck = StatusChanged::new(TaskStatus::Running, TaskStatus::Blocked, StatusReason::Error);
    story.state.apply(&Event::StatusChanged(stuck));
    let resumed = StatusChanged::new(TaskStatus::Blocked, TaskStatus::Running, StatusReason::User);
    story.state.apply(&Event::StatusChanged(resumed));
    assert_eq!(story.ready(), ["build"]);
    let Next::Work(leaves) = story.next() else { panic!("it works") };
    assert_eq!(leaves[0].attempt, 2);
}

/// A loop that has used up its rounds continues where it was with those that a person adds.
#[test]
fn a_person_adds_rounds_to_a_loop() {
    let mut story = Story::new(LOOP);
    story.succeed("build");
    for round in 1..=3 {
        story.fail(&format!("fix[{round}].test"));
        story.succeed(&format!("fix[{round}].repair"));
    }
    assert_eq!(story.ready(), ["stop fix"]);
    let run = TaskId::derived("run", "test");
    let question = failure_question(run, story.state.end_of("fix").unwrap());
    let answer =
        Answer { text: more_rounds(2), by: "ada".to_owned(), at: jiff::Timestamp::UNIX_EPOCH };
    let answered = QuestionAnswered { question, answer };
    story.state.apply(&Event::QuestionAnswered(answered));
    assert_eq!(story.ready(), ["fix[4].test"]);
    assert_eq!(story.variable("loop.max"), 5);
    story.succeed("fix[4].test");
    assert_eq!(story.ready(), ["done"]);
}

/// A loop that a person has stopped asks for rounds once more when the run is resumed.
#[test]
fn a_stopped_loop_still_gets_rounds_when_it_is_resumed() {
    let mut story = Story::new(LOOP);
    story.succeed("build");
    for round in 1..=3 {
        story.fail(&format!("fix[{round}].test"));
        story.succeed(&format!("fix[{round}].repair"));
    }
    assert_eq!(story.ready(), ["stop fix"]);
    let first = story.rounds_question();
    story.answer(first, "Stop");
    assert_eq!(story.ready(), ["stop fix"]);
    story.stop_and_resume();
    assert_eq!(story.ready(), ["stop fix"]);
    let second = story.rounds_question();
    assert_ne!(second, first, "it is asked under a new number");
    story.answer(second, &more_rounds(2));
    assert_eq!(story.ready(), ["fix[4].test"]);
    assert_eq!(story.variable("loop.max"), 5);
}

const WORKERS: &str = "
  - name: all
    type: parallel
    workers: 2
    ON_FAIL
    steps:
      - {name: a, type: script, command: 'false', INNER}
      - {name: b, type: script, command: 'true'}
      - {name: c, type: script, command: 'true'}
";

#[test]
fn others_begin_while_a_person_decides_about_one() {
    let mut story =
        Story::new(&WORKERS.replace("ON_FAIL", "join: true").replace("INNER", "on_fail: ask"));
    assert_eq!(story.ready(), ["all.a", "all.b"]);
    story.fail("all.a");
    assert_eq!(story.ready(), ["all.b", "all.c"]);
    story.succeed("all.b");
    story.succeed("all.c");
    assert_eq!(story.ready(), ["decide all.a"]);
}

/// What failed in a parallel step is tried before its branches are joined again.
#[test]
fn a_parallel_step_tries_again_what_failed_in_it() {
    let mut story =
        Story::new(&WORKERS.replace("ON_FAIL", "on_fail: ask").replace("INNER", "on_fail: stop"));
    story.fail("all.a");
    story.succeed("all.b");
    story.succeed("all.c");
    assert_eq!(story.ready(), ["decide all"]);
    let run = TaskId::derived("run", "test");
    story.answer(failure_question(run, story.state.end_of("all").unwrap()), "Try again");
    assert_eq!(story.ready(), ["all.a"]);
    story.succeed("all.a");
    assert_eq!(story.ready(), ["all"], "what they did comes together");
    let Next::Work(leaves) = story.next() else { panic!("it works") };
    assert_eq!(leaves[0].attempt, 2);
}

/// A loop around a step that fails ends once for each time that a person has it tried again.
#[test]
fn a_loop_tries_again_the_step_that_has_failed_in_it() {
    let mut story = Story::new(
        "
  - name: fix
    type: loop
    max: 2
    on_fail: ask
    steps:
      - {name: test, type: script, command: 'false'}
",
    );
    story.fail("fix[1].test");
    assert_eq!(story.ready(), ["decide fix"]);
    let run = TaskId::derived("run", "test");
    story.answer(failure_question(run, story.state.end_of("fix").unwrap()), "Try again");
    assert_eq!(story.ready(), ["fix[1].test"]);
    story.fail("fix[1].test");
    assert_eq!(story.ready(), ["decide fix"]);
}

#[test]
fn a_step_that_a_person_lets_pass_is_not_tried_again() {
    let mut story = Story::new(
        "
  - {name: a, type: script, command: 'false', on_fail: ask}
  - {name: b, type: script, command: 'false'}
",
    );
    story.fail("a");
    let run = TaskId::derived("run", "test");
    story.answer(failure_question(run, story.state.end_of("a").unwrap()), "Continue");
    story.fail("b");
    story.stop_and_resume();
    assert_eq!(story.ready(), ["b"]);
}

#[test]
fn nothing_begins_in_a_step_whose_time_is_up() {
    let mut story = Story::new(&LOOP.replace("max: 3", "max: 3\n    timeout: 10s"));
    story.succeed("build");
    story.fail("fix[1].test");
    story.begin("fix[1].repair");
    story.overdue.insert("fix".to_owned());
    assert_eq!(story.ready(), ["fix[1].repair"], "what is at work ends first");
    story.succeed("fix[1].repair");
    assert_eq!(story.ready(), ["stop fix"]);
    let ended = story.state.end_of("fix").unwrap().clone();
    assert_eq!(ended.reason, Some(StatusReason::Timeout));
    assert_eq!(ended.error.as_deref(), Some("it took too long: its `timeout` is 10 seconds"));
    story.overdue.clear();
    story.stop_and_resume();
    assert_eq!(story.ready(), ["fix[2].test"], "resumed, it has its time once more");
}
