//! A list to choose from, with a filter and a preview of what is chosen.

use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::role::Role;
use windlass_term::strip_controls;

use super::{Conversations, PageAction, ViewKind};
use crate::keymap::Action;
use crate::keys::{Code, Key};

/// What an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Task(TaskId),
    Session(SessionId),
    Question(QuestionId),
    /// A proposed skill, by its number. It is read here; accepting it takes a command.
    Proposal(i64),
    Role(Role),
    /// Something that keys are bound to.
    Action(Action),
    /// Something that can be read more about, and no more.
    Text,
    /// A line that nothing can be done with.
    Heading,
}

/// One line of the list that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub target: Target,
    pub line: String,
    /// More about it, seen when it is chosen.
    pub preview: Vec<String>,
}

/// A list and where the person is in it.
#[derive(Clone, Debug)]
pub struct List {
    pub kind: ViewKind,
    pub title: String,
    items: Vec<Item>,
    selected: usize,
    filter: String,
    is_typing: bool,
    /// A task whose cancelling waits for a second press.
    confirming: Option<TaskId>,
}

impl List {
    pub fn new(kind: ViewKind, title: impl Into<String>, items: Vec<Item>) -> Self {
        // Sessions are searched by typing: their list has no other letters.
        let is_typing = matches!(kind, ViewKind::Sessions(_));
        let mut list = Self {
            kind,
            title: title.into(),
            items,
            selected: 0,
            filter: String::new(),
            is_typing,
            confirming: None,
        };
        list.settle();
        list
    }

    /// The entries that the filter lets through.
    pub fn seen(&self) -> Vec<&Item> {
        let words = self.filter.to_lowercase();
        let fits = |item: &&Item| {
            let has = |line: &String| strip_controls(line).to_lowercase().contains(&words);
            words.is_empty() || has(&item.line) || item.preview.iter().any(has)
        };
        self.items.iter().filter(fits).collect()
    }

    pub fn selected(&self) -> usize {
        self.selected
    }

    pub fn current(&self) -> Option<&Item> {
        self.seen().get(self.selected).copied()
    }

    /// The first entry that is seen, where so many rows are there for them.
    pub fn first(&self, rows: usize) -> usize {
        (self.selected + 1).saturating_sub(rows.max(1))
    }

    /// What is said where nothing is listed.
    pub fn empty_words(&self) -> &'static str {
        if !self.items.is_empty() {
            return "nothing is found";
        }
        match self.kind {
            ViewKind::Tasks => "there are no tasks",
            ViewKind::Inbox => "nothing waits for you",
            ViewKind::Sessions(Conversations::Archived) => "no conversation is archived",
            ViewKind::Sessions(_) => "there are no conversations",
            ViewKind::Agents => "no sub-agents, and no commands in the background",
            ViewKind::Workflows => "there are no workflows here",
            ViewKind::Workers => "no worker works in a worktree now",
            ViewKind::Commitments => "there are no commitments",
            ViewKind::Run { .. }
            | ViewKind::Plan
            | ViewKind::Roles
            | ViewKind::Transcript { .. }
            | ViewKind::Diff(_)
            | ViewKind::Help
            | ViewKind::Text => "nothing here",
        }
    }

    pub fn status(&self) -> String {
        let can_choose = self.items.iter().any(|item| item.target != Target::Heading);
        if !can_choose && !self.is_typing {
            return "Esc close".to_owned();
        }
        if self.confirming.is_some() {
            return "press c again to cancel it for good · any other key keeps it".to_owned();
        }
        let keys = self.keys();
        if self.is_typing && !matches!(self.kind, ViewKind::Sessions(_)) {
            // Letters are words of the search.
            let enter = keys.split(" · ").find(|key| key.starts_with("Enter"));
            return enter
                .into_iter()
                .chain(["Esc ends the search"])
                .collect::<Vec<_>>()
                .join(" · ");
        }
        keys.to_owned()
    }

    fn keys(&self) -> &'static str {
        match self.kind {
            ViewKind::Tasks => {
                "Enter watch · t transcript · p pause · r resume · c cancel · / find · Esc close"
            }
            ViewKind::Inbox => "Enter answer · / find · Esc close",
            ViewKind::Workflows => {
                "Enter steps · t transcript · p pause · r resume · c cancel · / find · Esc close"
            }
            ViewKind::Workers => {
                "Enter transcript · p pause · r resume · c cancel · / find · Esc close"
            }
            ViewKind::Commitments => "/ find · Esc close",
            ViewKind::Roles => "Enter take the role · Esc close",
            ViewKind::Help => {
                "Enter rebind · a add a key · c two-key chord · x default · / find · Esc close"
            }
            ViewKind::Agents => {
                "Enter transcript · m steer · p pause · r resume · c cancel · Esc close"
            }
            ViewKind::Sessions(Conversations::OfDirectory) => {
                "Enter opens · Del archives · Tab all directories · Esc closes"
            }
            ViewKind::Sessions(Conversations::Everywhere) => {
                "Enter opens · Del archives · Tab archived ones · Esc closes"
            }
            ViewKind::Sessions(Conversations::Archived) => {
                "Enter restores and opens · Del restores · Tab this directory · Esc closes"
            }
            ViewKind::Run { .. }
            | ViewKind::Plan
            | ViewKind::Transcript { .. }
            | ViewKind::Diff(_)
            | ViewKind::Text => "Esc close",
        }
    }

    /// Whether words are typed to search for.
    pub fn is_typing(&self) -> bool {
        self.is_typing
    }

    /// The words that are searched for, while they are typed.
    pub fn search(&self) -> Option<&str> {
        self.is_typing.then_some(&self.filter)
    }

    pub fn press(&mut self, key: Key, rows: usize) -> PageAction {
        let confirming = self.confirming.take();
        let page = rows.saturating_sub(1).max(1) as isize;
        match key.code {
            Code::Escape => return self.escape(),
            Code::Char('c' | 'd') if key.ctrl => return PageAction::Close,
            Code::Up => self.go(-1),
            Code::Down => self.go(1),
            Code::PageUp => self.go(-page),
            Code::PageDown => self.go(page),
            Code::Home => self.go(isize::MIN / 2),
            Code::End => self.go(isize::MAX / 2),
            Code::Tab => {
                if let ViewKind::Sessions(of) = self.kind {
                    return PageAction::Open(ViewKind::Sessions(of.next()));
                }
            }
            Code::Enter => return self.choose(),
            Code::Delete => {
                if let (ViewKind::Sessions(of), Some(Target::Session(session))) =
                    (&self.kind, self.current().map(|item| item.target))
                {
                    return PageAction::Archive(session, *of != Conversations::Archived);
                }
            }
            Code::Backspace if self.is_typing => {
                self.filter.pop();
                self.settle();
            }
            Code::Char(char) if key.typed().is_some() && self.is_typing => {
                self.filter.push(char);
                self.settle();
            }
            Code::Char(char) if key.typed().is_some() => return self.letter(char, confirming),
            _ => {}
        }
        PageAction::Nothing
    }

    /// Ends a search, at the entry that it has found: there other keys count again.
    fn escape(&mut self) -> PageAction {
        let is_always_typing = matches!(self.kind, ViewKind::Sessions(_));
        if !self.is_typing || (is_always_typing && self.filter.is_empty()) {
            return PageAction::Close;
        }
        let found = self.current().cloned();
        self.filter.clear();
        self.is_typing = is_always_typing;
        let at = self.items.iter().position(|item| Some(item) == found.as_ref());
        self.selected = at.unwrap_or(self.selected);
        self.settle();
        PageAction::Nothing
    }

    fn letter(&mut self, char: char, confirming: Option<TaskId>) -> PageAction {
        match (char, self.current().map(|item| item.target)) {
            ('q', _) => PageAction::Close,
            ('/', _) => {
                self.is_typing = true;
                PageAction::Nothing
            }
            ('k', _) => {
                self.go(-1);
                PageAction::Nothing
            }
            ('j', _) => {
                self.go(1);
                PageAction::Nothing
            }
            ('t', Some(Target::Task(task))) => {
                PageAction::Open(ViewKind::Transcript { task: Some(task) })
            }
            ('m', Some(Target::Task(task))) if self.kind == ViewKind::Agents => {
                PageAction::WriteTo(task)
            }
            ('p', Some(Target::Task(task))) => PageAction::Pause(task),
            ('r', Some(Target::Task(task))) => PageAction::Resume(task),
            ('c', Some(Target::Task(task))) if confirming == Some(task) => PageAction::Cancel(task),
            ('c', Some(Target::Task(task))) => {
                self.confirming = Some(task);
                PageAction::Nothing
            }
            _ => PageAction::Nothing,
        }
    }

    fn choose(&self) -> PageAction {
        match (self.current().map(|item| item.target), &self.kind) {
            (Some(Target::Task(task)), ViewKind::Agents | ViewKind::Workers) => {
                PageAction::Open(ViewKind::Transcript { task: Some(task) })
            }
            (Some(Target::Task(run)), ViewKind::Workflows) => {
                PageAction::Open(ViewKind::Run { run })
            }
            (Some(Target::Task(task)), _) => PageAction::OpenTask(task),
            (Some(Target::Session(session)), ViewKind::Sessions(Conversations::Archived)) => {
                PageAction::Reopen(session)
            }
            (Some(Target::Session(session)), _) => PageAction::OpenSession(session),
            (Some(Target::Question(question)), _) => PageAction::ShowQuestion(question),
            (Some(Target::Role(role)), _) => PageAction::TakeRole(role),
            (
                Some(Target::Proposal(_) | Target::Heading | Target::Text | Target::Action(_))
                | None,
                _,
            ) => PageAction::Nothing,
        }
    }

    pub fn paste(&mut self, words: &str) {
        if self.is_typing {
            self.filter.push_str(words);
            self.settle();
        }
    }

    pub fn place_as(&mut self, before: &Self) {
        self.filter.clone_from(&before.filter);
        self.is_typing = before.is_typing;
        self.confirming = before.confirming;
        let chosen = before.current().map(|item| item.target);
        let same = self.seen().iter().position(|item| Some(item.target) == chosen);
        self.selected = same.unwrap_or(before.selected);
        self.settle();
    }

    fn go(&mut self, rows: isize) {
        let last = self.seen().len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(rows).min(last);
        // Headings are passed over.
        let step: isize = if rows < 0 { -1 } else { 1 };
        while self.current().is_some_and(|item| item.target == Target::Heading) {
            let next = self.selected.saturating_add_signed(step);
            if next == self.selected || next > last {
                break;
            }
            self.selected = next;
        }
    }

    /// Keeps the choice inside what is seen.
    fn settle(&mut self) {
        let last = self.seen().len().saturating_sub(1);
        self.selected = self.selected.min(last);
        if self.current().is_some_and(|item| item.target == Target::Heading) {
            self.go(1);
            self.go(0);
        }
    }
}
