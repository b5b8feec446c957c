//! Servers that refuse: what each refusal is called, and whether it is tried again.

use windlass_model::{Category, Error, Fault, Wire};
use windlass_testkit::{Answer, ModelServer, TlsServer};

use crate::support::{hello, model, model_at};

/// What comes of a server that always answers like this.
async fn outcome(wire: Wire, answer: Answer) -> (Error, usize) {
    let server = ModelServer::start_empty();
    server.answer_with(move |_| Some(answer.clone()));
    let error = hello(&*model(wire, &server)).await.unwrap_err();
    (Error { base: "BASE".to_owned(), ..error }, server.request_count())
}

async fn table(wire: Wire, cases: Vec<(&str, Answer)>) -> String {
    let mut lines = Vec::new();
    for (name, answer) in cases {
        let (error, requests) = outcome(wire, answer).await;
        assert_eq!(error.attempts as usize, requests);
        assert_eq!(error.retryable(), error.category() == Category::Transient);
        lines.push(format!("{name} x{requests}: {error}"));
    }
    lines.join("\n")
}

/// ES-370, ES-371, ES-374, ES-379, ES-383
#[tokio::test]
async fn each_status_has_its_outcome_and_only_passing_ones_are_asked_again() {
    let of = Answer::error_of;
    let bad = "invalid_request_error";
    let cases = vec![
        ("key", of(401, bad, "invalid_api_key", "Incorrect API key provided")),
        ("right", of(403, "permission_error", "", "not your model")),
        ("model", of(404, bad, "model_not_found", "The model `m` does not exist")),
        ("litellm", of(400, bad, "400", "Invalid model name passed in model=m")),
        ("path", Answer::status(404, "application/json", r#"{"detail":"Not Found"}"#)),
        ("page", Answer::status(404, "text/html", "<html>nope</html>")),
        ("timeout", Answer::status(408, "text/plain", "too slow")),
        ("conflict", Answer::status(409, "text/plain", "busy")),
        ("rate", of(429, "rate_limit_error", "rate_limit_exceeded", "slow down")),
        ("quota", of(429, "insufficient_quota", "insufficient_quota", "You exceeded your quota")),
        ("pay", of(402, "billing", "", "pay first")),
        ("broken", Answer::status(500, "text/plain", "")),
        ("gateway", Answer::status(502, "text/html", "<html>bad gateway</html>")),
        ("full", Answer::status(503, "text/plain", "come back later")),
        ("overloaded", of(529, "overloaded_error", "", "Overloaded")),
        ("filter", of(400, bad, "content_filter", "triggered our content policy")),
        ("bad", of(400, bad, "", "temperature must be a number")),
        ("unprocessable", Answer::status(422, "application/json", r#"{"message":"no"}"#)),
        ("moved", Answer::status(302, "text/plain", "").header("location", "http://127.0.0.1:1/")),
        ("nothing", Answer::status(204, "text/plain", "")),
    ];
    insta::assert_snapshot!(table(Wire::Chat, cases).await, @"
    key x1: the model server does not accept the key: Incorrect API key provided (model `test/m` at BASE)
    right x1: the model server forbids this: not your model (model `test/m` at BASE)
    model x1: the model is not available: The model `m` does not exist (model `test/m` at BASE)
    litellm x1: the model is not available: Invalid model name passed in model=m (model `test/m` at BASE)
    path x1: this is not a model server: status 404, `Not Found`; does the base lack a `/v1`? (model `test/m` at BASE)
    page x1: this is not a model server: status 404, `<html>nope</html>`; does the base lack a `/v1`? (model `test/m` at BASE)
    timeout x4: the model server dropped the request (status 408): too slow (model `test/m` at BASE, 4 attempts)
    conflict x4: the model server dropped the request (status 409): busy (model `test/m` at BASE, 4 attempts)
    rate x4: rate limited: slow down (model `test/m` at BASE, 4 attempts)
    quota x1: the account's quota is used up: You exceeded your quota (model `test/m` at BASE)
    pay x1: the account's quota is used up: pay first (model `test/m` at BASE)
    broken x4: the model server failed (status 500): no explanation (model `test/m` at BASE, 4 attempts)
    gateway x4: the model server failed (status 502): <html>bad gateway</html> (model `test/m` at BASE, 4 attempts)
    full x4: the model server is overloaded (status 503): come back later (model `test/m` at BASE, 4 attempts)
    overloaded x4: the model server is overloaded (status 529): Overloaded (model `test/m` at BASE, 4 attempts)
    filter x1: the provider's content filter stopped the request: triggered our content policy (model `test/m` at BASE)
    bad x1: the model server refused the request (status 400): temperature must be a number (model `test/m` at BASE)
    unprocessable x1: the model server refused the request (status 422): no (model `test/m` at BASE)
    moved x1: this is not a model server: status 302 (model `test/m` at BASE)
    nothing x1: this is not a model server: status 204 (model `test/m` at BASE)
    ");
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_known_on_both_wires() {
    let bad = "invalid_request_error";
    let openai = vec![
        (
            "openai",
            Answer::error_of(
                400,
                bad,
                "context_length_exceeded",
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            ),
        ),
        (
            "vllm",
            Answer::error_of(
                400,
                "BadRequestError",
                "400",
                "This model's maximum context length is 32,768 tokens. Please reduce the length.",
            ),
        ),
        (
            "litellm",
            Answer::error_of(
                400,
                "",
                "400",
                "litellm.ContextWindowExceededError: prompt is too long: 210000 tokens > 200000 maximum",
            ),
        ),
    ];
    let anthropic = vec![
        (
            "prompt",
            Answer::error_of(400, bad, "", "prompt is too long: 210000 tokens > 200000 maximum"),
        ),
        (
            "both",
            Answer::error_of(
                400,
                bad,
                "",
                "input length and `max_tokens` exceed context limit: 195000 + 16384 > 200000, decrease one",
            ),
        ),
        (
            "bytes",
            Answer::error_of(413, "request_too_large", "", "Request exceeds the maximum size"),
        ),
    ];
    let mut found = Vec::new();
    for (wire, cases) in [(Wire::Chat, openai), (Wire::Anthropic, anthropic)] {
        for (name, answer) in cases {
            let (error, requests) = outcome(wire, answer).await;
            let Fault::ContextLength { limit, .. } = error.fault else { panic!("{name}: {error}") };
            assert!(!error.retryable());
            found.push(format!("{name} x{requests} {limit:?}"));
        }
    }
    insta::assert_snapshot!(found.join("\n"), @"
    openai x1 Some(8192)
    vllm x1 Some(32768)
    litellm x1 Some(200000)
    prompt x1 Some(200000)
    both x1 Some(200000)
    bytes x1 None
    ");
}

#[tokio::test]
async fn errors_inside_a_stream_mean_what_they_would_as_a_status() {
    let openai = |error: &str| Answer::events([format!(r#"{{"error":{error}}}"#)]);
    let anthropic = |kind: &str| {
        Answer::events([
            r#"{"type":"message_start","message":{"model":"m"}}"#.to_owned(),
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"said so"}}}}"#),
        ])
    };
    let one = table(
        Wire::Chat,
        vec![
            ("number", openai(r#"{"message":"slow down","code":"429"}"#)),
            ("text", openai(r#""it broke""#)),
            ("kind", openai(r#"{"message":"too long","code":"context_length_exceeded"}"#)),
        ],
    );
    let two = table(
        Wire::Anthropic,
        vec![
            ("overloaded", anthropic("overloaded_error")),
            ("rate", anthropic("rate_limit_error")),
            ("server", anthropic("api_error")),
            ("key", anthropic("authentication_error")),
        ],
    );
    insta::assert_snapshot!([one.await, two.await].join("\n"), @"
    number x4: rate limited: slow down (model `test/m` at BASE, 4 attempts)
    text x4: the model server failed (status 500): it broke (model `test/m` at BASE, 4 attempts)
    kind x1: the conversation is longer than the model's window: too long (model `test/m` at BASE)
    overloaded x4: the model server is overloaded (status 529): said so (model `test/m` at BASE, 4 attempts)
    rate x4: rate limited: said so (model `test/m` at BASE, 4 attempts)
    server x4: the model server failed (status 500): said so (model `test/m` at BASE, 4 attempts)
    key x1: the model server does not accept the key: said so (model `test/m` at BASE)
    ");
}

/// ES-383
#[tokio::test]
async fn nobody_listening_is_refused_after_every_retry() {
    let server = ModelServer::start_empty();
    let base = server.base();
    drop(server);
    let error = hello(&*model_at(Wire::Chat, &base)).await.unwrap_err();
    assert_eq!((error.fault.clone(), error.attempts, error.retryable()), (Fault::Refused, 4, true));
    assert_eq!(
        error.to_string(),
        format!("the model server refuses connections (model `test/m` at {base}, 4 attempts)")
    );
}

#[tokio::test]
async fn a_certificate_we_cannot_trust_is_a_permanent_error() {
    let server = TlsServer::start();
    let error = hello(&*model_at(Wire::Chat, &server.base())).await.unwrap_err();
    let Fault::Tls { detail } = &error.fault else { panic!("{error}") };
    assert!(detail.contains("certificate"), "{detail}");
    assert_eq!((error.attempts, error.retryable()), (1, false));
}

#[tokio::test]
async fn tls_with_a_server_that_speaks_none_is_a_permanent_error() {
    let server = ModelServer::start_empty();
    let base = server.base().replace("http:", "https:");
    let error = hello(&*model_at(Wire::Anthropic, &base)).await.unwrap_err();
    assert!(matches!(error.fault, Fault::Tls { .. }), "{error}");
    assert_eq!((error.attempts, error.retryable()), (1, false));
}

#[tokio::test]
async fn a_key_a_server_echoes_is_not_passed_on() {
    let echo = "Incorrect API key provided: sk-test-0123456789. Sent: Bearer sk-test-0123456789";
    for &wire in Wire::ALL {
        let (error, _) = outcome(wire, Answer::error_of(401, "", "invalid_api_key", echo)).await;
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("0123456789") && shown.contains("[redacted]"), "{shown}");
    }
}

/// ES-379
#[tokio::test]
async fn a_model_that_is_gone_is_the_only_one_ever_asked_for() {
    let server = ModelServer::start_empty();
    server
        .answer_with(|_| Some(Answer::error_of(404, "not_found_error", "model_not_found", "gone")));
    hello(&*model(Wire::Chat, &server)).await.unwrap_err();
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(asked, ["m"]);
}
