//! The pool that drives ready tasks, as many as it may, and parks them when the service stops.
//!
//! Invariants:
//! - Which task is whose is decided by its kernel lock, and by its lease where the lock's holder has stopped; a
//!   list of ready tasks is only a hint.
//! - A task that cannot be driven is failed with the reason, or tried again later: never in a tight loop.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use windlass_core::command::TaskResult;
use windlass_core::error::ErrorDetails;
use windlass_core::id::TaskId;

use crate::activity::Activity;
use crate::drive::Drive;
use crate::service::{Backoff, chain};
use crate::task_leases::{self, TaskLeases};
use crate::{Coordinator, Error, open_files};

/// There are thousands of commits; a search for work after each would cost more than this wait.
const SCAN_DELAY: Duration = Duration::from_millis(20);

/// How many more ready tasks are asked for than there is room for.
const MARGIN: usize = 16;

/// How often the worker looks for tasks that have lost their process.
const ADOPTION_INTERVAL: Duration = Duration::from_secs(1);

/// A task that could not be driven is tried again after this time, doubled each time up to a minute.
const FIRST_COOLDOWN: Duration = Duration::from_millis(250);
const LONGEST_COOLDOWN: Duration = Duration::from_secs(60);

/// Attempts to equip a task after temporary errors, before the task fails (ES-380).
const ATTEMPTS: u32 = 3;

/// Tasks being driven by this process.
pub(crate) struct Pool {
    coordinator: Coordinator,
    limit: usize,
    drain: Duration,
    running: JoinSet<(TaskId, Result<TaskResult, Error>)>,
    driven: HashMap<Id, TaskId>,
    tasks: HashSet<TaskId>,
    cooling: HashMap<TaskId, Cooldown>,
    /// What was seen of tasks that others drive.
    leases: TaskLeases,
    /// The running time at which this process last sent a heartbeat.
    last_beat: Duration,
}

/// A task that is not tried again for a while.
struct Cooldown {
    until: Instant,
    next: Duration,
    attempts: u32,
}

impl Pool {
    pub(crate) fn new(coordinator: Coordinator, limit: usize, drain: Duration) -> Self {
        Self {
            last_beat: coordinator.clock.running_time(),
            leases: TaskLeases::default(),
            coordinator,
            limit,
            drain,
            running: JoinSet::new(),
            driven: HashMap::new(),
            tasks: HashSet::new(),
            cooling: HashMap::new(),
        }
    }

    /// Drives what is ready until `stop`, and then until everything is parked or time is up.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let mut changes = self.coordinator.store.changes();
        let coordinator = self.coordinator.clone();
        coordinator.queue().apply_limits().await?;
        let beat_interval = task_leases::beat_interval(self.coordinator.limits.task_lease);
        let (mut sweep, mut beat) = (interval_of(ADOPTION_INTERVAL), interval_of(beat_interval));
        let mut backoff = Backoff::new();
        let mut may_find = true;
        while !stop.is_cancelled() {
            if may_find {
                changes.mark_seen();
                match self.fill(&stop) {
                    Err(error) if error.is_transient() => {
                        backoff.wait("looking for work", &error).await;
                    }
                    filled => filled?,
                }
            }
            let has_room = self.running.len() < self.limit;
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = self.running.join_next_with_id() => {
                    self.settle(ended).await;
                    // If there was room before, waiting tasks have been found already, or a change will announce them.
                    may_find = !has_room;
                }
                _ = beat.tick() => {
                    self.send_heartbeats().await?;
                    may_find = false;
                }
                _ = sweep.tick(), if has_room => {
                    match self.adopt_interrupted(&stop) {
                        Err(error) if error.is_transient() => {
                            backoff.wait("looking for interrupted tasks", &error).await;
                        }
                        adopted => adopted?,
                    }
                    may_find = true;
                }
                () = coordinator.queue().wait_for_work(), if has_room => may_find = true,
                changed = changes.changed(), if has_room => {
                    changed?;
                    tokio::time::sleep(SCAN_DELAY).await;
                    may_find = true;
                }
            }
        }
        self.park().await;
        Ok(())
    }

    /// Starts the tasks that need only a process.
    fn fill(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        // On a full disk a task would only be parked again.
        if self.running.len() >= self.limit
            || !self.coordinator.store.tasks().retention().has_room()
        {
            return Ok(());
        }
        let room = self.limit - self.running.len();
        let mut wanted = room + MARGIN;
        loop {
            let ready = self.coordinator.queue().ready_tasks(wanted)?;
            // Tasks that were just started here may still be listed as ready, and some have to wait before another try.
            let is_startable =
                |task: &&TaskId| !self.tasks.contains(*task) && !self.cooling.contains_key(*task);
            let startable = ready.iter().filter(is_startable).count();
            if startable >= room || ready.len() < wanted {
                self.start(ready, stop);
                return Ok(());
            }
            wanted *= 2;
        }
    }

    /// Adopts what another process, or an earlier one of ours, began and did not end.
    fn adopt_interrupted(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let now = Instant::now();
        self.cooling.retain(|_, cooldown| cooldown.until + LONGEST_COOLDOWN > now);
        let lost = self.coordinator.queue().interrupted(&self.tasks)?;
        self.start(lost, stop);
        self.take_over_stopped(stop)
    }

    /// Takes over what a process drives that has stopped.
    fn take_over_stopped(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let mut pulses = self.coordinator.store.owners().runtime().pulses()?;
        pulses.retain(|pulse| !self.tasks.contains(&pulse.task));
        let (now, lease) =
            (self.coordinator.clock.running_time(), self.coordinator.limits.task_lease);
        for stopped in self.leases.observe(now, &pulses, lease) {
            let (coordinator, stop) = (self.coordinator.clone(), stop.clone());
            self.spawn(stopped.task, async move {
                Drive::of(&coordinator).take_over(stopped, &stop).await
            });
        }
        Ok(())
    }

    fn start(&mut self, tasks: Vec<TaskId>, stop: &CancellationToken) {
        for task in tasks {
            let (coordinator, stop) = (self.coordinator.clone(), stop.clone());
            self.spawn(task, async move { coordinator.tasks().drive(task, &stop).await });
        }
    }

    /// Drives a task here, unless there is no room, it is driven here already, or the last try was just now.
    fn spawn(
        &mut self,
        task: TaskId,
        drive: impl Future<Output = Result<TaskResult, Error>> + Send + 'static,
    ) {
        // A search lists many that are driven here already: nothing else is asked about them.
        if self.running.len() >= self.limit || self.tasks.contains(&task) {
            return;
        }
        let now = Instant::now();
        let is_cooling = self.cooling.get(&task).is_some_and(|cooldown| cooldown.until > now);
        if is_cooling || !open_files::has_room() {
            return;
        }
        self.tasks.insert(task);
        let id = self.running.spawn(async move { (task, drive.await) }).id();
        self.driven.insert(id, task);
    }

    async fn settle(&mut self, ended: Result<(Id, Driven), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, (_, outcome))) => (id, outcome),
            Err(error) => (error.id(), Err(Error::Job(error.to_string()))),
        };
        let Some(task) = self.driven.remove(&id) else { return };
        self.tasks.remove(&task);
        match outcome {
            Ok(result) => {
                self.cooling.remove(&task);
                if let Err(error) = self.coordinator.plans().settle(&result).await {
                    tracing::warn!(%task, reason = chain(&error), "a task of a plan was not settled");
                }
            }
            // Another process was quicker, or the task no longer needs one.
            Err(Error::Store(windlass_store::Error::Driven { .. })) => self.cool_down(task),
            // The health check has parked it, and said why.
            Err(Error::Ended { .. } | Error::Dependencies { .. } | Error::Unhealthy { .. }) => {
                self.cool_down(task);
            }
            Err(Error::Store(windlass_store::Error::Superseded { .. })) => {
                tracing::warn!(%task, "another process has taken the task over");
                self.cool_down(task);
            }
            // The limit of open files is reached; it waits until others are closed.
            Err(Error::Equipment { .. }) if !open_files::has_room() => self.cool_down(task),
            Err(Error::Equipment { details, .. }) => {
                self.cool_down(task);
                let attempts = self.cooling.get(&task).map_or(0, |cooldown| cooldown.attempts);
                if !details.retryable || attempts >= ATTEMPTS {
                    self.fail(task, *details).await;
                }
            }
            Err(error) => {
                tracing::error!(%task, reason = chain(&error), "task could not be driven");
                self.cool_down(task);
            }
        }
    }

    fn cool_down(&mut self, task: TaskId) {
        let now = Instant::now();
        let cooldown = self.cooling.entry(task).or_insert(Cooldown {
            until: now,
            next: FIRST_COOLDOWN,
            attempts: 0,
        });
        cooldown.until = now + cooldown.next;
        cooldown.next = (cooldown.next * 2).min(LONGEST_COOLDOWN);
        cooldown.attempts += 1;
    }

    /// Fails a task that cannot be equipped. If that is not possible now, it is tried again.
    async fn fail(&self, task: TaskId, details: ErrorDetails) {
        if let Err(error) = self.coordinator.control().fail(task, details).await {
            tracing::warn!(%task, reason = chain(&error), "failure not journaled yet");
            return;
        }
        // Its loop never ran, so nobody else reports its end.
        if let Ok(Some(result)) = self.coordinator.tasks().last_result(task) {
            let _ = self.coordinator.activity.send(Activity::Ended(Box::new(result)));
        }
    }

    /// Sends a heartbeat for each task. A task that another process has taken over is dropped at once.
    async fn send_heartbeats(&mut self) -> Result<(), Error> {
        let now = self.coordinator.clock.running_time();
        if self.tasks.is_empty() {
            self.last_beat = now;
            return Ok(());
        }
        // A task that is still being started has no row yet; without this it would count as lost and be evicted
        // as soon as its loop begins.
        let stalls = &self.coordinator.stalls;
        let started = self.tasks.iter().copied().filter(|task| stalls.is_registered(*task));
        let (tasks, pid) = (started.collect(), std::process::id());
        let store = &self.coordinator.store;
        let lost =
            match store.owners().runtime().heartbeats(tasks, pid, self.coordinator.now()).await {
                Err(windlass_store::Error::Stopped) => {
                    return Err(windlass_store::Error::Stopped.into());
                }
                Ok(lost) => {
                    self.last_beat = now;
                    lost
                }
                // The tasks themselves report a full disk. They are dropped before others take them over.
                Err(_) => {
                    let lease = self.coordinator.limits.task_lease;
                    let silent = now.saturating_sub(self.last_beat);
                    let lets_go = silent > task_leases::time_until_let_go(lease);
                    self.tasks.iter().copied().filter(|_| lets_go).collect()
                }
            };
        lost.into_iter().for_each(|task| self.coordinator.stalls.evict(task));
        Ok(())
    }

    /// Waits until every task has reached a boundary. Those that have not are ended with the process, and
    /// recovers like after a crash.
    async fn park(&mut self) {
        let limit = self.drain;
        let drained = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                self.settle(ended).await;
            }
        };
        if tokio::time::timeout(limit, drained).await.is_err() {
            let left = self.running.len();
            tracing::warn!(left, "tasks did not come to a boundary in time");
            self.running.shutdown().await;
        }
    }
}

type Driven = (TaskId, Result<TaskResult, Error>);

fn interval_of(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
