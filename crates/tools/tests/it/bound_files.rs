//! What an approval of a command holds for: the files that it means, not its text alone.

use serde_json::json;
use windlass_core::question::BoundFile;

use crate::bench::Bench;

/// The files that a command means, as they are now.
async fn bound(bench: &mut Bench, command: &str) -> Vec<BoundFile> {
    let prepared = bench.prepare("bash", json!({ "command": command })).await.ok().unwrap();
    let mut files = (prepared.bind.unwrap())(prepared.analysis.as_deref());
    let scripts = prepared.analysis.iter().flat_map(|analysis| &analysis.scripts);
    files
        .extend(scripts.map(|file| BoundFile { path: file.path.clone(), hash: file.hash.clone() }));
    files
}

#[tokio::test]
async fn a_change_of_what_a_command_means_is_seen() {
    for (command, before, changed) in [
        ("cat f.sh | bash", &["f.sh"][..], "f.sh"),
        ("eval \"$(cat f.sh)\"", &["f.sh"], "f.sh"),
        ("echo f.sh | xargs bash", &["f.sh"], "f.sh"),
        ("bash f*.sh", &["f.sh"], "f.sh"),
        ("make", &["Makefile"], "Makefile"),
        ("make -f m.mk", &["m.mk"], "m.mk"),
        ("npm test", &["package.json"], "package.json"),
        ("python3 -m m", &["m.py"], "m.py"),
        ("python3 -m p.m", &["p/m.py"], "p/m.py"),
        ("python3 p", &["p/__main__.py"], "p/__main__.py"),
        ("python3 -c 'import g'", &["g.py"], "g.py"),
        ("node p", &["p/index.js"], "p/index.js"),
        ("BASH_ENV=e.sh bash -c true", &["e.sh"], "e.sh"),
        ("tar xf a.tar", &["a.tar"], "a.tar"),
        ("git apply p.diff", &["p.diff"], "p.diff"),
        ("git merge topic", &[".git/refs/heads/topic"], ".git/refs/heads/topic"),
        ("git checkout origin/topic~1", &[".git/HEAD"], ".git/refs/remotes/origin/topic"),
        ("git stash pop", &[".git/refs/stash"], ".git/refs/stash"),
        // What is replaced is not what was seen.
        ("mv a.txt b", &["a.txt", "b"], "b"),
        ("sed -i s/a/b/ f.txt", &["f.txt"], "f.txt"),
        ("echo x > f.txt", &["f.txt"], "f.txt"),
        // What is not there yet.
        ("cp a.txt later.txt", &["a.txt"], "later.txt"),
        ("tar xf later.tar -C out", &[], "later.tar"),
        ("cat later.sh | bash", &[], "later.sh"),
        ("git commit -m x", &[".git/HEAD"], ".git/hooks/pre-commit"),
    ] {
        let mut bench = Bench::new();
        for name in before {
            bench.put(name, "true\n");
        }
        let shown = bound(&mut bench, command).await;
        assert_eq!(bound(&mut bench, command).await, shown, "{command}");
        bench.put(changed, "touch owned\n");
        assert_ne!(bound(&mut bench, command).await, shown, "{command}");
    }
}

#[tokio::test]
async fn a_change_of_what_a_script_loads_is_seen() {
    for (command, script, text, loaded) in [
        ("bash f.sh", "f.sh", ". ./g.sh\n", "g.sh"),
        ("bash d/f.sh", "d/f.sh", "bash \"$(dirname \"$0\")/g.sh\"\n", "d/g.sh"),
        ("python3 f.py", "f.py", "import g\n", "g.py"),
        ("node f.js", "f.js", "require('./lib/g')\n", "lib/g.js"),
        ("npm run x", "package.json", "{\"scripts\":{\"x\":\"bash s.sh\"}}", "s.sh"),
        ("make", "Makefile", "all:\n\tsh tools/run.sh\n", "tools/run.sh"),
    ] {
        let mut bench = Bench::new();
        bench.put(script, text);
        bench.put(loaded, "true\n");
        let shown = bound(&mut bench, command).await;
        bench.put(loaded, "touch owned\n");
        assert_ne!(bound(&mut bench, command).await, shown, "{command}");
    }
}
