//! Commitments, roles and contracts from the command line.

use std::process::Stdio;

use crate::program::{Program, Ran};

fn put(program: &Program, name: &str, text: &str) {
    let path = program.workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn program() -> Program {
    Program::playing("replies: [{say: done}]")
}

/// Runs a command as somebody.
fn run_as(program: &Program, user: &str, args: &[&str]) -> Ran {
    program.command(args).env("USER", user).output().unwrap().into()
}

fn commit(program: &Program) -> String {
    let made =
        run_as(program, "ada", &["commitments", "commit", "use JWT", "--body", "in auth.rs"]);
    made.expect(0).stdout.trim().to_owned()
}

/// AX-061, AX-116, AX-117: the whole life, with evidence that is kept by hash.
#[test]
fn a_commitment_is_claimed_proven_submitted_and_approved() {
    let program = program();
    let id = commit(&program);
    assert!(id.starts_with("cmt_"), "{id}");
    let short = &id[id.len() - 6..];
    run_as(&program, "bob", &["commitments", "claim", short]).expect(0);
    put(&program, "test.log", "42 passed\n");
    let log = program.workspace().join("test.log").display().to_string();
    let capture =
        ["commitments", "capture", &id, "--type", "test_output", "--path", &log, "--json"];
    let kept = run_as(&program, "bob", &capture).expect(0).json_lines();
    assert_eq!(kept[0]["sha256"].as_str().unwrap().len(), 64);
    run_as(&program, "bob", &["commitments", "submit", &id, "--summary", "done"]).expect(0);
    let rejected = ["commitments", "reject", &id, "--reason", "no refresh", "--json"];
    let rejected = run_as(&program, "eve", &rejected).expect(0).json_lines();
    assert_eq!(
        (&rejected[0]["state"], &rejected[0]["verdict"]),
        (&"claimed".into(), &"rejected".into())
    );
    run_as(&program, "bob", &["commitments", "submit", &id]).expect(0);
    run_as(&program, "eve", &["commitments", "approve", &id]).expect(0);
    let listed = program.windlass(&["commitments", "list", "--json"]).expect(0).json_lines();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["claimed_by"]),
        (&"approved".into(), &"bob".into())
    );
    let shown = program.windlass(&["commitments", "show", &id]).expect(0).stdout;
    assert!(shown.contains("test_output") && shown.contains("approved by eve"), "{shown}");
    let evidence = kept[0]["id"].as_str().unwrap();
    let content = program.windlass(&["commitments", "show", &id, "--evidence", evidence]).expect(0);
    assert!(content.stdout.contains("42 passed"), "{content:?}");
}

/// What is refused says why, exits with 2 and changes nothing.
#[test]
fn two_claims_own_approval_and_missing_evidence_are_refused() {
    let program = program();
    let id = commit(&program);
    let list = || program.windlass(&["commitments", "list", "--json"]).expect(0).stdout;
    run_as(&program, "bob", &["commitments", "claim", &id]).expect(0);
    let before = list();
    let second = run_as(&program, "eve", &["commitments", "claim", &id]).expect(2);
    assert!(second.stderr.contains("is already claimed by `bob`"), "{second:?}");
    let unproven = run_as(&program, "bob", &["commitments", "submit", &id]).expect(2);
    assert!(
        unproven.stderr.contains("has no evidence") && unproven.stderr.contains("hint:"),
        "{unproven:?}"
    );
    let early = run_as(&program, "eve", &["commitments", "approve", &id]).expect(2);
    assert!(early.stderr.contains("is claimed, so it cannot be approved"), "{early:?}");
    let own = run_as(&program, "bob", &["commitments", "approve", &id]).expect(2);
    assert!(own.stderr.contains("who cannot judge it"), "{own:?}");
    assert!(own.stderr.contains("--role auditor"), "{own:?}");
    let empty = program.windlass(&["commitments", "commit", "  "]).expect(2);
    assert!(empty.stderr.contains("the title is empty"), "{empty:?}");
    let unknown = program.windlass(&["commitments", "show", "cmt_nope"]).expect(2);
    assert!(unknown.stderr.contains("there is no commitment"), "{unknown:?}");
    assert_eq!(list(), before);
}

/// AX-117: of several who claim at the same moment one gets it, and the others are told who.
#[test]
fn of_claims_at_the_same_time_one_wins() {
    let program = program();
    let id = commit(&program);
    let claim = |name: &String| {
        let mut command = program.command(&["commitments", "claim", &id]);
        command.env("USER", name).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let names: Vec<String> = (0..6).map(|number| format!("ann{number}")).collect();
    let started: Vec<_> = names.iter().map(claim).collect();
    let ended: Vec<Ran> =
        started.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    let winners = ended.iter().filter(|ran| ran.code == 0).count();
    assert_eq!(winners, 1, "{ended:?}");
    for lost in ended.iter().filter(|ran| ran.code != 0) {
        assert_eq!(lost.code, 2, "{lost:?}");
        assert!(lost.stderr.contains("is already claimed by `ann"), "{lost:?}");
    }
}

/// AX-036, AX-050, AX-051, AX-054, AX-057, AX-058, AX-072
#[test]
fn modes_show_prints_each_role_as_its_configuration() {
    let program = program();
    let modes = program.windlass(&["modes", "show", "--json"]).expect(0).json_lines();
    let names: Vec<_> = modes.iter().map(|mode| mode["mode"].as_str().unwrap()).collect();
    assert_eq!(names, ["architect", "executor", "auditor"]);
    for mode in &modes {
        let keys: Vec<_> = mode.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "allowed_tools",
                "denied_tools",
                "mode",
                "requires_commitment",
                "system_prompt_addition"
            ]
        );
    }
    let lists = |mode: usize, key: &str, tool: &str| {
        modes[mode][key].as_array().unwrap().iter().any(|one| one == tool)
    };
    for tool in ["read", "commit", "capture", "spawn_agent"] {
        assert!(lists(0, "allowed_tools", tool), "{tool}");
    }
    for tool in ["write", "edit", "bash"] {
        assert!(lists(0, "denied_tools", tool) && lists(1, "allowed_tools", tool), "{tool}");
    }
    for tool in ["approve", "reject", "capture", "bash(test)", "bash(lint)"] {
        assert!(lists(2, "allowed_tools", tool), "{tool}");
    }
    assert_eq!(modes[1]["requires_commitment"], true);
    let wrong = program.windlass(&["modes", "show", "captain"]).expect(2);
    assert!(wrong.stderr.contains("architect"), "{wrong:?}");
}

const CONTRACT: &str = r#"{
  "version": "2.0",
  "name": "door",
  "required_files": ["door.txt"],
  "checks": { "colour": "grep blue door.txt || { echo the door is not blue; exit 1; }" },
  "audit": true
}"#;

const WORK: &str = "
replies:
  - write: {path: door.txt, content: red}
  - say: painted
  - read: {path: door.txt}
  - write: {path: door.txt, content: blue}
  - say: painted blue
";

/// AX-008: unapproved checks are asked about once; then what fails is fixed, judged, and done with its results.
#[test]
fn a_contract_is_asked_about_verified_reviewed_and_reported() {
    let program = Program::playing(WORK);
    put(&program, ".windlass/completion.json", CONTRACT);
    let asked = program.windlass(&["run", "paint"]).expect(3);
    assert!(asked.stderr.contains("grep blue door.txt"), "{asked:?}");
    let task = program.task();
    let review = program.windlass(&["answer", &task, "y", "--resume"]).expect(3);
    assert!(review.stderr.contains("Approve the finished work?"), "{review:?}");
    let requests = program.server.requests();
    assert!(requests.iter().any(|one| one.json().to_string().contains("the door is not blue")));
    let shown = program.windlass(&["tasks", "--json"]).expect(0).stdout;
    assert!(shown.contains("reviewing"), "{shown}");
    let done = program.windlass(&["answer", &task, "approve", "--resume", "--json"]).expect(0);
    let contract = &done.result()["contract"];
    assert_eq!(
        (&contract["passed"], &contract["attempts"]),
        (&true.into(), &2.into()),
        "{contract}"
    );
    assert_eq!(contract["review"]["approved"], true);
}

/// A person who has approved the file is not asked.
#[test]
fn a_trusted_contract_runs_without_a_question() {
    let program =
        Program::playing("replies: [{write: {path: door.txt, content: blue}}, {say: painted}]");
    put(&program, ".claude/completion.json", r#"{"checks": {"colour": "sh check.sh"}}"#);
    put(&program, "check.sh", "grep -q blue door.txt\n");
    let shown = program.windlass(&["trust"]).expect(2).stdout;
    assert!(
        shown.contains("sh check.sh") && shown.contains("it runs, as they are now: check.sh"),
        "{shown}"
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    let done = program.windlass(&["run", "paint", "--json"]).expect(0);
    assert_eq!(done.result()["contract"]["passed"], true);
    // Another script is another approval.
    put(&program, "check.sh", "true\n");
    let shown = program.windlass(&["trust"]).expect(2).stdout;
    assert!(shown.contains("changed since you approved it: check.sh"), "{shown}");
}

/// An error names the file, the line and the place, before any task exists.
#[test]
fn a_contract_that_is_wrong_is_an_error_with_its_place() {
    for (text, place) in [
        ("{\n  \"required_files\": [\"../x\"]\n}", "line 2: `required_files[0]` names `../x`"),
        ("{\n  \"chekcs\": {}\n}", "did you mean `checks`?"),
        ("{\n  \"checks\": {\"docs\": true}\n}", "`checks.docs` has no command"),
        ("{", "not JSON"),
    ] {
        let program = program();
        put(&program, ".windlass/completion.json", text);
        let wrong = program.windlass(&["run", "paint"]).expect(2);
        assert!(
            wrong.stderr.contains(place) && wrong.stderr.contains("completion.json"),
            "{wrong:?}"
        );
        let tasks = program.windlass(&["tasks", "--json"]).expect(0).stdout;
        assert_eq!(tasks.trim(), "", "no row was written");
    }
}

/// AX-012
#[test]
fn the_rounds_of_the_contract_win_over_the_flag() {
    let program =
        Program::playing("replies: [{glob: '*'}, {glob: '*.a'}, {glob: '*.b'}, {say: done}]");
    put(&program, ".windlass/completion.json", r#"{"max_iterations": 1}"#);
    let failed = program.windlass(&["run", "look", "--max-iterations", "9"]).expect(1);
    assert!(failed.stderr.contains("its limit of 1 step"), "{failed:?}");
}

/// AX-056: `--role executor` needs a claim, and an auditor cannot write.
#[test]
fn a_run_begins_in_a_role() {
    let program = Program::playing("replies: [{write: {path: x.txt, content: y}}, {say: judged}]");
    let refused = program.windlass(&["run", "do it", "--role", "executor"]).expect(2);
    assert!(refused.stderr.contains("needs a claimed commitment"), "{refused:?}");
    program.windlass(&["run", "judge it", "--role", "auditor", "-q"]).expect(0);
    assert!(!program.workspace().join("x.txt").exists());
}

/// AX-056: neither handed-in work nor that of another project is worked on.
#[test]
fn an_executor_needs_a_claim_of_its_own_project() {
    let program = Program::playing("replies: [{say: done}]");
    let id = commit(&program);
    program.windlass(&["commitments", "claim", &id]).expect(0);
    let elsewhere = tempfile::tempdir().unwrap();
    let run = ["run", "do it", "--role", "executor", "-q"];
    let there = || Ran::from(program.command(&run).current_dir(elsewhere.path()).output().unwrap());
    let belongs = format!("`{id}` belongs to `{}`", program.real_workspace());
    assert!(there().expect(2).stderr.contains(&belongs));
    let capture = ["commitments", "capture", &id, "--type", "note", "--content", "it works"];
    program.windlass(&capture).expect(0);
    program.windlass(&run).expect(0);
    assert!(program.server.requests()[0].json().to_string().contains(&id));
    program.windlass(&["commitments", "submit", &id]).expect(0);
    let refused = program.windlass(&run).expect(2);
    assert!(refused.stderr.contains(&format!("`{id}` is submitted")), "{refused:?}");
    assert!(refused.stderr.contains("claim another"), "{refused:?}");
    let listed = program.windlass(&["commitments", "list"]).expect(0).stdout;
    assert!(listed.lines().next().unwrap().contains("PROJECT"), "{listed}");
}

/// MS-201, MS-227: the prompt is prepared without a model; the fast one answers where the user says so.
#[test]
fn a_reasoning_prompt_is_prepared_and_filled_only_where_it_is_wanted() {
    let program = Program::playing(
        "match: [{when: Answer each in one or two sentences, say: look at the log first}]\n\
         replies: [{bash: 'echo broken; exit 3'}, {say: it fails}]",
    );
    program.windlass(&["run", "repair the door", "-q"]).expect(0);
    let asked = program.server.request_count();
    let task = program.task();
    let prepared = program.windlass(&["assist", &task]).expect(0).stdout;
    for words in ["repair the door", "exit 3", "Which options are there"] {
        assert!(prepared.contains(words), "{words}: {prepared}");
    }
    assert!(!prepared.contains("look at the log first"));
    assert_eq!(program.server.request_count(), asked, "no model was asked");
    let mut command = program.command(&["assist", &task, "--json"]);
    let filled: Ran = command.env("AGENT_REASONING_ASSIST", "true").output().unwrap().into();
    assert_eq!(filled.expect(0).json_lines()[0]["answer"], "look at the log first");
}
