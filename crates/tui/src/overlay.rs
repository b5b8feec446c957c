//! Pages over the whole screen: texts to read and lists to choose from.

mod list;
mod page;

use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::role::Role;

pub use list::{Item, List, Target};
pub use page::{Page, PageLine};

use crate::keys::Key;

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewKind {
    Tasks,
    Inbox,
    Sessions {
        everywhere: bool,
    },
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
    /// Whether it shows what happens, and is read again while it is open.
    pub const fn is_live(&self) -> bool {
        match self {
            Self::Tasks
            | Self::Inbox
            | Self::Agents
            | Self::Workflows
            | Self::Run { .. }
            | Self::Workers
            | Self::Plan
            | Self::Commitments => true,
            Self::Sessions { .. }
            | Self::Roles
            | Self::Transcript { .. }
            | Self::Diff(_)
            | Self::Help
            | Self::Text => false,
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
}

/// What a person does on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Nothing,
    Close,
    /// Another page opens in its place.
    Open(ViewKind),
    /// Continue a conversation here.
    OpenSession(SessionId),
    /// Watch and steer a task here.
    OpenTask(TaskId),
    ShowQuestion(QuestionId),
    /// Begin a message about a sub-agent.
    WriteAbout(TaskId),
    Pause(TaskId),
    Resume(TaskId),
    Cancel(TaskId),
    TakeRole(Role),
}

impl Asked {
    /// Whether the page ends with it.
    pub const fn closes(&self) -> bool {
        matches!(self, Self::Close | Self::OpenSession(_) | Self::OpenTask(_) | Self::TakeRole(_))
    }
}

impl Overlay {
    pub fn kind(&self) -> &ViewKind {
        match self {
            Self::Page(page) => &page.kind,
            Self::List(list) => &list.kind,
        }
    }

    /// What a key does; `rows` are those of the body.
    pub fn press(&mut self, key: Key, rows: usize) -> Asked {
        match self {
            Self::Page(page) => page.press(key, rows),
            Self::List(list) => list.press(key, rows),
        }
    }

    pub fn paste(&mut self, text: &str) {
        let words = text.lines().next().unwrap_or_default();
        match self {
            Self::Page(page) => page.paste(words),
            Self::List(list) => list.paste(words),
        }
    }

    /// The page in place of the one before. Read again, it is seen from where the person was in it.
    pub fn in_place_of(mut self, before: Option<Self>) -> Self {
        if let Some(before) = before.filter(|before| before.kind() == self.kind()) {
            match (&mut self, &before) {
                (Self::List(list), Self::List(before)) => list.place_as(before),
                (Self::Page(page), Self::Page(before)) => page.place_as(before),
                _ => {}
            }
        }
        self
    }
}
