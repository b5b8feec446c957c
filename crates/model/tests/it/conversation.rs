//! Conversations that go well, on every wire.

use windlass_core::message::{Finish, Message, Usage};
use windlass_model::{Model, StreamEvent, Wire};
use windlass_testkit::{Answer, ModelServer};

use crate::support::{ask, begun, hello, message, model, result};

const SCRIPT: &str = "
replies:
  - text: Looking.
    calls: [{bash: ls -la}, {read: a.txt}]
    usage: {input: 1000, output: 20, cached: 800}
  - bash: cat b.txt
    usage: {input: 1100, output: 30, cached: 1000}
  - say: All three are there. ✓
    usage: {input: 1200, output: 40, cached: 1100}
";

/// Plays `SCRIPT` to its end and writes down what came of it.
async fn play(model: &dyn Model) -> String {
    let mut transcript = begun(model, "count the files");
    let mut lines = Vec::new();
    loop {
        let reply = ask(model, &transcript).await.0.unwrap();
        let usage = &reply.usage;
        lines.push(format!(
            "{:?} {:?} {}/{}/{}",
            reply.finish, reply.text, usage.input_tokens, usage.output_tokens, usage.cached_tokens
        ));
        transcript.push(&message(&reply));
        for call in &reply.calls {
            lines.push(format!("  {} {} {}", call.provider_id, call.name, call.arguments));
            transcript.push(&result(call, "ok"));
        }
        if reply.calls.is_empty() {
            return lines.join("\n");
        }
        transcript.push(&Message::user("and hurry"));
    }
}

/// ES-112, ES-335
#[tokio::test]
async fn the_same_conversation_means_the_same_on_every_wire() {
    let server = ModelServer::start(SCRIPT);
    let chat = play(&*model(Wire::Chat, &server)).await;
    for &wire in Wire::ALL {
        assert_eq!(play(&*model(wire, &server)).await, chat, "{wire}");
    }
    insta::assert_snapshot!(chat, @r#"
    ToolCalls "Looking." 1000/20/800
      call_0_0 bash {"command":"ls -la"}
      call_0_1 read {"path":"a.txt"}
    ToolCalls "" 1100/30/1000
      call_1_0 bash {"command":"cat b.txt"}
    Stop "All three are there. ✓" 1200/40/1100
    "#);
}

#[tokio::test]
async fn a_request_extends_the_one_before_it_byte_for_byte() {
    for &wire in Wire::ALL {
        let server = ModelServer::start(SCRIPT);
        play(&*model(wire, &server)).await;
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        for pair in requests.windows(2) {
            pair[1].assert_extends(&pair[0]);
            assert_eq!(pair[0].json()["tools"], pair[1].json()["tools"]);
        }
    }
}

#[tokio::test]
async fn parts_of_a_reply_are_shown_as_they_come() {
    let server = ModelServer::start_empty();
    server.next(Answer::script("text: one two three\nbash: ls"));
    let model = model(Wire::Chat, &server);
    let (reply, seen) = ask(&*model, &begun(&*model, "go")).await;
    let reply = reply.unwrap();
    let shown: String = seen
        .iter()
        .filter_map(|live| if let StreamEvent::Text(t) = live { Some(&**t) } else { None })
        .collect();
    assert_eq!(shown, reply.text);
    assert!(seen.contains(&StreamEvent::CallStarted { index: 0, name: "bash".to_owned() }));
    assert!(seen.iter().any(|live| matches!(live, StreamEvent::Bytes(bytes) if *bytes > 100)));
}

#[tokio::test]
async fn connections_are_reused() {
    let server = ModelServer::start("match: [{say: hi}]");
    let model = model(Wire::Chat, &server);
    for _ in 0..5 {
        hello(&*model).await.unwrap();
    }
    assert_eq!((server.request_count(), server.connections()), (5, 1));
}

/// ES-334
#[tokio::test]
async fn a_reply_says_how_long_it_took() {
    let server = ModelServer::start("match: [{say: hi}]");
    let reply = hello(&*model(Wire::Chat, &server)).await.unwrap();
    assert!(!reply.latency.is_zero());
}

#[tokio::test]
async fn without_usage_the_counts_are_nought() {
    let server = ModelServer::start_empty();
    server.next(Answer::events([
        r#"{"model":"m-1","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]));
    let reply = hello(&*model(Wire::Chat, &server)).await.unwrap();
    assert_eq!(
        (reply.usage, reply.model.as_str(), reply.finish),
        (Usage::default(), "m-1", Finish::Stop)
    );
}
