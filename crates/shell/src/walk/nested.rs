//! Commands inside commands: text that runs, functions, aliases, and the shell each runs in.

use super::Walk;
use crate::state::{Arg, UNKNOWN};
use crate::syntax::{self, Node, ParseFailure};
use crate::{Via, guard};

/// The most lines looked at one by one in text that does not parse as a whole.
const MOST_SALVAGED: usize = 100;

impl Walk<'_> {
    /// Reads text that a shell would run here, in the current shell.
    pub(crate) fn script(&mut self, text: &str, via: Via) {
        match self.parse(text) {
            Ok(nodes) => self.nested(via, |walk| walk.list(&nodes)),
            Err(failure) => {
                self.findings.parsed &= !self.budget.is_outermost();
                let via = std::mem::replace(&mut self.findings.via, via);
                self.findings.note_unreadable(text, &failure.0);
                self.salvage(text);
                self.findings.via = via;
            }
        }
    }

    /// Text that a shell runs; where parts of it are not known, the rest is read all the same.
    pub(crate) fn script_text(&mut self, text: &Arg, program: &str) {
        let via = Via::Script(program.to_owned());
        match text.known() {
            Some(text) => self.script(text, via),
            None => {
                self.findings.note_unreadable(
                    &text.text,
                    &format!("`{program}` runs text that is computed when it runs"),
                );
                if !text.without_unknown().trim().is_empty() {
                    let text = text.text.replace(UNKNOWN, "$__unknown__");
                    self.script(&text, via);
                }
            }
        }
    }

    /// Follows text that `program` runs in a shell of its own.
    pub(crate) fn follow_text(&mut self, via: Via, text: &Arg, program: &str) {
        self.in_subshell(via, |walk| walk.script_text(text, program));
    }

    /// Follows text that another program will run, given as an argument.
    pub(crate) fn follow_argument(&mut self, text: &str, program: &str) {
        self.follow_text(Via::Wrapper(program.to_owned()), &Arg::literal(text), program);
    }

    /// Follows a command that another program runs.
    pub(crate) fn follow_words(&mut self, via: Via, argv: &[Arg]) {
        self.in_subshell(via.clone(), |walk| walk.record(argv, via, Vec::new()));
    }

    /// Follows a function's body, with the arguments of a call where there is one.
    pub(crate) fn follow_function(&mut self, name: &str, body: &[Node], call: Option<&[Arg]>) {
        if self.active.iter().any(|active| active == name) {
            return;
        }
        self.active.push(name.to_owned());
        let forks = std::mem::take(&mut self.forks);
        let positional =
            std::mem::replace(&mut self.state.positional, call.map(|args| vec![args.to_vec()]));
        match call {
            Some(_) => self.nested(Via::Function(name.to_owned()), |walk| walk.list(body)),
            // Defining runs nothing yet, but what it would run is judged where it is written.
            None => self.in_subshell(Via::Function(name.to_owned()), |walk| walk.list(body)),
        }
        self.state.positional = positional;
        self.forks = forks;
        self.active.pop();
    }

    /// Follows an alias, with the arguments it is called with.
    pub(crate) fn follow_alias(&mut self, name: &str, value: &str, args: &[Arg]) {
        let key = format!("alias {name}");
        if self.active.contains(&key) {
            return;
        }
        self.active.push(key);
        let mut text = value.to_owned();
        for arg in args {
            text.push(' ');
            text.push_str(&arg.to_source());
        }
        self.script(&text, Via::Alias(name.to_owned()));
        self.active.pop();
    }

    /// Runs `walk` one level deeper, in the same shell.
    pub(super) fn nested(&mut self, via: Via, walk: impl FnOnce(&mut Self)) {
        if !self.budget.enter(&mut self.findings) {
            return;
        }
        let via = std::mem::replace(&mut self.findings.via, via);
        walk(self);
        self.findings.via = via;
        self.budget.leave();
    }

    /// The same in a shell of its own: its changes end with it.
    pub(crate) fn in_subshell(&mut self, via: Via, walk: impl FnOnce(&mut Self)) {
        let state = self.state.clone();
        self.nested(via, walk);
        self.state = state;
    }

    pub(crate) fn parse(&mut self, script: &str) -> Result<Vec<Node>, ParseFailure> {
        self.budget.spend_text(script)?;
        syntax::parse(script)
    }

    /// Bash runs each line before it reads the next, so lines before an error still run.
    fn salvage(&mut self, text: &str) {
        if text.len() > guard::LONGEST_TEXT {
            return;
        }
        for line in text.lines().take(MOST_SALVAGED).filter(|line| !line.trim().is_empty()) {
            if let Ok(nodes) = self.parse(line) {
                self.in_subshell(self.findings.via.clone(), |walk| walk.list(&nodes));
            }
        }
    }
}
