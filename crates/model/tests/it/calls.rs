//! Tool calls as models really write them.

use windlass_core::message::Finish;
use windlass_model::{Reply, Wire};
use windlass_testkit::{Answer, ModelServer};

use crate::support::{ask, begun, hello, message, model, result};

async fn streamed(deltas: &[&str]) -> Reply {
    let server = ModelServer::start_empty();
    let chunk = |delta: &&str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    server.next(Answer::events(deltas.iter().map(chunk).chain(["[DONE]".to_owned()])));
    hello(&*model(Wire::Chat, &server)).await.unwrap()
}

fn calls(reply: &Reply) -> String {
    let line = |call: &windlass_model::Call| {
        format!("{} {} {}", call.provider_id, call.name, call.arguments)
    };
    reply.calls.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn parallel_calls_are_assembled_though_their_parts_come_mixed() {
    let reply = streamed(&[
        r#"{"content":"Both.","tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"com"}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"read","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"path\""}},{"index":0,"function":{"arguments":"mand\":\"ls\"}"}}]}"#,
        r#"{"tool_calls":[{"index":1,"function":{"arguments":":\"a\"}"}}]}"#,
    ])
    .await;
    insta::assert_snapshot!(calls(&reply), @r#"
    a bash {"command":"ls"}
    b read {"path":"a"}
    "#);
    assert_eq!((reply.text.as_str(), reply.finish), ("Both.", Finish::ToolCalls));
}

#[tokio::test]
async fn calls_without_useful_indices_are_distinguished_by_their_ids() {
    let by_id = streamed(&[
        r#"{"tool_calls":[{"id":"a","function":{"name":"bash","arguments":"{}"}}]}"#,
        r#"{"tool_calls":[{"id":"b","function":{"name":"read","arguments":"{\"p"}}]}"#,
        r#"{"tool_calls":[{"function":{"arguments":"\":1}"}}]}"#,
    ]);
    let same = streamed(&[
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{}"}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"read","arguments":{"p":1}}}]}"#,
    ]);
    for reply in [by_id.await, same.await] {
        assert_eq!(calls(&reply), "a bash {}\nb read {\"p\":1}");
    }
}

#[tokio::test]
async fn missing_and_repeated_ids_are_made_unique_in_the_whole_conversation() {
    for &wire in Wire::ALL {
        let server = ModelServer::start_empty();
        let call = |id: &str| format!("{{name: bash, id: '{id}', arguments: '{{}}'}}");
        let three = [call("x"), call("x"), call("")].join(", ");
        let item = format!("calls: [{three}]");
        server.next(Answer::script(&item)).next(Answer::script(&item));
        let model = model(wire, &server);
        let mut transcript = begun(&*model, "go");
        let mut ids = Vec::new();
        for _ in 0..2 {
            let reply = ask(&*model, &transcript).await.0.unwrap();
            transcript.push(&message(&reply));
            for call in &reply.calls {
                transcript.push(&result(call, "ok"));
                ids.push(call.provider_id.clone());
            }
        }
        assert_eq!(ids, ["x", "x_2", "call_0_2", "x_3", "x_4", "call_1_2"]);
    }
}

#[tokio::test]
async fn arguments_that_are_not_json_go_back_in_a_valid_form() {
    for &wire in Wire::ALL {
        let server = ModelServer::start_empty();
        server.next(Answer::script("calls: [{name: bash, id: c, arguments: '{\"command\": \"l'}]"));
        server.next(Answer::script("say: sorry"));
        let model = model(wire, &server);
        let mut transcript = begun(&*model, "go");
        let reply = ask(&*model, &transcript).await.0.unwrap();
        assert_eq!(reply.calls[0].arguments, r#"{"command": "l"#);
        transcript.push(&message(&reply));
        transcript.push(&result(&reply.calls[0], "not JSON"));
        ask(&*model, &transcript).await.0.unwrap();
        let sent = String::from_utf8(server.requests()[1].body.to_vec()).unwrap();
        assert!(sent.contains("unparsed_arguments"), "{sent}");
    }
}

#[tokio::test]
async fn large_arguments_come_whole() {
    for &wire in Wire::ALL {
        let server = ModelServer::start_empty();
        let big = "y".repeat(2 * 1024 * 1024);
        server.next(Answer::script(&format!("calls: [{{name: bash, arguments: '{big}'}}]")));
        assert_eq!(hello(&*model(wire, &server)).await.unwrap().calls[0].arguments, big);
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object_on_anthropics_wire() {
    let server = ModelServer::start_empty();
    server.next(Answer::script("calls: [{name: list_skills, id: c, arguments: ''}]"));
    let reply = hello(&*model(Wire::Anthropic, &server)).await.unwrap();
    assert_eq!(reply.calls[0].arguments, "{}");
}
