//! What a model thinks: read, sent back as its wire demands, and to no other model.

use serde_json::{Value, json};
use windlass_core::reasoning::{Effort, Seal};
use windlass_model::{
    Fault, KnownProvider, Model, Models, Provider, ReasoningUse, Reply, Settings, SetupError,
    StreamEvent, Wire,
};
use windlass_testkit::{Answer, ModelServer, Request};

use crate::support::{ask, begun, hello, message, model, result, settings};

const SCRIPT: &str = "
replies:
  - think: [First the files., Then their sizes.]
    text: Looking.
    calls: [{bash: ls}, {bash: du}]
  - redacted: c2VjcmV0
    think: 'Only ÄÖ, then.'
    bash: cat b
  - {think: All seen., say: Done.}
";

/// A model of a server whose entry says this.
fn opened(server: &ModelServer, name: &str, change: impl FnOnce(&mut Provider)) -> Settings {
    let mut settings = settings(Wire::Chat, &server.base());
    let provider = settings.providers.get_mut("test").unwrap();
    change(provider);
    let provider = provider.clone();
    settings.providers.insert(name.to_owned(), provider);
    settings
}

/// Plays `SCRIPT` to its end; what was thought, with its place, and the requests.
async fn play(model: &dyn Model, server: &ModelServer) -> (String, Vec<Request>) {
    let mut transcript = begun(model, "count the files");
    let mut lines = Vec::new();
    loop {
        let reply = ask(model, &transcript).await.0.unwrap();
        lines.push(thoughts(&reply));
        transcript.push(&message(&reply));
        for call in &reply.calls {
            transcript.push(&result(call, "ok"));
        }
        if reply.calls.is_empty() {
            return (lines.join(" | "), server.requests());
        }
    }
}

fn thoughts(reply: &Reply) -> String {
    let thoughts = reply.reasoning.iter().flat_map(|reasoning| &reasoning.thoughts);
    let line = |thought: &windlass_core::reasoning::Thought| {
        format!("{:?} at {},{}", thought.text, thought.after_text, thought.after_calls)
    };
    thoughts.map(line).collect::<Vec<_>>().join("; ")
}

/// The server of these tests refuses a thought that comes back changed or out of order.
#[tokio::test]
async fn signed_blocks_go_back_unchanged_before_what_they_led_to() {
    let server = ModelServer::start(SCRIPT);
    let (said, requests) = play(&*model(Wire::Anthropic, &server), &server).await;
    insta::assert_snapshot!(said, @r#""First the files." at 0,0; "Then their sizes." at 8,1 | "" at 0,0; "Only ÄÖ, then." at 0,0 | "All seen." at 0,0"#);
    for pair in requests.windows(2) {
        pair[1].assert_extends(&pair[0]);
    }
    let body = requests[2].json();
    let kinds = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap();
        blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        kinds(&body["messages"][1]),
        ["thinking", "text", "tool_use", "thinking", "tool_use"]
    );
    assert_eq!(kinds(&body["messages"][3]), ["redacted_thinking", "thinking", "tool_use"]);
    assert_eq!(body["messages"][3]["content"][0]["data"], "c2VjcmV0");
}

#[tokio::test]
async fn reasoning_items_go_back_in_order_with_their_calls() {
    let server = ModelServer::start(SCRIPT);
    let (said, requests) = play(&*model(Wire::Responses, &server), &server).await;
    insta::assert_snapshot!(said, @r#""First the files." at 0,0; "Then their sizes." at 8,1 | "" at 0,0; "Only ÄÖ, then." at 0,0 | "All seen." at 0,0"#);
    for pair in requests.windows(2) {
        pair[1].assert_extends(&pair[0]);
        assert_eq!(pair[0].json()["prompt_cache_key"], pair[1].json()["prompt_cache_key"]);
    }
    let body = requests[2].json();
    let kinds: Vec<_> = requests[2].messages().into_iter().map(|item| item.role).collect();
    assert_eq!(
        kinds.join(" "),
        "user reasoning assistant function_call reasoning function_call function_call_output \
         function_call_output reasoning reasoning function_call function_call_output"
    );
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["previous_response_id"], Value::Null);
    assert!(body["prompt_cache_key"].as_str().is_some_and(|key| key.len() == 32));
    // The whole item, as it came.
    assert_eq!(body["input"][1]["id"], "rs_0_0");
    assert_eq!(body["input"][1]["summary"][0]["text"], "First the files.");
}

#[tokio::test]
async fn chat_servers_get_back_what_their_entry_says() {
    for (kept, expected) in [
        (ReasoningUse::Drop, [Value::Null, Value::Null]),
        (ReasoningUse::Return, [json!("First the files.Then their sizes."), Value::Null]),
        (ReasoningUse::Require, [json!("First the files.Then their sizes."), json!("")]),
    ] {
        let server = ModelServer::start(
            "replies: [{think: [First the files., Then their sizes.], calls: [{bash: ls}, {bash: du}]}, {bash: cat}, {say: Done.}]",
        );
        let settings = opened(&server, "test", |provider| provider.reasoning = kept);
        let model = Models::new(settings).open(&"test/m".parse().unwrap()).unwrap();
        let (said, requests) = play(&*model, &server).await;
        assert!(said.starts_with("\"First the files.\" at 0,0"), "read in any case: {said}");
        let body = requests[2].json();
        let sent = [&body["messages"][2], &body["messages"][5]];
        assert_eq!(sent.map(|message| message["reasoning_content"].clone()), expected, "{kept}");
    }
}

#[tokio::test]
async fn every_form_of_reasoning_on_the_chat_wire_is_read_and_returned() {
    let deltas = [
        r#"{"reasoning":"Hm."}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"H","index":0,"format":"x"}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"m.","signature":"s1","index":0}]}"#,
        r#"{"reasoning_content":" So.","thinking_blocks":[{"type":"thinking","thinking":" So."}]}"#,
        r#"{"reasoning_content":"","thinking_blocks":[{"type":"thinking","thinking":"","signature":"s2"}]}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Aha."}]},{"type":"text","text":"Yes"}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"bash","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s3"}}}]}"#,
    ];
    let server = ModelServer::start_empty();
    let chunk = |delta: &&str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    server.next(Answer::events(deltas.iter().map(chunk).chain(["[DONE]".to_owned()])));
    server.next(Answer::script("say: done"));
    let settings =
        opened(&server, "test", |provider| provider.reasoning = ReasoningUse::Signatures);
    let model = Models::new(settings).open(&"test/m".parse().unwrap()).unwrap();
    let mut transcript = begun(&*model, "go");
    let (reply, seen) = ask(&*model, &transcript).await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.reasoning.as_ref().unwrap().text()),
        ("Yes", "Hm. So.\n\nAha.".to_owned())
    );
    let shown: String = seen
        .iter()
        .filter_map(|live| if let StreamEvent::Reasoning(t) = live { Some(&**t) } else { None })
        .collect();
    assert_eq!(shown, "Hm. So.Aha.");
    transcript.push(&message(&reply));
    transcript.push(&result(&reply.calls[0], "ok"));
    ask(&*model, &transcript).await.0.unwrap();
    let body = server.requests()[1].json();
    let sent = &body["messages"][2];
    assert_eq!(sent["thinking_blocks"][0]["signature"], "s2");
    assert_eq!(
        sent["reasoning_details"],
        json!([{"type": "reasoning.text", "text": "Hm.", "signature": "s1", "index": 0, "format": "x"}])
    );
    assert_eq!(sent["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "s3");
}

#[tokio::test]
async fn reasoning_is_never_sent_to_another_model() {
    let server = ModelServer::start(SCRIPT);
    for &wire in Wire::ALL {
        let one = model(wire, &server);
        let reply = hello(&*one).await.unwrap();
        let other = Models::new(settings(wire, &server.base()));
        let other = other.open(&"test/other".parse().unwrap()).unwrap();
        let mut transcript = begun(&*other, "hello");
        transcript.push(&message(&reply));
        assert!(!transcript.holds_reasoning());
        for call in &reply.calls {
            transcript.push(&result(call, "ok"));
        }
        ask(&*other, &transcript).await.0.unwrap();
        let body = String::from_utf8(server.requests().pop().unwrap().body.to_vec()).unwrap();
        assert!(!body.contains("First the files"), "{wire}: {body}");
    }
}

#[tokio::test]
async fn a_thought_without_signature_is_shown_and_not_sent_back() {
    let server = ModelServer::start_empty();
    server.next(Answer::events([
        r#"{"type":"message_start","message":{"model":"m"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"bash","input":{"command":"ls"}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ]));
    server.next(Answer::script("say: done"));
    let model = model(Wire::Anthropic, &server);
    let mut transcript = begun(&*model, "go");
    let reply = ask(&*model, &transcript).await.0.unwrap();
    assert_eq!(reply.reasoning.as_ref().unwrap().text(), "Hm.");
    transcript.push(&message(&reply));
    transcript.push(&result(&reply.calls[0], "ok"));
    assert_eq!(ask(&*model, &transcript).await.0.unwrap().text, "done");
    assert_eq!(server.requests()[1].json()["messages"][1]["content"][0]["type"], "tool_use");
}

#[tokio::test]
async fn a_seal_that_is_refused_is_named_so_on_every_wire() {
    for wire in [Wire::Anthropic, Wire::Responses] {
        let server = ModelServer::start(SCRIPT);
        let model = model(wire, &server);
        let mut transcript = begun(&*model, "go");
        let mut reply = ask(&*model, &transcript).await.0.unwrap();
        for thought in &mut reply.reasoning.as_mut().unwrap().thoughts {
            match thought.seal.as_mut().unwrap() {
                Seal::Signature(data) | Seal::Item(data) => *data = data.replace("sealed", "other"),
                other => panic!("{other:?}"),
            }
        }
        transcript.push(&message(&reply));
        for call in &reply.calls {
            transcript.push(&result(call, "ok"));
        }
        let error = ask(&*model, &transcript).await.0.unwrap_err();
        assert!(matches!(error.fault, Fault::ReasoningRefused { .. }), "{wire}: {error}");
        assert!(transcript.holds_reasoning() && !error.retryable());
    }
}

/// The head of a request to a model with this effort.
async fn head_of(provider: &str, model: &str, effort: Option<Effort>) -> Value {
    let server = ModelServer::start("match: [{say: hi}]");
    let mut settings = settings(Wire::Chat, &server.base());
    let entry = KnownProvider::find(provider).unwrap();
    let known =
        Provider::known(entry, entry.wire, &server.base(), Some("sk-test-0123456789".into()));
    settings.providers.insert(provider.to_owned(), known);
    let name = format!("{provider}/{model}").parse().unwrap();
    let model = Models::new(settings).open_with(&name, effort).unwrap();
    hello(&*model).await.unwrap();
    let request = server.requests().pop().unwrap();
    let mut body = request.json();
    body["beta"] = json!(request.header("anthropic-beta"));
    body
}

#[tokio::test]
async fn an_effort_is_sent_in_the_words_of_each_provider() {
    let high = Some(Effort::High);
    let responses = head_of("openai", "gpt-5.5", Some(Effort::Max)).await;
    assert_eq!(responses["reasoning"], json!({"effort": "xhigh", "summary": "auto"}));
    assert_eq!(head_of("litellm", "m", high).await["reasoning_effort"], "high");
    assert_eq!(head_of("litellm", "m", None).await["reasoning_effort"], Value::Null);

    let adaptive = head_of("anthropic", "claude-sonnet-5", high).await;
    assert_eq!(adaptive["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(adaptive["output_config"], json!({"effort": "high"}));
    assert_eq!((&adaptive["max_tokens"], &adaptive["beta"]), (&json!(32_768), &Value::Null));

    let budget = head_of("anthropic", "claude-sonnet-4-5", high).await;
    assert_eq!(budget["thinking"], json!({"type": "enabled", "budget_tokens": 16_384}));
    assert!(budget["max_tokens"].as_u64() > budget["thinking"]["budget_tokens"].as_u64());
    assert_eq!(budget["beta"], "interleaved-thinking-2025-05-14");
    let off = head_of("anthropic", "claude-sonnet-5", Some(Effort::None)).await;
    assert_eq!((&off["thinking"], &off["output_config"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_model_that_does_not_reason_is_not_asked_for_reasoning() {
    let plain = head_of("openai", "gpt-4o", None).await;
    assert_eq!((&plain["include"], &plain["reasoning"]), (&Value::Null, &Value::Null));
}

#[test]
fn an_effort_that_a_provider_does_not_take_lists_those_it_takes() {
    let mut provider = Provider::new(Wire::Chat, "http://127.0.0.1:1", None);
    provider.efforts = &[(Effort::None, "none"), (Effort::High, "high")];
    let settings =
        Settings { providers: [("test".to_owned(), provider)].into(), ..Settings::default() };
    let Err(error) = Models::new(settings).open_with(&"test/m".parse().unwrap(), Some(Effort::Low))
    else {
        panic!("it is refused")
    };
    assert!(matches!(error, SetupError::Effort { .. }));
    assert_eq!(error.to_string(), "`test/m` does not take the effort `low`; it takes none, high");
}

#[tokio::test]
async fn where_summaries_are_refused_the_rest_works_without() {
    let server = ModelServer::start("match: [{say: hi}]");
    let verify = "Your organization must be verified to generate reasoning summaries.";
    server.next(Answer::error_of(400, "invalid_request_error", "unsupported_value", verify));
    let model = model(Wire::Responses, &server);
    for _ in 0..2 {
        assert_eq!(hello(&*model).await.unwrap().text, "hi");
    }
    let sent: Vec<_> =
        server.requests().iter().map(|r| r.json()["reasoning"]["summary"].clone()).collect();
    assert_eq!(sent, [json!("auto"), Value::Null, Value::Null]);
}

#[tokio::test]
async fn a_server_that_wants_thoughts_first_is_asked_without_thinking() {
    let server = ModelServer::start("match: [{say: hi}]");
    let words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`";
    server.next(Answer::error(400, words));
    let settings = settings(Wire::Anthropic, &server.base());
    let name = "test/m".parse().unwrap();
    let model = Models::new(settings).open_with(&name, Some(Effort::Low)).unwrap();
    assert_eq!(hello(&*model).await.unwrap().text, "hi");
    let sent: Vec<_> = server.requests().iter().map(|r| r.json()["thinking"].is_null()).collect();
    assert_eq!(sent, [false, true]);
}

#[tokio::test]
async fn a_wire_that_is_not_spoken_names_the_setting() {
    for (wire, body) in [
        (Wire::Responses, r#"{"detail":"Not Found"}"#),
        (
            Wire::Responses,
            r#"{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error","code":null}}"#,
        ),
        (Wire::Anthropic, "<html>404</html>"),
    ] {
        let server = ModelServer::start_empty();
        server.answer_with(move |_| Some(Answer::status(404, "application/json", body)));
        let error = hello(&*model(wire, &server)).await.unwrap_err();
        assert!(matches!(error.fault, Fault::NotAModelServer { .. }), "{error}");
        assert!(error.to_string().contains(r#"`wire = "chat"`"#), "{error}");
    }
    let server = ModelServer::start_empty();
    server.next(Answer::error_of(
        404,
        "invalid_request_error",
        "model_not_found",
        "The model `m` does not exist",
    ));
    let error = hello(&*model(Wire::Responses, &server)).await.unwrap_err();
    assert!(matches!(error.fault, Fault::ModelUnavailable { .. }), "{error}");
}

#[tokio::test]
async fn failed_and_incomplete_responses_are_distinguished() {
    let failed = |code: &str| {
        let error = json!({"code": code, "message": "said so"});
        let event =
            json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
        Answer::events([event.to_string()])
    };
    let server = ModelServer::start_empty();
    let model = model(Wire::Responses, &server);
    for (code, retried) in
        [("server_error", true), ("rate_limit_exceeded", true), ("invalid_prompt", false)]
    {
        let answer = failed(code);
        server.answer_with(move |_| Some(answer.clone()));
        assert_eq!(hello(&*model).await.unwrap_err().retryable(), retried, "{code}");
    }
    let answer = failed("context_length_exceeded");
    server.answer_with(move |_| Some(answer.clone()));
    let error = hello(&*model).await.unwrap_err();
    assert!(matches!(error.fault, Fault::ContextLength { .. }), "{error}");
    let refusal = [
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "I will "}),
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "not."}),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    server.answer_with(move |_| Some(Answer::events(refusal.iter().map(Value::to_string))));
    assert_eq!(hello(&*model).await.unwrap().text, "I will not.");
}

#[tokio::test]
async fn thoughts_count_as_tokens_whoever_counts_them() {
    for (usage, expected) in [
        (
            r#"{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":4}}"#,
            7,
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":3,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":4}}"#,
            7,
        ),
    ] {
        let server = ModelServer::start_empty();
        let body = format!(
            r#"{{"choices":[{{"delta":{{"content":"hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        server.next(Answer::events([body.as_str(), "[DONE]"]));
        let used = hello(&*model(Wire::Chat, &server)).await.unwrap().usage;
        assert_eq!((used.output_tokens, used.reasoning_tokens), (expected, 4));
    }
}

/// A label of the model's own words goes back with them, each with its part of the text.
#[tokio::test]
async fn the_phase_of_a_message_goes_back_with_it() {
    let server = ModelServer::start_empty();
    let item = |at: u64, phase: &str, text: &str| {
        let content = json!([{"type": "output_text", "text": text}]);
        let whole =
            json!({"type": "message", "role": "assistant", "phase": phase, "content": content});
        let mut begun = whole.clone();
        begun["content"] = json!([]);
        [
            json!({"type": "response.output_item.added", "output_index": at, "item": begun}),
            json!({"type": "response.output_text.delta", "output_index": at, "delta": text}),
            json!({"type": "response.output_item.done", "output_index": at, "item": whole}),
        ]
    };
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    let events = [item(0, "commentary", "Looking."), item(1, "final_answer", "Found.")].concat();
    let events: Vec<_> = events.iter().chain([&end]).map(ToString::to_string).collect();
    server.next(Answer::events(events)).next(Answer::script("say: ok"));
    let model = model(Wire::Responses, &server);
    let mut transcript = begun(&*model, "look");
    let reply = ask(&*model, &transcript).await.0.unwrap();
    assert_eq!(reply.text, "Looking.Found.");
    transcript.push(&message(&reply));
    transcript.push(&windlass_core::message::Message::user("more"));
    ask(&*model, &transcript).await.0.unwrap();
    let requests = server.requests();
    requests[1].assert_extends(&requests[0]);
    let sent = requests[1].json();
    let said: Vec<_> = sent["input"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["role"] == "assistant")
        .map(|item| format!("{} {}", item["phase"], item["content"][0]["text"]))
        .collect();
    assert_eq!(said, [r#""commentary" "Looking.""#, r#""final_answer" "Found.""#]);
    assert!(sent["input"][0]["phase"].is_null(), "what a person says has none");
}
