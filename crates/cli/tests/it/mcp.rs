//! MCP servers as a task meets them: a real server in the real sandbox.

use serde_json::{Value, json};
use windlass_testkit::{assert_extends, messages};

use crate::program::Program;

/// The server's program, which `scripts/test` installs.
pub fn server() -> String {
    std::env::var("WINDLASS_TEST_MCP_FILESYSTEM").expect(
        "WINDLASS_TEST_MCP_FILESYSTEM names the reference file system server's index.js; run the tests \
         with `scripts/test`, or source `scripts/lib/mcp.sh` and call `need_mcp`",
    )
}

pub fn user_config(program: &Program, text: &str) {
    let path = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The user's configuration names the server and shows its package to the sandbox.
fn with_server(script: &str, trusted: bool) -> Program {
    let program = Program::playing(script);
    let index = server();
    let package = index.split("/node_modules/").next().unwrap();
    let config = format!(
        "[sandbox]\nread_only = ['{package}']\n[mcp.servers.files]\ncommand = 'node'\n\
         args = ['{index}', '/workspace']\ntrusted = {trusted}\n"
    );
    user_config(&program, &config);
    std::fs::write(program.workspace().join("note.txt"), "from the workspace").unwrap();
    program
}

fn tools(program: &Program) -> Vec<String> {
    let body = program.server.requests().last().unwrap().json();
    let tools = body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn sent(program: &Program) -> Vec<String> {
    let body = program.server.requests().last().unwrap().json();
    let messages = body["messages"].as_array().unwrap().clone();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

/// A scripted agent lists and calls, in the sandbox.
#[test]
fn an_agent_uses_a_real_servers_tools_in_its_sandbox() {
    let script = "
replies:
  - mcp__files__read_text_file: {path: /workspace/note.txt}
  - mcp__files__write_file: {path: /workspace/made.txt, content: by the server}
  - mcp__files__read_text_file: {path: /etc/hostname}
  - say: done
";
    let program = with_server(script, false);
    let ran = program.windlass(&["run", "work", "--json"]).expect(0);
    assert!(tools(&program).contains(&"mcp__files__read_text_file".to_owned()));
    assert_eq!(program.file("made.txt"), "by the server");
    let sent = sent(&program);
    assert!(sent.iter().any(|text| text == "from the workspace"), "{sent:?}");
    assert!(sent.last().unwrap().to_lowercase().contains("access denied"), "{sent:?}");
    let checks: Vec<_> =
        ran.json_lines().into_iter().filter(|line| line["event_type"] == "risk_check").collect();
    let check = &checks[0]["data"];
    let reason = check["reason"].as_str().unwrap();
    assert!(reason.ends_with("calls mcp:files:read_text_file"), "{check}");
    assert_eq!((&check["class"], &check["risk"]), (&json!("build"), &json!("MEDIUM")));
}

/// A write is denied under `restricted`, a read of a trusted server is not.
#[test]
fn a_hidden_write_tool_is_denied_under_restricted() {
    let script = "
replies:
  - mcp__files__read_text_file: {path: /workspace/note.txt}
  - mcp__files__write_file: {path: /workspace/made.txt, content: by the server}
  - say: done
";
    let program = with_server(script, true);
    program.windlass(&["run", "work", "--json", "--permission-profile", "restricted"]).expect(0);
    let names = tools(&program);
    assert!(names.contains(&"mcp__files__read_text_file".to_owned()), "{names:?}");
    assert!(!names.contains(&"mcp__files__write_file".to_owned()), "{names:?}");
    let sent = sent(&program);
    assert!(sent.iter().any(|text| text == "from the workspace"), "{sent:?}");
    assert!(sent.last().unwrap().starts_with("DENIED: This action is not permitted."), "{sent:?}");
    assert!(!program.workspace().join("made.txt").exists());
}

/// Calls of a real server's tools, each of which would change something.
const EFFECTS: [&str; 8] = [
    "mcp__files__write_file: {path: /workspace/made.txt, content: x}",
    "mcp__files__write_file: {path: /workspace/note.txt, content: x}",
    "mcp__files__edit_file: {path: /workspace/note.txt, edits: [{oldText: from, newText: to}]}",
    "mcp__files__create_directory: {path: /workspace/made}",
    "mcp__files__move_file: {source: /workspace/note.txt, destination: /workspace/made.txt}",
    "'mcp:files:write_file': {path: /workspace/made.txt, content: x}",
    "spawn_agent: {task: let the server write}",
    "spawn_agent: {task: let the server move}",
];

/// MS-022: in plan mode no tool of a server has an effect, trusted or not, whatever a person has allowed before.
#[test]
fn no_tool_of_a_server_has_an_effect_in_plan_mode() {
    let children = "
match:
  - task: let the server write
    replies: [{mcp__files__write_file: {path: /workspace/made.txt, content: x}}, {say: refused}]
  - task: let the server move
    replies: [{mcp__files__move_file: {source: /workspace/note.txt, destination: /workspace/made.txt}}, {say: refused}]
";
    // A look in between, so that the guard against repetition stays out of it.
    let replies: String = (1..)
        .zip(EFFECTS)
        .map(|(number, call)| format!("  - {call}\n  - bash: head -c {number} note.txt\n"))
        .collect();
    for trusted in [true, false] {
        let script = format!("{children}replies:\n{replies}  - say: the plan\n");
        let program = with_server(&script, trusted);
        program.windlass(&["permissions", "allow", "mcp:files:*"]).expect(0);
        program.windlass(&["config", "set", "policy.allow_unrestricted", "true"]).expect(0);
        let plan = ["run", "look", "--mode", "plan", "--permission-profile", "unrestricted"];
        let ran = program.windlass(&[&plan[..], &["--json"]].concat()).expect(3);
        let started = ran.json_lines().into_iter().filter(|event| {
            let tool = event["data"]["tool"].as_str().unwrap_or_default();
            event["event_type"] == "tool_call" && tool.starts_with("mcp")
        });
        assert_eq!(started.count(), 0, "trusted {trusted}");
        let refused = ran.json_lines().into_iter().filter(|event| {
            event["event_type"] == "tool_result" && event["data"].to_string().contains("DENIED")
        });
        assert!(refused.count() >= 5, "trusted {trusted}: {ran:?}");
        assert_eq!(program.file("note.txt"), "from the workspace");
        let own = [".windlass", "note.txt"];
        let made = std::fs::read_dir(program.workspace()).unwrap();
        let made = made.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(made.filter(|name| !own.contains(&name.as_str())).count(), 0);
    }
}

/// §15.13: a project's file starts nothing before a person has approved it, as it is.
#[test]
fn a_projects_servers_start_only_after_trust_and_not_after_a_change() {
    let program = Program::playing("replies: [{say: done}]");
    let index = server();
    let package = index.split("/node_modules/").next().unwrap();
    user_config(&program, &format!("[sandbox]\nread_only = ['{package}']\n"));
    let file = |extra: &str| {
        let server = json!({ "command": "node", "args": [index, "${DIR:-/workspace}"] });
        let text = json!({ "mcpServers": { "files": server } }).to_string() + extra;
        std::fs::write(program.workspace().join(".mcp.json"), text).unwrap();
    };
    let offered = || {
        program.windlass(&["run", "look", "--quiet"]).expect(0);
        let body = program.server.requests().last().unwrap().json();
        body["tools"].to_string().contains("mcp__files__read_text_file")
    };
    file("");
    assert!(!offered(), "not approved");
    let listed = program.windlass(&["mcp", "list"]).expect(0);
    assert!(listed.stderr.contains("is not approved"), "{listed:?}");
    let ran = program.windlass(&["run", "look"]).expect(0);
    assert!(ran.stderr.contains("its MCP servers do not start"), "{ran:?}");
    let refused = program.windlass(&["trust"]).expect(2);
    assert!(refused.stderr.contains("windlass trust --yes"), "{refused:?}");
    program.windlass(&["trust", "--yes"]).expect(0);
    assert!(offered(), "approved");
    file("\n");
    assert!(!offered(), "changed since");
}

/// WF-030, WF-032, WF-033: a task's own servers are added to the session's, and win by name; also when it
/// is resumed.
#[test]
fn a_task_brings_servers_of_its_own() {
    let program = with_server("replies: [{ask_user: {question: sure?}}, {say: done}]", true);
    let elsewhere = program.workspace().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let server =
        |name: &str| json!({ "command": name, "args": [server(), "/workspace/elsewhere"] });
    let file = program.workspace().join("servers.json");
    let text =
        json!({ "mcpServers": { "own": server("node"), "files": server("no-such-program") } });
    std::fs::write(&file, text.to_string()).unwrap();
    let file = file.to_str().unwrap();
    program.windlass(&["run", "x", "--mcp-config", file, "--json"]).expect(3);
    let offered = tools(&program);
    assert!(offered.contains(&"mcp__own__read_text_file".to_owned()), "{offered:?}");
    assert!(!offered.iter().any(|name| name.starts_with("mcp__files__")), "{offered:?}");
    let task = program.task();
    program.windlass(&["answer", &task, "yes"]).expect(0);
    program.windlass(&["resume", &task, "--json"]).expect(0);
    let body = program.server.requests().last().unwrap().json();
    assert!(body["tools"].to_string().contains("mcp__own__read_text_file"));

    std::fs::write(program.workspace().join("bad.json"), "{").unwrap();
    let bad = program.workspace().join("bad.json");
    let refused = program.windlass(&["run", "x", "--mcp-config", bad.to_str().unwrap()]).expect(2);
    assert!(refused.stderr.contains("holds no list of servers"), "{refused:?}");
}

/// MS-151: a skill's folder brings a server along, beside its text and scripts.
#[test]
fn a_skills_own_server_is_offered() {
    let program = Program::playing("replies: [{say: done}]");
    skill_with_server(&program);
    program.windlass(&["run", "look", "--quiet"]).expect(0);
    let tools = tools(&program);
    assert!(tools.contains(&"mcp__skillfiles__read_text_file".to_owned()), "{tools:?}");
    let listed = program.windlass(&["skills", "list"]).expect(0);
    assert!(listed.stdout.contains("files"), "{listed:?}");
}

fn skill_with_server(program: &Program) {
    let index = server();
    let package = index.split("/node_modules/").next().unwrap();
    user_config(program, &format!("[sandbox]\nread_only = ['{package}']\n"));
    let folder = program.data.path().join(".agents/skills/files");
    std::fs::create_dir_all(folder.join("scripts")).unwrap();
    std::fs::write(folder.join("scripts/run.sh"), "true\n").unwrap();
    let text = "---\nname: files\ndescription: Works with files\n---\nUse the server.\n";
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    let server = json!({ "command": "node", "args": [index, "/workspace"] });
    let servers = json!({ "mcpServers": { "skillfiles": server } }).to_string();
    std::fs::write(folder.join("mcp.json"), servers).unwrap();
}

/// Tools that appear while a task is parked are offered when it resumes, and the conversation stays.
#[test]
fn a_new_server_is_offered_from_the_next_segment_on() {
    let script =
        "replies: [{ask_user: {question: which?}}, {ask_user: {question: sure?}}, {say: done}]";
    let program = Program::playing(script);
    program.windlass(&["run", "look", "--quiet"]).expect(3);
    let named = "mcp__skillfiles__read_text_file".to_owned();
    assert!(!tools(&program).contains(&named));
    skill_with_server(&program);
    let answer_and_resume = |answer: &str, code: i32| {
        program.windlass(&["answer", &program.task(), answer]).expect(0);
        program.windlass(&["resume", &program.task(), "--quiet"]).expect(code);
    };
    answer_and_resume("the first one", 3);
    assert!(tools(&program).contains(&named));
    answer_and_resume("yes", 0);
    let sent = program.server.requests();
    let [before, after] = [0, 1].map(|place| messages(&sent[place].body));
    assert_eq!(after[1..before.len()], before[1..], "only the system prompt is another");
    assert_extends(&sent[1].body, &sent[2].body);
}

/// WF-034…037
#[test]
fn presets_and_missing_programs_are_named() {
    let program = Program::playing("replies: [{say: done}]");
    let presets = program.windlass(&["mcp", "presets"]).expect(0).stdout;
    for name in ["filesystem", "puppeteer", "github"] {
        assert!(
            presets.contains(&format!("npx -y @modelcontextprotocol/server-{name}")),
            "{presets}"
        );
    }
    user_config(
        &program,
        "[mcp.servers.absent]\ncommand = 'no-such-program'\n[mcp.servers.hub]\npreset = 'github'\n",
    );
    let ran = program.windlass(&["run", "look"]).expect(0);
    let absent =
        "MCP server `absent` is not available: its program `no-such-program` is not installed";
    assert!(ran.stderr.contains(absent), "{ran:?}");
    let keyless = "MCP server `hub`: the variable `GITHUB_PERSONAL_ACCESS_TOKEN` is not set";
    assert!(ran.stderr.contains(keyless), "{ran:?}");
}

#[test]
fn a_server_is_tested_and_what_it_says_is_pinned() {
    let program = with_server("replies: [{say: done}]", true);
    let listed = program.windlass(&["mcp", "list", "--json"]).expect(0).json_lines();
    assert_eq!(listed[0]["name"], "files");
    assert_eq!(listed[0]["where"], "sandbox");
    let tested = program.windlass(&["mcp", "test", "files", "--pin"]).expect(0);
    let row = tested.stdout.lines().find(|line| line.starts_with("mcp:files:read_text_file"));
    assert!(row.unwrap().contains("  read  "), "{tested:?}");
    let pins = program.data_directory().join("mcp");
    let pin = std::fs::read_dir(pins).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&pin).unwrap();
    let first: Value = serde_json::from_str(&text).unwrap();
    let words = first["tools"][0]["description"].as_str().unwrap();
    std::fs::write(&pin, text.replace(&words[..20], "Yesterday's words: ")).unwrap();
    let changed = program.windlass(&["mcp", "test", "files"]).expect(1);
    assert!(changed.stderr.contains("changed since it was pinned"), "{changed:?}");
    let unknown = program.windlass(&["mcp", "test", "nope"]).expect(2);
    assert!(unknown.stderr.contains("there is no MCP server `nope`"), "{unknown:?}");
}

/// WF-036: what is wrong with an address is said without the names of our types.
#[test]
fn an_address_where_nobody_answers_is_named() {
    let program = Program::playing("replies: [{say: done}]");
    let servers = r#"{"mcpServers": {"away": {"type": "http", "url": "http://127.0.0.1:1/"}}}"#;
    std::fs::write(program.workspace().join(".mcp.json"), servers).unwrap();
    program.windlass(&["trust", "--yes"]).expect(0);
    let tested = program.windlass(&["mcp", "test", "away"]).expect(1);
    assert!(tested.stderr.contains("does not work: error sending request"), "{}", tested.stderr);
    assert!(!tested.stderr.contains("::"), "{}", tested.stderr);
    assert!(tested.stderr.contains("check that the address is right"), "{}", tested.stderr);
}
