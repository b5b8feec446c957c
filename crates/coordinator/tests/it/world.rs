//! A coordinator with a scripted model, and what a test says to it.

use jiff::Timestamp;
use windlass_coordinator::trigger::UserMessageReceived;
use windlass_coordinator::{Coordinator, Error, SubmitOptions, TriggerOutcome};
use windlass_core::command::{TaskCommand, TaskResult};
use windlass_core::event::{Event, Record};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::status::TaskStatus;
use windlass_store::{OutStream, Store};
use windlass_testkit::{Answer, Request, Stage};

/// Where the clock stands when a test begins.
pub const START: &str = "2026-11-15T08:00:00Z";

pub struct World {
    pub stage: Stage,
    pub session: SessionId,
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl World {
    /// Agents answer by `replies`; the router by `route`, from its input.
    pub fn new(replies: &str, route: impl Fn(&str) -> Option<String> + Send + 'static) -> Self {
        let stage = Stage::set(&format!("goal: unused\n{replies}"));
        stage.set_clock(at(START));
        stage.server.answer_with(move |request: &Request| {
            if request.model != "router" {
                return None;
            }
            let sent = request.json();
            let input = sent["messages"].as_array().unwrap().last().unwrap()["content"].clone();
            let text = route(input.as_str().unwrap()).unwrap_or_else(|| "no idea".to_owned());
            Some(Answer::script(&format!("say: {}", serde_json::Value::from(text))))
        });
        let session = SessionId::new(stage.coordinator.now());
        Self { stage, session }
    }

    /// A world whose router always answers the same.
    pub fn routed(replies: &str, decision: &str) -> Self {
        let decision = decision.to_owned();
        Self::new(replies, move |_| Some(decision.clone()))
    }

    pub fn coordinator(&self) -> &Coordinator {
        &self.stage.coordinator
    }

    pub fn store(&self) -> &Store {
        &self.stage.store
    }

    pub fn message(&self, text: &str) -> UserMessageReceived {
        UserMessageReceived {
            session_id: self.session,
            user_id: "ada".to_owned(),
            request_id: None,
            message: text.to_owned(),
            deadline: None,
            deadline_action: None,
            workspace: None,
            pictures: Vec::new(),
        }
    }

    /// Says something in the session.
    pub async fn say(&self, text: &str) -> Result<TriggerOutcome, Error> {
        self.coordinator().triggers().user_message_received(self.message(text)).await
    }

    /// A task of the service in the session.
    pub async fn task(&self, goal: &str) -> TaskId {
        self.task_in(self.session, goal, SubmitOptions::default()).await.unwrap()
    }

    pub async fn task_in(
        &self,
        session: SessionId,
        goal: &str,
        options: SubmitOptions,
    ) -> Result<TaskId, Error> {
        let submitted =
            self.coordinator().tasks().submit_command(command(session, goal), options).await?;
        Ok(submitted.task)
    }

    pub async fn drive(&self, task: TaskId) -> TaskResult {
        self.stage.drive(task).await
    }

    pub fn status(&self, task: TaskId) -> TaskStatus {
        self.store().tasks().get(task).unwrap().unwrap().status
    }

    pub fn journal(&self, task: TaskId) -> Vec<Record> {
        self.store().journal().of(task).unwrap()
    }

    /// What was injected into a task, delivered or waiting.
    pub fn injected(&self, task: TaskId) -> Vec<String> {
        let delivered = self.journal(task).into_iter().filter_map(|record| match record.event {
            Event::InjectionReceived(injection) => Some(injection.content),
            _ => None,
        });
        let waiting = self.store().mailbox().pending(task).unwrap();
        delivered.chain(waiting.into_iter().map(|one| one.content)).collect()
    }

    /// How often the router was asked.
    pub fn routings(&self) -> usize {
        self.stage.server.requests().iter().filter(|request| request.model == "router").count()
    }

    /// What was sent to agents, each request as JSON text.
    pub fn sent(&self) -> Vec<String> {
        let requests = self.stage.server.requests();
        let agents = requests.iter().filter(|request| request.model != "router");
        agents.map(|request| request.json().to_string()).collect()
    }

    /// Messages for people, as they are published.
    pub fn replies(&self) -> Vec<String> {
        let waiting = self.store().bus().outbox().pending(10_000).unwrap().into_iter();
        let words = waiting.filter(|one| one.stream == OutStream::UserMessage).filter_map(|one| {
            let body: serde_json::Value = serde_json::from_str(&one.body).unwrap();
            // Updates of a task's status say which.
            let said = body.get("status").is_none();
            said.then(|| body["message"].as_str().unwrap().to_owned())
        });
        words.collect()
    }
}

pub fn command(session: SessionId, goal: &str) -> TaskCommand {
    TaskCommand::new(at(START), session, goal)
}
