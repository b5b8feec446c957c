//! What commands reach: nothing of the host, and the world through the proxy.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use windlass_sandbox::local::Config;
use windlass_sandbox::network::{HostRules, Refusal, Verdict};
use windlass_sandbox::{Command, Egress, Network, Sandbox};

use crate::support::{Any, Place, Tested, finish, run, script};
use crate::{SANDBOX, everyone};

/// Sends one request to the proxy and prints the whole answer.
fn ask(request: &str) -> String {
    format!("p=${{HTTP_PROXY##*:}}; exec 3<>/dev/tcp/127.0.0.1/$p; printf '{request}' >&3; cat <&3")
}

/// A server on the host that answers every connection with what `answer` makes of its first bytes.
fn server(answer: impl Fn(&str) -> String + Send + 'static) -> u16 {
    // Not from the range that connections and the proxy inside take theirs from: a connection to its own
    // port would look like one to the host's.
    let mut ports = (20_000..30_000).map(|port| port + (std::process::id() % 1000) as u16);
    let listener = ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap_or(0);
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            let _ = stream.write_all(answer(&text).as_bytes());
        }
    });
    port
}

async fn open(place: &Place, network: Network) -> Any {
    place.open(Config { network, ..place.config() }).await.unwrap()
}

/// ES-274: restricted means that what is not public is unreachable.
#[test]
fn ports_and_sockets_of_the_host_are_out_of_reach() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let port = server(|_| "reached".to_owned());
        let _unix = UnixListener::bind(place.top.path().join("socket")).unwrap();
        let name = format!("windlass-test-{}-{port}", std::process::id());
        let abstract_name =
            <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name);
        let _abstract = UnixListener::bind_addr(&abstract_name.unwrap()).unwrap();
        for network in [Network::Restricted(place.egress(&[])), Network::None] {
            let local = open(&place, network).await;
            run(&local, &format!("echo x > /dev/tcp/127.0.0.1/{port}")).await.fails();
            run(&local, &format!("echo x > /dev/tcp/localhost/{port}")).await.fails();
            let path = place.top.path().join("socket");
            for address in [path.display().to_string(), format!("\\0{name}")] {
                let connect = format!(
                    "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or exit 2; \
                     connect($s, pack_sockaddr_un(\"{address}\")) or exit 3"
                );
                run(&local, &format!("perl -e '{connect}'")).await.fails();
            }
            let interfaces = run(&local, "tail -n +3 /proc/net/dev | cut -d: -f1").await.ok();
            assert_eq!(interfaces.trim(), "lo");
        }
    });
}

/// What a program says that connects to a socket file: `reached`, or nothing.
fn connect_to(path: &str) -> String {
    format!(
        "perl -e 'use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or exit 2; \
         connect($s, pack_sockaddr_un(\"{path}\")) or exit 3; print \"reached\"'"
    )
}

#[test]
fn sockets_of_other_processes_in_shown_directories_are_out_of_reach() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let shared = |path: &Path| {
            let listener = UnixListener::bind(path).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
            listener
        };
        fs::create_dir_all(place.home.join("tools/deep")).unwrap();
        fs::create_dir(place.workspace.join("sub")).unwrap();
        let _before = [
            shared(&place.workspace.join("x.sock")),
            shared(&place.workspace.join("sub/y.sock")),
            shared(&place.home.join("tools/deep/z.sock")),
            shared(&place.home.join("listed.sock")),
        ];
        let read_only = vec!["tools".into(), "listed.sock".into()];
        let local = place.open(Config { read_only, ..place.config() }).await.unwrap();
        let home = place.home.display();
        run(&local, &connect_to("x.sock")).await.fails();
        run(&local, &connect_to("sub/y.sock")).await.fails();
        if SANDBOX == Tested::Docker {
            return;
        }
        run(&local, &connect_to(&format!("{home}/tools/deep/z.sock"))).await.fails();
        assert_eq!(run(&local, &connect_to(&format!("{home}/listed.sock"))).await.ok(), "reached");
        // One that another process makes later is out of reach for the next command.
        let _later = shared(&place.workspace.join("sub/later.sock"));
        run(&local, &connect_to("sub/later.sock")).await.fails();
        run(&local, &connect_to("sub/later.sock")).await.fails();
        // What commands make themselves works, also for the next one, and with an old socket in the way.
        drop(UnixListener::bind(place.workspace.join("own.sock")).unwrap());
        let listen = "use Socket; unlink \"own.sock\"; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die; \
                      bind($s, pack_sockaddr_un(\"own.sock\")) or die; listen($s, 5) or die; \
                      open(F, \">ready\"); accept(my $c, $s) for 1 .. 2";
        let server = Command { background: true, ..script(&local, &format!("perl -e '{listen}'")) };
        let server = local.start(server).await.unwrap();
        run(&local, "until [ -e ready ]; do sleep 0.01; done").await.ok();
        for _ in 0..2 {
            assert_eq!(run(&local, &connect_to("own.sock")).await.ok(), "reached");
        }
        finish(server).await.ok();
    });
}

/// Only root can put a socket there; for others there is nothing to test.
#[test]
fn sockets_of_other_processes_in_system_directories_are_out_of_reach() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let Ok(directory) = tempfile::tempdir_in("/opt") else { return };
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = directory.path().join("x.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let local = place.sandbox().await;
        run(&local, &connect_to(path.to_str().unwrap())).await.fails();
        // One that another process makes later is out of reach for the next command.
        let later = directory.path().join("later.sock");
        let _later = UnixListener::bind(&later).unwrap();
        fs::set_permissions(&later, fs::Permissions::from_mode(0o777)).unwrap();
        run(&local, &connect_to(later.to_str().unwrap())).await.fails();
    });
}

#[test]
fn commands_reach_each_other_over_loopback() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = open(&place, Network::None).await;
        let listen = "use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0) or die; \
                      bind($s, sockaddr_in(4000, INADDR_LOOPBACK)) or die; listen($s, 1) or die; \
                      open(F, \">ready\"); accept(my $c, $s); print <$c>";
        let text = format!(
            "perl -e '{listen}' & until [ -e ready ]; do sleep 0.01; done; \
             echo hello > /dev/tcp/127.0.0.1/4000; wait"
        );
        assert_eq!(run(&local, &text).await.ok(), "hello\n");
    });
}

#[test]
fn private_and_loopback_addresses_are_refused_with_the_reason() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let port = server(|_| "reached".to_owned());
        let local = place.sandbox().await;
        for (host, refusal) in [
            ("127.0.0.1", Refusal::Loopback),
            ("localhost", Refusal::Loopback),
            ("169.254.169.254", Refusal::Metadata),
            ("10.0.0.1", Refusal::Private),
            ("[::ffff:127.0.0.1]", Refusal::Loopback),
            ("[::1]", Refusal::Loopback),
        ] {
            for request in [
                format!("CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n"),
                format!("GET http://{host}:{port}/ HTTP/1.1\\r\\n\\r\\n"),
            ] {
                let said = run(&local, &ask(&request)).await.ok();
                assert!(said.starts_with("HTTP/1.1 403 Forbidden"), "{host}: {said}");
                let seen = place.connections.lock().unwrap().pop().unwrap();
                assert_eq!((seen.host.as_str(), seen.port), (host, port));
                assert!(
                    matches!(seen.verdict, Verdict::AddressRefused(_, why) if why == refusal),
                    "{seen:?}"
                );
            }
        }
    });
}

#[test]
fn an_allowed_address_is_reached_by_every_protocol_and_logged() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let port = server(|text| match text.strip_prefix("raw ") {
            Some(rest) => format!("got {rest}"),
            None => format!("HTTP/1.1 200 OK\r\n\r\n{}", text.replace('\r', "")),
        });
        let local = open(&place, Network::Restricted(place.egress(&["127.0.0.1"]))).await;

        let tunnel = "p=${HTTPS_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p; \
                      printf 'CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\n\\r\\nraw one' >&3; cat <&3";
        let said = run(&local, &tunnel.replace("PORT", &port.to_string())).await.ok();
        assert_eq!(said, "HTTP/1.1 200 Connection established\r\n\r\ngot one");

        let plain = format!("GET http://127.0.0.1:{port}/a HTTP/1.1\\r\\nProxy-A: b\\r\\n\\r\\n");
        let said = run(&local, &ask(&plain)).await.ok();
        let expected = format!(
            "HTTP/1.1 200 OK\r\n\r\nGET /a HTTP/1.1\nHost: 127.0.0.1:{port}\nConnection: close\n\n"
        );
        assert_eq!(said, expected);

        let [high, low] = port.to_be_bytes();
        let socks = format!(
            "p=${{ALL_PROXY##*:}}; exec 3<>/dev/tcp/127.0.0.1/$p; \
             printf '\\x05\\x01\\x00' >&3; head -c 2 <&3 | od -An -tx1; \
             printf '\\x05\\x01\\x00\\x01\\x7f\\x00\\x00\\x01\\x{high:02x}\\x{low:02x}raw two' >&3; \
             head -c 10 <&3 | od -An -tx1; cat <&3"
        );
        let said = run(&local, &socks).await.ok();
        assert_eq!(said, " 05 00\n 05 00 00 01 00 00 00 00 00 00\ngot two");

        let seen = place.connections.lock().unwrap();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|seen| matches!(seen.verdict, Verdict::Connected(_))), "{seen:?}");
    });
}

#[test]
fn a_host_outside_the_list_is_refused_before_resolution() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let hosts = HostRules::Only(vec!["*.example.org".to_owned()]);
        let egress = Egress { hosts, ..place.egress(&["127.0.0.0/8"]) };
        let local = open(&place, Network::Restricted(egress)).await;
        let said = run(&local, &ask("CONNECT 127.0.0.1:80 HTTP/1.1\\r\\n\\r\\n")).await.ok();
        assert!(said.contains("not on the list"), "{said}");
        assert_eq!(place.connections.lock().unwrap()[0].verdict, Verdict::HostRefused);
    });
}

/// The first message of a TLS connection to this host, as `printf` takes it.
fn hello(host: &str) -> String {
    let vector = |size: usize, bytes: &[u8]| -> Vec<u8> {
        [&bytes.len().to_be_bytes()[8 - size..], bytes].concat()
    };
    let entry = [vec![0], vector(2, host.as_bytes())].concat();
    let extension = [vec![0, 0], vector(2, &vector(2, &entry))].concat();
    let body =
        [vec![3; 34], vec![0], vector(2, &[0x13, 1]), vec![1, 0], vector(2, &extension)].concat();
    let message = [vec![1], vector(3, &body)].concat();
    let record = [vec![22, 3, 1], vector(2, &message)].concat();
    record.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[test]
fn a_tunnel_is_for_the_host_that_it_was_asked_for() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let port = server(|text| format!("got {} bytes", text.len()));
        let any = || place.egress(&["127.0.0.0/8", "::1"]);
        let only = || Egress { hosts: HostRules::Only(vec!["localhost".to_owned()]), ..any() };
        let tunnel = |host: &str, first: &str| {
            ask(&format!("CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n{first}"))
        };
        for (egress, host, first, passes) in [
            (any(), "localhost", hello("LocalHost."), true),
            (any(), "localhost", hello("evil.example"), false),
            (any(), "localhost", "SSH-2.0-x".to_owned(), true),
            (any(), "127.0.0.1", hello("evil.example"), true),
            (only(), "localhost", hello("localhost"), true),
            (only(), "localhost", hello("evil.example"), false),
            (only(), "localhost", "SSH-2.0-x".to_owned(), false),
        ] {
            let local = open(&place, Network::Restricted(egress)).await;
            let outcome = run(&local, &tunnel(host, &first)).await;
            assert_eq!(outcome.out.contains("got "), passes, "{host} {first}: {outcome:?}");
            let refused = outcome.ended.refused;
            assert_eq!(refused.is_empty(), passes, "{refused:?}");
            let start = format!("windlass refused a connection to localhost:{port}: ");
            assert!(refused.iter().all(|text| text.starts_with(&start)), "{refused:?}");
            local.stop().await;
        }
    });
}

#[test]
fn a_refusal_names_windlass_and_the_setting() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let outcome = run(&local, &ask("GET http://10.0.0.1/ HTTP/1.1\\r\\n\\r\\n")).await;
        let text = "windlass refused a connection to 10.0.0.1:80: 10.0.0.1 is a private network; allow it \
                    with `sandbox.allow_addresses`";
        assert!(outcome.out.ends_with(&format!("\r\n\r\n{text}\n")), "{outcome:?}");
        assert_eq!(outcome.ended.refused, [text]);
        // The next command has nothing to do with it.
        assert_eq!(run(&local, "true").await.ended.refused, [""; 0]);
    });
}

#[test]
fn nonsense_to_the_proxy_is_answered_and_harms_nothing() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        for request in [
            "GET / HTTP/1.1\\r\\n\\r\\n",
            "\\x04\\x01\\r\\n\\r\\n",
            "CONNECT a HTTP/1.1\\r\\n\\r\\n",
        ] {
            let said = run(&local, &ask(request)).await.ok();
            assert!(said.starts_with("HTTP/1.1 400"), "{said}");
        }
        let long = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p; \
                    (echo GET http://a/; head -c 20000 /dev/zero | tr '\\0' a) >&3; head -1 <&3";
        let said = run(&local, long).await.both;
        assert!(said.starts_with("HTTP/1.1 431"), "{said}");
        run(&local, "true").await.ok();
    });
}

#[test]
fn large_downloads_and_uploads_pass_whole_at_the_readers_pace() {
    everyone!(|who| async move {
        const SIZE: usize = 5_000_000;
        let place = Place::new(who);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // It begins to read when the command is long gone.
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let counting = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&vec![b'd'; SIZE]).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut first = vec![0; SIZE / 2];
            stream.read_exact(&mut first).unwrap();
            gone.recv().unwrap();
            let mut sent = Vec::new();
            stream.read_to_end(&mut sent).unwrap();
            first.len() + sent.len()
        });
        let local = open(&place, Network::Restricted(place.egress(&["127.0.0.1"]))).await;
        let text = format!(
            "p=${{HTTP_PROXY##*:}}; exec 3<>/dev/tcp/127.0.0.1/$p; \
             printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n' >&3; head -c 39 <&3 > /dev/null; \
             (sleep 0.2; wc -c) <&3 & head -c {SIZE} /dev/zero >&3; wait"
        );
        assert_eq!(run(&local, &text).await.ok(), format!("{SIZE}\n"));
        go.send(()).unwrap();
        assert_eq!(counting.join().unwrap(), SIZE);
    });
}

/// ES-274: `open` is the host's network, or the engine's bridge.
#[test]
fn the_open_network_has_no_proxy_before_it() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let port = server(|text| format!("got {text}"));
        let local = open(&place, Network::Open).await;
        run(&local, "env | grep -i proxy").await.fails();
        let text = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo hi >&3; cat <&3");
        match SANDBOX {
            Tested::Local => assert_eq!(run(&local, &text).await.ok(), "got hi\n"),
            Tested::Docker => {
                run(&local, &text).await.fails();
                run(&local, "grep -q eth0 /proc/net/dev").await.ok();
            }
        }
    });
}
