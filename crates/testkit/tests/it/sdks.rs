//! The official SDKs of OpenAI and Anthropic as clients of the model server: what it sends is what they expect.

use std::process::Command;

use serde_json::Value;
use windlass_testkit::ModelServer;

const SCRIPT: &str = "
replies:
  - think: [First the files., Then their sizes.]
    text: Looking. ✓
    calls: [{bash: ls}, {read: a.txt}]
    usage: {input: 1000, output: 30, cached: 800, reasoning: 12}
  - {say: All there., usage: {input: 1200, output: 5, cached: 1000}}
";

/// The program reads each event by the SDK's own types, sends the reply back as its SDK would, and prints what it
/// understood.
#[test]
fn the_official_sdks_understand_the_server_on_every_wire() {
    let python = std::env::var_os("WINDLASS_TEST_SDKS").expect(
        "WINDLASS_TEST_SDKS names a Python with the SDKs; scripts/test installs them and sets this",
    );
    let server = ModelServer::start(SCRIPT);
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk_clients.py");
    let ran = Command::new(python).arg(client).arg(server.base()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    let understood: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(understood.len(), 3, "{out}");
    for seen in understood {
        let wire = seen["wire"].as_str().unwrap().to_owned();
        assert_eq!(seen["text"], "Looking. ✓", "{wire}");
        let calls = r#"[["bash",{"command":"ls"}],["read",{"path":"a.txt"}]]"#;
        assert_eq!(seen["calls"].to_string(), calls, "{wire}");
        assert_eq!(seen["thoughts"], "First the files.Then their sizes.", "{wire}");
        assert_eq!(seen["usage"].to_string(), "[1000,30,800]", "{wire}");
        assert_eq!(
            seen["then"], "All there.",
            "{wire}: the reply was taken back with its reasoning"
        );
    }
    // Anthropic's is asked twice for each reply: for the events, and for what the SDK makes of them.
    assert_eq!(server.request_count(), 8);
}
