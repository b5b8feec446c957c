//! Messages that wait until a session has nothing to do. Until then they can be seen, changed, removed and reordered.
//!
//! Invariants:
//! - What is queued is in a file before it is acknowledged, and leaves it after it was sent. A message is sent under
//!   its own id, so that one that was sent when the process ended is not sent twice.
//! - A message that was sent can no longer be changed: whoever tries is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use windlass_coordinator::{Coordinator, Delivery, Talk};
use windlass_core::id::{InjectionId, SessionId, TaskId};
use windlass_core::picture::Picture;
use windlass_core::status::{StatusReason, TaskStatus};

/// The most messages that wait in one session.
pub const MOST: usize = 50;

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub id: InjectionId,
    pub text: String,
    /// What it shows; each is kept already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    pub by: String,
    pub at: Timestamp,
    /// Why it could not be sent; it waits for a person then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A change of a message that waits.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    pub text: Option<String>,
    /// The text that the change was made to, where its author says so. Another one since then is not written over.
    pub was: Option<String>,
    /// Its new place, from 0.
    pub place: Option<usize>,
}

/// Why a queue was not changed.
#[derive(Debug)]
pub enum NotChanged {
    /// There are too many.
    Full,
    /// It was sent or removed.
    Gone,
    /// Somebody else has changed it to this.
    Changed(String),
    File(io::Error),
}

impl From<io::Error> for NotChanged {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// The queues of all sessions. Cheap to clone.
#[derive(Clone)]
pub struct Queues {
    directory: Arc<Path>,
    waiting: Arc<Mutex<BTreeMap<SessionId, Vec<Queued>>>>,
    changes: Arc<watch::Sender<u64>>,
}

impl Queues {
    /// Takes up what waited when the last process ended; a file that cannot be read is left alone.
    pub fn open(directory: PathBuf) -> Self {
        let files = fs::read_dir(&directory).into_iter().flatten().flatten();
        let read = |entry: fs::DirEntry| -> Option<(SessionId, Vec<Queued>)> {
            let path = entry.path();
            let session = path.file_stem()?.to_str()?.parse().ok()?;
            let text = fs::read_to_string(&path).ok()?;
            Some((session, serde_json::from_str(&text).ok()?))
        };
        let waiting = files.filter_map(read).collect();
        Self {
            directory: directory.into(),
            waiting: Arc::new(Mutex::new(waiting)),
            changes: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Counts the changes of queues, from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What waits in a session, the next first.
    pub fn of(&self, session: SessionId) -> Vec<Queued> {
        self.waiting().get(&session).cloned().unwrap_or_default()
    }

    pub fn add(&self, session: SessionId, message: Queued) -> Result<(), NotChanged> {
        self.change(session, |queue| {
            // The same request again.
            if queue.iter().any(|one| one.id == message.id) {
                return Ok(());
            }
            if queue.len() >= MOST {
                return Err(NotChanged::Full);
            }
            queue.push(message);
            Ok(())
        })
    }

    /// Changes a message or its place; returns it as it is then.
    pub fn edit(
        &self,
        session: SessionId,
        id: InjectionId,
        edit: Edit,
    ) -> Result<Queued, NotChanged> {
        self.change(session, |queue| {
            let at = queue.iter().position(|one| one.id == id).ok_or(NotChanged::Gone)?;
            if edit.was.is_some_and(|was| was != queue[at].text) {
                return Err(NotChanged::Changed(queue[at].text.clone()));
            }
            let mut message = queue.remove(at);
            if let Some(text) = edit.text {
                message = Queued { text, problem: None, ..message };
            }
            let at = edit.place.unwrap_or(at).min(queue.len());
            queue.insert(at, message.clone());
            Ok(message)
        })
    }

    pub fn remove(&self, session: SessionId, id: InjectionId) -> Result<Queued, NotChanged> {
        self.change(session, |queue| {
            let at = queue.iter().position(|one| one.id == id).ok_or(NotChanged::Gone)?;
            Ok(queue.remove(at))
        })
    }

    /// Sends a message now: a task at work reads it at its next step.
    pub async fn send(
        &self,
        coordinator: &Coordinator,
        session: SessionId,
        id: InjectionId,
    ) -> Result<Delivery, SendError> {
        let waiting = self.of(session);
        let Some(message) = waiting.into_iter().find(|one| one.id == id) else {
            return Err(SendError::Gone);
        };
        let talk = Talk::for_service(message.text, message.by);
        let talk = Talk { request: Some(id.to_string()), pictures: message.pictures, ..talk };
        let sent = coordinator
            .session(session)
            .conversation()
            .send(talk)
            .await
            .map_err(SendError::Refused)?;
        // Where its file cannot be written it is sent again later, under the same id: without effect.
        let _ = self.remove(session, id);
        Ok(sent)
    }

    /// Sends what waits in sessions that have nothing to do, whenever something has changed.
    pub async fn run(self, coordinator: Coordinator, mut commits: watch::Receiver<u64>) {
        let mut changes = self.changes();
        let mut last: BTreeMap<SessionId, LastSent> = BTreeMap::new();
        loop {
            for (session, id) in self.due(&coordinator, &last) {
                match self.send(&coordinator, session, id).await {
                    Ok(sent) => {
                        let task = sent.task();
                        let turns = coordinator.tasks().get(task).ok().flatten();
                        let turns = turns.map_or(0, |row| row.turns);
                        last.insert(session, LastSent { task, turns });
                    }
                    Err(SendError::Gone) => {}
                    Err(SendError::Refused(error)) => self.hold(session, id, &error.to_string()),
                }
            }
            let is_waiting = !self.waiting().is_empty();
            tokio::select! {
                changed = commits.changed(), if is_waiting => if changed.is_err() { return },
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }

    /// The first message of each session that has nothing to do.
    fn due(
        &self,
        coordinator: &Coordinator,
        last: &BTreeMap<SessionId, LastSent>,
    ) -> Vec<(SessionId, InjectionId)> {
        let first = |(session, queue): (&SessionId, &Vec<Queued>)| {
            let next = queue.first().filter(|next| next.problem.is_none())?;
            Some((*session, next.id))
        };
        let waiting: Vec<_> = self.waiting().iter().filter_map(first).collect();
        let is_idle = |session: SessionId| is_idle(coordinator, session, last.get(&session));
        waiting.into_iter().filter(|(session, _)| is_idle(*session)).collect()
    }

    fn hold(&self, session: SessionId, id: InjectionId, problem: &str) {
        let held = self.change(session, |queue| {
            let message = queue.iter_mut().find(|one| one.id == id).ok_or(NotChanged::Gone)?;
            message.problem = Some(problem.to_owned());
            Ok(())
        });
        if held.is_err() {
            tracing::warn!(%session, problem, "a queued message was not sent");
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<SessionId, Vec<Queued>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a queue in its file, then here.
    fn change<T>(
        &self,
        session: SessionId,
        change: impl FnOnce(&mut Vec<Queued>) -> Result<T, NotChanged>,
    ) -> Result<T, NotChanged> {
        let mut waiting = self.waiting();
        let mut queue = waiting.get(&session).cloned().unwrap_or_default();
        let done = change(&mut queue)?;
        self.write(session, &queue)?;
        match queue.is_empty() {
            true => waiting.remove(&session),
            false => waiting.insert(session, queue),
        };
        drop(waiting);
        self.changes.send_modify(|count| *count += 1);
        Ok(done)
    }

    fn write(&self, session: SessionId, queue: &[Queued]) -> io::Result<()> {
        let path = self.directory.join(format!("{session}.json"));
        if queue.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        // Written beside and renamed, so that a reader finds the old queue or the new one.
        let part = path.with_extension("part");
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(&serde_json::to_vec(queue).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(&part, &path)
    }
}

/// Why a message was not sent.
#[derive(Debug)]
pub enum SendError {
    Gone,
    Refused(windlass_coordinator::Error),
}

/// The task that the last message of a queue went to, and how often its model had replied then.
struct LastSent {
    task: TaskId,
    turns: u32,
}

/// Whether a session waits for its next message, and its model has replied to the last one.
fn is_idle(coordinator: &Coordinator, session: SessionId, last: Option<&LastSent>) -> bool {
    let Ok(view) = coordinator.sessions().view(session) else { return false };
    let newest = view.tasks.last().map(|entry| entry.task_id);
    let row = newest.map(|task| coordinator.tasks().get(task)).transpose();
    match row {
        Ok(row) => row.flatten().is_none_or(|row| {
            let awaits = (TaskStatus::Paused, StatusReason::AwaitingMessage);
            let is_read = last.is_none_or(|last| last.task != row.id || row.turns > last.turns);
            row.status.is_terminal() || ((row.status, row.reason) == awaits && is_read)
        }),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Queued {
        let at = Timestamp::UNIX_EPOCH;
        let (text, by) = (text.to_owned(), "ada".to_owned());
        Queued {
            id: InjectionId::derived(&text, "m"),
            text,
            pictures: Vec::new(),
            by,
            at,
            problem: None,
        }
    }

    #[test]
    fn what_waits_is_changed_reordered_and_survives() {
        let directory = tempfile::tempdir().unwrap();
        let session = SessionId::derived("a", "b");
        let queues = Queues::open(directory.path().join("queue"));
        for text in ["one", "two", "three"] {
            queues.add(session, message(text)).unwrap();
        }
        let up = Edit { place: Some(0), ..Edit::default() };
        queues.edit(session, message("three").id, up).unwrap();
        let to = |text: &str, was: &str| Edit {
            text: Some(text.to_owned()),
            was: Some(was.to_owned()),
            place: None,
        };
        queues.edit(session, message("two").id, to("2", "two")).unwrap();
        let late = queues.edit(session, message("two").id, to("ii", "two"));
        assert!(matches!(late, Err(NotChanged::Changed(now)) if now == "2"));
        queues.remove(session, message("one").id).unwrap();
        assert!(matches!(queues.remove(session, message("one").id), Err(NotChanged::Gone)));
        let texts = |queues: &Queues| queues.of(session).into_iter().map(|one| one.text);
        assert_eq!(texts(&queues).collect::<Vec<_>>(), ["three", "2"]);
        let again = Queues::open(directory.path().join("queue"));
        assert_eq!(texts(&again).collect::<Vec<_>>(), ["three", "2"]);
        for _ in 0..2 {
            queues.remove(session, queues.of(session)[0].id).unwrap();
        }
        assert_eq!(fs::read_dir(directory.path().join("queue")).unwrap().count(), 0);
    }

    #[test]
    fn a_queue_has_an_end() {
        let directory = tempfile::tempdir().unwrap();
        let queues = Queues::open(directory.path().to_owned());
        let session = SessionId::derived("a", "b");
        for number in 0..MOST {
            queues.add(session, message(&number.to_string())).unwrap();
        }
        assert!(matches!(queues.add(session, message("more")), Err(NotChanged::Full)));
    }
}
