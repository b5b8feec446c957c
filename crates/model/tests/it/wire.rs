//! The exact bytes that are sent.

use proptest::prelude::*;
use windlass_core::{
    id::CallId,
    message::{Message, Prelude, ToolRequest},
};
use windlass_model::{Model, Wire};
use windlass_testkit::{Answer, ModelServer, messages};

use crate::support::{ask, begun, message, model, model_at, prelude, result};

/// The exact bytes of a request, with line breaks for the reader.
async fn body_of(wire: Wire) -> String {
    let server = ModelServer::start_empty();
    server.next(Answer::script("text: Looking.\ncalls: [{bash: ls}, {read: a}]"));
    server.next(Answer::script("say: done"));
    let model = model(wire, &server);
    let mut transcript = begun(&*model, "count");
    let reply = ask(&*model, &transcript).await.0.unwrap();
    transcript.push(&message(&reply));
    transcript.push(&result(&reply.calls[0], "a\nb"));
    transcript.push(&Message::Tool {
        provider_id: reply.calls[1].provider_id.clone(),
        name: "read".to_owned(),
        text: String::new(),
        is_error: true,
    });
    transcript.push(&Message::user("hurry"));
    ask(&*model, &transcript).await.0.unwrap();
    let body = String::from_utf8(server.requests()[1].body.to_vec()).unwrap();
    body.replace("},{", "},\n{").replace(":[{", ":[\n{")
}

/// ES-112
#[tokio::test]
async fn chat_completions_are_sent_like_this() {
    insta::assert_snapshot!(body_of(Wire::Chat).await, @r#"
    {"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[
    {"function":{"name":"bash","description":"The tool bash.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"}},"type":"function"},
    {"function":{"name":"read","description":"The tool read.","parameters":{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}},"type":"function"}],"messages":[
    {"role":"system","content":"You are \"careful\"."},
    {"role":"user","content":"count"},
    {"role":"assistant","content":"Looking.","tool_calls":[
    {"id":"call_0_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},
    {"id":"call_0_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]},
    {"role":"tool","content":"a\nb","tool_call_id":"call_0_0"},
    {"role":"tool","content":"","tool_call_id":"call_0_1"},
    {"role":"user","content":"hurry"}]}
    "#);
}

#[tokio::test]
async fn responses_are_sent_like_this() {
    insta::assert_snapshot!(body_of(Wire::Responses).await, @r#"
    {"include":["reasoning.encrypted_content"],"model":"m","parallel_tool_calls":true,"prompt_cache_key":"7ca90c364fd5b0aa1c43d527f5d432b8","reasoning":{"summary":"auto"},"store":false,"stream":true,"tools":[
    {"name":"bash","description":"The tool bash.","parameters":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"},"strict":false,"type":"function"},
    {"name":"read","description":"The tool read.","parameters":{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"},"strict":false,"type":"function"}],"instructions":"You are \"careful\".","input":[
    {"type":"message","role":"user","content":[
    {"type":"input_text","text":"count"}]},
    {"type":"message","role":"assistant","content":[
    {"type":"output_text","text":"Looking."}]},
    {"type":"function_call","call_id":"call_0_0","name":"bash","arguments":"{\"command\":\"ls\"}"},
    {"type":"function_call","call_id":"call_0_1","name":"read","arguments":"{\"path\":\"a\"}"},
    {"type":"function_call_output","call_id":"call_0_0","output":"a\nb"},
    {"type":"function_call_output","call_id":"call_0_1","output":""},
    {"type":"message","role":"user","content":[
    {"type":"input_text","text":"hurry"}]}]}
    "#);
}

/// ES-112
#[tokio::test]
async fn messages_are_sent_like_this() {
    insta::assert_snapshot!(body_of(Wire::Anthropic).await, @r#"
    {"max_tokens":16384,"model":"m","stream":true,"tools":[
    {"description":"The tool bash.","input_schema":{"properties":{"command":{"type":"string"}},"required":["command"],"type":"object"},"name":"bash"},
    {"cache_control":{"type":"ephemeral"},"description":"The tool read.","input_schema":{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"},"name":"read"}],"system":[
    {"cache_control":{"type":"ephemeral"},"text":"You are \"careful\".","type":"text"}],"messages":[
    {"role":"user","content":[
    {"type":"text","text":"count","cache_control":{"type":"ephemeral"}}]},
    {"role":"assistant","content":[
    {"type":"text","text":"Looking."},
    {"type":"tool_use","id":"call_0_0","name":"bash","input":{"command":"ls"}},
    {"type":"tool_use","id":"call_0_1","name":"read","input":{"path":"a"}}]},
    {"role":"user","content":[
    {"type":"tool_result","tool_use_id":"call_0_0","content":"a\nb"},
    {"type":"tool_result","tool_use_id":"call_0_1","is_error":true},
    {"type":"text","text":"hurry","cache_control":{"type":"ephemeral"}}]}]}
    "#);
}

fn any_message() -> impl Strategy<Value = Message> {
    let call = ("[a-z.]{0,8}", any::<String>(), "[ -~]{0,12}").prop_map(|(id, name, arguments)| {
        let derived = CallId::derived("test", &id);
        ToolRequest { id: derived, provider_id: id, name, arguments }
    });
    prop_oneof![
        any::<String>().prop_map(Message::user),
        (any::<String>(), proptest::collection::vec(call, 0..3))
            .prop_map(|(text, calls)| Message::Assistant { text, calls, reasoning: None }),
        (any::<String>(), any::<String>(), any::<bool>()).prop_map(|(id, text, is_error)| {
            Message::Tool { provider_id: id, name: "bash".to_owned(), text, is_error }
        }),
    ]
}

fn models() -> Vec<std::sync::Arc<dyn Model>> {
    Wire::ALL.iter().map(|wire| model_at(*wire, "http://127.0.0.1:1")).collect()
}

proptest! {
    #[test]
    fn equal_conversations_hash_alike_and_every_message_changes_the_hash(
        said in proptest::collection::vec(any_message(), 1..8),
    ) {
        for model in models() {
            let mut one = model.transcript(&prelude());
            let mut two = model.transcript(&prelude());
            for message in &said {
                let before = (one.hash(), one.bytes(), one.len());
                one.push(message);
                two.push(message);
                prop_assert_eq!(one.hash(), two.hash());
                prop_assert!(one.hash() != before.0 && one.bytes() > before.1 && one.len() > before.2);
            }
            let assistants = said.iter().filter(|m| matches!(m, Message::Assistant { .. })).count();
            prop_assert_eq!(one.turn(), assistants);
        }
    }
}

/// Two hundred turns: each body begins with the one before, and bodies stay valid JSON.
#[tokio::test]
async fn two_hundred_turns_extend_each_other_byte_for_byte() {
    for &wire in Wire::ALL {
        let server = ModelServer::start("match: [{bash: 'echo \"ä\"'}]");
        let model = model(wire, &server);
        let mut transcript = begun(&*model, "go on");
        for turn in 0..200 {
            let reply = ask(&*model, &transcript).await.0.unwrap();
            transcript.push(&message(&reply));
            transcript.push(&result(&reply.calls[0], &format!("turn {turn}\n\"quoted\"")));
            if turn % 7 == 0 {
                transcript.push(&Message::user("keep going"));
            }
        }
        let requests = server.requests();
        for pair in requests.windows(2) {
            pair[1].assert_extends(&pair[0]);
        }
        let last = messages(&requests[199].body);
        // Where a reply is several items, its call is one.
        let reply = if wire == Wire::Responses { "function_call" } else { "assistant" };
        let replies = last.iter().filter(|message| message.role == reply).count();
        assert_eq!((replies, transcript.turn()), (199, 200));
        if wire == Wire::Anthropic {
            assert!(last.windows(2).all(|pair| pair[0].role != pair[1].role), "they take turns");
        }
    }
}

#[tokio::test]
async fn anthropic_is_sent_at_most_four_cache_marks() {
    let server = ModelServer::start("match: [{bash: ls}]");
    let model = model(Wire::Anthropic, &server);
    let mut transcript = begun(&*model, "go");
    for _ in 0..4 {
        let reply = ask(&*model, &transcript).await.0.unwrap();
        transcript.push(&message(&reply));
        transcript.push(&result(&reply.calls[0], "ok"));
    }
    let request = server.requests().pop().unwrap();
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    assert_eq!(body.matches("cache_control").count(), 4);
    let marked: Vec<_> =
        request.messages().iter().map(|message| message.raw.contains("cache_control")).collect();
    assert_eq!(marked, [false, false, false, false, true, false, true]);
}

#[test]
fn without_system_or_tools_there_is_nothing_before_the_messages() {
    for model in models() {
        let transcript = model.transcript(&Prelude { system: String::new(), tools: Vec::new() });
        assert_eq!((transcript.bytes(), transcript.is_empty()), (0, true));
    }
}
