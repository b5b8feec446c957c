//! Slash commands in a message: obeyed as they stand, without asking the router.

use windlass_core::id::TaskId;
use windlass_core::injection::{Control, Injection};
use windlass_core::trigger::UserMessageReceived;

use crate::router::Router;
use crate::{Error, Handled};

/// What can be said with a slash to a session; surfaces that have more take theirs before us.
const KNOWN: &str = "/pause /resume /stop [why] /steer TEXT /tasks /queue /status /help";

impl Router<'_> {
    /// Obeys `command`, which is a message without its slash.
    pub(crate) async fn obey(
        self,
        message: &UserMessageReceived,
        command: &str,
    ) -> Result<Handled, Error> {
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        let session = message.session_id;
        let request = message.request_id.as_deref();
        let id = self.coordinator.triggers().injection_id(request, "message");
        let by = &message.user_id;
        match word {
            "pause" => {
                self.coordinator
                    .triggers()
                    .steered(id, self.target_of(message, rest)?, Control::Pause, by)
                    .await
            }
            "resume" => {
                self.coordinator
                    .triggers()
                    .steered(id, self.target_of(message, rest)?, Control::Resume, by)
                    .await
            }
            "stop" | "cancel" => {
                let reason = (!rest.is_empty()).then(|| rest.to_owned());
                let task = self.target_of(message, "")?;
                self.coordinator.triggers().steered(id, task, Control::Cancel { reason }, by).await
            }
            "steer" if !rest.is_empty() => {
                let task = self.target_of(message, "")?;
                self.coordinator
                    .messages()
                    .inject(task, Injection::message(id, rest).from(by))
                    .await?;
                Ok(Handled::Injected { task })
            }
            "tasks" | "queue" | "status" => {
                let state = self.coordinator.sessions().view(session)?;
                Ok(Handled::Said { message: state.to_string() })
            }
            "help" => Ok(Handled::Said { message: KNOWN.to_owned() }),
            _ => Ok(Handled::Said { message: format!("`/{word}` is not known here; {KNOWN}") }),
        }
    }

    /// The task that a command means: the one named, else the active one.
    fn target_of(self, message: &UserMessageReceived, named: &str) -> Result<TaskId, Error> {
        let session = message.session_id;
        if named.is_empty() {
            let row = self.coordinator.store.sessions().get(session)?;
            return row.and_then(|row| row.active_task_id).ok_or(Error::NothingActive { session });
        }
        let task = self.coordinator.store.ids().task(named)?;
        match self.coordinator.tasks().session_of(task)? == session {
            true => Ok(task),
            // Another session's task is none that this person can name.
            false => Err(windlass_store::Error::UnknownTask(named.to_owned()).into()),
        }
    }
}
