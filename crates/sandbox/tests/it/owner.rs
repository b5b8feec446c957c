//! The helper ends with its owner, and the owner survives its helper.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use windlass_sandbox::{Command, Exit, Sandbox};

use crate::everyone;
use crate::support::{Place, Who, mark, marked, run, script, until};

/// Processes whose program is the helper of this data directory, with the parent's.
fn helpers(data: &Path) -> Vec<(u32, u32)> {
    let parse = |entry: fs::DirEntry| -> Option<(u32, u32)> {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t")?.parse().ok())?;
        command.starts_with(data.as_os_str().as_encoded_bytes()).then_some((pid, parent))
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(parse).collect()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

const STUBBORN: &str = "trap '' TERM; (setsid nohup sleep MARK &); \
                        sh -c 'kill -STOP $$; sleep MARK' & echo ready; while :; do sleep MARK; done";

/// The body of the process that is killed: it starts a tree in each sandbox and waits to die.
#[test]
fn an_owner_that_waits_to_be_killed() {
    let Ok(directory) = std::env::var("WINDLASS_TEST_OWNER") else { return };
    crate::support::block_on(async {
        let directory = PathBuf::from(directory);
        let mut place = Place::new(Who::User);
        place.data = directory.join("data");
        place.workspace = directory.join("work");
        let mark = std::env::var("WINDLASS_TEST_MARK").unwrap();
        let (local, host) = (place.local().await, place.host());
        let sandboxes: [&dyn Sandbox; 2] = [&local, &host];
        let mut kept = Vec::new();
        for sandbox in sandboxes {
            let text = STUBBORN.replace("MARK", &mark);
            for background in [true, false] {
                let command = Command { background, ..script(sandbox, &text) };
                let mut running = sandbox.start(command).await.unwrap();
                running.next().await.unwrap();
                kept.push(running);
            }
        }
        println!("all stand");
        std::future::pending::<()>().await;
    });
}

/// §15.7: whatever ends windlass ends the helper and everything it started.
#[test]
fn nothing_outlives_an_owner_that_is_killed() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let mark = mark();
        let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "owner::an_owner_that_waits_to_be_killed", "--nocapture"])
            .env("WINDLASS_TEST_OWNER", place.top.path())
            .env("WINDLASS_TEST_MARK", &mark)
            .env("TMPDIR", place.top.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.contains("all stand")));
        assert!(marked(&mark).len() >= 8, "{:?}", marked(&mark));
        kill(owner.id());
        owner.wait().unwrap();
        until(|| marked(&mark).is_empty() && helpers(&place.data).is_empty()).await;
    });
}

#[test]
fn a_killed_helper_loses_its_commands_and_is_started_again() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (local, host) = (place.local().await, place.host());
        let sandboxes: [&dyn Sandbox; 2] = [&local, &host];
        for sandbox in sandboxes {
            for outer in [true, false] {
                let mark = mark();
                let text = STUBBORN.replace("MARK", &mark);
                let mut running = sandbox.start(script(sandbox, &text)).await.unwrap();
                running.next().await.unwrap();
                let own = std::process::id();
                let found = helpers(&place.data);
                let (outer_pid, _) = *found.iter().find(|(_, parent)| *parent == own).unwrap();
                let (inner_pid, _) =
                    *found.iter().find(|(_, parent)| *parent == outer_pid).unwrap();
                kill(if outer { outer_pid } else { inner_pid });
                assert_eq!(running.wait().await.exit, Exit::Lost);
                until(|| marked(&mark).is_empty()).await;
                run(sandbox, "true").await.ok();
            }
            sandbox.stop().await;
        }
    });
}

/// ES-270, ES-281: nothing is left after the end, asked for or not.
#[test]
fn a_sandbox_that_is_stopped_or_dropped_leaves_no_process() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let mark = mark();
        let local = place.local().await;
        assert_eq!(helpers(&place.data), [], "it starts with the first command only");
        let text = STUBBORN.replace("MARK", &mark);
        let mut running = local.start(script(&local, &text)).await.unwrap();
        running.next().await.unwrap();
        assert_ne!(helpers(&place.data), []);
        local.stop().await;
        assert_eq!((marked(&mark), helpers(&place.data)), (vec![], vec![]));
        assert_eq!(running.wait().await.exit, Exit::Lost);

        let mut running = local.start(script(&local, &text)).await.unwrap();
        running.next().await.unwrap();
        drop(local);
        until(|| marked(&mark).is_empty() && helpers(&place.data).is_empty()).await;
    });
}

/// A command cannot get rid of its supervisor.
#[test]
fn a_command_that_kills_its_supervisor_ends_with_its_tree() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let host = place.host();
        let mark = mark();
        let text =
            format!("setsid sleep {mark} & sleep {mark} & echo ready; kill -9 $PPID; sleep {mark}");
        let running = host.start(script(&host, &text)).await.unwrap();
        assert_eq!(running.wait().await.exit, Exit::Signal(9));
        until(|| marked(&mark).is_empty()).await;
        run(&host, "true").await.ok();
    });
}

#[test]
fn a_long_script_runs_and_a_missing_directory_is_refused() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.local().await;
        run(&local, "true").await.ok();
        let long = format!(": {}; echo long", "x".repeat(100_000));
        assert_eq!(run(&local, &long).await.ok(), "long\n");
        let gone = Command { cwd: "/nowhere".into(), ..script(&local, "true") };
        let refused = local.start(gone).await.unwrap_err().to_string();
        assert!(refused.contains("/nowhere"), "{refused}");
        assert_eq!(run(&local, "cd /tmp && pwd").await.ok(), "/tmp\n");
        local.stop().await;
    });
}
