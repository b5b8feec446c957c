use proptest::prelude::*;

use super::*;

struct FakeRequest {
    turn: usize,
    task: &'static str,
    new_texts: &'static str,
}

impl RequestView for FakeRequest {
    fn turn(&self) -> usize {
        self.turn
    }
    fn new_texts(&self) -> Vec<String> {
        vec![self.new_texts.to_owned()]
    }
    fn opening(&self) -> (String, String) {
        ("You are the router".to_owned(), self.task.to_owned())
    }
}

fn said(turn: usize, task: &'static str, new_texts: &'static str) -> FakeRequest {
    FakeRequest { turn, task, new_texts }
}

#[test]
fn shorthand_maps_and_verbatim_calls_become_arguments() {
    let script = Script::parse(
        "goal: not ours
replies:
  - bash: echo 1; exit 2
  - text: look
    calls: [{read: a.txt}, {edit: {path: b, old: x}}, {name: bash, id: c9, arguments: '{\"command'}]
  - update_plan: {steps: [{title: one, done: true}]}
  - list_skills:
  - say: done
    finish: length
    usage: {input: 10, output: 2, cached: 4, cost: 0.5}
    delay_ms: 7
",
    )
    .unwrap();
    let calls: Vec<_> = script
        .replies
        .iter()
        .flat_map(|reply| &reply.calls)
        .map(|call| format!("{} {}", call.name, call.arguments))
        .collect();
    insta::assert_snapshot!(calls.join("\n"), @r#"
    bash {"command":"echo 1; exit 2"}
    read {"path":"a.txt"}
    edit {"old":"x","path":"b"}
    bash {"command
    update_plan {"steps":[{"done":true,"title":"one"}]}
    list_skills {}
    "#);
    let last = script.replies.last().unwrap();
    assert_eq!((last.text.as_str(), last.finish()), ("done", Finish::Length));
    assert_eq!(last.usage(0).cost_usd, Some(0.5));
    assert_eq!(last.delay, Duration::from_millis(7));
    assert_eq!(script.replies[1].calls[2].id.as_deref(), Some("c9"));
}

#[test]
fn a_wrong_script_says_where_and_what() {
    let wrong = |yaml| Script::parse(yaml).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            wrong("goal: x"),
            wrong("replies: [{bash: a, read: b}]"),
            wrong("replies: [{}]"),
            wrong("replies: [{say: a}, {bash: 3}]"),
            wrong("replies: [{sya: a}]"),
            wrong("match: [{when: a, calls: [{read: a, bash: b}]}]"),
        ]
        .join("\n"),
        @"
    it has neither `replies` nor `match`
    replies, item 1: several tools (bash, read) go under `calls`
    replies, item 1: it neither says anything nor calls a tool
    replies, item 2: `bash` takes a text or a map of arguments
    replies, item 1: `sya` takes a map of arguments, or is not a key of a reply
    match, rule 1: a call has one tool, and `bash` is one of several
    "
    );
}

/// Whoever names a file as a script may not be one who may read it.
#[test]
fn the_error_does_not_repeat_a_file_that_is_not_a_script() {
    for text in ["hidden", "hidden\nhidden: [", "replies: hidden", "replies: [hidden", "a: &hidden"]
    {
        let error = Script::parse(text).unwrap_err().to_string();
        assert!(!error.contains("hidden"), "{error}");
    }
    let error = Script::parse("goal: x\nreplies: hidden").unwrap_err().to_string();
    assert_eq!(error, "it is not a YAML script at line 2, column 10");
}

#[test]
fn the_reply_is_chosen_by_the_conversation_alone() {
    let script = Script::parse(
        "
replies:
  - say: first
  - say: second
    expect: [exit 0]
  - say: for counting
    turn: 0
    task: count
match:
  - system: router
    when: stop
    say: cancel_task
  - task: summarize
    replies: [{say: short}]
",
    )
    .unwrap();
    let answer = |said: FakeRequest| match script.answer(&said) {
        Ok(reply) => reply.text.clone(),
        Err(error) => error,
    };
    insta::assert_snapshot!(
        [
            answer(said(0, "fix", "fix")),
            answer(said(1, "fix", "exit 0")),
            answer(said(1, "fix", "exit 1")),
            answer(said(5, "fix", "go on")),
            answer(said(0, "count files", "count files")),
            answer(said(7, "fix", "please stop")),
            answer(said(0, "summarize it", "x")),
            answer(said(1, "summarize it", "x")),
        ]
        .join("\n"),
        @r"
    first
    second
    reply 2 of the script expects `exit 0`, which is not in what came since the last one: exit 1
    the script has 3 replies, and reply 6 was asked for
    for counting
    cancel_task
    short
    the matching rule has 1 reply, and reply 2 was asked for
    "
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        text in "(replies:\n|match:\n|  - |say: |calls: |[{]|[}]|\\[|bash: |a|: |\n|'|\"|&a |[*]a |!!x |7|,){0,30}",
    ) {
        let _ = Script::parse(&text);
    }
}
