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
async fn a_script_that_changes_during_its_question_is_asked_about_again() {
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
async fn an_output_that_now_leads_elsewhere_is_asked_about_again() {
    let script = "
        goal: share it
        control: manual
        files: {d/keep: '', e/keep: ''}
        replies:
          - spawn_agent: {task: look, write_output_to: d/f}
          - say: done
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let workspace = stage.workspace();
    std::fs::rename(workspace.join("d"), workspace.join("was")).unwrap();
    std::os::unix::fs::symlink("e", workspace.join("d")).unwrap();
    answer(&stage, task, "Allow").await;
    let asked = open_question(&stage);
    assert!(asked.contains("the path now leads to `e/f`"), "{asked}");
}

#[tokio::test]
async fn a_read_of_a_secret_that_now_leads_elsewhere_is_asked_about_again() {
    for call in [
        "read: l",
        "grep: {pattern: key, path: l}",
        "publish_deliverable: {filepath: l, description: d, type: data}",
    ] {
        let script = format!(
            "
        goal: read it
        files: {{a/.ssh/id_rsa: 'key one', b/.ssh/id_rsa: 'key two'}}
        replies:
          - {call}
          - say: done
    "
        );
        let stage = Stage::set(&script);
        let link = stage.workspace().join("l");
        std::os::unix::fs::symlink("a/.ssh/id_rsa", &link).unwrap();
        let task = stage.play().await;
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("b/.ssh/id_rsa", &link).unwrap();
        answer(&stage, task, "Allow").await;
        let asked = open_question(&stage);
        assert!(asked.contains("the path now leads to `b/.ssh/id_rsa`"), "{call}: {asked}");
        assert!(!stage.journal(task).contains("key two"), "{call}");
    }
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

/// Plays a command that a person is asked about, changes something, and says yes. What is asked then, if anything.
async fn asked_after(command: &str, change: impl FnOnce(&std::path::Path)) -> Option<String> {
    let script = format!(
        "
        goal: run it
        control: manual
        files: {{web/Makefile: 'all: ; touch ../ran', web/pkg.py: '', r/a: '', body: x, .husky/x: ''}}
        replies:
          - bash: {command:?}
          - say: done
    "
    );
    let stage = Stage::set(&script);
    let task = stage.play().await;
    change(stage.workspace().as_ref());
    answer(&stage, task, "Allow").await;
    let open = stage.coordinator.inbox().open().unwrap();
    open.first().map(|open| open.row.question.question.clone())
}

#[tokio::test]
async fn a_change_of_a_file_without_a_name_is_asked_about() {
    for (command, changed) in [
        ("make -C web", "web/Makefile"),
        ("cd web && make", "web/Makefile"),
        ("PYTHONPATH=web python3 -m pkg", "web/pkg.py"),
        ("sh web/f.[s]h", "web/f.sh"),
        ("env -C web sh f.sh", "web/f.sh"),
        ("find web -exec sh {} \\;", "web/f.sh"),
        ("git push", ".git/refs/heads/main"),
        ("git commit -am x", "web/pkg.py"),
        ("git commit -am x", ".husky/pre-commit"),
        ("curl -d @body http://127.0.0.1:9", "body"),
        ("kubectl apply -f web", "web/new.yaml"),
        ("pytest", "web/test_it.py"),
        ("cargo build", "build.rs"),
        ("npm install", "web/package.json"),
        ("rm -r r", "r/new"),
    ] {
        let asked = asked_after(command, |workspace| {
            let path = workspace.join(changed);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "touch owned\n").unwrap();
        });
        let asked = asked.await.unwrap_or_else(|| panic!("`{command}` ran after `{changed}`"));
        assert!(asked.starts_with("Changed since you were asked: "), "{command}: {asked}");
        assert!(asked.contains(changed), "{command}: {asked}");
    }
}

#[tokio::test]
async fn a_file_that_is_gone_is_asked_about() {
    let remove = |workspace: &std::path::Path| std::fs::remove_file(workspace.join("r/a")).unwrap();
    let asked = asked_after("make -C web", remove).await;
    assert!(asked.as_ref().is_some_and(|asked| asked.contains("what is in `r/`")), "{asked:?}");
}

#[tokio::test]
async fn what_git_keeps_for_itself_is_not_asked_about() {
    let asked = asked_after("rm -r r", |workspace| {
        std::fs::create_dir_all(workspace.join(".git/objects/ab")).unwrap();
        std::fs::write(workspace.join(".git/index"), "x").unwrap();
    });
    // The directory `.git` itself was not there before, and what is in it explains that.
    assert_eq!(asked.await, None);
}

#[tokio::test]
async fn a_command_that_names_its_files_is_not_asked_about_again() {
    for command in ["echo x > out.txt", "rm body"] {
        let other = |workspace: &std::path::Path| {
            std::fs::write(workspace.join("web/pkg.py"), "changed\n").unwrap();
        };
        assert_eq!(asked_after(command, other).await, None, "{command}");
    }
}

#[tokio::test]
async fn a_workspace_that_keeps_changing_is_asked_about_twice() {
    let script = "
        goal: run it
        control: manual
        files: {Makefile: 'all: ; touch ran'}
        replies:
          - bash: make
          - say: done
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let log = stage.workspace().join("server.log");
    let mut asked = Vec::new();
    while let Some(open) = stage.coordinator.inbox().open().unwrap().first() {
        asked.push(open.row.question.question.clone());
        assert!(asked.len() < 5, "{asked:?}");
        std::fs::write(&log, asked.len().to_string()).unwrap();
        answer(&stage, task, "Allow").await;
    }
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[1].contains("`server.log`") && !asked[1].contains("not asked about again"));
    assert!(asked[2].contains("which is not asked about again"), "{asked:?}");
    assert!(stage.workspace().join("ran").exists());
}
