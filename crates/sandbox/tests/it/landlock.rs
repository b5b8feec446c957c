//! The weaker footing: Landlock alone, on the real root.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use windlass_sandbox::local::{Config, Namespaces};
use windlass_sandbox::{Local, Network, Sandbox};

use crate::everyone;
use crate::support::{Place, run};

#[test]
fn the_real_path_and_the_weaker_isolation_are_reported() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.landlock().await;
        let footing = local.isolation();
        assert_eq!(footing.workspace, fs::canonicalize(&place.workspace).unwrap());
        assert!(footing.warnings.iter().any(|text| text.starts_with("weaker isolation")));
        let said = run(&local, "pwd; echo x > made; cat made").await.ok();
        assert_eq!(said, format!("{}\nx\n", footing.workspace.display()));
        run(&local, "echo x > $HOME/a; echo x > $TMPDIR/b; ls /usr/bin > /dev/null").await.ok();
    });
}

#[test]
fn files_outside_are_neither_read_nor_written() {
    everyone!(|who| async move {
        let place = Place::new(who);
        fs::write(place.home.join("secret"), "sk").unwrap();
        fs::write(place.data.join("secret"), "sk").unwrap();
        let local = place.landlock().await;
        for path in [&place.home, &place.data] {
            run(&local, &format!("cat {}/secret", path.display())).await.fails();
            run(&local, &format!("ls {}", path.display())).await.fails();
            run(&local, &format!("echo x > {}/new", path.display())).await.fails();
        }
        for path in ["/usr", "/etc", "/tmp", "/var/tmp"] {
            run(&local, &format!("echo x > {path}/windlass-was-here")).await.fails();
        }
        run(&local, "cat /root/.bashrc").await.fails();
    });
}

#[test]
fn windlass_can_be_neither_read_nor_signalled() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.landlock().await;
        let pid = std::process::id();
        run(&local, &format!("cat /proc/{pid}/environ")).await.fails();
        run(&local, &format!("cat /proc/{pid}/maps")).await.fails();
        if local.isolation().facts.iter().any(|fact| fact == "Landlock version 7 is enforced") {
            run(&local, &format!("kill -0 {pid}")).await.fails();
        }
        run(&local, "env | grep do-not-show").await.fails();
        run(&local, "unshare -U true").await.fails();
        let status = run(&local, "grep CapEff /proc/self/status").await.ok();
        assert_eq!(status, "CapEff:\t0000000000000000\n");
    });
}

#[test]
fn the_hosts_ports_and_sockets_are_out_of_reach() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = place.workspace.join("socket");
        let _unix = UnixListener::bind(&socket).unwrap();
        for network in [Network::Restricted(place.egress(&[])), Network::None] {
            let config = Config { namespaces: Namespaces::Off, network, ..place.config() };
            let local = Local::open(config).await.unwrap();
            run(&local, &format!("echo x > /dev/tcp/127.0.0.1/{port}")).await.fails();
            run(&local, &format!("echo x > /dev/udp/127.0.0.1/{port}")).await.fails();
            let connect = "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or exit 1; \
                           connect($s, pack_sockaddr_un(\"socket\")) or exit 1";
            run(&local, &format!("perl -e '{connect}'")).await.fails();
        }
        // With the host's network there is nothing to guard.
        let network = Network::Open;
        let config = Config { namespaces: Namespaces::Off, network, ..place.config() };
        let local = Local::open(config).await.unwrap();
        run(&local, &format!("echo x > /dev/tcp/127.0.0.1/{port}")).await.ok();
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x\n");
    });
}

#[test]
fn the_proxy_is_the_one_way_out() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.landlock().await;
        let text = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p; \
                    printf 'CONNECT 127.0.0.1:1 HTTP/1.1\\r\\n\\r\\n' >&3; head -1 <&3";
        let said = run(&local, text).await.ok();
        assert_eq!(said, "HTTP/1.1 403 Forbidden\r\n");
    });
}

#[test]
fn credentials_in_a_toolchain_stay_hidden() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let cargo = place.home.join(".cargo");
        fs::create_dir_all(cargo.join("bin")).unwrap();
        fs::write(cargo.join("bin/tool"), "a tool").unwrap();
        fs::write(cargo.join("credentials.toml"), "token = 'sk'").unwrap();
        let read_only = vec![".cargo".into()];
        let namespaces = Namespaces::Off;
        let local = Local::open(Config { read_only, namespaces, ..place.config() }).await.unwrap();
        assert_eq!(run(&local, "cat $CARGO_HOME/bin/tool").await.ok(), "a tool");
        run(&local, "cat $CARGO_HOME/credentials.toml").await.fails();
        run(&local, "echo x > $CARGO_HOME/bin/tool").await.fails();
    });
}

#[test]
fn a_data_directory_inside_the_workspace_is_refused() {
    everyone!(|who| async move {
        let mut place = Place::new(who);
        place.data = place.workspace.join("data");
        let config = Config { namespaces: Namespaces::Off, ..place.config() };
        let error = Local::open(config).await.unwrap_err().to_string();
        assert!(error.contains("inside the workspace by Landlock alone"), "{error}");
    });
}
