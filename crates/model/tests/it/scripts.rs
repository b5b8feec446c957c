//! `script:FILE` and recordings.

use std::{path::Path, sync::Arc};

use windlass_core::message::Message;
use windlass_model::{
    Category, Fault, Model, ModelName, Models, Recorder, Reply, Settings, StreamEvent, Wire,
};
use windlass_testkit::{Answer, ModelServer};

use crate::support::{ask, begun, message, model, prelude, result};

fn script(path: &Path) -> Arc<dyn Model> {
    let name: ModelName = format!("script:{}", path.display()).parse().unwrap();
    Models::new(Settings::default()).open(&name).unwrap()
}

fn write(directory: &Path, yaml: &str) -> Arc<dyn Model> {
    let path = directory.join("script.yaml");
    std::fs::write(&path, yaml).unwrap();
    script(&path)
}

/// Plays until there is a reply without calls.
async fn play(model: &dyn Model, goal: &str) -> Vec<Reply> {
    let mut transcript = begun(model, goal);
    let mut replies = Vec::new();
    loop {
        let reply = ask(model, &transcript).await.0.unwrap();
        transcript.push(&message(&reply));
        for call in &reply.calls {
            transcript.push(&result(call, &format!("result of {}", call.name)));
        }
        let last = reply.calls.is_empty();
        replies.push(reply);
        if last {
            return replies;
        }
    }
}

#[tokio::test]
async fn a_script_answers_by_the_replies_so_far_after_a_resume_too() {
    let directory = tempfile::tempdir().unwrap();
    let model = write(
        directory.path(),
        "replies: [{bash: ls}, {say: done, expect: result of bash, usage: {input: 5, output: 2}}]",
    );
    let replies = play(&*model, "go").await;
    assert_eq!((replies.len(), replies[1].text.as_str()), (2, "done"));
    assert_eq!((replies[1].usage.input_tokens, replies[1].usage.cost_usd), (5, Some(0.0)));

    // Another process, the same conversation.
    let again = script(&directory.path().join("script.yaml"));
    let mut transcript = begun(&*again, "go");
    transcript.push(&message(&replies[0]));
    transcript.push(&result(&replies[0].calls[0], "result of bash"));
    let (reply, seen) = ask(&*again, &transcript).await;
    assert_eq!(reply.unwrap(), replies[1]);
    assert_eq!(seen, [StreamEvent::Text("done".to_owned())]);

    // An epoch that began with a summary of that one reply.
    let mut later = again.transcript(&prelude()).with_prior_replies(1);
    later.push(&Message::user("summary: result of bash"));
    assert_eq!(ask(&*again, &later).await.0.unwrap().text, "done");
}

#[tokio::test]
async fn a_script_that_ends_or_expects_something_else_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let model = write(directory.path(), "replies: [{say: hi, expect: [good, day]}]");
    let error = ask(&*model, &begun(&*model, "good morning")).await.0.unwrap_err();
    assert_eq!(error.category(), Category::Permanent);
    let Fault::Script { detail } = error.fault else { panic!("{error}") };
    assert_eq!(
        detail,
        "reply 1 of the script expects `day`, which is not in what came since the last one: good morning"
    );
    let mut transcript = begun(&*model, "good day");
    transcript.push(&message(&ask(&*model, &transcript).await.0.unwrap()));
    transcript.push(&Message::user("more"));
    let error = ask(&*model, &transcript).await.0.unwrap_err().to_string();
    assert!(error.contains("the script has 1 reply, and reply 2 was asked for"), "{error}");
}

fn content(replies: &[Reply]) -> Vec<String> {
    let line = |reply: &Reply| {
        let calls: Vec<_> =
            reply.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
        format!("{:?} {:?} {calls:?} {:?}", reply.finish, reply.text, reply.usage)
    };
    replies.iter().map(line).collect()
}

#[tokio::test]
async fn a_recording_plays_back_what_was_said() {
    let server = ModelServer::start(
        r#"
replies:
  - text: "tabs\tand: 'quotes' # and \"more\"\nü \u2028 \x85 \x7f"
    calls:
      - bash: "printf 'a\n'\nls # : {"
      - {name: edit, arguments: '{"z": 1, "a": [2.50]}'}
      - {name: name, arguments: '{"a":1}'}
      - {name: bash, arguments: 'not json'}
      - list_skills: {}
    usage: {input: 100, output: 20, cached: 50, cost: 0.125}
  - say: "cut"
    finish: length
    usage: {input: 200, output: 30}
"#,
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.yaml");
    let live = Recorder::create(model(Wire::Chat, &server), &path).unwrap();
    let said = play(&live, "go").await;
    let mut played = play(&*script(&path), "go").await;
    // A script's replies have a price, even if it is zero.
    assert_eq!(played[1].usage.cost_usd.take(), Some(0.0));
    assert_eq!(content(&said), content(&played), "{}", std::fs::read_to_string(&path).unwrap());
    insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
    # What a model answered; play it back with `--model script:FILE`.
    replies:
      - turn: 0
        text: "tabs\tand: 'quotes' # and \"more\"\nü \u2028 \u0085 \u007f"
        calls:
          - "bash": "printf 'a\n'\nls # : {"
          - {name: "edit", arguments: "{\"z\": 1, \"a\": [2.50]}"}
          - {name: "name", arguments: "{\"a\":1}"}
          - {name: "bash", arguments: "not json"}
          - {"list_skills": {}}
        usage: {input: 100, output: 20, cached: 50, cost: 0.125}
      - turn: 1
        say: "cut"
        finish: length
        usage: {input: 200, output: 30, cached: 0}
    "#);
}

#[tokio::test]
async fn a_recording_separates_sub_agents_and_continues_after_a_restart() {
    let server = ModelServer::start_empty();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.yaml");
    let live = model(Wire::Anthropic, &server);
    let recorder = Recorder::create(Arc::clone(&live), &path).unwrap();
    for item in ["bash: ls", "say: the child is done"] {
        server.next(Answer::script(item));
    }
    let mut parent = begun(&recorder, "the parent's goal");
    let first = ask(&recorder, &parent).await.0.unwrap();
    ask(&recorder, &begun(&recorder, "the child's goal")).await.0.unwrap();
    parent.push(&message(&first));
    parent.push(&result(&first.calls[0], "ok"));
    server.next(Answer::script("say: the parent is done"));
    let restarted = Recorder::append(live, &path).unwrap();
    ask(&restarted, &parent).await.0.unwrap();

    let model = script(&path);
    assert_eq!(play(&*model, "the parent's goal").await[1].text, "the parent is done");
    assert_eq!(play(&*model, "the child's goal").await[0].text, "the child is done");
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_is_an_error() {
    let server = ModelServer::start("match: [{say: hi}]");
    let model = || model(Wire::Chat, &server);
    assert!(Recorder::create(model(), Path::new("/nowhere/at/all.yaml")).is_err());
    // A pipe whose other end is closed after the beginning was written.
    let (reader, writer) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
    let recorder = Recorder::append(model(), Path::new(&path)).unwrap();
    drop(reader);
    let error = ask(&recorder, &begun(&recorder, "go")).await.0.unwrap_err();
    assert!(matches!(error.fault, Fault::Recording { .. }), "{error}");
    assert!(error.to_string().contains(&path), "{error}");
}
