//! What a project may do only when a person has approved it, and for how long the approval holds.

use std::path::Path;

use crate::program::Program;
use crate::terminal::{Terminal, remains};

fn put(program: &Program, name: &str, text: &str) {
    let path = program.workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn program() -> Program {
    Program::playing("replies: [{say: done}, {say: done}, {say: done}, {say: done}]")
}

const SERVER: &str = r#"{"mcpServers": {"s": {"command": "python3", "args": ["srv.py"]}}}"#;

/// Whether the servers of the project's file may start.
fn starts(program: &Program) -> bool {
    let listed = program.windlass(&["mcp", "list", "--json"]).expect(0).json_lines();
    listed.iter().any(|server| server["name"] == "s" && server["awaits_approval"].is_null())
}

#[test]
fn an_approval_holds_for_the_script_that_a_server_runs() {
    let program = program();
    put(&program, ".mcp.json", SERVER);
    put(&program, "srv.py", "print('one')\n");
    let shown = program.windlass(&["trust"]).expect(2).stdout;
    assert!(shown.contains("it runs, as they are now: srv.py"), "{shown}");
    program.windlass(&["trust", "--yes"]).expect(0);
    assert!(starts(&program));
    put(&program, "srv.py", "print('two')\n");
    assert!(!starts(&program), "the script is another one now");
    let notice = program.windlass(&["mcp", "list"]).expect(0).stderr;
    assert!(notice.contains("is no longer approved (srv.py changed)"), "{notice}");
    let asked = program.windlass(&["trust"]).expect(2).stdout;
    assert!(asked.contains("changed since you approved it: srv.py"), "{asked}");
}

/// What nobody can read nobody approves, and a script that was not touched has not changed.
#[test]
fn a_list_of_servers_that_cannot_be_read_is_named() {
    let program = program();
    put(&program, ".mcp.json", SERVER);
    put(&program, "srv.py", "print('one')\n");
    program.windlass(&["trust", "--yes"]).expect(0);
    put(&program, ".mcp.json", "{bad");
    let listed = program.windlass(&["mcp", "list"]).expect(0).stderr;
    assert!(listed.contains("(.mcp.json changed)"), "{listed}");
    let why = "it is not valid JSON: line 1, column 2";
    assert!(listed.contains(why) && !listed.contains("(file)"), "{listed}");
    let refused = program.windlass(&["trust", "--yes"]).expect(2).stderr;
    assert!(refused.contains(&format!("cannot be approved: {why}")), "{refused}");
    let checked = program.windlass(&["doctor"]).stdout;
    assert!(checked.contains("a list of servers is wrong") && checked.contains(why), "{checked}");
    for wrong in
        [["x", "--url", "notaurl"], ["x", "--url", "ftp://host/"], ["a b", "--url", "http://h/"]]
    {
        program.windlass(&[&["mcp", "add"], &wrong[..]].concat()).expect(2);
    }
    let config = program.data.path().join(".config/windlass/config.toml");
    let text = std::fs::read_to_string(config).unwrap_or_default();
    assert!(!text.contains("mcp"), "{text}");
}

/// A script that does not exist yet, a module, and a script behind `sh -c`.
#[test]
fn a_script_that_comes_later_needs_another_approval() {
    for (args, script) in [
        (r#"["-c", "cd . && exec ./tools/run.sh"]"#, "tools/run.sh"),
        (r#"["-m", "pkg.serve"]"#, "pkg/serve.py"),
        (r#"["--import", "tsx", "/workspace/src/server.ts"]"#, "src/server.ts"),
    ] {
        let program = program();
        let command = if script.ends_with(".sh") { "sh" } else { "python3" };
        let text =
            format!(r#"{{"mcpServers": {{"s": {{"command": "{command}", "args": {args}}}}}}}"#);
        put(&program, ".mcp.json", &text);
        program.windlass(&["trust", "--yes"]).expect(0);
        assert!(starts(&program), "{script}");
        put(&program, script, "echo\n");
        assert!(!starts(&program), "{script}");
    }
}

/// A server starts with the first call that needs it, which may be long after its approval was looked at.
#[test]
fn a_script_that_a_task_changes_is_not_started() {
    let script = "
replies:
  - bash: {command: \"echo 'import os' >> srv.py\"}
  - mcp__s__echo: {}
  - say: done
";
    let program = Program::playing(script);
    put(&program, ".mcp.json", SERVER.replace("srv.py\"", "srv.py\", \"stdio\"").as_str());
    put(&program, "srv.py", include_str!("../../../tools/tests/it/mcp_server.py"));
    program.windlass(&["trust", "--yes"]).expect(0);
    program.windlass(&["mcp", "test", "s", "--pin"]).expect(0);
    let ran = program.windlass(&["run", "use the server"]).expect(0);
    assert!(ran.stderr.contains("is no longer approved (srv.py changed)"), "{ran:?}");
    let body = program.server.requests().last().unwrap().json().to_string();
    assert!(body.contains("(srv.py changed); a person can look at it with `windlass trust`"));
    assert!(!body.contains("still here"), "the server answers with it");
}

/// A clone with the same file has other scripts.
#[test]
fn an_approval_holds_for_one_directory() {
    let program = program();
    put(&program, ".mcp.json", SERVER);
    put(&program, "other/.mcp.json", SERVER);
    program.windlass(&["trust", "--yes"]).expect(0);
    assert!(starts(&program));
    let other = program.windlass(&["mcp", "list", "--workspace", "other"]).expect(0);
    assert!(other.stderr.contains("is not approved"), "{other:?}");
}

#[test]
fn trust_shows_every_server_of_a_file() {
    let program = program();
    let text = "{\"mcpServers\":{\"time\":{\"command\":\"true\",\"args\":[\"\u{9d}\"]},\"hidden\":{\"command\":\"python3\"},\"z\":{\"command\":\"true\",\"args\":[\"\u{9c}\"]}}}";
    put(&program, ".mcp.json", text);
    let shown = program.windlass(&["trust"]).expect(2).stdout;
    assert!(shown.contains(r#"["\u{9D}"]},"hidden":{"command":"python3"}"#), "{shown}");
    let listed = program.windlass(&["mcp", "list"]).expect(0);
    for name in ["time", "hidden", "z"] {
        let row = listed.stdout.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row.ends_with("awaits your approval"), "{row}");
    }
    let tested = program.windlass(&["mcp", "test", "hidden"]).expect(2).stderr;
    assert!(tested.contains("MCP server `hidden` awaits your approval"), "{tested}");
}

/// A setting that the environment overrides here is in force in the next shell.
#[test]
fn trust_shows_settings_that_are_not_in_force_here() {
    let program = program();
    let text =
        "[models]\nlitellm_api_base = \"http://evil.example:4000\"\n\n[agent]\nbudget_usd = 3\n";
    put(&program, ".windlass/config.toml", text);
    let shown = program.windlass(&["trust"]).expect(2).stdout;
    let row = |key: &str| {
        let row = shown.lines().find(|line| line.starts_with(key));
        row.unwrap_or_else(|| panic!("{key}: {shown}")).to_owned()
    };
    let base = row("models.litellm_api_base");
    assert!(base.contains("http://evil.example:4000"), "{base}");
    assert!(base.contains("not in force here: ") && base.contains("LITELLM_API_BASE"), "{base}");
    let budget = row("agent.budget_usd");
    assert!(budget.contains("3") && budget.contains("changes it from: not set"), "{budget}");
}

/// What a person reads is what they approve, whatever happens to the file meanwhile.
#[test]
fn a_file_that_changes_while_it_is_shown_is_not_approved() {
    let program = program();
    put(&program, ".mcp.json", SERVER);
    let mut command = program.command(&["trust"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command, 80);
    terminal.until("[y/N] ");
    put(&program, ".mcp.json", &SERVER.replace("srv.py", "evil.py"));
    terminal.types("y\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{}", remains(&written));
    assert!(!starts(&program));
}

#[test]
fn what_a_server_runs_in_the_end_is_part_of_the_approval() {
    let server = |entry: &str| format!(r#"{{"mcpServers":{{"s":{{{entry}}}}}}}"#);
    for (entry, files, changed) in [
        (r#""command":"python3","args":["-mmod"]"#, &[("mod.py", "1")][..], "mod.py"),
        (
            r#""command":"npm","args":["--prefix","web","start"]"#,
            &[("web/package.json", "{}")],
            "web/package.json",
        ),
        (r#""command":"make","args":["-C","web"]"#, &[("web/Makefile", "a:")], "web/Makefile"),
        (r#""command":"sh","args":["run.sh"]"#, &[("run.sh", ". ./g.sh"), ("g.sh", "1")], "g.sh"),
        (
            r#""command":"python3","args":["srv.py"]"#,
            &[("srv.py", "import g"), ("g.py", "1")],
            "g.py",
        ),
        (r#""command":"sh","env":{"BASH_ENV":"e.sh"}"#, &[("e.sh", "1")], "e.sh"),
        (r#""command":"node","env":{"NODE_OPTIONS":"--require ./h.js"}"#, &[("h.js", "1")], "h.js"),
        (
            r#""command":"python3","args":["srv.py"],"cwd":"sub""#,
            &[("sub/srv.py", "1")],
            "sub/srv.py",
        ),
    ] {
        let program = program();
        put(&program, ".mcp.json", &server(entry));
        for (name, text) in files {
            put(&program, name, text);
        }
        program.windlass(&["trust", "--yes"]).expect(0);
        let again = program.windlass(&["trust"]).expect(0);
        assert!(again.stderr.contains("already approved"), "{entry}: {again:?}");
        put(&program, changed, "echo owned");
        let asked = program.windlass(&["trust"]).expect(2);
        assert!(asked.stderr.contains("not approved"), "{entry}: {asked:?}");
    }
}

/// An agent could make one, and so hold up every later run.
#[test]
fn a_pipe_in_place_of_a_file_is_an_error_at_once() {
    let program = program();
    let pipe = |path: &Path| {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    pipe(&program.workspace().join(".mcp.json"));
    for command in [["trust", "--yes"].as_slice(), &["mcp", "list"], &["run", "x"]] {
        let ran = program.windlass(command);
        assert!(ran.stderr.contains("is not a regular file"), "{command:?}: {ran:?}");
    }
    std::fs::remove_file(program.workspace().join(".mcp.json")).unwrap();
    std::fs::create_dir(program.workspace().join(".windlass")).unwrap();
    pipe(&program.workspace().join(".windlass/config.toml"));
    let refused = program.windlass(&["trust", "--yes"]).expect(2);
    assert!(refused.stderr.contains("is not a regular file"), "{refused:?}");
    let own = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&own).unwrap();
    pipe(&own.join("config.toml"));
    let refused = program.windlass(&["config", "set", "agent.max_iterations", "9"]).expect(2);
    assert!(refused.stderr.contains("is not a regular file"), "{refused:?}");
}

/// Whatever file of a project is a pipe, every command ends.
#[test]
fn no_command_waits_for_a_pipe_of_a_project() {
    let program = program();
    for name in [
        "AGENTS.md",
        "CLAUDE.md",
        "plan.json",
        ".worktreeinclude",
        ".windlass/plan.json",
        ".windlass/completion.json",
        ".windlass/contract.json",
        ".windlass/system-prompt.md",
        ".windlass/plans/p/plan.json",
        ".windlass/plans/q.json",
        ".windlass/agents/a.md",
        ".windlass/templates/t.json",
        ".windlass/snapshots/unplanned/t01.md",
        ".windlass/workflows/w.yaml",
        ".windlass/spells/s.md",
        ".windlass/skills/one/SKILL.md",
        ".windlass/skills/two.md",
        ".windlass/skills/three/evals/c/task.md",
        ".windlass/skills/three/evals/c/grader.sh",
        ".claude/skills/four.md",
    ] {
        let path = program.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    }
    put(&program, ".windlass/skills/three/SKILL.md", "---\nname: three\ndescription: d\n---\nx\n");
    for command in [
        ["trust", "--yes"].as_slice(),
        &["doctor"],
        &["skills", "list"],
        &["skills", "check"],
        &["skills", "eval", "three"],
        &["plan", "list"],
        &["plan", "validate"],
        &["plan", "validate", "p"],
        &["plan", "new", "x", "--template", "t"],
        &["plan", "load-snapshot", "--task=t01"],
        &["workflow", "list"],
        &["workflow", "validate"],
        &["workflow", "run", "w"],
        &["config"],
        &["run", "x"],
    ] {
        // A command that waited would never return.
        program.windlass(command);
    }
}

#[test]
fn a_pipe_in_place_of_an_argument_is_an_error_at_once() {
    let program = program();
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    let (path, kind) = (program.workspace().join("pipe"), rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    let path = path.to_str().unwrap();
    let (model, goal) = (format!("script:{path}"), format!("@{path}"));
    for command in [
        ["run", "x", "--model", &model].as_slice(),
        &["run", "x", "--record", path],
        &["run", &goal],
        &["parallel", "run", "--file", path],
    ] {
        let ran = program.windlass(command);
        assert!(ran.stderr.contains("is not a regular file"), "{command:?}: {ran:?}");
    }
}

fn skill(description: &str) -> String {
    format!("---\nname: mine\ndescription: {description}\n---\nFollow the {description}.\n")
}

#[test]
fn a_projects_skill_takes_the_users_place_only_when_approved() {
    let program = program();
    let home = program.data.path().join(".windlass/skills/mine");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("SKILL.md"), skill("own way")).unwrap();
    put(&program, ".windlass/skills/mine/SKILL.md", &skill("clone's way"));
    let followed = || {
        let ran = program.windlass(&["run", "/mine now"]).expect(0);
        let body = program.server.requests().last().unwrap().json().to_string();
        (body.contains("Follow the own way."), body.contains("Follow the clone's way."), ran.stderr)
    };
    let (own, clones, notices) = followed();
    assert!(own && !clones);
    assert!(notices.contains("your own `mine` is used until you approve"), "{notices}");
    let listed = program.windlass(&["skills", "list"]).expect(0);
    let rows: Vec<_> = listed.stdout.lines().filter(|line| line.starts_with("mine")).collect();
    assert!(rows.len() == 2 && rows[0].contains("user"), "{rows:?}");
    assert!(rows[1].contains("project") && rows[1].contains("nobody: yours wins"), "{rows:?}");
    program.windlass(&["trust", "--yes"]).expect(0);
    let (own, clones, _) = followed();
    assert!(!own && clones, "approved, the later one wins");
}

/// A grader of a project is a stranger's program.
#[test]
fn a_grader_runs_in_the_sandbox_and_only_when_approved() {
    let program = program();
    put(&program, ".windlass/skills/g/SKILL.md", "---\nname: g\ndescription: d\n---\nx\n");
    put(&program, ".windlass/skills/g/evals/c/task.md", "do it\n");
    put(&program, ".windlass/skills/g/evals/c/hidden/answer", "42\n");
    let outside = program.data.path().join("outside");
    let grader = format!(
        "#!/bin/sh\nenv | grep -q LITELLM && exit 3\ntouch {} 2>/dev/null\n\
         cat \"$WINDLASS_EVAL_HIDDEN/answer\"\ntest -f \"$WINDLASS_EVAL_RESULT\" && test \"$PWD\" = \"$1\"\n",
        outside.display()
    );
    put(&program, ".windlass/skills/g/evals/c/grader.sh", &grader);
    let eval = ["skills", "eval", "g", "--only-with", "--json"];
    let refused = program.windlass(&eval).expect(2).stderr;
    assert!(refused.contains("grader.sh` is not approved"), "{refused}");
    let shown = program.windlass(&["trust"]).expect(2).stdout;
    assert!(shown.contains("  │ env | grep -q LITELLM && exit 3\n"), "{shown}");
    program.windlass(&["trust", "--yes"]).expect(0);
    let ran = program.windlass(&eval).expect(0);
    let line = &ran.json_lines()[0];
    assert_eq!((&line["passed"], &line["words"]), (&true.into(), &"42".into()), "{line}");
    assert!(!outside.exists(), "the grader wrote outside its sandbox");
    put(&program, ".windlass/skills/g/evals/c/grader.sh", "exit 0\n");
    program.windlass(&eval).expect(2);
}

/// Names of files with their texts.
type Files<'f> = &'f [(&'f str, &'f str)];

/// What a server runs without its entry saying so in words that a person would look for: by flags, variables and
/// directories, by what its program reads by itself, and by what those files name.
#[test]
fn a_change_of_anything_that_a_server_runs_is_asked_about() {
    let variants: &[(&str, Files<'_>, &str)] = &[
        (
            r#""python3", "args": ["srv.py", "--config", "conf.yaml"]"#,
            &[("srv.py", ""), ("conf.yaml", "a")],
            "conf.yaml",
        ),
        (r#""sh", "args": ["server"], "cwd": "d""#, &[("d/server", "echo")], "d/server"),
        (r#""sh", "args": ["server"]"#, &[("server", ". ./lib.sh"), ("lib.sh", "")], "lib.sh"),
        (
            r#""bash", "args": ["-c", "true"], "env": {"BASH_ENV": "setup"}"#,
            &[("setup", "echo")],
            "setup",
        ),
        (r#""ruby", "args": ["-r./boot", "x.rb"]"#, &[("x.rb", ""), ("boot.rb", "")], "boot.rb"),
        (
            r#""java", "args": ["-cp", "build", "Main"]"#,
            &[("build/Main.class", "")],
            "build/Main.class",
        ),
        (r#""srv", "env": {"PATH": "./bin:/usr/bin"}"#, &[("bin/srv", "#!/bin/sh")], "bin/srv"),
        (
            r#""srv", "env": {"PATH": "/workspace/bin:/usr/bin"}"#,
            &[("bin/srv", "#!/bin/sh")],
            "bin/srv",
        ),
        (
            r#""python3", "args": ["-m", "srv"], "env": {"PYTHONPATH": "lib"}"#,
            &[("lib/srv.py", "")],
            "lib/srv.py",
        ),
        (
            r#""python3", "args": ["-m", "pkg"]"#,
            &[("pkg/__main__.py", "from .core import x"), ("pkg/core.py", "")],
            "pkg/core.py",
        ),
        (
            r#""npx", "args": ["tsx", "src/a.ts"]"#,
            &[("src/a.ts", "import './b.js'"), ("src/b.ts", "")],
            "src/b.ts",
        ),
        (
            r#""python3", "args": ["a.py"]"#,
            &[("a.py", "import b"), ("b.py", "import c"), ("c.py", "import d"), ("d.py", "")],
            "d.py",
        ),
        (
            r#""python3", "args": ["a.py"]"#,
            &[("a.py", ""), ("sitecustomize.py", "")],
            "sitecustomize.py",
        ),
        (
            r#""perl", "args": ["-Ilib", "s"]"#,
            &[("s", "use Foo;"), ("lib/Foo.pm", "")],
            "lib/Foo.pm",
        ),
        (r#""cargo", "args": ["run"]"#, &[("Cargo.toml", ""), ("src/main.rs", "")], "src/main.rs"),
        (r#""go", "args": ["run", "."]"#, &[("main.go", "")], "main.go"),
        (
            r#""go", "args": ["run", "./cmd/s"]"#,
            &[("cmd/s/main.go", ""), ("in/x.go", "")],
            "in/x.go",
        ),
        (r#""dotnet", "args": ["run"]"#, &[("x.csproj", ""), ("Program.cs", "")], "Program.cs"),
        (
            r#""docker", "args": ["compose", "run", "s"]"#,
            &[("docker-compose.yml", "")],
            "docker-compose.yml",
        ),
        (
            r#""docker", "args": ["compose", "run", "s"]"#,
            &[("compose.yaml", "")],
            "compose.override.yaml",
        ),
        (r#""npx", "args": ["srv"]"#, &[("package.json", "{}")], ".npmrc"),
        (
            r#""npx", "args": ["-y", "srv"]"#,
            &[("node_modules/.bin/srv", "#!/usr/bin/env node")],
            "node_modules/.bin/srv",
        ),
        (r#""just", "args": ["serve"]"#, &[("Justfile", "serve:")], "Justfile"),
        (
            r#""uv", "args": ["run", "--directory", "srv", "main"]"#,
            &[("srv/main.py", "")],
            "srv/main.py",
        ),
    ];
    let program = program();
    for (index, (entry, files, changed)) in variants.iter().enumerate() {
        let project = format!("p{index}");
        let server = format!(r#"{{"mcpServers": {{"s": {{"command": {entry}}}}}}}"#);
        put(&program, &format!("{project}/.mcp.json"), &server);
        for (name, text) in *files {
            let path = format!("{project}/{name}");
            put(&program, &path, text);
            if text.starts_with("#!") {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                std::fs::set_permissions(program.workspace().join(path), mode).unwrap();
            }
        }
        program.windlass(&["trust", &project, "--yes"]).expect(0);
        let again = program.windlass(&["trust", &project]).expect(0).stderr;
        assert!(again.contains("already approved"), "{entry}: {again}");
        put(&program, &format!("{project}/{changed}"), "#!/bin/sh\n# changed\n");
        let asked = program.windlass(&["trust", &project]);
        assert_eq!(asked.code, 2, "{entry}: {asked:?}");
        let words = format!("changed since you approved it: {changed}");
        assert!(asked.stdout.contains(&words), "{entry}: {asked:?}");
    }
}

/// However many files come before it, and however many words.
#[test]
fn a_late_import_and_the_last_of_many_files_are_part_of_an_approval() {
    let program = program();
    let server = r#"{"mcpServers": {"s": {"command": "python3", "args": ["srv.py"], "env": {"PYTHONPATH": "lib"}}}}"#;
    put(&program, ".mcp.json", server);
    let words: String = (0..3_000).map(|number| format!("# word{number}\n")).collect();
    put(&program, "srv.py", &format!("{words}import late\n"));
    put(&program, "late.py", "");
    for number in 0..1_100 {
        put(&program, &format!("lib/m{number:04}.py"), "");
    }
    for changed in ["late.py", "lib/m1099.py"] {
        program.windlass(&["trust", "--yes"]).expect(0);
        assert!(starts(&program), "{changed}");
        put(&program, changed, "import os\n");
        assert!(!starts(&program), "{changed}");
    }
}

/// A file that a server keeps its data in is named in its entry, and changes at every use.
#[test]
fn a_server_may_change_its_own_data() {
    let program = program();
    put(
        &program,
        ".mcp.json",
        &SERVER.replace("srv.py\"", "srv.py\", \"--db\", \"x.sqlite\", \".\""),
    );
    put(&program, "srv.py", "");
    put(&program, "x.sqlite", "one");
    put(&program, "src/work.py", "one");
    program.windlass(&["trust", "--yes"]).expect(0);
    put(&program, "x.sqlite", "two");
    put(&program, "src/work.py", "two");
    assert!(starts(&program));
}

#[test]
fn a_link_to_an_approved_file_of_another_project_is_refused() {
    let program = program();
    put(&program, "a/.mcp.json", SERVER);
    put(&program, "a/srv.py", "");
    put(&program, "b/srv.py", "import os\n");
    program.windlass(&["trust", "a", "--yes"]).expect(0);
    let link = program.workspace().join("b/.mcp.json");
    std::os::unix::fs::symlink("../a/.mcp.json", link).unwrap();
    let refused = program.windlass(&["trust", "b", "--yes"]).expect(2).stderr;
    assert!(refused.contains("leads out of the project"), "{refused}");
    // A link within one project is a file of its own.
    put(&program, "c/.mcp.json", SERVER);
    std::fs::create_dir_all(program.workspace().join("c/.windlass")).unwrap();
    let inside = program.workspace().join("c/.windlass/contract.json");
    put(&program, "c/other.json", r#"{"checks": []}"#);
    std::os::unix::fs::symlink("../other.json", inside).unwrap();
    program.windlass(&["trust", "c", "--yes"]).expect(0);
}

/// A grader reads all of its case, also what it sources from `hidden/`.
#[test]
fn an_approval_of_a_grader_holds_for_its_whole_case() {
    let program = program();
    let case = ".windlass/skills/g/evals/c";
    put(&program, ".windlass/skills/g/SKILL.md", "---\nname: g\ndescription: d\n---\nb\n");
    put(&program, &format!("{case}/task.md"), "do");
    put(&program, &format!("{case}/grader.sh"), ". \"$WINDLASS_EVAL_HIDDEN/lib.sh\"\n");
    put(&program, &format!("{case}/hidden/lib.sh"), "exit 0\n");
    let shown = program.windlass(&["trust"]).expect(2).stdout;
    assert!(shown.contains(&format!("{case}/hidden/lib.sh")), "{shown}");
    program.windlass(&["trust", "--yes"]).expect(0);
    put(&program, &format!("{case}/hidden/lib.sh"), "echo other; exit 0\n");
    let asked = program.windlass(&["trust"]).expect(2).stdout;
    assert!(
        asked.contains(&format!("changed since you approved it: {case}/hidden/lib.sh")),
        "{asked}"
    );
}
