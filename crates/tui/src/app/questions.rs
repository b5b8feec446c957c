//! The questions that are open, and when a key counts for the first of them.

use std::collections::BTreeMap;

use windlass_coordinator::views::OpenQuestion;
use windlass_core::id::QuestionId;

use super::{App, Effect};
use crate::Moment;
use crate::dialog::{Comments, Dialog, DialogAction, QUIET};
use crate::keys::{Direction, Key};

/// Which keys the question in sight takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKeys {
    /// None: something was typed just now, or it cannot be seen.
    Waiting,
    /// None: they are for the queue, a search or a list of completions.
    Elsewhere,
    /// Only those that lead into it or scroll it: a message is being written, and Enter is for the message.
    Entering,
    /// All of them.
    Answering,
}

/// Whether the queue, a search or a list of completions has the keys, until Esc.
fn has_keys_elsewhere(app: &App) -> bool {
    let is_in_queue = app.outgoing.queue.selected().is_some();
    let is_in_list = app.writing.completing.list.is_some();
    is_in_queue || is_in_list || app.writing.searching.is_some()
}

impl App {
    /// Which keys the first question takes now.
    pub fn question_keys(&self) -> QuestionKeys {
        let is_written = !self.writing.composer.is_empty();
        // What cannot be seen cannot be answered.
        let is_armed = self.shows_questions() && self.questions.is_armed(self.now);
        match (is_armed, is_written) {
            _ if self.writing.answering.is_some() => QuestionKeys::Waiting,
            _ if has_keys_elsewhere(self) => QuestionKeys::Elsewhere,
            (false, _) => QuestionKeys::Waiting,
            (true, true) if !self.questions.is_entered() => QuestionKeys::Entering,
            (true, _) => QuestionKeys::Answering,
        }
    }

    /// Answers a question. What becomes of another conversation is not seen here.
    pub(super) fn answer(&mut self, question: QuestionId, text: String) -> Effect {
        let answered = self.questions.remove(question);
        if answered.is_some_and(|dialog| dialog.is_of_another) {
            self.say("answered; the other task continues");
        }
        Effect::Answer { question, text }
    }
}

/// Open questions, the one that is shown first.
#[derive(Default)]
pub struct Questions {
    dialogs: Vec<Dialog>,
    /// The one that is in sight, and since when.
    seen: Option<(QuestionId, Moment)>,
    last_typed: Moment,
    /// The one that the person has moved into from a message that they write.
    entered: Option<QuestionId>,
    /// The plan that the editor was opened for.
    edited: Option<QuestionId>,
}

impl Questions {
    pub fn is_empty(&self) -> bool {
        self.dialogs.is_empty()
    }

    pub fn len(&self) -> usize {
        self.dialogs.len()
    }

    /// The one that is shown.
    pub fn first(&self) -> Option<&Dialog> {
        self.dialogs.first()
    }

    pub fn get(&self, question: QuestionId) -> Option<&Dialog> {
        self.dialogs.iter().find(|dialog| dialog.id() == question)
    }

    pub(super) fn get_mut(&mut self, question: QuestionId) -> Option<&mut Dialog> {
        self.dialogs.iter_mut().find(|dialog| dialog.id() == question)
    }

    /// Whether the keys of the first question count.
    pub(super) fn is_armed(&self, now: Moment) -> bool {
        self.armed_at().is_some_and(|at| now >= at)
    }

    /// When they begin to.
    pub(super) fn armed_at(&self) -> Option<Moment> {
        self.seen.map(|(_, since)| since.max(self.last_typed) + QUIET)
    }

    /// Notices which question is in sight now: a person has to see another one before they can answer it.
    pub(super) fn look(&mut self, is_visible: bool, now: Moment) {
        let first = self.dialogs.first().filter(|_| is_visible).map(Dialog::id);
        if self.seen.map(|(question, _)| question) != first {
            self.seen = first.map(|question| (question, now));
        }
    }

    /// Something was typed that was not an answer: the quiet time begins again.
    pub(super) fn typed(&mut self, now: Moment) {
        self.last_typed = now;
        self.entered = None;
    }

    /// From now on the keys are for the first question, and not for the message that is being written.
    pub(super) fn enter(&mut self) {
        self.entered = self.dialogs.first().map(Dialog::id);
    }

    /// Back to the message.
    pub(super) fn leave(&mut self) {
        self.entered = None;
    }

    pub(super) fn is_entered(&self) -> bool {
        self.entered.is_some() && self.entered == self.dialogs.first().map(Dialog::id)
    }

    pub(super) fn last_typed(&self) -> Moment {
        self.last_typed
    }

    /// Keeps what is open now, and what was chosen from the inbox until it is settled; returns whether one is new, and what was written to those that are gone.
    pub(super) fn set(&mut self, open: Vec<OpenQuestion>) -> (bool, Vec<String>) {
        let is_open = |dialog: &Dialog| {
            dialog.is_of_another || open.iter().any(|one| one.row.question.id == dialog.id())
        };
        let (kept, gone): (Vec<_>, Vec<_>) = self.dialogs.drain(..).partition(is_open);
        self.dialogs = kept;
        let mut is_new = false;
        for asked in open {
            if self.get(asked.row.question.id).is_none() {
                self.dialogs.push(Dialog::new(asked));
                is_new = true;
            }
        }
        (is_new, gone.iter().filter_map(|dialog| dialog.comments().revision()).collect())
    }

    /// Shows a question first. Those of the conversation are here already.
    pub(super) fn show(&mut self, asked: OpenQuestion) {
        let before = self.remove(asked.row.question.id);
        let mut dialog = Dialog::new(asked);
        dialog.is_of_another = before.as_ref().is_none_or(|before| before.is_of_another);
        if let Some(before) = before {
            dialog.set_comments(before.comments());
        }
        self.dialogs.insert(0, dialog);
    }

    pub(super) fn remove(&mut self, question: QuestionId) -> Option<Dialog> {
        let at = self.dialogs.iter().position(|dialog| dialog.id() == question)?;
        Some(self.dialogs.remove(at))
    }

    /// Nothing is followed any more.
    pub fn clear(&mut self) {
        self.dialogs.clear();
    }

    /// Scrolls the text of the first one, between its first row and `last`.
    pub(super) fn scroll(&mut self, direction: Direction, rows: usize, last: usize) {
        if let Some(dialog) = self.dialogs.first_mut() {
            let top = match direction {
                Direction::Up => dialog.top.saturating_sub(rows),
                Direction::Down => dialog.top + rows,
            };
            dialog.top = top.min(last);
        }
    }

    /// Shows the next one.
    pub(super) fn rotate(&mut self) {
        self.dialogs.rotate_left(1);
    }

    pub(super) fn press(&mut self, key: Key, page: usize) -> Option<(QuestionId, DialogAction)> {
        let dialog = self.dialogs.first_mut()?;
        Some((dialog.id(), dialog.press(key, page)))
    }

    /// The plan that the editor is opened for.
    pub(super) fn edit(&mut self, question: QuestionId) -> String {
        self.edited = Some(question);
        let plan = self.get(question).and_then(Dialog::plan);
        plan.unwrap_or_default().to_owned()
    }

    pub(super) fn take_edited(&mut self) -> Option<QuestionId> {
        self.edited.take()
    }

    /// What was said to single lines of plans, to survive a restart.
    pub(super) fn comments(&self) -> BTreeMap<QuestionId, Comments> {
        let written = self.dialogs.iter().filter(|dialog| !dialog.comments().is_empty());
        written.map(|dialog| (dialog.id(), dialog.comments())).collect()
    }

    /// Takes comments from before a restart; returns those to questions that are gone, as texts.
    pub(super) fn restore(&mut self, comments: BTreeMap<QuestionId, Comments>) -> Vec<String> {
        let mut gone = Vec::new();
        for (question, comments) in comments {
            match self.get_mut(question) {
                Some(dialog) => dialog.set_comments(comments),
                None => gone.extend(comments.revision()),
            }
        }
        gone
    }
}
