//! Plans from the command line: stories S1 to S5, activation, and what is refused.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::program::{Program, Ran};

/// The data as another program reads it.
pub fn database(program: &Program) -> Connection {
    Connection::open(program.data_directory().join("windlass.db")).unwrap()
}

pub fn count(program: &Program, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    database(program).query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// Installs skills of these names.
pub fn install(program: &Program, skills: &[&str]) {
    for name in skills {
        let directory = program.workspace().join(".windlass/skills").join(name);
        fs::create_dir_all(&directory).unwrap();
        let text = format!("---\nname: {name}\ndescription: About {name}\n---\nDo {name}.\n");
        fs::write(directory.join("SKILL.md"), text).unwrap();
    }
}

pub const FIVE: [&str; 5] = ["content-flow", "truth-seeker", "deploy", "review-page", "style"];

pub fn write_plan(program: &Program, plan: &Value) {
    fs::write(program.workspace().join("plan.json"), format!("{plan:#}\n")).unwrap();
}

fn plan(program: &Program, args: &[&str]) -> Ran {
    program.windlass(&[&["plan"], args].concat())
}

fn quiet() -> Program {
    Program::playing("replies: [{say: done}]")
}

/// What a request says, whole.
fn prompt(request: &windlass_testkit::Request) -> String {
    request.json().to_string()
}

/// PL-001, PL-019, PL-038, PL-020, PL-021, PL-022, PL-010, PL-041, EXEC-002: with five skills installed the plan loads exactly its
/// two, also in the request of its task.
#[test]
fn story_s1_scoped_load() {
    let program = quiet();
    install(&program, &FIVE);
    let manifest = json!({
        "requiredSkills": ["content-flow", "truth-seeker"],
        "phases": [{"tasks": [{"bestPatternPrompt": "Use /content-flow to review this page"}]}],
    });
    write_plan(&program, &manifest);
    let activated = plan(&program, &["activate", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(activated["skills"], json!(["content-flow", "truth-seeker"]));
    assert_eq!(activated["mcp_servers"], json!([]));
    let shown = plan(&program, &["activate"]).expect(0).stdout;
    assert!(shown.contains("skills") && shown.contains("content-flow, truth-seeker"), "{shown}");

    plan(&program, &["run"]).expect(0);
    let requests = program.server.requests();
    let sent = prompt(&requests[0]);
    for name in FIVE {
        let is_there = sent.contains(&format!("About {name}"));
        assert_eq!(is_there, ["content-flow", "truth-seeker"].contains(&name), "{name}: {sent}");
    }
}

/// PL-008, PL-069: a task of two declared skills has exactly those two of five, in its request and in its sandbox.
#[test]
fn a_task_has_exactly_the_skills_that_it_declares() {
    let script = "
        replies:
          - list_skills: {}
          - bash: ls /skills
          - say: done
    ";
    let program = Program::playing(script);
    install(&program, &FIVE);
    let task = json!({"bestPatternPrompt": "Use /deploy", "skills": ["deploy", "style"]});
    let manifest = json!({"requiredSkills": FIVE[..4].iter().chain(["style"].iter()).collect::<Vec<_>>(),
        "phases": [{"tasks": [task]}]});
    write_plan(&program, &manifest);
    plan(&program, &["run", "plan.json"]).expect(0);
    let requests = program.server.requests();
    let last = requests.last().unwrap().json();
    let messages = last["messages"].as_array().unwrap();
    let system = messages[0]["content"].as_str().unwrap();
    let listed: Vec<_> =
        FIVE.iter().filter(|name| system.contains(&format!("About {name}"))).collect();
    assert_eq!(listed, [&"deploy", &"style"], "{system}");
    let results: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    for name in FIVE {
        let is_declared = ["deploy", "style"].contains(&name);
        assert!(
            results.iter().all(|result| result.contains(name) == is_declared),
            "{name}: {results:?}"
        );
    }
}

/// PL-002, PL-049: of two real servers the plan starts the one that it names, and its task calls it.
#[test]
fn a_plan_starts_exactly_the_servers_that_it_names() {
    let script = "
        replies:
          - mcp__files__read_text_file: {path: /workspace/note.txt}
          - say: read
    ";
    let program = Program::playing(script);
    let index = crate::mcp::server();
    let package = index.split("/node_modules/").next().unwrap();
    let of = |name: &str| {
        format!("[mcp.servers.{name}]\ncommand = 'node'\nargs = ['{index}', '/workspace']\n")
    };
    let config = format!("[sandbox]\nread_only = ['{package}']\n{}{}", of("files"), of("others"));
    crate::mcp::user_config(&program, &config);
    fs::write(program.workspace().join("note.txt"), "from the workspace").unwrap();
    let task = json!({"bestPatternPrompt": "Use mcp:files:read_text_file"});
    write_plan(&program, &json!({"requiredMcpTools": ["files"], "phases": [{"tasks": [task]}]}));
    let refused = plan(&program, &["activate"]).expect(2).stderr;
    assert!(refused.contains("windlass trust"), "{refused}");
    program.windlass(&["trust", "--yes"]).expect(0);
    let activated = plan(&program, &["activate", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(activated["mcp_servers"], json!(["files"]));
    plan(&program, &["run"]).expect(0);
    let request = program.server.requests().last().unwrap().json();
    let tools = request["tools"].to_string();
    assert!(tools.contains("mcp__files__read_text_file"), "{tools}");
    assert!(!tools.contains("mcp__others__"), "{tools}");
    assert!(request["messages"].to_string().contains("from the workspace"), "{request}");
}

/// PL-050, PL-010: an unknown name is refused with its place; nothing is activated.
#[test]
fn an_unknown_skill_or_server_is_refused() {
    let program = quiet();
    install(&program, &FIVE);
    write_plan(&program, &json!({"requiredSkills": ["truth-seekr"], "phases": []}));
    let refused = plan(&program, &["activate"]).expect(2).stderr;
    assert!(
        refused.contains("plan.json:4: `requiredSkills[0]`: there is no skill `truth-seekr`"),
        "{refused}"
    );
    assert!(refused.contains("did you mean `truth-seeker`?"), "{refused}");
    assert_eq!(count(&program, "plans"), 0);
    write_plan(&program, &json!({"requiredMcpTools": ["context7"], "phases": []}));
    let refused = plan(&program, &["activate"]).expect(2).stderr;
    assert!(refused.contains("there is no MCP server `context7`"), "{refused}");
}

/// PL-019, PL-038, PL-023, PL-024, PL-025, PL-026, PL-042, PL-043, PL-044, PL-011, PL-012, EXEC-004
#[test]
fn story_s2_log_issue() {
    let program = quiet();
    let log = |args: &[&str]| plan(&program, &[&["log-issue"], args].concat());
    let description = "--description=typecheck fails on schema";
    log(&["--severity=high", "--task=t02", "--owner=intel", description]).expect(0);
    let found: (i64, String) = database(&program)
        .query_row(
            "SELECT count(*), max(ownerTeam) FROM planning_issues
             WHERE severity = 'high' AND taskId = 't02' AND description = 'typecheck fails on schema'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(found, (1, "intel".to_owned()));
    assert!(!program.workspace().join(".windlass").exists(), "no file is written");

    for wrong in [
        &["--task=t02", description][..],
        &["--severity=", "--task=t02", description],
        &["--severity=huge", description],
        &["--severity=high", "--task=t02"],
        &["--severity=high", "--description="],
        &["--severity=high", "--task=", description],
    ] {
        log(wrong).expect(2);
    }
    assert_eq!(count(&program, "planning_issues"), 1);

    log(&["--severity=low", "--task=t03", "--owner=web", "--description=slow"]).expect(0);
    let of = |args: &[&str]| {
        let listed = plan(&program, &[&["issues", "--json"], args].concat()).expect(0);
        listed.json_lines().remove(0).as_array().unwrap().len()
    };
    assert_eq!((of(&[]), of(&["--task=t02"]), of(&["--severity=low"])), (2, 1, 1));
    assert_eq!((of(&["--owner=intel"]), of(&["--owner=web", "--severity=high"])), (1, 0));
}

/// PL-071: what became of an issue is said once.
#[test]
fn an_issue_is_resolved_once() {
    let program = quiet();
    let logged =
        plan(&program, &["log-issue", "--severity=low", "--description=x", "--json"]).expect(0);
    let id = logged.json_lines()[0]["id"].as_str().unwrap().to_owned();
    plan(&program, &["resolve-issue", &id, "--resolution=closed"]).expect(2);
    plan(&program, &["resolve-issue", &id[id.len() - 8..], "--resolution=not-an-issue"]).expect(0);
    let again = plan(&program, &["resolve-issue", &id, "--resolution=fixed"]).expect(2);
    assert!(again.stderr.contains("already resolved: not_an_issue"), "{again:?}");
    let listed = plan(&program, &["issues", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(listed[0]["resolution"], "not_an_issue");
    assert!(listed[0]["resolvedAt"].is_string() && listed[0]["createdAt"].is_string());
    plan(&program, &["resolve-issue", "iss_nothing", "--resolution=fixed"]).expect(2);
}

/// PL-019, PL-038, PL-027, PL-028, PL-029, PL-045, PL-046, PL-013, EXEC-005
#[test]
fn story_s3_log_decision() {
    let program = quiet();
    let log = |args: &[&str]| plan(&program, &[&["log-decision"], args].concat());
    let title = "--title=NOT NULL for bestPatternPrompt";
    let reasoning = "--reasoning=nullable allowed missing prompts for weeks";
    let alternatives = "--alternatives=optional field,documentation only";
    log(&[title, reasoning, alternatives]).expect(0);
    let found: (String, String) = database(&program)
        .query_row("SELECT title, alternatives FROM planning_decisions", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(found.0, "NOT NULL for bestPatternPrompt");
    assert_eq!(found.1, r#"["optional field","documentation only"]"#);
    for wrong in [
        &[title, alternatives][..],
        &[title, "--reasoning=", alternatives],
        &[title, "--reasoning=  ", alternatives],
        &[title, reasoning],
        &[title, reasoning, "--alternatives="],
        &[title, reasoning, "--alternatives=, ,"],
        &[reasoning, alternatives],
    ] {
        log(wrong).expect(2);
    }
    assert_eq!(count(&program, "planning_decisions"), 1);
    log(&[title, reasoning, "--alternatives=a", "--alternatives=b,c", "--task=t02"]).expect(0);
    let listed = plan(&program, &["decisions", "--json", "--task=t02"]).expect(0).json_lines();
    assert_eq!(listed[0][0]["alternatives"], json!(["a", "b", "c"]));
}

pub fn snapshot() -> Value {
    json!({
        "failingTests": [{"file": "src/a.rs", "testName": "adds", "error": "left 1\nright 2"}],
        "techDebt": [{"file": "src/b.rs", "what": "copy", "whyDeferred": "time"}],
        "openDecisions": ["which store?"],
        "nextTaskIntent": "make it pass",
    })
}

/// PL-019, PL-038, PL-030, PL-031, PL-032, PL-033, PL-047, PL-048, EXEC-003
#[test]
fn story_s4_snapshot() {
    let program = quiet();
    let file = |name: &str, value: &Value| {
        fs::write(program.workspace().join(name), value.to_string()).unwrap();
    };
    file("whole.json", &snapshot());
    plan(&program, &["save-snapshot", "--task=t01", "--from", "whole.json"]).expect(0);
    program.chat(&[], "hello\n/clear\n").expect(0);
    let loaded = plan(&program, &["load-snapshot", "--task=t01", "--json"]).expect(0);
    let loaded = loaded.json_lines().remove(0);
    for field in ["failingTests", "techDebt", "openDecisions", "nextTaskIntent"] {
        assert_eq!(loaded[field], snapshot()[field], "{field}");
        let mut without = snapshot();
        without.as_object_mut().unwrap().remove(field);
        file("without.json", &without);
        let refused = plan(&program, &["save-snapshot", "--task=t09", "--from", "without.json"]);
        let refused = refused.expect(2).stderr;
        assert!(refused.contains(&format!("`{field}` is missing")), "{refused}");
    }
    let saved = Path::new(".windlass/snapshots/unplanned/t01.md");
    assert!(!program.workspace().join(saved).with_file_name("t09.md").exists());
    let text = program.file(saved.to_str().unwrap());
    for field in ["failingTests", "techDebt", "openDecisions", "nextTaskIntent"] {
        let edited = text.replace(&format!("## {field}"), "");
        fs::write(program.workspace().join(saved), edited).unwrap();
        let refused = plan(&program, &["load-snapshot", "--task=t01"]).expect(2).stderr;
        assert!(refused.contains(field), "{field}: {refused}");
    }
    plan(&program, &["load-snapshot", "--task=t77"]).expect(1);
}

/// PL-033: with an active plan a cleared conversation leaves a snapshot; one that the task saved itself stays.
#[test]
fn a_clear_with_an_active_plan_saves_a_snapshot_first() {
    let program = Program::playing("replies: [{say: hello}, {say: again}]");
    write_plan(
        &program,
        &json!({"id": "demo", "phases": [{"tasks": [{"bestPatternPrompt": "/x"}]}]}),
    );
    plan(&program, &["activate"]).expect(0);
    program.chat(&[], "what is to do?\n/clear\n").expect(0);
    let loaded = plan(&program, &["load-snapshot", "--task=t01", "--json"]).expect(0);
    let loaded = loaded.json_lines().remove(0);
    assert_eq!((&loaded["plan"], &loaded["task"]), (&json!("demo"), &json!("t01")));
    assert!(loaded["nextTaskIntent"].as_str().unwrap().contains("what is to do?"), "{loaded}");
}

/// PL-019, PL-038, PL-034, PL-035, PL-036, PL-037, PL-051, PL-052, EXEC-006
#[test]
fn story_s5_budget() {
    for (tokens, level, recommendation) in [
        (699, "ok", "continue"),
        (700, "warning", "save-state"),
        (849, "warning", "save-state"),
        (850, "critical", "save-and-yield"),
    ] {
        let script = format!("replies: [{{say: done, usage: {{input: {tokens}00, output: 0}}}}]");
        let program = Program::playing(&script);
        let mut run = program.command(&["run", "x", "-q", "--context-window", "104096"]);
        run.env("AGENT_COMPACTION_TRIGGER_RATIO", "0.99");
        let ran: Ran = run.output().unwrap().into();
        ran.expect(0);
        let gauge = plan(&program, &["budget", "--json"]).expect(0).json_lines().remove(0);
        assert_eq!(gauge["level"], level, "{tokens}: {gauge}");
        assert_eq!(gauge["recommendation"], recommendation, "{tokens}: {gauge}");
        assert!(gauge["percent"].is_number());
    }
}

/// PL-009, PL-040, PL-050, EXEC-001: each kind of mistake is named with file, line and place, and nothing is written.
#[test]
fn every_kind_of_wrong_plan_is_refused_with_its_place() {
    for (wrong, place) in [
        ("\n\"requiredSkills\": null", "plan.json:2: `requiredSkills`: must be a list, not `null`"),
        ("\n\"requiredSkill\": []", "plan.json:2: `requiredSkill`: unknown key; did you mean"),
        (
            "\n\"phases\": [{\"tasks\": [\n{\"id\": \"a\", \"bestPatternPrompt\": \"/x\", \"dependsOn\": [\"b\"]},\n\
             {\"id\": \"b\", \"bestPatternPrompt\": \"/x\", \"dependsOn\": [\"a\"]}]}]",
            "plan.json:3: `phases[0].tasks[0].dependsOn`: these tasks wait for each other: a → b",
        ),
        (
            "\n\"assignedAgents\": [\"intel\"],\n\"phases\": [\n{\"assignedAgent\": \"intell\", \"tasks\": []}]",
            "plan.json:4: `phases[0].assignedAgent`: agent `intell` is not in the roster; did you mean `intel`?",
        ),
        (
            "\n\"requiredSkills\": [\"deploy\"],\n\"phases\": [{\"tasks\": [\n\
             {\"bestPatternPrompt\": \"/x\", \"skills\": [\"style\"]}]}]",
            "plan.json:4: `phases[0].tasks[0].skills[0]`: skill `style` is not in the plan's `requiredSkills`",
        ),
        (
            "\n\"completion\": {\n\"required_files\": [\"../x\"]}",
            "plan.json:3: `completion.required_files[0]`: names `../x`, which is outside the workspace",
        ),
        (
            "\n\"phases\": [{\"tasks\": [{\"bestPatternPrompt\": \"/x\",\n\"risk\": \"hihg\"}]}]",
            "plan.json:3: `phases[0].tasks[0].risk`: `hihg` is not allowed; did you mean `high`?",
        ),
    ] {
        let program = quiet();
        install(&program, &FIVE);
        fs::write(program.workspace().join("plan.json"), format!("{{{wrong}\n}}\n")).unwrap();
        for action in ["validate", "activate", "run"] {
            let refused = plan(&program, &[action, "plan.json"]).expect(2).stderr;
            assert!(refused.contains(place), "{action}: {refused}");
        }
        assert_eq!((count(&program, "plans"), count(&program, "tasks")), (0, 0), "{wrong}");
    }
}

/// PL-039, PL-040, EXEC-001: exit code 2 names file, line and place.
#[test]
fn a_wrong_plan_is_refused_with_file_line_and_place() {
    let program = quiet();
    write_plan(&program, &json!({"requiredSkills": ["x"], "phases": []}));
    plan(&program, &["validate"]).expect(0);
    let file = program.workspace().join("plan.json");
    fs::write(&file, "{\n  \"requiredSkills\": null\n}\n").unwrap();
    let refused = plan(&program, &["validate", "plan.json"]).expect(2).stderr;
    assert!(
        refused.contains("plan.json:2: `requiredSkills`: must be a list, not `null`"),
        "{refused}"
    );
    plan(&program, &["activate"]).expect(2);
    plan(&program, &["validate", "nothing"]).expect(2);
    assert_eq!(count(&program, "plans"), 0);
}

/// PL-003, PL-004, PL-005, PL-068, PL-053, PL-054, PL-055, EXEC-007
#[test]
fn a_new_plan_has_bookends_and_is_shown_and_checked() {
    let program = quiet();
    let listed = plan(&program, &["list-templates", "--json"]).expect(0).json_lines().remove(0);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["feature", "bugfix", "migration"]);
    plan(&program, &["new", "checkout", "--template", "bugfix"]).expect(0);
    plan(&program, &["new", "checkout"]).expect(2);
    plan(&program, &["new", "x", "--template", "nothing"]).expect(2);
    plan(&program, &["new", "../x"]).expect(2);
    let made = program.file(".windlass/plans/checkout/plan.json");
    assert!(made.contains("LOAD CONTEXT: ") && made.contains("SAVE STATE: "), "{made}");
    assert!(program.file(".windlass/plans/checkout/plan.schema.json").contains("requiredSkills"));
    let shown = plan(&program, &["show", "checkout", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(shown["id"], "checkout");
    assert_eq!(shown["phases"][0]["tasks"][0]["id"], "t01");
    let own = program.workspace().join("mine.json");
    fs::write(&own, made.replace("SAVE STATE", "END")).unwrap();
    let refused = plan(&program, &["list-templates", "--check", "mine.json"]).expect(2).stderr;
    assert!(refused.contains("step 99 (`SAVE STATE: …`) must be the last step"), "{refused}");
    let guidance = plan(&program, &["guidance"]).expect(0).stdout;
    assert!(guidance.contains("## Task boundaries"), "{guidance}");
}

/// PL-056, PL-057, PL-070, PL-006, EXEC-008
#[test]
fn a_prompt_that_names_nothing_blocks_the_plan() {
    let program = quiet();
    let task =
        |prompt: &str| json!({"phases": [{"tasks": [{"id": "t01", "bestPatternPrompt": prompt}]}]});
    write_plan(&program, &task("Use /content-flow"));
    let found = plan(&program, &["validate-prompts", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(found["errors"], json!([]));
    write_plan(&program, &task("Review the page carefully"));
    let wrong = plan(&program, &["validate-prompts"]).expect(1).stderr;
    assert!(wrong.contains("the prompt of task `t01` names nothing to use"), "{wrong}");
    let refused = plan(&program, &["activate"]).expect(2).stderr;
    assert!(refused.contains("task `t01`"), "{refused}");
    assert_eq!(count(&program, "plans"), 0);
    let warned = plan(&program, &["validate-prompts", "--all"]).expect(0).stderr;
    assert!(warned.contains("warning: "), "{warned}");
    plan(&program, &["validate-prompts", "--all", "--strict"]).expect(1);
}

/// §15.13: a model, a profile and servers count only where a person has approved the file.
#[test]
fn a_plan_sets_no_model_profile_or_server_before_trust() {
    for manifest in [
        json!({"assignedAgents": [{"name": "a", "model": "openai/gpt-4o"}]}),
        json!({"assignedAgents": [{"name": "a", "permissionProfile": "normal"}]}),
    ] {
        let program = quiet();
        write_plan(&program, &manifest);
        let refused = plan(&program, &["activate"]).expect(2).stderr;
        assert!(refused.contains("is not approved, and sets: "), "{refused}");
        assert!(refused.contains("windlass trust"), "{refused}");
    }
    let program = quiet();
    let agents = program.workspace().join(".windlass/agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("intel.md"), "---\npermission-profile: normal\n---\nYou look.\n")
        .unwrap();
    write_plan(&program, &json!({"assignedAgents": ["intel"], "phases": []}));
    let refused = plan(&program, &["activate"]).expect(2).stderr;
    assert!(refused.contains("intel.md` is not approved"), "{refused}");
    program.windlass(&["trust", "--yes"]).expect(0);
    plan(&program, &["activate"]).expect(0);
    fs::write(agents.join("intel.md"), "---\npermission-profile: trusted\n---\nYou look.\n")
        .unwrap();
    plan(&program, &["activate"]).expect(2);
}

/// `/plans SUBCOMMAND` does in a conversation what `windlass plan` does; `/plan` stays the work mode.
#[test]
fn plans_are_looked_at_and_changed_in_a_conversation() {
    let program = quiet();
    write_plan(
        &program,
        &json!({"id": "demo", "phases": [{"title": "First", "tasks": [{"bestPatternPrompt": "/x"}]}]}),
    );
    let lines = "/plans activate\n/plans log-issue --severity=low --description=\"it is slow\"\n/plans issues\n/plans status\n";
    let said = program.chat(&[], lines).expect(0).stdout;
    for text in ["demo (demo)", "it is slow", "○ First", "░░░░░░░░░░", "0/1"]
    {
        assert!(said.contains(text), "{text}: {said}");
    }
    for wrong in [
        "/plans frobnicate",
        "/plans log-issue --description=x",
        "/plans log-decision --title=a --reasoning=b",
        "/plans issues --severity=huge",
    ] {
        program.chat(&["--continue"], &format!("{wrong}\n")).expect(2);
    }
    assert_eq!((count(&program, "planning_issues"), count(&program, "planning_decisions")), (1, 0));
}
