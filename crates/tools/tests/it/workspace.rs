//! Opening a workspace: its layout, and what is said when it cannot be used.

use std::path::Path;

use windlass_tools::workspace::{Places, Workspace};

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

#[test]
fn our_files_are_kept_out_of_the_users_repository() {
    let directory = tempfile::tempdir().unwrap();
    let exclude = directory.path().join(".git/info/exclude");
    std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    std::fs::write(&exclude, "# theirs\n*.log").unwrap();
    open(directory.path()).unwrap();
    let text = "# theirs\n*.log\n.plan.md\n.memo/\n.scratch/\n.trace/\n";
    assert_eq!(std::fs::read_to_string(&exclude).unwrap(), text);
    open(directory.path()).unwrap();
    assert_eq!(std::fs::read_to_string(&exclude).unwrap(), text, "once is enough");
    std::fs::remove_file(&exclude).unwrap();
    open(directory.path()).unwrap();
    let text = ".plan.md\n.memo/\n.scratch/\n.trace/\n";
    assert_eq!(std::fs::read_to_string(&exclude).unwrap(), text);
}

fn write(path: impl AsRef<Path>, content: &str) {
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

const OURS: &str = ".plan.md\n.memo/\n.scratch/\n.trace/\n";

#[test]
fn a_workspace_inside_a_repository_is_kept_out_of_it_too() {
    let directory = tempfile::tempdir().unwrap();
    let git = directory.path().join(".git");
    write(git.join("HEAD"), "ref: refs/heads/main\n");
    write(git.join("info/exclude"), "# theirs\n");
    std::fs::create_dir_all(directory.path().join("a/b")).unwrap();
    for _ in 0..2 {
        open(&directory.path().join("a/b")).unwrap();
        let text = std::fs::read_to_string(git.join("info/exclude")).unwrap();
        assert_eq!(text, format!("# theirs\n{OURS}"));
    }
}

#[test]
fn a_worktree_is_kept_out_of_its_own_repository_only() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let names = |name: &str| format!("{}\n", at(name).display());
    write(at("main/.git/HEAD"), "ref: refs/heads/main\n");
    write(at("main/.git/info/exclude"), "");
    write(at("main/.git/worktrees/tree/gitdir"), &names("tree/.git"));
    write(at("main/.git/worktrees/tree/commondir"), "../..\n");
    write(at("tree/.git"), &format!("gitdir: {}", names("main/.git/worktrees/tree")));
    write(at("liar/.git"), &format!("gitdir: {}", names("main/.git/worktrees/tree")));
    let exclude = || std::fs::read_to_string(at("main/.git/info/exclude")).unwrap();
    open(&at("liar")).unwrap();
    assert_eq!(exclude(), "", "the repository does not know this worktree");
    open(&at("tree")).unwrap();
    assert_eq!(exclude(), OURS);
    // A git directory of the worktree's own making that names another repository as its own.
    write(at("forged/own/gitdir"), &names("forged/.git"));
    write(at("forged/own/commondir"), &names("victim"));
    write(at("forged/.git"), &format!("gitdir: {}", names("forged/own")));
    write(at("victim/HEAD"), "ref: refs/heads/main\n");
    write(at("victim/info/exclude"), "");
    open(&at("forged")).unwrap();
    assert_eq!(std::fs::read_to_string(at("victim/info/exclude")).unwrap(), "");
}

#[test]
fn a_repository_that_points_elsewhere_is_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let (workspace, victim) = (outside.path().join("ws"), outside.path().join("victim"));
    std::fs::create_dir_all(workspace.join(".git")).unwrap();
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("exclude"), "theirs").unwrap();
    std::os::unix::fs::symlink(&victim, workspace.join(".git/info")).unwrap();
    open(&workspace).unwrap();
    assert_eq!(std::fs::read_to_string(victim.join("exclude")).unwrap(), "theirs");
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
