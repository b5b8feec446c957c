//! The real LiteLLM proxy between windlass and the scripted model (issue: any model).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use windlass_model::Wire;

use crate::program::{Program, Ran};
use crate::wires::{assert_same, comparable, configure};

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
    /// A proxy with these models.
    fn serving(models: &[String]) -> Self {
        let program = std::env::var_os("WINDLASS_TEST_LITELLM").expect(
            "WINDLASS_TEST_LITELLM names the LiteLLM proxy; scripts/test installs it and sets this",
        );
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("config.yaml");
        std::fs::write(&config, format!("model_list:\n{}", models.concat())).unwrap();
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

/// An entry of the proxy's list.
fn entry(name: &str, model: &str, base: &str) -> String {
    format!(
        "  - model_name: {name}\n    litellm_params:\n      model: {model}\n      api_base: {base}\n      \
         api_key: none\n      input_cost_per_token: 0.001\n      output_cost_per_token: 0.002\n"
    )
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
    let base = program.server.base();
    let proxy = Proxy::serving(&[entry("gpt-4o", "openai/gpt-4o", &format!("{base}/v1"))]);
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

/// The proxy's own names: what it tells about the model differs with the path.
const NAMES: [&str; 3] = ["by-chat", "by-responses", "by-messages"];

#[test]
fn the_same_task_through_litellm_on_each_wire_has_the_same_events() {
    let script = "
replies:
  - text: Looking at both.
    calls: [{read: notes.txt}, {bash: wc -l notes.txt}]
    usage: {input: 3000, output: 60}
  - {read: notes.txt, usage: {input: 3200, output: 40}}
  - {say: Two lines., usage: {input: 3400, output: 20}}
";
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("notes.txt"), "one\ntwo\n").unwrap();
    let base = program.server.base();
    let proxy = Proxy::serving(&[
        entry(NAMES[0], "openai/gpt-4o", &format!("{base}/v1")),
        entry(NAMES[1], "openai/gpt-4o", &format!("{base}/v1")),
        entry(NAMES[2], "anthropic/claude-sonnet-4-5", &base),
    ]);
    let provider = |wire: Wire| {
        let address = proxy.address;
        format!(
            "[models.providers.{wire}]\nbase = \"http://{address}/v1\"\nwire = \"{wire}\"\n\
             key_env = \"PROXY_KEY\"\n"
        )
    };
    configure(&program, &Wire::ALL.iter().map(|&wire| provider(wire)).collect::<String>());
    let mut events = Vec::new();
    for (&wire, name) in Wire::ALL.iter().zip(NAMES) {
        let model = format!("{wire}/{name}");
        let before = program.server.request_count();
        let mut command = program.command(&["run", "how long?", "--json", "--model", &model]);
        let ran = Ran::from(command.env("PROXY_KEY", KEY).output().unwrap()).expect(0);
        assert_eq!(ran.result()["final_message"], "Two lines.", "{wire}");
        let requests = program.server.requests();
        assert!(requests[before..].iter().all(|request| request.wire() == Some(wire)), "{wire}");
        // The proxy names the model by its own name on one path and by the provider's on another, and counts
        // tokens in its own way.
        let by_proxy = |line: &str| line.contains("\"model\": ") || line.contains("_tokens\": ");
        let page = comparable(&program, &ran).replace(&model, "MODEL");
        let lines: Vec<_> = page.lines().filter(|line| !by_proxy(line)).collect();
        events.push(lines.join("\n"));
    }
    assert_same(&events[0], &events[1], "responses");
    assert_same(&events[0], &events[2], "messages");
}
