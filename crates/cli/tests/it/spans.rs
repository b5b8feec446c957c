//! Spans as a collector receives them: decoded with OpenTelemetry's own definitions, and held against its
//! semantic conventions for generative AI (ES-323).

use std::collections::BTreeMap;
use std::net::TcpListener;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;

use crate::program::Program;

/// The spans of a run, as a collector that the environment names receives them.
fn spans_of(program: &Program, code: i32) -> Vec<Span> {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = collector.local_addr().unwrap();
    let received = std::thread::spawn(move || one_request(&collector));
    let mut command = program.command(&["run", "work", "--quiet"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    let request = received.join().unwrap();
    assert!(request.starts_with(b"POST /v1/traces"), "{}", String::from_utf8_lossy(&request));
    let head = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let sent = ExportTraceServiceRequest::decode(&request[head..]).unwrap();
    let scopes = sent.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let names = || spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{:?}", names()))
}

fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let shown = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::ArrayValue(list) => format!("{} in a list", list.values.len()),
        other => format!("{other:?}"),
    };
    let pairs = span
        .attributes
        .iter()
        .filter_map(|pair| Some((pair.key.as_str(), shown(pair.value.as_ref()?.value.as_ref()?))));
    pairs.collect()
}

#[track_caller]
fn assert_has(span: &Span, wanted: &[(&str, &str)]) {
    let found = attributes(span);
    for (key, value) in wanted {
        assert_eq!(
            found.get(key).map(String::as_str),
            Some(*value),
            "{key} of {}: {found:?}",
            span.name
        );
    }
}

/// ES-323: spans of a run go to a collector, where the environment names one; nowhere by default.
#[test]
fn spans_follow_the_conventions_for_generative_ai() {
    let program = Program::playing("replies: [{glob: '*'}, {say: done}]");
    let spans = spans_of(&program, 0);
    let agent = named(&spans, "invoke_agent windlass");
    assert_eq!(agent.kind(), SpanKind::Internal);
    assert_has(
        agent,
        &[
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "litellm"),
            ("gen_ai.agent.name", "windlass"),
            ("gen_ai.conversation.id", &program.task()),
            ("windlass.status", "COMPLETED"),
        ],
    );
    let chat = named(&spans, "chat gpt-4o");
    assert_eq!((chat.kind(), &chat.parent_span_id), (SpanKind::Client, &agent.span_id));
    assert_has(
        chat,
        &[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "litellm"),
            ("gen_ai.request.model", "gpt-4o"),
            ("gen_ai.response.finish_reasons", "1 in a list"),
        ],
    );
    for key in ["gen_ai.response.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"]
    {
        assert!(attributes(chat).contains_key(key), "{key}: {:?}", attributes(chat));
    }
    let tool = named(&spans, "execute_tool glob");
    assert_eq!((tool.kind(), &tool.parent_span_id), (SpanKind::Internal, &agent.span_id));
    assert_has(
        tool,
        &[
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "glob"),
            ("gen_ai.tool.type", "function"),
        ],
    );
    for span in &spans {
        assert_eq!(span.trace_id, agent.trace_id, "{}", span.name);
        let failed = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        assert!(!failed && !attributes(span).contains_key("error.type"), "{span:?}");
        for own in ["busy_ns", "idle_ns", "target", "level", "code.namespace", "thread.id"] {
            assert!(!attributes(span).contains_key(own), "{own} of {}", span.name);
        }
    }
}

#[test]
fn a_span_of_what_failed_says_so() {
    let program = Program::playing("replies: [{read: missing.txt}]");
    program.server.next(windlass_testkit::Answer::script("read: missing.txt"));
    program.server.next(windlass_testkit::Answer::error(401, "who are you?"));
    let spans = spans_of(&program, 1);
    let is_failed = |span: &&Span| {
        span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error)
    };
    let failed: Vec<_> = spans.iter().filter(is_failed).map(|span| span.name.as_str()).collect();
    assert_eq!(failed, ["execute_tool read", "chat gpt-4o"]);
    let failed: Vec<_> = spans.iter().filter(is_failed).collect();
    assert_has(failed[0], &[("error.type", "error")]);
    assert_has(failed[1], &[("error.type", "model_unauthorized")]);
    let status = failed[1].status.as_ref().unwrap();
    assert!(status.message.contains("who are you?"), "{status:?}");
}

/// A collector that does not answer must not disturb a run.
#[test]
fn a_collector_that_is_gone_is_named_and_does_not_cost_the_task() {
    let program = Program::playing("replies: [{say: done}]");
    let mut command = program.command(&["run", "work"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("warning: not all spans reached the collector: "), "{said}");
}

/// Takes one whole HTTP request and answers it.
fn one_request(listener: &TcpListener) -> Vec<u8> {
    use std::io::{Read as _, Write as _};
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).unwrap();
        request.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let whole = text.find("\r\n\r\n").is_some_and(|end| {
            let length = text.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            // Lossy text is no shorter than the bytes it stands for.
            let head = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(end) + 4;
            length.is_some_and(|length: usize| request.len() >= head + length)
        });
        if whole || count == 0 {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    request
}
