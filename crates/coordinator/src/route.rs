//! Where a person's message goes.

use windlass_core::id::{CommandId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::trigger::UserMessageReceived;

use crate::submit::Manner;
use crate::{Coordinator, Error, Handled};

impl Coordinator {
    pub(crate) async fn route(&self, trigger: &UserMessageReceived) -> Result<Handled, Error> {
        let session = trigger.session_id;
        let active = self.store.session(session)?.and_then(|row| row.active_task_id);
        if let Some(task) = active {
            let id = self.injection_id(trigger.request_id.as_deref(), "message");
            let injection = Injection::message(id, &trigger.message).from(&trigger.user_id);
            self.inject(task, injection).await?;
            self.wake();
            return Ok(Handled::Injected { task });
        }
        let (command_id, task_id) = match trigger.request_id.as_deref() {
            Some(request) => {
                (CommandId::derived(request, "command"), TaskId::derived(request, "task"))
            }
            None => (CommandId::new(self.now()), TaskId::new(self.now())),
        };
        let command = windlass_core::command::TaskCommand {
            command_id,
            session_id: session,
            task_id,
            goal: trigger.message.clone(),
            constraints: Vec::new(),
            execution_config: Default::default(),
            resume_context: None,
        };
        let user_id = Some(trigger.user_id.clone());
        let submitted =
            self.submit_command(command, Manner { user_id, ..Manner::default() }).await?;
        Ok(Handled::Started { task: submitted.task, place: submitted.place })
    }
}
