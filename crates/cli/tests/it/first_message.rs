//! What a model reads at the beginning: small, and true of the place.

use windlass_testkit::git;

use crate::program::{Program, Ran};

/// The most bytes of a first request, tools included, without project instructions, skills and MCP servers.
const MAX_FIRST_REQUEST_BYTES: usize = 20 * 1024;

fn environment(program: &Program) -> String {
    program.windlass(&["run", "greet me", "--json"]).expect(0);
    let body = program.server.requests().last().unwrap().json();
    let first = body["messages"][1]["content"].as_str().unwrap().to_owned();
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(!system.contains("# Environment"), "the system prompt is cached");
    first.split_once("\n# Environment\n").expect("the environment").1.to_owned()
}

/// With every tool that a machine can offer, the browser among them.
#[test]
fn the_first_request_is_small() {
    let program = Program::playing("replies: [{say: hello}]");
    let mut command = program.command(&["run", "greet me", "--json"]);
    let chromium = crate::program::needed("WINDLASS_TEST_CHROMIUM");
    let ran: Ran = command.env("WINDLASS_BROWSER", chromium).output().unwrap().into();
    ran.expect(0);
    let body = &program.server.requests()[0].body;
    assert!(String::from_utf8_lossy(body).contains("\"browser\""));
    assert!(body.len() <= MAX_FIRST_REQUEST_BYTES, "{} bytes", body.len());
}

#[test]
fn the_first_message_says_where_the_agent_works() {
    let program = Program::playing("match: [{say: hello}]");
    for name in ["b.txt", "a.txt", ".hidden"] {
        std::fs::write(program.workspace().join(name), "x").unwrap();
    }
    std::fs::create_dir(program.workspace().join("src")).unwrap();
    let environment_text = environment(&program);
    let today = jiff::Zoned::now().strftime("%Y-%m-%d, %A").to_string();
    for words in [
        format!("- Date: {today} ("),
        "- System: Linux ".to_owned(),
        "; shell: bash".to_owned(),
        format!("- Workspace: `{}`", program.real_workspace()),
        "- Sandbox: local; network: restricted".to_owned(),
        "- Toolchains: git".to_owned(),
        "- Limits: 200 tool rounds; 120 s for a command, 600 s at most".to_owned(),
        "- Git: not a repository".to_owned(),
        "- Top of the tree: a.txt b.txt src/".to_owned(),
    ] {
        assert!(environment_text.contains(&words), "{words}\n{environment_text}");
    }
}

#[test]
fn the_first_message_tells_branch_and_changes() {
    let program = Program::playing("match: [{say: hello}]");
    git(program.workspace(), &["init", "-q", "-b", "topic/blue"]);
    assert!(environment(&program).contains("- Git: `topic/blue`, nothing changed"));
    for name in ["kept.txt", "changed.txt"] {
        std::fs::write(program.workspace().join(name), "x").unwrap();
    }
    git(program.workspace(), &["add", "."]);
    git(program.workspace(), &["commit", "-qm", "first"]);
    git(program.workspace(), &["pack-refs", "--all"]);
    std::fs::write(program.workspace().join("changed.txt"), "longer").unwrap();
    for number in 0..30 {
        std::fs::write(program.workspace().join(format!("new\n{number}")), "x").unwrap();
    }
    let environment_text = environment(&program);
    assert!(
        environment_text.contains("- Git: `topic/blue`, 31 changed or new files:\n  M changed.txt"),
        "{environment_text}"
    );
    assert!(
        environment_text.contains("?? new\\x0a0") && environment_text.contains("… and 11 more"),
        "{environment_text}"
    );
}

/// An agent can write the configuration of a repository, and git would run what that names.
#[test]
fn asking_git_runs_nothing_that_the_repository_names() {
    let program = Program::playing("match: [{say: hello}]");
    git(program.workspace(), &["init", "-q"]);
    std::fs::write(program.workspace().join("a.txt"), "x").unwrap();
    git(program.workspace(), &["add", "."]);
    git(program.workspace(), &["commit", "-qm", "first"]);
    let evidence = program.data.path().join("ran");
    let trap = program.data.path().join("trap");
    std::fs::write(&trap, format!("#!/bin/sh\ntouch {}\ncat\n", evidence.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&trap, mode).unwrap();
    let trap = trap.display().to_string();
    git(program.workspace(), &["config", "core.fsmonitor", &trap]);
    git(program.workspace(), &["config", "filter.trap.clean", &trap]);
    git(program.workspace(), &["config", "filter.trap.process", &trap]);
    std::fs::write(program.workspace().join(".gitattributes"), "* filter=trap\n").unwrap();
    std::fs::write(program.workspace().join("a.txt"), "y").unwrap();
    let environment_text = environment(&program);
    assert!(environment_text.contains(" M a.txt"), "{environment_text}");
    assert!(!evidence.exists(), "a program of the repository ran");
}
