//! What completes the word at the cursor: the list that is open, and what it is made from.

use super::Effect;
use crate::completion::{self, Command, Completion, Sources, Word};
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
    /// The word that the files were last looked for, and the directory that it names.
    indexed_for: Option<(usize, Option<String>)>,
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
        let wanted = match completion::word(text, cursor) {
            Some(Word::File { start, text }) => {
                Some((start, completion::place(text).map(str::to_owned)))
            }
            Some(Word::Command { .. } | Word::Argument { .. }) | None => None,
        };
        // Files come and go: each new word looks for them again, and is completed from the old list meanwhile.
        if self.indexed_for == wanted {
            return Vec::new();
        }
        self.indexed_for.clone_from(&wanted);
        match wanted {
            Some((_, Some(place))) => vec![Effect::ListPlace(place)],
            Some((_, None)) if !std::mem::replace(&mut self.is_indexing, true) => {
                vec![Effect::IndexFiles]
            }
            Some((_, None)) | None => Vec::new(),
        }
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
        let word = composer.text().get(list.start..composer.cursor()).unwrap_or_default();
        if let Some(text) = list.chosen(word) {
            composer.complete(list.start, &text);
        }
        self.find(composer)
    }

    pub(super) fn set_files(&mut self, files: Vec<String>) {
        self.is_indexing = false;
        self.sources.files = Some(files);
    }

    pub(super) fn set_place(&mut self, place: String, names: Vec<String>) {
        self.sources.place = Some((place, names));
    }

    pub(super) fn set_commands(&mut self, commands: Vec<Command>) {
        self.sources.commands = commands;
    }

    /// Takes over the commands; the files are those of another directory.
    pub(super) fn take_commands(&mut self, before: Self) {
        self.sources.commands = before.sources.commands;
    }
}
