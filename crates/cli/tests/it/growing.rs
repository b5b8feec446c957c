//! Skills that grow: three tasks with the same detour, a proposal, and a fourth task that takes the short way.

use std::process::Command;

use serde_json::{Value, json};

use crate::interactive::Screen;
use crate::program::Program;

/// Without the skill the long way, with it the short one.
pub const SCRIPT: &str = "
match:
  - system: Use before you run
    replies: [{read_skill: learned-sh-run-tests-sh}, {bash: sh run-tests.sh}, {say: the short way}]
replies: [{bash: make test}, {bash: sh run-tests.sh}, {say: the long way}]
";

fn git(program: &Program, args: &[&str]) -> String {
    let ran = Command::new("git").args(args).current_dir(program.workspace()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

pub fn project(script: &str) -> Program {
    let program = Program::playing(script);
    git(&program, &["init", "-q"]);
    git(&program, &["config", "user.name", "Ada"]);
    git(&program, &["config", "user.email", "ada@example.com"]);
    std::fs::write(program.workspace().join("run-tests.sh"), "echo all passed\n").unwrap();
    std::fs::write(program.workspace().join("Makefile"), "all:\n\ttrue\n").unwrap();
    git(&program, &["add", "."]);
    git(&program, &["commit", "-qm", "first"]);
    program
}

fn proposals(program: &Program) -> Vec<Value> {
    program.windlass(&["skills", "proposals", "--json"]).expect(0).json_lines()
}

fn commands(program: &Program) -> Vec<String> {
    let events = program.windlass(&["events", &program.task(), "--json"]).expect(0).json_lines();
    let calls = events.iter().filter(|event| event["event_type"] == "tool_call");
    calls
        .filter_map(|call| call["data"]["arguments"]["command"].as_str().map(str::to_owned))
        .collect()
}

/// MS-162, MS-163, MS-165, MS-166, MS-167, MS-168, MS-215
#[test]
fn three_detours_become_a_skill_that_shortens_the_fourth_task() {
    let program = project(SCRIPT);
    for count in 1..=3 {
        assert!(proposals(&program).is_empty(), "after {} tasks", count - 1);
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    let found = proposals(&program);
    assert_eq!(found.len(), 1, "{found:?}");
    let first = &found[0]["evidence"][0];
    assert_eq!((&first["kind"], &first["what"]), (&"failure".into(), &"make test".into()));
    assert_eq!(first["detail"]["then"], "sh run-tests.sh");
    assert_eq!(first["tasks"].as_array().unwrap().len(), 3);
    assert!(crate::plans::count(&program, "skill_evidence") >= 3, "a row for each task");
    let inbox = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains("`make test` fails, `sh run-tests.sh` works"), "{inbox}");
    assert!(!program.workspace().join(".windlass/skills").exists(), "nothing is written unasked");

    let shown = program.windlass(&["skills", "proposals", "show", "1"]).expect(0).stdout;
    assert!(shown.contains("Run `sh run-tests.sh` instead."), "{shown}");
    let evidence = program.data.path().join("ran");
    let trap = format!("touch {}", evidence.display());
    for setting in ["core.fsmonitor", "filter.trap.clean", "gpg.program"] {
        git(&program, &["config", setting, &trap]);
    }
    program.windlass(&["skills", "proposals", "accept", "1", "--commit"]).expect(0);
    assert!(!evidence.exists(), "a program that the repository names ran");
    for setting in ["core.fsmonitor", "filter.trap.clean", "gpg.program"] {
        git(&program, &["config", "--unset", setting]);
    }
    let folder = ".windlass/skills/learned-sh-run-tests-sh";
    assert!(program.file(&format!("{folder}/SKILL.md")).contains("Do not run `make test`."));
    for name in ["task.md", "grader.sh", "work/run-tests.sh"] {
        program.file(&format!("{folder}/evals/case-1/{name}"));
    }
    assert_eq!(
        git(&program, &["log", "--format=%s", "-1"]),
        "Add the skill learned-sh-run-tests-sh\n"
    );
    assert_eq!(git(&program, &["status", "--short"]), "");

    program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    assert_eq!(commands(&program), ["sh run-tests.sh"]);
    assert_eq!(proposals(&program)[0]["status"], "accepted");
    program.windlass(&["skills", "proposals", "accept", "1"]).expect(2);
}

/// MS-163: a proposal is read in the inbox of the terminal, with what speaks for it.
#[test]
fn a_proposal_is_in_the_inbox_of_the_terminal() {
    let program = project(SCRIPT);
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    let mut screen = Screen::open(&program, &[]);
    screen.until("windlass chat");
    screen.says("/inbox");
    screen.until("Proposed skill `learned-sh-run-tests-sh`");
    screen.until("in 3 tasks: `make test` fails");
    screen.until("windlass skills proposals accept 1");
    screen.types("q");
    screen.until_gone("in 3 tasks");
    assert_eq!(screen.leave().1, 0);
}

/// MS-215: one proposal in seven days; and what was declined is not proposed again.
#[test]
fn a_second_proposal_waits_and_a_rejected_one_stays_rejected() {
    let detours = "
match:
  - task: count the lines
    replies: [{bash: sh count.sh}, {bash: wc -l run-tests.sh}, {say: counted}]
replies: [{bash: make test}, {bash: sh run-tests.sh}, {say: the long way}]
";
    let program = project(detours);
    for goal in ["run the tests", "count the lines"] {
        for _ in 0..3 {
            program.windlass(&["run", goal, "--quiet"]).expect(0);
        }
    }
    assert_eq!(proposals(&program).len(), 1, "the second waits for seven days");
    let age = |days: i64| {
        let made = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
        let sql = format!("UPDATE skill_proposals SET made_at = '{made:.9}' WHERE id = 1");
        crate::plans::database(&program).execute(&sql, []).unwrap();
        program.windlass(&["run", "count the lines", "--quiet"]).expect(0);
        proposals(&program).len()
    };
    assert_eq!((age(6), age(8)), (1, 2), "and comes after them");
    program.windlass(&["skills", "proposals", "reject", "1", "--reason", "we like make"]).expect(0);
    program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    let found = proposals(&program);
    assert_eq!((found.len(), &found[0]["status"]), (2, &"rejected".into()));
    for bad in [["show", "7"], ["accept", "7"], ["reject", "7"]] {
        let said = program.windlass(&["skills", "proposals", bad[0], bad[1]]).expect(2);
        assert!(said.stderr.contains("there is no proposal 7"), "{said:?}");
    }
}

/// MS-166: a skill that does not help is not written.
#[test]
fn a_skill_that_does_not_help_is_refused() {
    // With the skill or without it, the agent takes the long way.
    let stubborn = "replies: [{bash: make test}, {bash: sh run-tests.sh}, {say: the long way}]";
    let program = project(stubborn);
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    let said = program.windlass(&["skills", "proposals", "accept", "1"]).expect(2);
    assert!(said.stderr.contains("nothing was written: the skill does not help"), "{said:?}");
    assert!(!program.workspace().join(".windlass/skills").exists());
    assert_eq!(proposals(&program)[0]["status"], "open");
}

/// MS-163, MS-164: without the policy nothing is gathered; with it the fast model writes the skill.
#[test]
fn the_policy_says_whether_skills_are_proposed_and_who_writes_them() {
    let written = r#"{"description": "Use before you run the tests.", "instructions": "Run `sh run-tests.sh`.", "task": "run the tests", "grader": "grep -q 'make test' \"$WINDLASS_EVAL_TRACE\" && exit 1; exit 0"}"#;
    let script = format!(
        "match:\n  - system: You write a skill\n    say: '{}'\n{}",
        written.replace('\'', "''"),
        SCRIPT.trim_start().strip_prefix("match:\n").unwrap()
    );
    let program = project(&script);
    program.windlass(&["config", "set", "policy.skill_proposals", "off"]).expect(0);
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    assert!(proposals(&program).is_empty());
    program.windlass(&["config", "set", "policy.skill_proposals", "generate"]).expect(0);
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    program.windlass(&["skills", "proposals", "accept", "1"]).expect(0);
    let text = program.file(".windlass/skills/learned-sh-run-tests-sh/SKILL.md");
    assert!(text.contains("Use before you run the tests."), "{text}");
}

/// MS-164, MS-166: what a model writes is held to the same: a draft that is none, is not valid or proves nothing is refused.
#[test]
fn a_models_draft_that_does_not_hold_is_refused() {
    let draft = |description: &str, grader: &str| {
        let (instructions, task) = ("Run `sh run-tests.sh`.", "run the tests");
        json!({ "description": description, "instructions": instructions, "task": task, "grader": grader })
            .to_string()
    };
    for (written, why) in [
        (
            "I would rather not.".to_owned(),
            "the model's draft cannot be used: it is not a JSON object",
        ),
        (draft("", "exit 0"), "description"),
        (draft("Use before you run the tests.", "exit 0"), "nothing was written"),
        (draft("Use before you run the tests.", "exit 1"), "nothing was written"),
    ] {
        let script = format!(
            "match:\n  - system: You write a skill\n    say: '{}'\n{}",
            written.replace('\'', "''"),
            SCRIPT.trim_start().strip_prefix("match:\n").unwrap()
        );
        let program = project(&script);
        program.windlass(&["config", "set", "policy.skill_proposals", "generate"]).expect(0);
        for _ in 0..3 {
            program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
        }
        let said = program.windlass(&["skills", "proposals", "accept", "1"]).expect(2);
        assert!(said.stderr.contains(why), "{written}: {said:?}");
        assert!(!program.workspace().join(".windlass/skills").exists(), "{written}");
        assert_eq!(proposals(&program)[0]["status"], "open");
    }
}

/// AX-033
#[test]
fn a_scope_of_rules_counts_while_its_skill_is_followed() {
    let skill = "---\nname: release\ndescription: Release it.\ngenesis_scope: ci\n---\n\nRun it.\n";
    let script = "replies: [{bash: touch made}, {say: done}]";
    let run = |config: &str, goal: &str| {
        let program = project(script);
        let folder = program.workspace().join(".windlass/skills/release");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), skill).unwrap();
        let path = program.data.path().join(".config/windlass/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, config).unwrap();
        program.windlass(&["run", goal, "--quiet"]).expect(0);
        (program.workspace().join("made").exists(), program.last_message_sent())
    };
    let scope =
        "[policy.scopes.ci]\ndeny = [{ pattern = 'touch', reason = 'no new files in ci' }]\n";
    let (made, said) = run(scope, "/release now");
    assert!(!made && said.contains("no new files in ci"), "{said}");
    assert!(run(scope, "release now").0, "the rules count for who follows the skill");
    assert!(run("[policy.scopes.ci]\nallow = ['touch']\n", "/release now").0);
    let (made, said) = run("", "/release now");
    assert!(!made && said.contains("no such scope is defined"), "{said}");
    let program = project(script);
    let path = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "[policy.scopes.ci]\ndeny = ['touch']\n").unwrap();
    let said = program.windlass(&["run", "x"]).expect(2);
    assert!(said.stderr.contains("policy.scopes"), "{said:?}");
}
