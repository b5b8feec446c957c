//! The socket of `serve`: who opens one, how a browser is let in, and what is refused before it opens.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use windlass_testkit::ModelServer;

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
    let open = world.command(&["open", "--print"]).output().unwrap();
    let opened = String::from_utf8(open.stdout).unwrap();
    for link in [link.as_str(), opened.trim()] {
        let code = link.split_once("/login#").unwrap().1.split(' ').next().unwrap();
        let body = format!("{{\"code\":\"{code}\"}}");
        let login = format!(
            "POST /v1/login HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        let send = |login: &str| {
            let mut stream = TcpStream::connect(&place).unwrap();
            let whole = format!("{login}Host: {place}\r\nConnection: close\r\n\r\n{body}");
            stream.write_all(whole.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        assert!(send(&login).starts_with("HTTP/1.1 200"), "{link}");
        assert!(send(&login).starts_with("HTTP/1.1 401"), "it works once");
    }
    assert!(serve.stop().success());
    let closed = world.command(&["open"]).output().unwrap();
    refused(&closed, "no server runs on", "windlass serve");
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
