//! Collecting: injections from the bus's lists into the mailbox, and control flags to the tasks they are for.
//!
//! Invariants:
//! - An injection leaves its list only when the mailbox has it; its id makes a repetition harmless, so each
//!   has its effect exactly once, in the list's order.
//! - A flag is obeyed while it is set: a task that is flagged `paused` does not run. (ES-016)

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::OutStream;

use super::{Backoff, chain};
use crate::bus::{Bus, Flag, PendingInjection};
use crate::{Coordinator, Error};

/// How often lists and flags are looked at: soon enough to be in effect within a turn, seldom enough for a
/// thousand tasks.
const LOOK: Duration = Duration::from_millis(200);

/// Looks at the living between two at those that ended.
const SELDOM: u32 = 25;

/// Tasks that wait and are looked at in one look; the next ones are looked at in the next, so that a long queue
/// costs no more than a short one.
const WAITING_AT_ONCE: usize = 500;

/// For how long messages to a task that has ended are still collected, and refused with a reply.
const AFTERWARDS: SignedDuration = SignedDuration::from_mins(10);

/// The duty's name.
const DUTY: &str = "collector";

/// Who speaks where a flag does.
const BY: &str = "control flag";

/// Collects until `stop`; one process of a data directory does.
pub(super) async fn collect(
    coordinator: Coordinator,
    bus: Arc<dyn Bus>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let work = run(&coordinator, &*bus);
    stop.run_until_cancelled(work).await.unwrap_or(Ok(()))
}

async fn run(coordinator: &Coordinator, bus: &dyn Bus) -> Result<(), Error> {
    let _duty = loop {
        match coordinator.store.owners().claim_singleton(DUTY)? {
            Some(duty) => break duty,
            None => tokio::time::sleep(LOOK).await,
        }
    };
    let mut backoff = Backoff::new();
    let (mut looks, mut offset) = (0, 0);
    loop {
        match collect_once(coordinator, bus, looks % SELDOM == 0, offset).await {
            Ok(next) => {
                backoff = Backoff::new();
                looks += 1;
                offset = next;
                tokio::time::sleep(LOOK).await;
            }
            Err(error) if error.is_transient() => backoff.wait("collecting", &error).await,
            Err(error) => return Err(error),
        }
    }
}

/// One look at all tasks that run and at those that wait from `offset` on; returns where the next one begins.
async fn collect_once(
    coordinator: &Coordinator,
    bus: &dyn Bus,
    seldom: bool,
    offset: usize,
) -> Result<usize, Error> {
    let store = &coordinator.store;
    let mut tasks = store.scheduler().running_tasks()?;
    let waiting = store.scheduler().idle_unfinished_tasks(offset, WAITING_AT_ONCE)?;
    let next = if waiting.len() < WAITING_AT_ONCE { 0 } else { offset + WAITING_AT_ONCE };
    tasks.extend(waiting);
    let mut spoken_to = tasks.clone();
    if seldom {
        let since = coordinator.now().checked_sub(AFTERWARDS).unwrap_or(Timestamp::MIN);
        spoken_to.extend(store.scheduler().ended_tasks(since)?);
    }
    for listed in bus.list(&spoken_to).await? {
        deliver(coordinator, &listed).await?;
        bus.remove(&listed).await?;
    }
    for (task, flag) in bus.flags(&tasks).await? {
        match carry_out(coordinator, bus, task, flag).await {
            // It has ended, or is a sub-agent's: nothing to obey.
            Err(error) if !error.is_transient() => {
                tracing::debug!(%task, %flag, reason = chain(&error), "control flag not obeyed");
            }
            obeyed => obeyed?,
        }
    }
    Ok(next)
}

/// Into the mailbox, or back to people where that refuses it for good.
async fn deliver(coordinator: &Coordinator, listed: &PendingInjection) -> Result<(), Error> {
    let task = listed.task;
    let problem = match serde_json::from_str::<Injection>(&listed.text) {
        Ok(injection) => match inject(coordinator, task, injection).await {
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => chain(&error),
            Ok(()) => return Ok(()),
        },
        Err(problem) => problem.to_string(),
    };
    tracing::warn!(%task, problem, "injection refused");
    let store = &coordinator.store;
    let session = store.tasks().get(task)?.map(|row| row.session_id);
    // Named by what it says, so that it is reported once.
    let name = InjectionId::derived(&task.to_string(), &listed.text);
    let refusal = serde_json::json!({
        "message_id": format!("refused/{name}"),
        "session_id": session,
        "task_id": task,
        "message": format!("an injection was refused: {problem}"),
    });
    let (key, now) = (format!("refused/{name}"), coordinator.now());
    Ok(store
        .bus()
        .outbox()
        .enqueue(now, OutStream::UserMessage, key, None, refusal.to_string())
        .await?)
}

async fn inject(
    coordinator: &Coordinator,
    task: TaskId,
    injection: Injection,
) -> Result<(), Error> {
    match injection.control {
        Some(control) => {
            coordinator.control().steer_as(injection.id, task, control, &injection.by).await?;
        }
        None => {
            coordinator.messages().inject(task, injection).await?;
        }
    }
    coordinator.queue().wake();
    Ok(())
}

async fn carry_out(
    coordinator: &Coordinator,
    bus: &dyn Bus,
    task: TaskId,
    flag: Flag,
) -> Result<(), Error> {
    let Some(row) = coordinator.store.tasks().get(task)? else { return Ok(()) };
    let paused = row.status == TaskStatus::Paused && row.reason != StatusReason::Shutdown;
    let control = match flag {
        Flag::Paused if paused => return Ok(()),
        Flag::Paused => Control::Pause,
        Flag::Cancelled => Control::Cancel { reason: Some("flagged as cancelled".to_owned()) },
        Flag::Running if row.status == TaskStatus::Paused => Control::Resume,
        Flag::Running => return Ok(bus.set_flag(task, None).await?),
    };
    // The same signal for as long as the task has not moved, however often it is looked at.
    let moves = coordinator.store.tasks().transitions(task)?.len();
    let id = InjectionId::derived(&task.to_string(), &format!("{flag} {moves}"));
    coordinator.control().steer_as(id, task, control, BY).await?;
    coordinator.queue().wake();
    Ok(())
}
