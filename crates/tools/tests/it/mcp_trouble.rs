//! Servers that die in a call or answer with too much: the call ends at once, and says what is known.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use windlass_core::outcome::{CallEnding, Outcome};

use crate::bench::Bench;
use crate::mcp::with_server;

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py")
}

/// A server over HTTP in a process of its own; it ends with this value.
struct HttpServer(Child);

impl HttpServer {
    fn start(bench: &Bench, port: u16) -> Self {
        let mut process = Command::new("python3")
            .arg(program())
            .args(["http", &port.to_string()])
            .env("CALLED", bench.path("called"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        std::io::BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "listening\n");
        Self(process)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Far longer than a test: whoever waits for it fails.
const CALL_SECONDS: u64 = 600;

fn over_http(port: u16) -> Value {
    json!({ "type": "http", "url": format!("http://127.0.0.1:{port}/mcp"),
        "timeout_seconds": CALL_SECONDS })
}

/// What a call comes to whose server is killed after it has begun.
async fn killed_in_call(bench: &mut Bench, tool: &str, server: HttpServer) -> Outcome {
    let act = bench.prepare(tool, json!({})).await.ok().unwrap().act;
    let mut calling = JoinSet::new();
    calling.spawn(async move { (act)().await });
    let mut again = tokio::time::interval(Duration::from_millis(5));
    while !bench.path("called").exists() {
        again.tick().await;
    }
    std::fs::remove_file(bench.path("called")).unwrap();
    drop(server);
    calling.join_next().await.unwrap().unwrap()
}

#[tokio::test]
async fn a_server_over_http_that_dies_in_a_call_leaves_it_unknown() {
    let (mut bench, port) = (Bench::new(), free_port());
    let mut server = HttpServer::start(&bench, port);
    let _servers = with_server(&mut bench, over_http(port)).await;
    for tool in ["mcp__files__hang", "mcp__files__stream", "mcp__files__hang"] {
        let outcome = killed_in_call(&mut bench, tool, server).await;
        assert_eq!(outcome.ending, CallEnding::Unknown, "{tool}: {}", outcome.text);
        assert!(outcome.text.contains("Whether the call took effect is not known"), "{tool}");
        let gone = bench.error("mcp__files__echo", json!({})).await;
        assert!(gone.contains("is not available"), "{tool}: {gone}");
        server = HttpServer::start(&bench, port);
        assert_eq!(bench.ok("mcp__files__echo", json!({})).await, "still here", "it reconnects");
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_is_an_error_at_once() {
    let port = free_port();
    let _server = HttpServer::start(&Bench::new(), port);
    let over_stdio = json!({ "command": "python3", "args": [program(), "stdio"],
        "timeout_seconds": CALL_SECONDS });
    for value in [over_http(port), over_stdio] {
        let mut bench = Bench::new();
        let _servers = with_server(&mut bench, value).await;
        for tool in ["mcp__files__large", "mcp__files__large_json", "mcp__files__many"] {
            let said = bench.error(tool, json!({})).await;
            assert!(said.contains("answered with more than 16 MiB or 200000 values"), "{said}");
            let next = bench.ok("mcp__files__echo", json!({})).await;
            assert_eq!(next, "still here", "it continues after {tool}");
        }
    }
}

#[tokio::test]
async fn a_servers_change_of_rules_is_asked_or_undone() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind\n");
    bench.put("docs/a.md", "x");
    let stdio = json!({ "command": "python3", "args": [program(), "stdio"],
        "env": { "RULES": bench.path("AGENTS.md") } });
    let _servers = with_server(&mut bench, stdio).await;
    let full = bench.path("AGENTS.md").display().to_string();
    for named in [
        json!({ "path": "AGENTS.md" }),
        json!({ "path": "docs/../AGENTS.md" }),
        json!({ "uri": format!("file://{full}") }),
        json!({ "edits": [{ "file": { "name": full } }] }),
        json!({ "path": ".claude/settings.json" }),
    ] {
        let said = bench.assessed("mcp__files__rewrite", named.clone()).await;
        assert!(said.starts_with("production "), "{named}: {said}");
    }
    let said = bench.assessed("mcp__files__rewrite", json!({ "path": "docs/a.md" })).await;
    assert!(said.starts_with("build "), "{said}");

    let said = bench.ok("mcp__files__rewrite", json!({})).await;
    assert_eq!(bench.text("AGENTS.md"), "be kind\n", "{said}");
    assert!(said.contains("- `AGENTS.md`; what it was changed to is kept in"), "{said}");
    bench.ok("mcp__files__rewrite", json!({ "path": "AGENTS.md" })).await;
    assert_eq!(bench.text("AGENTS.md"), "evil", "who approves it gets it");
}

#[tokio::test]
async fn hidden_characters_in_a_servers_refusal_are_marked() {
    let mut bench = Bench::new();
    let stdio = json!({ "command": "python3", "args": [program(), "stdio"] });
    let _servers = with_server(&mut bench, stdio).await;
    let said = bench.error("mcp__files__refuse", json!({})).await;
    assert!(said.contains(r"no\u{202E}\u{200B}␛]0;"), "{said}");
}
