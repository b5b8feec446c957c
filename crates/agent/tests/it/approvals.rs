//! An approval holds for the thing that was shown: the path that was walked, the content that is run.

use windlass_core::id::TaskId;
use windlass_testkit::{Stage, play};

/// Answers what is asked, and drives the task on.
async fn answer(stage: &Stage, task: TaskId, text: &str) {
    let inbox = stage.coordinator.inbox();
    let question = inbox.open().unwrap().first().expect("a question is open").row.question.id;
    inbox.answer(question, text, "ada").await.unwrap();
    stage.drive(task).await;
}

/// The first line of what is asked.
fn open_question(stage: &Stage) -> String {
    let open = stage.coordinator.inbox().open().unwrap();
    open.first().expect("a question is open").row.question.question.clone()
}

#[tokio::test]
async fn a_script_that_changes_while_it_is_asked_about_is_asked_about_again() {
    let script = "
        goal: run it
        control: manual
        files: {f.sh: 'echo one > out.txt'}
        replies:
          - bash: bash f.sh
          - say: done
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    std::fs::write(stage.workspace().join("f.sh"), "echo two > out.txt").unwrap();
    answer(&stage, task, "Allow").await;
    let journal = stage.journal(task);
    assert!(!stage.workspace().join("out.txt").exists(), "{journal}");
    let asked = open_question(&stage);
    assert!(asked.starts_with("Changed since you were asked: the content of `"), "{asked}");
    assert!(asked.contains("f.sh`"), "{asked}");
    answer(&stage, task, "Allow").await;
    let out = std::fs::read_to_string(stage.workspace().join("out.txt")).unwrap();
    assert_eq!(out, "two\n");
}

#[tokio::test]
async fn a_write_that_now_leads_elsewhere_is_asked_about_again() {
    let script = "
        goal: write it
        control: manual
        files: {d/keep: '', e/keep: ''}
        replies:
          - write: {path: d/f, content: new}
          - say: done
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let workspace = stage.workspace();
    std::fs::rename(workspace.join("d"), workspace.join("was")).unwrap();
    std::os::unix::fs::symlink("e", workspace.join("d")).unwrap();
    answer(&stage, task, "Allow").await;
    assert!(!workspace.join("e/f").exists());
    let asked = open_question(&stage);
    assert!(asked.contains("the path now leads to `e/f`"), "{asked}");
    answer(&stage, task, "Allow").await;
    assert_eq!(std::fs::read_to_string(workspace.join("e/f")).unwrap(), "new");
}

#[tokio::test]
async fn a_command_with_a_nul_is_the_models_error_and_no_question() {
    let script = "
        goal: run it
        control: manual
        replies:
          - bash: \"echo a\\0; touch ran\"
          - say: done
    ";
    let journal = play(script).await;
    assert!(journal.contains("tool_result        error: The command holds a NUL"), "{journal}");
    assert!(!journal.contains("question_asked"), "{journal}");
}
