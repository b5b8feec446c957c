//! MCP through a real server: the reference file system server from npm.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use windlass_core::axes::PermissionProfile;
use windlass_core::layout::Layout;
use windlass_core::outcome::CallEnding;
use windlass_core::policy::{Class, Risk};
use windlass_tools::mcp::{Definition, McpHost, Servers, ToolChange, parse_server};
use windlass_tools::registry::reachable_under;

use crate::bench::Bench;

/// The server's program, which `scripts/test` installs.
fn program() -> String {
    std::env::var("WINDLASS_TEST_MCP_FILESYSTEM").expect(
        "WINDLASS_TEST_MCP_FILESYSTEM names the reference file system server's index.js; run the tests \
         with `scripts/test`, or source `scripts/lib/mcp.sh` and call `need_mcp`",
    )
}

fn definition(value: Value) -> Definition {
    parse_server("files", &value, &std::env::vars().collect()).unwrap().unwrap()
}

/// Leaves its process id in `pid` of the workspace, so that a test can end it.
fn script(bench: &Bench) -> Value {
    let directory = bench.path("").display().to_string();
    let script = format!("echo $$ > {directory}/pid; exec node {} {directory}", program());
    json!({ "command": "sh", "args": ["-c", script], "trusted": true })
}

fn host(bench: &Bench) -> McpHost {
    McpHost {
        sandbox: Arc::clone(bench.world.shell.sandbox()),
        pins: pins(bench),
        notices: bench.world.notices.clone(),
    }
}

fn pins(bench: &Bench) -> PathBuf {
    bench.outside.path().join("pins")
}

pub async fn with_server(bench: &mut Bench, value: Value) -> Servers {
    let servers = Servers::new(vec![definition(value)], &host(bench));
    let (tools, missing) = servers.tools().await;
    assert!(missing.is_empty(), "{missing:?}");
    for tool in tools {
        bench.registry.add(tool).unwrap();
    }
    servers
}

fn pid(bench: &Bench) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(bench.text("pid").trim().parse().unwrap()).unwrap()
}

/// List and call; WF-030
#[tokio::test]
async fn a_real_servers_tools_are_listed_and_called() {
    let mut bench = Bench::new();
    bench.put("note.txt", "hello \u{1b}[31mthere");
    let script = script(&bench);
    let servers = with_server(&mut bench, script).await;
    let path = |name: &str| bench.path(name).display().to_string();
    let (note, new, outside) = (path("note.txt"), path("new.txt"), "/etc/hostname");
    let read = bench.ok("mcp__files__read_text_file", json!({ "path": note })).await;
    assert_eq!(read, "hello ␛[31mthere");
    let write = json!({ "path": new, "content": "by another's tool" });
    bench.ok("mcp__files__write_file", write).await;
    assert_eq!(bench.text("new.txt"), "by another's tool");
    let refused = bench.error("mcp__files__read_text_file", json!({ "path": outside })).await;
    assert!(refused.to_lowercase().contains("access denied"), "{refused}");
    let wrong = bench.error("mcp__files__read_text_file", json!({ "file": "x" })).await;
    assert!(wrong.contains("do not fit its schema"), "{wrong}");
    let spec = bench
        .registry
        .specs(&Layout::service(), |_| true)
        .into_iter()
        .find(|spec| spec.name.ends_with("read_text_file"));
    assert!(spec.unwrap().description.starts_with("[mcp:files:read_text_file] "));
    servers.close().await;
}

#[tokio::test]
async fn a_real_servers_picture_arrives_as_a_picture() {
    let mut bench = Bench::new();
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(40, 30).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bench.put("shot.png", bytes.get_ref());
    bench.put("broken.png", "no picture");
    let script = script(&bench);
    let servers = with_server(&mut bench, script).await;
    let path = |name: &str| bench.path(name).display().to_string();
    let (shot, broken) = (path("shot.png"), path("broken.png"));
    let outcome = bench.call("mcp__files__read_media_file", json!({ "path": shot })).await;
    let [picture] = outcome.pictures.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(picture.name, "mcp:files:read_media_file 1");
    assert_eq!(bench.store.pictures().read(picture).unwrap(), bytes.into_inner());
    assert!(outcome.text.contains(&format!("[{picture}]")), "{}", outcome.text);
    let outcome = bench.call("mcp__files__read_media_file", json!({ "path": broken })).await;
    assert!(outcome.pictures.is_empty());
    let words = "[image/png: it is not a PNG, JPEG, GIF or WebP picture]";
    assert!(outcome.text.contains(words), "{}", outcome.text);
    servers.close().await;
}

/// Killed mid-call, and started again.
#[tokio::test]
async fn a_server_that_is_killed_during_a_call_is_started_again_once() {
    let mut bench = Bench::new();
    bench.put("note.txt", "still here");
    let waits = pipe(&bench);
    let value = script(&bench);
    let _servers = with_server(&mut bench, value).await;
    let first = pid(&bench);

    // Reading a pipe that nobody writes to takes for ever: the server is killed in the middle of it. The
    // call only reads, so it is sent once more, to the new server, which is killed as well.
    let read = bench.prepare("mcp__files__read_text_file", json!({ "path": waits })).await;
    let mut calling = JoinSet::new();
    let act = read.ok().unwrap().act;
    calling.spawn(async move { (act)().await });
    let _writer = until_read(&waits).await;
    rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
    let second = until_pid_differs(&bench, first).await;
    let _second_writer = until_read(&waits).await;
    rustix::process::kill_process(second, rustix::process::Signal::KILL).unwrap();
    let outcome = calling.join_next().await.unwrap().unwrap();
    assert_eq!(outcome.ending, CallEnding::Error);
    assert!(outcome.text.contains("the server ended during the call"), "{}", outcome.text);
    assert!(outcome.text.contains("(it is not started again in this task)"), "{}", outcome.text);

    // Twice in a row is enough: from now on the tool answers with the error.
    let note = bench.path("note.txt");
    let given_up = bench.error("mcp__files__read_text_file", json!({ "path": note })).await;
    assert!(given_up.contains("not started again in this task"), "{given_up}");
}

/// A call that may have effects is never sent twice.
#[tokio::test]
async fn a_call_with_effects_that_breaks_off_has_an_unknown_outcome() {
    let mut bench = Bench::new();
    bench.put("note.txt", "still here");
    let waits = pipe(&bench);
    let mut value = script(&bench);
    value["trusted"] = json!(false);
    let _servers = with_server(&mut bench, value).await;
    let first = pid(&bench);
    let read = bench.prepare("mcp__files__read_text_file", json!({ "path": waits })).await;
    let mut calling = JoinSet::new();
    let act = read.ok().unwrap().act;
    calling.spawn(async move { (act)().await });
    let _writer = until_read(&waits).await;
    rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
    let outcome = calling.join_next().await.unwrap().unwrap();
    assert_eq!(outcome.ending, CallEnding::Unknown, "{}", outcome.text);
    assert!(outcome.text.contains("Whether the call took effect is not known"), "{}", outcome.text);
    assert!(outcome.text.contains("(it is started again with the next call)"), "{}", outcome.text);
    let display = outcome.display_text();
    assert!(display.ends_with("It may have taken effect and was not repeated."), "{display}");
    let note = bench.path("note.txt");
    let again = bench.ok("mcp__files__read_text_file", json!({ "path": note })).await;
    assert_eq!(again, "still here");
    assert_ne!(pid(&bench), first);
}

/// Waits until someone reads the pipe: only then can it be opened for writing without waiting. While what
/// is returned lives, the reader waits.
async fn until_read(pipe: &Path) -> File {
    let mut again = tokio::time::interval(Duration::from_millis(5));
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    for _ in 0..6_000 {
        again.tick().await;
        if let Ok(writer) = OpenOptions::new().write(true).custom_flags(flags).open(pipe) {
            return writer;
        }
    }
    panic!("nobody read the pipe");
}

async fn until_pid_differs(bench: &Bench, old: rustix::process::Pid) -> rustix::process::Pid {
    let mut again = tokio::time::interval(Duration::from_millis(5));
    for _ in 0..6_000 {
        again.tick().await;
        let text = bench.text("pid");
        let new = text.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
        if let Some(new) = new.filter(|new| *new != old) {
            return new;
        }
    }
    panic!("the server was never started again");
}

/// A file that takes for ever to read.
fn pipe(bench: &Bench) -> PathBuf {
    let path = bench.path("waits");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

#[tokio::test]
async fn a_call_ends_with_its_task() {
    let mut bench = Bench::new();
    let waits = pipe(&bench);
    let value = script(&bench);
    let _servers = with_server(&mut bench, value).await;
    let read = bench.prepare("mcp__files__read_text_file", json!({ "path": waits })).await;
    let mut calling = JoinSet::new();
    let act = read.ok().unwrap().act;
    calling.spawn(async move { (act)().await });
    let _writer = until_read(&waits).await;
    bench.stop.cancel();
    let outcome = calling.join_next().await.unwrap().unwrap();
    assert_eq!(outcome.ending, CallEnding::Cancelled);
}

/// What is pinned is not asked for again: the server starts with the first call.
#[tokio::test]
async fn a_known_server_is_started_only_when_it_is_called() {
    let mut bench = Bench::new();
    bench.put("note.txt", "hello");
    let value = script(&bench);
    with_server(&mut bench, value.clone()).await.close().await;
    std::fs::remove_file(bench.path("pid")).unwrap();
    bench.registry = windlass_tools::Registry::builtin();
    let _servers = with_server(&mut bench, value).await;
    assert!(!bench.path("pid").exists(), "not started to be listed");
    let note = bench.path("note.txt");
    assert_eq!(bench.ok("mcp__files__read_text_file", json!({ "path": note })).await, "hello");
    assert!(bench.path("pid").exists() && bench.world.notices.take().is_empty());
}

/// Descriptions are pinned by hash: a server that says something else later is reported.
#[tokio::test]
async fn a_changed_description_is_reported_and_the_pinned_one_stays() {
    let mut bench = Bench::new();
    bench.put("note.txt", "hello");
    let value = script(&bench);
    with_server(&mut bench, value.clone()).await.close().await;
    let pin = std::fs::read_dir(pins(&bench)).unwrap().next().unwrap().unwrap().path();
    let mut pinned: Value = serde_json::from_slice(&std::fs::read(&pin).unwrap()).unwrap();
    let tools = pinned["tools"].as_array_mut().unwrap();
    tools.retain(|tool| tool["name"] != "list_directory");
    for tool in tools.iter_mut().filter(|tool| tool["name"] == "read_text_file") {
        tool["description"] = json!("Words of yesterday.");
    }
    std::fs::write(&pin, pinned.to_string()).unwrap();

    bench.registry = windlass_tools::Registry::builtin();
    let servers = with_server(&mut bench, value).await;
    assert!(bench.registry.get("mcp__files__list_directory").is_none());
    let tool = bench.registry.get("mcp__files__read_text_file").unwrap();
    assert_eq!(tool.description(), "[mcp:files:read_text_file] Words of yesterday.");
    let note = bench.path("note.txt");
    bench.ok("mcp__files__read_text_file", json!({ "path": note })).await;
    let notices = bench.world.notices.take();
    assert_eq!(notices.len(), 1, "reported once");
    assert!(notices[0].contains("- new, not offered: `list_directory`"), "{}", notices[0]);
    assert!(notices[0].contains("first met: `read_text_file`"), "{}", notices[0]);
    let server = servers.iter().next().unwrap();
    let (_, changes) = server.compare().await.unwrap();
    assert!(changes.contains(&ToolChange::Changed("read_text_file".to_owned())));
    server.meet().await.unwrap();
    assert!(server.compare().await.unwrap().1.is_empty(), "accepted");
}

/// Annotations count only for servers that a person trusts.
#[tokio::test]
async fn annotations_of_a_server_count_only_when_it_is_trusted() {
    for trusted in [true, false] {
        let mut bench = Bench::new();
        let mut value = script(&bench);
        value["trusted"] = json!(trusted);
        let _servers = with_server(&mut bench, value).await;
        let least = |name: &str| bench.registry.get(name).unwrap().min_class();
        let read = if trusted { Class::Read } else { Class::Build };
        assert_eq!(least("mcp__files__read_text_file"), (read, Risk::Medium));
        let write = least("mcp__files__write_file");
        let destructive = (Class::Destructive, Risk::High);
        assert_eq!(write, if trusted { destructive } else { (Class::Build, Risk::Medium) });
        let restricted = bench
            .registry
            .specs(&Layout::service(), reachable_under(PermissionProfile::Restricted));
        let offered = |name: &str| restricted.iter().any(|spec| spec.name == name);
        assert_eq!(offered("mcp__files__read_text_file"), trusted);
        assert!(!offered("mcp__files__write_file"), "a write is not offered under `restricted`");
    }
}

/// WF-035: what cannot start is named and costs nothing but its tools.
#[tokio::test]
async fn a_server_that_does_not_start_is_named_with_its_stderr() {
    let bench = Bench::new();
    let broken = json!({ "command": "sh", "args": ["-c", "echo no such module >&2; exit 3"] });
    let missing = json!({ "command": "no-such-program-here" });
    for (value, said) in [(broken, "no such module"), (missing, "no-such-program-here")] {
        let servers = Servers::new(vec![definition(value)], &host(&bench));
        let (tools, missing) = servers.tools().await;
        assert!(tools.is_empty());
        assert!(missing[0].starts_with("MCP server `files` is not available: "), "{missing:?}");
        assert!(missing[0].contains(said), "{missing:?}");
    }
}

/// A server over streamable HTTP, as far as a client needs one.
async fn http_server() -> (String, JoinSet<()>) {
    let answer = |headers: axum::http::HeaderMap, axum::Json(request): axum::Json<Value>| async move {
        assert_eq!(headers["x-key"], "s3cret");
        let result = match request["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "stub", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [
                { "name": "add", "description": "Adds", "inputSchema": { "type": "object",
                    "properties": { "a": { "type": "number" } } } },
                { "name": "hang", "inputSchema": {} },
            ] }),
            "tools/call" if request["params"]["name"] == "hang" => std::future::pending().await,
            "tools/call" => {
                let sum = request["params"]["arguments"]["a"].as_i64().unwrap_or_default() + 1;
                json!({ "content": [{ "type": "text", "text": sum.to_string() }] })
            }
            _ => return axum::http::StatusCode::ACCEPTED.into_response(),
        };
        let id = &request["id"];
        axum::Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(answer));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, serving)
}

#[tokio::test]
async fn a_server_over_http_is_called_with_its_headers_and_timeout() {
    let (url, _serving) = http_server().await;
    let mut bench = Bench::new();
    let headers = json!({ "X-Key": "${KEY:-s3cret}" });
    let value = json!({ "type": "http", "url": url, "headers": headers, "timeout_seconds": 1 });
    let servers = with_server(&mut bench, value).await;
    assert_eq!(bench.ok("mcp__files__add", json!({ "a": 41 })).await, "42");
    let late = bench.error("mcp__files__hang", json!({})).await;
    assert_eq!(late, "Error: MCP server `files` did not answer within 1 s.");
    assert_eq!(bench.ok("mcp__files__add", json!({ "a": 1 })).await, "2", "and it continues");
    servers.close().await;
}
