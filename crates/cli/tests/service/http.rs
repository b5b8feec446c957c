//! The socket of `serve`: who opens one, how a browser is let in, and what is refused before it opens.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use windlass_testkit::{Answer, Gate, ModelServer};

use crate::world::{On, Process, World};

fn world() -> World {
    World::new(On::Embedded, ModelServer::start("replies: [{say: done}]"))
}

/// The sockets that a process listens on, by their inodes.
fn listening(process: u32) -> usize {
    let own: BTreeSet<String> = std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
        .filter_map(|link| {
            let inner = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inner.to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6"].map(|name| format!("/proc/{process}/net/{name}"));
    let lines = tables.iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    });
    let listens = |line: &String| {
        let fields: Vec<_> = line.split_whitespace().collect();
        fields.get(3) == Some(&"0A") && fields.get(9).is_some_and(|inode| own.contains(*inode))
    };
    lines.filter(listens).count()
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("{request}Host: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn address(line: &str) -> String {
    line.split("http://").nth(1).unwrap().split(['/', ' ']).next().unwrap().to_owned()
}

#[test]
fn only_serve_opens_a_socket() {
    let world = world();
    let serve = world.start(&["serve"]);
    serve.until_says("sign in with");
    assert_eq!(listening(serve.id()), 1);
    let worker = world.start(&["worker"]);
    assert_eq!(listening(worker.id()), 0);
    let without = world.start(&["serve", "--no-http"]);
    assert_eq!(listening(without.id()), 0);
    assert!(without.stop().success() && worker.stop().success() && serve.stop().success());
    assert!(!world.store.dir().root().join("server.url").exists());
}

/// What works on a goal in the foreground speaks over its standard streams alone.
#[test]
fn a_run_in_the_foreground_opens_no_socket() {
    for args in [&["run", "say it"][..], &["headless", "say it"], &["-p", "say it"]] {
        let world = world();
        let gate = Gate::default();
        world.model.next(Answer::script("say: said").gated(0, &gate));
        let mut command = world.command(args);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        gate.reached_blocking();
        assert_eq!(listening(run.id()), 0, "{args:?}");
        gate.open();
        assert!(run.wait().unwrap().success(), "{args:?}");
    }
}

#[test]
fn a_second_server_on_one_data_directory_is_refused() {
    let world = world();
    let serve = world.start(&["serve"]);
    let place = address(&serve.until_says("page and API at"));
    serve.until_says("sign in with");
    let second = || world.command(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    refused(&second(), &format!("at http://{place}"), "windlass open");
    let opened = world.command(&["open", "--print"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&opened.stdout).contains(&place),
        "the first keeps its address"
    );
    assert!(serve.stop().success());
}

/// The usual port may be taken by another test or program; then a free one does.
#[test]
fn serve_says_where_it_is_and_open_lets_a_browser_in() {
    let world = world();
    let serve = Process::start(world.command(&["serve"]));
    let place = address(&serve.until_says("page and API at"));
    let link = serve.until_says("sign in with");
    assert!(ask(&place, "GET /healthz HTTP/1.1\r\n").ends_with("ok\n"));
    assert!(ask(&place, "GET /v1/tasks HTTP/1.1\r\n").contains("not-signed-in"));
    let token = world.store.dir().token();
    assert_eq!(std::fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(token).unwrap();
    let tasks = format!("GET /v1/tasks HTTP/1.1\r\nAuthorization: Bearer {}\r\n", token.trim());
    assert!(ask(&place, &tasks).starts_with("HTTP/1.1 200"));
    // What the command line refuses is refused here too, before there is a task.
    for model in ["foo/bar", "script:/no/such/file.yaml"] {
        let body = format!("{{\"goal\":\"x\",\"model\":\"{model}\"}}");
        let post = format!(
            "POST /v1/tasks HTTP/1.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             X-Windlass: 1\r\nContent-Length: {}\r\n",
            token.trim(),
            body.len()
        );
        let refused = send(&place, &post, &body);
        assert!(refused.starts_with("HTTP/1.1 422") && refused.contains("`model`: "), "{refused}");
    }
    let open = world.command(&["open", "--print"]).output().unwrap();
    let opened = String::from_utf8(open.stdout).unwrap();
    for link in [link.as_str(), opened.trim()] {
        let code = link.split_once("/login#").unwrap().1.split(' ').next().unwrap();
        let body = format!("{{\"code\":\"{code}\"}}");
        let login = format!(
            "POST /v1/login HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        assert!(send(&place, &login, &body).starts_with("HTTP/1.1 200"), "{link}");
        assert!(send(&place, &login, &body).starts_with("HTTP/1.1 401"), "it works once");
    }
    assert!(serve.stop().success());
    let closed = world.command(&["open"]).output().unwrap();
    refused(&closed, "no server runs on", "windlass serve");
}

/// A client that continues after its last event gets everything that is not damaged.
#[test]
fn an_event_that_is_damaged_hides_none_behind_it() {
    let world = world();
    let serve = Process::start(world.command(&["serve"]));
    let place = address(&serve.until_says("page and API at"));
    let token = std::fs::read_to_string(world.store.dir().token()).unwrap();
    let by_us =
        format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", token.trim());
    let get = |path: &str| {
        let answer = ask(&place, &format!("GET {path} HTTP/1.1\r\n{by_us}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let body = r#"{"goal":"say it"}"#;
    let length = body.len();
    let post = format!("POST /v1/tasks HTTP/1.1\r\n{by_us}Content-Length: {length}\r\n");
    let made = send(&place, &post, body);
    let made = made.split_once("\r\n\r\n").unwrap().1;
    let made: serde_json::Value = serde_json::from_str(made).unwrap();
    let task = made["task_id"].as_str().unwrap();
    let ends = |text: &str| text.contains("\"event_type\":\"agent_end\"");
    let events = format!("/v1/tasks/{task}/events");
    let whole: serde_json::Value = loop {
        let listed = get(&events);
        if ends(&listed) {
            break serde_json::from_str(&listed).unwrap();
        }
        std::thread::yield_now();
    };
    let database =
        rusqlite::Connection::open(world.store.dir().root().join("windlass.db")).unwrap();
    let damaged = whole["events"][2]["id"].as_i64().unwrap();
    let changed = database.execute("UPDATE journal SET body = '{}' WHERE pos = ?1", [damaged]);
    assert_eq!(changed.unwrap(), 1);
    let rest: serde_json::Value = serde_json::from_str(&get(&events)).unwrap();
    let ids = |list: &serde_json::Value| -> Vec<i64> {
        list["events"].as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect()
    };
    let readable: Vec<_> = ids(&whole).into_iter().filter(|id| *id != damaged).collect();
    assert_eq!(ids(&rest), readable);
    assert!(ends(&get(&format!("/v1/tasks/{task}/trace"))));
    let session = made["session_id"].as_str().unwrap();
    let exported = get(&format!("/v1/sessions/{session}/export"));
    assert!(exported.contains("\"event_type\":\"damaged\"") && ends(&exported), "{exported}");
    let mut stream = TcpStream::connect(&place).unwrap();
    let request = format!(
        "GET {events} HTTP/1.1\r\n{by_us}Accept: text/event-stream\r\nHost: {place}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let (mut received, mut piece) = (String::new(), [0; 4096]);
    while !ends(&received) {
        let count = stream.read(&mut piece).unwrap();
        received.push_str(&String::from_utf8_lossy(&piece[..count]));
        assert!(count > 0 && !received.contains("heartbeat"), "nothing more comes: {received}");
    }
    assert!(serve.stop().success());
}

/// Sends a request with a body; `head` is its lines so far.
fn send(place: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(place).unwrap();
    let whole = format!("{head}Host: {place}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(whole.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn refused(ran: &Output, problem: &str, hint: &str) {
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains(problem) && said.contains(hint), "{said}");
}

#[test]
fn an_address_that_cannot_be_used_is_refused_at_once() {
    let world = world();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = |args: &[&str]| world.command(args).output().unwrap();
    refused(&run(&["serve", "--listen", &address]), "cannot be listened on", "--listen");
    refused(&run(&["serve", "--listen", "0.0.0.0:0"]), "not be encrypted", "--plain-http");
    refused(&run(&["serve", "--listen", "nowhere"]), "nowhere", "--help");
}
