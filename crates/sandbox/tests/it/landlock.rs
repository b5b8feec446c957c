//! The weaker isolation: Landlock alone, on the real root.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use windlass_sandbox::local::{Config, Namespaces};
use windlass_sandbox::{Exit, Local, Network, Sandbox};

use crate::everyone;
use crate::support::{Place, STRANGER, Who, run};

#[test]
fn the_real_path_and_the_weaker_isolation_are_reported() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.landlock().await;
        let report = local.isolation();
        assert_eq!(report.workspace, fs::canonicalize(&place.workspace).unwrap());
        assert!(report.warnings.iter().any(|text| text.starts_with("weaker isolation")));
        let said = run(&local, "pwd; echo x > made; cat made").await.ok();
        assert_eq!(said, format!("{}\nx\n", report.workspace.display()));
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
fn the_limits_of_processes_outside_stay_as_they_are() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.landlock().await;
        let limits = || fs::read_to_string("/proc/self/limits").unwrap();
        let (before, pid) = (limits(), std::process::id());
        run(&local, &format!("prlimit --pid {pid} --nofile=9:9")).await.fails();
        run(&local, &format!("prlimit --pid {pid} --fsize=0:0")).await.fails();
        assert_eq!(limits(), before);
        let said = run(&local, "ulimit -n 99; ulimit -n; prlimit --nofile=98 true").await.ok();
        assert_eq!(said, "99\n");
        let warnings = local.isolation().warnings.join("\n");
        for point in ["priority and the processors", "whether files outside exist"] {
            assert!(warnings.contains(point), "{warnings}");
        }
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

/// A file outside that belongs to whom commands run as.
fn foreign_file(place: &Place, who: Who) -> PathBuf {
    let path = place.home.join("key");
    fs::write(&path, "sk").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    if who == Who::RootForStranger {
        chown(&path, Some(STRANGER), Some(STRANGER)).unwrap();
        fs::set_permissions(&place.home, fs::Permissions::from_mode(0o755)).unwrap();
    }
    path
}

#[test]
fn modes_times_and_attributes_outside_cannot_be_changed() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let path = foreign_file(&place, who);
        let state = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            (found.mode(), found.mtime(), found.uid(), found.gid())
        };
        let before = state(&path);
        let local = place.landlock().await;
        let file = path.display();
        run(&local, &format!("ln -s {file} link; ln -s {} up", place.home.display())).await.ok();
        for change in [
            format!("chmod 777 {file}"),
            "chmod 777 link".to_owned(),
            "chmod 777 up/key".to_owned(),
            "cd ../home && chmod 777 key".to_owned(),
            format!("chmod 777 /proc/self/root{file}"),
            format!("touch -c -d 2001-01-01 {file}"),
            format!("perl -e 'utime(1, 1, \"{file}\") == 1 or exit 1'"),
            format!("perl -e 'chmod(0777, \"{file}\") == 1 or exit 1'"),
            format!("chown $(id -u) {file}"),
            format!(
                "perl -e 'my $v = \"x\"; my $n = \"user.a\"; my $f = \"{file}\"; \
                     exit(syscall({SETXATTR}, $f, $n, $v, 1, 0) == 0 ? 0 : 1)'"
            ),
        ] {
            run(&local, &change).await.fails();
            assert_eq!(state(&path), before, "{change}");
        }
    });
}

#[cfg(target_arch = "x86_64")]
const SETXATTR: u32 = 188;
#[cfg(target_arch = "aarch64")]
const SETXATTR: u32 = 5;

#[test]
fn modes_and_times_in_the_workspace_are_changed_as_ever() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.landlock().await;
        let text = "set -e
            printf '#!/bin/sh\necho ran\n' > tool; chmod +x tool; ./tool
            cd .scratch; touch -d 2001-02-03T04:05:06Z ../tool; cd ..; stat -c %Y tool
            ln -s tool link; chmod 700 link; stat -c %a tool
            touch -h -d 2002-01-01T00:00:00Z link; stat -c %Y link; stat -c %Y tool
            cp -p tool copy; stat -c %a,%Y copy
            exec 5<> tool; perl -e 'open(my $f, \"<&=5\"); chmod(0711, $f) or die $!'; stat -c %a tool
            touch new; chmod 600 $HOME; chmod 700 $HOME
            perl -e 'utime(7, 8, \"new\") == 1 or die'; stat -c %X,%Y new";
        let expected = "ran\n981173106\n700\n1009843200\n981173106\n700,981173106\n711\n7,8\n";
        assert_eq!(run(&local, text).await.ok(), expected);
        if run(&local, "git --version").await.ended.exit == Exit::Code(0) {
            run(&local, "git init -q r && git -C r config a.b c && git -C r config a.b").await.ok();
        }
    });
}

#[test]
fn nothing_listens_and_shared_memory_is_not_the_hosts() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.landlock().await;
        let listen = "use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0) or exit 2; BIND \
                      listen($s, 1) or exit 3";
        for address in ["INADDR_ANY", "INADDR_LOOPBACK"] {
            let bind = format!("bind($s, sockaddr_in(0, {address})) or exit 4;");
            run(&local, &format!("perl -e '{}'", listen.replace("BIND", &bind))).await.fails();
        }
        run(&local, &format!("perl -e '{}'", listen.replace("BIND", ""))).await.fails();
        run(&local, "echo x > /dev/shm/windlass-was-here").await.fails();
        run(&local, "perl -e 'shmget(0, 4096, 01600) // exit 1'").await.fails();
        // A pair that can be given another name would reach any socket of the host.
        let pair = "use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0) or exit 1";
        run(&local, &format!("perl -e '{pair}'")).await.fails();
        let warnings = local.isolation().warnings.join("\n");
        for point in ["processes", "shared memory", "listening sockets", "owners or attributes"] {
            assert!(warnings.contains(point), "{warnings}");
        }
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
        fs::create_dir_all(cargo.join("a/b")).unwrap();
        fs::write(cargo.join("a/b/.netrc"), "sk").unwrap();
        fs::write(cargo.join("a/b/tool"), "another tool").unwrap();
        let read_only = vec![".cargo".into()];
        let namespaces = Namespaces::Off;
        let local = Local::open(Config { read_only, namespaces, ..place.config() }).await.unwrap();
        assert_eq!(run(&local, "cat $CARGO_HOME/bin/tool").await.ok(), "a tool");
        run(&local, "cat $CARGO_HOME/credentials.toml").await.fails();
        assert_eq!(run(&local, "cat $CARGO_HOME/a/b/tool").await.ok(), "another tool");
        run(&local, "cat $CARGO_HOME/a/b/.netrc").await.fails();
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
