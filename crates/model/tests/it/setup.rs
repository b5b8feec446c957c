//! From configuration to models: bases, keys, prices.

use windlass_model::{Models, Options, Price, Prices, Provider, Settings, SetupError, Wire};
use windlass_testkit::{Answer, ModelServer};

use crate::support::{begun, hello, model, settings};

fn opened(name: &str, base: &str, key: Option<&str>) -> Result<(), SetupError> {
    let key = key.map(Into::into);
    let provider = Provider::new(Wire::Chat, base, key);
    let settings =
        Settings { providers: [("litellm".to_owned(), provider)].into(), ..Settings::default() };
    Models::new(settings).open(&name.parse().unwrap()).map(drop)
}

/// ES-351, ES-352
#[test]
fn a_setting_that_cannot_work_is_named_before_anything_is_sent() {
    let wrong = |name, base, key| opened(name, base, key).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            wrong("openai/gpt-4o", "http://localhost:4000", None),
            wrong("litellm/gpt-4o", "https://litellm.example/v1", None),
            wrong("litellm/gpt-4o", "localhost:4000", None),
            wrong("litellm/gpt-4o", "ftp://me:secret@example.com", None),
            wrong("litellm/gpt-4o", "nonsense me:secret", None),
            wrong("litellm/gpt-4o", "http://localhost:4000", Some("line\nbreak")),
            wrong("script:/nowhere/at/all.yaml", "", None),
        ]
        .join("\n"),
        @"
        model `openai/gpt-4o` names the provider `openai`, which is not configured (configured: litellm)
        provider `litellm` at https://litellm.example/v1 needs an API key, and none is set
        the base of provider `litellm` is not an http or https URL: its scheme is `localhost`
        the base of provider `litellm` is not an http or https URL: its scheme is `ftp`
        the base of provider `litellm` is not an http or https URL: relative URL without a base
        the API key of provider `litellm` holds characters no header can carry
        cannot use the script `/nowhere/at/all.yaml`: No such file or directory (os error 2)
        "
    );
}

/// ES-351: a key is needed everywhere but on this machine.
#[test]
fn a_server_on_this_machine_needs_no_key() {
    for base in ["http://localhost:4000", "http://127.0.0.1:1/v1", "http://[::1]:4000"] {
        opened("litellm/gpt-4o", base, None).unwrap();
    }
    assert!(opened("litellm/gpt-4o", "http://127.0.0.1.example.com", None).is_err());
    opened("litellm/gpt-4o", "http://litellm.example", Some("key")).unwrap();
}

/// ES-351, ES-352, ES-353, ES-112
#[tokio::test]
async fn requests_go_to_the_base_with_the_key_and_the_model() {
    let server = ModelServer::start("match: [{say: hi}]");
    for (wire, base, path, key) in [
        (Wire::Chat, server.base(), "/chat/completions", "Bearer sk-test-0123456789"),
        (Wire::Chat, server.base() + "/v1/", "/v1/chat/completions", "Bearer sk-test-0123456789"),
        (Wire::Responses, server.base() + "/v1", "/v1/responses", "Bearer sk-test-0123456789"),
        (Wire::Anthropic, server.base(), "/v1/messages", "sk-test-0123456789"),
        (Wire::Anthropic, server.base() + "/v1", "/v1/messages", "sk-test-0123456789"),
    ] {
        hello(&*Models::new(settings(wire, &base)).open(&"test/m".parse().unwrap()).unwrap())
            .await
            .unwrap();
        let request = server.requests().pop().unwrap();
        let header = if wire == Wire::Anthropic { "x-api-key" } else { "authorization" };
        assert_eq!((request.path.as_str(), request.header(header)), (path, Some(key)));
        assert_eq!(request.model, "m");
    }
}

#[test]
fn keys_and_passwords_do_not_print() {
    let base = "http://user:hunter22@127.0.0.1:1/v1?token=hunter22";
    let shown = format!("{:?}", Models::new(settings(Wire::Chat, base)));
    assert!(!shown.contains("hunter22") && !shown.contains("0123456789"), "{shown}");
}

#[tokio::test]
async fn a_base_with_a_password_is_shown_without_it() {
    let server = ModelServer::start_empty();
    server.answer_with(|_| Some(Answer::error(400, "no")));
    let base = server.base().replace("//", "//user:hunter22@");
    let error =
        hello(&*Models::new(settings(Wire::Chat, &base)).open(&"test/m".parse().unwrap()).unwrap())
            .await
            .unwrap_err();
    assert!(error.to_string().contains(&server.base()), "{error}");
    assert!(!format!("{error:?}").contains("hunter22"), "{error:?}");
}

#[tokio::test]
async fn cost_comes_from_the_server_else_from_the_table_else_is_unknown() {
    let price =
        Price { input: 2.0, output: 10.0, cached: Some(1.0), cache_write: None, long: None };
    let priced = |base: &str| Settings {
        prices: Prices([("m".to_owned(), price)].into()),
        ..settings(Wire::Chat, base)
    };
    let server = ModelServer::start_empty();
    let usage = "usage: {input: 1000000, output: 100000, cached: 500000";
    server.next(Answer::script(&format!("say: a\n{usage}, cost: 0.25}}")));
    server.next(Answer::script(&format!("say: a\n{usage}}}")));
    server.next(
        Answer::script(&format!("say: a\n{usage}}}")).header("x-litellm-response-cost", "0.0"),
    );
    let models = Models::new(priced(&server.base()));
    let with = models.open(&"test/m".parse().unwrap()).unwrap();
    for cost in [0.25, 2.5, 2.5] {
        assert_eq!(hello(&*with).await.unwrap().usage.cost_usd, Some(cost));
    }
    for cost in ["0.75", "0"] {
        server.next(Answer::events([
            r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#.to_owned(),
            format!(r#"{{"choices":[],"usage":{{"prompt_tokens":1000000,"cost":{cost}}}}}"#),
            "[DONE]".to_owned(),
        ]));
    }
    for cost in [0.75, 2.0] {
        assert_eq!(hello(&*with).await.unwrap().usage.cost_usd, Some(cost));
    }
    server.next(Answer::script("say: a"));
    let without = models.open(&"test/other".parse().unwrap()).unwrap();
    assert_eq!(hello(&*without).await.unwrap().usage.cost_usd, None);
    assert_eq!(server.connections(), 1, "models of one base share a client");
}

/// ES-068
#[tokio::test]
async fn options_are_sent_as_each_wire_has_them() {
    let schema =
        serde_json::json!({"type": "object", "properties": {"intent": {"type": "string"}}});
    let options = Options {
        temperature: Some(0.1),
        max_output_tokens: Some(64),
        schema: Some(schema.clone()),
    };
    let server = ModelServer::start_empty();
    server.next(Answer::script("say: '{\"intent\":\"x\"}'"));
    server.next(Answer::script("say: '{\"intent\":\"x\"}'"));
    server.next(Answer::script("reply: {intent: x}"));
    for &wire in Wire::ALL {
        let model = model(wire, &server);
        let transcript = begun(&*model, "stop it");
        let reply = model.reply(&transcript, &options, &mut |_| {}).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.calls.len()), (r#"{"intent":"x"}"#, 0));
        let body = server.requests().pop().unwrap().json();
        match wire {
            Wire::Chat => {
                assert_eq!((&body["temperature"], &body["max_tokens"]), (&0.1.into(), &64.into()));
                assert_eq!(body["response_format"]["json_schema"]["schema"], schema);
            }
            Wire::Responses => {
                // What reasons takes no temperature.
                assert_eq!(body["temperature"], serde_json::Value::Null);
                assert_eq!(body["max_output_tokens"], 64);
                assert_eq!(body["text"]["format"]["schema"], schema);
            }
            Wire::Anthropic => {
                assert_eq!((&body["temperature"], &body["max_tokens"]), (&0.1.into(), &64.into()));
                assert_eq!(body["tool_choice"]["name"], "reply");
                assert_eq!(body["tools"][0]["input_schema"], schema);
                assert_eq!(body["tools"].as_array().unwrap().len(), 3);
            }
        }
    }
}
