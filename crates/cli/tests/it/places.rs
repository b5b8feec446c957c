//! Where a task works: a person's own directory at its own path, with nothing of ours in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Program, Ran};

/// Git as the person has it, with a home of their own.
fn git(program: &Program, directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("HOME", program.data.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A machine whose workspace is a repository with one commit.
fn repository(script: &str) -> Program {
    let program = Program::playing(script);
    let config = "[user]\n\tname = Ada L\n\temail = ada@example.org\n[init]\n\tdefaultBranch = trunk\n\
                  [alias]\n\tpwn = !touch pwned\n[credential]\n\thelper = store\n";
    fs::write(program.data.path().join(".gitconfig"), config).unwrap();
    let place = program.workspace();
    fs::create_dir_all(place.join("src")).unwrap();
    fs::write(place.join("AGENTS.md"), "use tabs\n").unwrap();
    fs::write(place.join("src/lib.rs"), "pub fn one() {}\n").unwrap();
    git(&program, place, &["init", "--quiet"]);
    git(&program, place, &["add", "--all"]);
    git(&program, place, &["commit", "--quiet", "-m", "one"]);
    program
}

fn status(program: &Program) -> String {
    git(program, program.workspace(), &["status", "--porcelain", "--ignored"])
}

/// Runs a command line in a directory.
fn run_in(program: &Program, directory: &Path, args: &[&str]) -> Ran {
    program.command(args).current_dir(directory).output().unwrap().into()
}

fn shell(program: &Program, directory: &Path, command: &str) -> Ran {
    run_in(program, directory, &["exec", "--test", command])
}

#[test]
fn a_question_and_a_command_leave_nothing_behind() {
    let program = repository("replies: [{say: hi}]");
    program.windlass(&["-p", "say hi"]).expect(0);
    shell(&program, program.workspace(), "ls").expect(0);
    assert_eq!(status(&program), "");
    let names: Vec<_> = fs::read_dir(program.workspace()).unwrap().flatten().collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn what_an_agent_keeps_is_never_committed() {
    let program = repository(
        "replies: [{save_memo: {filename: a.md, content: seen}}, {write: {path: new.txt, content: x}}, \
         {bash: 'git add -A && git commit -qm two && git show --stat --format=%an:%ae HEAD'}, {say: done}]",
    );
    program.windlass(&["run", "commit it", "-q"]).expect(0);
    assert_eq!(program.own_file("memo/a.md"), "seen");
    let shown = git(&program, program.workspace(), &["show", "--stat", "--format=%an %ae", "HEAD"]);
    assert!(shown.starts_with("Ada L ada@example.org\n\n new.txt | 1 +\n"), "{shown}");
    assert_eq!(git(&program, program.workspace(), &["status", "--porcelain"]), "");
    assert_eq!(status(&program), "!! .windlass/\n");
}

/// MS-133: also where no tool but a command has changed anything. One that only reads leaves none.
#[test]
fn a_command_that_may_change_files_leaves_a_checkpoint() {
    let program = repository("replies: [{bash: ls}, {say: seen}]");
    program.windlass(&["run", "look", "-q"]).expect(0);
    let checkpoints = ["for-each-ref", "--format=%(refname)", "refs/windlass"];
    assert_eq!(git(&program, program.workspace(), &checkpoints), "");
    let program = repository("replies: [{bash: 'echo two > src/two.rs'}, {say: done}]");
    program.windlass(&["run", "add it", "-q"]).expect(0);
    let reference = git(&program, program.workspace(), &checkpoints);
    let file = format!("{}:src/two.rs", reference.trim_end());
    assert_eq!(git(&program, program.workspace(), &["show", &file]), "two\n");
}

#[test]
fn nothing_of_the_persons_git_runs_programs_inside() {
    let program = repository("replies: [{say: hi}]");
    let ran = shell(
        &program,
        program.workspace(),
        "git config --global --list; git init -q inner && git -C inner symbolic-ref HEAD",
    );
    let text = ran.expect(0).stdout;
    let expected =
        "user.name=Ada L\nuser.email=ada@example.org\ninit.defaultbranch=trunk\nrefs/heads/trunk";
    assert_eq!(text.trim(), expected);
}

#[test]
fn a_repositorys_own_identity_wins() {
    let program = repository("replies: [{say: hi}]");
    git(&program, program.workspace(), &["config", "user.name", "Work Ada"]);
    let ran = shell(&program, program.workspace(), "git config user.name");
    assert_eq!(ran.expect(0).stdout.trim(), "Work Ada");
}

#[test]
fn a_part_of_a_repository_is_not_cut_off() {
    let program = repository(
        "replies: [{read: ../AGENTS.md}, {bash: 'pwd; git status --short; cat lib.rs'}, \
         {edit: {path: ../AGENTS.md, old_string: tabs, new_string: spaces}}, {say: done}]",
    );
    let source = program.workspace().join("src");
    fs::create_dir_all(program.workspace().join(".windlass")).unwrap();
    fs::write(program.workspace().join(".windlass/config.toml"), "[agent]\nmax_iterations = 7\n")
        .unwrap();
    let ran = run_in(&program, &source, &["run", "look", "--json"]).expect(3);
    let lines = ran.json_lines();
    let results: Vec<_> = lines.iter().filter(|line| line["event_type"] == "tool_result").collect();
    let text = |at: usize| results[at]["data"]["text"].as_str().unwrap().to_owned();
    assert!(text(0).contains("use tabs"), "{}", text(0));
    let place = program.real_workspace();
    assert_eq!(text(1), format!("{place}/src\n?? ../.windlass/\npub fn one() {{}}\n"));
    let start = lines.iter().find(|line| line["event_type"] == "agent_start").unwrap();
    assert_eq!(start["data"]["max_iterations"], 7, "the project's file counts in its parts too");
    let request = program.server.requests()[0].json();
    let system = request["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains(&format!("start in `{place}/src`")), "{system}");
}

#[test]
fn paths_are_true_for_the_person() {
    let program = repository("replies: [{say: hi}]");
    let place = program.real_workspace();
    fs::write(program.workspace().join("fails.py"), "def f():\n    raise ValueError\nf()\n")
        .unwrap();
    let ran = shell(&program, program.workspace(), &format!("python3 {place}/fails.py"));
    let text = ran.expect(1).stderr;
    assert!(text.contains(&format!("File \"{place}/fails.py\", line 3")), "{text}");
    shell(&program, program.workspace(), "test /workspace/fails.py -ef fails.py").expect(0);
}

#[test]
fn a_virtual_environment_works_on_both_sides() {
    let program = repository("replies: [{say: hi}]");
    let place = program.workspace();
    // The system's own: it is at the same place on both sides.
    let made = Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--without-pip", "theirs"])
        .current_dir(place)
        .status()
        .unwrap();
    assert!(made.success());
    let entry = "#!/bin/sh\nexec \"$(dirname \"$0\")/python\" -c 'import sys; print(sys.prefix)'\n";
    fs::write(place.join("theirs/bin/where"), entry).unwrap();
    let real = program.real_workspace();
    let ran =
        shell(&program, place, ". theirs/bin/activate && sh theirs/bin/where && which python");
    assert_eq!(ran.expect(0).stdout.trim(), format!("{real}/theirs\n{real}/theirs/bin/python"));

    shell(&program, place, "/usr/bin/python3 -m venv --without-pip ours").expect(0);
    let output = Command::new(place.join("ours/bin/python"))
        .args(["-c", "import sys; print(sys.prefix)"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), format!("{real}/ours"));
}

#[test]
fn a_git_worktree_can_be_worked_in_and_leaves_others_alone() {
    let program = repository("replies: [{say: hi}]");
    let main = program.workspace();
    let tree = tempfile::tempdir().unwrap();
    let tree = tree.path().join("tree");
    let name = tree.to_str().unwrap();
    git(&program, main, &["worktree", "add", "--quiet", "-b", "feature", name]);
    git(&program, main, &["worktree", "add", "--quiet", "-b", "other", &format!("{name}-2")]);
    let ran = shell(
        &program,
        &tree,
        "echo x > made && git add -A && git commit -qm two && git log --oneline | wc -l",
    );
    assert_eq!(ran.expect(0).stdout.trim(), "2");
    let log = git(&program, main, &["log", "--format=%an %s", "feature"]);
    assert_eq!(log, "Ada L two\nAda L one\n");
    let common = main.canonicalize().unwrap().join(".git");
    let common = common.display();
    for denied in [
        format!("echo x > {common}/hooks/pre-commit"),
        format!("echo x >> {common}/config"),
        format!("echo x > {common}/worktrees/tree-2/HEAD"),
        format!("echo x > {common}/worktrees/tree/commondir"),
        format!("echo x > {common}/HEAD"),
        format!("cat {}/AGENTS.md", main.display()),
    ] {
        let ran = shell(&program, &tree, &denied);
        assert_ne!(ran.code, 0, "{denied}");
    }
}

#[test]
fn added_directories_serve_file_tools_and_commands() {
    let beside = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf {
        let path = beside.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let (lib, docs) = (at("lib"), at("docs"));
    fs::write(docs.join("a.md"), "kept").unwrap();
    let (open, closed) = (lib.display(), docs.display());
    let program = repository(&format!(
        "replies: [{{write: {{path: {open}/made, content: by a tool}}}}, {{read: {closed}/a.md}}, \
         {{bash: 'echo more >> {open}/made'}}, {{write: {{path: {closed}/b, content: x}}}}, {{say: done}}]"
    ));
    let read_only = format!("{closed}:ro");
    let added = open.to_string();
    let args = ["run", "work", "--json", "--add-dir", &added, "--add-dir", &read_only];
    let ran = program.windlass(&args).expect(0);
    assert_eq!(fs::read_to_string(lib.join("made")).unwrap(), "by a toolmore\n");
    assert!(!docs.join("b").exists());
    assert!(program.last_message_sent().contains("read-only"), "{}", program.last_message_sent());
    assert!(ran.stdout.contains("kept"));
    let ran = program.windlass(&["run", "work", "--add-dir", "/no/such"]).expect(2);
    assert!(ran.stderr.contains("`/no/such` cannot be added"), "{}", ran.stderr);
}

#[test]
fn the_host_sandbox_keeps_the_environment_without_our_keys() {
    let program = Program::playing("replies: [{say: hi}]");
    let mut command = program.command(&["exec", "--sandbox", "host", "--test", "env"]);
    command.env("OPENAI_API_KEY", "sk-secret-1").env("MY_TOOL", "kept").env("COPY", "sk-secret-1");
    let text = Ran::from(command.output().unwrap()).expect(0).stdout;
    assert!(text.contains(&format!("HOME={}\n", program.data.path().display())), "{text}");
    assert!(text.contains("MY_TOOL=kept\n") && text.contains("USER=ada\n"), "{text}");
    assert!(!text.contains("sk-secret-1"), "{text}");
}

#[test]
fn home_is_refused_until_it_is_confirmed_once() {
    let program = Program::playing("replies: [{say: hi}]");
    let home = program.data.path().canonicalize().unwrap();
    for directory in [home.as_path(), home.parent().unwrap(), Path::new("/")] {
        let ran = run_in(&program, directory, &["-p", "hi"]).expect(2);
        assert!(ran.stderr.contains("--confirm-workspace"), "{}", ran.stderr);
        shell(&program, directory, "true").expect(2);
    }
    run_in(&program, &home, &["run", "hi", "-q", "--confirm-workspace"]).expect(0);
    run_in(&program, &home, &["run", "hi", "-q"]).expect(0);
    run_in(&program, Path::new("/"), &["run", "hi", "-q"]).expect(2);
}

#[test]
fn our_configuration_is_hidden_where_home_is_the_workspace() {
    let program = Program::playing(
        "replies: [{read: .config/windlass/config.toml}, {bash: 'cat .config/windlass/config.toml'}, \
         {grep: {pattern: sk-mine, hidden: true, ignored: true}}, {say: done}]",
    );
    let home = program.data.path();
    fs::create_dir_all(home.join(".config/windlass")).unwrap();
    let text = "[models]\nanthropic_api_key = \"sk-mine-123456\"\n";
    fs::write(home.join(".config/windlass/config.toml"), text).unwrap();
    let ran = run_in(&program, home, &["run", "look", "--json", "--confirm-workspace"]);
    assert!(!ran.stdout.contains("sk-mine-123456"), "{}", ran.stdout);
    for request in program.server.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains("sk-mine-123456"));
    }
}

/// Whoever keeps all their settings in one repository works in it too.
#[test]
fn our_configuration_is_hidden_where_a_link_leads_to_it() {
    let program = Program::playing(
        "replies: [{read: settings/windlass.toml}, {bash: 'cat settings/windlass.toml; cp settings/windlass.toml b; cat b'}, \
         {grep: {pattern: max_iterations, hidden: true, ignored: true}}, {say: done}]",
    );
    let own = program.data.path().join(".config/windlass");
    fs::create_dir_all(&own).unwrap();
    let kept = program.workspace().join("settings/windlass.toml");
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    fs::write(&kept, "[agent]\nmax_iterations = 7654\n").unwrap();
    std::os::unix::fs::symlink(&kept, own.join("config.toml")).unwrap();
    run_in(&program, program.workspace(), &["run", "look", "--json"]);
    let asked = program.server.requests();
    assert_eq!(asked.len(), 4);
    for request in asked {
        assert!(!String::from_utf8_lossy(&request.body).contains("max_iterations = 7654"));
    }
}

#[test]
fn a_second_task_in_a_repository_is_refused_unless_it_only_reads() {
    let program = repository(
        "replies: [{task: first, turn: 0, bash: 'echo begun > begun; sleep 600'}, \
         {task: second, turn: 0, say: done}]",
    );
    let mut first = program.start(&["run", "first", "--json"]);
    while !program.workspace().join("begun").exists() {
        assert!(first.try_wait().unwrap().is_none(), "it ended early");
        std::thread::yield_now();
    }
    let source = program.workspace().join("src");
    let ran = run_in(&program, &source, &["run", "second", "-q"]).expect(2);
    assert!(ran.stderr.contains("--share"), "{}", ran.stderr);
    run_in(&program, &source, &["run", "second", "-q", "--mode", "review"]).expect(0);
    run_in(&program, &source, &["run", "second", "-q", "--share"]).expect(0);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_pipe_in_place_of_a_project_file_is_refused_at_once() {
    for (name, code) in [
        (".mcp.json", 0),
        (".windlass/config.toml", 2),
        ("AGENTS.md", 0),
        (".windlass/skills/a/SKILL.md", 0),
        (".windlass/skills/b.md", 0),
        (".git", 0),
        (".git/HEAD", 0),
        (".git/config", 0),
    ] {
        let program = Program::playing("replies: [{say: hi}]");
        let path = program.workspace().join(name);
        if name.starts_with(".git/") {
            let init = Command::new("git").arg("init").arg("-q").arg(program.workspace()).status();
            assert!(init.unwrap().success());
            fs::remove_file(&path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        program.windlass(&["run", "hi", "-q"]).expect(code);
        program.windlass(&["mcp", "list"]).expect(code);
        program.windlass(&["skills", "list"]);
        let ran = program.windlass(&["trust"]);
        if name == ".mcp.json" {
            assert!(ran.stderr.contains("not a regular file"), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_hostile_link_in_a_clone_leads_our_files_nowhere() {
    let program = Program::playing(
        "replies: [{save_memo: {filename: a.md, content: seen}}, {bash: echo hi}, {say: done}]",
    );
    let victim = tempfile::tempdir().unwrap();
    for name in [".trace", ".windlass", ".scratch", ".memo", "output"] {
        std::os::unix::fs::symlink(victim.path(), program.workspace().join(name)).unwrap();
    }
    program.windlass(&["run", "note it", "-q"]);
    assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 0);
}

#[test]
fn what_is_mounted_in_a_workspace_is_not_followed() {
    let program = Program::playing(
        "replies: [{read: m/secret.txt}, {grep: {pattern: hush}}, {write: {path: m/new, content: x}}, \
         {say: done}]",
    );
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "hush\n").unwrap();
    let place = program.workspace().join("m");
    fs::create_dir(&place).unwrap();
    let inner = program.command(&["run", "look", "--json", "--sandbox", "host"]);
    let mount =
        format!("mount --bind {} {} && exec \"$@\"", outside.path().display(), place.display());
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(program.workspace())
        .output()
        .unwrap();
    let ran = Ran::from(output).expect(0);
    assert!(!ran.stdout.contains("hush\\n"), "{}", ran.stdout);
    let mounts = ran.stdout.matches("is a mount inside the workspace").count();
    assert!(mounts >= 2, "{}", ran.stdout);
    assert!(!outside.path().join("new").exists());
}
