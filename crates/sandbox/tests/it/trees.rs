//! Process trees that do not want to end, each ended, in the sandbox and on the host.

use std::time::Duration;

use windlass_sandbox::{Exit, Sandbox};

use crate::everyone;
use crate::support::{Place, Who, mark, marked, run, script};

/// Scripts that print `ready` once their tree is complete; `MARK` is in every process's arguments.
const TREES: &[(&str, &str)] = &[
    ("a double fork", "( (while :; do sleep MARK; done) & ) ; echo ready; sleep MARK"),
    ("a new session", "setsid sh -c 'echo ready; sleep MARK; true' & sleep MARK"),
    ("nohup", "nohup sh -c 'echo ready; sleep MARK; true'; sleep MARK"),
    ("ignores SIGTERM", "trap '' TERM; echo ready; while :; do sleep MARK; done"),
    (
        "all ignore SIGTERM",
        "trap '' TERM; (sleep MARK; sleep MARK) & (sleep MARK) & echo ready; wait",
    ),
    ("stopped", "sh -c 'kill -STOP $$; sleep MARK' & echo ready; kill -STOP $$; sleep MARK"),
    ("holds the output", "sh -c 'sleep MARK; echo never' & echo ready; exec sleep MARK"),
    ("stops its parent", "setsid sleep MARK & echo ready; kill -STOP $PPID; sleep MARK"),
    (
        "forks for ever",
        "b() { while :; do (sleep MARK) & (sleep 0.01) & wait -n; done; }; b & b & echo ready; wait",
    ),
    (
        "a chain that flees",
        "f() { sleep 0.002; f & }; trap '' TERM; (f) & echo ready; while :; do sleep MARK; done",
    ),
];

/// WF-021: what ignores being asked is forced.
#[test]
fn every_kind_of_tree_ends_when_it_is_killed() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (local, host) = (place.sandbox().await, place.host());
        let weaker = place.landlock().await;
        let sandboxes: [&dyn Sandbox; 3] = [&local, &weaker, &host];
        for sandbox in sandboxes {
            for (name, text) in TREES {
                let mark = mark();
                let text = text.replace("MARK", &mark);
                let mut running = sandbox.start(script(sandbox, &text)).await.unwrap();
                while let Some(chunk) = running.next().await {
                    if chunk.bytes.starts_with(b"ready") {
                        break;
                    }
                }
                running.killer().kill(Duration::from_millis(100));
                assert_eq!(running.wait().await.exit, Exit::Killed, "{name}");
                assert_eq!(marked(&mark), Vec::<String>::new(), "{name}");
            }
        }
    });
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (local, host) = (place.sandbox().await, place.host());
        let weaker = place.landlock().await;
        let sandboxes: [&dyn Sandbox; 3] = [&local, &weaker, &host];
        for sandbox in sandboxes {
            let mark = mark();
            let text = format!(
                "trap '' TERM; (setsid nohup sleep {mark} &) ; sh -c 'kill -STOP $$; sleep {mark}' & \
                 echo said"
            );
            assert_eq!(run(sandbox, &text).await.out, "said\n");
            assert_eq!(marked(&mark), Vec::<String>::new());
        }
    });
}

#[test]
fn a_command_that_stops_its_supervisor_still_ends() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (tested, weaker, host) = (place.sandbox().await, place.landlock().await, place.host());
        let sandboxes: [&dyn Sandbox; 3] = [&tested, &weaker, &host];
        for sandbox in sandboxes {
            let outcome = run(sandbox, "kill -STOP $PPID; exit 3").await;
            assert_eq!(outcome.ended.exit, Exit::Code(3));
        }
    });
}

#[test]
fn a_dropped_foreground_command_ends() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let mark = mark();
        let text = format!("echo ready; setsid sleep {mark} & sleep {mark}");
        let mut running = local.start(script(&local, &text)).await.unwrap();
        running.next().await.unwrap();
        drop(running);
        crate::support::until(|| marked(&mark).is_empty()).await;
    });
}

#[test]
fn a_fork_bomb_hits_its_bound_and_dies() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let mut config = place.config();
        config.limits.processes = 200;
        let local = place.open(config).await.unwrap();
        if who != Who::User
            && local.isolation().facts.iter().all(|fact| !fact.contains("processes"))
        {
            // Root's processes have no bound without a control group, and this machine's are others' too.
            return;
        }
        let mark = mark();
        let text = format!("echo ready; b() {{ b | b & }}; b; sleep {mark}");
        let mut running = local.start(script(&local, &text)).await.unwrap();
        running.next().await.unwrap();
        running.killer().kill(Duration::from_millis(200));
        assert_eq!(running.wait().await.exit, Exit::Killed);
        assert_eq!(marked(&mark), Vec::<String>::new());
        run(&local, "true").await.ok();
    });
}
