//! Ten faults: `doctor` names each, `fix` repairs those that need no model, and nothing unsafe is dispatched.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::Value;

use crate::program::{Program, Ran};

fn program() -> Program {
    let program = Program::playing("replies: [{bash: echo hello}, {say: done}]");
    program.windlass(&["run", "greet", "-q"]).expect(0);
    program
}

fn database(program: &Program) -> Connection {
    Connection::open(program.data_directory().join("windlass.db")).unwrap()
}

/// What `doctor` says of one check.
fn check(ran: &Ran, name: &str) -> Value {
    let lines = ran.json_lines();
    let found = lines.into_iter().find(|line| line["check"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {ran:?}"))
}

fn doctor(program: &Program) -> Ran {
    program.windlass(&["doctor", "--json"])
}

/// `doctor` finds it, names the fix and changes nothing; `fix` repairs it; then all is well.
fn found_and_fixed(program: &Program, name: &str, words: &str) {
    let requests = program.server.requests().len();
    for _ in 0..2 {
        let found = check(&doctor(program), name);
        assert_eq!(found["status"], "wrong", "{found}");
        assert!(found.to_string().contains(words), "{found}");
        assert!(found["fix"].is_string() && found["duration_ms"].is_number(), "{found}");
    }
    let fixed = program.windlass(&["doctor", "fix", "--json"]).expect(0);
    assert_eq!(check(&fixed, name)["status"], "fixed", "{fixed:?}");
    assert_eq!(check(&doctor(program), name)["status"], "ok");
    assert_eq!(program.server.requests().len(), requests, "no model was asked");
}

/// MS-034, MS-035
#[test]
fn a_lock_that_nobody_holds_is_removed() {
    let program = program();
    let lock = program.data_directory().join("locks/task_00000000000000000000000001.lock");
    fs::write(&lock, "1 1\n").unwrap();
    found_and_fixed(&program, "locks", "task_00000000000000000000000001.lock");
    assert!(!lock.exists());
}

/// MS-043
#[test]
fn a_projection_that_lies_is_rebuilt() {
    let program = program();
    database(&program).execute("UPDATE tasks SET goal = 'another'", ()).unwrap();
    found_and_fixed(&program, "store", "`tasks`");
    assert!(program.windlass(&["tasks"]).expect(0).stdout.contains("greet"));
}

#[test]
fn a_missing_helper_is_written_again() {
    let program = program();
    let helper = fs::read_dir(program.data_directory().join("helper")).unwrap();
    let mut files = helper.map(|file| file.unwrap().path());
    let is_helper =
        |path: &PathBuf| path.file_name().unwrap().as_encoded_bytes().starts_with(b"helper-");
    fs::write(files.find(is_helper).unwrap(), "not a program").unwrap();
    found_and_fixed(&program, "helper", "is not the helper of this program");
    program.windlass(&["run", "again", "-q"]).expect(0);
}

/// MS-041
#[test]
fn a_schema_that_drifted_is_restored() {
    let program = program();
    let names = database(&program)
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
        .unwrap()
        .query_map((), |row| row.get::<_, String>(0))
        .unwrap()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    database(&program).execute_batch(&format!("DROP INDEX \"{}\"", names[0])).unwrap();
    database(&program).execute_batch("DROP TABLE deliverables").unwrap();
    found_and_fixed(&program, "schema", &names[0]);
    program.windlass(&["run", "again", "-q"]).expect(0);
}

#[test]
fn a_git_lock_that_was_left_behind_is_removed() {
    let program = program();
    fs::create_dir(program.workspace().join(".git")).unwrap();
    fs::write(program.workspace().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let lock = program.workspace().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    assert_eq!(check(&doctor(&program), "git")["status"], "ok", "a git may be at work");
    let made = fs::metadata(&lock).unwrap().modified().unwrap();
    let old = made - std::time::Duration::from_secs(3_600);
    fs::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
    found_and_fixed(&program, "git", "index.lock");
}

/// What `fix` cannot repair is named, and heal is offered.
fn found_and_left(program: &Program, name: &str, words: &str) {
    let found = check(&doctor(program), name);
    assert_eq!(found["status"], "wrong", "{found}");
    assert!(found.to_string().contains(words), "{found}");
    let fixed = program.windlass(&["doctor", "fix", "--json"]).expect(1);
    assert_eq!(check(&fixed, name)["status"], "wrong", "{fixed:?}");
}

#[test]
fn a_corrupt_skill_is_named_and_heal_is_offered() {
    let program = program();
    let skill = program.workspace().join(".windlass/skills/paint");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: [\n---\n").unwrap();
    found_and_left(&program, "skills", "paint");
    let page = program.windlass(&["doctor"]).expect(1);
    assert!(page.stderr.contains("`windlass doctor heal` has an agent look"), "{page:?}");
}

#[test]
fn a_dead_model_server_is_named_and_no_agent_is_sent() {
    let program = program();
    let dead = |args: &[&str]| -> Ran {
        let mut command = program.command(args);
        // Nothing listens there.
        command.env("LITELLM_API_BASE", "http://127.0.0.1:9");
        command.output().unwrap().into()
    };
    let found = check(&dead(&["doctor", "--json"]), "model");
    assert_eq!(found["status"], "wrong", "{found}");
    assert!(found["message"].as_str().unwrap().contains("cannot be reached"), "{found}");
    let refused = dead(&["doctor", "heal"]).expect(2);
    assert!(refused.stderr.contains("no agent can work while `model` is wrong"), "{refused:?}");
}

#[test]
fn a_broken_configuration_is_named_and_stops_dispatch() {
    let program = program();
    let directory = program.data.path().join(".config/windlass");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), "[agent\n").unwrap();
    found_and_left(&program, "config", "not valid TOML");
    program.windlass(&["run", "again"]).expect(2);
}

/// A later program has migrated the database.
#[test]
fn a_database_of_a_later_program_is_named_and_nothing_is_dispatched() {
    let program = program();
    database(&program).pragma_update(None, "user_version", 9_999).unwrap();
    let found = check(&doctor(&program).expect(1), "store");
    assert!(found.to_string().contains("9999"), "{found}");
    program.windlass(&["run", "again"]).expect(2);
}

/// MS-040, MS-042, MS-044, MS-224: a task whose row is wrong is not started, and says what to do.
#[test]
fn the_gate_parks_a_task_whose_state_is_corrupt() {
    let program = parked();
    database(&program).execute("UPDATE tasks SET work_mode = 'review'", ()).unwrap();
    let task = program.task();
    let refused = program.windlass(&["resume", &task]).expect(2);
    assert!(refused.stderr.contains("and its journal says"), "{refused:?}");
    assert!(refused.stderr.contains("windlass doctor fix"), "{refused:?}");
    program.windlass(&["doctor", "fix"]).expect(0);
    program.windlass(&["resume", &task, "-q"]).expect(0);
}

/// MS-039, MS-202: it is repaired without a person, with the reason, and continues with the axes it had.
#[test]
fn the_gate_repairs_by_itself_where_that_is_wanted() {
    let program = parked();
    database(&program).execute("UPDATE tasks SET work_mode = 'review'", ()).unwrap();
    let task = program.task();
    program.windlass(&["config", "set", "policy.auto_repair", "auto"]).expect(0);
    program.windlass(&["resume", &task, "-q"]).expect(0);
    let events = program.windlass(&["events", &task]).expect(0).stdout;
    let changes: Vec<_> = events.lines().filter(|line| line.contains("mode_changed")).collect();
    assert_eq!(changes.len(), 2, "{events}");
    let there = "build | autonomous | trusted | smart → repair | autonomous | normal | smart";
    assert!(changes[0].contains(there), "{events}");
    let log = program.windlass(&["events", &task, "--json"]).expect(0).json_lines();
    let first = log.iter().find(|event| event["event_type"] == "mode_changed").unwrap();
    let reason = first["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("health check `store`: the tables say"), "{reason}");
    assert_eq!(first["data"]["source"], "repair");
    assert_eq!(check(&doctor(&program), "store")["status"], "ok");
}

/// MS-038, MS-040: what needs an agent is repaired by it, and then it works on the goal.
#[test]
fn what_the_gate_cannot_fix_is_given_to_the_agent_first() {
    let program = Program::playing("replies: [{bash: git init}, {say: repaired}, {say: painted}]");
    program.windlass(&["config", "set", "policy.auto_repair", "auto"]).expect(0);
    program.windlass(&["permissions", "allow", "git init"]).expect(0);
    fs::create_dir_all(program.workspace().join(".git/objects")).unwrap();
    let ran = program.windlass(&["run", "paint", "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "painted");
    let requests = program.server.requests();
    let first = requests[0].json().to_string();
    assert!(
        first.contains("You work in mode `repair`") && first.contains("has no HEAD"),
        "{first}"
    );
    let last = requests[2].json().to_string();
    assert!(last.contains("You work in mode `build`"), "{last}");
    assert!(last.contains("The health check finds nothing wrong"), "{last}");
}

/// MS-044: it is logged, and work continues where that is safe.
#[test]
fn log_only_continues_where_that_is_safe() {
    let program = Program::playing("replies: [{say: painted}]");
    program.windlass(&["config", "set", "policy.auto_repair", "log-only"]).expect(0);
    fs::create_dir_all(program.workspace().join(".git/objects")).unwrap();
    program.windlass(&["run", "paint", "-q"]).expect(0);
    program.windlass(&["config", "set", "policy.auto_repair", "ask"]).expect(0);
    let parked = program.windlass(&["run", "paint", "-q"]).expect(2);
    assert!(parked.stderr.contains("has no HEAD"), "{parked:?}");
}

/// MS-044, MS-224: at a surface with a person the gate asks; what they let pass is not asked about again.
#[test]
fn the_gate_asks_the_person_of_a_conversation() {
    let program = Program::playing("replies: [{say: painted}, {say: again}]");
    fs::create_dir_all(program.workspace().join(".git/objects")).unwrap();
    let asked = program.chat(&[], "paint\n").expect(3);
    assert!(asked.stderr.contains("The health check found something wrong."), "{asked:?}");
    assert!(asked.stderr.contains("has no HEAD") && asked.stderr.contains("2. Continue"));
    assert!(program.server.requests().is_empty(), "nothing is dispatched meanwhile");
    let inbox = program.windlass(&["inbox", "--json"]).expect(0).json_lines();
    assert_eq!(inbox[0]["question"]["kind"], "repair");
    let other = program.windlass(&["answer", &program.task(), "perhaps"]).expect(2);
    assert!(other.stderr.contains("Repair"), "{other:?}");
    let ran = program.chat(&["--continue"], "n\nonce more\n").expect(0);
    assert_eq!(ran.stdout, "painted\nagain\n");
    // Once: the question that still waited, shown before it was answered.
    assert_eq!(ran.stderr.matches("health check").count(), 1, "{ran:?}");
    assert_eq!(program.mode_json()["workMode"], "chat");
}

/// MS-039, MS-044: who says so has it repaired first, and then gets what they asked for.
#[test]
fn what_the_gate_is_set_to_repair_is_repaired_before_the_work() {
    let program = Program::playing("replies: [{bash: git init}, {say: repaired}, {say: painted}]");
    program.windlass(&["permissions", "allow", "git init"]).expect(0);
    fs::create_dir_all(program.workspace().join(".git/objects")).unwrap();
    let ran = program.chat(&["--mode", "build", "--control", "autonomous"], "paint\nRepair\n");
    assert!(ran.expect(0).stdout.ends_with("painted\n"));
    let requests = program.server.requests();
    let first = requests[0].json().to_string();
    assert!(first.contains("You work in mode `repair`"), "{first}");
    let last = requests.last().unwrap().json().to_string();
    assert!(last.contains("You work in mode `build`"), "{last}");
    let events = program.windlass(&["events", &program.task()]).expect(0).stdout;
    assert!(events.contains("question_answered"), "{events}");
}

/// A question whose cause is gone is closed, and nobody has to answer it.
#[test]
fn a_question_of_the_gate_is_closed_when_its_cause_is_gone() {
    let program = Program::playing("replies: [{say: painted}]");
    fs::create_dir_all(program.workspace().join(".git/objects")).unwrap();
    program.chat(&[], "paint\n").expect(3);
    fs::write(program.workspace().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    program.windlass(&["resume", &program.task(), "-q"]).expect(4);
    assert_eq!(program.server.requests().len(), 1);
    assert_eq!(program.windlass(&["inbox", "--json"]).expect(0).stdout, "");
}

/// MS-041: a service whose program was replaced starts nothing more, and `doctor` names it.
#[test]
fn a_process_whose_program_was_replaced_is_named_and_starts_nothing() {
    let program = Program::playing("replies: [{say: painted}]");
    let installed = program.data.path().join("windlass");
    fs::copy(env!("CARGO_BIN_EXE_windlass"), &installed).unwrap();
    let usual = program.command(&["serve"]);
    let mut serve = std::process::Command::new(&installed);
    serve.args(["serve"]).current_dir(program.workspace()).env_clear();
    serve.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut serve = serve.stdout(std::process::Stdio::null()).spawn().unwrap();
    let named = || check(&doctor(&program), "processes");
    until(|| named()["message"] == "1 process works in the data directory");
    fs::remove_file(&installed).unwrap();
    let found = named();
    assert_eq!(found["status"], "wrong", "{found}");
    assert!(found["details"].to_string().contains(&serve.id().to_string()), "{found}");
    let task = program.windlass(&["run", "paint", "--detach"]).expect(0).stdout;
    let shown = || program.windlass(&["show", task.trim()]).stdout;
    until(|| shown().contains("paused"));
    assert!(program.server.requests().is_empty());
    serve.kill().unwrap();
    serve.wait().unwrap();
}

fn until(holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("it never came to hold");
}

/// In a file system of its own, so that nothing else is filled.
#[test]
fn a_full_disk_is_named() {
    let program = Program::playing("replies: [{say: painted}]");
    let data = program.data_directory();
    fs::create_dir(&data).unwrap();
    let script = "mount -t tmpfs -o size=8m none \"$WINDLASS_DATA\" && \"$0\" doctor --json > /dev/null; \
                  cd \"$WINDLASS_DATA\" && cat /dev/zero > filler 2> /dev/null; truncate -s -500K filler; \
                  \"$0\" doctor --json";
    let usual = program.command(&[]);
    let mut alone = std::process::Command::new("unshare");
    alone.args(["--map-root-user", "--mount", "sh", "-c", script]);
    alone.arg(env!("CARGO_BIN_EXE_windlass")).current_dir(program.workspace()).env_clear();
    alone.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran: Ran = alone.output().unwrap().into();
    let found = check(&ran, "disk");
    assert_eq!((&found["status"], &found["blocks_dispatch"]), (&"wrong".into(), &true.into()));
    assert!(found.to_string().contains("no space is left for the journal"), "{found}");
}

/// A task that waits for an answer.
fn parked() -> Program {
    let program = Program::playing("replies: [{ask_user: {question: colour?}}, {say: painted}]");
    program.windlass(&["run", "paint", "-q"]).expect(3);
    program.windlass(&["answer", &program.task(), "blue"]).expect(0);
    program
}

/// MS-036: an agent in mode `repair` gets the report, and the end says how it went.
#[test]
fn heal_sends_an_agent_with_the_report() {
    let fixed = "---\\nname: paint\\ndescription: paints doors\\n---\\nPaint.\\n";
    let script = format!(
        "replies:\n  - read: {{path: .windlass/skills/paint/SKILL.md}}\n  - write: {{path: .windlass/skills/paint/SKILL.md, content: \"{fixed}\"}}\n  - say: repaired\n"
    );
    let program = Program::playing(&script);
    let skill = program.workspace().join(".windlass/skills/paint");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: [\n---\n").unwrap();
    // Skills change an agent's rules, so a person is asked.
    let asked = program.windlass(&["doctor", "heal"]).expect(3);
    assert!(asked.stderr.contains("repair ended blocked"), "{asked:?}");
    let first = program.server.requests()[0].json().to_string();
    assert!(first.contains("You work in mode `repair`"), "{first}");
    assert!(first.contains("`windlass doctor` found these problems"), "{first}");
    program.windlass(&["answer", &program.task(), "y", "--resume", "-q"]).expect(0);
    program.windlass(&["doctor"]).expect(0);
}
