//! A service: takes entries from the bus, drives tasks and publishes their results until it is stopped. Then it parks
//! its tasks at a turn boundary and hands them back.
//!
//! Everything that must survive is in the store, so a service that dies is replaced by any other.

mod collect;
mod intake;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, InStream};
use crate::{Coordinator, Error, outbox, worker};

/// Waits between attempts: 100 ms, doubled up to 5 s.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);

/// How long a service looks through its database for damage when it starts, beside its work. A damaged one is not
/// served: it would take in what it cannot keep.
const PAGE_CHECK: Duration = Duration::from_secs(30);

/// What a service does, and how much of it.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its name among the consumers of the bus; another one for every process.
    pub name: String,
    /// The streams it takes in.
    pub streams: Vec<InStream>,
    /// Tasks that it drives at once.
    pub tasks: usize,
    /// How long an entry may be with a consumer before another claims it.
    pub claim_after: Duration,
    /// How long its tasks may take to come to a turn boundary when it stops.
    pub drain: Duration,
}

impl Service {
    /// Serves until `stop`, and then until everything is parked and published.
    pub async fn run(
        self,
        coordinator: Coordinator,
        bus: Arc<dyn Bus>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let _present = coordinator.store.owners().announce_service()?;
        // What ends first with an error ends all.
        let (serving, driving) = (stop.child_token(), CancellationToken::new());
        let mut jobs = JoinSet::new();
        let (with, by, until) = (coordinator.clone(), bus.clone(), serving.clone());
        let reader = self.clone();
        jobs.spawn(async move { intake::run(reader, with, by, until).await });
        if self.streams.contains(&InStream::Scheduled) {
            let (with, until) = (coordinator.clone(), serving.clone());
            jobs.spawn(async move {
                with.schedules().timer().run(&until).await;
                Ok(())
            });
        }
        let (with, until) = (coordinator.clone(), serving.clone());
        jobs.spawn(async move {
            let check = with.store.blocking(|store| store.projections().check_pages(PAGE_CHECK));
            until.run_until_cancelled(check).await.unwrap_or(Ok(())).map_err(Error::from)
        });
        let (with, until) = (coordinator.clone(), serving.clone());
        jobs.spawn(async move {
            until.run_until_cancelled(with.feed().share_previews()).await;
            Ok(())
        });
        jobs.spawn(collect::collect(coordinator.clone(), bus.clone(), serving.clone()));
        let (with, until) = (coordinator.clone(), serving.clone());
        let pool = worker::Pool::new(with, self.tasks, self.drain);
        let drained = driving.clone();
        jobs.spawn(async move {
            // Results of tasks that are parked now are still published.
            let _drained = drained.drop_guard();
            pool.run(until).await
        });
        jobs.spawn(outbox::publish(coordinator, bus, driving));
        let mut outcome = Ok(());
        while let Some(ended) = jobs.join_next().await {
            let ended = match ended {
                Ok(ended) => ended,
                Err(panicked) => {
                    tracing::error!(%panicked, "a job of the service failed");
                    Err(Error::Job(panicked.to_string()))
                }
            };
            if ended.is_err() {
                serving.cancel();
            }
            outcome = outcome.and(ended);
        }
        outcome
    }
}

/// Waits that grow while something does not work.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { next: FIRST_BACKOFF }
    }

    pub(crate) async fn wait(&mut self, what: &str, error: &Error) {
        let reason = chain(error);
        tracing::warn!(
            reason,
            wait_ms = self.next.as_millis() as u64,
            "{what} is tried again later"
        );
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST_BACKOFF);
    }
}

pub(crate) use windlass_core::text::with_causes as chain;
