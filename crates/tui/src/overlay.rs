//! Pages over the whole screen: texts to read and lists to choose from.

mod keys;
mod list;
mod page;
mod scroll_speed;

use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::role::Role;

pub use keys::{KeyList, Keys};
pub use list::{Item, List, Target};
pub use page::{Fold, Page, PageLine};
pub use scroll_speed::ScrollSpeed;

use crate::Moment;
use crate::keymap::Action;
use crate::keys::{Code, Direction, Key};

/// Rows that one notch of the wheel goes.
pub const ROWS_PER_NOTCH: usize = 3;

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewKind {
    Tasks,
    Inbox,
    Sessions(Conversations),
    Agents,
    Workflows,
    /// One run of a workflow.
    Run {
        run: TaskId,
    },
    Workers,
    Plan,
    Commitments,
    Roles,
    Transcript {
        task: Option<TaskId>,
    },
    Diff(DiffOf),
    Help,
    /// What a slash command replied.
    Text,
}

impl ViewKind {
    /// Whether every page of it shows what happens. The transcript of one task does while it runs.
    pub const fn is_live(&self) -> bool {
        match self {
            Self::Tasks
            | Self::Inbox
            | Self::Agents
            | Self::Workflows
            | Self::Run { .. }
            | Self::Workers
            | Self::Plan
            | Self::Commitments
            | Self::Transcript { task: None }
            | Self::Diff(_) => true,
            Self::Sessions(_)
            | Self::Roles
            | Self::Transcript { task: Some(_) }
            | Self::Help
            | Self::Text => false,
        }
    }

    /// Whether it changes only with the events of the conversation that is followed.
    pub const fn is_of_conversation(&self) -> bool {
        matches!(self, Self::Transcript { task: None } | Self::Diff(_))
    }
}

/// Which conversations are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversations {
    OfDirectory,
    Everywhere,
    /// Those that were put away.
    Archived,
}

impl Conversations {
    const fn next(self) -> Self {
        match self {
            Self::OfDirectory => Self::Everywhere,
            Self::Everywhere => Self::Archived,
            Self::Archived => Self::OfDirectory,
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::OfDirectory => "conversations of this directory",
            Self::Everywhere => "conversations of all directories",
            Self::Archived => "archived conversations",
        }
    }
}

/// Which changes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffOf {
    Turn,
    Task,
    WorkingTree,
}

impl DiffOf {
    const fn next(self) -> Self {
        match self {
            Self::Turn => Self::Task,
            Self::Task => Self::WorkingTree,
            Self::WorkingTree => Self::Turn,
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Turn => "changes of this turn",
            Self::Task => "changes of this task",
            Self::WorkingTree => "changes of the working tree",
        }
    }
}

/// A page over the screen.
#[derive(Clone, Debug)]
pub enum Overlay {
    Page(Page),
    List(List),
    Keys(KeyList),
}

/// What a person does on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageAction {
    Nothing,
    Close,
    /// Another page opens in its place.
    Open(ViewKind),
    /// Continue a conversation here.
    OpenSession(SessionId),
    /// Put a conversation away, or take it back.
    Archive(SessionId, bool),
    /// Take a conversation back and continue it here.
    Reopen(SessionId),
    /// Watch and steer a task here.
    OpenTask(TaskId),
    ShowQuestion(QuestionId),
    /// Begin words to a sub-agent.
    WriteTo(TaskId),
    Pause(TaskId),
    Resume(TaskId),
    Cancel(TaskId),
    TakeRole(Role),
    Bind(Action, Keys),
}

impl PageAction {
    /// Whether the page ends with it.
    pub const fn closes(&self) -> bool {
        matches!(
            self,
            Self::Close
                | Self::OpenSession(_)
                | Self::Reopen(_)
                | Self::OpenTask(_)
                | Self::TakeRole(_)
        )
    }
}

impl Overlay {
    pub fn kind(&self) -> &ViewKind {
        match self {
            Self::Page(page) => &page.kind,
            Self::List(list) => &list.kind,
            Self::Keys(keys) => &keys.list.kind,
        }
    }

    /// Whether it shows what happens, and is read again while it is open.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Page(page) => page.is_live(),
            Self::List(list) => list.kind.is_live(),
            Self::Keys(keys) => keys.list.kind.is_live(),
        }
    }

    pub fn title(&self) -> &str {
        match self {
            Self::Page(page) => &page.title,
            Self::List(list) => &list.title,
            Self::Keys(keys) => &keys.list.title,
        }
    }

    /// What keys do here; `rows` are those of the body.
    pub fn status(&self, rows: usize) -> String {
        match self {
            Self::Page(page) => page.status(rows),
            Self::List(list) => list.status(),
            Self::Keys(keys) => keys.status(),
        }
    }

    /// The words that are typed to search for, with what stands before them.
    pub fn search(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Page(page) => page.search().map(|words| ("/", words)),
            Self::List(list) => list.search().map(|words| ("search: ", words)),
            Self::Keys(keys) => keys.list.search().map(|words| ("search: ", words)),
        }
    }

    /// What a key does; `rows` are those of the body.
    pub fn press(&mut self, key: Key, rows: usize, now: Moment) -> PageAction {
        match self {
            Self::Page(page) => page.press(key, rows, now),
            Self::List(list) => list.press(key, rows),
            Self::Keys(keys) => keys.press(key, rows),
        }
    }

    /// What a notch of the wheel does: as much as arrow keys, which terminals send for it where it is not asked for.
    pub fn wheel(&mut self, direction: Direction, rows: usize, now: Moment) {
        let is_bound = matches!(self, Self::Keys(keys) if keys.is_waiting());
        let arrow = Key::plain(match direction {
            Direction::Up => Code::Up,
            Direction::Down => Code::Down,
        });
        for _ in 0..ROWS_PER_NOTCH {
            if !is_bound {
                self.press(arrow, rows, now);
            }
        }
    }

    pub fn paste(&mut self, text: &str) {
        let words = text.lines().next().unwrap_or_default();
        match self {
            Self::Page(page) => page.paste(words),
            Self::List(list) => list.paste(words),
            Self::Keys(keys) => keys.list.paste(words),
        }
    }

    /// The page in place of the one before. Read again, it is seen from where the person was in it.
    pub fn in_place_of(mut self, before: Option<Self>) -> Self {
        if let Some(before) = before.filter(|before| before.kind() == self.kind()) {
            match (&mut self, &before) {
                (Self::List(list), Self::List(before)) => list.place_as(before),
                (Self::Page(page), Self::Page(before)) => page.place_as(before),
                (Self::Keys(keys), Self::Keys(before)) => keys.list.place_as(&before.list),
                _ => {}
            }
        }
        self
    }
}
