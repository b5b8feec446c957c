//! A notice to a person who has no visible page: one POST to their own address when a question stays open, or when a
//! task has failed or is stuck. Off unless the person's own configuration names the address.
//!
//! Invariants:
//! - It names the task and the kind of what waits, never the command, the files or the answer.
//! - What was answered or resumed meanwhile is not sent. Only a page that has said within [`IN_SIGHT`] that it is seen
//!   holds notices back, and then for as long as it is seen; what it held back is one notice afterwards.
//! - Several at once are one notice. Attempts are few and bounded in time; what cannot be delivered is logged without
//!   the address, whose path is often a secret.

use std::sync::Mutex;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;
use windlass_coordinator::views::OpenQuestion;
use windlass_coordinator::{Coordinator, Error};
use windlass_core::event::{Event, Record};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::QuestionKind;
use windlass_core::shown::shown_line;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::text::one_line;

/// How long a page counts as seen after it has said so. Pages in sight say it every twenty seconds.
const IN_SIGHT: SignedDuration = SignedDuration::from_secs(30);
/// How long to wait before each attempt to deliver.
const ATTEMPTS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10)];
/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Characters of a goal that name a task.
const GOAL_CHARS: usize = 80;
/// Matters that wait at most; of more, the oldest go.
const MOST_WAITING: usize = 1000;
/// How soon it is looked again whether a page is still in sight, at the earliest.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Where notices go.
#[derive(Clone, Debug)]
pub struct Notify {
    /// What takes a POST whose body is the text, as ntfy does.
    pub url: Url,
    /// Sent as a bearer token.
    pub token: Option<String>,
    /// How long something waits before it is worth a notice.
    pub after: Duration,
    /// Where the person reaches the page from elsewhere; the server's own address where unset.
    pub page: Option<Url>,
}

/// When a page last said that it is seen.
#[derive(Debug, Default)]
pub struct Presence(Mutex<Option<Timestamp>>);

impl Presence {
    /// A page is in sight.
    pub fn note_visible_page(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(now);
    }

    fn is_seen(&self, now: Timestamp) -> bool {
        let last = *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        last.is_some_and(|last| now.duration_since(last) < IN_SIGHT)
    }
}

/// Something that a person may want to know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matter {
    Question(QuestionId),
    /// A task that has failed or is stuck, with the word for it.
    Task(TaskId, &'static str),
}

/// What may become a notice, oldest first.
#[derive(Debug, Default)]
struct Waiting {
    matters: Vec<(Instant, Matter)>,
    /// Nothing is sent before this.
    held_until: Option<Instant>,
}

impl Waiting {
    /// Adds a matter, once: what was open at the start may also arrive as an event.
    fn add(&mut self, matter: Matter, due: Instant) {
        if self.matters.iter().any(|(_, known)| *known == matter) {
            return;
        }
        self.matters.push((due, matter));
        let extra = self.matters.len().saturating_sub(MOST_WAITING);
        self.matters.drain(..extra);
    }

    /// When there is something to do; `None` for never.
    fn next(&self) -> Option<Instant> {
        let first = self.matters.iter().map(|(due, _)| *due).min()?;
        Some(self.held_until.map_or(first, |until| first.max(until)))
    }

    fn hold_until(&mut self, until: Instant) {
        self.held_until = Some(until);
    }

    fn take_due(&mut self, now: Instant) -> Vec<Matter> {
        let (due, rest): (Vec<_>, Vec<_>) =
            self.matters.drain(..).partition(|(due, _)| *due <= now);
        self.matters = rest;
        due.into_iter().map(|(_, matter)| matter).collect()
    }
}

/// Watches the journal and sends notices, until it is dropped.
pub struct Notifier<'a> {
    pub coordinator: &'a Coordinator,
    pub presence: &'a Presence,
    pub notify: &'a Notify,
    /// The inbox as a browser on this machine reaches it.
    pub inbox: String,
}

impl Notifier<'_> {
    pub async fn run(&self) -> Result<(), Error> {
        let mut tail = self.coordinator.feed().tail()?;
        // Another part of the process may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(PATIENCE).build();
        let client = client.map_err(|error| Error::Job(error.to_string()))?;
        // What was open before is said once, together: nobody knows whether it was said.
        let mut waiting = Waiting::default();
        for asked in self.coordinator.inbox().open()? {
            waiting
                .add(Matter::Question(asked.row.question.id), Instant::now() + self.notify.after);
        }
        loop {
            let next = waiting.next();
            let due = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                records = tail.next() => {
                    let due = Instant::now() + self.notify.after;
                    records?.iter().filter_map(matter).for_each(|one| waiting.add(one, due));
                }
                () = due => self.send_notice(&client, &mut waiting).await?,
            }
        }
    }

    /// Sends one notice about all that is due, or nothing while a page is in sight.
    async fn send_notice(
        &self,
        client: &reqwest::Client,
        waiting: &mut Waiting,
    ) -> Result<(), Error> {
        if self.presence.is_seen(self.coordinator.now()) {
            waiting.hold_until(Instant::now() + self.notify.after.max(LOOK_AGAIN));
            return Ok(());
        }
        let open = self.coordinator.inbox().open()?;
        let mut lines = Vec::new();
        for matter in waiting.take_due(Instant::now()) {
            lines.extend(self.line(matter, &open)?);
        }
        let text = match lines.as_slice() {
            [] => return Ok(()),
            [line] => line.clone(),
            [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
        };
        self.send(client, &text).await;
        Ok(())
    }

    /// The words for it; `None` where nobody is waited for any more.
    fn line(&self, matter: Matter, open: &[OpenQuestion]) -> Result<Option<String>, Error> {
        let (task, what) = match matter {
            Matter::Question(id) => match open.iter().find(|asked| asked.row.question.id == id) {
                Some(asked) => (asked.row.task, kind_words(asked.row.question.kind)),
                None => return Ok(None),
            },
            Matter::Task(task, what) => (task, what),
        };
        let root = self.coordinator.tasks().root(task)?;
        // What a sub-agent comes to is its parent's matter, and work that continues is nobody's.
        if let Matter::Task(task, _) = matter
            && (root != task || !self.still_stands(task)?)
        {
            return Ok(None);
        }
        let goal = self.coordinator.tasks().get(root)?.map(|row| row.goal).unwrap_or_default();
        Ok(Some(format!("{}: {what}", one_line(&shown_line(&goal), GOAL_CHARS))))
    }

    fn still_stands(&self, task: TaskId) -> Result<bool, Error> {
        let row = self.coordinator.tasks().get(task)?;
        Ok(row.is_some_and(|row| trouble(row.status, row.reason).is_some()))
    }

    async fn send(&self, client: &reqwest::Client, text: &str) {
        let page = self.notify.page.as_ref();
        let link = page.map_or_else(
            || self.inbox.clone(),
            |page| format!("{}/inbox", page.as_str().trim_end_matches('/')),
        );
        for wait in ATTEMPTS {
            sleep(wait).await;
            let mut request = client
                .post(self.notify.url.clone())
                .header("Title", "Windlass waits for you")
                .header("Click", &link)
                .header("Content-Type", "text/plain; charset=utf-8")
                .body(text.to_owned());
            if let Some(token) = &self.notify.token {
                request = request.bearer_auth(token);
            }
            match request.send().await.map(|answer| answer.status()) {
                Ok(status) if status.is_success() => return,
                Ok(status) if status.is_client_error() && status.as_u16() != 429 => {
                    tracing::warn!(%status, host = self.host(), "the notice was refused");
                    return;
                }
                Ok(status) => tracing::warn!(%status, host = self.host(), "the notice failed"),
                Err(error) => {
                    let error = error.without_url();
                    tracing::warn!(%error, host = self.host(), "the notice was not delivered");
                }
            }
        }
    }

    fn host(&self) -> &str {
        self.notify.url.host_str().unwrap_or_default()
    }
}

/// What an event may be worth a notice for.
fn matter(record: &Record) -> Option<Matter> {
    match &record.event {
        Event::QuestionAsked(question) => Some(Matter::Question(question.id)),
        Event::StatusChanged(moved) => {
            trouble(moved.to, moved.reason).map(|what| Matter::Task(record.task, what))
        }
        _ => None,
    }
}

/// The words for a task that is stopped until a person acts; `None` for any other. One that asks has a notice for
/// its question.
fn trouble(status: TaskStatus, reason: StatusReason) -> Option<&'static str> {
    match status {
        TaskStatus::Failed => Some("failed"),
        TaskStatus::Blocked | TaskStatus::Paused => {
            needs_person(reason).then_some("is stuck and needs you")
        }
        TaskStatus::Todo
        | TaskStatus::Running
        | TaskStatus::Verifying
        | TaskStatus::Reviewing
        | TaskStatus::Retrying
        | TaskStatus::Done
        | TaskStatus::Cancelled => None,
    }
}

/// Whether a task that is blocked or parked for this reason waits for a person.
const fn needs_person(reason: StatusReason) -> bool {
    match reason {
        StatusReason::Timeout
        | StatusReason::Deadline
        | StatusReason::Error
        | StatusReason::MergeConflict
        | StatusReason::ContextFull
        | StatusReason::DiskFull => true,
        StatusReason::User
        | StatusReason::Finished
        | StatusReason::Question
        | StatusReason::Budget
        | StatusReason::Dependency
        | StatusReason::Schedule
        | StatusReason::AwaitingMessage
        | StatusReason::RateLimited
        | StatusReason::ModelOutage
        | StatusReason::Shutdown => false,
    }
}

const fn kind_words(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Permission => "asks for a permission",
        QuestionKind::Plan => "asks about its plan",
        QuestionKind::Budget => "asks for more budget",
        QuestionKind::Review => "asks for a review",
        QuestionKind::Repair => "asks about a repair",
        QuestionKind::AskUser | QuestionKind::Runner => "asks you something",
    }
}
