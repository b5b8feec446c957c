//! A container's life: what it is made of, what becomes of it, what is left of it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use bollard::models::{ContainerInspectResponse, MountPoint};
use bollard::query_parameters::{
    InspectContainerOptions, KillContainerOptions, RemoveContainerOptions,
};
use futures_util::StreamExt as _;
use windlass_core::layout::AddedDirectory;
use windlass_sandbox::docker::{self, Engine, remove_orphans};
use windlass_sandbox::{Docker, Error, Exit, Network, Sandbox, SandboxEvent};

use crate::everyone;
use crate::support::{
    Place, STRANGER, Who, block_on, engine, is_root, mark, marked, needed, run, script, until,
};

fn api() -> bollard::Docker {
    bollard::Docker::connect_with_host(&needed("WINDLASS_TEST_DOCKER")).unwrap()
}

async fn inspect(docker: &Docker) -> ContainerInspectResponse {
    let id = docker.container().await.expect("a container");
    api().inspect_container(&id, None::<InspectContainerOptions>).await.unwrap()
}

async fn exists(id: &str) -> bool {
    api().inspect_container(id, None::<InspectContainerOptions>).await.is_ok()
}

async fn until_ended(id: &str) {
    let options = None::<bollard::query_parameters::WaitContainerOptions>;
    let _ = api().wait_container(id, options).next().await;
}

async fn remove(id: &str) {
    let options = RemoveContainerOptions { force: true, ..Default::default() };
    api().remove_container(id, Some(options)).await.unwrap();
}

/// ES-005, ES-271, ES-272, ES-273, ES-274, ES-275, ES-276, ES-356, ES-357.
#[test]
fn a_container_is_made_as_hard_as_it_is_designed() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let skills = place.top.path().join("skills");
        fs::create_dir(&skills).unwrap();
        let mut config = place.config();
        config.skills = Some(skills);
        config.limits.memory_bytes = 2 << 30;
        config.limits.processes = 1024;
        let docker = place.docker(config).await.unwrap();
        assert_eq!(docker.container().await, None, "it is made with the first command only");
        run(&docker, "true").await.ok();

        let found = inspect(&docker).await;
        let made = found.config.unwrap();
        // Podman puts a registry before it.
        assert!(made.image.unwrap().ends_with(&needed("WINDLASS_TEST_IMAGE")));
        let host = found.host_config.unwrap();
        assert_eq!((host.memory, host.memory_swap), (Some(2 << 30), Some(2 << 30)));
        assert_eq!((host.nano_cpus, host.pids_limit), (Some(2_000_000_000), Some(1024)));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.cap_add.unwrap_or_default(), Vec::<String>::new());
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!((host.readonly_rootfs, host.privileged), (Some(true), Some(false)));
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        let mut mounts: Vec<(String, bool)> = found
            .mounts
            .unwrap()
            .into_iter()
            .map(|MountPoint { destination, rw, .. }| (destination.unwrap(), rw.unwrap()))
            .collect();
        mounts.sort();
        let expected = [("/.windlass/helper", false), ("/skills", false), ("/workspace", true)];
        assert_eq!(mounts, expected.map(|(path, rw)| (path.to_owned(), rw)));
        docker.stop().await;
    });
}

/// ES-270, ES-277, ES-278, ES-281, ES-399: one container for all commands of a task, gone at its end.
#[test]
fn a_task_has_one_container_and_its_end_removes_it() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let docker = place.docker(place.config()).await.unwrap();
        run(&docker, "true").await.ok();
        let id = docker.container().await.unwrap();
        run(&docker, "true").await.ok();
        assert_eq!(docker.container().await.as_deref(), Some(id.as_str()));
        let labels = inspect(&docker).await.config.unwrap().labels.unwrap();
        assert!(labels["windlass.data"].starts_with(place.data.to_str().unwrap()), "{labels:?}");
        assert!(labels["windlass.task"].starts_with("task_"), "{labels:?}");
        assert!(matches!(docker.drain_events()[..], [SandboxEvent::Started { .. }]));
        let mark = mark();
        let text = format!("echo ready; trap '' TERM; sleep {mark}; sleep {mark}");
        let mut running = docker.start(script(&docker, &text)).await.unwrap();
        running.next().await.unwrap();
        docker.stop().await;
        assert!(!exists(&id).await);
        assert_eq!(running.wait().await.exit, Exit::Lost);
        assert_eq!(marked(&mark), Vec::<String>::new());
    });
}

/// What is mounted in a container stays as it is, so one that appears later needs a new container.
#[test]
fn a_socket_that_appears_later_is_hidden_once_nothing_runs() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let added = place.top.path().join("added");
        fs::create_dir(&added).unwrap();
        let mut config = place.config();
        config.added = vec![AddedDirectory { path: added.display().to_string(), writable: false }];
        let _early = UnixListener::bind(added.join("early")).unwrap();
        let docker = place.docker(config).await.unwrap();
        let seen = async |path: &Path| {
            let text = format!("if test -S {}; then echo yes; fi", path.display());
            run(&docker, &text).await.ok() == "yes\n"
        };
        assert!(!seen(&added.join("early")).await, "it is there when the container is made");
        let first = docker.container().await.unwrap();
        let mut own = docker.start(script(&docker, "echo ready; sleep 1000")).await.unwrap();
        own.next().await.unwrap();
        let _late = UnixListener::bind(place.workspace.join("late")).unwrap();
        let _other = UnixListener::bind(added.join("other")).unwrap();
        assert!(seen(Path::new("late")).await, "the container stays while something runs in it");
        assert_eq!(docker.container().await.unwrap(), first);
        own.killer().kill(std::time::Duration::ZERO);
        own.wait().await;
        docker.drain_events();
        assert!(!seen(Path::new("late")).await);
        assert!(!seen(&added.join("other")).await && !seen(&added.join("early")).await);
        assert_ne!(docker.container().await.unwrap(), first);
        let events = docker.drain_events();
        let [SandboxEvent::Lost { why }, SandboxEvent::Started { .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(why.contains("socket"), "{why}");
        // Its own sockets are none of others.
        let listen = "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); $| = 1; \
                      bind($s, pack_sockaddr_un(\"own\")) && listen($s, 1) && print \"ready\\n\"; sleep 1000";
        let text = format!("perl -e '{listen}'");
        let mut own = docker.start(script(&docker, &text)).await.unwrap();
        own.next().await.unwrap();
        assert!(seen(Path::new("own")).await);
        docker.stop().await;
    });
}

/// Files come out as the user's.
#[test]
fn files_on_the_host_belong_to_the_owner_of_the_workspace() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let docker = place.docker(place.config()).await.unwrap();
        run(&docker, "mkdir -p a/b && echo x > a/b/file && git init -q repo").await.ok();
        let owner = match who {
            Who::Root => 0,
            Who::RootForStranger | Who::User => STRANGER,
        };
        if is_root() || crate::support::is_child() {
            for path in ["a", "a/b", "a/b/file", "repo/.git/HEAD", "output", ".scratch"] {
                let found = fs::metadata(place.workspace.join(path)).unwrap();
                assert_eq!((found.uid(), found.gid()), (owner, owner), "{path}");
            }
        }
        docker.stop().await;
    });
}

#[test]
fn the_images_root_and_the_engines_socket_stay_out_of_reach() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let docker = place.docker(place.config()).await.unwrap();
        run(&docker, "cat /etc/only-root").await.fails();
        run(&docker, "ls /var/run/docker.sock /run/docker.sock").await.fails();
        assert_ne!(run(&docker, "id -u").await.ok(), "0\n");
        run(&docker, "echo x > /.windlass/helper").await.fails();
        assert_eq!(run(&docker, "echo $IMAGE_SAYS").await.ok(), "hello\n");
        docker.stop().await;
    });
}

#[test]
fn a_removed_container_is_replaced_on_the_same_workspace_and_reported() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let docker = place.docker(place.config()).await.unwrap();
        let text = "echo here > file; echo ready; sleep 1000";
        let mut running = docker.start(script(&docker, text)).await.unwrap();
        running.next().await.unwrap();
        let first = docker.container().await.unwrap();
        docker.drain_events();
        remove(&first).await;
        assert_eq!(running.wait().await.exit, Exit::Lost);
        assert_eq!(run(&docker, "cat file").await.ok(), "here\n");
        assert_ne!(docker.container().await.unwrap(), first);
        let news = docker.drain_events();
        assert!(
            matches!(&news[..], [SandboxEvent::Lost { why }, SandboxEvent::Started { .. }] if why.contains("gone")),
            "{news:?}"
        );
        docker.stop().await;
    });
}

/// ES-380: a bad image, and a start that fails three times.
#[test]
fn what_cannot_start_is_tried_three_times_and_then_said() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let config = place.docker_config(place.config());
        let wrong = docker::Config { image: "no-such-image:7".to_owned(), ..config.clone() };
        let error = Docker::open(engine().await, wrong).await.unwrap_err();
        assert_eq!(error.to_string(), "image `no-such-image:7` is not on this engine");

        let docker = Docker::open(engine().await, config).await.unwrap();
        fs::remove_dir_all(&place.workspace).unwrap();
        let error = docker.start(script(&docker, "true")).await.unwrap_err();
        assert!(matches!(error, Error::NoContainer { attempts: 3, .. }), "{error:?}");
        assert_eq!(docker.container().await, None);
        drop(docker);
        let found = remove_orphans(&engine().await, &place.data).await.unwrap();
        assert_eq!(found, 0, "an attempt that failed left a container");
    });
}

/// ES-381: the container itself, filled up by what is in its memory.
#[test]
fn a_container_killed_for_memory_is_an_error_naming_the_limit() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        let mut config = place.config();
        config.limits.memory_bytes = 96 << 20;
        let docker = place.docker(config).await.unwrap();
        let outcome = run(&docker, "head -c 300M /dev/zero > /tmp/file").await;
        assert_eq!(outcome.ended.exit, Exit::OutOfMemory);
        // The kernel takes commands before it takes the container's own process, and so never comes to
        // that here. What it would do then is done in its place.
        let id = docker.container().await.unwrap();
        let signal = KillContainerOptions { signal: "KILL".to_owned() };
        api().kill_container(&id, Some(signal)).await.unwrap();
        until_ended(&id).await;
        let error = docker.start(script(&docker, "true")).await.unwrap_err();
        let limit = "OOM: the container was ended because its memory limit of 96 MiB was reached";
        assert_eq!(error.to_string(), limit);
        assert!(!exists(&id).await);
        // The next command after the report gets a new container.
        run(&docker, "true").await.ok();
        docker.stop().await;
    });
}

/// One task's excess is its own.
#[test]
fn a_fork_bomb_and_a_memory_hog_end_while_another_task_continues() {
    block_on(async {
        let (greedy, modest) = (Place::new(Who::RootForStranger), Place::new(Who::RootForStranger));
        let mut config = greedy.config();
        config.limits.memory_bytes = 128 << 20;
        config.limits.processes = 100;
        let bomber = greedy.docker(config).await.unwrap();
        let worker = modest.docker(modest.config()).await.unwrap();
        let eat = "perl -e 'my @a; push @a, \"x\" x (1 << 20) while 1'";
        assert_eq!(run(&bomber, eat).await.ended.exit, Exit::OutOfMemory);
        let bomb = "b() { b | b & }; b; sleep 0.3; sleep 1000";
        let mut command = script(&bomber, bomb);
        command.timeout = Some(std::time::Duration::from_secs(2));
        let running = bomber.start(command).await.unwrap();
        assert_eq!(run(&worker, "echo works").await.ok(), "works\n");
        let outcome = crate::support::finish(running).await;
        assert!(
            outcome.both.contains("Resource temporarily unavailable")
                || outcome.ended.exit == Exit::TimedOut,
            "{:?}",
            outcome.ended
        );
        run(&bomber, "echo again").await.ok();
        assert_eq!(run(&worker, "echo works").await.ok(), "works\n");
        bomber.stop().await;
        worker.stop().await;
    });
}

/// Orphans are the containers of this data directory whose task no process drives.
#[test]
fn orphans_are_found_by_label_and_those_of_others_are_left_alone() {
    everyone!(|who| async move {
        let (mine, other) = (Place::new(who), Place::new(who));
        let open = async |place: &Place, task: &str| {
            let mut config = place.docker_config(place.config());
            config.task = task.to_owned();
            let docker = Docker::open(engine().await, config).await.unwrap();
            run(&docker, "true").await.ok();
            let id = docker.container().await.unwrap();
            (docker, id)
        };
        let (alive, alive_id) = open(&mine, "task_alive").await;
        // As a process does that is killed: its claims end, its containers do not.
        let (_, dead_id) = open(&mine, "task_dead").await;
        let (_, foreign_id) = open(&other, "task_dead").await;
        let engine: Engine = engine().await;
        assert_eq!(remove_orphans(&engine, &mine.data).await.unwrap(), 1);
        assert!(exists(&alive_id).await && !exists(&dead_id).await && exists(&foreign_id).await);

        // A task that is taken up again first ends what is left of it, and of others.
        let (_, left_id) = open(&mine, "task_left").await;
        drop(alive);
        let (again, again_id) = open(&mine, "task_alive").await;
        assert!(!exists(&alive_id).await && !exists(&left_id).await && exists(&again_id).await);
        assert!(exists(&foreign_id).await);
        again.stop().await;
        assert_eq!(remove_orphans(&engine, &mine.data).await.unwrap(), 0);
        assert_eq!(remove_orphans(&engine, &other.data).await.unwrap(), 1);
    });
}

#[test]
fn a_socket_without_a_server_is_an_error_at_once() {
    block_on(async {
        let place = Place::new(Who::User);
        let path = place.top.path().join("silent.sock");
        let missing = format!("unix://{}", path.display());
        let error = Engine::at(&missing).await.unwrap_err();
        assert_eq!(error.to_string(), format!("no container engine answers at `{missing}`"));
        let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = Engine::at(&missing).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    });
}

/// §15.7: on the end of the link the helper ends all, though the container stays a little.
#[test]
fn nothing_keeps_running_in_the_container_of_a_dead_owner() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let docker = place.docker(place.config()).await.unwrap();
        let mark = mark();
        let text = format!(
            "trap '' TERM; (setsid nohup sleep {mark} &); echo ready; while :; do sleep {mark}; done"
        );
        let mut running = docker.start(script(&docker, &text)).await.unwrap();
        running.next().await.unwrap();
        until(|| marked(&mark).len() >= 2).await;
        drop(docker);
        until(|| marked(&mark).is_empty()).await;
        let found = remove_orphans(&engine().await, &place.data).await.unwrap();
        assert_eq!(found, 1);
    });
}

#[test]
fn containers_with_their_own_network_do_not_reach_each_other() {
    block_on(async {
        let place = Place::new(Who::RootForStranger);
        for network in [Network::None, Network::Restricted(place.egress(&[]))] {
            let mut config = place.config();
            config.network = network;
            let docker = place.docker(config).await.unwrap();
            let routes = run(&docker, "tail -n +2 /proc/net/route").await.ok();
            assert_eq!(routes, "", "there is no way out");
            run(&docker, "echo x > /dev/tcp/169.254.169.254/80").await.fails();
            run(&docker, "echo x > /dev/tcp/172.17.0.1/22").await.fails();
            docker.stop().await;
        }
    });
}
