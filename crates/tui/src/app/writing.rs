//! The text: history, answers in words, drafts put aside, pastes.

use windlass_core::id::{QuestionId, TaskId};

use super::Effect;
use super::completing::Completing;
use super::ran::RanCommands;
use crate::composer::vim::{KeyUse, Mode, Vim};
use crate::composer::{Composer, Draft, MAX_BYTES, Mark};
use crate::history::History;
use crate::keymap::{Action, Keymap};
use crate::keys::{Code, Key};
use crate::screen::Shape;

/// Where the text goes when it is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The answer to a question; this stands before it on the wire.
    Answer { question: QuestionId, prefix: &'static str },
    /// A comment on this line of a plan.
    Comment { question: QuestionId, line: usize },
    /// Words to a sub-agent.
    Steer { agent: TaskId },
}

impl Purpose {
    /// The question that it is about.
    pub const fn question(self) -> Option<QuestionId> {
        match self {
            Self::Answer { question, .. } | Self::Comment { question, .. } => Some(question),
            Self::Steer { .. } => None,
        }
    }
}

/// The text is about a question, or for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    pub purpose: Purpose,
    /// What was written before.
    pub aside: Draft,
}

/// A search in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searching {
    pub words: String,
    pub skip: usize,
    /// Whether a message has the words.
    pub is_found: bool,
    pub(super) aside: Draft,
}

/// What is written and not sent.
#[derive(Default)]
pub struct ComposerState {
    pub composer: Composer,
    pub history: History,
    pub answering: Option<Answering>,
    pub searching: Option<Searching>,
    pub completing: Completing,
    /// Editing as in vi, where the person wants it.
    pub vim: Option<Vim>,
    pub(super) stash: Option<Draft>,
    pub ran: RanCommands,
    notice: Option<Remark>,
}

/// What the person should be shown about what they write.
enum Remark {
    Words(String),
    /// A draft was put aside.
    PutAside,
}

impl ComposerState {
    pub(super) fn new(history: History, is_vim: bool) -> Self {
        Self { history, vim: is_vim.then(Vim::default), ..Self::default() }
    }

    pub(super) fn set_vim(&mut self, is_on: bool) {
        self.vim = is_on.then(Vim::default);
        self.say(match is_on {
            true => "keys edit as in vi: Esc for commands",
            false => "keys edit as in a shell",
        });
    }

    pub(super) fn take_vim(&mut self, before: &mut Self) {
        self.vim = before.vim.take();
    }

    /// What a key does as a command of vi.
    pub(super) fn press_vim(&mut self, key: Key) -> KeyUse {
        let Some(vim) = &mut self.vim else { return KeyUse::No };
        let before = self.composer.text().to_owned();
        let taken = vim.press(key, &mut self.composer);
        if taken == KeyUse::Yes {
            if self.composer.text() != before {
                self.stop_browsing();
            }
            self.completing.close();
        }
        taken
    }

    /// Another text begins.
    pub(super) fn begin_text(&mut self) {
        if let Some(vim) = &mut self.vim {
            vim.begin();
        }
    }

    /// A cursor of commands is a block.
    pub fn cursor_shape(&self) -> Shape {
        match self.vim.as_ref().map(Vim::mode) {
            None => Shape::Own,
            Some(Mode::Insert) => Shape::Bar,
            Some(Mode::Normal | Mode::Visual { .. }) => Shape::Block,
        }
    }

    /// What is marked of the text.
    pub fn mark(&self) -> Mark {
        let range = self.vim.as_ref().map_or(0..0, |vim| vim.marked(&self.composer));
        Mark { range, is_painted: true }
    }

    /// Whether nothing is written, and a message would be.
    pub(super) fn is_blank(&self) -> bool {
        self.composer.is_empty() && self.answering.is_none()
    }

    pub(super) fn take_notice(&mut self, keymap: &Keymap) -> Option<String> {
        Some(match self.notice.take()? {
            Remark::Words(words) => words,
            Remark::PutAside => {
                format!("your draft is put aside: {} brings it back", keymap.way(Action::Stash))
            }
        })
    }

    fn say(&mut self, text: impl Into<String>) {
        self.notice = Some(Remark::Words(text.into()));
    }

    /// What a key does to the text, which is this wide.
    pub(super) fn key(&mut self, key: Key, columns: usize) -> Vec<Effect> {
        match key.code {
            Code::Up if !key.alt => self.vertical(-1, columns),
            Code::Down if !key.alt => self.vertical(1, columns),
            _ => {
                let before = self.composer.text().to_owned();
                if self.composer.key(key) {
                    // Who only moves the cursor still goes through the history.
                    if self.composer.text() != before {
                        self.stop_browsing();
                    }
                    return self.complete();
                }
            }
        }
        Vec::new()
    }

    /// What is shown of the history is now the person's own; what they had written before is put aside.
    pub(super) fn stop_browsing(&mut self) {
        if let Some(first) = self.history.stop_browsing() {
            self.put_aside(first);
        }
    }

    /// Back from the history to what was written before.
    fn leave_history(&mut self) {
        if let Some(first) = self.history.stop_browsing() {
            self.composer.replace(first);
        }
    }

    /// Keeps a draft where a key brings it back. The one that was there before goes into the history.
    fn put_aside(&mut self, draft: Draft) {
        if draft.is_empty() {
            return;
        }
        if let Some(before) = self.stash.replace(draft) {
            self.history.push(&before.expanded());
        }
        self.notice = Some(Remark::PutAside);
    }

    fn vertical(&mut self, rows: i32, columns: usize) {
        if self.composer.vertical(rows, columns) || self.answering.is_some() {
            return;
        }
        let found = match rows < 0 {
            true => self.history.older(self.composer.draft()),
            false => self.history.newer(),
        };
        if let Some(draft) = found {
            self.composer.replace(draft);
        }
    }

    pub(super) fn newline(&mut self) -> Vec<Effect> {
        self.composer.newline();
        self.complete()
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        if let Some(searching) = &mut self.searching {
            searching.words.push_str(text.lines().next().unwrap_or_default());
            self.show_found();
            return Vec::new();
        }
        if !self.composer.paste(text) {
            let most = MAX_BYTES / 1024;
            self.say(format!(
                "that is more than {most} KiB: put it into a file and name it with @"
            ));
            return Vec::new();
        }
        self.stop_browsing();
        // Pasted text completes nothing: an `@` in it is text.
        self.completing.close();
        vec![Effect::Save]
    }

    /// Looks for what completes the word at the cursor.
    pub(super) fn complete(&mut self) -> Vec<Effect> {
        self.completing.close();
        if self.answering.is_some() || self.searching.is_some() {
            return Vec::new();
        }
        self.completing.find(&self.composer)
    }

    pub(super) fn press_completion(&mut self, key: Key) -> Option<Vec<Effect>> {
        self.completing.press(key, &mut self.composer)
    }

    pub(super) fn start_search(&mut self) {
        self.leave_history();
        let aside = self.composer.draft().clone();
        self.completing.close();
        self.searching = Some(Searching { words: String::new(), skip: 0, is_found: true, aside });
        self.show_found();
    }

    pub(super) fn press_search(&mut self, key: Key, action: Option<Action>) {
        let Some(searching) = &mut self.searching else { return };
        match (key.code, action) {
            (_, Some(Action::HistorySearch)) => searching.skip += 1,
            (_, Some(Action::Interrupt | Action::Leave)) => return self.cancel_search(),
            (_, Some(Action::Send)) | (Code::Tab | Code::Right | Code::Left, _) => {
                let aside = searching.aside.clone();
                self.searching = None;
                if aside != *self.composer.draft() {
                    self.put_aside(aside);
                }
                return;
            }
            (Code::Backspace, _) => {
                searching.words.pop();
                searching.skip = 0;
            }
            _ => match key.typed() {
                Some(char) => {
                    searching.words.push(char);
                    searching.skip = 0;
                }
                None => return,
            },
        }
        self.show_found();
    }

    /// Back to what was written before a search in the history.
    pub(super) fn cancel_search(&mut self) {
        if let Some(searching) = self.searching.take() {
            self.composer.replace(searching.aside);
        }
    }

    fn show_found(&mut self) {
        let Some(searching) = &mut self.searching else { return };
        match self.history.search(&searching.words, searching.skip) {
            Some(text) => {
                searching.is_found = true;
                self.composer.replace(Draft::of(text));
            }
            // After the oldest one it stays there.
            None if searching.skip > 0 => searching.skip -= 1,
            None => searching.is_found = false,
        }
    }

    /// Takes the place of what is written, without losing it.
    pub(super) fn put_in_place(&mut self, draft: Draft) {
        self.cancel_search();
        self.leave_history();
        let written = self.composer.take();
        self.put_aside(written);
        self.composer.replace(draft);
    }

    pub(super) fn swap_stash(&mut self) {
        if self.answering.is_some() {
            return;
        }
        self.leave_history();
        let written = (!self.composer.is_empty()).then(|| self.composer.take());
        let before = std::mem::replace(&mut self.stash, written);
        match before {
            Some(draft) => self.composer.replace(draft),
            None if self.stash.is_some() => self.notice = Some(Remark::PutAside),
            None => {}
        }
    }

    /// Lets the text be for something else than a message, beginning with these words.
    pub(super) fn start_answering(&mut self, purpose: Purpose, words: &str) {
        // One answer at a time: words for another question go into the history.
        self.stop_answering();
        self.cancel_search();
        self.leave_history();
        let aside = self.composer.take();
        self.completing.close();
        self.answering = Some(Answering { purpose, aside });
        self.begin_text();
        if !words.is_empty() {
            self.composer.replace(Draft::of(words));
        }
    }

    /// Back to what was written before. Words that were not sent are in the history.
    pub(super) fn stop_answering(&mut self) {
        let Some(answering) = self.answering.take() else { return };
        self.cancel_search();
        let words = self.composer.take().expanded();
        self.history.push(&words);
        self.composer.replace(answering.aside);
    }

    /// Takes what was written for something else than a message, and brings back what was written before.
    pub(super) fn take_answer(&mut self) -> Option<(Purpose, String)> {
        let Answering { purpose, aside } = self.answering.take()?;
        let text = self.composer.take().expanded();
        self.composer.replace(aside);
        Some((purpose, text.trim().to_owned()))
    }

    /// What survives a crash as the message.
    pub(super) fn draft(&self) -> Draft {
        match (&self.answering, &self.searching, self.history.first()) {
            (Some(answering), _, _) => answering.aside.clone(),
            (None, Some(searching), _) => searching.aside.clone(),
            // What is only looked at in the history is there still.
            (None, None, Some(first)) if !first.is_empty() => first.clone(),
            (None, None, _) => self.composer.draft().clone(),
        }
    }

    /// The words to a question that were not sent yet.
    pub(super) fn answer(&self) -> Option<Draft> {
        let is_begun = self.answering.is_some() && !self.composer.is_empty();
        is_begun.then(|| self.composer.draft().clone())
    }
}
