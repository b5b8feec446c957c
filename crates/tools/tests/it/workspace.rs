//! Opening a workspace: its layout, and what is said when it cannot be used.

use std::path::Path;

use windlass_core::id::{CallId, TaskId};
use windlass_core::layout::{Layout, Own};
use windlass_testkit::git;
use windlass_tools::workspace::repository::{boundary, git_directories, remove_planted};
use windlass_tools::workspace::{Places, Purpose, Replacement, Workspace};

fn open(path: &Path) -> Result<Workspace, String> {
    Workspace::open(path, Places::default()).map_err(|error| error.to_string())
}

/// ES-037, ES-038, ES-039, ES-173
#[test]
fn the_layout_is_made_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).unwrap();
    for name in [".memo", ".scratch", "output"] {
        assert!(directory.path().join(name).is_dir(), "{name}");
    }
    assert!(!directory.path().join(".git").exists());
    open(directory.path()).unwrap();
}

fn task() -> TaskId {
    TaskId::derived("test", "task")
}

/// A workspace in a person's directory, whose agent starts in `below` of it.
fn personal(top: &Path, below: &str) -> Workspace {
    let top = top.canonicalize().unwrap();
    let directory = top.join(below);
    let layout = Layout::personal(task(), top.to_str().unwrap(), directory.to_str().unwrap());
    let trace = Some(top.parent().unwrap().join("traces"));
    Workspace::open(&top, Places { layout, trace, ..Places::default() }).unwrap()
}

fn replace(workspace: &Workspace, path: &str, content: &str) -> Result<(), String> {
    let current =
        workspace.write_target(path, Purpose::Agent).map_err(|error| error.to_string())?;
    let new = Replacement {
        call: CallId::derived("test", path),
        path: &current.path,
        before: current.hash.as_deref(),
        content: content.as_bytes(),
        purpose: Purpose::Agent,
    };
    workspace.replace(new).map_err(|error| error.to_string())
}

fn write(path: impl AsRef<Path>, content: &str) {
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn a_persons_directory_gets_nothing_before_it_is_needed() {
    let room = tempfile::tempdir().unwrap();
    let top = room.path().join("project");
    std::fs::create_dir(&top).unwrap();
    git(&top, &["init", "--quiet"]);
    let exclude = std::fs::read(top.join(".git/info/exclude")).unwrap();
    let workspace = personal(&top, "");
    assert_eq!(std::fs::read_dir(&top).unwrap().count(), 1, "the repository alone");

    let memo = format!("{}/a.md", workspace.layout().path(Own::Memo));
    replace(&workspace, &memo, "noted").unwrap();
    let own = top.join(format!(".windlass/tasks/{}", task()));
    assert_eq!(std::fs::read_to_string(own.join("memo/a.md")).unwrap(), "noted");
    let plan = workspace.layout().path(Own::Plan);
    let current = workspace.write_target(&plan, Purpose::Plan).unwrap();
    let (call, path) = (CallId::derived("test", "plan"), current.path.as_str());
    let (before, content, purpose) = (None, &b"a plan"[..], Purpose::Plan);
    workspace.replace(Replacement { call, path, before, content, purpose }).unwrap();
    assert_eq!(std::fs::read_to_string(own.join("plan.md")).unwrap(), "a plan");
    let link = std::fs::read_link(own.join(format!("trace/{}.jsonl", task()))).unwrap();
    assert!(link.ends_with(format!("traces/{}.jsonl", task())), "{link:?}");
    assert_eq!(git(&top, &["status", "--porcelain"]), "");
    git(&top, &["add", "--all"]);
    assert_eq!(git(&top, &["status", "--porcelain"]), "");
    assert_eq!(std::fs::read(top.join(".git/info/exclude")).unwrap(), exclude);
}

#[test]
fn a_projects_own_windlass_files_stay_visible_to_git() {
    let room = tempfile::tempdir().unwrap();
    let top = room.path().join("project");
    write(top.join(".windlass/config.toml"), "");
    write(top.join(".windlass/.gitignore"), "local.toml\n");
    git(&top, &["init", "--quiet"]);
    git(&top, &["add", "--all"]);
    git(&top, &["commit", "--quiet", "-m", "one"]);
    let workspace = personal(&top, "");
    let file = format!("{}/b", workspace.layout().path(Own::Scratch));
    replace(&workspace, &file, "x").unwrap();
    write(top.join(".windlass/skills/a/SKILL.md"), "new");
    assert_eq!(git(&top, &["status", "--porcelain"]), "?? .windlass/skills/");
}

#[test]
fn paths_are_relative_to_where_the_agent_started() {
    let room = tempfile::tempdir().unwrap();
    let top = room.path().join("project");
    write(top.join("AGENTS.md"), "read me");
    write(top.join("src/lib.rs"), "code");
    let workspace = personal(&top, "src");
    let real = top.canonicalize().unwrap();
    let real = real.display();
    for (path, shown, content) in [
        ("lib.rs".to_owned(), "lib.rs", "code"),
        ("../AGENTS.md".to_owned(), "../AGENTS.md", "read me"),
        ("/workspace/AGENTS.md".to_owned(), "../AGENTS.md", "read me"),
        (format!("{real}/src/lib.rs"), "lib.rs", "code"),
    ] {
        assert_eq!(workspace.read_all(&path, 100).unwrap(), content.as_bytes(), "{path}");
        assert_eq!(workspace.read(&path).unwrap().path, shown, "{path}");
    }
    for path in ["../../project/AGENTS.md", "../..", "/etc/passwd"] {
        let said = workspace.read(path).unwrap_err().to_string();
        assert!(said.contains("is outside the workspace"), "{path}: {said}");
    }
}

#[test]
fn the_files_of_other_tasks_are_read_only() {
    let room = tempfile::tempdir().unwrap();
    let top = room.path().join("project");
    write(top.join(".windlass/tasks/task_other/memo/a.md"), "theirs");
    write(top.join(".windlass/tasks/.gitignore"), "*\n");
    let workspace = personal(&top, "");
    for path in [".windlass/tasks/task_other/memo/a.md", ".windlass/tasks/task_new/x"] {
        let said = replace(&workspace, path, "mine").unwrap_err();
        assert!(said.contains("another task"), "{said}");
    }
    assert!(replace(&workspace, ".windlass/tasks/.gitignore", "").is_err());
    let theirs = workspace.read_all(".windlass/tasks/task_other/memo/a.md", 100).unwrap();
    assert_eq!(theirs, b"theirs");
}

#[test]
fn our_files_are_not_made_through_a_link() {
    let room = tempfile::tempdir().unwrap();
    let (top, victim) = (room.path().join("project"), room.path().join("victim"));
    for link in [".windlass", ".windlass/tasks", ".trace"] {
        std::fs::create_dir_all(&victim).unwrap();
        std::fs::create_dir_all(top.join(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&victim, top.join(link)).unwrap();
        let workspace = personal(&top, "");
        let scratch = format!("{}/x", workspace.layout().path(Own::Scratch));
        let _ = workspace.keep(CallId::derived("test", "x"), &scratch, &mut &b"x"[..]);
        workspace.own_files().prepare_task_directory_for(&task().to_string());
        workspace.own_files().complete_task_directory();
        let places = Places { trace: Some(victim.clone()), ..Places::default() };
        Workspace::open(&top, places).unwrap().own_files().link_trace(task());
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0, "{link}");
        std::fs::remove_dir_all(&top).unwrap();
    }
}

#[test]
fn a_repository_is_the_boundary_and_home_is_not() {
    let room = tempfile::tempdir().unwrap();
    let home = room.path().canonicalize().unwrap();
    let inner = home.join("repo/src/lib");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir_all(home.join("plain/below")).unwrap();
    git(&home, &["init", "--quiet"]);
    git(&home.join("repo"), &["init", "--quiet"]);
    let found = |directory: &Path| boundary(directory, Some(&home));
    assert_eq!(found(&inner), home.join("repo"));
    assert_eq!(found(&home.join("repo")), home.join("repo"));
    assert_eq!(found(&home.join("plain/below")), home.join("plain/below"));
    assert_eq!(found(&home), home);
    assert_eq!(boundary(&home.join("plain/below"), None), home, "a repository like any other");
}

#[test]
fn a_worktree_gets_what_it_needs_of_its_own_repository_only() {
    let room = tempfile::tempdir().unwrap();
    let at = |name: &str| room.path().canonicalize().unwrap().join(name);
    std::fs::create_dir(at("main")).unwrap();
    git(&at("main"), &["init", "--quiet"]);
    std::fs::write(at("main/file"), "x").unwrap();
    git(&at("main"), &["add", "file"]);
    git(&at("main"), &["commit", "--quiet", "-m", "one"]);
    git(&at("main"), &["worktree", "add", "--quiet", "../tree"]);
    git(&at("main"), &["worktree", "add", "--quiet", "../other"]);
    let needed: Vec<(String, bool)> = git_directories(&at("tree"))
        .into_iter()
        .map(|shown| {
            (shown.path.replace(&at("main/.git").display().to_string(), "GIT"), shown.writable)
        })
        .collect();
    let expected = [
        ("GIT", true),
        ("GIT/hooks", false),
        ("GIT/config", false),
        ("GIT/config.worktree", false),
        ("GIT/info", false),
        ("GIT/modules", false),
        ("GIT/worktrees", false),
        ("GIT/HEAD", false),
        ("GIT/index", false),
        ("GIT/worktrees/tree", true),
        ("GIT/worktrees/tree/commondir", false),
        ("GIT/worktrees/tree/gitdir", false),
        ("GIT/worktrees/tree/config.worktree", false),
    ];
    assert_eq!(needed, expected.map(|(path, writable)| (path.to_owned(), writable)));
    assert!(git_directories(&at("main")).is_empty());
    assert_eq!(git(&at("main"), &["status", "--porcelain"]), "", "git works as before");

    // What git would obey and only a command can have made goes; the worktree's own file stays.
    write(at("main/.git/commondir").as_path(), "/elsewhere\n");
    remove_planted(&at("tree"));
    assert!(!at("main/.git/commondir").exists());
    assert!(at("main/.git/worktrees/tree/commondir").exists());

    // A directory that merely claims to be that worktree, and one that brings its own git directory.
    write(at("liar/.git"), &format!("gitdir: {}\n", at("main/.git/worktrees/tree").display()));
    assert!(git_directories(&at("liar")).is_empty());
    write(at("forged/own/gitdir"), &format!("{}\n", at("forged/.git").display()));
    write(at("forged/own/commondir"), &format!("{}\n", at("main/.git").display()));
    write(at("forged/.git"), &format!("gitdir: {}\n", at("forged/own").display()));
    assert!(git_directories(&at("forged")).is_empty());
}

#[test]
fn a_workspace_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("file"), "").unwrap();
    std::fs::create_dir(path.join("taken")).unwrap();
    std::fs::write(path.join("taken/output"), "").unwrap();
    let said = |name: &str| {
        let said = open(&path.join(name)).err().unwrap();
        said.replace(&*path.to_string_lossy(), "DIR")
    };
    assert_eq!(said("nope"), "workspace `DIR/nope` does not exist");
    assert_eq!(said("file"), "workspace `DIR/file` is not a directory");
    assert_eq!(
        said("taken"),
        "`output` in workspace `DIR/taken` is in the way: it must be a directory"
    );
}

/// For root nothing is read-only but a read-only mount: `/proc` is one everywhere.
#[test]
fn a_workspace_that_is_not_writable_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let locked = directory.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    let path = if rustix::process::geteuid().is_root() { Path::new("/proc/self") } else { &locked };
    let said = open(path).err().unwrap();
    assert_eq!(said, format!("workspace `{}` is not writable", path.display()));
}

/// The clock of a file system moves in steps, and a person may be asked at any moment of one.
#[test]
fn a_change_just_after_the_mark_counts_and_one_before_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    std::fs::create_dir(top.join("web")).unwrap();
    let workspace = personal(&top, "web");
    for round in 0..50 {
        std::fs::write(top.join(format!("before{round}")), "x").unwrap();
        let marks = workspace.changes().marks();
        let after = top.join(format!("after{round}"));
        std::fs::write(&after, "x").unwrap();
        let found = workspace.changes().since(&marks, &|_| false);
        assert_eq!(found.changed, [after.display().to_string()], "round {round}");
    }
}
