//! A plan from the command line: asked about, accepted, carried out.

use crate::program::Program;

const SCRIPT: &str = "
replies:
  - say: |
      # Greeting

      1. Write greeting.txt.
  - write: {path: greeting.txt, content: hello}
  - say: written
";

fn program() -> Program {
    Program::playing(SCRIPT)
}

fn greeting(program: &Program) -> bool {
    program.workspace().join("greeting.txt").exists()
}

/// MS-023: whoever begins is led to a plan first.
#[test]
fn the_readme_begins_with_a_plan() {
    let readme = include_str!("../../../../README.md");
    let first = readme.lines().find(|line| line.starts_with("windlass run --mode")).unwrap();
    assert!(first.starts_with("windlass run --mode plan "), "{first}");
}

/// MS-022, MS-024
#[test]
fn a_plan_is_printed_with_the_command_that_accepts_it() {
    let program = program();
    let asked = program.windlass(&["run", "greet", "--mode", "plan"]).expect(3);
    assert!(asked.stderr.contains("question: Accept this plan?"), "{asked:?}");
    assert!(asked.stderr.contains("1. Write greeting.txt."), "{asked:?}");
    assert!(asked.stderr.contains("2. Accept and run autonomously"), "{asked:?}");
    assert!(asked.stderr.contains("windlass answer"), "{asked:?}");
    assert!(!greeting(&program));
    let task = program.task();
    assert_eq!(program.own_file("proposal.md"), "# Greeting\n\n1. Write greeting.txt.\n");

    program.windlass(&["answer", &task, "2", "--resume", "-q"]).expect(0);
    assert_eq!(program.file("greeting.txt"), "hello");
    let events = program.windlass(&["events", &task]).expect(0).stdout;
    let change = "plan | assisted | trusted | smart → build | autonomous | trusted | smart";
    assert!(events.contains(change), "{events}");
}

/// The words after `answer` that are not an option go to the agent.
#[test]
fn a_comment_sends_a_plan_back() {
    let script = "replies: [{say: Write it.}, {say: Write it twice.}]";
    let program = Program::playing(script);
    program.windlass(&["run", "greet", "--mode", "plan", "-q"]).expect(3);
    let again = program.windlass(&["answer", &program.task(), "do it twice", "--resume"]).expect(3);
    assert!(again.stderr.contains("Write it twice."), "{again:?}");
    assert!(program.last_message_sent().contains("do it twice"));
}

#[test]
fn a_plan_whose_files_changed_is_asked_about_again() {
    let program = program();
    std::fs::write(program.workspace().join("notes.txt"), "one").unwrap();
    program.windlass(&["run", "greet", "--mode", "plan", "-q"]).expect(3);
    std::fs::write(program.workspace().join("notes.txt"), "two").unwrap();
    let again = program.windlass(&["answer", &program.task(), "y", "--resume"]).expect(3);
    assert!(again.stderr.contains("files of the workspace were changed: notes.txt"), "{again:?}");
    assert!(!greeting(&program));
    // An assisted task waits at its end for somebody to look.
    program.windlass(&["answer", &program.task(), "y", "--resume"]).expect(4);
    assert!(greeting(&program));
}

/// MS-027
#[test]
fn headless_autonomous_planning_continues_by_itself() {
    let program = program();
    let ran = program.windlass(&["headless", "--autonomous", "greet", "--mode", "plan", "--json"]);
    let kinds = ran.expect(0).kinds();
    assert!(kinds.contains(&"plan_accepted".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"mode_changed".to_owned()), "{kinds:?}");
    assert!(greeting(&program));
}

/// MS-031
#[test]
fn a_review_is_done_by_the_deep_model() {
    let program = Program::playing("replies: [{say: it is good}]");
    program.windlass(&["config", "set", "models.deep", "litellm/thinker"]).expect(0);
    program.windlass(&["run", "look at it", "--mode", "review", "-q"]).expect(0);
    assert_eq!(program.server.requests()[0].json()["model"], "thinker");
    let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(
        page.contains("mode review, control autonomous, profile trusted, model deep"),
        "{page}"
    );
    let refused =
        program.windlass(&["run", "x", "--mode", "review", "--model-mode", "fast"]).expect(2);
    assert!(refused.stderr.contains("mode `review` takes the deep model"), "{refused:?}");
}
