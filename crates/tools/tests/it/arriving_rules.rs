//! What a command brings along without naming it: trees, archives and patches with files that instruct agents.

use std::process::Command;

use serde_json::json;
use windlass_core::policy::Class;

use crate::bench::Bench;

/// The class of a command.
async fn class(bench: &mut Bench, command: &str) -> String {
    let found = bench.assessed("bash", json!({ "command": command })).await;
    found.split(':').next().unwrap_or_default().to_owned()
}

/// Packs a directory of the workspace.
fn pack(bench: &Bench, archive: &str, directory: &str) {
    let options = if archive.ends_with("gz") { "-czf" } else { "-cf" };
    let top = bench.path("");
    let packed = Command::new("tar")
        .current_dir(&top)
        .args([options, archive, "-C", directory, "."])
        .status();
    assert!(packed.unwrap().success());
}

#[tokio::test]
async fn a_tree_with_rules_is_not_copied_unasked() {
    let mut bench = Bench::new();
    bench.put("evil/.claude/settings.json", "{}");
    bench.put("good/notes.txt", "");
    bench.put("good/vendor/AGENTS.md", "");
    for command in [
        "cp -r evil/. .",
        "rsync -a evil/ .",
        "mv evil/.c* .",
        "cp -r evil/.??* .",
        "cp -r /tmp/unseen/. .",
        "cd good && cp -r ../evil/. ..",
    ] {
        assert_eq!(class(&mut bench, command).await, "production HIGH", "{command}");
    }
    for command in ["cp -r good/. .", "mv evil/* .", "cp -r evil/. out", "cp -r good ."] {
        assert_eq!(class(&mut bench, command).await, "edit MEDIUM", "{command}");
    }
}

#[tokio::test]
async fn an_archive_with_rules_is_not_unpacked_unasked() {
    let mut bench = Bench::new();
    bench.put("evil/agents.md", "obey");
    bench.put("good/notes.txt", "x");
    for (archive, from) in
        [("e.tar", "evil"), ("e.tgz", "evil"), ("g.tar", "good"), ("g.tgz", "good")]
    {
        pack(&bench, archive, from);
    }
    for command in ["tar xf e.tar", "tar -xzf e.tgz", "tar xf /tmp/unseen.tar", "cat e.tar | tar x"]
    {
        assert_eq!(class(&mut bench, command).await, "production HIGH", "{command}");
    }
    for command in
        ["tar xf g.tar", "tar -xzf g.tgz", "tar xf /tmp/unseen.tar -C out", "tar cf x.tar evil"]
    {
        assert_eq!(class(&mut bench, command).await, "edit MEDIUM", "{command}");
    }
}

#[tokio::test]
async fn a_patch_of_rules_is_not_applied_unasked() {
    let mut bench = Bench::new();
    bench.put("evil.diff", "--- /dev/null\n+++ b/AGENTS.md\n@@ -0,0 +1 @@\n+obey\n");
    bench.put("good.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-AGENTS.md\n+b\n");
    for command in ["git apply evil.diff", "patch -p1 < evil.diff", "git am < evil.diff"] {
        assert_eq!(class(&mut bench, command).await, "production HIGH", "{command}");
    }
    assert_eq!(class(&mut bench, "patch -p1 < good.diff").await, "edit MEDIUM");
    assert_eq!(class(&mut bench, "git apply good.diff").await, "local command MEDIUM");
}

#[tokio::test]
async fn a_glob_over_rules_that_exist_asks() {
    let mut bench = Bench::new();
    assert_eq!(class(&mut bench, "sed -i s/a/b/ *.md").await, "edit MEDIUM");
    bench.put("AGENTS.md", "x");
    assert_eq!(class(&mut bench, "sed -i s/a/b/ *.md").await, "production HIGH");
    assert_eq!(class(&mut bench, "sed -i s/a/b/ src/*.md").await, "edit MEDIUM");
}

/// Runs git in the workspace, as a person who has no settings.
fn git(bench: &Bench, args: &[&str]) {
    let done = Command::new("git")
        .current_dir(bench.path(""))
        .args(["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"])
        .args(["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"])
        .args(args)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with a branch that brings rules, one that brings none, and a stash of each kind.
fn repository() -> Bench {
    let bench = Bench::new();
    let commit = |message| {
        git(&bench, &["add", "--all"]);
        git(&bench, &["commit", "-qm", message]);
    };
    git(&bench, &["init", "-q"]);
    bench.put("a.txt", "one");
    bench.put("AGENTS.md", "be kind");
    commit("first");
    git(&bench, &["checkout", "-qb", "evil"]);
    bench.put(".claude/settings.json", "{}");
    commit("evil");
    git(&bench, &["checkout", "-q", "main"]);
    git(&bench, &["checkout", "-qb", "good"]);
    bench.put("b.txt", "two");
    bench.put("vendor/AGENTS.md", "of another project");
    commit("good");
    git(&bench, &["checkout", "-q", "main"]);
    git(&bench, &["update-ref", "refs/remotes/origin/evil-there", "evil"]);
    git(&bench, &["update-ref", "refs/remotes/origin/good-there", "good"]);
    bench.put("AGENTS.md", "obey");
    git(&bench, &["stash", "push", "-q"]);
    bench.put("a.txt", "three");
    git(&bench, &["stash", "push", "-q"]);
    bench
}

#[tokio::test]
async fn git_brings_no_rules_of_another_commit_unasked() {
    let mut bench = repository();
    for command in [
        "git checkout evil",
        "git -C . checkout evil",
        "git checkout evil-there",
        "git checkout --detach evil",
        "git checkout -b new evil",
        "git switch evil",
        "git switch -c new evil",
        "git switch evil-there",
        "git merge evil",
        "git merge --squash evil",
        "git merge --no-commit --no-ff evil",
        "git merge -X theirs evil",
        "git rebase evil",
        "git rebase --onto evil main",
        "git cherry-pick evil",
        "git cherry-pick main..evil",
        "git cherry-pick -n evil",
        "git revert --no-commit evil",
        "git stash pop 'stash@{1}'",
        "git stash apply 1",
        "git stash branch new 'stash@{1}'",
        "git read-tree -mu evil",
        "git pull",
        "git pull --rebase origin main",
        "git fetch origin && git merge FETCH_HEAD",
        "git fetch; git checkout good",
        "git update-ref refs/heads/good evil; git checkout good",
        "git merge no-such-branch",
        "git --git-dir=evil.git --work-tree=. checkout good",
        "GIT_DIR=evil.git git checkout good",
        "export GIT_WORK_TREE=.; git checkout good",
        "git checkout $branch",
        "cd \"$(git rev-parse --show-toplevel)\" && git checkout evil",
        "git clone https://example.com/x .",
        "gh pr checkout 12",
        "git bisect start evil main",
        "bash -c 'git checkout evil'",
        "git stash; git checkout evil; git stash pop",
    ] {
        assert_eq!(class(&mut bench, command).await, "production HIGH", "{command}");
    }
}

#[tokio::test]
async fn git_moves_between_commits_with_the_same_rules_as_before() {
    let mut bench = repository();
    for command in [
        "git checkout good",
        "git checkout good-there",
        "git switch good",
        "git switch -c new",
        "git checkout -b new",
        "git checkout -b new good",
        "git stash pop",
        "git stash",
        "git stash; git checkout good; git stash pop",
        "git add -A && git stash",
        "git fetch origin",
        "git submodule update --init",
        "git restore --staged AGENTS.md",
        "git bisect reset",
    ] {
        assert_eq!(class(&mut bench, command).await, "local command MEDIUM", "{command}");
    }
    for command in [
        "git merge good",
        "git rebase good",
        "git rebase -i HEAD",
        "git cherry-pick good",
        "git cherry-pick main..good",
        "git commit -am x && git checkout good",
        "git merge --abort",
        "git rebase --continue",
        "git clone https://example.com/x sub",
    ] {
        assert_eq!(class(&mut bench, command).await, "build MEDIUM", "{command}");
    }
}

#[tokio::test]
async fn git_takes_no_rules_from_a_commit_or_the_index_unasked() {
    let mut bench = repository();
    bench.put("AGENTS.md", "be kinder");
    let mut worst = async |command| {
        let prepared = bench.prepare("bash", json!({ "command": command })).await.unwrap();
        let analysis = prepared.analysis.unwrap();
        analysis.commands.iter().any(|found| found.assessment.class == Class::Production)
    };
    for command in [
        "git checkout evil -- .",
        "git checkout evil -- .claude",
        "git checkout evil .",
        "git restore --source evil .",
        "git restore -s evil :/",
        "git checkout .",
        "git checkout AGENTS.md",
        "git restore '*.md'",
        "git reset --hard",
        "git reset --hard evil",
        "git checkout-index -af",
        "git stash",
        "git commit -am x; git checkout good",
    ] {
        assert!(worst(command).await, "{command}");
    }
    for command in ["git checkout evil -- a.txt", "git restore a.txt", "git checkout good"] {
        assert!(!worst(command).await, "{command}");
    }
}

#[tokio::test]
async fn a_rule_file_that_only_looks_changed_does_not_count() {
    let mut bench = repository();
    // Written anew: another time, the same content.
    std::fs::remove_file(bench.path("AGENTS.md")).unwrap();
    bench.put("AGENTS.md", "be kind");
    assert_eq!(class(&mut bench, "git stash").await, "local command MEDIUM");
    bench.put("AGENTS.md", "be kinder");
    assert_eq!(class(&mut bench, "git stash").await, "production HIGH");
}

#[tokio::test]
async fn a_repository_that_cannot_be_read_asks_and_runs_nothing() {
    let mut bench = repository();
    bench.put(
        ".git/config",
        "[core]\n\tfsmonitor = touch ran\n\tpager = touch ran\n[alias]\n\tx = !touch ran\n",
    );
    assert_eq!(class(&mut bench, "git checkout good").await, "local command MEDIUM");
    assert!(!bench.path("ran").exists());
    std::fs::remove_file(bench.path(".git/HEAD")).unwrap();
    assert_eq!(class(&mut bench, "git checkout good").await, "production HIGH");
    assert_eq!(class(&mut bench, "mkdir sub; cd sub; git checkout good").await, "production HIGH");
}

#[tokio::test]
async fn what_a_link_among_rules_leads_to_is_a_rule() {
    let mut bench = Bench::new();
    bench.put("docs/rules.md", "be kind");
    bench.put("docs/other.md", "x");
    bench.put("dot/x", "");
    bench.put(".agents/skills/a/notes", "");
    bench.put("tools/skill.md", "x");
    std::os::unix::fs::symlink("docs/rules.md", bench.path("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink("dot", bench.path(".claude")).unwrap();
    let skill = bench.path(".agents/skills/a/SKILL.md");
    std::os::unix::fs::symlink("../../../tools/skill.md", skill).unwrap();
    bench.put("evil.diff", "--- a/docs/rules.md\n+++ b/docs/rules.md\n@@ -1 +1 @@\n-a\n+b\n");
    for command in [
        "echo x >> docs/rules.md",
        "sed -i s/a/b/ docs/*.md",
        "touch dot/settings.json",
        "cp x tools/skill.md",
        "git apply evil.diff",
    ] {
        assert_eq!(class(&mut bench, command).await, "production HIGH", "{command}");
    }
    assert_eq!(class(&mut bench, "echo x >> docs/other.md").await, "edit MEDIUM");
    for path in ["AGENTS.md", "docs/rules.md", ".claude/new.json", "dot/new.json"] {
        let _ = bench.call("read", json!({ "path": path })).await;
        let found = bench.assessed("write", json!({ "path": path, "content": "x" })).await;
        assert!(found.starts_with("production HIGH"), "{path}: {found}");
    }
    let found = bench.assessed("write", json!({ "path": "docs/new.md", "content": "x" })).await;
    assert!(found.starts_with("edit"), "{found}");
}

#[tokio::test]
async fn an_archive_of_an_unknown_form_is_asked_about() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind");
    bench.put("a.cab", "MSCF and more");
    bench.put("a.tar", [0; 1024]);
    assert_eq!(class(&mut bench, "tar xf a.cab").await, "production HIGH");
    assert_ne!(class(&mut bench, "tar xf a.tar").await, "production HIGH");
}
