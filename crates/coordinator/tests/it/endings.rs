//! Tasks that are ended from outside their loop end as completely as those that end in it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use windlass_agent::{Parts, Preview};
use windlass_coordinator::bus::EmbeddedBus;
use windlass_coordinator::{AgentFactory, BoxFuture, Coordinator, Service};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;

use crate::world::{START, World, at};

/// Cannot make any agent.
struct Misconfigured;

impl AgentFactory for Misconfigured {
    fn make<'a>(
        &'a self,
        _: &'a TaskState,
        _: broadcast::Sender<Preview>,
    ) -> BoxFuture<'a, Result<Parts, ErrorDetails>> {
        let error = ErrorDetails::new(ErrorType::InvalidCommand, "the configuration is broken");
        Box::pin(std::future::ready(Err(error)))
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_driven_takes_its_sub_agents_with_it() {
    let replies = "
match:
  - task: choose a colour
    replies: [{ask_user: {question: which colour?}}, {say: blue}]
replies:
  - spawn_agent: {task: choose a colour}
  - say: done
";
    let world = World::routed(replies, "unused");
    let task = world.task("paint").await;
    world.drive(task).await;
    let asked = world.coordinator().inbox().open_in_tree(task).unwrap().remove(0);
    world.coordinator().inbox().answer(asked.row.question.id, "blue", "ada").await.unwrap();

    let clock = Arc::new(|| at(START));
    let coordinator = Coordinator::new(world.store().clone(), Arc::new(Misconfigured), clock);
    let service = Service {
        name: "test".to_owned(),
        streams: Vec::new(),
        tasks: 1,
        claim_after: Duration::from_secs(60),
        drain: Duration::from_secs(5),
    };
    let bus = Arc::new(EmbeddedBus::of(&coordinator));
    let stop = CancellationToken::new();
    let ended = async {
        let mut changes = world.store().changes();
        loop {
            changes.mark_seen();
            if world.status(task) == TaskStatus::Failed {
                break;
            }
            changes.changed().await.unwrap();
        }
        stop.cancel();
    };
    let (served, ()) = tokio::join!(service.run(coordinator, bus, stop.clone()), ended);
    served.unwrap();
    assert_eq!(world.status(asked.row.task), TaskStatus::Cancelled);
    assert!(world.coordinator().inbox().open().unwrap().is_empty());
}
