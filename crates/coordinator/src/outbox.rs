//! Publishing: moves what waits in the outbox to the bus, in order and at least once (§15.18).
//!
//! Invariant: a message leaves the outbox only after the bus has it. One process of a data directory
//! publishes at a time, so that a repetition is the exception.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::service::Backoff;
use crate::{Coordinator, Error};

/// Messages published at once.
const AT_ONCE: usize = 64;

/// Commits come by the thousand; looking after each would cost more than the wait.
const LOOK: Duration = Duration::from_millis(20);

/// How often a process that does not publish looks whether it should.
const ELECTION: Duration = Duration::from_millis(500);

/// What is left when the service ends is published within this time, or by the next one.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The duty's name.
const DUTY: &str = "publisher";

/// Publishes until `stop`, then what is left.
pub(crate) async fn publish(
    coordinator: Coordinator,
    bus: Arc<dyn Bus>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let work = run(&coordinator, &*bus);
    match stop.run_until_cancelled(work).await {
        Some(failed) => return failed,
        None if coordinator.store.owners().claim_singleton(DUTY)?.is_none() => return Ok(()),
        None => {}
    }
    let rest = async {
        while publish_pending(&coordinator, &*bus).await? {}
        Ok::<_, Error>(())
    };
    match tokio::time::timeout(LAST_WORDS, rest).await {
        Ok(Err(error)) if !error.is_transient() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn run(coordinator: &Coordinator, bus: &dyn Bus) -> Result<(), Error> {
    let store = &coordinator.store;
    let _duty = loop {
        match store.owners().claim_singleton(DUTY)? {
            Some(duty) => break duty,
            None => tokio::time::sleep(ELECTION).await,
        }
    };
    let mut changes = store.changes();
    let mut backoff = Backoff::new();
    loop {
        changes.mark_seen();
        match publish_pending(coordinator, bus).await {
            Ok(true) => backoff = Backoff::new(),
            Ok(false) => {
                changes.changed().await?;
                tokio::time::sleep(LOOK).await;
            }
            Err(error) if error.is_transient() => backoff.wait("publishing", &error).await,
            Err(error) => return Err(error),
        }
    }
}

/// Publishes some; false when nothing waited.
async fn publish_pending(coordinator: &Coordinator, bus: &dyn Bus) -> Result<bool, Error> {
    let store = &coordinator.store;
    let waiting = store.bus().outbox().pending(AT_ONCE)?;
    if waiting.is_empty() {
        return Ok(false);
    }
    // Others will see these messages, so a power loss must not undo the events that caused them.
    store.sync().await?;
    bus.publish(&waiting).await?;
    store.bus().outbox().remove(waiting.iter().map(|message| message.id).collect()).await?;
    Ok(true)
}
