//! The text: history, answers in words, drafts put aside, pastes.

use windlass_core::id::QuestionId;

use super::Effect;
use super::completing::Completing;
use crate::composer::vim::{Mode, Taken, Vim};
use crate::composer::{Composer, Draft, MAX_BYTES, Mark};
use crate::history::History;
use crate::keymap::{Action, Keymap};
use crate::keys::{Code, Key};
use crate::screen::Shape;

/// Bytes of what a command printed that the agent reads.
const RAN_BYTES: usize = 16 * 1024;

/// Where the text goes when it is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The answer to a question; this stands before it on the wire.
    Answer { prefix: &'static str },
    /// A comment on this line of a plan.
    Comment { line: usize },
}

/// The text is about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    pub question: QuestionId,
    pub purpose: Purpose,
    /// What was written before.
    pub aside: Draft,
}

/// A search in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searching {
    pub words: String,
    pub skip: usize,
    pub(super) aside: Draft,
}

/// What is written and not sent.
#[derive(Default)]
pub struct Writing {
    pub composer: Composer,
    pub history: History,
    pub answering: Option<Answering>,
    pub searching: Option<Searching>,
    pub completing: Completing,
    /// Editing as in vi, where the person wants it.
    pub vim: Option<Vim>,
    pub(super) stash: Option<Draft>,
    /// Commands that the person ran, for the next message.
    ran: Vec<String>,
    notice: Option<Remark>,
}

/// What the person should be shown about what they write.
enum Remark {
    Words(String),
    /// A draft was put aside.
    PutAside,
}

impl Writing {
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
    pub(super) fn press_vim(&mut self, key: Key) -> Taken {
        let Some(vim) = &mut self.vim else { return Taken::No };
        let taken = vim.press(key, &mut self.composer);
        if taken == Taken::Yes {
            self.history.stop_browsing();
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
            _ if self.composer.key(key) => {
                self.history.stop_browsing();
                return self.complete();
            }
            _ => {}
        }
        Vec::new()
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
        self.history.stop_browsing();
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
        let aside = self.composer.draft().clone();
        self.completing.close();
        self.searching = Some(Searching { words: String::new(), skip: 0, aside });
        self.show_found();
    }

    pub(super) fn press_search(&mut self, key: Key, action: Option<Action>) {
        let Some(searching) = &mut self.searching else { return };
        match (key.code, action) {
            (_, Some(Action::HistorySearch)) => searching.skip += 1,
            (_, Some(Action::Interrupt | Action::Leave)) => {
                let aside = searching.aside.clone();
                self.searching = None;
                return self.composer.replace(aside);
            }
            (_, Some(Action::Send)) | (Code::Tab | Code::Right | Code::Left, _) => {
                let aside = searching.aside.clone();
                self.searching = None;
                if !aside.is_empty() && aside != *self.composer.draft() {
                    self.stash = Some(aside);
                    self.notice = Some(Remark::PutAside);
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

    fn show_found(&mut self) {
        let Some(searching) = &mut self.searching else { return };
        match self.history.search(&searching.words, searching.skip) {
            Some(text) => self.composer.replace(Draft::of(text)),
            None => searching.skip = searching.skip.saturating_sub(1),
        }
    }

    /// Takes the place of what is written, without losing it.
    pub(super) fn put_in_place(&mut self, draft: Draft) {
        if !self.composer.is_empty() {
            let written = self.composer.take();
            if let Some(before) = self.stash.replace(written) {
                self.history.push(&before.expanded());
            }
            self.notice = Some(Remark::PutAside);
        }
        self.composer.replace(draft);
    }

    pub(super) fn swap_stash(&mut self) {
        if self.answering.is_some() {
            return;
        }
        let written = (!self.composer.is_empty()).then(|| self.composer.take());
        let before = std::mem::replace(&mut self.stash, written);
        match before {
            Some(draft) => self.composer.replace(draft),
            None if self.stash.is_some() => self.notice = Some(Remark::PutAside),
            None => {}
        }
    }

    /// Lets the text be about a question, beginning with these words.
    pub(super) fn start_answering(&mut self, question: QuestionId, purpose: Purpose, words: &str) {
        // One answer at a time: words for another question go into the history.
        self.stop_answering();
        let aside = self.composer.take();
        self.completing.close();
        self.answering = Some(Answering { question, purpose, aside });
        self.begin_text();
        if !words.is_empty() {
            self.composer.replace(Draft::of(words));
        }
    }

    /// Back to what was written before. Words that were not sent are in the history.
    pub(super) fn stop_answering(&mut self) {
        let Some(answering) = self.answering.take() else { return };
        let words = self.composer.take().expanded();
        self.history.push(&words);
        self.composer.replace(answering.aside);
    }

    /// Takes what was written about a question, and brings back what was written before.
    pub(super) fn take_answer(&mut self) -> Option<(QuestionId, Purpose, String)> {
        let Answering { question, purpose, aside } = self.answering.take()?;
        let text = self.composer.take().expanded();
        self.composer.replace(aside);
        Some((question, purpose, text.trim().to_owned()))
    }

    /// What survives a crash: a text about a question is none of it.
    pub(super) fn draft(&self) -> Draft {
        match (&self.answering, &self.searching) {
            (Some(answering), _) => answering.aside.clone(),
            (None, Some(searching)) => searching.aside.clone(),
            (None, None) => self.composer.draft().clone(),
        }
    }

    /// A command that the person ran, to be sent with the next message.
    pub(super) fn add_ran(&mut self, command: &str, printed: &str) {
        let printed = windlass_core::text::suffix(printed, RAN_BYTES);
        self.ran.push(format!(
            "I ran this command:\n\n    $ {command}\n\nIt printed:\n\n```\n{}\n```\n",
            printed.trim_end()
        ));
    }

    /// A message with what the person ran before it.
    pub fn with_ran(&mut self, text: String) -> String {
        let ran = std::mem::take(&mut self.ran);
        ran.into_iter().chain([text]).collect::<Vec<_>>().join("\n")
    }
}
