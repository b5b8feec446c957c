//! The five axes, one by one and together, and what each work mode is.

use serde_json::{Value, json};

use crate::chat::Open;
use crate::program::{Program, Ran};

const REPLIES: &str = "replies: [{say: one}, {say: two}, {say: three}]";

fn talking() -> Program {
    let program = Program::playing(REPLIES);
    program.chat(&[], "hello\n").expect(0);
    program
}

fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The words of the prompt of a task's first request, its lines joined.
fn prompt(program: &Program) -> String {
    let body = program.server.requests()[0].json();
    let text = body["messages"][0]["content"].as_str().unwrap().to_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// MS-005, MS-006, MS-007, MS-008: each value of each axis is set and shown, and sets nothing else.
#[test]
fn every_value_of_every_axis_is_set_and_shown() {
    let program = talking();
    program.windlass(&["config", "set", "policy.allow_unrestricted", "true"]).expect(0);
    let axes = [
        ("--control", "runControl", "manual assisted"),
        ("--permission-profile", "permissionProfile", "restricted normal trusted unrestricted"),
        ("--model-mode", "modelMode", "fast smart deep"),
    ];
    for (flag, key, words) in axes {
        for word in words.split(' ') {
            let before = program.mode_json();
            program.windlass(&["mode", "set", flag, word]).expect(0);
            let mut expected = before;
            expected[key] = word.into();
            assert_eq!(program.mode_json(), expected, "{flag} {word}");
        }
    }
    for word in "chat plan build repair research".split(' ') {
        let mut expected = program.mode_json();
        program.windlass(&["mode", "set", word]).expect(0);
        expected["workMode"] = word.into();
        assert_eq!(program.mode_json(), expected, "{word}");
    }
    program.windlass(&["mode", "set", "research", "--control", "autonomous"]).expect(0);
    assert_eq!(program.mode_json()["runControl"], "autonomous");
}

/// MS-010, MS-011, MS-012, MS-013, MS-014: combinations are set as they are named.
#[test]
fn named_combinations_of_the_axes_are_set_and_shown() {
    let program = talking();
    for combination in [
        ["plan", "manual", "normal", "deep"],
        ["build", "autonomous", "trusted", "smart"],
        ["repair", "autonomous", "normal", "smart"],
        ["research", "autonomous", "restricted", "deep"],
        ["review", "manual", "restricted", "deep"],
    ] {
        let [mode, control, profile, model] = combination;
        let flags = ["--control", control, "--permission-profile", profile, "--model-mode", model];
        program.windlass(&[&["mode", "set", mode], &flags[..]].concat()).expect(0);
        let expected = json!({
            "workMode": mode, "runControl": control, "permissionProfile": profile,
            "modelMode": model, "surface": "tui",
        });
        assert_eq!(program.mode_json(), expected);
    }
}

/// MS-013: continuous, and read-only.
#[test]
fn autonomous_research_under_restricted_runs_to_its_end_and_only_reads() {
    let program =
        Program::playing("replies: [{glob: '*'}, {write: {path: a, content: b}}, {say: found}]");
    let flags = ["--control", "autonomous", "--permission-profile", "restricted"];
    let run = [&["run", "look", "--mode", "research", "--json"], &flags[..]].concat();
    let ran = program.windlass(&run).expect(0);
    assert_eq!(ran.result()["final_message"], "found");
    let names = tools(&program.server.requests()[0].json());
    assert!(
        !names.contains(&"write".to_owned()) && !names.contains(&"edit".to_owned()),
        "{names:?}"
    );
    assert!(!program.workspace().join("a").exists());
}

/// MS-030: what a review looks at.
#[test]
fn the_prompt_of_a_review_names_what_to_look_for() {
    let program = Program::playing("replies: [{say: it is good}]");
    program.windlass(&["run", "look at it", "--mode", "review", "-q"]).expect(0);
    let prompt = prompt(&program);
    for words in [
        "You work in mode `review`: you judge work that exists",
        "the changes and what they touch",
        "regressions",
        "security problems",
        "missing tests",
        "claims without evidence",
        "what would go wrong",
    ] {
        assert!(prompt.contains(words), "{words}: {prompt}");
    }
}

/// MS-045: research has the web, the files and helpers, and its prompt says so.
#[test]
fn research_has_the_web_and_helpers() {
    let program = Program::playing("replies: [{say: found}]");
    let search = "[web]\nsearch_provider = 'searxng'\nsearch_url = 'http://127.0.0.1:9'\n";
    crate::wires::configure(&program, search);
    program.windlass(&["run", "compare parsers", "--mode", "research", "-q"]).expect(0);
    let names = tools(&program.server.requests()[0].json());
    for name in ["web_search", "web_fetch", "spawn_agent", "grep", "read", "bash"] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
    assert!(!names.contains(&"write".to_owned()), "{names:?}");
    assert!(prompt(&program).contains("Give separate questions to sub-agents"));
}

/// MS-053: one unit under assisted control, then it waits.
#[test]
fn next_runs_one_unit_and_waits() {
    let program = Program::playing(REPLIES);
    let ran = program.chat(&["--mode", "build"], "/next count the sheep\n").expect(0);
    assert!(ran.stdout.ends_with("one\n"), "{ran:?}");
    assert_eq!(program.mode_json()["runControl"], "assisted");
    assert_eq!(program.server.requests().len(), 1);
    let task = &program.windlass(&["tasks", "--json"]).expect(0).json_lines()[0];
    assert_eq!(task["status"], "paused");
}

/// MS-033, MS-034, MS-037, MS-209: `/doctor` only looks; `/repair` looks first, fixes what needs no model, and is a
/// work mode.
#[test]
fn doctor_leaves_the_mode_and_repair_sets_it_after_looking() {
    let program = talking();
    let lock = program.data_directory().join("locks/task_00000000000000000000000001.lock");
    std::fs::write(&lock, "1 1\n").unwrap();
    let requests = program.server.requests().len();
    let looked = program.chat(&["--continue"], "/doctor\n").expect(0);
    assert!(looked.stdout.contains("task_00000000000000000000000001.lock"), "{looked:?}");
    assert!(lock.exists());
    assert_eq!(program.mode_json()["workMode"], "chat");
    let repaired = program.chat(&["--continue"], "/repair\n").expect(0);
    assert!(repaired.stdout.contains("Nothing is wrong: clean."), "{repaired:?}");
    assert!(!lock.exists());
    assert_eq!(program.mode_json()["workMode"], "repair");
    assert_eq!(program.server.requests().len(), requests, "nothing was left for an agent");
    let log = program.windlass(&["mode", "log", "--json"]).expect(0).json_lines();
    assert_eq!(log.last().unwrap()["reason"], "/repair", "{log:?}");
}

/// MS-038: what is left is given to an agent, whose end says how it went.
#[test]
fn an_autonomous_repair_gives_the_rest_to_an_agent() {
    let program = talking();
    let skill = program.workspace().join(".windlass/skills/paint");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: [\n---\n").unwrap();
    let ran = program.chat(&["--continue"], "/repair --autonomous\n").expect(0);
    assert!(ran.stdout.contains("paint"), "{ran:?}");
    let mode = program.mode_json();
    assert_eq!((&mode["workMode"], &mode["runControl"]), (&"repair".into(), &"autonomous".into()));
    let sent = program.server.requests().last().unwrap().json().to_string();
    assert!(sent.contains("You work in mode `repair`"), "{sent}");
    assert!(sent.contains("`windlass doctor` found these problems"), "{sent}");
}

/// MS-032, O-46: there is a check for each class of damage.
#[test]
fn the_checks_cover_what_repair_is_for() {
    let program = talking();
    let lines = program.windlass(&["doctor", "--json"]).expect(0).json_lines();
    let checks: Vec<_> = lines.iter().filter_map(|line| line["check"].as_str()).collect();
    for (class, check) in [
        ("product health", "config"),
        ("product health", "model"),
        ("product health", "sandbox"),
        ("repository health", "git"),
        ("runtime drift", "processes"),
        ("runtime drift", "schema"),
        ("broken generated state", "helper"),
        ("bad command surfaces", "skills"),
        ("bad command surfaces", "mcp"),
        ("stale locks", "locks"),
        ("broken installed copies", "program"),
        ("broken state", "store"),
        ("no room for the journal", "disk"),
    ] {
        assert!(checks.contains(&check), "{class}: no `{check}` in {checks:?}");
    }
}

/// MS-003, MS-174, MS-203: the program's name is not a command, and nothing is done.
#[test]
fn a_product_prefix_is_not_a_command() {
    let program = talking();
    let before = program.mode_json();
    let ran = program.chat(&["--continue"], "/windlass mode build\n/windlass\n").expect(2);
    assert!(ran.stderr.contains("`/windlass` is not a command"), "{ran:?}");
    assert_eq!(program.mode_json(), before);
}

/// MS-208: what `tasks` lists is what the database has.
#[test]
fn the_list_of_tasks_is_the_table() {
    let program = Program::playing("replies: [{ask_user: {question: which?}}, {say: done}]");
    program.windlass(&["run", "first", "-q"]).expect(3);
    program.windlass(&["run", "second", "-q"]).expect(3);
    program.windlass(&["answer", &program.task(), "blue", "--resume", "-q"]).expect(0);
    let row = |task: &Value| {
        let of = |key: &str| task[key].as_str().unwrap().to_owned();
        [of("task_id"), of("status"), of("goal")].join(" ")
    };
    let mut listed: Vec<_> = program
        .windlass(&["tasks", "--all", "--json"])
        .expect(0)
        .json_lines()
        .iter()
        .map(row)
        .collect();
    let database =
        rusqlite::Connection::open(program.data_directory().join("windlass.db")).unwrap();
    let mut statement = database.prepare("SELECT id || ' ' || status || ' ' || goal FROM tasks");
    let found = statement.as_mut().unwrap().query_map((), |row| row.get::<_, String>(0)).unwrap();
    let mut stored: Vec<_> = found.map(Result::unwrap).collect();
    listed.sort();
    stored.sort();
    assert_eq!(listed, stored);
    assert_eq!(listed.len(), 2);
}

/// AX-001: cut outputs, skills that change, modes that switch and denials, all in one conversation.
#[test]
fn one_conversation_has_all_four_groups_of_features() {
    const TURNS: usize = 300;
    let script = format!(
        "
replies:
  - bash: head -c 40000 /dev/zero | tr '\\0' x
  - bash: sudo reboot
  - say: one
{}",
        "  - say: two\n".repeat(TURNS)
    );
    let program = Program::playing(&script);
    let flags = ["--mode", "build", "--control", "autonomous", "--permission-profile", "trusted"];
    let mut chat = Open::start(&program, &flags);
    chat.say("work");
    assert_eq!(chat.hears(), "one");
    let skill = program.workspace().join(".windlass/skills/deploy");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: deploy\ndescription: Ships what was built.\n---\nShip.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    chat.say("/mode review");
    assert_eq!(chat.hears(), "review | autonomous | trusted | deep");
    // The skill is noticed a moment after it was written.
    let is_listed = (0..TURNS).any(|_| {
        chat.say("again");
        assert_eq!(chat.hears(), "two");
        let last = program.server.requests().last().unwrap().json();
        last.to_string().contains("Ships what was built.")
    });
    assert!(is_listed);
    assert_eq!(chat.ends(), 0);
    let last = program.server.requests().last().unwrap().json();
    let sent = last.to_string();
    for words in [
        "[OUTPUT TRUNCATED — full output saved to",
        "DENIED: This action is not permitted.",
        "Ships what was built.",
        "You work in mode `review`",
    ] {
        assert!(sent.contains(words), "{words}: {sent}");
    }
    assert!(!tools(&last).contains(&"write".to_owned()));
}

/// MS-004: a change is meant for the directory in which it is made.
#[test]
fn mode_never_changes_a_session_of_another_directory() {
    let program = talking();
    let elsewhere = tempfile::tempdir().unwrap();
    let there = |args: &[&str]| -> Ran {
        program.command(args).current_dir(elsewhere.path()).output().unwrap().into()
    };
    for args in [&["mode"][..], &["mode", "log"], &["mode", "set", "build"]] {
        let refused = there(args).expect(2);
        assert!(refused.stderr.contains("there is no session of `/"), "{refused:?}");
    }
    there(&["run", "count", "-q"]).expect(0);
    let set = there(&["mode", "set", "--permission-profile", "trusted"]).expect(0);
    let directory = elsewhere.path().canonicalize().unwrap();
    assert!(set.stderr.contains(&format!(" in {} “count”", directory.display())), "{set:?}");
    assert_eq!(program.mode_json()["permissionProfile"], "normal", "that of the conversation here");
    let session = program.windlass(&["sessions", "--json"]).expect(0).json_lines().pop().unwrap();
    let session = session["session_id"].as_str().unwrap();
    let set = there(&["mode", "set", "build", "--session", session]).expect(0);
    assert!(set.stderr.contains(&format!(" in {} “hello”", program.real_workspace())), "{set:?}");
    assert_eq!(program.mode_json()["workMode"], "build");
}
