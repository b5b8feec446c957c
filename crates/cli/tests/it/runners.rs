//! Workflows that the real Claude Code and codex work on, and workers side by side: from the command line to the
//! merged branch.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer, git};

use crate::program::{Program, Ran, needed};

/// How long the real programs may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(100);

const CONTRACT: &str = "
  - say: |
      Done.

      ```json
      {\"success\": true, \"summary\": \"made a file\"}
      ```
";

/// Puts a person's directory under git.
pub fn repository(program: &Program) {
    let top = program.workspace();
    git(top, &["init", "-q", "-b", "main"]);
    git(top, &["config", "user.name", "Ada"]);
    git(top, &["config", "user.email", "ada@example.org"]);
    fs::write(top.join("README.md"), "hello\n").unwrap();
    git(top, &["add", "."]);
    git(top, &["commit", "-qm", "first"]);
}

/// A project under git, and a person's own configuration.
fn project(script: &str, settings: impl Fn(&ModelServer) -> String) -> Program {
    let program = Program::playing(script);
    repository(&program);
    let directory = program.data.path().join(".config/windlass");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), settings(&program.server)).unwrap();
    program
}

fn workflow(program: &Program, text: &str) {
    let directory = program.workspace().join(".windlass/workflows");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("small.yaml"), text).unwrap();
    git(program.workspace(), &["add", "."]);
    git(program.workspace(), &["commit", "-qm", "a workflow"]);
}

/// The next open question, asked of any process.
fn question(program: &Program, child: &mut Child) -> Value {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let inbox = program.windlass(&["inbox", "--json"]).expect(0);
        if let Some(question) = inbox.json_lines().into_iter().next() {
            return question;
        }
        if let Some(status) = child.try_wait().unwrap() {
            panic!("it ended with {status} and asked nothing");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("nothing was asked");
}

fn end(child: Child) -> Ran {
    let id = rustix::process::Pid::from_child(&child);
    let (sender, receiver) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    let output = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        panic!("it does not end: {:?}", receiver.recv());
    });
    reading.join().unwrap().unwrap();
    Ran::from(output)
}

const SMALL: &str = "
name: small
steps:
  - name: make
    type: agent
    runner: RUNNER
    spell: |
      Make a file.
  - name: merge
    type: merge
";

/// One small change by a real program: asked in our inbox, answered from another process, merged.
fn merged_after_an_answer(program: &Program, runner: &str) {
    workflow(program, &SMALL.replace("RUNNER", runner));
    let mut run = program.start(&["workflow", "run", "small", "make a file"]);
    let asked = question(program, &mut run);
    assert!(asked.to_string().contains("made.txt"), "{asked}");
    let id = asked["question"]["id"].as_str().unwrap().to_owned();
    program.windlass(&["answer", &id, "Allow"]).expect(0);
    end(run).expect(0);
    assert_eq!(git(program.workspace(), &["show", "main:made.txt"]), format!("made by {runner}"));
    assert_eq!(
        program.file("made.txt").trim(),
        format!("made by {runner}"),
        "the checkout has it too"
    );
    let left = git(program.workspace(), &["worktree", "list"]);
    assert_eq!(left.lines().count(), 1, "{left}");
}

/// WF-001, WF-008…WF-016: the real `@anthropic-ai/claude-code`.
#[test]
fn claude_code_makes_a_change_that_is_asked_about_and_merged() {
    let script = format!(
        "replies:\n  - Bash: {{command: \"printf 'made by claude\\n' > made.txt && git add -A && git commit -qm made\", description: make it}}{CONTRACT}"
    );
    let runners = needed("WINDLASS_TEST_RUNNERS");
    let program = project(&script, |server| {
        format!(
            "[sandbox]\nread_only = [\"{runners}\"]\n[runners.programs.claude]\nprogram = \"{runners}/.bin/claude\"\n\
             set = {{ ANTHROPIC_BASE_URL = \"{}\", ANTHROPIC_API_KEY = \"test\" }}\nreach = [\"{}\"]\n",
            server.base(),
            server.address(),
        )
    });
    merged_after_an_answer(&program, "claude");
}

/// The real `@openai/codex`: WF-008…WF-016.
#[test]
fn codex_makes_a_change_that_is_asked_about_and_merged() {
    let script = format!(
        "replies:\n  - exec_command: {{cmd: \"printf 'made by codex\\n' > made.txt && git add -A && git commit -qm made\"}}{CONTRACT}"
    );
    let runners = needed("WINDLASS_TEST_RUNNERS");
    let program = project(&script, |server| {
        let provider = format!(
            "model_providers.test={{name='test', base_url='{}/v1', wire_api='responses', env_key='OPENAI_API_KEY'}}",
            server.base()
        );
        format!(
            "[sandbox]\nread_only = [\"{runners}\"]\n[runners.programs.codex]\nprogram = \"{runners}/.bin/codex\"\n\
             args = [\"-c\", \"{provider}\", \"-c\", \"model_provider='test'\", \"-c\", \"model='gpt-5'\"]\n\
             set = {{ OPENAI_API_KEY = \"test\" }}\nreach = [\"{}\"]\n",
            server.address(),
        )
    });
    merged_after_an_answer(&program, "codex");
}

#[test]
fn a_runner_that_is_not_installed_says_how_to_install_it() {
    let program = project("replies: []", |_| String::new());
    workflow(&program, &SMALL.replace("RUNNER", "codex"));
    let ran = program.windlass(&["workflow", "run", "small"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("npm install -g @openai/codex"), "{}", ran.stderr);
}

#[test]
fn a_project_cannot_configure_a_runner() {
    let program = project("replies: []", |_| String::new());
    let own = program.workspace().join(".windlass");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("config.toml"), "[runners.programs.claude]\nprogram = \"/bin/evil\"\n")
        .unwrap();
    let shown = program.windlass(&["config"]);
    assert!(!shown.stdout.contains("/bin/evil"), "{}", shown.stdout);
    assert!(shown.stderr.contains("runners.programs"), "{}", shown.stderr);
}

/// MS-143, MS-144: workers in worktrees of their own, what they did merged.
#[test]
fn workers_do_their_tasks_side_by_side_and_are_merged() {
    let script = "
match:
  - task: the first thing
    replies: [{write: {path: one.txt, content: one}}, {say: \"```json\\n{\\\"success\\\": true, \\\"summary\\\": \\\"1\\\"}\\n```\"}]
  - task: the second thing
    replies: [{write: {path: two.txt, content: two}}, {say: \"```json\\n{\\\"success\\\": true, \\\"summary\\\": \\\"2\\\"}\\n```\"}]
  - task: the third thing
    replies: [{write: {path: three.txt, content: three}}, {say: \"```json\\n{\\\"success\\\": true, \\\"summary\\\": \\\"3\\\"}\\n```\"}]
";
    let program = project(script, |_| String::new());
    let tasks = ["do the first thing", "do the second thing", "do the third thing"];
    let arguments = ["parallel", "run", "--workers", "2", tasks[0], tasks[1], tasks[2]];
    program.windlass(&arguments).expect(0);
    for (file, content) in [("one.txt", "one"), ("two.txt", "two"), ("three.txt", "three")] {
        assert_eq!(git(program.workspace(), &["show", &format!("main:{file}")]), content);
    }
    assert!(program.server.most_at_once() <= 2, "two workers at most");
}

pub const SAID: &str = "say: |\n  ```json\n  {\"success\": true, \"summary\": \"done\"}\n  ```";

/// MS-122, MS-137, MS-140, MS-147, MS-212: two workers, one function; the second is refused and reads who has it.
#[test]
fn a_worker_that_edits_what_another_has_claimed_is_refused() {
    let (claimed, looked) = (Gate::new(), Gate::new());
    let server = ModelServer::start_empty();
    let (first, last) = (claimed.clone(), looked.clone());
    let edit = |new: &str| {
        Answer::script(&format!(
            "edit: {{path: lib.rs, old_string: \"    1\", new_string: \"    {new}\"}}"
        ))
    };
    server.answer_with(move |request| {
        // What is refused to the other names this one's task.
        let is_alpha = !String::from_utf8_lossy(&request.body).contains("the beta task");
        Some(match (is_alpha, request.replies) {
            (_, 0) if is_alpha => Answer::script("read: lib.rs"),
            (_, 0) => Answer::script("read: lib.rs").gated(0, &first),
            (true, 1) => edit("2"),
            (false, 1) => edit("3"),
            (true, _) => {
                first.open();
                Answer::script(SAID).gated(0, &last)
            }
            (false, _) => Answer::script(SAID).gated(0, &last),
        })
    });
    let program = Program::with(server);
    repository(&program);
    let top = program.workspace();
    fs::write(top.join("lib.rs"), "fn one() -> u32 {\n    1\n}\n").unwrap();
    git(top, &["add", "."]);
    git(top, &["commit", "-qm", "a function"]);
    let run = program.start(&["parallel", "run", "-w", "2", "the alpha task", "the beta task"]);
    program.server.requests_reach_blocking(6);
    let workers = program.windlass(&["parallel", "status", "--json"]).expect(0);
    let workers: Vec<Value> = serde_json::from_str(&workers.stdout).unwrap();
    let runs = program.windlass(&["workflow", "status", "--json"]).expect(0).stdout;
    let runs: Value = serde_json::from_str(&runs).unwrap();
    let own = ["workflow", "status", runs[0]["run"].as_str().unwrap()];
    let view = program.windlass(&[&own[..], &["--json"]].concat()).expect(0).stdout;
    let view: Value = serde_json::from_str(&view).unwrap();
    let in_words = program.windlass(&own).expect(0).stdout;
    let shown = program.windlass(&["tasks"]).expect(0).stdout;
    let listed = program.windlass(&["tasks", "--json"]).expect(0).stdout;
    looked.open();
    end(run).expect(0);

    assert_eq!(workers.len(), 2, "{workers:?}");
    let tasks = |workers: &[Value]| -> Vec<Value> {
        workers.iter().map(|one| one["task"].clone()).collect()
    };
    assert_eq!(
        tasks(view["workers"].as_array().unwrap()),
        tasks(&workers),
        "the run shows its own"
    );
    assert!(in_words.contains("will edit lib.rs lines 1-3 (one)"), "{in_words}");
    let paths: Vec<&str> =
        workers.iter().map(|one| one["worktree_path"].as_str().unwrap()).collect();
    assert_ne!(paths[0], paths[1]);
    assert!(paths.iter().all(|path| listed.contains(path)), "{listed}");
    assert!(shown.contains("Workers"), "{shown}");
    assert!(workers.iter().all(|one| one["alive"] == true), "{workers:?}");
    let claims: Vec<&Value> =
        workers.iter().flat_map(|one| one["claims"].as_array().unwrap()).collect();
    assert_eq!(claims, ["lib.rs lines 1-3 (one)"], "one of them has it");
    let requests = program.server.requests();
    let beta = requests
        .iter()
        .rfind(|request| String::from_utf8_lossy(&request.body).contains("the beta task"));
    let read = String::from_utf8_lossy(&beta.unwrap().body).into_owned();
    assert!(read.contains("lib.rs lines 1-3 (one) is being edited by task_"), "{read}");
    assert_eq!(git(top, &["show", "main:lib.rs"]), "fn one() -> u32 {\n    2\n}");
}

/// A program that asks before it edits: it waits for a file, asks for one edit, and keeps the answer.
const EDITOR: &str = r#"#!/bin/bash
read -r prompt
until [ -e go ]; do sleep 0.1; done
echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Edit","input":{"file_path":"lib.rs","old_string":"    1","new_string":"    3"}}}'
read -r answer
echo "$answer" > answer.txt
echo '{"type":"result","subtype":"success","is_error":false,"result":"```json\n{\"success\": true, \"summary\": \"left it\"}\n```"}'
"#;

/// MS-212: another program reads who has claimed a place, and no person is asked about it.
#[test]
fn another_program_is_refused_what_a_worker_has_claimed() {
    let (answer, _) = answer_to_an_edit("claude", EDITOR);
    assert!(answer.contains(r#""behavior":"deny""#), "{answer}");
    assert!(answer.contains("lib.rs lines 1-3 (one) is being edited by task_"), "{answer}");
}

/// The app server of codex, as far as one change of a file needs it. It waits for a file before it asks.
const CODEX: &str = r#"#!/usr/bin/env python3
import json, os, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        say(id=number, result={})
    elif method == "thread/start":
        say(id=number, result={"thread": {"id": "t1"}})
    elif method == "turn/start":
        say(id=number, result={"turn": {"id": "u1"}})
        while not os.path.exists("go"):
            time.sleep(0.1)
        change = {"path": os.path.abspath("lib.rs"), "kind": {"type": "update"}, "diff": "-    1\n+    3"}
        say(method="item/started", params={"item": {"type": "fileChange", "id": "i1", "changes": [change]}})
        say(method="item/fileChange/requestApproval", id=77, params={"itemId": "i1"})
    elif number == 77:
        open("answer.txt", "w").write(line)
        said = '```json\n{"success": true, "summary": "left it"}\n```'
        say(method="item/completed", params={"item": {"type": "agentMessage", "text": said}})
        say(method="turn/completed", params={"turn": {"status": "completed"}})
"#;

/// MS-137, MS-212: codex says which files it would change; one that a worker has claimed is declined with its name.
#[test]
fn codex_is_refused_a_file_that_a_worker_has_claimed() {
    let (answer, said) = answer_to_an_edit("codex", CODEX);
    assert!(answer.contains(r#""decision":"decline""#), "{answer}");
    assert!(said.contains("lib.rs is being edited by task_"), "{said}");
    assert!(said.contains("which has claimed lib.rs lines 1-3 (one)"), "{said}");
}

/// A worker of ours has claimed a function, and another program asks to edit it; what it is answered, and what is
/// journaled of it.
fn answer_to_an_edit(runner: &str, script: &str) -> (String, String) {
    let looked = Gate::new();
    let server = ModelServer::start_empty();
    let last = looked.clone();
    server.answer_with(move |request| {
        Some(match request.replies {
            0 => Answer::script("read: lib.rs"),
            1 => {
                Answer::script("edit: {path: lib.rs, old_string: \"    1\", new_string: \"    2\"}")
            }
            _ => Answer::script(SAID).gated(0, &last),
        })
    });
    let program = Program::with(server);
    repository(&program);
    let settings = program.data.path().join(".config/windlass");
    fs::create_dir_all(&settings).unwrap();
    fs::write(
        settings.join("config.toml"),
        format!("[runners.programs.{runner}]\nprogram = \"./editor.sh\"\n"),
    )
    .unwrap();
    let top = program.workspace();
    fs::write(top.join("lib.rs"), "fn one() -> u32 {\n    1\n}\n").unwrap();
    fs::write(top.join("editor.sh"), script).unwrap();
    Command::new("chmod").args(["+x", "editor.sh"]).current_dir(top).status().unwrap();
    let both = "
name: small
steps:
  - name: both
    type: parallel
    steps:
      - {name: own, type: agent, spell: \"Edit it.\\nNow.\"}
      - {name: other, type: agent, runner: claude, spell: \"Edit it.\\nToo.\"}
";
    workflow(&program, &both.replace("claude", runner));
    let run = program.start(&["workflow", "run", "small", "--permission-profile", "trusted"]);
    let begun = Instant::now();
    let (other, task) = loop {
        let workers = program.windlass(&["parallel", "status", "--json"]).expect(0).stdout;
        let workers: Vec<Value> = serde_json::from_str(&workers).unwrap_or_default();
        let has_claim = workers.iter().any(|one| one["claims"] != serde_json::json!([]));
        let other = workers.iter().find(|one| one["runner"] == runner);
        if let (true, Some(other)) = (has_claim, other) {
            let task = other["task"].as_str().unwrap().to_owned();
            break (Path::new(other["worktree_path"].as_str().unwrap()).to_owned(), task);
        }
        assert!(begun.elapsed() < PATIENCE, "{workers:?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    fs::write(other.join("go"), "").unwrap();
    while !other.join("answer.txt").exists() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
    }
    let answer = fs::read_to_string(other.join("answer.txt")).unwrap();
    looked.open();
    end(run).expect(0);
    (answer, program.windlass(&["events", &task, "--json"]).expect(0).stdout)
}

/// A Claude Code that asks for one permission, notes how it was called, and does what it may. It asks the same once more.
const FAKE_CLAUDE: &str = r#"#!/bin/bash
echo "$*" >> calls.txt
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"own-session"}'
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"I will make the file"}]}}'
for id in r1 r2; do
  echo '{"type":"control_request","request_id":"'$id'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch made.txt"}}}'
  read -r answer || exit
  echo "$answer" >> answers.txt
done
echo '{"type":"result","subtype":"success","is_error":false,"result":"```json\n{\"success\": true, \"summary\": \"made it\"}\n```"}'
"#;

/// A killed run continues the program's own session. The answer given meanwhile reaches it, once; the same question
/// asked again is another one. What it printed is seen live and later.
#[test]
fn a_killed_program_is_resumed_by_its_session_and_gets_its_answer() {
    let program = project("replies: []", |_| {
        "[runners.programs.claude]\nprogram = \"./claude.sh\"\n".to_owned()
    });
    let top = program.workspace();
    fs::write(top.join("claude.sh"), FAKE_CLAUDE).unwrap();
    Command::new("chmod").args(["+x", "claude.sh"]).current_dir(top).status().unwrap();
    let one = "
name: small
worktree: {keep: true}
steps:
  - {name: make, type: agent, runner: claude, spell: \"Make a file.\\nNow.\"}
";
    workflow(&program, one);
    let ask = |child: &mut Child| question(&program, child)["question"]["id"].clone();
    let mut run = program.start(&["workflow", "run", "small", "--permission-profile", "trusted"]);
    let first = ask(&mut run);
    run.kill().unwrap();
    run.wait().unwrap();
    program.windlass(&["answer", first.as_str().unwrap(), "Allow"]).expect(0);
    let status = program.windlass(&["workflow", "status", "small", "--json"]).expect(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    let id = status["run"].as_str().unwrap().to_owned();
    let mut run = program.start(&["workflow", "resume", &id]);
    let second = ask(&mut run);
    assert_ne!(second, first, "the same question again is another one");
    // The first answer was used up: it does not count for a third process either.
    run.kill().unwrap();
    run.wait().unwrap();
    let mut run = program.start(&["workflow", "resume", &id]);
    assert_eq!(ask(&mut run), second);
    program.windlass(&["answer", second.as_str().unwrap(), "Deny"]).expect(0);
    let third = ask(&mut run);
    program.windlass(&["answer", third.as_str().unwrap(), "Deny"]).expect(0);
    let ran = end(run).expect(0);
    assert!(ran.stderr.contains(": I will make the file"), "{}", ran.stderr);
    let tree = git(top, &["worktree", "list", "--porcelain"]);
    let tree = tree.lines().filter_map(|line| line.strip_prefix("worktree ")).nth(1).unwrap();
    let read = |name: &str| fs::read_to_string(Path::new(tree).join(name)).unwrap();
    let calls = read("calls.txt");
    let resumed = calls.lines().skip(1).all(|call| call.contains("--resume=own-session"));
    assert!(calls.lines().count() == 3 && resumed, "{calls}");
    let answers = read("answers.txt");
    assert_eq!(answers.matches("\"behavior\":\"allow\"").count(), 1, "{answers}");
    assert!(program.windlass(&["inbox", "--json"]).expect(0).stdout.trim().is_empty());
    let logs = program.windlass(&["logs", &id]).expect(0).stdout;
    assert!(logs.contains("make (claude)") && logs.contains("I will make the file"), "{logs}");
}

/// What a person's file gives to a program is a key by its name, though no provider of ours has it.
#[test]
fn a_key_that_a_program_gets_and_prints_is_kept_nowhere() {
    let program = project("replies: []", |_| {
        "[runners.programs.claude]\nprogram = \"./claude.sh\"\nenv = [\"GIVEN_TOKEN\"]\n".to_owned()
    });
    let top = program.workspace();
    let said = "#!/bin/bash\nread -r prompt\n\
        echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}'\n\
        echo '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"I have '$GIVEN_TOKEN'\"}]}}'\n\
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"it is '$GIVEN_TOKEN'\"}'\n";
    fs::write(top.join("claude.sh"), said).unwrap();
    Command::new("chmod").args(["+x", "claude.sh"]).current_dir(top).status().unwrap();
    workflow(
        &program,
        "\nname: small\nsteps:\n  - {name: make, type: agent, runner: claude, spell: \"Do.\\nNow.\"}\n",
    );
    let mut command =
        program.command(&["workflow", "run", "small", "--permission-profile", "trusted"]);
    let output = command.env("GIVEN_TOKEN", "given-0123456789-abcdef").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("I have [redacted: GIVEN_TOKEN]"), "{printed}");
    let logs = program.windlass(&["logs"]).expect(0).stdout;
    assert!(logs.contains("I have [redacted: GIVEN_TOKEN]"), "{logs}");
    assert!(!(printed + &logs).contains("given-0123456789"));
}

/// The same, but it asks only when it may.
const SLOW_CLAUDE: &str = r#"#!/bin/bash
echo "$*" >> calls.txt
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"own-session"}'
[ $(wc -l < calls.txt) = 1 ] || until [ -e go ]; do sleep 0.05; done
echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch made.txt"}}}'
# Killed with windlass, it may see the end of its input before.
read -r answer || exit
echo "$answer" >> answers.txt
echo '{"type":"result","subtype":"success","is_error":false,"result":"```json\n{\"success\": true, \"summary\": \"made it\"}\n```"}'
"#;

#[test]
fn an_answer_reaches_a_program_that_has_not_asked_again() {
    let program = project("replies: []", |_| {
        "[runners.programs.claude]\nprogram = \"./claude.sh\"\n".to_owned()
    });
    let top = program.workspace();
    fs::write(top.join("claude.sh"), SLOW_CLAUDE).unwrap();
    windlass_testkit::by_hand(top, "chmod +x claude.sh");
    let one = "
name: small
worktree: {keep: true}
steps:
  - {name: make, type: agent, runner: claude, spell: \"Make a file.\\nNow.\"}
";
    workflow(&program, one);
    let mut run = program.start(&["workflow", "run", "small", "--permission-profile", "trusted"]);
    let asked = question(&program, &mut run)["question"]["id"].clone();
    run.kill().unwrap();
    run.wait().unwrap();
    let tree = git(top, &["worktree", "list", "--porcelain"]);
    let tree = tree.lines().filter_map(|line| line.strip_prefix("worktree ")).nth(1).unwrap();
    let calls = || fs::read_to_string(Path::new(tree).join("calls.txt")).unwrap().lines().count();
    let run = program.start(&["workflow", "resume", &program.task()]);
    let begun = Instant::now();
    while calls() < 2 {
        assert!(begun.elapsed() < PATIENCE, "it is not started again");
        std::thread::sleep(Duration::from_millis(50));
    }
    program.windlass(&["answer", asked.as_str().unwrap(), "Deny"]).expect(0);
    fs::write(Path::new(tree).join("go"), "").unwrap();
    end(run).expect(0);
    let answers = fs::read_to_string(Path::new(tree).join("answers.txt")).unwrap();
    assert!(answers.lines().count() == 1 && answers.contains("deny"), "{answers}");
}

/// One prompt by two runners, the results side by side, one picked and merged.
#[test]
fn a_person_picks_the_better_of_two_tries() {
    let server = ModelServer::start_empty();
    server.answer_with(|request| {
        Some(match request.replies {
            0 => Answer::script("write: {path: made.txt, content: made}"),
            _ => Answer::script(SAID),
        })
    });
    let program = Program::with(server);
    repository(&program);
    let arguments = [
        "parallel",
        "try",
        "make it",
        "--runner",
        "windlass",
        "--runner",
        "windlass",
        "--check",
        "cat made.txt",
    ];
    program.windlass(&arguments).expect(3);
    let run = program.task();
    let results = program.windlass(&["parallel", "results", &run, "--json"]).expect(0);
    let results: Vec<Value> = serde_json::from_str(&results.stdout).unwrap();
    assert_eq!(results.len(), 2, "{results:?}");
    for one in &results {
        assert_eq!(one["status"], "succeeded", "{one}");
        assert!(one["diff"].as_str().unwrap().contains("+++ b/made.txt"), "{one}");
        assert_eq!(one["checks"][0]["status"], "succeeded", "{one}");
        assert!(one["output_tokens"].as_u64().unwrap() > 0, "{one}");
    }
    let shown = program.windlass(&["parallel", "results", &run]).expect(0).stdout;
    assert!(shown.contains("windlass_2"), "{shown}");
    program.windlass(&["parallel", "pick", &run, "nobody"]).expect(2);
    program.windlass(&["parallel", "pick", &run, "windlass_2", "--resume"]).expect(0);
    assert_eq!(git(program.workspace(), &["show", "main:made.txt"]), "made");
}
