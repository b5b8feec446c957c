//! The conversation that is shown: its session, the task that is followed, and what it asks.

use std::path::PathBuf;

use jiff::Timestamp;
use windlass_coordinator::views::OpenQuestion;
use windlass_coordinator::{Coordinator, Error, FastPollGuard, TaskFeed, Update};
use windlass_core::axes::RunControl;
use windlass_core::event::{Event, Record};
use windlass_core::id::{InjectionId, QuestionId, SessionId, TaskId};
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};

use crate::app::{Phase, SessionFacts};
use crate::completion::Command;
use crate::host::Options;

/// Events before now that are shown of a conversation that is opened again.
const RECENT: usize = 200;

/// What is followed.
pub(super) struct Conversation {
    coordinator: Coordinator,
    pub session: SessionId,
    /// How much of the session's own stream was seen.
    seq: u64,
    /// The task that is followed.
    pub task: Option<TaskId>,
    /// Whether an event came since a page was read.
    pub has_news: bool,
    feed: Option<TaskFeed>,
    /// The process that drives it, where that is another one.
    elsewhere: Option<Elsewhere>,
    /// Questions that are waited for.
    awaited: Vec<QuestionId>,
}

/// Another process that drives the task: its previews are received, and its commits are noticed soon.
struct Elsewhere {
    process: u32,
    _fast_poll: FastPollGuard,
}

/// A task as it is when it begins to be followed.
pub(super) struct Beginning {
    /// Its state before the events.
    pub state: TaskState,
    /// Whether earlier events are left out.
    pub is_cut: bool,
    pub records: Vec<Record>,
    pub phase: Phase,
    /// When the last segment began.
    pub began: Option<Timestamp>,
}

impl Conversation {
    pub fn new(coordinator: Coordinator, session: SessionId) -> Self {
        Self {
            coordinator,
            session,
            seq: u64::MAX,
            task: None,
            has_news: false,
            feed: None,
            elsewhere: None,
            awaited: Vec::new(),
        }
    }

    /// The next event or preview; never, where nothing is followed.
    pub async fn update(&mut self) -> Result<Update, Error> {
        match &mut self.feed {
            Some(feed) => feed.next().await,
            None => std::future::pending().await,
        }
    }

    /// An event that is committed already.
    pub fn next_committed(&mut self) -> Result<Option<Record>, Error> {
        self.feed.as_mut().map_or(Ok(None), TaskFeed::next_committed)
    }

    /// The task that the session's messages go to.
    pub fn current(&self) -> Option<TaskId> {
        self.coordinator.session(self.session).state().ok()?.conversation
    }

    /// Whether others changed the session since this was last asked.
    pub fn has_changed(&mut self) -> bool {
        let Ok(details) = self.coordinator.session(self.session).details() else { return false };
        std::mem::replace(&mut self.seq, details.seq) != details.seq
    }

    /// The axes, the model and the pause of the session, for the mode line.
    pub fn facts(&self, options: &Options) -> SessionFacts {
        let details = self.coordinator.session(self.session).details().ok();
        let axes = details.as_ref().map_or(options.new.axes, |details| details.axes);
        let model = details.as_ref().and_then(|details| details.model.clone());
        let row = self.task.and_then(|task| self.coordinator.tasks().get(task).ok().flatten());
        let is_paused = row.is_some_and(|row| {
            row.status == TaskStatus::Paused && row.reason != StatusReason::AwaitingMessage
        });
        SessionFacts {
            axes,
            role: details.and_then(|details| details.role).map(|role| role.to_string()),
            model: model.unwrap_or_else(|| options.model.clone()),
            effort: options.effort.clone(),
            is_paused: is_paused && axes.run_control == RunControl::Autonomous,
        }
    }

    /// Follows a task from its last events on.
    pub fn follow(&mut self, task: TaskId) -> Result<Beginning, Error> {
        let tasks = self.coordinator.tasks();
        let mut records = self.coordinator.journals().of(task)?;
        let seen = records.last().map_or(0, |record| record.seq);
        let first = records.len().saturating_sub(RECENT).max(1).min(records.len());
        let before = &records[..first];
        let folded = TaskState::fold(before.iter().map(|record| (record.at, &record.event)));
        let state = match folded.ok().flatten() {
            Some(state) => state,
            None => tasks.state(task)?,
        };
        let mut starts = records.iter().filter(|one| matches!(one.event, Event::AgentStart(_)));
        let began = starts.next_back().map(|record| record.at);
        // The goal is the first message.
        let is_cut = first > 1;
        if is_cut {
            records.drain(..first);
        }
        self.feed = Some(self.coordinator.feed().follow_all(task, seen)?);
        (self.task, self.elsewhere) = (Some(task), None);
        self.watch_driver()?;
        let view = self.coordinator.tasks().details(task)?.view;
        let phase = match (view.driven_by, view.waits_for_answer()) {
            (_, true) => Phase::Blocked,
            (Some(_), false) => Phase::Working,
            (None, false) => Phase::Idle,
        };
        Ok(Beginning { state, is_cut, records, phase, began })
    }

    /// Shows what the process that drives the task has not committed yet. Another one may have taken the task over.
    pub fn watch_driver(&mut self) -> Result<(), Error> {
        let (Some(task), Some(feed)) = (self.task, &mut self.feed) else { return Ok(()) };
        let driving = self.coordinator.tasks().driving_process(task)?;
        let process = driving.filter(|process| *process != std::process::id());
        if process == self.elsewhere.as_ref().map(|elsewhere| elsewhere.process) {
            return Ok(());
        }
        feed.watch_process(process);
        self.elsewhere = process
            .map(|process| Elsewhere { process, _fast_poll: self.coordinator.feed().fast_poll() });
        Ok(())
    }

    /// Whether the task was left in the middle of something.
    pub fn is_interrupted(&self, task: TaskId) -> bool {
        let details = self.coordinator.tasks().details(task);
        details.is_ok_and(|details| details.view.is_interrupted())
    }

    /// Where the session's work is done.
    pub fn workspace(&self) -> Option<PathBuf> {
        let details = self.coordinator.session(self.session).details().ok()?;
        let of_task = || {
            let row = self.coordinator.tasks().get(self.current()?).ok().flatten()?;
            Some(row.workspace)
        };
        details.workspace.or_else(of_task).map(PathBuf::from)
    }

    /// Whether a message that was sent under this name is in the journal: it began a task, or was read by one.
    pub fn has_arrived(&self, request: &str) -> bool {
        let begun = TaskId::derived(request, "task");
        if self.coordinator.tasks().get(begun).is_ok_and(|row| row.is_some()) {
            return true;
        }
        let message = InjectionId::derived(request, "message");
        let records = self.current().and_then(|task| self.coordinator.journals().of(task).ok());
        records.into_iter().flatten().any(|record| {
            matches!(&record.event, Event::InjectionReceived(received) if received.id == message)
        })
    }

    /// The commands of the table, the skills, and those of the terminal itself.
    pub fn commands(&self) -> Vec<Command> {
        let skills = self.coordinator.session(self.session).skills().unwrap_or_default();
        let table = windlass_coordinator::slash::TABLE.iter().map(Command::of);
        let skills = skills
            .into_iter()
            .map(|skill| Command::plain(&format!("/{}", skill.name), &skill.description));
        table.chain(Command::of_terminal()).chain(skills).collect()
    }

    pub fn unfollow(&mut self) {
        (self.feed, self.task, self.elsewhere) = (None, None, None);
    }

    /// The questions that are open at or below the task.
    pub fn questions(&self) -> Result<Vec<OpenQuestion>, Error> {
        match self.task {
            Some(task) => self.coordinator.inbox().open_in_tree(task),
            None => Ok(Vec::new()),
        }
    }

    /// Whether nobody waits for this question yet; from now on somebody does.
    pub fn must_await(&mut self, question: QuestionId) -> bool {
        let is_new = !self.awaited.contains(&question);
        if is_new {
            self.awaited.push(question);
        }
        is_new
    }

    pub fn settled(&mut self, question: QuestionId) {
        self.awaited.retain(|one| *one != question);
    }
}
