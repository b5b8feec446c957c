//! One simple command: its words and assignments, each way they may read, and what it comes to.

use super::Walk;
use crate::environment::{self, Scope};
use crate::expand::{self, combine};
use crate::findings::{display_text, known_words};
use crate::state::{Arg, UNKNOWN, Values};
use crate::syntax::{Assign, CommandPart};
use crate::{ShellCommand, Via, classify, output};
use windlass_core::policy::class::{Assessment, Class};

impl Walk<'_> {
    pub(super) fn simple(&mut self, parts: &[CommandPart]) {
        if !self.budget.spend_command(&mut self.findings) {
            return;
        }
        let outer = self.findings.open_level(Vec::new());
        let input = self.state.input.clone();
        let mut variants: Values = vec![Vec::new()];
        let (mut assigned, mut declared) = (Vec::new(), Vec::new());
        let named = parts.iter().any(|part| matches!(part, CommandPart::Word(_)));
        for part in parts {
            match part {
                CommandPart::Assign(assign) if variants.iter().all(Vec::is_empty) => {
                    let values = self.variables().values(assign);
                    assigned.push((assign, values));
                }
                CommandPart::Assign(assign) => {
                    let values = self.variables().values(assign);
                    let text = match &values[..] {
                        [fields] => expand::join_fields(fields).text,
                        _ => UNKNOWN.to_string(),
                    };
                    let raw = format!("{}={text}", assign.name);
                    variants = combine(variants, &[vec![Arg::literal(raw)]]);
                    if declares(&variants) {
                        declared.push((assign, values));
                    }
                }
                CommandPart::Word(word) => {
                    let values = self.expander().word(word);
                    variants = combine(variants, &values);
                }
                CommandPart::Redirect(redirect) => self.redirect(redirect),
                CommandPart::Process(nodes) => {
                    self.in_subshell(Via::Process, |walk| walk.list(nodes));
                    variants = combine(variants, &[vec![Arg::unknown()]]);
                }
            }
        }
        let scope = if named { Scope::Exported } else { Scope::Shell };
        for (assign, values) in &assigned {
            environment::judge_assignment(self, &assign.name, values, scope);
            self.variables().evaluate_integer(&assign.name, values);
        }
        if !named {
            for (assign, values) in assigned.iter().cloned() {
                self.state.assign(assign, values);
            }
        }
        let separators = assigned.into_iter().find(|(assign, _)| named && assign.name == "IFS");
        let inner = self.findings.close_level(outer);
        self.with_separators(separators, |walk| walk.record_variants(variants, parts, inner));
        for (assign, values) in declared {
            self.variables().evaluate_integer(&assign.name, &values);
            // A reference was set to the name of another variable, which keeps its value.
            if !self.state.references.contains_key(&assign.name) {
                self.state.assign(assign, values);
            }
        }
        output::remember(self, parts);
        // `exec < file` changes the input of everything after it.
        let words = parts.iter().filter_map(|part| match part {
            CommandPart::Word(word) => Some(&**word),
            CommandPart::Assign(_) | CommandPart::Redirect(_) | CommandPart::Process(_) => None,
        });
        if !words.eq(["exec"]) {
            self.state.input = input;
        }
    }

    /// `IFS=_ read a b`: words split elsewhere for this command only.
    fn with_separators(
        &mut self,
        separators: Option<(&Assign, Values)>,
        walk: impl FnOnce(&mut Self),
    ) {
        let Some((assign, values)) = separators else { return walk(self) };
        let usual = self.state.value("IFS").unwrap_or_default();
        self.state.assign(assign, values);
        walk(self);
        self.state.set("IFS", usual);
    }

    /// Records the command once for each way it may read.
    fn record_variants(
        &mut self,
        variants: Values,
        parts: &[CommandPart],
        mut inner: Vec<ShellCommand>,
    ) {
        for argv in variants {
            if argv.is_empty() {
                if inner.is_empty()
                    && !parts.iter().any(|part| matches!(part, CommandPart::Assign(_)))
                {
                    continue;
                }
                let text = parts.iter().filter_map(|part| match part {
                    CommandPart::Assign(assign) => Some(&*assign.raw),
                    CommandPart::Word(_) | CommandPart::Redirect(_) | CommandPart::Process(_) => {
                        None
                    }
                });
                let command = display_text(&text.collect::<Vec<_>>().join(" "));
                let via = self.findings.via.clone();
                let assessment = Assessment::of(Class::Read, "sets variables of this shell only");
                let commands = std::mem::take(&mut inner);
                self.findings.commands.push(ShellCommand {
                    command,
                    via,
                    assessment,
                    words: Vec::new(),
                    confined: true,
                    commands,
                });
            } else {
                let via = self.findings.via.clone();
                self.record(&argv, via, std::mem::take(&mut inner));
            }
        }
    }

    /// Judges one command and records it, with what is found in it.
    pub(crate) fn record(&mut self, argv: &[Arg], via: Via, inner: Vec<ShellCommand>) {
        if !self.budget.enter(&mut self.findings) {
            return;
        }
        if self.budget.spend_command(&mut self.findings) {
            let outer = self.findings.open_level(inner);
            let via_outside = std::mem::replace(&mut self.findings.via, via.clone());
            let assessment = classify::judge(self, argv);
            self.findings.via = via_outside;
            let commands = self.findings.close_level(outer);
            self.findings.commands.push(ShellCommand {
                command: argv.iter().map(quote).collect::<Vec<_>>().join(" "),
                via,
                assessment,
                words: known_words(argv),
                confined: self.paths().confines(argv),
                commands,
            });
        } else {
            self.findings.commands.extend(inner);
        }
        self.budget.leave();
    }
}

/// Whether the command that these words begin assigns its arguments.
fn declares(variants: &Values) -> bool {
    variants.iter().any(|argv| {
        argv.first().is_some_and(|name| {
            matches!(&*name.text, "export" | "declare" | "typeset" | "local" | "readonly")
        })
    })
}

fn quote(arg: &Arg) -> String {
    let text = display_text(&arg.text);
    let plain = |c: char| c.is_alphanumeric() || "-_=./:@%+,~*?…[]{}^".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{text}'") }
}
