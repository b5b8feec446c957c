//! A private Redis server: own port, own directory, every write synced. It ends with the test.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long the server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// A running Redis server that nobody else uses.
pub struct RedisServer {
    port: u16,
    directory: TempDir,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts a server. Fails the test if `redis-server` is not installed.
    pub fn start() -> Self {
        // Another process may take the free port before the server does. Then the start fails and is retried.
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = free.local_addr().expect("an address").port();
            drop(free);
            let directory = tempfile::tempdir().expect("a directory");
            let mut server = Self { port, directory, child: None };
            if server.launch() {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    /// Its address, as `REDIS_URL` has it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// What `redis-cli` prints for these arguments.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(arguments)
            .output()
            .expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Kills it as a power failure would, and leaves it down.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
    }

    /// Starts it again with what it had on disk.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.launch(), "redis-server starts again");
    }

    /// Stops it without ending it: clients wait, as in a network partition.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen server continue.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("it can be signalled");
    }

    fn launch(&mut self) -> bool {
        let program = program();
        let log = File::create(self.directory.path().join("log")).expect("a log");
        let child = Command::new(&program)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--dir"])
            .arg(self.directory.path())
            .args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""])
            .args(["--daemonize", "no"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
        let child = self.child.insert(child);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if child.try_wait().expect("it can be waited for").is_some() {
                return false;
            }
            if answers(self.port) {
                return true;
            }
            sleep(LOOK);
        }
        false
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> PathBuf {
    std::env::var_os("WINDLASS_TEST_REDIS").map(PathBuf::from).unwrap_or_else(|| {
        panic!("WINDLASS_TEST_REDIS does not name a redis-server; `scripts/test` sets it")
    })
}

fn answers(port: u16) -> bool {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PATIENCE) else { return false };
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut reply = [0; 5];
    stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut reply).is_ok()
        && reply == *b"+PONG"
}
