//! One simple command: its words and assignments, each way they may read, and what it comes to.

use super::{DEEPEST_TEXT, Walk, display_text};
use crate::expand::{self, combine};
use crate::state::{Arg, UNKNOWN, Values};
use crate::syntax::{Assign, Part, Value};
use crate::{ShellCommand, Via, environment};
use windlass_core::policy::class::{Assessment, Class};

impl Walk<'_> {
    pub(super) fn simple(&mut self, parts: &[Part]) {
        if !self.may_follow() {
            return;
        }
        let outer = std::mem::take(&mut self.found);
        let input = self.state.input.clone();
        let mut variants: Values = vec![Vec::new()];
        let (mut assigned, mut declared) = (Vec::new(), Vec::new());
        let named = parts.iter().any(|part| matches!(part, Part::Word(_)));
        for part in parts {
            match part {
                Part::Assign(assign) if variants.iter().all(Vec::is_empty) => {
                    let values = self.assignment_values(assign);
                    assigned.push((assign, values));
                }
                Part::Assign(assign) => {
                    let values = self.assignment_values(assign);
                    let text = match &values[..] {
                        [fields] => expand::join_fields(fields).text,
                        _ => UNKNOWN.to_string(),
                    };
                    let raw = format!("{}={text}", assign.name);
                    variants = combine(variants, &[vec![Arg::literal(raw)]]);
                    if self.declares(&variants) {
                        declared.push((assign, values));
                    }
                }
                Part::Word(word) => {
                    let values = self.expand(word);
                    variants = combine(variants, &values);
                }
                Part::Redirect(redirect) => self.redirect(redirect),
                Part::Process(nodes) => {
                    self.in_subshell(Via::Process, |walk| walk.list(nodes));
                    variants = combine(variants, &[vec![Arg::unknown()]]);
                }
            }
        }
        for (assign, values) in &assigned {
            environment::judge_assignment(self, &assign.name, values);
        }
        if !named {
            for (assign, values) in assigned {
                self.assign(assign, values);
            }
        }
        let inner = std::mem::replace(&mut self.found, outer);
        self.record_variants(variants, parts, inner);
        for (assign, values) in declared {
            self.assign(assign, values);
        }
        self.remember_output(parts);
        // `exec < file` changes the input of everything after it.
        let words = parts.iter().filter_map(|part| match part {
            Part::Word(word) => Some(&**word),
            Part::Assign(_) | Part::Redirect(_) | Part::Process(_) => None,
        });
        if !words.eq(["exec"]) {
            self.state.input = input;
        }
    }

    /// Records the command once for each way it may read.
    fn record_variants(&mut self, variants: Values, parts: &[Part], mut inner: Vec<ShellCommand>) {
        for argv in variants {
            if argv.is_empty() {
                if inner.is_empty() && !parts.iter().any(|part| matches!(part, Part::Assign(_))) {
                    continue;
                }
                let text = parts.iter().filter_map(|part| match part {
                    Part::Assign(assign) => Some(&*assign.raw),
                    Part::Word(_) | Part::Redirect(_) | Part::Process(_) => None,
                });
                let command = display_text(&text.collect::<Vec<_>>().join(" "));
                let via = self.via.clone();
                let assessment = Assessment::of(Class::Read, "sets variables of this shell only");
                let commands = std::mem::take(&mut inner);
                self.found.push(ShellCommand {
                    command,
                    via,
                    assessment,
                    words: Vec::new(),
                    commands,
                });
            } else {
                let via = self.via.clone();
                self.record(argv, via, std::mem::take(&mut inner));
            }
        }
    }

    /// Judges one command and records it, with what is found in it.
    pub(crate) fn record(&mut self, argv: Vec<Arg>, via: Via, inner: Vec<ShellCommand>) {
        if self.depth >= DEEPEST_TEXT {
            return self.note_unreadable("…", "commands are nested too deeply");
        }
        if !self.may_follow() {
            self.found.extend(inner);
            return;
        }
        let outer = std::mem::replace(&mut self.found, inner);
        let via_inside = std::mem::replace(&mut self.via, via.clone());
        self.depth += 1;
        let assessment = self.judge(&argv);
        self.depth -= 1;
        self.via = via_inside;
        let commands = std::mem::replace(&mut self.found, outer);
        self.found.push(ShellCommand {
            command: argv.iter().map(quote).collect::<Vec<_>>().join(" "),
            via,
            assessment,
            words: argv.iter().map(|arg| arg.known().map(str::to_owned)).collect(),
            commands,
        });
    }

    fn assignment_values(&mut self, assign: &Assign) -> Values {
        if let Some(index) = &assign.index {
            self.expand_document(index);
        }
        match &assign.value {
            Value::One(word) => vec![vec![self.expand_to_text(word)]],
            Value::Many(words) => {
                let mut all = vec![Vec::new()];
                for word in words {
                    let next = self.expand(word);
                    all = combine(all, &next);
                }
                all
            }
        }
    }

    fn assign(&mut self, assign: &Assign, values: Values) {
        let array = matches!(assign.value, Value::Many(_));
        match (&assign.index, assign.append) {
            // One element of an array: the whole is no longer known.
            (Some(_), _) => self.state.set(&assign.name, vec![vec![Arg::unknown()]]),
            (None, true) => self.state.append(&assign.name, values, array),
            (None, false) => self.state.set(&assign.name, values),
        }
    }

    /// Whether the command that these words begin assigns its arguments.
    fn declares(&self, variants: &Values) -> bool {
        variants.iter().any(|argv| {
            argv.first().is_some_and(|name| {
                matches!(&*name.text, "export" | "declare" | "typeset" | "local" | "readonly")
            })
        })
    }
}

fn quote(arg: &Arg) -> String {
    let text = display_text(&arg.text);
    let plain = |c: char| c.is_alphanumeric() || "-_=./:@%+,~*?…[]{}^".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{text}'") }
}
