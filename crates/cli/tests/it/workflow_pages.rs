//! What a person reads of workflows on the command line, and the first workflow of the documentation.

use std::path::Path;
use std::process::Command;

use crate::program::{Program, Ran};
use crate::workflows::{approved, by_hand, here, put, repository, run, worktree};

/// The code blocks of a language in the part of docs/workflows.md that begins with this heading.
fn blocks(heading: &str, language: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/workflows.md");
    let (_, part) = page.split_once(&format!("## {heading}\n")).unwrap();
    let part = part.split("\n## ").next().unwrap();
    let opening = format!("\n```{language}\n");
    part.split(&opening)
        .skip(1)
        .map(|block| block.split("\n```\n").next().unwrap().to_owned() + "\n")
        .collect()
}

/// Runs a line of the documentation in the project, by a shell that has the program on its path.
fn typed(program: &Program, line: &str) -> (Option<i32>, String) {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_windlass"));
    let path = std::env::var("PATH").unwrap();
    let any = program.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(program.workspace()).env_clear();
    command.envs(any.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", format!("{}:{path}", binary.parent().unwrap().display()));
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// A new user does what the page says, in its order; nobody is there to confirm, so `trust` is told `--yes`.
#[test]
fn the_first_workflow_of_the_documentation_runs() {
    let program = Program::playing("replies: []");
    let [file, replies] = blocks("A first workflow", "yaml").try_into().unwrap();
    put(&program, ".windlass/workflows/hello.yaml", &file);
    let play = program.data.path().join("play.yaml");
    std::fs::write(&play, replies).unwrap();
    here(&program, "git init -q -b main; git config user.name Ada; git config user.email a@b.c");
    here(&program, "git commit -q --allow-empty -m start");
    let [commands, answer] = blocks("A first workflow", "sh").try_into().unwrap();
    for line in commands.lines() {
        let (more, code) = match line {
            line if line.contains(" run ") => {
                (format!(" --model script:{}", play.display()), Some(3))
            }
            "windlass trust" => (" --yes".to_owned(), Some(0)),
            _ => (String::new(), Some(0)),
        };
        let ran = typed(&program, &format!("{line}{more}"));
        assert_eq!(ran.0, code, "{line}\n{}", ran.1);
    }
    let asked = program.windlass(&["inbox", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(asked["question"]["question"], "Land this? Hello, team!", "{asked}");
    let id = asked["question"]["id"].as_str().unwrap();
    let ran = typed(&program, &answer.replace("ID", id));
    assert_eq!(ran.0, Some(0), "{}", ran.1);
    assert_eq!(program.file("hello.txt"), "Hello, team!\n");
    assert_eq!(here(&program, "git show main:hello.txt"), "Hello, team!\n");
}

const STEPS: &str = "
  - {name: login, type: agent, spell: login, timeout: 10m}
  - name: fix
    type: loop
    max: 2
    until: .test.success
    steps:
      - {name: test, type: script, command: 'test -e fixed.txt', on_fail: continue, output: tested}
      - {name: repair, type: script, command: 'echo fixed > fixed.txt', when: .test.failed}
  - {name: check, type: ask, question: 'Land {{.bead.title}}?', options: ['yes', 'no']}
  - {name: land, type: merge, when: eq .check.answer \"yes\", gates: [test -e fixed.txt]}
";

/// Without the words that wrap every prompt, which have a test of their own.
#[test]
fn render_prints_each_step_with_its_settings() {
    let program = repository(STEPS);
    let shown = program.windlass(&["workflow", "render", "w", "the shop"]).expect(0).stdout;
    let of_prompt = |line: &&str| line.starts_with("  │") && !line.contains("Add the login");
    let (mut lines, mut is_agent) = (Vec::new(), false);
    for line in shown.lines() {
        is_agent = line.contains("(agent") || (is_agent && line.starts_with(' '));
        if !(is_agent && of_prompt(&line)) {
            lines.push(line);
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
    put(
        &program,
        ".windlass/workflows/w.yaml",
        "steps:\n  - {name: a, type: script, command: 'echo {{.nobody}}'}\n",
    );
    let wrong = program.windlass(&["workflow", "render", "w"]).expect(2).stdout;
    insta::assert_snapshot!("render_says_what_is_wrong", wrong);
}

/// Masks ids, paths and times.
fn masked(program: &Program, text: &str) -> String {
    let run = run(program);
    let tree = worktree(program).display().to_string();
    let text = text.replace(&tree, "WORKTREE").replace(&run, "RUN");
    let text = text.replace(&run[run.len() - 10..], "ID");
    let mask = |word: &str| match (word.starts_with("task_"), word.starts_with("q_")) {
        (true, _) => "TASK".to_owned(),
        (_, true) => "QUESTION".to_owned(),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(mask).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn status_prints_steps_worktrees_and_merges() {
    let program = approved(STEPS);
    let status = |arguments: &[&str]| {
        let arguments = [&["workflow", "status"], arguments].concat();
        let ran = program.windlass(&arguments).expect(0);
        masked(&program, &(ran.stdout + &ran.stderr))
    };
    program.windlass(&["workflow", "run", "w", "the shop"]).expect(3);
    insta::assert_snapshot!("status_of_a_run_that_waits", status(&["w"]));
    program.windlass(&["answer", &run(&program), "yes", "--resume"]).expect(0);
    insta::assert_snapshot!("status_of_a_run_that_is_done", status(&["w"]));
    insta::assert_snapshot!("status_of_all_runs", status(&[]));
    let listed = program.windlass(&["workflow", "list"]).expect(0).stdout;
    insta::assert_snapshot!("workflows_that_are_listed", listed);
}

/// The commands of a run are those of its steps and of its worktree; the latter have no limit in the file, and an hour.
#[test]
fn logs_of_a_run_have_the_output_of_its_steps() {
    let program = repository("  - {name: see, type: script, command: 'echo seen; cat up.txt'}\n");
    let text = program.file(".windlass/workflows/w.yaml");
    let file = format!("worktree: {{setup: 'echo up > up.txt; echo made'}}\n{text}");
    put(&program, ".windlass/workflows/w.yaml", &file);
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let logs = program.windlass(&["logs", &run(&program)]).expect(0).stdout;
    let (made, seen) = (logs.find("\nmade\n").unwrap(), logs.find("\nseen\nup\n").unwrap());
    assert!(made < seen, "{logs}");
    let lines = program.windlass(&["logs", &run(&program), "--json"]).expect(0).json_lines();
    let times = lines.iter().filter(|line| line["stream"] == "stdout").map(|line| {
        let arguments = &line["arguments"];
        let parsed = arguments.as_str().map(|text| serde_json::from_str(text).unwrap());
        let arguments: serde_json::Value = parsed.unwrap_or_else(|| arguments.clone());
        arguments["timeout"].as_u64().unwrap()
    });
    assert_eq!(times.collect::<Vec<_>>(), [3600, 600]);
}

/// Resumed as it is, nothing would be different: what it asks is shown where it stops.
#[test]
fn a_loop_that_stops_a_run_asks_at_once() {
    let program = approved(
        "
  - name: fix
    type: loop
    max: 1
    until: .test.success
    steps:
      - {name: test, type: script, command: 'exit 3', on_fail: continue}
",
    );
    let said = program.windlass(&["workflow", "run", "w"]).expect(1).stderr;
    assert!(
        said.contains("Loop `fix` has used up its rounds. How many more may it have?"),
        "{said}"
    );
    assert!(said.contains("\"1 more round\" --resume"), "{said}");
    let shown = program.windlass(&["workflow", "status", "w"]).expect(0).stderr;
    assert!(shown.contains("\"1 more round\" --resume"), "{shown}");
}

#[test]
fn what_cannot_be_done_to_a_run_names_what_can() {
    let program = approved("  - {name: see, type: script, command: 'test -e go.txt'}\n");
    program.windlass(&["workflow", "run", "w"]).expect(1);
    let status = program.windlass(&["workflow", "status", "w"]).expect(0).stderr;
    assert!(
        status.contains(&format!("next: windlass workflow resume {}", run(&program))),
        "{status}"
    );
    std::fs::write(worktree(&program).join("go.txt"), "").unwrap();
    program.windlass(&["workflow", "resume", "w"]).expect(0);
    for command in [["workflow", "cancel"].as_slice(), &["workflow", "resume"], &["retry"]] {
        let id = run(&program);
        let refused = program.windlass(&[command, &[id.as_str()]].concat()).expect(2).stderr;
        assert!(refused.contains("is already done"), "{refused}");
        assert!(refused.contains("start another one with `windlass workflow run w`"), "{refused}");
    }
    let refused = program.windlass(&["parallel", "run", "--workers", "0", "x"]).expect(2).stderr;
    assert!(refused.contains("allowed: 1 to 64"), "{refused}");
    assert!(refused.contains("`windlass parallel --help` has examples"), "{refused}");
}

/// Two projects may have workflows of one name: a name stands for the runs of the project in which it is said.
#[test]
fn a_name_stands_for_runs_of_its_own_project() {
    let program = approved("  - {name: a, type: script, command: 'true'}\n");
    program.windlass(&["workflow", "run", "w"]).expect(0);
    let run = run(&program);
    here(&program, "mkdir deep");
    let other = tempfile::tempdir().unwrap();
    by_hand(&program, other.path(), &format!("git clone -q {} c", program.real_workspace()));
    let ran = |directory: &Path, args: &[&str]| -> Ran {
        program.command(args).current_dir(directory).output().unwrap().into()
    };
    let status = ["workflow", "status", "w"];
    let clone = other.path().join("c");
    let error = ran(&clone, &status).expect(2).stderr;
    assert!(error.contains("no run of `w` was started in this project"), "{error}");
    assert!(error.contains(&run), "{error}");
    ran(&clone, &["workflow", "cancel", "w"]).expect(2);
    ran(&clone, &["workflow", "status", &run]).expect(0);
    ran(&program.workspace().join("deep"), &status).expect(0);
    ran(&clone, &["workflow", "run", "w"]).expect(3);
    let shown = ran(program.workspace(), &status).expect(0).stdout;
    assert!(shown.contains(&run), "the newest of this project: {shown}");
}
