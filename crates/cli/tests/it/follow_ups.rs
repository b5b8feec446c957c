//! More work after a task has ended: `send` to it, `run --continue`, `resume` without an id, another model.

use windlass_testkit::ModelServer;

use crate::program::Program;

/// Reads a file, answers, and then answers a second and a third time.
const TALK: &str = r#"
replies:
  - read: notes.txt
  - say: it is a note
  - edit: {path: notes.txt, old_string: short, new_string: long}
  - say: it is long now
  - say: thanks
"#;

fn prepared(script: &str) -> Program {
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("notes.txt"), "a short note\n").unwrap();
    program
}

/// The messages of a request, without the system prompt.
fn messages(program: &Program, request: usize) -> Vec<serde_json::Value> {
    let body = program.server.requests()[request].json();
    let all = body["messages"].as_array().unwrap().clone();
    all.into_iter().filter(|message| message["role"] != "system").collect()
}

#[test]
fn a_finished_task_takes_a_follow_up_with_its_context() {
    let program = prepared(TALK);
    program.windlass(&["run", "what is in notes.txt?"]).expect(0);
    let first = program.task();
    let ran = program.windlass(&["send", &first, "make it long"]).expect(0);
    assert_eq!(ran.stdout, "it is long now\n");
    // The file was read in the first task, so it can be edited in the second.
    assert_eq!(program.file("notes.txt"), "a long note\n");
    let (before, after) = (messages(&program, 1), messages(&program, 2));
    assert_eq!(after[..before.len()], before, "the conversation is carried over unchanged");
    assert_eq!(after.last().unwrap()["content"], "User says: make it long");
    let listed = program.windlass(&["tasks", "--all", "--json"]).json_lines();
    let of = |field: &str| -> Vec<_> { listed.iter().map(|task| task[field].clone()).collect() };
    assert_eq!(of("status"), ["done", "done"]);
    let sessions = of("session_id");
    assert_eq!(sessions[0], sessions[1], "both belong to one conversation");
}

#[test]
fn run_continue_continues_the_last_task_of_the_directory() {
    let program = prepared(TALK);
    let elsewhere = tempfile::tempdir().unwrap();
    program.windlass(&["run", "what is in notes.txt?"]).expect(0);
    let mut other = program.command(&["run", "--continue", "more"]);
    let refused: crate::program::Ran = other.current_dir(elsewhere.path()).output().unwrap().into();
    let refused = refused.expect(2);
    assert!(refused.stderr.contains("no task of this directory to continue"), "{refused:?}");
    program.windlass(&["run", "-c", "make it long"]).expect(0);
    let ran = program.windlass(&["run", "--continue", "thank you", "-p"]).expect(0);
    assert_eq!(ran.stdout, "thanks\n");
    let said: Vec<_> = messages(&program, 4).iter().map(|one| one["content"].to_string()).collect();
    assert!(said.contains(&"\"User says: make it long\"".to_owned()), "{said:?}");
}

#[test]
fn resume_without_an_id_takes_the_last_one_here() {
    let program = prepared("replies: [{ask_user: {question: red or blue?}}, {say: blue it is}]");
    let none = program.windlass(&["resume"]).expect(2);
    assert!(none.stderr.contains("no task of this directory can be resumed"), "{none:?}");
    program.windlass(&["run", "paint the door"]).expect(3);
    let named = program.windlass(&["resume"]).expect(3);
    assert!(named.stderr.contains("the last task of this directory: task_"), "{named:?}");
    // It is blocked: resumed without an answer it asks again.
    let command = "windlass answer q_";
    assert!(named.stderr.contains("paint the door") && named.stderr.contains(command), "{named:?}");
}

#[test]
fn retry_with_another_model_begins_a_new_epoch() {
    let server = ModelServer::start("replies: [{say: hello}]");
    let refuse = |request: &windlass_testkit::Request| {
        let is_wrong = request.json()["model"] == "e404";
        is_wrong.then(|| windlass_testkit::Answer::error(404, "no such model"))
    };
    server.answer_with(refuse);
    let program = Program::with(server);
    program.windlass(&["run", "say hello", "--model", "litellm/e404"]).expect(1);
    let task = program.task();
    let ran = program.windlass(&["retry", &task, "--model", "litellm/other"]).expect(0);
    assert_eq!(ran.stdout, "hello\n");
    let events = program.windlass(&["events", &task, "--json"]).json_lines();
    let starts: Vec<_> = events.iter().filter(|one| one["event_type"] == "agent_start").collect();
    let models: Vec<_> = starts.iter().map(|start| &start["data"]["model"]).collect();
    assert_eq!(models, ["litellm/e404", "litellm/other"]);
    assert!(starts[1]["data"]["prelude"].is_object(), "another model begins an epoch");
    let refused = program.windlass(&["retry", &task, "--model", "nonsense/x"]).expect(2);
    assert!(refused.stderr.contains("nonsense"), "{refused:?}");
}
