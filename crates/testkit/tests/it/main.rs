//! The model server itself, spoken to by a plain socket and without a runtime.
#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod documents;
mod sdks;

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use windlass_testkit::{Answer, Gate, ModelServer, assert_extends};

/// Sends a body and reads until the server closes.
fn post(server: &ModelServer, path: &str, body: &str) -> String {
    let mut socket = begin(server, path, body);
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

fn begin(server: &ModelServer, path: &str, body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.address()).unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}");
    write!(socket, "{head}\r\n\r\n{body}").unwrap();
    socket
}

const ASK: &str = r#"{"model":"m","messages":[{"role":"user","content":"go"}]}"#;
const LATER: &str = r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":"a"},{"role":"user","content":"on"}]}"#;

#[test]
fn the_number_of_replies_in_a_request_chooses_whatever_the_order() {
    let server = ModelServer::start("replies: [{say: first}, {say: second, expect: 'on'}]");
    assert!(post(&server, "/v1/chat/completions", LATER).contains("second"));
    assert!(post(&server, "/chat/completions", ASK).contains("first"));
    assert!(post(&server, "/v1/messages", LATER).contains("second"));
    let wrong = post(&server, "/v1/messages", &LATER.replace("on\"}]", "off\"}]"));
    assert!(wrong.contains("400") && wrong.contains("expects `on`"), "{wrong}");
    assert_extends(&server.requests()[1].body, &server.requests()[0].body);
    assert_eq!(server.requests()[0].replies, 1);
}

#[test]
fn in_order_gives_the_next_reply_and_then_an_error() {
    let server = ModelServer::start("replies: [{say: first}, {say: second}]");
    server.in_order();
    for word in ["first", "second", "no reply number 3"] {
        assert!(post(&server, "/v1/chat/completions", ASK).contains(word));
    }
}

#[test]
fn queued_answers_go_before_the_closure_and_that_before_the_script() {
    let server = ModelServer::start("replies: [{say: script}]");
    server.answer_with(|request| (request.model == "m").then(|| Answer::script("say: closure")));
    server.next(Answer::error(500, "queued"));
    for word in ["queued", "closure"] {
        assert!(post(&server, "/v1/chat/completions", ASK).contains(word));
    }
    let other = ASK.replace("\"m\"", "\"n\"");
    assert!(post(&server, "/v1/chat/completions", &other).contains("script"));
}

#[test]
fn a_gate_holds_an_answer_and_requests_at_once_are_counted() {
    let server = ModelServer::start_empty();
    let gates = [Gate::new(), Gate::new()];
    for gate in &gates {
        server.next(Answer::script("say: through").gated(0, gate));
    }
    let mut sockets = [(); 2].map(|()| begin(&server, "/v1/messages", ASK));
    server.requests_reach_blocking(2);
    for gate in &gates {
        gate.reached_blocking();
        gate.open();
    }
    assert_eq!(server.most_at_once(), 2);
    for socket in &mut sockets {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("through"), "{answer}");
    }
}

#[test]
fn a_client_that_leaves_at_a_gate_is_noticed() {
    let server = ModelServer::start_empty();
    let gate = Gate::new();
    server.next(Answer::script("say: never").gated(0, &gate));
    server.next(Answer::script("say: never").hung_after(1));
    drop(begin(&server, "/v1/messages", ASK));
    server.departures_reach_blocking(1);
    let mut waiting =
        begin(&server, "/v1/messages", &ASK.replace("{\"model", "{\"stream\":true,\"model"));
    server.requests_reach_blocking(2);
    drop(server);
    let mut rest = String::new();
    let _ = waiting.read_to_string(&mut rest);
}

#[test]
#[should_panic(expected = "messages differ at byte")]
fn a_request_that_does_not_extend_the_other_is_shown_where() {
    assert_extends(LATER.as_bytes(), LATER.replace("\"a\"", "\"b\"").as_bytes());
}
