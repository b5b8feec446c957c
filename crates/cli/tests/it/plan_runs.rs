//! Working through a plan: order, parallel tasks, retries, questions, kills.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::{Value, json};
use windlass_testkit::{Answer, Gate, ModelServer, Request};

use crate::plans::{database, write_plan};
use crate::program::{Program, Ran};

fn plan(program: &Program, args: &[&str]) -> Ran {
    program.windlass(&[&["plan"], args].concat())
}

/// The task of the plan that a request belongs to.
fn task_of(request: &Request) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let texts = messages.iter().filter_map(|message| message["content"].as_str());
    let goal = texts
        .filter(|text| text.contains("of plan `"))
        .find_map(|text| Some(text.split_once("Task `")?.1.split('`').next()?.to_owned()));
    goal.unwrap_or_default()
}

/// Each task writes a file of its own, saves its snapshot, and is done.
fn work(request: &Request) -> Answer {
    if is_audit(request) {
        return audit(request);
    }
    let task = task_of(request);
    match request.replies {
        0 => Answer::script(&format!("write: {{path: {task}.txt, content: '{task} was here'}}")),
        1 => Answer::script(&format!("log_issue: {{severity: low, description: left by {task}}}")),
        2 => Answer::script(&format!(
            "save_snapshot: {{failingTests: [], techDebt: [], openDecisions: [], nextTaskIntent: after {task}}}"
        )),
        4 if is_rejected(request) => {
            Answer::script(&format!("write: {{path: {task}-right.txt, content: corrected}}"))
        }
        5 if is_rejected(request) => Answer::script(&format!("say: {task} is corrected")),
        _ => Answer::script(&format!("say: {task} is done")),
    }
}

fn is_rejected(request: &Request) -> bool {
    request.json()["messages"].to_string().contains("has reviewed your work and rejected it")
}

fn is_audit(request: &Request) -> bool {
    request.json()["messages"].to_string().contains("Review the finished work of task `")
}

/// An auditor that rejects work which was not corrected, and approves what was.
fn audit(request: &Request) -> Answer {
    let is_corrected = request.json()["messages"].to_string().contains("is corrected");
    match (request.replies, is_corrected) {
        (0, false) => Answer::script("reject: {commitment: task, reason: it is not right}"),
        (0, true) => Answer::script("approve: {commitment: task, reason: now it is right}"),
        (_, false) => Answer::script("say: rejected"),
        (_, true) => Answer::script("say: approved"),
    }
}

fn task(id: &str, after: &[&str]) -> Value {
    json!({"id": id, "bestPatternPrompt": format!("Run `make {id}`"), "dependsOn": after})
}

/// Three phases and eight tasks; the tasks of the second phase are partly independent, and the work of one is audited.
fn eight() -> Value {
    let mut audited = task("t06", &[]);
    audited["completion"] = json!({"required_files": ["t06.txt"], "audit": "auditor"});
    json!({"id": "eight", "phases": [
        {"id": "one", "tasks": [task("t01", &[]), task("t02", &["t01"])]},
        {"id": "two", "tasks": [task("t03", &[]), task("t04", &[]), task("t05", &["t03", "t04"])]},
        {"id": "three", "tasks": [audited, task("t07", &["t06"]), task("t08", &["t07"])]},
    ]})
}

fn statuses(program: &Program) -> BTreeMap<String, (String, i64)> {
    let database = database(program);
    let mut statement = database
        .prepare("SELECT key, status, retry_count FROM plan_tasks JOIN tasks ON tasks.id = task_id")
        .unwrap();
    let rows =
        statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// MS-131: tasks start in the order of what they wait for; a later phase waits for the one before it.
#[test]
fn tasks_of_a_plan_run_in_the_order_of_their_blockers() {
    let server = ModelServer::start_empty();
    server.answer_with(|request| Some(work(request)));
    let program = Program::with(server);
    write_plan(&program, &eight());
    plan(&program, &["activate"]).expect(0);
    let ran = plan(&program, &["run"]).expect(0);
    assert!(ran.stdout.contains("8 of 8 done"), "{}", ran.stdout);
    assert!(ran.stdout.contains("██████████"), "{}", ran.stdout);
    let mut order = Vec::new();
    for request in program.server.requests().iter().filter(|request| request.replies == 0) {
        order.push(task_of(request));
    }
    let place = |task: &str| order.iter().position(|one| one == task).unwrap();
    for (before, after) in [
        ("t01", "t02"),
        ("t02", "t03"),
        ("t02", "t04"),
        ("t03", "t05"),
        ("t04", "t05"),
        ("t05", "t06"),
        ("t06", "t07"),
        ("t07", "t08"),
    ] {
        assert!(place(before) < place(after), "{order:?}");
    }
    let blockers: String = database(&program)
        .query_row(
            "SELECT dependency_blockers FROM tasks JOIN plan_tasks ON task_id = tasks.id WHERE key = 't05'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(serde_json::from_str::<Vec<String>>(&blockers).unwrap().len(), 4);
}

/// PL-058, PL-059, PL-060, PL-061, PL-062: step 0 with what the task before left, step 99, and a snapshot at the end.
#[test]
fn a_task_begins_with_the_last_snapshot_and_ends_with_its_own() {
    let server = ModelServer::start_empty();
    server.answer_with(|request| Some(work(request)));
    let program = Program::with(server);
    let manifest =
        json!({"id": "two", "phases": [{"tasks": [task("t01", &[]), task("t02", &["t01"])]}]});
    write_plan(&program, &manifest);
    plan(&program, &["run", "plan.json"]).expect(0);
    let requests = program.server.requests();
    let second = requests.iter().find(|request| task_of(request) == "t02").unwrap().json();
    let said = second["messages"].to_string();
    for text in [
        "LOAD CONTEXT: Check for snapshot from previous task (windlass plan load-snapshot --task=t02).",
        "SAVE STATE: Before finishing this task:",
        "/clear is now safe.",
        "nextTaskIntent",
        "after t01",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let tools = second["tools"].to_string();
    for tool in ["log_issue", "log_decision", "save_snapshot"] {
        assert!(tools.contains(tool), "{tool}");
    }
    let loaded = plan(&program, &["load-snapshot", "--task=t02", "--json"]).expect(0).json_lines();
    assert_eq!(loaded[0]["nextTaskIntent"], "after t02");
    let issues = plan(&program, &["issues", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!((&issues[0]["taskId"], &issues[0]["planId"]), (&json!("t01"), &json!("two")));
    let no_plan = Program::playing("replies: [{say: done}]");
    no_plan.windlass(&["run", "x", "-q"]).expect(0);
    assert!(!no_plan.server.requests()[0].json()["tools"].to_string().contains("save_snapshot"));
}

/// PL-062: a task that forgets step 99 leaves what its state says.
#[test]
fn a_task_without_step_99_still_leaves_a_snapshot() {
    let program = Program::playing("replies: [{say: all is well}]");
    write_plan(&program, &json!({"id": "one", "phases": [{"tasks": [task("t01", &[])]}]}));
    plan(&program, &["run", "plan.json"]).expect(0);
    let loaded = plan(&program, &["load-snapshot", "--task=t01", "--json"]).expect(0).json_lines();
    assert!(loaded[0]["nextTaskIntent"].as_str().unwrap().contains("all is well"), "{loaded:?}");
}

/// PL-007: a task has the tools that it lists; a forged call of another is refused.
#[test]
fn a_task_can_use_only_its_tools() {
    let script = "
        replies:
          - write: {path: forged.txt, content: x}
          - read: {path: here.txt}
          - say: done
    ";
    let program = Program::playing(script);
    fs::write(program.workspace().join("here.txt"), "here").unwrap();
    let mut one = task("t01", &[]);
    one["tools"] = json!(["Read", "grep"]);
    write_plan(&program, &json!({"phases": [{"tasks": [one]}]}));
    plan(&program, &["run", "plan.json"]).expect(0);
    let requests = program.server.requests();
    let offered: Vec<String> = requests[0].json()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(offered.contains(&"read".to_owned()) && offered.contains(&"save_snapshot".to_owned()));
    assert!(!offered.iter().any(|tool| tool == "write" || tool == "bash"), "{offered:?}");
    let sent_text = requests.last().unwrap().json()["messages"].to_string();
    assert!(sent_text.contains("task `t01` of the plan uses only `Read`, `grep`"), "{sent_text}");
    assert!(!program.workspace().join("forged.txt").exists());
}

/// PL-003, PL-005: the agent's own definition is in the prompt of its task.
#[test]
fn an_agent_of_the_roster_brings_its_instructions() {
    let program = Program::playing("replies: [{say: done}]");
    let agents = program.workspace().join(".windlass/agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("intel.md"), "---\ndescription: Looks\n---\nYou look twice.\n").unwrap();
    let manifest = json!({"assignedAgents": ["intel"], "phases": [
        {"assignedAgent": "intel", "tasks": [task("t01", &[])]}]});
    write_plan(&program, &manifest);
    plan(&program, &["run", "plan.json"]).expect(0);
    let system = program.server.requests()[0].json()["messages"][0]["content"].to_string();
    assert!(system.contains("You are the agent `intel` of plan `plan`."), "{system}");
    assert!(system.contains("You look twice."), "{system}");
}

/// Independent tasks run side by side.
#[test]
fn independent_tasks_run_at_the_same_time() {
    let gates = [Gate::new(), Gate::new()];
    let server = ModelServer::start_empty();
    let held = gates.clone();
    server.answer_with(move |request| {
        let answer = work(request);
        Some(match (task_of(request).as_str(), request.replies) {
            ("t01", 0) => answer.gated(0, &held[0]),
            ("t02", 0) => answer.gated(0, &held[1]),
            _ => answer,
        })
    });
    let program = Program::with(server);
    write_plan(&program, &json!({"phases": [{"tasks": [task("t01", &[]), task("t02", &[])]}]}));
    let running = program.start(&["plan", "run", "plan.json"]);
    // Both have asked before either is answered.
    program.server.requests_reach_blocking(2);
    gates.iter().for_each(Gate::open);
    let ran: Ran = running.wait_with_output().unwrap().into();
    ran.expect(0);
}

/// MS-216: a task that needs approval asks before it starts; a no cancels it.
#[test]
fn a_task_that_needs_approval_asks_first() {
    let asking = |answer: &str| {
        let program =
            Program::playing("replies: [{write: {path: a.txt, content: x}}, {say: done}]");
        let mut one = task("t01", &[]);
        one["risk"] = json!("high");
        one["verification"] = json!(["true"]);
        write_plan(&program, &json!({"phases": [{"tasks": [one]}]}));
        program.windlass(&["trust", "--yes"]).expect(0);
        let asked = plan(&program, &["run", "plan.json"]).expect(3).stderr;
        assert!(asked.contains("May task `t01` of plan `plan` start?"), "{asked}");
        assert!(asked.contains("risk high") && asked.contains("\n    true"), "{asked}");
        assert_eq!(program.server.request_count(), 0, "nothing has begun");
        let task = program.task();
        program.windlass(&["answer", &task, answer]).expect(0);
        program
    };
    let program = asking("y");
    plan(&program, &["run"]).expect(0);
    assert_eq!(program.file("a.txt"), "x");
    let program = asking("no, not today");
    plan(&program, &["run"]).expect(1);
    assert!(!program.workspace().join("a.txt").exists());
    let shown = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(shown.contains("ada did not let it start. not today"), "{shown}");
}

/// MS-216: a task whose verification fails is not done; the agent reads why and works on.
#[test]
fn a_task_is_done_when_its_verification_passes() {
    let script = "
        replies:
          - say: done
          - write: {path: made.txt, content: x}
          - say: now it is done
    ";
    let program = Program::playing(script);
    let mut one = task("t01", &[]);
    one["verification"] = json!(["test -f made.txt"]);
    write_plan(&program, &json!({"phases": [{"tasks": [one]}]}));
    program.windlass(&["trust", "--yes"]).expect(0);
    plan(&program, &["run", "plan.json"]).expect(0);
    assert_eq!(program.file("made.txt"), "x");
    let sent_text = program.server.requests()[1].json()["messages"].to_string();
    assert!(sent_text.contains("test -f made.txt"), "{sent_text}");
}

/// What a run has left: rows, files, snapshots without their times.
#[derive(Debug, PartialEq)]
struct Left {
    statuses: BTreeMap<String, (String, i64)>,
    files: BTreeMap<String, String>,
    snapshots: BTreeMap<String, String>,
    issues: Vec<(String, String)>,
    /// Calls that have ended, by task and tool.
    calls: BTreeMap<(String, String), usize>,
    /// The verdicts of auditors, with how their tasks ended.
    audits: Vec<(String, String)>,
}

fn read_all(directory: PathBuf, end: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let wanted = entries.filter(|path| path.extension().is_some_and(|found| found == end));
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("- timestamp"));
        (
            path.file_name().unwrap().to_string_lossy().into_owned(),
            lines.collect::<Vec<_>>().join("\n"),
        )
    };
    wanted.map(text).collect()
}

fn left(program: &Program) -> Left {
    let database = database(program);
    let mut statement = database
        .prepare("SELECT taskId, description FROM planning_issues ORDER BY taskId")
        .unwrap();
    let issues = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut statement = database
        .prepare(
            "SELECT key, json_extract(body, '$.tool') FROM events JOIN plan_tasks ON task_id = stream
             WHERE kind = 'tool_result'",
        )
        .unwrap();
    let mut audits = database
        .prepare(
            "SELECT json_extract(body, '$.tool'), status FROM events JOIN tasks ON tasks.id = stream
             WHERE kind = 'tool_result' AND parent_id IS NOT NULL ORDER BY pos",
        )
        .unwrap();
    let audits = audits.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut calls = BTreeMap::new();
    for call in statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap() {
        *calls.entry(call.unwrap()).or_default() += 1;
    }
    Left {
        statuses: statuses(program),
        files: read_all(program.workspace().to_owned(), "txt"),
        snapshots: read_all(program.workspace().join(".windlass/snapshots/eight"), "md"),
        issues: issues.map(Result::unwrap).collect(),
        audits: audits.map(Result::unwrap).collect(),
        calls,
    }
}

/// A model that fails task t04 as long as it was not retried.
fn failing_once(path: PathBuf) -> impl Fn(&Request) -> Option<Answer> {
    move |request| {
        let retries = || -> i64 {
            let database = Connection::open(&path).unwrap();
            database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            let sql = "SELECT retry_count FROM tasks JOIN plan_tasks ON task_id = tasks.id WHERE key = 't04'";
            database.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        match task_of(request).as_str() {
            "t04" if retries() == 0 => Some(Answer::error(400, "not today")),
            _ => Some(work(request)),
        }
    }
}

fn audited_task(program: &Program) -> String {
    let sql = "SELECT task_id FROM plan_tasks WHERE key = 't06'";
    database(program).query_row(sql, [], |row| row.get(0)).unwrap()
}

fn eight_tasks() -> Program {
    let program = Program::with(ModelServer::start_empty());
    program.server.answer_with(failing_once(program.data_directory().join("windlass.db")));
    write_plan(&program, &eight());
    plan(&program, &["activate"]).expect(0);
    program
}

/// MS-195: killed at twenty points, a run leaves the same rows, files and results as one that was not; nothing runs twice.
#[test]
fn a_plan_killed_at_twenty_points_ends_like_one_that_was_not() {
    let unbroken = eight_tasks();
    plan(&unbroken, &["run"]).expect(0);
    let expected = left(&unbroken);
    assert_eq!(expected.statuses["t04"], ("done".to_owned(), 1), "it failed once");
    assert_eq!((expected.files.len(), expected.snapshots.len(), expected.issues.len()), (9, 8, 8));
    let of = |task: &str, tool: &str| (task.to_owned(), tool.to_owned());
    let (verdicts, calls): (Vec<_>, Vec<_>) =
        expected.calls.iter().partition(|((_, tool), _)| tool == "spawn_agent");
    assert_eq!(verdicts, [(&of("t06", "spawn_agent"), &2)], "one audit rejects, one approves");
    for (call, times) in calls {
        assert_eq!(*times, if *call == of("t06", "write") { 2 } else { 1 }, "{call:?}");
    }
    assert_eq!(expected.audits, [of("reject", "done"), of("approve", "done")]);
    let result = unbroken.windlass(&["result", &audited_task(&unbroken), "--json"]).expect(0);
    let result: Value = serde_json::from_str(&result.stdout).unwrap();
    let review = &result["contract"]["review"];
    assert_eq!((&review["approved"], &review["reason"]), (&json!(true), &json!("now it is right")));
    let requests = unbroken.server.request_count();
    // Small steps that differ from run to run, so that the twenty points are spread over the whole plan.
    let mut seed = std::process::id() as usize;
    for _ in 0..4 {
        let broken = eight_tasks();
        for _ in 0..5 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let step = 1 + (seed >> 33) % (requests / 6 - 1);
            let seen = broken.server.request_count();
            let mut running = broken.start(&["plan", "run"]);
            // Five steps are less than the whole, so the run has not ended.
            broken.server.requests_reach_blocking(seen + step);
            running.kill().unwrap();
            running.wait().unwrap();
        }
        plan(&broken, &["run"]).expect(0);
        assert_eq!(left(&broken), expected);
    }
}
