//! What runs of workflows leave: worktrees that are kept, runs that nobody works on, and removing what can go.

use std::path::Path;

use serde_json::{Value, json};
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::Program;
use crate::workflows::{approved, by_hand, here, put, repository, run, status, steps, worktree};

const FILE: &str = ".windlass/workflows/w.yaml";

const ASKS: &str = "
  - {name: work, type: script, command: 'echo precious > new.txt'}
  - {name: wait, type: ask, question: Ready?}
";

/// Every worktree that is left, as `workflow prune` has it.
fn pruned(program: &Program, flags: &[&str]) -> Vec<Value> {
    let args = [&["workflow", "prune", "--json"], flags].concat();
    serde_json::from_str(&program.windlass(&args).expect(0).stdout).unwrap()
}

fn standing(program: &Program) -> Vec<(String, String)> {
    let shown = program.windlass(&["workflow", "status", "--json"]).expect(0).stdout;
    let rows: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "status"), text(row, "standing"))).collect()
}

/// A dry run says what would become of each worktree and why; nothing that is nowhere else is removed, and what is saved
/// is on its branch.
#[test]
fn prune_says_why_each_worktree_goes_or_stays() {
    let program = approved(ASKS);
    let unfinished = {
        program.windlass(&["workflow", "run", "w"]).expect(3);
        pruned(&program, &["--dry-run"])
    };
    assert_eq!(
        (&unfinished[0]["fate"], &unfinished[0]["why"]),
        (&json!("keep"), &json!("its run is blocked"))
    );
    program.windlass(&["workflow", "cancel", "w"]).expect(0);
    let (left, kept_run) = (worktree(&program), run(&program));
    assert_eq!(status(&program)["steps"][1]["status"], "stopped", "its run has ended without it");
    put(
        &program,
        FILE,
        "worktree: {keep: true}\nsteps:\n  - {name: look, type: script, command: 'true'}\n",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let empty = worktree(&program);
    let stray = left.parent().unwrap().join("stray");
    std::fs::create_dir(&stray).unwrap();

    let shown = program.windlass(&["workflow", "prune", "--dry-run"]).expect(0);
    for words in [
        "nothing was committed in it",
        "not committed: new.txt",
        "no run knows it",
        "1 worktree would be removed, 2 kept",
    ] {
        assert!(shown.stdout.contains(words), "{words}\nis not in\n{}", shown.stdout);
    }
    assert!(left.exists() && empty.exists(), "a dry run removes nothing");
    let retention = program.windlass(&["prune", "--older-than", "0h"]).expect(0);
    assert!(
        retention.stderr.contains(&format!("{kept_run}: its work is in a git worktree")),
        "{}",
        retention.stderr
    );
    assert!(
        program
            .windlass(&["workflow", "prune"])
            .expect(0)
            .stdout
            .contains("1 worktree removed, 2 kept")
    );
    assert!(left.exists() && stray.exists() && !empty.exists());
    assert_eq!(std::fs::read_to_string(left.join("new.txt")).unwrap(), "precious\n");

    let saved = pruned(&program, &["--save", &kept_run]);
    assert_eq!(saved.len(), 1, "only those of the run that is named: {saved:?}");
    assert_eq!(saved[0]["fate"], "save");
    assert!(!left.exists());
    let branch = saved[0]["branch"].as_str().unwrap();
    assert_eq!(here(&program, &format!("git show {branch}:new.txt")), "precious\n");
    assert_eq!(pruned(&program, &[]).len(), 1, "only the one that no run knows");
    let shown = program.windlass(&["workflow", "status", &kept_run]).expect(0).stdout;
    assert!(
        shown.contains("worktree removed") && shown.contains("its work is on branch"),
        "{shown}"
    );
    let error = program.windlass(&["workflow", "prune", "nobody"]).expect(2).stderr;
    assert!(error.contains("nobody"), "{error}");
}

/// One that waits, one that is paused, one that nobody works on although somebody should, one that was not cleaned up.
#[test]
fn runs_that_need_different_hands_are_shown_apart() {
    let never = Gate::new();
    let server = ModelServer::start_empty();
    let gate = never.clone();
    server.answer_with(move |_| Some(Answer::script("say: late").gated(0, &gate)));
    let program = Program::with(server);
    put(&program, FILE, "steps:\n  - {name: think, type: agent, spell: \"Think.\\nHard.\"}\n");
    put(&program, ".windlass/workflows/asks.yaml", &format!("steps:\n{ASKS}"));
    here(
        &program,
        "git init -q -b main; git config user.name Ada; git config user.email a@b.c; git add -A; git commit -qm start",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    let mut child = program.start(&["workflow", "run", "w"]);
    program.server.requests_reach_blocking(1);
    assert_eq!(standing(&program), [("running".to_owned(), "working".to_owned())]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(standing(&program), [("running".to_owned(), "stalled".to_owned())]);
    let shown = program.windlass(&["workflow", "status", "w"]).expect(0).stdout;
    assert!(shown.contains("stalled: nobody works on it"), "{shown}");
    assert!(shown.contains("worker think: not at work, heartbeat "), "{shown}");
    let workers = program.windlass(&["parallel", "status"]).expect(0).stdout;
    assert!(workers.contains(" (silent)"), "its process is gone: {workers}");
    assert_eq!(status(&program)["worktrees"][0]["standing"], "stalled");

    program.windlass(&["workflow", "run", "asks"]).expect(3);
    let ids = program.windlass(&["workflow", "status", "asks", "--json"]).expect(0).stdout;
    let asks: Value = serde_json::from_str(&ids).unwrap();
    assert_eq!(standing(&program)[0], ("blocked".to_owned(), "waiting".to_owned()));
    program.windlass(&["pause", asks["run"].as_str().unwrap()]).expect(0);
    assert_eq!(standing(&program)[0], ("paused".to_owned(), "paused".to_owned()));
    program.windlass(&["workflow", "cancel", "asks"]).expect(0);
    assert_eq!(standing(&program)[0], ("cancelled".to_owned(), "left_over".to_owned()));
    let shown = program.windlass(&["workflow", "status"]).expect(0).stdout;
    for words in ["stalled", "not cleaned up"] {
        assert!(shown.contains(words), "{words}\nis not in\n{shown}");
    }
    never.open();
}

/// What an agent has committed and nobody has merged keeps its worktree, although a checkpoint has it too.
#[test]
fn unmerged_commits_of_an_agent_keep_their_worktree() {
    let program = repository("  - {name: login, type: agent, spell: login}\n");
    program.windlass(&["workflow", "run", "w", "the shop"]).expect(0);
    let view = status(&program);
    let tree = &view["worktrees"][0];
    assert_eq!(
        (&tree["state"], &view["standing"]),
        (&json!("kept"), &json!("left_over")),
        "{view}"
    );
    let checkpoint = view["steps"][0]["checkpoint_ref"].as_str().unwrap();
    assert_eq!(here(&program, &format!("git show {checkpoint}:login.txt")), "login\n", "MS-133");
    by_hand(
        &program,
        Path::new(tree["path"].as_str().unwrap()),
        "git add -A && git commit -qm login",
    );
    let entry = &pruned(&program, &[])[0];
    assert!(entry["why"].as_str().unwrap().contains("1 commit of"), "{entry}");
    here(&program, &format!("git merge -q {}", tree["branch"].as_str().unwrap()));
    assert_eq!(pruned(&program, &[])[0]["why"], "its work is merged");
    assert_eq!(here(&program, "git worktree list | wc -l; git branch | wc -l"), "1\n1\n");
}

/// A person whose git has no name yet, on a machine where nobody has one, can still have work committed and merged.
#[test]
fn work_is_committed_without_an_identity() {
    let program = approved(
        "  - {name: change, type: script, command: 'echo mine > a.txt'}\n  - {name: land, type: merge}\n",
    );
    here(&program, "git config --unset user.name && git config --unset user.email");
    let mut command = program.command(&["workflow", "run", "w"]);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(
        here(&program, "git log -1 --format='%an <%ae> %cn' main"),
        "windlass <windlass@localhost> windlass\n"
    );
    assert_eq!(program.file("a.txt"), "mine\n");
}

/// What a person allows beforehand in a project holds in the worktrees of its runs, and nowhere else.
#[test]
fn standing_rules_of_a_project_hold_in_its_worktrees() {
    let program = approved("  - {name: sign, type: script, command: 'chmod +x a.txt'}\n");
    let args = ["workflow", "run", "w"];
    program.windlass(&args).expect(3);
    let asked = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(asked.contains("chmod +x a.txt"), "{asked}");
    program.windlass(&["workflow", "cancel", "w"]).expect(0);
    program.windlass(&["permissions", "allow", "--project", "chmod", "+x"]).expect(0);
    program.windlass(&args).expect(0);
}

/// WF-009, WF-027: after the work of a run has succeeded it is merging, for as long as its gates run.
#[test]
fn a_run_is_merging_while_its_gates_run() {
    let program = approved(
        "  - {name: change, type: script, command: 'echo mine > a.txt'}\n  - {name: land, type: merge, gates: ['until test -e go; do sleep 0.1; done']}\n",
    );
    let mut child = program.start(&["workflow", "run", "w"]);
    let begun = std::time::Instant::now();
    let view = loop {
        let shown = program.windlass(&["workflow", "status", "w", "--json"]);
        let view: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        if view["activity"] == "merging" {
            break view;
        }
        assert!(begun.elapsed().as_secs() < 60, "{view}");
        assert!(child.try_wait().unwrap().is_none(), "{view}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!(view["standing"], "working", "{view}");
    // The checkout in which the gates run may still be in the making.
    let place = format!("{}-gates/go", view["worktrees"][0]["path"].as_str().unwrap());
    while std::fs::write(&place, "").is_err() {
        assert!(begun.elapsed().as_secs() < 60, "{place}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(program.file("a.txt"), "mine\n");
    assert_eq!(status(&program)["activity"], Value::Null);
}

/// Its process was killed, and the file lets the command run again.
#[test]
fn an_attempt_with_a_later_one_beside_it_was_interrupted() {
    let program = approved(
        "
  - {name: work, type: script, rerun: true, command: '[ -e begun ] || { touch begun; sleep 600; }'}
",
    );
    let mut running = program.start(&["workflow", "run", "w"]);
    let has_begun = || {
        let shown = program.windlass(&["workflow", "status", "w", "--json"]).stdout;
        let view: Value = serde_json::from_str(&shown).unwrap_or_default();
        let tree = view["worktrees"][0]["path"].as_str();
        tree.is_some_and(|tree| Path::new(tree).join("begun").exists())
    };
    while !has_begun() {
        assert!(running.try_wait().unwrap().is_none(), "the run has ended");
    }
    running.kill().unwrap();
    running.wait().unwrap();
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(steps(&program), ["work interrupted", "work succeeded"]);
}

/// What git has is shown without our own keys, as everything is.
#[test]
fn the_diff_of_a_run_holds_no_key() {
    const KEY: &str = "sk-test-0123456789abcdef";
    let steps = "  - {name: change, type: script, command: \"printf 'k: sk-test-%s\\n' 0123456789abcdef > a.txt\"}
  - {name: wait, type: ask, question: Ready?}
";
    let program = approved(steps);
    program.windlass(&["workflow", "run", "w"]).expect(3);
    let id = run(&program);
    let mut command = program.command(&["diff", id.as_str()]);
    let output = command.env("LITELLM_API_KEY", KEY).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("+k: [redacted: LITELLM_API_KEY]"), "{output:?}");
    assert!(!shown.contains(KEY), "{shown}");
}

/// Scripts and other programs change files without a call of ours.
#[test]
fn the_files_of_a_run_are_those_that_git_has() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt; echo new > b.txt'}
  - {name: wait, type: ask, question: Ready?}
  - {name: land, type: merge}
",
    );
    let diff = |flags: &[&str]| {
        let id = run(&program);
        program.windlass(&[&["diff", id.as_str()], flags].concat()).expect(0).stdout
    };
    program.windlass(&["workflow", "run", "w"]).expect(3);
    let not_merged = diff(&["--stat"]);
    assert!(not_merged.contains("2 files changed"), "{not_merged}");
    let ran = program.windlass(&["answer", &run(&program), "yes", "--resume"]).expect(0);
    assert!(ran.stderr.contains("2 files changed; see: windlass diff task_"), "{ran:?}");
    assert_eq!(diff(&["--stat"]), not_merged, "merged, they are the same");
    let patch = diff(&[]);
    put(&program, "run.patch", &patch);
    here(&program, "git apply -R run.patch");
    assert_eq!(here(&program, "cat a.txt; ls b.txt 2>/dev/null || true"), "one\n", "{patch}");
}

#[test]
fn a_change_that_reaches_two_branches_counts_once() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo new > b.txt'}
  - {name: aside, type: merge, target: side}
  - {name: land, type: merge}
",
    );
    here(&program, "git branch side");
    program.windlass(&["workflow", "run", "w"]).expect(0);
    assert_eq!(here(&program, "git show side:b.txt main:b.txt"), "new\nnew\n");
    let stat = program.windlass(&["diff", &run(&program), "--stat"]).expect(0).stdout;
    assert!(stat.contains("b.txt +1 -0"), "{stat}");
}
