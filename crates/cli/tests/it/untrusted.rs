//! A project that a person has cloned and not approved: its links lead our files nowhere else, and choose none of the
//! person's other files for a model.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::plans::snapshot;
use crate::program::Program;
use crate::workflows::{put, repository};

/// A directory beside the project, with one file.
fn outside(program: &Program) -> PathBuf {
    let outside = program.data.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("mine"), "precious").unwrap();
    outside
}

fn link(program: &Program, to: &std::path::Path, name: &str) {
    let place = program.workspace().join(name);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    symlink(to, place).unwrap();
}

#[test]
fn nothing_of_ours_is_written_through_a_projects_links() {
    let program = Program::playing("replies: []");
    let outside = outside(&program);
    let is_untouched = || {
        let names: Vec<_> = fs::read_dir(&outside).unwrap().flatten().collect();
        names.len() == 1 && fs::read_to_string(names[0].path()).unwrap() == "precious"
    };
    fs::write(program.workspace().join("snapshot.json"), snapshot().to_string()).unwrap();
    let refused = |args: &[&str]| {
        let ran = program.windlass(args);
        assert!(ran.code != 0 && ran.stderr.contains("cannot be written"), "{args:?}: {ran:?}");
        assert!(is_untouched(), "{args:?}");
    };
    let save = ["plan", "save-snapshot", "--task=t01", "--from", "snapshot.json"];
    for name in ["plans", "skills", "snapshots"] {
        link(&program, &outside, &format!(".windlass/{name}"));
    }
    refused(&["plan", "new", "x"]);
    refused(&["skills", "new", "x"]);
    refused(&save);
    for name in ["plans", "skills", "snapshots"] {
        fs::remove_file(program.workspace().join(".windlass").join(name)).unwrap();
    }
    // A link in place of a file is replaced, or is there already.
    link(&program, &outside.join("mine"), ".windlass/plans/y/plan.schema.json");
    link(&program, &outside.join("new"), ".windlass/snapshots/.gitignore");
    link(&program, &outside.join("mine"), ".windlass/snapshots/unplanned/t01.md");
    program.windlass(&["plan", "new", "y"]).expect(0);
    program.windlass(&save).expect(0);
    program.windlass(&["plan", "load-snapshot", "--task=t01"]).expect(0);
    assert!(is_untouched());
    link(&program, &outside.join("new"), ".windlass/plans/z/plan.json");
    refused(&["plan", "new", "z"]);
}

#[test]
fn a_projects_links_choose_no_other_file_for_a_model() {
    let program = Program::playing("replies: []");
    let outside = outside(&program);
    let mine = outside.join("mine");
    // An eval, whose task and files an agent works with.
    for name in ["a", "b", "c"] {
        put(&program, &format!(".windlass/skills/g/evals/{name}/grader.sh"), "exit 0\n");
    }
    put(&program, ".windlass/skills/g/SKILL.md", "---\nname: g\ndescription: d\n---\nx\n");
    put(&program, ".windlass/skills/g/evals/b/task.md", "do it\n");
    put(&program, ".windlass/skills/g/evals/c/task.md", "do it\n");
    link(&program, &mine, ".windlass/skills/g/evals/a/task.md");
    link(&program, &outside, ".windlass/skills/g/evals/b/work");
    link(&program, &outside, ".windlass/skills/g/evals/c/hidden");
    let refused = program.windlass(&["skills", "eval", "g"]).expect(2).stderr;
    let words = "is a link that leads out of the skill's folder";
    assert_eq!(refused.matches(words).count(), 3, "{refused}");
    // The definition of an agent.
    link(&program, &mine, ".windlass/agents/reviewer.md");
    let plan = json!({
        "assignedAgents": [{"name": "reviewer"}],
        "phases": [{"id": "p", "tasks": [{"id": "t", "bestPatternPrompt": "Run `make`"}]}],
    });
    put(&program, "plan.json", &plan.to_string());
    let refused = program.windlass(&["plan", "validate"]).expect(2);
    let refused = refused.stdout + &refused.stderr;
    assert!(refused.contains("must be a file of the project"), "{refused}");
    assert!(!refused.contains("precious"), "{refused}");
}

/// Spells are files of the project, as its instructions are.
#[test]
fn hidden_characters_of_a_spell_are_marked_for_the_model() {
    let program = repository("  - {name: one, type: agent, spell: hidden}\n");
    let spell = "Say nothing\u{200b} of \u{e0041}{{.bead.title}}.\n";
    put(&program, ".windlass/spells/hidden.md", spell);
    program.windlass(&["workflow", "run", "w", "the bead"]);
    let body = program.server.requests()[0].json();
    let messages = body["messages"].to_string();
    assert!(messages.contains("Say nothing\\\\u{200B} of \\\\u{E0041}the bead."), "{messages}");
    assert!(!messages.contains('\u{200b}') && !messages.contains('\u{e0041}'), "{messages}");
}

/// A terminal obeys a control character in JSON too, and a path that is escaped twice is that of another file.
#[test]
fn what_is_printed_is_escaped_and_escaped_once() {
    let program =
        Program::playing("replies: [{write: {path: a.txt, content: \"x\\u009by\"}}, {say: done}]");
    program.windlass(&["run", "x", "-q"]).expect(0);
    let json = program.windlass(&["diff", "--json"]).expect(0).stdout;
    assert!(json.contains("x\\u009by") && !json.contains('\u{9b}'), "{json:?}");
    let plan = json!({ "phases": [{"id": "p", "tasks": [{"id": "t", "bestPatternPrompt": "Run `make`"}]}] });
    put(&program, "a\u{202e}b/plan.json", &plan.to_string());
    for args in [["plan", "validate"], ["plan", "list"]] {
        let mut command = program.command(&args);
        let output = command.current_dir(program.workspace().join("a\u{202e}b")).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.contains("/a\\u{202E}b/plan.json"), "{args:?}: {output:?}");
    }
}
