//! Tasks whose time is up: by their deadline (ES-079…081) or by a monitor's patience (ES-286).

use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::schedule::{DeadlineAction, Expiry};

use crate::{Coordinator, Error, Handled};

/// Under which name a deadline is remembered as acted on; the store knows it too.
const DEADLINE: &str = "deadline";

impl Coordinator {
    /// A deadline has passed: once, its action is carried out, and the person is told.
    pub(crate) async fn deadline_passed(&self, task: TaskId) -> Result<Handled, Error> {
        let nothing = |reason: &str| Ok(Handled::Nothing { reason: reason.to_owned() });
        let unknown = || windlass_store::Error::UnknownTask(task.to_string());
        let row = self.store.task(task)?.ok_or_else(unknown)?;
        let (now, name) = (self.now(), task.to_string());
        let Some(deadline) = row.deadline.filter(|deadline| *deadline <= now) else {
            return nothing("its deadline has not passed");
        };
        if row.status.is_terminal() || self.store.decided(DEADLINE, &name)?.is_some() {
            return nothing("its deadline was acted on");
        }
        let action = row.deadline_action;
        let id = InjectionId::derived(&name, DEADLINE);
        let why = format!("the deadline {deadline} has passed");
        let handled = self.expire(id, task, action.into(), &why).await?;
        if action == DeadlineAction::PauseAndNotify {
            let words = format!("{task} is paused: {why}; go on with it, or cancel it");
            let request = Some(format!("{DEADLINE}-{task}"));
            self.tell(row.session_id, Some(task), request, words).await?;
        }
        self.store.decide(DEADLINE, &name, action.to_string(), now).await?;
        Ok(handled)
    }

    /// Ends or parks a task whose time is up, whether or not somebody drives it.
    pub(crate) async fn expire(
        &self,
        id: InjectionId,
        task: TaskId,
        action: Expiry,
        why: &str,
    ) -> Result<Handled, Error> {
        let injection = Injection::control(id, Control::Expire { action }).because(why);
        match self.inject(task, injection).await {
            Ok(_) => {}
            Err(Error::Store(windlass_store::Error::TaskEnded { status, .. })) => {
                return Ok(Handled::Nothing { reason: format!("{task} is {status}") });
            }
            Err(error) => return Err(error),
        }
        let words = match self.settle(task).await {
            Ok(status) => format!("is {status}"),
            // Its driver finds it, and ends whatever runs.
            Err(Error::Store(windlass_store::Error::Driven { .. })) => "is out of time".to_owned(),
            Err(error) => return Err(error),
        };
        self.wake();
        Ok(Handled::Steered { task, words })
    }
}
