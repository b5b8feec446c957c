//! What broke elsewhere in workflows and worktrees, and does not here: `docs/workflows.md` has the list.

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::Program;
use crate::terminal::{Terminal, remains};
use crate::workflows::{approved, by_hand, here, put, repository, run, status, steps, worktree};

const FILE: &str = ".windlass/workflows/w.yaml";

/// Everything that is wrong, in every file, at once.
#[test]
fn validate_reports_every_error_of_every_file() {
    let program = repository("  - {name: a, type: scrip}\n  - {name: b, type: loop, steps: []}\n");
    put(
        &program,
        ".windlass/workflows/x.yaml",
        "steps:\n  - {name: a, type: agent, spell: gone}\n",
    );
    put(&program, ".windlass/system-prompt.md", "Nothing of the spell.\n");
    let error = program.windlass(&["workflow", "validate"]).expect(2).stderr;
    for wrong in [
        "w.yaml:2: there is no step type `scrip`; did you mean `script`?",
        "w.yaml:3: loop `b` has no bound: say with `max` how many rounds it may have",
        "w.yaml:3: `steps` of `b` is empty",
        "there is no spell `gone`",
        "system-prompt.md: it must hold `{{.spell_content}}`",
    ] {
        assert!(error.contains(wrong), "{wrong}\nis not in\n{error}");
    }
}

/// A list names what is wrong with a file in a line, and a check of several files also names those that are right.
#[test]
fn broken_workflows_are_listed_beside_those_that_work() {
    let program = repository("  - {name: a, type: scrip}\n  - {name: b, type: loop, steps: []}\n");
    put(
        &program,
        ".windlass/workflows/good.yaml",
        "steps:\n  - {name: a, type: ask, question: Ready?}\n",
    );
    let listed = program.windlass(&["workflow", "list"]).expect(0).stdout;
    let wrong =
        "broken: line 2: there is no step type `scrip`; did you mean `script`? (and 2 more)";
    assert!(listed.contains(wrong), "{listed}");
    let checked = program.windlass(&["workflow", "validate"]).expect(2);
    assert!(checked.stdout.contains("good.yaml: valid, 1 step"), "{}", checked.stdout);
    let none = program.windlass(&["workflow", "status"]).expect(0);
    assert!(none.stderr.contains("no workflow has been run"), "{}", none.stderr);
    assert_eq!(none.stdout, "");
}

const LOOP: &str = "
  - name: fix
    type: loop
    max: 1
    until: .test.success
    steps:
      - {name: test, type: script, command: 'echo round >> rounds.txt; test $(wc -l < rounds.txt) = 3', on_fail: continue}
  - {name: land, type: merge}
";

#[test]
fn a_loop_continues_with_the_rounds_that_are_added() {
    let program = approved(LOOP);
    program.windlass(&["workflow", "run", "w"]).expect(1);
    let asked = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(asked.contains("Loop `fix` has used up its rounds"), "{asked}");
    program.windlass(&["workflow", "resume", "w", "--rounds", "0"]).expect(2);
    program.windlass(&["workflow", "resume", "w", "--rounds", "1"]).expect(1);
    program.windlass(&["answer", &run(&program), "1 more round", "--resume"]).expect(0);
    assert_eq!(program.file("rounds.txt"), "round\nround\nround\n");
    let error = program.windlass(&["workflow", "resume", "w", "--rounds", "1"]).expect(2).stderr;
    assert!(error.contains("no loop of"), "{error}");
}

/// What a person has approved in the checkout needs no second word in a worktree, while it is the same.
#[test]
fn a_worktree_is_trusted_as_its_checkout_is() {
    let program = repository("  - {name: a, type: script, command: 'true'}\n");
    let text = program.file(FILE);
    put(&program, FILE, &format!("worktree: {{keep: true}}\n{text}"));
    put(
        &program,
        ".mcp.json",
        r#"{"mcpServers": {"s": {"command": "python3", "args": ["srv.py"]}}}"#,
    );
    put(&program, "srv.py", "print('one')\n");
    here(&program, "git add -A && git commit -qm server");
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let tree = worktree(&program);
    let place = tree.display().to_string();
    let awaits = |place: &str| {
        let listed = program.windlass(&["mcp", "list", "--json", "--workspace", place]).expect(0);
        let servers = listed.json_lines();
        let server = servers.iter().find(|server| server["name"] == "s");
        !server.expect("the server is listed")["awaits_approval"].is_null()
    };
    assert!(!awaits(&place), "nobody is asked again");
    by_hand(&program, &tree, "echo 'print(2)' > srv.py");
    assert!(awaits(&place), "what an agent changed is not what was approved");
    let clone = tempfile::tempdir().unwrap();
    by_hand(&program, clone.path(), &format!("git clone -q {} c", program.real_workspace()));
    assert!(awaits(&clone.path().join("c").display().to_string()), "a clone is another directory");
}

/// A set-up that failed keeps the prompt: with the next attempt it runs again, and the step works.
#[test]
fn a_set_up_that_failed_runs_again() {
    let program = repository("  - {name: use, type: script, command: 'cat ready.txt'}\n");
    let text = program.file(FILE);
    put(
        &program,
        FILE,
        &format!(
            "worktree: {{setup: 'test -e key.txt && echo up > ready.txt', keep: true}}\n{text}"
        ),
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    let error = program.windlass(&["workflow", "run", "w"]).expect(1).stderr;
    assert!(error.contains("the set-up of its worktree: exit code 1"), "{error}");
    let first = worktree(&program);
    std::fs::write(first.join("key.txt"), "").unwrap();
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(worktree(&program), first, "programs keep their history by its path");
    assert_eq!(steps(&program).last().unwrap(), "use succeeded");
}

/// What a person says to a run is accepted while its worktree is set up, and read by the agent at work, or the next.
#[test]
fn what_is_said_to_a_run_reaches_its_agent() {
    let (gate, server) = (Gate::new(), ModelServer::start_empty());
    let waits = gate.clone();
    server.answer_with(move |request| {
        Some(match request.replies {
            0 => Answer::script("bash: 'true'").gated(0, &waits),
            _ => Answer::script(
                "say: |\n  ```json\n  {\"success\": true, \"summary\": \"done\"}\n  ```",
            ),
        })
    });
    let program = Program::with(server);
    put(
        &program,
        FILE,
        "worktree: {setup: 'until test -e go; do sleep 0.1; done'}\nsteps:\n  - {name: a, type: agent, spell: \"Think.\\nHard.\"}\n",
    );
    put(&program, ".gitignore", "go\n");
    here(
        &program,
        "git init -q -b main; git config user.name Ada; git config user.email a@b.c; git add -A; git commit -qm start",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    let mut child = program.start(&["workflow", "run", "w"]);
    let begun = std::time::Instant::now();
    let tree = loop {
        let shown = program.windlass(&["workflow", "status", "w", "--json"]).stdout;
        let view: Value = serde_json::from_str(&shown).unwrap_or_default();
        let path = view["worktrees"][0]["path"].as_str().map(std::path::PathBuf::from);
        if let Some(path) = path.filter(|_| view["worktrees"][0]["state"] == "preparing") {
            break path;
        }
        assert!(begun.elapsed().as_secs() < 60, "{view}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let run = run(&program);
    program.windlass(&["send", &run, "use tabs"]).expect(0);
    std::fs::write(tree.join("go"), "").unwrap();
    program.server.requests_reach_blocking(1);
    program.windlass(&["send", &run, "and be quick"]).expect(0);
    gate.open();
    assert!(child.wait().unwrap().success());
    let requests = program.server.requests();
    assert!(requests[0].json().to_string().contains("use tabs"), "{}", requests[0].json());
    assert!(requests[1].json().to_string().contains("and be quick"), "{}", requests[1].json());
    let error = program.windlass(&["send", &run, "too late"]).expect(2).stderr;
    assert!(error.contains("is a run of a workflow and has ended"), "{error}");
}

/// What a clean-up removes does not keep a worktree.
#[test]
fn a_clean_up_runs_before_a_worktree_goes() {
    let program = repository("  - {name: build, type: script, command: 'echo big > build.tmp'}\n");
    let text = program.file(FILE);
    put(&program, FILE, &format!("worktree: {{cleanup: sh ./sweep.sh}}\n{text}"));
    put(&program, "sweep.sh", "rm build.tmp\n");
    here(&program, "git add -A && git commit -qm sweep");
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w", "--permission-profile", "trusted"]).expect(0);
    assert_eq!(status(&program)["worktrees"][0]["state"], "removed", "{}", status(&program));
    assert!(!worktree(&program).exists());
}

/// A test that is not steady does not hold up the queue; one that fails twice does.
#[test]
fn a_gate_that_fails_once_is_run_once_more() {
    let program = approved(
        "
  - {name: change, type: script, command: 'echo mine > a.txt'}
  - {name: land, type: merge, gates: ['test -e second.txt || { touch second.txt; exit 1; }']}
",
    );
    program.windlass(&["workflow", "run", "w"]).expect(0);
    assert_eq!(program.file("a.txt"), "mine\n");
}

/// Two changes that are right by themselves and broken together: whichever comes second is named and left out, the target
/// is never broken, and those behind it in the queue are merged.
#[test]
fn no_broken_commit_is_ever_on_the_target() {
    let names = ["one", "left", "right", "two"];
    let work = names.map(|name| {
        format!("      - {{name: {name}, type: script, command: 'echo x > {name}.txt'}}\n")
    });
    let merges = names.map(|name| {
        format!(
            "      - {{name: m_{name}, type: merge, from: {name}, gates: ['! test -e left.txt || ! test -e right.txt']}}\n"
        )
    });
    let program = approved(&format!(
        "  - name: all\n    type: parallel\n    join: false\n    steps:\n{}  - name: land\n    type: parallel\n    join: false\n    steps:\n{}",
        work.concat(),
        merges.concat()
    ));
    let error = program.windlass(&["workflow", "run", "w"]).expect(1).stderr;
    let files = here(&program, "git ls-tree --name-only main");
    assert!(files.contains("one.txt") && files.contains("two.txt"), "{files}");
    let [left, right] = ["left.txt", "right.txt"].map(|name| files.contains(name));
    assert!(left != right, "one of both: {files}");
    let out = if left { "right" } else { "left" };
    assert!(error.contains(&format!("step `land.m_{out}`: gate `! test")), "{error}");
    let broken = "for c in $(git rev-list main); do git ls-tree --name-only $c | grep -c -e left.txt -e right.txt; done | grep 2 || true";
    assert_eq!(here(&program, broken), "", "no commit has both");
    let kept = here(
        &program,
        &format!(
            "git show $(git branch --list --format='%(refname)' 'windlass/*-{out}'):{out}.txt"
        ),
    );
    assert_eq!(kept, "x\n", "its branch stays");
}

#[test]
fn a_detached_head_is_named_before_anything_runs() {
    let program = approved(
        "  - {name: change, type: script, command: 'echo x > x.txt'}\n  - {name: land, type: merge}\n",
    );
    here(&program, "git checkout -q --detach");
    let error = program.windlass(&["workflow", "run", "w"]).expect(1).stderr;
    assert!(error.contains("the head is detached: name the branch with `target`"), "{error}");
    assert_eq!(status(&program)["steps"], serde_json::json!([]));
    here(&program, "git checkout -q main");
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert_eq!(program.file("x.txt"), "x\n");
}

/// A worktree begins at a commit: what is not committed stays where it is, and a person reads so.
#[test]
fn files_that_are_not_committed_are_named_at_the_start() {
    let program = approved("  - {name: see, type: script, command: 'cat a.txt'}\n");
    put(&program, "a.txt", "not committed\n");
    let ran = program.windlass(&["workflow", "run", "w"]).expect(0);
    assert!(
        ran.stderr.contains("not in the worktree, because not committed: 1 file (a.txt)"),
        "{}",
        ran.stderr
    );
    assert_eq!(status(&program)["steps"][0]["output"]["output"], "one");
    assert_eq!(program.file("a.txt"), "not committed\n");
}

/// Which steps and commands led to a commit is found where the commit is.
#[test]
fn the_record_of_a_run_travels_with_its_commit() {
    let program = approved(
        "  - {name: change, type: script, command: 'echo mine > a.txt'}\n  - {name: land, type: merge}\n",
    );
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let note = here(&program, "git notes --ref=windlass show main");
    assert!(note.contains(&format!("workflow w, run {}", run(&program))), "{note}");
    assert!(
        note.contains("change script succeeded") && note.contains("echo mine > a.txt"),
        "{note}"
    );
}

/// A program that works on a step of a foreground run asks where the person is.
#[test]
fn a_question_of_a_program_is_asked_at_the_terminal() {
    let program = repository(
        "  - name: deploy\n    type: agent\n    runner: asker\n    spell: |\n      Deploy.\n      Now.\n",
    );
    let text = program.file(FILE);
    let asker = "runners:\n  asker: {command: [bash, ./asker.sh]}\n";
    put(&program, FILE, &format!("{asker}{text}"));
    put(
        &program,
        "asker.sh",
        "read -p 'Run the deployment? [y/N] ' answer\necho \"$answer\" > answer.txt\ncat out.md\n",
    );
    put(
        &program,
        "out.md",
        "Deployed.\n\n```json\n{\"success\": true, \"summary\": \"it is live\"}\n```\n",
    );
    here(&program, "git add -A && git commit -qm asker");
    program.windlass(&["trust", "--yes"]).expect(0);
    let mut command = program.command(&["workflow", "run", "w", "--permission-profile", "trusted"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command, 100);
    terminal.until_after("Run the deployment?", "> ");
    terminal.types("y\n");
    let written = terminal.end().0;
    let shown = remains(&written);
    assert!(shown.contains("a number, or your own words"), "no file is asked about: {shown}");
    let answer = std::fs::read_to_string(worktree(&program).join("answer.txt"));
    assert_eq!(answer.ok().as_deref(), Some("y\n"), "{}", remains(&written));
    let step = &status(&program)["steps"][0];
    assert_eq!(step["output"]["summary"], "it is live", "{step}\n{}", remains(&written));
}

/// Twelve workers at once in a repository of some size; three of them change the same line, and everything is merged one
/// after the other.
#[test]
fn many_worktrees_are_merged_through_the_queue_with_conflicts() {
    const WORKERS: usize = 12;
    let server = ModelServer::start_empty();
    server.answer_with(|request| {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        assert!(text.contains("shared.txt"), "the files in conflict are named: {text}");
        let branch = text.split("windlass/w-").nth(1).unwrap_or_default();
        let branch: String =
            branch.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        Some(match request.replies {
            0 => Answer::script(&format!(
                "bash: 'git merge -q windlass/w-{} || true; grep -v \"^[<=>]\" shared.txt > kept; mv kept shared.txt; git add -A && git commit -qm resolved'",
                branch.rsplit_once('-').map_or("", |(run, _)| run)
            )),
            _ => Answer::script("say: |\n  ```json\n  {\"success\": true, \"summary\": \"resolved\"}\n  ```"),
        })
    });
    let program = Program::with(server);
    let mut file = "steps:\n  - name: all\n    type: parallel\n    steps:\n".to_owned();
    for number in 0..WORKERS {
        let also = match number < 4 {
            true => format!(" && sed -i s/two/by-{number}/ shared.txt"),
            false => String::new(),
        };
        file += &format!(
            "      - {{name: w{number}, type: script, command: 'echo {number} > own-{number}.txt{also}'}}\n"
        );
    }
    put(&program, FILE, &(file + "  - {name: land, type: merge}\n"));
    put(&program, "shared.txt", "one\ntwo\nthree\n");
    here(
        &program,
        "git init -q -b main; git config user.name Ada; git config user.email a@b.c; \
         for i in $(seq 300); do echo $i > f$i.txt; done; git add -A; git commit -qm start",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    for number in 0..WORKERS {
        assert_eq!(program.file(&format!("own-{number}.txt")), format!("{number}\n"));
    }
    let shared = program.file("shared.txt");
    for number in 0..4 {
        assert!(shared.contains(&format!("by-{number}")), "{shared}");
    }
    let view = status(&program);
    let is_resolved = |request: &windlass_testkit::Request| request.replies == 0;
    assert_eq!(program.server.requests().iter().filter(|one| is_resolved(one)).count(), 3);
    let merges: Vec<&Value> = view["merges"].as_array().unwrap().iter().collect();
    assert!(merges.iter().all(|merge| merge["state"] == "merged"), "{merges:?}");
    assert_eq!(here(&program, "git worktree list | wc -l; git branch | wc -l"), "1\n1\n");
}

/// A filter of the repository's own settings runs outside of the sandbox, whenever git fills a worktree: whoever packed
/// the project may have written it.
#[test]
fn commands_of_the_repositorys_settings_are_asked_about() {
    let program = repository("  - {name: login, type: agent, spell: login}\n");
    let ran = program.data.path().join("ran");
    put(&program, ".gitattributes", "*.txt filter=trap\n");
    here(&program, "git add -A && git commit -qm attributes");
    let trap = format!("touch {}; cat", ran.display());
    for name in ["clean", "smudge"] {
        here(&program, &format!("git config filter.trap.{name} '{trap}'"));
    }
    // Git would compare it.
    here(&program, "touch -d 2001-01-01 a.txt");
    for reading in [["workflow", "validate", "w"], ["workflow", "render", "w"]] {
        program.windlass(&reading).expect(0);
    }
    let asked = program.windlass(&["workflow", "run", "w"]).expect(3);
    assert!(asked.stderr.contains("/.git/config` brings commands"), "{}", asked.stderr);
    assert!(asked.stderr.contains(&format!("filter.trap.smudge = {trap}")), "{}", asked.stderr);
    program.windlass(&["workflow", "resume", "w"]).expect(3);
    assert!(!ran.exists(), "it ran before anybody has approved it");
    let shown = program.windlass(&["trust"]).expect(2);
    assert!(shown.stdout.contains(&format!("filter.trap.smudge = {trap}")), "{}", shown.stdout);
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    assert!(ran.exists(), "it runs when it is approved");
    here(&program, "git branch more && git config filter.trap.clean cat");
    program.windlass(&["workflow", "run", "w"]).expect(3);
    program.windlass(&["answer", &run(&program), "Approve", "--resume"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
}
