//! Workflows through the program: runs in worktrees, questions, failures, merges, trust.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::Program;

/// An agent that writes a file and says so, for a prompt that holds `Add the login`.
const AGENT: &str = r#"
replies:
  - {turn: 0, task: Add the login, bash: 'pwd && git branch --show-current && echo login > login.txt'}
  - turn: 1
    task: Add the login
    say: |
      Done.

      ```json
      {"success": true, "summary": "added it", "outputs": {"file": "login.txt"}}
      ```
  - {turn: 0, task: Say nothing, say: I did it.}
  - turn: 0
    task: Give up
    say: |
      ```json
      {"success": false, "summary": "gave up", "error": "the door is locked"}
      ```
  - {turn: 0, task: Resolve the conflicts, bash: 'git merge -q main; printf "both\n" > a.txt; git add -A && git commit -qm resolved'}
  - turn: 1
    task: Resolve the conflicts
    say: |
      ```json
      {"success": true, "summary": "resolved"}
      ```
"#;

/// Runs a command as a person would; it must succeed.
pub fn by_hand(program: &Program, directory: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env("HOME", program.data.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository with one commit and a workflow of these steps.
pub fn repository(steps: &str) -> Program {
    played(AGENT, steps)
}

/// The same with agents that play another script.
pub fn played(script: &str, steps: &str) -> Program {
    let program = Program::playing(script);
    put(&program, "a.txt", "one\n");
    put(&program, ".windlass/workflows/w.yaml", &format!("steps:\n{steps}"));
    put(
        &program,
        ".windlass/spells/login.md",
        "Add the login for {{.bead.title}}. You are on {{.worktree.branch}}.\n",
    );
    here(
        &program,
        "git init -q -b main && git config user.name Ada && git config user.email ada@example.com",
    );
    here(&program, "git add -A && git commit -qm start");
    program
}

/// The same, with its commands approved.
pub fn approved(steps: &str) -> Program {
    let program = repository(steps);
    program.windlass(&["trust", "--yes"]).expect(0);
    program
}

pub fn put(program: &Program, name: &str, text: &str) {
    let path = program.workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub fn here(program: &Program, script: &str) -> String {
    by_hand(program, program.workspace(), script)
}

pub fn status(program: &Program) -> Value {
    let shown = program.windlass(&["workflow", "status", "w", "--json"]).expect(0);
    serde_json::from_str(&shown.stdout).unwrap()
}

pub fn run(program: &Program) -> String {
    status(program)["run"].as_str().unwrap().to_owned()
}

pub fn steps(program: &Program) -> Vec<String> {
    let view = status(program);
    let steps = view["steps"].as_array().unwrap().clone();
    steps
        .iter()
        .map(|step| {
            format!("{} {}", step["step"].as_str().unwrap(), step["status"].as_str().unwrap())
        })
        .collect()
}

pub fn worktree(program: &Program) -> PathBuf {
    PathBuf::from(status(program)["worktrees"][0]["path"].as_str().unwrap())
}

pub const WHOLE: &str = "
  - {name: login, type: agent, spell: login}
  - {name: test, type: script, command: 'cat {{.login.outputs.file}} && pwd', output: seen}
  - {name: land, type: merge, message: 'Login: {{.login.summary}}'}
";

/// WF-001, WF-003, WF-004, WF-005, WF-025, WF-041, WF-048, WF-049, WF-050, WF-059: the spell is rendered and wrapped, the agent
/// works in the run's worktree, and what it said is in the run.
#[test]
fn a_run_works_in_its_worktree_and_lands() {
    let program = approved(WHOLE);
    program.windlass(&["workflow", "run", "w", "the shop"]).expect(0);
    assert_eq!(steps(&program), ["login succeeded", "test succeeded", "land succeeded"]);
    let view = status(&program);
    let (branch, path) = (view["worktrees"][0]["branch"].as_str().unwrap(), worktree(&program));
    let first = program.server.requests()[0].json().to_string();
    assert!(
        first.contains(&format!("Add the login for the shop. You are on {branch}.")),
        "{first}"
    );
    assert!(first.contains("end your last message with one JSON code block"), "{first}");
    let second = program.server.requests()[1].json().to_string();
    assert!(second.contains(&path.display().to_string()) && second.contains(branch), "{second}");
    assert_eq!(view["steps"][0]["output"]["outputs"]["file"], "login.txt");
    assert_eq!(
        view["steps"][0]["output"]["changed_files"],
        serde_json::json!(["login.txt"]),
        "WF-026"
    );
    assert_eq!(
        here(&program, "cat login.txt && git log --format=%s"),
        "login\nLogin: added it\nstart\n"
    );
    assert_eq!(here(&program, "git status --porcelain && git worktree list | wc -l"), "1\n");
    assert!(!path.exists(), "nothing in it would be lost");
}

/// WF-051: the project's own system prompt takes the place of ours.
#[test]
fn a_projects_own_system_prompt_is_used() {
    let program = repository("  - {name: login, type: agent, spell: login}\n");
    put(
        &program,
        ".windlass/system-prompt.md",
        "House rules of {{.workflow.name}}.\n{{.spell_content}}\n",
    );
    program.windlass(&["workflow", "run", "w", "the shop"]).expect(0);
    let first = program.server.requests()[0].json().to_string();
    assert!(first.contains("House rules of w.\\nAdd the login for the shop."), "{first}");
}

/// WF-042, WF-043, WF-057: an inline spell needs no file; without the JSON block the step failed, and the run is blocked
/// with the reason (WF-028, WF-029).
#[test]
fn an_agent_without_an_output_block_fails_its_step() {
    let program = repository(
        "  - name: quiet\n    type: agent\n    spell: |\n      Say nothing.\n      Really.\n",
    );
    let ran = program.windlass(&["workflow", "run", "w"]).expect(1);
    assert!(
        ran.stderr.contains("step `quiet`: its last words hold no JSON code block"),
        "{}",
        ran.stderr
    );
    let view = status(&program);
    assert_eq!(
        (view["status"].as_str(), view["reason"].as_str()),
        (Some("blocked"), Some("error"))
    );
    assert!(worktree(&program).exists(), "its worktree is kept");
}

/// WF-028, WF-029, WF-062: an agent says itself that it could not do its step; the run is blocked with its words, or the
/// next step sees that it failed.
#[test]
fn an_agent_that_reports_a_failure_fails_its_step() {
    let step = "  - {name: open, type: agent, spell: \"Give up.\\nNow.\"}\n";
    let program = repository(step);
    let error = program.windlass(&["workflow", "run", "w"]).expect(1).stderr;
    assert!(error.contains("step `open`: the door is locked"), "{error}");
    let view = status(&program);
    assert_eq!((&view["status"], &view["reason"]), (&"blocked".into(), &"error".into()));
    assert!(view["detail"].as_str().unwrap().contains("the door is locked"), "{view}");
    let next = "  - {name: next, type: script, command: 'echo failed={{.previous.failed}} success={{.previous.success}} {{.open.error}}'}\n";
    let program = approved(&(step.replace("spell:", "on_fail: continue, spell:") + next));
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let printed = &status(&program)["steps"][1]["output"]["output"];
    assert_eq!(printed, "failed=true success=false the door is locked");
}

/// Unapproved commands: one question shows them all, and its answer is remembered.
#[test]
fn unapproved_commands_are_asked_about_once() {
    let program = repository(
        "
  - {name: one, type: script, command: 'echo first > one.txt'}
  - {name: two, type: script, command: 'echo second > two.txt'}
",
    );
    let ran = program.windlass(&["workflow", "run", "w"]).expect(3);
    assert!(
        ran.stderr.contains("echo first > one.txt") && ran.stderr.contains("echo second > two.txt"),
        "{}",
        ran.stderr
    );
    assert_eq!(status(&program)["steps"], serde_json::json!([]), "nothing has run");
    program.windlass(&["answer", &run(&program), "Approve", "--resume"]).expect(0);
    assert_eq!(steps(&program), ["one succeeded", "two succeeded"]);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    put(
        &program,
        ".windlass/workflows/w.yaml",
        "steps:\n  - {name: one, type: script, command: 'echo other'}\n",
    );
    program.windlass(&["workflow", "run", "w"]).expect(3);
}

/// Approved by `windlass trust` in the meantime: the question has its answer.
#[test]
fn commands_that_were_approved_elsewhere_are_not_asked_about() {
    let program = repository(
        "
  - {name: one, type: script, command: 'echo first > one.txt'}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(3);
    let shown = program.windlass(&["workflow", "status", "w"]).expect(0);
    assert!(shown.stdout.contains("no step has begun"), "{}", shown.stdout);
    assert!(shown.stderr.contains("Approve --resume"), "{}", shown.stderr);
    program.windlass(&["workflow", "resume", "w"]).expect(3);
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(steps(&program), ["one succeeded"]);
    assert_eq!(program.windlass(&["inbox", "--json"]).expect(0).stdout, "");
}

/// A step that fails stops the run; resumed, it is tried again, and steps that have ended are not (WF-061).
#[test]
fn a_resumed_run_tries_the_failed_step_again() {
    let program = approved(
        "
  - {name: once, type: script, command: 'echo once >> ran.txt'}
  - {name: flaky, type: script, command: 'test -e now.txt'}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(1);
    assert_eq!(steps(&program), ["once succeeded", "flaky failed"]);
    let tree = worktree(&program);
    std::fs::write(tree.join("now.txt"), "").unwrap();
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(steps(&program), ["once succeeded", "flaky failed", "flaky succeeded"]);
    assert_eq!(std::fs::read_to_string(tree.join("ran.txt")).unwrap(), "once\n");
}

/// WF-024, WF-061: a step that takes too long is ended, and the run is blocked by timeout.
#[test]
fn a_step_that_takes_too_long_blocks_the_run() {
    let program = approved("  - {name: slow, type: script, command: 'sleep 600', timeout: 1s}\n");
    program.windlass(&["workflow", "run", "w"]).expect(1);
    let view = status(&program);
    assert_eq!(
        (view["status"].as_str(), view["reason"].as_str()),
        (Some("blocked"), Some("timeout"))
    );
}

#[test]
fn a_question_of_a_workflow_is_in_the_inbox() {
    let program = approved(
        "
  - {name: colour, type: ask, question: 'Which colour for {{.bead.title}}?', options: [red, blue]}
  - {name: paint, type: script, command: 'echo {{.colour.answer}} > colour.txt'}
  - {name: land, type: merge}
",
    );
    let ran = program.windlass(&["workflow", "run", "w", "the door"]).expect(3);
    assert!(ran.stderr.contains("Which colour for the door?"), "{}", ran.stderr);
    assert!(program.windlass(&["inbox"]).expect(0).stdout.contains("Which colour for the door?"));
    program.windlass(&["answer", &run(&program), "blue", "--resume"]).expect(0);
    assert_eq!(program.file("colour.txt"), "blue\n");
}

const CHANGE: &str = "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge}
";

/// A checkout with changes of its own keeps them: nothing moves, and a person is asked.
#[test]
fn a_dirty_checkout_is_asked_about() {
    let program = approved(CHANGE);
    put(&program, "a.txt", "not committed\n");
    let ran = program.windlass(&["workflow", "run", "w"]).expect(3);
    assert!(ran.stderr.contains("it has changes that are not committed: a.txt"), "{}", ran.stderr);
    assert_eq!(program.file("a.txt"), "not committed\n");
    here(&program, "git checkout -q a.txt");
    program.windlass(&["answer", &run(&program), "Try again", "--resume"]).expect(0);
    assert_eq!(program.file("a.txt"), "mine\n");
}

/// Below `trusted` a person says whether a branch gets the work.
#[test]
fn a_merge_asks_below_trusted() {
    let program = approved(CHANGE);
    let args = ["workflow", "run", "w", "--permission-profile", "normal"];
    let ran = program.windlass(&args).expect(3);
    assert!(ran.stderr.contains("into `main`?"), "{}", ran.stderr);
    assert_eq!(program.file("a.txt"), "one\n");
    program.windlass(&["answer", &run(&program), "Merge", "--resume"]).expect(0);
    assert_eq!(program.file("a.txt"), "mine\n");
}

/// Conflicts go to the agent with the list of files; what it resolves is merged.
#[test]
fn conflicts_are_resolved_by_the_agent() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: wait, type: ask, question: Ready?}
  - {name: land, type: merge}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(3);
    here(&program, "echo theirs > a.txt && git commit -qam theirs");
    program.windlass(&["answer", &run(&program), "yes", "--resume"]).expect(0);
    let asked = program.server.requests()[0].json().to_string();
    assert!(asked.contains("- a.txt"), "{asked}");
    assert_eq!(program.file("a.txt"), "both\n");
}

/// What nobody resolves blocks the run with its reason, and the worktree is kept.
#[test]
fn an_unresolved_conflict_blocks_the_run() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: wait, type: ask, question: Ready?}
  - {name: land, type: merge, conflicts: ask}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(3);
    here(&program, "echo theirs > a.txt && git commit -qam theirs");
    let ran = program.windlass(&["answer", &run(&program), "yes", "--resume"]);
    assert!(ran.stderr.contains("changed the same places: a.txt"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Merge `main` there, resolve the conflicts"), "{}", ran.stderr);
    let view = status(&program);
    assert_eq!(
        (view["status"].as_str(), view["reason"].as_str()),
        (Some("blocked"), Some("merge_conflict"))
    );
    let tree = worktree(&program);
    by_hand(
        &program,
        &tree,
        "git merge -q main || true; echo ours > a.txt; git commit -qam resolved",
    );
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(program.file("a.txt"), "ours\n");
}

/// Gates see the merged tree; one that fails keeps the target where it is.
#[test]
fn a_failing_gate_keeps_the_target() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge, gates: ['grep -q other a.txt']}
",
    );
    let ran = program.windlass(&["workflow", "run", "w"]).expect(1);
    assert!(ran.stderr.contains("gate `grep -q other a.txt`: exit code 1"), "{}", ran.stderr);
    assert_eq!(here(&program, "git log --format=%s && git worktree list | wc -l"), "start\n2\n");
}

#[test]
fn a_denied_gate_is_reported_in_words_for_people() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge, gates: ['sudo true']}
",
    );
    let ran = program.windlass(&["workflow", "run", "w"]).expect(1);
    assert!(ran.stderr.contains("gate `sudo true`: denied under every profile"), "{}", ran.stderr);
    let for_the_model = ["DENIED: This action", "can_retry"];
    assert!(for_the_model.iter().all(|text| !ran.stderr.contains(text)), "{}", ran.stderr);
}

#[test]
fn parallel_steps_have_worktrees_of_their_own_and_are_joined() {
    let program = approved(
        "
  - name: both
    type: parallel
    steps:
      - {name: left, type: script, command: 'test ! -e right.txt && echo l > left.txt'}
      - {name: right, type: script, command: 'test ! -e left.txt && echo r > right.txt'}
  - {name: seen, type: script, command: 'cat left.txt right.txt'}
  - {name: land, type: merge}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(0);
    assert_eq!(here(&program, "cat left.txt right.txt && git worktree list | wc -l"), "l\nr\n1\n");
}

/// The set-up runs once in the new worktree, and its port is there for commands and templates.
#[test]
fn a_worktree_is_set_up_and_has_a_port() {
    let program = repository(
        "  - {name: use, type: script, command: 'cat ready && test {{.worktree.port}} = $PORT'}\n",
    );
    let text = program.file(".windlass/workflows/w.yaml");
    put(
        &program,
        ".windlass/workflows/w.yaml",
        &format!("worktree: {{setup: 'echo up >> ready', keep: true}}\n{text}"),
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    assert_eq!(std::fs::read_to_string(worktree(&program).join("ready")).unwrap(), "up\n");
}

/// Agents ran git against the main checkout by `git -C`, `--git-dir` and `GIT_DIR` elsewhere; here it is out of reach,
/// and so are hooks and configuration.
#[test]
fn a_step_cannot_reach_the_main_checkout() {
    let program = repository("");
    let main = program.real_workspace();
    let attempts = [
        format!("git -C {main} commit --allow-empty -qm evil"),
        format!("echo evil > {main}/a.txt"),
        format!("GIT_DIR={main}/.git git config core.fsmonitor evil"),
        format!("echo evil > {main}/.git/hooks/post-checkout"),
        format!("git --git-dir={main}/.git update-ref HEAD HEAD~0 && echo x > {main}/.git/HEAD"),
        format!("echo '[core] fsmonitor = evil' > {main}/.git/config.worktree"),
        "echo '[core] fsmonitor = evil' > $(git rev-parse --git-dir)/config.worktree".to_owned(),
        "echo $PWD/evil > $(git rev-parse --git-dir)/commondir".to_owned(),
        format!("mkdir -p {main}/.git/modules/evil"),
        format!("mkdir -p {main}/.git/info; echo '* filter=x' > {main}/.git/info/attributes"),
    ];
    // Scripts of the project, so that the gate does not ask first: the sandbox alone is what holds.
    let mut file = String::new();
    for (number, attempt) in attempts.iter().enumerate() {
        let planted = format!("echo $PWD/evil > {main}/.git/commondir");
        put(&program, &format!("s{number}.sh"), &format!("{planted}\n{attempt}"));
        file += &format!(
            "  - {{name: s{number}, type: script, command: sh ./s{number}.sh, on_fail: continue}}\n"
        );
    }
    put(&program, ".windlass/workflows/w.yaml", &format!("steps:\n{file}"));
    here(&program, "git add -A && git commit -qm scripts");
    program.windlass(&["trust", "--yes"]).expect(0);
    let config = program.file(".git/config");
    program.windlass(&["workflow", "run", "w", "--permission-profile", "trusted"]).expect(0);
    let steps = steps(&program);
    assert!(steps.iter().all(|step| step.ends_with("failed")), "{steps:?}");
    assert_eq!(program.file("a.txt"), "one\n");
    assert_eq!(
        (program.file(".git/config"), program.file(".git/HEAD")),
        (config, "ref: refs/heads/main\n".to_owned())
    );
    assert!(!program.workspace().join(".git/hooks/post-checkout").exists());
    assert!(!program.workspace().join(".git/commondir").exists(), "git would obey it");
    assert_eq!(here(&program, "git log --format=%s"), "scripts\nstart\n");
}

/// WF-040: what each step would be given, without running it.
#[test]
fn render_shows_every_prompt_and_runs_nothing() {
    let program = repository(WHOLE);
    let shown = program.windlass(&["workflow", "render", "w", "the shop", "--json"]).expect(0);
    let steps: Value = serde_json::from_str(&shown.stdout).unwrap();
    let prompt = steps[0]["text"].as_str().unwrap();
    assert!(
        prompt.contains("Add the login for the shop. You are on <worktree.branch>."),
        "{prompt}"
    );
    assert_eq!(steps[1]["text"], "cat '<login.outputs.file>' && pwd");
    assert_eq!(here(&program, "git worktree list | wc -l"), "1\n");
    assert!(program.server.requests().is_empty());
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    let program = repository("  - {name: a, type: agent, spell: nobody}\n");
    let error = program.windlass(&["workflow", "validate", "w"]).expect(2).stderr;
    assert!(
        error.contains("there is no spell `nobody`: `")
            && error.contains("/.windlass/spells/nobody.md` does not exist"),
        "{error}"
    );
    put(
        &program,
        ".windlass/workflows/w.yaml",
        "steps:\n  - {name: a, type: script, command: 'echo {{.nobody}}'}\n",
    );
    let error = program.windlass(&["workflow", "validate", "w"]).expect(2).stderr;
    assert!(error.contains("step `a`: the variable `nobody` is not set"), "{error}");
    put(
        &program,
        ".windlass/workflows/w.yaml",
        "steps:\n  - {name: a, type: scrip, command: ls}\n",
    );
    let error = program.windlass(&["workflow", "run", "w"]).expect(2).stderr;
    assert!(
        error.contains("w.yaml:2: there is no step type `scrip`; did you mean `script`?"),
        "{error}"
    );
    let error = program.windlass(&["workflow", "run", "nobody"]).expect(2).stderr;
    assert!(error.contains("there is no workflow `nobody`"), "{error}");
    assert!(program.windlass(&["workflow", "status", "--json"]).expect(0).stdout.starts_with("[]"));
}

#[test]
fn a_cancelled_run_keeps_its_worktree() {
    let program = approved(
        "
  - {name: work, type: script, command: 'echo precious > new.txt'}
  - {name: wait, type: ask, question: Ready?}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(3);
    program.windlass(&["workflow", "cancel", "w", "--reason", "enough"]).expect(0);
    assert_eq!(status(&program)["status"], "cancelled");
    let tree = worktree(&program);
    assert_eq!(std::fs::read_to_string(tree.join("new.txt")).unwrap(), "precious\n");
    let place = tree.display().to_string();
    let seen = program.windlass(&["exec", "--workspace", &place, "cat new.txt"]).expect(0);
    assert!(seen.stdout.contains("precious"), "a person steps into it: {}", seen.stdout);
}

#[test]
fn a_directory_without_git_is_named() {
    let program = Program::playing(AGENT);
    put(
        &program,
        ".windlass/workflows/w.yaml",
        "steps:\n  - {name: a, type: script, command: ls}\n",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    let error = program.windlass(&["workflow", "run", "w"]).expect(1).stderr;
    assert!(error.contains("is not in a git repository; run `git init`"), "{error}");
    put(
        &program,
        ".windlass/workflows/w.yaml",
        "worktree: false\nsteps:\n  - {name: a, type: script, command: 'echo here > made.txt'}\n",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    assert_eq!(program.file("made.txt"), "here\n");
}
