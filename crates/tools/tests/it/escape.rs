//! Every way out of the workspace that we know of, tried.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::json;
use windlass_core::id::CallId;
use windlass_tools::workspace::{Places, Purpose, Replacement, ScanFilter, Stop};

use crate::bench::Bench;

const SECRET: &str = "do not read me";

/// A workspace with a secret beside it.
fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.outside.path().join("secret"), SECRET).unwrap();
    std::fs::create_dir(bench.outside.path().join("dir")).unwrap();
    std::fs::write(bench.outside.path().join("dir/secret"), SECRET).unwrap();
    bench
}

/// Tries to read and to write through each path, and checks that neither reached the secret.
async fn refused(mut bench: Bench, paths: &[&str], because: &str) {
    for path in paths {
        let read = bench.error("read", json!({ "path": path })).await;
        assert!(read.contains(because) && !read.contains(SECRET), "read {path}: {read}");
        let write = bench.error("write", json!({ "path": path, "content": "pwned" })).await;
        assert!(write.contains(because), "write {path}: {write}");
        bench.facts.known_files.insert(path.to_string(), "x".into());
        bench.error("edit", json!({ "path": path, "old_string": "do", "new_string": "did" })).await;
        let publish = json!({ "filepath": path, "description": "d", "type": "other" });
        assert!(
            bench.error("publish_deliverable", publish).await.contains(because),
            "publish {path}"
        );
        let grep = bench.call("grep", json!({ "pattern": "not read", "path": path })).await;
        assert!(!grep.text.contains(SECRET), "grep {path}: {}", grep.text);
    }
    untouched(&bench);
}

fn untouched(bench: &Bench) {
    for name in ["secret", "dir/secret"] {
        let path = bench.outside.path().join(name);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), SECRET, "{name}");
    }
    let mut names: Vec<_> = std::fs::read_dir(bench.outside.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["dir", "secret", "ws"], "nothing new outside");
}

/// ES-172
#[tokio::test]
async fn dot_dot_does_not_lead_out() {
    let paths = [
        "../secret",
        "output/../../secret",
        "./.././secret",
        "/workspace/../secret",
        "../ws/../secret",
        "output/../../ws/../dir/secret",
        "..",
    ];
    refused(bench(), &paths, "outside the workspace").await;
}

#[tokio::test]
async fn absolute_paths_do_not_lead_out() {
    let bench = bench();
    let secret = bench.outside.path().join("secret");
    let beside = format!("{}-beside/x", bench.path("").display().to_string().trim_end_matches('/'));
    let paths = [
        secret.to_str().unwrap(),
        &beside,
        "/etc/passwd",
        "/",
        "/workspaces/x",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/x",
        "/dev/stdin",
    ];
    refused(bench, &paths, "outside the workspace").await;
}

#[tokio::test]
async fn the_workspaces_own_absolute_names_lead_in() {
    let mut bench = bench();
    bench.put("a", "inside\n");
    let real = bench.path("a");
    for path in ["/workspace/a", "/workspace//./a", real.to_str().unwrap()] {
        assert_eq!(bench.ok("read", json!({ "path": path })).await, "     1\tinside\n", "{path}");
    }
}

#[tokio::test]
async fn symbolic_links_do_not_lead_out() {
    let bench = bench();
    let outside = bench.outside.path();
    symlink("../secret", bench.path("relative")).unwrap();
    symlink(outside.join("secret"), bench.path("absolute")).unwrap();
    symlink(outside.join("dir"), bench.path("directory")).unwrap();
    symlink("..", bench.path("parent")).unwrap();
    symlink("relative", bench.path("chain")).unwrap();
    symlink("/", bench.path("root")).unwrap();
    symlink("/proc/self/root", bench.path("magic")).unwrap();
    symlink(outside.join("new"), bench.path("dangling")).unwrap();
    let below_root = format!("root{}", outside.join("secret").display());
    let below_magic = format!("magic{}", outside.join("secret").display());
    let paths = [
        "relative",
        "absolute",
        "directory/secret",
        "parent/secret",
        "chain",
        "dangling",
        "parent/dir/secret",
        &below_root,
        &below_magic,
    ];
    refused(bench, &paths, "outside the workspace").await;
}

#[tokio::test]
async fn links_that_stay_inside_work_and_stay_links() {
    let mut bench = bench();
    bench.put("real/a", "one\n");
    symlink("real", bench.path("linked")).unwrap();
    symlink("../real/a", bench.path("output/a")).unwrap();
    symlink("/workspace/real/a", bench.path("as-seen")).unwrap();
    for path in ["linked/a", "output/a", "as-seen", "linked/../real/a"] {
        assert_eq!(bench.ok("read", json!({ "path": path })).await, "     1\tone\n", "{path}");
    }
    assert!(bench.facts.known_files.keys().eq(["real/a"]), "known by the name that was walked");
    bench.ok("write", json!({ "path": "as-seen", "content": "two\n" })).await;
    assert_eq!(bench.text("real/a"), "two\n");
    assert!(bench.path("as-seen").is_symlink());
}

#[tokio::test]
async fn links_that_go_round_in_circles_end() {
    let bench = bench();
    symlink("b", bench.path("a")).unwrap();
    symlink("a", bench.path("b")).unwrap();
    refused(bench, &["a", "b/c"], "too many symbolic links").await;
}

/// A hard link looks exactly like the file itself, so it can be read; writing breaks the link.
#[tokio::test]
async fn a_hard_linked_file_outside_is_never_changed() {
    let mut bench = bench();
    std::fs::hard_link(bench.outside.path().join("secret"), bench.path("hard")).unwrap();
    bench.ok("read", json!({ "path": "hard" })).await;
    bench.ok("edit", json!({ "path": "hard", "old_string": "not ", "new_string": "" })).await;
    bench.ok("write", json!({ "path": "hard", "content": "mine" })).await;
    assert_eq!(bench.text("hard"), "mine");
    untouched(&bench);
}

/// Two names change places, at once where the file system can.
fn swap(one: &Path, other: &Path) {
    if rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_err() {
        let between = one.with_extension("between");
        std::fs::rename(one, &between).unwrap();
        std::fs::rename(other, one).unwrap();
        std::fs::rename(&between, other).unwrap();
    }
}

/// Rounds of the race; more only while one of its outcomes has not been met.
const ROUNDS: u32 = 20_000;
const MOST_ROUNDS: u32 = 1_000_000;

/// A directory and a link to outside change places as fast as they can while files are read, written and
/// searched through them.
#[test]
fn links_swapped_during_the_call_do_not_lead_out() {
    let bench = bench();
    let workspace = &bench.world.workspace;
    bench.put("d/secret", "inside");
    symlink(bench.outside.path().join("dir"), bench.path("link")).unwrap();
    let stop = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (directory, link) = (bench.path("d"), bench.path("link"));
            while !stop.load(Ordering::Relaxed) {
                swap(&directory, &link);
            }
        });
        for round in 0..MOST_ROUNDS {
            if round >= ROUNDS && inside > 0 && refused > 0 {
                break;
            }
            match workspace.read_all("d/secret", 100) {
                Ok(content) => {
                    assert_eq!(content, b"inside");
                    inside += 1;
                }
                Err(_) => refused += 1,
            }
            if round % 50 == 0 {
                let found =
                    workspace.scan(".", ScanFilter::default(), &Stop::default(), &mut |entry| {
                        if let Ok(mut opened) = entry.open() {
                            let mut text = String::new();
                            opened.file.read_to_string(&mut text).unwrap();
                            assert_ne!(text, SECRET);
                        }
                        ControlFlow::Continue(())
                    });
                found.unwrap();
            }
            if round % 20 == 0 {
                let call = CallId::derived("race", &round.to_string());
                let new = Replacement {
                    call,
                    path: "d/new",
                    before: None,
                    content: b"pwned",
                    purpose: Purpose::Agent,
                };
                let _ = workspace.replace(new);
                for name in ["d/new", "link/new"] {
                    let _ = rustix::fs::unlink(bench.path(name).as_path());
                    assert!(!bench.outside.path().join("dir/new").exists());
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(inside > 0 && refused > 0, "both were met: {inside} inside, {refused} refused");
    untouched(&bench);
}

#[tokio::test]
async fn fifos_sockets_and_devices_are_not_opened() {
    let bench = bench();
    rustix::fs::mkfifoat(CWD, bench.path("fifo").as_path(), Mode::from_raw_mode(0o666)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    let mut paths = vec!["fifo", "socket"];
    // Only root may make a device.
    let device = bench.path("device");
    let null = rustix::fs::makedev(1, 3);
    if rustix::fs::mknodat(
        CWD,
        device.as_path(),
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        null,
    )
    .is_ok()
    {
        paths.push("device");
    }
    refused(bench, &paths, "not a regular file").await;
}

#[tokio::test]
async fn names_that_can_be_no_file_are_refused() {
    let long_name = "x".repeat(256);
    let long_path = "x/".repeat(2100) + "x";
    let paths = ["", "a\0b", "secret\0.txt", &long_name, &long_path];
    refused(bench(), &paths, "not a usable path").await;
}

#[tokio::test]
async fn what_git_would_run_is_never_written() {
    let mut bench = bench();
    bench.put(".git/config", "[core]\n");
    bench.put(".git/hooks/pre-commit.sample", "#!/bin/sh\n");
    bench.put("sub/.git", "gitdir: ../.git/modules/sub\n");
    symlink(".git/hooks", bench.path("harmless")).unwrap();
    symlink(".git", bench.path("g")).unwrap();
    let paths = [
        ".git/hooks/pre-commit",
        ".git/hooks/deeper/still",
        ".git/config",
        ".git/config.worktree",
        ".git/info/attributes",
        ".git/modules/sub/config",
        ".GIT/hooks/pre-commit",
        ".Git/config",
        "sub/.git",
        "sub/.git/config",
        "new/.git/config",
        "harmless/pre-commit",
        "g/config",
        "output/../.git/config",
        ".git",
    ];
    for path in paths {
        let text = bench.error("write", json!({ "path": path, "content": "x" })).await;
        let refused = ["belongs to git", "is a directory", "not a directory"];
        assert!(refused.iter().any(|why| text.contains(why)), "{path}: {text}");
    }
    bench.ok("read", json!({ "path": ".git/config" })).await;
    let edit = json!({ "path": ".git/config", "old_string": "[core]", "new_string": "[x]" });
    assert!(bench.error("edit", edit).await.contains("belongs to git"));
    assert_eq!(bench.text(".git/config"), "[core]\n");
    assert!(!bench.path("new").exists() && !bench.path(".GIT").exists());
    // A name that only looks like it is an ordinary file.
    bench.ok("write", json!({ "path": ".gitignore", "content": "x" })).await;
    bench.ok("write", json!({ "path": ".github/ci.yml", "content": "x" })).await;
}

#[tokio::test]
async fn the_plan_is_written_by_its_own_tool_alone() {
    let mut bench = bench();
    symlink(".plan.md", bench.path("p")).unwrap();
    for path in [".plan.md", ".PLAN.md", "./.plan.md", "p", ".plan.md/x"] {
        let text = bench.error("write", json!({ "path": path, "content": "x" })).await;
        assert!(text.contains("update_plan"), "{path}: {text}");
    }
}

#[tokio::test]
async fn our_data_directory_inside_the_workspace_is_neither_read_nor_written() {
    let mut bench = Bench::with(|beside| {
        let data = beside.join("ws/.data/windlass");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("token"), SECRET).unwrap();
        Places { hidden: vec![data], ..Places::default() }
    });
    symlink(".data", bench.path("d")).unwrap();
    for path in
        [".data/windlass/token", ".DATA/windlass/token", "d/windlass/token", ".data/windlass/new/x"]
    {
        if Path::new(path).starts_with(".DATA") {
            continue; // Another directory on a file system that tells case apart.
        }
        let read = bench.error("read", json!({ "path": path })).await;
        assert!(
            read.contains("windlass's own data") || read.contains("does not exist"),
            "{path}: {read}"
        );
        let write = bench.error("write", json!({ "path": path, "content": "x" })).await;
        assert!(write.contains("windlass's own data"), "{path}: {write}");
        assert!(!read.contains("cannot be written by"), "what was asked is named: {read}");
    }
    bench.ok("write", json!({ "path": ".data/other", "content": "x" })).await;

    // A command outside a sandbox may move the directory above it.
    std::fs::rename(bench.path(".data"), bench.path("moved")).unwrap();
    let read = bench.error("read", json!({ "path": "moved/windlass/token" })).await;
    assert!(read.contains("windlass's own data"), "{read}");
    let write = bench.error("write", json!({ "path": "moved/windlass/x", "content": "x" })).await;
    assert!(write.contains("windlass's own data"), "{write}");
    let found = bench.ok("glob", json!({ "pattern": "**/*", "hidden": true })).await;
    assert!(found.contains("moved/other") && !found.contains("token"), "{found}");
    std::fs::rename(bench.path("moved/windlass"), bench.path("own")).unwrap();
    let read = bench.error("read", json!({ "path": "own/token" })).await;
    assert!(read.contains("windlass's own data"), "{read}");
}

/// One name of a path, among them every one that has led somewhere it should not.
fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "..",
        ".",
        "",
        "a",
        "secret",
        "dir",
        "ws",
        "up",
        "out",
        "abs",
        "loop",
        "file",
        "output",
        ".memo",
        "workspace",
        "proc",
        "self",
        "root",
        "\0",
        "skills",
        ".trace",
        "~",
        "é",
    ])
}

proptest! {
    #[test]
    fn no_path_at_all_leads_out(names in prop::collection::vec(any_name(), 1..9), absolute: bool) {
        let bench = &*MAZE;
        let path = format!("{}{}", if absolute { "/" } else { "" }, names.join("/"));
        let workspace = &bench.world.workspace;
        if let Ok(content) = workspace.read_all(&path, 100) {
            prop_assert_eq!(content, b"inside", "{}", path);
        }
        if let Ok(current) = workspace.write_target(&path, Purpose::Agent) {
            let plain = |name: &str| !name.is_empty() && name != "." && name != "..";
            prop_assert!(current.path.split('/').all(plain), "{}: {}", path, current.path);
            let again = workspace.write_target(&current.path, Purpose::Agent).unwrap().path;
            prop_assert_eq!(again, current.path, "where a walk arrives it stays");
        }
        untouched(bench);
    }
}

/// A workspace full of links, inside and out.
static MAZE: LazyLock<Bench> = LazyLock::new(|| {
    let bench = bench();
    bench.put("a/file", "inside");
    bench.put("file", "inside");
    symlink("..", bench.path("a/up")).unwrap();
    symlink("..", bench.path("up")).unwrap();
    symlink("../..", bench.path("a/out")).unwrap();
    symlink("../secret", bench.path("out")).unwrap();
    symlink(bench.outside.path(), bench.path("abs")).unwrap();
    symlink("/workspace/a/file", bench.path("a/abs")).unwrap();
    symlink("a/loop", bench.path("loop")).unwrap();
    symlink("../loop", bench.path("a/loop")).unwrap();
    symlink("/", bench.path("root")).unwrap();
    bench
});
