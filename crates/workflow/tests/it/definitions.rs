//! Workflow files: what is read, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::Path;

use windlass_workflow::definition::{
    AgentWork, Base, Checkout, Maker, OnFail, Spell, Strategy, Work, Workflow, schema,
};
use windlass_workflow::files::Files;

const WHOLE: &str = "
name: fix-issue
description: Fixes an issue
inputs:
  issue: {description: its number}
  branch: {default: main}
runner: windlass
runners:
  aider: {command: [aider, --yes]}
worktree: {base: fresh, setup: npm ci, cleanup: rm -r tmp, keep: true}
target: main
steps:
  - name: implement
    type: agent
    spell: implement
    timeout: 10m
  - name: fix
    type: loop
    max: 3
    until: .test.success
    steps:
      - {name: test, type: script, command: cargo test, on_fail: continue, output: test_output, rerun: true}
      - {name: repair, type: agent, spell: repair, when: .test.failed, runner: aider}
  - name: both
    type: parallel
    steps:
      - {name: docs, type: agent, spell: docs}
      - {name: lint, type: script, command: cargo clippy, needs: [implement]}
  - {name: check, type: ask, question: 'Merge {{.bead.title}}?', options: ['yes', 'no']}
  - {name: land, type: merge, strategy: rebase, gates: [cargo test], message: 'Fix {{.issue}}'}
";

/// WF-002
#[test]
fn every_type_of_step_is_read() {
    let workflow = Workflow::read(WHOLE, "file").unwrap();
    let steps: Vec<_> = workflow
        .all_steps()
        .into_iter()
        .map(|step| (step.name.as_str(), step.work.kind().as_str()))
        .collect();
    let expected = [
        ("implement", "agent"),
        ("fix", "loop"),
        ("test", "script"),
        ("repair", "agent"),
        ("both", "parallel"),
        ("docs", "agent"),
        ("lint", "script"),
        ("check", "ask"),
        ("land", "merge"),
    ];
    assert_eq!(steps, expected);
    let first = &workflow.steps[0];
    assert_eq!(first.timeout.map(|timeout| timeout.as_secs()), Some(600));
    assert_eq!(first.on_fail, OnFail::Stop);
    assert!(
        matches!(&first.work, Work::Agent(AgentWork { spell: Spell::Named(name), .. }) if name == "implement")
    );
    let Work::Merge(merge) = &workflow.steps[4].work else { panic!("{:?}", workflow.steps[4]) };
    assert_eq!((merge.strategy, merge.gates.len()), (Strategy::Rebase, 1));
    let Checkout::Worktree(spec) = &workflow.place else { panic!("{:?}", workflow.place) };
    let Maker::Git(git) = &spec.maker else { panic!("{spec:?}") };
    assert_eq!((&git.base, spec.setup.as_deref(), spec.keep), (&Base::Fresh, Some("npm ci"), true));
}

/// What a person approves is everything that would run.
#[test]
fn every_command_of_a_file_is_listed_for_approval() {
    let workflow = Workflow::read(WHOLE, "file").unwrap();
    let commands: Vec<_> = workflow.commands().into_iter().map(|(_, command)| command).collect();
    let expected =
        ["npm ci", "cargo test", "cargo clippy", "cargo test", "aider --yes", "rm -r tmp"];
    assert_eq!(commands, expected);
}

fn error(yaml: &str) -> String {
    Workflow::check(yaml, "file", &[]).unwrap_err().to_string()
}

fn one_step(step: &str) -> String {
    format!("steps:\n  - {{name: a, {step}}}\n")
}

#[test]
fn an_error_names_line_and_nearest_key() {
    let said = error("steps:\n  - name: a\n    type: agent\n    spel: x\n");
    assert!(said.ends_with("line 4: there is no key `spel`; did you mean `spell`?"), "{said}");
    let said = error("stepz: []\n");
    assert!(said.ends_with("line 1: there is no key `stepz`; did you mean `steps`?"), "{said}");
    let said = error("steps:\n  - name: a\n   type: agent\n");
    assert!(said.starts_with("line "), "{said}");
    let forms = [
        ("hello\n", "line 1: keys with values belong here (`key: value`)"),
        (
            "steps:\n  a: {type: script}\n",
            "line 2: a list belongs here: lines that begin with `- `",
        ),
        ("steps:\n\t- name: a\n", "line 2: YAML takes no tabs here; indent with spaces"),
    ];
    for (file, said) in forms {
        assert_eq!(error(file), said, "{file}");
    }
}

#[test]
fn a_loop_without_a_bound_is_an_error() {
    let steps = "steps: [{name: b, type: script, command: ls}]";
    assert_eq!(
        error(&one_step(&format!("type: loop, {steps}"))),
        "line 2: loop `a` has no bound: say with `max` how many rounds it may have"
    );
    let said = error(&one_step(&format!("type: loop, max: 0, {steps}")));
    assert_eq!(said, "line 2: `max` of step `a` may not be `0`; allowed: 1 to 100");
    assert!(error(&one_step(&format!("type: loop, max: many, {steps}"))).starts_with("line 2: "));
}

/// A person puts everything right at once.
#[test]
fn every_error_of_a_file_is_reported() {
    let file = "
descripton: x
worktree: {setpu: ls}
steps:
  - {name: a, type: agnet, spell: x}
  - {name: b, type: script, comand: ls}
  - {name: c, type: loop, max: many, steps: [{name: d, type: script, command: ls, timeout: soon, on_fail: die}]}
  - {name: a, type: script, command: 'echo {{.x'}
  - {name: e, type: script, command: ls, needs: [dd, b]}
";
    let said = [
        "line 2: there is no key `descripton`; did you mean `description`?",
        "line 3: there is no key `setpu`; did you mean `setup`?",
        "line 5: there is no step type `agnet`; did you mean `agent`?",
        "line 6: there is no key `comand`; did you mean `command`?",
        "line 6: step `b` has no `command`",
        "line 7: `timeout` of step `d` may not be `soon`; write `90s`, `10m` or `2h`",
        "line 7: `on_fail` may not be `die`; allowed: stop, continue, fail_at_end, ask",
        "line 7: `max` of step `c` may not be `many`; allowed: 1 to 100",
        "line 8: `command` of step `a`: ",
        "line 8: `a` is already the name of a step",
        "line 9: step `e` needs `dd`, which is not a step",
    ];
    let error = error(file);
    for one in said {
        assert!(error.lines().any(|line| line.starts_with(one)), "{one}\nis not in\n{error}");
    }
    assert_eq!(error.lines().count(), said.len(), "{error}");
}

#[test]
fn wrong_values_are_refused_where_they_stand() {
    let cases = [
        ("type: agnet, spell: x", "line 2: there is no step type `agnet`; did you mean `agent`?"),
        ("type: agent", "line 2: step `a` has no `spell`"),
        (
            "type: agent, spell: ../x",
            "line 2: `../x` is not the name of a spell; a text of several lines is one itself",
        ),
        (
            "type: agent, spell: x, runner: cloud",
            "line 2: there is no runner `cloud`; did you mean `claude`?",
        ),
        (
            "type: script, command: ls, spell: x",
            "line 2: `spell` of step `a` does not belong to type `script`",
        ),
        (
            "type: script, command: ls, on_fail: die",
            "line 2: `on_fail` may not be `die`; allowed: stop, continue, fail_at_end, ask",
        ),
        (
            "type: script, command: ls, needs: [b]",
            "line 2: step `a` needs `b`, which is not a step",
        ),
        ("type: script, command: ls, needs: [a]", "line 2: step `a` needs itself"),
        ("type: script, command: ' '", "line 2: `command` of step `a` is empty"),
        ("type: ask, question: ''", "line 2: `question` of step `a` is empty"),
        (
            "type: ask, question: x, options: [b, c, b]",
            "line 2: `options` of step `a` has `b` twice",
        ),
        ("type: merge, gates: ['']", "line 2: `gates` of step `a` has an empty entry"),
        (
            "type: script, command: ls, timeout: soon",
            "line 2: `timeout` of step `a` may not be `soon`; write `90s`, `10m` or `2h`",
        ),
        (
            "type: script, command: 'echo {{.x}} {{end}}'",
            "line 2: `command` of step `a`: an `{{end}}` or `{{else}}` belongs to nothing",
        ),
        (
            "type: script, command: ls, output: previous",
            "line 2: `previous` cannot be the name of an output: templates have it for something else",
        ),
    ];
    for (step, said) in cases {
        assert_eq!(error(&one_step(step)), said, "{step}");
    }
    assert_eq!(error("steps: []\n"), "line 1: there are no `steps`");
    let two =
        "steps:\n  - {name: a, type: ask, question: x}\n  - {name: a, type: ask, question: x}\n";
    assert_eq!(error(two), "line 3: `a` is already the name of a step");
    let around = "steps:\n  - {name: p, type: parallel, steps: [{name: a, type: script, command: x, needs: [p]}]}\n";
    assert_eq!(error(around), "line 2: step `a` needs `p`, which is around it");
    let long = format!("steps:\n  - {{name: {}, type: ask, question: x}}\n", "n".repeat(61));
    assert_eq!(error(&long), "line 2: a name of 61 letters is too long; 60 is the limit");
    for name in ["..", "a..b", "-x", ".x"] {
        let named = format!("name: {name}\nsteps:\n  - {{name: a, type: ask, question: x}}\n");
        let said = error(&named);
        assert!(said.starts_with(&format!("line 1: `{name}` is not a name")), "{said}");
    }
    let two = "steps: [{name: a, type: ask, question: x}]\n---\nsteps: []\n";
    let said = error(two);
    assert!(said.ends_with("a file has one workflow; a line `---` begins another one"), "{said}");
    let here = "worktree: false\nsteps:\n  - {name: a, type: merge}\n";
    assert_eq!(
        error(here),
        "line 3: step `a` of type `merge` needs a worktree, and `worktree` is `false`"
    );
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const AGENT: &str = "steps: [{name: a, type: agent, spell: implement}]\n";

/// WF-038, WF-039
#[test]
fn spells_are_files_and_coven_is_an_alias() {
    for directory in [".windlass", ".coven"] {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &format!("{directory}/workflows/w.yaml"), AGENT);
        write(root.path(), &format!("{directory}/spells/implement.md"), "Do {{.bead.title}}.");
        let (_, source) = Files::of(root.path()).source("w", Default::default()).unwrap();
        assert_eq!(source.spells["implement"], "Do {{.bead.title}}.");
    }
}

/// Whoever wrote a project must not choose which other files of a person a model reads.
#[test]
fn a_spell_that_is_a_link_out_of_the_project_is_refused() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(root.path(), ".windlass/workflows/w.yaml", AGENT);
    write(root.path(), "shared/implement.md", "Do {{.bead.title}}.");
    write(outside.path(), "secret", "{{.spell_content}} of nobody else");
    let spell = root.path().join(".windlass/spells/implement.md");
    std::fs::create_dir_all(spell.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../../shared/implement.md", &spell).unwrap();
    let read = || Files::of(root.path()).source("w", Default::default());
    assert_eq!(read().unwrap().1.spells["implement"], "Do {{.bead.title}}.");
    for place in [spell, root.path().join(".windlass/system-prompt.md")] {
        let _ = std::fs::remove_file(&place);
        std::os::unix::fs::symlink(outside.path().join("secret"), &place).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains("a link leads out of the project"), "{error}");
        assert!(!error.contains("nobody else"), "{error}");
        std::fs::remove_file(&place).unwrap();
        std::os::unix::fs::symlink("../../shared/implement.md", &place).unwrap();
    }
}

/// WF-044
#[test]
fn a_missing_spell_names_its_path() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), ".windlass/workflows/w.yaml", AGENT);
    let error = Files::of(root.path()).source("w", Default::default()).unwrap_err().to_string();
    let path = root.path().join(".windlass/spells/implement.md");
    let file = root.path().join(".windlass/workflows/w.yaml");
    let expected = format!("there is no spell `implement`: `{}` does not exist", path.display());
    assert!(error.starts_with(&format!("{}:", file.display())), "{error}");
    assert!(error.ends_with(&expected), "{error}");
    write(root.path(), ".windlass/spells/implment.md", "Do it.");
    let error = Files::of(root.path()).source("w", Default::default()).unwrap_err().to_string();
    assert!(error.ends_with("; did you mean `implment`?"), "{error}");
}

/// What a merge takes from elsewhere is the work of a step beside others.
#[test]
fn a_merge_from_an_unknown_step_is_named_before_it_runs() {
    let text = |from: &str| {
        format!(
            "steps:\n  - name: both\n    type: parallel\n    steps:\n      - {{name: left, type: script, command: ls}}\n      - {{name: right, type: script, command: ls}}\n  - {{name: land, type: merge, from: {from}}}\n"
        )
    };
    let wrong = Workflow::read(&text("lefd"), "w").unwrap_err().to_string();
    assert!(
        wrong.contains("step `land` takes `from` `lefd`, which is not a step of a parallel step; did you mean `left`?"),
        "{wrong}"
    );
    assert!(Workflow::read(&text("both"), "w").is_err(), "what is joined is merged without `from`");
    for right in ["left", "right", "'{{.pick.answer}}'"] {
        Workflow::read(&text(right), "w").unwrap();
    }
}

/// Nobody could name the second of two; what is not a file is said not to be one.
#[test]
fn files_that_cannot_be_run_are_named() {
    let root = tempfile::tempdir().unwrap();
    let text = "name: same\nsteps:\n  - {name: a, type: ask, question: x}\n";
    write(root.path(), ".windlass/workflows/first.yaml", text);
    write(root.path(), ".windlass/workflows/second.yaml", text);
    write(root.path(), ".windlass/workflows/tree.yaml/inside", "");
    let files = Files::of(root.path());
    let broken: Vec<_> = files.list().into_iter().filter(|one| one.workflow.is_err()).collect();
    let names: Vec<_> = broken.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["second.yaml", "tree"]);
    let said = |name: &str| {
        let path = root.path().join(".windlass/workflows").join(name).display().to_string();
        let error = files.source(&path, BTreeMap::new()).unwrap_err().to_string();
        error.replace(&root.path().display().to_string(), "")
    };
    let same = "/.windlass/workflows/second.yaml: `same` is already the name of `first.yaml`";
    assert_eq!(said("second.yaml"), same);
    assert!(!said("tree.yaml").contains("there is no workflow"), "{}", said("tree.yaml"));
    assert!(files.source("same", BTreeMap::new()).is_ok());
}

/// WF-052
#[test]
fn a_system_prompt_without_its_placeholder_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), ".windlass/workflows/w.yaml", AGENT);
    write(root.path(), ".windlass/spells/implement.md", "Do it.");
    write(root.path(), ".windlass/system-prompt.md", "Be brief. {{/* .spell_content */}}");
    let error = Files::of(root.path()).source("w", Default::default()).unwrap_err().to_string();
    assert!(
        error.ends_with("it must hold `{{.spell_content}}`, the place of the spell"),
        "{error}"
    );
}

#[test]
fn an_unknown_workflow_is_answered_with_those_there_are() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), ".windlass/workflows/deploy.yaml", AGENT);
    let error = Files::of(root.path()).path_of("depoly").unwrap_err().to_string();
    assert!(
        error.contains("no workflow `depoly`") && error.ends_with("; known: deploy"),
        "{error}"
    );
}

/// The schema that is shipped is the one that the reader is made from.
#[test]
fn the_shipped_schema_is_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workflow.schema.json");
    let made = format!("{:#}\n", schema());
    if std::env::var_os("WINDLASS_WRITE_DOCS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), made, "write it with WINDLASS_WRITE_DOCS=1");
}

/// What the reader takes, the schema takes; what it refuses for its keys, the schema refuses.
#[test]
fn the_schema_agrees_with_the_reader() {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("windlass.json", schema()).unwrap();
    let index = compiler.compile("windlass.json", &mut schemas).unwrap();
    let is_valid = |yaml: &str| {
        let value: serde_json::Value = serde_saphyr::from_str(yaml).unwrap();
        schemas.validate(&value, index).is_ok()
    };
    assert!(is_valid(WHOLE));
    for step in [
        "type: agent",
        "type: script, command: ls, spell: x",
        "type: loop, steps: [{name: b, type: merge}]",
        "type: ask, question: x, timeout: 1h",
    ] {
        assert!(!is_valid(&one_step(step)), "{step}");
        assert!(Workflow::read(&one_step(step), "x").is_err(), "{step}");
    }
}

fn worktree(keys: &str, step: &str) -> Result<Workflow, String> {
    let text = format!("worktree: {{{keys}}}\nsteps:\n  - {{name: a, {step}}}\n");
    Workflow::read(&text, "x").map_err(|error| error.to_string())
}

#[test]
fn what_a_worktree_may_be_is_checked() {
    let script = "type: script, command: ls";
    for (keys, step, said) in [
        (
            "sparse: [/etc]",
            script,
            "line 1: `/etc` in `sparse` is not a directory below the top, such as `src/app`",
        ),
        (
            "sparse: [a/../..]",
            script,
            "line 1: `a/../..` in `sparse` is not a directory below the top, such as `src/app`",
        ),
        ("reuse: 0", script, "line 1: `reuse` may not be `0`; allowed: 1 to 16"),
        ("reuse: 99", script, "line 1: `reuse` may not be `99`; allowed: 1 to 16"),
        (
            "reuse: 1, keep: true",
            script,
            "line 1: `keep` and `reuse` exclude each other: a worktree that stays as it is cannot be reused",
        ),
        (
            "cache: {PATH: bin}",
            script,
            "line 1: `PATH` in `cache` cannot be set; write a variable of your build tool, such as `CARGO_TARGET_DIR`",
        ),
        (
            "cache: {X: ../y}",
            script,
            "line 1: `../y` in `cache` is not a directory below the top, such as `src/app`",
        ),
        ("remove: ls", script, "line 1: `remove` belongs to `create`, which is not there"),
        (
            "create: ls, base: v1",
            script,
            "line 1: `base` is for git, and `create` makes workspaces without it",
        ),
        (
            "create: ls",
            "type: merge",
            "line 3: step `a` of type `merge` needs git, and `worktree` has a `create` command in its place",
        ),
        (
            "create: ls",
            "type: pull_request",
            "line 3: step `a` of type `pull_request` needs git, and `worktree` has a `create` command in its place",
        ),
    ] {
        assert_eq!(worktree(keys, step).unwrap_err(), said, "{keys}");
    }
}

/// What a person approves is everything that would run.
#[test]
fn commands_that_make_workspaces_and_publish_are_approved() {
    let found = worktree("create: mk, remove: rm, setup: up", "type: script, command: ls").unwrap();
    let places: Vec<_> = found.commands().into_iter().map(|(place, _)| place).collect();
    assert_eq!(places, ["worktree create", "worktree setup", "step a", "worktree remove"]);
    let found = worktree("base: head", "type: pull_request, title: x").unwrap();
    let (place, command) = found.commands().remove(0);
    assert!(
        place == "step a"
            && command.contains("git push")
            && command.contains("gh pr create --draft"),
        "{command}"
    );
}

/// A file of a few lines can name a value a million times.
#[test]
fn aliases_that_make_too_much_are_refused_in_words() {
    let line = |name: char, before: char| {
        format!("{name}: &{name} [{}]\n", format!("*{before},").repeat(9))
    };
    let lines: String =
        ('b'..='g').zip('a'..='f').map(|(name, before)| line(name, before)).collect();
    let text = format!("a: &a [x, x, x, x, x, x, x, x, x]\n{lines}steps: *g\n");
    let error = Workflow::read(&text, "w").unwrap_err().to_string();
    assert!(error.contains("too large or too deep; an alias"), "{error}");
}
