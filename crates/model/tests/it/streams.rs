//! Streams that break, stall, lie or never end.

use std::time::Duration;

use windlass_core::message::Finish;
use windlass_model::{
    Fault, MAX_CALLS, MAX_REPLY_BYTES, Models, Retry, Settings, StreamEvent, Wire,
};
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::support::{ask, begun, hello, model, settings};

fn reply() -> Answer {
    Answer::script("text: one two three ünïcödé ✓\nbash: echo grüße")
}

#[tokio::test]
async fn bytes_may_be_parted_anywhere() {
    for &wire in Wire::ALL {
        for size in [1, 2, 3, 7, 64] {
            let server = ModelServer::start_empty();
            server.next(reply().split_every(size));
            let reply = hello(&*model(wire, &server)).await.unwrap();
            assert_eq!(reply.text, "one two three ünïcödé ✓");
            assert_eq!(reply.calls[0].arguments, r#"{"command":"echo grüße"}"#);
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_asked_for_again() {
    for &wire in Wire::ALL {
        let server = ModelServer::start_empty();
        let ends =
            [reply().cut_after(0), reply().cut_after(3), reply().ended_after(3), Answer::close()];
        for end in &ends[..3] {
            server.next(end.clone());
        }
        server.next(reply());
        let model = model(wire, &server);
        let (whole, seen) = ask(&*model, &begun(&*model, "go")).await;
        assert_eq!(whole.unwrap().text, "one two three ünïcödé ✓");
        let retries =
            seen.iter().filter(|live| matches!(live, StreamEvent::Retrying { .. })).count();
        assert_eq!((retries, server.request_count()), (3, 4));

        server.answer_with(move |_| Some(ends[3].clone()));
        let error = hello(&*model).await.unwrap_err();
        assert!(matches!(error.fault, Fault::Truncated { .. }), "{error}");
        assert!(error.retryable());
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_more_has_stalled() {
    for (wire, answer) in [
        (Wire::Chat, reply().hung_after(3)),
        (Wire::Anthropic, reply().hung_after(3)),
        (Wire::Responses, reply().hung_after(5)),
        (Wire::Chat, reply().gated(0, &Gate::new())),
    ] {
        let server = ModelServer::start_empty();
        server.next(answer.clone()).next(answer);
        let settings = Settings {
            stall: Duration::from_millis(40),
            retry: Retry { max_retries: 1, ..settings(wire, "http://x").retry },
            ..settings(wire, &server.base())
        };
        let model = Models::new(settings).open(&"test/m".parse().unwrap()).unwrap();
        let error = hello(&*model).await.unwrap_err();
        assert_eq!(error.fault, Fault::Stalled { after: Duration::from_millis(40) });
        assert_eq!(error.attempts, 2);
        server.departures_reach(2).await;
    }
}

#[tokio::test]
async fn what_is_not_json_is_garbled_and_asked_for_again() {
    for &wire in Wire::ALL {
        for nonsense in ["{\"choices\":[", "null and void", "[]", "{\"choices\":7,\"type\":8}"] {
            let server = ModelServer::start_empty();
            server.next(Answer::events([nonsense])).next(reply());
            hello(&*model(wire, &server)).await.unwrap();
            assert_eq!(server.request_count(), 2, "{nonsense}");
        }
        let server = ModelServer::start_empty();
        server.answer_with(|_| Some(Answer::stream(vec![b"data: \xff\xfe{}\n\n".to_vec()])));
        let error = hello(&*model(wire, &server)).await.unwrap_err();
        assert!(matches!(error.fault, Fault::Garbled { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_web_page_or_other_bytes_are_not_a_model_server() {
    let server = ModelServer::start_empty();
    server.next(Answer::status(200, "text/html; charset=utf-8", "<html>"));
    let error = hello(&*model(Wire::Chat, &server)).await.unwrap_err();
    assert!(matches!(error.fault, Fault::NotAModelServer { .. }), "{error}");
    assert_eq!(server.request_count(), 1);

    server.answer_with(|_| Some(Answer::raw(b"SSH-2.0-OpenSSH_9.2\r\n")));
    let error = hello(&*model(Wire::Chat, &server)).await.unwrap_err();
    assert!(error.retryable(), "{error}");
}

#[tokio::test]
async fn a_reply_of_nothing_is_asked_for_again() {
    for &wire in Wire::ALL {
        for nothing in ["say: ''", "say: \"  \\n\""] {
            let server = ModelServer::start_empty();
            server.answer_with(move |_| Some(Answer::script(nothing)));
            let error = hello(&*model(wire, &server)).await.unwrap_err();
            assert_eq!((error.fault, server.request_count()), (Fault::EmptyReply, 4));
        }
    }
}

#[tokio::test]
async fn a_cut_or_filtered_reply_is_a_reply_that_says_so() {
    for &wire in Wire::ALL {
        for (finish, name) in
            [(Finish::Length, "length"), (Finish::ContentFilter, "content_filter")]
        {
            let server = ModelServer::start_empty();
            server.next(Answer::script(&format!("say: I was\nfinish: {name}")));
            server.next(Answer::script(&format!("say: ''\nfinish: {name}")));
            server.next(Answer::script(&format!("bash: ls\nfinish: {name}")));
            let model = model(wire, &server);
            for (text, calls) in [("I was", 0), ("", 0), ("", 1)] {
                let reply = hello(&*model).await.unwrap();
                assert_eq!((reply.finish, &*reply.text, reply.calls.len()), (finish, text, calls));
            }
        }
    }
}

#[tokio::test]
async fn a_reply_of_ten_megabytes_is_stopped_and_not_retried() {
    for &wire in Wire::ALL {
        let server = ModelServer::start_empty();
        let piece = "x".repeat(64 * 1024);
        let event = match wire {
            Wire::Chat => format!(r#"{{"choices":[{{"delta":{{"content":"{piece}"}}}}]}}"#),
            Wire::Responses => {
                format!(
                    r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{piece}"}}"#
                )
            }
            Wire::Anthropic => format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{piece}"}}}}"#
            ),
        };
        server.next(Answer::events(vec![event; 160]));
        let error = hello(&*model(wire, &server)).await.unwrap_err();
        assert_eq!(error.fault, Fault::TooLarge { what: "bytes", limit: MAX_REPLY_BYTES });
        assert_eq!((server.request_count(), error.retryable()), (1, false));
    }
}

#[tokio::test]
async fn a_line_without_end_and_calls_without_number_are_stopped() {
    let server = ModelServer::start_empty();
    server.next(Answer::stream(vec![vec![b'x'; 1024 * 1024]; 20]));
    let calls = (0..=MAX_CALLS).map(|index| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},"id":"c{index}"}}]}}}}]}}"#
        )
    });
    server.next(Answer::events(calls));
    let model = model(Wire::Chat, &server);
    for what in ["bytes in one line", "tool calls"] {
        let error = hello(&*model).await.unwrap_err();
        assert!(matches!(error.fault, Fault::TooLarge { what: w, .. } if w == what), "{error}");
    }
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection_in_the_middle_of_a_stream() {
    let server = ModelServer::start_empty();
    let gate = Gate::new();
    server.next(reply().gated(3, &gate));
    let model = model(Wire::Chat, &server);
    let transcript = begun(&*model, "go");
    tokio::select! {
        _ = ask(&*model, &transcript) => panic!("the gate is closed"),
        () = gate.reached() => {}
    }
    server.departures_reach(1).await;
    server.next(reply());
    hello(&*model).await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let bodies = [
        (
            Wire::Chat,
            r#"{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi",
            "tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}]},
            "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        ),
        (
            Wire::Anthropic,
            r#"{"type":"message","model":"m","content":[{"type":"text","text":"hi"},
            {"type":"tool_use","id":"c","name":"bash","input":{}}],"stop_reason":"tool_use",
            "usage":{"input_tokens":3,"output_tokens":2}}"#,
        ),
        (
            Wire::Responses,
            r#"{"object":"response","status":"completed","model":"m","error":null,"output":[
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]},
            {"type":"function_call","call_id":"c","name":"bash","arguments":"{}"}],
            "usage":{"input_tokens":3,"output_tokens":2}}"#,
        ),
    ];
    for (wire, body) in bodies {
        let server = ModelServer::start_empty();
        server.next(Answer::status(200, "application/json", body));
        let reply = hello(&*model(wire, &server)).await.unwrap();
        let call = &reply.calls[0];
        assert_eq!((&*reply.text, &*call.provider_id, &*call.arguments), ("hi", "c", "{}"));
        assert_eq!((reply.usage.input_tokens, reply.finish), (3, Finish::ToolCalls));
    }
}

#[tokio::test]
async fn a_mislabelled_stream_is_read_and_other_text_is_refused() {
    let server = ModelServer::start_empty();
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n";
    server.next(Answer::status(200, "text/plain", stream));
    server.next(Answer::status(200, "text/plain", "It works!\n"));
    let model = model(Wire::Chat, &server);
    assert_eq!(hello(&*model).await.unwrap().text, "hi");
    let error = hello(&*model).await.unwrap_err();
    assert!(matches!(error.fault, Fault::NotAModelServer { .. }), "{error}");
}

/// A reply that is not a stream now will not be one at the next try.
#[tokio::test]
async fn a_reply_without_a_stream_is_named_and_asked_for_once() {
    for (kind, body) in [
        ("text/plain", "It works!"),
        ("text/plain", ""),
        ("application/json", "It works!"),
        ("application/json", r#"{"status":"ok"}"#),
        ("application/octet-stream", "\u{0}\u{1}"),
    ] {
        for &wire in Wire::ALL {
            let server = ModelServer::start_empty();
            server.answer_with(move |_| Some(Answer::status(200, kind, body)));
            let error = hello(&*model(wire, &server)).await.unwrap_err();
            assert!(matches!(error.fault, Fault::NotAModelServer { .. }), "{kind}: {error}");
            assert_eq!(server.request_count(), 1, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_stops_saying_done_but_has_a_reason_is_whole() {
    let server = ModelServer::start_empty();
    server.next(Answer::events([
        r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#,
    ]));
    assert_eq!(hello(&*model(Wire::Chat, &server)).await.unwrap().text, "hi");
}
