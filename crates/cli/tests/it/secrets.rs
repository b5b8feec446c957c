//! Keys of ours that come in by way of files, commands and replies stay out of everything that is kept, shown
//! or sent.

use crate::program::Program;

const KEY: &str = "sk-test-0123456789abcdef";

fn run(script: &str, args: &[&str]) -> (Program, String) {
    let program = Program::playing(script);
    std::fs::write(program.workspace().join(".env"), format!("LITELLM_API_KEY={KEY}\n")).unwrap();
    let mut command = program.command(args);
    let output = command.env("LITELLM_API_KEY", KEY).output().unwrap();
    let mut shown = String::from_utf8_lossy(&output.stdout).into_owned();
    shown.push_str(&String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}");
    (program, shown)
}

/// Every file below a directory that holds the key.
fn holding_the_key(directory: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding_the_key(&path, found);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn a_key_that_is_read_printed_or_said_is_kept_nowhere() {
    let script = format!(
        "replies:
  - {{read: .env}}
  - {{bash: 'cat .env; for i in $(seq 3000); do cat .env; done'}}
  - {{say: 'the key is {KEY}'}}
"
    );
    let goal = format!("look at {KEY}");
    let args = ["run", &goal, "--json", "--sandbox", "host", "--record", "rec.yaml"];
    let (program, shown) = run(&script, &args);
    let recorded = program.file("rec.yaml");
    assert!(recorded.contains("the key is [redacted: LITELLM_API_KEY]"), "{recorded}");
    assert!(!recorded.contains(KEY), "{recorded}");
    assert!(!shown.contains(KEY), "{shown}");
    assert!(shown.contains("the key is [redacted: LITELLM_API_KEY]"), "{shown}");
    let mut found = Vec::new();
    holding_the_key(&program.data_directory(), &mut found);
    assert_eq!(found, Vec::<String>::new());
    for request in program.server.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains(KEY));
    }
}

#[test]
fn a_key_that_a_persons_own_command_prints_is_kept_nowhere() {
    let (program, shown) =
        run("replies: []", &["exec", "--sandbox", "host", "cat .env; cat .env >&2"]);
    assert!(!shown.contains(KEY), "{shown}");
    assert_eq!(shown.matches("[redacted: LITELLM_API_KEY]").count(), 2, "{shown}");
    let mut found = Vec::new();
    holding_the_key(&program.data_directory(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

/// A key does not have to be one of a model: passwords in addresses, what the user's servers are given, the token of the
/// data directory, and a key that another one is set over.
#[test]
fn keys_of_every_kind_are_hidden() {
    let program = Program::playing("replies: []");
    let user = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    let config = "[models]\nlitellm_api_key = \"in-the-file-0123456789\"\n\
        [mcp.servers.one]\ncommand = \"true\"\nenv = { API_TOKEN = \"of-a-server-0123456789\" }\n\
        [mcp.servers.three]\ncommand = \"true\"\nargs = [\"--api-key\", \"of-a-flag-0123456789\", \
        \"--auth-token=of-a-word-0123456789\", \"--root\", \"/some/where/else-0123456789\"]\n\
        [mcp.servers.two]\nurl = \"https://x.example/mcp?key=of-a-query-0123456789\"\n\
        headers = { Authorization = \"Bearer of-a-header-0123456789\", Accept = \"application/json\" }\n\
        [models.providers.acme]\nbase = \"https://acme.example/v1?key=of-an-address-0123456789\"\n\
        headers = { Authorization = \"Bearer of-a-provider-0123456789\" }\n\
        query = { api-version = \"2024-02-15-preview\", api-key = \"of-a-parameter-0123456789\" }\n\
        [server]\nnotify_url = \"https://hooks.example/services/of-a-webhook-0123456789\"\n";
    std::fs::write(user, config).unwrap();
    std::fs::create_dir_all(program.data_directory()).unwrap();
    std::fs::write(program.data_directory().join("token"), "of-the-page-0123456789\n").unwrap();
    let keys = [
        "in-the-file",
        "of-a-server",
        "of-a-header",
        "of-a-flag",
        "of-a-word",
        "of-a-query",
        "of-the-page",
        "of-redis",
        "of-base",
        "of-an-address",
        "of-a-provider",
        "of-a-parameter",
        "of-a-webhook",
    ];
    let text: String = keys.iter().map(|key| format!("{key}-0123456789\n")).collect();
    std::fs::write(
        program.workspace().join("keys"),
        text + "application/json 2024-02-15-preview\n",
    )
    .unwrap();
    let mut command = program.command(&["exec", "--sandbox", "host", "cat keys"]);
    command.env("LITELLM_API_KEY", KEY);
    command.env("REDIS_URL", "redis://me:of-redis-0123456789@localhost:1");
    command.env("OLLAMA_BASE_URL", "http://me:of-base-0123456789@localhost:1");
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(shown.matches("[redacted: ").count(), keys.len(), "{output:?}");
    assert!(!shown.contains("0123456789"), "{shown}");
    assert!(shown.contains("application/json 2024-02-15-preview"), "{shown}");
}

#[test]
fn a_mark_is_never_written_in_place_of_a_key() {
    let script = "
replies:
  - {read: .env}
  - write: {path: .env, content: 'LITELLM_API_KEY=[redacted: LITELLM_API_KEY]'}
  - edit: {path: .env, old_string: 'LITELLM', new_string: '[redacted: LITELLM_API_KEY] LITELLM'}
  - {say: done}
";
    let (program, shown) = run(script, &["run", "tidy", "--json", "--sandbox", "host"]);
    assert_eq!(program.file(".env"), format!("LITELLM_API_KEY={KEY}\n"));
    let results = shown.lines().filter(|line| line.contains("\"event_type\":\"tool_result\""));
    let refused = results.filter(|line| line.contains("nothing was written")).count();
    assert_eq!(refused, 2, "{shown}");
}

/// A server that says a key of ours wherever it can, and is given one of its own by the project's list.
const TELLING: &str = r#"
import json, os, sys
key = os.environ["OTHER"]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": key, "version": key}}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "tell", "description": "tells " + key, "inputSchema": {"type": "object"}}]}
    if message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "it is " + key}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Also log lines of libraries, and what a person reads of servers and skills.
#[test]
fn a_key_that_a_server_or_a_skill_says_is_printed_nowhere() {
    let program = Program::playing("replies: [{mcp__s__tell: {}}, {say: done}]");
    let write = |name: &str, text: &str| {
        let path = program.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let server = r#"{"mcpServers": {"s": {"command": "python3", "args": ["srv.py"], "env": {"OTHER": "${OTHER_TOKEN}"}}}}"#;
    write(".mcp.json", server);
    write("srv.py", TELLING);
    let skill = format!("---\nname: k\ndescription: uses {KEY}\n---\nThe key is {KEY}.\n");
    write(".windlass/skills/k/SKILL.md", &skill);
    const OTHER: &str = "other-0123456789-abcdef";
    let mut shown = String::new();
    for args in [
        ["trust", "--yes"].as_slice(),
        &["mcp", "test", "s", "--pin"],
        &["run", "use it"],
        &["skills", "list"],
        &["skills", "show", "k"],
        &["logs"],
        &["events"],
    ] {
        let mut command = program.command(args);
        command.env("LITELLM_API_KEY", KEY).env("OTHER_TOKEN", OTHER).env("RUST_LOG", "trace");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        shown.push_str(&String::from_utf8_lossy(&output.stdout));
        shown.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    let lines = shown.lines().filter(|line| line.contains(KEY) || line.contains(OTHER));
    assert_eq!(lines.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(shown.contains("it is [redacted: OTHER]"), "{shown}");
    assert!(shown.contains("The key is [redacted: LITELLM_API_KEY]."), "{shown}");
    for request in program.server.requests() {
        let body = String::from_utf8_lossy(&request.body);
        assert!(!body.contains(KEY) && !body.contains(OTHER), "{body}");
    }
}
