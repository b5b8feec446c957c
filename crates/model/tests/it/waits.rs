//! How long the client waits before it asks again. (ES-370, ES-374…378)

use std::time::Duration;

use windlass_model::{Fault, Models, Retry, Settings, StreamEvent, Wire};
use windlass_testkit::{Answer, ModelServer};

use crate::support::{ask, begun, hello, model, settings};

fn busy() -> Answer {
    Answer::error_of(429, "rate_limit_error", "rate_limit_exceeded", "slow down")
}

fn retrying(attempt: u32, live: &StreamEvent) -> Duration {
    match live {
        StreamEvent::Retrying { attempt: a, after, reason } => {
            assert_eq!((*a, reason.as_str()), (attempt, "rate limited: slow down"));
            *after
        }
        other => panic!("{other:?}"),
    }
}

/// ES-370, ES-374, ES-375, ES-376
#[tokio::test]
async fn waits_grow_and_are_announced_before_they_begin() {
    let server = ModelServer::start_empty();
    server.next(busy()).next(busy()).next(busy()).next(Answer::script("say: now"));
    let model = model(Wire::Chat, &server);
    let (reply, seen) = ask(&*model, &begun(&*model, "go")).await;
    assert_eq!(reply.unwrap().text, "now");
    for (number, live) in (1..).zip(&seen[..3]) {
        let (wait, least) = (retrying(number, live), Duration::from_millis(1 << (number - 1)));
        assert!(wait >= least && wait <= least * 5 / 4, "{wait:?}");
    }
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "a retry sends the same bytes");
}

/// ES-378
#[tokio::test]
async fn a_server_that_says_how_long_is_obeyed() {
    for (name, value, wait) in [
        ("retry-after", "0", Duration::ZERO),
        ("retry-after", "0.02", Duration::from_millis(20)),
        ("retry-after-ms", "15", Duration::from_millis(15)),
        ("retry-after", "Wed, 21 Oct 2026 07:28:01 GMT", Duration::from_secs(1)),
    ] {
        let server = ModelServer::start_empty();
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        server.next(busy().header(name, value).header("date", date));
        server.next(Answer::script("say: now"));
        let model = model(Wire::Anthropic, &server);
        let (reply, seen) = ask(&*model, &begun(&*model, "go")).await;
        reply.unwrap();
        let reason = "rate limited: slow down".to_owned();
        assert_eq!(seen[0], StreamEvent::Waiting { attempt: 1, after: wait, reason });
    }
}

/// ES-378
#[tokio::test]
async fn a_wait_beyond_the_limit_is_the_callers_to_take() {
    let server = ModelServer::start_empty();
    server.next(busy().header("retry-after", "86400"));
    let error = hello(&*model(Wire::Chat, &server)).await.unwrap_err();
    assert_eq!(error.fault.retry_after(), Some(Duration::from_secs(86400)));
    let said = error.to_string();
    assert!(said.starts_with("rate limited: slow down; it asks to retry in 24h"), "{said}");
    assert!(matches!(error.fault, Fault::RateLimited { .. }) && error.retryable());
    assert_eq!(server.request_count(), 1);
}

/// ES-374
#[tokio::test]
async fn without_retries_the_first_failure_is_the_last() {
    let server = ModelServer::start_empty();
    server.next(busy());
    let retry = Retry { max_retries: 0, ..Retry::default() };
    let settings = Settings { retry, ..settings(Wire::Chat, &server.base()) };
    let model = Models::new(settings).open(&"test/m".parse().unwrap()).unwrap();
    assert_eq!(hello(&*model).await.unwrap_err().attempts, 1);
}
