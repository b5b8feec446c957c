//! Redirections: the files that the shell itself opens, and where a command's input comes from.

use super::Walk;
use crate::state::{Arg, Input};
use crate::syntax::Redirect;
use crate::{Via, paths};

impl Walk<'_> {
    pub(super) fn with_redirects(&mut self, redirects: &[Redirect], walk: impl FnOnce(&mut Self)) {
        let input = self.state.input.clone();
        for redirect in redirects {
            self.redirect(redirect);
        }
        walk(self);
        self.state.input = input;
    }

    pub(super) fn redirect(&mut self, redirect: &Redirect) {
        match redirect {
            Redirect::From(word) => {
                let file = self.expander().text(word);
                self.open_file(&file, "<", paths::Use::Read);
                self.state.input = Input::File(file.text);
            }
            Redirect::To(word, _) => {
                let file = self.expander().text(word);
                self.open_file(&file, ">", paths::Use::Write);
                self.mark_written(&file);
            }
            Redirect::Duplicate(word) => {
                let file = self.expander().text(word);
                if !file.text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()) {
                    self.open_file(&file, ">", paths::Use::Write);
                }
            }
            Redirect::Document(text, expands) => {
                let text = match expands {
                    true => self.expander().document(text),
                    false => Arg::literal(&**text),
                };
                self.state.input = Input::Text(text.text);
            }
            Redirect::Text(word) => {
                self.state.input = Input::Text(self.expander().text(word).text);
            }
            Redirect::Process(nodes, read) => {
                self.in_subshell(Via::Process, |walk| walk.list(nodes));
                if *read {
                    self.state.input = Input::Pipe;
                }
            }
        }
    }

    fn open_file(&mut self, file: &Arg, sign: &str, usage: paths::Use) {
        if let Some(assessment) = self.paths().judge(file, usage) {
            self.findings.note_opened_file(file, sign, assessment);
        }
    }
}
