//! Files that say what an agent may do are not changed unasked, however a command names them.

use windlass_core::policy::{ArrivalSource, Class, GitSource};
use windlass_shell::{Context, analyze};

use crate::corpus::context;

fn class(command: &str) -> Class {
    analyze(command, &context()).assessment.class
}

#[test]
fn the_files_of_another_task_are_not_changed_unasked() {
    let own = format!("{}/.windlass/tasks/task_own", context().workspace);
    let context = Context { task_directory: Some(own), ..context() };
    let class = |command: &str| analyze(command, &context).assessment.class;
    for command in [
        "echo x > .windlass/tasks/task_other/plan.md",
        "echo x > .windlass/tasks/task_own2/plan.md",
        "mkdir .windlass/tasks/task_new",
        "echo x > .windlass/tasks/.gitignore",
        "cd .windlass/tasks/task_other && touch x",
        "mv x .windlass/Tasks/task_other/x",
        "cp x .windlass/tasks/task_own/../task_other/x",
    ] {
        assert_eq!(class(command), Class::Production, "{command}");
    }
    for command in [
        "echo x > .windlass/tasks/task_own/scratch/a",
        "mkdir -p .windlass/tasks/task_own/scratch",
        "cd .windlass/tasks/task_own && touch x",
        "cat .windlass/tasks/task_other/plan.md",
    ] {
        assert!(class(command) < Class::Production, "{command}");
    }
}

#[test]
fn a_rule_file_is_found_however_a_command_names_it() {
    for command in [
        "cp /tmp/x/AGENTS.md .",
        "cp -t . /tmp/x/AGENTS.md",
        "cp -r evil/.claude .",
        "mv x/CLAUDE.md sub/",
        "mv x .windlass",
        "mkdir .windlass",
        "ln -sf ../x .claude",
        "ln -s /tmp/x/.mcp.json",
        "install -d .claude/skills",
        "git mv a AGENTS.md",
        "git format-patch -o .claude HEAD",
        "git worktree add .claude",
        "git clone /x .claude",
        "git init .claude",
        "git submodule add /x .claude",
        "git -C .claude apply x",
        "git apply <<'E'\n--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1 +1 @@\n-a\n+b\nE",
        "tar xf a.tar AGENTS.md",
        "tar -xf a.tar -C .claude",
        "tar --directory=.claude -xf x.tar",
        "tar --one-top-level=.claude -xf x.tar",
        "unzip a.zip -d .claude",
        "gunzip AGENTS.md.gz",
        "zstd -d AGENTS.md.zst",
        "rsync -a x/ .claude/",
        "curl -O https://example.com/AGENTS.md",
        "curl --output-dir .claude -O https://example.com/settings.json",
        "wget https://example.com/AGENTS.md?raw=1",
        "wget -P .claude https://example.com/x",
        "uniq x AGENTS.md",
        "shuf -o AGENTS.md x",
        "iconv -o AGENTS.md x",
        "pandoc -oAGENTS.md x",
        "yq -i .a=1 .claude/x.yaml",
        "mmv a AGENTS.md",
        "script -c 'echo hi' AGENTS.md",
        "/usr/bin/time -o AGENTS.md ls",
        "strace -o AGENTS.md ls",
        "logsave AGENTS.md ls",
        "sqlite3 AGENTS.md 'create table a(b)'",
        "git rm AGENTS.md",
        "git rm -r .claude",
        "git config -f AGENTS.md a.b c",
        "git subtree add --prefix=.claude x main",
        "zip -m a.zip AGENTS.md",
        "prettier --write AGENTS.md",
        "markdownlint --fix .claude/x.md",
        "scp host:x/AGENTS.md .",
        "docker cp box:/x/AGENTS.md .",
        "gh gist clone x .claude",
        "7zz x a.7z -o.claude",
        "env -C .claude touch settings.json",
        // Another name of the same file.
        "ln AGENTS.md notes.txt",
        "ln -s AGENTS.md notes.txt",
        "ln -s ../AGENTS.md docs/notes.txt",
        "cp -l AGENTS.md notes.txt",
        "cp -s AGENTS.md notes.txt",
        "cp -al .claude copy",
        // Names that are only known when it runs.
        "for f in *.md; do echo x > $f; done",
        "for f in *.md; do echo x > \"$f\"; done",
        "echo x > \"./$(cat name)\"",
        "while read n; do echo x > ./$n; done < names",
        "read n < name; echo x > \"$PWD/$n\"",
        "n=$(cat name); cp x ./$n",
        "cp --parents .claude/settings.json ..",
        "cd vendor/tpl && cp --parents .claude/settings.json ../..",
        "rsync -aR vendor/tpl/./AGENTS.md .",
        // What a patch says of names.
        "patch -p2 <<'E'\n--- a/x/AGENTS.md\n+++ b/x/AGENTS.md\nE",
        "git apply -p2 <<'E'\n--- a/x/AGENTS.md\n+++ b/x/AGENTS.md\nE",
        "git apply <<'E'\n--- \"a/\\101GENTS.md\"\n+++ \"b/\\101GENTS.md\"\nE",
        "git apply <<'E'\ndiff --git a/AGENTS.md b/AGENTS.md\nnew file mode 100644\nE",
        "git apply <<'E'\ndiff --git a/CLAUDE.md b/CLAUDE.md\nGIT binary patch\nE",
        // An alias, with words after it.
        "git -c alias.x='rm AGENTS.md' x",
        "git -c alias.x=apply -c a.b=c x p.diff",
        "env --chdir=.claude touch settings.json",
    ] {
        assert!(class(command) >= Class::Production, "{command}: {:?}", class(command));
    }
}

#[test]
fn a_rule_file_may_be_read_copied_away_and_committed() {
    for command in [
        "cat AGENTS.md",
        "cp AGENTS.md AGENTS.md.bak",
        "cp AGENTS.md docs/rules.md",
        "git add AGENTS.md .claude",
        "git commit -m 'change AGENTS.md' AGENTS.md",
        "git diff AGENTS.md",
        "tar -cf out.tar .claude",
        "zip out.zip AGENTS.md",
        "prettier --check AGENTS.md",
        "git rm --cached AGENTS.md",
        "docker cp AGENTS.md box:/x",
        "grep -rn x .claude",
        "time cat AGENTS.md",
        "for f in *.txt; do echo x > \"$f\"; done",
        "for f in src/*; do echo x > $f; done",
        "echo x > \"out/$(date +%s)\"",
        "ln -s ../docs/notes.txt docs/link.txt",
        "curl -o x https://example.com/AGENTS.md",
    ] {
        assert!(class(command) < Class::Production, "{command}: {:?}", class(command));
    }
}

#[test]
fn a_glob_that_stands_for_a_rule_file_changes_it() {
    let top = context().workspace;
    let with_rules = Context { rule_files: vec![format!("{top}/AGENTS.md")], ..context() };
    for command in ["sed -i s/a/b/ *.md", "sed -i s/a/b/ *", "echo x > AGENTS.m[d]", "tee A*S.md"] {
        assert_eq!(class(command), Class::Edit, "{command}");
        assert_eq!(analyze(command, &with_rules).assessment.class, Class::Production, "{command}");
    }
    assert_eq!(analyze("sed -i s/a/b/ src/*", &with_rules).assessment.class, Class::Edit);
}

#[test]
fn what_arrives_under_other_names_is_noted_with_its_source() {
    let top = context().workspace;
    let at = |path: &str| format!("{top}/{path}");
    for (command, source, into) in [
        ("cp -r evil/. .", ArrivalSource::Tree(at("evil")), top.clone()),
        ("cp -rT evil .", ArrivalSource::Tree(at("evil")), top.clone()),
        ("cp -r --parents evil .", ArrivalSource::Tree(at("evil")), top.clone()),
        ("rsync -aR evil .", ArrivalSource::Tree(at("evil")), top.clone()),
        ("cd sub; find . | cpio -pdm ..", ArrivalSource::Pipe, top.clone()),
        ("cd sub; pax -rw . ..", ArrivalSource::Computed, top.clone()),
        ("mv evil/* .", ArrivalSource::Glob(at("evil/*")), top.clone()),
        ("cd sub; rsync -a ../x/ .", ArrivalSource::Tree(at("x")), at("sub")),
        ("tar xzf a.tgz", ArrivalSource::Archive(at("a.tgz")), top.clone()),
        ("tar -C out -xf a.tar", ArrivalSource::Archive(at("a.tar")), at("out")),
        ("unzip -o a.zip", ArrivalSource::Archive(at("a.zip")), top.clone()),
        ("cpio -i < a.cpio", ArrivalSource::Archive(at("a.cpio")), top.clone()),
        ("patch -p1 < a.diff", ArrivalSource::Patch(at("a.diff")), top.clone()),
        ("patch -p1 -i a.diff", ArrivalSource::Patch(at("a.diff")), top.clone()),
        ("git apply a.diff", ArrivalSource::Patch(at("a.diff")), top.clone()),
        ("git am < a.mbox", ArrivalSource::Patch(at("a.mbox")), top.clone()),
    ] {
        let arrivals = analyze(command, &context()).arrivals;
        let found = arrivals.iter().any(|one| one.source == source && one.into == into);
        assert!(found, "{command}: {arrivals:?}");
    }
    assert!(analyze("tar -cf a.tar src; git apply --check x", &context()).arrivals.is_empty());
}

#[test]
fn what_git_takes_from_its_store_is_noted_with_its_source() {
    let top = context().workspace;
    let name = |text: &str| text.to_owned();
    let files = |commit: Option<&str>, paths: &[&str]| GitSource::Files {
        commit: commit.map(str::to_owned),
        paths: paths.iter().map(|path| format!("{top}/{path}")).collect(),
    };
    for (command, source, into) in [
        ("git checkout topic", GitSource::Commit(name("topic")), ""),
        ("git checkout -", GitSource::Commit(name("@{-1}")), ""),
        ("git -C sub switch -c new topic", GitSource::Commit(name("topic")), "/sub"),
        ("cd sub && git merge -X ours topic", GitSource::Merge(name("topic")), "/sub"),
        ("git merge -s subtree topic", GitSource::Unseen, ""),
        ("git rebase --onto new old", GitSource::Base(name("new")), ""),
        ("git cherry-pick -n a b..c", GitSource::Changes(vec![name("a"), name("b..c")]), ""),
        ("git stash pop", GitSource::Stash(name("stash@{0}")), ""),
        ("git stash apply 2", GitSource::Stash(name("stash@{2}")), ""),
        ("git checkout topic -- src", files(Some("topic"), &["src"]), ""),
        ("git restore --source=topic src/a", files(Some("topic"), &["src/a"]), ""),
        ("git restore '*.md'", files(None, &[]), ""),
        ("git commit -am x; git checkout topic", files(Some("topic"), &[]), ""),
        ("git submodule update", GitSource::Submodules, ""),
        ("git bisect good", GitSource::History, ""),
        ("git pull", GitSource::Unseen, ""),
        ("git fetch && git checkout topic", GitSource::Unseen, ""),
        ("GIT_DIR=x git checkout topic", GitSource::Unseen, ""),
        ("git --work-tree=. checkout topic", GitSource::Unseen, ""),
        ("git checkout $x", GitSource::Unseen, ""),
        ("cd $x; git checkout topic", GitSource::Commit(name("topic")), ""),
    ] {
        let arrivals = analyze(command, &context()).arrivals;
        let (source, into) = (ArrivalSource::Git(source), format!("{top}{into}"));
        let found = arrivals.iter().any(|one| one.source == source && one.into == into);
        assert!(found, "{command}: {arrivals:?}");
    }
    for command in [
        "git checkout -b new",
        "git fetch origin",
        "git merge --abort",
        "git restore --staged .",
        "git stash list",
        "git clone https://example.com/x",
        "git log topic",
        "git reset HEAD~1",
    ] {
        assert!(analyze(command, &context()).arrivals.is_empty(), "{command}");
    }
}

#[test]
fn a_place_that_only_the_run_shows_may_be_the_workspace() {
    let top = context().workspace;
    for command in ["cd $x; tar xf a.tar", "tar xf a.tar -C \"$x\"", "cp -r $x/. ."] {
        let arrivals = analyze(command, &context()).arrivals;
        assert!(arrivals.iter().any(|one| one.into == top), "{command}: {arrivals:?}");
    }
}

#[test]
fn files_with_names_from_elsewhere_are_noted() {
    let top = context().workspace;
    for command in [
        "hg update evil",
        "svn switch x",
        "jj new evil",
        "7zz x a.7z",
        "unar x.rar",
        "dpkg-deb -x x.deb .",
        "uudecode x.uu",
        "jar xf x.jar",
        "pax -rf x.pax",
        "python3 -m zipfile -e x.zip .",
        "cmake -E tar xf x.tar",
        "rename 's/x/AGENTS/' x.md",
        "tar xf a.tar --transform s/x/AGENTS/",
        "scp -r host:x/. .",
        "docker cp box:/x/. .",
        "rclone copy r:x .",
        "wget -i list",
        "wget -r -nH https://example.com/",
        "curl -OJ https://example.com/x",
        "gh run download 1",
        "gh repo clone a/b .",
        "xargs cp -t . < list",
        "find evil -name 'A*' -exec cp {} . \\;",
        "for f in evil/*; do cp $f .; done",
    ] {
        let arrivals = analyze(command, &context()).arrivals;
        assert!(arrivals.iter().any(|one| one.into == top), "{command}: {arrivals:?}");
    }
    for command in [
        "hg status",
        "svn log",
        "jj log",
        "7zz l a.7z",
        "jar cf x.jar src",
        "rename 's/x/y/' x.md",
        "docker cp a.txt box:/x",
        "scp a.txt host:",
        "wget https://example.com/x",
        "curl -O https://example.com/x",
        "gh run list",
        "docker build .",
    ] {
        assert!(analyze(command, &context()).arrivals.is_empty(), "{command}");
    }
}
