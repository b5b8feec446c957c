//! What completes the word at the cursor: the list that is open, and what it is made from.

use super::Effect;
use crate::completion::{self, Command, Completion, Sources};
use crate::composer::Composer;
use crate::keys::{Code, Key};

/// The list of completions, while there is one.
#[derive(Default)]
pub struct Completing {
    pub list: Option<Completion>,
    sources: Sources,
    /// The word whose list the person has closed.
    dismissed: Option<usize>,
    is_indexing: bool,
}

impl Completing {
    /// Looks for what completes the word at the cursor.
    pub(super) fn find(&mut self, composer: &Composer) -> Vec<Effect> {
        let (text, cursor) = (composer.text(), composer.cursor());
        let found = completion::find(text, cursor, &self.sources);
        self.dismissed = self
            .dismissed
            .filter(|start| found.as_ref().is_some_and(|found| found.start == *start));
        self.list = found.filter(|_| self.dismissed.is_none());
        let wants_files = completion::needs_files(text, cursor);
        if wants_files && self.sources.files.is_none() && !self.is_indexing {
            self.is_indexing = true;
            return vec![Effect::IndexFiles];
        }
        Vec::new()
    }

    pub(super) fn close(&mut self) {
        self.list = None;
    }

    /// What a key does in the list; `None` where it is not for the list.
    pub(super) fn press(&mut self, key: Key, composer: &mut Composer) -> Option<Vec<Effect>> {
        let list = self.list.as_mut()?;
        match key.code {
            Code::Up if !key.alt => list.go(-1),
            Code::Down if !key.alt => list.go(1),
            Code::Escape => {
                self.dismissed = Some(list.start);
                self.list = None;
            }
            Code::Tab => return Some(self.accept(composer)),
            // A command that is whole is sent; anything else is completed first.
            Code::Enter if !key.alt && !key.shift && !key.ctrl => {
                let is_whole = list.is_complete(composer.text(), composer.cursor());
                return (!is_whole).then(|| self.accept(composer));
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn accept(&mut self, composer: &mut Composer) -> Vec<Effect> {
        let Some(list) = self.list.take() else { return Vec::new() };
        if let Some(text) = list.chosen() {
            composer.complete(list.start, &text);
        }
        self.find(composer)
    }

    pub(super) fn set_files(&mut self, files: Vec<String>) {
        self.is_indexing = false;
        self.sources.files = Some(files);
    }

    pub(super) fn set_commands(&mut self, commands: Vec<Command>) {
        self.sources.commands = commands;
    }

    /// Takes over what is known to complete from.
    pub(super) fn take_sources(&mut self, before: Self) {
        self.sources = before.sources;
    }
}
