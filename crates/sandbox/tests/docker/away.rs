//! An engine that goes away in the middle of a task, and one whose helper cannot run.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use windlass_sandbox::docker::{Engine, remove_orphans};
use windlass_sandbox::{Command, Docker, Error, Exit, Sandbox, SandboxEvent, Stdin};

use crate::support::{Place, Who, block_on, finish, needed, run, script};

/// A relay between windlass and the real engine that can be cut.
struct Wire {
    socket: PathBuf,
    up: Arc<AtomicBool>,
    cut: Arc<Notify>,
    _jobs: JoinSet<()>,
}

impl Wire {
    fn new(place: &Place) -> Self {
        let socket = place.top.path().join("engine.sock");
        let real = needed("WINDLASS_TEST_DOCKER").trim_start_matches("unix://").to_owned();
        let listener = UnixListener::bind(&socket).unwrap();
        let (up, cut) = (Arc::new(AtomicBool::new(true)), Arc::new(Notify::new()));
        let mut jobs = JoinSet::new();
        let (is_up, hear) = (up.clone(), cut.clone());
        jobs.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut ours, _)) = listener.accept().await {
                if !is_up.load(Ordering::SeqCst) {
                    continue;
                }
                let (real, hear) = (real.clone(), hear.clone());
                connections.spawn(async move {
                    let mut theirs = UnixStream::connect(real).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut ours, &mut theirs) => {}
                        () = hear.notified() => {}
                    }
                });
            }
        });
        Self { socket, up, cut, _jobs: jobs }
    }

    async fn engine(&self) -> Engine {
        Engine::at(&format!("unix://{}", self.socket.display())).await.unwrap()
    }

    /// Ends every connection there is.
    fn cut(&self) {
        self.cut.notify_waiters();
    }

    fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::SeqCst);
    }
}

/// ES-382: the connection is made again, not the container.
#[test]
fn a_broken_connection_is_made_again_into_the_same_container() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let wire = Wire::new(&place);
        let config = place.docker_config(place.config());
        let docker = Docker::open(wire.engine().await, config).await.unwrap();
        let text = "echo kept > /tmp/kept; echo ready; sleep 1000";
        let mut running = docker.start(script(&docker, text)).await.unwrap();
        running.next().await.unwrap();
        let id = docker.container().await.unwrap();
        docker.drain_events();
        wire.cut();
        assert_eq!(running.wait().await.exit, Exit::Lost);
        assert_eq!(
            run(&docker, "cat /tmp/kept; pgrep sleep || echo none").await.ok(),
            "kept\nnone\n"
        );
        assert_eq!(docker.container().await.unwrap(), id);
        let news = docker.drain_events();
        assert!(
            matches!(&news[..], [SandboxEvent::Lost { why }] if why.contains("link")),
            "{news:?}"
        );
        docker.stop().await;
    });
}

#[test]
fn an_engine_that_comes_back_is_waited_for() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let wire = Wire::new(&place);
        let config = place.docker_config(place.config());
        let docker = Docker::open(wire.engine().await, config).await.unwrap();
        run(&docker, "true").await.ok();
        let id = docker.container().await.unwrap();
        wire.set_up(false);
        wire.cut();
        let (said, ()) = tokio::join!(run(&docker, "echo back"), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            wire.set_up(true);
        });
        assert_eq!(said.ok(), "back\n");
        assert_eq!(docker.container().await.unwrap(), id);
        docker.stop().await;
    });
}

/// ES-385: an engine that stays away is an error.
#[test]
fn an_engine_that_stays_away_is_an_error_that_names_it() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let wire = Wire::new(&place);
        let mut config = place.docker_config(place.config());
        config.engine_patience = Duration::from_millis(100);
        let docker = Docker::open(wire.engine().await, config).await.unwrap();
        run(&docker, "true").await.ok();
        wire.set_up(false);
        wire.cut();
        let error = docker.start(script(&docker, "true")).await.unwrap_err();
        let name = format!("unix://{}", wire.socket.display());
        assert_eq!(error.to_string(), format!("no container engine answers at `{name}`"));
        // It is not forgotten for that: what can be cleaned up later is.
        wire.set_up(true);
        docker.stop().await;
        drop(docker);
        let left = remove_orphans(&wire.engine().await, &place.data).await.unwrap();
        assert_eq!(left, 0);
    });
}

/// The helper's program, replaced by something that is none: as on another architecture.
async fn plain(place: &Place) -> Docker {
    let engine = Engine::at(&needed("WINDLASS_TEST_DOCKER")).await.unwrap();
    let docker = Docker::open(engine, place.docker_config(place.config())).await.unwrap();
    for entry in fs::read_dir(place.data.join("helper")).unwrap() {
        let path = entry.unwrap().path();
        let length = fs::metadata(&path).unwrap().len();
        fs::write(&path, vec![0x7f; length.try_into().unwrap()]).unwrap();
    }
    docker
}

#[test]
fn without_the_helper_the_engine_runs_commands_with_a_warning() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let docker = plain(&place).await;
        let outcome = run(&docker, "echo out; echo err >&2; pwd; exit 3").await;
        assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("out\n/workspace\n", "err\n"));
        assert_eq!(outcome.ended.exit, Exit::Code(3));
        let warnings = docker.isolation().warnings;
        assert!(warnings.iter().any(|text| text.contains("helper does not run")), "{warnings:?}");

        let argv = ["printf", "%s|", "a b", "$HOME", "*"].map(str::to_owned).to_vec();
        let command = Command { argv: Some(argv), ..script(&docker, "") };
        assert_eq!(finish(docker.start(command).await.unwrap()).await.both, "a b|$HOME|*|");

        let command = Command { stdin: Stdin::Piped, ..script(&docker, "wc -c") };
        let mut running = docker.start(command).await.unwrap();
        let mut input = running.take_input().unwrap();
        input.write(&vec![b'x'; 1 << 20]).await;
        drop(input);
        assert_eq!(finish(running).await.ok(), "1048576\n");

        let mut command = script(&docker, "trap '' TERM; while :; do sleep 1000; done");
        command.timeout = Some(Duration::from_millis(200));
        command.grace = Duration::from_millis(100);
        assert_eq!(finish(docker.start(command).await.unwrap()).await.ended.exit, Exit::TimedOut);

        let mut running = docker.start(script(&docker, "echo ready; sleep 1000")).await.unwrap();
        running.next().await.unwrap();
        running.killer().kill(Duration::from_millis(100));
        assert_eq!(running.wait().await.exit, Exit::Killed);
        docker.stop().await;
    });
}

#[test]
fn killing_everything_from_inside_costs_only_the_connection() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let docker = place.docker(place.config()).await.unwrap();
        let outcome = run(&docker, "kill -9 -1; sleep 1000").await;
        assert!(matches!(outcome.ended.exit, Exit::Lost | Exit::Signal(9)), "{outcome:?}");
        assert_eq!(run(&docker, "echo well").await.ok(), "well\n");
        docker.stop().await;
    });
}

/// An engine is not to be mistaken for one that says no.
#[test]
fn an_engine_that_is_no_engine_is_refused() {
    block_on(async {
        let error = Engine::at("ftp://nowhere").await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    });
}
