//! Where a person's message goes: a slash command is obeyed, anything else is decided by the router and
//! carried out here (ES-014, ES-052).
//!
//! Invariant: what was decided is written down under the sender's id before anything is done, and every
//! id in what is done is derived from it; so a message that is delivered again does nothing again.

use std::path::PathBuf;

use windlass_core::command::{ExecutionConfig, Outage, TaskCommand};
use windlass_core::event::{Continuation, Deadline};
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::schedule::DeadlineAction;
use windlass_store::{Filter, UserMessageCommand};

use crate::decision::{Decision, SessionTasks};
use crate::slash::{self, Effect, SlashInput};
use crate::submit::SubmitOptions;
use crate::trigger::{TriggerStream, UserMessageReceived};
use crate::{Coordinator, Error, Talk, TriggerOutcome};

/// Decides where messages go.
#[derive(Clone, Copy)]
pub(crate) struct Router<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl<'a> Router<'a> {
    pub(crate) const fn of(coordinator: &'a Coordinator) -> Self {
        Self { coordinator }
    }

    /// Routes one message of a session whose lease we hold.
    pub(crate) async fn route(
        self,
        message: &UserMessageReceived,
    ) -> Result<TriggerOutcome, Error> {
        let stream = TriggerStream::UserMessageReceived;
        if message.message.trim().is_empty() {
            return Err(Error::BadTrigger { stream, problem: "the message is empty".to_owned() });
        }
        let session = self.coordinator.session(message.session_id);
        let known = self.coordinator.store.sessions().state(message.session_id)?;
        let interactive = known.is_some_and(|(state, _)| state.created.interactive);
        let handled = match slash::is_command(&message.message) {
            true => self.run_command(message).await,
            // A person stays in it: what they say belongs to the conversation.
            false if interactive => {
                let talk = Talk {
                    request: message.request_id.clone(),
                    pictures: message.pictures.clone(),
                    ..Talk::for_service(&message.message, &message.user_id)
                };
                session.conversation().send(talk).await.map(TriggerOutcome::from)
            }
            false => {
                let decision = self.decide_once(message).await?;
                self.carry_out(message, decision).await
            }
        };
        self.coordinator.queue().wake();
        self.reply(message, &handled).await?;
        handled
    }

    /// Runs a slash command, as every surface does.
    async fn run_command(self, message: &UserMessageReceived) -> Result<TriggerOutcome, Error> {
        let session = self.coordinator.session(message.session_id);
        let input = SlashInput {
            request: message.request_id.clone(),
            ..SlashInput::for_service(message.message.trim(), &message.user_id)
        };
        let reply = match session.run(input).await {
            // What is mistyped is answered, as what is not.
            Err(error @ Error::UnknownCommand { .. }) => {
                return Ok(TriggerOutcome::Said { message: error.to_string() });
            }
            Err(Error::BadCommand { problem, usage }) => {
                return Ok(TriggerOutcome::Said { message: format!("{problem}; use {usage}") });
            }
            reply => reply?,
        };
        let words = reply.to_string();
        Ok(match reply.effect {
            Effect::Work { task } => TriggerOutcome::Injected { task },
            Effect::Steered { task } => TriggerOutcome::Steered { task, words },
            Effect::None | Effect::Axes { .. } | Effect::Cleared => {
                TriggerOutcome::Said { message: words }
            }
        })
    }

    /// What becomes of a message: as decided the first time, else by the router, once.
    async fn decide_once(self, message: &UserMessageReceived) -> Result<Decision, Error> {
        let stream = TriggerStream::UserMessageReceived.as_str();
        let request = match &message.request_id {
            Some(request) => request.clone(),
            // Nobody sends it again, but what was decided counts (ES-337).
            None => CommandId::new(self.coordinator.now()).to_string(),
        };
        if let Some(known) = self
            .coordinator
            .store
            .triggers()
            .decision(stream, &request)?
            .and_then(|text| read(&text))
        {
            return Ok(known);
        }
        let decision = self.choose(message).await?;
        let text = serde_json::to_string(&decision).unwrap_or_default();
        let stands = self
            .coordinator
            .store
            .triggers()
            .decide(stream, &request, text, self.coordinator.now())
            .await?;
        Ok(read(&stands).unwrap_or(decision))
    }

    async fn choose(self, message: &UserMessageReceived) -> Result<Decision, Error> {
        let session = message.session_id;
        let filter =
            Filter { session: Some(session), live: true, roots: true, ..Filter::default() };
        let mut tasks = self.coordinator.store.tasks().list(&filter)?;
        tasks.reverse();
        let active =
            self.coordinator.store.sessions().get(session)?.and_then(|row| row.active_task_id);
        let known = SessionTasks { tasks: &tasks, active };
        // The task gets the message without keys, and so does the model that reads it first.
        let secrets = self.coordinator.store.secrets().known();
        Ok(self.decide(&known, &secrets.redact(&message.message)).await)
    }

    async fn carry_out(
        self,
        message: &UserMessageReceived,
        decision: Decision,
    ) -> Result<TriggerOutcome, Error> {
        let request = message.request_id.as_deref();
        let id = self.coordinator.triggers().injection_id(request, "message");
        let (task, control) = match decision {
            Decision::NewTask { goal } => return self.start(message, goal).await,
            Decision::InjectIntoActive { task_id } => {
                let text = &message.message;
                let injection = Injection::message(id, text)
                    .from(&message.user_id)
                    .with_pictures(message.pictures.clone());
                return match self.coordinator.messages().inject(task_id, injection).await {
                    Ok(_) => Ok(TriggerOutcome::Injected { task: task_id }),
                    // It ended while the message was on its way; what was said is not lost.
                    Err(Error::Store(windlass_store::Error::TaskEnded { .. })) => {
                        self.start(message, text.clone()).await
                    }
                    Err(error) => Err(error),
                };
            }
            Decision::SmallTalk { response } => {
                return Ok(TriggerOutcome::Said { message: response });
            }
            Decision::CancelTask { task_id, reason } => (task_id, Control::Cancel { reason }),
            Decision::PauseTask { task_id } => (task_id, Control::Pause),
            Decision::ResumeTask { task_id } => (task_id, Control::Resume),
        };
        self.coordinator.triggers().steer_once(id, task, control, &message.user_id).await
    }

    /// Makes a task of a goal, for the service to drive.
    pub(crate) async fn start(
        self,
        message: &UserMessageReceived,
        goal: String,
    ) -> Result<TriggerOutcome, Error> {
        let now = self.coordinator.now();
        let (command_id, task_id) = match message.request_id.as_deref() {
            Some(request) => {
                (CommandId::derived(request, "command"), TaskId::derived(request, "task"))
            }
            None => (CommandId::new(now), TaskId::new(now)),
        };
        let known = self.coordinator.store.sessions().state(message.session_id)?;
        let role = known.as_ref().and_then(|(state, _)| state.role);
        let command = TaskCommand {
            command_id,
            task_id,
            execution_config: ExecutionConfig { role, ..ExecutionConfig::default() },
            ..TaskCommand::new(now, message.session_id, goal)
        };
        let action = message.deadline_action.unwrap_or(DeadlineAction::Fail);
        let (workspace, continues) = self.project(message)?;
        let default = self.coordinator.tasks().default_options();
        let options = SubmitOptions {
            // Later tasks of a session start with its axes.
            axes: known.map_or(default.axes, |(state, _)| state.axes),
            user_id: Some(message.user_id.clone()),
            deadline: message.deadline.map(|at| Deadline { at, action }),
            outage: Outage::Park,
            workspace,
            continues,
            pictures: message.pictures.clone(),
            ..default
        };
        let submitted = self.coordinator.tasks().submit_command(command, options).await?;
        Ok(TriggerOutcome::Started { task: submitted.task, place: submitted.place })
    }

    /// The directory that a session works in, where that is a person's own, and the ended task whose
    /// conversation a new one continues there. A directory that was made for one task is its own.
    fn project(
        self,
        message: &UserMessageReceived,
    ) -> Result<(Option<PathBuf>, Option<Box<Continuation>>), Error> {
        let newest = Filter {
            session: Some(message.session_id),
            roots: true,
            limit: Some(1),
            ..Filter::default()
        };
        let made_for_tasks = self.coordinator.store.dir().workspaces();
        let last = self.coordinator.store.tasks().list(&newest)?.into_iter().next();
        let Some(last) = last else {
            return Ok((message.workspace.as_ref().map(Into::into), None));
        };
        let workspace = PathBuf::from(&last.workspace);
        if workspace.starts_with(made_for_tasks) {
            return Ok((None, None));
        }
        let continues = match last.status.is_terminal() {
            true => Some(Box::new(self.coordinator.tasks().state(last.id)?.continuation())),
            false => None,
        };
        Ok((Some(workspace), continues))
    }

    /// Answers the person with what is not seen elsewhere: words, a place in the queue, a refusal.
    async fn reply(
        self,
        message: &UserMessageReceived,
        handled: &Result<TriggerOutcome, Error>,
    ) -> Result<(), Error> {
        let (words, task) = match handled {
            Ok(TriggerOutcome::Said { message }) => (message.clone(), None),
            Ok(TriggerOutcome::Steered { task, words }) => (format!("{task} {words}"), Some(*task)),
            Ok(TriggerOutcome::Started { task, place: Some(place) }) => {
                (format!("{task} is queued, number {place} in line"), Some(*task))
            }
            Ok(
                TriggerOutcome::Started { .. }
                | TriggerOutcome::Injected { .. }
                | TriggerOutcome::Nothing { .. },
            ) => {
                return Ok(());
            }
            // It comes again, and is answered then.
            Err(error) if error.is_transient() => return Ok(()),
            Err(error) => (error.to_string(), None),
        };
        self.notify(message.session_id, task, message.request_id.clone(), words).await
    }

    /// Sends a message to a person, on the stream for that.
    pub(crate) async fn notify(
        self,
        session_id: SessionId,
        task_id: Option<TaskId>,
        request_id: Option<String>,
        message: String,
    ) -> Result<(), Error> {
        let now = self.coordinator.now();
        let message_id = match &request_id {
            Some(request) => CommandId::derived(request, "reply"),
            None => CommandId::new(now),
        };
        let message_id = message_id.to_string();
        let said = UserMessageCommand { message_id, session_id, task_id, request_id, message };
        Ok(self.coordinator.store.bus().outbox().enqueue_user_message(&said, now).await?)
    }
}

fn read(text: &str) -> Option<Decision> {
    serde_json::from_str(text).ok()
}
