//! Connections that send nothing, too slowly, or are too many.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{World, answer};

/// More connections than a server keeps.
const TOO_MANY: usize = 2200;

async fn connect(world: &World) -> TcpStream {
    TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap()
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is reset has nothing more to say either.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

/// Slow-loris.
#[tokio::test]
async fn a_connection_that_never_finishes_its_request_is_closed() {
    let world = World::new().await;
    let (mut silent, mut slow, mut body) =
        (connect(&world).await, connect(&world).await, connect(&world).await);
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    let host = world.base.strip_prefix("http://").unwrap();
    let head = format!(
        "POST /v1/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    );
    body.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    let said = rest(&mut slow).await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    let said = rest(&mut body).await;
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("too-slow"), "{said}");
    // The next one is served.
    let mut next = connect(&world).await;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    next.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(&mut next).await.ends_with("ok\n"));
}

#[tokio::test]
async fn ten_thousand_connections_are_told_that_there_is_no_room() {
    let world = World::new().await;
    let mut idle = Vec::new();
    for _ in 0..TOO_MANY {
        idle.push(connect(&world).await);
    }
    // One that was taken says nothing until it is asked; the last one was not.
    let refusal = rest(&mut idle.pop().unwrap()).await;
    assert!(refusal.starts_with("HTTP/1.1 503"), "{refusal}");
    assert!(refusal.contains("urn:windlass:problem:too-many-connections"), "{refusal}");
    // As many more as somebody likes to open: each gets the same answer, and those that were taken stay.
    for _ in idle.len()..10_000 {
        let mut stream = connect(&world).await;
        let said = rest(&mut stream).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 503"), "{said}");
    }
    let host = world.base.strip_prefix("http://").unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut first = idle.swap_remove(0);
    first.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(&mut first).await.ends_with("ok\n"));
    drop(idle);
    // As soon as they are gone there is room again.
    let mut tries = 0;
    while !matches!(world.get("/v1/tasks").send().await, Ok(response) if response.status() == 200) {
        tries += 1;
        assert!(tries < 1000, "the server does not recover");
        tokio::task::yield_now().await;
    }
    assert_eq!(answer(world.get("/readyz")).await.0, 200);
}

#[tokio::test]
async fn a_request_without_a_host_or_with_two_is_not_for_us() {
    let world = World::new().await;
    let host = world.base.strip_prefix("http://").unwrap().to_owned();
    for request in [
        "GET /healthz HTTP/1.0\r\n\r\n".to_owned(),
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nHost: evil\r\nConnection: close\r\n\r\n"),
        format!(
            "GET http://evil.example/healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ),
    ] {
        let mut stream = connect(&world).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let said = rest(&mut stream).await;
        assert!(said.contains(" 421 ") || said.contains(" 400 "), "{request}: {said}");
    }
}

/// A body that breaks off is not a large one, and who asks first is refused before too much is sent.
#[tokio::test]
async fn a_broken_body_and_a_large_one_are_told_apart() {
    let world = World::new().await;
    let host = world.base.strip_prefix("http://").unwrap();
    let head = format!(
        "POST /v1/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    );
    for (sent, status, word) in [
        ("Content-Length: 99\r\n\r\n{", "400", "bad-request"),
        ("Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", "400", "bad-request"),
        ("Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", "413", "too-large"),
    ] {
        let mut stream = connect(&world).await;
        stream.write_all(format!("{head}{sent}").as_bytes()).await.unwrap();
        if sent.ends_with('{') {
            stream.shutdown().await.unwrap();
        }
        let said = rest(&mut stream).await;
        let is_refused = said.starts_with(&format!("HTTP/1.1 {status} "));
        assert!(is_refused && said.contains(&format!("problem:{word}")), "{sent}: {said}");
    }
}
