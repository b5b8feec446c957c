//! Tasks whose time is up: by their deadline (ES-079…081) or by a monitor's timeout (ES-286).

use std::future::pending;
use std::time::Duration;

use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::schedule::{DeadlineAction, Expiry};
use windlass_core::state::TaskState;
use windlass_store::DEADLINE_TRIGGER;

use crate::router::Router;
use crate::{Coordinator, Error, TriggerOutcome};

/// The longest sleep before a deadline is looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Acts on deadlines.
#[derive(Clone, Copy)]
pub(crate) struct Deadlines<'a> {
    coordinator: &'a Coordinator,
}

impl<'a> Deadlines<'a> {
    pub(crate) const fn of(coordinator: &'a Coordinator) -> Self {
        Self { coordinator }
    }

    /// A deadline has passed: once, its action is carried out, and the person is notified.
    pub(crate) async fn act_on(self, task: TaskId) -> Result<TriggerOutcome, Error> {
        let nothing = |reason: &str| Ok(TriggerOutcome::Nothing { reason: reason.to_owned() });
        let row = self.coordinator.tasks().require_row(task)?;
        let (now, name) = (self.coordinator.now(), task.to_string());
        if row.deadline.is_none_or(|deadline| deadline > now) {
            return nothing("its deadline has not passed");
        }
        if row.status.is_terminal()
            || self.coordinator.store.triggers().decision(DEADLINE_TRIGGER, &name)?.is_some()
        {
            return nothing("its deadline was acted on");
        }
        let action = row.deadline_action;
        let id = InjectionId::derived(&name, DEADLINE_TRIGGER);
        let why = "its deadline has passed".to_owned();
        let handled = self.expire(id, task, action.into(), &why).await?;
        if action == DeadlineAction::PauseAndNotify {
            let words = format!("{task} is paused: {why}; resume it, or cancel it");
            let request = Some(format!("{DEADLINE_TRIGGER}-{task}"));
            Router::of(self.coordinator).notify(row.session_id, Some(task), request, words).await?;
        }
        self.coordinator
            .store
            .triggers()
            .decide(DEADLINE_TRIGGER, &name, action.to_string(), now)
            .await?;
        Ok(handled)
    }

    /// Waits for the deadline of a task that is driven here, and acts on it; whether or not anybody keeps
    /// the time of all tasks. Never resolves: the loop finds the signal.
    pub(crate) async fn watch(self, state: &TaskState) {
        let Some(deadline) = state.created.deadline else { return pending().await };
        loop {
            let left = deadline.at.duration_since(self.coordinator.now());
            let Ok(left) = Duration::try_from(left) else { break };
            if left.is_zero() {
                break;
            }
            // In pieces: a clock may be set.
            tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
        }
        if let Err(error) = self.act_on(state.id()).await {
            tracing::error!(task_id = %state.id(), %error, "deadline not acted on");
        }
        pending().await
    }

    /// Ends or parks a task whose time is up, whether or not somebody drives it.
    pub(crate) async fn expire(
        self,
        id: InjectionId,
        task: TaskId,
        action: Expiry,
        why: &str,
    ) -> Result<TriggerOutcome, Error> {
        let injection = Injection::control(id, Control::Expire { action }).with_content(why);
        match self.coordinator.messages().inject(task, injection).await {
            Ok(_) => {}
            Err(Error::Store(windlass_store::Error::TaskEnded { status, .. })) => {
                return Ok(TriggerOutcome::Nothing { reason: format!("{task} is {status}") });
            }
            Err(error) => return Err(error),
        }
        let words = match self.coordinator.control().settle(task).await {
            Ok(status) => format!("is {status}"),
            // Its driver finds it, and ends whatever runs.
            Err(Error::Store(windlass_store::Error::Driven { .. })) => "is out of time".to_owned(),
            Err(error) => return Err(error),
        };
        self.coordinator.queue().wake();
        Ok(TriggerOutcome::Steered { task, words })
    }
}
