//! A developer's tools work in the sandbox of a developer's machine. A tool that is not installed here is
//! named in the test's output; CI installs all of them.

use std::path::PathBuf;

use windlass_sandbox::local::{Config, TOOLCHAINS};
use windlass_sandbox::{Local, Sandbox};

use crate::everyone;
use crate::support::{Place, is_child, run};

/// The sandbox as a developer has it: the real home, its toolchains, the real search path.
async fn developers(place: &Place) -> Local {
    let home = std::env::var("WINDLASS_TEST_HOME").or_else(|_| std::env::var("HOME")).unwrap();
    let config = Config {
        home: PathBuf::from(home),
        environment: std::env::vars().collect(),
        read_only: TOOLCHAINS.iter().map(PathBuf::from).collect(),
        ..place.config()
    };
    Local::open(config).await.unwrap()
}

/// Whether the tool runs inside at all; an ordinary user cannot see root's.
async fn has(local: &dyn Sandbox, tool: &str) -> bool {
    let there = run(local, &format!("{tool} --version")).await;
    let found = there.ended.exit == windlass_sandbox::Exit::Code(0);
    if !found {
        println!("`{tool}` is not here: {}", there.both);
    }
    assert!(found || is_child() || !on_host(tool), "`{tool}` works outside and not inside");
    found
}

fn on_host(tool: &str) -> bool {
    std::process::Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success())
}

#[test]
fn cargo_builds_and_tests_a_crate() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = developers(&place).await;
        if !has(&local, "cargo").await {
            return;
        }
        let text = "cargo init --lib --name small . && cargo build && cargo test";
        let said = run(&local, text).await.ok();
        assert!(said.contains("1 passed"), "{said}");
    });
}

#[test]
fn python_makes_an_environment_and_runs_in_it() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = developers(&place).await;
        if !has(&local, "python3").await {
            return;
        }
        let text = "python3 -m venv --without-pip env && . env/bin/activate && \
                    python -c 'import sys, multiprocessing, json; print(sys.prefix)'";
        assert_eq!(run(&local, text).await.ok(), "/workspace/env\n");
    });
}

#[test]
fn node_runs_a_packages_script() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = developers(&place).await;
        if !has(&local, "node").await {
            return;
        }
        run(&local, "echo '{\"name\":\"a\",\"scripts\":{\"test\":\"node t.js; sh -c \\\"echo sh\\\"\"}}' > package.json; \
             echo 'console.log(\"ran\", process.cwd())' > t.js").await.ok();
        assert_eq!(run(&local, "node t.js").await.ok(), "ran /workspace\n");
        if has(&local, "npm").await {
            let said = run(&local, "npm test --silent").await.ok();
            assert_eq!(said, "ran /workspace\nsh\n");
        }
    });
}

#[test]
fn git_works_in_a_repository() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = developers(&place).await;
        if !has(&local, "git").await {
            return;
        }
        let text = "git init -q && echo a > a && git add a && \
                    git -c user.name=a -c user.email=a@b commit -qm 'first' && git status --short && \
                    git log --format=%s && git worktree add -q ../workspace/tree && ls tree";
        assert_eq!(
            run(&local, text).await.ok(),
            "?? .scratch/\nfirst\na\n".replace("?? .scratch/\n", "")
        );
    });
}

#[test]
fn a_compiler_and_a_terminal_work() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = developers(&place).await;
        if has(&local, "cc").await {
            let text = "echo 'int main(){return 7;}' > a.c && cc a.c -o a && ./a";
            assert_eq!(run(&local, text).await.ended.exit, windlass_sandbox::Exit::Code(7));
        }
        if has(&local, "script").await {
            let said = run(&local, "script -qec 'test -t 1 && echo tty' /dev/null").await.ok();
            assert_eq!(said, "tty\r\n");
        }
    });
}

#[test]
fn a_shown_cache_takes_writes_that_never_reach_the_host() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let registry = place.home.join(".cargo/registry");
        std::fs::create_dir_all(&registry).unwrap();
        std::fs::write(registry.join("old"), "old").unwrap();
        let read_only = vec![".cargo".into()];
        let local = Local::open(Config { read_only, ..place.config() }).await.unwrap();
        assert_eq!(run(&local, "cat ~/.cargo/registry/old").await.ok(), "old");
        run(&local, "echo x > ~/.cargo/new").await.fails();
        let writable = run(&local, "test -w ~/.cargo/registry").await;
        // Somebody else's cache stays somebody else's, and not every kernel grants layers.
        if writable.ended.exit == windlass_sandbox::Exit::Code(0) {
            let text = "cd ~/.cargo/registry && echo new > new && rm old && echo x > /tmp/x";
            run(&local, text).await.ok();
            assert_eq!(run(&local, "cat ~/.cargo/registry/*").await.ok(), "new\n");
        }
        assert_eq!(std::fs::read_dir(&registry).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(registry.join("old")).unwrap(), "old");
    });
}

#[test]
fn credentials_in_a_toolchain_stay_hidden() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let cargo = place.home.join(".cargo");
        std::fs::create_dir_all(cargo.join("bin")).unwrap();
        std::fs::write(cargo.join("bin/tool"), "a tool").unwrap();
        std::fs::write(cargo.join("credentials.toml"), "token = 'sk'").unwrap();
        std::fs::write(place.home.join(".npmrc"), "_authToken=sk").unwrap();
        for deep in [".nvm/a/.npmrc", "go/x/y/z/.netrc", ".local/bin/.env.local"] {
            let path = place.home.join(deep);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "sk").unwrap();
        }
        let read_only = TOOLCHAINS.iter().map(PathBuf::from).chain([".npmrc".into()]).collect();
        let local = Local::open(Config { read_only, ..place.config() }).await.unwrap();
        assert_eq!(run(&local, "cat ~/.cargo/bin/tool").await.ok(), "a tool");
        run(&local, "echo x > ~/.cargo/bin/tool").await.fails();
        assert_eq!(run(&local, "cat ~/.cargo/credentials.toml").await.ok(), "");
        let deep = "cat ~/.nvm/a/.npmrc ~/go/x/y/z/.netrc ~/.local/bin/.env.local";
        assert_eq!(run(&local, deep).await.ok(), "");
        run(&local, "cat ~/.npmrc").await.fails();
        run(&local, "echo mine > ~/.npmrc && cat ~/.npmrc").await.ok();
    });
}
