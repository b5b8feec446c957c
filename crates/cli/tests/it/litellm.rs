//! The real LiteLLM proxy between windlass and the scripted model (issue: any model).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::program::Program;

const KEY: &str = "sk-windlass-test-key-0123456789";
/// The proxy imports a great deal before it listens.
const PATIENCE: Duration = Duration::from_secs(180);

/// A proxy that forwards to a model server.
struct Proxy {
    process: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Proxy {
    fn before(base: &str) -> Self {
        let program = std::env::var_os("WINDLASS_TEST_LITELLM").expect(
            "WINDLASS_TEST_LITELLM names the LiteLLM proxy; scripts/test installs it and sets this",
        );
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("config.yaml");
        let text = format!(
            "model_list:\n  - model_name: gpt-4o\n    litellm_params:\n      model: openai/gpt-4o\n      \
             api_base: {base}/v1\n      api_key: none\n      input_cost_per_token: 0.001\n      \
             output_cost_per_token: 0.002\n"
        );
        std::fs::write(&config, text).unwrap();
        let address = free_address();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let process = Command::new(program)
            .arg("--config")
            .arg(&config)
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            .current_dir(directory.path())
            .env("LITELLM_MASTER_KEY", KEY)
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("the proxy starts");
        let proxy = Self { process, address, _directory: directory };
        proxy.wait_until_it_answers();
        proxy
    }

    fn wait_until_it_answers(&self) {
        let begun = std::time::Instant::now();
        while !self.is_alive() {
            let log = std::fs::read_to_string(self._directory.path().join("log"));
            assert!(begun.elapsed() < PATIENCE, "the proxy does not answer: {log:?}");
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    fn is_alive(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return false };
        let asked = stream.write_all(
            b"GET /health/liveliness HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        );
        let mut answer = String::new();
        asked.and_then(|()| stream.read_to_string(&mut answer)).is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// ES-351, ES-352, ES-353: a tool-using run through the proxy, streamed, with its cost.
#[test]
fn a_run_through_litellm_uses_tools_and_knows_its_cost() {
    let program = Program::playing(
        "
replies:
  - read: notes.txt
    usage: {input: 1000, output: 100}
  - say: It says hello.
    usage: {input: 2000, output: 50}
",
    );
    std::fs::write(program.workspace().join("notes.txt"), "hello\n").unwrap();
    let proxy = Proxy::before(&program.server.base());
    let ran = program
        .command(&["run", "what do the notes say?", "--json"])
        .env("LITELLM_API_BASE", format!("http://{}", proxy.address))
        .env("LITELLM_API_KEY", KEY)
        .output()
        .unwrap();
    let ran: crate::program::Ran = ran.into();
    let ran = ran.expect(0);
    assert_eq!(ran.result()["final_message"], "It says hello.");
    assert_eq!(ran.result()["usage"]["tool_calls"], 1);
    assert!(program.server.requests().iter().all(|request| request.streamed));
    let replies = ran.json_lines();
    let costs: Vec<f64> = replies
        .iter()
        .filter(|event| event["event_type"] == "llm_response")
        .filter_map(|event| event["data"]["usage"]["cost_usd"].as_f64())
        .collect();
    assert_eq!(costs.len(), 2, "the proxy tells the cost of each reply: {costs:?}");
    assert!((costs[0] - 1.2).abs() < 0.01, "1,000 × $0.001 + 100 × $0.002: {costs:?}");
}
