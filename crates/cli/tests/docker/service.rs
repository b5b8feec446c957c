//! A service whose tasks run in containers.

use windlass_core::status::TaskStatus;
use windlass_testkit::ModelServer;

use crate::containers::{containers_of, until};
use crate::program::needed;
use crate::world::{On, Process, World};

fn serve(world: &World) -> Process {
    let mut command = world.command(&["serve"]);
    command
        .env("CONTAINER_MODE", "docker")
        .env("CONTAINER_IMAGE", needed("WINDLASS_TEST_IMAGE"))
        .env("DOCKER_HOST", needed("WINDLASS_TEST_DOCKER"));
    Process::start(command)
}

/// The service is killed while five containers run.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_killed_service_continue_and_leave_no_container() {
    let script = "
replies:
  - {turn: 0, bash: 'echo begun > begun; sleep 600'}
  - {turn: 1, bash: 'cat begun > ended'}
  - {turn: 2, say: done}
";
    let world = World::new(On::Embedded, ModelServer::start(script));
    let first = serve(&world);
    let mut tasks = Vec::new();
    for at in 0..5 {
        tasks.push(world.submit(&format!("work {at}")).await.task);
    }
    let data = world.store.dir().root().to_owned();
    let begun = || tasks.iter().all(|task| world.workspace(*task).join("begun").exists());
    tokio::task::block_in_place(|| until(begun));
    assert_eq!(containers_of(&data).len(), 5);
    first.kill();

    let second = serve(&world);
    for task in &tasks {
        world.until_status(*task, TaskStatus::Done).await;
        let ended = world.workspace(*task).join("ended");
        assert_eq!(std::fs::read_to_string(ended).unwrap(), "begun\n");
    }
    assert!(second.stop().success());
    assert_eq!(containers_of(&data), Vec::<String>::new());
}
