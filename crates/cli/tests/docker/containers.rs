//! Tasks and their containers: which sandbox it is, one container each, what is left of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::{Program, Ran, needed};

fn containers(program: &Program) -> Vec<String> {
    containers_of(&program.data_directory())
}

/// The containers of a data directory, running or not: none while the directory is not made yet.
pub fn containers_of(data: &Path) -> Vec<String> {
    let list = Command::new("docker")
        .args(["ps", "--all", "--format", "{{.Label \"windlass.data\"}} {{.ID}}"])
        .env("DOCKER_HOST", needed("WINDLASS_TEST_DOCKER"))
        .output()
        .unwrap();
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    let Ok(data) = data.canonicalize() else { return Vec::new() };
    let data = data.display().to_string();
    let text = String::from_utf8(list.stdout).unwrap();
    let own = text.lines().filter_map(|line| line.strip_prefix(&data));
    own.filter_map(|rest| Some(rest.split_once(' ')?.1.to_owned())).collect()
}

/// Waits until a condition holds, with a generous timeout.
pub fn until(holds: impl Fn() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it never came to hold");
}

fn of_kind(ran: &Ran, kind: &str) -> Vec<Value> {
    let all = ran.json_lines().into_iter().filter(|event| event["event_type"] == kind);
    all.map(|event| event["data"].clone()).collect()
}

/// ES-005, ES-270, ES-277, ES-281, ES-399: one container for a task and its sub-agents, gone at the end.
#[test]
fn a_task_and_its_sub_agents_share_one_container() {
    let script = "
replies:
  - {turn: 0, task: main work, bash: echo shared > /tmp/mark}
  - {turn: 1, task: main work, spawn_agent: {task: LOOK at it}}
  - {turn: 2, task: main work, say: done}
  - {turn: 0, task: LOOK, bash: cat /tmp/mark > seen}
  - {turn: 1, task: LOOK, say: seen}
";
    let program = Program::playing(script);
    let ran = program.windlass(&["run", "main work", "--json"]).expect(0);
    assert_eq!(program.file("seen"), "shared\n");
    let started = of_kind(&ran, "sandbox_started");
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0]["kind"], "docker");
    let kinds = ran.kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["sandbox_ended", "agent_end"], "its end is journaled");
    assert_eq!(containers(&program), Vec::<String>::new());
}

/// ES-078: a session says which container a task has, while it has one.
#[test]
fn a_session_names_the_container_of_a_task_that_runs_in_one() {
    // That it was started is journaled with what the first command came to.
    let script = "replies: [{bash: echo first}, {bash: 'echo begun > begun; sleep 600'}]";
    let program = Program::playing(script);
    let child = program.start(&["run", "work", "--json"]);
    until(|| program.workspace().join("begun").exists());
    let entry = || {
        let state = program.windlass(&["sessions", "--json"]).expect(0).json_lines().remove(0);
        state["tasks"][0].clone()
    };
    let [short] = &containers(&program)[..] else { panic!("one container") };
    let id = entry()["container_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with(short), "{id} is {short}");
    program.windlass(&["cancel", &program.task()]).expect(0);
    let ran: Ran = child.wait_with_output().unwrap().into();
    ran.expect(5);
    assert_eq!(entry()["container_id"], Value::Null, "it is gone");
}

/// Five processes are killed at once. Their tasks resume, and no container is left.
#[test]
fn five_killed_tasks_resume_and_leave_no_container() {
    let script = "
replies:
  - {turn: 0, bash: 'echo begun > begun; sleep 600'}
  - {turn: 1, bash: 'cat begun > ended'}
  - {turn: 2, say: done}
";
    let program = Program::playing(script);
    let workspaces: Vec<PathBuf> =
        (0..5).map(|at| program.workspace().join(format!("work-{at}"))).collect();
    let mut children = Vec::new();
    for workspace in &workspaces {
        std::fs::create_dir(workspace).unwrap();
        let workspace = workspace.to_str().unwrap();
        children.push(program.start(&["run", "work", "--workspace", workspace, "--json"]));
    }
    until(|| workspaces.iter().all(|workspace| workspace.join("begun").exists()));
    let before = containers(&program);
    assert_eq!(before.len(), 5, "{before:?}");
    for child in &mut children {
        child.kill().unwrap();
    }
    for mut child in children {
        child.wait().unwrap();
    }
    let listed = program.windlass(&["tasks", "--json"]).expect(0).json_lines();
    assert_eq!(listed.len(), 5);
    let resumed: Vec<_> = listed
        .iter()
        .map(|task| program.start(&["resume", task["task_id"].as_str().unwrap(), "--json"]))
        .collect();
    for child in resumed {
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.expect(0).result()["final_message"], "done");
    }
    for workspace in &workspaces {
        assert_eq!(std::fs::read_to_string(workspace.join("ended")).unwrap(), "begun\n");
    }
    assert_eq!(containers(&program), Vec::<String>::new());
}

/// ES-280: files go in and come out by the workspace, whichever side writes them.
#[test]
fn tools_and_the_container_see_the_same_files() {
    let script = "
replies:
  - write: {path: in.txt, content: from the tool}
  - bash: 'cat in.txt; echo from the container > out.txt'
  - read: out.txt
  - say: done
";
    let program = Program::playing(script);
    program.windlass(&["run", "work", "--json"]).expect(0);
    let body = program.server.requests().last().unwrap().json().to_string();
    assert!(body.contains("from the tool") && body.contains("from the container"), "{body}");
}

/// If somebody removes a container, its commands are lost but the task continues, and the agent is notified.
#[test]
fn a_removed_container_is_replaced_and_the_agent_is_notified() {
    let script = "
replies:
  - bash: 'echo begun > begun; sleep 600'
  - bash: 'cat begun'
  - say: done
";
    let program = Program::playing(script);
    let child = program.start(&["run", "work", "--json"]);
    until(|| program.workspace().join("begun").exists());
    let [id] = &containers(&program)[..] else { panic!("one container") };
    let removed = Command::new("docker")
        .args(["rm", "--force", id])
        .env("DOCKER_HOST", needed("WINDLASS_TEST_DOCKER"))
        .output()
        .unwrap();
    assert!(removed.status.success());
    let ran: Ran = child.wait_with_output().unwrap().into();
    let ran = ran.expect(0);
    assert_eq!(of_kind(&ran, "sandbox_started").len(), 2);
    let lost = of_kind(&ran, "sandbox_lost");
    assert!(lost[0]["reason"].as_str().unwrap().contains("the container is gone"), "{lost:?}");
    let body = program.server.requests().last().unwrap().json().to_string();
    assert!(body.contains("The sandbox was lost"), "{body}");
    assert!(body.contains("how far the command came is unknown"), "{body}");
    assert_eq!(containers(&program), Vec::<String>::new());
}

/// ES-381, ES-356: a command that uses too much is a tool error that names the limit; the task continues.
#[test]
fn a_command_that_runs_out_of_memory_is_named_with_the_limit() {
    let hog = r#"perl -e 'my @a; push @a, "x" x (1 << 20) while 1'"#;
    let script = format!("replies:\n  - bash: |\n      {hog}\n  - say: done\n");
    let program = Program::playing(&script);
    let mut command = program.command(&["run", "work", "--json"]);
    let ran: Ran = command.env("CONTAINER_MEMORY", "64m").output().unwrap().into();
    ran.expect(0);
    let said = program.last_message_sent();
    assert!(said.contains("OOM: ended by the kernel") && said.contains("64 MiB"), "{said}");
}

/// ES-354…357: the names of the Execution Service reach the container.
#[test]
fn memory_and_processors_are_what_the_environment_says() {
    let program = Program::playing("replies: [{say: done}]");
    let look = "cd /sys/fs/cgroup; cat memory.max memory/memory.limit_in_bytes cpu.max \
                cpu/cpu.cfs_quota_us 2>/dev/null; true";
    let mut command = program.command(&["exec", "--test", look]);
    command.env("CONTAINER_MEMORY", "512m").env("CONTAINER_CPU", "1.5");
    let ran: Ran = command.output().unwrap().into();
    let ran = ran.expect(0);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert!(words.contains(&"536870912") && words.contains(&"150000"), "{ran:?}");
}

/// ES-385, ES-380, ES-355: no engine, no image: the task fails and says what to do.
#[test]
fn without_an_engine_or_an_image_the_task_fails_with_a_hint() {
    let program = Program::playing("replies: [{say: done}]");
    let mut command = program.command(&["run", "work", "--json"]);
    let ran: Ran = command.env("DOCKER_HOST", "unix:///nonexistent.sock").output().unwrap().into();
    let error = ran.expect(1).result()["error_details"].clone();
    assert_eq!(error["error_type"], "sandbox_unavailable");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no container engine answers at `unix:///nonexistent.sock`"));
    assert!(error["hint"].as_str().unwrap().contains("local sandbox"), "{error}");

    let mut command = program.command(&["run", "work", "--json"]);
    let ran: Ran = command.env_remove("CONTAINER_IMAGE").output().unwrap().into();
    let error = ran.expect(1).result()["error_details"].clone();
    let message = error["message"].as_str().unwrap();
    let why = "sandbox unavailable: image `execution-agent:latest` is not on this engine";
    assert_eq!(message, why);
    let mut command = program.command(&["exec", "--test", "true"]);
    let ran: Ran = command.env_remove("CONTAINER_IMAGE").output().unwrap().into();
    let ran = ran.expect(2);
    assert!(ran.stderr.contains("windlass image build"), "{ran:?}");
}

/// ES-354: where nobody chose, an engine that has the image is taken, and the choice is shown.
#[test]
fn the_sandbox_that_nobody_chose_is_shown_with_its_reason() {
    let program = Program::playing("replies: [{say: done}]");
    let container = |change: &dyn Fn(&mut Command)| {
        let mut command = program.command(&["run", "work", "--json"]);
        change(command.env_remove("CONTAINER_MODE"));
        let ran: Ran = command.output().unwrap().into();
        let ran = ran.expect(0);
        of_kind(&ran, "agent_start")[0]["container"].as_str().unwrap().to_owned()
    };
    let said = container(&|_| {});
    assert!(said.starts_with("docker (the engine at unix://"), "{said}");
    let said = container(&|command| _ = command.env("CONTAINER_IMAGE", "none:1"));
    assert_eq!(said, "local (the container engine has no `none:1`)");
    let said = container(&|command| _ = command.env("DOCKER_HOST", "unix:///none.sock"));
    assert_eq!(said, "local (no container engine answers at `unix:///none.sock`)");
    let said = container(&|command| _ = command.env("CONTAINER_MODE", "mock"));
    assert_eq!(said, "local");
}

/// The smallest MCP server there is.
const SERVER: &str = r#"
import json, os, sys
TOOL = {"name": "where", "description": "Says where it runs.",
        "inputSchema": {"type": "object", "properties": {}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, result = asked["method"], {}
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"],
                  "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        text = os.getcwd() + " " + os.environ.get("IMAGE_SAYS", "outside")
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

/// Servers over stdio run in the task's container, as they do in the local sandbox.
#[test]
fn an_mcp_server_runs_in_the_tasks_container() {
    let program = Program::playing("replies: [{mcp__here__where: {}}, {say: done}]");
    std::fs::write(program.workspace().join("server.py"), SERVER).unwrap();
    let path = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let config = "[mcp.servers.here]\ncommand = 'python3'\nargs = ['/workspace/server.py']\n";
    std::fs::write(path, config).unwrap();
    program.windlass(&["run", "work", "--json"]).expect(0);
    let said = program.last_message_sent();
    assert!(said.contains("/workspace hello"), "{said}");
    assert_eq!(containers(&program), Vec::<String>::new());
}

#[test]
fn an_image_is_built_checked_and_used() {
    let program = Program::playing("replies: [{bash: cat /made}, {say: done}]");
    let name = format!("windlass-built:{}", std::process::id());
    let base = needed("WINDLASS_TEST_IMAGE");
    let file = program.workspace().join("Dockerfile");
    std::fs::write(&file, "ARG BASE\nFROM ${BASE}\nCOPY Dockerfile /made\n").unwrap();
    let windlass = |args: &[&str]| -> Ran {
        program.command(args).env("CONTAINER_IMAGE", &name).output().unwrap().into()
    };
    let missing = windlass(&["image", "check"]).expect(2);
    assert!(missing.stderr.contains(&format!("image `{name}` is not on this engine")));
    windlass(&["image", "build", "--file", file.to_str().unwrap(), "--base", &base]).expect(0);
    let checked = windlass(&["image", "check"]).expect(0);
    assert!(checked.stdout.contains("commands run in it"), "{checked:?}");
    assert!(checked.stdout.contains("bash     yes"), "{checked:?}");
    windlass(&["run", "work", "--json"]).expect(0);
    assert!(program.last_message_sent().contains("COPY Dockerfile /made"));
    std::fs::write(&file, "FROM no-such-base:1\n").unwrap();
    let failed = windlass(&["image", "build", "--file", file.to_str().unwrap()]).expect(2);
    assert!(failed.stderr.contains("cannot build the image"), "{failed:?}");
    let removed = Command::new("docker")
        .args(["rmi", &name])
        .env("DOCKER_HOST", needed("WINDLASS_TEST_DOCKER"))
        .output();
    assert!(removed.unwrap().status.success());
}

/// A cancel from outside ends the command and removes the container.
#[test]
fn a_task_that_is_cancelled_leaves_no_container() {
    let gate = Gate::new();
    let server = ModelServer::start("replies: [{bash: 'echo begun > begun; sleep 600'}]");
    server.next(Answer::script("bash: 'echo begun > begun; sleep 600'").gated(0, &gate));
    let program = Program::with(server);
    let child = program.start(&["run", "work", "--json"]);
    gate.open();
    until(|| program.workspace().join("begun").exists());
    program.windlass(&["cancel", &program.task()]).expect(0);
    let ran: Ran = child.wait_with_output().unwrap().into();
    ran.expect(5);
    assert_eq!(containers(&program), Vec::<String>::new());
}

/// O-21: in a container the browser is the image's, and a person says that there is one.
#[test]
fn without_a_browser_in_the_image_the_tool_is_not_offered() {
    let program = Program::with(ModelServer::start("match: [{say: hello}]"));
    let unset = |args: &[&str]| -> Ran {
        program.command(args).env_remove("WINDLASS_BROWSER").output().unwrap().into()
    };
    let said = unset(&["doctor"]).expect(0);
    assert!(said.stdout.contains("`browser` is not offered: in a container"), "{said:?}");
    assert!(said.stdout.contains("windlass image build --browser"), "{said:?}");
    unset(&["run", "look", "--quiet"]).expect(0);
    let tools = |at: usize| program.server.requests()[at].json()["tools"].to_string();
    assert!(!tools(0).contains("\"browser\""), "{}", tools(0));
    let mut named = program.command(&["run", "look", "--quiet"]);
    let ran: Ran = named.env("WINDLASS_BROWSER", "chromium").output().unwrap().into();
    ran.expect(0);
    assert!(tools(1).contains("\"browser\""), "{}", tools(1));
}

/// A container that outlived its process is named by `doctor` and removed by `doctor fix`.
#[test]
fn doctor_names_an_orphaned_container_and_fix_removes_it() {
    let server = ModelServer::start("replies: [{bash: sleep 600}, {say: done}]");
    let program = Program::with(server);
    let mut running = program.start(&["run", "sleep"]);
    until(|| !containers(&program).is_empty());
    running.kill().unwrap();
    running.wait().unwrap();
    let found = program.windlass(&["doctor", "--json"]).expect(1).json_lines();
    let found = found.iter().find(|check| check["check"] == "containers").unwrap();
    assert_eq!(found["status"], "wrong", "{found}");
    assert_eq!(found["fix"], "remove them");
    program.windlass(&["doctor", "fix"]).expect(0);
    assert!(containers(&program).is_empty());
}
