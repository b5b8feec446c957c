//! Injections: accepted once, kept in order, delivered once.

use windlass_core::command::ResultStatus;
use windlass_core::event::{Event, QuestionClosed, Record, StatusChanged};
use windlass_core::id::TaskId;
use windlass_core::injection::{Control, Injection, MAX_INJECTION_BYTES};
use windlass_core::question::QuestionKind;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{
    Acceptance, Error, Level, MAX_WAITING, QuestionState, RESERVED_WAITING, Store,
};

use crate::outbox::result;
use crate::world::{World, at, created, injection_id, moved, question};

async fn task(store: &Store) -> TaskId {
    store.tasks().create(at(0), created()).await.unwrap().task()
}

fn lines(records: &[Record]) -> String {
    let line = |record: &Record| match &record.event {
        Event::InjectionReceived(injection) => format!("injection: {}", injection.content),
        Event::QuestionAnswered(answered) => {
            format!("answer by {}: {}", answered.answer.by, answered.answer.text)
        }
        other => other.kind().to_owned(),
    };
    records.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// ES-136, ES-137, ES-138
#[tokio::test]
async fn messages_are_delivered_once_and_in_order() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    for text in ["one", "two", "three"] {
        let message = Injection::message(injection_id(), text);
        let accepted = store.mailbox().inject(task, message.clone(), at(1)).await.unwrap();
        assert_eq!(accepted, Acceptance::New);
        let again = store.mailbox().inject(task, message, at(2)).await.unwrap();
        assert_eq!(again, Acceptance::Already);
    }
    assert_eq!(store.mailbox().pending(task).unwrap().len(), 3);
    let owner = store.owners().own(task).await.unwrap();
    let mut stream = owner.stream(task).unwrap();
    let drained = stream.drain(at(3)).await.unwrap();
    insta::assert_snapshot!(lines(&drained), @r"
    injection: one
    injection: two
    injection: three
    ");
    assert_eq!(store.journal().of(task).unwrap()[1..], drained);
    assert!(stream.drain(at(4)).await.unwrap().is_empty());
    assert!(!store.mailbox().has_mail(task).unwrap());
}

#[tokio::test]
async fn a_second_answer_is_refused_and_gets_the_first() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    let owner = store.owners().own(task).await.unwrap();
    let mut stream = owner.stream(task).unwrap();
    let asked = question(QuestionKind::AskUser);
    let allowed = question(QuestionKind::Permission);
    let events = vec![Event::QuestionAsked(asked.clone()), Event::QuestionAsked(allowed.clone())];
    stream.append(at(1), events, Level::Synced).await.unwrap();
    assert_eq!(store.questions().open().unwrap().len(), 2);

    let answer = |id, text: &str| Injection::answer(injection_id(), id, text).from("ann");
    store.mailbox().inject(task, answer(asked.id, "blue"), at(2)).await.unwrap();
    let said = format!("question `{}` was already answered by `ann`: blue", asked.id);
    let second = store.mailbox().inject(task, answer(asked.id, "red"), at(3)).await.unwrap_err();
    assert_eq!(second.to_string(), said);
    let state = store.questions().get(asked.id).unwrap().unwrap().state;
    assert!(matches!(state, QuestionState::Waiting(answer) if answer.text == "blue"));
    assert_eq!(store.questions().open().unwrap().len(), 1);

    store.mailbox().inject(task, answer(allowed.id, "Allow"), at(4)).await.unwrap();
    let drained = stream.drain(at(5)).await.unwrap();
    insta::assert_snapshot!(lines(&drained), @r"
    answer by ann: blue
    injection: blue
    answer by ann: Allow
    ");
    let third = store.mailbox().inject(task, answer(asked.id, "red"), at(6)).await.unwrap_err();
    assert_eq!(third.to_string(), said);
    let state = store.questions().get(asked.id).unwrap().unwrap().state;
    assert!(matches!(state, QuestionState::Answered(answer) if answer.at == at(2)));
}

/// A closed question refuses its answer; one whose state this program does not know must not look like one.
#[tokio::test]
async fn a_question_in_an_unknown_state_is_an_error() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    let owner = store.owners().own(task).await.unwrap();
    let asked = question(QuestionKind::AskUser);
    owner.append(at(1), vec![Event::QuestionAsked(asked.clone())], Level::Synced).await.unwrap();

    let database = rusqlite::Connection::open(world.dir.path().join("windlass.db")).unwrap();
    database.pragma_update(None, "ignore_check_constraints", true).unwrap();
    database.execute("UPDATE questions SET state = 'postponed'", ()).unwrap();

    let malformed = "table `questions` holds `postponed`, which cannot be read";
    assert_eq!(store.questions().get(asked.id).unwrap_err().to_string(), malformed);
    let answer = Injection::answer(injection_id(), asked.id, "blue").from("ann");
    let refused = store.mailbox().inject(task, answer, at(2)).await.unwrap_err();
    assert_eq!(refused.to_string(), malformed);
}

#[tokio::test]
async fn an_answer_without_an_open_question_is_refused_or_a_message() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    let owner = store.owners().own(task).await.unwrap();
    let mut stream = owner.stream(task).unwrap();
    let asked = question(QuestionKind::AskUser);
    let answer = |text: &str| Injection::answer(injection_id(), asked.id, text);
    let unknown = store.mailbox().inject(task, answer("early"), at(1)).await.unwrap_err();
    assert_eq!(unknown.to_string(), format!("there is no question `{}`", asked.id));

    stream.append(at(1), vec![Event::QuestionAsked(asked.clone())], Level::Written).await.unwrap();
    store.mailbox().inject(task, answer("just too late"), at(2)).await.unwrap();
    let closed = QuestionClosed { question: asked.id, reason: "not needed".to_owned() };
    stream.append(at(3), vec![Event::QuestionClosed(closed)], Level::Written).await.unwrap();
    let drained = stream.drain(at(4)).await.unwrap();
    insta::assert_snapshot!(lines(&drained), @"injection: just too late");
    let refused = store.mailbox().inject(task, answer("late"), at(5)).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("question `{}` is closed: not needed", asked.id));
}

#[tokio::test]
async fn unknown_and_ended_tasks_take_no_messages() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    let message = || Injection::message(injection_id(), "hello");
    let nobody = TaskId::new(at(0));
    let error = store.mailbox().inject(nobody, message(), at(1)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no task `{nobody}`"));
    let owner = store.owners().own(task).await.unwrap();
    let cancelled = vec![moved(TaskStatus::Todo, TaskStatus::Cancelled)];
    owner.append(at(1), cancelled, Level::Written).await.unwrap();
    let error = store.mailbox().inject(task, message(), at(1)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("`{task}` is already cancelled"));
}

#[tokio::test]
async fn a_mailbox_is_bounded_and_still_takes_a_cancel() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    let long = Injection::message(injection_id(), "x".repeat(MAX_INJECTION_BYTES + 1));
    let error = store.mailbox().inject(task, long, at(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "a message of 262145 bytes is over the limit of 262144");
    let whole = Injection::message(injection_id(), "x".repeat(MAX_INJECTION_BYTES));
    store.mailbox().inject(task, whole, at(1)).await.unwrap();

    let mut sending = tokio::task::JoinSet::new();
    for _ in 1..MAX_WAITING {
        let store = store.clone();
        sending.spawn(async move {
            store
                .mailbox()
                .inject(task, Injection::message(injection_id(), "x"), at(1))
                .await
                .unwrap();
        });
    }
    sending.join_all().await;
    let error = store.mailbox().inject(task, Injection::message(injection_id(), "x"), at(1)).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("task `{task}` has 1000 messages waiting, which is the limit")
    );
    for _ in 0..RESERVED_WAITING {
        let cancel = Injection::control(injection_id(), Control::Cancel { reason: None });
        store.mailbox().inject(task, cancel, at(1)).await.unwrap();
    }
    let cancel = Injection::control(injection_id(), Control::Cancel { reason: None });
    let error = store.mailbox().inject(task, cancel, at(1)).await.unwrap_err();
    assert!(matches!(error, Error::MailboxFull { limit: 1100, .. }));
    let owner = store.owners().own(task).await.unwrap();
    assert_eq!(owner.stream(task).unwrap().drain(at(2)).await.unwrap().len(), 1100);
}

/// A task is not done while it has mail that its agent has not read.
#[tokio::test]
async fn a_task_with_unread_mail_cannot_finish() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let running = vec![moved(TaskStatus::Todo, TaskStatus::Running)];
    owner.append(at(1), running, Level::Written).await.unwrap();
    store
        .mailbox()
        .inject(task, Injection::message(injection_id(), "one more thing"), at(2))
        .await
        .unwrap();
    let (from, to, reason) = (TaskStatus::Running, TaskStatus::Done, StatusReason::Finished);
    let done = || vec![Event::StatusChanged(StatusChanged::new(from, to, reason))];
    let refused = owner.append(at(3), done(), Level::Synced).await.unwrap_err();
    assert!(matches!(refused, Error::MailPending(of) if of == task));
    owner.stream(task).unwrap().drain(at(4)).await.unwrap();
    owner.append(at(5), done(), Level::Synced).await.unwrap();
    let late = Injection::message(injection_id(), "too late");
    assert!(matches!(
        store.mailbox().inject(task, late, at(6)).await,
        Err(Error::TaskEnded { .. })
    ));
}

/// ES-018: a segment does not end waiting for an answer that lies in the mailbox.
#[tokio::test]
async fn a_task_whose_answer_waits_cannot_end_blocked() {
    let world = World::new();
    let store = world.open();
    let created = created();
    let task = store.tasks().create(at(0), created.clone()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let asked = question(QuestionKind::AskUser);
    let events =
        vec![moved(TaskStatus::Todo, TaskStatus::Running), Event::QuestionAsked(asked.clone())];
    owner.append(at(1), events, Level::Written).await.unwrap();
    let answer = Injection::answer(injection_id(), asked.id, "blue");
    store.mailbox().inject(task, answer, at(2)).await.unwrap();
    let blocked = || {
        vec![
            moved(TaskStatus::Running, TaskStatus::Blocked),
            result(&created, ResultStatus::BlockedUser),
        ]
    };
    let refused = owner.append(at(3), blocked(), Level::Synced).await.unwrap_err();
    assert!(matches!(refused, Error::MailPending(of) if of == task));
    owner.stream(task).unwrap().drain(at(4)).await.unwrap();
    owner.append(at(5), blocked(), Level::Synced).await.unwrap();
}
