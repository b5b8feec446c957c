//! Sessions that a person stays in: messages continue a conversation, and its axes, rules and model are durable.

use windlass_coordinator::slash::SlashInput;
use windlass_coordinator::views::NextAction;
use windlass_coordinator::{Delivery, Error, NewSession, Session, Talk};
use windlass_core::axes::{Axes, Surface};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::session::SessionEvent;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_testkit::Stage;

use crate::world::at;

/// A session of one person on a stage.
pub struct Talking {
    pub stage: Stage,
    pub id: SessionId,
}

impl Talking {
    /// A new interactive session; the model answers by this script.
    pub async fn begin(script: &str) -> Self {
        let stage = Stage::set(script);
        let id = SessionId::new(at(crate::world::START));
        let talking = Self { stage, id };
        let workspace = talking.stage.workspace().display().to_string();
        let new = NewSession::new(Axes::interactive(Surface::Tui), "ada", Some(workspace));
        talking.session().begin(new).await.unwrap();
        talking
    }

    pub fn session(&self) -> Session<'_> {
        self.stage.coordinator.session(self.id)
    }

    /// Says something and lets the agent work on it.
    pub async fn say(&self, text: &str) -> TaskId {
        let task =
            self.session().conversation().send(Talk::here(text, "ada")).await.unwrap().task();
        self.stage.drive(task).await;
        task
    }

    /// The words of a command's answer.
    pub async fn run(&self, line: &str) -> String {
        self.try_run(line).await.unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub async fn try_run(&self, line: &str) -> Result<String, Error> {
        Ok(self.session().run(SlashInput::here(line, "ada")).await?.to_string())
    }

    pub fn axes(&self) -> String {
        self.session().state().unwrap().axes.to_string()
    }

    pub fn status(&self, task: TaskId) -> (TaskStatus, StatusReason) {
        let row = self.stage.store.tasks().get(task).unwrap().unwrap();
        (row.status, row.reason)
    }

    /// The kinds of the session's events, oldest first.
    pub fn kinds(&self) -> Vec<&'static str> {
        let journal = self.stage.store.sessions().journal(self.id).unwrap();
        journal.iter().map(|record| record.event.kind()).collect()
    }

    /// What was sent to the model, each request as JSON text.
    pub fn sent(&self) -> Vec<String> {
        self.stage.server.requests().iter().map(|request| request.json().to_string()).collect()
    }
}

const REPLIES: &str = "goal: unused\nreplies: [{say: one}, {say: two}, {say: three}]";

/// MS-001, MS-020: a final reply waits for the next message, which continues with the whole conversation.
#[tokio::test]
async fn a_final_reply_waits_and_the_next_message_continues() {
    let talking = Talking::begin(REPLIES).await;
    assert_eq!(talking.axes(), "chat | manual | normal | smart");
    let task = talking.say("what is this?").await;
    let parked = (TaskStatus::Paused, StatusReason::AwaitingMessage);
    assert_eq!(talking.status(task), parked);
    let view = &talking.stage.coordinator.tasks().details(task).unwrap().view;
    assert!(view.waits_for_message() && view.next_action() == NextAction::SendMessage);
    assert_eq!(talking.say("and why?").await, task, "one conversation is one task");
    assert_eq!(talking.status(task), parked);
    let sent = talking.sent();
    assert!(sent[1].contains("what is this?") && sent[1].contains("User says: and why?"));
    assert!(talking.stage.store.projections().verify().unwrap().is_empty());
}

/// A conversation that is resumed without a message waits for one.
#[tokio::test]
async fn a_resumed_conversation_still_waits_for_a_message() {
    let talking = Talking::begin(REPLIES).await;
    let task = talking.say("hello").await;
    talking.stage.drive(task).await;
    assert_eq!(talking.status(task), (TaskStatus::Paused, StatusReason::AwaitingMessage));
    assert_eq!(talking.sent().len(), 1, "nothing was asked");
}

/// C-24: `/clear` ends the conversation as done, and the next message knows nothing of it.
#[tokio::test]
async fn after_clear_the_next_message_begins_another_conversation() {
    let talking = Talking::begin(REPLIES).await;
    let first = talking.say("remember the number 4711").await;
    talking.run("/clear").await;
    assert_eq!(talking.status(first).0, TaskStatus::Done);
    let second = talking.say("which number?").await;
    assert_ne!(first, second);
    assert!(!talking.sent()[1].contains("4711"));
    assert_eq!(
        talking.kinds(),
        ["session_created", "task_begun", "cleared", "task_begun"],
        "the stream tells all of it"
    );
}

/// MS-055: nothing of the session is left to resume, and what comes next knows what was said.
#[tokio::test]
async fn stop_cancels_the_work_and_the_next_message_remembers_it() {
    let talking = Talking::begin(REPLIES).await;
    let first = talking.say("remember the number 4711").await;
    talking.run("/stop enough").await;
    assert_eq!(talking.status(first).0, TaskStatus::Cancelled);
    assert_eq!(talking.run("/queue").await, "The queue is empty.");
    assert!(talking.try_run("/resume").await.is_err(), "nothing is left to resume");
    let second = talking.say("which number?").await;
    assert_ne!(first, second);
    assert!(talking.sent()[1].contains("4711"));
}

#[tokio::test]
async fn a_message_to_a_paused_conversation_resumes_it() {
    let talking = Talking::begin(REPLIES).await;
    let sent = talking.session().conversation().send(Talk::here("hello", "ada")).await.unwrap();
    let Delivery::Begun { task, .. } = sent else { panic!("{sent:?}") };
    talking.run("/pause").await;
    assert_eq!(talking.status(task), (TaskStatus::Paused, StatusReason::User));
    assert_eq!(talking.say("go on").await, task);
    assert_eq!(talking.status(task), (TaskStatus::Paused, StatusReason::AwaitingMessage));
    assert!(talking.sent()[0].contains("User says: go on"));
}

/// MS-173, O-44: a rating is kept with the model and the mode that it is about.
#[tokio::test]
async fn a_rating_is_kept_with_model_and_mode() {
    let talking = Talking::begin(REPLIES).await;
    let early = talking.try_run("/rate 5").await.unwrap_err();
    assert!(matches!(early, Error::NothingToRate { .. }), "{early}");
    let task = talking.say("hello").await;
    talking.run("/rate 4 quick and right").await;
    let rated = talking.session().state().unwrap().ratings.remove(0);
    assert_eq!((rated.stars, rated.note.as_str(), rated.task), (4, "quick and right", task));
    assert!(rated.model.unwrap().contains("scripted"));
    assert_eq!(rated.axes.to_string(), "chat | manual | normal | smart");
    for wrong in ["/rate", "/rate 6", "/rate 0 bad", "/rate five"] {
        let error = talking.try_run(wrong).await.unwrap_err();
        assert!(error.to_string().contains("from 1 to 5"), "{error}");
    }
    assert!(talking.stage.store.projections().verify().unwrap().is_empty());
}

/// WF-018, C-15: what was allowed for all is a rule of the session: its later tasks do not ask.
#[tokio::test]
async fn allow_all_holds_for_the_session_and_not_beyond() {
    let script = "
        goal: unused
        replies:
          - bash: touch made.txt
          - say: one
          - bash: touch made.txt
          - say: two
          - bash: touch made.txt
          - say: three
    ";
    let talking = Talking::begin(script).await;
    let first = talking.say("try it").await;
    assert_eq!(talking.status(first), (TaskStatus::Blocked, StatusReason::Question));
    let inbox = talking.stage.coordinator.inbox();
    let question = inbox.open().unwrap()[0].row.question.id;
    inbox.answer(question, "Allow All", "ada").await.unwrap();
    talking.stage.drive(first).await;
    talking.run("/clear").await;
    let second = talking.say("again").await;
    assert_eq!(talking.status(second), (TaskStatus::Paused, StatusReason::AwaitingMessage));
    assert!(talking.kinds().contains(&"rule_granted"));
    let other = talking.stage.submit().await;
    assert!(talking.stage.coordinator.tasks().state(other).unwrap().allow_rules.is_empty());
}

/// The session's stream, its row and what tasks start with are one.
#[tokio::test]
async fn later_tasks_of_a_session_start_with_its_axes() {
    let talking = Talking::begin(REPLIES).await;
    talking.run("/mode research --model-mode deep").await;
    let task = talking.say("hello").await;
    let row = talking.stage.store.tasks().get(task).unwrap().unwrap();
    assert_eq!(row.axes.to_string(), "research | manual | normal | deep");
    let session = talking.stage.store.sessions().get(talking.id).unwrap().unwrap();
    assert_eq!((session.axes, session.conversation), (row.axes, Some(task)));
    let created = |event: &SessionEvent| matches!(event, SessionEvent::SessionCreated(_));
    let journal = talking.stage.store.sessions().journal(talking.id).unwrap();
    assert_eq!(journal.iter().filter(|record| created(&record.event)).count(), 1);
}
