//! Workers and tries by the runners of a person's configuration: what succeeds is merged, and what fails is said.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use windlass_testkit::{Answer, ModelServer, git};

use crate::program::Program;
use crate::runners::repository;

/// Puts a file, and ends with the block that every runner ends with.
const MAKER: &str = r#"#!/bin/bash
echo "made by $0" > made.txt
printf '```json\n{"success": true, "summary": "made it"}\n```\n'
"#;

/// Says that it did not succeed.
const QUITTER: &str = r#"#!/bin/bash
echo half > half.txt
printf '```json\n{"success": false, "summary": "no", "error": "the door is locked"}\n```\n'
"#;

/// A repository whose person has configured these programs as runners, at `trusted`.
fn with_runners(server: ModelServer, programs: &[(&str, &str)]) -> Program {
    let program = Program::with(server);
    repository(&program);
    let tools = program.data.path().join("tools");
    fs::create_dir_all(&tools).unwrap();
    let mut config = format!("[sandbox]\nread_only = [\"{}\"]\n", tools.display());
    for (name, script) in programs {
        let path = tools.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let table = format!("[runners.programs.{name}]\nprogram = \"{}\"\n", path.display());
        config.push_str(&table);
    }
    let directory = program.data.path().join(".config/windlass");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), config).unwrap();
    program
}

fn workflow(program: &Program, text: &str) {
    let directory = program.workspace().join(".windlass/workflows");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("w.yaml"), text).unwrap();
    git(program.workspace(), &["add", "."]);
    git(program.workspace(), &["commit", "-qm", "a workflow"]);
}

const TRUSTED: [&str; 2] = ["--permission-profile", "trusted"];

#[test]
fn a_configured_program_works_on_steps() {
    let program = with_runners(ModelServer::start_empty(), &[("aider", MAKER)]);
    let steps = "steps:\n  - {name: make, type: agent, runner: aider, spell: \"Make\\nit.\"}\n  - {name: land, type: merge}\n";
    workflow(&program, steps);
    program.windlass(&["workflow", "validate", "w"]).expect(0);
    program.windlass(&["workflow", "run", "w", TRUSTED[0], TRUSTED[1]]).expect(0);
    assert!(git(program.workspace(), &["show", "main:made.txt"]).ends_with("/aider"));
    workflow(&program, &steps.replace("aider", "aidr"));
    let refused = program.windlass(&["workflow", "validate", "w"]).expect(2).stderr;
    assert!(refused.contains("there is no runner `aidr`; did you mean `aider`?"), "{refused}");
}

/// Where nobody can be asked, a run says what its program waits for: it would stand still without a word.
#[test]
fn a_run_without_a_terminal_shows_what_its_program_asks() {
    let asker = r#"#!/bin/bash
read -p 'Overwrite a.txt? [y/N] ' answer
printf '```json\n{"success": true, "summary": "%s"}\n```\n' "$answer"
"#;
    let program = with_runners(ModelServer::start_empty(), &[("aider", asker)]);
    workflow(
        &program,
        "steps:\n  - {name: make, type: agent, runner: aider, spell: \"Make\\nit.\"}\n",
    );
    let mut run = program.start(&["workflow", "run", "w", TRUSTED[0], TRUSTED[1]]);
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    let answer = lines.find(|line| line.starts_with("Answer with: ")).unwrap();
    let id = answer.split_whitespace().find(|word| word.starts_with("q_")).unwrap();
    program.windlass(&["answer", id, "Allow"]).expect(0);
    let rest: Vec<String> = lines.collect();
    assert!(run.wait().unwrap().success(), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("Answer with")), "it is shown once: {rest:?}");
}

#[test]
fn a_persons_runner_wins_over_one_of_the_file() {
    let program = with_runners(ModelServer::start_empty(), &[("aider", MAKER)]);
    let text = "runners:\n  aider: {command: [bash, -c, exit 1]}\nsteps:\n  - {name: make, type: agent, runner: aider, spell: \"Make\\nit.\"}\n";
    workflow(&program, text);
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w", TRUSTED[0], TRUSTED[1]]).expect(0);
    workflow(&program, &text.replace("aider", "claude"));
    let refused = program.windlass(&["workflow", "validate", "w"]).expect(2).stderr;
    assert!(refused.contains("`claude` is built in"), "{refused}");
}

#[test]
fn a_run_of_workers_fails_when_all_of_them_fail() {
    let program = with_runners(ModelServer::start_empty(), &[("aider", QUITTER)]);
    let before = git(program.workspace(), &["rev-parse", "main"]);
    let run = ["parallel", "run", "--runner", "aider", "one", "two", TRUSTED[0], TRUSTED[1]];
    let said = program.windlass(&run).expect(1);
    let said = said.stdout + &said.stderr;
    assert!(said.contains("work.worker_1") && said.contains("work.worker_2"), "{said}");
    assert!(said.contains("the door is locked"), "{said}");
    assert_eq!(git(program.workspace(), &["rev-parse", "main"]), before);
}

#[test]
fn what_succeeded_is_merged_before_a_run_fails() {
    let script = "
match:
  - task: the first thing
    replies: [{write: {path: one.txt, content: one}}, {say: \"```json\\n{\\\"success\\\": true, \\\"summary\\\": \\\"1\\\"}\\n```\"}]
  - task: the second thing
    replies: [{say: I did not get there.}]
";
    let program = Program::playing(script);
    repository(&program);
    let run = ["parallel", "run", "do the first thing", "do the second thing"];
    let said = program.windlass(&run).expect(1);
    let said = said.stdout + &said.stderr;
    let failed = |worker: &str| said.contains(&format!("step `work.{worker}`: "));
    assert!(failed("worker_2") && !failed("worker_1"), "{said}");
    assert_eq!(git(program.workspace(), &["show", "main:one.txt"]), "one");
}

/// Writes its own words into a file that all write, or one of its own; it resolves no conflicts.
const CLASHER: &str = r#"#!/bin/bash
case "$1" in
  *"the third thing"*) echo three > three.txt;;
  *"the first thing"*) echo one > a.txt;;
  *"the second thing"*) echo two > a.txt;;
  *) exit 1;;
esac
printf '```json\n{"success": true, "summary": "made it"}\n```\n'
"#;

/// Three workers, two of which change the same line; stopped at the conflict.
fn clashing() -> Program {
    let program = with_runners(ModelServer::start_empty(), &[("clasher", CLASHER)]);
    let config = program.data.path().join(".config/windlass/config.toml");
    let text = fs::read_to_string(&config).unwrap() + "args = [\"{prompt}\"]\n";
    fs::write(config, text).unwrap();
    let tasks = ["do the first thing", "do the second thing", "do the third thing"];
    let run = ["parallel", "run", "--runner", "clasher", TRUSTED[0], TRUSTED[1]];
    let said = program.windlass(&[run.as_slice(), &tasks].concat()).expect(3);
    assert!(said.stderr.contains("changed the same places: a.txt"), "{}", said.stderr);
    program
}

fn workers_run(program: &Program) -> String {
    let shown = program.windlass(&["workflow", "status", "parallel", "--json"]).expect(0).stdout;
    let view: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(view["reason"], "merge_conflict", "{view}");
    view["run"].as_str().unwrap().to_owned()
}

/// WF-028, O-37: the decision comes to the inbox, and nothing that has no conflict is lost by it.
#[test]
fn a_conflict_between_workers_waits_for_a_person() {
    let program = clashing();
    let run = workers_run(&program);
    let before = git(program.workspace(), &["rev-parse", "main"]);
    let kept = git(program.workspace(), &["branch", "--list", "*worker_2", "--format=%(refname)"]);
    program.windlass(&["answer", &run, "Leave it out", "--resume"]).expect(0);
    let shown = |name: &str| git(program.workspace(), &["show", &format!("main:{name}")]);
    assert_eq!([shown("a.txt"), shown("three.txt")], ["one", "three"]);
    assert_ne!(git(program.workspace(), &["rev-parse", "main"]), before);
    let left = git(program.workspace(), &["show", &format!("{kept}:a.txt")]);
    assert_eq!(left, "two", "its own branch still has it");
}

/// The person resolves it in the worker's worktree.
#[test]
fn a_resolved_conflict_between_workers_is_joined() {
    let program = clashing();
    let run = workers_run(&program);
    let worktrees = git(program.workspace(), &["worktree", "list", "--porcelain"]);
    let of_second = |line: &&str| line.starts_with("worktree ") && line.ends_with("worker_2");
    let tree = worktrees.lines().find(of_second).unwrap().trim_start_matches("worktree ");
    let around = tree.strip_suffix("-worker_2").unwrap();
    let branch = git(std::path::Path::new(around), &["branch", "--show-current"]);
    let tree = std::path::Path::new(tree);
    git(tree, &["merge", "-q", "-X", "ours", &branch]);
    program.windlass(&["answer", &run, "Try again", "--resume"]).expect(0);
    let shown = |name: &str| git(program.workspace(), &["show", &format!("main:{name}")]);
    assert_eq!([shown("a.txt"), shown("three.txt")], ["two", "three"]);
}

#[test]
fn workers_whose_runner_is_not_installed_are_not_started() {
    let program = with_runners(ModelServer::start_empty(), &[]);
    let refused = program.windlass(&["parallel", "run", "--runner", "codex", "one"]).expect(2);
    assert!(refused.stderr.contains("npm install -g @openai/codex"), "{}", refused.stderr);
    let refused = program.windlass(&["parallel", "run", "--runner", "aidr", "one"]).expect(2);
    let words =
        "there is no runner `aidr`; `windlass`, `claude` and `codex` are built in, and `[runners";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    let runs = program.windlass(&["workflow", "status", "--json"]).expect(0).stdout;
    assert_eq!(runs.trim(), "[]");
}

#[test]
fn an_unknown_runner_is_answered_with_the_configured_ones() {
    let program = with_runners(ModelServer::start_empty(), &[("aider", MAKER), ("cat", QUITTER)]);
    for command in [vec!["run"], vec!["try", "--runner", "aider"]] {
        let args = [&["parallel"], command.as_slice(), &["--runner", "aidr", "one"]].concat();
        let refused = program.windlass(&args).expect(2);
        assert!(
            refused.stderr.contains("you have configured `aider`, `cat`"),
            "{}",
            refused.stderr
        );
    }
}

fn tries(program: &Program, code: i32) -> String {
    let arguments = ["parallel", "try", "make it", "--runner", "maker", "--runner", "quitter"];
    let with_check = ["--check", "cat made.txt", TRUSTED[0], TRUSTED[1]];
    let ran = program.windlass(&[arguments.as_slice(), &with_check].concat()).expect(code);
    ran.stdout + &ran.stderr
}

#[test]
fn only_a_try_that_succeeded_can_be_picked() {
    let runners = [("maker", MAKER), ("quitter", QUITTER)];
    let program = with_runners(ModelServer::start_empty(), &runners);
    tries(&program, 3);
    let run = program.task();
    let asked = program.windlass(&["inbox", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(asked["question"]["options"], serde_json::json!(["maker", "none"]), "{asked}");
    let context = asked["question"]["context"].as_str().unwrap();
    assert!(
        context.contains("maker: succeeded; cost unknown; maker_check_1 succeeded")
            && context.contains("quitter: failed: the door is locked")
            && context.contains("quitter_check_1 failed"),
        "{context}"
    );
    let refused = program.windlass(&["parallel", "pick", &run, "quitter"]).expect(2).stderr;
    assert!(refused.contains("it has maker, none"), "{refused}");
    let id = asked["question"]["id"].as_str().unwrap();
    let refused = program.windlass(&["answer", id, "quitter", "--resume"]).expect(2).stderr;
    assert!(refused.contains("choose one of: maker, none"), "{refused}");
    program.windlass(&["parallel", "pick", &run, "maker", "--resume"]).expect(0);
    assert!(git(program.workspace(), &["show", "main:made.txt"]).ends_with("/maker"));
}

#[test]
fn a_run_of_tries_fails_when_none_succeeded() {
    let runners = [("maker", QUITTER), ("quitter", QUITTER)];
    let program = with_runners(ModelServer::start_empty(), &runners);
    let said = tries(&program, 1);
    assert!(said.contains("maker: failed: the door is locked"), "{said}");
    let inbox = program.windlass(&["inbox", "--json"]).expect(0).stdout;
    assert_eq!(inbox.trim(), "", "{inbox}");
    let results: Value = serde_json::from_str(
        &program.windlass(&["parallel", "results", &program.task(), "--json"]).expect(0).stdout,
    )
    .unwrap();
    assert_eq!(results[0]["status"], "failed", "{results}");
    assert_eq!(results[0]["cost_usd"], Value::Null, "{results}");
}

/// Claude Code as far as a result needs it: each run costs five dollars.
const COSTLY: &str = r#"#!/bin/bash
read -r prompt
echo one >> made.txt
echo '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":5.0,"usage":{"input_tokens":100,"output_tokens":10},"result":"```json\n{\"success\": true, \"summary\": \"done\"}\n```"}'
"#;

fn three_steps(settings: &str) -> Program {
    let program = with_runners(ModelServer::start_empty(), &[("claude", COSTLY)]);
    let file = program.data.path().join(".config/windlass/config.toml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{config}{settings}")).unwrap();
    let step = |name| {
        format!("  - {{name: {name}, type: agent, runner: claude, spell: \"Make\\nit.\"}}\n")
    };
    let steps = ["first", "second", "third"].map(step).concat();
    workflow(&program, &format!("steps:\n{steps}  - {{name: land, type: merge}}\n"));
    program
}

/// What another program reports counts against the budget of its run, and is in every sum.
#[test]
fn a_program_begins_only_while_the_budget_lasts() {
    let program = three_steps("");
    let run = ["workflow", "run", "w", "--budget", "0.5", TRUSTED[0], TRUSTED[1]];
    let said = program.windlass(&run).expect(6);
    let status = program.windlass(&["workflow", "status", "w", "--json"]).expect(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["reason"], "budget", "{status}\n{}", said.stderr);
    let asked = program.windlass(&["inbox", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(asked["question"]["kind"], "budget", "{asked}");
    let id = asked["question"]["id"].as_str().unwrap();
    program.windlass(&["answer", id, "Raise by 100", "--resume"]).expect(0);
    assert_eq!(git(program.workspace(), &["show", "main:made.txt"]), "one\none\none");
    let run = status["run"].as_str().unwrap();
    let cost = program.windlass(&["cost", run, "--json"]).expect(0);
    let cost: Value = serde_json::from_str(&cost.stdout).unwrap();
    assert_eq!(cost["models"]["claude"]["cost_usd"], 15.0, "{cost}");
    assert_eq!(cost["total"]["replies"], 3, "{cost}");
    let all = program.windlass(&["cost"]).expect(0).stdout;
    assert!(all.contains(run) && all.contains("claude") && all.contains("$15.00"), "{all}");
}

#[test]
fn a_budget_that_nobody_raises_ends_the_step() {
    let program = three_steps("[agent]\nbudget_usd = 0.5\n");
    program.windlass(&["workflow", "run", "w", TRUSTED[0], TRUSTED[1]]).expect(6);
    let asked = program.windlass(&["inbox", "--json"]).expect(0).json_lines().remove(0);
    let id = asked["question"]["id"].as_str().unwrap();
    let ran = program.windlass(&["answer", id, "Stop", "--resume"]);
    assert!(ran.code != 0 && ran.stderr.contains("the cost budget was used up"), "{ran:?}");
}

#[test]
fn what_a_program_does_not_tell_is_unknown_and_not_nothing() {
    let program = with_runners(ModelServer::start_empty(), &[("aider", MAKER)]);
    program
        .windlass(&["parallel", "run", "--runner", "aider", "one", TRUSTED[0], TRUSTED[1]])
        .expect(0);
    let run = program.task();
    let cost = program.windlass(&["cost", &run]).expect(0).stdout;
    assert!(cost.contains("aider") && cost.contains("unknown"), "{cost}");
}

/// Its command line is read by the gate as that of a call, and a person sees it.
#[test]
fn the_command_of_a_program_is_shown_before_it_starts() {
    let program = with_runners(ModelServer::start_empty(), &[("aider", MAKER)]);
    workflow(
        &program,
        "steps:\n  - {name: make, type: agent, runner: aider, spell: \"Make\\nit.\"}\n",
    );
    program.windlass(&["workflow", "run", "w", "--permission-profile", "normal"]).expect(3);
    let asked = program.windlass(&["inbox", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(asked["question"]["question"], "May `aider` work in this worktree?");
    assert!(asked["question"]["context"].as_str().unwrap().contains("tools/aider"), "{asked}");
    let status = program.windlass(&["workflow", "status", "w", "--json"]).expect(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    let task = status["steps"][0]["task"].as_str().unwrap();
    let events = program.windlass(&["events", task, "--json"]).expect(0);
    assert!(events.kinds().contains(&"risk_check".to_owned()), "{}", events.stdout);
}

#[test]
fn what_is_wrong_with_workflows_is_printed_as_json() {
    let program = with_runners(ModelServer::start_empty(), &[]);
    workflow(&program, "steps:\n  - {name: a, type: agent, spell: missing}\n");
    let said = program.windlass(&["workflow", "validate", "w", "--json"]).expect(2).stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert!(said["errors"][0].as_str().unwrap().contains("there is no spell"), "{said}");
    workflow(&program, "steps:\n  - {name: a, type: script, command: 'echo {{.nope}}'}\n");
    let said = program.windlass(&["workflow", "render", "w", "--json"]).expect(2).stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert!(said[0]["error"].as_str().unwrap().contains("nope"), "{said}");
}

const PLAN: &str = r#"{
  "id": "shop",
  "phases": [
    {"id": "prepare", "tasks": []},
    {"id": "build", "tasks": [
      {"id": "first", "bestPatternPrompt": "Run `make one` for it."},
      {"id": "second", "file": "second.md", MORE}
    ]}
  ]
}"#;

fn put_plan(program: &Program, more: &str) {
    let top = program.workspace();
    fs::write(top.join("plan.json"), PLAN.replace("MORE", more)).unwrap();
    fs::write(top.join("second.md"), "---\ntitle: Second\n---\n\nRun `make two` for it.\n")
        .unwrap();
}

/// Nothing of a plan is left out without a word.
#[test]
fn workers_take_a_phase_that_holds_prompts_and_refuse_others() {
    let program = with_runners(ModelServer::start_empty(), &[("aider", MAKER)]);
    let phase = ["parallel", "run", "--runner", "aider", "--plan", "plan.json", "--phase", "build"];
    put_plan(&program, r#""dependsOn": ["first"], "risk": "high", "verification": ["make test"]"#);
    let refused = program.windlass(&phase).expect(2).stderr;
    let expected = "task `second` says `dependsOn`, `approval` or a high `risk`, `verification`";
    assert!(refused.contains(expected), "{refused}");
    assert!(refused.contains("windlass plan run"), "{refused}");
    put_plan(&program, r#""title": "Second""#);
    program.windlass(&[&phase[..], &TRUSTED, &["--no-merge"]].concat()).expect(0);
    let status = program.windlass(&["workflow", "status", "parallel", "--json"]).expect(0).stdout;
    assert!(status.contains("worker_2"), "{status}");
}

/// Prints its result and stays.
const LINGERER: &str = r#"#!/bin/bash
read -r prompt
echo '{"type":"result","subtype":"success","is_error":false,"result":"```json\n{\"success\": true, \"summary\": \"did it\"}\n```"}'
sleep 600
"#;

#[test]
fn what_a_person_should_know_of_a_program_is_in_its_output() {
    let program = with_runners(ModelServer::start_empty(), &[("claude", LINGERER)]);
    workflow(
        &program,
        "steps:\n  - {name: make, type: agent, runner: claude, spell: \"Make\\nit.\"}\n",
    );
    program.windlass(&["workflow", "run", "w", TRUSTED[0], TRUSTED[1]]).expect(0);
    let run = program.task();
    let logs = program.windlass(&["logs", &run]).expect(0).stdout;
    assert!(logs.contains("[note] it did not end after its result and was ended"), "{logs}");
}

/// A retry tries again what failed, keeps what succeeded, and merges what came of it.
#[test]
fn a_retried_run_of_workers_works_on_what_failed() {
    let script = "
match:
  - task: the first thing
    replies: [{write: {path: one.txt, content: one}}, {say: \"```json\\n{\\\"success\\\": true, \\\"summary\\\": \\\"1\\\"}\\n```\"}]
  - task: the second thing
    replies: [{say: I did not get there.}]
";
    let program = Program::playing(script);
    repository(&program);
    let run = ["parallel", "run", "do the first thing", "do the second thing"];
    let failed = program.windlass(&run).expect(1);
    let run = program.windlass(&["workflow", "status", "--json"]).expect(0).stdout;
    let run: Value = serde_json::from_str(&run).unwrap();
    let run = run[0]["run"].as_str().unwrap().to_owned();
    let retry = format!("windlass retry {run}");
    assert!(failed.stderr.contains(&retry), "{failed:?}");
    let refused = program.windlass(&["workflow", "resume", &run]).expect(2);
    assert!(refused.stderr.contains(&retry), "{refused:?}");
    let calls = program.server.request_count();
    let block = "```json\\n{\\\"success\\\": true, \\\"summary\\\": \\\"2\\\"}\\n```";
    program
        .server
        .next(Answer::script("write: {path: two.txt, content: two}"))
        .next(Answer::script(&format!("say: \"{block}\"")));
    program.windlass(&["retry", &run]).expect(0);
    assert_eq!(program.server.request_count(), calls + 2, "the first worker is not asked again");
    assert_eq!(git(program.workspace(), &["show", "main:one.txt"]), "one");
    assert_eq!(git(program.workspace(), &["show", "main:two.txt"]), "two");
}

/// The same for tries of which none could be taken; a try whose agent failed is not called a success.
#[test]
fn a_retry_makes_tries_again_when_none_succeeded() {
    let programs = [("aider", QUITTER), ("other", QUITTER)];
    let program = with_runners(ModelServer::start_empty(), &programs);
    let run = ["parallel", "try", "make it", "--runner", "aider", "--runner", "other"];
    let failed = program.windlass(&[&run[..], &TRUSTED].concat()).expect(1);
    assert!(failed.stderr.contains("✗ work.aider failed"), "{failed:?}");
    assert!(!failed.stderr.contains("✓ work.aider"), "{failed:?}");
    let run = program.windlass(&["workflow", "status", "--json"]).expect(0).stdout;
    let run: Value = serde_json::from_str(&run).unwrap();
    let maker = program.data.path().join("tools/aider");
    fs::write(&maker, MAKER).unwrap();
    let asked = program.windlass(&["retry", run[0]["run"].as_str().unwrap()]).expect(3);
    assert!(asked.stderr.contains("1. aider"), "{asked:?}");
}
