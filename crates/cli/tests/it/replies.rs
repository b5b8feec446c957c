//! Replies that are cut off: a person gets the whole answer, or the reason why not.

use windlass_testkit::{Answer, ModelServer};

use crate::program::Program;

const CUT: &str = "say: 'The first half, '\nfinish: length";

/// The request's last message, as the model sees it.
fn last_message(program: &Program, request: usize) -> String {
    let body = program.server.requests()[request].json();
    let last = body["messages"].as_array().unwrap().last().unwrap().clone();
    last["content"].to_string()
}

#[test]
fn a_cut_reply_is_continued_and_its_parts_are_joined() {
    for model in ["openai/m", "anthropic/m"] {
        let script = "replies: [{say: 'The first half, ', finish: length}, {say: and the second.}]";
        let program = Program::playing(script);
        let mut command = program.command(&["run", "explain", "--model", model]);
        command
            .env("ANTHROPIC_BASE_URL", program.server.base())
            .env("OPENAI_BASE_URL", program.server.base());
        let ran: crate::program::Ran = command.output().unwrap().into();
        let ran = ran.expect(0);
        assert_eq!(ran.stdout, "The first half, and the second.\n");
        assert!(ran.stderr.contains("cut at the model's output limit"), "{ran:?}");
        assert!(last_message(&program, 1).contains("cut off at the output limit"));
    }
}

#[test]
fn a_reply_cut_again_and_again_fails_the_task() {
    let program = Program::with(ModelServer::start_empty());
    program.server.answer_with(|_| Some(Answer::script(CUT)));
    let ran = program.windlass(&["run", "explain"]).expect(1);
    assert_eq!(program.server.request_count(), 4);
    assert!(ran.stderr.contains("failed: 4 replies in a row were cut"), "{ran:?}");
    // Tried again, it has as many attempts as before.
    program.server.answer_with(|_| Some(Answer::script("say: short")));
    assert_eq!(program.windlass(&["retry", &program.task(), "-p"]).expect(0).stdout, "short\n");
}

#[test]
fn a_reply_that_the_provider_withholds_is_not_an_answer() {
    let program =
        Program::playing("replies: [{say: 'I ca', finish: content_filter}, {say: better}]");
    let ran = program.windlass(&["run", "explain"]).expect(1);
    assert_eq!(ran.stdout, "", "{ran:?}");
    assert!(ran.stderr.contains("the provider's content filter stopped the reply"), "{ran:?}");
    assert!(ran.stderr.contains("I ca"), "what was said is shown: {ran:?}");
    let again = program.windlass(&["retry", &program.task(), "-p"]).expect(0);
    assert_eq!(again.stdout, "better\n");
    assert!(last_message(&program, 1).contains("content filter stopped"));
}

#[test]
fn a_message_after_a_cut_reply_gets_a_new_answer() {
    let program = Program::with(ModelServer::start_empty());
    let gate = windlass_testkit::Gate::new();
    program
        .server
        .next(Answer::script(CUT))
        .next(Answer::script("say: never read").gated(0, &gate));
    let mut child = program.start(&["run", "explain", "--json"]);
    gate.reached_blocking();
    child.kill().unwrap();
    child.wait().unwrap();
    let task = program.task();
    program.windlass(&["send", &task, "briefly, please"]).expect(0);
    program.server.answer_with(|_| Some(Answer::script("say: in short")));
    assert_eq!(program.windlass(&["resume", &task, "-p"]).expect(0).stdout, "in short\n");
}
